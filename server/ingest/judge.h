/*
 * judge: what verified evidence means: replay with the package's own definition and
 * baseline snapshot, then judgement by the reviewed policy against the reviewed baseline. Computes,
 * stores nothing. Knows the store only as what it is handed.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "audit/verdict.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/verify.h"
#include "server/store/side.h"

/* The package as read for judging: its side, its report and raw samples. */
struct package {
    struct side side;
    const cJSON *report; /* the report that the manifest names, or NULL; borrowed from side.tree */
    char *samples;       /* samples/process.csv, or NULL */
    size_t samples_len;
    bool only_acceptance; /* of a FAIL: nothing but its own acceptance made it one, as host.json
                             says */
};

int package_read(const struct evidence *ev, struct package *out, struct err *e) MUST_CHECK;
void package_fini(struct package *p); /* accepts zeroed */
#define AUTO_PACKAGE __attribute__((cleanup(package_fini)))

/* *out_reasons: NULL when acceptance.json and audit.json say what we compute, else an array of
 * reasons (IN-ACCEPTANCE, IN-AUDIT) with both values. */
int judge_replay(const struct evidence *ev, const struct package *p, cJSON **out_reasons,
                 struct err *e) MUST_CHECK;

/* The reviewed baseline that judges. */
struct judge_baseline {
    const char *id;          /* "b-…" */
    const struct side *side; /* re-read and re-hashed from the store */
    struct digest evidence;
};

struct judgement {
    cJSON *acceptance; /* cleanrun-acceptance/1 under the judging policy, with what the manifest's
                          status adds; NULL: build-only */
    cJSON *audit;      /* cleanrun-audit/1; NULL for diagnostic and build-only runs */
    cJSON *policy;     /* {differs, reviewed_sha256, run_sha256}, or NULL without a baseline */
    const struct definition *definition; /* that judged; borrowed */
};
void judgement_fini(struct judgement *j); /* accepts zeroed */
#define AUTO_JUDGEMENT __attribute__((cleanup(judgement_fini)))

/* baseline NULL: the run's own policy decides acceptance and the audit is a refusal, with why_none
 * unless that is NULL. evidence_hex: of the archive. */
int judge_run(const struct package *p, const char *evidence_hex,
              const struct judge_baseline *baseline, const char *why_none, struct judgement *out,
              struct err *e) MUST_CHECK;
/* Clean evidence of a measured run; only these have a verdict. */
bool judge_has_verdict(const struct manifest *m);
