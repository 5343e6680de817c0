/* Collecting and copying. */
#include "server/store/upkeep.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "server/store/store_private.h"

#define US_PER_S 1000000
#define BATCH 256
#define DATABASE "cleanrun.db"
#define KEY_FILE "server-key.pem"

/* gc and backup: one at a time, whatever process. */
static int take_lock(struct store *s, int *out_fd, struct err *e)
{
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    AUTO_FD int fd =
        openat(store_data_fd(s), "upkeep.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_errno(e, "upkeep.lock", "cannot open upkeep.lock");
    if (fcntl(fd, F_OFD_SETLK, &fl) < 0)
        return err_set(e, ERR_BUSY, "upkeep.locked", "another gc or backup is running");
    *out_fd = fd_steal(&fd);
    return 0;
}

/* Collecting. */

struct doomed {
    int64_t project;
    struct digest digest;
    uint64_t size;
};

static int list_doomed(struct db *d, int64_t before_us, struct doomed *out, size_t *out_n,
                       struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BLOB_COLLECTABLE);
    bool row = false;
    int rc;

    *out_n = 0;
    query_int(&q, before_us);
    query_int(&q, BATCH);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        struct doomed *one = &out[*out_n];

        one->project = query_get_int(&q, 0);
        one->size = (uint64_t) query_get_int(&q, 2);
        if (!query_get_digest(&q, 1, &one->digest))
            return err_set(e, ERR_INTERNAL, "gc.digest", "a stored digest has another length");
        (*out_n)++;
    }
    return rc;
}

static int delete_row(struct db *d, const struct doomed *one, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BLOB_DELETE);

    query_int(&q, one->project);
    query_digest(&q, &one->digest);
    return query_run(&q, e);
}

static int delete_rows(struct store *s, int64_t before_us, struct doomed *list, size_t *out_n,
                       struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};

    if (store_write_open(s, &w, e) < 0 || list_doomed(w.db, before_us, list, out_n, e) < 0)
        return -1;
    for (size_t i = 0; i < *out_n; i++) {
        if (delete_row(w.db, &list[i], e) < 0)
            return -1;
    }
    return store_write_close(&w, e);
}

static int holders(struct db *d, const struct digest *digest, int64_t *out, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BLOB_HOLDERS);

    query_digest(&q, digest);
    if (query_one(&q, "count", e) < 0)
        return -1;
    *out = query_get_int(&q, 0);
    return 0;
}

/* After the rows are gone for good: a file goes only while nobody can add a row for it. */
static int remove_object(struct store *s, const struct digest *digest, bool *out_removed,
                         struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    int64_t n = 0;

    if (store_write_open(s, &w, e) < 0 || holders(w.db, digest, &n, e) < 0)
        return -1;
    *out_removed = n == 0;
    return n == 0 ? blobs_remove(store_blobs(s), digest, e)
                  : 0; /* nothing was written: the end undoes nothing */
}

static int collect_rows(struct store *s, int64_t before_us, struct upkeep_gc *gc, struct err *e)
{
    AUTO_FREE struct doomed *list = calloc(BATCH, sizeof *list);
    size_t n = BATCH;

    if (!list)
        return err_memory(e, "gc.memory");
    while (n == BATCH) {
        if (delete_rows(s, before_us, list, &n, e) < 0)
            return -1;
        for (size_t i = 0; i < n; i++) {
            bool removed = false;

            if (remove_object(s, &list[i].digest, &removed, e) < 0)
                return -1;
            gc->blobs++;
            gc->objects += removed;
            gc->bytes += removed ? list[i].size : 0;
        }
    }
    return 0;
}

static int count_rows(struct store *s, int64_t before_us, struct upkeep_gc *gc, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    bool row = false;
    int rc;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_BLOB_COLLECTABLE);
    query_int(&q, before_us);
    query_int(&q, INT64_MAX);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        gc->blobs++;
        gc->objects++;
        gc->bytes += (uint64_t) query_get_int(&q, 2);
    }
    return rc;
}

struct sweep {
    struct store *store;
    struct upkeep_gc *gc;
    bool dry_run;
    uint64_t keep_s;
};

/* Objects that no project holds: left by a server that was killed between rename and transaction.
 */
static int sweep_one(void *ctx, const struct digest *digest, const char *name, struct err *e)
{
    struct sweep *w = (struct sweep *) ctx;
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    bool removed = w->dry_run;
    int64_t n = 0;

    (void) name;
    if (!digest || blobs_age_s(store_blobs(w->store), digest) < w->keep_s)
        return 0;
    if (store_read_open(w->store, &r, e) < 0 || holders(r.db, digest, &n, e) < 0)
        return -1;
    if (n != 0)
        return 0;
    if (!w->dry_run && remove_object(w->store, digest, &removed, e) < 0)
        return -1;
    w->gc->objects += removed;
    return 0;
}

int upkeep_gc(struct store *s, bool dry_run, int64_t keep_s, struct upkeep_gc *out, struct err *e)
{
    struct upkeep_gc gc = {.blobs = 0};
    struct sweep sweep = {.store = s, .gc = &gc, .dry_run = dry_run, .keep_s = (uint64_t) keep_s};
    int64_t before_us = clock_realtime_us() - keep_s * US_PER_S;
    AUTO_FD int lock = -1;

    if (take_lock(s, &lock, e) < 0)
        return -1;
    if ((dry_run ? count_rows(s, before_us, &gc, e) : collect_rows(s, before_us, &gc, e)) < 0)
        return -1;
    if (blobs_each(store_blobs(s), sweep_one, &sweep, e) < 0)
        return -1;
    *out = gc;
    return 0;
}

/* Copying. */

static int is_empty(int dirfd, bool *out, struct err *e)
{
    AUTO_FILE_LIST struct file_list list = {.names = NULL};

    if (file_list_all_at(dirfd, 1, &list, e) < 0) {
        if (e->kind != ERR_LIMIT)
            return -1;
        *out = false;
        return 0;
    }
    *out = list.n == 0;
    return 0;
}

/* Makes the directory, or takes an empty one. */
static int open_empty(const char *dir, int *out_fd, struct err *e)
{
    AUTO_FD int fd = -1;
    bool empty = false;

    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "upkeep.mkdir", "cannot make '%s'", dir);
    if (file_open_dir(dir, &fd, e) < 0 || is_empty(fd, &empty, e) < 0)
        return -1;
    if (!empty)
        return err_set(e, ERR_CONFLICT, "upkeep.full", "'%s' is not empty", dir);
    *out_fd = fd_steal(&fd);
    return 0;
}

/* One consistent, compact file; a reader does it, so the server keeps working. */
static int copy_database(struct store *s, const char *dir, struct err *e)
{
    AUTO_BUF struct buf from = {.data = NULL};
    AUTO_BUF struct buf to = {.data = NULL};
    sqlite3 *handle = NULL;
    sqlite3_stmt *st = NULL;
    int rc;

    buf_init(&from, LIMIT_URL * 4);
    buf_init(&to, LIMIT_URL * 4);
    buf_printf(&from, "%s/" DATABASE, store_data_path(s));
    buf_printf(&to, "%s/" DATABASE, dir);
    if (buf_check(&from, e) < 0 || buf_check(&to, e) < 0)
        return -1;
    rc = sqlite3_open_v2(from.data, &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(handle, sql_vacuum_into, -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(st, 1, to.data, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK && sqlite3_step(st) != SQLITE_DONE)
        rc = SQLITE_ERROR;
    if (rc != SQLITE_OK)
        (void) err_set(e, ERR_SYS, "backup.database", "cannot copy the database: %s",
                       sqlite3_errmsg(handle));
    (void) sqlite3_finalize(st); /* its error is told */
    (void) sqlite3_close_v2(handle);
    return rc == SQLITE_OK ? 0 : -1;
}

static int check_database(const char *dir, struct db **out, struct err *e)
{
    AUTO_BUF struct buf path = {.data = NULL};
    AUTO_FREE char *real = realpath(dir, NULL);
    AUTO_FREE char *said = NULL;
    struct db *d = NULL;

    if (!real)
        return err_errno(e, "upkeep.path", "'%s'", dir);
    buf_init(&path, LIMIT_URL * 4);
    buf_printf(&path, "%s/" DATABASE, real);
    if (buf_check(&path, e) < 0 || db_open(path.data, DB_WRITER, &d, e) < 0)
        return -1;
    if (db_script_text(d, sql_integrity_check, &said, e) < 0 || db_prepare(d, e) < 0) {
        db_close(d);
        return -1;
    }
    if (strcmp(said, "ok") != 0) {
        db_close(d);
        return err_set(e, ERR_TRUST, "upkeep.corrupt", "the copied database is damaged: %s", said);
    }
    *out = d;
    return 0;
}

/* "objects/ab/cdef…" */
static int object_path(const struct digest *digest, char out[DIGEST_HEX_SIZE + 16])
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(digest, hex);
    return snprintf(out, DIGEST_HEX_SIZE + 16, "objects/%.2s/%s", hex, hex + 2);
}

static int copy_object(int from, int to, const struct digest *digest, struct err *e)
{
    char path[DIGEST_HEX_SIZE + 16];
    char shelf[16];
    AUTO_FD int fd = -1;
    struct digest copied;
    uint64_t size = 0;

    (void) object_path(digest, path);
    (void) snprintf(shelf, sizeof shelf, "%.10s", path);
    if (file_mkdirs_at(to, shelf, 0700, e) < 0 || file_copy_at(from, path, to, path, 0400, e) < 0 ||
        file_open_at(to, path, &fd, &size, e) < 0 || digest_of_fd(fd, &copied, &size, e) < 0)
        return err_wrap(e, "%s", path);
    if (!digest_equal(&copied, digest))
        return err_set(e, ERR_TRUST, "upkeep.damaged", "%s does not have the SHA-256 of its name",
                       path);
    return 0;
}

/* Every object that the copied database names. */
static int copy_objects(struct db *d, int from, int to, uint64_t *out_n, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BLOB_LIST);
    struct digest last = {.bytes = {0}};
    bool row = false;
    int rc;

    *out_n = 0;
    if (file_mkdirs_at(to, "objects", 0700, e) < 0)
        return -1;
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        struct digest digest;

        if (!query_get_digest(&q, 0, &digest))
            return err_set(e, ERR_INTERNAL, "upkeep.digest", "a stored digest has another length");
        if (*out_n > 0 && digest_equal(&digest, &last))
            continue; /* held by several projects */
        if (copy_object(from, to, &digest, e) < 0)
            return -1;
        last = digest;
        (*out_n)++;
    }
    return rc;
}

static int copy_key(int from, int to, struct err *e)
{
    struct stat st;

    if (fstatat(from, KEY_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_errno(e, "upkeep.key", "cannot look at " KEY_FILE);
    return file_copy_at(from, KEY_FILE, to, KEY_FILE, 0600, e);
}

/* SQLite's helper files do not belong to a copy at rest. */
static int drop_log(struct db *d, int dirfd, struct err *e)
{
    int rc = db_checkpoint(d, true, e);

    db_close(d);
    if (rc == 0) {
        (void) unlinkat(dirfd, DATABASE "-wal", 0); /* empty after the checkpoint */
        (void) unlinkat(dirfd, DATABASE "-shm", 0);
        rc = file_sync_dir(dirfd, e);
    }
    return rc;
}

int upkeep_backup(struct store *s, const char *dir, uint64_t *out_objects, struct err *e)
{
    struct db *d = NULL;
    AUTO_FD int lock = -1;
    AUTO_FD int to = -1;

    if (take_lock(s, &lock, e) < 0 || open_empty(dir, &to, e) < 0 || copy_database(s, dir, e) < 0 ||
        check_database(dir, &d, e) < 0)
        return -1;
    if (copy_objects(d, store_data_fd(s), to, out_objects, e) < 0 ||
        copy_key(store_data_fd(s), to, e) < 0) {
        db_close(d);
        return -1;
    }
    return drop_log(d, to, e);
}

int upkeep_restore(const char *dir, const char *data, uint64_t *out_objects, struct err *e)
{
    struct db *d = NULL;
    AUTO_FD int from = -1;
    AUTO_FD int to = -1;

    if (file_open_dir(dir, &from, e) < 0 || open_empty(data, &to, e) < 0 ||
        file_copy_at(from, DATABASE, to, DATABASE, 0600, e) < 0 || check_database(data, &d, e) < 0)
        return -1;
    if (copy_objects(d, from, to, out_objects, e) < 0 || copy_key(from, to, e) < 0) {
        db_close(d);
        return -1;
    }
    return drop_log(d, to, e);
}
