/* The HTTP layer over real sockets with routes of its own: suspension, deadlines, caching, ranges,
 * draining. */
#include "tests/http/raw.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "server/http/bind.h"
#include "server/http/cache.h"
#include "server/http/listener.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/http/route.h"
#include "server/http/workers.h"

#define WORKERS 8

struct app {
    atomic_int handled; /* "/counted" */
    atomic_int freed;   /* states of requests */
    atomic_int at_work; /* "/slow" and "/blocking" that have begun */
    atomic_int wanted;  /* ... none of them ends before there are so many */
    bool untouched;     /* what the cache's probe says */
    char *file;
};

static enum route_result hello(struct request *q)
{
    struct content *c = content_static(TYPE_TEXT, "hello, world\n", 13);

    content_hash(c);
    content_set_caching(c, REPLY_LIVE, false);
    reply_content(q, 200, c);
    return ROUTE_DONE;
}

static enum route_result counted(struct request *q)
{
    struct app *a = q->app;
    char *text = NULL;
    int n = atomic_fetch_add(&a->handled, 1) + 1;

    if (asprintf(&text, "%d", n) < 0)
        text = NULL;
    q->watch[0] = 'w';
    q->watch_len = 1;
    reply_content(q, 200, content_bytes(TYPE_TEXT, text, text ? strlen(text) : 0));
    return ROUTE_DONE;
}

static enum route_result file(struct request *q)
{
    struct app *a = q->app;
    struct content *c = content_file(TYPE_BYTES, open(a->file, O_RDONLY | O_CLOEXEC), 10, 100000);
    const struct digest d = {.bytes = {7}};

    content_set_digest(c, &d);
    content_set_caching(c, REPLY_IMMUTABLE, false);
    content_set_policy(c, REPLY_EVIDENCE);
    content_set_attachment(c, "results/a/b.html");
    reply_content(q, 200, c);
    return ROUTE_DONE;
}

/* "abc", 50000 bytes of the file from 10, "xyz" */
static enum route_result parts(struct request *q)
{
    struct app *a = q->app;
    char *memory = strdup("abcxyz");
    const struct reply_part list[] = {
        {.bytes = memory, .size = 3},
        {.fd = open(a->file, O_RDONLY | O_CLOEXEC), .offset = 10, .size = 50000},
        {.bytes = memory + 3, .size = 3},
    };
    struct content *c = content_parts(TYPE_TAR, list, ARRAY_LEN(list), memory);
    const struct digest d = {.bytes = {9}};

    content_set_digest(c, &d);
    reply_content(q, 200, c);
    return ROUTE_DONE;
}

static void state_free(void *state)
{
    (void) atomic_fetch_add((atomic_int *) state, 1);
}

static bool begin_small(struct request *q)
{
    struct app *a = q->app;

    q->state = &a->freed;
    q->state_free = state_free;
    if (request_header(q, "X-Refuse")) {
        reply_problem(q, 422, "refused", "as asked", NULL);
        return false;
    }
    buf_init(&q->body, 1000);
    return true;
}

static enum route_result echo(struct request *q)
{
    size_t len = 0;
    char *bytes = buf_take(&q->body, &len);

    reply_content(q, 201, content_bytes(TYPE_TEXT, bytes, len));
    return ROUTE_DONE;
}

static void want_together(struct app *a, int n)
{
    atomic_store(&a->at_work, 0);
    atomic_store(&a->wanted, n);
}

static bool at_work(struct app *a, int n)
{
    int waited = 0;

    while (atomic_load(&a->at_work) < n && waited++ < 4000)
        usleep(5000);
    return waited <= 4000;
}

/* The next one to begin is one more; false when the others don't come within 20 s. */
static bool work_together(struct app *a)
{
    (void) atomic_fetch_add(&a->at_work, 1);
    return at_work(a, atomic_load(&a->wanted));
}

static void *work(void *request)
{
    struct request *q = request;

    (void) work_together(q->app); /* the test sees the count */
    request_resume(q);
    return NULL;
}

static enum route_result slow(struct request *q)
{
    pthread_t t;

    assert_true(request_suspend(q));
    assert_int_equal(pthread_create(&t, NULL, work, q), 0);
    request_handed_over(q);
    (void) pthread_detach(t);
    return ROUTE_WAIT;
}

static void slow_done(struct request *q)
{
    reply_content(q, 202, content_static(TYPE_TEXT, "slow", 4));
}

static enum route_result blocking(struct request *q)
{
    bool together = work_together(q->app);

    reply_content(q, together ? 200 : 500, content_static(TYPE_TEXT, "worked", 6));
    return ROUTE_DONE;
}

static const struct route routes[] = {
    {.method = HTTP_GET, .pattern = "/hello", .handle = hello},
    {.method = HTTP_GET, .pattern = "/blocking", .handle = blocking, .offload = true},
    {.method = HTTP_GET, .pattern = "/counted", .handle = counted, .cacheable = true},
    {.method = HTTP_GET, .pattern = "/file", .handle = file},
    {.method = HTTP_GET, .pattern = "/parts", .handle = parts},
    {.method = HTTP_POST, .pattern = "/echo", .begin = begin_small, .handle = echo},
    {.method = HTTP_POST,
     .pattern = "/slow",
     .begin = begin_small,
     .handle = slow,
     .resume = slow_done},
};

struct fixture {
    struct app app;
    struct cache *cache;
    struct workers *workers;
    struct listener *listener;
    unsigned port;
    char *dir;
    char bytes[200000];
    pthread_t ticker;
    atomic_bool stop;
};

static bool probe(void *cls, const void *watch, size_t len)
{
    struct app *a = cls;

    return len == 1 && memcmp(watch, "w", 1) == 0 && a->untouched;
}

static void *tick(void *cls)
{
    struct fixture *f = cls;

    while (!atomic_load(&f->stop)) {
        listener_tick(f->listener);
        usleep(20000);
    }
    return NULL;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct listener_options o = {
        .threads = 2, .base_url = "http://x", .routes = routes, .n_routes = ARRAY_LEN(routes)};
    struct err e = ERR_INIT;
    uint64_t seed = 5;
    size_t i = 0;

    assert_non_null(f);
    f->dir = test_dir_new();
    for (i = 0; i < sizeof f->bytes; i++)
        f->bytes[i] = (char) test_random_below(&seed, 256);
    test_write(f->dir, "file", f->bytes, sizeof f->bytes);
    f->app.file = test_join(f->dir, "file");
    f->app.untouched = true;
    f->cache = cache_new(LIMIT_MIB(1), probe, &f->app);
    o.app = &f->app;
    o.cache = f->cache;
    assert_int_equal(workers_start(WORKERS, &f->workers, &e), 0);
    o.workers = f->workers;
    o.idle_s = 2;
    o.header_s = 1;
    assert_int_equal(bind_listen("127.0.0.1:0", &o.listen_fd, &f->port, &e), 0);
    assert_int_equal(listener_start(&o, &f->listener, &e), 0);
    assert_int_equal(pthread_create(&f->ticker, NULL, tick, f), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    atomic_store(&f->stop, true);
    (void) pthread_join(f->ticker, NULL);
    listener_close_gate(f->listener);
    workers_stop(f->workers);
    listener_stop(f->listener);
    cache_free(f->cache);
    free(f->app.file);
    test_dir_free(f->dir);
    free(f);
    return 0;
}

static void expect_header(const struct raw_response *r, const char *name, const char *want)
{
    char *got = raw_header(r, name);

    if (!got || strcmp(got, want) != 0)
        fail_msg("%s is '%s', wanted '%s'", name, got ? got : "(absent)", want);
    if (raw_header_count(r, name) != 1)
        fail_msg("%s is there %zu times", name, raw_header_count(r, name));
    free(got);
}

static void keep_alive_serves_many_requests_on_one_connection(void **state)
{
    struct fixture *f = *state;
    struct raw r;
    int i = 0;

    raw_open(&r, f->port);
    for (i = 0; i < 20; i++) {
        struct raw_response a;

        assert_true(raw_puts(
            &r, i % 3 == 1   ? "HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n"
                : i % 3 == 2 ? "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12345"
                             : "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"));
        raw_read(&r, i % 3 == 1, 5000, &a);
        assert_int_equal(a.status, i % 3 == 2 ? 201 : 200);
        assert_int_equal(a.body_len, i % 3 == 0 ? 13 : i % 3 == 1 ? 0 : 5);
        if (i % 3 == 1)
            expect_header(&a, "Content-Length", "13");
        raw_response_fini(&a);
    }
    raw_close(&r);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct fixture *f = *state;
    struct raw r;
    struct raw_response a;
    int want[] = {200, 404, 201, 405};
    size_t i = 0;

    raw_open(&r, f->port);
    assert_true(
        raw_puts(&r, "GET /hello HTTP/1.1\r\nHost: h\r\n\r\nGET /none HTTP/1.1\r\nHost: h\r\n\r\n"
                     "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"
                     "PUT /hello HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"));
    for (i = 0; i < ARRAY_LEN(want); i++) {
        raw_read(&r, false, 5000, &a);
        assert_int_equal(a.status, want[i]);
        if (want[i] == 405)
            expect_header(&a, "Allow", "GET, HEAD, OPTIONS");
        raw_response_fini(&a);
    }
    raw_close(&r);
}

static void security_fields_are_on_every_answer(void **state)
{
    static const char *const targets[] = {"/hello", "/file", "/parts", "/none", "/a%00"};
    struct fixture *f = *state;
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(targets); i++) {
        struct raw_response a;

        raw_ask(f->port, "GET", targets[i], NULL, NULL, 0, &a);
        expect_header(&a, "X-Content-Type-Options", "nosniff");
        expect_header(&a, "Referrer-Policy", "same-origin");
        expect_header(&a, "Cross-Origin-Opener-Policy", "same-origin");
        assert_int_equal(raw_header_count(&a, "Content-Security-Policy"), 1);
        assert_int_equal(raw_header_count(&a, "Content-Type"), 1);
        assert_int_equal(raw_header_count(&a, "Cache-Control"), 1);
        raw_response_fini(&a);
    }
}

/* Every kind of body: the same rules. */
static void check_ranges(struct fixture *f, const char *target, const char *whole, size_t size)
{
    struct raw_response a;
    char *etag = NULL;
    char *headers = NULL;
    char want[80];

    raw_ask(f->port, "GET", target, NULL, NULL, 0, &a);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body_len, size);
    assert_memory_equal(a.body, whole, size);
    expect_header(&a, "Accept-Ranges", "bytes");
    assert_int_equal(raw_header_count(&a, "Repr-Digest"), 1);
    etag = raw_header(&a, "ETag");
    assert_non_null(etag);
    raw_response_fini(&a);

    raw_ask(f->port, "GET", target, "Range: bytes=2-7\r\n", NULL, 0, &a);
    assert_int_equal(a.status, 206);
    assert_int_equal(a.body_len, 6);
    assert_memory_equal(a.body, whole + 2, 6);
    (void) snprintf(want, sizeof want, "bytes 2-7/%zu", size);
    expect_header(&a, "Content-Range", want);
    expect_header(&a, "ETag", etag);
    raw_response_fini(&a);

    raw_ask(f->port, "GET", target, "Range: bytes=-4\r\n", NULL, 0, &a);
    assert_int_equal(a.status, 206);
    assert_int_equal(a.body_len, 4);
    assert_memory_equal(a.body, whole + size - 4, 4);
    raw_response_fini(&a);

    raw_ask(f->port, "HEAD", target, "Range: bytes=2-7\r\n", NULL, 0, &a);
    assert_int_equal(a.status, 200);
    raw_response_fini(&a);

    raw_ask(f->port, "GET", target, "Range: bytes=9999999-\r\n", NULL, 0, &a);
    assert_int_equal(a.status, 416);
    (void) snprintf(want, sizeof want, "bytes */%zu", size);
    expect_header(&a, "Content-Range", want);
    raw_response_fini(&a);

    assert_true(asprintf(&headers, "If-None-Match: \"x\", W/%s\r\nRange: bytes=2-7\r\n", etag) > 0);
    raw_ask(f->port, "GET", target, headers, NULL, 0, &a);
    assert_int_equal(a.status, 304);
    assert_int_equal(a.body_len, 0);
    expect_header(&a, "ETag", etag);
    assert_int_equal(raw_header_count(&a, "Cache-Control"), 1);
    raw_response_fini(&a);
    free(headers);

    assert_true(asprintf(&headers, "If-Range: %s\r\nRange: bytes=2-7\r\n", etag) > 0);
    raw_ask(f->port, "GET", target, headers, NULL, 0, &a);
    assert_int_equal(a.status, 206);
    raw_response_fini(&a);
    free(headers);

    raw_ask(f->port, "GET", target, "If-Range: \"other\"\r\nRange: bytes=2-7\r\n", NULL, 0, &a);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body_len, size);
    raw_response_fini(&a);

    raw_ask(f->port, "GET", target, "If-Match: \"other\"\r\n", NULL, 0, &a);
    assert_int_equal(a.status, 412);
    raw_response_fini(&a);
    free(etag);
}

static void ranges_and_preconditions_hold_for_every_kind_of_body(void **state)
{
    struct fixture *f = *state;
    char *joined = malloc(50006);

    assert_non_null(joined);
    memcpy(joined, "abc", 3);
    memcpy(joined + 3, f->bytes + 10, 50000);
    memcpy(joined + 50003, "xyz", 3);
    check_ranges(f, "/hello", "hello, world\n", 13);
    check_ranges(f, "/file", f->bytes + 10, 100000);
    check_ranges(f, "/parts", joined, 50006);
    free(joined);
}

static void uploaded_bytes_are_never_rendered(void **state)
{
    struct fixture *f = *state;
    struct raw_response a;
    char *csp = NULL;

    raw_ask(f->port, "GET", "/file", NULL, NULL, 0, &a);
    expect_header(&a, "Content-Disposition", "attachment; filename=\"b.html\"");
    expect_header(&a, "Cache-Control", "public, max-age=31536000, immutable");
    csp = raw_header(&a, "Content-Security-Policy");
    assert_memory_equal(csp, "sandbox;", 8);
    free(csp);
    raw_response_fini(&a);
}

static void suspended_requests_do_not_block_the_pool(void **state)
{
    struct fixture *f = *state;
    struct raw r[20];
    size_t i = 0;

    want_together(&f->app, ARRAY_LEN(r)); /* all at the same time, in two threads */
    for (i = 0; i < ARRAY_LEN(r); i++) {
        raw_open(&r[i], f->port);
        assert_true(
            raw_puts(&r[i], "POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"));
    }
    for (i = 0; i < ARRAY_LEN(r); i++) {
        struct raw_response a;

        raw_read(&r[i], false, 15000, &a);
        assert_int_equal(a.status, 202);
        assert_string_equal(a.body, "slow");
        raw_response_fini(&a);
        raw_close(&r[i]);
    }
}

static void blocking_handlers_run_beside_the_pool(void **state)
{
    struct fixture *f = *state;
    struct raw r[2 * WORKERS];
    struct raw_response a;
    size_t i = 0;

    want_together(&f->app, WORKERS + 1);
    for (i = 0; i < ARRAY_LEN(r); i++) {
        raw_open(&r[i], f->port);
        assert_true(raw_puts(&r[i], "GET /blocking HTTP/1.1\r\nHost: h\r\n\r\n"));
    }
    assert_true(at_work(&f->app, WORKERS)); /* more than the pool has threads */
    raw_ask(f->port, "GET", "/hello", NULL, NULL, 0, &a);
    assert_int_equal(a.status, 200);
    raw_response_fini(&a);
    (void) atomic_fetch_add(&f->app.at_work, 1); /* only now may they end */
    for (i = 0; i < ARRAY_LEN(r); i++) {
        raw_read(&r[i], false, 15000, &a);
        assert_int_equal(a.status, 200);
        assert_string_equal(a.body, "worked");
        raw_response_fini(&a);
        raw_close(&r[i]);
    }
}

static void refused_bodies_are_answered_and_small_ones_keep_the_connection(void **state)
{
    struct fixture *f = *state;
    struct raw r;
    struct raw_response a;
    char *big = calloc(1, 2000);

    raw_open(&r, f->port);
    assert_true(raw_puts(
        &r, "POST /echo HTTP/1.1\r\nHost: h\r\nX-Refuse: 1\r\nContent-Length: 3\r\n\r\nabc"));
    raw_read(&r, false, 5000, &a);
    assert_int_equal(a.status, 422);
    expect_header(&a, "Content-Type", "application/problem+json");
    raw_response_fini(&a);
    assert_true(raw_puts(&r, "POST /echo HTTP/1.1\r\nHost: h\r\n\r\n"));
    raw_read(&r, false, 5000, &a);
    assert_int_equal(a.status, 411);
    raw_response_fini(&a);
    assert_true(raw_wait_closed(&r, 2000));
    raw_close(&r);

    raw_ask(f->port, "POST", "/echo", NULL, big, 2000, &a);
    assert_int_equal(a.status, 413);
    raw_response_fini(&a);
    free(big);

    /* A big refused body is not waited for, and not asked for. */
    raw_open(&r, f->port);
    assert_true(raw_puts(&r,
                         "POST /echo HTTP/1.1\r\nHost: h\r\nX-Refuse: 1\r\nExpect: 100-continue\r\n"
                         "Content-Length: 100000000\r\n\r\n"));
    raw_read(&r, false, 5000, &a);
    assert_int_equal(a.status, 422);
    raw_response_fini(&a);
    assert_true(raw_wait_closed(&r, 2000));
    raw_close(&r);
    assert_int_equal(atomic_load(&f->app.freed) > 0, 1);
}

static void continue_is_sent_when_the_body_is_wanted(void **state)
{
    struct fixture *f = *state;
    struct raw r;
    struct raw_response a;

    raw_open(&r, f->port);
    assert_true(raw_puts(
        &r, "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
    raw_read(&r, false, 5000, &a);
    assert_int_equal(a.status, 100);
    raw_response_fini(&a);
    assert_true(raw_puts(&r, "abc"));
    raw_read(&r, false, 5000, &a);
    assert_int_equal(a.status, 201);
    raw_response_fini(&a);
    raw_close(&r);
}

static void slow_headers_are_cut_though_bytes_keep_coming(void **state)
{
    struct fixture *f = *state;
    const char *text =
        "GET /hello HTTP/1.1\r\nHost: h\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct raw r;
    size_t i = 0;

    raw_open(&r, f->port);
    for (i = 0; text[i] != '\0' && !raw_wait_closed(&r, 100); i++)
        (void) raw_send(&r, text + i, 1); /* failing is the point */
    assert_true(r.closed);
    assert_int_equal(r.len, 0);
    assert_true(atomic_load(&listener_counters(f->listener)->expired) >= 1);
    raw_close(&r);
}

static void cache_holds_until_its_generation_or_its_object_changes(void **state)
{
    static const struct {
        bool bump, untouched;
        const char *headers, *target, *want;
    } rows[] = {
        {false, true, NULL, "/counted", "1"},
        {false, true, NULL, "/counted", "1"},
        {false, true, "Authorization: Bearer 01234567890123456789\r\n", "/counted",
         "2"}, /* never from the cache */
        {false, true, NULL, "/counted?x=1", "3"},
        {false, true, NULL, "/counted", "1"},
        {true, true, NULL, "/counted", "4"},
        {false, true, NULL, "/counted", "4"},
        {false, false, NULL, "/counted", "5"},
        {false, true, NULL, "/counted", "5"},
    };
    struct fixture *f = *state;
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(rows); i++) {
        struct raw_response a;

        if (rows[i].bump)
            cache_bump(f->cache);
        f->app.untouched = rows[i].untouched;
        raw_ask(f->port, "GET", rows[i].target, rows[i].headers, NULL, 0, &a);
        f->app.untouched = true;
        if (strcmp(a.body, rows[i].want) != 0)
            fail_msg("row %zu: %s, wanted %s", i, a.body, rows[i].want);
        raw_response_fini(&a);
    }
}

static void options_names_the_methods(void **state)
{
    struct fixture *f = *state;
    struct raw_response a;

    raw_ask(f->port, "OPTIONS", "/echo", NULL, NULL, 0, &a);
    assert_int_equal(a.status, 204);
    expect_header(&a, "Allow", "POST, OPTIONS");
    raw_response_fini(&a);
}

static void cache_is_bounded(void **state)
{
    struct cache *c = cache_new(100000, probe, NULL);
    int i = 0;

    (void) state;
    for (i = 0; i < 2000; i++) {
        char path[32];
        struct content *content = content_bytes(TYPE_TEXT, calloc(1, 5000), 5000);

        (void) snprintf(path, sizeof path, "/p/%d", i);
        cache_put(c, path, content, cache_generation(c), NULL, 0, UINT64_MAX);
        content_unref(content);
        assert_true(cache_bytes(c) <= 100000);
    }
    assert_true(cache_bytes(c) > 50000);
    cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_alive_serves_many_requests_on_one_connection),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(security_fields_are_on_every_answer),
        cmocka_unit_test(ranges_and_preconditions_hold_for_every_kind_of_body),
        cmocka_unit_test(uploaded_bytes_are_never_rendered),
        cmocka_unit_test(suspended_requests_do_not_block_the_pool),
        cmocka_unit_test(blocking_handlers_run_beside_the_pool),
        cmocka_unit_test(refused_bodies_are_answered_and_small_ones_keep_the_connection),
        cmocka_unit_test(continue_is_sent_when_the_body_is_wanted),
        cmocka_unit_test(slow_headers_are_cut_though_bytes_keep_coming),
        cmocka_unit_test(cache_holds_until_its_generation_or_its_object_changes),
        cmocka_unit_test(options_names_the_methods),
        cmocka_unit_test(cache_is_bounded),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
