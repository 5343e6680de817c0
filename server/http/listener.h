/*
 * listener: the libmicrohttpd daemon: pool of epoll threads, suspension, deadlines, draining,
 * counters. Knows the shape of requests and routes, nothing of what they mean. Thread rule: start,
 * tick, drain and stop from one thread; handlers run on pool threads.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct cache;
struct content;
struct listener;
struct request;
struct route;
struct workers;

#define LISTENER_DURATIONS 12

/* Counted for /metrics; only ever grow. */
struct listener_counters {
    atomic_uint_fast64_t requests[6]; /* by status class; [0] unused */
    atomic_uint_fast64_t refused;     /* by the guard */
    atomic_uint_fast64_t expired;     /* connections cut by a deadline */
    atomic_uint_fast64_t body_bytes;
    atomic_uint_fast64_t cache_hits;
    /* Not cumulative; the last is +Inf. */
    atomic_uint_fast64_t duration_buckets[LISTENER_DURATIONS];
    atomic_uint_fast64_t duration_ns;
    atomic_size_t connections; /* open now */
    atomic_size_t active;      /* requests now */
};
/* Upper bounds in nanoseconds of all but the last bucket. */
extern const uint64_t listener_duration_bounds[LISTENER_DURATIONS - 1];

struct listener_options {
    int listen_fd; /* bound and listening; taken */
    unsigned threads;
    const char *base_url;       /* without a trailing slash; borrowed */
    const struct route *routes; /* borrowed, as is app */
    size_t n_routes;
    void *app;
    struct cache *cache;     /* borrowed; NULL: none */
    struct workers *workers; /* borrowed; NULL: offloaded handlers run where they are called */
    /* Makes the error page for a problem document in q->twin's form; NULL: the problem itself is
     * sent. */
    struct content *(*error_page)(struct request *q, const cJSON *problem);
    /* Seconds; 0 takes the default. Tests shorten them. */
    unsigned idle_s;   /* 15 */
    unsigned header_s; /* 20: from connection or last answer to a complete header */
    unsigned body_s;   /* 30, plus content length at 64 KiB/s */
};

int listener_start(const struct listener_options *options, struct listener **out,
                   struct err *e) MUST_CHECK;
const struct listener_options *listener_get_options(const struct listener *l);
struct listener_counters *listener_counters(struct listener *l);
/* Cuts connections past their deadline; call a few times a second. */
void listener_tick(struct listener *l);
/* Accepts nothing new. Closes the listening socket. */
void listener_quiesce(struct listener *l);
/* Nothing is suspended any more from here on: then whoever resumes can be drained and stopped. */
void listener_close_gate(struct listener *l);
/* For request.c: false once the gate is closed; true is followed by listener_leave, soon. */
bool listener_enter(struct listener *l) MUST_CHECK;
void listener_leave(struct listener *l);
/* Every suspended request must have been resumed before. Open connections are cut. Accepts NULL. */
void listener_stop(struct listener *l);
