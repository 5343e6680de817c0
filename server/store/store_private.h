/*
 * store_private: what the files of the store share: borrowing connections, the write transaction,
 * rows of the joined statements. Private to server/store, server/ingest and server/admin*.c.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "server/store/blobs.h"
#include "server/store/db.h"
#include "server/store/store.h"

/* How many archives are being hashed by a thread of their own (spool.c). */
atomic_uint *store_pipelines(struct store *s);

/* One read transaction on a borrowed connection: everything in it sees one state. */
struct store_read {
    struct store *store;
    struct db *db;
};
/* ERR_BUSY when no connection comes free. Ended by the scope (AUTO_STORE_READ). */
int store_read_open(struct store *s, struct store_read *r, struct err *e) MUST_CHECK;
void store_read_end(struct store *s, struct db *d);
static inline void cleanup_store_read(struct store_read *r)
{
    if (r->db)
        store_read_end(r->store, r->db);
}
#define AUTO_STORE_READ __attribute__((cleanup(cleanup_store_read)))

/* The write transaction: the writer's mutex, write.lock against other processes, BEGIN IMMEDIATE.
 * Short: no verification in it. */
struct store_write {
    struct store *store;
    struct db *db; /* NULL after store_write_close */
};
int store_write_open(struct store *s, struct store_write *w, struct err *e) MUST_CHECK;
/* Commits and bumps the generation: durable when it returns 0, else everything is undone. A scope
 * that is left without it undoes everything as well (AUTO_STORE_WRITE). */
int store_write_close(struct store_write *w, struct err *e) MUST_CHECK;
void store_write_rollback(struct store *s);
static inline void cleanup_store_write(struct store_write *w)
{
    if (w->db)
        store_write_rollback(w->store);
}
#define AUTO_STORE_WRITE __attribute__((cleanup(cleanup_store_write)))

int store_data_fd(const struct store *s);
const char *store_data_path(const struct store *s);

/* Columns of RUN_COLUMNS in sql.c. */
enum run_column {
    RUN_ID,
    RUN_PROJECT,
    RUN_PROJECT_NAME,
    RUN_PRIVATE,
    RUN_RUN,
    RUN_GATE,
    RUN_CLASS,
    RUN_MODE,
    RUN_STATUS,
    RUN_COMMIT,
    RUN_DIRTY,
    RUN_ARCHIVE,
    RUN_ARCHIVE_SIZE,
    RUN_KEYID,
    RUN_STARTED,
    RUN_FINISHED,
    RUN_RECEIVED,
    RUN_VERDICT,
    RUN_DESCRIPTION,
    RUN_BASELINE,
    RUN_EXECUTABLE,
    RUN_RUNNER,
    RUN_EXPERIMENT,
    RUN_POLICY,
    RUN_REVOKED,  /* since when, when that is before the run was received; else 0 */
    RUN_DAMAGED,  /* its stored evidence was found damaged */
    RUN_RECORDED, /* the verdict as it was given */
    RUN_FINGERPRINT,
    RUN_JUDGE_REVOKED, /* since when the key behind its baseline, likewise */
};

/* Columns of BASELINE_COLUMNS. */
enum baseline_column {
    BASE_ID,
    BASE_PROJECT,
    BASE_PROJECT_NAME,
    BASE_PRIVATE,
    BASE_GATE,
    BASE_CLASS,
    BASE_RUN,
    BASE_COMMIT,
    BASE_LEGACY,
    BASE_ARCHIVE,
    BASE_MANIFEST,
    BASE_EXPERIMENT,
    BASE_POLICY,
    BASE_REVIEWER,
    BASE_REASON,
    BASE_AT,
    BASE_CURRENT,
    BASE_SUPERSEDED_BY,
    BASE_DEFINITION,
    BASE_DAMAGED,
    BASE_RETIRED, /* when; 0: it was not */
    BASE_RETIRED_BY,
    BASE_RETIRED_REASON,
    BASE_REVOKED, /* since when the key behind it, when that is before its run was received; else 0
                   */
};

/* Columns of ATTEMPT_COLUMNS. */
enum attempt_column {
    ATTEMPT_AT,
    ATTEMPT_RUN,
    ATTEMPT_CODE,
    ATTEMPT_DETAIL,
    ATTEMPT_KEYID,
    ATTEMPT_GATE,
    ATTEMPT_CLASS,
    ATTEMPT_COMMIT,
    ATTEMPT_PROJECT_NAME, /* only SQL_ATTEMPTS_NEWEST */
};

/* Opens an object that rows name, as blobs_open (rehash: blobs_open_rehash) does, and keeps what
 * was found: from then on a damaged or missing object's runs are INVALID everywhere, a sound one's
 * are not. Takes a connection and, when something changed, the write lock: not within either.
 * out_stamp may be NULL; it is not filled when rehashing. */
int store_object_open(struct store *s, const struct digest *digest, bool rehash, int *out_fd,
                      uint64_t *out_size, struct blob_stamp *out_stamp, struct err *e) MUST_CHECK;
/* Looks whether the run's object is whole, as store_object_open does. Damage is no failure, unless
 * it could not be recorded: what is read then would not say it. */
int store_run_look(struct store *s, const char *run, struct err *e) MUST_CHECK;
/* The same for the newest runs of a commit that have a verdict. */
int store_commit_look(struct store *s, const char *project, const char *commit,
                      struct err *e) MUST_CHECK;
/* Inside a write transaction: the object is sound. */
int store_damage_clear(struct db *d, const struct digest *digest, struct err *e) MUST_CHECK;

const char *store_document_kind(enum store_document kind);
int store_project_read(struct db *d, const char *name, struct store_project *out,
                       struct err *e) MUST_CHECK;
int store_run_read(struct db *d, const char *run, struct store_run *out, struct err *e) MUST_CHECK;
int store_baseline_read(struct db *d, const char *id, struct store_baseline *out,
                        struct err *e) MUST_CHECK;
/* A statement about a project's gate on a machine class (SQL_BASELINE_CURRENT, _RETIRED_LAST,
 * _STEP_DOWN), bound and not begun; the texts are borrowed. */
struct query store_gate_query(struct db *d, enum sql which, int64_t project_id, const char *gate,
                              const char *machine_class);
int store_document_read(struct db *d, const char *run, enum store_document kind, char **out,
                        size_t *out_len, struct err *e) MUST_CHECK;
/* One line in the audit log, inside a write transaction. */
int store_log_add(struct db *d, int64_t at_us, const char *actor, const char *action,
                  const char *subject, const char *detail, struct err *e) MUST_CHECK;
/* A row for a blob; *out_new: the project did not have it. */
int store_blob_put(struct store *s, int64_t project_id, const struct digest *digest, uint64_t size,
                   bool *out_new, struct err *e) MUST_CHECK;
