/* What reaches standard error is seen from outside: the program runs itself with an argument. */
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

static void speak(void)
{
    char quoted[300];
    char *longer = malloc(10001);

    memset(longer, 'x', 10000);
    longer[10000] = '\0';
    log_event(LOG_DEBUG, "quiet", "n=%d", 1);
    log_event(LOG_INFO, "start", "n=%d name=%s", 2, log_q("a\nb \"c\"", quoted, sizeof(quoted)));
    log_event(LOG_WARN, "two-lines", "text=%s", "first\nsecond");
    log_event(LOG_ERROR, "long", "text=%s", longer);
    free(longer);
}

static void run_self(const char *level, struct test_run *r)
{
    char env[64];
    const char *const list[] = {env, NULL};
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    const char *const self[] = {path, "speak", NULL};

    assert_true(n > 0);
    path[n] = '\0';
    (void) snprintf(env, sizeof(env), "CLEANRUN_LOG=%s", level);
    test_run(self, list, NULL, NULL, r);
    assert_int_equal(r->code, 0);
}

static size_t count_lines(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void one_event_is_one_line(void **state)
{
    struct test_run r = {0};

    (void) state;
    run_self("info", &r);
    assert_int_equal(count_lines(r.err), 3);
    assert_non_null(strstr(r.err, "Z level=info event=start n=2 name=\"a\\x0ab \\\"c\\\"\"\n"));
    assert_non_null(strstr(r.err, "level=warn event=two-lines text=first second\n"));
    assert_non_null(strstr(r.err, "level=error event=long cut=1\n"));
    assert_null(strstr(r.err, "quiet"));
    assert_string_equal(r.out, "");
    test_run_fini(&r);
}

static void level_comes_from_the_environment(void **state)
{
    static const struct {
        const char *level;
        size_t lines;
    } rows[] = {{"debug", 4}, {"info", 3}, {"warn", 2}, {"error", 1}, {"nonsense", 3}, {"", 3}};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct test_run r = {0};

        run_self(rows[i].level, &r);
        assert_int_equal(count_lines(r.err), rows[i].lines);
        test_run_fini(&r);
    }
}

static void outside_text_is_quoted_and_cut(void **state)
{
    char out[1024];
    char longer[402];

    (void) state;
    assert_string_equal(log_q("plain", out, sizeof(out)), "\"plain\"");
    assert_string_equal(log_q("", out, sizeof(out)), "\"\"");
    assert_string_equal(log_q(NULL, out, sizeof(out)), "\"\"");
    assert_string_equal(log_q("\x1b[0m\x7f\xff\\ \xc3\xa4", out, sizeof(out)),
                        "\"\\x1b[0m\\x7f\\xff\\\\ \xc3\xa4\"");
    memset(longer, 'x', 401);
    longer[401] = '\0';
    (void) log_q(longer, out, sizeof(out));
    assert_int_equal(strlen(out), 205);
    assert_string_equal(out + 200, "x...\"");
    for (unsigned n = 8; n < 64; n++) {
        (void) log_q(
            "\xe2\x82\xac\n\xe2\x82\xac\n\xe2\x82\xac\n\xe2\x82\xac\n\xe2\x82\xac\n\xe2\x82\xac",
            out, n);
        assert_true(strlen(out) < n);
        assert_int_equal(out[strlen(out) - 1], '"');
    }
    assert_string_equal(log_q("x", out, 7), "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_event_is_one_line),
        cmocka_unit_test(level_comes_from_the_environment),
        cmocka_unit_test(outside_text_is_quoted_and_cut),
    };

    if (argc == 2 && strcmp(argv[1], "speak") == 0) {
        speak();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
