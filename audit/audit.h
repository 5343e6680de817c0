/*
 * audit: the relative comparison of a run with a baseline. Says OK or REGRESSION only when both are the
 * same experiment with complete coverage; otherwise NON_COMPARABLE with every reason, never a number.
 * Knows nothing of signatures or archives: its callers hand in what they trust.
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
    const struct tree *tree;             /* reports; paths as "<scenario>/<point>.json" */
    const cJSON *manifest;               /* cleanrun-manifest/2 document; NULL for a bare result tree */
    const struct definition *definition; /* the side's own definition; NULL for a bare tree */
    const char *id;                      /* baseline id or run id; NULL when unknown */
    const char *evidence_sha256;         /* hex or NULL */
    const char *root;                    /* shown only: "baseline", "." or a directory the user named */
    bool legacy;                         /* baseline marked legacy: both-may-lack and inference apply (C15) */
};

struct audit_input {
    const struct definition *policy; /* the reviewed policy that judges */
    struct audit_side baseline;
    struct audit_side current;
    const cJSON *baseline_manifest;  /* reviewed baseline manifest (comparison_paths); NULL when none */
};

struct audit {
    enum verdict verdict; /* OK, REGRESSION, NON_COMPARABLE, or INVALID (IN-JSON on a required path, U4) */
    cJSON *document;      /* cleanrun-audit/1 */
};

int audit_run(const struct audit_input *in, struct audit *out, struct err *e) MUST_CHECK;
/* A refusal without a baseline at all (NC-BASELINE-NONE): the document of the same schema. */
int audit_no_baseline(const struct definition *policy, const struct audit_side *current, struct audit *out, struct err *e) MUST_CHECK;
void audit_fini(struct audit *a);
/* The document as Markdown in the seed's layout (seed-rvoip §2.9); caller frees. */
int audit_markdown(const cJSON *document, char **out, size_t *out_len, struct err *e) MUST_CHECK;
/* Compares a packaged audit document with a recomputed one (verdict, reasons, each comparison's values and verdict);
 * `root` values are ignored. Equal → *out_differs NULL, else {field, packaged, recomputed}. */
int audit_compare_documents(const cJSON *packaged, const cJSON *recomputed, cJSON **out_differs, struct err *e) MUST_CHECK;
