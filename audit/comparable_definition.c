/* What two sides say of their definitions: one experiment, the judging one, with its units? */
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/pointer.h"

/* Hex of a side's experiment digest; the definition itself is believed over what a manifest says of
 * it. */
static const char *experiment_of(const struct audit_side *side, char hex[DIGEST_HEX_SIZE])
{
    if (side->definition) {
        digest_hex(&side->definition->experiment_digest, hex);
        return hex;
    }
    return pointer_text(side->manifest, "/definition/experiment_sha256");
}

/* One differing key; a list is one key, whatever of it differs. */
static int say_key(const cJSON *row, const char *what_differs, struct findings *f, struct err *e)
{
    const cJSON *field = json_get(row, "field");
    const char *at = cJSON_IsString(field) ? field->valuestring : "";
    AUTO_VALUE_ELEMENTS struct value_elements elements = {0};
    struct finding what = {.code = "NC-DEFINITION",
                           .field = at,
                           .baseline = json_get(row, "baseline"),
                           .current = json_get(row, "current")};
    AUTO_BUF struct buf text = {0};

    buf_init(&text, LIMIT_KIB(2));
    if (value_differences(at, what.baseline, what.current, &elements, e) < 0)
        return -1;
    value_elements_text(&text, &elements, strlen(at), 100);
    if (buf_check(&text, e) < 0)
        return -1;
    if (cJSON_IsArray(what.baseline) && cJSON_IsArray(what.current))
        what.elements = &elements;
    findings_reason(f, &what, "%s: %s %s", what_differs, at, text.data);
    return 0;
}

/* Tells the keys in which two definitions differ. Returns how many, or -1. */
static int list_keys(const struct definition *baseline, const struct definition *current,
                     const char *what_differs, struct findings *f, struct err *e)
{
    AUTO_JSON cJSON *rows = NULL;
    const cJSON *row = NULL;
    int n = 0;

    if (definition_experiment_diff(baseline, current, &rows, e) < 0)
        return -1;
    cJSON_ArrayForEach(row, rows) {
        if (say_key(row, what_differs, f, e) < 0)
            return -1;
        n++;
    }
    return n;
}

static int say_definition(const struct definition *baseline, const struct definition *current,
                          const char *what_differs, struct findings *f, struct err *e)
{
    struct finding what = {.code = "NC-DEFINITION", .field = "/definition/experiment_sha256"};
    int n = baseline && current ? list_keys(baseline, current, what_differs, f, e) : 0;

    if (n < 0)
        return -1;
    if (n == 0)
        findings_reason(f, &what, "%s (their digests)", what_differs);
    return 0;
}

int comparable_definition(const struct audit_input *in, struct findings *f, struct err *e)
{
    char hex_baseline[DIGEST_HEX_SIZE];
    char hex_current[DIGEST_HEX_SIZE];
    char hex_policy[DIGEST_HEX_SIZE];
    const char *baseline = experiment_of(&in->baseline, hex_baseline);
    const char *current = experiment_of(&in->current, hex_current);

    digest_hex(&in->policy->experiment_digest, hex_policy);
    if (!baseline || !current) {
        struct finding what = {.code = "NC-IDENTITY-MISSING",
                               .field = "/definition/experiment_sha256"};

        findings_reason(f, &what, "the experiment definition of the %s is unknown",
                        baseline ? "current run" : "baseline");
        return 0;
    }
    if (strcmp(baseline, current) != 0)
        return say_definition(in->baseline.definition, in->current.definition,
                              "the experiments differ", f, e);
    if (strcmp(current, hex_policy) != 0)
        return say_definition(in->policy, in->current.definition,
                              "the runs' experiment is not the one of the judging definition", f,
                              e);
    return 0;
}

/* Do both entries speak of one number of a report that the gate requires? */
static bool same_number(const struct policy *p, const cJSON *ours, const cJSON *theirs)
{
    const char *a = pointer_text(ours, "/path");
    const char *b = pointer_text(theirs, "/path");

    if (!a || !b || strcmp(a, b) != 0)
        return false;
    for (size_t i = 0; i < p->n_required; i++) {
        if (policy_applies(json_get(ours, "reports"), p->required[i]) &&
            policy_applies(json_get(theirs, "reports"), p->required[i]))
            return true;
    }
    return false;
}

static void check_unit(bool of_current, const cJSON *ours, const cJSON *theirs, struct findings *f)
{
    static const char *const keys[] = {"unit", "worse"};
    const char *pointer = pointer_text(ours, "/path");

    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        const cJSON *a = json_get(ours, keys[k]);
        const cJSON *b = json_get(theirs, keys[k]);
        struct finding what = {.code = "NC-UNIT", .field = pointer};

        if (a && b && json_equal(a, b))
            continue;
        what.baseline = of_current ? a : b;
        what.current = of_current ? b : a;
        findings_reason(
            f, &what, "the %s's definition gives %s another %s than the judging definition",
            of_current ? "current run" : "baseline", pointer, k == 0 ? "unit" : "worse direction");
    }
}

static const cJSON *metrics_of(const struct definition *d)
{
    return d ? pointer_get(d->policy, "/audit/metrics") : NULL;
}

/* One pointer may be listed several times, for other reports. */
static void check_units(const struct audit_side *side, bool of_current, const struct policy *p,
                        struct findings *f)
{
    const cJSON *ours = NULL;
    const cJSON *theirs = NULL;

    if (side->definition &&
        digest_equal(&side->definition->policy_digest, &p->definition->policy_digest))
        return;
    cJSON_ArrayForEach(ours, metrics_of(p->definition)) {
        cJSON_ArrayForEach(theirs, metrics_of(side->definition)) {
            if (same_number(p, ours, theirs))
                check_unit(of_current, ours, theirs, f);
        }
    }
}

void comparable_units(const struct audit_input *in, const struct policy *p, struct findings *f)
{
    check_units(&in->baseline, false, p, f);
    check_units(&in->current, true, p, f);
}
