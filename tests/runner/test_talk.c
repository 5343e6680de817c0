/* What a run says on the terminal and in a CI log: the branch's texts stay in their lines, and a
 * run that was compared with nothing says so whenever it is shown. */
#include "tests/runner/project.h"

#include <string.h>

#include "base/digest.h"

/* No control, no turned direction, and no line that begins as a command or an answer of ours. */
static void obeys_nobody(const char *what, const char *text)
{
    static const char *const marks[] = {"\x1b",          "\x07",     "\r",   "\xc2\x9b",
                                        "\xe2\x80\xae",  "\xd8\x9c", "\n::", "\nresult     OK",
                                        "\nresult    OK"};

    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (strstr(text, marks[i]))
            fail_msg("%s, mark %zu:\n%s", what, i, text);
    }
}

#define EVIL_C                                                                                     \
    "\\\\u001b[2J\\\\u0007\\\\u009b31m\\\\n::stop-commands::x\\\\nresult     "                     \
    "OK\\\\r\\\\u202e\\\\u061cz"

static void a_branch_forges_no_line(void **state)
{
    char hex[DIGEST_HEX_SIZE];
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok",
                "    conditioning:\n"
                "      - {name: \"a\\e[31m\\n::error::x\\u202E\", command: ['true'], value: 1}\n");
    project_change(&p, "cleanrun.yaml", "      - {path: /load/rate, require: required}\n",
                   "      - {path: /load/rate, require: required}\n      - {path: /evil, require: "
                   "required}\n");
    project_change(&p, "workload.c", "{\\\"rate\\\": 7}, \\\"results",
                   "{\\\"rate\\\": 7}, \\\"evil\\\": \\\"a\\\", \\\"results");
    char *base = test_join(p.dir, "base");
    char *out = test_join(p.dir, "out");
    const char *const first[] = {"run", "g", "--at", "HEAD", "--out", base, NULL};
    const char *const show_first[] = {"show", base, NULL};

    project_cleanrun(&p, first, NULL, &r);
    assert_int_equal(r.code, 3);
    obeys_nobody("the first run", r.err);
    assert_non_null(strstr(r.err, "::error::x[U+202E]"));
    test_run_fini(&r);
    project_cleanrun(&p, show_first, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\nresult    NON_COMPARABLE  NC-BASELINE-NONE: this run was "
                                  "compared with no baseline"));
    test_run_fini(&r);

    project_manifest_digest(base, hex);
    project_change(&p, "workload.c", "\\\"evil\\\": \\\"a\\\"", "\\\"evil\\\": \\\"" EVIL_C "\\\"");
    const char *const second[] = {
        "run", "g", "--at", "HEAD", "--out", out, "--baseline", base, "--baseline-sha256",
        hex,   NULL};
    const char *const show_second[] = {"show", out, NULL};

    project_cleanrun(&p, second, NULL, &r);
    assert_int_equal(r.code, 3);
    assert_non_null(strstr(r.err, "NC-IDENTITY-DIFFERS"));
    assert_non_null(strstr(r.err, "?[2J??31m ::stop-commands::x result     OK"));
    obeys_nobody("the second run", r.err);
    test_run_fini(&r);
    project_cleanrun(&p, show_second, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\nresult    NON_COMPARABLE\n"));
    obeys_nobody("show", r.out);
    test_run_fini(&r);
    const char *const audit[] = {"audit", "--baseline", base, "--current", out, NULL};

    project_cleanrun(&p, audit, NULL, &r);
    assert_int_equal(r.code, 3);
    obeys_nobody("audit", r.out);
    test_run_fini(&r);
    free(out);
    free(base);
    project_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_branch_forges_no_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
