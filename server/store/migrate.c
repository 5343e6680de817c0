#include "server/store/migrate.h"

#include <sqlite3.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"

#define NUMBER_DIGITS 4

/* "0007_x.sql" must stand at place 7. */
static int check_name(const struct embed_file *f, size_t number, struct err *e)
{
    size_t len = strlen(f->name);
    size_t n = 0;

    for (size_t i = 0; i < NUMBER_DIGITS && i < len; i++) {
        if (f->name[i] < '0' || f->name[i] > '9')
            n = number + 1;
        else
            n = n * 10 + (size_t) (f->name[i] - '0');
    }
    if (len < NUMBER_DIGITS + 6 || n != number || f->name[NUMBER_DIGITS] != '_' ||
        strcmp(f->name + len - 4, ".sql") != 0)
        return err_set(e, ERR_INTERNAL, "migrate.name",
                       "migration '%s' is not named %04zu_<name>.sql", f->name, number);
    return 0;
}

/* Compares what was applied with the files; *out_n is how many were. */
static int check_applied(struct db *d, const struct embed_table *files, size_t *out_n,
                         struct err *e)
{
    sqlite3_stmt *st = NULL;
    size_t n = 0;
    int rc = SQLITE_DONE;
    int result = 0;

    if (sqlite3_prepare_v2(db_handle(d), sql_migration_list, -1, &st, NULL) != SQLITE_OK)
        return db_error(d, e, "migrations");
    while (result == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *name = (const char *) sqlite3_column_text(st, 1);
        const void *bytes = sqlite3_column_blob(st, 2);
        const struct embed_file *f = n < files->n ? &files->files[n] : NULL;
        struct digest now;

        if (!f || sqlite3_column_int64(st, 0) != (int64_t) (n + 1)) {
            result = err_set(e, ERR_CONFLICT, "migrate.newer",
                             "the database has migration '%s', which this program does not know: "
                             "it is older than its data",
                             name ? name : "?");
            break;
        }
        now = digest_of(f->bytes, f->size);
        if (!name || strcmp(name, f->name) != 0 || !bytes ||
            sqlite3_column_bytes(st, 2) != DIGEST_SIZE ||
            memcmp(bytes, now.bytes, DIGEST_SIZE) != 0)
            result = err_set(
                e, ERR_CONFLICT, "migrate.altered",
                "migration '%s' was applied with other content than this program has in '%s'",
                name ? name : "?", f->name);
        n++;
    }
    if (result == 0 && rc != SQLITE_DONE)
        result = db_error(d, e, "migrations");
    (void) sqlite3_finalize(st); /* its error is told */
    if (result == 0)
        *out_n = n;
    return result;
}

static int record(struct db *d, const struct embed_file *f, size_t number, struct err *e)
{
    struct digest digest = digest_of(f->bytes, f->size);
    sqlite3_stmt *st = NULL;
    int rc = SQLITE_DONE;

    if (sqlite3_prepare_v2(db_handle(d), sql_migration_add, -1, &st, NULL) != SQLITE_OK)
        return db_error(d, e, "migrations");
    if (sqlite3_bind_int64(st, 1, (int64_t) number) != SQLITE_OK ||
        sqlite3_bind_text(st, 2, f->name, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_blob(st, 3, digest.bytes, DIGEST_SIZE, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_int64(st, 4, clock_realtime_us()) != SQLITE_OK)
        rc = SQLITE_ERROR;
    else
        rc = sqlite3_step(st);
    if (rc != SQLITE_DONE)
        (void) db_error(d, e, "migrations");
    (void) sqlite3_finalize(st); /* its error is told */
    return rc == SQLITE_DONE ? 0 : -1;
}

static int apply(struct db *d, const struct embed_file *f, size_t number, struct err *e)
{
    if (memchr(f->bytes, 0, f->size))
        return err_set(e, ERR_INTERNAL, "migrate.nul", "the file holds a NUL");
    if (db_script(d, sql_begin_write, e) < 0)
        return -1;
    if (db_script(d, (const char *) f->bytes, e) < 0)
        goto undo;
    if (!db_in_transaction(d))
        return err_set(e, ERR_INTERNAL, "migrate.transaction", "the file ends its own transaction");
    if (record(d, f, number, e) < 0 || db_script(d, sql_commit, e) < 0)
        goto undo;
    return 0;

undo:
    if (db_in_transaction(d)) {
        struct err ignored = ERR_INIT;

        IGNORE(db_script(d, sql_rollback, &ignored)); /* the first error is the one to tell */
    }
    return -1;
}

int migrate_run(struct db *writer, const struct embed_table *files, size_t *out_applied,
                struct err *e)
{
    size_t n = 0;
    size_t done = 0;

    for (size_t i = 0; i < files->n; i++) {
        if (check_name(&files->files[i], i + 1, e) < 0)
            return -1;
    }
    if (db_script(writer, sql_migrations, e) < 0 || check_applied(writer, files, &n, e) < 0)
        return -1;
    for (size_t i = n; i < files->n; i++) {
        if (apply(writer, &files->files[i], i + 1, e) < 0)
            return err_wrap(e, "migration '%s'", files->files[i].name);
        done++;
    }
    *out_applied = done;
    return 0;
}
