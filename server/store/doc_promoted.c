/* Whether a run was made a baseline, and which baseline judges its gate and class now. */
#include <stdio.h>

#include "server/store/doc.h"

static int read_own(struct json_doc *d, struct db *db, struct promotion *p, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_BASELINE_GET);
    bool row = false;
    cJSON *o;

    query_text(&q, p->id);
    if (query_step(&q, &row, e) < 0)
        return -1;
    if (!row) {
        p->id[0] = '\0';
        if (d)
            json_add_null(d, NULL, "promoted");
        return 0;
    }
    p->current = query_get_int(&q, BASE_CURRENT) != 0;
    if (!d)
        return 0;
    o = json_add_object(d, NULL, "promoted");
    json_add_string(d, o, "id", p->id);
    json_add_string(d, o, "state",
                    p->current                             ? "current"
                    : query_get_int(&q, BASE_RETIRED) != 0 ? "retired"
                                                           : "superseded");
    doc_format(d, o, "url", "/b/%s", p->id);
    return 0;
}

static int read_judge(struct db *db, const struct store_run *run, struct promotion *p,
                      struct err *e)
{
    AUTO_QUERY struct query q =
        store_gate_query(db, SQL_BASELINE_CURRENT, run->project_id, run->gate, run->machine_class);
    bool row = false;

    if (query_step(&q, &row, e) < 0)
        return -1;
    if (row && !query_get_int(&q, BASE_REVOKED))
        (void) snprintf(p->judge, sizeof p->judge, "%s",
                        query_get_text(&q, BASE_ID)); /* ids are short */
    return 0;
}

int promotion_read(struct json_doc *d, struct db *db, const struct store_run *run,
                   struct promotion *out, struct err *e)
{
    struct promotion p = {.current = false};

    (void) snprintf(p.id, sizeof p.id, "b-%s", run->run); /* ids are short */
    if (read_own(d, db, &p, e) < 0 || read_judge(db, run, &p, e) < 0)
        return -1;
    *out = p;
    return 0;
}
