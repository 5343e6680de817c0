/* The evidence of the runs at a real server: pushed, one reviewed as the baseline, the others
 * judged against it there; the documents and the pages say what the runner's own files say. */
#include "tests/e2e/callsim.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json_in.h"
#include "experiment/pointer.h"
#include "tests/e2e/parts.h"
#include "tests/http/live.h"

#define PROJECT "demo/callsim"

struct served {
    struct live live;
    char *origin, *token;
};

static void admin(struct served *s, const char *const args[])
{
    assert_int_equal(live_admin(&s->live, args, NULL), 0);
}

static void serve(struct served *s, const struct fixture *f)
{
    const char *const migrate[] = {"migrate", NULL};
    const char *const project[] = {"project", "add", PROJECT, NULL};
    const char *const runner[] = {"runner", "add",         "here",      "--class", "demo",
                                  "--key",  f->public_key, "--project", PROJECT,   NULL};
    const char *const token[] = {"token",  "add",       "t",     "--scope",
                                 "upload", "--project", PROJECT, NULL};
    char *secret = NULL;

    live_init(&s->live);
    admin(s, migrate);
    admin(s, project);
    admin(s, runner);
    assert_int_equal(live_admin(&s->live, token, &secret), 0);
    s->token = test_join(s->live.dir, "token");
    test_write_text(s->live.dir, "token", secret);
    const char *const mode[] = {"chmod", "600", s->token, NULL};
    struct test_run r;

    test_run(mode, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    free(secret);
    live_start(&s->live, NULL);
    s->origin = text("http://127.0.0.1:%u", s->live.port);
}

static void unserve(struct served *s)
{
    free(s->origin);
    free(s->token);
    live_fini(&s->live);
}

/* `cleanrun push`: its exit is the server's verdict. The verdict document. */
static cJSON *push(const struct served *s, const struct fixture *f, enum which w, int code)
{
    AUTO_FREE char *exe = cleanrun();
    AUTO_FREE char *archive = place(f, w, "out.tar");
    const char *const argv[] = {exe,         "push",   archive,  "--server", s->origin,
                                "--project", PROJECT,  "--gate", "callsim",  "--token-file",
                                s->token,    "--json", NULL};
    struct test_run r;
    cJSON *answer = NULL;
    struct err e = ERR_INIT;

    test_run(argv, NULL, NULL, NULL, &r);
    if (r.code != code || json_parse(r.out, r.out_len, NULL, &answer, &e) < 0)
        fail_msg("push: exit %d, wanted %d: %s%s", r.code, code, r.out, r.err);
    test_run_fini(&r);
    return answer;
}

static void approve(struct served *s, const char *run, int code)
{
    const char *const args[] = {"baseline",   "approve",  run,       "--project",
                                PROJECT,      "--gate",   "callsim", "--reviewer",
                                "a reviewer", "--reason", "first",   NULL};

    assert_int_equal(live_admin(&s->live, args, NULL), code);
}

/* Heap bytes of an address that answers with this status. */
static char *fetch(const struct served *s, const char *address, int status)
{
    struct raw_response a;
    char *body = NULL;

    raw_ask(s->live.port, "GET", address, NULL, NULL, 0, &a);
    if (a.status != status)
        print_error("%s: %d\n", address, a.status);
    assert_int_equal(a.status, status);
    body = strndup(a.body ? a.body : "", a.body_len);
    assert_non_null(body);
    raw_response_fini(&a);
    return body;
}

static cJSON *fetch_json(const struct served *s, const char *address)
{
    AUTO_FREE char *body = fetch(s, address, 200);
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(body, strlen(body), NULL, &j, &e) < 0)
        fail_msg("%s: %s", address, e.text);
    return j;
}

static void assert_says(const char *page, const char *words)
{
    if (!strstr(page, words))
        fail_msg("the page does not say: %s", words);
}

static const char *run_of(const struct fixture *f, enum which w, cJSON **out_manifest)
{
    *out_manifest = left_json(f, w, "manifest.json");
    return text_at(*out_manifest, "run");
}

/* The baseline pushed and reviewed. */
static void serve_with_baseline(struct served *s, struct fixture *f)
{
    need_baseline(f);
    serve(s, f);
    cJSON *first = push(s, f, BASELINE, 3);

    assert_true(
        has_reason(json_get(first, "audit"), "NC-BASELINE-NONE", "(none)", "no reviewed baseline"));
    approve(s, text_at(first, "run"), 0);
    cJSON_Delete(first);
}

static void assert_same_at(const cJSON *a, const cJSON *b, const char *key)
{
    const cJSON *x = json_get(a, key), *y = json_get(b, key);

    if (!x || !y || !json_equal(x, y)) {
        AUTO_FREE char *left_words = cJSON_PrintUnformatted(x);
        AUTO_FREE char *right_words = cJSON_PrintUnformatted(y);

        fail_msg("%s: %s here, %s there", key, left_words, right_words);
    }
}

/* Every comparison, with its numbers, as the runner made it. */
static void assert_same_audit(const struct fixture *f, enum which w, const cJSON *verdict)
{
    cJSON *own = left_json(f, w, "audit.json");
    const cJSON *theirs = json_get(verdict, "audit");

    assert_same_at(own, theirs, "verdict");
    assert_same_at(own, theirs, "comparisons");
    assert_same_at(own, theirs, "expected_comparisons");
    assert_same_at(own, theirs, "made_comparisons");
    cJSON_Delete(own);
}

void server_judges_as_the_runner_did(void **state)
{
    struct fixture *f = *state;
    struct served s;

    need_alone(f, CLEAN);
    need_alone(f, SLOWER);
    need_crowd(f);
    need_second_crowd(f);
    serve_with_baseline(&s, f);
    static const struct {
        enum which w;
        int code;
        const char *verdict, *failed; /* the one check that failed, or NULL */
    } rows[] = {
        {CLEAN, 0, "OK", NULL},
        {SLOWER, 1, "REGRESSION", NULL},
        {LEAK, 4, "FAIL", "resources.rss_cleanup_endpoint_growth_mb_per_hour"},
        {EDITED, 4, "FAIL", "source unchanged"},
        {DROPPED, 3, "NON_COMPARABLE", NULL},
        {SKIPPED, 4, "FAIL", "run status"},
        {THINNER, 4, "FAIL", "run status"},
        {FORGED, 4, "FAIL", "report fingerprint"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void) callsim_finish(f, rows[i].w);
        cJSON *verdict = push(&s, f, rows[i].w, rows[i].code);

        assert_string_equal(text_at(verdict, "verdict"), rows[i].verdict);
        const cJSON *failed = json_get(json_get(verdict, "acceptance"), "failed");

        assert_int_equal(cJSON_GetArraySize(failed), rows[i].failed ? 1 : 0);
        assert_true(!rows[i].failed || !strcmp(failed->child->valuestring, rows[i].failed));
        assert_same_audit(f, rows[i].w, verdict);
        /* what the address of the verdict says is what the push was told */
        AUTO_FREE char *address =
            text("/api/v1/projects/" PROJECT "/runs/%s/verdict", text_at(verdict, "run"));
        cJSON *stored = fetch_json(&s, address);

        assert_true(json_equal(stored, verdict));
        cJSON_Delete(stored);
        cJSON_Delete(verdict);
    }
    assert_int_equal(live_stop(&s.live), 0);
    unserve(&s);
}

static const cJSON *window_named(const cJSON *doc, const char *name)
{
    const cJSON *w = NULL;

    cJSON_ArrayForEach(w, json_get(doc, "windows")) {
        if (!strcmp(text_at(w, "name"), name))
            return w;
    }
    fail_msg("no window %s", name);
    return NULL;
}

/* The windows of the page are the windows of the report: same samples, same bands, same medians. */
static void assert_windows(const cJSON *doc, const cJSON *report)
{
    static const char *const names[] = {"active_load", "post_drain_cleanup"};
    static const char *const pairs[][2] = {
        {"requested_start_secs", "requested_start_secs"},
        {"requested_end_secs", "requested_end_secs"},
        {"first_sample_secs", "first_sample_secs"},
        {"last_sample_secs", "last_sample_secs"},
        {"actual_coverage_secs", "actual_coverage_secs"},
        {"sample_count", "sample_count"},
        {"complete", "complete"},
        {"band_secs", "rss_endpoint_band_secs"},
        {"start_median_mb", "rss_start_median_mb"},
        {"end_median_mb", "rss_end_median_mb"},
        {"start_representative_secs", "rss_start_representative_secs"},
        {"end_representative_secs", "rss_end_representative_secs"},
        {"retained_mb", "rss_retained_growth_mb"},
        {"separation_secs", "rss_endpoint_separation_secs"},
        {"endpoint_mb_per_hour", "rss_endpoint_growth_mb_per_hour"},
    };

    for (size_t i = 0; i < 2; i++) {
        const cJSON *shown = window_named(doc, names[i]);
        const cJSON *said =
            json_get(json_get(json_get(report, "resources"), "rss_windows"), names[i]);
        const cJSON *band = json_get(json_get(shown, "bound"), "bands");

        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
            const cJSON *a = json_get(shown, pairs[k][0]), *b = json_get(said, pairs[k][1]);

            if (cJSON_IsNumber(a) && cJSON_IsNumber(b))
                assert_close(a->valuedouble, b->valuedouble, 1e-9);
            else if (!a || !b || !json_equal(a, b))
                fail_msg("%s: %s differs", names[i], pairs[k][0]);
        }
        assert_int_equal(cJSON_GetArraySize(band), 2);
        assert_close(json_get(cJSON_GetArrayItem(band, 1), "t_ms")->valuedouble,
                     json_get(said, "rss_end_representative_secs")->valuedouble * 1000, 1e-9);
        assert_close(json_get(cJSON_GetArrayItem(band, 1), "median_mb")->valuedouble,
                     json_get(said, "rss_end_median_mb")->valuedouble, 1e-9);
    }
}

static size_t count_of(const char *page, const char *words)
{
    size_t n = 0;

    for (const char *at = strstr(page, words); at; at = strstr(at + 1, words))
        n++;
    return n;
}

void server_pages_say_what_the_documents_say(void **state)
{
    struct fixture *f = *state;
    struct served s;
    cJSON *manifest = NULL, *report = NULL;

    need_crowd(f);
    (void) callsim_finish(f, LEAK);
    serve_with_baseline(&s, f);
    cJSON *verdict = push(&s, f, LEAK, 4);
    AUTO_FREE char *address = text("/r/%s", run_of(f, LEAK, &manifest));
    AUTO_FREE char *twin = text("%s.json", address);
    AUTO_FREE char *page = fetch(&s, address, 200);
    cJSON *doc = fetch_json(&s, twin), *acceptance = left_json(f, LEAK, "acceptance.json");

    report = left_json(f, LEAK, "results/" MEASURED);
    assert_same_at(doc, manifest, "run");
    assert_true(json_equal(json_get(json_get(doc, "acceptance"), "checks"),
                           json_get(acceptance, "checks")));
    assert_windows(doc, report);
    /* The series is the report's, all of it. */
    const cJSON *shown = json_get(json_get(doc, "series"), "samples"),
                *said = json_get(json_get(report, "resources"), "rss_samples_mb");

    assert_int_equal(cJSON_GetArraySize(shown), cJSON_GetArraySize(said));
    assert_close(cJSON_GetArrayItem(cJSON_GetArrayItem(shown, 100), 1)->valuedouble,
                 json_get(cJSON_GetArrayItem(said, 100), "rss_mb")->valuedouble * 1024, 1e-9);
    /* The phases are on the same clock. */
    assert_true(json_equal(json_get(doc, "phases"),
                           json_get(json_get(report, "diagnostics"), "phase_markers")));
    /* Drawn: the timeline, the line, two windows with two bands and two rings each. */
    assert_says(page, "<svg class=\"timeline\"");
    assert_says(page, "post_drain_cleanup_start</th>");
    assert_says(page, "<svg class=\"chart\"");
    assert_says(page, "<polyline class=\"l\"");
    assert_int_equal(count_of(page, "<rect class=\"win\""), 2);
    assert_int_equal(count_of(page, "<rect class=\"band\""), 4);
    assert_int_equal(count_of(page, "<circle class=\"rep\""), 4);
    /* The one failed check stands first, alone, with its numbers; the others are folded in groups.
     */
    const char *failed = strstr(page, "Failed checks (1 of "),
               *folded = strstr(page, "<details><summary>resources");

    assert_non_null(failed);
    assert_non_null(folded);
    assert_true(failed < folded);
    assert_true(strstr(failed, "resources.rss_cleanup_endpoint_growth_mb_per_hour") < folded);
    const char *actual = strstr(strstr(failed, "data-l=\"Actual\""), "<data value=\"");

    assert_true(actual && actual < folded);
    assert_close(strtod(actual + strlen("<data value=\""), NULL),
                 json_get(json_get(report, "resources"), "rss_cleanup_endpoint_growth_mb_per_hour")
                     ->valuedouble,
                 0);
    assert_int_equal(count_of(page, "<details><summary>resources"), 1);
    cJSON_Delete(doc);
    cJSON_Delete(acceptance);
    cJSON_Delete(report);
    cJSON_Delete(manifest);
    cJSON_Delete(verdict);
    unserve(&s);
}

void server_refusal_marks_the_missing_element(void **state)
{
    struct fixture *f = *state;
    struct served s;
    cJSON *manifest = NULL, *base = NULL;

    need_crowd(f);
    (void) callsim_finish(f, DROPPED);
    serve_with_baseline(&s, f);
    cJSON *verdict = push(&s, f, DROPPED, 3);
    const char *run = run_of(f, DROPPED, &manifest);
    AUTO_FREE char *address = text("/r/%s/vs/b-%s", run, run_of(f, BASELINE, &base));
    AUTO_FREE char *page = fetch(&s, address, 200);

    assert_says(page, "NON_COMPARABLE");
    assert_says(page, "no number is claimed");
    assert_says(page, "50, 100, <del>200</del>, 400, 800");
    assert_says(page, "50, 100, <ins>(absent)</ins>, 400, 800");
    /* A refusal claims nothing: no change, in per cent or otherwise. */
    assert_null(strstr(page, "achieved call rate"));
    assert_int_equal(cJSON_GetArraySize(json_get(json_get(verdict, "audit"), "comparisons")), 0);
    cJSON_Delete(verdict);
    cJSON_Delete(manifest);
    cJSON_Delete(base);
    unserve(&s);
}

/* A diagnostic run may be kept beside its clean run; it gets no verdict and is nobody's baseline.
 */
void server_takes_no_diagnostic_run_as_evidence(void **state)
{
    struct fixture *f = *state;
    struct served s;

    need_second_crowd(f);
    (void) callsim_finish(f, MEMORY);
    serve_with_baseline(&s, f);
    cJSON *answer = push(&s, f, MEMORY, 7);
    AUTO_FREE char *verdict =
        text("/api/v1/projects/" PROJECT "/runs/%s/verdict", text_at(answer, "run"));
    AUTO_FREE char *address = text("/r/%s", text_at(answer, "run"));
    AUTO_FREE char *none = fetch(&s, verdict, 404);
    AUTO_FREE char *page = fetch(&s, address, 200);
    AUTO_FREE char *gate = text("/p/" PROJECT "/callsim");
    AUTO_FREE char *list = fetch(&s, gate, 200);

    assert_true(cJSON_IsNull(json_get(answer, "verdict")));
    assert_says(page, "A memory run is diagnostic: it is never evidence and has no verdict.");
    approve(&s, text_at(answer, "run"), 2);
    assert_null(strstr(none, "\"verdict\":\"OK\""));
    assert_non_null(strstr(list, "callsim"));
    cJSON_Delete(answer);
    unserve(&s);
}
