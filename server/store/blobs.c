#include "server/store/blobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"

#define STAMPS 4096 /* direct-mapped by digest */
#define INDEXES 32
#define INDEX_MEMBERS 16384             /* over all remembered indexes: under 3 MiB */
#define NAME_SIZE (DIGEST_HEX_SIZE + 1) /* "ab/cdef…" */

struct stamp_entry {
    struct digest digest;
    struct blob_stamp stamp;
    struct digest actual; /* what its bytes hash to */
    bool used;
};

struct index_entry {
    struct archive_index *index; /* immutable */
    uint64_t used_at;
};

struct blobs {
    int objects_fd;
    int spool_fd;
    pthread_mutex_t lock; /* stamps, indexes, clock */
    struct stamp_entry stamps[STAMPS];
    struct index_entry indexes[INDEXES];
    uint64_t clock;
};

static void object_name(const struct digest *d, char out[NAME_SIZE])
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(d, hex);
    memcpy(out, hex, 2);
    out[2] = '/';
    memcpy(out + 3, hex + 2, DIGEST_HEX_SIZE - 2);
}

int blobs_new(int data_fd, struct blobs **out, struct err *e)
{
    struct blobs *b = calloc(1, sizeof *b);

    if (!b)
        return err_memory(e, "blobs.memory");
    b->objects_fd = -1;
    b->spool_fd = -1;
    if (pthread_mutex_init(&b->lock, NULL) != 0) {
        free(b);
        return err_memory(e, "blobs.memory");
    }
    if (file_mkdirs_at(data_fd, "objects", 0700, e) < 0 ||
        file_mkdirs_at(data_fd, "spool", 0700, e) < 0 ||
        file_open_dir_at(data_fd, "objects", &b->objects_fd, e) < 0 ||
        file_open_dir_at(data_fd, "spool", &b->spool_fd, e) < 0) {
        blobs_free(b);
        return -1;
    }
    *out = b;
    return 0;
}

void blobs_free(struct blobs *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < INDEXES; i++)
        archive_index_free(b->indexes[i].index);
    cleanup_fd(&b->objects_fd);
    cleanup_fd(&b->spool_fd);
    (void) pthread_mutex_destroy(&b->lock); /* nobody holds it */
    free(b);
}

int blobs_spool_dir(const struct blobs *b)
{
    return b->spool_fd;
}

int blobs_clean_spool(struct blobs *b, struct err *e)
{
    AUTO_FILE_LIST struct file_list list = {.names = NULL};

    if (file_list_all_at(b->spool_fd, SIZE_MAX, &list, e) < 0)
        return -1;
    for (size_t i = 0; i < list.n; i++) {
        if (unlinkat(b->spool_fd, list.names[i], 0) < 0 && errno != ENOENT)
            return err_errno(e, "blobs.spool", "cannot remove spool/%s", list.names[i]);
    }
    return 0;
}

static struct blob_stamp stamp_of(const struct stat *st)
{
    return (struct blob_stamp){
        .dev = (uint64_t) st->st_dev,
        .ino = (uint64_t) st->st_ino,
        .size = (uint64_t) st->st_size,
        .mtime_ns = (int64_t) st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
        .ctime_ns = (int64_t) st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
    };
}

static bool stamp_equal(const struct blob_stamp *a, const struct blob_stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static struct stamp_entry *stamp_slot(struct blobs *b, const struct digest *d)
{
    return &b->stamps[((size_t) d->bytes[0] << 8 | d->bytes[1]) % STAMPS];
}

static void remember(struct blobs *b, const struct digest *d, const struct blob_stamp *stamp,
                     const struct digest *actual)
{
    (void) pthread_mutex_lock(&b->lock); /* cannot fail: a plain mutex */
    *stamp_slot(b, d) =
        (struct stamp_entry){.digest = *d, .stamp = *stamp, .actual = *actual, .used = true};
    (void) pthread_mutex_unlock(&b->lock);
}

/* What the bytes were found to be when the file had this stamp. */
static bool recall(struct blobs *b, const struct digest *d, const struct blob_stamp *stamp,
                   struct digest *out_actual)
{
    const struct stamp_entry *s;
    bool found;

    (void) pthread_mutex_lock(&b->lock);
    s = stamp_slot(b, d);
    found = s->used && digest_equal(&s->digest, d) && stamp_equal(&s->stamp, stamp);
    if (found)
        *out_actual = s->actual;
    (void) pthread_mutex_unlock(&b->lock);
    return found;
}

static void forget(struct blobs *b, const struct digest *d)
{
    struct stamp_entry *s;

    (void) pthread_mutex_lock(&b->lock);
    s = stamp_slot(b, d);
    if (s->used && digest_equal(&s->digest, d))
        s->used = false;
    (void) pthread_mutex_unlock(&b->lock);
}

/* Takes the index. */
static void keep_index(struct blobs *b, struct archive_index *index)
{
    size_t members = index->n;
    size_t at = 0;

    (void) pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < INDEXES; i++) {
        if (b->indexes[i].index && digest_equal(&b->indexes[i].index->digest, &index->digest)) {
            archive_index_free(b->indexes[i].index);
            b->indexes[i] = (struct index_entry){.index = NULL};
        }
        if (b->indexes[i].index)
            members += b->indexes[i].index->n;
        if (!b->indexes[i].index || b->indexes[i].used_at < b->indexes[at].used_at)
            at = i;
    }
    archive_index_free(b->indexes[at].index);
    b->indexes[at] = (struct index_entry){.index = index, .used_at = ++b->clock};
    for (size_t i = 0; i < INDEXES && members > INDEX_MEMBERS; i++) {
        if (i == at || !b->indexes[i].index)
            continue;
        members -= b->indexes[i].index->n;
        archive_index_free(b->indexes[i].index);
        b->indexes[i] = (struct index_entry){.index = NULL};
    }
    (void) pthread_mutex_unlock(&b->lock);
}

int blobs_index(struct blobs *b, const struct digest *digest, int fd, struct archive_index **out,
                struct err *e)
{
    struct archive_index *index = NULL;
    struct archive_index *copy = NULL;
    bool found = false;
    int rc = 0;

    (void) pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < INDEXES && !found; i++) {
        found = b->indexes[i].index && digest_equal(&b->indexes[i].index->digest, digest);
        if (found) {
            b->indexes[i].used_at = ++b->clock;
            rc = archive_index_copy(b->indexes[i].index, &copy, e);
        }
    }
    (void) pthread_mutex_unlock(&b->lock);
    if (found) {
        if (rc == 0)
            *out = copy;
        return rc;
    }
    if (archive_index_of_fd(fd, &index, e) < 0)
        return -1;
    if (!digest_equal(&index->digest, digest)) {
        archive_index_free(index);
        return err_set(e, ERR_TRUST, "blob.damaged", "the stored object changed while it was read");
    }
    if (archive_index_copy(index, &copy, e) < 0) {
        archive_index_free(index);
        return -1;
    }
    keep_index(b, index);
    *out = copy;
    return 0;
}

static int sync_fd(int fd, const char *what, struct err *e)
{
    return fsync(fd) < 0 ? err_errno(e, "blobs.sync", "cannot make %s durable", what) : 0;
}

/* The directory for a digest, made durable when it is new. */
static int open_shelf(struct blobs *b, const char *name, int *out_fd, struct err *e)
{
    const char shelf[3] = {name[0], name[1], 0};

    if (mkdirat(b->objects_fd, shelf, 0700) == 0) {
        if (sync_fd(b->objects_fd, "objects/", e) < 0)
            return -1;
    } else if (errno != EEXIST) {
        return err_errno(e, "blobs.mkdir", "cannot make objects/%s", shelf);
    }
    return file_open_dir_at(b->objects_fd, shelf, out_fd, e);
}

int blobs_adopt(struct blobs *b, int fd, const char *spool_name, const struct digest *digest,
                struct archive_index *index, struct err *e)
{
    AUTO_ARCHIVE_INDEX struct archive_index *owned = index;
    AUTO_FD int shelf = -1;
    char name[NAME_SIZE];
    struct blob_stamp stamp;
    struct stat st;

    object_name(digest, name);
    if (fchmod(fd, 0400) < 0)
        return err_errno(e, "blobs.mode", "cannot protect the object");
    if (sync_fd(fd, "the object", e) < 0 || open_shelf(b, name, &shelf, e) < 0)
        return -1;
    if (renameat(b->spool_fd, spool_name, shelf, name + 3) < 0)
        return err_errno(e, "blobs.rename", "cannot move the object to its place");
    if (sync_fd(shelf, "the object's name", e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_errno(e, "blobs.stat", "cannot look at the object");
    stamp = stamp_of(&st);
    remember(b, digest, &stamp, digest);
    if (owned)
        keep_index(b, STEAL(owned));
    return 0;
}

static int damaged(const struct digest *actual, struct err *e)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(actual, hex);
    return err_set(e, ERR_TRUST, "blob.damaged", "stored object has SHA-256 %s", hex);
}

/* Something else than a file stands at its place (a pipe, a socket, a link, a directory): nobody
 * who asks can help it. */
static int no_file(struct blobs *b, const char *name, struct err *e)
{
    struct stat st;

    if (fstatat(b->objects_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, ERR_TRUST, "blob.damaged", "stored object is not a regular file");
    return err_wrap(e, "stored object");
}

static int open_object(struct blobs *b, const struct digest *digest, bool always_hash, int *out_fd,
                       uint64_t *out_size, struct blob_stamp *out_stamp, struct err *e)
{
    AUTO_FD int fd = -1;
    char name[NAME_SIZE];
    struct blob_stamp stamp;
    struct digest actual;
    struct stat st;
    uint64_t size = 0;

    object_name(digest, name);
    if (file_open_at(b->objects_fd, name, &fd, &size, e) < 0)
        return no_file(b, name, e);
    if (fstat(fd, &st) < 0)
        return err_errno(e, "blobs.stat", "cannot look at the object");
    stamp = stamp_of(&st);
    if (always_hash || !recall(b, digest, &stamp, &actual)) {
        struct blob_stamp after;

        if (digest_of_fd(fd, &actual, &size, e) < 0)
            return err_wrap(e, "stored object");
        if (fstat(fd, &st) < 0)
            return err_errno(e, "blobs.stat", "cannot look at the object");
        after = stamp_of(&st);
        if (stamp_equal(&stamp, &after))
            remember(b, digest, &stamp, &actual);
    }
    if (!digest_equal(&actual, digest))
        return damaged(&actual, e);
    *out_size = stamp.size;
    if (out_stamp)
        *out_stamp = stamp;
    *out_fd = fd_steal(&fd);
    return 0;
}

int blobs_open(struct blobs *b, const struct digest *digest, int *out_fd, uint64_t *out_size,
               struct blob_stamp *out_stamp, struct err *e)
{
    return open_object(b, digest, false, out_fd, out_size, out_stamp, e);
}

int blobs_open_rehash(struct blobs *b, const struct digest *digest, int *out_fd, uint64_t *out_size,
                      struct err *e)
{
    return open_object(b, digest, true, out_fd, out_size, NULL, e);
}

bool blobs_untouched(struct blobs *b, const struct digest *digest, const struct blob_stamp *stamp)
{
    char name[NAME_SIZE];
    struct blob_stamp now;
    struct stat st;

    object_name(digest, name);
    if (fstatat(b->objects_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return false;
    now = stamp_of(&st);
    return stamp_equal(&now, stamp);
}

bool blobs_exists(struct blobs *b, const struct digest *digest)
{
    char name[NAME_SIZE];
    struct stat st;

    object_name(digest, name);
    return fstatat(b->objects_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

uint64_t blobs_age_s(struct blobs *b, const struct digest *digest)
{
    char name[NAME_SIZE];
    struct stat st;
    int64_t now_s = clock_realtime_us() / 1000000;

    object_name(digest, name);
    if (fstatat(b->objects_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ctim.tv_sec > now_s)
        return 0;
    return (uint64_t) (now_s - st.st_ctim.tv_sec);
}

int blobs_remove(struct blobs *b, const struct digest *digest, struct err *e)
{
    char name[NAME_SIZE];

    object_name(digest, name);
    forget(b, digest);
    if (unlinkat(b->objects_fd, name, 0) < 0 && errno != ENOENT)
        return err_errno(e, "blobs.remove", "cannot remove objects/%s", name);
    return 0;
}

int blobs_each(struct blobs *b,
               int (*visit)(void *ctx, const struct digest *digest, const char *name,
                            struct err *e),
               void *ctx, struct err *e)
{
    AUTO_FILE_LIST struct file_list list = {.names = NULL};

    if (file_list_all_at(b->objects_fd, SIZE_MAX, &list, e) < 0)
        return -1;
    for (size_t i = 0; i < list.n; i++) {
        const char *name = list.names[i];
        char hex[DIGEST_HEX_SIZE];
        struct digest digest;
        bool ok = strlen(name) == NAME_SIZE - 1 && name[2] == '/';

        if (ok) {
            memcpy(hex, name, 2);
            memcpy(hex + 2, name + 3, DIGEST_HEX_SIZE - 2);
            ok = digest_parse(hex, &digest);
        }
        if (visit(ctx, ok ? &digest : NULL, name, e) < 0)
            return -1;
    }
    return 0;
}
