/* The document of one gate: its runs, their history, its baselines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "experiment/pointer.h"
#include "server/store/doc.h"
#include "server/store/documents.h"

#define SERIES_MAX 64

/* Runs. */

static int add_run(struct json_doc *d, cJSON *list, struct db *db, const struct query *q,
                   struct err *e)
{
    AUTO_ATTEMPT_LIST struct attempt_list attempts = {.items = NULL};
    cJSON *o = json_add_object(d, list, NULL);
    const char *run = query_get_text(q, RUN_RUN);
    const char *verdict = query_get_text(q, RUN_VERDICT);

    json_add_string(d, o, "run", run);
    json_add_string(d, o, "verdict", verdict);
    json_add_string(d, o, "mode", query_get_text(q, RUN_MODE));
    json_add_string(d, o, "class", query_get_text(q, RUN_CLASS));
    json_add_string(d, o, "commit", query_get_text(q, RUN_COMMIT));
    json_add_bool(d, o, "dirty", query_get_int(q, RUN_DIRTY) != 0);
    doc_time(d, o, "at", query_get_int(q, RUN_RECEIVED));
    json_add_string(d, o, "description", query_get_text(q, RUN_DESCRIPTION));
    if (verdict && attempt_list_read(db, query_get_int(q, RUN_PROJECT), query_get_text(q, RUN_GATE),
                                     query_get_text(q, RUN_CLASS), query_get_text(q, RUN_COMMIT),
                                     &attempts, e) < 0)
        return -1;
    attempt_list_write(&attempts, verdict ? run : NULL, d, o);
    doc_run_url(d, o, "url", run, query_get_text(q, RUN_BASELINE));
    return check_of_row(db, q, d, o, e);
}

/* *out_newest: the newest run's name. */
static int add_runs(struct json_doc *d, struct db *db, int64_t project_id, const char *gate,
                    char out_newest[32], size_t *out_n, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_RUNS_OF_GATE);
    cJSON *list = json_add_array(d, NULL, "runs");
    bool row = false;
    int rc;

    query_int(&q, project_id);
    query_text(&q, gate);
    query_int(&q, DOC_ROWS);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        if ((*out_n)++ == 0)
            (void) snprintf(out_newest, 32, "%s",
                            query_get_text(&q, RUN_RUN)); /* ids have 25 characters */
        if (add_run(d, list, db, &q, e) < 0)
            return -1;
    }
    return rc;
}

/* History: one series for each metric of the definition, report path and class. */

struct series {
    char *path;
    char *metric;
    char baseline[64]; /* what the last point was judged by */
    cJSON *points;
};

struct history {
    struct json_doc *d;
    cJSON *list;
    const struct definition *def;
    struct digest experiment; /* of the class's current baseline, else of the definition */
    struct series series[SERIES_MAX];
    size_t n;
};

static void history_fini(struct history *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->series[i].path);
        free(h->series[i].metric);
    }
    h->n = 0;
}

static struct series *new_series(struct history *h, const char *machine_class, const char *path,
                                 const char *metric)
{
    size_t index = 0;
    const cJSON *entry = doc_metric_of(h->def, metric, &index);
    struct series *s = &h->series[h->n];
    AUTO_FREE char *label = NULL;
    cJSON *o;

    if (!entry || h->n == SERIES_MAX)
        return NULL; /* no longer a metric of the gate */
    label = pointer_label(doc_metric_label(h->def, index, NULL),
                          json_get(entry, "path")->valuestring, metric);
    *s = (struct series){.path = NULL};
    s->path = strdup(path);
    s->metric = strdup(metric);
    h->n++;
    if (!s->path || !s->metric || !label) {
        h->d->failed = true;
        return NULL;
    }
    o = json_add_object(h->d, h->list, NULL);
    json_add_string(h->d, o, "metric", metric);
    json_add_string(h->d, o, "label", label);
    json_add_copy(h->d, o, "unit", json_get(entry, "unit"));
    json_add_copy(h->d, o, "worse", json_get(entry, "worse"));
    json_add_bool(h->d, o, "gated", !cJSON_IsFalse(json_get(entry, "gated")));
    json_add_string(h->d, o, "path", path);
    json_add_string(h->d, o, "class", machine_class);
    s->points = json_add_array(h->d, o, "points");
    return s->points ? s : NULL;
}

static struct series *series_for(struct history *h, size_t from, const char *machine_class,
                                 const char *path, const char *metric)
{
    for (size_t i = from; i < h->n; i++) {
        if (h->series[i].path && h->series[i].metric && strcmp(h->series[i].path, path) == 0 &&
            strcmp(h->series[i].metric, metric) == 0)
            return &h->series[i];
    }
    return new_series(h, machine_class, path, metric);
}

/* A point of another experiment than the definition's is not comparable with the rest. */
static int add_history_point(struct history *h, struct series *s, const struct query *q,
                             struct err *e)
{
    cJSON *o = json_add_object(h->d, s->points, NULL);
    const char *baseline = query_get_text(q, 6);
    struct digest experiment;

    if (!query_get_digest(q, 5, &experiment))
        return err_memory(e, "doc.memory");
    json_add_string(h->d, o, "run", query_get_text(q, 0));
    json_add_double(h->d, o, "value", query_get_double(q, 3));
    json_add_string(h->d, o, "verdict", query_get_text(q, 4));
    doc_time(h->d, o, "at", query_get_int(q, 7));
    json_add_bool(h->d, o, "same_experiment", digest_equal(&experiment, &h->experiment));
    json_add_string(h->d, o, "baseline", baseline);
    json_add_bool(h->d, o, "new_baseline", baseline && strcmp(baseline, s->baseline) != 0);
    if (baseline)
        (void) snprintf(s->baseline, sizeof s->baseline, "%s", baseline); /* ids are shorter */
    return 0;
}

/* Which experiment a class measures now. */
static int find_experiment(struct history *h, struct db *db, int64_t project_id, const char *gate,
                           const char *machine_class, struct err *e)
{
    AUTO_QUERY struct query q =
        store_gate_query(db, SQL_BASELINE_CURRENT, project_id, gate, machine_class);
    bool row = false;

    if (query_step(&q, &row, e) < 0)
        return -1;
    h->experiment = h->def->experiment_digest;
    if (row && !query_get_digest(&q, BASE_EXPERIMENT, &h->experiment))
        return err_memory(e, "doc.memory");
    return 0;
}

static int add_history_of(struct history *h, struct db *db, int64_t project_id, const char *gate,
                          const char *machine_class, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_METRICS_OF_GATE);
    size_t from = h->n;
    bool row = false;
    int rc;

    if (find_experiment(h, db, project_id, gate, machine_class, e) < 0)
        return -1;
    query_int(&q, project_id);
    query_text(&q, gate);
    query_text(&q, machine_class);
    query_int(&q, DOC_ROWS);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        struct series *s =
            series_for(h, from, machine_class, query_get_text(&q, 1), query_get_text(&q, 2));

        if (s && add_history_point(h, s, &q, e) < 0)
            return -1;
    }
    return rc;
}

/* For each class that the listed runs have. */
static int add_history(struct history *h, struct db *db, int64_t project_id, const char *gate,
                       const cJSON *runs, struct err *e)
{
    const cJSON *run = NULL;

    cJSON_ArrayForEach(run, runs) {
        const char *machine_class = json_get(run, "class")->valuestring;
        const cJSON *seen = NULL;
        bool done = false;

        cJSON_ArrayForEach(seen, h->list)
            done = done || strcmp(json_get(seen, "class")->valuestring, machine_class) == 0;
        if (!done && add_history_of(h, db, project_id, gate, machine_class, e) < 0)
            return -1;
        if (h->d->failed)
            return err_memory(e, "doc.memory");
    }
    return 0;
}

static int add_definition(struct json_doc *d, struct db *db, int64_t project_id, const char *gate,
                          const char *bytes, size_t len, struct err *e)
{
    AUTO_DEFINITION struct definition def = {.gate = NULL};
    __attribute__((cleanup(history_fini))) struct history h = {.d = d, .def = &def};

    if (!bytes) {
        json_add_null(d, NULL, "definition");
        (void) json_add_array(d, NULL, "history"); /* failure stays in d */
        return 0;
    }
    if (definition_parse(bytes, len, &def, e) < 0 ||
        doc_definition(d, NULL, "definition", &def, e) < 0)
        return -1;
    h.list = json_add_array(d, NULL, "history");
    if (d->failed)
        return err_memory(e, "doc.memory");
    return add_history(&h, db, project_id, gate, json_get(d->root, "runs"), e);
}

static int add_refused(struct json_doc *d, struct db *db, int64_t project_id, const char *gate,
                       size_t *out_n, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_ATTEMPTS_OF_GATE);
    cJSON *list = json_add_array(d, NULL, "invalid_attempts");

    query_int(&q, project_id);
    query_text(&q, gate);
    query_int(&q, DOC_ATTEMPTS);
    if (doc_attempts(d, list, &q, true, e) < 0)
        return -1;
    *out_n += list ? (size_t) cJSON_GetArraySize(list) : 0;
    return 0;
}

int doc_gate(struct store *s, const char *project, const char *gate, cJSON **out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_FREE char *definition = NULL;
    struct store_project p;
    struct baseline_list listed = {.n = 0};
    char newest[32] = "";
    char page[256];
    size_t len = 0;
    size_t n = 0;
    int rc;

    json_doc_init_object(&d);
    if (store_read_open(s, &r, e) < 0 || store_project_read(r.db, project, &p, e) < 0)
        return -1;
    json_add_string(&d, NULL, "schema", "cleanrun-gate/1");
    json_add_string(&d, NULL, "project", project);
    json_add_string(&d, NULL, "gate", gate);
    rc = baseline_list_add(&d, r.db, p.id, gate, false, &listed, e);
    definition = listed.definition;
    len = listed.definition_len;
    n = listed.n;
    if (rc < 0 || add_runs(&d, r.db, p.id, gate, newest, &n, e) < 0)
        return -1;
    if (!definition && newest[0] &&
        store_document_read(r.db, newest, STORE_DEFINITION, &definition, &len, e) < 0)
        return -1;
    if (add_definition(&d, r.db, p.id, gate, definition, len, e) < 0 ||
        add_refused(&d, r.db, p.id, gate, &n, e) < 0)
        return -1;
    if (n == 0)
        return err_set(e, ERR_NOTFOUND, "gate.absent", "nothing is known of gate '%s'", gate);
    (void) snprintf(page, sizeof page, "/p/%s/%s", project, gate); /* names are short */
    doc_links(&d, page);
    return doc_take(&d, out, e);
}
