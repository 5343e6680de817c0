/* What a set of runs lacks to be evidence of so many passes of one experiment. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "experiment/pointer.h"
#include "runner/runset.h"

struct judge {
    const struct runset *set;
    struct json_doc doc;
    cJSON *list;
    cJSON *acceptances;
};

/* run NULL: all of them together. */
__attribute__((format(printf, 4, 5))) static void lack(struct judge *j, const char *code,
                                                       const char *run, const char *format, ...)
{
    va_list ap;
    AUTO_FREE char *text = NULL;
    cJSON *row = json_add_object(&j->doc, j->list, NULL);

    va_start(ap, format);
    if (vasprintf(&text, format, ap) < 0) {
        text = NULL; /* vasprintf leaves it undefined */
        j->doc.failed = true;
    }
    va_end(ap);
    json_add_string(&j->doc, row, "code", code);
    json_add_string(&j->doc, row, "run", run);
    json_add_string(&j->doc, row, "text", text);
}

static void judge_status(struct judge *j, const struct runset_run *r)
{
    const char *run = r->manifest.run;
    const char *audit = runset_run_word(r, "audit_status");
    size_t n = 0;
    const char *failed = runset_first_failed(r->acceptance, &n);

    if (strcmp(r->manifest.mode, "clean") != 0)
        lack(j, "mode", run, "the run is of mode %s; only clean runs are evidence",
             r->manifest.mode);
    if (r->manifest.status != MANIFEST_PASS)
        lack(j, "status", run, "the run's status is %s", manifest_status_name(r->manifest.status));
    if (failed)
        lack(j, "acceptance", run, "%zu acceptance checks failed in the run, the first is %s", n,
             failed);
    else if (strcmp(runset_run_word(r, "acceptance_status"), "PASS") != 0)
        lack(j, "acceptance", run, "the run's acceptance is %s",
             runset_run_word(r, "acceptance_status"));
    if (strcmp(audit, "OK") != 0 && strcmp(audit, "NOT_APPLICABLE") != 0)
        lack(j, "audit", run, "the run's comparison with its baseline is %s", audit);
}

/* A branch's own policy gains nothing until it is reviewed. */
static int judge_policy(struct judge *j, const struct runset_run *r, struct err *e)
{
    AUTO_ACCEPTANCE struct acceptance by = {.document = NULL};
    const char *word = NULL;
    const char *failed;
    size_t n = 0;

    if (runset_run_reviewed(r, &word, &by, e) < 0)
        return -1;
    if (!word)
        return 0;
    if (strcmp(word, "OK") != 0)
        lack(j, "audit-reviewed", r->manifest.run,
             "by the policy reviewed with the baseline, which is not the run's own, its comparison "
             "is %s",
             word);
    failed = runset_first_failed(by.document, &n);
    if (by.verdict != ACCEPTANCE_PASS)
        lack(j, "acceptance-reviewed", r->manifest.run,
             "by the policy reviewed with the baseline, which is not the run's own, %zu acceptance "
             "checks fail, the first is %s",
             n, failed ? failed : "?");
    return 0;
}

/* Acceptance once more, by the definition that judges. */
static int judge_acceptance(struct judge *j, const struct runset_run *r, struct err *e)
{
    AUTO_ACCEPTANCE struct acceptance now = {.document = NULL};
    const char *failed;
    size_t n = 0;

    if (!runset_run_report(r)) {
        lack(j, "report", r->manifest.run, "the run has no report");
        json_add_null(&j->doc, j->acceptances, NULL);
        return 0;
    }
    if (runset_run_accept(r, &j->set->definition, &now, e) < 0)
        return -1;
    failed = runset_first_failed(now.document, &n);
    if (failed)
        lack(j, "acceptance-now", r->manifest.run,
             "%zu acceptance checks fail by today's rules, the first is %s", n, failed);
    else if (now.verdict != ACCEPTANCE_PASS)
        lack(j, "acceptance-now", r->manifest.run, "acceptance fails by today's rules");
    json_add_copy(&j->doc, j->acceptances, NULL, now.document);
    return 0;
}

static void judge_source(struct judge *j, const struct runset_run *r)
{
    const cJSON *source = json_get(r->manifest.document, "source");
    const struct {
        const char *key, *name, *text;
    } asked[] = {{"/run/report_commit", "commit", r->manifest.commit},
                 {"/run/report_fingerprint", "fingerprint", r->manifest.fingerprint}};

    if (!runset_same_source(j->set->start, json_get(source, "start")))
        lack(j, "source-start", r->manifest.run,
             "the run was made from another source than the one at the start");
    if (!r->manifest.unchanged)
        lack(j, "source-changed", r->manifest.run, "the source changed during the run");
    for (size_t i = 0; i < ARRAY_LEN(asked) && runset_run_report(r); i++) {
        const char *pointer = pointer_text(r->definition.experiment, asked[i].key);
        const char *said = pointer ? pointer_text(runset_run_report(r), pointer) : NULL;

        if (pointer && (!said || strcmp(said, asked[i].text) != 0))
            lack(j, "report-source", r->manifest.run,
                 "the report's source differs: %s is %.80s, the run's %s is %s", pointer,
                 said ? said : "no text", asked[i].name, asked[i].text);
    }
}

static void judge_experiment(struct judge *j, const struct runset_run *r)
{
    const struct runset_run *first = &j->set->runs[0];
    static const char *const parts[] = {"/machine/facts", "/conditioning/sha256"};

    if (!digest_equal(&first->manifest.experiment_digest, &r->manifest.experiment_digest) ||
        !digest_equal(&first->manifest.policy_digest, &r->manifest.policy_digest))
        lack(j, "definition", r->manifest.run, "the run has another definition than the first one");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!json_equal(pointer_get(first->manifest.document, parts[i]),
                        pointer_get(r->manifest.document, parts[i])))
            lack(j, "experiment", r->manifest.run, "%s of the manifest is not the first run's",
                 parts[i]);
    }
}

static bool same_executable(const struct manifest *a, const struct manifest *b)
{
    return a->has_executable && b->has_executable &&
           digest_equal(&a->executable_digest, &b->executable_digest);
}

static bool same_baseline(const struct runset_run *a, const struct runset_run *b)
{
    if (!a->reference.present || !b->reference.present)
        return a->reference.present == b->reference.present;
    return digest_equal(&a->reference.manifest_digest, &b->reference.manifest_digest) &&
           digest_equal(&a->baseline_tree, &b->baseline_tree);
}

static void judge_together(struct judge *j, size_t required)
{
    const struct runset *s = j->set;
    bool executable = s->runs[0].manifest.has_executable;
    bool baseline = true;

    if (s->n != required)
        lack(j, "count", NULL, "%zu runs, %zu are required", s->n, required);
    for (size_t i = 1; i < s->n; i++) {
        executable = executable && same_executable(&s->runs[0].manifest, &s->runs[i].manifest);
        baseline = baseline && same_baseline(&s->runs[0], &s->runs[i]);
    }
    if (!executable)
        lack(j, "executable", NULL, "the runs do not have one identical executable");
    if (!baseline)
        lack(j, "baseline", NULL, "the runs were not compared with one identical baseline");
    if (s->now && !runset_same_source(s->now, s->start))
        lack(j, "source-now", NULL, "the source changed after it was recorded at the start");
    if (!digest_equal(&s->definition.experiment_digest, &s->runs[0].manifest.experiment_digest) ||
        strcmp(s->definition.gate, s->runs[0].manifest.gate) != 0)
        lack(j, "rules", NULL, "the definition that judges is of another experiment than the runs");
}

static int judge_runs(struct judge *j, size_t required, struct err *e)
{
    for (size_t i = 0; i < j->set->n; i++) {
        const struct runset_run *r = &j->set->runs[i];

        judge_status(j, r);
        if (judge_policy(j, r, e) < 0 || judge_acceptance(j, r, e) < 0)
            return -1;
        judge_source(j, r);
        if (i > 0)
            judge_experiment(j, r);
    }
    judge_together(j, required);
    return 0;
}

int runset_judge(struct runset *s, size_t required, struct err *e)
{
    struct judge j = {.set = s};
    cJSON *made = NULL;
    int rc;

    if (!s->start)
        return err_set(e, ERR_INTERNAL, "runset.start", "no source block of the start");
    if (!s->has_definition && runset_set_definition(s, &s->runs[0].definition, e) < 0)
        return -1;
    json_doc_init_object(&j.doc);
    j.list = json_add_array(&j.doc, NULL, "shortcomings");
    j.acceptances = json_add_array(&j.doc, NULL, "acceptances");
    rc = judge_runs(&j, required, e);
    if (rc == 0) {
        made = json_doc_take(&j.doc, e);
        rc = made ? 0 : -1;
    }
    json_doc_fini(&j.doc);
    if (rc < 0)
        return -1;
    json_free(s->shortcomings);
    json_free(s->acceptances);
    s->shortcomings = cJSON_DetachItemFromObjectCaseSensitive(made, "shortcomings");
    s->acceptances = cJSON_DetachItemFromObjectCaseSensitive(made, "acceptances");
    json_free(made);
    return 0;
}
