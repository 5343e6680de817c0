/* ci/check_*.sh and ci/count_tests: what they refuse and what they let pass, on made-up trees and
 * logs. */
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char *const folders[] = {"base",   "experiment", "evidence", "audit",
                                      "runner", "server",     "tools",    "tests"};

/* A tree that holds one check and an innocent file per folder. */
static char *make_tree(const char *script)
{
    char *dir = test_dir_new();
    char *bytes = test_read(script, NULL);
    char *path = NULL;

    test_write_text(dir, script, bytes);
    path = test_join(dir, script);
    assert_int_equal(chmod(path, 0755), 0);
    free(path);
    free(bytes);
    for (size_t i = 0; i < LEN(folders); i++) {
        char name[64];

        (void) snprintf(name, sizeof(name), "%s/plain.c", folders[i]);
        test_write_text(dir, name, "#include <stdio.h>\n\nint plain(void)\n{\n    return 0;\n}\n");
    }
    return dir;
}

/* Exit code of the check when `file` holds `text` (NULL: the innocent tree); names the file when it
 * refuses. */
static int check(const char *script, const char *file, const char *text)
{
    char *dir = make_tree(script);
    char *path = test_join(dir, script);
    const char *const argv[] = {path, NULL};
    struct test_run r = {0};
    int code = 0;

    if (file)
        test_write_text(dir, file, text);
    test_run(argv, NULL, dir, NULL, &r);
    code = r.code;
    if (file && code != 0)
        assert_non_null(strstr(r.out, file));
    test_run_fini(&r);
    free(path);
    test_dir_free(dir);
    return code;
}

struct row {
    const char *file;
    const char *text;
    int code;
};

static void check_rows(const char *script, const struct row *rows, size_t n)
{
    assert_int_equal(check(script, NULL, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        int code = check(script, rows[i].file, rows[i].text);

        if (code != rows[i].code)
            fail_msg("%s: %s: %s: exit %d", script, rows[i].file, rows[i].text, code);
    }
}

static void layers_go_down_only(void **state)
{
    static const struct row rows[] = {
        {"experiment/a.c", "#include \"base/err.h\"\n", 0},
        {"base/a.c", "#include \"experiment/x.h\"\n", 1},
        {"evidence/a.c", "#include \"audit/x.h\"\n", 1},
        {"audit/a.c", "#include \"evidence/x.h\"\n", 1},
        {"runner/a.c", "#include \"audit/x.h\"\n", 0},
        {"runner/a.c", "#include \"server/config.h\"\n", 1},
        {"server/a.c", "#include \"runner/x.h\"\n", 1},
        {"server/store/a.c", "#include \"server/http/x.h\"\n", 1},
        {"server/http/a.c", "#include \"server/store/x.h\"\n", 1},
        {"server/ingest/a.c", "#include \"server/store/x.h\"\n", 0},
        {"base/a.c", "#include \"err.h\"\n", 1},
        {"base/a.c", "#include <sqlite3.h>\n", 1},
        {"server/store/a.c", "#include <sqlite3.h>\n", 0},
        {"server/pages/a.c", "#include <microhttpd.h>\n", 1},
        {"evidence/a.c", "#include <mbedtls/pk.h>\n", 1},
        {"evidence/sign.c", "#include <mbedtls/pk.h>\n", 0},
        {"evidence/a.c", "#include <nettle/sha2.h>\n", 1},
        {"base/digest.c", "#include <nettle/sha2.h>\n", 0},
        {"base/a.c", "  #  include \"audit/x.h\"\n", 1},
    };

    (void) state;
    check_rows("ci/check_layers.sh", rows, LEN(rows));
}

static void banned_calls_are_found(void **state)
{
    static const struct row rows[] = {
        {"base/a.c", "int f(void) { strcpy(a, b); }\n", 1},
        {"tests/a.c", "int f(void) { strcpy(a, b); }\n", 1},
        {"audit/a.c", "x = strtod(p, &end);\n", 1},
        {"base/num.c", "x = strtod_l(p, &end, c);\n", 0},
        {"base/num.c", "x = strtol(p, &end, 10);\n", 1},
        {"runner/a.c", "sscanf (s, \"%d\", &i);\n", 1},
        {"runner/a.c", "my_system(s);\n", 0},
        {"runner/a.c", " * popen (3) is not used\n", 0},
        {"server/a.c", "j = cJSON_GetObjectItem(o, \"k\");\n", 1},
        {"server/a.c", "j = cJSON_Parse(s);\n", 1},
        {"server/a.c", "cJSON_AddItemToArray(a, j);\n", 0},
        {"server/a.c", "setenv(\"A\", \"b\", 1);\n", 1},
        {"tests/a.c", "setenv(\"A\", \"b\", 1);\n", 0},
    };

    (void) state;
    check_rows("ci/check_banned.sh", rows, LEN(rows));
}

static void words_of_one_workload_are_found(void **state)
{
    static const struct row rows[] = {
        {"experiment/a.c", "get(j, \"cps\");\n", 1},
        {"audit/a.c", "x = \"results.latency_ns.p99\";\n", 1},
        {"runner/a.c", "int max_CPS;\n", 1},
        {"server/a.c", "/* Alice calls */\n", 1},
        {"server/a.c", "/* a gossip of chips */\n", 0},
        {"tests/a.c", "get(j, \"cps\");\n", 0},
    };

    (void) state;
    check_rows("ci/check_words.sh", rows, LEN(rows));
}

/* Builds one library from `text` for all folders and runs the check on it. */
static int check_globals(const char *text)
{
    static const char build[] = "set -e; cc -c -fPIC -O1 -o a.o a.c; "
                                "for d in base experiment evidence audit runner server; do "
                                "mkdir -p b/$d; ar crs b/$d/lib$d.a a.o; done; exec \"$0\" b";
    char *dir = test_dir_new();
    char *script = test_path("ci/check_globals.sh");
    const char *const argv[] = {"sh", "-c", build, script, NULL};
    struct test_run r = {0};
    int code = 0;

    test_write_text(dir, "a.c", text);
    test_run(argv, NULL, dir, NULL, &r);
    code = r.code;
    test_run_fini(&r);
    free(script);
    test_dir_free(dir);
    return code;
}

static void writable_globals_are_found(void **state)
{
    (void) state;
    assert_int_equal(check_globals("int f(void);\nint f(void) { static const char *const t[] = "
                                   "{\"a\", \"b\"}; return t[0][0]; }\n"),
                     0);
    assert_int_equal(check_globals("const char *const t[] = {\"a\"};\n"), 0);
    assert_int_equal(check_globals("int g;\n"), 1);
    assert_int_equal(check_globals("int g = 4;\n"), 1);
    assert_int_equal(check_globals("const char *g = \"a\";\n"), 1);
    assert_int_equal(check_globals("int f(void);\nint f(void) { static int n; return ++n; }\n"), 1);
    assert_int_equal(check_globals("_Thread_local int g;\n"), 1);
}

/* ci/count_tests on one log; returns its exit code, the last line in *out_line (heap). */
static int count(const char *log, char **out_line)
{
    char *dir = test_dir_new();
    char *script = test_path("ci/count_tests");
    char *argument = NULL;
    const char *argv[] = {script, NULL, NULL};
    struct test_run r = {0};
    int code = 0;
    char *line = NULL;

    test_write_text(dir, "log", log);
    assert_true(asprintf(&argument, "b=%s/log", dir) > 0);
    argv[1] = argument;
    test_run(argv, NULL, dir, NULL, &r);
    code = r.code;
    assert_true(r.out_len > 0);
    r.out[r.out_len - 1] = '\0';
    line = strrchr(r.out, '\n');
    *out_line = strdup(line ? line + 1 : r.out);
    test_run_fini(&r);
    free(argument);
    free(script);
    test_dir_free(dir);
    return code;
}

static void single_functions_are_counted(void **state)
{
    static const struct {
        const char *log;
        const char *line;
        int code;
    } rows[] = {
        {"{\"name\":\"p / a\",\"result\":\"OK\",\"duration\":1,\"stdout\":\"[ RUN      ] x\\n[     "
         "  OK ] x\\n"
         "[ RUN      ] y\\n[  SKIPPED ] y\\nSKIPPED corpus: c\\n[  PASSED  ] 1 test(s).\\n[  "
         "SKIPPED ] 1 test(s), listed below:\\n"
         "[  SKIPPED ] y\\n\"}\n",
         "1 passed, 0 failed, 1 skipped", 0},
        {"{\"name\":\"a\",\"result\":\"FAIL\",\"duration\":1,\"stdout\":\"[       OK ] x\\n\","
         "\"stderr\":\"[  FAILED  ] y\\n[  FAILED  ] 1 test(s), listed below:\\n[  FAILED  ] "
         "y\\n\"}\n",
         "1 passed, 1 failed, 0 skipped", 1},
        {"{\"name\":\"a\",\"result\":\"FAIL\",\"duration\":1,\"stdout\":\"[       OK ] x\\n[ RUN   "
         "   ] dies\\n\"}\n",
         "1 passed, 1 failed, 0 skipped", 1},
        {"{\"name\":\"a\",\"result\":\"TIMEOUT\",\"duration\":1}\n{\"name\":\"b\",\"result\":"
         "\"OK\",\"duration\":1}\n",
         "1 passed, 1 failed, 0 skipped", 1},
        {"", "0 passed, 0 failed, 0 skipped", 1},
    };

    (void) state;
    for (size_t i = 0; i < LEN(rows); i++) {
        char *line = NULL;

        assert_int_equal(count(rows[i].log, &line), rows[i].code);
        assert_string_equal(line, rows[i].line);
        free(line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_go_down_only),
        cmocka_unit_test(banned_calls_are_found),
        cmocka_unit_test(words_of_one_workload_are_found),
        cmocka_unit_test(writable_globals_are_found),
        cmocka_unit_test(single_functions_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
