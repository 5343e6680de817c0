/*
 * finish: what finishing adds to a run, shared by finalize.c (makes it), finish_judge.c (compares
 * it) and finish_tell.c (tells it).
 *
 * acceptance.json and audit.json hold what the run's own definition gives: a verifier computes them
 * again from the package. The local verdict is by the policy that was reviewed with
 * the baseline, as on a server; where both policies are the same, so are both judgements.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "experiment/acceptance.h"
#include "runner/report.h"
#include "runner/run.h"

/* What the policy reviewed with the baseline gives, when it is not the run's own. */
struct reviewed {
    bool differs;
    bool has_acceptance, has_audit;
    struct acceptance acceptance;
    struct audit audit;
};

struct finish {
    struct run *run;
    struct buf csv;
    cJSON *markers;
    struct report report;
    struct acceptance acceptance;
    bool has_acceptance;
    struct audit audit;
    bool has_audit;
    bool has_baseline;          /* snapshot taken */
    bool own_acceptance_failed; /* one of the faults is that, by the run's own policy */
    struct reviewed reviewed;
    struct audit foreseen; /* without a baseline: could a later run be compared with this one? */
    bool has_foreseen;
    const char *status, *acceptance_status, *audit_status;
    int64_t finished_us;
};

/* The local comparison with the named baseline, by the run's own policy (audit.json) and, when it
 * differs, by the reviewed one; nothing without a baseline. */
int finish_compare(struct finish *f, struct err *e) MUST_CHECK;
/* Of a passing run without a baseline: what would keep it from being one (`foreseen`). */
int finish_foresee(struct finish *f, struct err *e) MUST_CHECK;
void reviewed_fini(struct reviewed *r); /* accepts zeroed */
/* What judges: the reviewed policy's when it differs, else the run's own. NULL: not made. */
const struct acceptance *finish_acceptance(const struct finish *f);
const struct audit *finish_audit(const struct finish *f);
/* Does anything say that the run is no PASS, besides its own policy where another one judges? */
bool finish_failed(const struct finish *f);

/* Of finalize.c: the manifest as it is by now (caller frees); acceptance by a definition's
 * policy. */
int finish_manifest(const struct finish *f, cJSON **out, struct err *e) MUST_CHECK;
int finish_accept(const struct finish *f, const struct definition *d, struct acceptance *out,
                  struct err *e) MUST_CHECK;

/* The exit code of the local verdict, EXIT STATUS of cleanrun(1): 7 for a sound run that has none,
 * 4 when acceptance failed, 3 without a baseline. */
int finish_exit(const struct finish *f);
/* Result, reasons and the directory: text, or the last JSON line. */
void finish_tell(struct finish *f, int code);
