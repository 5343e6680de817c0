#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json_in.h"
#include "experiment/align.h"

static cJSON *parse(const char *text)
{
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(json_parse(text, strlen(text), NULL, &j, &e), 0);
    return j;
}

/* The steps as a word: = equal, ~ changed, - removed, + added. */
static void steps_are(const char *baseline, const char *current, const char *expected)
{
    AUTO_JSON cJSON *a = parse(baseline);
    AUTO_JSON cJSON *b = parse(current);
    AUTO_ALIGNMENT struct alignment made = {0};
    struct err e = ERR_INIT;
    char word[64] = "";

    assert_int_equal(align_lists(a, b, &made, &e), 0);
    assert_true(made.n < sizeof word);
    for (size_t i = 0; i < made.n; i++)
        word[i] = "=~-+"[made.steps[i].kind];
    if (strcmp(word, expected) != 0)
        fail_msg("%s and %s: %s, expected %s", baseline, current, word, expected);
}

static void lists_are_aligned(void **state)
{
    (void) state;
    steps_are("[]", "[]", "");
    steps_are("[]", "[1]", "+");
    steps_are("[1]", "[]", "-");
    steps_are("[1,2,3]", "[1,2,3]", "===");
    steps_are("[1,2,3]", "[1,3]", "=-=");
    steps_are("[1,3]", "[1,2,3]", "=+=");
    steps_are("[1,2,3]", "[1,9,3]", "=~=");
    steps_are("[1,2]", "[1,3,4]", "=~+");
    steps_are("[1,2,3]", "[3,1,2]", "+==-");
    steps_are("[1,1,1,2]", "[1,1,2]", "==-=");
    steps_are("[2000]", "[2000.0]", "=");
    steps_are("[1]", "[true]", "~");
    steps_are("[\"1\"]", "[1]", "~");
    steps_are("[{\"a\":1,\"b\":2}]", "[{\"b\":2,\"a\":1}]", "=");
    steps_are("[[1,2],[3]]", "[[3]]", "-=");
    steps_are("[null]", "[]", "-");
}

static void named_objects_change_into_their_namesake(void **state)
{
    (void) state;
    steps_are("[{\"name\":\"a\",\"v\":1},{\"name\":\"b\",\"v\":1}]", "[{\"name\":\"b\",\"v\":2}]",
              "-~");
    steps_are("[{\"name\":\"a\",\"v\":1}]", "[{\"name\":\"b\",\"v\":2}]", "-+");
    steps_are("[{\"name\":\"a\",\"v\":1}]", "[{\"name\":\"b\",\"v\":1}]", "~");
    steps_are("[{\"path\":\"/a\",\"v\":1}]",
              "[{\"path\":\"/x\"},{\"path\":\"/a\",\"v\":2},{\"path\":\"/y\"}]", "+~+");
    steps_are("[{\"v\":1}]", "[{\"v\":2}]", "~");
    steps_are("[{\"name\":\"a\"}]", "[7]", "~");
    steps_are("[{\"name\":1}]", "[{\"name\":2}]", "~");
}

/* Reference: the length of a longest common subsequence, by brute force over subsets of the shorter
 * list. */
static size_t longest(const int *a, size_t n, const int *b, size_t m)
{
    size_t best = 0;

    for (unsigned set = 0; set < 1U << n; set++) {
        size_t j = 0;
        size_t taken = 0;

        for (size_t i = 0; i < n; i++) {
            if (!(set >> i & 1U))
                continue;
            while (j < m && b[j] != a[i])
                j++;
            if (j++ >= m)
                break;
            taken++;
        }
        if (taken == (size_t) __builtin_popcount(set) && taken > best)
            best = taken;
    }
    return best;
}

static cJSON *numbers(const int *a, size_t n)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < n; i++)
        assert_true(cJSON_AddItemToArray(list, cJSON_CreateNumber(a[i])));
    return list;
}

/* Every element is told once, in order, and as many as possible are equal. */
static void random_lists_against_brute_force(void **state)
{
    uint32_t seed = 12345;
    int v[2][8] = {0};
    size_t n[2] = {0};

    (void) state;
    for (int round = 0; round < 3000; round++) {
        AUTO_ALIGNMENT struct alignment made = {0};
        struct err e = ERR_INIT;
        size_t at[2] = {0, 0};
        size_t equal = 0;

        for (size_t side = 0; side < 2; side++) {
            n[side] = (seed = seed * 1664525U + 1013904223U) >> 29;
            for (size_t i = 0; i < n[side]; i++)
                v[side][i] = (int) ((seed = seed * 1664525U + 1013904223U) >> 30);
        }
        AUTO_JSON cJSON *a = numbers(v[0], n[0]);
        AUTO_JSON cJSON *b = numbers(v[1], n[1]);

        assert_int_equal(align_lists(a, b, &made, &e), 0);
        for (size_t i = 0; i < made.n; i++) {
            const struct align_step *s = &made.steps[i];

            assert_int_equal(s->at_baseline, at[0]);
            assert_int_equal(s->at_current, at[1]);
            assert_true((s->baseline != NULL) == (s->kind != ALIGN_ADDED));
            assert_true((s->current != NULL) == (s->kind != ALIGN_REMOVED));
            if (s->baseline)
                assert_int_equal((int) s->baseline->valuedouble, v[0][at[0]++]);
            if (s->current)
                assert_int_equal((int) s->current->valuedouble, v[1][at[1]++]);
            assert_true(!s->baseline || !s->current ||
                        json_equal(s->baseline, s->current) == (s->kind == ALIGN_EQUAL));
            equal += s->kind == ALIGN_EQUAL ? 1 : 0;
        }
        assert_int_equal(at[0], n[0]);
        assert_int_equal(at[1], n[1]);
        assert_int_equal(equal, longest(v[0], n[0], v[1], n[1]));
    }
}

/* Lists too long for the table: one in a hundred was removed, one in a hundred replaced. */
static void long_lists_keep_what_stayed(void **state)
{
    enum { N = 100000 };
    AUTO_JSON cJSON *a = cJSON_CreateArray();
    AUTO_JSON cJSON *b = cJSON_CreateArray();
    AUTO_ALIGNMENT struct alignment made = {0};
    struct err e = ERR_INIT;
    size_t kinds[4] = {0};

    (void) state;
    for (int i = 0; i < N; i++) {
        assert_true(cJSON_AddItemToArray(a, cJSON_CreateNumber(i)));
        if (i % 100 != 50)
            assert_true(cJSON_AddItemToArray(b, cJSON_CreateNumber(i % 100 == 3 ? -i : i)));
    }
    assert_int_equal(align_lists(a, b, &made, &e), 0);
    for (size_t i = 0; i < made.n; i++)
        kinds[made.steps[i].kind]++;
    assert_int_equal(kinds[ALIGN_EQUAL], N / 100 * 98);
    assert_int_equal(kinds[ALIGN_REMOVED], N / 100);
    assert_int_equal(kinds[ALIGN_CHANGED], N / 100);
    assert_int_equal(kinds[ALIGN_ADDED], 0);
}

/* Nothing in common, and many names: bounded work, everything is told. */
static void unlike_lists_end(void **state)
{
    AUTO_JSON cJSON *a = cJSON_CreateArray();
    AUTO_JSON cJSON *b = cJSON_CreateArray();
    AUTO_ALIGNMENT struct alignment made = {0};
    struct err e = ERR_INIT;

    (void) state;
    for (int i = 0; i < 50000; i++) {
        cJSON *named = cJSON_CreateObject();
        char name[24];

        (void) snprintf(name, sizeof name, "n%d", i);
        assert_non_null(cJSON_AddStringToObject(named, "name", name));
        assert_true(cJSON_AddItemToArray(a, named));
        assert_true(cJSON_AddItemToArray(b, cJSON_CreateNumber(i)));
    }
    assert_int_equal(align_lists(a, b, &made, &e), 0);
    assert_int_equal(made.n, 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_aligned),
        cmocka_unit_test(named_objects_change_into_their_namesake),
        cmocka_unit_test(random_lists_against_brute_force),
        cmocka_unit_test(long_lists_keep_what_stayed),
        cmocka_unit_test(unlike_lists_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
