/* cleanrun run, end to end: the real program builds and measures a real program in a real
 * repository. */
#include "tests/runner/project.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "runner/report.h"

static const char *text_at(const cJSON *j, const char *key)
{
    const cJSON *v = json_get(j, key);

    return cJSON_IsString(v) ? v->valuestring : "(none)";
}

/* The last line of `run --json`. */
static cJSON *result_line(const struct test_run *r)
{
    const char *at = strstr(r->out, "{\"event\":\"result\"");
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    assert_non_null(at);
    assert_int_equal(json_parse(at, strcspn(at, "\n"), NULL, &j, &e), 0);
    return j;
}

static void assert_fault(const struct test_run *r, const char *words)
{
    cJSON *j = result_line(r);
    const cJSON *fault = NULL;
    bool found = false;

    cJSON_ArrayForEach(fault, json_get(j, "faults")) {
        found = found || strstr(fault->valuestring, words) != NULL;
    }
    if (!found)
        print_error("no fault with '%s' in %s\n", words, r->out);
    assert_true(found);
    cJSON_Delete(j);
}

static void run_without_baseline_is_evidence_and_non_comparable(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    project_measure(&p, NULL, &r);
    if (r.code != 3)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 3);
    cJSON *m = project_manifest(&p);

    assert_string_equal(text_at(m, "status"), "PASS");
    assert_string_equal(text_at(m, "report_status"), "CAPTURED");
    assert_string_equal(text_at(m, "acceptance_status"), "PASS");
    assert_string_equal(text_at(m, "audit_status"), "NOT_APPLICABLE");
    assert_string_equal(text_at(m, "project"), "test/project");
    assert_true(cJSON_IsTrue(json_get(json_get(m, "source"), "unchanged")));
    assert_true(cJSON_IsFalse(json_get(json_get(json_get(m, "source"), "start"), "dirty")));
    /* The runner's own numbers are in the report, the workload's bytes beside it. */
    cJSON *report = project_json(&p, "results/s/p.json");

    assert_true(json_get(json_get(report, "resources"), "peak_rss_mb")->valuedouble > 0);
    assert_true(cJSON_IsTrue(json_get(
        json_get(json_get(json_get(report, "resources"), "windows"), "steady"), "complete")));
    assert_int_equal(cJSON_GetArraySize(json_get(json_get(report, "diagnostics"), "phase_markers")),
                     3);
    char *written = project_out(&p, "results/s/p.json.as-written");
    char *raw = test_read_path(written, NULL);

    assert_null(strstr(raw, "resources"));
    /* Libraries that ran are listed with their hashes; no path of this user is in any document. */
    bool libc = false;
    const cJSON *mapped = NULL;

    cJSON_ArrayForEach(mapped, json_get(json_get(m, "executable"), "mapped")) {
        libc = libc || strstr(text_at(mapped, "name"), "libc.so") != NULL;
        assert_null(strstr(text_at(mapped, "name"), p.repo));
    }
    assert_true(libc);
    char *log_path = project_out(&p, "build.log");
    char *log = test_read_path(log_path, NULL);

    assert_null(strstr(log, p.dir));
    free(log);
    free(log_path);
    free(raw);
    free(written);
    cJSON_Delete(report);
    cJSON_Delete(m);
    test_run_fini(&r);
    project_free(&p);
}

static void sha256_of_manifest(const struct project *p, const char *dir, char hex[DIGEST_HEX_SIZE])
{
    char *path = test_join(dir, "manifest.json");
    size_t len = 0;
    char *text = test_read_path(path, &len);
    struct digest d = digest_of(text, len);

    (void) p;
    digest_hex(&d, hex);
    free(text);
    free(path);
}

static void run_against_a_baseline_is_ok(void **state)
{
    struct project p;
    struct test_run r;
    char hex[DIGEST_HEX_SIZE];

    (void) state;
    project_new(&p, "ok", NULL);
    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 3);
    test_run_fini(&r);
    char *base = test_join(p.dir, "base");
    char *out = test_join(p.dir, "out");

    assert_int_equal(rename(out, base), 0);
    sha256_of_manifest(&p, base, hex);
    const char *const args[] = {"--baseline", base, "--baseline-sha256", hex, NULL};
    const char *const wrong[] = {"--baseline", base, "--baseline-sha256",
                                 "0000000000000000000000000000000000000000000000000000000000000000",
                                 NULL};
    const char *const missing[] = {"--baseline", base, NULL};

    /* RUN-01 and RUN-03: refused before any build. */
    project_measure(&p, missing, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "requires --baseline-sha256"));
    assert_false(project_has(&p, ""));
    test_run_fini(&r);
    project_measure(&p, wrong, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "reviewed baseline content differs"));
    assert_false(project_has(&p, ""));
    test_run_fini(&r);

    /* The program that the first run built lies there, and git ignores it: is it this commit's? */
    char *built = test_join(p.repo, "workload");
    const char *const away[] = {"rm", "-rf", out, NULL};

    project_measure(&p, args, &r);
    assert_int_equal(r.code, 3);
    assert_non_null(strstr(r.out, "1 file that git ignores lies in the work tree (workload)"));
    cJSON *m = project_manifest(&p);

    assert_int_equal(json_get(json_get(m, "source"), "ignored")->valuedouble, 1);
    assert_string_equal(text_at(m, "audit_status"), "NON_COMPARABLE");
    cJSON_Delete(m);
    test_run_fini(&r);
    test_run(away, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    assert_int_equal(unlink(built), 0);
    free(built);

    project_measure(&p, args, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    m = project_manifest(&p);

    assert_string_equal(text_at(m, "audit_status"), "OK");
    assert_string_equal(text_at(json_get(m, "baseline"), "manifest_sha256"), hex);
    assert_true(project_has(&p, "baseline/manifest.json"));
    assert_true(project_has(&p, "baseline/results/s/p.json"));
    assert_true(project_has(&p, "audit.md"));
    cJSON_Delete(m);
    test_run_fini(&r);

    /* A changed byte in the baseline's report is found although the manifest is whole. */
    test_write_text(base, "results/s/p.json", "{}\n");
    char *again = test_join(p.dir, "out2");
    const char *const third[] = {
        "run", "g", "--out", again, "--baseline", base, "--baseline-sha256", hex, NULL};

    project_cleanrun(&p, third, NULL, &r);
    assert_int_equal(r.code, 5); /* the named manifest, and other evidence beside it */
    assert_non_null(strstr(r.err, "reviewed baseline content differs: results/s/p.json"));
    test_run_fini(&r);
    free(again);
    free(out);
    free(base);
    project_free(&p);
}

/* A program's own end is evidence: FAIL, exit 4. */
static void check_fail(const char *behaviour, const char *fault, const char *report_status)
{
    struct project p;
    struct test_run r;

    project_new(&p, behaviour, NULL);
    project_measure(&p, NULL, &r);
    if (r.code != 4)
        print_error("%s: %s%s\n", behaviour, r.out, r.err);
    assert_int_equal(r.code, 4);
    assert_fault(&r, fault);
    cJSON *m = project_manifest(&p);

    assert_string_equal(text_at(m, "status"), "FAIL");
    assert_string_equal(text_at(m, "report_status"), report_status);
    assert_false(project_has(&p, "error.json"));
    /* acceptance by the run's own policy hides no other fault */
    cJSON *host = project_json(&p, "host.json");
    const cJSON *faults = json_get(host, "faults");

    assert_true(json_is_integer(faults));
    assert_true(strcmp(fault, "acceptance failed") == 0 ? faults->valueint == 0
                                                        : faults->valueint >= 1);
    cJSON_Delete(host);
    cJSON_Delete(m);
    test_run_fini(&r);
    project_free(&p);
}

static void run_fails_when_the_program_dies_of_its_own_signal(void **state)
{
    (void) state;
    check_fail("segv", "signal 11", "CAPTURED");
    check_fail("abort", "signal 6", "CAPTURED");
}

/* The program's own doing is never an ERROR of the machine, and its logs are kept. */
static void run_fails_when_the_results_cannot_be_packaged(void **state)
{
    (void) state;
    check_fail("results-directory", "report MISSING", "MISSING");
    check_fail("results-case",
               "2 entries below the results directory can't be packaged and were removed",
               "MISSING");
    check_fail("results-huge", "too large): results/s/huge.json", "CAPTURED");
    check_fail("results-ours", "wrote <report>.as-written itself", "INVALID");
    check_fail("results-ours-directory", "wrote <report>.as-written itself", "INVALID");
    check_fail("results-abyss",
               "1 entry below the results directory can't be packaged and was removed", "CAPTURED");
    check_fail("results-huge",
               "1 entry below the results directory can't be packaged and was removed", "CAPTURED");
}

/* What the program does to the directories around it is the program's fault, not the machine's. */
static void run_fails_when_the_program_breaks_its_places(void **state)
{
    (void) state;
    check_fail("places-renamed", "removed or replaced its results directory", "MISSING");
    check_fail("places-file", "removed or replaced its results directory", "MISSING");
    check_fail("places-link", "removed or replaced its results directory", "MISSING");
    check_fail("places-stray", "outside its results directory", "CAPTURED");
    check_fail("places-definition", "changed definition.json", "CAPTURED");
    check_fail("places-log", "outside its results directory", "CAPTURED");
    check_fail("places-log-gone", "removed or changed run.log", "CAPTURED");
    check_fail("places-log-cut", "removed or changed run.log", "CAPTURED");
    check_fail("places-build-gone", "removed or changed build.log", "CAPTURED");
    check_fail("places-build-faked", "removed or changed build.log", "CAPTURED");
    check_fail("places-build-huge", "removed or changed build.log", "CAPTURED");
    check_fail("places-build-linked", "removed or changed build.log", "CAPTURED");
    check_fail("places-build-twice", "removed or changed build.log", "CAPTURED");
    check_fail("places-closed", "permissions of the run directory", "CAPTURED");
    check_fail("places-run", "moved or removed the run directory", "MISSING");
}

static void more_results_than_a_package_takes_are_removed(void **state)
{
    char *dir = test_dir_new();
    struct file_list left = {.n = 0};
    struct err e = ERR_INIT;
    struct name_list removed = {.n = 0};
    int fd = -1;

    (void) state;
    for (int i = 0; i < 2100; i++) {
        char name[64];

        (void) snprintf(name, sizeof name, "results/s/%d.json", i);
        test_write_text(dir, name, "{}");
    }
    assert_int_equal(file_open_dir(dir, &fd, &e), 0);
    assert_int_equal(report_clean_results(fd, &removed, &e), 0);
    assert_int_equal(file_list_at(fd, LIMIT_MEMBERS, &left, &e), 0);
    assert_true(removed.n > 0);
    assert_non_null(strstr(removed.text, "results/s/"));
    assert_int_equal(left.n + removed.n, 2100);
    assert_true(2 * left.n < LIMIT_MEMBERS); /* a baseline's as many fit beside them */
    file_list_fini(&left);
    (void) close(fd);
    test_dir_free(dir);
}

/* Empty directories are no results, however deep. */
static void run_forgets_empty_directories(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "results-deep", NULL);
    project_measure(&p, NULL, &r);
    if (r.code != 3)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 3); /* no baseline */
    cJSON *m = project_manifest(&p);

    assert_string_equal(text_at(m, "status"), "PASS");
    cJSON_Delete(m);
    test_run_fini(&r);
    project_free(&p);
}

static void run_fails_when_the_program_exits_non_zero(void **state)
{
    (void) state;
    check_fail("exit3", "exited with 3", "CAPTURED");
}

static void run_fails_without_a_report(void **state) /* RUN-13 */
{
    (void) state;
    check_fail("no-report", "report MISSING", "MISSING");
}

static void run_fails_with_a_malformed_report(void **state)
{
    (void) state;
    check_fail("bad-json", "report INVALID", "INVALID");
    check_fail("array", "report INVALID", "INVALID");
    check_fail("own-resources", "sampling.into", "INVALID");
}

static void run_fails_when_the_source_is_edited_meanwhile(void **state) /* RUN-15 */
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "edit-source, REPO", NULL);
    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 4);
    assert_fault(&r, "the source changed during the run: ");
    assert_fault(&r, ".gitignore");
    cJSON *m = project_manifest(&p);

    assert_string_equal(text_at(m, "status"), "FAIL");
    assert_true(cJSON_IsFalse(json_get(json_get(m, "source"), "unchanged")));
    cJSON_Delete(m);
    test_run_fini(&r);
    project_free(&p);
}

static void run_fails_acceptance_with_every_check_listed(void **state)
{
    (void) state;
    check_fail("wrong", "acceptance failed", "CAPTURED");
}

static void run_fails_without_required_markers(void **state) /* RUN-16 */
{
    (void) state;
    check_fail("no-markers", "window_start", "CAPTURED");
}

static void run_fails_when_results_cannot_be_packaged(void **state)
{
    (void) state;
    check_fail("other-name", "can't be packaged", "CAPTURED");
}

/* Anything else that ends it is ERROR: logs and error.json are kept, and no manifest. */
static void check_error(const struct project *p, const struct test_run *r, int code,
                        const char *words)
{
    if (r->code != code)
        print_error("%s%s\n", r->out, r->err);
    assert_int_equal(r->code, code);
    assert_true(project_has(p, "error.json"));
    assert_false(project_has(p, "manifest.json"));
    cJSON *j = project_json(p, "error.json");

    if (!strstr(text_at(j, "text"), words))
        print_error("'%s' is not in '%s'\n", words, text_at(j, "text"));
    assert_non_null(strstr(text_at(j, "text"), words));
    assert_string_equal(text_at(j, "verdict"), "ERROR");
    cJSON_Delete(j);
}

static void run_is_an_error_on_time_out(void **state)
{
    struct project p;
    struct test_run r;
    char *path, *text;

    (void) state;
    project_new(&p, "sleep", NULL);
    path = test_join(p.repo, "cleanrun.yaml");
    text = test_read_path(path, NULL);
    memcpy(strstr(text, "timeout: 20s"), "timeout: 2s ", 12);
    test_write_text(p.repo, "cleanrun.yaml", text);
    project_measure(&p, NULL, &r);
    check_error(&p, &r, 6, "timed out");
    test_run_fini(&r);
    free(text);
    free(path);
    project_free(&p);
}

/* A runner that was stopped or not scheduled knows nothing of that time: never the program's
 * failure, and never a green either. On a machine so busy that the short stop lasts half a second,
 * the sum of stalls may tell it before the window's boundary does: test_pace.c has each alone. */
static void run_that_stood_still_is_no_fail(void **state)
{
    static const char *const behaviours[] = {"stop-runner-long", "stop-runner-wrong"};
    static const char *const words[] = {"the runner itself stood still for 1.",
                                        "the runner itself "};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(behaviours); i++) {
        struct project p;
        struct test_run r;

        project_new(&p, behaviours[i], NULL);
        project_measure(&p, NULL, &r);
        check_error(&p, &r, 6, words[i]);
        test_run_fini(&r);
        project_free(&p);
    }
}

static void run_is_an_error_when_the_build_fails(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    test_write_text(p.repo, "workload.c", "int main(void) { return undefined; }\n");
    project_measure(&p, NULL, &r);
    check_error(&p, &r, 6, "the build failed");
    assert_true(project_has(&p, "build.log"));
    test_run_fini(&r);
    project_free(&p);
}

/* The workload of this test's own repository, found by its argument; 0 when it does not run. */
static pid_t find_workload(const char *behaviour, const char *mark)
{
    for (pid_t pid = 2; pid < 4194304; pid++) {
        char path[64], line[512];
        int fd;
        ssize_t n;

        if (kill(pid, 0) < 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/cmdline", (int) pid);
        fd = open(path, O_RDONLY);
        if (fd < 0)
            continue;
        n = read(fd, line, sizeof line - 1);
        close(fd);
        if (n <= 0)
            continue;
        line[n] = '\0';
        if (strstr(line, "workload") && (size_t) n > strlen(line) + 1 &&
            !strcmp(line + strlen(line) + 1, behaviour) &&
            (!mark || memmem(line, (size_t) n, mark, strlen(mark))))
            return pid;
    }
    return 0;
}

static void run_is_an_error_when_the_program_is_killed_from_outside(void **state)
{
    struct project p;
    pid_t runner, workload = 0;
    int status = 0;

    (void) state;
    /* The repository's path is an argument, so that this test finds its own workload and no
     * other's. */
    project_new(&p, "sleep, REPO", NULL);
    runner = project_start(&p);
    for (int i = 0; i < 600 && !workload; i++) {
        test_pause_ms(50);
        workload = find_workload("sleep", p.repo) ? find_workload("sleep", p.repo) : 0;
    }
    assert_true(workload > 0);
    assert_int_equal(kill(workload, SIGKILL), 0);
    assert_int_equal(waitpid(runner, &status, 0), runner);
    assert_true(WIFEXITED(status));
    struct test_run r = {.code = WEXITSTATUS(status), .out = strdup(""), .err = strdup("")};

    check_error(&p, &r, 6, "killed from outside: SIGKILL");
    test_run_fini(&r);
    project_free(&p);
}

static void run_interrupted_ends_with_130_and_no_workload(void **state)
{
    struct project p;
    pid_t runner, workload = 0;
    int status = 0;

    (void) state;
    project_new(&p, "sleep, REPO", NULL);
    runner = project_start(&p);
    for (int i = 0; i < 600 && !workload; i++) {
        test_pause_ms(50);
        workload = find_workload("sleep", p.repo);
    }
    assert_true(workload > 0);
    assert_int_equal(kill(runner, SIGINT), 0);
    assert_int_equal(waitpid(runner, &status, 0), runner);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 130);
    assert_int_equal(find_workload("sleep", p.repo), 0);
    assert_true(project_has(&p, "error.json"));
    assert_false(project_has(&p, "manifest.json"));
    project_free(&p);
}

static void run_refuses_overrides_before_any_build(void **state) /* RUN-05, 06, 08, 10, 11 */
{
    static const char *const names[] = {"RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_INCREMENTAL",
                                        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
                                        "MIMALLOC_PAGE_RESET"};
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    char *out = project_out(&p, "");

    out[strlen(out) - 1] = '\0';
    const char *const args[] = {"run", "g", "--out", out, NULL};

    for (size_t i = 0; i < 5; i++) {
        char *assignment = NULL, *words = NULL;

        assert_true(asprintf(&assignment, "%s=", names[i]) > 0);
        assert_true(asprintf(&words, "noncanonical build/allocator override is set: %s", names[i]) >
                    0);
        const char *const env[] = {assignment, NULL};

        project_cleanrun(&p, args, env, &r);
        assert_int_equal(r.code, 2);
        assert_non_null(strstr(r.err, words));
        assert_false(project_has(&p, ""));
        test_run_fini(&r);
        free(words);
        free(assignment);
    }
    const char *const both[] = {"RUSTFLAGS=-Copt-level=0", "MIMALLOC_PAGE_RESET=", NULL};

    project_cleanrun(&p, args, both, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "MIMALLOC_PAGE_RESET, RUSTFLAGS"));
    test_run_fini(&r);
    free(out);
    project_free(&p);
}

static void run_gives_the_program_only_the_definitions_environment(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "environment", NULL);
    char *out = project_out(&p, "");

    out[strlen(out) - 1] = '\0';
    const char *const args[] = {"run", "g", "--out", out, NULL};
    const char *const env[] = {"SECRET_OF_THE_CALLER=1", "MALLOC_ARENA_MAX=1", NULL};

    project_cleanrun(&p, args, env, &r);
    assert_int_equal(r.code, 3);
    char *path = project_out(&p, "run.log");
    char *log = test_read_path(path, NULL);

    assert_null(strstr(log, "SECRET_OF_THE_CALLER"));
    assert_null(strstr(log, "MALLOC_ARENA_MAX"));
    assert_non_null(strstr(log, "\nTZ=UTC\n"));
    assert_non_null(strstr(log, "\nCLEANRUN_PHASE_FD=3\n"));
    assert_non_null(strstr(log, "\nCLEANRUN_MODE=clean\n"));
    assert_non_null(strstr(log, "\nCLEANRUN_SOURCE_SHA256="));
    free(log);
    free(path);
    test_run_fini(&r);
    free(out);
    project_free(&p);
}

/* What the definition sets may name the run's places; the record keeps the words, not this
 * machine's paths. */
static void run_fills_in_the_places_that_variables_name(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p,
                "environment]\n      env:\n        set: {WHERE: '{results}/x', EXE: "
                "'{executable}', PLAIN: '{other}'}\n"
                "        allow: [PATH",
                NULL);
    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 3);
    char *path = project_out(&p, "run.log");
    char *log = test_read_path(path, NULL);
    cJSON *record = project_json(&p, "environment.json");
    const cJSON *set = json_get(json_get(record, "run"), "set");

    assert_non_null(strstr(log, "\nWHERE={run}/results/x\n"));
    assert_non_null(strstr(log, "\nEXE={source}/workload\n"));
    assert_non_null(strstr(log, "\nPLAIN={other}\n"));
    assert_string_equal(text_at(set, "WHERE"), "{results}/x");
    assert_string_equal(text_at(set, "EXE"), "{executable}");
    cJSON_Delete(record);
    free(log);
    free(path);
    test_run_fini(&r);
    project_free(&p);
}

/* What the definition lets through changes the program, so the evidence holds it and another value
 * is another experiment. */
static void run_records_what_the_definition_lets_through(void **state)
{
    static const char *const names[] = {"first", "second", "third"};
    static const char *const flags[] = {"FLAGS=-O2 -I/home/somebody/include", "FLAGS=-O0",
                                        "FLAGS=-O0"};
    struct project p;
    char *dirs[3], *digest = NULL;

    (void) state;
    project_new(&p, "ok]\n      env:\n        allow: [PATH, HOME, FLAGS, THREADS", NULL);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *const env[] = {flags[i], "HOME=/home/somebody", "UNNAMED=1", NULL};
        const char *args[] = {"run", "g", "--out", NULL, NULL, NULL, NULL, NULL, NULL};
        struct test_run r;

        dirs[i] = test_join(p.dir, names[i]);
        args[3] = dirs[i];
        if (i == 2) {
            args[4] = "--baseline";
            args[5] = dirs[0];
            args[6] = "--baseline-sha256";
            args[7] = digest;
        }
        project_cleanrun(&p, args, env, &r);
        if (r.code != 3)
            fail_msg("exit %d\n%s", r.code, r.err);
        if (i == 2)
            assert_non_null(strstr(r.err, "NC-IDENTITY-DIFFERS"));
        test_run_fini(&r);
        char *path = test_join(dirs[i], "manifest.json");
        size_t len = 0;
        char *text = test_read_path(path, &len);
        cJSON *m = NULL;
        struct err e = ERR_INIT;

        assert_int_equal(json_parse(text, len, NULL, &m, &e), 0);
        const cJSON *environment = json_get(m, "environment");

        assert_string_equal(text_at(environment, "FLAGS"),
                            i ? "-O0" : "-O2 -I{home}/include"); /* no personal path is hashed */
        assert_string_equal(text_at(environment, "HOME"), "{home}");
        assert_non_null(text_at(environment, "PATH"));
        assert_null(json_get(environment, "THREADS"));
        assert_null(json_get(environment, "UNNAMED"));
        assert_non_null(text_at(json_get(json_get(m, "build"), "environment"), "PATH"));
        assert_null(json_get(json_get(json_get(m, "build"), "environment"), "FLAGS"));
        assert_null(strstr(text, "somebody"));
        if (i == 0) {
            struct digest d = digest_of(text, len);

            digest = calloc(1, DIGEST_HEX_SIZE);
            assert_non_null(digest);
            digest_hex(&d, digest);
        }
        json_free(m);
        free(text);
        free(path);
    }
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        free(dirs[i]);
    free(digest);
    project_free(&p);
}

/* The program is told which source it was built from, and its report must say the same. */
static void run_demands_the_fingerprint_where_the_definition_asks(void **state)
{
    static const struct {
        const char *behaviour;
        int code;
        const char *fault;
    } rows[] = {
        {"fingerprint", 3, NULL}, /* no baseline */
        {"other-fingerprint", 4, "another source fingerprint"},
        {"ok", 4, "another source fingerprint"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct project p;
        struct test_run r;
        char *words = NULL;

        assert_true(asprintf(&words,
                             "%s]\n      report_fingerprint: /source\n      env:\n"
                             "        allow: [PATH",
                             rows[i].behaviour) > 0);
        project_new(&p, words, NULL);
        project_measure(&p, NULL, &r);
        if (r.code != rows[i].code)
            fail_msg("%s: exit %d\n%s%s", rows[i].behaviour, r.code, r.out, r.err);
        if (rows[i].fault)
            assert_fault(&r, rows[i].fault);
        test_run_fini(&r);
        free(words);
        project_free(&p);
    }
}

/* A program may make its own fingerprint by a scheme that cleanrun knows: then the run's is made by
 * that one. */
static void run_fingerprints_by_the_scheme_of_the_definition(void **state)
{
    struct project p;
    struct test_run r;
    struct err e = ERR_INIT;
    cJSON *own = NULL;

    (void) state;
    project_new(&p, "ok]\n      source_scheme: rvoip-v1\n      env:\n        allow: [PATH", NULL);
    const char *const args[] = {"fingerprint", "--scheme", "rvoip-v1", "--json", NULL};

    project_cleanrun(&p, args, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_int_equal(json_parse(r.out, r.out_len, NULL, &own, &e), 0);
    test_run_fini(&r);
    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 3);
    test_run_fini(&r);
    cJSON *m = project_manifest(&p);
    const cJSON *source = json_get(m, "source");

    assert_string_equal(text_at(json_get(source, "start"), "scheme"), "rvoip-v1");
    assert_string_equal(text_at(json_get(source, "end"), "scheme"), "rvoip-v1");
    assert_string_equal(text_at(json_get(source, "start"), "fingerprint"),
                        text_at(own, "fingerprint"));
    cJSON_Delete(own);
    cJSON_Delete(m);
    project_free(&p);
}

/* Refused before the build, not found out when the evidence is written. */
static void run_refuses_variables_that_cant_be_recorded(void **state)
{
    static const char *const env[] = {"FLAGS=\xff", NULL};
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok]\n      env:\n        allow: [PATH, FLAGS", NULL);
    char *out = test_join(p.dir, "out");
    const char *const args[] = {"run", "g", "--out", out, NULL};

    project_cleanrun(&p, args, env, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "FLAGS"));
    assert_false(project_has(&p, ""));
    test_run_fini(&r);
    free(out);
    project_free(&p);
}

/* What pushing needs is missed before the build, not after the measurement. */
static void run_to_push_checks_server_and_token_first(void **state)
{
    static const struct {
        const char *option, *value, *words;
        int code;
    } rows[] = {
        {NULL, NULL, "which server?", 2},
        {"--server", "http://127.0.0.1:9", "which token?", 2},
        {"--token-file", "/nonexistent", "which server?", 2},
    };
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    char *out = test_join(p.dir, "out");
    char *keys = test_join(p.dir, "keys");
    char *key = test_join(keys, "key.pem");
    const char *const gen[] = {"key", "gen", "--out", keys, NULL};

    project_cleanrun(&p, gen, NULL, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *const args[] = {"run", "g",      "--out",        out,           "--key",
                                    key,   "--push", rows[i].option, rows[i].value, NULL};

        project_cleanrun(&p, args, NULL, &r);
        if (r.code != rows[i].code || !strstr(r.err, rows[i].words))
            fail_msg("row %zu: exit %d\n%s%s", i, r.code, r.out, r.err);
        assert_false(project_has(&p, ""));
        test_run_fini(&r);
    }
    free(key);
    free(keys);
    free(out);
    project_free(&p);
}

static void run_ends_orphans_with_the_program(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "orphan, REPO", NULL);
    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 3);
    assert_int_equal(find_workload("orphan", p.repo), 0);
    cJSON *host = project_json(&p, "host.json");

    assert_true(json_get(json_get(host, "usage"), "processes_left_behind")->valuedouble >= 1);
    cJSON_Delete(host);
    test_run_fini(&r);
    project_free(&p);
}

static void run_build_only_exits_7(void **state)
{
    static const char *const args[] = {"--build-only", NULL};
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    project_measure(&p, args, &r);
    assert_int_equal(r.code, 7);
    cJSON *m = project_manifest(&p);

    assert_string_equal(text_at(m, "status"), "BUILD_ONLY");
    assert_string_equal(text_at(m, "report_status"), "NOT_EXPECTED");
    assert_true(cJSON_IsObject(json_get(m, "executable")));
    cJSON_Delete(m);
    test_run_fini(&r);
    project_free(&p);
}

#define MODES                                                                                      \
    "    modes:\n"                                                                                 \
    "      memory: {command: [env], env: {set: {RETENTION: '1'}}, output: [heap.txt]}\n"           \
    "      boundary: {command: [sh, -c, 'echo heap > \"$0\"; exec \"$@\"', "                       \
    "'{profile}/heap.txt'], output: [heap.txt]}\n"                                                 \
    "      cpu: {tool: no-such-profiler}\n"                                                        \
    "      timing: {command: [env], debug_info: true}\n"

static void diagnostic_modes_never_end_green(void **state)
{
    static const char *const poor[] = {"--mode", "memory", NULL};
    static const char *const no_tool[] = {"--mode", "cpu", NULL};
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", MODES);
    project_measure(&p, no_tool, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "no-such-profiler"));
    assert_false(project_has(&p, ""));
    test_run_fini(&r);
    /* The control: a clean run of the same program. */
    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 3);
    test_run_fini(&r);
    char *control = test_join(p.dir, "control"), *made = project_out(&p, "");

    made[strlen(made) - 1] = '\0';
    assert_int_equal(rename(made, control), 0);
    const char *const sound[] = {"--mode", "boundary", "--control", control, NULL};

    project_measure(&p, sound, &r);
    if (r.code != 7)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 7);
    cJSON *m = project_manifest(&p);

    assert_string_equal(text_at(m, "mode"), "boundary");
    assert_string_equal(text_at(m, "status"), "PASS");
    assert_string_equal(text_at(m, "acceptance_status"), "NOT_APPLICABLE");
    assert_true(strlen(text_at(m, "control")) == 25);
    assert_true(project_has(&p, "profile/heap.txt"));
    cJSON_Delete(m);
    test_run_fini(&r);

    /* Another source: the same control does not fit. */
    const char *const away[] = {"rm", "-rf", made, NULL};

    test_run(away, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    test_write_text(p.repo, "untracked", "1");
    project_measure(&p, sound, &r);
    assert_int_equal(r.code, 7);
    m = project_manifest(&p);
    assert_true(cJSON_IsNull(json_get(m, "control")));
    assert_non_null(strstr(r.out, "unpaired: it measured another source"));
    cJSON_Delete(m);
    test_run_fini(&r);
    free(made);
    free(control);

    /* A profiler that leaves nothing makes a FAIL of the run. */
    char *out = project_out(&p, "");
    const char *const rm[] = {"rm", "-rf", out, NULL};

    test_run(rm, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    project_measure(&p, poor, &r);
    assert_int_equal(r.code, 4);
    assert_fault(&r, "heap.txt");
    test_run_fini(&r);
    free(out);
    project_free(&p);
}

static void a_profile_needs_debug_information_when_the_mode_says_so(void **state)
{
    static const char *const timing[] = {"--mode", "timing", NULL};
    struct project p;
    struct test_run r;
    char *path, *text;

    (void) state;
    project_new(&p, "ok", MODES);
    project_measure(&p, timing, &r);
    assert_int_equal(r.code, 7);
    test_run_fini(&r);
    char *out = project_out(&p, "");
    const char *const away[] = {"rm", "-rf", out, NULL};

    test_run(away, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    path = test_join(p.repo, "cleanrun.yaml");
    text = test_read_path(path, NULL);
    memcpy(strstr(text, "-g, -o"), "-s, -o", 6);
    test_write_text(p.repo, "cleanrun.yaml", text);
    project_measure(&p, timing, &r);
    check_error(&p, &r, 6, "debug information");
    test_run_fini(&r);
    free(text);
    free(path);
    free(out);
    project_free(&p);
}

static void run_at_a_revision_leaves_the_work_tree_out(void **state)
{
    static const char *const args[] = {"--at", "main", NULL};
    static const char *const unknown[] = {"--at", "no-such-branch", NULL};
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    test_write_text(p.repo, "workload.c", "this does not compile\n");
    project_measure(&p, unknown, &r);
    assert_int_equal(r.code, 2);
    test_run_fini(&r);
    project_measure(&p, args, &r);
    if (r.code != 3)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 3);
    cJSON *m = project_manifest(&p);

    assert_true(cJSON_IsFalse(json_get(json_get(json_get(m, "source"), "start"), "dirty")));
    cJSON_Delete(m);
    test_run_fini(&r);
    project_free(&p);
}

static void out_inside_the_work_tree_must_be_ignored(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    char *seen = test_join(p.repo, "runs/a");
    char *hidden = test_join(p.repo, "ignored/a");
    const char *const bad[] = {"run", "g", "--out", seen, NULL};
    const char *const good[] = {"run", "g", "--out", hidden, NULL};

    project_cleanrun(&p, bad, NULL, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "inside the work tree"));
    test_run_fini(&r);
    project_cleanrun(&p, good, NULL, &r);
    assert_int_equal(r.code, 3);
    test_run_fini(&r);
    free(seen);
    free(hidden);
    project_free(&p);
}

static void one_measurement_at_a_time(void **state)
{
    struct project p;
    struct test_run r;
    pid_t runner;
    int status = 0;

    (void) state;
    project_new(&p, "sleep, REPO", NULL);
    runner = project_start(&p);
    for (int i = 0; i < 600 && !find_workload("sleep", p.repo); i++)
        test_pause_ms(50);
    char *other = test_join(p.dir, "other");
    const char *const args[] = {"run", "g", "--out", other, NULL};

    project_cleanrun(&p, args, NULL, &r);
    assert_int_equal(r.code, 6);
    assert_non_null(strstr(r.err, "another measurement is active"));
    kill(runner, SIGTERM);
    assert_int_equal(waitpid(runner, &status, 0), runner);
    test_run_fini(&r);
    free(other);
    project_free(&p);
}

#define CONDITIONED(step)                                                                          \
    "    conditioning:\n"                                                                          \
    "      - {name: warm, command: [" step "], value: {rate: 30}}\n"

static void conditioning_is_run_and_recorded_and_stops_the_run_when_it_fails(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", CONDITIONED("'{executable}', ok"));
    project_measure(&p, NULL, &r);
    /* The step wrote a report of its own; it is not the measured one, which was written later. */
    assert_int_equal(r.code, 3);
    cJSON *m = project_manifest(&p);
    const cJSON *steps = json_get(json_get(m, "conditioning"), "steps");

    assert_int_equal(cJSON_GetArraySize(steps), 1);
    assert_string_equal(text_at(steps->child, "name"), "warm");
    cJSON_Delete(m);
    test_run_fini(&r);
    project_free(&p);

    project_new(&p, "ok", CONDITIONED("'false'"));
    project_measure(&p, NULL, &r);
    check_error(&p, &r, 6, "conditioning step 'warm' failed");
    test_run_fini(&r);
    project_free(&p);
}

static void host_limits_and_noise_are_errors(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", "    host: {limits: [{fact: architecture, equals: z80}]}\n");
    project_measure(&p, NULL, &r);
    check_error(&p, &r, 6, "architecture");
    test_run_fini(&r);
    project_free(&p);

    project_new(&p, "ok", "    host: {quiet: {max_load: -1}}\n");
    project_measure(&p, NULL, &r);
    check_error(&p, &r, 6, "not quiet enough");
    test_run_fini(&r);
    project_free(&p);
}

static void unknown_gate_and_mode_are_usage(void **state)
{
    static const char *const args[] = {"run", "gg", NULL};
    static const char *const mode[] = {"--mode", "cpu", NULL};
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    project_cleanrun(&p, args, NULL, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "no gate 'gg'; there are: g"));
    test_run_fini(&r);
    project_measure(&p, mode, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "defines no mode 'cpu'"));
    test_run_fini(&r);
    project_free(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_without_baseline_is_evidence_and_non_comparable),
        cmocka_unit_test(run_against_a_baseline_is_ok),
        cmocka_unit_test(run_fails_when_the_program_dies_of_its_own_signal),
        cmocka_unit_test(run_fails_when_the_program_exits_non_zero),
        cmocka_unit_test(run_fails_when_the_results_cannot_be_packaged),
        cmocka_unit_test(run_fails_when_the_program_breaks_its_places),
        cmocka_unit_test(more_results_than_a_package_takes_are_removed),
        cmocka_unit_test(run_forgets_empty_directories),
        cmocka_unit_test(run_fails_without_a_report),
        cmocka_unit_test(run_fails_with_a_malformed_report),
        cmocka_unit_test(run_fails_when_the_source_is_edited_meanwhile),
        cmocka_unit_test(run_fails_acceptance_with_every_check_listed),
        cmocka_unit_test(run_that_stood_still_is_no_fail),
        cmocka_unit_test(run_fails_without_required_markers),
        cmocka_unit_test(run_fails_when_results_cannot_be_packaged),
        cmocka_unit_test(run_is_an_error_on_time_out),
        cmocka_unit_test(run_is_an_error_when_the_build_fails),
        cmocka_unit_test(run_is_an_error_when_the_program_is_killed_from_outside),
        cmocka_unit_test(run_interrupted_ends_with_130_and_no_workload),
        cmocka_unit_test(run_refuses_overrides_before_any_build),
        cmocka_unit_test(run_gives_the_program_only_the_definitions_environment),
        cmocka_unit_test(run_records_what_the_definition_lets_through),
        cmocka_unit_test(run_fingerprints_by_the_scheme_of_the_definition),
        cmocka_unit_test(run_refuses_variables_that_cant_be_recorded),
        cmocka_unit_test(run_demands_the_fingerprint_where_the_definition_asks),
        cmocka_unit_test(run_fills_in_the_places_that_variables_name),
        cmocka_unit_test(run_to_push_checks_server_and_token_first),
        cmocka_unit_test(run_ends_orphans_with_the_program),
        cmocka_unit_test(run_build_only_exits_7),
        cmocka_unit_test(diagnostic_modes_never_end_green),
        cmocka_unit_test(a_profile_needs_debug_information_when_the_mode_says_so),
        cmocka_unit_test(run_at_a_revision_leaves_the_work_tree_out),
        cmocka_unit_test(out_inside_the_work_tree_must_be_ignored),
        cmocka_unit_test(one_measurement_at_a_time),
        cmocka_unit_test(conditioning_is_run_and_recorded_and_stops_the_run_when_it_fails),
        cmocka_unit_test(host_limits_and_noise_are_errors),
        cmocka_unit_test(unknown_gate_and_mode_are_usage),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/cmd_run", tests, NULL, NULL);
}
