#include "server/ingest/pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define ALIGNMENT ((size_t) 4096) /* of memory, offset and length for O_DIRECT on any disk */

/* What a thread does with one block. */
typedef int (*block_fn)(struct pipeline *p, const char *block, size_t len, struct err *e);

/* One of the two threads that use every block. */
struct stage {
    struct pipeline *pipeline;
    block_fn use;
    pthread_t thread;
    bool is_running;
    uint64_t done; /* blocks; under the pipeline's lock */
};

struct pipeline {
    struct stage hashing;
    struct stage writing;
    struct verify_stream *stream; /* the hashing thread's while it runs */
    int fd;                       /* the writing thread's */
    bool is_direct;               /* the same */
    char *blocks;                 /* PIPELINE_BLOCKS of them, a ring */
    size_t fill;                  /* bytes in the block being filled: the owner's */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t filled; /* blocks that are complete; under lock, as are the rest */
    size_t last_len; /* of the last block, once ending */
    bool ending;     /* no more blocks come */
    bool dropped;
    struct err failure; /* of a thread; kind ERR_NONE: none */
};

static char *block_at(const struct pipeline *p, uint64_t i)
{
    return p->blocks + i % PIPELINE_BLOCKS * PIPELINE_BLOCK;
}

static bool is_stopped(const struct pipeline *p)
{
    return p->dropped || p->failure.kind != ERR_NONE;
}

/* Waits for the stage's next block; its length, 0 when there is none. */
static size_t wait_block(struct stage *s)
{
    struct pipeline *p = s->pipeline;
    size_t len = 0;

    (void) pthread_mutex_lock(&p->lock);
    while (s->done == p->filled && !p->ending && !is_stopped(p))
        (void) pthread_cond_wait(&p->changed, &p->lock);
    if (s->done < p->filled && !is_stopped(p))
        len = p->ending && s->done + 1 == p->filled ? p->last_len : PIPELINE_BLOCK;
    (void) pthread_mutex_unlock(&p->lock);
    return len;
}

static void end_block(struct stage *s, const struct err *failure)
{
    struct pipeline *p = s->pipeline;

    (void) pthread_mutex_lock(&p->lock);
    s->done++;
    if (failure && p->failure.kind == ERR_NONE)
        p->failure = *failure;
    (void) pthread_cond_broadcast(&p->changed);
    (void) pthread_mutex_unlock(&p->lock);
}

static void *run(void *cls)
{
    struct stage *s = cls;
    uint64_t i = 0;
    size_t len = 0;

    while ((len = wait_block(s)) > 0) {
        struct err e = ERR_INIT;
        int rc = s->use(s->pipeline, block_at(s->pipeline, i++), len, &e);

        end_block(s, rc < 0 ? &e : NULL);
    }
    return NULL;
}

static int hash_block(struct pipeline *p, const char *block, size_t len, struct err *e)
{
    (void) e;
    verify_stream_feed(p->stream, block, len);
    return 0;
}

/* Through the page cache from now on: for the odd end, and where the file system refuses. */
static int end_direct(struct pipeline *p, struct err *e)
{
    int flags = fcntl(p->fd, F_GETFL);

    p->is_direct = false;
    if (flags < 0 || fcntl(p->fd, F_SETFL, flags & ~O_DIRECT) < 0)
        return err_errno(e, "pipeline.flags", "cannot change how the archive is written");
    return 0;
}

static int write_block(struct pipeline *p, const char *block, size_t len, struct err *e)
{
    ssize_t n = 0;

    if (p->is_direct && len % ALIGNMENT == 0) {
        n = write(p->fd, block, len);
        if (n < 0 && errno != EINVAL && errno != EINTR)
            return err_errno(e, "pipeline.write", "cannot write the archive");
        if (n < 0)
            n = 0;
    }
    if ((size_t) n == len)
        return 0;
    if (p->is_direct && end_direct(p, e) < 0)
        return -1;
    if (file_write_all(p->fd, block + n, len - (size_t) n, e) < 0)
        return err_wrap(e, "the archive");
    return 0;
}

static int stage_start(struct stage *s, struct pipeline *p, block_fn use, struct err *e)
{
    s->pipeline = p;
    s->use = use;
    if (pthread_create(&s->thread, NULL, run, s) != 0)
        return err_set(e, ERR_NOMEM, "pipeline.thread", "cannot start a thread");
    s->is_running = true;
    return 0;
}

static void stage_join(struct stage *s)
{
    if (s->is_running)
        (void) pthread_join(s->thread, NULL);
    s->is_running = false;
}

int pipeline_start(int fd, struct verify_stream *stream, struct pipeline **out, struct err *e)
{
    struct pipeline *p = calloc(1, sizeof *p);
    int flags = fcntl(fd, F_GETFL);

    if (!p)
        return err_memory(e, "pipeline.memory");
    /* Default attributes: cannot fail on Linux. */
    (void) pthread_mutex_init(&p->lock, NULL);
    (void) pthread_cond_init(&p->changed, NULL);
    p->fd = fd;
    p->stream = stream;
    p->is_direct = flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
    p->blocks = aligned_alloc(ALIGNMENT, PIPELINE_BYTES);
    if (!p->blocks) {
        pipeline_free(p);
        return err_memory(e, "pipeline.memory");
    }
    if (stage_start(&p->hashing, p, hash_block, e) < 0 ||
        stage_start(&p->writing, p, write_block, e) < 0) {
        pipeline_free(p);
        return -1;
    }
    *out = p;
    return 0;
}

static int failed(struct pipeline *p, struct err *e)
{
    return err_set(e, p->failure.kind, p->failure.code, "%s", p->failure.text);
}

/* Both threads are done with the block that is to be filled. */
static bool is_free(const struct pipeline *p)
{
    return p->filled - p->hashing.done < PIPELINE_BLOCKS &&
           p->filled - p->writing.done < PIPELINE_BLOCKS;
}

static int wait_room(struct pipeline *p, struct err *e)
{
    int rc = 0;

    (void) pthread_mutex_lock(&p->lock);
    while (!is_free(p) && !is_stopped(p))
        (void) pthread_cond_wait(&p->changed, &p->lock);
    if (p->failure.kind != ERR_NONE)
        rc = failed(p, e);
    (void) pthread_mutex_unlock(&p->lock);
    return rc;
}

static void hand_over(struct pipeline *p, bool is_last)
{
    (void) pthread_mutex_lock(&p->lock);
    if (p->fill > 0)
        p->filled++;
    p->last_len = p->fill > 0 ? p->fill : PIPELINE_BLOCK;
    p->ending = is_last;
    (void) pthread_cond_broadcast(&p->changed);
    (void) pthread_mutex_unlock(&p->lock);
    p->fill = 0;
}

int pipeline_put(struct pipeline *p, const void *bytes, size_t len, struct err *e)
{
    const char *from = bytes;

    while (len > 0) {
        size_t n = PIPELINE_BLOCK - p->fill < len ? PIPELINE_BLOCK - p->fill : len;

        if (p->fill == 0 && wait_room(p, e) < 0)
            return -1;
        /* filled changes only in this thread */
        memcpy(block_at(p, p->filled) + p->fill, from, n);
        p->fill += n;
        from += n;
        len -= n;
        if (p->fill == PIPELINE_BLOCK)
            hand_over(p, false);
    }
    return 0;
}

int pipeline_finish(struct pipeline *p, struct err *e)
{
    hand_over(p, true);
    stage_join(&p->hashing);
    stage_join(&p->writing);
    if (p->failure.kind != ERR_NONE)
        return failed(p, e);
    return p->is_direct ? end_direct(p, e) : 0;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    (void) pthread_mutex_lock(&p->lock);
    p->dropped = true;
    (void) pthread_cond_broadcast(&p->changed);
    (void) pthread_mutex_unlock(&p->lock);
    stage_join(&p->hashing);
    stage_join(&p->writing);
    (void) pthread_cond_destroy(&p->changed);
    (void) pthread_mutex_destroy(&p->lock);
    free(p->blocks);
    free(p);
}
