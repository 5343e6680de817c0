/* The caller side: each shard is a thread with its own socket and its share of a fixed schedule. */
#include "callsim.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_WAIT_NS (50 * NS_PER_MS)

enum state { CALL_INVITED, CALL_HELD, CALL_ENDING, CALL_OVER };

struct outgoing {
    uint64_t due, answered, next, resend_ns; /* next: when to send again, or to hang up */
    enum state state;
};

struct shard {
    struct callers *all;
    size_t number;
    int fd;
    pthread_t thread;
    struct outgoing *calls; /* room for the largest point's share */
    uint32_t *active;       /* indices of calls that are not over */
    size_t n_active, n_calls, n_sent;
    atomic_uint_fast64_t shown_active;
    struct tally tally;
};

struct callers {
    const struct settings *s;
    struct sockaddr_in answerer;
    struct shard shards[MAX_SHARDS];
    pthread_mutex_t lock;
    pthread_cond_t go, news;
    uint64_t start, first_id; /* of the point in hand */
    unsigned target, round;
    size_t dispatched, drained;
    bool stop;
    atomic_uint_fast64_t in_flight, max_in_flight;
};

/* Histogram. */

static size_t bucket_of(uint64_t v)
{
    unsigned shift = 0;

    if (v < HISTOGRAM_STEPS)
        return (size_t) v;
    shift = 63U - (unsigned) __builtin_clzll(v) - 6U;
    return (size_t) (shift + 1) * HISTOGRAM_STEPS + (size_t) (v >> shift) - HISTOGRAM_STEPS;
}

/* The largest value that falls into the bucket. */
static uint64_t bucket_top(size_t i)
{
    uint64_t shift = i / HISTOGRAM_STEPS;

    if (shift == 0)
        return i;
    return ((i % HISTOGRAM_STEPS + HISTOGRAM_STEPS + 1) << (shift - 1)) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
    h->buckets[bucket_of(value)]++;
    h->min = h->count == 0 || value < h->min ? value : h->min;
    h->max = value > h->max ? value : h->max;
    h->sum += value;
    h->count++;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    if (from->count == 0)
        return;
    for (size_t i = 0; i < sizeof(into->buckets) / sizeof(into->buckets[0]); i++)
        into->buckets[i] += from->buckets[i];
    into->min = into->count == 0 || from->min < into->min ? from->min : into->min;
    into->max = from->max > into->max ? from->max : into->max;
    into->sum += from->sum;
    into->count += from->count;
}

uint64_t histogram_at(const struct histogram *h, double share)
{
    uint64_t wanted = (uint64_t) ceil(share * (double) h->count), seen = 0;

    for (size_t i = 0; i < sizeof(h->buckets) / sizeof(h->buckets[0]); i++) {
        seen += h->buckets[i];
        if (seen >= wanted && seen > 0)
            return bucket_top(i) < h->max ? bucket_top(i) : h->max;
    }
    return h->max;
}

/* Schedule: the rate rises evenly during the ramp, then stays. It never waits for an answer. */

uint64_t offered_calls(const struct settings *s, unsigned target)
{
    return (uint64_t) target * s->ramp_secs / 2 + (uint64_t) target * s->steady_secs;
}

static uint64_t due_offset(const struct settings *s, unsigned target, uint64_t n)
{
    double rate = target, ramp = s->ramp_secs, in_ramp = rate * ramp / 2, i = (double) n;
    double secs = i < in_ramp ? sqrt(2 * ramp * i / rate) : ramp + (i - in_ramp) / rate;

    return (uint64_t) (secs * 1e9);
}

static void transmit(struct shard *sh, enum message message, size_t i, bool again)
{
    struct callers *c = sh->all;
    struct datagram d = {.message = message,
                         .shard = (uint32_t) sh->number,
                         .call = c->first_id + (uint64_t) i * c->s->shards + sh->number};

    memset(d.body, 'v', sizeof(d.body));
    if (send(sh->fd, &d, sizeof(d), 0) != (ssize_t) sizeof(d) && message == MESSAGE_INVITE &&
        !again)
        sh->tally.errors[ERROR_INVITE_SEND]++; /* it is sent again all the same */
    if (again)
        sh->tally.retransmissions++;
    else
        sh->tally.datagrams++;
}

static void begin_call(struct shard *sh, size_t i, uint64_t now)
{
    struct outgoing *o = &sh->calls[i];
    uint64_t flying = atomic_fetch_add(&sh->all->in_flight, 1) + 1;
    uint64_t most = atomic_load(&sh->all->max_in_flight);

    while (flying > most && !atomic_compare_exchange_weak(&sh->all->max_in_flight, &most, flying))
        ;
    o->state = CALL_INVITED;
    o->resend_ns = RESEND_MS * NS_PER_MS;
    o->next = now + o->resend_ns;
    sh->active[sh->n_active++] = (uint32_t) i;
    sh->tally.offered++;
    transmit(sh, MESSAGE_INVITE, i, false);
}

static void on_reply(struct shard *sh, const struct datagram *d, uint64_t now)
{
    const struct settings *s = sh->all->s;
    uint64_t first = sh->all->first_id + sh->number;
    size_t i = (size_t) ((d->call - first) / s->shards);
    struct outgoing *o = &sh->calls[i];

    if (d->call < first || i >= sh->n_sent || (d->call - first) % s->shards != 0)
        return; /* of an earlier point */
    if (d->message == MESSAGE_INVITE_OK && o->state == CALL_INVITED) {
        o->answered = now;
        o->state = CALL_HELD;
        o->next = now + s->hold_ms * NS_PER_MS;
        sh->tally.datagrams++;
        histogram_add(&sh->tally.setup, now - o->due);
        transmit(sh, MESSAGE_ACK, i, false);
    } else if (d->message == MESSAGE_BYE_OK && o->state == CALL_ENDING) {
        o->state = CALL_OVER;
        sh->tally.datagrams++;
        sh->tally.succeeded++;
        histogram_add(&sh->tally.cycle, now - o->due);
    } else if (d->message != MESSAGE_INVITE_OK && d->message != MESSAGE_BYE_OK) {
        sh->tally.errors[ERROR_ANSWER]++;
    }
}

static void receive_all(struct shard *sh)
{
    struct datagram d;

    while (recv(sh->fd, &d, sizeof(d), MSG_DONTWAIT) == (ssize_t) sizeof(d))
        on_reply(sh, &d, now_ns());
}

/* Whatever the call's own clock asks for. */
static void on_time(struct shard *sh, size_t i, uint64_t now)
{
    struct outgoing *o = &sh->calls[i];
    bool ending = o->state == CALL_ENDING;

    if (now - o->due > sh->all->s->timeout_secs * NS_PER_SEC) {
        sh->tally.errors[ending ? ERROR_BYE : ERROR_TIMEOUT]++;
        o->state = CALL_OVER;
        return;
    }
    if (o->state == CALL_HELD) {
        o->state = CALL_ENDING;
        o->resend_ns = RESEND_MS * NS_PER_MS;
        transmit(sh, MESSAGE_BYE, i, false);
    } else {
        transmit(sh, ending ? MESSAGE_BYE : MESSAGE_INVITE, i, true);
        o->resend_ns *= 2;
    }
    o->next = now + o->resend_ns;
}

/* Serves every active call; returns when the next one wants something. */
static uint64_t serve(struct shard *sh, uint64_t now)
{
    uint64_t next = now + LONGEST_WAIT_NS;
    size_t kept = 0;

    for (size_t k = 0; k < sh->n_active; k++) {
        struct outgoing *o = &sh->calls[sh->active[k]];

        if (o->state != CALL_OVER && o->next <= now)
            on_time(sh, sh->active[k], now);
        if (o->state == CALL_OVER) {
            atomic_fetch_sub(&sh->all->in_flight, 1);
            continue;
        }
        next = o->next < next ? o->next : next;
        sh->active[kept++] = sh->active[k];
    }
    sh->n_active = kept;
    atomic_store(&sh->shown_active, kept);
    return next;
}

static void tell(struct callers *c, size_t *counter)
{
    pthread_mutex_lock(&c->lock);
    (*counter)++;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
}

static void run_point(struct shard *sh)
{
    struct callers *c = sh->all;
    uint64_t total = offered_calls(c->s, c->target);

    sh->n_calls = (size_t) ((total + c->s->shards - 1 - sh->number) / c->s->shards);
    sh->n_sent = sh->n_active = 0;
    memset(&sh->tally, 0, sizeof(sh->tally));
    for (size_t i = 0; i < sh->n_calls; i++)
        sh->calls[i].due = c->start + due_offset(c->s, c->target, i * c->s->shards + sh->number);
    if (sh->n_calls == 0)
        tell(c, &c->dispatched);
    while (sh->n_sent < sh->n_calls || sh->n_active > 0) {
        struct pollfd p = {.fd = sh->fd, .events = POLLIN};
        uint64_t now = now_ns(), next;
        struct timespec wait;

        while (sh->n_sent < sh->n_calls && sh->calls[sh->n_sent].due <= now) {
            begin_call(sh, sh->n_sent++, now);
            if (sh->n_sent == sh->n_calls)
                tell(c, &c->dispatched);
        }
        receive_all(sh);
        now = now_ns();
        next = serve(sh, now);
        if (sh->n_sent < sh->n_calls && sh->calls[sh->n_sent].due < next)
            next = sh->calls[sh->n_sent].due;
        if (next <= now || (sh->n_active == 0 && sh->n_sent == sh->n_calls))
            continue;
        wait = (struct timespec){.tv_nsec = (long) (next - now)}; /* below a second */
        (void) ppoll(&p, 1, &wait, NULL);
    }
    tell(c, &c->drained);
}

static void *shard_main(void *context)
{
    struct shard *sh = context;
    struct callers *c = sh->all;
    unsigned seen = 0;

    for (;;) {
        pthread_mutex_lock(&c->lock);
        while (c->round == seen && !c->stop)
            pthread_cond_wait(&c->go, &c->lock);
        seen = c->round;
        bool stop = c->stop;
        pthread_mutex_unlock(&c->lock);
        if (stop)
            return NULL;
        run_point(sh);
    }
}

static void shard_start(struct callers *c, size_t number, size_t room)
{
    struct shard *sh = &c->shards[number];

    sh->all = c;
    sh->number = number;
    sh->fd = open_socket();
    sh->calls = calloc(room, sizeof(*sh->calls));
    sh->active = calloc(room, sizeof(*sh->active));
    if (!sh->calls || !sh->active)
        die("memory");
    memset(sh->calls, 0xff, room * sizeof(*sh->calls)); /* resident from the start */
    memset(sh->active, 0xff, room * sizeof(*sh->active));
    if (connect(sh->fd, (struct sockaddr *) &c->answerer, sizeof(c->answerer)) < 0)
        die("connect");
    if (pthread_create(&sh->thread, NULL, shard_main, sh) != 0)
        die("thread");
}

struct callers *callers_start(const struct settings *s, uint16_t answerer)
{
    struct callers *c = calloc(1, sizeof(*c));
    uint64_t most = 0;

    if (!c)
        die("memory");
    c->s = s;
    c->answerer = (struct sockaddr_in){.sin_family = AF_INET,
                                       .sin_port = htons(answerer),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->go, NULL);
    pthread_cond_init(&c->news, NULL);
    for (size_t i = 0; i < s->n_points; i++)
        most = offered_calls(s, s->points[i]) > most ? offered_calls(s, s->points[i]) : most;
    for (size_t i = 0; i < s->shards; i++)
        shard_start(c, i, (size_t) (most / s->shards + 1));
    return c;
}

void callers_point(struct callers *c, unsigned target, uint64_t start)
{
    pthread_mutex_lock(&c->lock);
    c->first_id += c->round ? offered_calls(c->s, c->target) : 1;
    c->target = target;
    c->start = start;
    c->dispatched = c->drained = 0;
    c->round++;
    atomic_store(&c->max_in_flight, 0);
    pthread_cond_broadcast(&c->go);
    pthread_mutex_unlock(&c->lock);
}

static void wait_for(struct callers *c, const size_t *counter)
{
    pthread_mutex_lock(&c->lock);
    while (*counter < c->s->shards)
        pthread_cond_wait(&c->news, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void callers_wait_dispatched(struct callers *c)
{
    wait_for(c, &c->dispatched);
}

void callers_wait_drained(struct callers *c, struct tally *out)
{
    wait_for(c, &c->drained);
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < c->s->shards; i++) {
        const struct tally *t = &c->shards[i].tally;

        out->offered += t->offered;
        out->succeeded += t->succeeded;
        out->datagrams += t->datagrams;
        out->retransmissions += t->retransmissions;
        for (size_t k = 0; k < ERROR_KINDS; k++)
            out->errors[k] += t->errors[k];
        histogram_merge(&out->setup, &t->setup);
        histogram_merge(&out->cycle, &t->cycle);
    }
    out->max_in_flight = atomic_load(&c->max_in_flight);
}

uint16_t callers_port(const struct callers *c, size_t shard)
{
    return socket_port(c->shards[shard].fd);
}

uint64_t callers_active(struct callers *c, size_t shard)
{
    return atomic_load(&c->shards[shard].shown_active);
}

void callers_stop(struct callers *c)
{
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->go);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->s->shards; i++) {
        pthread_join(c->shards[i].thread, NULL);
        (void) close(c->shards[i].fd);
        free(c->shards[i].calls);
        free(c->shards[i].active);
    }
    free(c);
}
