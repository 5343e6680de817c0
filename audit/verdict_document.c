/* One run's answer as cleanrun-verdict/1, and the one line a forge shows. */
#include <stdlib.h>
#include <string.h>

#include "audit/comparison_text.h"
#include "audit/parts.h"
#include "audit/verdict.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/plain.h"

#define VERDICT_SCHEMA "cleanrun-verdict/1"

static size_t length_of(const cJSON *array)
{
    size_t n = 0;
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, array)
        n++;
    return n;
}

/* Anything but an acceptance that says PASS, and whose every check passed, is a failure. */
static bool acceptance_passed(const cJSON *acceptance)
{
    const cJSON *check = NULL;

    if (strcmp(json_text(acceptance, "verdict", ""), "PASS") != 0)
        return false;
    cJSON_ArrayForEach(check, json_get(acceptance, "checks")) {
        if (!cJSON_IsTrue(json_get(check, "passed")))
            return false;
    }
    return true;
}

/* The first stage that does not let the run pass decides. */
static enum verdict first_stage(const struct verdict_input *in, enum verdict audited)
{
    if (in->invalid_reasons && in->invalid_reasons->child)
        return VERDICT_INVALID;
    if (in->error_text)
        return VERDICT_ERROR;
    if (!in->mode || strcmp(in->mode, "clean") != 0)
        return VERDICT_MAX;
    if (audited == VERDICT_INVALID || !in->acceptance)
        return audited;
    return acceptance_passed(in->acceptance) ? audited : VERDICT_FAIL;
}

static int decide(const struct verdict_input *in, enum verdict *out, struct err *e)
{
    enum verdict audited = VERDICT_NON_COMPARABLE;

    if (in->audit && !verdict_parse(json_text(in->audit, "verdict", ""), &audited))
        return err_set(e, ERR_INTERNAL, "verdict.audit", "the audit document has no verdict");
    *out = first_stage(in, audited);
    if (*out == audited && !in->acceptance && audited != VERDICT_INVALID)
        return err_set(e, ERR_INTERNAL, "verdict.acceptance",
                       "a verdict needs an acceptance document");
    return 0;
}

/* The description. */

static void say_first_reason(struct buf *out, const cJSON *reasons)
{
    const cJSON *first = reasons ? reasons->child : NULL;
    size_t n = length_of(reasons);

    if (!first)
        return;
    buf_printf(out, " %s: ", json_text(first, "code", "?"));
    buf_put_cut(out, json_text(first, "text", ""), n > 1 ? 70 : VERDICT_DESCRIPTION_MAX);
    if (n > 1)
        buf_printf(out, "; %zu more reason%s", n - 1, n == 2 ? "" : "s");
}

/* How much of its allowance a row used up, for ranking: 1 is the limit. A baseline of 0 has no
 * percentage. */
static double used(const cJSON *row)
{
    double baseline = json_number(row, "baseline", 0);
    double current = json_number(row, "current", 0);
    double limit = json_number(row, "limit", baseline);
    double worse = strcmp(json_text(row, "worse", ""), "higher") == 0 ? current - baseline
                                                                      : baseline - current;
    double room =
        strcmp(json_text(row, "worse", ""), "higher") == 0 ? limit - baseline : baseline - limit;

    if (room <= 0)
        return worse > 0 ? 1e300 : 0;
    return worse / room;
}

/* The gated row that is worst, regressions before all others; NULL when there is none. */
static const cJSON *worst_row(const cJSON *comparisons, size_t *out_gated, size_t *out_regressed)
{
    const cJSON *worst = NULL;
    const cJSON *row = NULL;
    bool worst_regressed = false;

    *out_gated = 0;
    *out_regressed = 0;
    cJSON_ArrayForEach(row, comparisons) {
        bool regressed = strcmp(json_text(row, "verdict", ""), "regression") == 0;

        if (!cJSON_IsTrue(json_get(row, "gated")))
            continue;
        *out_gated += 1;
        *out_regressed += regressed ? 1 : 0;
        if (worst && (worst_regressed != regressed ? worst_regressed : used(row) <= used(worst)))
            continue;
        worst = row;
        worst_regressed = regressed;
    }
    return worst;
}

/* What follows the label of a row. */
static void say_row(struct buf *out, const cJSON *row,
                    void (*put)(struct buf *, const struct comparison_text *))
{
    struct comparison_text t;

    comparison_text(row, true, &t);
    buf_put_cut(out, t.label, 48);
    buf_putc(out, ' ');
    put(out, &t);
}

static void say_regression(struct buf *out, const cJSON *comparisons)
{
    size_t gated = 0;
    size_t regressed = 0;
    const cJSON *row = worst_row(comparisons, &gated, &regressed);

    if (!row)
        return;
    buf_printf(out, " %zu of %zu metric%s: ", regressed, gated, gated == 1 ? "" : "s");
    say_row(out, row, comparison_put);
}

static void put_change_of_limit(struct buf *out, const struct comparison_text *t)
{
    comparison_put_change(out, t);
    buf_puts(out, t->limit_is ? ", limit " : " of ");
    comparison_put_limit(out, t);
}

static void say_ok(struct buf *out, const cJSON *comparisons)
{
    size_t gated = 0;
    size_t regressed = 0;
    const cJSON *row = worst_row(comparisons, &gated, &regressed);

    buf_printf(out, " %zu metric%s within limits", gated, gated == 1 ? "" : "s");
    if (!row)
        return;
    buf_puts(out, ", worst ");
    say_row(out, row, put_change_of_limit);
}

static void say_failure(struct buf *out, const cJSON *acceptance)
{
    size_t failed = 0;
    const cJSON *check = NULL;
    const cJSON *checks = json_get(acceptance, "checks");

    cJSON_ArrayForEach(check, checks)
        failed += cJSON_IsTrue(json_get(check, "passed")) ? 0 : 1;
    buf_printf(out, " %zu of %zu acceptance check%s: ", failed, length_of(checks),
               length_of(checks) == 1 ? "" : "s");
    failed = 0;
    cJSON_ArrayForEach(check, checks) {
        if (cJSON_IsTrue(json_get(check, "passed")))
            continue;
        buf_puts(out, failed++ > 0 ? ", " : "");
        buf_put_cut(out, json_text(check, "name", "?"), 60);
        if (out->len > VERDICT_DESCRIPTION_MAX)
            return;
    }
}

static void describe(const struct verdict_input *in, enum verdict v, const cJSON *reasons,
                     struct buf *out)
{
    switch (v) {
    case VERDICT_OK:
        say_ok(out, json_get(in->audit, "comparisons"));
        break;
    case VERDICT_REGRESSION:
        say_regression(out, json_get(in->audit, "comparisons"));
        break;
    case VERDICT_NON_COMPARABLE:
    case VERDICT_INVALID:
        say_first_reason(out, reasons);
        break;
    case VERDICT_FAIL:
        say_failure(out, in->acceptance);
        break;
    case VERDICT_ERROR:
        buf_putc(out, ' ');
        buf_put_cut(out, in->error_text, 300);
        break;
    case VERDICT_PENDING:
    case VERDICT_MAX:
        break;
    }
}

/* "<WORD> …" in at most VERDICT_DESCRIPTION_MAX bytes. */
static int description_of(const struct verdict_input *in, enum verdict v, const cJSON *reasons,
                          struct buf *out, struct err *e)
{
    AUTO_BUF struct buf full = {0};
    AUTO_BUF struct buf plain = {0};

    buf_init(&full, LIMIT_KIB(64));
    if (v == VERDICT_MAX)
        buf_printf(&full, "%s run: no verdict", in->mode ? in->mode : "unknown");
    else
        buf_puts(&full, verdict_word(v));
    describe(in, v, reasons, &full);
    if (buf_check(&full, e) < 0)
        return -1;
    buf_init(&plain, LIMIT_KIB(512));
    plain_puts(&plain, full.data);
    if (buf_check(&plain, e) < 0)
        return -1;
    buf_put_cut(out, plain.data, VERDICT_DESCRIPTION_MAX);
    return buf_check(out, e);
}

/* The document. */

static void add_attempt(struct json_doc *d, const cJSON *attempt)
{
    cJSON *made = NULL;

    if (attempt) {
        json_add_copy(d, NULL, "attempt", attempt);
        return;
    }
    made = json_add_object(d, NULL, "attempt");
    json_add_int(d, made, "n", 1);
    json_add_int(d, made, "of", 1);
    (void) json_add_array(d, made, "previous"); /* failure stays in d */
}

static void add_acceptance(struct json_doc *d, const cJSON *acceptance)
{
    cJSON *made = NULL;
    cJSON *failed = NULL;
    const cJSON *check = NULL;

    if (!acceptance) {
        json_add_null(d, NULL, "acceptance");
        return;
    }
    made = json_add_object(d, NULL, "acceptance");
    json_add_string(d, made, "verdict", acceptance_passed(acceptance) ? "PASS" : "FAIL");
    json_add_int(d, made, "checks", (int64_t) length_of(json_get(acceptance, "checks")));
    failed = json_add_array(d, made, "failed");
    cJSON_ArrayForEach(check, json_get(acceptance, "checks")) {
        if (!cJSON_IsTrue(json_get(check, "passed")))
            json_add_string(d, failed, NULL, json_text(check, "name", "?"));
    }
}

static void add_reason_none(struct json_doc *d, cJSON *reasons)
{
    cJSON *made = json_add_object(d, reasons, NULL);

    json_add_string(d, made, "code", "NC-BASELINE-NONE");
    json_add_null(d, made, "path");
    json_add_null(d, made, "field");
    json_add_string(d, made, "text", "this run was not compared with any baseline");
}

/* The reasons of the stage that decided. */
static cJSON *add_reasons(struct json_doc *d, const struct verdict_input *in, enum verdict v)
{
    cJSON *reasons = json_add_array(d, NULL, "reasons");
    const cJSON *item = NULL;
    const cJSON *from = NULL;

    if (in->invalid_reasons && in->invalid_reasons->child)
        from = in->invalid_reasons;
    else if (v == VERDICT_NON_COMPARABLE || v == VERDICT_INVALID)
        from = json_get(in->audit, "reasons");
    cJSON_ArrayForEach(item, from)
        json_add_copy(d, reasons, NULL, item);
    if (v == VERDICT_NON_COMPARABLE && !in->audit)
        add_reason_none(d, reasons);
    return reasons;
}

static void add_names(struct json_doc *d, const struct verdict_input *in)
{
    json_add_string(d, NULL, "project", in->project);
    json_add_string(d, NULL, "gate", in->gate);
    json_add_string(d, NULL, "run", in->run);
    json_add_string(d, NULL, "commit", in->commit);
    json_add_string(d, NULL, "mode", in->mode);
    json_add_string(d, NULL, "machine_class", in->machine_class);
    json_add_string(d, NULL, "baseline", in->baseline);
}

int verdict_document(const struct verdict_input *in, enum verdict *out, cJSON **out_document,
                     struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = {0};
    AUTO_BUF struct buf description = {0};
    struct json_doc *d = &doc;
    enum verdict v = VERDICT_MAX;
    cJSON *reasons = NULL;
    cJSON *notes = NULL;
    cJSON *root = NULL;

    if (decide(in, &v, e) < 0)
        return -1;
    json_doc_init_object(d);
    buf_init(&description, LIMIT_KIB(1));
    json_add_string(d, NULL, "schema", VERDICT_SCHEMA);
    json_add_string(d, NULL, "verdict", v == VERDICT_MAX ? NULL : verdict_word(v));
    add_names(d, in);
    add_attempt(d, in->attempt);
    json_add_int(d, NULL, "expected_comparisons",
                 (int64_t) json_number(in->audit, "expected_comparisons", 0));
    json_add_int(d, NULL, "made_comparisons",
                 (int64_t) json_number(in->audit, "made_comparisons", 0));
    add_acceptance(d, in->acceptance);
    if (in->audit)
        json_add_copy(d, NULL, "audit", in->audit);
    else
        json_add_null(d, NULL, "audit");
    reasons = add_reasons(d, in, v);
    if (!reasons || description_of(in, v, reasons, &description, e) < 0)
        return reasons ? -1 : err_memory(e, "verdict.memory");
    json_add_string(d, NULL, "description", description.data);
    notes = json_add_array(d, NULL, "notes");
    if (in->no_ticket)
        json_add_string(d, notes, NULL, "no ticket");
    if (in->error_text)
        json_add_string(d, NULL, "error", in->error_text);
    if (in->policy_note)
        json_add_copy(d, NULL, "policy", in->policy_note);
    if (in->links)
        json_add_copy(d, NULL, "links", in->links);
    else
        (void) json_add_object(d, NULL, "links"); /* failure stays in d */
    root = json_doc_take(d, e);
    if (!root)
        return -1;
    *out = v;
    *out_document = root;
    return 0;
}
