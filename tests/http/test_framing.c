/*
 * Requests as bytes, against the real program: every row of the guard's table, what libmicrohttpd
 * answers by itself, slow clients, pipelining. A refusal closes the connection, what stands behind
 * a refused request is never answered, and nothing is stored.
 */
#include "tests/http/live.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define H "Host: localhost\r\n"
#define BLOB                                                                                       \
    "/api/v1/projects/demo/kvcache/blobs/"                                                         \
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
/* Stands where a smuggled request would; its answer is easily told from others. */
#define SECOND "GET /version HTTP/1.1\r\n" H "\r\n"
#define SECOND_ANSWER "\"cleanrun-server\""

struct row {
    const char *name;
    const char *bytes;
    size_t len;      /* 0: strlen */
    int status[3];   /* any of these; 0: no answer at all is fine too */
    bool stays_open; /* a normal answer */
};

/* Visible in the handler: refused by the guard. */
static const struct row visible[] = {
    {"te-gzip",
     "PUT " BLOB " HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n" SECOND,
     0,
     {501},
     false},
    {"te-gzip-and-length",
     "PUT " BLOB " HTTP/1.1\r\n" H
     "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde" SECOND,
     0,
     {400},
     false},
    {"te-chunked-and-length",
     "PUT " BLOB " HTTP/1.1\r\n" H
     "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" SECOND,
     0,
     {400},
     false},
    {"te-chunked-upload",
     "PUT " BLOB " HTTP/1.1\r\n" H
     "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n" SECOND,
     0,
     {411},
     false},
    {"te-list",
     "PUT " BLOB " HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n" SECOND,
     0,
     {501},
     false},
    {"te-twice",
     "PUT " BLOB " HTTP/1.1\r\n" H
     "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" SECOND,
     0,
     {400},
     false},
    {"te-space",
     "PUT " BLOB " HTTP/1.1\r\n" H
     "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n" SECOND,
     0,
     {400},
     false},
    {"two-lengths",
     "PUT " BLOB " HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 60\r\n\r\nabcde" SECOND,
     0,
     {400},
     false},
    {"same-length-twice",
     "PUT " BLOB " HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde" SECOND,
     0,
     {400},
     false},
    {"length-with-space",
     "PUT " BLOB " HTTP/1.1\r\n" H "Content-Length : 5\r\n\r\nabcde" SECOND,
     0,
     {400},
     false},
    {"name-with-space", "GET /version HTTP/1.1\r\n" H "X Y: 1\r\n\r\n", 0, {400}, false},
    {"nul-in-path", "GET /a%00b HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"encoded-slash",
     "GET /static/..%2f..%2fetc/passwd HTTP/1.1\r\n" H "\r\n" SECOND,
     0,
     {400},
     false},
    {"dot-segments", "GET /p/../../etc/passwd HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"encoded-dots", "GET /p/%2e%2e/x HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"overlong-utf8", "GET /p/%c0%af HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"space-in-target", "GET /a b HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"no-host", "GET /version HTTP/1.1\r\n\r\n", 0, {400}, false},
    {"two-hosts", "GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 0, {400}, false},
    {"odd-host", "GET /version HTTP/1.1\r\nHost: a/../b\r\n\r\n", 0, {400}, false},
    {"absolute-target", "GET http://localhost/version HTTP/1.1\r\n" H "\r\n", 0, {400}, false},
    {"asterisk", "OPTIONS * HTTP/1.1\r\n" H "\r\n", 0, {400}, false},
    {"method-unknown", "FOO /version HTTP/1.1\r\n" H "\r\n" SECOND, 0, {501}, false},
    {"method-lower", "get /version HTTP/1.1\r\n" H "\r\n" SECOND, 0, {501}, false},
    {"get-with-body",
     "GET /version HTTP/1.1\r\n" H "Content-Length: 60\r\n\r\n" SECOND,
     0,
     {400},
     false},
    {"folded-length",
     "GET /version HTTP/1.1\r\n" H "Content-Length:\r\n 60\r\n\r\n" SECOND,
     0,
     {400},
     false},
    {"folded-length-after-value",
     "GET /version HTTP/1.1\r\n" H "Content-Length: 0\r\n\t60\r\n\r\n" SECOND,
     0,
     {400},
     false},
    {"folded-te",
     "GET /version HTTP/1.1\r\n" H "Transfer-Encoding:\r\n chunked\r\n\r\n" SECOND,
     0,
     {400},
     false},
    {"folded-te-beside-length",
     "PUT " BLOB " HTTP/1.1\r\n" H
     "Transfer-Encoding:\r\n  chunked\r\nContent-Length: 5\r\n\r\nabcde" SECOND,
     0,
     {400},
     false},
    {"folded-host", "GET /version HTTP/1.1\r\n" H "Host:\r\n b\r\n\r\n" SECOND, 0, {400}, false},
    {"folded-authorization",
     "GET /version HTTP/1.1\r\n" H "Authorization: Bearer\r\n clr_00\r\n\r\n" SECOND,
     0,
     {400},
     false},
    {"high-byte-in-query", "GET /version?\x80 HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"quote-in-query", "GET /version?a=\"b HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"angle-in-query", "GET /version?<b> HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"broken-escape-in-query", "GET /version?a=%4 HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"fragment", "GET /version#a HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"fragment-in-query", "GET /version?a#b HTTP/1.1\r\n" H "\r\n" SECOND, 0, {400}, false},
    {"expect-other",
     "PUT " BLOB " HTTP/1.1\r\n" H "Expect: magic\r\nContent-Length: 5\r\n\r\n" SECOND,
     0,
     {417},
     false},
    {"http-2", "GET /version HTTP/2.0\r\n" H "\r\n" SECOND, 0, {505, 0}, false},
    {"two-tokens",
     "GET /version HTTP/1.1\r\n" H "Authorization: a\r\nAuthorization: b\r\n\r\n" SECOND,
     0,
     {400},
     false},
};

/* Never reach the handler, or arrive altered: closed or answered once, nothing
 * behind them is served. */
static const struct row hidden[] = {
    {"length-negative",
     "PUT " BLOB " HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\nabcde" SECOND,
     0,
     {400, 413, 0},
     false},
    {"length-plus",
     "PUT " BLOB " HTTP/1.1\r\n" H "Content-Length: +3\r\n\r\nabc" SECOND,
     0,
     {400, 0},
     false},
    {"length-word",
     "PUT " BLOB " HTTP/1.1\r\n" H "Content-Length: abc\r\n\r\nabc" SECOND,
     0,
     {400, 0},
     false},
    {"length-huge",
     "PUT " BLOB " HTTP/1.1\r\n" H "Content-Length: 99999999999999999999999\r\n\r\nabc" SECOND,
     0,
     {400, 413, 0},
     false},
    {"no-colon", "GET /version HTTP/1.1\r\n" H "Foo\r\n\r\n", 0, {400, 0}, false},
    {"http-0.9", "GET /version\r\n\r\n", 0, {400, 505, 0}, false},
    {"tls-hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15, {400, 501, 0}, false},
};

/* Odd but harmless, answered normally. */
static const struct row harmless[] = {
    {"bare-lf", "GET /version HTTP/1.1\nHost: localhost\n\n", 0, {200}, true},
    {"nul-in-value",
     "GET /version HTTP/1.1\r\n" H "X-A: a\0b\r\n\r\n",
     sizeof("GET /version HTTP/1.1\r\n" H "X-A: a\0b\r\n\r\n") - 1,
     {200, 400},
     true},
    {"cr-in-value", "GET /version HTTP/1.1\r\n" H "X-A: a\rb\r\n\r\n", 0, {200, 400}, true},
    {"obs-fold", "GET /version HTTP/1.1\r\n" H "X-A: 1\r\n  2\r\n\r\n", 0, {200, 400}, true},
    {"query-as-it-may-be",
     "GET /version?a=b+c%20%E2%82%AC&d=/?:@!$'()*,;-._~ HTTP/1.1\r\n" H "\r\n",
     0,
     {200},
     true},
    {"http-1.0", "GET /version HTTP/1.0\r\n\r\n", 0, {200}, true},
    {"zero-length", "GET /version HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", 0, {200}, true},
};

static int setup(void **state)
{
    static const char *const extra[] = {"--header-timeout", "2", "--idle-timeout", "3", NULL};
    static const char *const project[] = {"project", "add", "demo/kvcache", NULL};
    struct live *l = calloc(1, sizeof *l);

    assert_non_null(l);
    live_init(l);
    assert_int_equal(live_admin(l, project, NULL), 0);
    live_start(l, extra);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    struct live *l = *state;

    live_fini(l);
    free(l);
    return 0;
}

static bool is_wanted(const struct row *row, int status)
{
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(row->status); i++) {
        if (status == row->status[i] && (status != 0 || i > 0))
            return true;
    }
    return false;
}

static void try_row(struct live *l, const struct row *row)
{
    struct raw r;
    struct raw_response a;

    raw_open(&r, l->port);
    (void) raw_send(&r, row->bytes,
                    row->len ? row->len : strlen(row->bytes)); /* it may be closed in the middle */
    raw_read(&r, false, 6000, &a);
    if (!is_wanted(row, a.status))
        fail_msg("%s: status %d", row->name, a.status);
    if (!row->stays_open) {
        if (!raw_wait_closed(&r, 6000))
            fail_msg("%s: the connection stays open", row->name);
        if ((a.body && strstr(a.body, SECOND_ANSWER)) || (r.data && strstr(r.data, SECOND_ANSWER)))
            fail_msg("%s: the request behind it was served", row->name);
        if (r.data && strstr(r.data, "HTTP/1.1 2"))
            fail_msg("%s: a second answer", row->name);
    }
    raw_response_fini(&a);
    raw_close(&r);
}

static void try_all(struct live *l, const struct row *rows, size_t n)
{
    size_t i = 0;

    for (i = 0; i < n; i++)
        try_row(l, &rows[i]);
    assert_int_equal(live_count(l, "objects"), 0);
    assert_int_equal(live_count(l, "spool"), 0);
}

static void guard_refuses_what_the_parser_lets_through(void **state)
{
    try_all(*state, visible, ARRAY_LEN(visible));
}

static void what_the_parser_answers_itself_serves_nothing_more(void **state)
{
    try_all(*state, hidden, ARRAY_LEN(hidden));
}

static void harmless_oddities_are_answered(void **state)
{
    try_all(*state, harmless, ARRAY_LEN(harmless));
}

/* prefix, then `n` times `piece`, then suffix. */
static char *repeat(const char *prefix, const char *piece, size_t n, const char *suffix)
{
    AUTO_BUF struct buf b = {.data = NULL};
    size_t len = 0;
    size_t i = 0;

    buf_init(&b, 1000000);
    buf_puts(&b, prefix);
    for (i = 0; i < n; i++)
        buf_puts(&b, piece);
    buf_puts(&b, suffix);
    return buf_take(&b, &len);
}

static void long_targets_and_headers_are_refused(void **state)
{
    struct live *l = *state;
    struct raw_response a;
    char *text = repeat("GET /", "a", 3000, " HTTP/1.1\r\n" H "\r\n");

    raw_request(l->port, text, &a);
    assert_int_equal(a.status, 414);
    raw_response_fini(&a);
    free(text);

    text = repeat("GET /version HTTP/1.1\r\n" H "X-A: ", "a", 200000, "\r\n\r\n");
    raw_request(l->port, text, &a);
    assert_true(a.status == 431 || a.status == 413 || a.status == 0);
    raw_response_fini(&a);
    free(text);

    text = repeat("GET /version HTTP/1.1\r\n" H, "X-A: 1\r\n", 70, "\r\n");
    raw_request(l->port, text, &a);
    assert_int_equal(a.status, 431);
    raw_response_fini(&a);
    free(text);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct live *l = *state;
    struct raw r;
    struct raw_response a;

    raw_open(&r, l->port);
    assert_true(raw_puts(&r, "GET /version HTTP/1.1\r\n" H "\r\nHEAD /version HTTP/1.1\r\n" H "\r\n"
                             "DELETE /version HTTP/1.1\r\n" H "\r\nGET /nothing/here HTTP/1.1\r\n" H
                             "\r\n"));
    raw_read(&r, false, 5000, &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, SECOND_ANSWER));
    raw_response_fini(&a);
    raw_read(&r, true, 5000, &a);
    assert_int_equal(a.status, 200);
    raw_response_fini(&a);
    raw_read(&r, false, 5000, &a);
    assert_int_equal(a.status, 405);
    assert_int_equal(raw_header_count(&a, "Allow"), 1);
    raw_response_fini(&a);
    raw_read(&r, false, 5000, &a);
    assert_int_equal(a.status, 404);
    assert_non_null(strstr(a.head, "application/problem+json"));
    assert_non_null(strstr(a.body, "/help/problems/not-found\""));
    raw_response_fini(&a);
    raw_close(&r);
}

/* Sends text one byte a tenth of a second for ten seconds, or until the server ends it. */
static bool is_cut_in_drip(struct live *l, const char *start, const char *text)
{
    struct raw r;
    size_t i = 0;
    bool cut = false;

    raw_open(&r, l->port);
    assert_true(raw_puts(&r, start));
    for (i = 0; i < 100 && !raw_wait_closed(&r, 100); i++)
        (void) raw_send(&r, text + i % strlen(text), 1); /* it may just have been closed */
    cut = r.closed;
    raw_close(&r);
    return cut;
}

static void slow_clients_are_cut(void **state)
{
    struct live *l = *state;
    struct raw r;

    raw_open(&r, l->port); /* half a request line, then silence */
    assert_true(raw_puts(&r, "GET /vers"));
    assert_true(raw_wait_closed(&r, 8000));
    assert_int_equal(r.len, 0);
    raw_close(&r);
    raw_open(&r, l->port); /* nothing at all */
    assert_true(raw_wait_closed(&r, 8000));
    raw_close(&r);
    /* Bytes keep an idle timer alive for ever; the deadline of a header does not care. */
    assert_true(is_cut_in_drip(l, "GET /version HTTP/1.1\r\n" H "X-Slow: ", "a"));
    assert_true(is_cut_in_drip(l, "G", "G"));
}

static void silent_uploads_are_cut_and_leave_nothing(void **state)
{
    static const char *const token[] = {"token",  "add",       "up",           "--scope",
                                        "upload", "--project", "demo/kvcache", NULL};
    struct live *l = *state;
    char *secret = NULL;
    char *request = NULL;
    struct raw r;

    assert_int_equal(live_admin(l, token, &secret), 0);
    secret[strcspn(secret, "\r\n")] = '\0';
    assert_true(asprintf(&request,
                         "PUT " BLOB " HTTP/1.1\r\n" H
                         "Authorization: Bearer %s\r\nContent-Length: 100000\r\n\r\nabc",
                         secret) > 0);
    raw_open(&r, l->port);
    assert_true(raw_puts(&r, request));
    assert_true(raw_wait_closed(&r, 8000));
    assert_int_equal(r.len, 0);
    raw_close(&r);
    assert_int_equal(live_count(l, "spool"), 0);
    assert_int_equal(live_count(l, "objects"), 0);
    free(request);
    free(secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guard_refuses_what_the_parser_lets_through),
        cmocka_unit_test(what_the_parser_answers_itself_serves_nothing_more),
        cmocka_unit_test(harmless_oddities_are_answered),
        cmocka_unit_test(long_targets_and_headers_are_refused),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(slow_clients_are_cut),
        cmocka_unit_test(silent_uploads_are_cut_and_leave_nothing),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
