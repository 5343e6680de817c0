/* The route table: every address there is. First match wins, so literal segments stand before parameters. */
#include "server/api/api.h"

#define PAGE_TWINS (ROUTE_TWIN_JSON | ROUTE_TWIN_TEXT)

static const struct route routes[] = {
    /* Uploads. */
    { .method = HTTP_PUT, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/blobs/{digest}",
      .begin = upload_blob_begin, .data = upload_blob_data, .handle = upload_blob_handle, .offload = true },
    { .method = HTTP_POST, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/gates/{gate}/runs",
      .begin = upload_run_begin, .handle = upload_run_handle, .resume = upload_run_resume },
    /* Machine API. */
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/runs/{run}", .handle = page_run,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/runs/{run}/verdict", .handle = run_verdict,
      .cacheable = true, .offload = false },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/runs/{run}/verdict/attestation", .handle = run_verdict_attestation,
      .cacheable = true, .offload = false },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/runs/{run}/attestation", .handle = run_attestation,
      .cacheable = true, .offload = false },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/runs/{run}/archive", .handle = download_archive,
      .cacheable = false, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/runs/{run}/bundle", .handle = download_bundle,
      .cacheable = false, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/runs/{run}/files/{path...}", .handle = download_member,
      .cacheable = false, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/compare/{run}/{other}", .handle = page_compare,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/gates/{gate}/baselines", .handle = page_baselines,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/projects/{o}/{r}/commits/{sha}/check", .handle = page_commit,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/keys", .handle = help_keys,
      .cacheable = true, .offload = false },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/api/v1/openapi.json", .handle = help_openapi,
      .cacheable = true, .offload = false },
    { .method = HTTP_GET, .kind = ROUTE_API, .twins = ROUTE_TWIN_JSON, .pattern = "/schema/{name}", .handle = help_schema,
      .cacheable = true, .offload = false },
    /* Pages. */
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = 0, .pattern = "/", .handle = page_home,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS, .pattern = "/index", .handle = page_home,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS, .pattern = "/p/{o}/{r}", .handle = page_project,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS, .pattern = "/p/{o}/{r}/commit/{sha}", .handle = page_commit,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/p/{o}/{r}/{gate}/badge.svg", .handle = page_badge,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS, .pattern = "/p/{o}/{r}/{gate}/baselines", .handle = page_baselines,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS, .pattern = "/p/{o}/{r}/{gate}", .handle = page_gate,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS, .pattern = "/r/{run}", .handle = page_run,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .pattern = "/r/{run}/evidence.tar", .handle = download_archive,
      .cacheable = false, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .pattern = "/r/{run}/f/{path...}", .handle = download_member,
      .cacheable = false, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS | ROUTE_TWIN_MARKDOWN, .pattern = "/r/{run}/vs/{other}", .handle = page_compare,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS, .pattern = "/b/{id}", .handle = page_baseline,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS, .pattern = "/help", .handle = help_index,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .twins = PAGE_TWINS, .pattern = "/help/reasons/{code}", .handle = help_reason,
      .cacheable = true, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .pattern = "/help/problems/{slug}", .handle = help_problem,
      .cacheable = true, .offload = false },
    { .method = HTTP_GET, .kind = ROUTE_PAGE, .pattern = "/web/{name}", .handle = page_asset,
      .cacheable = true, .offload = false },
    /* Operations. */
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/healthz", .handle = health_alive,
      .cacheable = false, .offload = false },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/readyz", .handle = health_ready,
      .cacheable = false, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/metrics", .handle = health_metrics,
      .cacheable = false, .offload = true },
    { .method = HTTP_GET, .kind = ROUTE_API, .pattern = "/version", .handle = health_version,
      .cacheable = false, .offload = false },
};

const struct route *api_routes(size_t *out_n)
{
    *out_n = ARRAY_LEN(routes);
    return routes;
}
