/* Settings of the server: a flag wins over the environment, that over the default; nonsense is
 * told. */
#include "tests/lib/support.h"

#include <string.h>

#include "server/config.h"

static char *const nothing[] = {NULL};

static void defaults_hold_without_anything(void **state)
{
    struct config c = {.data = NULL};
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(config_parse(0, nothing, nothing, &c, &e), 0);
    assert_string_equal(c.data, "/var/lib/cleanrun");
    assert_string_equal(c.listen, "127.0.0.1:8620");
    assert_null(c.base_url);
    assert_null(c.templates);
    assert_true(c.threads >= 4);
    assert_int_equal(c.idle_s, 15);
    assert_int_equal(c.header_s, 20);
    assert_int_equal(c.drain_s, 30);
}

static void flags_win_over_the_environment(void **state)
{
    char data[] = "--data";
    char dir[] = "/a";
    char threads[] = "--threads=3";
    char from_data[] = "CLEANRUN_SERVER_DATA=/b";
    char from_listen[] = "CLEANRUN_SERVER_LISTEN=[::1]:1";
    char from_threads[] = "CLEANRUN_SERVER_THREADS=9";
    char empty[] = "CLEANRUN_SERVER_BASE_URL=";
    char *const argv[] = {data, dir, threads};
    char *const environment[] = {from_data, from_listen, from_threads, empty, NULL};
    struct config c = {.data = NULL};
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(config_parse(3, argv, environment, &c, &e), 0);
    assert_string_equal(c.data, "/a");
    assert_string_equal(c.listen, "[::1]:1");
    assert_int_equal(c.threads, 3);
    assert_null(c.base_url); /* an empty variable is none */
}

static void nonsense_is_refused_with_a_hint(void **state)
{
    static const struct {
        const char *word, *hint;
    } rows[] = {
        {"--dta=/x", "did you mean '--data'"},
        {"serve", "unknown option"},
        {"--listen", "needs a value"},
        {"--threads=1", "from 2 to 64"},
        {"--threads=many", "from 2 to 64"},
        {"--drain-timeout=0", "from 1 to 600"},
        {"--base-url=perf.example", "http"},
        {"--base-url=http://h/", "slash at the end"},
        {"--base-url=http://h/\"x", "--base-url must be"},
    };
    size_t i = 0;

    (void) state;
    for (i = 0; i < ARRAY_LEN(rows); i++) {
        char *word = strdup(rows[i].word);
        char *const argv[] = {word};
        struct config c = {.data = "untouched"};
        struct err e = ERR_INIT;

        assert_int_equal(config_parse(1, argv, nothing, &c, &e), -1);
        assert_int_equal(e.kind, ERR_USAGE);
        if (!strstr(e.text, rows[i].hint))
            fail_msg("%s: %s", rows[i].word, e.text);
        assert_string_equal(c.data, "untouched");
        free(word);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_hold_without_anything),
        cmocka_unit_test(flags_win_over_the_environment),
        cmocka_unit_test(nonsense_is_refused_with_a_hint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
