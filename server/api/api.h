/*
 * api: the addresses of docs/api.md over the store's documents: machine API, pages with their
 * twins, uploads, downloads, health. Knows HTTP only through server/http and the store only through
 * its functions; decides who may see what (access.h) before it reads anything. Thread rule: struct
 * api is constant after start but for what its members protect themselves.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/http/route.h"

struct assets;
struct cache;
struct digest_memo;
struct ingest;
struct pages;
struct store;

#define CLEANRUN_VERSION "0.1.0"

struct api {
    const char *base_url; /* absolute, no slash at the end */
    struct store *store;
    struct ingest *ingest;
    struct pages *pages;
    struct assets *assets;
    struct cache *cache;
    struct digest_memo *memo; /* digests of bundles */
    int64_t started_us;
};

/* The whole table, in matching order. */
const struct route *api_routes(size_t *out_n);
/* listener_options.error_page */
struct content *api_error_page(struct request *q, const cJSON *problem);
/* cache_probe over api_watch's form; cls is the struct api. */
bool api_probe(void *cls, const void *watch, size_t len);
/* The answer of q depends on the bytes of this archive: a cached copy is dropped when the file
 * changes. A damaged one is never cached. At most two per answer. */
void api_watch(struct request *q, const struct digest *archive);

static inline struct api *api_of(const struct request *q)
{
    return q->app;
}

/* Handlers, by file; the table is in routes.c. */
bool upload_blob_begin(struct request *q);
bool upload_blob_data(struct request *q, const char *bytes, size_t len);
enum route_result upload_blob_handle(struct request *q);
bool upload_run_begin(struct request *q);
enum route_result upload_run_handle(struct request *q);
void upload_run_resume(struct request *q);

enum route_result run_verdict(struct request *q);
enum route_result run_attestation(struct request *q);
enum route_result run_verdict_attestation(struct request *q);

enum route_result download_archive(struct request *q);
enum route_result download_bundle(struct request *q);
enum route_result download_member(struct request *q);

enum route_result page_home(struct request *q);
enum route_result page_project(struct request *q);
enum route_result page_gate(struct request *q);
enum route_result page_baselines(struct request *q);
enum route_result page_baseline(struct request *q);
enum route_result page_runner(struct request *q);
enum route_result page_commit(struct request *q);
enum route_result page_run(struct request *q);
enum route_result page_compare(struct request *q);
enum route_result page_compare_baselines(struct request *q);
enum route_result page_badge(struct request *q);
enum route_result page_asset(struct request *q);

enum route_result help_index(struct request *q);
enum route_result help_reason(struct request *q);
enum route_result help_problem(struct request *q);
enum route_result help_openapi(struct request *q);
enum route_result help_schema(struct request *q);
enum route_result help_keys(struct request *q);

enum route_result health_alive(struct request *q);
enum route_result health_ready(struct request *q);
enum route_result health_metrics(struct request *q);
enum route_result health_version(struct request *q);

/* SHA-256 of large generated bodies, remembered by a key that decides their bytes; thread-safe,
 * bounded. */
struct digest_memo *digest_memo_new(void) MUST_CHECK;
void digest_memo_free(struct digest_memo *m); /* accepts NULL */
bool digest_memo_get(struct digest_memo *m, const struct digest *key, struct digest *out);
void digest_memo_put(struct digest_memo *m, const struct digest *key, const struct digest *value);
