/* The local verdict of a finished run, in words, as JSON and as an exit code. */
#include "runner/finish.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/comparison_text.h"
#include "audit/verdict.h"
#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"

#define REASONS_TOLD 20
#define POLICY_TEXT                                                                                \
    "judged by the policy reviewed with the baseline; this branch's policy differs and gains "     \
    "nothing until reviewed"

/* The first check that failed, in words. */
static void put_failed_check(struct buf *out, const struct acceptance *a)
{
    const cJSON *check = NULL;

    cJSON_ArrayForEach(check, json_get(a->document, "checks")) {
        if (cJSON_IsTrue(json_get(check, "passed")))
            continue;
        acceptance_put_check(out, check);
        return;
    }
}

int finish_exit(const struct finish *f)
{
    if (f->run->options.build_only || (f->run->plan.mode != PLAN_CLEAN && f->run->n_faults == 0))
        return EXIT_NOTHING;
    if (finish_failed(f))
        return EXIT_FAIL;
    return finish_audit(f) ? verdict_exit(finish_audit(f)->verdict) : EXIT_NON_COMPARABLE;
}

static const char *local_verdict(const struct finish *f)
{
    if (f->run->options.build_only || f->run->plan.mode != PLAN_CLEAN)
        return NULL;
    if (finish_failed(f))
        return "FAIL";
    return finish_audit(f) ? verdict_word(finish_audit(f)->verdict) : "NON_COMPARABLE";
}

static const char *acceptance_word(const struct finish *f)
{
    const struct acceptance *a = finish_acceptance(f);

    return a ? acceptance_verdict_name(a->verdict) : f->acceptance_status;
}

static const char *audit_word(const struct finish *f)
{
    const struct audit *a = finish_audit(f);

    return a ? verdict_word(a->verdict) : f->audit_status;
}

/* Which policy judged; null without a baseline. */
static void add_policy(struct json_doc *d, const struct finish *f)
{
    const struct run *r = f->run;
    char hex[DIGEST_HEX_SIZE];
    cJSON *part;

    if (!f->has_baseline) {
        json_add_null(d, NULL, "policy");
        return;
    }
    part = json_add_object(d, NULL, "policy");
    json_add_bool(d, part, "differs", f->reviewed.differs);
    digest_hex(&r->reference.definition.policy_digest, hex);
    json_add_string(d, part, "reviewed_sha256", hex);
    digest_hex(&r->definition->policy_digest, hex);
    json_add_string(d, part, "run_sha256", hex);
    if (!f->reviewed.differs)
        return;
    json_add_string(d, part, "run_acceptance", f->acceptance_status);
    json_add_string(d, part, "run_audit", f->audit_status);
    json_add_string(d, part, "text", POLICY_TEXT);
}

static void add_reasons(struct json_doc *d, const struct finish *f)
{
    cJSON *list = json_add_array(d, NULL, "reasons");
    const cJSON *reason = NULL;
    cJSON *row;

    if (finish_audit(f)) {
        cJSON_ArrayForEach(reason, json_get(finish_audit(f)->document, "reasons")) {
            json_add_copy(d, list, NULL, reason);
        }
        return;
    }
    if (!local_verdict(f) || finish_failed(f))
        return;
    row = json_add_object(d, list, NULL);
    json_add_string(d, row, "code", "NC-BASELINE-NONE");
    json_add_string(d, row, "text",
                    f->run->options.server ? "no baseline is reviewed for this gate and class"
                                           : "no baseline was named");
}

static bool is_regression(const cJSON *row)
{
    const cJSON *verdict = json_get(row, "verdict");

    return cJSON_IsString(verdict) && strcmp(verdict->valuestring, "regression") == 0;
}

static void add_regressions(struct json_doc *d, const struct finish *f)
{
    cJSON *list = json_add_array(d, NULL, "regressions");
    const cJSON *row = NULL;

    if (!finish_audit(f))
        return;
    cJSON_ArrayForEach(row, json_get(finish_audit(f)->document, "comparisons")) {
        if (is_regression(row))
            json_add_copy(d, list, NULL, row);
    }
}

/* The first run of a gate: what keeps it from being a baseline, before anybody is asked to review
 * it. */
static void add_obstacles(struct json_doc *d, const struct finish *f)
{
    cJSON *list;
    const cJSON *reason = NULL;

    if (!f->has_foreseen) {
        json_add_null(d, NULL, "could_be_baseline");
        return;
    }
    json_add_bool(d, NULL, "could_be_baseline", f->foreseen.verdict == VERDICT_OK);
    list = json_add_array(d, NULL, "obstacles");
    cJSON_ArrayForEach(reason, json_get(f->foreseen.document, "reasons")) {
        json_add_copy(d, list, NULL, reason);
    }
}

static void tell_json(struct finish *f, int code)
{
    struct run *r = f->run;
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *j = NULL;
    AUTO_BUF struct buf b = {.data = NULL};
    struct err ignored = ERR_INIT;
    cJSON *list;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "event", "result");
    json_add_string(&d, NULL, "run", r->id);
    json_add_string(&d, NULL, "directory", r->dir.path);
    json_add_string(&d, NULL, "status", f->status);
    json_add_string(&d, NULL, "verdict", local_verdict(f));
    json_add_string(&d, NULL, "acceptance", acceptance_word(f));
    json_add_string(&d, NULL, "audit", audit_word(f));
    add_policy(&d, f);
    list = json_add_array(&d, NULL, "faults");
    for (size_t i = 0; i < r->n_faults; i++)
        json_add_string(&d, list, NULL, r->faults[i]);
    add_reasons(&d, f);
    add_regressions(&d, f);
    add_obstacles(&d, f);
    json_add_int(&d, NULL, "exit", code);
    j = json_doc_take(&d, &ignored);
    buf_init(&b, LIMIT_MIB(16));
    json_write(&b, j, JSON_COMPACT);
    if (!b.failed)
        (void) fprintf(r->cli->out, "%s\n", b.data); /* flushed and checked by main */
}

static void tell_comparison(const struct cli *c, const cJSON *row)
{
    AUTO_BUF struct buf words = {.data = NULL};
    struct comparison_text t;

    buf_init(&words, LIMIT_KIB(64));
    comparison_text(row, true, &t);
    comparison_put(&words, &t);
    cli_say(c, "  - %s: %s %s", json_text(row, "path", ""), t.label, words.data ? words.data : "");
}

/* What regressed, as `cleanrun audit` tells it. */
static void tell_regressions(const struct finish *f)
{
    const cJSON *row = NULL;
    size_t n = 0;

    if (!finish_audit(f))
        return;
    cJSON_ArrayForEach(row, json_get(finish_audit(f)->document, "comparisons")) {
        if (!is_regression(row))
            continue;
        if (n++ == REASONS_TOLD) {
            cli_say(f->run->cli, "  - and more: audit.md lists every comparison");
            return;
        }
        tell_comparison(f->run->cli, row);
    }
}

/* The checks that failed by the policy that judges. */
static void tell_acceptance(const struct finish *f)
{
    const struct acceptance *a = finish_acceptance(f);
    const struct acceptance *own = f->has_acceptance ? &f->acceptance : NULL;
    AUTO_BUF struct buf check = {.data = NULL};

    buf_init(&check, LIMIT_KIB(4));
    if (a && a->verdict == ACCEPTANCE_FAIL) {
        put_failed_check(&check, a);
        cli_say(f->run->cli, "acceptance FAIL%s, first at: %s%s",
                f->reviewed.differs ? " by the reviewed policy" : "", check.data ? check.data : "?",
                f->reviewed.differs ? "" : " (acceptance.json lists every check)");
    } else if (a && own && own->verdict == ACCEPTANCE_FAIL) {
        put_failed_check(&check, own);
        cli_say(f->run->cli,
                "acceptance FAIL by this branch's own policy, first at: %s (the reviewed one "
                "passes)",
                check.data ? check.data : "?");
    }
}

static void tell_list(const struct finish *f, const cJSON *reasons, const char *more)
{
    const cJSON *reason = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(reason, reasons) {
        if (n++ == REASONS_TOLD) {
            cli_say(f->run->cli, "  - and more%s", more);
            return;
        }
        const char *text = json_text(reason, "text", ""), *field = json_text(reason, "field", "");
        bool named = !*field || strstr(text, field);

        cli_say(f->run->cli, "  - %s: %s%s%s%s", json_text(reason, "code", ""), text,
                named ? "" : " (", named ? "" : field, named ? "" : ")");
        if (!strcmp(json_text(reason, "code", ""), "NC-SOURCE-DIRTY") && f->run->changed[0])
            cli_say(f->run->cli, "      %s", f->run->changed);
        else if (!strcmp(json_text(reason, "code", ""), "NC-SOURCE-DIRTY") && f->run->ignored.n > 0)
            cli_say(f->run->cli, "      ignored by git: %s", f->run->ignored.list.text);
    }
}

/* Why the comparison refused; audit.md has the rest of a long list. */
static void tell_reasons(const struct finish *f)
{
    if (finish_audit(f))
        tell_list(f, json_get(finish_audit(f)->document, "reasons"),
                  ": audit.md lists every reason");
}

static void tell_no_baseline(const struct finish *f)
{
    const struct cli *c = f->run->cli;
    bool unfit = f->has_foreseen && f->foreseen.verdict != VERDICT_OK;

    if (unfit) {
        cli_say(c, "this run could not be a baseline, no other run could be compared with it:");
        tell_list(f, json_get(f->foreseen.document, "reasons"), "");
    }
    cli_say(c, "%-10s NON_COMPARABLE  NC-BASELINE-NONE: no baseline %s; %s", "result",
            f->run->options.server ? "is reviewed" : "was named",
            unfit ? "mend what is listed above and run again (cleanrun help CODE)"
                  : "to propose this run as one, push it and have it reviewed (cleanrun help "
                    "reasons)");
}

void finish_tell(struct finish *f, int code)
{
    struct run *r = f->run;

    if (r->options.json) {
        tell_json(f, code);
        return;
    }
    for (size_t i = 0; i < r->n_faults; i++)
        cli_say(r->cli, "  - %s", r->faults[i] ? r->faults[i] : "?");
    tell_reasons(f);
    tell_regressions(f);
    tell_acceptance(f);
    if (f->reviewed.differs)
        cli_say(r->cli, "%-10s %s", "policy", POLICY_TEXT);
    if (!r->options.build_only && r->plan.mode != PLAN_CLEAN &&
        faccessat(r->dir.fd, "profile", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        cli_say(r->cli, "%-10s what the profiler left is below %s/profile", "profile", r->dir.path);
    if (!local_verdict(f))
        cli_say(r->cli, "%-10s %s: no verdict comes of it", "result",
                r->options.build_only ? "built" : "diagnostic run");
    else if (finish_audit(f) || finish_failed(f))
        cli_say(r->cli, "%-10s %s", "result", local_verdict(f));
    else
        tell_no_baseline(f);
    (void) fprintf(r->cli->out, "%s\n", r->dir.path); /* flushed and checked by main */
}
