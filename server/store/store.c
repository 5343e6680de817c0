#include "server/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "server/store/migrate.h"
#include "server/store/store_private.h"
#include "tools/embed.h"

#define KEY_FILE "server-key.pem"
#define READERS_MAX 64
#define LOCK_WAIT_NS 10000000000 /* a command holds the lock for milliseconds */
#define LOCK_STEP_NS 1000000
#define READER_WAIT_S 20
#define CHECKPOINT_PAGES 500 /* 2 MB of log */

struct store {
    char *path; /* absolute, without links */
    int data_fd;
    int serve_lock_fd;
    int write_lock_fd;
    enum store_mode mode;
    pthread_mutex_t write_lock; /* writer, and write_lock_fd for other processes */
    struct db *writer;
    pthread_mutex_t pool_lock; /* readers, n_free */
    pthread_cond_t pool_ready;
    struct db *readers[READERS_MAX];
    struct db *free_readers[READERS_MAX];
    size_t n_readers;
    size_t n_free;
    struct blobs *blobs;
    struct private_key *key;
    char *base_url;
    atomic_uint pipelines; /* large archives being received, see spool.c */
};

/* An advisory lock of this open file; other processes and other opens of this one are kept out. */
static int lock_file(int fd, int type, bool wait, const char *what, struct err *e)
{
    struct flock fl = {.l_type = (short) type, .l_whence = SEEK_SET};
    const struct timespec step = {.tv_nsec = LOCK_STEP_NS};
    uint64_t until = clock_monotonic_ns() + LOCK_WAIT_NS;

    while (fcntl(fd, F_OFD_SETLK, &fl) < 0) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return err_errno(e, "store.lock", "cannot lock %s", what);
        if (!wait || clock_monotonic_ns() > until)
            return err_set(e, ERR_BUSY, "store.locked", "%s is held by another process", what);
        (void) nanosleep(&step, NULL); /* an early wake-up only tries again */
    }
    return 0;
}

static int open_lock(int data_fd, const char *name, int *out_fd, struct err *e)
{
    int fd = openat(data_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_errno(e, "store.lock", "cannot open %s", name);
    *out_fd = fd;
    return 0;
}

int store_write_open(struct store *s, struct store_write *w, struct err *e)
{
    (void) pthread_mutex_lock(&s->write_lock); /* a plain mutex */
    if (lock_file(s->write_lock_fd, F_WRLCK, true, "the data directory's write.lock", e) < 0) {
        (void) pthread_mutex_unlock(&s->write_lock);
        return -1;
    }
    if (db_script(s->writer, sql_begin_write, e) < 0) {
        store_write_rollback(s);
        return -1;
    }
    *w = (struct store_write){.store = s, .db = s->writer};
    return 0;
}

static void release_write(struct store *s)
{
    struct err ignored = ERR_INIT;

    IGNORE(lock_file(s->write_lock_fd, F_UNLCK, false, "write.lock",
                     &ignored)); /* unlocking an own lock */
    (void) pthread_mutex_unlock(&s->write_lock);
}

void store_write_rollback(struct store *s)
{
    struct err ignored = ERR_INIT;

    if (db_in_transaction(s->writer))
        IGNORE(db_script(s->writer, sql_rollback,
                         &ignored)); /* SQLite undoes it at the latest on close */
    release_write(s);
}

int store_write_close(struct store_write *w, struct err *e)
{
    struct store *s = w->store;
    struct query bump = query_begin(s->writer, SQL_GENERATION_BUMP);
    int rc = query_run(&bump, e);

    w->db = NULL;
    query_end(&bump);
    if (rc < 0 || db_script(s->writer, sql_commit, e) < 0) {
        store_write_rollback(s);
        return -1;
    }
    if (s->mode == STORE_SERVE && db_log_pages(s->writer) >= CHECKPOINT_PAGES) {
        struct err ignored = ERR_INIT;

        IGNORE(db_checkpoint(s->writer, false,
                             &ignored)); /* the commit stands; the next one tries again */
    }
    release_write(s);
    return 0;
}

void store_idle(struct store *s)
{
    struct err ignored = ERR_INIT;

    if (s->mode != STORE_SERVE || pthread_mutex_trylock(&s->write_lock) != 0)
        return;
    if (db_log_pages(s->writer) > 0 &&
        lock_file(s->write_lock_fd, F_WRLCK, false, "write.lock", &ignored) == 0) {
        IGNORE(db_checkpoint(s->writer, true, &ignored)); /* the next idle moment tries again */
        release_write(s);
        return;
    }
    (void) pthread_mutex_unlock(&s->write_lock);
}

static int run_statement(struct db *d, enum sql id, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, id);

    return query_run(&q, e);
}

int store_read_open(struct store *s, struct store_read *r, struct err *e)
{
    struct timespec until;
    struct db *d = NULL;
    int rc = 0;

    (void) clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail */
    until.tv_sec += READER_WAIT_S;
    (void) pthread_mutex_lock(&s->pool_lock);
    while (s->n_free == 0 && rc == 0)
        rc = pthread_cond_timedwait(&s->pool_ready, &s->pool_lock, &until);
    if (s->n_free > 0)
        d = s->free_readers[--s->n_free];
    (void) pthread_mutex_unlock(&s->pool_lock);
    if (!d)
        return err_set(e, ERR_BUSY, "store.readers", "every database connection is in use");
    if (run_statement(d, SQL_READ_BEGIN, e) < 0) {
        store_read_end(s, d);
        return -1;
    }
    *r = (struct store_read){.store = s, .db = d};
    return 0;
}

void store_read_end(struct store *s, struct db *d)
{
    struct err ignored = ERR_INIT;

    if (db_in_transaction(d))
        IGNORE(run_statement(d, SQL_READ_END, &ignored)); /* nothing was written */
    (void) pthread_mutex_lock(&s->pool_lock);
    s->free_readers[s->n_free++] = d;
    (void) pthread_cond_signal(&s->pool_ready);
    (void) pthread_mutex_unlock(&s->pool_lock);
}

/* Whose directory it is decides, not what the call was: says so when errno is EACCES. */
static int refused(const char *data, const char *what, struct err *e)
{
    if (errno == EROFS)
        return err_set(e, ERR_SYS, "store.permission", "%s '%s': its file system is read-only",
                       what, data);
    return errno == EACCES
               ? err_set(e, ERR_SYS, "store.permission",
                         "%s '%s': no permission; run this as the user who owns the data", what,
                         data)
               : -1;
}

/* What is ours is opened without following links, so that whoever may write one leads nobody away;
 * said here once, with the way out. */
static int refuse_links(int data_fd, const char *data, struct err *e)
{
    static const char *const ours[] = {"cleanrun.db", "cleanrun.db-wal", "cleanrun.db-shm",
                                       "objects",     "spool",           "serve.lock",
                                       "write.lock",  "upkeep.lock"};
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (fstatat(data_fd, ours[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
            return err_set(e, ERR_INPUT, "store.link",
                           "'%s/%s' is a symbolic link, and none is followed in a data directory: "
                           "put the whole directory elsewhere, or mount a file system there",
                           data, ours[i]);
    }
    return 0;
}

static int open_directory(struct store *s, const char *data, struct err *e)
{
    if (mkdir(data, 0700) < 0 && errno != EEXIST) {
        (void) err_errno(e, "store.mkdir", "cannot make the data directory '%s'", data);
        return refused(data, "cannot make or look into the data directory", e);
    }
    s->path = realpath(data, NULL);
    if (!s->path)
        return err_errno(e, "store.path", "data directory '%s'", data);
    if (file_open_dir(s->path, &s->data_fd, e) < 0)
        return refused(data, "cannot look into the data directory", e);
    if (refuse_links(s->data_fd, s->path, e) < 0)
        return -1;
    if (s->mode == STORE_SERVE) {
        if (open_lock(s->data_fd, "serve.lock", &s->serve_lock_fd, e) < 0)
            return refused(data, "cannot write in the data directory", e);
        if (lock_file(s->serve_lock_fd, F_WRLCK, false, "serve.lock", e) < 0)
            return err_wrap(e, "another server runs on '%s'", s->path);
    }
    if (open_lock(s->data_fd, "write.lock", &s->write_lock_fd, e) < 0)
        return refused(data, "cannot write in the data directory", e);
    return 0;
}

static int quick_check(struct db *d, struct err *e)
{
    AUTO_FREE char *said = NULL;

    if (db_script_text(d, sql_quick_check, &said, e) < 0)
        return -1;
    return strcmp(said, "ok") == 0
               ? 0
               : err_set(e, ERR_TRUST, "db.corrupt", "the database is damaged: %s", said);
}

/* Opening, checking and migrating change the file, so nobody else may write meanwhile. */
static int open_writer(struct store *s, const char *path, struct err *e)
{
    size_t applied = 0;
    int rc = -1;

    if (lock_file(s->write_lock_fd, F_WRLCK, true, "the data directory's write.lock", e) < 0)
        return -1;
    if (db_open(path, DB_WRITER, &s->writer, e) == 0 &&
        (s->mode != STORE_SERVE || quick_check(s->writer, e) == 0) &&
        migrate_run(s->writer, &embed_migrations, &applied, e) == 0 &&
        db_prepare(s->writer, e) == 0)
        rc = 0;
    if (rc == 0 && s->mode == STORE_SERVE &&
        db_checkpoint(s->writer, true, e) < 0) /* what a killed server left */
        rc = -1;
    if (rc == 0 && file_sync_dir(s->data_fd, e) < 0)
        rc = -1;
    if (lock_file(s->write_lock_fd, F_UNLCK, false, "write.lock", e) < 0)
        rc = -1;
    return rc;
}

static int open_database(struct store *s, unsigned readers, struct err *e)
{
    AUTO_BUF struct buf path = {.data = NULL};

    buf_init(&path, LIMIT_URL * 4);
    buf_printf(&path, "%s/cleanrun.db", s->path);
    if (buf_check(&path, e) < 0 || open_writer(s, path.data, e) < 0)
        return -1;
    if (readers == 0)
        readers = 1;
    if (readers > READERS_MAX)
        readers = READERS_MAX;
    while (s->n_readers < readers) {
        struct db *d = NULL;

        if (db_open(path.data, DB_READER, &d, e) < 0)
            return -1;
        s->readers[s->n_readers++] = d;
        if (db_prepare(d, e) < 0)
            return -1;
        s->free_readers[s->n_free++] = d;
    }
    return 0;
}

static int make_key(struct store *s, struct err *e)
{
    AUTO_FREE char *pem = NULL;

    if (private_key_generate(&s->key, e) < 0 || private_key_write(s->key, &pem, e) < 0)
        return -1;
    if (file_create_at(s->data_fd, KEY_FILE, pem, strlen(pem), 0600, e) < 0)
        return -1;
    return 0;
}

static int open_key(struct store *s, struct err *e)
{
    AUTO_BUF struct buf path = {.data = NULL};
    struct stat st;

    if (fstatat(s->data_fd, KEY_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT)
            return err_errno(e, "store.key", "cannot look at " KEY_FILE);
        return s->mode == STORE_SERVE ? make_key(s, e) : 0;
    }
    buf_init(&path, LIMIT_URL * 4);
    buf_printf(&path, "%s/" KEY_FILE, s->path);
    if (buf_check(&path, e) < 0)
        return -1;
    return private_key_load(path.data, &s->key, e);
}

static int init_locks(struct store *s, struct err *e)
{
    pthread_condattr_t attr;

    if (pthread_condattr_init(&attr) != 0 ||
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) != 0 ||
        pthread_mutex_init(&s->write_lock, NULL) != 0 ||
        pthread_mutex_init(&s->pool_lock, NULL) != 0 ||
        pthread_cond_init(&s->pool_ready, &attr) != 0)
        return err_memory(e, "store.memory");
    (void) pthread_condattr_destroy(&attr); /* always succeeds on Linux */
    return 0;
}

int store_open(const char *data, enum store_mode mode, unsigned readers, struct store **out,
               struct err *e)
{
    struct store *s = calloc(1, sizeof *s);

    if (!s)
        return err_memory(e, "store.memory");
    s->data_fd = -1;
    s->serve_lock_fd = -1;
    s->write_lock_fd = -1;
    s->mode = mode;
    s->base_url = strdup("");
    if (!s->base_url || init_locks(s, e) < 0) {
        free(s->base_url);
        free(s);
        return err_memory(e, "store.memory");
    }
    if (open_directory(s, data, e) < 0 || open_database(s, readers, e) < 0 ||
        blobs_new(s->data_fd, &s->blobs, e) < 0 ||
        (mode == STORE_SERVE && blobs_clean_spool(s->blobs, e) < 0) || open_key(s, e) < 0) {
        store_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_readers; i++)
        db_close(s->readers[i]);
    if (s->writer)
        store_idle(s);
    db_close(s->writer);
    blobs_free(s->blobs);
    private_key_free(s->key);
    cleanup_fd(&s->write_lock_fd);
    cleanup_fd(&s->serve_lock_fd);
    cleanup_fd(&s->data_fd);
    (void) pthread_cond_destroy(&s->pool_ready); /* nobody waits */
    (void) pthread_mutex_destroy(&s->pool_lock);
    (void) pthread_mutex_destroy(&s->write_lock);
    free(s->base_url);
    free(s->path);
    free(s);
}

int store_set_base_url(struct store *s, const char *base_url, struct err *e)
{
    char *copy = strdup(base_url);

    if (!copy)
        return err_memory(e, "store.memory");
    free(s->base_url);
    s->base_url = copy;
    return 0;
}

const char *store_base_url(const struct store *s)
{
    return s->base_url;
}

atomic_uint *store_pipelines(struct store *s)
{
    return &s->pipelines;
}

struct blobs *store_blobs(struct store *s)
{
    return s->blobs;
}

const struct private_key *store_key(const struct store *s)
{
    return s->key;
}

int store_data_fd(const struct store *s)
{
    return s->data_fd;
}

const char *store_data_path(const struct store *s)
{
    return s->path;
}

int store_generation(struct store *s, uint64_t *out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_GENERATION_GET);
    if (query_one(&q, "generation", e) < 0)
        return -1;
    *out = (uint64_t) query_get_int(&q, 0);
    return 0;
}

int store_ready(struct store *s, struct err *e)
{
    uint64_t generation = 0;
    struct stat st;

    if (fstatat(s->data_fd, "objects", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, "store.objects", "objects directory");
    return store_generation(s, &generation, e);
}
