/* doc: what the documents share. Private to server/store/doc_*.c and check.c. Adding fails as
 * json_doc does: once, told by take. */
#pragma once

#include <cjson/cJSON.h>

#include "audit/advice.h"
#include "audit/verdict.h"
#include "base/buf.h"
#include "base/json_out.h"
#include "experiment/definition.h"
#include "server/store/manage.h"
#include "server/store/side.h"
#include "server/store/store_private.h"

#define DOC_ROWS 50  /* runs, baselines of one page */
#define DOC_RECENT 8 /* verdicts of the small history */
#define DOC_COMMITS 20
#define DOC_ATTEMPTS 20

void doc_time(struct json_doc *d, cJSON *parent, const char *key, int64_t us); /* 0: null */
void doc_hex(struct json_doc *d, cJSON *parent, const char *key, const struct digest *v);
/* Text made from a format; cut at 1 KiB. */
void doc_format(struct json_doc *d, cJSON *parent, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Appends at most max bytes of s, cut at a character's end with "…". */
void doc_cut(struct buf *out, const char *s, size_t max);
/* The name of the run's runner. */
enum { DOC_RUNNER_SIZE = 65 }; /* a name has at most 64 characters */
int doc_runner_name(struct db *db, const char *run, char out[DOC_RUNNER_SIZE],
                    struct err *e) MUST_CHECK;
/* "/r/RUN" or "/r/RUN/vs/BASELINE" */
void doc_run_url(struct json_doc *d, cJSON *parent, const char *key, const char *run,
                 const char *baseline);
/* links {json, text} of a page. */
void doc_links(struct json_doc *d, const char *page);
/* json_doc_take into *out, which a failure leaves alone. */
int doc_take(struct json_doc *d, cJSON **out, struct err *e) MUST_CHECK;
/* A stored document parsed again; *out NULL when the run has none. */
int doc_stored(struct db *db, const char *run, enum store_document kind, cJSON **out,
               struct err *e) MUST_CHECK;
/* The run's verdict as it stands now (documents.h, doc_verdict), parsed; *out NULL when it has
 * none. */
int doc_verdict_now(struct db *db, const struct store_run *run, cJSON **out,
                    struct err *e) MUST_CHECK;
/* The summary of a definition under `key`: digests, counts, windows, modes, metrics. */
int doc_definition(struct json_doc *d, cJSON *parent, const char *key, const struct definition *def,
                   struct err *e) MUST_CHECK;
/* The entry of audit.metrics that a plain pointer belongs to, its place in *out_index; NULL when
 * none. */
const cJSON *doc_metric_of(const struct definition *def, const char *pointer, size_t *out_index);
/* Label of a metric by place, else its pointer. Borrowed. */
const char *doc_metric_label(const struct definition *def, size_t index, const char *otherwise);
/* doc_advice.c: what to do next, in "next" [{text, command|null}]. */
void doc_names(const struct store *s, const struct store_run *run, struct advice_names *out);
void doc_step(struct json_doc *d, cJSON *list, const char *text, const char *command);
/* A step whose command has its words in capitals exchanged for names. */
void doc_step_for(struct json_doc *d, cJSON *list, const char *text, const char *command,
                  const struct advice_names *names);
/* The registry's advice for a code as a step: its prose, and its command with real names. */
void doc_advice(struct json_doc *d, cJSON *list, const char *code,
                const struct advice_names *names);
/* For a run whose verdict fell: its evidence is damaged, or its key was revoked before it came. */
void doc_fallen_steps(struct json_doc *d, cJSON *list, const struct store_run *run,
                      const struct advice_names *names);
/* What was reviewed of a run, and of its gate and class, as it is now. */
struct promotion {
    char id[MANAGE_ID_SIZE]; /* the baseline that the run was made; "": none */
    bool current;
    char judge[MANAGE_ID_SIZE]; /* the current baseline; "": none */
};
/* doc_promoted.c. d NULL: only read; else adds "promoted" {id, state: current|superseded|retired,
 * url}, or null, to the document's root. */
int promotion_read(struct json_doc *d, struct db *db, const struct store_run *run,
                   struct promotion *out, struct err *e) MUST_CHECK;
/* Rows {at, run, code, detail, keyid} of an attempts query that is bound; with_run: the run's name
 * is shown. */
int doc_attempts(struct json_doc *d, cJSON *list, struct query *q, bool with_run,
                 struct err *e) MUST_CHECK;

/* Every attempt of one (gate, class, commit), in the order they came. */
struct attempt_list {
    struct {
        char run[32];
        const char *verdict; /* static word */
        bool stored;         /* a run, not a refused upload */
    } * items;
    size_t n;
};
int attempt_list_read(struct db *db, int64_t project_id, const char *gate,
                      const char *machine_class, const char *commit, struct attempt_list *out,
                      struct err *e) MUST_CHECK;
void attempt_list_fini(struct attempt_list *l);
#define AUTO_ATTEMPT_LIST __attribute__((cleanup(attempt_list_fini)))
/* {n, of, previous[]} under "attempt": of the stored run, or (run NULL) of one that comes now. */
void attempt_list_write(const struct attempt_list *l, const char *run, struct json_doc *d,
                        cJSON *parent);

/* doc_baseline.c: what a gate's list of baselines tells besides itself. */
struct baseline_list {
    size_t n;
    char *definition; /* bytes of the newest current baseline's, or NULL; freed by the caller, after
                         a failure, too */
    size_t definition_len;
};
/* Adds "baselines" to the document's root. with_successor: each names what superseded it. */
int baseline_list_add(struct json_doc *d, struct db *db, int64_t project_id, const char *gate,
                      bool with_successor, struct baseline_list *out, struct err *e) MUST_CHECK;

/* doc_history.c: the reports (`tree`) of a baseline's evidence, checked; imported history, too. */
int doc_imported(struct store *s, const char *id, struct side *out, struct err *e) MUST_CHECK;

/* All borrowed; each may be NULL. */
struct measured {
    const cJSON *definition; /* the canonical document */
    const cJSON *report;
    const cJSON *markers; /* the runner's */
    const char *csv;      /* samples/process.csv */
    size_t csv_len;
};
/* Adds "series", "phases" and "windows". Windows are what the report says where it says them
 * (sampling.into), else computed now. */
int doc_measured(struct json_doc *d, const struct measured *m, struct err *e) MUST_CHECK;

struct check_question {
    const struct store_project *project;
    const char *name; /* of the project */
    const char *commit;
    int64_t now_us;
    bool brief; /* without the attempts of each row */
};
/* check.c: what stands in the check of a run's commit, for its gate and class, instead of the run's
 * own OK. Adds "check" to parent: null when the run's verdict is not OK or the check says OK, too;
 * else {verdict, description: "OK, but …", run: whose verdict stands, run_url}. */
struct check_run {
    int64_t project_id;
    const char *gate, *machine_class, *commit, *run;
    const char *verdict; /* of the run, as it stands; NULL: none */
};
int check_of_run(struct db *db, const struct check_run *r, struct json_doc *d, cJSON *parent,
                 struct err *e) MUST_CHECK;
/* The same of the current row of a query with RUN_COLUMNS. */
int check_of_row(struct db *db, const struct query *row, struct json_doc *d, cJSON *parent,
                 struct err *e) MUST_CHECK;
/* The same of a run at hand, into the document's root. */
static inline int MUST_CHECK check_of_stored(struct db *db, const struct store_run *run,
                                             struct json_doc *d, struct err *e)
{
    const struct check_run ask = {.project_id = run->project_id,
                                  .gate = run->gate,
                                  .machine_class = run->machine_class,
                                  .commit = run->commit,
                                  .run = run->run,
                                  .verdict = run->verdict};

    return check_of_run(db, &ask, d, NULL, e);
}
/* check.c: the rows and the verdict of one commit. Adds "verdict", "description" and "gates" to
 * parent. */
int check_commit(struct db *db, const struct check_question *q, struct json_doc *d, cJSON *parent,
                 struct err *e) MUST_CHECK;
