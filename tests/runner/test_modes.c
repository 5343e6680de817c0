/* Diagnostic modes: snapshots, profilers proven before the build, placeholders; and conditioning
 * that is proven by a report. */
#include "tests/runner/project.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/digest.h"
#include "base/json_in.h"
#include "evidence/manifest.h"
#include "experiment/definition.h"
#include "runner/plan.h"
#include "runner/profiler.h"

static void measure(const struct project *p, const char *mode, int code, const char *words)
{
    const char *const args[] = {"--mode", mode, NULL};
    struct test_run r;

    project_measure(p, args, &r);
    if (r.code != code || (words && !strstr(r.out, words) && !strstr(r.err, words)))
        print_error("%s: %d, wanted %d and '%s': %s%s\n", mode, r.code, code, words ? words : "",
                    r.out, r.err);
    assert_int_equal(r.code, code);
    assert_true(!words || strstr(r.out, words) || strstr(r.err, words));
    test_run_fini(&r);
}

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = json_get(o, key);

    if (!cJSON_IsNumber(v))
        fail_msg("no number %s", key);
    return v->valuedouble;
}

static void check_snapshot(const cJSON *s, const char *phase)
{
    const cJSON *processes = json_get(s, "processes"), *total = json_get(s, "total");
    const cJSON *first = processes->child;

    assert_string_equal(json_get(s, "phase")->valuestring, phase);
    assert_int_equal(cJSON_GetArraySize(processes), 1);
    assert_string_equal(json_get(first, "name")->valuestring, "workload");
    assert_true(number(first, "rss_kib") > 0);
    assert_true(number(first, "pss_kib") > 0);
    assert_true(number(first, "pss_kib") <= number(first, "rss_kib"));
    assert_true(number(first, "anonymous_kib") > 0);
    assert_true(number(first, "anonymous_kib") <= number(first, "rss_kib"));
    assert_true(number(first, "private_dirty_kib") >= 0);
    assert_true(number(first, "swap_kib") >= 0);
    assert_true(number(first, "peak_rss_kib") > 0);
    assert_true(number(first, "threads") >= 1);
    assert_true(number(total, "rss_kib") >= number(first, "rss_kib"));
    assert_null(json_get(total, "peak_rss_kib"));
    assert_true(cJSON_IsTrue(json_get(first, "measured")));
    assert_true(number(json_get(s, "measured"), "pss_kib") <= number(total, "pss_kib"));
    assert_true(number(json_get(s, "measured"), "pss_kib") > 0);
}

/* Where the profile is, for whoever reads. */
static void a_person_is_told_where_the_profile_is(void **state)
{
    struct project p;
    struct test_run r;
    char *out = NULL;

    (void) state;
    project_new(&p, "ok", "    modes:\n      memory: {snapshots: [begin]}\n");
    assert_true(asprintf(&out, "%s/told", p.dir) > 0);
    project_cleanrun(&p, (const char *const[]){"run", "g", "--mode", "memory", "--out", out, NULL},
                     NULL, &r);
    assert_int_equal(r.code, 7);
    assert_non_null(strstr(r.err, "profile    what the profiler left is below "));
    assert_non_null(strstr(r.err, "/told/profile"));
    test_run_fini(&r);
    free(out);
    project_free(&p);
}

static void snapshots_are_taken_at_the_named_markers(const char *mode)
{
    struct project p;
    char *modes = NULL;

    assert_true(
        asprintf(&modes, "    modes:\n      %s: {snapshots: [begin, window_start]}\n", mode) > 0);
    project_new(&p, "ok", modes);
    measure(&p, mode, 7, NULL);
    cJSON *j = project_json(&p, "profile/snapshots.json"), *m = project_json(&p, "manifest.json");
    const cJSON *list = json_get(j, "snapshots"), *file = NULL;
    const char *role = NULL;

    assert_string_equal(json_get(j, "schema")->valuestring, "cleanrun-snapshots/1");
    assert_string_equal(json_get(j, "mode")->valuestring, mode);
    assert_int_equal(cJSON_GetArraySize(list), 2);
    check_snapshot(list->child, "begin");
    check_snapshot(list->child->next, "window_start");
    assert_true(number(list->child->next, "elapsed_ms") - number(list->child, "elapsed_ms") >= 20);
    cJSON_ArrayForEach(file, json_get(m, "files")) {
        if (!strcmp(json_get(file, "path")->valuestring, "profile/snapshots.json"))
            role = json_get(file, "role")->valuestring;
    }
    assert_non_null(role);
    assert_string_equal(role, "profile");
    cJSON_Delete(j);
    cJSON_Delete(m);

    /* The clean run beside it takes none. */
    char *out = project_out(&p, "");
    const char *const away[] = {"rm", "-rf", out, NULL};
    struct test_run r;

    test_run(away, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    measure(&p, "clean", 3, NULL);
    assert_false(project_has(&p, "profile"));
    free(out);
    project_free(&p);
    free(modes);
}

static void memory_mode_takes_retention_snapshots(void **state)
{
    (void) state;
    snapshots_are_taken_at_the_named_markers("memory");
}

static void boundary_mode_takes_snapshots_and_goes_on(void **state)
{
    (void) state;
    snapshots_are_taken_at_the_named_markers("boundary");
}

/* Dumps minutes apart: by the clock, whatever the program is doing; collected and hashed. */
static void memory_is_looked_at_and_dumped_by_the_clock(void **state)
{
    struct project p;
    const cJSON *s = NULL, *file = NULL;
    int timed = 0, named = 0, dumps = 0;
    double last = 0;

    (void) state;
    project_new(&p, "dumps",
                "    modes:\n      memory: {snapshots: [window_start], snapshot_every: 150ms, "
                "dump_signal: USR2,\n               env: {set: {DUMPS: '{profile}/heap'}}, output: "
                "['heap.*']}\n");
    measure(&p, "memory", 7, NULL);
    cJSON *j = project_json(&p, "profile/snapshots.json"), *m = project_json(&p, "manifest.json");

    assert_int_equal(number(j, "every_ms"), 150);
    cJSON_ArrayForEach(s, json_get(j, "snapshots")) {
        bool by_clock = cJSON_IsNull(json_get(s, "phase"));

        timed += by_clock;
        named += !by_clock;
        assert_true(number(s, "elapsed_ms") >= last);
        last = number(s, "elapsed_ms");
        assert_true(number(json_get(s, "measured"), "rss_kib") > 0);
        assert_int_equal(number(s, "signalled"), by_clock ? 1 : 0);
    }
    assert_true(timed >= 2);
    assert_int_equal(named, 1);
    cJSON_ArrayForEach(file, json_get(m, "files")) {
        if (strncmp(json_get(file, "path")->valuestring, "profile/heap.", 13) != 0)
            continue;
        assert_string_equal(json_get(file, "role")->valuestring, "profile");
        assert_int_equal(number(file, "size"), 5);
        dumps++;
    }
    assert_int_equal(dumps, timed);
    cJSON_Delete(j);
    cJSON_Delete(m);
    project_free(&p);
}

/* A profiler's own processes are listed, and are not the measured program's. */
static void snapshots_tell_the_profiler_from_the_program(void **state)
{
    struct project p;
    const cJSON *process = NULL;
    int measured = 0, others = 0;

    (void) state;
    project_new(&p, "ok",
                "    modes:\n      memory: {command: [sh, -c, '\"$@\"; exit $?', x], snapshots: "
                "[begin]}\n");
    measure(&p, "memory", 7, NULL);
    cJSON *j = project_json(&p, "profile/snapshots.json");
    const cJSON *s = json_get(j, "snapshots")->child;

    cJSON_ArrayForEach(process, json_get(s, "processes")) {
        bool is = cJSON_IsTrue(json_get(process, "measured"));

        measured += is;
        others += !is;
        if (is)
            assert_string_equal(json_get(process, "name")->valuestring, "workload");
    }
    assert_int_equal(measured, 1);
    assert_int_equal(others, 1);
    assert_true(number(json_get(s, "measured"), "rss_kib") <
                number(json_get(s, "total"), "rss_kib"));
    cJSON_Delete(j);
    project_free(&p);
}

static void a_snapshot_that_was_promised_and_not_taken_is_a_fail(void **state)
{
    struct project p;

    (void) state;
    project_new(&p, "ok", "    modes:\n      memory: {snapshots: [begin, never]}\n");
    measure(&p, "memory", 4, "no snapshot at 'never'");
    assert_true(project_has(&p, "profile/snapshots.json"));
    project_free(&p);
}

/* The definition of the fixture with these modes (and phases) as text. */
static int read_plan(const char *modes, const char *phases, enum plan_mode mode, struct err *e)
{
    struct definition_file f = {.n = 0};
    struct plan plan;
    char *text = NULL;
    int r;

    assert_true(
        asprintf(
            &text,
            "version: 1\nproject: a/b\ngates:\n  g:\n    class: c\n    build:\n      command: "
            "[cc]\n      executable: {from: path, path: x}\n    run: {command: ['{executable}'], "
            "report: s/p.json}\n%s%s    identity: [{path: /n, require: required}]\n    accept: "
            "{}\n    audit:\n      paths: {required: [s/p.json]}\n      metrics:\n        - {path: "
            "/n, "
            "label: n, unit: u, worse: higher, tolerance_pct: 1, gated: true}\n",
            modes, phases) > 0);
    r = definition_file_parse("x.yaml", text, strlen(text), &f, e);
    if (r == 0)
        r = plan_read(&f.gates[0], mode, &plan, e);
    definition_file_fini(&f);
    free(text);
    return r;
}

static void what_a_mode_may_not_say_is_refused(void **state)
{
    static const struct {
        const char *modes, *phases;
        enum plan_mode mode;
        const char *words;
    } rows[] = {
        {"    modes: {clean: {snapshots: [a]}}\n", "", PLAN_CLEAN, "unknown key 'clean'"},
        {"    modes: {cpu: {tool: perf, snapshots: [a]}}\n", "", PLAN_CPU,
         "unknown key 'snapshots'"},
        {"    modes: {timing: {tool: perf, snapshots: [a]}}\n", "", PLAN_TIMING,
         "unknown key 'snapshots'"},
        {"    modes: {cpu: {tool: perf, env: {allow: [A]}}}\n", "", PLAN_CPU,
         "unknown key 'allow'"},
        {"    modes: {timing: {debug_info: true}}\n", "", PLAN_TIMING, "names no tool"},
        {"    modes: {cpu: {}}\n", "", PLAN_CPU, "names no tool"},
        {"    modes: {memory: {snapshots: [a]}}\n", "    phases: {from: report}\n", PLAN_MEMORY,
         "phases.from"},
        {"    modes: {memory: {dump_signal: USR2}}\n", "", PLAN_MEMORY, "snapshot_every"},
        {"    modes: {memory: {snapshot_every: 20ms}}\n", "", PLAN_MEMORY, "at least 100ms"},
        {"    modes: {memory: {snapshot_every: 1m, dump_signal: KILL}}\n", "", PLAN_MEMORY, "KILL"},
        {"    modes: {cpu: {tool: perf, snapshot_every: 1m}}\n", "", PLAN_CPU,
         "unknown key 'snapshot_every'"},
        {"", "    conditioning: [{name: a, proof: {report: s/a.json, values: {n: 1}}}]\n",
         PLAN_CLEAN, "no JSON Pointer"},
        {"", "    conditioning: [{name: a, proof: {report: s/a.json, equal: [/a/*, /b]}}]\n",
         PLAN_CLEAN, "more than one value"},
        {"", "    conditioning: [{name: a, proof: {equal: [/a, /b]}}]\n", PLAN_CLEAN, "report"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err e = ERR_INIT;
        int r = read_plan(rows[i].modes, rows[i].phases, rows[i].mode, &e);

        if (r == 0 || !strstr(e.text, rows[i].words))
            print_error("row %zu: %s\n", i, e.text);
        assert_int_equal(r, -1);
        assert_non_null(strstr(e.text, rows[i].words));
    }
    struct err e = ERR_INIT;

    assert_int_equal(
        read_plan("    modes: {memory: {}, boundary: {snapshots: [a]}}\n", "", PLAN_MEMORY, &e), 0);
}

static void a_tool_that_is_missing_or_cannot_capture_is_found_before_the_build(void **state)
{
    struct project p;

    (void) state;
    project_new(&p, "ok",
                "    modes:\n"
                "      timing: {tool: instruments}\n"
                "      memory: {tool: no-such-profiler}\n"
                "      boundary: {command: [no-such-program, '{profile}']}\n"
                "      cpu: {command: [sh, -c, 'echo first; echo not allowed to capture >&2; exit "
                "9', x]}\n");
    /* A build would fail, so exit 2 also proves that none was tried. */
    test_write_text(p.repo, "workload.c", "this does not compile\n");
    measure(&p, "timing", 2, "needs 'xctrace'");
    measure(&p, "memory", 2, "no-such-profiler");
    measure(&p, "boundary", 2, "needs 'no-such-program'");
    measure(&p, "cpu", 2, "not allowed to capture");
    measure(&p, "cpu", 2, "exit 9");
    assert_false(project_has(&p, ""));
    project_free(&p);
}

static void places_and_rate_are_filled_in(void **state)
{
    struct project p;

    (void) state;
    project_new(&p, "environment",
                "    modes:\n"
                "      cpu:\n"
                "        rate: 250\n"
                "        command: [sh, -c, 'printf \"%s %s %s\\n\" \"$1\" \"$2\" \"$3\" > \"$0\"; "
                "shift 3; exec \"$@\"', "
                "'{profile}/words.txt', '{rate}', '{results}', '{executable}']\n"
                "        env: {set: {RATE: '{rate}', WHERE: '{profile}'}}\n"
                "        output: ['wor*.txt']\n");
    measure(&p, "cpu", 7, NULL);
    char *path = project_out(&p, "profile/words.txt"), *log_path = project_out(&p, "run.log");
    char *words = test_read_path(path, NULL), *log = test_read_path(log_path, NULL);

    assert_int_equal(strncmp(words, "250 /", 5), 0);
    assert_non_null(strstr(words, "/results "));
    assert_non_null(strstr(words, "/workload\n"));
    assert_non_null(strstr(log, "\nRATE=250\n"));
    assert_non_null(strstr(log, "\nWHERE={run}/profile\n"));
    assert_non_null(strstr(log, "\nCLEANRUN_MODE=cpu\n"));
    free(log);
    free(words);
    free(log_path);
    free(path);
    project_free(&p);
}

static void a_pattern_that_no_file_matches_is_a_fail(void **state)
{
    struct project p;

    (void) state;
    project_new(&p, "ok", "    modes:\n      memory: {command: [env], output: ['heap.*']}\n");
    measure(&p, "memory", 4, "the profiler left no heap.*");
    project_free(&p);
}

/* perf by name only: a stand-in on the run's PATH shows how it is called. */
static void known_tools_need_no_command(void **state)
{
    static const char script[] =
        "#!/bin/sh\n"
        "all=\"$*\"\n"
        "while [ \"$1\" != -- ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
        "shift\n"
        "echo \"$all\" > \"$out\"\n"
        "exec \"$@\"\n";
    struct project p;

    (void) state;
    project_new(
        &p,
        "ok]\n      env:\n        set: {PATH: 'REPO/ignored:/usr/bin:/bin'}\n        allow: [HOME",
        "    modes:\n"
        "      cpu: {tool: perf, rate: 99, context_switches: true, output: [perf.data]}\n"
        "      timing: {tool: heaptrack, context_switches: true}\n");
    char *tools = test_join(p.repo, "ignored");

    assert_int_equal(mkdir(tools, 0755), 0);
    test_write_text(tools, "perf", script);
    char *tool = test_join(tools, "perf");

    assert_int_equal(chmod(tool, 0755), 0);
    measure(&p, "timing", 2,
            "cleanrun.yaml:36:33: mode timing: 'heaptrack' records no context switches");
    measure(&p, "cpu", 7, NULL);
    char *path = project_out(&p, "profile/perf.data"), *text = test_read_path(path, NULL);

    assert_int_equal(strncmp(text, "record -q -F 99 -g --switch-events -o /", 39), 0);
    assert_non_null(strstr(text, "/workload ok\n"));
    free(text);
    free(path);
    free(tool);
    free(tools);
    project_free(&p);
}

/* A stand-in for a profiler: notes its words, leaves what the real one leaves, starts the program.
 */
static void make_tool(const char *dir, const char *name)
{
    static const char script[] = "#!/bin/sh\n"
                                 "printf '%s\\n' \"$@\" > \"$0.argv\"\n"
                                 "while [ $# -gt 0 ]; do\n"
                                 "  case $1 in\n"
                                 "    -o | --output) out=$2; shift ;;\n"
                                 "    --) shift; break ;;\n"
                                 "    /*) break ;;\n"
                                 "  esac\n"
                                 "  shift\n"
                                 "done\n"
                                 "case $out in\n"
                                 "  *.trace) /bin/mkdir \"$out\" && out=$out/form.template ;;\n"
                                 "  */heaptrack) out=$out.zst ;;\n"
                                 "esac\n"
                                 "echo captured > \"$out\" || exit 8\n"
                                 "exec \"$@\"\n";
    char *path = test_join(dir, name);

    test_write_text(dir, name, script);
    assert_int_equal(chmod(path, 0755), 0);
    free(path);
}

static void known_tools_are_called_as_they_want_it(void **state)
{
    static const struct {
        const char *mode, *tool, *program, *rate, *left;
        const char *words; /* one a line; %P: the profile directory */
    } rows[] = {
        {"cpu", "samply", "samply", "rate: 250, ", "profile.json.gz",
         "record\n--save-only\n--rate\n250\n-o\n%P/profile.json.gz\n--\n"},
        {"timing", "samply", "samply", "", "profile.json.gz",
         "record\n--save-only\n--rate\n499\n-o\n%P/profile.json.gz\n--\n"},
        {"cpu", "instruments", "xctrace", "", "time.trace/form.template",
         "record\n--template\nTime Profiler\n--output\n%P/time.trace\n--target-stdout\n-\n"
         "--launch\n--\n"},
        {"timing", "instruments", "xctrace", "", "time.trace/form.template",
         "record\n--template\nTime Profiler\n--output\n%P/time.trace\n--target-stdout\n-\n"
         "--launch\n--\n"},
        {"memory", "instruments", "xctrace", "", "memory.trace/form.template",
         "record\n--template\nAllocations\n--output\n%P/memory.trace\n--target-stdout\n-\n"
         "--launch\n--\n"},
        {"memory", "heaptrack", "heaptrack", "", "heaptrack.zst", "-o\n%P/heaptrack\n"},
        {"timing", "perf", "perf", "rate: 97, ", "perf.data",
         "record\n-q\n-F\n97\n-g\n-o\n%P/perf.data\n--\n"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct project p;
        char *modes = NULL, *log = NULL;

        assert_true(asprintf(&modes, "    modes:\n      %s: {tool: %s, %soutput: ['%s']}\n",
                             rows[i].mode, rows[i].tool, rows[i].rate, rows[i].left) > 0);
        project_new(&p,
                    "ok]\n      env:\n        set: {PATH: 'REPO/ignored'}\n        "
                    "allow: [HOME",
                    modes);
        char *tools = test_join(p.repo, "ignored"), *source = test_join(p.repo, "workload.c");
        char *good = test_read_path(source, NULL);

        /* Missing: said before the build, which could not succeed. */
        test_write_text(p.repo, "workload.c", "this does not compile\n");
        char *needs = NULL;

        assert_true(asprintf(&needs, "mode %s needs '%s', which is not installed here",
                             rows[i].mode, rows[i].program) > 0);
        measure(&p, rows[i].mode, 2, needs);
        assert_false(project_has(&p, ""));
        test_write_text(p.repo, "workload.c", good);

        assert_int_equal(mkdir(tools, 0755), 0);
        make_tool(tools, rows[i].program);
        /* what a trial captures; no other program is there */
        char *nothing = test_join(tools, "true");

        assert_int_equal(symlink("/bin/true", nothing), 0);
        free(nothing);
        measure(&p, rows[i].mode, 7, NULL);
        char *left = NULL, *words = NULL, *name = NULL;

        assert_true(asprintf(&left, "profile/%s", rows[i].left) > 0);
        assert_true(project_has(&p, left));
        assert_true(asprintf(&name, "ignored/%s.argv", rows[i].program) > 0);
        char *path = test_join(p.repo, name);
        const char *hole = strstr(rows[i].words, "%P");

        log = test_read_path(path, NULL);
        assert_true(asprintf(&words, "%.*s%s/out.partial/profile%s%s/workload\nok\n",
                             (int) (hole - rows[i].words), rows[i].words, p.dir, hole + 2,
                             p.repo) > 0);
        assert_string_equal(log, words);
        free(path);
        free(name);
        free(words);
        free(left);
        free(needs);
        free(good);
        free(source);
        free(tools);
        free(log);
        free(modes);
        project_free(&p);
    }
}

#define STEP(proof)                                                                                \
    "    conditioning:\n      - {name: warm, value: {rate: 7}, proof: {" proof "}}\n"

static void proven(const char *step, int code, const char *words)
{
    struct project p;

    project_new(&p, "ok", step);
    measure(&p, "clean", code, words);
    project_free(&p);
}

static void a_step_without_command_is_proven_by_its_report(void **state)
{
    (void) state;
    proven(STEP("report: s/p.json, equal: [/results/n, /results/n], values: {/load/rate: 7, "
                "/scenario: s}"),
           3, NULL);
    proven(STEP("report: s/q.json"), 4, "conditioning step 'warm' left no sound s/q.json");
    proven(STEP("report: s/p.json, equal: [/results/n, /load/rate]"), 4,
           "/load/rate of s/p.json is not equal to the others");
    proven(STEP("report: s/p.json, equal: [/results/n, /results/m]"), 4,
           "/results/m of s/p.json is no number");
    proven(STEP("report: s/p.json, values: {/load/rate: 8}"), 4,
           "/load/rate of s/p.json has another value");
    proven(STEP("report: s/p.json, values: {/load/none: 8}"), 4,
           "/load/none of s/p.json is absent");
    proven("    conditioning: [{name: warm}]\n", 4, "did not show as a phase marker");
}

static void markers_that_stand_in_the_report_are_not_awaited(void **state)
{
    struct project p;
    char *path, *text, *at, *changed = NULL;

    (void) state;
    project_new(&p, "no-markers", NULL);
    measure(&p, "clean", 4, "window_start");
    path = test_join(p.repo, "cleanrun.yaml");
    text = test_read_path(path, NULL);
    at = strstr(text, "      markers: [begin");
    assert_non_null(at);
    assert_true(asprintf(&changed, "%.*s      from: report\n%s", (int) (at - text), text, at) > 0);
    test_write_text(p.repo, "cleanrun.yaml", changed);
    char *out = project_out(&p, "");
    const char *const away[] = {"rm", "-rf", out, NULL};
    struct test_run r;

    test_run(away, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    measure(&p, "clean", 3, NULL);
    free(out);
    free(changed);
    free(text);
    free(path);
    project_free(&p);
}

/* A diagnostic run is compared with nothing: it keeps no snapshot, so it names no baseline, and can
 * be sealed. */
static void a_diagnostic_run_names_no_baseline(void **state)
{
    struct project p;
    struct test_run r;
    char hex[DIGEST_HEX_SIZE];
    size_t len = 0;

    (void) state;
    project_new(&p, "ok", "    modes:\n      memory: {snapshots: [begin]}\n");
    measure(&p, "clean", 3, NULL);
    char *base = test_join(p.dir, "base"), *out = project_out(&p, ""),
         *manifest = test_join(base, "manifest.json");

    assert_int_equal(rename(out, base), 0);
    char *text = test_read_path(manifest, &len);
    struct digest d = digest_of(text, len);

    digest_hex(&d, hex);
    const char *const args[] = {"--mode", "memory", "--baseline", base, "--baseline-sha256",
                                hex,      NULL};

    project_measure(&p, args, &r);
    if (r.code != 7)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 7);
    test_run_fini(&r);
    cJSON *m = project_json(&p, "manifest.json");

    assert_true(cJSON_IsNull(json_get(m, "baseline")));
    assert_false(project_has(&p, "baseline"));
    cJSON_Delete(m);
    char *keys = test_join(p.dir, "keys"), *key = test_join(keys, "key.pem"),
         *archive = test_join(p.dir, "a.tar");
    const char *const gen[] = {"key", "gen", "--out", keys, NULL};
    const char *const seal[] = {"seal", out, "--key", key, "--out", archive, NULL};

    project_cleanrun(&p, gen, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    project_cleanrun(&p, seal, NULL, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    free(base);
    free(out);
    free(manifest);
    free(text);
    free(keys);
    free(key);
    free(archive);
    project_free(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_person_is_told_where_the_profile_is),
        cmocka_unit_test(memory_mode_takes_retention_snapshots),
        cmocka_unit_test(boundary_mode_takes_snapshots_and_goes_on),
        cmocka_unit_test(memory_is_looked_at_and_dumped_by_the_clock),
        cmocka_unit_test(snapshots_tell_the_profiler_from_the_program),
        cmocka_unit_test(a_snapshot_that_was_promised_and_not_taken_is_a_fail),
        cmocka_unit_test(what_a_mode_may_not_say_is_refused),
        cmocka_unit_test(a_tool_that_is_missing_or_cannot_capture_is_found_before_the_build),
        cmocka_unit_test(places_and_rate_are_filled_in),
        cmocka_unit_test(a_pattern_that_no_file_matches_is_a_fail),
        cmocka_unit_test(known_tools_need_no_command),
        cmocka_unit_test(known_tools_are_called_as_they_want_it),
        cmocka_unit_test(a_step_without_command_is_proven_by_its_report),
        cmocka_unit_test(markers_that_stand_in_the_report_are_not_awaited),
        cmocka_unit_test(a_diagnostic_run_names_no_baseline),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/modes", tests, NULL, NULL);
}
