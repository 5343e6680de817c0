/* RSS and CPU of this process, sampled by a thread of its own, and the summaries of the samples. */
#include "callsim.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BOUNDARY_FACTOR 1.5
#define SHORTEST_INTERVAL_SECS 0.001
#define BAND_FRACTION 6
#define BAND_CAP_SECS 60.0
#define MIN_SAMPLES 6
#define MIN_BAND_SAMPLES 3

struct sampler {
    pthread_t thread;
    pthread_mutex_t lock;
    uint64_t every, origin, last_at, last_cpu;
    struct resources *into; /* NULL between points */
    int statm_fd;
    bool stop;
};

static double rss_mb(const struct sampler *s)
{
    char text[128] = "";
    ssize_t n = pread(s->statm_fd, text, sizeof(text) - 1, 0);
    const char *at = n > 0 ? strchr(text, ' ') : NULL;

    if (!at)
        die("statm");
    return (double) strtoull(at + 1, NULL, 10) * (double) sysconf(_SC_PAGESIZE) / 1048576.0;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;

    (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t) t.tv_sec * NS_PER_SEC + (uint64_t) t.tv_nsec;
}

/* Under the lock. Times are whole microseconds and strictly rising. */
static double take(struct sampler *s)
{
    struct resources *r = s->into;
    uint64_t now = now_ns(), cpu = cpu_ns(), us = (now - s->origin) / 1000;
    double last = r->n > 0 ? r->samples[r->n - 1].t_secs : -1, t = (double) us / 1e6;
    struct sample *x = &r->samples[r->n];

    if (r->n == MAX_SAMPLES)
        die("too many samples");
    x->t_secs = t > last ? t : last + 1e-6;
    x->rss_mb = rss_mb(s);
    /* single precision, as the field is defined */
    x->cpu_pct =
        r->n == 0 || now == s->last_at
            ? 0
            : (double) (float) ((double) (cpu - s->last_cpu) * 100 / (double) (now - s->last_at));
    s->last_at = now;
    s->last_cpu = cpu;
    r->n++;
    return x->t_secs;
}

static void *sampler_main(void *context)
{
    struct sampler *s = context;
    uint64_t tick = now_ns();
    bool stop = false;

    while (!stop) {
        tick += s->every;
        sleep_until_ns(tick);
        pthread_mutex_lock(&s->lock);
        if (s->into)
            (void) take(s);
        stop = s->stop;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

struct sampler *sampler_start(unsigned interval_ms)
{
    struct sampler *s = calloc(1, sizeof(*s));

    if (!s)
        die("memory");
    s->every = interval_ms * NS_PER_MS;
    s->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (s->statm_fd < 0)
        die("statm");
    pthread_mutex_init(&s->lock, NULL);
    if (pthread_create(&s->thread, NULL, sampler_main, s) != 0)
        die("thread");
    return s;
}

void sampler_begin(struct sampler *s, struct resources *into)
{
    pthread_mutex_lock(&s->lock);
    into->n = 0;
    s->into = into;
    s->origin = now_ns();
    (void) take(s);
    pthread_mutex_unlock(&s->lock);
}

double sampler_take(struct sampler *s)
{
    pthread_mutex_lock(&s->lock);
    double t = take(s);
    pthread_mutex_unlock(&s->lock);
    return t;
}

void sampler_end(struct sampler *s)
{
    pthread_mutex_lock(&s->lock);
    s->into = NULL;
    pthread_mutex_unlock(&s->lock);
}

void sampler_stop(struct sampler *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    (void) close(s->statm_fd);
    free(s);
}

/* Summaries. */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double sampling_interval(const struct resources *r)
{
    static double gaps[MAX_SAMPLES];
    size_t n = r->n - 1;

    if (r->n < 2)
        return 0;
    for (size_t i = 0; i < n; i++)
        gaps[i] = r->samples[i + 1].t_secs - r->samples[i].t_secs;
    qsort(gaps, n, sizeof(*gaps), by_value);
    return gaps[n / 2];
}

/* MB a second by least squares, from centred sums. */
static double slope(const struct sample *s, size_t n)
{
    double mean_t = 0, mean_v = 0, above = 0, below = 0;

    for (size_t i = 0; i < n; i++) {
        mean_t += s[i].t_secs;
        mean_v += s[i].rss_mb;
    }
    mean_t /= (double) n;
    mean_v /= (double) n;
    for (size_t i = 0; i < n; i++) {
        above += (s[i].t_secs - mean_t) * (s[i].rss_mb - mean_v);
        below += (s[i].t_secs - mean_t) * (s[i].t_secs - mean_t);
    }
    return n < 2 || below < 1e-12 ? 0 : above / below;
}

/* Medians of RSS and time among samples [from, to). */
static void band_medians(const struct sample *s, size_t n, double *rss, double *t)
{
    static double values[MAX_SAMPLES];

    for (size_t i = 0; i < n; i++)
        values[i] = s[i].rss_mb;
    *rss = median(values, n);
    for (size_t i = 0; i < n; i++)
        values[i] = s[i].t_secs;
    *t = median(values, n);
}

static void window_ends(struct window *w, const struct sample *s)
{
    w->band = fmin(w->coverage / BAND_FRACTION, BAND_CAP_SECS);
    while (w->start_count < w->n && s[w->start_count].t_secs <= w->first + w->band)
        w->start_count++;
    while (w->end_count < w->n && s[w->n - 1 - w->end_count].t_secs >= w->last - w->band)
        w->end_count++;
    if (w->n < MIN_SAMPLES || w->start_count < MIN_BAND_SAMPLES || w->end_count < MIN_BAND_SAMPLES)
        return;
    band_medians(s, w->start_count, &w->start_median, &w->start_t);
    band_medians(s + w->n - w->end_count, w->end_count, &w->end_median, &w->end_t);
    w->retained = w->end_median - w->start_median;
    w->separation = w->end_t - w->start_t;
    w->has_ends = w->separation > 0;
    if (w->has_ends)
        w->growth_per_hour = w->retained * 3600 / w->separation;
}

static void window_finish(const struct resources *r, struct window *w)
{
    size_t from = 0;

    while (from < r->n && r->samples[from].t_secs < w->requested_start)
        from++;
    while (from + w->n < r->n && r->samples[from + w->n].t_secs <= w->requested_end)
        w->n++;
    w->tolerance = BOUNDARY_FACTOR * fmax(r->interval, SHORTEST_INTERVAL_SECS);
    if (w->n < 2)
        return;
    const struct sample *s = r->samples + from;

    w->first = s[0].t_secs;
    w->last = s[w->n - 1].t_secs;
    w->coverage = w->last - w->first;
    w->complete =
        w->first <= w->requested_start + w->tolerance && w->last + w->tolerance >= w->requested_end;
    w->growth_per_minute = slope(s, w->n) * 60;
    window_ends(w, s);
}

void resources_finish(struct resources *r, double tail_secs)
{
    double last = r->samples[r->n - 1].t_secs, begin = fmax(0, last - tail_secs), cpu = 0;
    size_t from = 0;

    r->interval = sampling_interval(r);
    r->baseline = r->peak = r->samples[0].rss_mb;
    for (size_t i = 1; i < r->n; i++) {
        r->peak = fmax(r->peak, r->samples[i].rss_mb);
        cpu += r->samples[i].cpu_pct;
    }
    r->avg_cpu = r->n > 1 ? cpu / (double) (r->n - 1) : 0;
    r->growth_per_minute = slope(r->samples, r->n) * 60;
    while (from + 1 < r->n && r->samples[from].t_secs < begin)
        from++;
    r->tail_requested = tail_secs;
    r->tail_n = r->n - from;
    r->tail_coverage = last - r->samples[from].t_secs;
    r->tail_complete =
        r->tail_coverage + BOUNDARY_FACTOR * fmax(r->interval, SHORTEST_INTERVAL_SECS) >= tail_secs;
    r->tail_growth_per_minute = slope(r->samples + from, r->tail_n) * 60;
    window_finish(r, &r->active);
    if (r->has_cleanup)
        window_finish(r, &r->cleanup);
}
