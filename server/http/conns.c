#include "server/http/conns.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"

#define NS_PER_S UINT64_C(1000000000)
#define SLOWEST_BODY 65536u /* bytes per second an upload or download must manage on average */

struct conn {
    struct conn *next, *previous; /* under list_lock */
    int fd;
    atomic_uint_fast64_t deadline_ns; /* 0: none */
    atomic_bool receiving;
    uint64_t gone_ns; /* the peer was first seen gone; 0: not; under list_lock */
};

void conns_init(struct conns *s)
{
    (void) pthread_mutex_init(&s->list_lock, NULL); /* default attributes: cannot fail on Linux */
    s->first = NULL;
}

void conns_fini(struct conns *s)
{
    (void) pthread_mutex_destroy(&s->list_lock);
}

void conn_set_deadline(struct conn *c, uint64_t seconds, uint64_t bytes)
{
    if (c)
        atomic_store(&c->deadline_ns,
                     clock_monotonic_ns() + (seconds + bytes / SLOWEST_BODY) * NS_PER_S);
}

void conn_clear_deadline(struct conn *c)
{
    if (c)
        atomic_store(&c->deadline_ns, 0);
}

struct conn *conns_add(struct conns *s, int fd, uint64_t seconds)
{
    struct conn *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->fd = fd;
    conn_set_deadline(c, seconds, 0);
    (void) pthread_mutex_lock(&s->list_lock);
    c->next = s->first;
    if (s->first)
        s->first->previous = c;
    s->first = c;
    (void) pthread_mutex_unlock(&s->list_lock);
    return c;
}

void conns_remove(struct conns *s, struct conn *c)
{
    (void) pthread_mutex_lock(&s->list_lock);
    if (c->next)
        c->next->previous = c->previous;
    if (c->previous)
        c->previous->next = c->next;
    else
        s->first = c->next;
    (void) pthread_mutex_unlock(&s->list_lock);
    free(c);
}

void conn_set_receiving(struct conn *c, bool receiving)
{
    if (c)
        atomic_store(&c->receiving, receiving);
}

/* The peer has ended its side and every byte that it sent was taken. */
static bool is_gone(const struct conn *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    int waiting = 0;

    return atomic_load(&c->receiving) && poll(&p, 1, 0) > 0 &&
           ioctl(c->fd, FIONREAD, &waiting) == 0 && waiting == 0;
}

void conns_drop_gone(struct conns *s, uint64_t after_ms)
{
    uint64_t now = clock_monotonic_ns();
    struct conn *c = NULL;

    (void) pthread_mutex_lock(&s->list_lock);
    for (c = s->first; c; c = c->next) {
        if (!is_gone(c))
            c->gone_ns = 0;
        else if (c->gone_ns == 0)
            c->gone_ns = now;
        else if (now - c->gone_ns >= after_ms * (NS_PER_S / 1000))
            (void) shutdown(c->fd, SHUT_RDWR); /* already gone is fine */
    }
    (void) pthread_mutex_unlock(&s->list_lock);
}

void conns_expire(struct conns *s, atomic_uint_fast64_t *count)
{
    uint64_t now = clock_monotonic_ns();
    struct conn *c = NULL;

    (void) pthread_mutex_lock(&s->list_lock);
    for (c = s->first; c; c = c->next) {
        uint64_t deadline = atomic_load(&c->deadline_ns);

        if (deadline == 0 || now < deadline)
            continue;
        atomic_store(&c->deadline_ns, 0);
        (void) atomic_fetch_add(count, 1);
        (void) shutdown(c->fd, SHUT_RDWR); /* already gone is fine */
    }
    (void) pthread_mutex_unlock(&s->list_lock);
}
