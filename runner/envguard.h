/*
 * envguard: refuses to start when the caller's environment would quietly change the experiment: a
 * variable that matches a `reject` pattern and is exported at all, even empty. Runs before any
 * build. Also checks the release profile that the definition expects in a project file.
 */
#pragma once

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/plan.h"

/* ERR_USAGE naming every offender, sorted. */
int envguard_check(const struct plan *p, char *const *environment, struct err *e) MUST_CHECK;
/* Every pattern that was checked, as a JSON array for the manifest. */
int envguard_patterns(const struct plan *p, cJSON **out, struct err *e) MUST_CHECK;
/* build.profile: the section of the file must hold exactly what `expect` says; ERR_USAGE "canonical
 * [section] mismatch: …". */
int envguard_profile(const struct plan *p, int source_fd, struct err *e) MUST_CHECK;
