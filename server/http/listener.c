#include "server/http/listener.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/http/cache.h"
#include "server/http/conns.h"
#include "server/http/guard.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/http/route.h"
#include "server/http/workers.h"

#define NS_PER_S UINT64_C(1000000000)
/* A refused body up to this is read to its end, so that the answer is surely seen. */
#define SWALLOW_MAX 65536u
#define IDLE_DEFAULT_S 15u
#define HEADER_DEFAULT_S 20u
#define GONE_MS 5000 /* what was read last may still be in work */
#define GONE_AT_END_MS 500
#define BODY_DEFAULT_S 30u
#define CACHE_NS (60 * NS_PER_S) /* pages show ages */

const uint64_t listener_duration_bounds[LISTENER_DURATIONS - 1] = {
    100000,   500000,    1000000,    2500000,    5000000,     10000000,
    50000000, 250000000, 1000000000, 5000000000, 30000000000,
};

struct listener {
    struct listener_options options;
    struct MHD_Daemon *daemon;
    struct listener_counters counters;
    atomic_uint_fast64_t next_request;
    struct conns conns;
    bool quiet; /* the listening socket is closed */
    pthread_rwlock_t gate_lock;
    bool gate_closed; /* under gate_lock */
};

static struct conn *conn_of(const struct request *q)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

/* libmicrohttpd tells of the end before it closes the descriptor. */
static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct listener *l = cls;
    const union MHD_ConnectionInfo *info = NULL;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        /* without memory no deadline; the idle time-out still holds */
        *context = info ? conns_add(&l->conns, info->connect_fd, l->options.header_s) : NULL;
        (void) atomic_fetch_add(&l->counters.connections, 1);
        return;
    }
    if (*context)
        conns_remove(&l->conns, *context);
    *context = NULL;
    (void) atomic_fetch_sub(&l->counters.connections, 1);
}

void listener_tick(struct listener *l)
{
    conns_expire(&l->conns, &l->counters.expired);
    conns_drop_gone(&l->conns, l->quiet ? GONE_AT_END_MS : GONE_MS);
}

/* The target before libmicrohttpd cuts it at '?'. Its answer becomes the request's context. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct listener *l = cls;
    struct request *q = request_new();
    size_t len = strnlen(target, LIMIT_URL + 1);
    const char *query = NULL;

    if (!q)
        return NULL;
    q->listener = l;
    q->connection = connection;
    q->app = l->options.app;
    q->id = atomic_fetch_add(&l->next_request, 1) + 1;
    q->started_ns = clock_monotonic_ns();
    q->target = arena_memdup(&q->arena, target, len);
    if (!q->target) {
        request_free(q);
        return NULL;
    }
    query = strchr(q->target, '?');
    q->raw_query = query ? query + 1 : NULL;
    return q;
}

static void count_duration(struct listener_counters *n, uint64_t ns)
{
    size_t i = 0;

    while (i < LISTENER_DURATIONS - 1 && ns > listener_duration_bounds[i])
        i++;
    (void) atomic_fetch_add_explicit(&n->duration_buckets[i], 1, memory_order_relaxed);
    (void) atomic_fetch_add_explicit(&n->duration_ns, ns, memory_order_relaxed);
}

static void log_request(const struct request *q, enum MHD_RequestTerminationCode code, uint64_t ns)
{
    char target[256];
    bool ordinary = request_is_read(q) && q->status < 500;

    log_event(ordinary ? LOG_DEBUG : LOG_INFO, "request",
              "request=%" PRIu64 " method=%s target=%s status=%u body=%" PRIu64 " us=%" PRIu64
              " end=%s",
              q->id,
              q->method == HTTP_UNKNOWN ? "?"
              : q->method_text          ? q->method_text
                                        : "-",
              log_q(q->target, target, sizeof target), q->status, q->body_seen, ns / 1000,
              code == MHD_REQUEST_TERMINATED_COMPLETED_OK ? "ok" : "cut");
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct listener *l = cls;
    struct request *q = *context;
    uint64_t ns = 0;

    (void) connection; /* the request has it */
    *context = NULL;
    if (!q)
        return;
    ns = clock_monotonic_ns() - q->started_ns;
    if (q->status >= 100 && q->status < 600)
        (void) atomic_fetch_add_explicit(&l->counters.requests[q->status / 100], 1,
                                         memory_order_relaxed);
    count_duration(&l->counters, ns);
    log_request(q, code, ns);
    conn_set_deadline(conn_of(q), l->options.header_s, 0);
    conn_set_receiving(conn_of(q), false);
    if (q->counted)
        (void) atomic_fetch_sub(&l->counters.active, 1);
    request_free(q);
}

static enum MHD_Result queue(struct request *q)
{
    bool queued = reply_queue(q);
    uint64_t size = q->content ? content_size(q->content) : 0;

    conn_set_deadline(conn_of(q), q->listener->options.body_s, size);
    return queued ? MHD_YES : MHD_NO;
}

/* The answer is known before the body was read. A short body is read to its end first: a response
 * that is followed by a reset, because bytes lie unread, may never be seen. */
static enum MHD_Result answer_early(struct request *q)
{
    if (q->has_length && q->content_length > 0 && q->content_length <= SWALLOW_MAX &&
        !q->expects_continue) {
        q->phase = REQUEST_SWALLOW;
        return MHD_YES;
    }
    if (q->content_length == 0) { /* answered in the next call: keeps the connection */
        q->phase = REQUEST_SWALLOW;
        return MHD_YES;
    }
    return queue(q);
}

static void find_route(struct request *q)
{
    const struct listener_options *o = &q->listener->options;
    const char *allow = NULL;

    switch (route_find(o->routes, o->n_routes, q, &allow)) {
    case ROUTE_FOUND:
        return;
    case ROUTE_NOT_FOUND:
        reply_not_found(q);
        return;
    case ROUTE_NOT_METHOD:
        break;
    }
    if (q->method == HTTP_OPTIONS)
        reply_content(q, 204, content_static(TYPE_TEXT, "", 0));
    else
        reply_problem(q, 405, "method", "this address does not take this method", NULL);
    if (q->content && allow)
        content_add_header(q->content, "Allow", allow);
}

static bool is_cacheable(const struct request *q)
{
    return q->listener->options.cache && request_is_read(q) && !q->raw_query &&
           !request_header(q, "Authorization");
}

static bool answer_from_cache(struct request *q)
{
    struct content *c = NULL;

    if (!is_cacheable(q))
        return false;
    c = cache_get(q->listener->options.cache, q->target, q->started_ns);
    if (!c)
        return false;
    reply_content(q, 200, c);
    q->from_cache = true;
    (void) atomic_fetch_add_explicit(&q->listener->counters.cache_hits, 1, memory_order_relaxed);
    return true;
}

/* Headers are complete. */
static enum MHD_Result start(struct request *q)
{
    const struct listener_options *o = &q->listener->options;
    struct guard_refusal refusal = {.status = 0};

    /* Half a head is no request: a stopping server does not wait for its rest. */
    (void) atomic_fetch_add(&q->listener->counters.active, 1);
    q->counted = true;
    request_read_headers(q);
    if (!guard_check(q, &refusal)) {
        (void) atomic_fetch_add(&q->listener->counters.refused, 1);
        reply_problem(q, refusal.status, refusal.slug, refusal.detail, NULL);
        return queue(q); /* in the first call: closes the connection */
    }
    conn_set_deadline(conn_of(q), o->body_s, q->content_length);
    conn_set_receiving(conn_of(q), q->content_length > 0);
    if (answer_from_cache(q)) {
        q->phase = REQUEST_SWALLOW;
        return MHD_YES;
    }
    find_route(q);
    if (!q->route)
        return answer_early(q);
    if (q->route->begin) {
        if (!q->has_length) {
            reply_problem(q, 411, "length-required", "a body needs a Content-Length", NULL);
            return queue(q);
        }
        if (!q->route->begin(q))
            return answer_early(q);
    } else if (q->content_length > 0) {
        reply_problem(q, 413, "too-large", "this address takes no body", NULL);
        return answer_early(q);
    }
    q->phase = REQUEST_READING;
    return MHD_YES;
}

static void take_body(struct request *q, const char *bytes, size_t len)
{
    bool going = true;

    q->body_seen += len;
    (void) atomic_fetch_add_explicit(&q->listener->counters.body_bytes, len, memory_order_relaxed);
    if (q->phase != REQUEST_READING)
        return;
    if (q->route->data) {
        going = q->route->data(q, bytes, len);
    } else {
        buf_put(&q->body, bytes, len);
        if (q->body.failed) {
            reply_problem(q, 413, "too-large", "the body is too large", NULL);
            going = false;
        }
    }
    if (!going)
        q->phase = REQUEST_SWALLOW;
}

static void keep_answer(struct request *q)
{
    if (q->route->cacheable && q->status == 200 && q->content && !q->never_cache && is_cacheable(q))
        cache_put(q->listener->options.cache, q->target, q->content, q->cache_generation, q->watch,
                  q->watch_len, q->started_ns + CACHE_NS);
}

/* On a worker thread. */
static void handle_offloaded(void *cls)
{
    struct request *q = cls;

    (void) q->route->handle(q); /* always done: nobody else resumes it */
    request_resume(q);
}

static enum route_result offload(struct request *q)
{
    struct err e = ERR_INIT;

    if (!request_suspend(q))
        return ROUTE_DONE;
    if (workers_submit(q->listener->options.workers, handle_offloaded, q, &e) < 0) {
        reply_err(q, &e);
        request_resume(q);
    }
    request_handed_over(q);
    return ROUTE_WAIT;
}

static enum MHD_Result finish(struct request *q)
{
    const struct listener_options *o = &q->listener->options;
    enum route_result result = ROUTE_DONE;

    conn_set_receiving(conn_of(q), false);
    if (q->phase == REQUEST_SWALLOW)
        return queue(q);
    if (q->phase == REQUEST_SUSPENDED) {
        if (q->route->resume)
            q->route->resume(q);
        keep_answer(q);
        return queue(q);
    }
    q->cache_generation = o->cache ? cache_generation(o->cache) : 0;
    result = q->route->offload && o->workers ? offload(q) : q->route->handle(q);
    if (result == ROUTE_WAIT) {
        conn_clear_deadline(conn_of(q));
        return MHD_YES;
    }
    keep_answer(q);
    return queue(q);
}

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd's signature */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **context)
{
    struct request *q = *context;

    (void) cls; /* the request has them */
    (void) connection;
    if (!q)
        return MHD_NO; /* no memory when the request line came */
    if (q->phase == REQUEST_ANSWERED)
        return MHD_YES;
    if (q->phase == REQUEST_NEW) {
        q->raw_path = url;
        q->method_text = method;
        q->version = version;
        return start(q);
    }
    if (*upload_data_size > 0) {
        take_body(q, upload_data, *upload_data_size);
        *upload_data_size = 0;
        return MHD_YES;
    }
    return finish(q);
}

static size_t keep_raw(void *cls, struct MHD_Connection *connection, char *text)
{
    (void) cls; /* the target is decoded by uri.c, per segment */
    (void) connection;
    return strlen(text);
}

static void on_log(void *cls, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));
static void on_log(void *cls, const char *format, va_list ap)
{
    char text[256];
    char quoted[256];

    (void) cls; /* the log needs none */
    if (vsnprintf(text, sizeof text, format, ap) > 0)
        log_event(LOG_DEBUG, "http", "text=%s", log_q(text, quoted, sizeof quoted));
}

static struct MHD_Daemon *start_daemon(struct listener *l)
{
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;

    /* The logger must be the first option. */
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, l, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, l, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        l, MHD_OPTION_URI_LOG_CALLBACK, on_target, l, MHD_OPTION_UNESCAPE_CALLBACK, keep_raw, NULL,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) LIMIT_CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned) LIMIT_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        l->options.idle_s, MHD_OPTION_THREAD_POOL_SIZE, l->options.threads,
        MHD_OPTION_LISTEN_SOCKET, l->options.listen_fd, MHD_OPTION_STRICT_FOR_CLIENT, 0,
        MHD_OPTION_END);
}

int listener_start(const struct listener_options *options, struct listener **out, struct err *e)
{
    struct listener *l = calloc(1, sizeof *l);

    if (!l)
        return err_memory(e, "listener.memory");
    l->options = *options;
    l->options.idle_s = options->idle_s ? options->idle_s : IDLE_DEFAULT_S;
    l->options.header_s = options->header_s ? options->header_s : HEADER_DEFAULT_S;
    l->options.body_s = options->body_s ? options->body_s : BODY_DEFAULT_S;
    conns_init(&l->conns);
    (void) pthread_rwlock_init(&l->gate_lock, NULL);
    l->daemon = start_daemon(l);
    if (!l->daemon) {
        conns_fini(&l->conns);
        (void) pthread_rwlock_destroy(&l->gate_lock);
        free(l);
        return err_set(e, ERR_SYS, "listener.start", "cannot start the HTTP threads");
    }
    *out = l;
    return 0;
}

const struct listener_options *listener_get_options(const struct listener *l)
{
    return &l->options;
}

struct listener_counters *listener_counters(struct listener *l)
{
    return &l->counters;
}

void listener_quiesce(struct listener *l)
{
    MHD_socket fd = MHD_INVALID_SOCKET;

    if (l->quiet)
        return;
    fd = MHD_quiesce_daemon(l->daemon);
    if (fd != MHD_INVALID_SOCKET)
        (void) close(fd); /* a listening socket holds no data */
    l->quiet = true;
}

void listener_close_gate(struct listener *l)
{
    (void) pthread_rwlock_wrlock(&l->gate_lock);
    l->gate_closed = true;
    (void) pthread_rwlock_unlock(&l->gate_lock);
}

bool listener_enter(struct listener *l)
{
    bool open = false;

    (void) pthread_rwlock_rdlock(&l->gate_lock);
    open = !l->gate_closed;
    if (!open)
        (void) pthread_rwlock_unlock(&l->gate_lock);
    return open;
}

void listener_leave(struct listener *l)
{
    (void) pthread_rwlock_unlock(&l->gate_lock);
}

void listener_stop(struct listener *l)
{
    if (!l)
        return;
    MHD_stop_daemon(l->daemon);
    conns_fini(&l->conns);
    (void) pthread_rwlock_destroy(&l->gate_lock);
    free(l);
}
