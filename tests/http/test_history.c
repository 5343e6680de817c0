/* The three shipped baselines as history on the real server: imported, shown, and never compared
 * with one another. */
#include "tests/http/live.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "experiment/pointer.h"

#define PROJECT "rvoip/rvoip-sip"
#define GATE "call-setup-2k"

static const struct {
    const char *id;
    const char *machine_class;
    const char *commit;
} history[] = {
    {"20260706T181609Z", "apple-m3-max", NULL},
    {"20260929T034251Z", "ec2-m5-2xlarge", "0603158ab47ff4484fb522df3b071edd0ad1934a"},
    {"20260929T224805Z", "ec2-m5-4xlarge", "5d828dd7dbb51615a4e513e8f6053816cd6b29a5"},
};

static void import(struct live *l, size_t i)
{
    char relative[128];
    char *dir;
    char *definition = test_path("examples/rvoip-sip/cleanrun.yaml");
    char *out = NULL;

    (void) snprintf(relative, sizeof relative, "baselines/rvoip-sip/" GATE "/%s", history[i].id);
    dir = test_path(relative);
    {
        const char *args[] = {
            "baseline",     "import",   dir,          "--legacy",   "--project",
            PROJECT,        "--gate",   GATE,         "--class",    history[i].machine_class,
            "--definition", definition, "--reviewer", "maintainer", "--reason",
            "history",      NULL,       NULL,         NULL};

        if (history[i].commit) {
            args[16] = "--commit";
            args[17] = history[i].commit;
        }
        assert_int_equal(live_admin(l, args, &out), 0);
    }
    assert_non_null(strstr(out, history[i].id));
    free(out);
    free(dir);
    free(definition);
}

static int setup(void **state)
{
    static const char *const project[] = {"project", "add", PROJECT, NULL};
    struct live *l = calloc(1, sizeof *l);

    assert_non_null(l);
    live_init(l);
    assert_int_equal(live_admin(l, (const char *const[]){"migrate", NULL}, NULL), 0);
    assert_int_equal(live_admin(l, project, NULL), 0);
    for (size_t i = 0; i < 3; i++)
        import(l, i);
    live_start(l, NULL);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    if (*state)
        live_fini(*state);
    free(*state);
    return 0;
}

/* Body of a page that answers 200; caller frees. */
static char *get(const struct live *l, const char *target)
{
    struct raw_response r;
    char *body;

    raw_ask(l->port, "GET", target, "", NULL, 0, &r);
    if (r.status != 200)
        fail_msg("%s: %d", target, r.status);
    body = strndup(r.body, r.body_len);
    assert_non_null(body);
    raw_response_fini(&r);
    return body;
}

static cJSON *get_json(const struct live *l, const char *target)
{
    char *body = get(l, target);
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    if (json_parse(body, strlen(body), NULL, &j, &e) < 0)
        fail_msg("%s: %s", target, e.text);
    free(body);
    return j;
}

static const char *text_at(const cJSON *j, const char *pointer)
{
    const cJSON *v = pointer_get(j, pointer);

    return cJSON_IsString(v) ? v->valuestring : "";
}

static bool has_reason(const cJSON *j, const char *code, const char *field)
{
    const cJSON *r = NULL;

    cJSON_ArrayForEach(r, pointer_get(j, "/audit/reasons")) {
        if (strcmp(text_at(r, "/code"), code) == 0 && strcmp(text_at(r, "/field"), field) == 0)
            return true;
    }
    return false;
}

static void history_is_listed_and_none_is_current(void **state)
{
    struct live *l = *state;
    cJSON *j = get_json(l, "/p/" PROJECT "/" GATE "/baselines.json");
    const cJSON *b = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(b, json_get(j, "baselines")) {
        assert_true(cJSON_IsTrue(json_get(b, "legacy")));
        assert_true(cJSON_IsFalse(json_get(b, "current")));
        n++;
    }
    assert_int_equal(n, 3);
    json_free(j);
    for (size_t i = 0; i < 3; i++) {
        char target[128];
        char *page;

        (void) snprintf(target, sizeof target, "/b/b-%s.json", history[i].id);
        j = get_json(l, target);
        assert_string_equal(text_at(j, "/class"), history[i].machine_class);
        assert_int_equal(cJSON_GetArraySize(json_get(j, "others")), 2);
        assert_string_equal(text_at(j, "/commit"), history[i].commit ? history[i].commit : "");
        json_free(j);
        (void) snprintf(target, sizeof target, "/b/b-%s", history[i].id);
        page = get(l, target);
        assert_non_null(strstr(page, "history only, never judges"));
        assert_non_null(strstr(page, "Other baselines of this gate"));
        free(page);
    }
}

/* From the home page to every number, though no run was ever received. */
static void history_is_reached_from_home_and_has_its_numbers(void **state)
{
    struct live *l = *state;
    char *home = get(l, "/");
    char *project = get(l, "/p/" PROJECT);
    char *gate = get(l, "/p/" PROJECT "/" GATE);
    cJSON *j = NULL;

    assert_non_null(strstr(home, "href=\"/p/" PROJECT "/" GATE "\""));
    assert_non_null(strstr(home, "1 imported baseline, no run yet"));
    assert_non_null(strstr(project, "href=\"/p/" PROJECT "/" GATE "\""));
    assert_null(strstr(project, "No run of this project has been received"));
    assert_null(strstr(gate, "No baseline is reviewed"));
    assert_non_null(strstr(gate, "class apple-m3-max has 1 imported (history never judges)"));
    assert_non_null(strstr(gate, "--server http://127.0.0.1:"));
    free(home);
    free(project);
    free(gate);
    for (size_t i = 0; i < 3; i++) {
        char target[64];
        char *page;
        const cJSON *first;

        (void) snprintf(target, sizeof target, "/b/b-%s.json", history[i].id);
        j = get_json(l, target);
        assert_true(cJSON_IsNull(json_get(j, "measured_note")));
        first = json_get(j, "measured")->child;
        assert_non_null(first);
        assert_true(cJSON_IsNumber(json_get(first, "value")));
        assert_string_equal(text_at(j, "/reviews/0/action"), "import");
        assert_string_equal(text_at(j, "/reviews/0/by"), "maintainer");
        (void) snprintf(target, sizeof target, "/b/b-%s", history[i].id);
        page = get(l, target);
        assert_non_null(strstr(page, text_at(first, "/label")));
        assert_non_null(strstr(page, text_at(first, "/path")));
        free(page);
        json_free(j);
    }
}

static void comparing_any_two_is_a_refusal(void **state)
{
    struct live *l = *state;

    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 3; b++) {
            char target[128];
            cJSON *j;
            char *page;

            if (a == b)
                continue;
            (void) snprintf(target, sizeof target, "/b/b-%s/vs/b-%s.json", history[a].id,
                            history[b].id);
            j = get_json(l, target);
            assert_true(cJSON_IsTrue(json_get(j, "informational")));
            assert_true(cJSON_IsNull(json_get(j, "verdict"))); /* history never judges */
            assert_string_equal(text_at(j, "/audit/verdict"), "NON_COMPARABLE");
            assert_null(pointer_get(j, "/audit/comparisons")->child);
            assert_true(has_reason(j, "NC-MACHINE-CLASS", "/class"));
            assert_true(has_reason(j, "NC-IDENTITY-DIFFERS", "/environment/total_ram_gb"));
            assert_string_equal(text_at(j, "/current/class"), history[a].machine_class);
            assert_string_equal(text_at(j, "/baseline/class"), history[b].machine_class);
            json_free(j);
            (void) snprintf(target, sizeof target, "/b/b-%s/vs/b-%s", history[a].id, history[b].id);
            page = get(l, target);
            assert_non_null(strstr(page, "NON_COMPARABLE"));
            assert_null(strstr(page, "/commit/\"")); /* no link to a commit that nobody recorded */
            free(page);
            (void) snprintf(target, sizeof target, "/b/b-%s/vs/b-%s.md", history[a].id,
                            history[b].id);
            page = get(l, target);
            assert_non_null(strstr(page, "NON_COMPARABLE"));
            free(page);
        }
}

static void a_baseline_against_itself_or_a_stranger_claims_nothing(void **state)
{
    struct live *l = *state;
    cJSON *j = get_json(l, "/b/b-20260929T224805Z/vs/b-20260929T224805Z.json");
    struct raw_response r;

    assert_string_equal(text_at(j, "/audit/verdict"), "NON_COMPARABLE");
    json_free(j);
    raw_ask(l->port, "GET", "/b/b-20260929T224805Z/vs/b-20200101T000000Z", "", NULL, 0, &r);
    assert_int_equal(r.status, 404);
    raw_response_fini(&r);
    raw_ask(l->port, "GET", "/b/b-20200101T000000Z/vs/b-20260929T224805Z.json", "", NULL, 0, &r);
    assert_int_equal(r.status, 404);
    raw_response_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_is_listed_and_none_is_current),
        cmocka_unit_test(history_is_reached_from_home_and_has_its_numbers),
        cmocka_unit_test(comparing_any_two_is_a_refusal),
        cmocka_unit_test(a_baseline_against_itself_or_a_stranger_claims_nothing),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
