/* The queue and its thread. */
#include "server/ingest/ingest.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

#define IDLE_S 2 /* without work this long, the log is checkpointed */

struct waiting {
    struct waiting *next;
    struct ingest_request request; /* its strings follow in the same block */
    int64_t received_us;
    struct digest archive;
    char text[];
};

struct ingest {
    struct store *store;
    pthread_t thread;
    pthread_mutex_t lock; /* first, last, n, stopping */
    pthread_cond_t wake;
    struct waiting *first;
    struct waiting *last;
    size_t n;
    bool stopping;
};

static void log_result(const struct waiting *w, const struct ingest_result *r, uint64_t took_ns)
{
    static const char *const words[] = {"stored",   "repeated", "invalid",
                                        "conflict", "no-blob",  "failed"};
    bool plain = r->outcome == INGEST_STORED || r->outcome == INGEST_REPEATED;
    char why[256];

    log_event(r->outcome == INGEST_FAILED ? LOG_ERROR : LOG_INFO, "ingest",
              "project=%s gate=%s run=%s outcome=%s took_ms=%llu%s%s", w->request.project,
              w->request.gate, r->run ? r->run : "-", words[r->outcome],
              (unsigned long long) (took_ns / 1000000),
              plain ? "" : " why=", plain ? "" : log_q(r->err.text, why, sizeof why));
}

static void work_on(struct ingest *i, struct waiting *w)
{
    struct ingest_result result;
    uint64_t began = clock_monotonic_ns();

    ingest_process(i->store, &w->request, w->received_us, &result);
    log_result(w, &result, clock_monotonic_ns() - began);
    w->request.done(w->request.ctx, &result);
    free(w);
}

/* The next job; NULL when idle for a while (*out_stop false) or when all is done and it is
 * stopping. */
static struct waiting *take(struct ingest *i, bool *out_stop)
{
    struct waiting *w;
    struct timespec until;
    int rc = 0;

    (void) clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail */
    until.tv_sec += IDLE_S;
    (void) pthread_mutex_lock(&i->lock);
    while (!i->first && !i->stopping && rc == 0)
        rc = pthread_cond_timedwait(&i->wake, &i->lock, &until);
    w = i->first;
    if (w) {
        i->first = w->next;
        if (!i->first)
            i->last = NULL;
        i->n--;
    }
    *out_stop = i->stopping && !w;
    (void) pthread_mutex_unlock(&i->lock);
    return w;
}

static void *run(void *arg)
{
    struct ingest *i = (struct ingest *) arg;
    struct digest cursor = {.bytes = {0}};
    bool stop = false;

    while (!stop) {
        struct waiting *w = take(i, &stop);

        if (w)
            work_on(i, w);
        else if (!stop) {
            store_idle(i->store);
            store_scrub(i->store, &cursor);
        }
    }
    return NULL;
}

int ingest_start(struct store *s, struct ingest **out, struct err *e)
{
    struct ingest *i = calloc(1, sizeof *i);
    pthread_condattr_t attr;
    int rc;

    if (!i)
        return err_memory(e, "ingest.memory");
    i->store = s;
    if (pthread_condattr_init(&attr) != 0 ||
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) != 0 ||
        pthread_mutex_init(&i->lock, NULL) != 0 || pthread_cond_init(&i->wake, &attr) != 0) {
        free(i);
        return err_memory(e, "ingest.memory");
    }
    (void) pthread_condattr_destroy(&attr); /* always succeeds on Linux */
    rc = pthread_create(&i->thread, NULL, run, i);
    if (rc != 0) {
        free(i);
        errno = rc;
        return err_errno(e, "ingest.thread", "cannot start the ingest thread");
    }
    *out = i;
    return 0;
}

static struct waiting *copy_request(const struct ingest_request *r)
{
    size_t project = strlen(r->project) + 1;
    size_t gate = strlen(r->gate) + 1;
    struct waiting *w = calloc(1, sizeof *w + project + gate + r->envelope_len + 1);

    if (!w)
        return NULL;
    w->request = *r;
    w->received_us = clock_realtime_us();
    memcpy(w->text, r->project, project);
    memcpy(w->text + project, r->gate, gate);
    if (r->envelope_len > 0)
        memcpy(w->text + project + gate, r->envelope, r->envelope_len);
    if (r->archive) {
        w->archive = *r->archive;
        w->request.archive = &w->archive;
    }
    w->request.project = w->text;
    w->request.gate = w->text + project;
    w->request.envelope = w->text + project + gate;
    return w;
}

int ingest_submit(struct ingest *i, const struct ingest_request *r, struct err *e)
{
    struct waiting *w;
    bool taken;

    if (r->envelope_len > LIMIT_ENVELOPE)
        return err_set(e, ERR_LIMIT, "ingest.envelope", "an envelope may have at most %zu bytes",
                       LIMIT_ENVELOPE);
    w = copy_request(r);
    if (!w)
        return err_memory(e, "ingest.memory");
    (void) pthread_mutex_lock(&i->lock);
    taken = !i->stopping && i->n < LIMIT_QUEUE;
    if (taken) {
        if (i->last)
            i->last->next = w;
        else
            i->first = w;
        i->last = w;
        i->n++;
        (void) pthread_cond_signal(&i->wake);
    }
    (void) pthread_mutex_unlock(&i->lock);
    if (taken)
        return 0;
    free(w);
    return err_set(e, ERR_BUSY, "ingest.full",
                   "too many uploads wait to be judged; try again later");
}

size_t ingest_waiting(struct ingest *i)
{
    size_t n;

    (void) pthread_mutex_lock(&i->lock);
    n = i->n;
    (void) pthread_mutex_unlock(&i->lock);
    return n;
}

void ingest_stop(struct ingest *i)
{
    if (!i)
        return;
    (void) pthread_mutex_lock(&i->lock);
    i->stopping = true;
    (void) pthread_cond_signal(&i->wake);
    (void) pthread_mutex_unlock(&i->lock);
    (void) pthread_join(i->thread, NULL); /* it ends: nothing new is taken */
    (void) pthread_cond_destroy(&i->wake);
    (void) pthread_mutex_destroy(&i->lock);
    free(i);
}
