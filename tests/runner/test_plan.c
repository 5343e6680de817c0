/* The experiment half as the runner uses it: environments, arguments, overrides, profiles, markers,
 * run directories. */
#include "tests/lib/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/text.h"
#include "runner/capture.h"
#include "runner/envguard.h"
#include "runner/machine_lock.h"
#include "runner/markers.h"
#include "runner/plan.h"
#include "runner/rundir.h"
#include "runner/rundir.h"

static cJSON *json(const char *text)
{
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(text, strlen(text), NULL, &j, &e) < 0)
        fail_msg("%s", e.text);
    return j;
}

static void environments_are_emptied_then_filled(void **state)
{
    static char home[] = "HOME=/home/somebody", path[] = "PATH=/opt/bin", cc[] = "CCACHE_DIR=/x",
                secret[] = "TOKEN=1", tz[] = "TZ=Mars", broken[] = "NOEQUALS";
    char *const own[] = {home, path, cc, secret, tz, broken, NULL};
    const struct plan_variable extra[] = {{"RESULTS", "/r"}};
    cJSON *env = json("{\"set\": {\"MODE\": \"a\", \"PATH\": \"/fixed\"}, \"allow\": [\"HOME\", "
                      "\"PATH\", \"CCACHE_*\"]}");
    struct plan_sources from = {.env = env, .own = own, .extra = extra, .n_extra = 1};
    struct arena arena;
    const char *const *out = NULL;
    cJSON *record = NULL;
    struct err e = ERR_INIT;

    (void) state;
    arena_init(&arena, 1 << 20);
    assert_int_equal(plan_environment(&from, &arena, &out, &record, &e), 0);
    assert_string_equal(plan_env_get(out, "HOME"), "/home/somebody");
    assert_string_equal(plan_env_get(out, "PATH"), "/fixed"); /* set is stronger than allow */
    assert_string_equal(plan_env_get(out, "CCACHE_DIR"), "/x");
    assert_string_equal(plan_env_get(out, "MODE"), "a");
    assert_string_equal(plan_env_get(out, "RESULTS"), "/r");
    assert_string_equal(plan_env_get(out, "TZ"), "UTC");
    assert_null(plan_env_get(out, "TOKEN"));
    size_t n = 0;

    while (out[n])
        n++;
    assert_int_equal(n, 8); /* PATH LANG TZ TMPDIR HOME CCACHE_DIR MODE RESULTS: no name twice */
    /* What was let through is part of the experiment: names and values. */
    const cJSON *passed = json_get(record, "passed");

    assert_int_equal(cJSON_GetArraySize(passed), 3);
    assert_string_equal(json_get(passed, "HOME")->valuestring, "/home/somebody");
    assert_string_equal(json_get(passed, "CCACHE_DIR")->valuestring, "/x");
    assert_string_equal(json_get(json_get(record, "set"), "PATH")->valuestring, "/fixed");
    assert_null(json_get(passed, "TOKEN"));
    assert_null(json_get(passed, "RESULTS"));
    cJSON_Delete(record);
    cJSON_Delete(env);
    arena_fini(&arena);
}

/* What can't be written down can't be let through. */
static void variables_that_cant_be_recorded_are_refused(void **state)
{
    static char bytes[] = "FLAGS=\xff\xfe", twice_a[] = "FLAGS=a", twice_b[] = "FLAGS=b";
    static char long_value[40000];
    char *const broken[] = {bytes, NULL}, *const large[] = {long_value, NULL};
    char *const twice[] = {twice_a, twice_b, NULL};
    char *const *const cases[] = {broken, large};
    cJSON *env = json("{\"allow\": [\"FLAGS\"]}");
    const char *const *out = NULL;
    cJSON *record = NULL;
    struct arena arena;
    struct err e = ERR_INIT;

    (void) state;
    memset(long_value, 'x', sizeof(long_value) - 1);
    memcpy(long_value, "FLAGS=", 6);
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct plan_sources from = {.env = env, .own = cases[i]};

        assert_int_equal(plan_environment(&from, &arena, &out, &record, &e), -1);
        assert_int_equal(e.kind, ERR_USAGE);
        assert_non_null(strstr(e.text, "FLAGS"));
    }
    struct plan_sources from = {.env = env, .own = twice};

    assert_int_equal(plan_environment(&from, &arena, &out, &record, &e), 0);
    assert_string_equal(plan_env_get(out, "FLAGS"), "b");
    assert_int_equal(cJSON_GetArraySize(json_get(record, "passed")), 1);
    assert_string_equal(json_get(json_get(record, "passed"), "FLAGS")->valuestring, "b");
    cJSON_Delete(record);
    cJSON_Delete(env);
    arena_fini(&arena);
}

static void placeholders_are_replaced_everywhere_and_unknown_ones_kept(void **state)
{
    cJSON *command = json(
        "[\"{executable}\", \"--out={results}/x\", \"{other}\", \"{\", \"{executable}{results}\"]");
    const struct plan_word words[] = {{"executable", "/e"}, {"results", "/r"}};
    struct arena arena;
    const char *const *argv = NULL;
    struct err e = ERR_INIT;

    (void) state;
    arena_init(&arena, 1 << 16);
    assert_int_equal(plan_argv(command, words, 2, &arena, &argv, &e), 0);
    assert_string_equal(argv[0], "/e");
    assert_string_equal(argv[1], "--out=/r/x");
    assert_string_equal(argv[2], "{other}");
    assert_string_equal(argv[3], "{");
    assert_string_equal(argv[4], "/e/r");
    assert_null(argv[5]);
    arena_fini(&arena);
    cJSON_Delete(command);
}

/* Rows RUN-05 to RUN-11, with the seed's own list. */
static void overrides_are_refused_even_when_empty(void **state)
{
    cJSON *build =
        json("{\"reject\": [\"RUSTFLAGS\", \"CARGO_ENCODED_RUSTFLAGS\", \"CARGO_BUILD_RUSTFLAGS\", "
             "\"CARGO_INCREMENTAL\", "
             "\"CARGO_PROFILE_RELEASE_*\", \"CARGO_TARGET_*_RUSTFLAGS\", \"MIMALLOC_*\"]}");
    struct plan p = {.build = {.env = build}};
    static char fine[] = "PATH=/bin", rust[] = "RUSTFLAGS=",
                target[] = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-C",
                mi[] = "MIMALLOC_PAGE_RESET=", near[] = "XRUSTFLAGS=1";
    char *const clean[] = {fine, near, NULL};
    char *const dirty[] = {rust, fine, mi, target, NULL};
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(envguard_check(&p, clean, &e), 0);
    assert_int_equal(envguard_check(&p, dirty, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    assert_string_equal(
        e.text,
        "noncanonical build/allocator override is set: "
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS, MIMALLOC_PAGE_RESET, RUSTFLAGS; unset "
        "them: refused by the definition (build.env.reject)");
    cJSON_Delete(build);
}

/* Row RUN-18. */
static void release_profile_must_be_exactly_the_expected_one(void **state)
{
    static const struct {
        const char *toml, *words;
    } rows[] = {
        {"[profile.release]\nopt-level = 3\nlto = true # fast\npanic = \"abort\"\n", NULL},
        {"[other]\nlto = false\n[profile.release]\r\nopt-level = 3\r\nlto = true\r\npanic = "
         "'abort'\r\n[after]\nx = 1\n",
         NULL},
        {"[profile.release]\nopt-level = 3\nlto = false\npanic = \"abort\"\n", "lto is false"},
        {"[profile.release]\nopt-level = 3\nlto = true\n", "an expected key is missing"},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = \"abort\"\nstrip = true\n",
         "strip is set and not expected"},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = "
         "\"abort\"\n[profile.release.package.x]\nopt-level = 0\n",
         "sub-table"},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = \"abort\"\n[profile.release]\n",
         "stands twice"},
        {"[profile.dev]\nlto = true\n", "no such section"},
        {"[profile.release]\nopt-level = \"3\"\nlto = true\npanic = \"abort\"\n", "opt-level is"},
        {"[profile.release]\nopt-level = 2\nlto = true\npanic = \"abort\"\n", "opt-level is 2"},
        {"[profile.release]\nopt-level = 3x\nlto = true\npanic = \"abort\"\n", "opt-level is 3x"},
        {"[profile.release]\nopt-level = 3\nlto = tru\npanic = \"abort\"\n", "lto is tru"},
        {"[profile.release]\nopt-level = 3\nlto = truer\npanic = \"abort\"\n", "lto is truer"},
        {"[profile.release]\nopt-level = 3\nlto = \"fat\"\npanic = \"abort\"\n", "lto is \"fat\""},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = \"unwind\"\n", "panic is"},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = \"abort'\n", "panic is"},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = xabortx\n", "panic is"},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = \"abort#\"\n",
         "panic is \"abort#\""},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = 'abort#'\n", "panic is 'abort#'"},
        {"[profile.release]\n\"opt-level\" = 3\nlto = true\npanic = \"abort\"\n", NULL},
        {"[profile.release]\n = 3\nlto = true\npanic = \"abort\"\n", "a key is not understood"},
        {"[profile.release]\nopt-level\nlto = true\npanic = \"abort\"\n", "is not understood"},
        /* the same names, as TOML also lets them be written */
        {"[ profile . \"release\" ]\nopt-level = 3\nlto = true\npanic = \"abort\"\n", NULL},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = "
         "\"abort\"\n[profile.'release'.package.x]\nopt-level = 0\n",
         "sub-table"},
        {"[profile.release]\nopt-level = 3\nlto = true\npanic = "
         "\"abort\"\n[profile . release . package.\"*\"]\nopt-level = 0\n",
         "sub-table"},
    };
    cJSON *profile =
        json("{\"file\": \"Cargo.toml\", \"section\": \"profile.release\", \"expect\": "
             "{\"opt-level\": 3, \"lto\": true, \"panic\": \"abort\"}}");
    struct plan p = {.build = {.profile = profile}};
    char *dir = test_dir_new();
    struct err e = ERR_INIT;
    int fd = -1;

    (void) state;
    assert_int_equal(file_open_dir(dir, &fd, &e), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        test_write_text(dir, "Cargo.toml", rows[i].toml);
        int r = envguard_profile(&p, fd, &e);

        if ((r == 0) != (rows[i].words == NULL))
            print_error("row %zu: %s\n", i, e.text);
        assert_int_equal(r, rows[i].words ? -1 : 0);
        if (rows[i].words) {
            assert_non_null(strstr(e.text, "canonical [profile.release] mismatch"));
            assert_non_null(strstr(e.text, rows[i].words));
        }
    }
    close(fd);
    test_dir_free(dir);
    cJSON_Delete(profile);
}

static bool broken(const char *bytes, const struct plan *p, const char *words)
{
    struct markers *m = calloc(1, sizeof *m);
    struct err e = ERR_INIT;
    char why[200] = "";
    bool r;

    assert_non_null(m);
    markers_init(m, 0);
    /* In two pieces, since a pipe may cut anywhere. */
    assert_int_equal(markers_data(m, bytes, strlen(bytes) / 2, &e), 0);
    assert_int_equal(
        markers_data(m, bytes + strlen(bytes) / 2, strlen(bytes) - strlen(bytes) / 2, &e), 0);
    r = markers_break(m, p, why, sizeof why);
    if (words && !strstr(why, words))
        print_error("'%s' is not in '%s'\n", words, why);
    assert_true(!words || strstr(why, words) != NULL);
    free(m);
    return r;
}

static void markers_are_judged_by_the_definition(void **state)
{
    cJSON *list = json("[\"a\", \"b\", \"c\"]"), *required = json("[\"a\", \"c\"]");
    cJSON *steps = json("[{\"name\": \"a\"}, {\"name\": \"tool\", \"command\": [\"x\"]}]");
    struct plan p = {.markers = list, .required = required, .conditioning = steps};
    struct plan none = {.machine_class = "x"};
    char long_name[200];

    (void) state;
    assert_false(broken("a\nb\nc\n", &p, NULL));
    assert_false(broken("a\nc\n", &p, NULL));
    assert_true(broken("a\nb\n", &p, "'c' was not seen"));
    assert_true(broken("b\na\nc\n", &p, "out of order"));
    assert_true(broken("a\na\nc\n", &p, "repeated"));
    assert_true(broken("a\nx\nc\n", &p, "not in the definition"));
    assert_true(broken("a\nc", &p, "malformed"));
    assert_true(broken("a\nb d\nc\n", &p, "malformed"));
    assert_true(broken("a\n\nc\n", &p, "malformed"));
    memset(long_name, 'n', sizeof long_name - 2);
    memcpy(long_name + sizeof long_name - 2, "\n", 2);
    assert_true(broken(long_name, &none, "malformed"));
    assert_false(broken("anything\ngoes\n", &none, NULL));
    assert_false(broken("", &none, NULL));
    cJSON_Delete(steps);
    cJSON_Delete(required);
    cJSON_Delete(list);
}

static void a_flood_of_markers_is_bounded(void **state)
{
    struct plan none = {.machine_class = "x"};
    size_t n = LIMIT_PHASE_MARKERS + 10;
    char *text = calloc(n, 3);

    (void) state;
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * 2, "m\n", 2);
    assert_true(broken(text, &none, "too many"));
    free(text);
}

static void logs_are_capped_and_scrubbed(void **state)
{
    char *dir = test_dir_new();
    struct capture c;
    struct err e = ERR_INIT;
    int fd = -1;
    const struct capture_rename renames[] = {
        {"/home/me/src", "{source}"}, {"/home/me", "{home}"}, {"", "x"}};

    (void) state;
    assert_int_equal(file_open_dir(dir, &fd, &e), 0);
    assert_int_equal(capture_open(&c, fd, "log", 10, NULL, &e), 0);
    assert_int_equal(capture_data(&c, "0123456", 7, &e), 0);
    assert_int_equal(capture_data(&c, "789abc", 6, &e), 0);
    assert_int_equal(capture_data(&c, "more", 4, &e), 0);
    capture_close(&c);
    char *path = test_join(dir, "log"), *text = test_read_path(path, NULL);

    assert_non_null(strstr(text, "0123456789\n[cleanrun] the output was cut here\n"));
    assert_null(strstr(text, "more"));
    free(text);
    test_write_text(dir, "log",
                    "cd /home/me/src/x && \"/home/me/src\" /home/me/srcs /home/mexico /home/me\n");
    assert_int_equal(capture_scrub(fd, "log", renames, 3, &e), 0);
    text = test_read_path(path, NULL);
    assert_string_equal(text, "cd {source}/x && \"{source}\" {home}/srcs /home/mexico {home}\n");
    free(text);
    free(path);
    close(fd);
    test_dir_free(dir);
}

static void run_directories_are_whole_or_absent(void **state)
{
    char *dir = test_dir_new(), *path = test_join(dir, "a/b/run"),
         *other = test_join(dir, "a/b/run2");
    char *partial = test_join(dir, "a/b/run.partial");
    struct rundir d, again;
    struct stat st;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(rundir_open(path, &d, &e), 0);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(rundir_open(path, &again, &e), -1); /* somebody is writing it */
    assert_int_equal(e.kind, ERR_BUSY);
    assert_int_equal(stat(partial, &st), 0);
    test_write_text(partial, "results/x.json", "{}");
    assert_int_equal(rundir_commit(&d, &e), 0);
    rundir_close(&d);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(stat(partial, &st), -1);
    assert_int_equal(rundir_open(path, &d, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    /* Not committed: nothing stays. */
    assert_int_equal(rundir_open(other, &d, &e), 0);
    rundir_close(&d);
    assert_int_equal(stat(other, &st), -1);
    free(partial);
    free(other);
    free(path);
    test_dir_free(dir);
}

static void only_an_unfinished_run_is_taken_over(void **state)
{
    char *dir = test_dir_new(), *path = test_join(dir, "run"),
         *partial = test_join(dir, "run.partial");
    char *mine = test_join(partial, "precious");
    struct rundir d;
    struct stat st;
    struct err e = ERR_INIT;

    (void) state;
    test_write_text(partial, "precious", "mine");
    assert_int_equal(rundir_open(path, &d, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    assert_non_null(strstr(e.text, "run.partial' exists and is not what an unfinished run left"));
    assert_int_equal(stat(mine, &st), 0);
    assert_int_equal(unlink(mine), 0);
    test_write_text(partial, "definition.json", "{}");
    test_write_text(partial, "results/x/1.json", "{}");
    assert_int_equal(rundir_open(path, &d, &e), 0);
    rundir_close(&d);
    free(mine);
    free(partial);
    free(path);
    test_dir_free(dir);
}

static void dead_runners_directories_are_swept_and_nothing_else(void **state)
{
    char *dir = test_dir_new(), *live_path = test_join(dir, "20261129T141502Z-0000000a");
    char *gone = test_join(dir, "20261129T141502Z-0000000b.partial"),
         *kept = test_join(dir, "notes.partial");
    char *done = test_join(dir, "20261129T141502Z-0000000c");
    struct rundir live;
    struct stat st;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(rundir_open(live_path, &live, &e), 0);
    test_write_text(gone, "manifest.json", "{}");
    test_write_text(kept, "x", "1");
    test_write_text(done, "x", "1");
    assert_int_equal(rundir_sweep(dir), 1);
    assert_int_equal(stat(gone, &st), -1);
    assert_int_equal(stat(kept, &st), 0);
    assert_int_equal(stat(done, &st), 0);
    assert_int_equal(rundir_commit(&live, &e), 0);
    rundir_close(&live);
    free(done);
    free(kept);
    free(gone);
    free(live_path);
    test_dir_free(dir);
}

static void run_ids_are_valid_and_differ(void **state)
{
    char a[RUN_ID_SIZE], b[RUN_ID_SIZE];
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(rundir_new_id(clock_realtime_us(), a, &e), 0);
    assert_int_equal(rundir_new_id(clock_realtime_us(), b, &e), 0);
    assert_true(text_is_run_id(a));
    assert_string_not_equal(a, b);
}

static void the_machine_lock_is_exclusive_and_names_its_holder(void **state)
{
    char *dir = test_dir_new(), *path = test_join(dir, "lock");
    char words[64];
    int first = -1, second = -1;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(machine_lock_take(path, &first, &e), 0);
    assert_int_equal(machine_lock_take(path, &second, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    snprintf(words, sizeof words, "process %d", (int) getpid());
    assert_non_null(strstr(e.text, words));
    close(first);
    assert_int_equal(machine_lock_take(path, &second, &e), 0);
    close(second);
    free(path);
    test_dir_free(dir);
}

#define UNREACHABLE 8

/* Tries the lock as nobody, in a child; 0: got it, 1: busy, UNREACHABLE: nobody can't come there.
 */
static int lock_as_nobody(const char *path)
{
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        struct err e = ERR_INIT;
        int fd = -1;

        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(9);
        if (access(path, F_OK) < 0)
            _exit(UNREACHABLE);
        if (machine_lock_take(path, &fd, &e) == 0)
            _exit(0);
        _exit(e.kind == ERR_BUSY ? 1 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_machine_lock_is_every_users(void **state)
{
    char *dir = test_dir_new(), *path = test_join(dir, "lock");
    int fd = -1;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(chmod(dir, 01777), 0);
    assert_int_equal(machine_lock_take(path, &fd, &e), 0);
    if (geteuid() != 0 || lock_as_nobody(path) == UNREACHABLE) {
        print_message("SKIPPED test: another user can't be had, or can't reach $TMPDIR\n");
        close(fd);
        free(path);
        test_dir_free(dir);
        skip();
    }
    assert_int_equal(lock_as_nobody(path), 1);
    close(fd);
    assert_int_equal(lock_as_nobody(path), 0);
    assert_int_equal(chmod(path, 0644), 0); /* as another program may have made it */
    assert_int_equal(lock_as_nobody(path), 0);
    assert_int_equal(machine_lock_take(path, &fd, &e), 0);
    assert_int_equal(lock_as_nobody(path), 1);
    close(fd);
    free(path);
    test_dir_free(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environments_are_emptied_then_filled),
        cmocka_unit_test(variables_that_cant_be_recorded_are_refused),
        cmocka_unit_test(placeholders_are_replaced_everywhere_and_unknown_ones_kept),
        cmocka_unit_test(overrides_are_refused_even_when_empty),
        cmocka_unit_test(release_profile_must_be_exactly_the_expected_one),
        cmocka_unit_test(markers_are_judged_by_the_definition),
        cmocka_unit_test(a_flood_of_markers_is_bounded),
        cmocka_unit_test(logs_are_capped_and_scrubbed),
        cmocka_unit_test(run_directories_are_whole_or_absent),
        cmocka_unit_test(only_an_unfinished_run_is_taken_over),
        cmocka_unit_test(dead_runners_directories_are_swept_and_nothing_else),
        cmocka_unit_test(run_ids_are_valid_and_differ),
        cmocka_unit_test(the_machine_lock_is_exclusive_and_names_its_holder),
        cmocka_unit_test(the_machine_lock_is_every_users),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/plan", tests, NULL, NULL);
}
