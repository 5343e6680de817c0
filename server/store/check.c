/* What is known of one commit: a row for each (gate, class), and the worst of them. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/pointer.h"
#include "server/store/check_rule.h"
#include "server/store/doc.h"
#include "server/store/documents.h"

#define DESCRIPTION_MAX 140
#define US_PER_S 1000000
#define ROWS_MAX 2048
#define ARENA_MAX LIMIT_MIB(16)

struct check_row {
    const char *gate;
    const char *machine_class;
    struct check_attempts attempts;
    /* The answer. */
    enum verdict verdict;
    const struct check_attempt *decided_by; /* or NULL */
    const char *description;
};

struct check {
    struct arena arena;
    struct db *db;
    int64_t project_id;
    const char *commit;
    struct check_row *rows;
    size_t n;
    int64_t deadline_us; /* 0: the commit is unknown */
    int64_t now_us;
};

static struct check_row *row_for(struct check *c, const char *gate, const char *machine_class,
                                 struct err *e)
{
    struct check_row *r;

    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->rows[i].gate, gate) == 0 &&
            strcmp(c->rows[i].machine_class, machine_class) == 0)
            return &c->rows[i];
    }
    if (c->n == ROWS_MAX) {
        (void) err_set(e, ERR_LIMIT, "check.rows", "more than %d gates of one commit", ROWS_MAX);
        return NULL;
    }
    r = &c->rows[c->n];
    r->gate = arena_strdup(&c->arena, gate);
    r->machine_class = arena_strdup(&c->arena, machine_class);
    if (!r->gate || !r->machine_class) {
        (void) arena_full(e);
        return NULL;
    }
    c->n++;
    return r;
}

static const char *keep(struct check *c, const char *s, bool *failed)
{
    const char *copy = s ? arena_strdup(&c->arena, s) : NULL;

    *failed |= s && !copy;
    return copy;
}

static int read_expected(struct check *c, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(c->db, SQL_BASELINES_EXPECTED);
    bool row = false;
    int rc;

    query_int(&q, c->project_id);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        if (!row_for(c, query_get_text(&q, 0), query_get_text(&q, 1), e))
            return -1;
    }
    return rc;
}

/* Columns of SQL_RUNS_OF_CHECK. */
enum check_column {
    CHECK_GATE,
    CHECK_CLASS,
    CHECK_RUN,
    CHECK_VERDICT,
    CHECK_DESCRIPTION,
    CHECK_RECEIVED,
    CHECK_BASELINE,
    CHECK_EXECUTABLE,
    CHECK_CLEAN, /* its source was the commit */
    CHECK_REGRESSED,
};

static int add_run(struct check *c, const struct query *q, struct err *e)
{
    struct check_attempt a = {.complete = true,
                              .at_us = query_get_int(q, CHECK_RECEIVED),
                              .regressed = query_get_int(q, CHECK_REGRESSED) != 0};
    struct check_row *r =
        row_for(c, query_get_text(q, CHECK_GATE), query_get_text(q, CHECK_CLASS), e);
    bool failed = false;

    if (!r)
        return -1;
    a.clean = query_get_int(q, CHECK_CLEAN) != 0;
    if (!verdict_parse(query_get_text(q, CHECK_VERDICT), &a.verdict))
        return err_set(e, ERR_INTERNAL, "check.verdict", "a stored run has an unknown verdict");
    a.run = keep(c, query_get_text(q, CHECK_RUN), &failed);
    a.description = keep(c, query_get_text(q, CHECK_DESCRIPTION), &failed);
    a.baseline = keep(c, query_get_text(q, CHECK_BASELINE), &failed);
    a.has_executable = query_get_digest(q, CHECK_EXECUTABLE, &a.executable);
    return failed ? arena_full(e) : check_attempts_add(&r->attempts, &c->arena, &a, e);
}

/* only: runs of this gate and class alone, NULL: all. */
static int read_runs(struct check *c, const struct check_row *only, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(c->db, SQL_RUNS_OF_CHECK);
    bool row = false;
    int rc;

    query_int(&q, c->project_id);
    query_text(&q, c->commit);
    query_text(&q, only ? only->gate : NULL);
    query_text(&q, only ? only->machine_class : NULL);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        if (add_run(c, &q, e) < 0)
            return -1;
    }
    return rc;
}

static int read_refused(struct check *c, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(c->db, SQL_ATTEMPTS_OF_COMMIT);
    bool row = false;
    int rc;

    query_int(&q, c->project_id);
    query_text(&q, c->commit);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        struct check_row *r =
            row_for(c, query_get_text(&q, ATTEMPT_GATE), query_get_text(&q, ATTEMPT_CLASS), e);
        struct check_attempt a = {.verdict = VERDICT_INVALID,
                                  .at_us = query_get_int(&q, ATTEMPT_AT)};
        bool failed = false;

        if (!r)
            return -1;
        a.run = keep(c, query_get_text(&q, ATTEMPT_RUN), &failed);
        a.description = arena_printf(&c->arena, "INVALID %s: %s", query_get_text(&q, ATTEMPT_CODE),
                                     query_get_text(&q, ATTEMPT_DETAIL));
        if (failed || !a.description)
            return arena_full(e);
        if (check_attempts_add(&r->attempts, &c->arena, &a, e) < 0)
            return -1;
    }
    return rc;
}

static int read_deadline(struct check *c, const struct store_project *p, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(c->db, SQL_PROJECT_OLDEST_OF_COMMIT);

    query_int(&q, p->id);
    query_text(&q, c->commit);
    if (query_one(&q, "time", e) < 0)
        return -1;
    if (!query_is_null(&q, 0))
        c->deadline_us = query_get_int(&q, 0) + p->deadline_s * US_PER_S;
    return 0;
}

/* The confirm rule of the policy that judged, 0: there is none. A later one, of the baseline that
 * is current now, changes no earlier answer. The definition is large: this is asked only where an
 * OK follows a REGRESSION. */
static int read_confirm(const struct check *c, const char *baseline, int64_t *out, struct err *e)
{
    const struct json_limits limits = {.max_bytes = LIMIT_CANONICAL};
    AUTO_QUERY struct query q = query_begin(c->db, SQL_BASELINE_DEFINITION);
    AUTO_JSON cJSON *definition = NULL;
    const cJSON *confirm = NULL;
    const char *bytes;
    size_t len = 0;
    bool there = false;

    query_text(&q, baseline);
    if (query_step(&q, &there, e) < 0)
        return -1;
    bytes = there ? query_get_bytes(&q, 0, &len) : NULL;
    if (bytes && json_parse(bytes, len, &limits, &definition, NULL) == 0)
        confirm = pointer_get(definition, "/policy/confirm");
    *out = confirm && json_is_integer(confirm) ? (int64_t) confirm->valuedouble : 0;
    return 0;
}

/* *out: the run whose REGRESSION stands against the latest OK, or NULL. */
static int find_standing(const struct check *c, const struct check_row *r,
                         const struct check_attempt *ok, const struct check_attempt **out,
                         struct err *e)
{
    const struct check_attempt *found = check_earlier_regression(&r->attempts, ok);
    int64_t confirm = 0;

    if (found && read_confirm(c, ok->baseline, &confirm, e) < 0)
        return -1;
    *out = confirm >= 2 && check_agreeing(&r->attempts, ok) >= confirm ? NULL : found;
    return 0;
}

static int answer_without_run(struct check *c, struct check_row *r, struct err *e)
{
    char when[CLOCK_RFC3339_SIZE] = "";

    if (r->attempts.last) { /* only refused uploads */
        r->verdict = VERDICT_INVALID;
        r->decided_by = r->attempts.last;
        r->description = r->attempts.last->description;
        return 0;
    }
    if (c->deadline_us)
        clock_rfc3339(c->deadline_us, false, when);
    r->verdict = c->deadline_us && c->now_us >= c->deadline_us ? VERDICT_ERROR : VERDICT_PENDING;
    if (r->verdict == VERDICT_ERROR)
        r->description = arena_printf(
            &c->arena, "ERROR no run of this commit came before the deadline %s", when);
    else if (c->deadline_us)
        r->description =
            arena_printf(&c->arena, "PENDING no run of this commit yet, deadline %s", when);
    else
        r->description = "PENDING no run of this commit yet";
    return r->description ? 0 : arena_full(e);
}

static int answer_row(struct check *c, struct check_row *r, struct err *e)
{
    const struct check_attempt *latest = check_latest(&r->attempts);
    const struct check_attempt *stands = NULL;

    if (!latest)
        return answer_without_run(c, r, e);
    r->decided_by = latest;
    r->verdict = latest->verdict;
    r->description = latest->description;
    if (latest->verdict == VERDICT_OK && find_standing(c, r, latest, &stands, e) < 0)
        return -1;
    if (!stands)
        return 0;
    r->decided_by = stands;
    r->verdict = VERDICT_REGRESSION;
    r->description =
        arena_printf(&c->arena, "REGRESSION of the same %s in run %s; its later OK does not count",
                     check_same_executable(stands, latest) ? "executable" : "source", stands->run);
    return r->description ? 0 : arena_full(e);
}

static void write_attempts(const struct check_row *r, struct json_doc *d, cJSON *o)
{
    cJSON *attempts = json_add_array(d, o, "attempts");

    for (const struct check_attempt *a = r->attempts.first; a; a = a->next) {
        cJSON *item = json_add_object(d, attempts, NULL);

        json_add_string(d, item, "run", a->run);
        json_add_string(d, item, "verdict", verdict_word(a->verdict));
    }
}

static void write_row(const struct check_row *r, const struct check_question *q, struct json_doc *d,
                      cJSON *list)
{
    cJSON *o = json_add_object(d, list, NULL);
    const struct check_attempt *by = r->decided_by;

    json_add_string(d, o, "gate", r->gate);
    json_add_string(d, o, "class", r->machine_class);
    json_add_string(d, o, "verdict", verdict_word(r->verdict));
    json_add_string(d, o, "run", by ? by->run : NULL);
    json_add_string(d, o, "description", r->description);
    if (!q->brief)
        write_attempts(r, d, o);
    if (by && by->complete)
        doc_run_url(d, o, "url", by->run, by->baseline);
    else
        doc_format(d, o, "url", "/p/%s/%s", q->name, r->gate);
}

static const struct check_row *worst_row(const struct check *c)
{
    const struct check_row *worst = NULL;

    for (size_t i = 0; i < c->n; i++) {
        if (!worst || (verdict_worse(worst->verdict, c->rows[i].verdict) != worst->verdict))
            worst = &c->rows[i];
    }
    return worst;
}

static int write_summary(const struct check *c, struct json_doc *d, cJSON *parent, struct err *e)
{
    const struct check_row *worst = worst_row(c);
    enum verdict v = worst ? worst->verdict : VERDICT_PENDING;
    AUTO_BUF struct buf full = {.data = NULL};
    AUTO_BUF struct buf cut = {.data = NULL};
    const char *rest;
    size_t n = 0;

    for (size_t i = 0; worst && i < c->n; i++)
        n += c->rows[i].verdict == v;
    buf_init(&full, LIMIT_KIB(8));
    buf_init(&cut, LIMIT_KIB(1));
    buf_printf(&full, "%s", verdict_word(v));
    if (!worst) {
        buf_puts(&full, " nothing is known of this commit");
    } else if (v == VERDICT_OK) {
        buf_printf(&full, " %zu gate%s", n, n == 1 ? "" : "s");
    } else {
        rest = strchr(worst->description, ' ');
        buf_printf(&full, " %zu of %zu gate%s: %s%s", n, c->n, c->n == 1 ? "" : "s", worst->gate,
                   rest ? rest : "");
    }
    if (buf_check(&full, e) < 0)
        return -1;
    doc_cut(&cut, full.data, DESCRIPTION_MAX);
    if (buf_check(&cut, e) < 0)
        return -1;
    json_add_string(d, parent, "verdict", verdict_word(v));
    json_add_string(d, parent, "description", cut.data);
    return 0;
}

static int compare_rows(const void *a, const void *b)
{
    const struct check_row *x = (const struct check_row *) a;
    const struct check_row *y = (const struct check_row *) b;
    int order = strcmp(x->gate, y->gate);

    return order ? order : strcmp(x->machine_class, y->machine_class);
}

static int fill(struct check *c, const struct store_project *p, struct err *e)
{
    if (read_expected(c, e) < 0 || read_runs(c, NULL, e) < 0 || read_refused(c, e) < 0 ||
        read_deadline(c, p, e) < 0)
        return -1;
    for (size_t i = 0; i < c->n; i++) {
        if (answer_row(c, &c->rows[i], e) < 0)
            return -1;
    }
    qsort(c->rows, c->n, sizeof c->rows[0], compare_rows);
    return 0;
}

int check_commit(struct db *db, const struct check_question *q, struct json_doc *d, cJSON *parent,
                 struct err *e)
{
    struct check c = {
        .db = db, .project_id = q->project->id, .commit = q->commit, .now_us = q->now_us};
    cJSON *list;
    int rc = -1;

    arena_init(&c.arena, ARENA_MAX);
    c.rows = arena_calloc(&c.arena, ROWS_MAX, sizeof *c.rows);
    if (!c.rows)
        (void) arena_full(e);
    else if (fill(&c, q->project, e) == 0 && write_summary(&c, d, parent, e) == 0)
        rc = 0;
    if (rc == 0) {
        list = json_add_array(d, parent, "gates");
        for (size_t i = 0; i < c.n; i++)
            write_row(&c.rows[i], q, d, list);
    }
    arena_fini(&c.arena);
    return rc;
}

/* One run's part of the check. */

static void write_standing(const struct check_row *row, const struct check_run *r,
                           struct json_doc *d, cJSON *parent)
{
    const struct check_attempt *by = row->decided_by;
    const char *word = verdict_word(row->verdict);
    bool later = false;
    cJSON *o;

    if (row->verdict == VERDICT_OK || !by) {
        json_add_null(d, parent, "check");
        return;
    }
    for (const struct check_attempt *a = row->attempts.first; a && a != by; a = a->next)
        later = later || (a->run && strcmp(a->run, r->run) == 0);
    o = json_add_object(d, parent, "check");
    json_add_string(d, o, "verdict", word);
    doc_format(d, o, "description",
               later ? "OK, but a later run of this commit is %s: the check is %s"
                     : "OK, but an earlier run of this program was %s: the check stays %s",
               word, word);
    json_add_string(d, o, "run", by->run);
    doc_run_url(d, o, "run_url", by->run, by->baseline);
}

int check_of_run(struct db *db, const struct check_run *r, struct json_doc *d, cJSON *parent,
                 struct err *e)
{
    struct check_row row = {.gate = r->gate, .machine_class = r->machine_class};
    struct check c = {
        .db = db, .project_id = r->project_id, .commit = r->commit, .rows = &row, .n = 1};
    int rc = -1;

    if (!r->verdict || strcmp(r->verdict, "OK") != 0) {
        json_add_null(d, parent, "check");
        return 0;
    }
    arena_init(&c.arena, ARENA_MAX);
    if (read_runs(&c, &row, e) == 0 && answer_row(&c, &row, e) == 0) {
        write_standing(&row, r, d, parent);
        rc = 0;
    }
    arena_fini(&c.arena);
    return rc;
}

int check_of_row(struct db *db, const struct query *row, struct json_doc *d, cJSON *parent,
                 struct err *e)
{
    const struct check_run ask = {.project_id = query_get_int(row, RUN_PROJECT),
                                  .gate = query_get_text(row, RUN_GATE),
                                  .machine_class = query_get_text(row, RUN_CLASS),
                                  .commit = query_get_text(row, RUN_COMMIT),
                                  .run = query_get_text(row, RUN_RUN),
                                  .verdict = query_get_text(row, RUN_VERDICT)};

    return check_of_run(db, &ask, d, parent, e);
}
