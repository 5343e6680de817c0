/*
 * Every identity field flipped, one by one, is a refusal. The fields are enumerated from the schema
 * of the definition, the facts table, and the identity list of the policy document, never from the
 * code that compares: leaving out any one comparison makes this fail.
 */
#include "tests/lib/support.h"

#include "experiment/schema.h"
#include "tests/audit/sides.h"

/* A document in which every hashed field of a schema stands once. The tables are some levels deep.
 */
/* NOLINTNEXTLINE(misc-no-recursion) */
static cJSON *specimen(const struct schema *s)
{
    cJSON *made = NULL;

    switch (s->type) {
    case SCHEMA_BOOL:
        return cJSON_CreateTrue();
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_DURATION:
        if (s->type == SCHEMA_DURATION)
            return cJSON_CreateNumber(s->min + 7);
        return cJSON_CreateNumber(s->min < s->max ? (s->min + 1 <= s->max ? s->min + 1 : s->max)
                                                  : 7);
    case SCHEMA_ENUM:
        return cJSON_CreateString(s->words[0]);
    case SCHEMA_POINTER:
        return cJSON_CreateString("/a");
    case SCHEMA_RELNAME:
        return cJSON_CreateString("s/1.json");
    case SCHEMA_STRING:
    case SCHEMA_SLUG:
    case SCHEMA_ANY:
        return cJSON_CreateString("word");
    case SCHEMA_ARRAY:
        made = cJSON_CreateArray();
        for (size_t i = 0; i < (s->min_items > 1 ? s->min_items : 1); i++)
            assert_true(cJSON_AddItemToArray(made, specimen(s->item)));
        return made;
    case SCHEMA_MAP:
        made = cJSON_CreateObject();
        assert_true(cJSON_AddItemToObject(made, "key", specimen(s->item)));
        return made;
    case SCHEMA_OBJECT:
        made = cJSON_CreateObject();
        for (size_t i = 0; i < s->n_fields; i++)
            if (!s->fields[i].unhashed)
                assert_true(
                    cJSON_AddItemToObject(made, s->fields[i].key, specimen(s->fields[i].schema)));
        return made;
    }
    fail_msg("unknown schema type");
    return NULL;
}

struct pointers {
    char *items[600];
    size_t n;
};

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the specimen */
static void collect(const cJSON *j, const char *at, struct pointers *out)
{
    const cJSON *member = NULL;
    size_t i = 0;

    if (!cJSON_IsObject(j) && !cJSON_IsArray(j)) {
        assert_true(out->n < ARRAY_LEN(out->items));
        out->items[out->n++] = strdup(at);
        return;
    }
    cJSON_ArrayForEach(member, j) {
        char index[24];
        char *next = NULL;

        (void) snprintf(index, sizeof index, "%zu", i++);
        next = pointer_join(at, member->string ? member->string : index);
        assert_non_null(next);
        collect(member, next, out);
        free(next);
    }
}

static void pointers_fini(struct pointers *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->items[i]);
}

static void parse_document(const cJSON *document, struct definition *out)
{
    char *text = sides_print(document);
    struct err e = ERR_INIT;

    if (definition_parse(text, strlen(text), out, &e) < 0)
        fail_msg("%s", e.text);
    free(text);
}

/* Another value of the same kind that the schema still takes; NULL when it has no other. */
static cJSON *another(const struct schema *s, const cJSON *old)
{
    double v = old->valuedouble;

    switch (s->type) {
    case SCHEMA_BOOL:
        return cJSON_CreateBool(!cJSON_IsTrue(old));
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_DURATION:
        if (!(s->min < s->max) || v + 1 <= s->max)
            return cJSON_CreateNumber(v + 1);
        return v - 1 >= s->min ? cJSON_CreateNumber(v - 1) : NULL;
    case SCHEMA_ENUM:
        return s->words[1] ? cJSON_CreateString(s->words[1]) : NULL;
    case SCHEMA_POINTER:
        return cJSON_CreateString("/b");
    case SCHEMA_RELNAME:
        return cJSON_CreateString("s/2.json");
    case SCHEMA_STRING:
    case SCHEMA_SLUG:
    case SCHEMA_ANY:
        return cJSON_CreateString("other");
    case SCHEMA_ARRAY:
    case SCHEMA_MAP:
    case SCHEMA_OBJECT:
        break;
    }
    return NULL;
}

static void every_experiment_field_is_identity(void **state)
{
    struct sides s;
    struct pointers leaves = {.n = 0};
    cJSON *document = NULL;
    cJSON *experiment = specimen(&schema_experiment);
    size_t flipped = 0;

    (void) state;
    sides_init(&s);
    document = cJSON_Duplicate(s.policy.document, true);
    sides_fini(&s);
    sides_put(document, "/experiment", cJSON_Duplicate(experiment, true));
    collect(experiment, "", &leaves);
    assert_true(leaves.n > 60);
    for (size_t i = 0; i < leaves.n; i++) {
        bool unhashed = false;
        const struct schema *field = schema_at(&schema_experiment, leaves.items[i], &unhashed);
        cJSON *changed = NULL;
        cJSON *value = NULL;
        char at[600];

        assert_non_null(field);
        value = another(field, pointer_get(experiment, leaves.items[i]));
        if (!value)
            continue;
        (void) snprintf(at, sizeof at, "/experiment%.500s", leaves.items[i]);
        changed = cJSON_Duplicate(document, true);
        sides_put(changed, at, value);
        sides_init(&s);
        definition_fini(&s.policy);
        definition_fini(&s.baseline.definition);
        definition_fini(&s.current.definition);
        parse_document(document, &s.policy);
        parse_document(document, &s.baseline.definition);
        parse_document(changed, &s.current.definition);
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-DEFINITION", leaves.items[i]);
        json_free(changed);
        flipped++;
    }
    print_message("%zu experiment fields flipped\n", flipped);
    assert_true(flipped > 60);
    json_free(document);
    json_free(experiment);
    pointers_fini(&leaves);
    /* The untouched specimen compares, so that the refusals above mean something. */
    sides_init(&s);
    sides_expect(&s, VERDICT_OK, NULL, NULL);
}

static void every_fact_is_identity(void **state)
{
    static const char *const values[] = {"\"something else\"", "null", NULL,   "\"\"",
                                         "\"unknown\"",        "12",   "true", "[]"};
    struct sides s;

    (void) state;
    assert_true(facts_count >= 20);
    for (size_t i = 0; i < facts_count; i++)
        for (size_t v = 0; v < ARRAY_LEN(values); v++)
            for (int side = 0; side < 3; side++) { /* 2: equally unknown on both is still unknown */
                char at[128];

                if (side == 2 && v == 0)
                    continue;
                (void) snprintf(at, sizeof at, "/machine/facts/%s", facts_table[i].name);
                sides_init(&s);
                if (side != 1)
                    sides_put_text(s.baseline.manifest, at, values[v]);
                if (side != 0)
                    sides_put_text(s.current.manifest, at, values[v]);
                sides_expect(&s, VERDICT_NON_COMPARABLE, NULL, at);
            }
    sides_init(&s); /* a fact that a newer runner records is compared as well */
    sides_put_text(s.current.manifest, "/machine/facts/moon", "\"full\"");
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING", "/machine/facts/moon");
}

/* What a definition lets through of the caller's environment is part of the experiment. */
static void every_variable_is_identity(void **state)
{
    static const char *const places[] = {"/build/environment", "/environment"};
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char at[128];

        for (int side = 0; side < 2; side++) {
            (void) snprintf(at, sizeof at, "%s/FLAGS", places[i]); /* set on one side only */
            sides_init(&s);
            sides_put_text(side ? s.current.manifest : s.baseline.manifest, at, "\"\"");
            sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-DIFFERS", at);
            (void) snprintf(at, sizeof at, "%s/PATH", places[i]);
            sides_init(&s);
            sides_put_text(side ? s.current.manifest : s.baseline.manifest, at, "\"/other\"");
            sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-DIFFERS", at);
            sides_init(&s);
            sides_put_text(side ? s.current.manifest : s.baseline.manifest, places[i], "null");
            sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING", places[i]);
        }
        /* passed through, and nobody wrote down what: unknown on both is no match */
        sides_init(&s);
        sides_put_text(s.baseline.manifest, at, "null");
        sides_put_text(s.current.manifest, at, "null");
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING", at);
        sides_init(&s); /* set to nothing is known */
        sides_put_text(s.baseline.manifest, at, "\"\"");
        sides_put_text(s.current.manifest, at, "\"\"");
        sides_expect(&s, VERDICT_OK, NULL, NULL);
    }
}

static void flip_report(const char *pointer, const char *json, int side)
{
    struct sides s;

    sides_init(&s);
    sides_put_text(side ? s.current.report : s.baseline.report, pointer, json);
    sides_expect(&s, VERDICT_NON_COMPARABLE, NULL, NULL);
}

static void every_report_identity_field_is_identity(void **state)
{
    struct sides s;
    const cJSON *field = NULL;
    struct pointers leaves = {.n = 0};
    size_t fields = 0;

    (void) state;
    sides_init(&s);
    cJSON_ArrayForEach(field, json_get(s.policy.policy, "identity")) {
        struct pointer_list plain = {0};
        struct err e = ERR_INIT;

        assert_int_equal(pointer_expand(s.baseline.report, json_get(field, "path")->valuestring,
                                        LIMIT_COMPARISONS, &plain, &e),
                         0);
        assert_true(plain.n > 0);
        for (size_t i = 0; i < plain.n; i++)
            collect(plain.items[i].value, plain.items[i].pointer, &leaves);
        pointer_list_fini(&plain);
        fields++;
    }
    sides_fini(&s);
    assert_true(fields >= 5 && leaves.n > fields);
    for (size_t i = 0; i < leaves.n; i++)
        for (int side = 0; side < 2; side++) {
            flip_report(leaves.items[i], "\"flipped\"", side);
            flip_report(leaves.items[i], "987654", side);
            flip_report(leaves.items[i], "null", side);
            flip_report(leaves.items[i], NULL, side);
        }
    pointers_fini(&leaves);
    /* '*' covers members that only one side has */
    flip_report("/environment/new_member", "\"x\"", 0);
    flip_report("/environment/new_member", "\"x\"", 1);
}

/* Random edits of both sides: an answer is only given when identity and gated metrics are sound. */
static void random_edits_never_give_a_number_without_identity(void **state)
{
    static const char *const values[] = {"null", "0",  "1",    "1000.0",  "\"x\"", "\"\"",
                                         "[]",   "{}", "true", "[10,20]", "-5",    "1e300"};
    static const char *const identity[] = {"/scenario",   "/note",           "/load/rate",
                                           "/load/steps", "/environment/cc", "/environment/alloc"};
    static const char *const gated[] = {"/results/rate", "/results/growth", "/latency/get/p99",
                                        "/latency/put/p99"};
    uint64_t seed = 20261129;
    size_t answered = 0;

    (void) state;
    for (int round = 0; round < 4000; round++) {
        struct sides s;
        struct audit a = {0};
        size_t edits = test_random_below(&seed, 3);

        sides_init(&s);
        for (size_t i = 0; i < edits; i++) {
            size_t pick = test_random_below(&seed, ARRAY_LEN(identity) + ARRAY_LEN(gated));
            const char *at =
                pick < ARRAY_LEN(identity) ? identity[pick] : gated[pick - ARRAY_LEN(identity)];
            const char *json = values[test_random_below(&seed, ARRAY_LEN(values))];

            sides_put_text(s.baseline.report, at, test_random_below(&seed, 2) ? json : "1000.0");
            sides_put_text(s.current.report, at, test_random_below(&seed, 2) ? json : "1000.0");
        }
        sides_audit(&s, &a);
        if (a.verdict == VERDICT_OK || a.verdict == VERDICT_REGRESSION) {
            answered++;
            for (size_t i = 0; i < ARRAY_LEN(identity); i++) {
                const cJSON *b = pointer_get(s.baseline.report, identity[i]);
                const cJSON *c = pointer_get(s.current.report, identity[i]);

                assert_true(b && c && !cJSON_IsNull(b) && json_equal(b, c));
                assert_false(cJSON_IsString(b) && !b->valuestring[0]);
            }
            for (size_t i = 0; i < ARRAY_LEN(gated); i++)
                assert_true(cJSON_IsNumber(pointer_get(s.baseline.report, gated[i])) &&
                            cJSON_IsNumber(pointer_get(s.current.report, gated[i])));
            assert_int_equal(cJSON_GetArraySize(json_get(a.document, "comparisons")), 5);
        } else {
            assert_non_null(json_get(a.document, "reasons")->child);
            assert_null(json_get(a.document, "comparisons")->child);
        }
        audit_fini(&a);
        sides_fini(&s);
    }
    print_message("%zu of 4000 random pairs were answered\n", answered);
    assert_true(answered > 500 && answered < 3500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_experiment_field_is_identity),
        cmocka_unit_test(every_fact_is_identity),
        cmocka_unit_test(every_variable_is_identity),
        cmocka_unit_test(every_report_identity_field_is_identity),
        cmocka_unit_test(random_edits_never_give_a_number_without_identity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
