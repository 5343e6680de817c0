#include "server/http/workers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/limits.h"

#define THREADS_MAX 16

struct job {
    void (*work)(void *cls);
    void *cls;
};

struct workers {
    pthread_t threads[THREADS_MAX];
    unsigned n_threads;
    pthread_mutex_t jobs_lock;
    pthread_cond_t jobs_changed;
    struct job jobs[LIMIT_QUEUE]; /* ring, under jobs_lock, as are the next three */
    size_t first, n;
    bool stopping;
};

static void *run(void *cls)
{
    struct workers *w = cls;

    for (;;) {
        struct job job = {.work = NULL};

        (void) pthread_mutex_lock(&w->jobs_lock);
        while (w->n == 0 && !w->stopping)
            (void) pthread_cond_wait(&w->jobs_changed, &w->jobs_lock);
        if (w->n > 0) {
            job = w->jobs[w->first];
            w->first = (w->first + 1) % LIMIT_QUEUE;
            w->n--;
        }
        (void) pthread_mutex_unlock(&w->jobs_lock);
        if (!job.work)
            return NULL;
        job.work(job.cls);
    }
}

int workers_start(unsigned threads, struct workers **out, struct err *e)
{
    struct workers *w = calloc(1, sizeof *w);

    if (!w)
        return err_memory(e, "workers.memory");
    (void) pthread_mutex_init(&w->jobs_lock,
                              NULL); /* cannot fail with default attributes on Linux */
    (void) pthread_cond_init(&w->jobs_changed, NULL);
    while (w->n_threads < threads && w->n_threads < THREADS_MAX) {
        if (pthread_create(&w->threads[w->n_threads], NULL, run, w) != 0) {
            workers_stop(w);
            return err_set(e, ERR_SYS, "workers.thread", "cannot start a thread");
        }
        w->n_threads++;
    }
    *out = w;
    return 0;
}

int workers_submit(struct workers *w, void (*work)(void *cls), void *cls, struct err *e)
{
    bool taken = false;

    (void) pthread_mutex_lock(&w->jobs_lock);
    if (!w->stopping && w->n < LIMIT_QUEUE) {
        w->jobs[(w->first + w->n) % LIMIT_QUEUE] = (struct job){.work = work, .cls = cls};
        w->n++;
        taken = true;
        (void) pthread_cond_signal(&w->jobs_changed);
    }
    (void) pthread_mutex_unlock(&w->jobs_lock);
    return taken ? 0 : err_set(e, ERR_BUSY, "workers.busy", "the server is busy; try again");
}

void workers_drain(struct workers *w)
{
    unsigned i = 0;

    (void) pthread_mutex_lock(&w->jobs_lock);
    w->stopping = true;
    (void) pthread_cond_broadcast(&w->jobs_changed);
    (void) pthread_mutex_unlock(&w->jobs_lock);
    for (i = 0; i < w->n_threads; i++)
        (void) pthread_join(w->threads[i], NULL);
    w->n_threads = 0;
}

void workers_stop(struct workers *w)
{
    if (!w)
        return;
    workers_drain(w);
    (void) pthread_cond_destroy(&w->jobs_changed);
    (void) pthread_mutex_destroy(&w->jobs_lock);
    free(w);
}
