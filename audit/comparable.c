/* Manifest-level identity: are the two runs the same experiment on comparable machines from known
 * sources? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/num.h"
#include "base/limits.h"
#include "experiment/facts.h"
#include "experiment/pointer.h"

/* An unknown fact is absent, null, empty or says so itself. */
static bool is_unknown(const cJSON *v)
{
    return !v || cJSON_IsNull(v) ||
           (cJSON_IsString(v) && (!v->valuestring[0] || strcmp(v->valuestring, "unknown") == 0));
}

struct fact_check {
    const cJSON *baseline; /* manifests */
    const cJSON *current;
    const char *pointer;
    const char *label;
    const char *why;
};

static void fact_differs(const struct fact_check *c, const struct finding *what, struct findings *f)
{
    struct json_doc *d = &f->marks;
    AUTO_BUF struct buf text = {0};
    cJSON *row = NULL;

    buf_init(&text, LIMIT_KIB(2));
    value_text(&text, what->baseline, 120);
    buf_puts(&text, " → ");
    value_text(&text, what->current, 120);
    findings_reason(f, what, "%s differs: %s", c->label, text.data ? text.data : "");
    row = json_add_object(d, f->different, NULL);
    json_add_null(d, row, "path");
    json_add_string(d, row, "field", c->pointer);
    json_add_string(d, row, "label", c->label);
    json_add_copy(d, row, "baseline", what->baseline);
    json_add_copy(d, row, "current", what->current);
    json_add_string(d, row, "why", c->why);
}

/* One fact: known on both sides, a text, and equal. */
static void check_fact(const struct fact_check *c, struct findings *f)
{
    struct json_doc *d = &f->marks;
    struct finding what = {.code = "NC-IDENTITY-MISSING",
                           .field = c->pointer,
                           .baseline = pointer_get(c->baseline, c->pointer),
                           .current = pointer_get(c->current, c->pointer)};
    bool no_baseline = is_unknown(what.baseline);
    bool no_current = is_unknown(what.current);
    cJSON *row = NULL;

    if (no_baseline || no_current) {
        findings_reason(f, &what, "%s is unknown %s", c->label,
                        no_baseline && no_current ? findings_both(f)
                        : no_baseline             ? "in the baseline"
                                                  : "in the current run");
        return;
    }
    if (!cJSON_IsString(what.baseline) || !cJSON_IsString(what.current)) {
        what.code = "NC-IDENTITY-INVALID";
        findings_reason(f, &what, "%s is not a text on both sides", c->label);
        return;
    }
    if (!json_equal(what.baseline, what.current)) {
        what.code = "NC-IDENTITY-DIFFERS";
        fact_differs(c, &what, f);
        return;
    }
    row = json_add_object(d, f->equal, NULL);
    json_add_null(d, row, "path");
    json_add_string(d, row, "field", c->pointer);
    json_add_string(d, row, "label", c->label);
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
    struct fact_check c = {in->baseline.manifest, in->current.manifest, pointer, label, why};

    if (!pointer)
        f->marks.failed = true;
    else
        check_fact(&c, f);
}

static const cJSON *facts_of(const cJSON *manifest)
{
    const cJSON *facts = pointer_get(manifest, "/machine/facts");

    return cJSON_IsObject(facts) ? facts : NULL;
}

/* Every fact of the table, and whatever else either side recorded. */
static void check_facts(const struct audit_input *in, struct findings *f)
{
    const cJSON *baseline = facts_of(in->baseline.manifest);
    const cJSON *current = facts_of(in->current.manifest);
    const cJSON *member = NULL;
    struct fact_check conditioning = {in->baseline.manifest, in->current.manifest,
                                      "/conditioning/sha256", "conditioning",
                                      "the measured point inherits the state it leaves"};

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
    check_fact(&conditioning, f);
}

struct place {
    const char *pointer; /* an object of variables in the manifest */
    const char *whose;
};

/* One variable: set to the same text on both sides. Absent means that it was not set, which is
 * known. */
static void check_variable(const struct audit_input *in, const struct place *at, const char *name,
                           struct findings *f)
{
    AUTO_FREE char *pointer = pointer_join(at->pointer, name);
    char label[200];
    struct fact_check c = {
        in->baseline.manifest, in->current.manifest, pointer, label,
        "what the caller's environment lets through may change what is built and measured"};
    struct finding what = {.code = "NC-IDENTITY-DIFFERS",
                           .field = pointer,
                           .baseline = json_get(pointer_get(c.baseline, at->pointer), name),
                           .current = json_get(pointer_get(c.current, at->pointer), name)};

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
        fact_differs(&c, &what, f);
    }
}

/* The environment of the build or of the program, every variable that either side had. */
static void check_variables(const struct audit_input *in, const struct place *at,
                            struct findings *f)
{
    struct finding what = {.code = "NC-IDENTITY-MISSING",
                           .field = at->pointer,
                           .baseline = pointer_get(in->baseline.manifest, at->pointer),
                           .current = pointer_get(in->current.manifest, at->pointer)};
    const cJSON *member = NULL;

    if (!cJSON_IsObject(what.baseline) || !cJSON_IsObject(what.current)) {
        findings_reason(f, &what, "the %s's environment is unknown %s", at->whose,
                        cJSON_IsObject(what.current)    ? "in the baseline"
                        : cJSON_IsObject(what.baseline) ? "in the current run"
                                                        : findings_both(f));
        return;
    }
    cJSON_ArrayForEach(member, what.baseline)
        check_variable(in, at, member->string, f);
    cJSON_ArrayForEach(member, what.current) {
        if (!json_get(what.baseline, member->string))
            check_variable(in, at, member->string, f);
    }
}

static void check_environments(const struct audit_input *in, struct findings *f)
{
    static const struct place places[] = {{"/build/environment", "build"},
                                          {"/environment", "program"}};

    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        check_variables(in, &places[i], f);
}

static void check_class(const struct audit_input *in, struct findings *f)
{
    const char *baseline = pointer_text(in->baseline.manifest, "/class");
    const char *current = pointer_text(in->current.manifest, "/class");
    struct finding what = {.code = "NC-MACHINE-CLASS",
                           .field = "/class",
                           .baseline = pointer_get(in->baseline.manifest, "/class"),
                           .current = pointer_get(in->current.manifest, "/class")};

    if (!baseline || !current)
        findings_reason(f, &what, "the machine class is unknown %s",
                        !baseline && !current ? "on both sides"
                        : !baseline           ? "in the baseline"
                                              : "in the current run");
    else if (strcmp(baseline, current) != 0)
        findings_reason(f, &what, "the baseline was measured on class %s, the current run on %s",
                        baseline, current);
}

static void check_mode(const struct audit_input *in, struct findings *f)
{
    const char *baseline = pointer_text(in->baseline.manifest, "/mode");
    const char *current = pointer_text(in->current.manifest, "/mode");
    struct finding what = {.code = "NC-MODE",
                           .field = "/mode",
                           .baseline = pointer_get(in->baseline.manifest, "/mode"),
                           .current = pointer_get(in->current.manifest, "/mode")};

    if (!current || strcmp(current, "clean") != 0)
        findings_reason(f, &what, "the current run's mode is %s, not clean",
                        current ? current : "unknown");
    else if (!baseline || strcmp(baseline, "clean") != 0)
        findings_reason(f, &what, "the baseline's mode is %s, not clean",
                        baseline ? baseline : "unknown");
}

/* Beside files that git ignores, the commit does not say what the program was built from. */
static void check_ignored(const struct audit_input *in, bool of_current, struct findings *f)
{
    static const char pointer[] = "/source/ignored";
    const cJSON *n =
        pointer_get(of_current ? in->current.manifest : in->baseline.manifest, pointer);
    const char *whose = of_current ? "current run" : "baseline";
    struct finding what = {.code = "NC-SOURCE-DIRTY",
                           .field = pointer,
                           .baseline = pointer_get(in->baseline.manifest, pointer),
                           .current = pointer_get(in->current.manifest, pointer)};

    if (cJSON_IsNumber(n) && num_same(n->valuedouble, 0))
        return;
    if (!cJSON_IsNumber(n))
        findings_reason(f, &what,
                        "whether files that git ignores lay beside the %s's source is not known",
                        whose);
    else
        findings_reason(f, &what,
                        "%.0f file%s that git ignores lay in the %s's work tree before the build: "
                        "the program may not "
                        "be this commit's; `cleanrun run GATE --at HEAD` measures a fresh checkout",
                        n->valuedouble, num_same(n->valuedouble, 1) ? "" : "s", whose);
}

static void check_source(const struct audit_input *in, bool of_current, struct findings *f)
{
    static const char *const pointers[] = {"/source/start/dirty", "/source/end/dirty"};
    const cJSON *manifest = of_current ? in->current.manifest : in->baseline.manifest;

    for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
        const cJSON *dirty = pointer_get(manifest, pointers[i]);
        struct finding what = {.code = "NC-SOURCE-DIRTY",
                               .field = pointers[i],
                               .baseline = pointer_get(in->baseline.manifest, pointers[i]),
                               .current = pointer_get(in->current.manifest, pointers[i])};

        if (cJSON_IsFalse(dirty))
            continue;
        findings_reason(f, &what, "the %s's source %s", of_current ? "current run" : "baseline",
                        cJSON_IsTrue(dirty) ? "has changes that no commit holds"
                                            : "is not known to be a commit");
        return;
    }
    check_ignored(in, of_current, f);
}

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

static int check_definition(const struct audit_input *in, struct findings *f, struct err *e)
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

/* The manifests must speak of this gate, and of one project. */
static void check_names(const struct audit_input *in, struct findings *f)
{
    static const char *const pointers[] = {"/gate", "/project"};

    for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
        const char *baseline = pointer_text(in->baseline.manifest, pointers[i]);
        const char *current = pointer_text(in->current.manifest, pointers[i]);
        const char *wanted = i == 0 ? in->policy->gate : current;
        struct finding what = {.code = "NC-DEFINITION",
                               .field = pointers[i],
                               .baseline = pointer_get(in->baseline.manifest, pointers[i]),
                               .current = pointer_get(in->current.manifest, pointers[i])};

        if (!baseline || !current || strcmp(baseline, wanted) != 0 || strcmp(current, wanted) != 0)
            findings_reason(f, &what, "baseline and current run do not both belong to %s %s",
                            pointers[i] + 1, wanted ? wanted : "(unknown)");
    }
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

/* Bare trees have no manifest; their keeper may know on which class each was measured. */
static void check_kept_class(const struct audit_input *in, struct findings *f)
{
    const char *baseline = in->baseline.machine_class;
    const char *current = in->current.machine_class;
    struct finding what = {.code = "NC-MACHINE-CLASS", .field = "/class"};

    if (baseline && current && strcmp(baseline, current) != 0)
        findings_reason(f, &what, "the baseline was measured on class %s, the current run on %s",
                        baseline, current);
}

int comparable_manifests(const struct audit_input *in, const struct policy *p, struct findings *f,
                         struct err *e)
{
    struct finding what = {.code = "NC-IDENTITY-MISSING", .field = "/machine/facts"};

    check_units(&in->baseline, false, p, f);
    check_units(&in->current, true, p, f);
    if (!in->baseline.manifest && !in->current.manifest) {
        check_kept_class(in, f);
        return 0;
    }
    if (!in->baseline.manifest || !in->current.manifest) {
        findings_reason(f, &what,
                        "the %s is a bare result tree without a manifest: its machine, mode, "
                        "source and definition are "
                        "unknown",
                        in->baseline.manifest ? "current run" : "baseline");
        return 0;
    }
    check_names(in, f);
    check_class(in, f);
    check_mode(in, f);
    check_source(in, true, f);
    if (!in->baseline.legacy && !f->self)
        check_source(in, false, f);
    check_facts(in, f);
    check_environments(in, f);
    return check_definition(in, f, e);
}

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

void comparable_same_evidence(const struct audit_input *in, const struct policy *p,
                              struct findings *f)
{
    const char *run = pointer_text(in->current.manifest, "/run");
    struct finding what = {.code = "NC-SAME-EVIDENCE"};
    size_t equal = 0;

    if (same_text(in->baseline.evidence_sha256, in->current.evidence_sha256)) {
        findings_reason(f, &what, "both sides are the same archive %s",
                        in->current.evidence_sha256);
        return;
    }
    if (same_text(pointer_text(in->baseline.manifest, "/run"), run)) {
        what.field = "/run";
        findings_reason(f, &what, "both sides are the run %s", run);
        return;
    }
    for (size_t i = 0; i < p->n_required; i++) {
        const struct tree_file *baseline = tree_find(in->baseline.tree, p->required[i]);
        const struct tree_file *current = tree_find(in->current.tree, p->required[i]);

        if (baseline && current && digest_equal(&baseline->digest, &current->digest) &&
            baseline->size == current->size)
            equal++;
        else if (baseline || current)
            return;
    }
    if (equal > 0)
        findings_reason(f, &what,
                        "the required reports of both sides are the same bytes (%zu of %zu)", equal,
                        p->n_required);
}
