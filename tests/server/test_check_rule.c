/* The rule of a check by itself: which of several attempts answers. */
#include "tests/lib/support.h"

#include <string.h>

#include "server/store/check_rule.h"

#define LIST_MAX 8

/* One attempt in a letter: o an OK, r a REGRESSION, R one whose evidence fell since, n a refusal to
 * compare, i a refused upload. programs: which program each is of. */
static void fill(struct check_attempts *l, struct arena *arena, const char *verdicts,
                 const char *programs)
{
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    struct err e = ERR_INIT;

    assert_true(strlen(verdicts) <= LIST_MAX);
    for (size_t i = 0; verdicts[i]; i++) {
        char v = verdicts[i];
        struct check_attempt a = {.run = names[i],
                                  .at_us = (int64_t) i,
                                  .complete = v != 'i',
                                  .regressed = v == 'r' || v == 'R',
                                  .baseline = "b",
                                  .has_executable = true};

        a.verdict = v == 'o'   ? VERDICT_OK
                    : v == 'r' ? VERDICT_REGRESSION
                    : v == 'n' ? VERDICT_NON_COMPARABLE
                               : VERDICT_INVALID;
        memset(a.executable.bytes, programs[i], sizeof a.executable.bytes);
        assert_int_equal(check_attempts_add(l, arena, &a, &e), 0);
    }
}

static void an_ok_does_not_wash_off_a_regression(void **state)
{
    static const struct {
        const char *verdicts, *programs;
        const char *latest; /* run, or NULL */
        const char *stands; /* run whose REGRESSION stands against the latest, or NULL */
        int64_t agreeing;
    } cases[] = {
        {"", "", NULL, NULL, 0},         {"ii", "11", NULL, NULL, 0}, {"o", "1", "0", NULL, 1},
        {"ro", "11", "1", "0", 1},       {"ro", "12", "1", NULL, 1}, /* another program */
        {"Ro", "11", "1", "0", 1},       /* it was one, whatever became of its evidence */
        {"rro", "111", "2", "1", 1},     /* the last one is named */
        {"rooo", "1111", "3", "0", 3},   /* a confirm rule may take three */
        {"rono", "1111", "3", "0", 1},   /* but they must follow each other */
        {"roroo", "11111", "4", "2", 2}, /* and a REGRESSION between begins anew */
        {"rooro", "12122", "4", "3", 1}, /* each program by itself */
        {"roio", "1111", "3", "0", 2},   /* a refused upload is no answer */
        {"oi", "11", "0", NULL, 1},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct check_attempts l = {.first = NULL};
        const struct check_attempt *latest;
        const struct check_attempt *stands = NULL;
        struct arena arena;

        arena_init(&arena, 1 << 16);
        fill(&l, &arena, cases[i].verdicts, cases[i].programs);
        latest = check_latest(&l);
        if (latest)
            stands = check_earlier_regression(&l, latest);
        if (strcmp(latest ? latest->run : "-", cases[i].latest ? cases[i].latest : "-") != 0 ||
            strcmp(stands ? stands->run : "-", cases[i].stands ? cases[i].stands : "-") != 0 ||
            (latest && check_agreeing(&l, latest) != cases[i].agreeing))
            fail_msg("%s %s: latest %s, standing %s, %lld agree", cases[i].verdicts,
                     cases[i].programs, latest ? latest->run : "-", stands ? stands->run : "-",
                     latest ? (long long) check_agreeing(&l, latest) : 0LL);
        arena_fini(&arena);
    }
}

/* A build that is not reproducible gives another executable of the same source. */
static void the_same_clean_source_is_the_same_program(void **state)
{
    struct check_attempt red = {.run = "red",
                                .complete = true,
                                .regressed = true,
                                .verdict = VERDICT_REGRESSION,
                                .baseline = "b",
                                .has_executable = true,
                                .clean = true};
    struct check_attempt green = {.run = "green",
                                  .complete = true,
                                  .verdict = VERDICT_OK,
                                  .baseline = "b",
                                  .has_executable = true,
                                  .executable = {.bytes = {1}},
                                  .clean = true};
    static const struct {
        const char *baseline;
        bool clean, stands;
    } cases[] = {
        {"b", true, true},
        {"b", false, false}, /* a dirty tree is not the commit */
        {"c", true, false},  /* against another baseline it is another question */
        {NULL, true, false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct check_attempts l = {.first = NULL};
        struct err e = ERR_INIT;
        struct arena arena;

        arena_init(&arena, 1 << 16);
        green.clean = cases[i].clean;
        green.baseline = cases[i].baseline;
        assert_int_equal(check_attempts_add(&l, &arena, &red, &e), 0);
        assert_int_equal(check_attempts_add(&l, &arena, &green, &e), 0);
        assert_int_equal(check_earlier_regression(&l, check_latest(&l)) != NULL, cases[i].stands);
        arena_fini(&arena);
    }
}

/* The order of the rows, not the clock, decides among runs: it may have been set back. */
static void a_clock_set_back_changes_no_order(void **state)
{
    struct check_attempts l = {.first = NULL};
    struct check_attempt a = {.run = "first", .complete = true, .at_us = 100};
    struct err e = ERR_INIT;
    struct arena arena;

    (void) state;
    arena_init(&arena, 1 << 16);
    assert_int_equal(check_attempts_add(&l, &arena, &a, &e), 0);
    a.run = "second";
    a.at_us = 50;
    assert_int_equal(check_attempts_add(&l, &arena, &a, &e), 0);
    a = (struct check_attempt){.run = "refused", .at_us = 60};
    assert_int_equal(check_attempts_add(&l, &arena, &a, &e), 0);
    assert_string_equal(l.first->run, "first");
    assert_string_equal(check_latest(&l)->run, "second");
    assert_string_equal(l.last->run, "refused");
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ok_does_not_wash_off_a_regression),
        cmocka_unit_test(the_same_clean_source_is_the_same_program),
        cmocka_unit_test(a_clock_set_back_changes_no_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
