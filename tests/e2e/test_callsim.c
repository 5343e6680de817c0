/*
 * The call-setup experiment for real: demo/callsim is built, measured and judged by the program itself, once for each
 * kind of end. Runs whose verdict hangs on speed come one after the other; those whose verdict does not (leak, dropped
 * point, edited source, killed workload) run at the same time, each with a lock and a state directory of its own.
 */
#include "tests/lib/support.h"

#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json_in.h"

#define SCENARIO "callsim_call_setup"
#define MEASURED SCENARIO "/800.json"
#define ARGS_MAX 24

enum which { BASELINE, CLEAN, SLOWER, LEAK, DROPPED, EDITED, KILLED, RUNS };

static const struct {
    const char *name, *at; /* at: NULL for a work tree of its own, which is the run's directory's neighbour */
} kinds[RUNS] = {
    [BASELINE] = { "baseline", "main" }, [CLEAN] = { "clean", "main" },           [SLOWER] = { "slower", "slower" },
    [LEAK] = { "leak", "leak" },         [DROPPED] = { "dropped", "dropped-point" }, [EDITED] = { "edited", NULL },
    [KILLED] = { "killed", NULL },
};

struct running {
    pid_t pid; /* 0: not started, -1: ended */
    FILE *talk; /* its standard output, a JSON object a line */
    int code;
    cJSON *result; /* the last line, NULL without one */
};

struct fixture {
    char *dir, *repo, *key, *public_key;
    char baseline_sha256[DIGEST_HEX_SIZE];
    struct running runs[RUNS];
};

/* Programs. */

static char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *format, ...)
{
    char *out = NULL;
    va_list ap;

    va_start(ap, format);
    assert_true(vasprintf(&out, format, ap) >= 0);
    va_end(ap);
    return out;
}

/* The test's own environment without what the gate refuses (meson sets MALLOC_PERTURB_). */
static char **environment_for(char *const extra[], size_t n_extra)
{
    size_t n = 0, k = 0;

    while (environ[n])
        n++;
    char **env = calloc(n + n_extra + 1, sizeof *env);

    assert_non_null(env);
    for (size_t i = 0; i < n_extra; i++)
        env[k++] = extra[i];
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "MALLOC_", 7) != 0)
            env[k++] = environ[i];
    return env;
}

static void git(const char *const args[])
{
    static const char *const env[] = { "GIT_CONFIG_GLOBAL=/dev/null", NULL };
    struct test_run r;

    test_run(args, env, NULL, NULL, &r);
    if (r.code != 0)
        print_error("%s: %s\n", args[0], r.err);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
}

static char *program(void)
{
    return test_join(test_build_root(), "runner/cleanrun");
}

/* "<dir>/<name>/<file>": the work tree, out (the run directory), out.tar, state and lock of one run. */
static char *place(const struct fixture *f, enum which w, const char *file)
{
    return text("%s/%s/%s", f->dir, kinds[w].name, file);
}

/* Starts `cleanrun run callsim` of one kind. With a key, so that a finished run would be sealed. */
static void start(struct fixture *f, enum which w)
{
    struct running *r = &f->runs[w];
    AUTO_FREE char *own = place(f, w, "");
    AUTO_FREE char *out = place(f, w, "out");
    AUTO_FREE char *tree = kinds[w].at ? strdup(f->repo) : place(f, w, "tree");
    AUTO_FREE char *baseline = place(f, BASELINE, "out");
    AUTO_FREE char *exe = program();
    AUTO_FREE char *state = text("XDG_STATE_HOME=%s/%s/state", f->dir, kinds[w].name);
    AUTO_FREE char *lock = text("CLEANRUN_LOCK=%s/%s/lock", f->dir, kinds[w].name);
    char *extra[] = { state, lock };
    AUTO_FREE char **env = environment_for(extra, 2);
    const char *argv[ARGS_MAX] = { exe, "run", "callsim", "--json", "--out", out, "--key", f->key };
    size_t n = 8;
    posix_spawn_file_actions_t actions;
    int ends[2];

    assert_int_equal(mkdir(own, 0755), 0);
    if (kinds[w].at) {
        argv[n++] = "--at";
        argv[n++] = kinds[w].at;
    } else {
        const char *const clone[] = { "git", "clone", "-q", f->repo, tree, NULL };

        git(clone);
    }
    if (w != BASELINE) {
        argv[n++] = "--baseline";
        argv[n++] = baseline;
        argv[n++] = "--baseline-sha256";
        argv[n++] = f->baseline_sha256;
    }
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    posix_spawn_file_actions_addchdir_np(&actions, tree);
    assert_int_equal(posix_spawn(&r->pid, exe, &actions, NULL, (char *const *) (uintptr_t) argv, env), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    r->talk = fdopen(ends[0], "r");
    assert_non_null(r->talk);
}

/* The next event; false at the end. The result is remembered. */
static bool next_event(struct running *r, const char *event, const char *words)
{
    AUTO_FREE char *line = NULL;
    size_t room = 0;
    bool found = false;

    while (!found && getline(&line, &room, r->talk) > 0) {
        struct err e = ERR_INIT;
        cJSON *j = NULL;

        line[strcspn(line, "\n")] = '\0';
        if (json_parse(line, strlen(line), NULL, &j, &e) < 0)
            fail_msg("no JSON: %s", line);
        const cJSON *kind = json_get(j, "event"), *said = json_get(j, "text");

        assert_true(cJSON_IsString(kind));
        found = !strcmp(kind->valuestring, event) && cJSON_IsString(said) && strstr(said->valuestring, words);
        if (!strcmp(kind->valuestring, "result")) {
            cJSON_Delete(r->result);
            r->result = j;
        } else {
            cJSON_Delete(j);
        }
    }
    return found;
}

/* Waits for the end once; later calls find it ended. */
static struct running *finish(struct fixture *f, enum which w)
{
    struct running *r = &f->runs[w];
    int status = 0;

    assert_int_not_equal(r->pid, 0);
    if (r->pid < 0)
        return r;
    assert_false(next_event(r, "", ""));
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    r->pid = -1;
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return r;
}

/* What a run left. */

static cJSON *read_json(const struct fixture *f, enum which w, const char *name)
{
    AUTO_FREE char *file = text("out/%s", name);
    AUTO_FREE char *path = place(f, w, file);
    size_t len = 0;
    AUTO_FREE char *bytes = test_read_path(path, &len);
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(bytes, len, NULL, &j, &e) < 0)
        fail_msg("%s: %s", path, e.text);
    return j;
}

static bool exists(const struct fixture *f, enum which w, const char *name)
{
    AUTO_FREE char *path = place(f, w, name);
    struct stat st;

    return stat(path, &st) == 0;
}

static const char *text_at(const cJSON *j, const char *key)
{
    const cJSON *v = json_get(j, key);

    return cJSON_IsString(v) ? v->valuestring : "(none)";
}

static void print_failures(const struct fixture *f, enum which w, const cJSON *result)
{
    const cJSON *fault = NULL, *check = NULL;

    cJSON_ArrayForEach(fault, json_get(result, "faults"))
    {
        print_error("fault: %s\n", fault->valuestring);
    }
    if (exists(f, w, "out/acceptance.json")) {
        cJSON *j = read_json(f, w, "acceptance.json");

        cJSON_ArrayForEach(check, json_get(j, "checks"))
        {
            if (!cJSON_IsTrue(json_get(check, "passed"))) {
                AUTO_FREE char *words = cJSON_PrintUnformatted(check);

                print_error("check: %s\n", words);
            }
        }
        cJSON_Delete(j);
    }
}

/* The run ended with this verdict, and its documents say the same. */
static void assert_end(struct fixture *f, enum which w, int code, const char *verdict, const char *status)
{
    const struct running *r = finish(f, w);

    if (r->code != code || !r->result || strcmp(text_at(r->result, "verdict"), verdict) != 0) {
        print_error("%s: exit %d, verdict %s\n", kinds[w].name, r->code, text_at(r->result, "verdict"));
        print_failures(f, w, r->result);
    }
    assert_int_equal(r->code, code);
    assert_string_equal(text_at(r->result, "verdict"), verdict);
    cJSON *manifest = read_json(f, w, "manifest.json");

    assert_string_equal(text_at(manifest, "status"), status);
    assert_string_equal(text_at(manifest, "project"), "demo/callsim");
    assert_string_equal(text_at(manifest, "gate"), "callsim");
    cJSON_Delete(manifest);
    assert_true(exists(f, w, "out.tar")); /* a FAIL is evidence too */
}

static size_t failed_checks(const cJSON *acceptance, const char **first)
{
    const cJSON *check = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(check, json_get(acceptance, "checks"))
    {
        if (cJSON_IsTrue(json_get(check, "passed")))
            continue;
        if (n++ == 0)
            *first = text_at(check, "name");
    }
    return n;
}

static bool has_reason(const cJSON *audit, const char *code, const char *field, const char *words)
{
    const cJSON *reason = NULL;

    cJSON_ArrayForEach(reason, json_get(audit, "reasons"))
    {
        if (!strcmp(text_at(reason, "code"), code) && !strcmp(text_at(reason, "field"), field) &&
            strstr(text_at(reason, "text"), words))
            return true;
    }
    return false;
}

/* Verdict word of one comparison, "(none)" when it was not made. */
static const char *comparison(const cJSON *audit, const char *metric)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, json_get(audit, "comparisons"))
    {
        if (!strcmp(text_at(row, "metric"), metric))
            return text_at(row, "verdict");
    }
    return "(none)";
}

/* The fixture. */

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->dir = test_dir_new();
    f->repo = test_join(f->dir, "repo");
    AUTO_FREE char *script = test_path("demo/make-callsim-repo.sh");
    const char *const make[] = { script, f->repo, NULL };
    AUTO_FREE char *exe = program();
    AUTO_FREE char *keys = test_join(f->dir, "keys");
    const char *const gen[] = { exe, "key", "gen", "--out", keys, NULL };
    struct test_run r;

    git(make);
    test_run(gen, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    f->key = test_join(keys, "key.pem");
    f->public_key = test_join(keys, "pub.pem");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (size_t w = 0; w < RUNS; w++) {
        struct running *r = &f->runs[w];

        if (r->pid > 0) { /* a test failed before its end: SIGTERM ends the workload with it */
            kill(r->pid, SIGTERM);
            waitpid(r->pid, NULL, 0);
        }
        if (r->talk)
            fclose(r->talk);
        cJSON_Delete(r->result);
    }
    test_dir_free(f->dir);
    free(f->repo);
    free(f->key);
    free(f->public_key);
    free(f);
    return 0;
}

/* Every other run is compared with this one. */
static void need_baseline(struct fixture *f)
{
    AUTO_FREE char *path = place(f, BASELINE, "out/manifest.json");
    size_t len = 0;

    if (f->runs[BASELINE].pid == 0)
        start(f, BASELINE);
    finish(f, BASELINE);
    AUTO_FREE char *bytes = test_read_path(path, &len);
    struct digest d = digest_of(bytes, len);

    digest_hex(&d, f->baseline_sha256);
}

/* The pid of the program measured in this run's own work tree; 0 when there is none. */
static pid_t find_workload(const struct fixture *f, enum which w)
{
    AUTO_FREE char *exe = place(f, w, "tree/build/callsim");
    AUTO_FREE char *real = realpath(exe, NULL);
    DIR *proc = opendir("/proc");
    pid_t found = 0;

    assert_non_null(real);
    assert_non_null(proc);
    for (struct dirent *d = readdir(proc); d && !found; d = readdir(proc)) {
        AUTO_FREE char *link = text("/proc/%s/exe", d->d_name);
        char target[4096] = "";
        ssize_t n = d->d_name[0] >= '1' && d->d_name[0] <= '9' ? readlink(link, target, sizeof target - 1) : -1;

        if (n > 0 && !strcmp(target, real))
            found = (pid_t) strtol(d->d_name, NULL, 10);
    }
    closedir(proc);
    return found;
}

/* Starts the runs that do not disturb each other's verdicts and does to two of them what is to be done. */
static void need_crowd(struct fixture *f)
{
    if (f->runs[LEAK].pid != 0)
        return;
    need_baseline(f);
    for (enum which w = LEAK; w < RUNS; w++)
        start(f, w);
    assert_true(next_event(&f->runs[KILLED], "phase", "point-50"));
    pid_t pid = find_workload(f, KILLED);

    assert_int_not_equal(pid, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_true(next_event(&f->runs[EDITED], "phase", "point-50"));
    AUTO_FREE char *source = place(f, EDITED, "tree/answer.c");
    FILE *file = fopen(source, "a");

    assert_non_null(file);
    fputs("/* edited while the load ran */\n", file);
    assert_int_equal(fclose(file), 0);
}

/* Tests. */

static void clean_run_passes_every_check_and_waits_for_a_baseline(void **state)
{
    static const char *const reports[] = { "50.json", "100.json", "200.json", "400.json", "800.json" };
    struct fixture *f = *state;
    const char *first = NULL;

    need_baseline(f);
    assert_end(f, BASELINE, 3, "NON_COMPARABLE", "PASS");
    cJSON *acceptance = read_json(f, BASELINE, "acceptance.json");

    assert_string_equal(text_at(acceptance, "verdict"), "PASS");
    assert_int_equal(failed_checks(acceptance, &first), 0);
    assert_true(cJSON_GetArraySize(json_get(acceptance, "checks")) > 100);
    cJSON_Delete(acceptance);
    /* One report for each point of the sweep, each with the point's own numbers, and all of them together. */
    cJSON *sweep = read_json(f, BASELINE, "results/" SCENARIO "/_sweep.json");
    size_t n = 0;

    assert_int_equal(cJSON_GetArraySize(json_get(sweep, "points")), 5);
    for (; n < 5; n++) {
        AUTO_FREE char *name = text("results/" SCENARIO "/%s", reports[n]);
        cJSON *report = read_json(f, BASELINE, name);
        const cJSON *identity = json_get(json_get(report, "diagnostics"), "measurement_identity");

        assert_int_equal(cJSON_GetArraySize(json_get(json_get(identity, "conditioning"), "points")), n);
        assert_true(cJSON_Compare(report, cJSON_GetArrayItem(json_get(sweep, "points"), (int) n), true));
        cJSON_Delete(report);
    }
    cJSON_Delete(sweep);
    /* The phases that the runner saw are in the manifest: four conditioning points, then the measured one. */
    cJSON *manifest = read_json(f, BASELINE, "manifest.json");
    const cJSON *marker = cJSON_GetArrayItem(json_get(manifest, "phase_markers"), 3);

    assert_int_equal(cJSON_GetArraySize(json_get(manifest, "phase_markers")), 13);
    assert_string_equal(text_at(marker, "phase"), "point-400");
    cJSON_Delete(manifest);
}

static void sealed_clean_run_verifies(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *exe = program();
    struct test_run r;

    need_baseline(f);
    AUTO_FREE char *archive = place(f, BASELINE, "out.tar");
    const char *const verify[] = { exe, "verify", archive, "--key", f->public_key, NULL };

    test_run(verify, NULL, NULL, NULL, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
}

static void same_source_again_is_ok(void **state)
{
    struct fixture *f = *state;

    need_baseline(f);
    start(f, CLEAN);
    assert_end(f, CLEAN, 0, "OK", "PASS");
    cJSON *audit = read_json(f, CLEAN, "audit.json");

    assert_int_equal(json_get(audit, "made_comparisons")->valueint, 15);
    assert_int_equal(json_get(audit, "expected_comparisons")->valueint, 15);
    assert_string_equal(comparison(audit, "/results/datagrams_per_call"), "ok");
    cJSON_Delete(audit);
}

static void slower_answers_are_a_regression(void **state)
{
    struct fixture *f = *state;

    need_baseline(f);
    start(f, SLOWER);
    assert_end(f, SLOWER, 1, "REGRESSION", "PASS");
    cJSON *audit = read_json(f, SLOWER, "audit.json");

    assert_string_equal(comparison(audit, "/results/achieved_cps"), "regression");
    assert_string_equal(comparison(audit, "/latency_ns/setup_latency/p50"), "regression");
    assert_string_equal(comparison(audit, "/results/datagrams_per_call"), "ok"); /* slower, not other work */
    cJSON_Delete(audit);
}

static void leak_fails_acceptance_at_retained_growth_alone(void **state)
{
    struct fixture *f = *state;
    const char *first = "";

    need_crowd(f);
    assert_end(f, LEAK, 4, "FAIL", "FAIL");
    cJSON *acceptance = read_json(f, LEAK, "acceptance.json");

    assert_string_equal(text_at(acceptance, "verdict"), "FAIL");
    assert_int_equal(failed_checks(acceptance, &first), 1); /* all calls were answered, nothing was counted as kept */
    assert_string_equal(first, "resources.rss_cleanup_endpoint_growth_mb_per_hour");
    cJSON_Delete(acceptance);
    /* The planted leak is far outside, the clean run far inside the limit of 500 MB/h. */
    cJSON *leaking = read_json(f, LEAK, "results/" MEASURED);
    cJSON *clean = read_json(f, BASELINE, "results/" MEASURED);

    assert_true(json_get(json_get(leaking, "resources"), "rss_cleanup_endpoint_growth_mb_per_hour")->valuedouble > 5000);
    assert_true(json_get(json_get(clean, "resources"), "rss_cleanup_endpoint_growth_mb_per_hour")->valuedouble < 100);
    cJSON_Delete(leaking);
    cJSON_Delete(clean);
}

static void dropped_conditioning_point_is_not_comparable(void **state)
{
    struct fixture *f = *state;

    need_crowd(f);
    assert_end(f, DROPPED, 3, "NON_COMPARABLE", "PASS");
    cJSON *audit = read_json(f, DROPPED, "audit.json");

    assert_true(has_reason(audit, "NC-IDENTITY-DIFFERS", "/diagnostics/measurement_identity/sweep_points_cps", "200"));
    assert_true(has_reason(audit, "NC-IDENTITY-DIFFERS", "/diagnostics/measurement_identity/conditioning/points", "200"));
    assert_true(has_reason(audit, "NC-DEFINITION", "/conditioning", "point-200"));
    assert_int_equal(cJSON_GetArraySize(json_get(audit, "comparisons")), 0);
    cJSON_Delete(audit);
}

static void source_edited_during_the_run_fails(void **state)
{
    struct fixture *f = *state;
    const cJSON *fault = NULL;
    bool found = false;

    need_crowd(f);
    assert_end(f, EDITED, 4, "FAIL", "FAIL");
    cJSON_ArrayForEach(fault, json_get(f->runs[EDITED].result, "faults"))
    {
        found = found || strstr(fault->valuestring, "the source changed during the run");
    }
    assert_true(found);
    cJSON *manifest = read_json(f, EDITED, "manifest.json");

    assert_true(cJSON_IsFalse(json_get(json_get(manifest, "source"), "unchanged")));
    assert_string_equal(text_at(manifest, "acceptance_status"), "PASS"); /* the numbers were fine, their source is not known */
    cJSON_Delete(manifest);
}

static void killed_workload_is_an_error_and_nothing_is_sealed(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *exe = program();
    struct test_run r;

    need_crowd(f);
    assert_int_equal(finish(f, KILLED)->code, 6);
    assert_null(f->runs[KILLED].result);
    cJSON *error = read_json(f, KILLED, "error.json");

    assert_string_equal(text_at(error, "verdict"), "ERROR");
    assert_string_equal(text_at(error, "code"), "run.killed");
    assert_non_null(strstr(text_at(error, "text"), "SIGKILL"));
    cJSON_Delete(error);
    assert_false(exists(f, KILLED, "out/manifest.json"));
    assert_false(exists(f, KILLED, "out.tar"));
    /* What it left cannot be made evidence of by hand either. */
    AUTO_FREE char *directory = place(f, KILLED, "out");
    AUTO_FREE char *archive = place(f, KILLED, "by-hand.tar");
    const char *const seal[] = { exe, "seal", directory, "--key", f->key, "--out", archive, NULL };

    test_run(seal, NULL, NULL, NULL, &r);
    assert_int_not_equal(r.code, 0);
    test_run_fini(&r);
    assert_false(exists(f, KILLED, "by-hand.tar"));
}

/* A sweep set from outside would be another experiment under the same name. */
static void overrides_are_refused_before_any_build(void **state)
{
    static const char *const env[] = { "CALLSIM_SWEEP=800", NULL };
    struct fixture *f = *state;
    AUTO_FREE char *exe = program();
    AUTO_FREE char *out = test_join(f->dir, "refused");
    const char *const run[] = { "env", "-u", "MALLOC_PERTURB_", exe, "run", "callsim", "--out", out, NULL };
    struct test_run r;
    struct stat st;

    test_run(run, env, f->repo, NULL, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "CALLSIM_SWEEP"));
    assert_int_equal(stat(out, &st), -1);
    test_run_fini(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overrides_are_refused_before_any_build),
        cmocka_unit_test(clean_run_passes_every_check_and_waits_for_a_baseline),
        cmocka_unit_test(sealed_clean_run_verifies),
        cmocka_unit_test(same_source_again_is_ok),
        cmocka_unit_test(slower_answers_are_a_regression),
        cmocka_unit_test(killed_workload_is_an_error_and_nothing_is_sealed),
        cmocka_unit_test(source_edited_during_the_run_fails),
        cmocka_unit_test(leak_fails_acceptance_at_retained_growth_alone),
        cmocka_unit_test(dropped_conditioning_point_is_not_comparable),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("e2e/callsim", tests, setup, teardown);
}
