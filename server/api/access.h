/*
 * access: who may see or change what. A private thing that the asker may not see does not exist for
 * them: 404, the same as for a name that was never used. Each function answers the
 * request itself when it returns false.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "server/http/request.h"
#include "server/store/store.h"

/* The project of the route, readable by the asker. */
bool access_read_project(struct request *q, const char **out_name,
                         struct store_project *out) MUST_CHECK;
/* The project of the route, with a token that has the scope (AUTH_*): 401 without a valid token,
 * 404 when the project is not there for the asker, 403 otherwise. */
bool access_write_project(struct request *q, unsigned scope, const char **out_name,
                          struct store_project *out) MUST_CHECK;
/* 404 for what is not there; 401 when the token is no token, as for what is private: the two
 * answers must not tell one from the other. */
void access_nothing(struct request *q);
/* May the asker see a thing of a project? 404 when not; 401 for a token that is not valid. */
bool access_see(struct request *q, bool is_private, int64_t project_id) MUST_CHECK;
/* What the asker sees of several projects. */
bool access_viewer(struct request *q, struct store_viewer *out) MUST_CHECK;
/* The run named by the route's {run}, seen by the asker; when the route names a project it must be
 * that run's. */
bool access_run(struct request *q, struct store_run *out) MUST_CHECK;
