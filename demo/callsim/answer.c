/* The answering side: one thread receives, one answers, and every live call is watched. */
#include "callsim.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DIRECTORY_DELAY_US 0 /* what looking a subscriber up costs; local, so nothing */

/* What is noted of a live call at every tick. */
struct note {
    struct note *next;
    uint64_t at_ns;
    char text[80];
};

struct watch {
    struct watch *next, *previous;
    struct note *notes;
};

struct call {
    struct call *next;       /* in its bucket */
    struct call *queue_next; /* among the unanswered */
    uint64_t id;
    struct sockaddr_in caller;
    uint32_t shard;
    bool answered;
    struct watch *watch;
};

struct answerer {
    int fd;
    pthread_t receiver, worker;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct call *buckets[CALL_BUCKETS];
    struct call *queue, **queue_end;
    struct watch watches; /* ring */
    uint64_t calls, queued;
    atomic_bool stop;
};

static struct watch *watch_begin(struct answerer *a)
{
    struct watch *w = calloc(1, sizeof(*w));

    if (!w)
        die("memory");
    w->next = a->watches.next;
    w->previous = &a->watches;
    w->next->previous = w;
    a->watches.next = w;
    return w;
}

static void watch_end(struct watch *w)
{
    w->previous->next = w->next;
    w->next->previous = w->previous;
    while (w->notes) {
        struct note *n = w->notes;

        w->notes = n->next;
        free(n);
    }
    free(w);
}

static void watch_tick(struct answerer *a)
{
    uint64_t now = now_ns();

    for (struct watch *w = a->watches.next; w != &a->watches; w = w->next) {
        struct note *n = malloc(sizeof(*n));

        if (!n)
            die("memory");
        n->at_ns = now;
        memset(n->text, '.', sizeof(n->text));
        n->next = w->notes;
        w->notes = n;
    }
}

static struct call **find(struct answerer *a, uint64_t id)
{
    struct call **at = &a->buckets[id % CALL_BUCKETS];

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static void reply(const struct answerer *a, enum message message, const struct sockaddr_in *to,
                  uint32_t shard, uint64_t id)
{
    struct datagram d = {.message = message, .shard = shard, .call = id};

    /* A reply that is lost is asked for again. */
    (void) !sendto(a->fd, &d, sizeof(d), 0, (const struct sockaddr *) to, sizeof(*to));
}

static void on_invite(struct answerer *a, const struct datagram *d, const struct sockaddr_in *from)
{
    struct call **at = find(a, d->call);
    struct call *call = *at;

    if (call) {
        if (call->answered)
            reply(a, MESSAGE_INVITE_OK, from, d->shard, d->call);
        return;
    }
    call = calloc(1, sizeof(*call));
    if (!call)
        die("memory");
    call->id = d->call;
    call->shard = d->shard;
    call->caller = *from;
    call->watch = watch_begin(a);
    *at = call;
    *a->queue_end = call;
    a->queue_end = &call->queue_next;
    a->calls++;
    a->queued++;
    pthread_cond_signal(&a->work);
}

static void end_call(struct answerer *a, struct call **at)
{
    struct call *call = *at;

    *at = call->next;
    watch_end(call->watch);
    free(call);
    a->calls--;
}

static void on_bye(struct answerer *a, const struct datagram *d, const struct sockaddr_in *from)
{
    struct call **at = find(a, d->call);

    if (*at && (*at)->answered)
        end_call(a, at);
    reply(a, MESSAGE_BYE_OK, from, d->shard, d->call); /* also to one that is asked again */
}

static void on_datagram(struct answerer *a, const struct datagram *d,
                        const struct sockaddr_in *from)
{
    pthread_mutex_lock(&a->lock);
    if (d->message == MESSAGE_INVITE)
        on_invite(a, d, from);
    else if (d->message == MESSAGE_BYE)
        on_bye(a, d, from);
    pthread_mutex_unlock(&a->lock);
}

static void *receive(void *context)
{
    struct answerer *a = context;
    uint64_t tick = now_ns() + WATCH_TICK_MS * NS_PER_MS;

    while (!atomic_load(&a->stop)) {
        struct pollfd p = {.fd = a->fd, .events = POLLIN};
        struct datagram d;
        struct sockaddr_in from;
        socklen_t len = sizeof(from);
        uint64_t now = now_ns();

        if (now >= tick) {
            pthread_mutex_lock(&a->lock);
            watch_tick(a);
            pthread_mutex_unlock(&a->lock);
            tick += WATCH_TICK_MS * NS_PER_MS;
            continue;
        }
        (void) poll(&p, 1, (int) ((tick - now) / NS_PER_MS) + 1);
        while (recvfrom(a->fd, &d, sizeof(d), MSG_DONTWAIT, (struct sockaddr *) &from, &len) ==
               (ssize_t) sizeof(d))
            on_datagram(a, &d, &from);
    }
    return NULL;
}

static void *answer(void *context)
{
    struct answerer *a = context;

    pthread_mutex_lock(&a->lock);
    while (!atomic_load(&a->stop)) {
        struct call *call = a->queue;

        if (!call) {
            pthread_cond_wait(&a->work, &a->lock);
            continue;
        }
        if (DIRECTORY_DELAY_US > 0) {
            pthread_mutex_unlock(&a->lock);
            sleep_until_ns(now_ns() + DIRECTORY_DELAY_US * 1000ULL);
            pthread_mutex_lock(&a->lock);
        }
        a->queue = call->queue_next;
        if (!a->queue)
            a->queue_end = &a->queue;
        a->queued--;
        call->answered = true;
        reply(a, MESSAGE_INVITE_OK, &call->caller, call->shard, call->id);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

struct answerer *answerer_start(void)
{
    struct answerer *a = calloc(1, sizeof(*a));

    if (!a)
        die("memory");
    a->fd = open_socket();
    a->queue_end = &a->queue;
    a->watches.next = a->watches.previous = &a->watches;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->work, NULL);
    if (pthread_create(&a->receiver, NULL, receive, a) != 0 ||
        pthread_create(&a->worker, NULL, answer, a) != 0)
        die("thread");
    return a;
}

uint16_t answerer_port(const struct answerer *a)
{
    return socket_port(a->fd);
}

void answerer_counts(struct answerer *a, uint64_t *calls, uint64_t *queued)
{
    pthread_mutex_lock(&a->lock);
    *calls = a->calls;
    *queued = a->queued;
    pthread_mutex_unlock(&a->lock);
}

void answerer_stop(struct answerer *a)
{
    pthread_mutex_lock(&a->lock);
    atomic_store(&a->stop, true);
    pthread_cond_signal(&a->work);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->receiver, NULL);
    pthread_join(a->worker, NULL);
    for (size_t i = 0; i < CALL_BUCKETS; i++)
        while (a->buckets[i])
            end_call(a, &a->buckets[i]);
    (void) close(a->fd);
    free(a);
}
