/* Manifest-level identity: are the two runs the same experiment on comparable machines from known
 * sources? */
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/num.h"
#include "experiment/pointer.h"

struct finding comparable_finding(const struct audit_input *in, const char *code,
                                  const char *pointer)
{
    return (struct finding){.code = code,
                            .field = pointer,
                            .baseline = pointer_get(in->baseline.manifest, pointer),
                            .current = pointer_get(in->current.manifest, pointer)};
}

static void check_class(const struct audit_input *in, struct findings *f)
{
    const char *baseline = pointer_text(in->baseline.manifest, "/class");
    const char *current = pointer_text(in->current.manifest, "/class");
    struct finding what = comparable_finding(in, "NC-MACHINE-CLASS", "/class");

    if (!baseline || !current)
        findings_reason(f, &what, "the machine class is unknown %s",
                        findings_where(f, !baseline, !current));
    else if (strcmp(baseline, current) != 0)
        findings_reason(f, &what, "the baseline was measured on class %s, the current run on %s",
                        baseline, current);
}

static void check_mode(const struct audit_input *in, struct findings *f)
{
    const char *baseline = pointer_text(in->baseline.manifest, "/mode");
    const char *current = pointer_text(in->current.manifest, "/mode");
    struct finding what = comparable_finding(in, "NC-MODE", "/mode");

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
    struct finding what = comparable_finding(in, "NC-SOURCE-DIRTY", "/source/ignored");
    const cJSON *n = of_current ? what.current : what.baseline;
    const char *whose = of_current ? "current run" : "baseline";

    if (cJSON_IsNumber(n) && num_same(n->valuedouble, 0))
        return;
    if (!cJSON_IsNumber(n))
        findings_reason(f, &what,
                        "whether files that git ignores lay beside the %s's source is not known",
                        whose);
    else
        findings_reason(f, &what,
                        "%.0f file%s that git ignores lay in the %s's work tree before the build: "
                        "the program may not be this commit's; `cleanrun run GATE --at HEAD` "
                        "measures a fresh checkout",
                        n->valuedouble, num_same(n->valuedouble, 1) ? "" : "s", whose);
}

static void check_source(const struct audit_input *in, bool of_current, struct findings *f)
{
    static const char *const pointers[] = {"/source/start/dirty", "/source/end/dirty"};

    for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
        struct finding what = comparable_finding(in, "NC-SOURCE-DIRTY", pointers[i]);
        const cJSON *dirty = of_current ? what.current : what.baseline;

        if (cJSON_IsFalse(dirty))
            continue;
        findings_reason(f, &what, "the %s's source %s", of_current ? "current run" : "baseline",
                        cJSON_IsTrue(dirty) ? "has changes that no commit holds"
                                            : "is not known to be a commit");
        return;
    }
    check_ignored(in, of_current, f);
}

/* The manifests must speak of this gate, and of one project. */
static void check_names(const struct audit_input *in, struct findings *f)
{
    static const char *const pointers[] = {"/gate", "/project"};

    for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
        const char *baseline = pointer_text(in->baseline.manifest, pointers[i]);
        const char *current = pointer_text(in->current.manifest, pointers[i]);
        const char *wanted = i == 0 ? in->policy->gate : current;
        struct finding what = comparable_finding(in, "NC-DEFINITION", pointers[i]);

        if (!baseline || !current || strcmp(baseline, wanted) != 0 || strcmp(current, wanted) != 0)
            findings_reason(f, &what, "baseline and current run do not both belong to %s %s",
                            pointers[i] + 1, wanted ? wanted : "(unknown)");
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

    comparable_units(in, p, f);
    if (!in->baseline.manifest && !in->current.manifest) {
        check_kept_class(in, f);
        return 0;
    }
    if (!in->baseline.manifest || !in->current.manifest) {
        findings_reason(f, &what,
                        "the %s is a bare result tree without a manifest: its machine, mode, "
                        "source and definition are unknown",
                        in->baseline.manifest ? "current run" : "baseline");
        return 0;
    }
    check_names(in, f);
    check_class(in, f);
    check_mode(in, f);
    check_source(in, true, f);
    if (!in->baseline.legacy && !f->self)
        check_source(in, false, f);
    comparable_facts(in, f);
    comparable_environments(in, f);
    return comparable_definition(in, f, e);
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
