#include "evidence/verify.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "evidence/dsse.h"
#include "evidence/evidence_parts.h"
#include "evidence/statement.h"
#include "evidence/verify_stages.h"

const char *verify_stage_name(enum verify_stage stage)
{
    static const char *const names[VERIFY_STAGES] = {
        "digest", "signature", "archive", "manifest", "members", "json", "source",
    };

    return stage < VERIFY_STAGES ? names[stage] : "";
}

/* Fills envelope and statement; what is wrong with them is judged by the signature stage. */
static int read_envelope(struct verify_work *w)
{
    const struct verify_input *in = w->in;
    struct err *why = &w->unreadable;

    if (!in->envelope || in->envelope_len == 0)
        return err_set(why, ERR_TRUST, "evidence.unsigned", "there is no attestation");
    if (dsse_parse(in->envelope, in->envelope_len, &w->envelope, why) < 0)
        return -1;
    if (strcmp(w->envelope.payload_type, STATEMENT_PAYLOAD_TYPE) != 0)
        return err_set(why, ERR_TRUST, "evidence.payload",
                       "the attestation's payload type is not " STATEMENT_PAYLOAD_TYPE);
    if (statement_parse(w->envelope.payload, w->envelope.payload_len, &w->statement, why) < 0)
        return -1;
    if (strcmp(w->statement.predicate_type, STATEMENT_PREDICATE_RUN) != 0)
        return err_set(why, ERR_TRUST, "evidence.predicate",
                       "the statement's predicate type is not " STATEMENT_PREDICATE_RUN);
    return 0;
}

static int begin(struct verify_work *w, struct err *e)
{
    w->ev = calloc(1, sizeof *w->ev);
    if (!w->ev)
        return err_set(e, ERR_NOMEM, "evidence.memory", "no memory to verify evidence");
    w->ev->fd = fcntl(w->in->archive_fd, F_DUPFD_CLOEXEC, 3);
    if (w->ev->fd < 0)
        return err_errno(e, "evidence.descriptor", "cannot keep the archive open");
    w->readable = read_envelope(w) == 0;
    if (w->in->index)
        return archive_index_copy(w->in->index, &w->ev->index, e);
    /* Up to two gigabytes are not read for what the signature stage refuses whatever they are. */
    return w->readable ? archive_index_of_fd(w->ev->fd, &w->ev->index, e) : 0;
}

static int run_stages(struct verify_work *w, struct err *e)
{
    for (unsigned i = 0; i < VERIFY_STAGES; i++) {
        w->now = (enum verify_stage) i;
        if (w->now == VERIFY_DIGEST && !w->readable)
            continue; /* no statement to compare with: the next stage fails */
        if (verify_stage_run(w, e) < 0)
            return -1;
        if (w->stages[i].outcome != VERIFY_PASSED)
            break;
    }
    return 0;
}

/* VALID has this one definition. */
static bool every_stage_ok(const struct verify_work *w)
{
    for (unsigned i = 0; i < VERIFY_STAGES; i++) {
        if (w->stages[i].outcome != VERIFY_PASSED)
            return false;
    }
    return true;
}

static void add_run(struct json_doc *d, const struct manifest *m)
{
    cJSON *run = json_add_object(d, NULL, "run");

    json_add_string(d, run, "project", m->project);
    json_add_string(d, run, "gate", m->gate);
    json_add_string(d, run, "class", m->machine_class);
    json_add_string(d, run, "run", m->run);
    json_add_string(d, run, "mode", m->mode);
    json_add_string(d, run, "status", manifest_status_name(m->status));
    json_add_string(d, run, "commit", m->commit);
    json_add_bool(d, run, "dirty", m->dirty);
}

static int write_report(const struct verify_work *w, bool valid, struct verify_report *out,
                        struct err *e)
{
    static const char *const outcomes[] = {"not_run", "ok", "failed"};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    char hex[DIGEST_HEX_SIZE];
    cJSON *list;

    if (w->ev->index)
        digest_hex(&w->ev->index->digest, hex);
    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-verify/1");
    json_add_string(&d, NULL, "verdict", valid ? "VALID" : "INVALID");
    json_add_string(&d, NULL, "archive_sha256", w->ev->index ? hex : NULL);
    json_add_string(&d, NULL, "keyid", w->ev->keyid);
    if (valid)
        add_run(&d, &w->ev->manifest);
    else
        json_add_null(&d, NULL, "run");
    list = json_add_array(&d, NULL, "stages");
    out->code = NULL;
    out->failed_stage = VERIFY_STAGES;
    for (unsigned i = 0; i < VERIFY_STAGES; i++) {
        const struct verify_step *s = &w->stages[i];
        cJSON *item = json_add_object(&d, list, NULL);

        json_add_string(&d, item, "name", verify_stage_name((enum verify_stage) i));
        json_add_string(&d, item, "result", outcomes[s->outcome]);
        json_add_string(&d, item, "code", s->code);
        json_add_string(&d, item, "detail", s->outcome == VERIFY_NOT_RUN ? NULL : s->detail);
        if (s->outcome == VERIFY_FAILED) {
            out->code = s->code;
            out->failed_stage = (enum verify_stage) i;
        }
    }
    out->document = json_doc_take(&d, e);
    return out->document ? 0 : -1;
}

static void work_fini(struct verify_work *w)
{
    dsse_fini(&w->envelope);
    statement_fini(&w->statement);
    evidence_free(w->ev);
}

int evidence_verify(const struct verify_input *in, struct evidence **out,
                    struct verify_report *report, struct err *e)
{
    __attribute__((cleanup(work_fini))) struct verify_work w = {.in = in, .unreadable = ERR_INIT};
    bool valid;

    if (begin(&w, e) < 0 || run_stages(&w, e) < 0)
        return -1;
    valid = every_stage_ok(&w);
    if (write_report(&w, valid, report, e) < 0)
        return -1;
    *out = NULL;
    if (valid) {
        *out = STEAL(w.ev);
    }
    return 0;
}

void verify_report_fini(struct verify_report *r)
{
    json_free(r->document);
    *r = (struct verify_report){.document = NULL};
}
