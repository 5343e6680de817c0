/*
 * policy: a definition's `identity`, `infer` and `audit` parts read once into structs. Strings and
 * JSON values are borrowed from the definition, which must outlive it. Knows nothing of reports.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/definition.h"

struct policy_identity {
    const char *pointer; /* may hold '*' */
    const char *label;   /* NULL when not given */
    const char *why;
    const char *within; /* container whose presence makes this field's absence malformed, or NULL */
    const char *type;   /* json type name ("number" takes integers too), or NULL */
    bool may_lack;
    bool may_be_empty;
    const cJSON *reports; /* NULL: all */
};

struct policy_metric {
    const char *pointer;
    const char *label;
    const char *unit;
    const char *fallback;
    bool higher_is_worse;
    bool gated;
    bool has_floor;
    double tolerance_pct;
    double floor;
    const cJSON *reports;
};

struct policy_window {
    const char *pointer;
    const char *label;
    const char *complete; /* member names */
    const char *samples;
    const char *coverage;
    const char *value; /* pointer, or NULL */
    double min_samples;
    double min_coverage;
    const cJSON *reports;
};

struct policy {
    const struct definition *definition;
    struct policy_identity *identity;
    size_t n_identity;
    struct policy_metric *metrics;
    size_t n_metrics;
    struct policy_window *windows;
    size_t n_windows;
    const char **required; /* report paths, bytewise sorted */
    size_t n_required;
    const cJSON *infer; /* NULL: none */
};

/* ERR_INPUT for what the schema tables cannot say: a duplicate entry, no gated metric, an inference
 * entry with both or neither of `from` and `constant`. */
int policy_read(const struct definition *d, struct policy *out, struct err *e) MUST_CHECK;
void policy_fini(struct policy *p); /* accepts zeroed */
bool policy_requires(const struct policy *p, const char *path);
/* A reviewed baseline's comparison paths are required too. manifest, which must
 * outlive p: the baseline's, or NULL. ERR_INPUT when it has no such paths. */
int policy_add_required(struct policy *p, const cJSON *manifest, struct err *e) MUST_CHECK;
/* Whether an entry with this `reports` list applies to a report path. */
bool policy_applies(const cJSON *reports, const char *path);
/* reach.c: an item of an entry's `reports` that no required report matches. Borrowed, but place. */
struct reach {
    const char *code; /* of the refusal that it makes of every comparison */
    const char *pointer;
    const char *what; /* "gated metric" */
    const char *report;
    char place[128]; /* in definition.json */
};
typedef void reach_gap(void *context, const struct reach *gap);
/* Tells all of them: identity fields, gated metrics, windows. */
void reach_gaps(const struct policy *p, reach_gap *tell, void *context);
#define AUTO_POLICY __attribute__((cleanup(policy_fini)))
