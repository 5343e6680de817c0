#include "server/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/api/api.h"
#include "server/http/assets.h"
#include "server/http/bind.h"
#include "server/http/cache.h"
#include "server/http/listener.h"
#include "server/http/workers.h"
#include "server/ingest/ingest.h"
#include "server/pages/pages.h"
#include "server/store/store.h"
#include "tools/embed.h"

#define WORKERS 4u
#define CACHE_BYTES LIMIT_MIB(16)
#define TICK_NS 20000000

struct service {
    const struct config *config;
    char *base_url;
    struct api api; /* owns what it points to, but for base_url */
    struct workers *workers;
    struct listener *listener;
    uint64_t generation; /* of the store, as last seen */
};

/* http://HOST:PORT of what is bound; a wildcard address becomes localhost. */
static int make_base_url(struct service *s, unsigned port, struct err *e)
{
    const char *listen = s->config->listen;
    const char *colon = strrchr(listen, ':');
    size_t len = colon ? (size_t) (colon - listen) : 0;
    size_t size = 0;
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, 1024);
    if (s->config->base_url) {
        buf_puts(&b, s->config->base_url);
    } else {
        buf_puts(&b, "http://");
        if (len == 0 || strncmp(listen, "0.0.0.0:", 8) == 0 || strncmp(listen, "[::]:", 5) == 0)
            buf_puts(&b, "localhost");
        else
            buf_put(&b, listen, len);
        buf_printf(&b, ":%u", port);
    }
    if (buf_check(&b, e) < 0)
        return -1;
    s->base_url = buf_take(&b, &size);
    return s->base_url ? 0 : err_memory(e, "service.memory");
}

static int write_port_file(const struct service *s, unsigned port, struct err *e)
{
    char text[32];

    if (!s->config->port_file)
        return 0;
    (void) snprintf(text, sizeof text, "%u\n", port);
    return file_write(s->config->port_file, text, strlen(text), 0644, e);
}

static int open_parts(struct service *s, struct err *e)
{
    struct api *a = &s->api;

    a->base_url = s->base_url;
    a->started_us = clock_realtime_us();
    if (store_open(s->config->data, STORE_SERVE, s->config->threads + WORKERS, &a->store, e) < 0 ||
        store_set_base_url(a->store, s->base_url, e) < 0 ||
        pages_load(s->config->templates, &a->pages, e) < 0)
        return -1;
    a->assets = assets_new(&embed_web);
    a->cache = cache_new(CACHE_BYTES, api_probe, a);
    a->memo = digest_memo_new();
    if (!a->assets || !a->cache || !a->memo)
        return err_memory(e, "service.memory");
    if (store_generation(a->store, &s->generation, e) < 0)
        return -1;
    return workers_start(WORKERS, &s->workers, e) < 0 ? -1 : ingest_start(a->store, &a->ingest, e);
}

static int open_listener(struct service *s, int listen_fd, struct err *e)
{
    struct listener_options o = {
        .listen_fd = listen_fd,
        .threads = s->config->threads,
        .base_url = s->base_url,
        .app = &s->api,
        .cache = s->api.cache,
        .workers = s->workers,
        .error_page = api_error_page,
        .idle_s = s->config->idle_s,
        .header_s = s->config->header_s,
    };

    o.routes = api_routes(&o.n_routes);
    return listener_start(&o, &s->listener, e);
}

int service_start(const struct config *config, int listen_fd, struct service **out, struct err *e)
{
    struct service *s = calloc(1, sizeof *s);
    AUTO_FD int fd = listen_fd;
    unsigned port = 0;

    if (!s)
        return err_memory(e, "service.memory");
    s->config = config;
    if ((fd < 0 && bind_listen(config->listen, &fd, &port, e) < 0) ||
        make_base_url(s, port, e) < 0 || open_parts(s, e) < 0 || open_listener(s, fd, e) < 0) {
        service_stop(s);
        return -1;
    }
    (void) fd_steal(&fd); /* the listener's now */
    if (write_port_file(s, port, e) < 0) {
        service_stop(s);
        return -1;
    }
    *out = s;
    return 0;
}

const char *service_base_url(const struct service *s)
{
    return s->base_url;
}

void service_tick(struct service *s)
{
    uint64_t now = 0;
    struct err e = ERR_INIT;

    listener_tick(s->listener);
    if (store_generation(s->api.store, &now, &e) < 0) {
        log_event(LOG_ERROR, "store.generation", "code=%s text=\"%s\"", e.code, e.text);
        cache_bump(s->api.cache);
    } else if (now != s->generation) {
        s->generation = now;
        cache_bump(s->api.cache);
    }
}

/* Waits until no request is under way; false after the limit. */
static bool wait_quiet(struct listener *l, uint64_t limit_ns)
{
    const struct timespec pause = {.tv_nsec = TICK_NS};
    uint64_t until = clock_monotonic_ns() + limit_ns;

    while (atomic_load(&listener_counters(l)->active) > 0) {
        if (clock_monotonic_ns() >= until)
            return false;
        listener_tick(l);
        (void) nanosleep(&pause, NULL); /* cut short is fine */
    }
    return true;
}

void service_stop(struct service *s)
{
    struct api *a = NULL;

    if (!s)
        return;
    a = &s->api;
    if (s->listener) {
        listener_quiesce(s->listener);
        if (!wait_quiet(s->listener, (uint64_t) s->config->drain_s * UINT64_C(1000000000)))
            log_event(LOG_WARN, "service.cut", "requests=%zu",
                      atomic_load(&listener_counters(s->listener)->active));
        listener_close_gate(s->listener);
    }
    ingest_stop(a->ingest);
    if (s->workers)
        workers_drain(s->workers);
    if (s->listener)
        (void) wait_quiet(s->listener, UINT64_C(1000000000)); /* the last answers go out */
    listener_stop(s->listener);
    workers_stop(s->workers);
    cache_free(a->cache);
    digest_memo_free(a->memo);
    assets_free(a->assets);
    pages_free(a->pages);
    store_close(a->store);
    free(s->base_url);
    free(s);
}
