/*
 * acceptance: absolute checks of one report against the policy's `accept` part. Every check is
 * evaluated and listed, none short-circuited; summaries are recomputed from raw samples. Knows no
 * field name of any workload: all of them are data in the definition.
 *
 * Operators in the document: "==" (exact), ">=" and "<=" (floors, limits), "absent",
 * "absolute_path", "equal_counts" (equal), "sum_of" (sums), "share_of" (shares), "zero_tree",
 * "phases", "bound_to_phases" (bindings), "repeated", "recomputed" (recompute, and the section
 * derived from the runner's samples), "consistent", "report" (the one check of what is no report).
 * Checks that look at many things list their problems in `actual`; the first is also the `error`.
 * A pattern in exact, absent, floors or limits makes one check for each match, and a failed one
 * when nothing matches.
 */
#pragma once

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/definition.h"

enum acceptance_verdict { ACCEPTANCE_PASS, ACCEPTANCE_FAIL };

struct acceptance_input {
    const struct definition *definition; /* its policy is applied */
    const cJSON *report; /* any JSON value; not an object → FAIL with the one check `report` */
    const char *report_path; /* as shown in the document's `report` */
    /* The runner's raw samples (samples/process.csv) and phase markers, for definitions with
     * `sampling.into`: the section is derived again and must equal the report's. NULL when the
     * report carries its own samples. */
    const char *samples_csv;
    size_t samples_len;
    const cJSON
        *phase_markers; /* manifest's; NULL: taken from the report where the definition points */
};

struct acceptance {
    enum acceptance_verdict verdict;
    cJSON *document; /* cleanrun-acceptance/1: {schema, verdict, report, checks[{name, operator,
                        limit, actual, passed, error}]} */
};

/* -1 only when no decision could be reached (no memory, a definition that breaks its schema). */
int acceptance_evaluate(const struct acceptance_input *in, struct acceptance *out,
                        struct err *e) MUST_CHECK;
void acceptance_fini(struct acceptance *a);
const char *acceptance_verdict_name(enum acceptance_verdict verdict); /* "PASS", "FAIL" */
/* A row of the document's checks in words, long values cut: "NAME: ACTUAL, must be at least LIMIT;
 * ERROR", each part only where there is one. */
void acceptance_put_check(struct buf *out, const cJSON *check);
/* Compares a packaged document with a recomputed one: verdict, and name/passed/actual/limit of each
 * check. Equal → 0 and *out_differs NULL; otherwise *out_differs is {field, packaged, recomputed}
 * (caller frees). */
int acceptance_compare(const cJSON *packaged, const cJSON *recomputed, cJSON **out_differs,
                       struct err *e) MUST_CHECK;
#define AUTO_ACCEPTANCE __attribute__((cleanup(acceptance_fini)))
