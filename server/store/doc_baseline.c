/* Documents of baselines: all of one gate, and one by its id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "experiment/pointer.h"
#include "server/store/doc.h"
#include "server/store/documents.h"
#include "server/store/metrics.h"
#include "server/store/side.h"

/* Who withdrew it and why, or null. */
static void add_retired(struct json_doc *d, cJSON *parent, const struct query *q)
{
    cJSON *o;

    if (query_get_int(q, BASE_RETIRED) == 0) {
        json_add_null(d, parent, "retired");
        return;
    }
    o = json_add_object(d, parent, "retired");
    doc_time(d, o, "at", query_get_int(q, BASE_RETIRED));
    json_add_string(d, o, "by", query_get_text(q, BASE_RETIRED_BY));
    json_add_string(d, o, "reason", query_get_text(q, BASE_RETIRED_REASON));
}

/* Every decision about it, oldest first: promoted, withdrawn, promoted again. */
static int add_reviews(struct json_doc *d, cJSON *parent, struct db *db, const char *id,
                       struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_BASELINE_REVIEWS);
    cJSON *list = json_add_array(d, parent, "reviews");
    bool row = false;
    int rc;

    query_text(&q, id);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        cJSON *o = json_add_object(d, list, NULL);

        doc_time(d, o, "at", query_get_int(&q, 0));
        json_add_string(d, o, "by", query_get_text(&q, 1));
        json_add_string(d, o, "action", query_get_text(&q, 2) + strlen("baseline."));
        json_add_string(d, o, "reason", query_get_text(&q, 3));
    }
    return rc;
}

static int add_baseline(struct json_doc *d, cJSON *list, struct db *db, const struct query *q,
                        bool with_successor, struct err *e)
{
    cJSON *o = json_add_object(d, list, NULL);
    const char *id = query_get_text(q, BASE_ID);
    struct digest archive;

    json_add_string(d, o, "class", query_get_text(q, BASE_CLASS));
    json_add_string(d, o, "id", id);
    json_add_bool(d, o, "current", query_get_int(q, BASE_CURRENT) != 0);
    json_add_string(d, o, "reviewer", query_get_text(q, BASE_REVIEWER));
    json_add_string(d, o, "reason", query_get_text(q, BASE_REASON));
    doc_time(d, o, "at", query_get_int(q, BASE_AT));
    json_add_string(d, o, "run", query_get_text(q, BASE_RUN));
    json_add_string(d, o, "commit", query_get_text(q, BASE_COMMIT));
    if (query_get_digest(q, BASE_ARCHIVE, &archive)) /* history may have none */
        doc_hex(d, o, "evidence_sha256", &archive);
    json_add_bool(d, o, "legacy", query_get_int(q, BASE_LEGACY) != 0);
    json_add_bool(d, o, "damaged", query_get_int(q, BASE_DAMAGED) != 0);
    doc_time(d, o, "revoked_since", query_get_int(q, BASE_REVOKED));
    add_retired(d, o, q);
    if (with_successor)
        json_add_string(d, o, "superseded_by", query_get_text(q, BASE_SUPERSEDED_BY));
    doc_format(d, o, "url", "/b/%s", id);
    return add_reviews(d, o, db, id, e);
}

int baseline_list_add(struct json_doc *d, struct db *db, int64_t project_id, const char *gate,
                      bool with_successor, struct baseline_list *out, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_BASELINES_OF_GATE);
    cJSON *list = json_add_array(d, NULL, "baselines");
    bool row = false;
    int rc;

    query_int(&q, project_id);
    query_text(&q, gate);
    query_int(&q, DOC_ROWS);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        if (add_baseline(d, list, db, &q, with_successor, e) < 0)
            return -1;
        out->n++;
        if (!out->definition && query_get_int(&q, BASE_CURRENT)) {
            const void *bytes = query_get_bytes(&q, BASE_DEFINITION, &out->definition_len);

            out->definition = bytes ? strndup((const char *) bytes, out->definition_len) : NULL;
            if (!out->definition)
                return err_memory(e, "doc.memory");
        }
    }
    return rc;
}

int doc_baselines(struct store *s, const char *project, const char *gate, cJSON **out,
                  struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    struct store_project p;
    struct baseline_list listed = {.n = 0};
    char page[256];
    int rc;

    json_doc_init_object(&d);
    if (store_read_open(s, &r, e) < 0 || store_project_read(r.db, project, &p, e) < 0)
        return -1;
    json_add_string(&d, NULL, "schema", "cleanrun-baselines/1");
    json_add_string(&d, NULL, "project", project);
    json_add_string(&d, NULL, "gate", gate);
    rc = baseline_list_add(&d, r.db, p.id, gate, true, &listed, e);
    free(listed.definition);
    if (rc < 0)
        return -1;
    (void) snprintf(page, sizeof page, "/p/%s/%s/baselines", project, gate); /* names are short */
    doc_links(&d, page);
    return doc_take(&d, out, e);
}

/* One baseline. */

static int add_uses(struct json_doc *d, struct db *db, const char *id, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_BASELINE_USES);
    cJSON *list = json_add_array(d, NULL, "uses");
    bool row = false;
    int rc;

    query_text(&q, id);
    query_int(&q, DOC_ROWS);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        cJSON *o = json_add_object(d, list, NULL);

        json_add_string(d, o, "run", query_get_text(&q, RUN_RUN));
        json_add_string(d, o, "verdict", query_get_text(&q, RUN_VERDICT));
        doc_time(d, o, "at", query_get_int(&q, RUN_RECEIVED));
        json_add_string(d, o, "description", query_get_text(&q, RUN_DESCRIPTION));
        doc_run_url(d, o, "url", query_get_text(&q, RUN_RUN), id);
    }
    return rc;
}

static int add_predecessor(struct json_doc *d, struct db *db, const char *id, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_BASELINE_PREDECESSOR);
    bool row = false;

    query_text(&q, id);
    if (query_step(&q, &row, e) < 0)
        return -1;
    json_add_string(d, NULL, "supersedes", row ? query_get_text(&q, 0) : NULL);
    return 0;
}

static int add_record(struct json_doc *d, const struct query *q, struct err *e)
{
    static const struct {
        const char *key;
        enum baseline_column column;
    } digests[] = {{"evidence_sha256", BASE_ARCHIVE},
                   {"manifest_sha256", BASE_MANIFEST},
                   {"experiment_sha256", BASE_EXPERIMENT},
                   {"policy_sha256", BASE_POLICY}};

    json_add_string(d, NULL, "project", query_get_text(q, BASE_PROJECT_NAME));
    json_add_string(d, NULL, "gate", query_get_text(q, BASE_GATE));
    json_add_string(d, NULL, "class", query_get_text(q, BASE_CLASS));
    json_add_string(d, NULL, "id", query_get_text(q, BASE_ID));
    json_add_bool(d, NULL, "current", query_get_int(q, BASE_CURRENT) != 0);
    json_add_bool(d, NULL, "legacy", query_get_int(q, BASE_LEGACY) != 0);
    json_add_bool(d, NULL, "damaged", query_get_int(q, BASE_DAMAGED) != 0);
    doc_time(d, NULL, "revoked_since", query_get_int(q, BASE_REVOKED));
    json_add_string(d, NULL, "run", query_get_text(q, BASE_RUN));
    json_add_string(d, NULL, "commit", query_get_text(q, BASE_COMMIT));
    json_add_string(d, NULL, "reviewer", query_get_text(q, BASE_REVIEWER));
    json_add_string(d, NULL, "reason", query_get_text(q, BASE_REASON));
    doc_time(d, NULL, "at", query_get_int(q, BASE_AT));
    for (size_t i = 0; i < ARRAY_LEN(digests); i++) {
        struct digest v;

        if (!query_get_digest(q, (int) digests[i].column, &v))
            return err_memory(e, "doc.memory");
        doc_hex(d, NULL, digests[i].key, &v);
    }
    json_add_string(d, NULL, "superseded_by", query_get_text(q, BASE_SUPERSEDED_BY));
    add_retired(d, NULL, q);
    return 0;
}

/* Its numbers. */

static void add_number(struct json_doc *d, cJSON *list, const struct definition *def,
                       const char *path, const char *metric, double value)
{
    size_t index = 0;
    const cJSON *entry = doc_metric_of(def, metric, &index);
    AUTO_FREE char *label = NULL;
    cJSON *o;

    if (!entry)
        return; /* not a metric of the definition that was reviewed with it */
    label = pointer_label(doc_metric_label(def, index, NULL), json_get(entry, "path")->valuestring,
                          metric);
    if (!label)
        d->failed = true;
    o = json_add_object(d, list, NULL);
    json_add_string(d, o, "path", path);
    json_add_string(d, o, "metric", metric);
    json_add_string(d, o, "label", label);
    json_add_copy(d, o, "unit", json_get(entry, "unit"));
    json_add_bool(d, o, "gated", !cJSON_IsFalse(json_get(entry, "gated")));
    json_add_double(d, o, "value", value);
}

static int add_run_numbers(struct json_doc *d, cJSON *list, struct db *db, const char *run,
                           const struct definition *def, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_METRICS_OF_RUN);
    bool row = false;
    int rc;

    query_text(&q, run);
    while ((rc = query_step(&q, &row, e)) == 0 && row)
        add_number(d, list, def, query_get_text(&q, 0), query_get_text(&q, 1),
                   query_get_double(&q, 2));
    return rc;
}

/* What the definition's metrics select in the reports of imported history. */
static int add_tree_numbers(struct json_doc *d, cJSON *list, const struct tree *tree,
                            const struct definition *def, struct err *e)
{
    AUTO_METRIC_VALUES struct metric_values values = {.items = NULL};

    if (metric_values_collect(def, tree, &values, e) < 0)
        return -1;
    for (size_t i = 0; i < values.n; i++)
        add_number(d, list, def, values.items[i].path, values.items[i].metric,
                   values.items[i].value);
    return 0;
}

/* Numbers, or why there are none. past: of imported history; why: its evidence can't be read. */
static int add_numbers(struct json_doc *d, struct db *db, const char *run,
                       const struct definition *def, const struct side *past, const struct err *why,
                       struct err *e)
{
    cJSON *list = json_add_array(d, NULL, "measured");
    int rc = 0;

    if (run)
        rc = add_run_numbers(d, list, db, run, def, e);
    else if (why->kind == ERR_NONE)
        rc = add_tree_numbers(d, list, &past->tree, def, e);
    if (why->kind != ERR_NONE)
        doc_format(d, NULL, "measured_note", "its stored evidence cannot be read: %s", why->text);
    else if (list && !list->child)
        doc_format(d, NULL, "measured_note", "no metric of the definition is in its %zu reports",
                   past->tree.n);
    else
        json_add_null(d, NULL, "measured_note");
    return rc;
}

/* The gate's other baselines, each with the comparison of the two (for information, never a
 * verdict). */
static int add_others(struct json_doc *d, struct db *db, const struct query *record, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_BASELINES_OF_GATE);
    const char *own = query_get_text(record, BASE_ID);
    cJSON *list = json_add_array(d, NULL, "others");
    bool row = false;
    int rc;

    query_int(&q, query_get_int(record, BASE_PROJECT));
    query_text(&q, query_get_text(record, BASE_GATE));
    query_int(&q, DOC_ROWS);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        const char *id = query_get_text(&q, BASE_ID);
        cJSON *o;

        if (strcmp(id, own) == 0)
            continue;
        o = json_add_object(d, list, NULL);
        json_add_string(d, o, "id", id);
        json_add_string(d, o, "class", query_get_text(&q, BASE_CLASS));
        doc_format(d, o, "url", "/b/%s/vs/%s", own, id);
    }
    return rc;
}

int doc_baseline(struct store *s, const char *id, cJSON **out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_DEFINITION struct definition def = {.gate = NULL};
    AUTO_STORE_BASELINE struct store_baseline kept = {.id = NULL};
    AUTO_SIDE struct side past = {.has_manifest = false};
    struct err why = ERR_INIT;
    const char *run;
    const char *bytes;
    size_t len = 0;
    char page[192];

    json_doc_init_object(&d);
    if (store_baseline_get(s, id, &kept, e) < 0)
        return -1;
    if (kept.legacy) /* before the read transaction: an archive may take a while */
        IGNORE(doc_imported(s, id, &past, &why)); /* the page says why */
    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_BASELINE_GET);
    query_text(&q, id);
    if (query_one(&q, "such baseline", e) < 0)
        return -1;
    json_add_string(&d, NULL, "schema", "cleanrun-baseline-record/1");
    if (add_record(&d, &q, e) < 0 || add_predecessor(&d, r.db, id, e) < 0)
        return -1;
    bytes = query_get_bytes(&q, BASE_DEFINITION, &len);
    if (!bytes || definition_parse(bytes, len, &def, e) < 0 ||
        doc_definition(&d, NULL, "definition", &def, e) < 0)
        return -1;
    run = query_get_text(&q, BASE_RUN);
    if (run)
        doc_format(&d, NULL, "run_url", "/r/%s", run);
    else
        json_add_null(&d, NULL, "run_url");
    doc_format(&d, NULL, "url", "/b/%s", query_get_text(&q, BASE_ID));
    if (add_numbers(&d, r.db, run, &def, &past, &why, e) < 0 ||
        add_reviews(&d, NULL, r.db, id, e) < 0 || add_uses(&d, r.db, id, e) < 0 ||
        add_others(&d, r.db, &q, e) < 0)
        return -1;
    (void) snprintf(page, sizeof page, "/b/%.160s", id); /* ids are short */
    doc_links(&d, page);
    return doc_take(&d, out, e);
}
