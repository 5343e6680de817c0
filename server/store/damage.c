/* What is known of stored objects that are no longer what they were. */
#include "base/clock.h"
#include "base/log.h"
#include "server/store/store_private.h"

#define LOOKS 64

static int is_recorded(struct store *s, const struct digest *digest, bool *out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_DAMAGE_GET);
    query_digest(&q, digest);
    return query_step(&q, out, e);
}

static int record(struct store *s, const struct digest *digest, const char *what, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};

    if (store_write_open(s, &w, e) < 0)
        return -1;
    {
        AUTO_QUERY struct query q = query_begin(w.db, SQL_DAMAGE_PUT);

        query_digest(&q, digest);
        query_int(&q, clock_realtime_us());
        query_text(&q, what);
        if (query_run(&q, e) < 0)
            return -1;
    }
    return store_write_close(&w, e);
}

int store_damage_clear(struct db *d, const struct digest *digest, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_DAMAGE_CLEAR);

    query_digest(&q, digest);
    return query_run(&q, e);
}

static int clear(struct store *s, const struct digest *digest, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};

    return store_write_open(s, &w, e) < 0 || store_damage_clear(w.db, digest, e) < 0
               ? -1
               : store_write_close(&w, e);
}

/* Keeps what was found. known: whether damage is on record, NULL: look. False, and told in the log,
 * when the record does not say it now: until the next look the row's word is a wrong one. */
static bool keep(struct store *s, const struct digest *digest, const bool *known, const char *what)
{
    char hex[DIGEST_HEX_SIZE];
    char quoted[ERR_TEXT_MAX * 2];
    struct err e = ERR_INIT;
    bool recorded = known && *known;

    if ((known || is_recorded(s, digest, &recorded, &e) == 0) && recorded == (what != NULL))
        return true;
    digest_hex(digest, hex);
    if (e.kind == ERR_NONE)
        IGNORE(what ? record(s, digest, what, &e) : clear(s, digest, &e)); /* told below */
    if (e.kind != ERR_NONE)
        log_event(LOG_ERROR, "damage", "object=%s not_recorded=%s", hex,
                  log_q(e.text, quoted, sizeof quoted));
    else if (what)
        log_event(LOG_ERROR, "damage", "object=%s found=%s", hex,
                  log_q(what, quoted, sizeof quoted));
    else
        log_event(LOG_INFO, "damage", "object=%s found=sound", hex);
    return e.kind == ERR_NONE;
}

/* What opening the object said, kept. *out_kept: the record says of a damaged one that it is; a
 * sound one that could not be recorded is INVALID until the next look. */
static int found(struct store *s, const struct digest *digest, const bool *known, int rc,
                 const struct err *why, bool *out_kept, struct err *e)
{
    *out_kept = true;
    if (rc == 0) {
        (void) keep(s, digest, known, NULL); /* see above */
        return 0;
    }
    if (why->kind == ERR_TRUST)
        *out_kept = keep(s, digest, known, why->text);
    else if (why->kind == ERR_NOTFOUND)
        *out_kept = keep(s, digest, known, "stored object is missing");
    return err_set(e, why->kind, why->code, "%s", why->text);
}

int store_object_open(struct store *s, const struct digest *digest, bool rehash, int *out_fd,
                      uint64_t *out_size, struct blob_stamp *out_stamp, struct err *e)
{
    struct err why = ERR_INIT;
    bool kept = true; /* the caller is told of the damage itself */
    int rc = rehash ? blobs_open_rehash(store_blobs(s), digest, out_fd, out_size, &why)
                    : blobs_open(store_blobs(s), digest, out_fd, out_size, out_stamp, &why);

    return found(s, digest, NULL, rc, &why, &kept, e);
}

/* recorded: what the row that names the object says of it. Damage that the record does not tell is
 * a failure: the rows would go on saying OK. */
static int look(struct store *s, const struct digest *digest, bool recorded, struct err *e)
{
    struct err why = ERR_INIT;
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    bool kept = true;
    int rc = blobs_open(store_blobs(s), digest, &fd, &size, NULL, &why);

    if (found(s, digest, &recorded, rc, &why, &kept, e) == 0)
        return 0;
    if (!kept)
        return err_set(e, ERR_SYS, "damage.unrecorded",
                       "stored evidence is damaged, and the store could not record that: %s",
                       why.text);
    return why.kind == ERR_TRUST || why.kind == ERR_NOTFOUND ? 0 : -1;
}

int store_run_look(struct store *s, const char *run, struct err *e)
{
    AUTO_STORE_RUN struct store_run row = {.id = 0};

    return store_run_get(s, run, &row, e) < 0 ? -1 : look(s, &row.archive, row.damaged, e);
}

int store_commit_look(struct store *s, const char *project, const char *commit, struct err *e)
{
    struct {
        struct digest archive;
        bool damaged;
    } newest[LOOKS]; /* a ring */
    size_t n = 0;

    {
        AUTO_STORE_READ struct store_read r = {.db = NULL};
        AUTO_QUERY struct query q = {.statement = NULL};
        struct store_project p;
        bool row = false;
        int rc;

        if (store_read_open(s, &r, e) < 0 || store_project_read(r.db, project, &p, e) < 0)
            return -1;
        q = query_begin(r.db, SQL_ARCHIVES_OF_COMMIT);
        query_int(&q, p.id);
        query_text(&q, commit);
        while ((rc = query_step(&q, &row, e)) == 0 && row) {
            if (!query_get_digest(&q, 0, &newest[n % LOOKS].archive))
                return err_set(e, ERR_INTERNAL, "damage.digest", "a run without its archive");
            newest[n++ % LOOKS].damaged = query_get_int(&q, 1) != 0;
        }
        if (rc < 0)
            return -1;
    }
    for (size_t i = 0; i < n && i < LOOKS; i++) {
        if (look(s, &newest[i].archive, newest[i].damaged, e) < 0)
            return -1;
    }
    return 0;
}

void store_scrub(struct store *s, struct digest *cursor)
{
    struct digest next = {.bytes = {0}};
    struct err ignored = ERR_INIT;
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    bool row = false;

    {
        AUTO_STORE_READ struct store_read r = {.db = NULL};
        AUTO_QUERY struct query q = {.statement = NULL};

        if (store_read_open(s, &r, &ignored) < 0)
            return;
        q = query_begin(r.db, SQL_BLOB_AFTER);
        query_digest(&q, cursor);
        if (query_step(&q, &row, &ignored) < 0 || (row && !query_get_digest(&q, 0, &next)))
            return;
    }
    *cursor = next; /* all zeros after the last: from the beginning */
    if (row)
        IGNORE(store_object_open(s, &next, false, &fd, &size, NULL, &ignored)); /* was recorded */
}
