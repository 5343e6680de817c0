/* The manual pages say what the programs say: commands, options, exit codes; and mandoc has nothing
 * to complain about. */
#include "tests/docs/words.h"
#include "tests/lib/support.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Number of things that `a` has and `b` lacks, each named. */
static int lacking(const struct words *a, const struct words *b, const char *where)
{
    int n = 0;

    for (size_t i = 0; i < a->n; i++) {
        const struct words_command *mine = &a->list[i];
        const struct words_command *other = words_find(b, mine->name);

        if (!other) {
            print_error("command '%s' is missing in %s\n", mine->name, where);
            n++;
            continue;
        }
        for (size_t k = 0; k < mine->n; k++) {
            if (words_has(other, mine->options[k]))
                continue;
            print_error("'%s --%s' is missing in %s\n", mine->name, mine->options[k], where);
            n++;
        }
    }
    return n;
}

static void the_page_of_cleanrun_is_its_help(void **state)
{
    struct words *help = words_of_cleanrun();
    struct words *manual = words_of_manual("cleanrun.1");

    (void) state;
    assert_int_equal(lacking(help, manual, "cleanrun.1"), 0);
    assert_int_equal(lacking(manual, help, "--help"), 0);
    free(manual);
    free(help);
}

static void the_page_of_the_server_is_its_help(void **state)
{
    struct words *help = words_of_server();
    struct words *manual = words_of_manual("cleanrun-server.8");

    (void) state;
    assert_int_equal(lacking(help, manual, "cleanrun-server.8"), 0);
    assert_int_equal(manual->list[0].n, 0); /* no option stands outside a command */
    manual->list[0] = manual->list[--manual->n];
    assert_int_equal(lacking(manual, help, "--help"), 0);
    free(manual);
    free(help);
}

/* "  N  text" of `cleanrun help exit-codes` stands as ".It N" and text in the page. */
static void exit_codes_are_those_of_the_help(void **state)
{
    char *help = words_say("cleanrun", "help", "exit-codes", NULL);
    char *path = words_manual_path("cleanrun.1");
    char *manual = test_read_path(path, NULL);
    int n = 0;

    (void) state;
    for (char *rest = help, *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        const char *code = line + strspn(line, " ");
        char *wanted = NULL;

        if (!isdigit((unsigned char) *code) || strlen(line) < 6)
            continue;
        assert_true(
            asprintf(&wanted, "\n.It %.*s\n%s\n", (int) strcspn(code, " "), code, line + 5) > 0);
        if (!strstr(manual, wanted))
            fail_msg("missing in cleanrun.1:%s", wanted);
        free(wanted);
        n++;
    }
    assert_true(n >= 10);
    free(manual);
    free(path);
    free(help);
}

static void every_help_has_an_example_and_exit_codes(void **state)
{
    struct words *help = words_of_cleanrun();

    (void) state;
    for (size_t i = 1; i < help->n; i++) {
        char *page = words_help(help->list[i].name);
        const char *example = strstr(page, "  cleanrun ");

        if (strncmp(page, "  ", 2) != 0 || !example || example > strstr(page, "usage:"))
            if (!strstr(page, "$(cleanrun "))
                fail_msg("cleanrun %s --help: no example first", help->list[i].name);
        if (!strstr(page, "Exit:"))
            fail_msg("cleanrun %s --help: no exit codes", help->list[i].name);
        free(page);
    }
    free(help);
}

/* Every "## heading" of docs/definition.md is a section of the page made from it. */
static void the_page_of_the_definition_is_whole(void **state)
{
    char *path = words_manual_path("cleanrun.yaml.5");
    char *manual = test_read_path(path, NULL);
    char *source = test_read("docs/definition.md", NULL);
    int n = 0;

    (void) state;
    for (const char *at = strstr(source, "\n## "); at; at = strstr(at + 1, "\n## ")) {
        char *wanted = NULL;

        assert_true(asprintf(&wanted, "\n.Ss %.*s\n", (int) strcspn(at + 4, "\n"), at + 4) > 0);
        if (!strstr(manual, wanted))
            fail_msg("missing in cleanrun.yaml.5:%s", wanted);
        free(wanted);
        n++;
    }
    assert_true(n >= 10);
    free(source);
    free(manual);
    free(path);
}

static void mandoc_has_nothing_to_warn_about(void **state)
{
    static const char *const pages[] = {"cleanrun.1", "cleanrun.yaml.5", "cleanrun-server.8"};
    static const char *const probe[] = {"sh", "-c", "command -v mandoc", NULL};
    struct test_run r = {0};
    int code = 0;

    (void) state;
    test_run(probe, NULL, NULL, NULL, &r);
    code = r.code;
    test_run_fini(&r);
    if (code != 0) {
        (void) printf("SKIPPED tool: mandoc\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        char *path = words_manual_path(pages[i]);
        const char *const argv[] = {"mandoc", "-T", "lint", "-W", "warning", path, NULL};

        test_run(argv, NULL, NULL, NULL, &r);
        if (r.code != 0 || r.out_len > 0)
            fail_msg("%s%s", r.out, r.err);
        test_run_fini(&r);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_of_cleanrun_is_its_help),
        cmocka_unit_test(the_page_of_the_server_is_its_help),
        cmocka_unit_test(exit_codes_are_those_of_the_help),
        cmocka_unit_test(every_help_has_an_example_and_exit_codes),
        cmocka_unit_test(the_page_of_the_definition_is_whole),
        cmocka_unit_test(mandoc_has_nothing_to_warn_about),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
