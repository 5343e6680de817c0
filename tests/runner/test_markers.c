/* Which markers a run owes: those that only its report has, and steps that show in another way, are
 * not asked for here. */
#include "tests/lib/support.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/json_in.h"
#include "runner/markers.h"
#include "runner/plan.h"

static cJSON *json(const char *text)
{
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(text, strlen(text), NULL, &j, &e) < 0)
        fail_msg("%s", e.text);
    return j;
}

/* Feeds the text; NULL: nothing is missed. */
static void expect(const char *text, const struct plan *p, const char *missed)
{
    struct markers *m = calloc(1, sizeof *m);
    struct err e = ERR_INIT;
    char why[200] = "";

    assert_non_null(m);
    markers_init(m, 0);
    assert_int_equal(markers_data(m, text, strlen(text), &e), 0);
    assert_int_equal(markers_break(m, p, why, sizeof why), missed != NULL);
    if (missed && !strstr(why, missed))
        fail_msg("'%s', wanted '%s'", why, missed);
    free(m);
}

static void markers_in_the_report_are_looked_for_there(void **state)
{
    AUTO_JSON cJSON *required = json("[\"a\"]");
    struct plan p = {.required = required};

    (void) state;
    expect("", &p, "phase marker 'a' was not seen");
    expect("a\n", &p, NULL);
    p.markers_in_report = true;
    expect("", &p, NULL);
}

static void steps_show_by_command_proof_or_marker(void **state)
{
    AUTO_JSON cJSON *shown = json("[{\"name\": \"warm\"}]");
    AUTO_JSON cJSON *other = json("[{\"name\": \"warm\", \"proof\": {\"report\": \"w.json\"}}, "
                                  "{\"name\": \"tool\", \"command\": [\"x\"]}]");
    struct plan p = {.conditioning = shown};

    (void) state;
    expect("", &p, "step 'warm' did not show");
    expect("warm\n", &p, NULL);
    p.conditioning = other;
    expect("", &p, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markers_in_the_report_are_looked_for_there),
        cmocka_unit_test(steps_show_by_command_proof_or_marker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
