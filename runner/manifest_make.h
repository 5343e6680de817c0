/* manifest_make: a run's parts as cleanrun-manifest/2 (evidence/manifest.h). Judges nothing. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/report.h"
#include "runner/run.h"

struct manifest_parts {
    const struct run *run;
    const struct report *report;
    const char *status; /* "PASS" "FAIL" "BUILD_ONLY" */
    const char *acceptance_status;
    const char *audit_status;
    const cJSON *markers; /* array */
    bool has_baseline;    /* its snapshot is in the run directory; else the manifest names none */
    int64_t finished_us;
};

/* New document without `files` (an empty array stands there). */
int manifest_make(const struct manifest_parts *p, cJSON **out, struct err *e) MUST_CHECK;
