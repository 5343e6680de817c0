/* The route table: every address there is. First match wins, so literal segments stand before
 * parameters. */
#include "server/api/api.h"

#define PROJECT "/api/v1/projects/{o}/{r}"
#define TWINS (ROUTE_TWIN_JSON | ROUTE_TWIN_TEXT)

/* A document in the form that is asked for: page, JSON, text. */
#define PAGE(path, twin_set, handler)                                                              \
    {                                                                                              \
        .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = (twin_set), .pattern = (path),            \
        .handle = (handler), .cacheable = true, .offload = true                                    \
    }
/* Stored or constant bytes, kept in memory. */
#define KEPT(form, path, handler)                                                                  \
    {                                                                                              \
        .method = HTTP_GET, .kind = (form), .pattern = (path), .handle = (handler),                \
        .cacheable = true, .offload = true                                                         \
    }
/* Bytes that may be large: never kept in memory. */
#define FROM_DISK(form, path, handler)                                                             \
    {                                                                                              \
        .method = HTTP_GET, .kind = (form), .pattern = (path), .handle = (handler),                \
        .offload = true                                                                            \
    }
/* Made anew each time. */
#define FRESH(path, handler)                                                                       \
    {                                                                                              \
        .method = HTTP_GET, .kind = ROUTE_API, .pattern = (path), .handle = (handler)              \
    }

static const struct route routes[] = {
    {
        .method = HTTP_PUT,
        .kind = ROUTE_API,
        .pattern = PROJECT "/blobs/{digest}",
        .begin = upload_blob_begin,
        .data = upload_blob_data,
        .handle = upload_blob_handle,
        .offload = true,
    },
    {
        .method = HTTP_POST,
        .kind = ROUTE_API,
        .pattern = PROJECT "/gates/{gate}/runs",
        .begin = upload_run_begin,
        .handle = upload_run_handle,
        .resume = upload_run_resume,
    },
    KEPT(ROUTE_API, PROJECT "/runs/{run}/verdict", run_verdict),
    KEPT(ROUTE_API, PROJECT "/runs/{run}/verdict/attestation", run_verdict_attestation),
    KEPT(ROUTE_API, PROJECT "/runs/{run}/attestation", run_attestation),
    KEPT(ROUTE_API, PROJECT "/runs/{run}", page_run),
    KEPT(ROUTE_API, PROJECT "/compare/{run}/{other}", page_compare),
    KEPT(ROUTE_API, PROJECT "/gates/{gate}/baselines", page_baselines),
    KEPT(ROUTE_API, PROJECT "/commits/{sha}/check", page_commit),
    KEPT(ROUTE_API, PROJECT "/runners/{key}", page_runner),
    FROM_DISK(ROUTE_API, PROJECT "/runs/{run}/archive", download_archive),
    FROM_DISK(ROUTE_API, PROJECT "/runs/{run}/bundle", download_bundle),
    FROM_DISK(ROUTE_API, PROJECT "/runs/{run}/files/{path...}", download_member),
    KEPT(ROUTE_API, "/api/v1/keys", help_keys),
    KEPT(ROUTE_API, "/api/v1/openapi.json", help_openapi),
    KEPT(ROUTE_API, "/schema/{name}", help_schema),

    PAGE("/", 0, page_home),
    PAGE("/index", TWINS, page_home),
    PAGE("/p/{o}/{r}", TWINS, page_project),
    PAGE("/p/{o}/{r}/commit/{sha}", TWINS, page_commit),
    KEPT(ROUTE_PAGE, "/p/{o}/{r}/{gate}/badge.svg", page_badge),
    PAGE("/p/{o}/{r}/{gate}/baselines", TWINS, page_baselines),
    PAGE("/p/{o}/{r}/{gate}", TWINS, page_gate),
    FROM_DISK(ROUTE_PAGE, "/r/{run}/evidence.tar", download_archive),
    FROM_DISK(ROUTE_PAGE, "/r/{run}/f/{path...}", download_member),
    PAGE("/r/{run}/vs/{other}", TWINS | ROUTE_TWIN_MARKDOWN, page_compare),
    PAGE("/r/{run}", TWINS, page_run),
    PAGE("/b/{id}/vs/{other}", TWINS | ROUTE_TWIN_MARKDOWN, page_compare_baselines),
    PAGE("/b/{id}", TWINS, page_baseline),
    PAGE("/help", TWINS, help_index),
    PAGE("/help/reasons/{code}", TWINS, help_reason),
    KEPT(ROUTE_PAGE, "/help/problems/{slug}", help_problem),
    KEPT(ROUTE_PAGE, "/web/{name}", page_asset),

    FRESH("/healthz", health_alive),
    FROM_DISK(ROUTE_API, "/readyz", health_ready),
    FROM_DISK(ROUTE_API, "/metrics", health_metrics),
    FRESH("/version", health_version),
};

const struct route *api_routes(size_t *out_n)
{
    *out_n = ARRAY_LEN(routes);
    return routes;
}
