#include "server/store/db.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

#define APPLICATION_ID 1129075278 /* "CLRN"; sql_application_id_set says the same */
#define BUSY_MS 5000

struct db {
    sqlite3 *handle;
    enum db_kind kind;
    unsigned log_pages;
    sqlite3_stmt *statements[SQL_MAX];
};

int db_error(struct db *d, struct err *e, const char *what)
{
    int code = d->handle ? sqlite3_extended_errcode(d->handle) : SQLITE_NOMEM;
    const char *text = d->handle ? sqlite3_errmsg(d->handle) : "out of memory";

    switch (code & 0xff) {
    case SQLITE_FULL:
        return err_set(e, ERR_NOSPACE, "db.full", "%s: %s", what, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(e, ERR_BUSY, "db.busy", "%s: %s", what, text);
    case SQLITE_CONSTRAINT:
        return err_set(e, ERR_CONFLICT, "db.constraint", "%s: %s (%d)", what, text, code);
    case SQLITE_NOMEM:
        return err_set(e, ERR_NOMEM, "db.memory", "%s: %s", what, text);
    case SQLITE_IOERR:
        if (sqlite3_system_errno(d->handle) == ENOSPC || sqlite3_system_errno(d->handle) == EDQUOT)
            return err_set(e, ERR_NOSPACE, "db.full", "%s: %s", what, text);
        break;
    default:
        break;
    }
    return err_set(e, ERR_SYS, "db.sqlite", "%s: %s (%d)", what, text, code);
}

/* Readers may look and nothing else, whatever text reaches them. */
static int allow_reading(void *ctx, int action, const char *a, const char *b, const char *database,
                         const char *trigger)
{
    (void) ctx;
    (void) a;
    (void) database;
    (void) trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
    case SQLITE_TRANSACTION:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return b && strcmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

static int allow_writing(void *ctx, int action, const char *a, const char *b, const char *database,
                         const char *trigger)
{
    (void) ctx;
    (void) a;
    (void) database;
    (void) trigger;
    switch (action) {
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_TRIGGER:
        return SQLITE_DENY;
    case SQLITE_FUNCTION:
        return b && strcmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_OK;
    }
}

static int note_log_pages(void *ctx, sqlite3 *handle, const char *database, int pages)
{
    struct db *d = (struct db *) ctx;

    (void) handle;
    (void) database;
    d->log_pages = pages > 0 ? (unsigned) pages : 0;
    return SQLITE_OK;
}

static int configure(struct db *d, struct err *e)
{
    static const struct {
        int option;
        int value;
    } options[] = {
        {SQLITE_DBCONFIG_DQS_DML, 0},          {SQLITE_DBCONFIG_DQS_DDL, 0},
        {SQLITE_DBCONFIG_DEFENSIVE, 1},        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_FKEY, 1},      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 1},
        {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1}, {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        int is = -1;

        if (sqlite3_db_config(d->handle, options[i].option, options[i].value, &is) != SQLITE_OK ||
            is != options[i].value)
            return err_set(e, ERR_INTERNAL, "db.config", "SQLite does not take option %d",
                           options[i].option);
    }
    (void) sqlite3_limit(d->handle, SQLITE_LIMIT_LENGTH, (int) LIMIT_MIB(64));
    (void) sqlite3_limit(d->handle, SQLITE_LIMIT_ATTACHED, d->kind == DB_WRITER ? 1 : 0);
    if (sqlite3_busy_timeout(d->handle, BUSY_MS) != SQLITE_OK)
        return db_error(d, e, "cannot set the time-out");
    return db_script(d, sql_pragmas, e);
}

/* A file that is neither new nor ours is left alone. */
static int check_application(struct db *d, struct err *e)
{
    int64_t id = 0;
    int64_t tables = 0;

    if (db_script_int(d, sql_application_id, &id, e) < 0)
        return -1;
    if (id == APPLICATION_ID)
        return 0;
    if (db_script_int(d, sql_table_count, &tables, e) < 0)
        return -1;
    if (id != 0 || tables != 0)
        return err_set(e, ERR_CONFLICT, "db.foreign",
                       "the database belongs to another program (application id %lld)",
                       (long long) id);
    return db_script(d, sql_application_id_set, e);
}

static int set_up_writer(struct db *d, struct err *e)
{
    AUTO_FREE char *mode = NULL;

    if (check_application(d, e) < 0)
        return -1;
    if (db_script_text(d, sql_journal_mode, &mode, e) < 0)
        return -1;
    if (strcmp(mode, "wal") != 0)
        return err_set(e, ERR_SYS, "db.wal",
                       "the file system does not support write-ahead logging (mode '%s')", mode);
    (void) sqlite3_wal_hook(d->handle, note_log_pages, d);
    return db_script(d, sql_pragmas_writer, e);
}

int db_open(const char *path, enum db_kind kind, struct db **out, struct err *e)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW |
                SQLITE_OPEN_PRIVATECACHE;
    struct db *d = calloc(1, sizeof *d);

    if (!d)
        return err_memory(e, "db.memory");
    d->kind = kind;
    flags |= kind == DB_WRITER ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    if (sqlite3_open_v2(path, &d->handle, flags, NULL) != SQLITE_OK) {
        (void) db_error(d, e, "cannot open the database");
        db_close(d);
        return -1;
    }
    if (configure(d, e) < 0 || (kind == DB_WRITER && set_up_writer(d, e) < 0) ||
        sqlite3_set_authorizer(d->handle, kind == DB_WRITER ? allow_writing : allow_reading,
                               NULL) != SQLITE_OK) {
        db_close(d);
        return -1;
    }
    *out = d;
    return 0;
}

void db_close(struct db *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < SQL_MAX; i++)
        (void) sqlite3_finalize(d->statements[i]); /* tells the last step's error once more */
    (void) sqlite3_close_v2(d->handle);            /* cannot fail without open statements */
    free(d);
}

int db_prepare(struct db *d, struct err *e)
{
    for (unsigned i = 0; i < SQL_MAX; i++) {
        const struct sql_statement *s = sql_get((enum sql) i);
        const char *tail = NULL;

        if (d->statements[i] || (s->writes && d->kind != DB_WRITER))
            continue;
        if (sqlite3_prepare_v3(d->handle, s->text, -1, SQLITE_PREPARE_PERSISTENT, &d->statements[i],
                               &tail) != SQLITE_OK) {
            (void) db_error(d, e, "cannot prepare");
            return err_wrap(e, "statement %u", i);
        }
        if (tail && *tail)
            return err_set(e, ERR_INTERNAL, "db.tail", "statement %u has text after its end", i);
    }
    return 0;
}

int db_script(struct db *d, const char *sql, struct err *e)
{
    if (sqlite3_exec(d->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        return db_error(d, e, "database");
    return 0;
}

static int script_row(struct db *d, const char *sql, sqlite3_stmt **out, struct err *e)
{
    sqlite3_stmt *st = NULL;

    if (sqlite3_prepare_v2(d->handle, sql, -1, &st, NULL) != SQLITE_OK)
        return db_error(d, e, "database");
    if (sqlite3_step(st) != SQLITE_ROW) {
        (void) db_error(d, e, "database");
        (void) sqlite3_finalize(st); /* its error is told */
        return -1;
    }
    *out = st;
    return 0;
}

int db_script_int(struct db *d, const char *sql, int64_t *out, struct err *e)
{
    sqlite3_stmt *st = NULL;

    if (script_row(d, sql, &st, e) < 0)
        return -1;
    *out = sqlite3_column_int64(st, 0);
    (void) sqlite3_finalize(st); /* the row is read */
    return 0;
}

int db_script_text(struct db *d, const char *sql, char **out, struct err *e)
{
    sqlite3_stmt *st = NULL;
    const char *text;

    if (script_row(d, sql, &st, e) < 0)
        return -1;
    text = (const char *) sqlite3_column_text(st, 0);
    *out = strdup(text ? text : "");
    (void) sqlite3_finalize(st); /* the row is read */
    return *out ? 0 : err_memory(e, "db.memory");
}

bool db_in_transaction(const struct db *d)
{
    return !sqlite3_get_autocommit(d->handle);
}

int64_t db_last_id(const struct db *d)
{
    return sqlite3_last_insert_rowid(d->handle);
}

int64_t db_changes(const struct db *d)
{
    return sqlite3_changes64(d->handle);
}

unsigned db_log_pages(const struct db *d)
{
    return d->log_pages;
}

int db_checkpoint(struct db *d, bool truncate, struct err *e)
{
    int rc = sqlite3_wal_checkpoint_v2(
        d->handle, NULL, truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, NULL,
        NULL);

    if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED)
        return 0; /* a reader is in the way: the next one will do it */
    if (rc != SQLITE_OK)
        return db_error(d, e, "checkpoint");
    if (truncate)
        d->log_pages = 0;
    return 0;
}

struct sqlite3 *db_handle(struct db *d)
{
    return d->handle;
}

struct query query_begin(struct db *d, enum sql id)
{
    sqlite3_stmt *st = d->statements[id];

    assert(st && !sqlite3_stmt_busy(st));
    return (struct query){.db = d, .statement = st};
}

void query_end(struct query *q)
{
    if (!q->statement)
        return;
    (void) sqlite3_reset(q->statement); /* repeats the step's error, which is told */
    (void) sqlite3_clear_bindings(q->statement);
    q->statement = NULL;
}

void query_int(struct query *q, int64_t v)
{
    q->failed |= sqlite3_bind_int64(q->statement, ++q->bound, v) != SQLITE_OK;
}

void query_double(struct query *q, double v)
{
    q->failed |= sqlite3_bind_double(q->statement, ++q->bound, v) != SQLITE_OK;
}

void query_text(struct query *q, const char *s)
{
    ++q->bound;
    if (s)
        q->failed |= sqlite3_bind_text64(q->statement, q->bound, s, strlen(s), SQLITE_STATIC,
                                         SQLITE_UTF8) != SQLITE_OK;
    else
        q->failed |= sqlite3_bind_null(q->statement, q->bound) != SQLITE_OK;
}

void query_bytes(struct query *q, const void *p, size_t len)
{
    ++q->bound;
    if (p)
        q->failed |=
            sqlite3_bind_blob64(q->statement, q->bound, p, len, SQLITE_STATIC) != SQLITE_OK;
    else
        q->failed |= sqlite3_bind_null(q->statement, q->bound) != SQLITE_OK;
}

void query_digest(struct query *q, const struct digest *d)
{
    query_bytes(q, d ? d->bytes : NULL, DIGEST_SIZE);
}

void query_null(struct query *q)
{
    query_bytes(q, NULL, 0);
}

int query_step(struct query *q, bool *out_row, struct err *e)
{
    int rc;

    if (q->failed)
        return db_error(q->db, e, "cannot bind");
    assert(q->bound == sqlite3_bind_parameter_count(q->statement));
    rc = sqlite3_step(q->statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return db_error(q->db, e, "database");
    *out_row = rc == SQLITE_ROW;
    return 0;
}

int query_one(struct query *q, const char *what, struct err *e)
{
    bool row = false;

    if (query_step(q, &row, e) < 0)
        return -1;
    return row ? 0 : err_set(e, ERR_NOTFOUND, "store.absent", "there is no %s", what);
}

int query_run(struct query *q, struct err *e)
{
    bool row = false;

    if (query_step(q, &row, e) < 0)
        return -1;
    assert(!row);
    return 0;
}

int64_t query_get_int(const struct query *q, int column)
{
    return sqlite3_column_int64(q->statement, column);
}

double query_get_double(const struct query *q, int column)
{
    return sqlite3_column_double(q->statement, column);
}

const char *query_get_text(const struct query *q, int column)
{
    return (const char *) sqlite3_column_text(q->statement, column);
}

const void *query_get_bytes(const struct query *q, int column, size_t *out_len)
{
    const void *p = sqlite3_column_blob(q->statement, column);

    *out_len = (size_t) sqlite3_column_bytes(q->statement, column);
    return p;
}

bool query_get_digest(const struct query *q, int column, struct digest *out)
{
    size_t len = 0;
    const void *p = query_get_bytes(q, column, &len);

    if (!p || len != DIGEST_SIZE)
        return false;
    memcpy(out->bytes, p, DIGEST_SIZE);
    return true;
}

bool query_is_null(const struct query *q, int column)
{
    return sqlite3_column_type(q->statement, column) == SQLITE_NULL;
}

char *query_copy_text(const struct query *q, int column, bool *failed)
{
    const char *s = query_get_text(q, column);
    char *copy;

    if (!s) {
        *failed |= !query_is_null(q, column);
        return NULL;
    }
    copy = strdup(s);
    *failed |= !copy;
    return copy;
}
