/* What a first user gets wrong: a definition whose mistake only the build or the start shows, a
 * repository that is no source yet, a first run that nothing could be compared with. Each is
 * refused with its place and its way out. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_in.h"
#include "tests/runner/project.h"

/* A project whose definition has `from` replaced by `to`. */
static void changed(struct project *p, const char *from, const char *to)
{
    project_new(p, "ok", NULL);
    project_edit(p, from, to);
}

static void assert_told(const struct test_run *r, int code, const char *words)
{
    if (r->code != code || !strstr(r->err, words))
        print_error("exit %d, expected '%s'\nout: %s\nerr: %s\n", r->code, words, r->out, r->err);
    assert_int_equal(r->code, code);
    assert_non_null(strstr(r->err, words));
}

/* Exit 2 with the place, and no directory that looks like a run. */
static void refused(const char *from, const char *to, const char *words)
{
    struct project p;
    struct test_run r;
    struct stat st;
    char *out;

    changed(&p, from, to);
    project_cleanrun(&p,
                     (const char *const[]){"run", "g", "--out", (out = project_out(&p, "")), NULL},
                     NULL, &r);
    out[strlen(out) - 1] = '\0';
    assert_told(&r, 2, words);
    assert_int_equal(stat(out, &st), -1);
    free(out);
    test_run_fini(&r);
    project_free(&p);
}

static void mistakes_of_the_definition_are_told_with_their_place(void **state)
{
    (void) state;
    refused("path: workload}", "path: build/workload}",
            "cleanrun.yaml:8:32: the build left no 'workload', the program that build.executable "
            "names");
    refused("path: workload}", "path: workload.c}",
            "cleanrun.yaml:8:32: 'workload.c' is not executable");
    refused("command: [cc,", "command: [no-such-compiler,",
            "cleanrun.yaml:7:7: no program 'no-such-compiler'");
    refused("toolchain: [cc,", "toolchain: [no-such-compiler,",
            "cleanrun.yaml:9:7: build.toolchain: no program 'no-such-compiler'");
    refused("command: ['{executable}', ok", "command: [no-such-runner, '{executable}', ok",
            "cleanrun.yaml:13:7: no program 'no-such-runner'");
    refused("    phases:\n",
            "    conditioning:\n      - {name: warm, command: [no-such-step]}\n    phases:\n",
            "cleanrun.yaml:17:22: no program 'no-such-step'");
    refused("    phases:\n",
            "    conditioning:\n      - {name: warm, command: [cc], proof: {report: w.json, equal: "
            "['/a/*', /b]}}\n    phases:\n",
            "cleanrun.yaml:17:61: conditioning step 'warm': '/a/*' names more than one value");
    refused("worse: higher,", "worse: lower, floor: 5,",
            "cleanrun.yaml:30:67: a gated metric that is worse when lower can't have a floor");
    refused("gated: true}\n",
            "gated: true}\n        - {path: /results/n, unit: items, worse: higher, tolerance_pct: "
            "1}\n",
            "cleanrun.yaml:31:12: '/results/n' is listed twice");
    refused("      report: s/p.json\n", "      report: s/p.json\n      workdir: no/such\n",
            "no/such");
    refused("      report: s/p.json\n", "      report: s/p.json\n      workdir: ../x\n",
            "'../x' must lie below the root of the source");
}

static void a_script_is_told_how_its_interpreter_is_measured(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    changed(&p, "path: workload}", "path: bench.sh}");
    test_write_text(p.repo, "bench.sh", "#!/bin/sh\n");
    char *script = test_join(p.repo, "bench.sh");

    assert_int_equal(chmod(script, 0755), 0);
    project_cleanrun(&p, (const char *const[]){"run", "g", NULL}, NULL, &r);
    assert_told(&r, 2, "cleanrun.yaml:8:32: 'bench.sh' is a script");
    assert_non_null(strstr(r.err, "command: [cp, /usr/bin/python3, build/py]"));
    assert_non_null(strstr(r.err, "['{executable}', bench.sh]"));
    free(script);
    test_run_fini(&r);
    project_free(&p);
}

static void a_failed_build_shows_the_end_of_its_log(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    changed(&p, "command: [cc, -O1, -g, -o, workload, workload.c]",
            "command: [sh, -c, 'seq 1 40; printf \"\\033[1mbold\\n\" >&2; exit 3']");
    project_cleanrun(&p, (const char *const[]){"run", "g", NULL}, NULL, &r);
    assert_told(&r, 6, "the build failed: 'sh' exited with 3");
    assert_non_null(strstr(r.err, "the end of build.log:\n  | "));
    assert_non_null(strstr(r.err, "  | 40\n"));
    assert_non_null(strstr(r.err, "  | ?[1mbold\n"));
    assert_null(strstr(r.err, "  | 20\n")); /* fifteen lines, not all */
    test_run_fini(&r);
    project_cleanrun(&p, (const char *const[]){"run", "g", "--json", NULL}, NULL, &r);
    assert_int_equal(r.code, 6);
    assert_null(strstr(r.err, "  | "));
    test_run_fini(&r);
    project_free(&p);
}

static void a_repository_without_a_commit_is_told_to_commit(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    project_git(&p, (const char *const[]){"checkout", "-q", "--orphan", "unborn", NULL});
    project_cleanrun(&p, (const char *const[]){"run", "g", NULL}, NULL, &r);
    assert_told(&r, 2, "this repository has no commit yet");
    test_run_fini(&r);
    project_cleanrun(&p, (const char *const[]){"fingerprint", NULL}, NULL, &r);
    assert_told(&r, 2, "commit first (git add . && git commit)");
    test_run_fini(&r);
    project_free(&p);
}

static void a_foreign_owner_is_told_gits_remedy(void **state)
{
    struct project p;
    struct test_run r;
    char *remedy = NULL;

    (void) state;
    if (geteuid() != 0)
        skip(); /* only root makes files of another owner */
    project_new(&p, "ok", NULL);
    assert_int_equal(chown(p.repo, 12345, 12345), 0);
    project_cleanrun(&p, (const char *const[]){"run", "g", NULL},
                     (const char *const[]){"GIT_CONFIG_GLOBAL=/dev/null", NULL}, &r);
    assert_true(asprintf(&remedy, "git config --global --add safe.directory %s", p.repo) >= 0);
    assert_told(&r, 2, remedy);
    assert_non_null(strstr(r.err, "dubious ownership"));
    free(remedy);
    test_run_fini(&r);
    project_free(&p);
}

/* A run that passes, and the reasons why it is no baseline, as text and as JSON; words NULL: it
 * could be one. */
static void first_run(const char *from, const char *to, const char *code, const char *words)
{
    struct project p;
    struct test_run r;

    changed(&p, from, to);
    project_git(
        &p, (const char *const[]){"commit", "-q", "-a", "--allow-empty", "-m", "mistake", NULL});
    project_cleanrun(&p, (const char *const[]){"run", "g", "--at", "HEAD", NULL}, NULL, &r);
    assert_told(&r, 3, words ? words : "to propose this run as one");
    if (words) {
        assert_told(&r, 3, code);
        assert_non_null(strstr(r.err, "this run could not be a baseline"));
        assert_null(strstr(r.err, "to propose this run as one"));
    } else {
        assert_null(strstr(r.err, "could not be"));
    }
    test_run_fini(&r);
    project_cleanrun(&p, (const char *const[]){"run", "g", "--at", "HEAD", "--json", NULL}, NULL,
                     &r);
    assert_int_equal(r.code, 3);
    cJSON *j = NULL;
    struct err e = ERR_INIT;
    char *line = strstr(r.out, "{\"event\":\"result\"");

    assert_non_null(line);
    line[strcspn(line, "\n")] = '\0';
    assert_int_equal(json_parse(line, strlen(line), NULL, &j, &e), 0);
    assert_int_equal(cJSON_IsTrue(json_get(j, "could_be_baseline")), !words);
    assert_int_equal(cJSON_GetArraySize(json_get(j, "obstacles")) > 0, words != NULL);
    if (words)
        assert_string_equal(json_get(json_get(j, "obstacles")->child, "code")->valuestring, code);
    cJSON_Delete(j);
    test_run_fini(&r);
    project_free(&p);
}

static void a_first_run_that_could_not_be_a_baseline_says_why(void **state)
{
    (void) state;
    first_run("path: /results/n,", "path: /results/n,", NULL, NULL);
    first_run("path: /results/n,", "path: /results/typo,", "NC-METRIC-MISSING",
              "is missing in this run");
    first_run("{path: /load/rate, require: required}", "{path: /load/typo, require: required}",
              "NC-IDENTITY-MISSING", "/load/typo is unknown in this run");
    first_run("      allocator: malloc\n", "", "NC-IDENTITY-MISSING",
              "Allocator is unknown in this run");
    first_run("path: /results/n,", "path: /load,", "NC-METRIC-INVALID", "is object, not a number");
}

/* `cleanrun run g` in the project, with these variables. */
static void told(const struct project *p, const char *const env[], int code, const char *words)
{
    struct test_run r;

    project_cleanrun(p, (const char *const[]){"run", "g", NULL}, env, &r);
    assert_told(&r, code, words);
    test_run_fini(&r);
}

static void messages_say_where_and_what_to_do(void **state)
{
    struct project p;

    (void) state;
    changed(&p, "      exact:\n        - {name: rate, path: /load/rate, equals: 7}\n",
            "      exact:\n        - {name: no errors, path: /load/rate, equals: 8}\n");
    told(&p, (const char *const[]){"RUSTFLAGS=-O", "MIMALLOC_X=1", NULL}, 2,
         "override is set: MIMALLOC_X, RUSTFLAGS; unset them: refused by cleanrun.yaml:11:28 "
         "(build.env.reject)");
    told(&p, NULL, 4, "first at: no errors: 7, must be 8");
    test_write_text(p.repo, "new.c", "1\n");
    told(&p, NULL, 4, "with changes: cleanrun.yaml (changed), new.c (new)");
    project_free(&p);
    changed(&p, "timeout: 20s", "timeout: 100ms");
    told(&p, NULL, 6, "was killed (its `timeout`: cleanrun.yaml:15:");
    project_free(&p);
    changed(&p, "command: ['{executable}', ok]", "command: ['{executable}', bad-json]");
    told(&p, NULL, 4, "report INVALID: results/s/p.json: ");
    project_free(&p);
}

/* `cleanrun check` of the changed definition. */
static void checked(const char *from, const char *to, int code, const char *words)
{
    struct project p;
    struct test_run r;

    changed(&p, from, to);
    project_cleanrun(&p, (const char *const[]){"check", NULL}, NULL, &r);
    assert_told(&r, code, words);
    test_run_fini(&r);
    project_free(&p);
}

static void what_can_be_known_is_told_by_check(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    checked("    phases:\n", "    modes: {cpu: {tool: pref}}\n    phases:\n", 2,
            "cleanrun.yaml:16:19: mode cpu: tool 'pref' is not known here, did you mean 'perf'?");
    checked("    phases:\n",
            "    host: {limits: [{fact: governer, equals: performance}]}\n    phases:\n", 2,
            ": no machine has the fact 'governer'; did you mean '");
    checked("    phases:\n", "    host: {limits: [{reading: laod, max: 1}]}\n    phases:\n", 2,
            "no machine has the reading 'laod'; did you mean 'load'?");
    checked("required: [s/p.json]", "required: [s/q.json]", 0,
            "warning: gate g: audit.paths.required leaves run.report out");
    /* A machine that does not fit is told before anything is built. */
    changed(&p, "    phases:\n",
            "    host: {limits: [{fact: architecture, equals: pdp11}]}\n    phases:\n");
    project_cleanrun(&p, (const char *const[]){"run", "g", NULL}, NULL, &r);
    assert_told(&r, 6, "not what the gate demands: host fact architecture");
    assert_null(strstr(r.err, "build      done"));
    test_run_fini(&r);
    project_free(&p);
}

/* Names that mean something said elsewhere: sound, and no run could ever be green. */
static void names_that_lead_nowhere_are_told_by_check(void **state)
{
    static const struct {
        const char *from, *to, *told;
    } slips[] = {
        {"required: [window_start,", "required: [windw_start,",
         "cleanrun.yaml:18:18: warning: gate g: phases.markers has no 'windw_start', and a marker "
         "that is not there makes the run a FAIL; did you mean 'window_start'?"},
        {"{start_phase: window_start", "{start_phase: nothing",
         "cleanrun.yaml:21:16: warning: gate g: phases.markers has no 'nothing', so the window is "
         "never complete"},
        {"end_phase: window_end", "end_phase: begin", "does not begin before it ends"},
        {"    phases:\n", "    conditioning: [{name: warm, value: 1}]\n    phases:\n",
         "phases.markers has no 'warm', and a step of the program's own must show as a marker"},
        {"    phases:\n",
         "    modes: {memory: {command: ['{executable}'], snapshots: [begn]}}\n    phases:\n",
         "phases.markers has no 'begn', so there is no such snapshot; did you mean 'begin'?"},
        {"    audit:\n",
         "    soak: {window: 20m, min_coverage: 19m, limit_mb_per_hour: 10, active_end: stop}\n"
         "    audit:\n",
         "phases.markers has no 'stop', so the soak's window has no end"},
        {"path: /results/n", "path: /resources/peak_rss_m",
         "the runner's section (sampling.into) never has 'peak_rss_m', and nothing else may stand "
         "there; did you mean 'peak_rss_mb'?"},
        {"path: /results/n", "path: /resources/windows/stedy/growth_mb_per_hour",
         "never has 'stedy', and nothing else may stand there; did you mean 'steady'?"},
    };
    static const char *const fine[] = {
        "path: /results/n", "path: /resources/windows/*/growth_mb_per_hour",
        "path: /resources/samples/rss_kib/3", "path: /resources_of_mine"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(slips); i++)
        checked(slips[i].from, slips[i].to, 0, slips[i].told);
    for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
        struct project p;
        struct test_run r;

        changed(&p, "path: /results/n", fine[i]);
        project_cleanrun(&p, (const char *const[]){"check", NULL}, NULL, &r);
        assert_told(&r, 0, "");
        assert_null(strstr(r.err, "warning"));
        test_run_fini(&r);
        project_free(&p);
    }
}

static void told_of(const struct project *p, const char *const argv[], int code, const char *words)
{
    struct test_run r;

    project_cleanrun(p, argv, NULL, &r);
    assert_told(&r, code, words);
    test_run_fini(&r);
}

static char *beside(const struct project *p, const char *name)
{
    char *path = NULL;

    assert_true(asprintf(&path, "%s/%s", p->dir, name) > 0);
    return path;
}

/* A run's directory for its archive, and the other way round. */
static void a_run_and_its_archive_are_told_apart(void **state)
{
    struct project p;
    struct test_run r;
    char *run, *archive, *keys, *key, *pub, *failed;

    (void) state;
    project_new(&p, "ok", NULL);
    run = beside(&p, "out"); /* project_measure's */
    archive = beside(&p, "run.tar");
    keys = beside(&p, "keys");
    key = beside(&p, "keys/key.pem");
    pub = beside(&p, "keys/pub.pem");
    failed = beside(&p, "failed");
    project_measure(&p, NULL, &r);
    test_run_fini(&r);
    told_of(&p, (const char *const[]){"key", "gen", "--out", keys, NULL}, 0, "");
    told_of(&p, (const char *const[]){"verify", run, "--key", pub, NULL}, 2,
            "is a run directory, not a sealed archive; cleanrun seal RUN_DIR --key ");
    told_of(&p,
            (const char *const[]){"push", run, "--server", "http://127.0.0.1:1", "--token-file",
                                  key, NULL},
            2, "is a run directory, not a sealed archive; cleanrun seal RUN_DIR --key ");
    told_of(&p, (const char *const[]){"accept", run, NULL}, 2,
            "is a run directory; its report is results/s/p.json in it");
    told_of(&p, (const char *const[]){"seal", run, "--key", key, "--out", archive, NULL}, 0, "");
    told_of(&p, (const char *const[]){"show", archive, NULL}, 2,
            "is a file, not a directory; cleanrun verify checks a sealed archive");
    told_of(&p, (const char *const[]){"seal", archive, "--key", key, "--out", "x.tar", NULL}, 2,
            "is a file, not a directory; cleanrun verify checks a sealed archive");
    told_of(&p, (const char *const[]){"audit", "--baseline", run, "--current", archive, NULL}, 2,
            "is a file, not a directory; cleanrun verify checks a sealed archive");
    project_edit(&p, "timeout: 20s", "timeout: 10ms");
    project_cleanrun(&p, (const char *const[]){"run", "g", "--out", failed, "--wait", "300", NULL},
                     NULL, &r);
    assert_int_equal(r.code, 6);
    test_run_fini(&r);
    told_of(&p, (const char *const[]){"seal", failed, "--key", key, "--out", archive, NULL}, 5,
            "of a run that ended in an ERROR: nothing in it can be sealed");
    told_of(&p, (const char *const[]){"verify", failed, "--key", pub, NULL}, 2,
            "of a run that ended in an ERROR: nothing in it can be sealed");
    free(run);
    free(archive);
    free(keys);
    free(key);
    free(pub);
    free(failed);
    project_free(&p);
}

static void a_directory_without_git_is_told_what_to_do(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    project_cleanrun(&p, (const char *const[]){"run", "g", "-C", p.dir, NULL}, NULL, &r);
    assert_told(&r, 2, "is in no git repository");
    assert_non_null(strstr(r.err, p.dir));
    assert_non_null(strstr(r.err, "git init && git add . && git commit"));
    test_run_fini(&r);
    project_free(&p);
}

/* Another measurement: what to do, and the waiting for it. */
static void another_measurement_can_be_waited_for(void **state)
{
    struct project p;
    struct test_run r;
    char *lock, *hold = NULL;

    (void) state;
    project_new(&p, "ok", NULL);
    lock = test_join(p.dir, "lock");
    assert_true(asprintf(&hold, "exec 9>>'%s'; flock 9; sleep 3 9>&9 & echo; exec sleep 0", lock) >
                0);
    test_run((const char *const[]){"bash", "-c", hold, NULL}, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    told(&p, NULL, 6, "run again when it has ended, or wait for it with --wait SECONDS");
    project_cleanrun(&p, (const char *const[]){"run", "g", "--build-only", "--wait", "60", NULL},
                     NULL, &r);
    assert_told(&r, 7, "waiting    another measurement is active");
    test_run_fini(&r);
    project_cleanrun(&p, (const char *const[]){"run", "g", "--wait", "1h", NULL}, NULL, &r);
    assert_told(&r, 2, "--wait needs a number of seconds");
    test_run_fini(&r);
    free(hold);
    free(lock);
    project_free(&p);
}

static void addresses_and_keys_are_named(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    char *keys = test_join(p.dir, "keys"), *key = test_join(keys, "key.pem");

    project_cleanrun(&p, (const char *const[]){"run", "g", "--server", "127.0.0.1:8747", NULL},
                     NULL, &r);
    assert_told(&r, 2, "--server '127.0.0.1:8747' is no http or https address");
    test_run_fini(&r);
    project_cleanrun(&p, (const char *const[]){"key", "gen", "--out", keys, NULL}, NULL, &r);
    test_run_fini(&r);
    project_cleanrun(&p, (const char *const[]){"verify", "x.tar", "--key", key, NULL}, NULL, &r);
    assert_told(&r, 2, "key.pem': THIS IS A PRIVATE KEY");
    test_run_fini(&r);
    free(key);
    free(keys);
    project_free(&p);
}

static void init_knows_what_cargo_builds_a_target_with(void **state)
{
    static const struct {
        const char *target, *command, *kind;
    } rows[] = {
        {"speed", "command: [cargo, bench, --no-run, --bench, speed, --message-format=json]",
         "kind: bench}"},
        {"soak", "command: [cargo, test, --release, --no-run, --test, soak, --message-format=json]",
         "kind: test}"},
        {"main", "command: [cargo, build, --release, --message-format=json]", "kind: bin}"},
    };
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    test_write_text(
        p.repo, "Cargo.toml",
        "[package]\nname = \"main\"\n\n[[bench]]\nname = \"speed\"\nharness = false\n\n[[test]]\n"
        "path = \"t.rs\"\nname=\"soak\"\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        project_cleanrun(
            &p, (const char *const[]){"init", "--target", rows[i].target, "--dry-run", NULL}, NULL,
            &r);
        assert_int_equal(r.code, 0);
        if (!strstr(r.out, rows[i].command) || !strstr(r.out, rows[i].kind))
            fail_msg("%s: %s", rows[i].target, r.out);
        test_run_fini(&r);
    }
    project_free(&p);
}

static const char printing_program[] =
    "#include <stdio.h>\n"
    "int main(void)\n"
    "{\n"
    "    return printf(\"{\\\"size\\\": 7, \\\"cost\\\": 1.5}\\n\") < 0;\n"
    "}\n";

static void edit(char **text, const char *from, const char *to)
{
    char *at = strstr(*text, from), *made = NULL;

    if (!at)
        fail_msg("no '%s' in:\n%s", from, *text);
    assert_true(asprintf(&made, "%.*s%s%s", (int) (at - *text), *text, to, at + strlen(from)) >= 0);
    free(*text);
    *text = made;
}

/* From a Makefile and a program that prints its report to a comparison, with names edited and
 * nothing else. */
static void what_init_writes_is_measured_and_compared(void **state)
{
    static const char *const add[] = {"add", ".", NULL};
    static const char *const commit[] = {"commit", "-q", "-m", "gate", NULL};
    static const char *const examples[] = {"# exact:",      "# - {path: /resources/peak",
                                           "# sampling: {", "# phases: {",
                                           "# windows:",    "#   steady:"};
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    char *yaml = test_join(p.repo, "cleanrun.yaml"), *ignore = test_join(p.repo, ".gitignore");

    assert_int_equal(unlink(yaml), 0);
    assert_int_equal(unlink(ignore), 0);
    test_write_text(p.repo, "prog.c", printing_program);
    test_write_text(p.repo, "Makefile", "prog: prog.c\n\tcc -O1 -o $@ $<\n");
    project_cleanrun(&p, (const char *const[]){"init", "--gate", "first", "--target", "prog", NULL},
                     NULL, &r);
    assert_told(&r, 0, "echo /prog >>.gitignore");
    test_run_fini(&r);
    test_write_text(p.repo, ".gitignore", "/prog\n"); /* as told */
    char *text = test_read_path(yaml, NULL);

    edit(&text, "{path: /n,", "{path: /size,");
    edit(&text, "path: /seconds, op", "path: /cost, op");
    edit(&text, "- {path: /seconds,", "- {path: /cost,");
    test_write_text(p.repo, "cleanrun.yaml", text);
    project_git(&p, add);
    project_git(&p, commit);
    project_cleanrun(&p, (const char *const[]){"check", NULL}, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_null(strstr(r.err, "warning"));
    test_run_fini(&r);
    project_cleanrun(&p, (const char *const[]){"run", "first", "--json", NULL}, NULL, &r);
    assert_told(&r, 3, "");
    if (!strstr(r.out, "\"could_be_baseline\":true"))
        fail_msg("%s", r.out);
    test_run_fini(&r);
    /* The examples in the comments are sound as well. */
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
        edit(&text, examples[i], examples[i] + 2);
    test_write_text(p.repo, "cleanrun.yaml", text);
    project_cleanrun(&p, (const char *const[]){"check", NULL}, NULL, &r);
    assert_told(&r, 0, "");
    test_run_fini(&r);
    free(text);
    free(ignore);
    free(yaml);
    project_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_of_the_definition_are_told_with_their_place),
        cmocka_unit_test(a_script_is_told_how_its_interpreter_is_measured),
        cmocka_unit_test(a_failed_build_shows_the_end_of_its_log),
        cmocka_unit_test(a_repository_without_a_commit_is_told_to_commit),
        cmocka_unit_test(a_foreign_owner_is_told_gits_remedy),
        cmocka_unit_test(messages_say_where_and_what_to_do),
        cmocka_unit_test(what_can_be_known_is_told_by_check),
        cmocka_unit_test(names_that_lead_nowhere_are_told_by_check),
        cmocka_unit_test(a_run_and_its_archive_are_told_apart),
        cmocka_unit_test(a_directory_without_git_is_told_what_to_do),
        cmocka_unit_test(another_measurement_can_be_waited_for),
        cmocka_unit_test(addresses_and_keys_are_named),
        cmocka_unit_test(init_knows_what_cargo_builds_a_target_with),
        cmocka_unit_test(what_init_writes_is_measured_and_compared),
        cmocka_unit_test(a_first_run_that_could_not_be_a_baseline_says_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
