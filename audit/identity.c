/* Report-level identity: every field of the policy known, well formed and equal on both sides, or a
 * reason. */
#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/exact.h"
#include "experiment/pointer.h"

enum state { STATE_KNOWN, STATE_UNKNOWN, STATE_MALFORMED };

struct side {
    const cJSON *value; /* raw, NULL when absent */
    enum state state;
    const char *why; /* malformed: static text */
};

struct field {
    const struct policy_identity *rule;
    const struct pair *pair;
    const char *pointer;          /* plain */
    const cJSON *within_baseline; /* the container of the rule's `within`, or NULL */
    const cJSON *within_current;
    struct side baseline;
    struct side current;
};

static bool is_container(const cJSON *v)
{
    return cJSON_IsArray(v) || cJSON_IsObject(v);
}

/* Whether a null stands anywhere inside. Depth is bounded by LIMIT_JSON_DEPTH. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static bool holds_null(const cJSON *v)
{
    const cJSON *item = NULL;

    if (!is_container(v))
        return cJSON_IsNull(v);
    cJSON_ArrayForEach(item, v) {
        if (holds_null(item))
            return true;
    }
    return false;
}

static bool type_fits(const cJSON *v, const char *type)
{
    const char *name = json_type_name(v);

    return strcmp(name, type) == 0 || (strcmp(type, "number") == 0 && strcmp(name, "integer") == 0);
}

static const char *malformed(const struct policy_identity *rule, const cJSON *v)
{
    if (rule->type && !type_fits(v, rule->type))
        return "of another type than the definition says";
    if (cJSON_IsString(v) && !v->valuestring[0] && !rule->may_be_empty)
        return "empty";
    if (is_container(v) && !v->child && !rule->may_be_empty)
        return "empty";
    if (holds_null(v))
        return "incomplete (it holds null)";
    if (!exact_numbers(v))
        return "not exact (it holds a number beyond 2^53-1)";
    return NULL;
}

/* The value that a report (or an inference) gives the field; container: what the field is within,
 * or NULL. */
static struct side look(const struct field *f, const cJSON *reported, const cJSON *container,
                        const cJSON *inferred)
{
    struct side s = {.value = inferred ? json_get(inferred, f->pointer) : NULL,
                     .state = STATE_UNKNOWN};

    if (!s.value)
        s.value = reported;
    if (s.value && !cJSON_IsNull(s.value)) {
        s.why = malformed(f->rule, s.value);
        s.state = s.why ? STATE_MALFORMED : STATE_KNOWN;
    } else if (container && !cJSON_IsNull(container)) {
        s.why = cJSON_IsObject(container) ? "missing from an identity that is there"
                                          : "inside something that is no object";
        s.state = STATE_MALFORMED;
    }
    return s;
}

static const char *label_of(const struct field *f)
{
    return f->rule->label ? f->rule->label : f->pointer;
}

static struct finding finding_of(const struct field *f, const char *code)
{
    return (struct finding){.code = code,
                            .path = f->pair->path,
                            .field = f->pointer,
                            .baseline = f->baseline.value,
                            .current = f->current.value};
}

/* NULL when there is no room, or no memory (which stays in the marks). */
static cJSON *row(struct findings *out, cJSON *list, const struct field *f)
{
    cJSON *made = NULL;

    if (!findings_room(out, strlen(f->pair->path) + strlen(f->pointer) +
                                (f->rule->label ? strlen(f->rule->label) : 0)))
        return NULL;
    made = json_add_object(&out->marks, list, NULL);
    if (!made)
        return NULL;
    json_add_string(&out->marks, made, "path", f->pair->path);
    json_add_string(&out->marks, made, "field", f->pointer);
    json_add_string(&out->marks, made, "label", f->rule->label);
    return made;
}

static void say_malformed(const struct field *f, struct findings *out)
{
    struct finding what = finding_of(f, "NC-IDENTITY-INVALID");
    bool baseline = f->baseline.state == STATE_MALFORMED;
    bool current = f->current.state == STATE_MALFORMED;

    if (baseline && current && f->baseline.why == f->current.why)
        findings_reason(out, &what, "%s is %s %s", label_of(f), f->baseline.why,
                        findings_where(out, baseline, current));
    else if (baseline && current)
        findings_reason(out, &what, "%s is %s in the baseline and %s in the current run",
                        label_of(f), f->baseline.why, f->current.why);
    else
        findings_reason(out, &what, "%s is %s in the %s", label_of(f),
                        baseline ? f->baseline.why : f->current.why,
                        baseline ? "baseline" : "current run");
}

static void say_missing(const struct field *f, struct findings *out)
{
    struct finding what = finding_of(f, "NC-IDENTITY-MISSING");
    bool baseline = f->baseline.state == STATE_UNKNOWN;
    bool current = f->current.state == STATE_UNKNOWN;
    const char *why_not = baseline && f->pair->why_not[0] ? f->pair->why_not : NULL;

    findings_reason(
        out, &what, "%s is unknown %s%s%s%s", label_of(f), findings_where(out, baseline, current),
        why_not ? " (it could not be inferred: " : "", why_not ? why_not : "", why_not ? ")" : "");
}

static int say_different(const struct field *f, struct findings *out, struct err *e)
{
    struct finding what = finding_of(f, "NC-IDENTITY-DIFFERS");
    bool whole = !is_container(f->baseline.value) && !is_container(f->current.value);
    AUTO_VALUE_ELEMENTS struct value_elements elements = {0};
    AUTO_BUF struct buf text = {0};
    cJSON *made = NULL;

    buf_init(&text, LIMIT_KIB(3));
    if (value_differences(f->pointer, f->baseline.value, f->current.value, &elements, e) < 0)
        return -1;
    value_elements_text(&text, &elements, strlen(f->pointer), 60);
    if (buf_check(&text, e) < 0)
        return -1;
    what.elements = whole ? NULL : &elements;
    findings_reason(out, &what, "%s differs: %s", label_of(f), text.data);
    made = row(out, out->different, f);
    if (!made)
        return 0;
    out->bytes +=
        value_add_bounded(&out->marks, made, "baseline", f->baseline.value, VALUE_BYTES_MAX);
    out->bytes +=
        value_add_bounded(&out->marks, made, "current", f->current.value, VALUE_BYTES_MAX);
    json_add_string(&out->marks, made, "why", f->rule->why);
    if (!whole)
        out->bytes += value_add_elements(&out->marks, made, &elements);
    return 0;
}

static void say_equal(const struct field *f, struct findings *out)
{
    cJSON *made = row(out, out->equal, f);

    if (made)
        out->bytes +=
            value_add_bounded(&out->marks, made, "value", f->baseline.value, VALUE_BYTES_MAX);
}

/* baseline, current: what the reports say. */
static int compare_field(struct field *f, const cJSON *baseline, const cJSON *current,
                         struct findings *out, struct err *e)
{
    f->baseline = look(f, baseline, f->within_baseline, f->pair->inferred);
    f->current = look(f, current, f->within_current, NULL);
    if (f->baseline.state == STATE_MALFORMED || f->current.state == STATE_MALFORMED) {
        say_malformed(f, out);
    } else if (f->baseline.state == STATE_UNKNOWN && f->current.state == STATE_UNKNOWN &&
               f->rule->may_lack && f->pair->legacy) {
        (void) row(out, out->not_recorded, f); /* failure stays in marks */
    } else if (f->baseline.state == STATE_UNKNOWN || f->current.state == STATE_UNKNOWN) {
        say_missing(f, out);
    } else if (!json_equal(f->baseline.value, f->current.value)) {
        return say_different(f, out, e);
    } else {
        say_equal(f, out);
    }
    return 0;
}

static struct field field_of(const struct policy_identity *rule, const struct pair *pair)
{
    return (struct field){
        .rule = rule,
        .pair = pair,
        .pointer = rule->pointer,
        .within_baseline = rule->within ? pointer_get(pair->baseline, rule->within) : NULL,
        .within_current = rule->within ? pointer_get(pair->current, rule->within) : NULL,
    };
}

static int compare_plain(const struct policy_identity *rule, const struct pair *pair,
                         struct findings *out, struct err *e)
{
    struct field f = field_of(rule, pair);

    return compare_field(&f, pointer_get(pair->baseline, rule->pointer),
                         pointer_get(pair->current, rule->pointer), out, e);
}

/* Every member that either side has must be known and equal on both. */
static int compare_pattern(const struct policy_identity *rule, const struct pair *pair,
                           struct findings *out, struct err *e)
{
    struct field f = field_of(rule, pair);
    AUTO_EXPANDED struct expanded x = {0};

    if (expand_pair(pair, rule->pointer, pointer_expand_every, out, &x, e) < 0)
        return -1;
    if (x.refused)
        return 0;
    for (size_t i = 0; i < x.baseline.n; i++) {
        f.pointer = x.baseline.items[i].pointer;
        if (compare_field(&f, x.baseline.items[i].value, pointer_list_get(&x.current, f.pointer),
                          out, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < x.current.n; i++) {
        f.pointer = x.current.items[i].pointer;
        if (!pointer_list_find(&x.baseline, f.pointer) &&
            compare_field(&f, NULL, x.current.items[i].value, out, e) < 0)
            return -1;
    }
    if (x.baseline.n == 0 && x.current.n == 0)
        return compare_plain(rule, pair, out, e);
    return 0;
}

int identity_compare(const struct policy *p, const struct pair *pair, struct findings *f,
                     struct err *e)
{
    size_t applied = 0;

    for (size_t i = 0; i < p->n_identity && !f->over; i++) {
        const struct policy_identity *rule = &p->identity[i];
        int rc = 0;

        if (!policy_applies(rule->reports, pair->path))
            continue;
        applied++;
        rc = pointer_is_pattern(rule->pointer) ? compare_pattern(rule, pair, f, e)
                                               : compare_plain(rule, pair, f, e);
        if (rc < 0)
            return -1;
    }
    if (applied == 0 && !f->over) {
        struct finding what = {.code = "NC-IDENTITY-MISSING", .path = pair->path};

        findings_reason(f, &what, "no identity field of the definition applies to this report");
    }
    return 0;
}
