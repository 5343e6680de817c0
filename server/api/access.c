#include "server/api/access.h"

#include <string.h>

#include "base/text.h"
#include "server/api/api.h"
#include "server/http/auth.h"
#include "server/http/reply.h"

/* The asker's token; found false when there is none. False: answered 401. */
static bool read_token(struct request *q, struct store_token *out)
{
    struct digest hash = {.bytes = {0}};
    struct store_token token = {.found = false};
    struct err e = ERR_INIT;

    switch (auth_bearer(q, &hash)) {
    case AUTH_ABSENT:
        *out = token;
        return true;
    case AUTH_MALFORMED:
        reply_unauthorized(q, "invalid_token");
        return false;
    case AUTH_TOKEN:
        break;
    }
    if (store_token_find(api_of(q)->store, &hash, &token, &e) < 0) {
        reply_err(q, &e);
        return false;
    }
    if (!token.found) {
        reply_unauthorized(q, "invalid_token");
        return false;
    }
    *out = token;
    return true;
}

static bool covers(const struct store_token *t, int64_t project_id)
{
    return t->found && (t->all_projects || t->project_id == project_id);
}

static bool may_see(const struct store_token *t, bool is_private, int64_t project_id)
{
    return !is_private || (covers(t, project_id) && auth_allows(t->scopes, AUTH_READ));
}

void access_nothing(struct request *q)
{
    struct store_token token = {.found = false};

    if (read_token(q, &token))
        reply_not_found(q);
}

/* "{o}/{r}" of the route in the arena; NULL after a 404 when it is no project name. */
static const char *project_name(struct request *q)
{
    const char *name =
        arena_printf(&q->arena, "%s/%s", request_param(q, "o"), request_param(q, "r"));

    if (name && text_is_project(name))
        return name;
    access_nothing(q);
    return NULL;
}

bool access_see(struct request *q, bool is_private, int64_t project_id)
{
    struct store_token token = {.found = false};

    if (!read_token(q, &token))
        return false;
    if (is_private) /* an answer for one asker must not be kept for another */
        q->never_cache = true;
    if (may_see(&token, is_private, project_id))
        return true;
    reply_not_found(q);
    return false;
}

bool access_read_project(struct request *q, const char **out_name, struct store_project *out)
{
    const char *name = project_name(q);
    struct store_project project = {.id = 0};
    struct err e = ERR_INIT;

    if (!name)
        return false;
    if (store_project_get(api_of(q)->store, name, &project, &e) < 0) {
        if (e.kind == ERR_NOTFOUND)
            access_nothing(q);
        else
            reply_err(q, &e);
        return false;
    }
    if (!access_see(q, project.is_private, project.id))
        return false;
    *out_name = name;
    *out = project;
    return true;
}

bool access_write_project(struct request *q, unsigned scope, const char **out_name,
                          struct store_project *out)
{
    struct store_token token = {.found = false};
    struct store_project project = {.id = 0};
    struct err e = ERR_INIT;
    const char *name = NULL;

    if (!read_token(q, &token))
        return false;
    if (!token.found) {
        reply_unauthorized(q, NULL);
        return false;
    }
    name = project_name(q);
    if (!name)
        return false;
    if (store_project_get(api_of(q)->store, name, &project, &e) < 0) {
        if (e.kind == ERR_NOTFOUND)
            reply_not_found(q);
        else
            reply_err(q, &e);
        return false;
    }
    if (!may_see(&token, project.is_private, project.id)) {
        reply_not_found(q);
        return false;
    }
    if (!covers(&token, project.id) || !auth_allows(token.scopes, scope)) {
        reply_problem(q, 403, "forbidden", "the token does not allow this", NULL);
        return false;
    }
    *out_name = name;
    *out = project;
    return true;
}

bool access_viewer(struct request *q, struct store_viewer *out)
{
    struct store_token token = {.found = false};
    struct store_viewer viewer = {.all = false};

    if (!read_token(q, &token))
        return false;
    if (token.found && auth_allows(token.scopes, AUTH_READ)) {
        viewer.all = token.all_projects;
        viewer.project_id = token.all_projects ? 0 : token.project_id;
    }
    *out = viewer;
    return true;
}

/* Does the route name a project, and is it another than the run's? */
static bool names_another(struct request *q, const struct store_run *run)
{
    const char *name = NULL;

    if (strncmp(q->route->pattern, "/api/v1/projects/", 17) != 0)
        return false;
    name = arena_printf(&q->arena, "%s/%s", request_param(q, "o"), request_param(q, "r"));
    return !name || strcmp(name, run->project) != 0;
}

bool access_run(struct request *q, struct store_run *out)
{
    const char *id = request_param(q, "run");
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    struct err e = ERR_INIT;

    if (!text_is_run_id(id)) {
        access_nothing(q);
        return false;
    }
    if (store_run_get(api_of(q)->store, id, &run, &e) < 0) {
        if (e.kind == ERR_NOTFOUND)
            access_nothing(q);
        else
            reply_err(q, &e);
        return false;
    }
    if (!access_see(q, run.is_private, run.project_id))
        return false;
    if (names_another(q, &run)) {
        reply_not_found(q);
        return false;
    }
    *out = run;
    run = (struct store_run){.id = 0};
    return true;
}
