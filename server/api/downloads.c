/* Evidence goes out: the archive, its members by offset, the bundle. Bytes are checked against
 * their digest before. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/relname.h"
#include "evidence/bundle.h"
#include "evidence/keyring.h"
#include "evidence/sign.h"
#include "server/api/access.h"
#include "server/api/api.h"

#define MEMO_SLOTS 64
#define BLOCK ((size_t) 1 << 20)

struct digest_memo {
    pthread_mutex_t rows_lock;
    struct {
        struct digest key, value;
        bool used;
    } rows[MEMO_SLOTS]; /* under rows_lock */
};

struct digest_memo *digest_memo_new(void)
{
    struct digest_memo *m = calloc(1, sizeof *m);

    if (m)
        (void) pthread_mutex_init(&m->rows_lock,
                                  NULL); /* cannot fail with default attributes on Linux */
    return m;
}

void digest_memo_free(struct digest_memo *m)
{
    if (!m)
        return;
    (void) pthread_mutex_destroy(&m->rows_lock);
    free(m);
}

bool digest_memo_get(struct digest_memo *m, const struct digest *key, struct digest *out)
{
    size_t slot = key->bytes[0] % MEMO_SLOTS;
    bool hit = false;

    (void) pthread_mutex_lock(&m->rows_lock);
    hit = m->rows[slot].used && digest_equal(&m->rows[slot].key, key);
    if (hit)
        *out = m->rows[slot].value;
    (void) pthread_mutex_unlock(&m->rows_lock);
    return hit;
}

void digest_memo_put(struct digest_memo *m, const struct digest *key, const struct digest *value)
{
    size_t slot = key->bytes[0] % MEMO_SLOTS;

    (void) pthread_mutex_lock(&m->rows_lock);
    m->rows[slot].key = *key;
    m->rows[slot].value = *value;
    m->rows[slot].used = true;
    (void) pthread_mutex_unlock(&m->rows_lock);
}

static void reply_damaged(struct request *q, const struct err *e)
{
    if (e->kind == ERR_TRUST)
        reply_problem(q, 500, "damaged",
                      "the stored evidence is damaged: its bytes no longer have their digest",
                      NULL);
    else
        reply_err(q, e);
}

/* The run of the route and its archive, checked. */
static bool open_run(struct request *q, struct store_run *out, int *out_fd)
{
    AUTO_STORE_RUN struct store_run opened = {.id = 0};
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    struct err e = ERR_INIT;

    if (!access_run(q, &run))
        return false;
    if (store_run_open(api_of(q)->store, run.run, out_fd, &opened, &e) < 0) {
        reply_damaged(q, &e);
        return false;
    }
    *out = run;
    run = (struct store_run){.id = 0};
    return true;
}

static void finish(struct request *q, struct content *c, const struct digest *d, bool is_private)
{
    if (c) {
        content_set_policy(c, REPLY_EVIDENCE);
        content_set_caching(c, REPLY_IMMUTABLE, is_private);
        content_set_digest(c, d);
    }
    reply_content(q, 200, c);
}

enum route_result download_archive(struct request *q)
{
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    struct content *c = NULL;
    int fd = -1;

    if (!open_run(q, &run, &fd))
        return ROUTE_DONE;
    c = content_file(TYPE_TAR, fd, 0, run.archive_size);
    if (c)
        content_set_attachment(c, "evidence.tar");
    finish(q, c, &run.archive, run.is_private);
    return ROUTE_DONE;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t len = strlen(name);
    size_t n = strlen(suffix);

    return len > n && strcmp(name + len - n, suffix) == 0;
}

/* Shown as plain text, or only downloaded: whatever it holds, a browser must not run it. */
static bool is_text(const char *path)
{
    static const char *const suffixes[] = {".json", ".jsonl", ".log",    ".txt",
                                           ".md",   ".csv",   ".folded", ".yaml"};
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (has_suffix(path, suffixes[i]))
            return true;
    }
    return false;
}

enum route_result download_member(struct request *q)
{
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    const char *path = request_param(q, "path");
    struct store_member member = {.offset = 0};
    struct content *c = NULL;
    int fd = -1;
    struct err e = ERR_INIT;

    if (!relname_ok(path)) {
        reply_not_found(q);
        return ROUTE_DONE;
    }
    if (!open_run(q, &run, &fd))
        return ROUTE_DONE;
    if (store_run_member(api_of(q)->store, run.run, path, &member, &e) < 0) {
        (void) close(fd); /* was only read */
        if (e.kind == ERR_NOTFOUND)
            reply_problem(q, 404, "not-found", "the evidence has no such file", NULL);
        else
            reply_err(q, &e);
        return ROUTE_DONE;
    }
    c = content_file(is_text(path) ? TYPE_TEXT : TYPE_BYTES, fd, member.offset, member.size);
    if (c && !is_text(path))
        content_set_attachment(c, path);
    finish(q, c, &member.digest, run.is_private);
    return ROUTE_DONE;
}

/* The documents of a run that a bundle is made of. */
struct ingredients {
    char *envelope, *verdict, *pem;
    size_t envelope_len, verdict_len;
    struct public_key *runner;
};

static void ingredients_fini(struct ingredients *i)
{
    free(i->envelope);
    free(i->verdict);
    free(i->pem);
    public_key_free(i->runner);
}

static int ingredients_get(struct store *s, const char *run, struct ingredients *out, struct err *e)
{
    if (store_run_document(s, run, STORE_ENVELOPE, &out->envelope, &out->envelope_len, e) < 0 ||
        store_run_key_pem(s, run, &out->pem, e) < 0 ||
        public_key_parse(out->pem, strlen(out->pem), &out->runner, e) < 0)
        return -1;
    if (store_run_document(s, run, STORE_VERDICT_ENVELOPE, &out->verdict, &out->verdict_len, e) <
            0 &&
        e->kind != ERR_NOTFOUND)
        return -1;
    return 0;
}

static int make_bundle(struct store *s, const struct store_run *run, struct bundle **out,
                       struct err *e)
{
    __attribute__((cleanup(ingredients_fini))) struct ingredients i = {.envelope = NULL};
    struct bundle_input in = {
        .run = run->run, .archive_digest = &run->archive, .archive_size = run->archive_size};

    if (ingredients_get(s, run->run, &i, e) < 0)
        return -1;
    in.envelope = i.envelope;
    in.envelope_len = i.envelope_len;
    in.verdict_envelope = i.verdict;
    in.verdict_envelope_len = i.verdict_len;
    in.runner_key = i.runner;
    in.server_key = store_key(s) ? private_key_public(store_key(s)) : NULL;
    return bundle_new(&in, out, e);
}

/* Decides the bundle's bytes without reading the archive: its digest and every part in memory. */
static int bundle_key(const struct bundle *b, const struct digest *archive, struct digest *out,
                      struct err *e)
{
    struct digest_state *state = digest_new();
    size_t i = 0;

    if (!state)
        return err_memory(e, "bundle.memory");
    digest_update(state, archive->bytes, DIGEST_SIZE);
    for (i = 0; i < bundle_part_count(b); i++) {
        struct bundle_part p = bundle_part_get(b, i);

        if (p.bytes)
            digest_update(state, p.bytes, (size_t) p.len);
    }
    digest_finish(state, out);
    digest_free(state);
    return 0;
}

static int hash_bundle(const struct bundle *b, int fd, struct digest *out, struct err *e)
{
    AUTO_FREE char *block = malloc(BLOCK);
    struct digest_state *state = digest_new();
    uint64_t at = 0;
    size_t n = 0;
    int rc = 0;

    if (!block || !state) {
        digest_free(state);
        return err_memory(e, "bundle.memory");
    }
    do {
        rc = bundle_read(b, fd, at, block, BLOCK, &n, e);
        if (rc == 0)
            digest_update(state, block, n);
        at += n;
    } while (rc == 0 && n > 0);
    digest_finish(state, out);
    digest_free(state);
    return rc;
}

static int bundle_digest(struct digest_memo *memo, const struct bundle *b,
                         const struct digest *archive, int fd, struct digest *out, struct err *e)
{
    struct digest key = {.bytes = {0}};

    if (bundle_key(b, archive, &key, e) < 0)
        return -1;
    if (digest_memo_get(memo, &key, out))
        return 0;
    if (hash_bundle(b, fd, out, e) < 0)
        return -1;
    digest_memo_put(memo, &key, out);
    return 0;
}

static void release_bundle(void *b)
{
    bundle_free(b);
}

/* Takes bundle and fd. */
static struct content *bundle_content(struct bundle *b, int fd)
{
    size_t n = bundle_part_count(b);
    AUTO_FREE struct reply_part *parts = calloc(n, sizeof *parts);
    struct content *c = NULL;
    size_t i = 0;

    if (!parts) {
        bundle_free(b);
        (void) close(fd); /* was only read */
        return NULL;
    }
    for (i = 0; i < n; i++) { /* exactly one part is the archive */
        struct bundle_part p = bundle_part_get(b, i);

        parts[i] = (struct reply_part){.bytes = p.bytes, .fd = p.bytes ? -1 : fd, .size = p.len};
    }
    c = content_parts(TYPE_TAR, parts, n, NULL);
    if (c)
        content_keep(c, b, release_bundle);
    else
        bundle_free(b);
    return c;
}

enum route_result download_bundle(struct request *q)
{
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    struct api *a = api_of(q);
    struct bundle *b = NULL;
    struct content *c = NULL;
    struct digest digest = {.bytes = {0}};
    const char *name = NULL;
    int fd = -1;
    struct err e = ERR_INIT;

    if (!open_run(q, &run, &fd))
        return ROUTE_DONE;
    if (make_bundle(a->store, &run, &b, &e) < 0 ||
        bundle_digest(a->memo, b, &run.archive, fd, &digest, &e) < 0) {
        bundle_free(b);
        (void) close(fd); /* was only read */
        reply_err(q, &e);
        return ROUTE_DONE;
    }
    c = bundle_content(b, fd);
    name = arena_printf(&q->arena, "cleanrun-%s.tar", run.run);
    if (c && name)
        content_set_attachment(c, name);
    finish(q, c, &digest, run.is_private);
    return ROUTE_DONE;
}
