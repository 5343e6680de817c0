#include "server/ingest/hasher.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK ((size_t) 256 << 10) /* small enough to stay in the processor's cache while hashed   \
                                    */

struct hasher {
    pthread_t thread;
    struct verify_stream *stream; /* the thread's while it runs */
    char *block;                  /* the same */
    pthread_mutex_t progress_lock;
    pthread_cond_t progress_changed;
    uint64_t written; /* under progress_lock, as are the rest */
    int error;        /* errno of the read that failed */
    int fd;
    bool ending; /* no more bytes come */
    bool dropped;
    bool running;
};

/* Waits for bytes behind `done`; 0 at the end. */
static size_t wait_bytes(struct hasher *h, uint64_t done)
{
    uint64_t ready = 0;

    (void) pthread_mutex_lock(&h->progress_lock);
    while (h->written - done < BLOCK && !h->ending && !h->dropped)
        (void) pthread_cond_wait(&h->progress_changed, &h->progress_lock);
    ready = h->dropped ? 0 : h->written - done;
    (void) pthread_mutex_unlock(&h->progress_lock);
    return ready < BLOCK ? (size_t) ready : BLOCK;
}

static void fail(struct hasher *h, int error)
{
    (void) pthread_mutex_lock(&h->progress_lock);
    h->error = error;
    (void) pthread_mutex_unlock(&h->progress_lock);
}

static void *run(void *cls)
{
    struct hasher *h = cls;
    uint64_t done = 0;
    size_t want = 0;

    while ((want = wait_bytes(h, done)) > 0) {
        ssize_t n = pread(h->fd, h->block, want, (off_t) done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            fail(h, n < 0 ? errno : EIO);
            break;
        }
        verify_stream_feed(h->stream, h->block, (size_t) n);
        done += (uint64_t) n;
    }
    return NULL;
}

int hasher_start(int fd, struct verify_stream *stream, struct hasher **out, struct err *e)
{
    struct hasher *h = calloc(1, sizeof *h);

    if (!h)
        return err_set(e, ERR_NOMEM, "hasher.memory", "out of memory");
    (void) pthread_mutex_init(&h->progress_lock,
                              NULL); /* default attributes: cannot fail on Linux */
    (void) pthread_cond_init(&h->progress_changed, NULL);
    h->fd = fd;
    h->stream = stream;
    h->block = malloc(BLOCK);
    if (!h->block || pthread_create(&h->thread, NULL, run, h) != 0) {
        hasher_free(h);
        return err_set(e, ERR_NOMEM, "hasher.thread", "cannot start a thread");
    }
    h->running = true;
    *out = h;
    return 0;
}

void hasher_advance(struct hasher *h, uint64_t size)
{
    (void) pthread_mutex_lock(&h->progress_lock);
    h->written = size;
    (void) pthread_cond_signal(&h->progress_changed);
    (void) pthread_mutex_unlock(&h->progress_lock);
}

/* Tells the thread why it shall end, and waits for it. */
static void join(struct hasher *h, bool dropped)
{
    if (!h->running)
        return;
    (void) pthread_mutex_lock(&h->progress_lock);
    h->ending = true;
    h->dropped = dropped;
    (void) pthread_cond_signal(&h->progress_changed);
    (void) pthread_mutex_unlock(&h->progress_lock);
    (void) pthread_join(h->thread, NULL);
    h->running = false;
}

int hasher_finish(struct hasher *h, struct err *e)
{
    join(h, false);
    if (h->error == 0)
        return 0;
    errno = h->error;
    return err_errno(e, "hasher.read", "cannot read back what was received");
}

void hasher_free(struct hasher *h)
{
    if (!h)
        return;
    join(h, true);
    (void) pthread_cond_destroy(&h->progress_changed);
    (void) pthread_mutex_destroy(&h->progress_lock);
    free(h->block);
    free(h);
}
