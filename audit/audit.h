/*
 * audit: the relative comparison of a run with a baseline. Says OK or REGRESSION only when both are
 * the same experiment with complete coverage; otherwise NON_COMPARABLE with every reason, never a
 * number. Knows nothing of signatures or archives: its callers hand in what they trust.
 *
 * cleanrun-audit/1 (docs/json.md has every member): {definition{experiment_sha256, policy_sha256},
 * same_executable, same_source, expected_comparisons, made_comparisons, paths[{path, status:
 * compared|refused|missing|unreadable}], identity{…, not_recorded[]}, coverage{…, not_compared[],
 * unreadable[{side, path, problem}], ungated[{path, metric, current}]}}; a comparison also has
 * delta, floor, limit (the last value that passes; null when none regresses, and when the metric is
 * not gated) and baseline_from (the stand-in's pointer).
 *
 * expected = gated members of the baseline and informational ones both sides have; OK implies
 * made == expected > 0. identity.different[] has `elements` for lists and objects; a path of null
 * means the manifests.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "audit/verdict.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "experiment/definition.h"
#include "experiment/tree.h"

struct audit_side {
    const struct tree *tree; /* reports; paths as "<scenario>/<point>.json" */
    /* cleanrun-manifest/2 document; NULL for a bare result tree */
    const cJSON *manifest;
    const struct definition *definition; /* the side's own definition; NULL for a bare tree */
    const char *id;                      /* baseline id or run id; NULL when unknown */
    const char *evidence_sha256;         /* hex or NULL */
    /* shown only: "baseline", "." or a directory the user named */
    const char *root;
    /* of a bare tree, when its keeper recorded one; else NULL */
    const char *machine_class;
    /* baseline marked legacy: both-may-lack and inference apply (C15) */
    bool legacy;
};

struct audit_input {
    const struct definition *policy; /* the reviewed policy that judges */
    struct audit_side baseline;
    struct audit_side current;
    /* reviewed baseline manifest (comparison_paths); NULL when none */
    const cJSON *baseline_manifest;
    const char *baseline_manifest_sha256; /* hex of its bytes, shown only; NULL when none */
};

struct audit {
    /* OK, REGRESSION, NON_COMPARABLE, or INVALID (IN-JSON on a required path, U4) */
    enum verdict verdict;
    cJSON *document; /* cleanrun-audit/1 */
};

/* -1 only when no decision could be reached: no memory, or a policy that contradicts itself
 * (ERR_INPUT). */
int audit_run(const struct audit_input *in, struct audit *out, struct err *e) MUST_CHECK;
/*
 * Could a later run of the same experiment be compared with this one? The run is looked at as both
 * sides, as if the other were another run with the same content: OK says that nothing stands in the
 * way; else NON_COMPARABLE or INVALID, and the document's `reasons` say what a first run, or a
 * baseline to be, must not have (a path that is not there, a gated metric that is no number, a fact
 * that is unknown, …). The document is no comparison: show nothing of it but verdict and reasons.
 */
int audit_would_compare(const struct definition *policy, const struct audit_side *side,
                        struct audit *out, struct err *e) MUST_CHECK;
/* What the schema tables cannot say of a policy (duplicate metric, nothing gated, …): ERR_INPUT.
 * For `cleanrun check`. */
int audit_check_policy(const struct definition *d, struct err *e) MUST_CHECK;
/* A refusal without a baseline at all (NC-BASELINE-NONE): the document of the same schema. why: of
 * one that there is, but must not judge; NULL: there is none. */
int audit_no_baseline(const struct definition *policy, const struct audit_side *current,
                      const char *why, struct audit *out, struct err *e) MUST_CHECK;
/* A document with one reason of the registry and no comparison: INVALID for an IN-* code, else
 * NON_COMPARABLE. path may be NULL; baseline and current may be zeroed sides (a tree is not looked
 * at). */
struct audit_refusal {
    const char *code;
    const char *path;
    const char *text;
};
int audit_refuse(const struct definition *policy, const struct audit_side *baseline,
                 const struct audit_side *current, const struct audit_refusal *why,
                 struct audit *out, struct err *e) MUST_CHECK;
void audit_fini(struct audit *a);
struct audit_link {
    const char *text;
    const char *address; /* absolute, of ours */
};
struct audit_markdown_options {
    /* what its reader must know beside it, one line of plain text shown below the status; or NULL
     */
    const char *remark;
    const struct audit_link *links; /* shown below that, in one line */
    size_t n_links;
    bool unfolded; /* for a terminal: no <details> */
};
/* The document as Markdown, the tables of rvoip's own reports, what decides first; caller
 * frees. options NULL: none. */
int audit_markdown(const cJSON *document, const struct audit_markdown_options *options, char **out,
                   size_t *out_len, struct err *e) MUST_CHECK;
/* Compares a packaged audit document with a recomputed one (verdict, reasons, each comparison's
 * values and verdict); `root` values are ignored. Equal → *out_differs NULL, else {field, packaged,
 * recomputed}. */
int audit_compare_documents(const cJSON *packaged, const cJSON *recomputed, cJSON **out_differs,
                            struct err *e) MUST_CHECK;
