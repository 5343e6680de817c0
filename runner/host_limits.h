/* host_limits: host.limits of a definition: names that exist, and what is known before a build. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/definition.h"
#include "runner/procfs.h"

/* A fact or reading that no machine has is ERR_USAGE, with its place and the nearest name. */
int host_limits_check(const struct definition *d, struct err *e) MUST_CHECK;
/* The limits that need no build: ERR_SYS "run.host" when this machine breaks one. */
int host_limits_before_build(const struct definition *d, const struct sysroot *root,
                             struct err *e) MUST_CHECK;
