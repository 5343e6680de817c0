/* Pages and the API documents that are the same thing: one document, shown in the form that is
 * asked for. */
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/text.h"
#include "server/api/access.h"
#include "server/api/api.h"
#include "server/api/page.h"
#include "server/http/assets.h"
#include "server/pages/pages.h"
#include "server/store/blobs.h"
#include "server/store/documents.h"

struct watch {
    struct digest digest;
    struct blob_stamp stamp;
};

bool api_probe(void *cls, const void *watch, size_t len)
{
    struct api *a = cls;
    struct watch w;
    size_t at = 0;

    for (at = 0; at + sizeof w <= len; at += sizeof w) {
        memcpy(&w, (const char *) watch + at, sizeof w);
        if (!blobs_untouched(store_blobs(a->store), &w.digest, &w.stamp))
            return false;
    }
    return true;
}

void api_watch(struct request *q, const struct digest *archive)
{
    struct watch w;
    uint64_t size = 0;
    AUTO_FD int fd = -1;

    memset(&w, 0, sizeof w);
    w.digest = *archive;
    if (q->watch_len + sizeof w > sizeof q->watch ||
        blobs_open(store_blobs(api_of(q)->store), archive, &fd, &size, &w.stamp, NULL) < 0) {
        q->never_cache = true;
        return;
    }
    memcpy(q->watch + q->watch_len, &w, sizeof w);
    q->watch_len += sizeof w;
}

static const char *suffix_of(enum request_twin twin)
{
    switch (twin) {
    case TWIN_TEXT:
        return "txt";
    case TWIN_MARKDOWN:
        return "md";
    case TWIN_HTML:
    case TWIN_JSON:
        break;
    }
    return "html";
}

/* One rendered page of q->twin's form; NULL with *e (may be NULL). */
static struct content *rendered(struct request *q, const char *name, const cJSON *document,
                                struct err *e)
{
    const struct api *a = api_of(q);
    const char *metrics = request_query(q, "metrics");
    const struct page_context ctx = {
        .base_url = a->base_url,
        .path = q->raw_path,
        .now_us = clock_realtime_us(),
        .version = CLEANRUN_VERSION,
        .style = assets_address(a->assets, "style.css"),
        .all_metrics = metrics && strcmp(metrics, "all") == 0,
    };
    AUTO_BUF struct buf b = {.data = NULL};
    struct content *c = NULL;
    char file[48];
    char *bytes = NULL;
    size_t len = 0;

    (void) snprintf(file, sizeof file, "%s.%s", name, suffix_of(q->twin));
    buf_init(&b, LIMIT_PAGE);
    if (page_render(a->pages, file, document, &ctx, &b, e) < 0 || buf_check(&b, e) < 0)
        return NULL;
    bytes = buf_take(&b, &len);
    if (!bytes) {
        (void) err_memory(e, "page.memory");
        return NULL;
    }
    c = content_bytes(page_content_type(file), bytes, len);
    if (!c)
        (void) err_memory(e, "page.memory");
    else
        content_set_policy(c, REPLY_PAGE);
    return c;
}

/* What stands against the comparison: its run's verdict fell, or the commit's check is not OK. */
static void put_remark(struct buf *out, const cJSON *document)
{
    const cJSON *check = json_get(document, "check");

    if (page_verdict_fell(document))
        buf_printf(out, "%s: what follows was recorded before and does not count",
                   json_text(document, "description", ""));
    else if (cJSON_IsObject(check))
        buf_printf(out, "check: %s (run %s)", json_text(check, "description", ""),
                   json_text(check, "run", ""));
    else if (cJSON_IsTrue(json_get(document, "informational")))
        buf_puts(out, "no verdict: two runs side by side, for information only");
}

#define LINKS_MAX 3

struct markdown_links {
    struct audit_link links[LINKS_MAX];
    struct buf text[LINKS_MAX];
    size_t n;
};

static void markdown_links_fini(struct markdown_links *l)
{
    for (size_t i = 0; i < l->n; i++)
        buf_fini(&l->text[i]);
}

/* base_url and a path of ours without its last `cut` bytes. */
static int add_link(struct markdown_links *l, const char *text, const char *base_url,
                    const cJSON *path, size_t cut, struct err *e)
{
    struct buf *b = &l->text[l->n];
    size_t len = cJSON_IsString(path) ? strlen(path->valuestring) : 0;

    if (len <= cut || l->n == LINKS_MAX)
        return 0;
    buf_init(b, LIMIT_KIB(8));
    buf_puts(b, base_url);
    buf_put(b, path->valuestring, len - cut);
    l->n++;
    if (buf_check(b, e) < 0)
        return -1;
    l->links[l->n - 1] = (struct audit_link){.text = text, .address = b->data};
    return 0;
}

/* A comment is read elsewhere: the pages it comes from, with the whole address. */
static int add_links(struct markdown_links *l, const char *base_url, const cJSON *document,
                     struct err *e)
{
    const cJSON *links = json_get(document, "links");

    return add_link(l, "this comparison", base_url, json_get(links, "markdown"), strlen(".md"), e) <
                       0 ||
                   add_link(l, "the run", base_url, json_get(links, "run"), 0, e) < 0
               ? -1
               : add_link(l, "the baseline", base_url, json_get(links, "baseline"), 0, e);
}

/* The comparison as the forge comment shows it. */
static struct content *markdown_content(const char *base_url, const cJSON *document, struct err *e)
{
    AUTO_BUF struct buf remark = {.data = NULL};
    __attribute__((cleanup(markdown_links_fini))) struct markdown_links links = {.n = 0};
    struct audit_markdown_options options = {.remark = NULL};
    char *bytes = NULL;
    size_t len = 0;
    AUTO_JSON cJSON *audit = cJSON_Duplicate(json_get(document, "audit"), true);
    struct content *c = NULL;

    if (!cJSON_IsObject(audit)) {
        (void) err_set(e, ERR_NOTFOUND, "page.markdown", "there is no comparison");
        return NULL;
    }
    if (page_verdict_fell(document) &&
        !cJSON_ReplaceItemInObjectCaseSensitive(
            audit, "verdict", cJSON_CreateString(json_text(document, "verdict", "")))) {
        (void) err_memory(e, "page.memory");
        return NULL;
    }
    buf_init(&remark, LIMIT_KIB(1));
    put_remark(&remark, document);
    if (buf_check(&remark, e) < 0 || add_links(&links, base_url, document, e) < 0)
        return NULL;
    options = (struct audit_markdown_options){
        .remark = remark.data, .links = links.links, .n_links = links.n};
    if (audit_markdown(audit, &options, &bytes, &len, e) < 0)
        return NULL;
    c = content_bytes(TYPE_MARKDOWN, bytes, len);
    if (!c)
        (void) err_memory(e, "page.memory");
    return c;
}

void page_reply(struct request *q, const char *name, cJSON *document, enum reply_caching caching,
                bool is_private)
{
    AUTO_JSON cJSON *held = document;
    struct content *c = NULL;
    struct err e = ERR_INIT;

    if (q->twin == TWIN_JSON || q->route->kind == ROUTE_API) {
        c = content_json(TYPE_JSON, STEAL(held));
        if (!c)
            (void) err_set(&e, ERR_INTERNAL, "page.json", "the document cannot be written");
    } else if (q->twin == TWIN_MARKDOWN) {
        c = markdown_content(api_of(q)->base_url, held, &e);
    } else {
        c = rendered(q, name, held, &e);
    }
    if (!c) {
        reply_err(q, &e);
        return;
    }
    content_set_caching(c, caching, is_private);
    content_hash(c);
    reply_content(q, 200, c);
}

/* Answers with a document that a store function made, or with its error. */
static enum route_result answer(struct request *q, int rc, const struct err *e, const char *name,
                                cJSON *document, enum reply_caching caching, bool is_private)
{
    if (rc == 0)
        page_reply(q, name, document, caching, is_private);
    else if (e->kind == ERR_NOTFOUND || e->kind == ERR_USAGE)
        reply_problem(q, 404, "not-found", e->text, NULL);
    else if (e->kind == ERR_TRUST) /* what is stored, not what was asked */
        reply_problem(q, 500, "damaged", e->text, NULL);
    else
        reply_err(q, e);
    return ROUTE_DONE;
}

enum route_result page_home(struct request *q)
{
    struct store_viewer viewer = {.all = false};
    cJSON *document = NULL;
    struct err e = ERR_INIT;
    int rc = 0;

    if (q->path.n > 0 && q->twin == TWIN_HTML) {
        reply_redirect(q, 308, "/");
        return ROUTE_DONE;
    }
    if (!access_viewer(q, &viewer))
        return ROUTE_DONE;
    rc = doc_home(api_of(q)->store, &viewer, &document, &e);
    return answer(q, rc, &e, "home", document, REPLY_LIVE, viewer.all || viewer.project_id != 0);
}

enum route_result page_project(struct request *q)
{
    struct store_project project = {.id = 0};
    const char *name = NULL;
    cJSON *document = NULL;
    struct err e = ERR_INIT;
    int rc = 0;

    if (!access_read_project(q, &name, &project))
        return ROUTE_DONE;
    rc = doc_project(api_of(q)->store, name, &document, &e);
    return answer(q, rc, &e, "project", document, REPLY_LIVE, project.is_private);
}

/* The gate of the route; 404 when it is no gate name. */
static const char *gate_of(struct request *q)
{
    const char *gate = request_param(q, "gate");

    if (text_is_slug(gate))
        return gate;
    reply_not_found(q);
    return NULL;
}

/* A page about the gate of the route, from the document that `doc` gives of it. */
static enum route_result answer_gate(struct request *q, const char *template,
                                     int (*doc)(struct store *s, const char *project,
                                                const char *gate, cJSON **out, struct err *e))
{
    struct store_project project = {.id = 0};
    const char *name = NULL;
    const char *gate = NULL;
    cJSON *document = NULL;
    struct err e = ERR_INIT;
    int rc = 0;

    if (!access_read_project(q, &name, &project) || !(gate = gate_of(q)))
        return ROUTE_DONE;
    rc = doc(api_of(q)->store, name, gate, &document, &e);
    return answer(q, rc, &e, template, document, REPLY_LIVE, project.is_private);
}

enum route_result page_gate(struct request *q)
{
    return answer_gate(q, "gate", doc_gate);
}

enum route_result page_baselines(struct request *q)
{
    return answer_gate(q, "baselines", doc_baselines);
}

enum route_result page_baseline(struct request *q)
{
    AUTO_STORE_BASELINE struct store_baseline b = {.id = NULL};
    const char *id = request_param(q, "id");
    cJSON *document = NULL;
    struct err e = ERR_INIT;
    int rc = store_baseline_get(api_of(q)->store, id, &b, &e);

    if (rc < 0 && e.kind == ERR_NOTFOUND) { /* as a private one answers */
        access_nothing(q);
        return ROUTE_DONE;
    }
    if (rc == 0) {
        if (!access_see(q, b.is_private, b.project_id))
            return ROUTE_DONE;
        rc = doc_baseline(api_of(q)->store, id, &document, &e);
    }
    return answer(q, rc, &e, "baseline", document, REPLY_LIVE, b.is_private);
}

/* A runner asks before it measures. Only for programs. */
enum route_result page_runner(struct request *q)
{
    struct store_project project = {.id = 0};
    struct digest key;
    const char *name = NULL;
    cJSON *document = NULL;
    struct err e = ERR_INIT;
    int rc = 0;

    if (!access_read_project(q, &name, &project))
        return ROUTE_DONE;
    if (!digest_parse(request_param(q, "key"), &key)) {
        reply_not_found(q);
        return ROUTE_DONE;
    }
    rc = doc_runner(api_of(q)->store, name, &key, &document, &e);
    return answer(q, rc, &e, "runner", document, REPLY_LIVE, project.is_private);
}

enum route_result page_commit(struct request *q)
{
    struct store_project project = {.id = 0};
    const char *name = NULL;
    cJSON *document = NULL;
    struct err e = ERR_INIT;
    int rc = 0;

    if (!access_read_project(q, &name, &project))
        return ROUTE_DONE;
    rc = doc_check(api_of(q)->store, name, request_param(q, "sha"), &document, &e);
    /* a green one rests on evidence that is there when it is told */
    if (rc == 0 && strcmp(json_text(document, "verdict", ""), "OK") == 0)
        q->never_cache = true;
    return answer(q, rc, &e, "commit", document, REPLY_LIVE, project.is_private);
}

enum route_result page_run(struct request *q)
{
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    cJSON *document = NULL;
    struct err e = ERR_INIT;
    int rc = 0;

    if (!access_run(q, &run))
        return ROUTE_DONE;
    api_watch(q, &run.archive);
    rc = doc_run(api_of(q)->store, run.run, &document, &e);
    return answer(q, rc, &e, "run", document, REPLY_LIVE, run.is_private);
}

/* The other side must be visible too. *out_is_run: it is a run, whose archive is watched. */
static bool see_other(struct request *q, const char *other)
{
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    AUTO_STORE_BASELINE struct store_baseline b = {.id = NULL};
    struct err e = ERR_INIT;

    if (text_is_run_id(other)) {
        if (store_run_get(api_of(q)->store, other, &run, &e) == 0) {
            api_watch(q, &run.archive);
            return access_see(q, run.is_private, run.project_id);
        }
    } else if (store_baseline_get(api_of(q)->store, other, &b, &e) == 0) {
        return access_see(q, b.is_private, b.project_id);
    }
    if (e.kind == ERR_NOTFOUND || e.kind == ERR_NONE)
        reply_not_found(q);
    else
        reply_err(q, &e);
    return false;
}

enum route_result page_compare(struct request *q)
{
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    const char *other = request_param(q, "other");
    cJSON *document = NULL;
    struct err e = ERR_INIT;
    int rc = 0;

    if (!access_run(q, &run) || !see_other(q, other))
        return ROUTE_DONE;
    api_watch(q, &run.archive);
    rc = doc_compare(api_of(q)->store, run.run, other, &document, &e);
    return answer(q, rc, &e, "compare", document, REPLY_LIVE, run.is_private);
}

enum route_result page_compare_baselines(struct request *q)
{
    AUTO_STORE_BASELINE struct store_baseline b = {.id = NULL};
    const char *id = request_param(q, "id");
    const char *other = request_param(q, "other");
    cJSON *document = NULL;
    struct err e = ERR_INIT;
    int rc = store_baseline_get(api_of(q)->store, id, &b, &e);

    if (rc < 0 && e.kind == ERR_NOTFOUND) { /* as a private one answers */
        access_nothing(q);
        return ROUTE_DONE;
    }
    if (rc == 0) {
        if (!access_see(q, b.is_private, b.project_id) || !see_other(q, other))
            return ROUTE_DONE;
        rc = doc_compare_baselines(api_of(q)->store, id, other, &document, &e);
    }
    return answer(q, rc, &e, "compare", document, REPLY_LIVE, b.is_private);
}

enum route_result page_asset(struct request *q)
{
    struct content *c = assets_get(api_of(q)->assets, request_param(q, "name"));

    if (c)
        reply_content(q, 200, c);
    else
        reply_not_found(q);
    return ROUTE_DONE;
}

struct content *api_error_page(struct request *q, const cJSON *problem)
{
    struct content *c = NULL;

    if (q->twin == TWIN_JSON)
        return NULL; /* the problem itself */
    if (q->twin == TWIN_MARKDOWN)
        q->twin = TWIN_TEXT;
    c = rendered(q, "error", problem, NULL);
    if (c)
        content_set_caching(c, REPLY_NO_STORE, false);
    return c;
}
