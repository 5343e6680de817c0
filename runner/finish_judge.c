/* The local judgement of a finished run: by its own policy for the evidence, by the reviewed one
 * for the verdict. */
#include "runner/finish.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/tree.h"
#include "runner/capture.h"

void reviewed_fini(struct reviewed *r)
{
    if (r->has_acceptance)
        acceptance_fini(&r->acceptance);
    if (r->has_audit)
        audit_fini(&r->audit);
    *r = (struct reviewed){.differs = false};
}

const struct acceptance *finish_acceptance(const struct finish *f)
{
    if (f->reviewed.differs)
        return f->reviewed.has_acceptance ? &f->reviewed.acceptance : NULL;
    return f->has_acceptance ? &f->acceptance : NULL;
}

const struct audit *finish_audit(const struct finish *f)
{
    if (f->reviewed.differs)
        return f->reviewed.has_audit ? &f->reviewed.audit : NULL;
    return f->has_audit ? &f->audit : NULL;
}

bool finish_failed(const struct finish *f)
{
    const struct acceptance *a = finish_acceptance(f);
    size_t own = f->reviewed.differs && f->own_acceptance_failed ? 1 : 0;

    return f->run->n_faults > own || (a && a->verdict == ACCEPTANCE_FAIL);
}

static int load_current(const struct run *r, struct tree *out, struct err *e)
{
    AUTO_FD int fd = -1;

    tree_init(out);
    if (file_open_dir_at(r->dir.fd, RESULTS_DIR, &fd, e) < 0)
        return -1;
    return tree_load(out, fd, e);
}

/* audit.md is for people, so it shows what judges. */
static int write_markdown(const struct finish *f, struct err *e)
{
    AUTO_BUF struct buf b = {.data = NULL};
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    const struct audit *judging = f->reviewed.differs ? &f->reviewed.audit : &f->audit;

    if (audit_markdown(judging->document, NULL, &text, &len, e) < 0)
        return -1;
    buf_init(&b, LIMIT_MIB(64));
    if (f->reviewed.differs)
        buf_printf(
            &b,
            "> Judged by the policy reviewed with the baseline: %s. The policy of this run's "
            "own definition differs and gains nothing until reviewed; it would give %s "
            "(audit.json).\n\n",
            verdict_word(f->reviewed.audit.verdict), verdict_word(f->audit.verdict));
    buf_put(&b, text, len);
    if (buf_check(&b, e) < 0)
        return -1;
    return file_write_at(f->run->dir.fd, "audit.md", b.data, b.len, 0644, e);
}

/* The reviewed policy on the experiment that was run, as a server judges. */
static int judge_reviewed(struct finish *f, struct audit_input *in, struct err *e)
{
    const struct definition *reviewed = &f->run->reference.definition;
    struct definition d = definition_judging(f->run->definition, reviewed);

    f->reviewed.differs = true;
    if (finish_accept(f, &d, &f->reviewed.acceptance, e) < 0)
        return err_wrap(e, "the reviewed policy");
    f->reviewed.has_acceptance = true;
    in->policy = reviewed;
    if (audit_run(in, &f->reviewed.audit, e) < 0)
        return err_wrap(e, "the reviewed policy");
    f->reviewed.has_audit = true;
    return 0;
}

static int judge_own(struct finish *f, const struct audit_input *in, struct err *e)
{
    if (audit_run(in, &f->audit, e) < 0)
        return -1;
    if (f->audit.verdict == VERDICT_INVALID) {
        /* One of the required reports can't be read: that is this run's fault, since the baseline
         * was checked. */
        run_fault(f->run, "a report that the comparison needs can't be read");
        audit_fini(&f->audit);
        f->status = "FAIL";
        return 0;
    }
    f->has_audit = true;
    f->audit_status = verdict_word(f->audit.verdict);
    return rundir_write_json(&f->run->dir, "audit.json", f->audit.document, LIMIT_JSON_DOCUMENT, e);
}

int finish_compare(struct finish *f, struct err *e)
{
    struct run *r = f->run;
    AUTO_TREE struct tree current = {.n = 0};
    AUTO_JSON cJSON *manifest = NULL;

    tree_init(&current);
    if (!r->reference.present || r->plan.mode != PLAN_CLEAN || f->report.status != REPORT_CAPTURED)
        return 0;
    if (reference_snapshot(&r->reference, r->dir.fd, e) < 0)
        return -1;
    f->has_baseline = true;
    if (load_current(r, &current, e) < 0 || finish_manifest(f, &manifest, e) < 0)
        return -1;
    struct audit_input in = {
        .policy = r->definition,
        .baseline = {.tree = &r->reference.tree,
                     .manifest = r->reference.manifest.document,
                     .definition = &r->reference.definition,
                     .id = r->reference.id,
                     .root = "baseline"},
        .current = {.tree = &current,
                    .manifest = manifest,
                    .definition = r->definition,
                    .id = r->id,
                    .root = "."},
    };

    if (judge_own(f, &in, e) < 0)
        return -1;
    if (!f->has_audit)
        return 0;
    if (!digest_equal(&r->definition->policy_digest, &r->reference.definition.policy_digest) &&
        judge_reviewed(f, &in, e) < 0)
        return -1;
    return write_markdown(f, e);
}

int finish_foresee(struct finish *f, struct err *e)
{
    struct run *r = f->run;
    AUTO_TREE struct tree current = {.n = 0};
    AUTO_JSON cJSON *manifest = NULL;

    tree_init(&current);
    if (r->reference.present || r->plan.mode != PLAN_CLEAN || r->options.build_only ||
        f->report.status != REPORT_CAPTURED || r->n_faults > 0)
        return 0;
    if (load_current(r, &current, e) < 0 || finish_manifest(f, &manifest, e) < 0)
        return -1;
    struct audit_side side = {.tree = &current,
                              .manifest = manifest,
                              .definition = r->definition,
                              .id = r->id,
                              .root = "."};

    if (audit_would_compare(r->definition, &side, &f->foreseen, e) < 0)
        return -1;
    f->has_foreseen = true;
    return 0;
}
