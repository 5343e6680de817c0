/*
 * conns: the open connections with a deadline each. libmicrohttpd only knows how long a connection
 * was silent; a peer that sends a byte a second would stay for ever.
 * Thread rule: any thread; a connection's own deadline is set by its pool thread.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct conn;

struct conns {
    pthread_mutex_t list_lock;
    struct conn *first; /* under list_lock */
};

void conns_init(struct conns *s);
void conns_fini(struct conns *s); /* every connection was removed before */

/* fd is libmicrohttpd's and stays open until conns_remove has returned. NULL: no memory. */
struct conn *conns_add(struct conns *s, int fd, uint64_t seconds) MUST_CHECK;
void conns_remove(struct conns *s, struct conn *c);
/* Shuts down those past their deadline; their pool threads see the end and close them. Each is
 * counted before it is cut: who sees the end finds it in the count. */
void conns_expire(struct conns *s, atomic_uint_fast64_t *count);

/* Shuts down those whose peer is gone in the middle of a body, after so many milliseconds.
 * libmicrohttpd misses an end that was there already when it read the last bytes, and would wait
 * for its idle time-out. */
void conns_drop_gone(struct conns *s, uint64_t after_ms);

/* Is a body still to come? Until said, no. c may be NULL. */
void conn_set_receiving(struct conn *c, bool receiving);
/* From now on: so long, and longer by what `bytes` take at 64 KiB/s. c may be NULL. */
void conn_set_deadline(struct conn *c, uint64_t seconds, uint64_t bytes);
void conn_clear_deadline(struct conn *c); /* the server itself is working; c may be NULL */
