/* For machines that watch the server: alive, ready, counters, version. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "audit/verdict.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "server/api/api.h"
#include "server/http/cache.h"
#include "server/http/listener.h"
#include "server/ingest/ingest.h"
#include "server/store/blobs.h"

static void reply_plain(struct request *q, unsigned status, cJSON *document)
{
    struct content *c = content_json(TYPE_JSON, document);

    if (c)
        content_set_caching(c, REPLY_NO_STORE, false);
    reply_content(q, status, c);
}

enum route_result health_alive(struct request *q)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "status", "ok");
    reply_plain(q, 200, json_doc_take(&d, NULL));
    return ROUTE_DONE;
}

/* Less than this and an upload would hardly fit. */
#define DISK_MIN LIMIT_MIB(64)

static bool disk_free(const struct api *a, uint64_t *out)
{
    struct statvfs v;

    if (fstatvfs(blobs_spool_dir(store_blobs(a->store)), &v) < 0)
        return false;
    *out = (uint64_t) v.f_bavail * v.f_frsize;
    return true;
}

static bool add_check(struct json_doc *d, cJSON *list, const char *name, bool ok, const char *text)
{
    cJSON *row = json_add_object(d, list, NULL);

    json_add_string(d, row, "name", name);
    json_add_bool(d, row, "ok", ok);
    if (!ok)
        json_add_string(d, row, "text", text);
    return ok;
}

enum route_result health_ready(struct request *q)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    const struct api *a = api_of(q);
    cJSON *list = NULL;
    uint64_t room = 0;
    bool ready = false;
    struct err e = ERR_INIT;

    json_doc_init_object(&d);
    list = json_add_array(&d, NULL, "checks");
    ready = add_check(&d, list, "store", store_ready(a->store, &e) == 0, e.text);
    ready &= add_check(&d, list, "disk", disk_free(a, &room) && room >= DISK_MIN,
                       "less than 64 MiB are free");
    ready &= add_check(&d, list, "queue", ingest_waiting(a->ingest) < LIMIT_QUEUE / 2,
                       "the ingest queue is long");
    json_add_bool(&d, NULL, "ready", ready);
    reply_plain(q, ready ? 200 : 503, json_doc_take(&d, NULL));
    return ROUTE_DONE;
}

enum route_result health_version(struct request *q)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "name", "cleanrun-server");
    json_add_string(&d, NULL, "version", CLEANRUN_VERSION);
    json_add_string(&d, NULL, "api", "v1");
    reply_plain(q, 200, json_doc_take(&d, NULL));
    return ROUTE_DONE;
}

/* Prometheus text and OpenMetrics differ in the name of a counter's family and in the end mark. */
struct metrics {
    struct buf out;
    bool open;
};

static void family(struct metrics *m, const char *name, const char *type, const char *unit,
                   const char *help)
{
    const char *total = !m->open && strcmp(type, "counter") == 0 ? "_total" : "";

    buf_printf(&m->out, "# TYPE cleanrun_%s%s %s\n", name, total, type);
    if (unit && m->open)
        buf_printf(&m->out, "# UNIT cleanrun_%s %s\n", name, unit);
    buf_printf(&m->out, "# HELP cleanrun_%s%s %s\n", name, total, help);
}

static void gauge(struct metrics *m, const char *name, const char *unit, const char *help,
                  uint64_t value)
{
    family(m, name, "gauge", unit, help);
    buf_printf(&m->out, "cleanrun_%s %" PRIu64 "\n", name, value);
}

static void counter(struct metrics *m, const char *name, const char *unit, const char *help,
                    uint64_t value)
{
    family(m, name, "counter", unit, help);
    buf_printf(&m->out, "cleanrun_%s_total %" PRIu64 "\n", name, value);
}

static void write_durations(struct metrics *m, const struct listener_counters *n)
{
    uint64_t sum = 0;
    size_t i = 0;

    family(m, "http_request_duration_seconds", "histogram", "seconds",
           "Time from request line to answer.");
    for (i = 0; i < LISTENER_DURATIONS; i++) {
        sum += atomic_load(&n->duration_buckets[i]);
        buf_puts(&m->out, "cleanrun_http_request_duration_seconds_bucket{le=\"");
        if (i + 1 < LISTENER_DURATIONS)
            json_write_number(&m->out, (double) listener_duration_bounds[i] / 1e9);
        else
            buf_puts(&m->out, "+Inf");
        buf_printf(&m->out, "\"} %" PRIu64 "\n", sum);
    }
    buf_puts(&m->out, "cleanrun_http_request_duration_seconds_sum ");
    json_write_number(&m->out, (double) atomic_load(&n->duration_ns) / 1e9);
    buf_printf(&m->out, "\ncleanrun_http_request_duration_seconds_count %" PRIu64 "\n", sum);
}

static void write_http(struct metrics *m, const struct listener_counters *n)
{
    size_t i = 0;

    family(m, "http_requests", "counter", NULL, "Answered requests by status class.");
    for (i = 2; i <= 5; i++)
        buf_printf(&m->out, "cleanrun_http_requests_total{status=\"%zuxx\"} %" PRIu64 "\n", i,
                   (uint64_t) atomic_load(&n->requests[i]));
    write_durations(m, n);
    counter(m, "http_refused", NULL, "Requests refused by the guard.", atomic_load(&n->refused));
    counter(m, "http_expired", NULL, "Connections cut by a deadline.", atomic_load(&n->expired));
    counter(m, "http_cache_hits", NULL, "Answers from the cache.", atomic_load(&n->cache_hits));
    counter(m, "upload_bytes", "bytes", "Body bytes received.", atomic_load(&n->body_bytes));
    gauge(m, "http_connections", NULL, "Open connections.", atomic_load(&n->connections));
    gauge(m, "http_active_requests", NULL, "Requests being answered.", atomic_load(&n->active));
}

static void write_store(struct metrics *m, const struct store_figures *f)
{
    int v = 0;

    gauge(m, "projects", NULL, "Projects.", f->projects);
    gauge(m, "stored_runs", NULL, "Accepted runs.", f->runs);
    gauge(m, "baselines", NULL, "Reviewed baselines.", f->baselines);
    gauge(m, "invalid_attempts", NULL, "Refused uploads that are kept.", f->attempts);
    gauge(m, "blobs", NULL, "Stored archives.", f->blobs);
    gauge(m, "blob_bytes", "bytes", "Bytes of stored archives.", f->blob_bytes);
    family(m, "verdicts", "gauge", NULL, "Stored verdicts by word.");
    for (v = 0; v < VERDICT_MAX; v++)
        buf_printf(&m->out, "cleanrun_verdicts{verdict=\"%s\"} %" PRIu64 "\n",
                   verdict_word((enum verdict) v), f->verdicts[v]);
}

enum route_result health_metrics(struct request *q)
{
    const char *accept = request_header(q, "Accept");
    struct api *a = api_of(q);
    struct metrics m = {.open = accept && strstr(accept, "application/openmetrics-text")};
    struct store_figures figures = {.projects = 0};
    struct content *c = NULL;
    uint64_t room = 0;
    char *bytes = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;

    if (store_figures(a->store, &figures, &e) < 0) {
        reply_err(q, &e);
        return ROUTE_DONE;
    }
    buf_init(&m.out, LIMIT_PAGE);
    family(&m, "build", m.open ? "info" : "gauge", NULL, "Version of the program.");
    buf_printf(&m.out, "cleanrun_build%s{version=\"" CLEANRUN_VERSION "\"} 1\n",
               m.open ? "_info" : "");
    gauge(&m, "start_time_seconds", "seconds", "When the process started, since 1970.",
          (uint64_t) a->started_us / 1000000);
    write_http(&m, listener_counters(q->listener));
    gauge(&m, "http_cache_bytes", "bytes", "Bytes held by the answer cache.",
          cache_bytes(a->cache));
    write_store(&m, &figures);
    gauge(&m, "ingest_queue", NULL, "Uploads waiting for the ingest thread.",
          ingest_waiting(a->ingest));
    if (disk_free(a, &room))
        gauge(&m, "disk_free_bytes", "bytes", "Room left for objects.", room);
    if (m.open)
        buf_puts(&m.out, "# EOF\n");
    bytes = buf_check(&m.out, NULL) == 0 ? buf_take(&m.out, &len) : NULL;
    buf_fini(&m.out);
    c = bytes ? content_bytes(m.open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                     : "text/plain; version=0.0.4; charset=utf-8",
                              bytes, len)
              : NULL;
    if (c)
        content_add_header(c, "Vary", "Accept");
    reply_content(q, 200, c);
    return ROUTE_DONE;
}
