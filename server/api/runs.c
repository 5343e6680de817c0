/* What is stored about a run as bytes and goes out as it is: verdict, statements. */
#include "server/api/access.h"
#include "server/api/api.h"
#include "server/store/documents.h"

/* bytes: taken. name: of the file that a browser saves it as; NULL: it is shown. */
static void reply_bytes(struct request *q, const char *type, const char *name, char *bytes,
                        size_t len, enum reply_caching caching, bool is_private)
{
    struct content *c = content_bytes(type, bytes, len);

    if (c) {
        if (name)
            content_set_attachment(c, name);
        content_set_caching(c, caching, is_private);
        content_hash(c);
    }
    reply_content(q, 200, c);
}

/* A stored statement of the run; absent is 404 with `absent` as its detail. */
static void reply_statement(struct request *q, const struct store_run *run,
                            enum store_document kind, const char *name, const char *absent)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;

    if (store_run_document(api_of(q)->store, run->run, kind, &bytes, &len, &e) < 0) {
        if (e.kind == ERR_NOTFOUND)
            reply_problem(q, 404, "not-found", absent, NULL);
        else
            reply_err(q, &e);
        return;
    }
    reply_bytes(q, TYPE_DSSE, name, STEAL(bytes), len, REPLY_IMMUTABLE, run->is_private);
}

enum route_result run_verdict(struct request *q)
{
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;

    if (!access_run(q, &run))
        return ROUTE_DONE;
    api_watch(q, &run.archive);
    if (doc_verdict(api_of(q)->store, run.run, &bytes, &len, &e) == 0)
        reply_bytes(q, TYPE_JSON, NULL, STEAL(bytes), len, REPLY_LIVE, run.is_private);
    else if (e.kind == ERR_NOTFOUND)
        reply_problem(q, 404, "not-found", e.text, NULL);
    else
        reply_err(q, &e);
    return ROUTE_DONE;
}

enum route_result run_attestation(struct request *q)
{
    AUTO_STORE_RUN struct store_run run = {.id = 0};

    if (access_run(q, &run))
        reply_statement(q, &run, STORE_ENVELOPE, "evidence.tar.dsse.json",
                        "this run has no statement");
    return ROUTE_DONE;
}

enum route_result run_verdict_attestation(struct request *q)
{
    AUTO_STORE_RUN struct store_run run = {.id = 0};

    if (access_run(q, &run))
        reply_statement(q, &run, STORE_VERDICT_ENVELOPE, "verdict.dsse.json",
                        "a diagnostic or build-only run has no verdict");
    return ROUTE_DONE;
}
