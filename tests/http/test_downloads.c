/* What a browser does with each download: shown as plain text or saved, under which name; what is
 * in a bundle; and whose digest the server remembers. */
#include "tests/http/uploader.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/api/api.h"

#define AS_WRITTEN "results/" PACKAGE_REPORT ".as-written"

static const char yaml[] =
    "version: 1\n"
    "project: " PACKAGE_PROJECT "\n"
    "gates:\n"
    "  " PACKAGE_GATE ":\n"
    "    class: " PACKAGE_CLASS "\n"
    "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
    "    run: {command: ['{executable}'], report: " PACKAGE_REPORT "}\n"
    "    phases: {markers: [a, b], required: [a, b]}\n"
    "    sampling: {interval: 100ms, into: /resources}\n"
    "    windows: {steady: {start_phase: a, end_phase: b, estimator: endpoint-bands}}\n"
    "    identity: [{path: /load/capacity, require: required}]\n"
    "    accept: {limits: [{path: /results/rate, op: '>=', value: 1, unit: 1/s}]}\n"
    "    audit:\n"
    "      paths: {required: [" PACKAGE_REPORT "]}\n"
    "      metrics: [{path: /results/rate, unit: 1/s, worse: lower, tolerance_pct: 1}]\n";

static void same(const char *target, const char *header, const char *got, const char *wanted)
{
    if (wanted ? !got || strcmp(got, wanted) != 0 : got != NULL)
        fail_msg("%s: %s is %s, wanted %s", target, header, got ? got : "absent",
                 wanted ? wanted : "none");
}

static void each_download_is_shown_or_saved(void **state)
{
    const struct {
        const char *pattern, *type, *disposition; /* NULL: it is shown */
    } rows[] = {
        {"/r/{1}/f/run.log", "text/plain; charset=utf-8", NULL},
        {"/r/{1}/f/manifest.json", "text/plain; charset=utf-8", NULL},
        {"/r/{1}/f/samples/process.csv", "text/plain; charset=utf-8", NULL},
        {"/r/{1}/f/" AS_WRITTEN, "application/octet-stream",
         "attachment; filename=\"50000.json.as-written\""},
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/{1}/files/" AS_WRITTEN,
         "application/octet-stream", "attachment; filename=\"50000.json.as-written\""},
        {"/r/{1}/evidence.tar", "application/x-tar", "attachment; filename=\"evidence.tar\""},
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/{1}/archive", "application/x-tar",
         "attachment; filename=\"evidence.tar\""},
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/{1}/bundle", "application/x-tar",
         "attachment; filename=\"cleanrun-{1}.tar\""},
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/{1}/attestation", "application/vnd.dsse+json",
         "attachment; filename=\"evidence.tar.dsse.json\""},
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/{1}/verdict/attestation",
         "application/vnd.dsse+json", "attachment; filename=\"verdict.dsse.json\""},
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/{1}/verdict", "application/json", NULL},
    };
    const struct package_options o = {
        .definition = yaml,
        .report = "{\"load\":{\"capacity\":1},\"results\":{\"rate\":9}}",
        .markers = "[{\"phase\":\"a\",\"kind\":\"actual\",\"elapsed_ms\":0},"
                   "{\"phase\":\"b\",\"kind\":\"actual\",\"elapsed_ms\":200}]",
        .derive = true,
    };
    struct uploads *u;
    struct live l;
    struct package p;

    (void) state;
    live_init(&l);
    u = uploads_new(&l);
    live_start(&l, NULL);
    package_make(&o, uploads_key(u), &p);
    upload_package(&l, u, &p);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *target = NULL;
        AUTO_FREE char *disposition = NULL;
        AUTO_FREE char *got = NULL;
        AUTO_FREE char *type = NULL;
        struct raw_response a;

        target = test_fill(rows[i].pattern, p.run, NULL);
        if (rows[i].disposition)
            disposition = test_fill(rows[i].disposition, p.run, NULL);
        raw_ask(l.port, "GET", target, NULL, NULL, 0, &a);
        assert_int_equal(a.status, 200);
        type = raw_header(&a, "Content-Type");
        got = raw_header(&a, "Content-Disposition");
        same(target, "Content-Type", type, rows[i].type);
        same(target, "Content-Disposition", got, disposition);
        raw_response_fini(&a);
    }
    package_free(&p);
    uploads_free(u);
    live_fini(&l);
}

/* Below the folder that is named after the run. */
static bool holds(const struct raw_response *a, const char *run, const char *member)
{
    char name[100] = "";

    (void) snprintf(name, sizeof name, "%s/%s", run, member);
    for (size_t at = 0; at + 512 <= a->body_len; at += 512)
        if (strncmp(a->body + at, name, sizeof name) == 0)
            return true;
    return false;
}

/* A diagnostic run has no verdict to carry. */
static void a_bundle_holds_what_verifies_it(void **state)
{
    static const struct package_options options[] = {{.probes = 1.31}, {.mode = "memory"}};
    struct uploads *u;
    struct live l;

    (void) state;
    live_init(&l);
    u = uploads_new(&l);
    live_start(&l, NULL);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        AUTO_FREE char *target = NULL;
        AUTO_FREE char *absent = NULL;
        struct raw_response a;
        struct package p;

        package_make(&options[i], uploads_key(u), &p);
        upload_package(&l, u, &p);
        assert_true(asprintf(&target, "/api/v1/projects/" UPLOAD_PROJECT "/runs/%s/bundle", p.run) >
                    0);
        raw_ask(l.port, "GET", target, NULL, NULL, 0, &a);
        assert_int_equal(a.status, 200);
        assert_true(holds(&a, p.run, "evidence.tar"));
        assert_true(holds(&a, p.run, "evidence.tar.dsse.json"));
        assert_int_equal(holds(&a, p.run, "verdict.dsse.json"), i == 0);
        raw_response_fini(&a);
        assert_true(asprintf(&absent,
                             "/api/v1/projects/" UPLOAD_PROJECT "/runs/%s/verdict/attestation",
                             p.run) > 0);
        raw_ask(l.port, "GET", absent, NULL, NULL, 0, &a);
        assert_int_equal(a.status, i == 0 ? 200 : 404);
        if (i > 0)
            assert_non_null(strstr(a.body, "a diagnostic or build-only run has no verdict"));
        raw_response_fini(&a);
        package_free(&p);
    }
    uploads_free(u);
    live_fini(&l);
}

/* Two bundles whose keys fall into one slot: never the digest of the other. */
static void a_remembered_digest_is_of_its_own_bundle(void **state)
{
    struct digest_memo *m = digest_memo_new();
    struct digest first = {.bytes = {7, 1}};
    struct digest second = {.bytes = {7, 2}};
    struct digest got = {.bytes = {0}};

    (void) state;
    assert_non_null(m);
    assert_false(digest_memo_get(m, &first, &got));
    digest_memo_put(m, &first, &second);
    assert_false(digest_memo_get(m, &second, &got));
    assert_true(digest_memo_get(m, &first, &got));
    assert_true(digest_equal(&got, &second));
    digest_memo_put(m, &second, &first);
    assert_false(digest_memo_get(m, &first, &got));
    assert_true(digest_memo_get(m, &second, &got));
    assert_true(digest_equal(&got, &first));
    digest_memo_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_download_is_shown_or_saved),
        cmocka_unit_test(a_bundle_holds_what_verifies_it),
        cmocka_unit_test(a_remembered_digest_is_of_its_own_bundle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
