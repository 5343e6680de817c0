/* Documents that list things: home, project, check, keys. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/text.h"
#include "evidence/keyring.h"
#include "server/store/doc.h"
#include "server/store/documents.h"

#define DETAIL_SHOWN 100

/* The last verdicts of a gate, oldest first. */
static int add_recent(struct json_doc *d, cJSON *parent, struct db *db, int64_t project_id,
                      const char *gate, const char *machine_class, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_RUNS_RECENT);
    cJSON *list = json_add_array(d, parent, "recent");
    bool row = false;
    int rc;

    query_int(&q, project_id);
    query_text(&q, gate);
    query_text(&q, machine_class);
    query_int(&q, DOC_RECENT);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        cJSON *word = cJSON_CreateString(query_get_text(&q, 0));

        if (!word || !list || !cJSON_InsertItemInArray(list, 0, word)) {
            json_free(word);
            return err_memory(e, "doc.memory");
        }
    }
    return rc;
}

static int add_current_baseline(struct json_doc *d, cJSON *parent, struct db *db,
                                int64_t project_id, const char *gate, const char *machine_class,
                                struct err *e)
{
    AUTO_QUERY struct query q =
        store_gate_query(db, SQL_BASELINE_CURRENT, project_id, gate, machine_class);
    bool row = false;

    if (query_step(&q, &row, e) < 0)
        return -1;
    json_add_string(d, parent, "baseline", row ? query_get_text(&q, BASE_ID) : NULL);
    return 0;
}

/* What the newest rows are listed for. */
struct gates {
    struct json_doc *d;
    struct db *db;
    cJSON *list;
    const struct store_viewer *viewer;
    int64_t project_id; /* 0: all visible */
    int64_t totals[VERDICT_MAX];
    bool with_baseline;
};

static void bind_visible(struct query *q, const struct gates *g)
{
    query_int(q, g->viewer->all);
    query_int(q, g->viewer->project_id);
    if (g->project_id)
        query_int(q, g->project_id);
    else
        query_null(q);
}

/* The gate's answer: the newest run's, unless the check of its commit stands against its OK. */
static int add_answer(struct gates *g, cJSON *o, const struct query *q, struct err *e)
{
    const char *own = query_get_text(q, RUN_VERDICT);
    const cJSON *stands;
    const char *word;
    enum verdict v;

    if (check_of_row(g->db, q, g->d, o, e) < 0)
        return -1;
    stands = json_get(o, "check");
    word = cJSON_IsObject(stands) ? json_get(stands, "verdict")->valuestring : own;
    json_add_string(g->d, o, "verdict", word);
    json_add_string(g->d, o, "run_verdict", own);
    json_add_string(g->d, o, "description",
                    cJSON_IsObject(stands) ? json_get(stands, "description")->valuestring
                                           : query_get_text(q, RUN_DESCRIPTION));
    if (verdict_parse(word, &v))
        g->totals[v]++;
    return 0;
}

static cJSON *gate_row(struct gates *g, const char *project, const char *gate,
                       const char *machine_class)
{
    cJSON *o = json_add_object(g->d, g->list, NULL);

    json_add_string(g->d, o, "project", project);
    json_add_string(g->d, o, "gate", gate);
    json_add_string(g->d, o, "class", machine_class);
    return o;
}

static int add_gate(struct gates *g, const struct query *q, struct err *e)
{
    const char *project = query_get_text(q, RUN_PROJECT_NAME);
    const char *gate = query_get_text(q, RUN_GATE);
    const char *machine_class = query_get_text(q, RUN_CLASS);
    cJSON *o = gate_row(g, project, gate, machine_class);

    if (add_answer(g, o, q, e) < 0)
        return -1;
    json_add_string(g->d, o, "run", query_get_text(q, RUN_RUN));
    json_add_string(g->d, o, "commit", query_get_text(q, RUN_COMMIT));
    doc_time(g->d, o, "at", query_get_int(q, RUN_RECEIVED));
    doc_run_url(g->d, o, "url", query_get_text(q, RUN_RUN), query_get_text(q, RUN_BASELINE));
    doc_format(g->d, o, "gate_url", "/p/%s/%s", project, gate);
    if (g->with_baseline && add_current_baseline(g->d, o, g->db, query_get_int(q, RUN_PROJECT),
                                                 gate, machine_class, e) < 0)
        return -1;
    return add_recent(g->d, o, g->db, query_get_int(q, RUN_PROJECT), gate, machine_class, e);
}

static bool listed(const cJSON *list, const char *project, const char *gate,
                   const char *machine_class)
{
    const cJSON *o = NULL;

    cJSON_ArrayForEach(o, list) {
        if (strcmp(json_get(o, "project")->valuestring, project) == 0 &&
            strcmp(json_get(o, "gate")->valuestring, gate) == 0 &&
            strcmp(json_get(o, "class")->valuestring, machine_class) == 0)
            return true;
    }
    return false;
}

/* The gate's page stands for the run's. */
static void end_row_without_run(struct gates *g, cJSON *o, const char *project, const char *gate)
{
    doc_format(g->d, o, "url", "/p/%s/%s", project, gate);
    doc_format(g->d, o, "gate_url", "/p/%s/%s", project, gate);
    if (g->with_baseline)
        json_add_null(g->d, o, "baseline");
    (void) json_add_array(g->d, o, "recent"); /* failure stays in d */
}

/* A gate whose every upload was refused shows that, too. */
static void add_refused(struct gates *g, const struct query *q)
{
    const char *project = query_get_text(q, ATTEMPT_PROJECT_NAME);
    const char *gate = query_get_text(q, ATTEMPT_GATE);
    const char *machine_class = query_get_text(q, ATTEMPT_CLASS);
    const char *detail = query_get_text(q, ATTEMPT_DETAIL);
    cJSON *o;

    if (g->d->failed || listed(g->list, project, gate, machine_class))
        return;
    o = gate_row(g, project, gate, machine_class);
    json_add_null(g->d, o, "check");
    json_add_string(g->d, o, "verdict", "INVALID");
    json_add_string(g->d, o, "run_verdict", "INVALID");
    doc_format(g->d, o, "description", "INVALID %s: %.*s", query_get_text(q, ATTEMPT_CODE),
               (int) text_whole_length(detail, DETAIL_SHOWN), detail);
    json_add_string(g->d, o, "run", query_get_text(q, ATTEMPT_RUN));
    json_add_string(g->d, o, "commit", query_get_text(q, ATTEMPT_COMMIT));
    doc_time(g->d, o, "at", query_get_int(q, ATTEMPT_AT));
    end_row_without_run(g, o, project, gate);
    g->totals[VERDICT_INVALID]++;
}

/* A gate that has imported history and nothing else is shown, too. */
static void add_history(struct gates *g, const struct query *q)
{
    const char *project = query_get_text(q, 0);
    const char *gate = query_get_text(q, 1);
    const char *machine_class = query_get_text(q, 2);
    long long n = query_get_int(q, 3);
    cJSON *o;

    if (g->d->failed || listed(g->list, project, gate, machine_class))
        return;
    o = gate_row(g, project, gate, machine_class);
    json_add_null(g->d, o, "check");
    json_add_null(g->d, o, "verdict");
    json_add_null(g->d, o, "run_verdict");
    doc_format(g->d, o, "description", "%lld imported baseline%s, no run yet", n,
               n == 1 ? "" : "s");
    json_add_null(g->d, o, "run");
    json_add_null(g->d, o, "commit");
    json_add_null(g->d, o, "at");
    end_row_without_run(g, o, project, gate);
}

static int list_gates(struct gates *g, struct err *e)
{
    AUTO_QUERY struct query history = query_begin(g->db, SQL_HISTORY_GATES);
    AUTO_QUERY struct query runs = query_begin(g->db, SQL_RUNS_NEWEST);
    AUTO_QUERY struct query refused = query_begin(g->db, SQL_ATTEMPTS_NEWEST);
    bool row = false;
    int rc;

    bind_visible(&runs, g);
    bind_visible(&refused, g);
    bind_visible(&history, g);
    while ((rc = query_step(&runs, &row, e)) == 0 && row) {
        if (add_gate(g, &runs, e) < 0)
            return -1;
    }
    while (rc == 0 && (rc = query_step(&refused, &row, e)) == 0 && row)
        add_refused(g, &refused);
    while (rc == 0 && (rc = query_step(&history, &row, e)) == 0 && row)
        add_history(g, &history);
    return rc;
}

static int add_runners(struct json_doc *d, struct db *db, const struct store_viewer *viewer,
                       struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_RUNNER_LIST_VISIBLE);
    cJSON *list = json_add_array(d, NULL, "runners");
    bool row = false;
    int rc;

    query_int(&q, viewer->all);
    query_int(&q, viewer->project_id);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        cJSON *o = json_add_object(d, list, NULL);

        json_add_string(d, o, "name", query_get_text(&q, 0));
        json_add_string(d, o, "class", query_get_text(&q, 1));
        doc_time(d, o, "last_seen", query_get_int(&q, 2));
        doc_time(d, o, "valid_from", query_get_int(&q, 3));
        doc_time(d, o, "valid_to", query_get_int(&q, 4));
        doc_time(d, o, "revoked_since", query_get_int(&q, 5));
    }
    return rc;
}

int doc_home(struct store *s, const struct store_viewer *viewer, cJSON **out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    struct gates g = {.d = &d, .viewer = viewer};
    cJSON *totals;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-home/1");
    totals = json_add_object(&d, NULL, "totals");
    g.list = json_add_array(&d, NULL, "gates");
    if (store_read_open(s, &r, e) < 0)
        return -1;
    g.db = r.db;
    if (list_gates(&g, e) < 0 || add_runners(&d, r.db, viewer, e) < 0)
        return -1;
    for (unsigned v = 0; v < VERDICT_MAX; v++)
        json_add_int(&d, totals, verdict_word((enum verdict) v), g.totals[v]);
    doc_links(&d, "/index");
    return doc_take(&d, out, e);
}

static int add_commits(struct json_doc *d, struct db *db, const struct store_project *p,
                       const char *project, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_COMMITS_OF_PROJECT);
    cJSON *list = json_add_array(d, NULL, "commits");
    bool row = false;
    int rc;

    query_int(&q, p->id);
    query_int(&q, DOC_COMMITS);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        const struct check_question ask = {.project = p,
                                           .name = project,
                                           .commit = query_get_text(&q, 0),
                                           .now_us = clock_realtime_us(),
                                           .brief = true};
        cJSON *o = json_add_object(d, list, NULL);

        json_add_string(d, o, "commit", ask.commit);
        doc_time(d, o, "at", query_get_int(&q, 1));
        if (check_commit(db, &ask, d, o, e) < 0)
            return -1;
        doc_format(d, o, "url", "/p/%s/commit/%s", project, ask.commit);
    }
    return rc;
}

int doc_project(struct store *s, const char *project, cJSON **out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query unsigned_attempts = {.statement = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    struct store_viewer viewer = {.all = true}; /* the caller has checked who asks */
    struct gates g = {.d = &d, .viewer = &viewer, .with_baseline = true};
    struct store_project p;
    char page[256];

    json_doc_init_object(&d);
    if (store_read_open(s, &r, e) < 0 || store_project_read(r.db, project, &p, e) < 0)
        return -1;
    json_add_string(&d, NULL, "schema", "cleanrun-project/1");
    json_add_string(&d, NULL, "project", project);
    json_add_bool(&d, NULL, "private", p.is_private);
    g.list = json_add_array(&d, NULL, "gates");
    g.db = r.db;
    g.project_id = p.id;
    if (list_gates(&g, e) < 0 || add_commits(&d, r.db, &p, project, e) < 0)
        return -1;
    unsigned_attempts = query_begin(r.db, SQL_ATTEMPTS_UNSIGNED);
    query_int(&unsigned_attempts, p.id);
    query_int(&unsigned_attempts, DOC_ATTEMPTS);
    if (doc_attempts(&d, json_add_array(&d, NULL, "unsigned_attempts"), &unsigned_attempts, false,
                     e) < 0)
        return -1;
    (void) snprintf(page, sizeof page, "/p/%s", project); /* names have at most 129 characters */
    doc_links(&d, page);
    return doc_take(&d, out, e);
}

int doc_check(struct store *s, const char *project, const char *commit, cJSON **out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    struct store_project p;
    const struct check_question ask = {
        .project = &p, .name = project, .commit = commit, .now_us = clock_realtime_us()};
    size_t len = strlen(commit);
    char page[512];

    if ((len != 40 && len != 64) || !text_is_hex(commit, len))
        return err_set(e, ERR_USAGE, "check.commit",
                       "a commit is named by 40 or 64 lower-case hex digits");
    json_doc_init_object(&d);
    /* A status that somebody acts on rests on evidence that is there now. */
    if (store_commit_look(s, project, commit, e) < 0 || store_read_open(s, &r, e) < 0 ||
        store_project_read(r.db, project, &p, e) < 0)
        return -1;
    json_add_string(&d, NULL, "schema", "cleanrun-check/1");
    json_add_string(&d, NULL, "project", project);
    json_add_string(&d, NULL, "commit", commit);
    if (check_commit(r.db, &ask, &d, NULL, e) < 0)
        return -1;
    (void) snprintf(page, sizeof page, "/p/%s/commit/%s", project, commit); /* both are short */
    doc_links(&d, page);
    return doc_take(&d, out, e);
}

int doc_runner(struct store *s, const char *project, const struct digest *fingerprint, cJSON **out,
               struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    struct store_project p;
    char keyid[KEYID_SIZE];
    bool row = false;

    text_base64(fingerprint->bytes, sizeof fingerprint->bytes, keyid);
    if (store_read_open(s, &r, e) < 0 || store_project_read(r.db, project, &p, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_RUNNER_OF_PROJECT);
    query_int(&q, p.id);
    query_text(&q, keyid);
    if (query_step(&q, &row, e) < 0)
        return -1;
    if (!row)
        return err_set(e, ERR_NOTFOUND, "doc.runner", "no runner of %s has this key", project);
    const struct keyring_entry entry = {
        .not_before_us = query_get_int(&q, 2),
        .not_after_us = query_get_int(&q, 3),
        .revoked_since_us = query_get_int(&q, 4),
    };

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-runner/1");
    json_add_string(&d, NULL, "project", project);
    json_add_string(&d, NULL, "keyid", keyid);
    doc_hex(&d, NULL, "fingerprint_sha256", fingerprint);
    json_add_string(&d, NULL, "name", query_get_text(&q, 0));
    json_add_string(&d, NULL, "class", query_get_text(&q, 1));
    doc_time(&d, NULL, "valid_from", entry.not_before_us);
    doc_time(&d, NULL, "valid_to", entry.not_after_us);
    doc_time(&d, NULL, "revoked_since", entry.revoked_since_us);
    json_add_string(&d, NULL, "refusal", keyring_entry_refusal(&entry, clock_realtime_us()));
    return doc_take(&d, out, e);
}

int doc_keys(struct store *s, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_FREE char *pem = NULL;
    const struct public_key *key = store_key(s) ? private_key_public(store_key(s)) : NULL;
    cJSON *list;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-keys/1");
    list = json_add_array(&d, NULL, "keys");
    if (key) {
        cJSON *o = json_add_object(&d, list, NULL);

        if (public_key_write(key, &pem, e) < 0)
            return -1;
        json_add_string(&d, o, "keyid", public_key_id(key));
        doc_hex(&d, o, "fingerprint_sha256", public_key_fingerprint(key));
        json_add_string(&d, o, "pem", pem);
        json_add_string(&d, o, "use", "verdicts");
    }
    return doc_take(&d, out, e);
}
