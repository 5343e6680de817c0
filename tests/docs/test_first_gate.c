/* docs/first-gate.md, done as it says: its program, the definition at the top of
 * docs/definition.md, and the exit codes of its runs; then the same for its script. */
#include "tests/docs/words.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void put_block(const char *dir, const char *name, const char *page, const char *mark)
{
    char *text = words_block(page, mark);

    test_write_text(dir, name, text);
    free(text);
}

static const char script[] =
    "set -e\n"
    "export XDG_STATE_HOME=$PWD/state CLEANRUN_LOCK=$PWD/lock GIT_CONFIG_GLOBAL=/dev/null\n"
    "cleanrun=$1 line=$2; cd tree\n"
    "keep() { git add -A; git -c user.email=t@t -c user.name=t commit -qm x; }\n"
    "measure() { code=0; out=$1; shift\n"
    "    \"$cleanrun\" run sort --out \"../$out\" \"$@\" >/dev/null || code=$?; echo $code; }\n"
    "git init -q .; keep; \"$cleanrun\" check >/dev/null\n"
    "measure run-1 --at HEAD\n"
    "base=$(sha256sum < ../run-1/manifest.json | cut -c-64)\n"
    "set -- --baseline ../run-1 --baseline-sha256 $base\n"
    "measure run-2 --at HEAD \"$@\"\n"
    "awk -v line=\"$line\" '/ qsort\\(v/ { print line } { print }' sortbench.c > new\n"
    "mv new sortbench.c; keep\n"
    "measure run-3 --at HEAD \"$@\"\n"
    "sed -i 's/N = 100000/N = 50000/' sortbench.c; keep\n"
    "measure run-4 --at HEAD \"$@\"\n"
    "grep -o 'NC-IDENTITY-DIFFERS | sort/default.json | /n ' ../run-4/audit.md\n"
    "echo >> Makefile\n"
    "measure run-5 \"$@\"\n"
    "grep -o '| NC-SOURCE-DIRTY' ../run-5/audit.md\n"
    "measure run-6 --at HEAD \"$@\"\n"
    "grep -c NC-SOURCE-DIRTY ../run-6/audit.md || true\n"
    /* a program that was built before is what would run */
    "git checkout -q Makefile; git checkout -q HEAD~2 -- sortbench.c; keep\n"
    "make -s; measure run-7 \"$@\"\n"
    "grep -o '| NC-SOURCE-DIRTY.*1 file that git ignores' ../run-7/audit.md | wc -l\n"
    "rm sortbench; measure run-8 \"$@\"\n";

static void the_page_does_what_it_says(void **state)
{
    static const char page[] = "docs/first-gate.md";
    char *dir = test_dir_new();
    char *cleanrun = test_join(test_build_root(), "runner/cleanrun");
    char *line = words_block(page, "one line before `qsort`");
    const char *const argv[] = {"sh", "-c", script, "sh", cleanrun, line, NULL};
    struct test_run r = {0};

    (void) state;
    line[strcspn(line, "\n")] = '\0';
    put_block(dir, "tree/sortbench.c", page, "\n`sortbench.c`:");
    put_block(dir, "tree/Makefile", page, "\n`Makefile`");
    put_block(dir, "tree/.gitignore", page, "\n`.gitignore`");
    put_block(dir, "tree/cleanrun.yaml", "docs/definition.md", "# cleanrun.yaml\n");
    test_run(argv, NULL, dir, NULL, &r);
    if (r.code != 0)
        fail_msg("exit %d: %s%s", r.code, r.out, r.err);
    assert_string_equal(r.out, "3\n0\n1\n3\nNC-IDENTITY-DIFFERS | sort/default.json | /n \n"
                               "3\n| NC-SOURCE-DIRTY\n3\n0\n3\n1\n0\n");
    test_run_fini(&r);
    free(line);
    free(cleanrun);
    test_dir_free(dir);
}

static const char python_script[] =
    "set -e\n"
    "export XDG_STATE_HOME=$PWD/state CLEANRUN_LOCK=$PWD/lock GIT_CONFIG_GLOBAL=/dev/null\n"
    "cleanrun=$1; cd tree\n"
    "keep() { git add -A; git -c user.email=t@t -c user.name=t commit -qm x; }\n"
    "measure() { code=0; out=$1; shift\n"
    "    \"$cleanrun\" run pysort --at HEAD --out \"../$out\" \"$@\" >/dev/null || code=$?; echo "
    "$code; }\n"
    "git init -q .; keep; \"$cleanrun\" check >/dev/null\n"
    "measure py-1\n"
    "base=$(sha256sum < ../py-1/manifest.json | cut -c-64)\n"
    "set -- --baseline ../py-1 --baseline-sha256 $base\n"
    "measure py-2 \"$@\"\n"
    "sed -i 's/^values.sort()/min(values); values.sort()/' bench.py; keep\n"
    "measure py-3 \"$@\"\n"
    "grep -o 'library [0-9a-f]*' ../py-3/manifest.json | sort -u | wc -c\n"
    /* another library is another experiment */
    "sed -i 's/hexdigest())/hexdigest()[::-1])/' facts.py; keep\n"
    "measure py-4 \"$@\"\n"
    "grep -o 'NC-IDENTITY-DIFFERS' ../py-4/audit.md | head -1\n"
    "git status --short\n";

static void a_script_is_measured_as_the_page_says(void **state)
{
    static const char page[] = "docs/first-gate.md";
    char *dir = test_dir_new();
    char *cleanrun = test_join(test_build_root(), "runner/cleanrun");
    const char *const argv[] = {"sh", "-c", python_script, "sh", cleanrun, NULL};
    struct test_run r = {0};

    (void) state;
    if (access("/usr/bin/python3", X_OK) < 0) {
        printf("SKIPPED: no /usr/bin/python3\n");
        free(cleanrun);
        test_dir_free(dir);
        skip();
    }
    put_block(dir, "tree/bench.py", page, "`bench.py`:");
    put_block(dir, "tree/take-python.sh", page, "`take-python.sh`");
    put_block(dir, "tree/facts.py", page, "`facts.py` prints");
    put_block(dir, "tree/cleanrun.yaml", page, "its `cleanrun.yaml`:");
    test_write_text(dir, "tree/.gitignore", "/build/\n");
    test_run(argv, NULL, dir, NULL, &r);
    if (r.code != 0)
        fail_msg("exit %d: %s%s", r.code, r.out, r.err);
    assert_string_equal(r.out, "3\n0\n1\n73\n3\nNC-IDENTITY-DIFFERS\n");
    test_run_fini(&r);
    free(cleanrun);
    test_dir_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_does_what_it_says),
        cmocka_unit_test(a_script_is_measured_as_the_page_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
