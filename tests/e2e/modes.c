/* Diagnostic modes with the experiment's own program: what each leaves, and that none of it is a
 * result. */
#include "tests/e2e/callsim.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json_in.h"
#include "tests/e2e/parts.h"

/* A sound diagnostic run: exit 7, no verdict, nothing judged, its clean run named. */
static void assert_diagnostic(struct fixture *f, enum which w, const char *mode)
{
    const struct running *r = callsim_finish(f, w);

    if (r->code != 7) {
        cJSON *failed = r->result ? cJSON_Duplicate(r->result, true) : NULL;
        AUTO_FREE char *words = cJSON_Print(failed);

        print_error("%s: exit %d: %s\n", mode, r->code, words ? words : "(no result)");
        cJSON_Delete(failed);
    }
    assert_int_equal(r->code, 7);
    assert_true(!json_get(r->result, "verdict") || cJSON_IsNull(json_get(r->result, "verdict")));
    cJSON *manifest = left_json(f, w, "manifest.json"),
          *clean = left_json(f, BASELINE, "manifest.json");

    assert_string_equal(text_at(manifest, "mode"), mode);
    assert_string_equal(text_at(manifest, "control"), text_at(clean, "run"));
    assert_true(cJSON_IsNull(json_get(manifest, "verdict")) || !json_get(manifest, "verdict"));
    assert_string_equal(text_at(json_get(manifest, "executable"), "sha256"),
                        text_at(json_get(clean, "executable"), "sha256"));
    cJSON_Delete(manifest);
    cJSON_Delete(clean);
    assert_false(left(f, w, "out/audit.json"));
    assert_false(left(f, w, "out/acceptance.json"));
}

static off_t size_of(const struct fixture *f, enum which w, const char *name)
{
    AUTO_FREE char *path = place(f, w, name);
    struct stat st;

    return stat(path, &st) == 0 ? st.st_size : -1;
}

/* Does what perf wrote tell of this? */
static void assert_perf_tells(const struct fixture *f, enum which w, const char *options,
                              const char *words)
{
    AUTO_FREE char *data = place(f, w, "out/profile/perf.data");
    AUTO_FREE char *command =
        text("perf %s -i '%s' 2>/dev/null | grep -cF -e '%s'", options, data, words);
    const char *const argv[] = {"sh", "-c", command, NULL};
    struct test_run r;

    test_run(argv, NULL, NULL, NULL, &r);
    if (r.code != 0)
        print_error("%s: nothing\n", command);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
}

void cpu_mode_samples_stacks(void **state)
{
    struct fixture *f = *state;

    if (!has_tool("perf"))
        skip();
    need_second_crowd(f);
    assert_diagnostic(f, CPU, "cpu");
    assert_true(size_of(f, CPU, "out/profile/perf.data") > 1000);
    assert_perf_tells(f, CPU, "script -F comm,ip,sym", "callsim");
}

void timing_mode_records_switches(void **state)
{
    struct fixture *f = *state;

    if (!has_tool("perf"))
        skip();
    need_second_crowd(f);
    assert_diagnostic(f, TIMING, "timing");
    assert_perf_tells(f, TIMING, "script --show-switch-events", "PERF_RECORD_SWITCH");
}

static double number_at(const cJSON *o, const char *key)
{
    const cJSON *v = json_get(o, key);

    if (!cJSON_IsNumber(v))
        fail_msg("no number %s", key);
    return v->valuedouble;
}

/* The program's own snapshots tell of calls, the runner's of memory; both at the same phases. */
void memory_mode_takes_retention_snapshots_at_four_phases(void **state)
{
    static const char *const phases[] = {"ramp_end", "steady_end", "cooldown_end",
                                         "post_drain_settle_end"};
    struct fixture *f = *state;
    double before = 0;

    need_second_crowd(f);
    assert_diagnostic(f, MEMORY, "memory");
    cJSON *report = left_json(f, MEMORY, "results/" MEASURED),
          *tree = left_json(f, MEMORY, "profile/snapshots.json");
    const cJSON *calls = json_get(json_get(report, "diagnostics"), "retention_snapshots"),
                *memory = json_get(tree, "snapshots");

    assert_int_equal(cJSON_GetArraySize(calls), 4);
    assert_int_equal(cJSON_GetArraySize(memory), 4);
    for (int i = 0; i < 4; i++) {
        const cJSON *own = cJSON_GetArrayItem(calls, i), *seen = cJSON_GetArrayItem(memory, i);
        double held = number_at(json_get(own, "held"), "retained_total");

        assert_string_equal(text_at(own, "phase"), phases[i]);
        assert_string_equal(text_at(seen, "phase"), phases[i]);
        assert_true(number_at(own, "actual_ms") >= number_at(own, "scheduled_ms"));
        assert_true(number_at(own, "actual_ms") > before);
        before = number_at(own, "actual_ms");
        assert_true(i < 2 ? held > 0 : held < 0.5); /* calls under load, none after it */
        assert_true(number_at(json_get(seen, "measured"), "pss_kib") > 0);
    }
    cJSON_Delete(report);
    cJSON_Delete(tree);
    /* The clean run takes none, and its gate sees to that. */
    report = left_json(f, BASELINE, "results/" MEASURED);
    assert_null(json_get(json_get(report, "diagnostics"), "retention_snapshots"));
    assert_null(json_get(json_get(report, "diagnostics"), "boundary_snapshot"));
    assert_false(left(f, BASELINE, "out/profile"));
    cJSON_Delete(report);
}

void boundary_mode_takes_a_snapshot_after_each_point(void **state)
{
    static const char *const phases[] = {"point-50", "point-100", "point-200", "point-400",
                                         "calls_drained"};
    static const int points[] = {50, 100, 200, 400, 800};
    struct fixture *f = *state;

    need_second_crowd(f);
    assert_diagnostic(f, BOUNDARY, "boundary");
    cJSON *tree = left_json(f, BOUNDARY, "profile/snapshots.json");
    const cJSON *memory = json_get(tree, "snapshots");

    assert_int_equal(cJSON_GetArraySize(memory), 5);
    for (int i = 0; i < 5; i++) {
        AUTO_FREE char *name = text("results/" SCENARIO "/%d.json", points[i]);
        cJSON *report = left_json(f, BOUNDARY, name);
        const cJSON *diagnostics = json_get(report, "diagnostics"),
                    *own = json_get(diagnostics, "boundary_snapshot");
        const cJSON *marker = NULL;
        double drained = -1;

        assert_string_equal(text_at(cJSON_GetArrayItem(memory, i), "phase"), phases[i]);
        cJSON_ArrayForEach(marker, json_get(diagnostics, "phase_markers")) {
            if (!strcmp(text_at(marker, "phase"), "calls_drained"))
                drained = number_at(marker, "elapsed_ms");
        }
        assert_true(drained > 0);
        /* at once, not after the settle */
        assert_true(number_at(own, "actual_ms") >= drained &&
                    number_at(own, "actual_ms") < drained + 1000);
        assert_int_equal(cJSON_GetArraySize(json_get(json_get(own, "held"), "endpoints")), 5);
        cJSON_Delete(report);
    }
    cJSON_Delete(tree);
}

void build_only_is_never_a_result(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *exe = cleanrun();
    AUTO_FREE char *out = test_join(f->dir, "built");
    AUTO_FREE char *file = test_join(out, "manifest.json");
    AUTO_FREE char *lock = text("CLEANRUN_LOCK=%s/built.lock", f->dir);
    const char *const env[] = {lock, NULL};
    const char *const run[] = {
        "env",  "-u",   "MALLOC_PERTURB_", exe, "run", "callsim", "--build-only",
        "--at", "main", "--out",           out, NULL};
    struct test_run r;
    struct err e = ERR_INIT;
    cJSON *manifest = NULL;

    test_run(run, env, f->repo, NULL, &r);
    if (r.code != 7)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 7);
    test_run_fini(&r);
    size_t len = 0;
    AUTO_FREE char *bytes = test_read_path(file, &len);

    assert_int_equal(json_parse(bytes, len, NULL, &manifest, &e), 0);
    assert_string_equal(text_at(manifest, "status"), "BUILD_ONLY");
    assert_int_equal(strlen(text_at(json_get(manifest, "executable"), "sha256")), 64);
    assert_int_equal(cJSON_GetArraySize(json_get(manifest, "phase_markers")), 0);
    cJSON_Delete(manifest);
    /* Nobody can take it for a baseline. */
    struct digest d = digest_of(bytes, len);
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&d, hex);
    AUTO_FREE char *next = test_join(f->dir, "after-built");
    const char *const against[] = {"env",
                                   "-u",
                                   "MALLOC_PERTURB_",
                                   exe,
                                   "run",
                                   "callsim",
                                   "--at",
                                   "main",
                                   "--out",
                                   next,
                                   "--baseline",
                                   out,
                                   "--baseline-sha256",
                                   hex,
                                   NULL};

    test_run(against, env, f->repo, NULL, &r);
    if (r.code == 0 || r.code == 1)
        print_error("%s%s\n", r.out, r.err);
    assert_true(r.code == 2 || r.code == 3 || r.code == 5);
    test_run_fini(&r);
}
