/*
 * db: one SQLite connection with everything prepared, and queries on it. <sqlite3.h> stays in this
 * folder. There is one writing connection per process and it writes only under the store's write
 * lock, because a checkpoint beside another connection's commit can corrupt the file (SQLite up to
 * 3.51.2): so nothing here checkpoints by itself.
 * Thread rule: one thread at a time per connection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "server/store/sql.h"

struct db;
struct sqlite3;
struct sqlite3_stmt;

enum db_kind {
    DB_WRITER, /* creates the file, may change it; a file of another program is ERR_CONFLICT */
    DB_READER, /* read-only, with an authorizer that allows nothing but reading */
};

/* path: absolute, without links. Statements are prepared by db_prepare, after migrations. */
int db_open(const char *path, enum db_kind kind, struct db **out, struct err *e) MUST_CHECK;
void db_close(struct db *d); /* accepts NULL; never checkpoints */
/* Prepares every statement of sql.h that this kind of connection may run. */
int db_prepare(struct db *d, struct err *e) MUST_CHECK;
/* Fills *e from the connection: FULL → ERR_NOSPACE, BUSY → ERR_BUSY, CONSTRAINT → ERR_CONFLICT,
 * NOMEM; else ERR_SYS. */
int db_error(struct db *d, struct err *e, const char *what);
/* Runs a constant script; stops at its first error. */
int db_script(struct db *d, const char *sql, struct err *e) MUST_CHECK;
/* First column of the first row of a constant statement, as an integer or as text (caller frees).
 */
int db_script_int(struct db *d, const char *sql, int64_t *out, struct err *e) MUST_CHECK;
int db_script_text(struct db *d, const char *sql, char **out, struct err *e) MUST_CHECK;
bool db_in_transaction(const struct db *d);
int64_t db_last_id(const struct db *d);
int64_t db_changes(const struct db *d);
/* Pages in the log after this connection's last commit. */
unsigned db_log_pages(const struct db *d);
/* Under the write lock only. A reader in the way is no error. */
int db_checkpoint(struct db *d, bool truncate, struct err *e) MUST_CHECK;
/* The handle, for migrate.c and backup.c. */
struct sqlite3 *db_handle(struct db *d);

/* A prepared statement in use: parameters are bound in order, then stepped; query_end resets it.
 * Borrowed bytes must live until then. Failures of binding stick and are told by the next step. */
struct query {
    struct db *db;
    struct sqlite3_stmt *statement;
    int bound;
    bool failed;
};
struct query query_begin(struct db *d, enum sql id);
void query_end(struct query *q); /* accepts zeroed */
#define AUTO_QUERY __attribute__((cleanup(query_end)))

void query_int(struct query *q, int64_t v);
void query_double(struct query *q, double v);
void query_text(struct query *q, const char *s);              /* NULL binds null */
void query_bytes(struct query *q, const void *p, size_t len); /* NULL binds null */
void query_digest(struct query *q, const struct digest *d);   /* NULL binds null */
void query_null(struct query *q);

int query_step(struct query *q, bool *out_row, struct err *e) MUST_CHECK;
/* A row is ERR_NOTFOUND with `what` when absent. */
int query_one(struct query *q, const char *what, struct err *e) MUST_CHECK;
/* For statements without rows. */
int query_run(struct query *q, struct err *e) MUST_CHECK;

/* Columns of the current row; borrowed until the next step. */
int64_t query_get_int(const struct query *q, int column);
double query_get_double(const struct query *q, int column);
const char *query_get_text(const struct query *q, int column); /* NULL for null */
const void *query_get_bytes(const struct query *q, int column, size_t *out_len);
bool query_get_digest(const struct query *q, int column, struct digest *out); /* false for null */
bool query_is_null(const struct query *q, int column);
/* Heap copy or NULL for null; *failed is set when memory is short, never cleared. */
char *query_copy_text(const struct query *q, int column, bool *failed);
