/* The exact executable: from messages (rows ART-*), by path, and what it maps while it runs. */
#include "tests/lib/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/json_in.h"
#include "runner/artifact.h"
#include "runner/child.h"
#include "runner/mapped.h"

#define LINE(kind, name, src, exe, fresh)                                                          \
    "{\"reason\":\"compiler-artifact\",\"package_id\":\"p\",\"manifest_path\":\"/w/"               \
    "Cargo.toml\",\"target\":{\"kind\":[\"" kind "\"],\"crate_types\":[\"bin\"],\"name\":\"" name  \
    "\",\"src_path\":\"" src "\"},\"profile\":{\"opt_level\":\"3\"},"                              \
    "\"features\":[\"perf-tests\"],\"filenames\":[],\"executable\":" exe ",\"fresh\":" fresh "}\n"
#define DONE "{\"reason\":\"build-finished\",\"success\":true}\n"

#define GOOD                                                                                       \
    LINE("test", "perf_call", "/w/tests/perf_call.rs", "\"/w/target/perf_call-1\"", "false")

static int cargo(const char *messages, const char *src, char **path, cJSON **details, struct err *e)
{
    struct artifact_wanted wanted = {
        .target = "perf_call", .kind = "test", .src_path = src, .root = "/w"};

    return artifact_from_cargo(&wanted, messages, strlen(messages), path, details, e);
}

static void refused(const char *messages, const char *src, const char *words)
{
    char *path = NULL;
    cJSON *details = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(cargo(messages, src, &path, &details, &e), -1);
    if (!strstr(e.text, words))
        print_error("'%s' is not in '%s'\n", words, e.text);
    assert_non_null(strstr(e.text, words));
    assert_null(path);
    assert_null(details);
}

static void repeated_messages_and_plain_text_are_fine(void **state) /* ART-01 */
{
    char *path = NULL;
    cJSON *details = NULL;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(cargo("   Compiling perf v0.1\n" GOOD "warning: unused\n\n" GOOD DONE
                           "    Finished\n",
                           NULL, &path, &details, &e),
                     0);
    assert_string_equal(path, "/w/target/perf_call-1");
    assert_string_equal(json_get(details, "features")->child->valuestring, "perf-tests");
    assert_true(cJSON_IsFalse(json_get(details, "fresh")));
    cJSON_Delete(details);
    free(path);
}

static void anything_but_one_executable_is_refused(void **state) /* ART-03, ART-06 */
{
    (void) state;
    refused(DONE, NULL, "exactly one");
    refused("", NULL, "did not finish");
    refused(LINE("test", "other", "/w/tests/perf_call.rs", "\"/w/target/o\"", "true") DONE, NULL,
            "exactly one");
    refused(LINE("bin", "perf_call", "/w/tests/perf_call.rs", "\"/w/target/o\"", "true") DONE, NULL,
            "exactly one");
    refused(LINE("test", "perf_call", "/w/tests/perf_call.rs", "null", "true") DONE, NULL,
            "exactly one");
    refused(GOOD LINE("test", "perf_call", "/w/tests/perf_call.rs", "\"/w/target/perf_call-2\"",
                      "true") DONE,
            NULL, "found 2");
    refused(GOOD DONE, "tests/another.rs", "exactly one");
}

static void the_source_file_may_be_named(void **state)
{
    char *path = NULL;
    cJSON *details = NULL;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(cargo(GOOD DONE, "tests/perf_call.rs", &path, &details, &e), 0);
    cJSON_Delete(details);
    free(path);
}

static void lines_that_are_no_object_are_refused(void **state) /* ART-08 */
{
    (void) state;
    refused("5\n" GOOD DONE, NULL, "invalid Cargo JSON object");
    refused("[]\n" GOOD DONE, NULL, "invalid Cargo JSON object");
    refused("{\"reason\":\"compiler-arti\n" GOOD DONE, NULL, "invalid Cargo JSON object");
}

static void a_build_that_did_not_succeed_is_refused(void **state)
{
    (void) state;
    refused(GOOD, NULL, "did not finish");
    refused(GOOD "{\"reason\":\"build-finished\",\"success\":false}\n", NULL, "did not finish");
}

static void real_cargo_messages_are_read(void **state)
{
    static const struct {
        const char *file, *kind, *ends;
    } rows[] = {
        {"helloworld-build.ndjson", "bin", "release/helloworld"},
        {"helloworld-fresh.ndjson", "bin", "release/helloworld"},
        {"helloworld-stderr-merged.txt", "bin", "debug/helloworld"},
        {"helloworld-test-norun.ndjson", "bin", "deps/helloworld-c3a78d6ebb21ba3f"},
    };
    char *dir = test_shared("data/formats/cargo-json");

    (void) state;
    if (!dir)
        skip();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *name = test_join(dir, rows[i].file), *path = NULL;
        size_t len = 0;
        char *text = test_read_path(name, &len);
        cJSON *details = NULL;
        struct err e = ERR_INIT;

        struct artifact_wanted wanted = {.target = "helloworld", .kind = rows[i].kind, .root = "/"};

        if (artifact_from_cargo(&wanted, text, len, &path, &details, &e) < 0)
            fail_msg("%s: %s", rows[i].file, e.text);
        assert_true(strlen(path) > strlen(rows[i].ends));
        assert_string_equal(path + strlen(path) - strlen(rows[i].ends), rows[i].ends);
        cJSON_Delete(details);
        free(path);
        free(text);
        free(name);
    }
    static const char *const bad[] = {"build-failed.ndjson", "await-call-tree-lib.ndjson",
                                      "external-tools-doc-messages.jsonc"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *name = test_join(dir, bad[i]), *path = NULL;
        size_t len = 0;
        char *text = test_read_path(name, &len);
        cJSON *details = NULL;
        struct err e = ERR_INIT;

        struct artifact_wanted wanted = {.target = "helloworld", .root = "/"};

        assert_int_equal(artifact_from_cargo(&wanted, text, len, &path, &details, &e), -1);
        free(text);
        free(name);
    }
    free(dir);
}

static void meson_targets_are_read(void **state)
{
    static const char good[] =
        "[{\"name\":\"lib\",\"type\":\"static library\",\"filename\":[\"/b/liblib.a\"]},"
        "{\"name\":\"kv\",\"type\":\"executable\",\"filename\":[\"/b/"
        "kv\"],\"build_by_default\":true}]";
    static const char twice[] =
        "[{\"name\":\"kv\",\"type\":\"executable\",\"filename\":[\"/b/kv\"]},"
        "{\"name\":\"kv\",\"type\":\"executable\",\"filename\":[\"/b/sub/kv\"]}]";
    const struct artifact_wanted kv = {.target = "kv"}, lib = {.target = "lib"};
    char *path = NULL;
    cJSON *details = NULL;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(artifact_from_meson(&kv, good, sizeof good - 1, &path, &details, &e), 0);
    assert_string_equal(path, "/b/kv");
    cJSON_Delete(details);
    free(path);
    assert_int_equal(artifact_from_meson(&lib, good, sizeof good - 1, &path, &details, &e), -1);
    assert_int_equal(artifact_from_meson(&kv, twice, sizeof twice - 1, &path, &details, &e), -1);
    assert_non_null(strstr(e.text, "exactly one"));
    assert_int_equal(artifact_from_meson(&kv, "{}", 2, &path, &details, &e), -1);
    assert_int_equal(artifact_from_meson(&kv, "[", 1, &path, &details, &e), -1);
}

static char *copy_program(const char *dir, const char *name, const char *from, mode_t mode)
{
    char *path = test_join(dir, name);
    const char *const argv[] = {"cp", "-L", from, path, NULL};
    struct test_run r;

    test_run(argv, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void only_regular_executable_elf_files_are_opened(void **state) /* ART-05 */
{
    char *dir = test_dir_new();
    char *good = copy_program(dir, "good", "/bin/true", 0755);
    char *plain = copy_program(dir, "plain", "/bin/true", 0644);
    char *script = test_join(dir, "script"), *text = test_join(dir, "text"),
         *gone = test_join(dir, "gone");
    struct artifact a;
    struct err e = ERR_INIT;
    bool same = false;

    (void) state;
    test_write_text(dir, "script", "#!/bin/sh\necho swapped\n");
    test_write_text(dir, "text", "no program\n");
    assert_int_equal(chmod(script, 0755), 0);
    assert_int_equal(chmod(text, 0755), 0);
    assert_int_equal(artifact_open(good, "path", &a, &e), 0);
    assert_string_equal(a.name, "good");
    assert_true(a.size > 1000);
    assert_int_equal(artifact_unchanged(&a, &same, &e), 0);
    assert_true(same);
    /* Another file under the same name does not touch what was opened; a byte written in place
     * does. */
    int fd = open(good, O_WRONLY);

    assert_int_equal(pwrite(fd, "X", 1, 100), 1);
    close(fd);
    assert_int_equal(artifact_unchanged(&a, &same, &e), 0);
    assert_false(same);
    artifact_fini(&a);
    assert_int_equal(artifact_open(plain, "path", &a, &e), -1);
    assert_non_null(strstr(e.text, "not executable"));
    assert_int_equal(artifact_open(script, "path", &a, &e), -1);
    assert_non_null(strstr(e.text, "script"));
    assert_int_equal(artifact_open(text, "path", &a, &e), -1);
    assert_non_null(strstr(e.text, "ELF"));
    assert_int_equal(artifact_open(dir, "path", &a, &e), -1);
    assert_non_null(strstr(e.text, "regular file"));
    assert_int_equal(artifact_open(gone, "path", &a, &e), -1);
    free(gone);
    free(text);
    free(script);
    free(plain);
    free(good);
    test_dir_free(dir);
}

/* A sleeping program with a library of its own. */
static void start_with_library(const char *library, struct child *child)
{
    const char *const argv[] = {"sleep", "30", NULL};
    char preload[4200];
    const char *const envp[] = {preload, NULL};
    struct child_spec spec = CHILD_SPEC_INIT;
    struct err e = ERR_INIT;

    assert_true((size_t) snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library) <
                sizeof preload);
    spec.argv = argv;
    spec.envp = envp;
    spec.path = "/usr/bin:/bin";
    assert_int_equal(child_start(&spec, child, &e), 0);
}

static void stop(struct child *child)
{
    struct child_status status;
    struct err e = ERR_INIT;

    child_signal(child, SIGKILL);
    assert_int_equal(child_wait(child, &status, &e), 0);
    child_fini(child);
}

static void scan_until(struct mapped *m, pid_t pid, size_t files)
{
    struct err e = ERR_INIT;

    for (int i = 0; i < 200 && mapped_count(m) < files; i++) {
        test_pause_ms(10);
        assert_int_equal(mapped_scan(m, pid, &e), 0);
    }
    assert_true(mapped_count(m) >= files);
}

static char *library_path(void)
{
    static const char *const places[] = {
        "/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libm.so.6",
        "/lib/aarch64-linux-gnu/libm.so.6", "/usr/lib64/libm.so.6"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (access(places[i], R_OK) == 0)
            return strdup(places[i]);
    return NULL;
}

static void a_library_changed_in_place_is_noticed(void **state)
{
    char *dir = test_dir_new(), *from = library_path();
    struct child child;
    struct mapped *m = NULL;
    struct err e = ERR_INIT;
    const char *changed = NULL;
    cJSON *j = NULL;
    bool listed = false;
    const cJSON *row = NULL;

    (void) state;
    assert_non_null(from);
    char *library = copy_program(dir, "libown.so", from, 0755);

    start_with_library(library, &child);
    assert_int_equal(mapped_new(dir, &m, &e), 0);
    scan_until(m, child.pid, 4); /* sleep, loader, libc, our own */
    assert_int_equal(mapped_check(m, &changed, &e), 0);
    assert_null(changed);
    assert_int_equal(mapped_to_json(m, &j, &e), 0);
    cJSON_ArrayForEach(row, j) {
        listed = listed || !strcmp(json_get(row, "name")->valuestring,
                                   "libown.so"); /* relative to the source root */
        assert_int_equal(strlen(json_get(row, "sha256")->valuestring), 64);
    }
    assert_true(listed);
    cJSON_Delete(j);
    int fd = open(library, O_WRONLY | O_APPEND);

    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_int_equal(mapped_check(m, &changed, &e), 0);
    assert_string_equal(changed, "libown.so");
    stop(&child);
    mapped_free(m);
    free(library);
    free(from);
    test_dir_free(dir);
}

static void a_library_replaced_under_its_name_is_noticed(void **state)
{
    char *dir = test_dir_new(), *from = library_path();
    struct child child;
    struct mapped *m = NULL;
    struct err e = ERR_INIT;
    const char *changed = NULL;

    (void) state;
    assert_non_null(from);
    char *library = copy_program(dir, "libown.so", from, 0755);

    start_with_library(library, &child);
    test_pause_ms(300);
    assert_int_equal(unlink(library), 0);
    free(library);
    library = copy_program(dir, "libown.so", "/bin/true", 0755);
    assert_int_equal(mapped_new(dir, &m, &e), 0);
    scan_until(m, child.pid, 4);
    assert_int_equal(mapped_check(m, &changed, &e), 0);
    assert_non_null(changed);
    assert_non_null(strstr(changed, "libown.so"));
    stop(&child);
    mapped_free(m);
    free(library);
    free(from);
    test_dir_free(dir);
}

static void another_program_behind_proc_exe_is_noticed(void **state)
{
    struct artifact a;
    struct child child;
    struct mapped *m = NULL;
    struct err e = ERR_INIT;
    const char *changed = NULL;
    const char *const argv[] = {"sleep", "30", NULL};
    const char *const envp[] = {NULL};
    struct child_spec spec = CHILD_SPEC_INIT;

    (void) state;
    spec.argv = argv;
    spec.envp = envp;
    spec.path = "/usr/bin:/bin";
    assert_int_equal(child_start(&spec, &child, &e), 0);
    assert_int_equal(artifact_open("/bin/true", "path", &a, &e), 0);
    assert_int_equal(mapped_new("/", &m, &e), 0);
    assert_int_equal(mapped_check_exe(m, child.pid, &a, &e), 0);
    assert_int_equal(mapped_check(m, &changed, &e), 0);
    assert_string_equal(changed, "the executable");
    stop(&child);
    artifact_fini(&a);
    mapped_free(m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_messages_and_plain_text_are_fine),
        cmocka_unit_test(anything_but_one_executable_is_refused),
        cmocka_unit_test(the_source_file_may_be_named),
        cmocka_unit_test(lines_that_are_no_object_are_refused),
        cmocka_unit_test(a_build_that_did_not_succeed_is_refused),
        cmocka_unit_test(real_cargo_messages_are_read),
        cmocka_unit_test(meson_targets_are_read),
        cmocka_unit_test(only_regular_executable_elf_files_are_opened),
        cmocka_unit_test(a_library_changed_in_place_is_noticed),
        cmocka_unit_test(a_library_replaced_under_its_name_is_noticed),
        cmocka_unit_test(another_program_behind_proc_exe_is_noticed),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/artifact", tests, NULL, NULL);
}
