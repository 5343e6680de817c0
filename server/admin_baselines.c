/* The handlers of `baseline`, and how handlers talk. */
#include <stdarg.h>
#include <string.h>

#include "audit/comparison_text.h"
#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/plain.h"
#include "server/admin_commands.h"
#include "server/store/manage.h"
#include "server/store/store_private.h"

void admin_say(const struct admin_args *a, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    (void) vfprintf(a->out, format, ap);
    va_end(ap);
}

void admin_row(const struct admin_args *a, const char *const *fields, size_t n)
{
    AUTO_BUF struct buf line = {.data = NULL};

    buf_init(&line, LIMIT_MIB(1));
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_putc(&line, '\t');
        plain_puts(&line, fields[i]);
    }
    (void) fprintf(a->out, "%s\n", line.failed || !line.data ? "?" : line.data);
}

const char *admin_when(int64_t us, char out[CLOCK_RFC3339_SIZE])
{
    if (us == 0)
        return "-";
    clock_rfc3339(us, false, out);
    return out;
}

static int need_review(const struct admin_args *a, struct manage_review *r, struct err *e)
{
    return admin_args_need(a, "project", &r->project, e) < 0 ||
                   admin_args_need(a, "gate", &r->gate, e) < 0 ||
                   admin_args_need(a, "reviewer", &r->reviewer, e) < 0 ||
                   admin_args_need(a, "reason", &r->reason, e) < 0
               ? -1
               : 0;
}

static void note_comparison(const cJSON *row)
{
    AUTO_BUF struct buf words = {.data = NULL};
    struct comparison_text t;

    buf_init(&words, LIMIT_KIB(64));
    comparison_text(row, true, &t);
    comparison_put(&words, &t);
    plain_line(stderr, "  %s: %s", t.label, words.data ? words.data : "");
}

/* A stored document of the run. */
static int read_document(struct store *s, const char *run, enum store_document which, cJSON **out,
                         struct err *e)
{
    const struct json_limits limits = {.max_bytes = LIMIT_CANONICAL,
                                       .max_tokens = LIMIT_JSON_TOKENS * 4};
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    return store_run_document(s, run, which, &bytes, &len, e) < 0
               ? -1
               : json_parse(bytes, len, &limits, out, e);
}

static int note_regression(struct store *s, const char *run, const char *baseline, struct err *e)
{
    AUTO_JSON cJSON *audit = NULL;
    const cJSON *row = NULL;

    if (read_document(s, run, STORE_AUDIT, &audit, e) < 0)
        return -1;
    plain_line(stderr,
               "note: this run is a REGRESSION against %s; from now on this is normal:", baseline);
    cJSON_ArrayForEach(row, json_get(audit, "comparisons")) {
        if (strcmp(json_text(row, "verdict", ""), "regression") == 0)
            note_comparison(row);
    }
    return 0;
}

static int note_failure(struct store *s, const char *run, const char *baseline, struct err *e)
{
    AUTO_JSON cJSON *verdict = NULL;

    if (read_document(s, run, STORE_VERDICT, &verdict, e) < 0)
        return -1;
    plain_line(stderr, "note: the policy of %s does not accept this run; from now on its own does:",
               baseline);
    plain_line(stderr, "  %s", json_text(verdict, "description", ""));
    return 0;
}

/* What is now normal that was a REGRESSION or a FAIL when it was judged, on stderr. */
static int note_verdict(struct store *s, const char *run, struct err *e)
{
    AUTO_STORE_RUN struct store_run r = {.id = 0};
    const char *baseline;

    if (store_run_get(s, run, &r, e) < 0)
        return -1;
    baseline = r.baseline ? r.baseline : "its baseline";
    if (r.verdict && strcmp(r.verdict, "REGRESSION") == 0)
        return note_regression(s, run, baseline, e);
    if (r.verdict && strcmp(r.verdict, "FAIL") == 0)
        return note_failure(s, run, baseline, e);
    return 0;
}

int admin_baseline_approve(struct store *s, const struct admin_args *a, struct err *e)
{
    struct manage_review review = {.project = NULL};
    char id[MANAGE_ID_SIZE];

    review.new_policy = admin_args_has(a, "new-policy");
    if (need_review(a, &review, e) < 0 ||
        manage_baseline_approve(s, a->words[0], &review, id, e) < 0 ||
        note_verdict(s, a->words[0], e) < 0)
        return -1;
    admin_say(a, "%s\n", id);
    return 0;
}

int admin_baseline_retire(struct store *s, const struct admin_args *a, struct err *e)
{
    struct manage_review review = {.gate = ""};

    if (admin_args_need(a, "project", &review.project, e) < 0 ||
        admin_args_need(a, "reviewer", &review.reviewer, e) < 0 ||
        admin_args_need(a, "reason", &review.reason, e) < 0 ||
        manage_baseline_retire(s, a->words[0], &review, e) < 0)
        return -1;
    admin_say(a, "baseline %s retired\n", a->words[0]);
    return 0;
}

int admin_check_baseline_import(const struct admin_args *a, struct err *e)
{
    return admin_args_has(a, "legacy")
               ? 0
               : err_set(e, ERR_USAGE, "args.legacy",
                         "a directory is unsigned, so it can only be kept as history that never "
                         "judges: say --legacy; to make "
                         "a baseline that judges, push a run and use 'baseline approve'");
}

int admin_baseline_import(struct store *s, const struct admin_args *a, struct err *e)
{
    struct manage_review review = {.project = NULL};
    struct manage_import in = {.dir = a->words[0], .commit = admin_args_get(a, "commit")};
    char id[MANAGE_ID_SIZE];

    if (need_review(a, &review, e) < 0 || admin_args_need(a, "class", &in.machine_class, e) < 0 ||
        admin_args_need(a, "definition", &in.definition, e) < 0 ||
        manage_baseline_import(s, &in, &review, id, e) < 0)
        return -1;
    admin_say(a, "%s\n", id);
    return 0;
}

static const char *state_of(const struct query *q)
{
    if (query_get_int(q, BASE_CURRENT))
        return query_get_int(q, BASE_REVOKED) ? "current, but its key is revoked" : "current";
    if (query_get_int(q, BASE_LEGACY))
        return "history";
    return query_get_int(q, BASE_RETIRED) ? "retired" : "superseded";
}

/* What was decided after the first review, each on a line of its own that begins with a blank. */
static int say_reviews(const struct admin_args *a, struct db *d, const char *id, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BASELINE_REVIEWS);
    char at[CLOCK_RFC3339_SIZE];
    bool first = true;
    bool row = false;
    int rc;

    query_text(&q, id);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        const char *const fields[] = {query_get_text(&q, 2), admin_when(query_get_int(&q, 0), at),
                                      query_get_text(&q, 1), query_get_text(&q, 3)};

        if (!first) {
            admin_say(a, "  ");
            admin_row(a, fields, ARRAY_LEN(fields));
        }
        first = false;
    }
    return rc;
}

int admin_baseline_list(struct store *s, const struct admin_args *a, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    const char *project = admin_args_get(a, "project");
    char at[CLOCK_RFC3339_SIZE];
    bool row = false;
    int rc;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_BASELINE_LIST);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        if (project && strcmp(project, query_get_text(&q, BASE_PROJECT_NAME)) != 0)
            continue;
        const char *const fields[] = {query_get_text(&q, BASE_ID),
                                      query_get_text(&q, BASE_PROJECT_NAME),
                                      query_get_text(&q, BASE_GATE),
                                      query_get_text(&q, BASE_CLASS),
                                      state_of(&q),
                                      admin_when(query_get_int(&q, BASE_AT), at),
                                      query_get_text(&q, BASE_REVIEWER),
                                      query_get_text(&q, BASE_REASON)};

        admin_row(a, fields, ARRAY_LEN(fields));
        if (say_reviews(a, r.db, query_get_text(&q, BASE_ID), e) < 0)
            return -1;
    }
    return rc;
}
