/* Everything stored against everything else that is stored. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "evidence/dsse.h"
#include "evidence/keyring.h"
#include "evidence/manifest.h"
#include "evidence/statement.h"
#include "server/store/store_private.h"
#include "server/store/upkeep.h"

struct fsck {
    struct store *store;
    void (*say)(void *ctx, bool problem, const char *text);
    void *ctx;
    struct upkeep_fsck *n;
};

static void problem(struct fsck *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct fsck *f, const char *format, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, format);
    if (vsnprintf(text, sizeof text, format, ap) < 0)
        text[0] = '\0';
    va_end(ap);
    f->n->problems++;
    f->say(f->ctx, true, text);
}

/* Our own trouble ends the check; anything else is a finding. */
static bool is_trouble(const struct err *e)
{
    return e->kind == ERR_NOMEM || e->kind == ERR_BUSY || e->kind == ERR_INTERNAL;
}

static int check_database(struct fsck *f, struct err *e)
{
    AUTO_FREE char *said = NULL;
    int64_t broken = 0;
    struct err none = ERR_INIT;
    struct db *d = NULL;
    AUTO_BUF struct buf path = {.data = NULL};

    buf_init(&path, LIMIT_URL * 4);
    buf_printf(&path, "%s/cleanrun.db", store_data_path(f->store));
    /* A writer's connection, because readers may not run these pragmas; it only reads. */
    if (buf_check(&path, e) < 0 || db_open(path.data, DB_WRITER, &d, e) < 0)
        return -1;
    if (db_script_text(d, sql_integrity_check, &said, e) < 0) {
        db_close(d);
        return -1;
    }
    if (strcmp(said, "ok") != 0)
        problem(f, "database: %s", said);
    if (db_script_int(d, sql_foreign_key_check, &broken, &none) == 0)
        problem(f, "database: a row points to nothing");
    db_close(d);
    return 0;
}

/* Objects. */

struct held {
    struct digest *digests;
    uint64_t *sizes;
    size_t n;
    size_t cap;
};

static void held_fini(struct held *h)
{
    free(h->digests);
    free(h->sizes);
}

static int held_add(struct held *h, const struct digest *d, uint64_t size, struct err *e)
{
    if (h->n == h->cap) {
        size_t more = h->cap ? h->cap * 2 : 256;
        struct digest *digests = reallocarray(h->digests, more, sizeof *digests);
        uint64_t *sizes;

        if (digests)
            h->digests = digests;
        sizes = digests ? reallocarray(h->sizes, more, sizeof *sizes) : NULL;
        if (!sizes)
            return err_memory(e, "fsck.memory");
        h->sizes = sizes;
        h->cap = more;
    }
    h->digests[h->n] = *d;
    h->sizes[h->n++] = size;
    return 0;
}

static int list_held(struct fsck *f, struct held *h, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    bool row = false;
    int rc;

    if (store_read_open(f->store, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_BLOB_LIST);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        struct digest d;

        if (!query_get_digest(&q, 0, &d))
            return err_set(e, ERR_INTERNAL, "fsck.digest", "a stored digest has another length");
        f->n->blobs++;
        if (h->n > 0 && digest_equal(&h->digests[h->n - 1], &d))
            continue; /* in digest order: held by another project, too */
        if (held_add(h, &d, (uint64_t) query_get_int(&q, 1), e) < 0)
            return -1;
    }
    return rc;
}

static int check_objects(struct fsck *f, const struct held *h, struct err *e)
{
    for (size_t i = 0; i < h->n; i++) {
        struct err why = ERR_INIT;
        AUTO_FD int fd = -1;
        uint64_t size = 0;
        char hex[DIGEST_HEX_SIZE];

        digest_hex(&h->digests[i], hex);
        if (store_object_open(f->store, &h->digests[i], true, &fd, &size, NULL, &why) < 0) {
            if (is_trouble(&why))
                return err_set(e, why.kind, why.code, "%s", why.text);
            problem(f, "object %s: %s", hex, why.text);
        } else if (size != h->sizes[i]) {
            problem(f, "object %s: has %llu bytes, the database says %llu", hex,
                    (unsigned long long) size, (unsigned long long) h->sizes[i]);
        }
    }
    return 0;
}

struct sweep {
    struct fsck *f;
    const struct held *held;
};

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, DIGEST_SIZE);
}

static int sweep_one(void *ctx, const struct digest *digest, const char *name, struct err *e)
{
    struct sweep *w = (struct sweep *) ctx;
    char text[LIMIT_URL];

    (void) e; /* nothing can fail */
    if (!digest) {
        problem(w->f, "objects/%s is no object", name);
        return 0;
    }
    if (w->held->n > 0 &&
        bsearch(digest, w->held->digests, w->held->n, sizeof *digest, compare_digests))
        return 0;
    w->f->n->orphans++;
    (void) snprintf(text, sizeof text,
                    "orphan: objects/%s belongs to no project (gc removes it after a day)", name);
    w->f->say(w->f->ctx, false, text);
    return 0;
}

/* Runs. */

static bool document(struct fsck *f, const char *run, enum store_document kind, char **out,
                     size_t *out_len)
{
    struct err why = ERR_INIT;

    if (store_run_document(f->store, run, kind, out, out_len, &why) == 0)
        return true;
    problem(f, "run %s: no %s: %s", run, store_document_kind(kind), why.text);
    return false;
}

/* A stored copy of a member has the member's digest. */
static void check_copy(struct fsck *f, const char *run, enum store_document kind, const char *path)
{
    AUTO_FREE char *bytes = NULL;
    struct store_member m;
    struct digest now;
    struct err why = ERR_INIT;
    size_t len = 0;

    if (!document(f, run, kind, &bytes, &len))
        return;
    if (store_run_member(f->store, run, path, &m, &why) < 0) {
        problem(f, "run %s: %s: %s", run, path, why.text);
        return;
    }
    now = digest_of(bytes, len);
    if (!digest_equal(&now, &m.digest))
        problem(f, "run %s: the stored %s is not the archive's", run, path);
}

/* The envelope is signed by the key and speaks of the archive. */
static void check_envelope(struct fsck *f, const struct store_run *run, enum store_document kind,
                           const struct public_key *key)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    AUTO_STATEMENT struct statement st = {.document = NULL};
    AUTO_FREE char *bytes = NULL;
    struct digest pae;
    struct err why = ERR_INIT;
    size_t len = 0;
    bool signed_by = false;

    if (!document(f, run->run, kind, &bytes, &len))
        return;
    if (dsse_parse(bytes, len, &d, &why) < 0 ||
        statement_parse(d.payload, d.payload_len, &st, &why) < 0 ||
        dsse_pae_digest(d.payload_type, d.payload, d.payload_len, &pae, &why) < 0) {
        problem(f, "run %s: %s: %s", run->run, store_document_kind(kind), why.text);
        return;
    }
    for (size_t i = 0; i < d.n; i++)
        signed_by =
            signed_by || public_key_verify(key, &pae, d.signatures[i].sig, d.signatures[i].sig_len);
    if (!signed_by)
        problem(f, "run %s: the signature of its %s does not verify", run->run,
                store_document_kind(kind));
    if (!statement_names(&st, &run->archive))
        problem(f, "run %s: its %s speaks of another archive", run->run, store_document_kind(kind));
}

static int check_signatures(struct fsck *f, const struct store_run *run, struct err *e)
{
    AUTO_PUBLIC_KEY struct public_key *key = NULL;
    AUTO_FREE char *pem = NULL;

    if (store_run_key_pem(f->store, run->run, &pem, e) < 0)
        return -1;
    if (public_key_parse(pem, strlen(pem), &key, e) < 0) {
        problem(f, "run %s: its runner's key: %s", run->run, e->text);
        return is_trouble(e) ? -1 : 0;
    }
    check_envelope(f, run, STORE_ENVELOPE, key);
    if (run->verdict && store_key(f->store))
        check_envelope(f, run, STORE_VERDICT_ENVELOPE, private_key_public(store_key(f->store)));
    return 0;
}

static void check_verdict(struct fsck *f, const struct store_run *run)
{
    AUTO_JSON cJSON *verdict = NULL;
    AUTO_FREE char *bytes = NULL;
    AUTO_FREE char *audit = NULL;
    AUTO_FREE char *acceptance = NULL;
    const struct json_limits limits = {.max_bytes = LIMIT_CANONICAL};
    struct err why = ERR_INIT;
    const cJSON *word;
    size_t len = 0;

    if (!run->verdict || run->revoked_us || run->judge_revoked_us || run->damaged)
        return; /* what a revoked runner said is no answer, nor what cannot be checked any more */
    if (!document(f, run->run, STORE_VERDICT, &bytes, &len) ||
        !document(f, run->run, STORE_AUDIT, &audit, &(size_t){0}) ||
        !document(f, run->run, STORE_ACCEPTANCE, &acceptance, &(size_t){0}))
        return;
    if (json_parse(bytes, len, &limits, &verdict, &why) < 0) {
        problem(f, "run %s: verdict: %s", run->run, why.text);
        return;
    }
    word = json_get(verdict, "verdict");
    if (!cJSON_IsString(word) || strcmp(word->valuestring, run->verdict) != 0)
        problem(f, "run %s: its row says %s, its verdict another", run->run, run->verdict);
}

static int next_run(struct fsck *f, int64_t after, int64_t *out_id, struct store_run *out,
                    struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    bool row = false;

    if (store_read_open(f->store, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_RUN_LIST);
    query_int(&q, after);
    query_int(&q, 1);
    if (query_step(&q, &row, e) < 0)
        return -1;
    *out_id = row ? query_get_int(&q, RUN_ID) : 0;
    return row ? store_run_read(r.db, query_get_text(&q, RUN_RUN), out, e) : 0;
}

static int check_runs(struct fsck *f, struct err *e)
{
    int64_t id = 0;

    for (;;) {
        AUTO_STORE_RUN struct store_run run = {.id = 0};
        int64_t next = 0;

        if (next_run(f, id, &next, &run, e) < 0)
            return -1;
        if (next == 0)
            return 0;
        id = next;
        f->n->runs++;
        check_copy(f, run.run, STORE_MANIFEST, MANIFEST_NAME);
        check_copy(f, run.run, STORE_DEFINITION, "definition.json");
        check_verdict(f, &run);
        if (check_signatures(f, &run, e) < 0)
            return -1;
    }
}

static int count_baselines(struct fsck *f, struct err *e)
{
    struct store_figures figures;

    if (store_figures(f->store, &figures, e) < 0)
        return -1;
    f->n->baselines = figures.baselines;
    return 0;
}

int upkeep_fsck(struct store *s, void (*say)(void *ctx, bool problem, const char *text), void *ctx,
                struct upkeep_fsck *out, struct err *e)
{
    __attribute__((cleanup(held_fini))) struct held held = {.n = 0};
    struct upkeep_fsck n = {.blobs = 0};
    struct fsck f = {.store = s, .say = say, .ctx = ctx, .n = &n};
    struct sweep sweep = {.f = &f, .held = &held};

    if (check_database(&f, e) < 0 || list_held(&f, &held, e) < 0 ||
        check_objects(&f, &held, e) < 0 || blobs_each(store_blobs(s), sweep_one, &sweep, e) < 0 ||
        check_runs(&f, e) < 0 || count_baselines(&f, e) < 0)
        return -1;
    *out = n;
    return 0;
}
