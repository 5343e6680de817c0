/* What machines read of the server itself: its counters after known work, and the tables that
 * explain its words. */
#include "tests/http/uploader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_in.h"
#include "base/num.h"

/* The value behind "NAME " at the beginning of a line. */
static double metric(const char *text, const char *name)
{
    size_t len = strlen(name);
    double value = -1;

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += line[0] == '\n' ? 1 : 0;
        if (strncmp(line, name, len) == 0 && line[len] == ' ') {
            const char *at = line + len + 1;

            assert_true(num_parse_double(at, strcspn(at, "\n"), &value));
            return value;
        }
    }
    fail_msg("%s is not in: %.4000s", name, text);
    return value;
}

static char *metrics_text(const struct live *l)
{
    AUTO_FREE char *vary = NULL;
    struct raw_response a;
    char *text = NULL;

    raw_ask(l->port, "GET", "/metrics", NULL, NULL, 0, &a);
    assert_int_equal(a.status, 200);
    vary = raw_header(&a, "Vary");
    assert_non_null(vary);
    assert_string_equal(vary, "Accept"); /* there are two forms */
    text = strndup(a.body, a.body_len);
    assert_non_null(text);
    raw_response_fini(&a);
    return text;
}

static void push(struct live *l, const struct uploads *u, const struct package_options *o,
                 const struct private_key *key, int status, char run[32])
{
    struct raw_response a;
    struct package p;

    package_make(o, key, &p);
    upload_archive(l, u, UPLOAD_PROJECT, &p, &a);
    assert_int_equal(a.status, 201);
    raw_response_fini(&a);
    upload_statement(l, u, UPLOAD_PROJECT, UPLOAD_GATE, &p, &a);
    assert_int_equal(a.status, status);
    raw_response_fini(&a);
    (void) snprintf(run, 32, "%s", p.run);
    package_free(&p);
}

static int status_of(const struct live *l, const char *target)
{
    struct raw_response a;
    int status = 0;

    raw_ask(l->port, "GET", target, NULL, NULL, 0, &a);
    status = a.status;
    raw_response_fini(&a);
    return status;
}

static void counters_count_what_was_done(void **state)
{
    static const char *const closed[] = {"project", "add", "demo/closed", NULL};
    struct private_key *stranger = package_key_new();
    AUTO_FREE char *before = NULL;
    AUTO_FREE char *after = NULL;
    struct uploads *u;
    struct live l;
    char run[32];

    (void) state;
    live_init(&l);
    u = uploads_new(&l);
    assert_int_equal(live_admin(&l, closed, NULL), 0);
    live_start(&l, NULL);
    before = metrics_text(&l);
    assert_true(num_same(metric(before, "cleanrun_stored_runs"), 0));
    push(&l, u, &(struct package_options){.executable = 1}, uploads_key(u), 201, run);
    upload_approve(&l, run);
    push(&l, u, &(struct package_options){.executable = 2}, uploads_key(u), 201, run);
    push(&l, u, &(struct package_options){.executable = 3, .probes = 2}, uploads_key(u), 201, run);
    push(&l, u, &(struct package_options){.executable = 4, .rate = 10}, uploads_key(u), 201, run);
    push(&l, u, &(struct package_options){.executable = 5, .rate = 10}, uploads_key(u), 201, run);
    push(&l, u, &(struct package_options){.executable = 6}, stranger, 422, run);
    assert_int_equal(status_of(&l, "/help"), 200);
    assert_int_equal(status_of(&l, "/help"), 200); /* kept since */
    assert_int_equal(status_of(&l, "/a%00"), 400);
    assert_int_equal(status_of(&l, "/nothing"), 404);
    after = metrics_text(&l);
    assert_true(num_same(metric(after, "cleanrun_projects"), 2));
    assert_true(num_same(metric(after, "cleanrun_stored_runs"), 5));
    assert_true(num_same(metric(after, "cleanrun_baselines"), 1));
    assert_true(num_same(metric(after, "cleanrun_invalid_attempts"), 1));
    assert_true(num_same(metric(after, "cleanrun_blobs"), 6));
    assert_true(metric(after, "cleanrun_blob_bytes") > 6 * 512);
    assert_true(num_same(metric(after, "cleanrun_verdicts{verdict=\"OK\"}"), 1));
    assert_true(num_same(metric(after, "cleanrun_verdicts{verdict=\"REGRESSION\"}"), 1));
    assert_true(num_same(metric(after, "cleanrun_verdicts{verdict=\"FAIL\"}"), 2));
    assert_true(num_same(metric(after, "cleanrun_verdicts{verdict=\"NON_COMPARABLE\"}"), 1));
    assert_true(num_same(metric(after, "cleanrun_verdicts{verdict=\"ERROR\"}"), 0));
    assert_true(num_same(metric(after, "cleanrun_ingest_queue"), 0));
    assert_true(metric(after, "cleanrun_disk_free_bytes") > 0);
    assert_true(num_same(metric(after, "cleanrun_http_refused_total"),
                         metric(before, "cleanrun_http_refused_total") + 1));
    assert_true(metric(after, "cleanrun_http_cache_hits_total") >=
                metric(before, "cleanrun_http_cache_hits_total") + 1);
    assert_true(metric(after, "cleanrun_upload_bytes_total") >=
                metric(after, "cleanrun_blob_bytes"));
    assert_true(metric(after, "cleanrun_http_requests_total{status=\"4xx\"}") >= 3);
    assert_true(metric(after, "cleanrun_http_cache_bytes") > 0);
    uploads_free(u);
    live_fini(&l);
    private_key_free(stranger);
}

/* Each bucket holds those before it, and the last one all. */
static void the_histogram_is_cumulative(void **state)
{
    static const char bucket[] = "cleanrun_http_request_duration_seconds_bucket{le=\"";
    AUTO_FREE char *text = NULL;
    const char *line = NULL;
    double last = 0;
    double total = 0;
    struct live l;
    size_t n = 0;

    (void) state;
    live_init(&l);
    assert_int_equal(live_admin(&l, (const char *const[]){"migrate", NULL}, NULL), 0);
    live_start(&l, NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(status_of(&l, "/help"), 200);
    text = metrics_text(&l);
    for (line = strstr(text, bucket); line; line = strstr(line + 1, bucket)) {
        const char *at = strchr(line, '}') + 2;
        double value = -1;

        assert_true(num_parse_double(at, strcspn(at, "\n"), &value));
        assert_true(value >= last);
        last = value;
        n++;
    }
    total = metric(text, "cleanrun_http_request_duration_seconds_count");
    assert_true(n > 2);
    assert_true(total >= 5);
    assert_true(num_same(last, total));
    live_fini(&l);
}

static cJSON *document(const struct live *l, const char *target, const char *caching)
{
    AUTO_FREE char *got = NULL;
    AUTO_FREE char *etag = NULL;
    struct raw_response a;
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    raw_ask(l->port, "GET", target, NULL, NULL, 0, &a);
    assert_int_equal(a.status, 200);
    got = raw_header(&a, "Cache-Control");
    etag = raw_header(&a, "ETag");
    assert_non_null(got);
    assert_string_equal(got, caching);
    assert_non_null(etag);
    assert_int_equal(json_parse(a.body, a.body_len, NULL, &j, &e), 0);
    raw_response_fini(&a);
    return j;
}

static void words_are_explained_as_they_are_used(void **state)
{
    static const struct {
        const char *verdict, *forge;
        int exit;
    } rows[] = {
        {"OK", "success", 0},      {"REGRESSION", "failure", 1}, {"NON_COMPARABLE", "error", 3},
        {"FAIL", "failure", 4},    {"INVALID", "error", 5},      {"ERROR", "error", 6},
        {"PENDING", "pending", 8},
    };
    static const struct {
        const char *code, *verdict;
    } reasons[] = {{"IN-HASH", "INVALID"}, {"NC-UNIT", "NON_COMPARABLE"}};
    AUTO_JSON cJSON *help = NULL;
    AUTO_JSON cJSON *keys = NULL;
    const cJSON *row = NULL;
    struct raw_response a;
    struct live l;
    size_t i = 0;

    (void) state;
    live_init(&l);
    assert_int_equal(live_admin(&l, (const char *const[]){"migrate", NULL}, NULL), 0);
    live_start(&l, NULL);
    help = document(&l, "/help.json", "public, max-age=300");
    cJSON_ArrayForEach(row, json_get(help, "verdicts")) {
        assert_true(i < ARRAY_LEN(rows));
        assert_string_equal(json_text(row, "verdict", ""), rows[i].verdict);
        assert_string_equal(json_text(row, "forge", ""), rows[i].forge);
        if (json_get(row, "exit")->valueint != rows[i].exit)
            fail_msg("%s exits with %d", rows[i].verdict, json_get(row, "exit")->valueint);
        i++;
    }
    assert_int_equal(i, ARRAY_LEN(rows));
    for (i = 0; i < ARRAY_LEN(reasons); i++) {
        AUTO_FREE char *target = NULL;
        AUTO_JSON cJSON *reason = NULL;

        assert_true(asprintf(&target, "/help/reasons/%s.json", reasons[i].code) > 0);
        reason = document(&l, target, "public, max-age=300");
        assert_string_equal(json_text(reason, "code", ""), reasons[i].code);
        assert_string_equal(json_text(reason, "verdict", ""), reasons[i].verdict);
    }
    keys = document(&l, "/api/v1/keys", "no-cache"); /* a new key is seen at once */
    assert_true(cJSON_IsObject(keys));
    raw_ask(l.port, "GET", "/help/problems/conflict", NULL, NULL, 0, &a);
    assert_int_equal(a.status, 200);
    assert_int_equal(raw_header_count(&a, "ETag"), 1);
    raw_response_fini(&a);
    live_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_count_what_was_done),
        cmocka_unit_test(the_histogram_is_cumulative),
        cmocka_unit_test(words_are_explained_as_they_are_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
