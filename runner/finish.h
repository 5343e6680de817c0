/* finish: what finishing adds to a run, shared by finalize.c (makes it) and finish_tell.c (tells
 * it). */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "experiment/acceptance.h"
#include "runner/report.h"
#include "runner/run.h"

struct finish {
    struct run *run;
    struct buf csv;
    cJSON *markers;
    struct report report;
    struct acceptance acceptance;
    bool has_acceptance;
    struct audit audit;
    bool has_audit;
    bool has_baseline; /* snapshot taken */
    const char *status, *acceptance_status, *audit_status;
    int64_t finished_us;
};

/* The exit code of the local verdict (decisions C20, U19, C22). */
int finish_exit(const struct finish *f);
/* Result, reasons and the directory: text, or the last JSON line. */
void finish_tell(struct finish *f, int code);
