/* cleanrun audit of run directories: what the manifest says counts, and the directory must be what
 * it says. */
#include "tests/lib/support.h"

#include <unistd.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "experiment/facts.h"
#include "experiment/pointer.h"
#include "tests/evidence/fixture.h"
#include "tests/runner/run_command.h"

#define REPORT "results/kvcache/50000.json"

struct pair {
    struct fixture baseline;
    struct fixture current;
    struct command_result result;
    cJSON *document; /* NULL when none was written */
};

static void write_report(const struct fixture *f, int rate, int serial)
{
    char text[200];

    (void) snprintf(
        text, sizeof text,
        "{\"scenario\":\"kvcache\",\"load\":{\"rate\":5},\"results\":{\"rate\":%d,\"serial\":%d}}",
        rate, serial);
    test_write_text(f->run, REPORT, text);
}

/* The manifest of the files as they are, with every fact known and one member changed (pointer
 * NULL: none). */
static void write_manifest(const struct fixture *f, const char *run, const char *pointer,
                           const char *json)
{
    cJSON *m = fixture_manifest(f);

    for (size_t i = 0; i < facts_count; i++) {
        char at[128];

        (void) snprintf(at, sizeof at, "/machine/facts/%s", facts_table[i].name);
        fixture_set(m, at, "\"as always\"");
    }
    fixture_set(m, "/run", run);
    if (pointer)
        fixture_set(m, pointer, json);
    if (pointer && strcmp(pointer, "/source/start/dirty") == 0)
        fixture_set(m, "/source/end/dirty", json); /* start and end agree */
    fixture_write_manifest(f, m);
    json_free(m);
}

#define RUN_A "\"20261129T141502Z-9c1e07ab\""
#define RUN_B "\"20261129T141502Z-11111111\""

static void pair_init(struct pair *p, int rate)
{
    *p = (struct pair){.document = NULL};
    fixture_init(&p->baseline);
    fixture_init(&p->current);
    write_report(&p->baseline, 1000, 1);
    write_report(&p->current, rate, 2);
    write_manifest(&p->baseline, RUN_A, NULL, NULL);
    write_manifest(&p->current, RUN_B, NULL, NULL);
}

static void pair_audit(struct pair *p, const char *baseline, const char *current)
{
    char *definition = test_join(p->baseline.run, "definition.json");
    char *json = test_join(p->current.dir, "audit.json");
    const char *const argv[] = {"audit",       "--definition", definition, "--gate",
                                "kvcache-50k", "--baseline",   baseline,   "--current",
                                current,       "--json",       json,       NULL};
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t len = 0;

    run_command(&command_audit, argv, &p->result);
    if (access(json, F_OK) == 0) {
        text = test_read_path(json, &len);
        assert_int_equal(json_parse(text, len, NULL, &p->document, &e), 0);
        free(text);
    }
    free(definition);
    free(json);
}

static void pair_expect(struct pair *p, int code, const char *reason)
{
    bool found = !reason;
    const cJSON *r = NULL;

    cJSON_ArrayForEach(r, json_get(p->document, "reasons")) {
        found = found || strcmp(json_get(r, "code")->valuestring, reason) == 0;
    }
    if (p->result.code != code || !found)
        fail_msg("expected exit %d and %s, found %d\n%s%s", code, reason ? reason : "no reason",
                 p->result.code, p->result.out, p->result.err);
    if (code > 1)
        assert_null(json_get(p->document, "comparisons")->child);
    json_free(p->document);
    command_result_fini(&p->result);
    fixture_fini(&p->baseline);
    fixture_fini(&p->current);
}

static void two_sound_runs_are_compared(void **state)
{
    struct pair p;

    (void) state;
    pair_init(&p, 960);
    pair_audit(&p, p.baseline.run, p.current.run);
    assert_string_equal(pointer_get(p.document, "/current/run")->valuestring,
                        "20261129T141502Z-11111111");
    assert_true(cJSON_IsTrue(json_get(p.document, "same_executable")));
    pair_expect(&p, 0, NULL);
    pair_init(&p, 940);
    pair_audit(&p, p.baseline.run, p.current.run);
    pair_expect(&p, 1, NULL);
}

/* Without --definition the policy that was reviewed with the baseline judges, never the current
 * run's. */
static void the_baseline_s_own_definition_judges(void **state)
{
    for (int i = 0; i < 3; i++) {
        struct pair p;
        const char *argv[12] = {"audit", NULL};
        char *bare = NULL;

        (void) state;
        pair_init(&p, 940);
        bare = test_join(p.current.run, "results");
        argv[1] = "--baseline";
        argv[2] = p.baseline.run;
        argv[3] = "--current";
        argv[4] = i == 2 ? bare : p.current.run;
        argv[5] = i == 1 ? "--gate" : NULL;
        argv[6] = "other-gate";
        run_command(&command_audit, argv, &p.result);
        if (p.result.code != (i == 0 ? 1 : 2))
            fail_msg("%d: exit %d\n%s%s", i, p.result.code, p.result.out, p.result.err);
        if (i == 0)
            assert_non_null(strstr(p.result.err, "the baseline's own definition.json"));
        command_result_fini(&p.result);
        fixture_fini(&p.baseline);
        fixture_fini(&p.current);
        free(bare);
    }
}

static void a_run_against_itself_is_refused(void **state)
{
    struct pair p;

    (void) state;
    pair_init(&p, 1000);
    pair_audit(&p, p.current.run, p.current.run);
    pair_expect(&p, 3, "NC-SAME-EVIDENCE");
}

static void what_the_manifests_say_is_identity(void **state)
{
    static const struct {
        const char *pointer;
        const char *json;
        const char *reason;
    } cases[] = {
        {"/class", "\"other-vm\"", "NC-MACHINE-CLASS"},
        {"/machine/facts/kernel", "\"7.0\"", "NC-IDENTITY-DIFFERS"},
        {"/machine/facts/kernel", "null", "NC-IDENTITY-MISSING"},
        {"/source/start/dirty", "true", "NC-SOURCE-DIRTY"},
        {"/build/environment/RUSTFLAGS", "\"-Copt-level=0\"", "NC-IDENTITY-DIFFERS"},
        {"/environment/THREADS", "\"2\"", "NC-IDENTITY-DIFFERS"},
        {"/environment", "null", "NC-IDENTITY-MISSING"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pair p;

        pair_init(&p, 1000);
        write_manifest(&p.current, RUN_B, cases[i].pointer, cases[i].json);
        pair_audit(&p, p.baseline.run, p.current.run);
        pair_expect(&p, 3, cases[i].reason);
    }
}

static void a_bare_tree_has_no_machine(void **state)
{
    for (int side = 0; side < 2; side++) {
        struct pair p;
        char *bare = NULL;

        (void) state;
        pair_init(&p, 1000);
        bare = test_join(side ? p.current.run : p.baseline.run, "results");
        pair_audit(&p, side ? p.baseline.run : bare, side ? bare : p.current.run);
        free(bare);
        pair_expect(&p, 3, "NC-IDENTITY-MISSING");
    }
}

/* Somebody improved the numbers after the run. */
static void files_must_be_what_the_manifest_lists(void **state)
{
    struct pair p;
    char *definition = NULL;

    (void) state;
    pair_init(&p, 940);
    write_report(&p.current, 1000, 2);
    pair_audit(&p, p.baseline.run, p.current.run);
    pair_expect(&p, 5, "IN-HASH");

    pair_init(&p, 1000);
    test_write_text(p.baseline.run, "results/kvcache/more.json", "{}");
    pair_audit(&p, p.baseline.run, p.current.run);
    pair_expect(&p, 5, "IN-MANIFEST");

    pair_init(&p, 1000);
    definition = test_join(p.current.run, REPORT);
    assert_int_equal(unlink(definition), 0);
    free(definition);
    pair_audit(&p, p.baseline.run, p.current.run);
    pair_expect(&p, 5, "IN-MANIFEST");

    pair_init(&p, 1000);
    test_write_text(p.current.run, "definition.json", "{}");
    pair_audit(&p, p.baseline.run, p.current.run);
    pair_expect(&p, 5, "IN-HASH");
}

static void digests_of_the_definition_must_agree(void **state)
{
    static const char *const pointers[] = {"/definition/experiment_sha256",
                                           "/definition/policy_sha256"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
        struct pair p;

        pair_init(&p, 1000);
        write_manifest(&p.current, RUN_B, pointers[i],
                       "\"00000000000000000000000000000000000000000000000000000000000000aa\"");
        pair_audit(&p, p.baseline.run, p.current.run);
        pair_expect(&p, 5, "IN-MANIFEST");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_sound_runs_are_compared),
        cmocka_unit_test(the_baseline_s_own_definition_judges),
        cmocka_unit_test(a_run_against_itself_is_refused),
        cmocka_unit_test(what_the_manifests_say_is_identity),
        cmocka_unit_test(a_bare_tree_has_no_machine),
        cmocka_unit_test(files_must_be_what_the_manifest_lists),
        cmocka_unit_test(digests_of_the_definition_must_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
