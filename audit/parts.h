/*
 * parts: the steps of one audit, each adding its findings. Private to audit/. Reasons never stop a
 * step: every step says everything it sees.
 */
#pragma once

#include "audit/audit.h"
#include "audit/findings.h"
#include "audit/policy.h"
#include "base/buf.h"
#include "experiment/pointer.h"

/* comparable.c: class, mode, source, definition, facts, conditioning of two manifests; unit and
 * direction of the sides' own definitions against the judging policy. Without a manifest on both
 * sides only the latter. What follows below are its steps. */
int comparable_manifests(const struct audit_input *in, const struct policy *p, struct findings *f,
                         struct err *e) MUST_CHECK;
/* Same archive, same run, or byte-equal required reports. */
void comparable_same_evidence(const struct audit_input *in, const struct policy *p,
                              struct findings *f);
/* A reason about one member of the manifests, with what both say there (borrowed). */
struct finding comparable_finding(const struct audit_input *in, const char *code,
                                  const char *pointer);

/* comparable_facts.c, two manifests: every fact of experiment/facts.h or of either machine, and the
 * conditioning. What is equal or differs is listed in the findings as well. */
void comparable_facts(const struct audit_input *in, struct findings *f);
/* The variables of the build's and of the program's environment. */
void comparable_environments(const struct audit_input *in, struct findings *f);

/* comparable_definition.c: the experiment of both sides is known, one, and the judging one's. */
int comparable_definition(const struct audit_input *in, struct findings *f,
                          struct err *e) MUST_CHECK;
/* Unit and worse direction of the compared metrics in each side's own definition. */
void comparable_units(const struct audit_input *in, const struct policy *p, struct findings *f);

/* infer.c: the identity of a legacy report as a flat object {pointer: value}. *out_values NULL: the
 * report has an explicit identity (*out_why empty), or a condition does not hold (*out_why says
 * which). */
int infer_identity(const cJSON *infer, const struct tree *tree, const struct tree_file *file,
                   cJSON **out_values, struct buf *out_why, struct err *e) MUST_CHECK;

/* reach.c: an entry of the policy that is asked of a report which is not compared. */
void reach_check(const struct policy *p, struct findings *f);

/* One required report that both sides have. */
struct pair {
    const char *path;
    const cJSON *baseline;
    const cJSON *current;
    const cJSON *inferred; /* the baseline's inferred identity, or NULL */
    const char *why_not;   /* why nothing could be inferred, or "" */
    bool legacy;
};

/* identity.c: every identity field of the policy on one pair. */
int identity_compare(const struct policy *p, const struct pair *pair, struct findings *f,
                     struct err *e) MUST_CHECK;
/* windows.c: evidence of covered windows on one pair. */
void windows_check(const struct policy *p, const struct pair *pair, struct findings *f);

/* expand.c: what a pattern matches in the two reports of a pair, by pointer_expand or
 * pointer_expand_every. A side with more than can be told is a reason, and then both lists are
 * empty. */
typedef int expander(const cJSON *root, const char *pattern, size_t max, struct pointer_list *out,
                     struct err *e);
struct expanded {
    struct pointer_list baseline;
    struct pointer_list current;
    bool refused;
};
int expand_pair(const struct pair *pair, const char *pattern, expander *expand, struct findings *f,
                struct expanded *out, struct err *e) MUST_CHECK;
void expanded_fini(struct expanded *x);
#define AUTO_EXPANDED __attribute__((cleanup(expanded_fini)))

/* compare.c: one metric member that is to be compared. */
struct compared {
    const struct policy_metric *metric;
    char *pointer; /* heap */
    char *label;   /* heap */
    const cJSON *baseline;
    const cJSON *current;
    const char *from; /* the fallback that gave the baseline's value, or NULL */
};
struct compared_list {
    struct compared *items;
    size_t n;
};
/* Expands the metrics over one pair; refusals (missing, invalid, none) become reasons, expectations
 * are counted. */
int compare_prepare(const struct policy *p, const struct pair *pair, struct findings *f,
                    struct compared_list *out, struct err *e) MUST_CHECK;
void compared_list_fini(struct compared_list *l);
/* The rows of one pair that nothing refused. */
void compare_rows(const char *path, const struct compared_list *l, struct findings *f);

/* The rule (docs/definition.md, audit): strict comparison on the unrounded double. */
struct judged {
    double delta;
    double delta_pct; /* infinite with the delta's sign when the baseline is 0 */
    double limit;     /* the last value that passes; NaN when no value regresses */
    bool regression;
};
struct judged compare_judge(const struct policy_metric *m, double baseline, double current);

/* audit_document.c: what was found, as verdict and document. The lists of the findings move into
 * the document. */
int audit_document(const struct audit_input *in, const struct policy *p, struct findings *f,
                   struct audit *out, struct err *e) MUST_CHECK;

/* value.c: a JSON value as a short text for messages ("absent" for NULL), cut at a UTF-8 border. */
void value_text(struct buf *out, const cJSON *v, size_t max);
/* In what two values differ: `list` is [{field, change: added|removed|changed, baseline?,
 * current?}], at most 50, what follows is only counted. Lists are told element by element
 * (experiment/align.h). */
struct value_elements {
    cJSON *list; /* owned */
    size_t omitted;
};
int value_differences(const char *pointer, const cJSON *baseline, const cJSON *current,
                      struct value_elements *out, struct err *e) MUST_CHECK;
void value_elements_fini(struct value_elements *v);
#define AUTO_VALUE_ELEMENTS __attribute__((cleanup(value_elements_fini)))
/* Adds `elements` (and elements_omitted) to a row. Returns about how many bytes were added. */
size_t value_add_elements(struct json_doc *d, cJSON *parent, const struct value_elements *v);
/* One of the list for people, without the first `skip` bytes of its field: "/1/value 20 → 30", "/3
 * hot removed". */
void value_element_text(struct buf *out, const cJSON *element, size_t skip, size_t max);
/* The first three, and how many more there are. */
void value_elements_text(struct buf *out, const struct value_elements *v, size_t skip, size_t max);
/* A copy of v, or {"omitted": {bytes, sha256}} of its compact text when that is longer than max, or
 * v is nested too deeply for a document that holds it. NULL v: nothing. Returns about how many
 * bytes were added. */
size_t value_add_bounded(struct json_doc *d, cJSON *parent, const char *key, const cJSON *v,
                         size_t max);
enum { VALUE_BYTES_MAX = 16 << 10, VALUE_DEPTH_MAX = 8 }; /* of one raw value in a document */
