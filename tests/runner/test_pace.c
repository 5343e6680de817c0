/* Samples that were not taken when they should have been. */
#include "tests/lib/support.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/json_in.h"
#include "runner/pace.h"

#define MS UINT64_C(1000000)

static const char windows_text[] =
    "{\"steady\": {\"start_phase\": \"a\", \"end_phase\": \"b\", \"estimator\": "
    "\"endpoint-bands\"}}";
static const char markers_text[] =
    "[{\"phase\": \"a\", \"kind\": \"actual\", \"elapsed_ms\": 2100},"
    " {\"phase\": \"b\", \"kind\": \"actual\", \"elapsed_ms\": 9100}]";

/* Ticks at these times, in ms; none of them costs CPU time but the one after `worked_at`. */
static struct pace ticked(const uint64_t *at, size_t n, uint64_t worked_at, uint64_t worked_ms)
{
    struct pace p;
    uint64_t cpu = 7 * MS;

    pace_start(&p, 1000 * MS, cpu, 500 * MS);
    for (size_t i = 0; i < n; i++) {
        cpu += at[i] == worked_at ? worked_ms * MS : 0;
        pace_tick(&p, (1000 + at[i]) * MS, cpu);
    }
    return p;
}

static bool breaks(const struct pace *p)
{
    cJSON *windows = NULL;
    cJSON *markers = NULL;
    struct err e = ERR_INIT;
    char why[200] = "";
    bool result;

    assert_int_equal(json_parse(windows_text, strlen(windows_text), NULL, &windows, &e), 0);
    assert_int_equal(json_parse(markers_text, strlen(markers_text), NULL, &markers, &e), 0);
    result = pace_breaks_window(p, windows, markers, why, sizeof why);
    assert_int_equal(result, strstr(why, "'steady'") != NULL);
    cJSON_Delete(windows);
    cJSON_Delete(markers);
    return result;
}

static void regular_samples_are_no_stall(void **state)
{
    static const uint64_t at[] = {500, 1000, 1690, 2000, 2500, 3000, 9000, 9500};
    struct pace p = ticked(at, 6, 0, 0);
    char why[200];

    (void) state;
    assert_int_equal(p.n_gaps, 0);
    assert_false(pace_stood_still(&p, why, sizeof why));
    assert_false(breaks(&p));
}

static void a_long_stall_is_told_wherever_it_is(void **state)
{
    static const uint64_t at[] = {500, 1000, 1500, 2000, 2500, 4100, 4500};
    struct pace p = ticked(at, ARRAY_LEN(at), 0, 0);
    char why[200] = "";

    (void) state;
    assert_true(pace_stood_still(&p, why, sizeof why));
    assert_non_null(strstr(why, "1.1 s, until 4.1 s"));
    assert_false(breaks(&p)); /* no boundary in it */
    /* The runner's own work is none. */
    p = ticked(at, ARRAY_LEN(at), 4100, 900);
    assert_false(pace_stood_still(&p, why, sizeof why));
}

static void a_stall_at_a_boundary_breaks_its_window(void **state)
{
    static const uint64_t start[] = {500, 1000, 1500, 2000, 2900, 3000};
    static const uint64_t end[] = {500, 1000, 1500, 2000, 2500, 8500, 9300, 9500};
    /* the sample was taken before the marker that had come meanwhile was read */
    static const uint64_t just_before[] = {500, 1000, 1500, 2000, 2500, 9095, 9500};
    static const uint64_t long_before[] = {500, 1000, 1500, 2000, 2500, 8500, 9000};
    static const uint64_t inside[] = {500, 1000, 1500, 2000, 2500, 3000, 3900, 4000};
    struct pace p = ticked(start, ARRAY_LEN(start), 0, 0);
    char why[200];

    (void) state;
    assert_true(breaks(&p));
    assert_false(pace_stood_still(&p, why, sizeof why));
    p = ticked(end, ARRAY_LEN(end), 0, 0);
    assert_true(breaks(&p));
    p = ticked(just_before, ARRAY_LEN(just_before), 0, 0);
    assert_true(breaks(&p));
    p = ticked(long_before, ARRAY_LEN(long_before), 0, 0);
    assert_false(breaks(&p));
    p = ticked(inside, ARRAY_LEN(inside), 0, 0);
    assert_int_equal(p.n_gaps, 1);
    assert_false(breaks(&p));
}

/* Many small gaps never push out the one that matters. */
static void the_longest_gaps_are_kept(void **state)
{
    struct pace p;
    uint64_t now = 1000;

    (void) state;
    pace_start(&p, now * MS, 0, 500 * MS);
    for (int i = 0; i < 100; i++) {
        now += i == 1 ? 1400 : 760; /* the second one holds the window's start */
        pace_tick(&p, now * MS, 0);
    }
    assert_int_equal(p.n_gaps, PACE_GAPS_MAX);
    assert_true(breaks(&p));
}

/* No single one is long, but a tenth of the run is not seen. */
static void many_short_stalls_are_told_together(void **state)
{
    struct pace p;
    uint64_t now = 1000;
    char why[200] = "";

    (void) state;
    pace_start(&p, now * MS, 0, 100 * MS);
    for (int i = 0; i < 40; i++) {
        now += i % 4 == 0 ? 350 : 100; /* 10 x 0.25 s of 6.5 s */
        pace_tick(&p, now * MS, 0);
    }
    assert_true(pace_stood_still(&p, why, sizeof why));
    assert_non_null(strstr(why, "2.5 of 6.5 s"));
    /* The same ten are little of a long run. */
    for (int i = 0; i < 300; i++) {
        now += 100;
        pace_tick(&p, now * MS, 0);
    }
    assert_false(pace_stood_still(&p, why, sizeof why));
    /* What a busy machine lets a process wait is none, however often. */
    pace_start(&p, now * MS, 0, 10 * MS);
    for (int i = 0; i < 200; i++) {
        now += 60;
        pace_tick(&p, now * MS, 0);
    }
    assert_false(pace_stood_still(&p, why, sizeof why));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regular_samples_are_no_stall),
        cmocka_unit_test(a_long_stall_is_told_wherever_it_is),
        cmocka_unit_test(a_stall_at_a_boundary_breaks_its_window),
        cmocka_unit_test(the_longest_gaps_are_kept),
        cmocka_unit_test(many_short_stalls_are_told_together),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/pace", tests, NULL, NULL);
}
