/* Patterns over many members: what a document can hold is compared, more is one clear refusal, and
 * time stays in proportion. */
#include "tests/lib/support.h"

#include "tests/audit/sides.h"

/* {"k0000":{"p99":1000000},…}: n members below /latency. */
static void put_members(struct sides_side *side, size_t n, const char *key, const char *value)
{
    struct buf b = {0};

    buf_init(&b, LIMIT_REPORT);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s\"%s%06zu\":%s", i == 0 ? "{" : ",", key, i, value);
    buf_putc(&b, '}');
    assert_false(b.failed);
    json_free(cJSON_DetachItemFromObjectCaseSensitive(side->report, "latency"));
    {
        static const struct json_limits limits = {.max_bytes = LIMIT_REPORT};
        struct err e = ERR_INIT;
        cJSON *members = NULL;

        if (json_parse(b.data, b.len, &limits, &members, &e) < 0)
            fail_msg("%s", e.text);
        sides_put(side->report, "/latency", members);
    }
    buf_fini(&b);
}

/* As a run directory holds it. */
static size_t written(const cJSON *document)
{
    struct buf b = {0};
    size_t len = 0;

    buf_init(&b, LIMIT_MIB(64));
    json_write(&b, document, JSON_PRETTY);
    assert_false(b.failed);
    len = b.len;
    buf_fini(&b);
    return len;
}

static void readers_take(const cJSON *document)
{
    struct buf b = {0};
    struct err e = ERR_INIT;

    assert_true(written(document) <= LIMIT_JSON_DOCUMENT);
    buf_init(&b, LIMIT_JSON_DOCUMENT);
    json_write(&b, document, JSON_PRETTY);
    if (json_validate(b.data, b.len, NULL, &e) < 0)
        fail_msg("%s", e.text);
    buf_fini(&b);
}

static void look(struct sides *s, struct audit *out)
{
    struct audit_side side = {.tree = &s->current.tree,
                              .manifest = s->current.manifest,
                              .definition = &s->current.definition};
    struct err e = ERR_INIT;

    sides_add_report(&s->current, s->path);
    if (audit_would_compare(&s->current.definition, &side, out, &e) < 0)
        fail_msg("%s", e.text);
}

/* One refusal of this code, whose text holds all of these; no number; a document that everybody
 * reads. */
static void refused(const struct audit *a, const char *const *words, size_t n)
{
    const cJSON *reasons = json_get(a->document, "reasons");
    const char *text = NULL;

    if (a->verdict != VERDICT_NON_COMPARABLE || !sides_has(a->document, "NC-TOO-MANY", NULL)) {
        sides_show(a->document);
        fail_msg("not refused");
    }
    text = json_get(reasons->child, "text")->valuestring;
    for (size_t i = 0; i < n; i++)
        if (!strstr(text, words[i]))
            fail_msg("no '%s' in: %s", words[i], text);
    assert_null(json_get(a->document, "comparisons")->child);
    readers_take(a->document);
}

/* sides_yaml has two gated metrics and one informational beside the pattern. */
enum { WIDEST = LIMIT_COMPARISONS - 3 };

static void widest_allowed_is_compared_member_by_member(void **state)
{
    struct sides s;
    struct audit a = {0};
    const cJSON *row = NULL;
    size_t n = 0;

    (void) state;
    sides_init(&s);
    put_members(&s.baseline, WIDEST, "", "{\"p99\":1000000}");
    put_members(&s.current, WIDEST, "", "{\"p99\":1000001.5}");
    sides_audit(&s, &a);
    if (a.verdict != VERDICT_OK)
        sides_show(a.document);
    assert_int_equal(a.verdict, VERDICT_OK);
    assert_int_equal((int) json_get(a.document, "made_comparisons")->valuedouble,
                     LIMIT_COMPARISONS);
    cJSON_ArrayForEach(row, json_get(a.document, "comparisons")) {
        const char *metric = json_get(row, "metric")->valuestring;

        assert_true(json_equal(json_get(row, "current"), pointer_get(s.current.report, metric)));
        n++;
    }
    assert_int_equal(n, LIMIT_COMPARISONS);
    readers_take(a.document);
    audit_fini(&a);
    look(&s, &a);
    assert_int_equal(a.verdict, VERDICT_OK);
    audit_fini(&a);
    sides_fini(&s);
}

/* More on either side, by itself or in all, is told the same way to who runs, who judges and who
 * approves. */
static void one_more_is_refused_by_all(void **state)
{
    static const char *const by_pattern[] = {"/latency/*/p99 matches 2049 members in this run",
                                             "at most 2048", "let the report hold fewer"};
    static const char *const in_all[] = {"more than 2048 comparisons",
                                         "let the definition name only those that count"};
    static const char *const current[] = {
        "/latency/*/p99 matches 40000 members in the current run"};
    static const char *const baseline[] = {"/latency/*/p99 matches 40000 members in the baseline"};
    struct sides s;
    struct audit a = {0};

    (void) state;
    sides_init(&s);
    put_members(&s.current, LIMIT_COMPARISONS + 1, "", "{\"p99\":1}");
    look(&s, &a);
    refused(&a, by_pattern, ARRAY_LEN(by_pattern));
    audit_fini(&a);
    sides_fini(&s);
    sides_init(&s);
    put_members(&s.current, WIDEST + 1, "", "{\"p99\":1}");
    look(&s, &a);
    refused(&a, in_all, ARRAY_LEN(in_all));
    audit_fini(&a);
    put_members(&s.baseline, WIDEST + 1, "", "{\"p99\":1}");
    sides_audit(&s, &a);
    refused(&a, in_all, ARRAY_LEN(in_all));
    audit_fini(&a);
    sides_fini(&s);
    sides_init(&s);
    put_members(&s.current, 40000, "", "{\"p99\":1}");
    sides_audit(&s, &a);
    refused(&a, current, 1);
    audit_fini(&a);
    sides_fini(&s);
    sides_init(&s);
    put_members(&s.baseline, 40000, "", "{\"p99\":1}");
    sides_audit(&s, &a);
    refused(&a, baseline, 1);
    audit_fini(&a);
    sides_fini(&s);
}

/* Few members with long names fill a document as well. */
static void what_fills_a_document_is_refused(void **state)
{
    static const char *const words[] = {"takes more than the 1048576 bytes of a document",
                                        "fewer, shorter members"};
    static const char *const names[] = {"whose names take more than 1048576 bytes"};
    char key[1025] = "";
    struct sides s;
    struct audit a = {0};

    (void) state;
    memset(key, 'k', 400);
    sides_init(&s);
    put_members(&s.baseline, 1500, key, "{\"p99\":1}");
    put_members(&s.current, 1500, key, "{\"p99\":1}");
    sides_audit(&s, &a);
    refused(&a, words, ARRAY_LEN(words));
    audit_fini(&a);
    look(&s, &a);
    refused(&a, words, ARRAY_LEN(words));
    audit_fini(&a);
    sides_fini(&s);
    memset(key, 'k', 1024);
    sides_init(&s);
    put_members(&s.current, 1500, key, "{\"p99\":1}");
    look(&s, &a);
    refused(&a, names, 1);
    audit_fini(&a);
    sides_fini(&s);
}

/* A run that may be approved leaves room for the longer numbers of who is compared with it. */
static void who_may_judge_can_be_compared_with(void **state)
{
    char key[400] = "";
    struct sides s;
    struct audit a = {0};
    size_t fit = 0;

    (void) state;
    for (size_t len = 100; len < 400; len += 5) {
        memset(key, 'k', len);
        key[len] = 0;
        sides_init(&s);
        put_members(&s.baseline, 1000, key, "{\"p99\":1}");
        put_members(&s.current, 1000, key, "{\"p99\":1}");
        look(&s, &a);
        fit += a.verdict == VERDICT_OK;
        if (a.verdict == VERDICT_OK) {
            audit_fini(&a);
            tree_fini(&s.current.tree);
            s.current.tree = (struct tree){0};
            put_members(&s.current, 1000, key, "{\"p99\":-1.2345678901234567e-300}");
            sides_audit(&s, &a);
            assert_int_equal(a.verdict, VERDICT_OK);
            readers_take(a.document);
        } else {
            refused(&a, NULL, 0);
        }
        audit_fini(&a);
        sides_fini(&s);
    }
    assert_in_range(fit, 20, 59); /* both sides of the border were seen */
}

/* Lists of what is not compared stay as small. */
static void identity_and_ungated_members_count_too(void **state)
{
    static const char *const identity[] = {"/environment/* matches 3000 members in this run"};
    struct sides s;
    struct audit a = {0};
    struct buf b = {0};

    (void) state;
    sides_init(&s);
    buf_init(&b, LIMIT_MIB(1));
    for (size_t i = 0; i < 3000; i++)
        buf_printf(&b, "%s\"v%zu\":1", i == 0 ? "{" : ",", i);
    buf_putc(&b, '}');
    sides_put_text(s.current.report, "/environment", b.data);
    look(&s, &a);
    refused(&a, identity, 1);
    audit_fini(&a);
    sides_fini(&s);
    buf_fini(&b);
    /* A huge value of a member that nobody gates is not copied. */
    sides_init(&s);
    buf_init(&b, LIMIT_REPORT);
    buf_puts(&b, "{\"get\":{\"p99\":2000000},\"put\":{\"p99\":3000000},\"new\":{\"p99\":[0");
    for (size_t i = 0; i < 150000; i++)
        buf_puts(&b, ",0");
    buf_puts(&b, "]}}");
    json_free(cJSON_DetachItemFromObjectCaseSensitive(s.current.report, "latency"));
    sides_put_text(s.current.report, "/latency", b.data);
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_OK);
    assert_non_null(pointer_get(a.document, "/coverage/ungated/0/current/omitted/bytes"));
    readers_take(a.document);
    audit_fini(&a);
    sides_fini(&s);
    buf_fini(&b);
}

/* Identity of many large values: each is bounded, and so is their number. */
static void large_identities_are_refused_before_they_fill_the_memory(void **state)
{
    struct sides s;
    struct audit a = {0};
    struct buf b = {0};

    (void) state;
    sides_init(&s);
    buf_init(&b, LIMIT_REPORT);
    for (size_t i = 0; i < 200; i++) {
        buf_printf(&b, "%s\"v%zu\":[0", i == 0 ? "{" : ",", i);
        for (size_t j = 0; j < 4000; j++)
            buf_puts(&b, ",0");
        buf_puts(&b, "]");
    }
    buf_putc(&b, '}');
    {
        static const struct json_limits limits = {.max_bytes = LIMIT_REPORT, .max_tokens = 2000000};
        struct err e = ERR_INIT;
        cJSON *values = NULL;

        if (json_parse(b.data, b.len, &limits, &values, &e) < 0)
            fail_msg("%s", e.text);
        sides_put(s.current.report, "/environment", values);
    }
    buf_fini(&b);
    s.current.tree = (struct tree){0};
    {
        struct tree_file file = {.path = strdup(SIDES_REPORT),
                                 .report = cJSON_Duplicate(s.current.report, true)};

        s.current.tree.files = calloc(16, sizeof *s.current.tree.files);
        s.current.tree.files[0] = file;
        s.current.tree.n = 1;
    }
    look(&s, &a);
    refused(&a, NULL, 0);
    audit_fini(&a);
    sides_fini(&s);
}

/* A value that is as deep as a report may be stands in no document that would be too deep then. */
static void deep_values_leave_a_readable_document(void **state)
{
    static const char deep[] = "[[[[[[[[[[[[[1]]]]]]]]]]]]]";
    struct sides s;
    struct audit a = {0};

    (void) state;
    for (size_t differs = 0; differs < 2; differs++) {
        sides_init(&s);
        sides_put_text(s.baseline.report, "/environment/cc", deep);
        sides_put_text(s.current.report, "/environment/cc",
                       differs ? "[[[[[[[[[[[[[2]]]]]]]]]]]]]" : deep);
        sides_audit(&s, &a);
        assert_int_equal(a.verdict, differs ? VERDICT_NON_COMPARABLE : VERDICT_OK);
        readers_take(a.document);
        audit_fini(&a);
        sides_fini(&s);
    }
}

/* The first of many differences of a wide object, and how many more there are. */
static void wide_objects_are_told_apart(void **state)
{
    struct sides s;
    struct audit a = {0};
    const cJSON *reason = NULL;

    (void) state;
    sides_init_with(&s, sides_yaml);
    for (size_t side = 0; side < 2; side++) {
        struct buf b = {0};

        buf_init(&b, LIMIT_REPORT);
        for (size_t i = 0; i < 20000; i++)
            buf_printf(&b, "%s\"%s%zu\":1", i == 0 ? "{" : ",", side ? "x" : "y",
                       side ? 19999 - i : i);
        buf_putc(&b, '}');
        sides_put_text(side ? s.current.report : s.baseline.report, "/environment/cc", b.data);
        buf_fini(&b);
    }
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
    reason = json_get(a.document, "reasons")->child;
    assert_string_equal(json_get(reason, "code")->valuestring, "NC-IDENTITY-DIFFERS");
    assert_string_equal(pointer_get(reason, "/elements/0/field")->valuestring,
                        "/environment/cc/y0");
    assert_int_equal((int) json_get(reason, "elements_omitted")->valuedouble, 40000 - 50);
    readers_take(a.document);
    audit_fini(&a);
    sides_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widest_allowed_is_compared_member_by_member),
        cmocka_unit_test(one_more_is_refused_by_all),
        cmocka_unit_test(what_fills_a_document_is_refused),
        cmocka_unit_test(who_may_judge_can_be_compared_with),
        cmocka_unit_test(identity_and_ungated_members_count_too),
        cmocka_unit_test(large_identities_are_refused_before_they_fill_the_memory),
        cmocka_unit_test(deep_values_leave_a_readable_document),
        cmocka_unit_test(wide_objects_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
