#include "experiment/acceptance.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/acceptance_check.h"
#include "experiment/schema.h"

enum { NAME_TOLD = 120, VALUE_TOLD = 60, ERROR_TOLD = 200 }; /* bytes, in words */

const char *acceptance_verdict_name(enum acceptance_verdict verdict)
{
    return verdict == ACCEPTANCE_PASS ? "PASS" : "FAIL";
}

static int run_families(struct checks *c, const cJSON *accept, struct err *e)
{
    if (checks_fields(c, accept, e) < 0 || checks_counts(c, accept, e) < 0 ||
        checks_phases(c, accept, e) < 0 || checks_repeated(c, accept, e) < 0 ||
        checks_recompute(c, accept, e) < 0 || checks_consistent(c, accept, e) < 0 ||
        checks_soak(c, accept, e) < 0 || checks_derived(c, accept, e) < 0)
        return -1;
    if (c->n == 0)
        checks_add(c, "accept", "report", NULL, NULL, false,
                   "the definition has no check: nothing was accepted");
    return 0;
}

/* Written as it is stored, is the document one that every reader takes? */
static bool document_fits(const cJSON *document)
{
    AUTO_BUF struct buf b;

    buf_init(&b, LIMIT_JSON_DOCUMENT);
    json_write(&b, document, JSON_PRETTY);
    return !b.failed || b.failure == BUF_NOMEM;
}

/* One failed check in the place of more than can be told: the report and the definition are their
 * author's. */
static int say_too_many(const struct checks *c, cJSON *document, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = {0};
    struct checks one = {.doc = &doc};
    AUTO_JSON cJSON *limit = cJSON_CreateNumber(LIMIT_CHECKS);
    AUTO_JSON cJSON *actual = cJSON_CreateNumber((double) c->n);
    AUTO_JSON cJSON *made = NULL;
    AUTO_BUF struct buf text;
    cJSON *list = NULL;

    buf_init(&text, LIMIT_KIB(4));
    if (c->n > LIMIT_CHECKS)
        buf_printf(&text, "%zu checks of one report, at most %d are allowed", c->n, LIMIT_CHECKS);
    else
        buf_printf(&text, "%zu checks of one report take more than the %zu bytes of a document",
                   c->n, LIMIT_JSON_DOCUMENT);
    if (c->widest)
        buf_printf(&text, " (%s matches %zu values)", c->widest, c->widest_n);
    buf_puts(&text,
             ": nothing was accepted; let the report hold fewer members, or let the definition "
             "check only those that count");
    json_doc_init_object(&doc);
    one.list = json_add_array(&doc, NULL, "checks");
    checks_add(&one, "accept", "report", limit, actual, false, text.data);
    if (!limit || !actual || buf_check(&text, e) < 0)
        return err_memory(e, "acceptance.memory");
    made = json_doc_take(&doc, e);
    list = made ? cJSON_DetachItemFromObjectCaseSensitive(made, "checks") : NULL;
    if (!list)
        return -1;
    if (cJSON_ReplaceItemInObjectCaseSensitive(document, "checks", list))
        return 0;
    json_free(list);
    return err_memory(e, "acceptance.memory");
}

/* The verdict goes where PASS was put; rows that do not fit give way to one. */
static int finish(struct checks *c, cJSON *document, struct err *e)
{
    if (c->failed == 0 && checks_fit(c) && document_fits(document))
        return 0;
    if (!cJSON_ReplaceItemInObjectCaseSensitive(document, "verdict", cJSON_CreateString("FAIL")))
        return err_memory(e, "acceptance.memory");
    return checks_fit(c) && document_fits(document) ? 0 : say_too_many(c, document, e);
}

int acceptance_evaluate(const struct acceptance_input *in, struct acceptance *out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = {0};
    const cJSON *accept = json_get(in->definition->policy, "accept");
    struct checks c = {.doc = &doc, .report = in->report, .in = in};
    enum acceptance_verdict verdict = ACCEPTANCE_FAIL;
    cJSON *made = NULL;

    if (schema_check(&schema_accept, accept, "/policy/accept", e) < 0)
        return -1;
    json_doc_init_object(&doc);
    json_add_string(&doc, NULL, "schema", "cleanrun-acceptance/1");
    json_add_string(&doc, NULL, "verdict",
                    acceptance_verdict_name(ACCEPTANCE_PASS)); /* exchanged below */
    json_add_string(&doc, NULL, "report", in->report_path);
    c.list = json_add_array(&doc, NULL, "checks");
    if (!cJSON_IsObject(in->report))
        checks_add(&c, "report", "report", NULL, NULL, false, "the report is not a JSON object");
    else if (run_families(&c, accept, e) < 0)
        return -1;
    made = json_doc_take(&doc, e);
    if (!made || finish(&c, made, e) < 0) {
        json_free(made);
        return -1;
    }
    verdict = strcmp(json_get(made, "verdict")->valuestring, "PASS") == 0 ? ACCEPTANCE_PASS
                                                                          : ACCEPTANCE_FAIL;
    *out = (struct acceptance){.verdict = verdict, .document = made};
    return 0;
}

/* What an operator asks of its limit; NULL where the limit is no value to compare with. */
static const char *demand(const char *operator)
{
    static const char *const words[][2] = {
        {"==", "must be"},           {">=", "must be at least"}, {"<=", "must be at most"},
        {"equal_counts", "must be"}, {"sum_of", "must be"},      {"share_of", "must be at most"},
        {"zero_tree", "must be"},
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i][0], operator) == 0)
            return words[i][1];
    return NULL;
}

static bool put_shown(struct buf *out, const char *before, const cJSON *value)
{
    AUTO_BUF struct buf text = {.data = NULL};

    if (!value || cJSON_IsNull(value))
        return false;
    buf_init(&text, LIMIT_JSON_DOCUMENT);
    json_write(&text, value, JSON_COMPACT);
    buf_puts(out, before);
    buf_put_cut(out, text.failed ? "…" : text.data, VALUE_TOLD);
    return true;
}

void acceptance_put_check(struct buf *out, const cJSON *check)
{
    const char *words = demand(json_text(check, "operator", ""));
    const char *error = json_text(check, "error", "");
    bool told;

    buf_put_cut(out, json_text(check, "name", "?"), NAME_TOLD);
    told = words && put_shown(out, ": ", json_get(check, "actual"));
    if (words && json_get(check, "limit") && !cJSON_IsNull(json_get(check, "limit"))) {
        buf_puts(out, told ? ", " : ": ");
        buf_puts(out, words);
        told = put_shown(out, " ", json_get(check, "limit"));
    }
    if (!error[0])
        return;
    buf_puts(out, told ? "; " : ": ");
    buf_put_cut(out, error, ERROR_TOLD);
}

void acceptance_fini(struct acceptance *a)
{
    if (!a)
        return;
    json_free(a->document);
    *a = (struct acceptance){0};
}

struct difference {
    char field[64];
    const cJSON *packaged;
    const cJSON *recomputed;
    bool found;
};

static void differ(struct difference *d, const char *field, const cJSON *packaged,
                   const cJSON *recomputed)
{
    d->found = true;
    (void) snprintf(d->field, sizeof d->field, "%s", field);
    d->packaged = packaged;
    d->recomputed = recomputed;
}

static bool same(const cJSON *a, const cJSON *b, const char *key)
{
    const cJSON *x = json_get(a, key);
    const cJSON *y = json_get(b, key);

    return x && y && json_equal(x, y);
}

static void compare_checks(const cJSON *packaged, const cJSON *recomputed, struct difference *d)
{
    static const char *const keys[] = {"name", "operator", "passed", "limit", "actual"};
    const cJSON *p = packaged ? packaged->child : NULL;
    const cJSON *r = recomputed ? recomputed->child : NULL;
    size_t index = 0;

    for (; p && r && !d->found; p = p->next, r = r->next, index++)
        for (size_t k = 0; k < ARRAY_LEN(keys) && !d->found; k++)
            if (!same(p, r, keys[k])) {
                differ(d, "", json_get(p, keys[k]), json_get(r, keys[k]));
                (void) snprintf(d->field, sizeof d->field, "/checks/%zu/%s", index, keys[k]);
            }
    if (!d->found && (p || r)) {
        differ(d, "", p, r);
        (void) snprintf(d->field, sizeof d->field, "/checks/%zu", index);
    }
}

int acceptance_compare(const cJSON *packaged, const cJSON *recomputed, cJSON **out_differs,
                       struct err *e)
{
    static const char *const keys[] = {"schema", "verdict", "report"};
    const cJSON *packaged_checks = json_get(packaged, "checks");
    AUTO_JSON_DOC struct json_doc doc = {0};
    struct difference d = {0};

    for (size_t k = 0; k < ARRAY_LEN(keys) && !d.found; k++)
        if (!same(packaged, recomputed, keys[k]))
            differ(&d,
                   k == 0   ? "/schema"
                   : k == 1 ? "/verdict"
                            : "/report",
                   json_get(packaged, keys[k]), json_get(recomputed, keys[k]));
    if (!d.found && !cJSON_IsArray(packaged_checks))
        differ(&d, "/checks", packaged_checks, NULL);
    if (!d.found)
        compare_checks(packaged_checks, json_get(recomputed, "checks"), &d);
    *out_differs = NULL;
    if (!d.found)
        return 0;
    json_doc_init_object(&doc);
    json_add_string(&doc, NULL, "field", d.field);
    json_add_copy(&doc, NULL, "packaged", d.packaged);
    json_add_copy(&doc, NULL, "recomputed", d.recomputed);
    *out_differs = json_doc_take(&doc, e);
    return *out_differs ? 0 : -1;
}
