/* Guard, routes and tokens on hand-made requests. The same over sockets: tests/http. */
#include "tests/lib/support.h"

#include <string.h>

#include "base/cleanup.h"
#include "server/http/auth.h"
#include "server/http/guard.h"
#include "server/http/request.h"
#include "server/http/route.h"

static struct request *make(const char *method, const char *target)
{
    struct request *q = request_new();

    assert_non_null(q);
    q->method_text = method;
    q->version = "HTTP/1.1";
    q->target = target;
    q->raw_path = target;
    return q;
}

static void header(struct request *q, const char *name, const char *value)
{
    q->headers[q->n_headers++] = (struct request_header){.name = name, .value = value};
}

struct row {
    const char *method, *target;
    const char *headers[6]; /* name, value, … */
    unsigned status;        /* 0: passes */
};

static const struct row rows[] = {
    {"GET", "/", {"Host", "h"}, 0},
    {"GET", "/a", {"host", "[::1]:80"}, 0},
    {"PUT", "/a", {"Host", "h", "Content-Length", "12"}, 0},
    {"PUT", "/a", {"Host", "h", "Content-Length", "0"}, 0},
    {"GET", "/a", {"Host", "h", "Content-Length", "0"}, 0},
    {"POST", "/a", {"Host", "h", "Content-Length", "1", "Expect", "100-Continue"}, 0},
    {"FOO", "/", {"Host", "h"}, 501},
    {"get", "/", {"Host", "h"}, 501},
    {"GET", "/", {NULL}, 400},
    {"GET", "/", {"Host", ""}, 400},
    {"GET", "/", {"Host", "a", "Host", "a"}, 400},
    {"GET", "/", {"Host", "a/b"}, 400},
    {"GET", "/", {"Host", "a@b"}, 400},
    {"GET", "http://h/x", {"Host", "h"}, 400},
    {"OPTIONS", "*", {"Host", "h"}, 400},
    {"GET", "/a%00b", {"Host", "h"}, 400},
    {"GET", "/static/..%2f..%2fetc/passwd", {"Host", "h"}, 400},
    {"GET", "/a/../b", {"Host", "h"}, 400},
    {"GET", "/a b", {"Host", "h"}, 400},
    {"PUT", "/a", {"Host", "h", "Transfer-Encoding", "gzip"}, 501},
    {"PUT", "/a", {"Host", "h", "Transfer-Encoding", "gzip", "Content-Length", "5"}, 400},
    {"PUT", "/a", {"Host", "h", "Transfer-Encoding", "chunked", "Content-Length", "5"}, 400},
    {"PUT", "/a", {"Host", "h", "Transfer-Encoding", "chunked"}, 411},
    {"PUT", "/a", {"Host", "h", "Transfer-Encoding", "gzip, chunked"}, 501},
    {"PUT", "/a", {"Host", "h", "Content-Length", "5", "Content-Length", "6"}, 400},
    {"PUT", "/a", {"Host", "h", "Content-Length", "5", "content-length", "5"}, 400},
    {"PUT", "/a", {"Host", "h", "Content-Length", "+3"}, 400},
    {"PUT", "/a", {"Host", "h", "Content-Length", "-3"}, 400},
    {"PUT", "/a", {"Host", "h", "Content-Length", "3,3"}, 400},
    {"PUT", "/a", {"Host", "h", "Content-Length", "0x3"}, 400},
    {"PUT", "/a", {"Host", "h", "Content-Length", ""}, 400},
    {"PUT", "/a", {"Host", "h", "Content-Length", "99999999999999999999"}, 400},
    {"GET", "/a", {"Host", "h", "Content-Length", "5"}, 400},
    {"HEAD", "/a", {"Host", "h", "Content-Length", "5"}, 400},
    {"PUT", "/a", {"Host", "h", "Content-Length ", "5"}, 400},
    {"GET", "/a", {"Host", "h", "X A", "5"}, 400},
    {"GET", "/a", {"Host", "h", "", "5"}, 400},
    {"GET", "/a", {"Host", "h", "X-A", "a\x01"}, 400},
    {"GET", "/a", {"Host", "h", "X-A", "a\x1f"}, 400},
    {"GET", "/a", {"Host", "h", "X-A", "a\x7f"}, 400},
    {"GET", "/a", {"Host", "h", "X-A", "a\tb \x80\xff"}, 0},
    {"GET", "/a", {"Host", "h", "Authorization", "a", "Authorization", "b"}, 400},
    {"POST", "/a", {"Host", "h", "Content-Length", "1", "Expect", "200-ok"}, 417},
    /* a folded line, as MHD hands it on */
    {"GET", "/a", {"Host", "h", "Content-Length33", ""}, 400},
    {"GET", "/a", {"Host", "h", "transfer-encodingchunked", ""}, 400},
    {"GET", "/a", {"Host", "h", "Hostb", ""}, 400},
    {"GET", "/a", {"Host", "h", "Expect-CT", "x"}, 0},
    {"GET", "/a", {"Host", "h", "Content-Language", "en"}, 0},
};

static void guard_answers_every_row(void **state)
{
    size_t i = 0;

    (void) state;
    for (i = 0; i < ARRAY_LEN(rows); i++) {
        struct request *q = make(rows[i].method, rows[i].target);
        struct guard_refusal r = {.status = 0};
        size_t h = 0;

        for (h = 0; h + 1 < ARRAY_LEN(rows[i].headers) && rows[i].headers[h]; h += 2)
            header(q, rows[i].headers[h], rows[i].headers[h + 1]);
        if (guard_check(q, &r) != (rows[i].status == 0) || r.status != rows[i].status)
            fail_msg("row %zu (%s %s): %u, wanted %u", i, rows[i].method, rows[i].target, r.status,
                     rows[i].status);
        request_free(q);
    }
}

static void guard_limits_version_target_and_header_count(void **state)
{
    char target[2100];
    struct request *q = make("GET", "/");
    struct guard_refusal r = {.status = 0};

    (void) state;
    q->version = "HTTP/1.0"; /* needs no Host */
    assert_true(guard_check(q, &r));
    q->version = "HTTP/2.0";
    assert_false(guard_check(q, &r));
    assert_int_equal(r.status, 505);
    q->version = "HTTP/1.1";
    header(q, "Host", "h");
    memset(target, 'a', sizeof target);
    target[0] = '/';
    target[2049] = '\0';
    q->target = target;
    q->raw_path = target;
    assert_false(guard_check(q, &r));
    assert_int_equal(r.status, 414);
    target[2048] = '\0';
    assert_true(guard_check(q, &r));
    target[256] = '\0'; /* no name of a host is longer than 255 bytes */
    q->headers[0].value = target + 1;
    assert_true(guard_check(q, &r));
    target[256] = 'a';
    target[257] = '\0';
    assert_false(guard_check(q, &r));
    assert_int_equal(r.status, 400);
    q->headers[0].value = "h";
    q->raw_query = "a=%4";
    assert_false(guard_check(q, &r));
    assert_int_equal(r.status, 400);
    q->raw_query = NULL;
    target[257] = 'a';
    target[2048] = '\0';
    q->too_many_headers = true;
    assert_false(guard_check(q, &r));
    assert_int_equal(r.status, 431);
    request_free(q);
}

static const struct route routes[] = {
    {.method = HTTP_GET, .pattern = "/"},
    {.method = HTTP_GET, .pattern = "/index", .twins = ROUTE_TWIN_JSON},
    {.method = HTTP_GET,
     .pattern = "/p/{o}/{r}/commit/{sha}",
     .twins = ROUTE_TWIN_JSON | ROUTE_TWIN_TEXT},
    {.method = HTTP_GET, .pattern = "/p/{o}/{r}/{gate}/baselines", .twins = ROUTE_TWIN_JSON},
    {.method = HTTP_GET, .pattern = "/r/{run}/f/{path...}"},
    {.method = HTTP_GET, .pattern = "/r/{run}/vs/{other}", .twins = ROUTE_TWIN_MARKDOWN},
    {.method = HTTP_PUT, .pattern = "/b/{x}"},
    {.method = HTTP_GET, .pattern = "/b/{x}"},
};

/* The index of the route, or -status. */
static int find(struct request *q, const char *method, const char *target, const char **allow)
{
    struct guard_refusal r = {.status = 0};

    q->method_text = method;
    q->raw_path = target;
    q->target = target;
    q->route = NULL;
    assert_true(guard_check(q, &r));
    switch (route_find(routes, ARRAY_LEN(routes), q, allow)) {
    case ROUTE_FOUND:
        return (int) (q->route - routes);
    case ROUTE_NOT_FOUND:
        return -404;
    case ROUTE_NOT_METHOD:
        return -405;
    }
    return -500;
}

static void routes_bind_parameters_and_twins(void **state)
{
    struct request *q = make("GET", "/");
    const char *allow = NULL;

    (void) state;
    header(q, "Host", "h");
    assert_int_equal(find(q, "GET", "/", &allow), 0);
    assert_int_equal(find(q, "HEAD", "/", &allow), 0);
    assert_int_equal(find(q, "GET", "/index.json", &allow), 1);
    assert_int_equal(q->twin, TWIN_JSON);
    assert_int_equal(find(q, "GET", "/index.txt", &allow), -404);
    assert_int_equal(find(q, "GET", "/p/a.json/b.c/commit/12.txt", &allow), 2);
    assert_string_equal(request_param(q, "o"), "a.json");
    assert_string_equal(request_param(q, "r"), "b.c");
    assert_string_equal(request_param(q, "sha"), "12");
    assert_int_equal(q->twin, TWIN_TEXT);
    assert_int_equal(find(q, "GET", "/p/a/b/g/baselines.json", &allow), 3);
    assert_string_equal(request_param(q, "gate"), "g");
    assert_int_equal(find(q, "GET", "/r/1.json/f/results/a.json", &allow), 4);
    assert_string_equal(request_param(q, "run"), "1.json");
    assert_string_equal(request_param(q, "path"), "results/a.json");
    assert_int_equal(q->twin, TWIN_HTML);
    assert_int_equal(find(q, "GET", "/r/1/f", &allow), -404);
    assert_int_equal(find(q, "GET", "/r/1/vs/2.md", &allow), 5);
    assert_int_equal(q->twin, TWIN_MARKDOWN);
    assert_int_equal(find(q, "GET", "/r/1/vs/2.json", &allow),
                     5); /* no such twin here: part of the name */
    assert_string_equal(request_param(q, "other"), "2.json");
    assert_int_equal(find(q, "GET", "/r/1/vs/2/", &allow), -404);
    assert_int_equal(find(q, "GET", "/r/1/vs/2/3", &allow), -404);
    request_free(q);
}

static void other_methods_are_told_what_is_allowed(void **state)
{
    struct request *q = make("GET", "/");
    const char *allow = NULL;

    (void) state;
    header(q, "Host", "h");
    assert_int_equal(find(q, "PUT", "/b/1", &allow), 6);
    assert_int_equal(find(q, "GET", "/b/1", &allow), 7);
    assert_int_equal(find(q, "POST", "/b/1", &allow), -405);
    assert_string_equal(allow, "PUT, GET, HEAD, OPTIONS");
    assert_int_equal(find(q, "DELETE", "/", &allow), -405);
    assert_string_equal(allow, "GET, HEAD, OPTIONS");
    assert_int_equal(find(q, "DELETE", "/nowhere", &allow), -404);
    request_free(q);
}

static void bearer_tokens_are_hashed(void **state)
{
    struct digest got = {.bytes = {0}};
    struct digest want = digest_of("cr_0123456789abcdefghij", 23);
    struct request *q = make("GET", "/");

    (void) state;
    assert_int_equal(auth_bearer(q, &got), AUTH_ABSENT);
    header(q, "Authorization", "bearer cr_0123456789abcdefghij");
    assert_int_equal(auth_bearer(q, &got), AUTH_TOKEN);
    assert_true(digest_equal(&got, &want));
    q->headers[0].value = "Bearer short";
    assert_int_equal(auth_bearer(q, &got), AUTH_MALFORMED);
    q->headers[0].value = "Basic cr_0123456789abcdefghij";
    assert_int_equal(auth_bearer(q, &got), AUTH_MALFORMED);
    q->headers[0].value = "Bearer cr_0123456789 abcdefghij";
    assert_int_equal(auth_bearer(q, &got), AUTH_MALFORMED);
    q->headers[0].value = "Bearer";
    assert_int_equal(auth_bearer(q, &got), AUTH_MALFORMED);
    request_free(q);
}

static void scopes_do_not_include_each_other(void **state)
{
    (void) state;
    assert_true(auth_allows(AUTH_READ, AUTH_READ));
    assert_true(auth_allows(AUTH_UPLOAD, AUTH_READ));
    assert_true(auth_allows(AUTH_UPLOAD, AUTH_UPLOAD));
    assert_false(auth_allows(AUTH_READ, AUTH_UPLOAD));
    assert_false(auth_allows(AUTH_REVIEW, AUTH_UPLOAD));
    assert_false(auth_allows(AUTH_UPLOAD, AUTH_REVIEW));
    assert_true(auth_allows(AUTH_ADMIN, AUTH_UPLOAD));
    assert_false(auth_allows(0, AUTH_READ));
    assert_int_equal(auth_scope("upload"), AUTH_UPLOAD);
    assert_int_equal(auth_scope("root"), 0);
    assert_string_equal(auth_scope_word(AUTH_UPLOAD), "upload");
    assert_string_equal(auth_scope_word(AUTH_ADMIN | AUTH_READ), "admin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guard_answers_every_row),
        cmocka_unit_test(guard_limits_version_target_and_header_count),
        cmocka_unit_test(routes_bind_parameters_and_twins),
        cmocka_unit_test(other_methods_are_told_what_is_allowed),
        cmocka_unit_test(bearer_tokens_are_hashed),
        cmocka_unit_test(scopes_do_not_include_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
