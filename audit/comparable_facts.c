/* What two manifests say of the machine, its conditioning and the environment: known and equal? */
#include <stdio.h>
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/facts.h"
#include "experiment/pointer.h"

/* An unknown fact is absent, null, empty or says so itself. */
static bool is_unknown(const cJSON *v)
{
    return !v || cJSON_IsNull(v) ||
           (cJSON_IsString(v) && (!v->valuestring[0] || strcmp(v->valuestring, "unknown") == 0));
}

struct manifest_fact {
    const char *pointer; /* into a manifest */
    const char *label;
    const char *why;
};

static void fact_differs(const struct manifest_fact *fact, const struct finding *what,
                         struct findings *f)
{
    struct json_doc *d = &f->marks;
    AUTO_BUF struct buf text = {0};
    cJSON *row = NULL;

    buf_init(&text, LIMIT_KIB(2));
    value_text(&text, what->baseline, 120);
    buf_puts(&text, " → ");
    value_text(&text, what->current, 120);
    findings_reason(f, what, "%s differs: %s", fact->label, text.data ? text.data : "");
    row = json_add_object(d, f->different, NULL);
    json_add_null(d, row, "path");
    json_add_string(d, row, "field", fact->pointer);
    json_add_string(d, row, "label", fact->label);
    json_add_copy(d, row, "baseline", what->baseline);
    json_add_copy(d, row, "current", what->current);
    json_add_string(d, row, "why", fact->why);
}

/* One fact: known on both sides, a text, and equal. */
static void check_fact(const struct audit_input *in, const struct manifest_fact *fact,
                       struct findings *f)
{
    struct json_doc *d = &f->marks;
    struct finding what = comparable_finding(in, "NC-IDENTITY-MISSING", fact->pointer);
    bool no_baseline = is_unknown(what.baseline);
    bool no_current = is_unknown(what.current);
    cJSON *row = NULL;

    if (no_baseline || no_current) {
        findings_reason(f, &what, "%s is unknown %s", fact->label,
                        findings_where(f, no_baseline, no_current));
        return;
    }
    if (!cJSON_IsString(what.baseline) || !cJSON_IsString(what.current)) {
        what.code = "NC-IDENTITY-INVALID";
        findings_reason(f, &what, "%s is not a text on both sides", fact->label);
        return;
    }
    if (!json_equal(what.baseline, what.current)) {
        what.code = "NC-IDENTITY-DIFFERS";
        fact_differs(fact, &what, f);
        return;
    }
    row = json_add_object(d, f->equal, NULL);
    json_add_null(d, row, "path");
    json_add_string(d, row, "field", fact->pointer);
    json_add_string(d, row, "label", fact->label);
    json_add_copy(d, row, "value", what.baseline);
}

static bool in_table(const char *name)
{
    for (size_t i = 0; i < facts_count; i++)
        if (strcmp(facts_table[i].name, name) == 0)
            return true;
    return false;
}

static void check_named_fact(const struct audit_input *in, const char *name, const char *label,
                             const char *why, struct findings *f)
{
    AUTO_FREE char *pointer = pointer_join("/machine/facts", name);
    const struct manifest_fact fact = {pointer, label, why};

    if (!pointer)
        f->marks.failed = true;
    else
        check_fact(in, &fact, f);
}

static const cJSON *facts_of(const cJSON *manifest)
{
    const cJSON *facts = pointer_get(manifest, "/machine/facts");

    return cJSON_IsObject(facts) ? facts : NULL;
}

/* Every fact of the table, and whatever else either side recorded. */
void comparable_facts(const struct audit_input *in, struct findings *f)
{
    const cJSON *baseline = facts_of(in->baseline.manifest);
    const cJSON *current = facts_of(in->current.manifest);
    const cJSON *member = NULL;
    static const struct manifest_fact conditioning = {
        "/conditioning/sha256", "conditioning", "the measured point inherits the state it leaves"};

    for (size_t i = 0; i < facts_count; i++)
        check_named_fact(in, facts_table[i].name, facts_table[i].label, facts_table[i].why, f);
    cJSON_ArrayForEach(member, baseline) {
        if (!in_table(member->string))
            check_named_fact(in, member->string, member->string, NULL, f);
    }
    cJSON_ArrayForEach(member, current) {
        if (!in_table(member->string) && !json_get(baseline, member->string))
            check_named_fact(in, member->string, member->string, NULL, f);
    }
    check_fact(in, &conditioning, f);
}

struct environment {
    const char *pointer; /* an object of variables in the manifest */
    const char *whose;
};

/* One variable: set to the same text on both sides. Absent means that it was not set, which is
 * known. */
static void check_variable(const struct audit_input *in, const struct environment *at,
                           const char *name, struct findings *f)
{
    AUTO_FREE char *pointer = pointer_join(at->pointer, name);
    char label[200];
    const struct manifest_fact fact = {
        pointer, label,
        "what the caller's environment lets through may change what is built and measured"};
    struct finding what = {
        .code = "NC-IDENTITY-DIFFERS",
        .field = pointer,
        .baseline = json_get(pointer_get(in->baseline.manifest, at->pointer), name),
        .current = json_get(pointer_get(in->current.manifest, at->pointer), name)};

    if (!pointer) {
        f->marks.failed = true;
        return;
    }
    (void) snprintf(label, sizeof label, "%s variable %.100s", at->whose, name); /* fits */
    if ((what.baseline && !cJSON_IsString(what.baseline)) ||
        (what.current && !cJSON_IsString(what.current))) {
        what.code = "NC-IDENTITY-MISSING";
        findings_reason(f, &what, "the value of the %s is not recorded", label);
    } else if (!what.baseline || !what.current || !json_equal(what.baseline, what.current)) {
        fact_differs(&fact, &what, f);
    }
}

/* The environment of the build or of the program, every variable that either side had. */
static void check_variables(const struct audit_input *in, const struct environment *at,
                            struct findings *f)
{
    struct finding what = comparable_finding(in, "NC-IDENTITY-MISSING", at->pointer);
    bool no_baseline = !cJSON_IsObject(what.baseline);
    bool no_current = !cJSON_IsObject(what.current);
    const cJSON *member = NULL;

    if (no_baseline || no_current) {
        findings_reason(f, &what, "the %s's environment is unknown %s", at->whose,
                        findings_where(f, no_baseline, no_current));
        return;
    }
    cJSON_ArrayForEach(member, what.baseline)
        check_variable(in, at, member->string, f);
    cJSON_ArrayForEach(member, what.current) {
        if (!json_get(what.baseline, member->string))
            check_variable(in, at, member->string, f);
    }
}

void comparable_environments(const struct audit_input *in, struct findings *f)
{
    static const struct environment both[] = {{"/build/environment", "build"},
                                              {"/environment", "program"}};

    for (size_t i = 0; i < ARRAY_LEN(both); i++)
        check_variables(in, &both[i], f);
}
