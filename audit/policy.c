#include "audit/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "experiment/pointer.h"

#define POINTER_SIZE 128

/* "<list>/<index><key>"; key: "/unit" or empty. */
static const char *entry(char out[POINTER_SIZE], const char *list, size_t index, const char *key)
{
    (void) snprintf(out, POINTER_SIZE, "%s/%zu%s", list, index, key); /* fits: words of ours */
    return out;
}

static bool flag_at(const cJSON *object, const char *key, bool otherwise)
{
    const cJSON *j = json_get(object, key);

    return cJSON_IsBool(j) ? cJSON_IsTrue(j) : otherwise;
}

/* The unhashed text of an entry. */
static const char *note(const struct definition *d, const char *list, size_t index, const char *key)
{
    char at[POINTER_SIZE];
    const cJSON *found = definition_note(d, entry(at, list, index, key));

    return cJSON_IsString(found) ? found->valuestring : NULL;
}

/* Number of elements, refusing more than a definition may hold. */
static int count_of(const struct definition *d, const cJSON *array, const char *where, size_t *out,
                    struct err *e)
{
    size_t n = 0;
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, array)
        n++;
    if (n > LIMIT_METRICS) {
        (void) err_set(e, ERR_LIMIT, "policy.entries", "%zu entries, at most %d", n, LIMIT_METRICS);
        return definition_blame(d, where, e);
    }
    *out = n;
    return 0;
}

static int read_identity(struct policy *p, struct err *e)
{
    const cJSON *list = json_get(p->definition->policy, "identity");
    const cJSON *item = NULL;
    size_t n = 0;

    if (count_of(p->definition, list, "/policy/identity", &n, e) < 0)
        return -1;
    p->identity = calloc(n + 1, sizeof *p->identity);
    if (!p->identity)
        return err_memory(e, "policy.memory");
    cJSON_ArrayForEach(item, list) {
        size_t i = p->n_identity;

        p->identity[i] = (struct policy_identity){
            .pointer = json_text(item, "path", ""),
            .label = note(p->definition, "/policy/identity", i, "/label"),
            .why = note(p->definition, "/policy/identity", i, "/why"),
            .within = json_text(item, "within", NULL),
            .type = json_text(item, "type", NULL),
            .may_lack = strcmp(json_text(item, "require", "required"), "both-may-lack") == 0,
            .may_be_empty = flag_at(item, "may_be_empty", false),
            .reports = json_get(item, "reports"),
        };
        p->n_identity++;
    }
    if (n == 0) {
        (void) err_set(e, ERR_INPUT, "policy.identity", "a gate needs at least one identity field");
        return definition_blame(p->definition, "/policy/identity", e);
    }
    return 0;
}

#define METRICS "/policy/audit/metrics"

static int wrong_metric(const struct policy *p, const char *key, struct err *e)
{
    char at[POINTER_SIZE];

    return definition_blame(p->definition, entry(at, METRICS, p->n_metrics, key), e);
}

/* The metric that would come next. */
static int check_metric(const struct policy *p, const struct policy_metric *m, struct err *e)
{
    if (!m->unit[0]) {
        (void) err_set(e, ERR_INPUT, "policy.unit", "a metric needs a unit");
        return wrong_metric(p, "/unit", e);
    }
    if (m->gated && m->has_floor && !m->higher_is_worse) {
        (void) err_set(e, ERR_INPUT, "policy.floor",
                       "a gated metric that is worse when lower can't have a floor: below it "
                       "nothing would ever be a "
                       "regression");
        return wrong_metric(p, "/floor", e);
    }
    for (size_t i = 0; i < p->n_metrics; i++) {
        if (strcmp(p->metrics[i].pointer, m->pointer) != 0 || p->metrics[i].reports || m->reports)
            continue;
        (void) err_set(e, ERR_INPUT, "policy.duplicate", "'%.200s' is listed twice", m->pointer);
        return wrong_metric(p, "/path", e);
    }
    return 0;
}

static int read_metrics(struct policy *p, struct err *e)
{
    const cJSON *list = json_get(json_get(p->definition->policy, "audit"), "metrics");
    const cJSON *item = NULL;
    size_t n = 0;
    bool any_gated = false;

    if (count_of(p->definition, list, METRICS, &n, e) < 0)
        return -1;
    p->metrics = calloc(n + 1, sizeof *p->metrics);
    if (!p->metrics)
        return err_memory(e, "policy.memory");
    cJSON_ArrayForEach(item, list) {
        struct policy_metric m = {
            .pointer = json_text(item, "path", ""),
            .label = note(p->definition, METRICS, p->n_metrics, "/label"),
            .unit = json_text(item, "unit", ""),
            .fallback = json_text(item, "fallback", NULL),
            .higher_is_worse = strcmp(json_text(item, "worse", ""), "higher") == 0,
            .gated = flag_at(item, "gated", true),
            .has_floor = json_get(item, "floor") != NULL,
            .tolerance_pct = json_number(item, "tolerance_pct", 0),
            .floor = json_number(item, "floor", 0),
            .reports = json_get(item, "reports"),
        };

        if (check_metric(p, &m, e) < 0)
            return -1;
        any_gated = any_gated || m.gated;
        p->metrics[p->n_metrics++] = m;
    }
    if (!any_gated) {
        (void) err_set(e, ERR_INPUT, "policy.gated",
                       "at least one metric must be gated (gated: true, the default)");
        return definition_blame(p->definition, METRICS, e);
    }
    return 0;
}

static int read_windows(struct policy *p, struct err *e)
{
    const cJSON *list = json_get(json_get(p->definition->policy, "audit"), "windows");
    const cJSON *item = NULL;
    size_t n = 0;

    if (count_of(p->definition, list, "/policy/audit/windows", &n, e) < 0)
        return -1;
    p->windows = calloc(n + 1, sizeof *p->windows);
    if (!p->windows)
        return err_memory(e, "policy.memory");
    cJSON_ArrayForEach(item, list) {
        size_t i = p->n_windows;

        p->windows[i] = (struct policy_window){
            .pointer = json_text(item, "path", ""),
            .label = note(p->definition, "/policy/audit/windows", i, "/label"),
            .complete = json_text(item, "complete", "complete"),
            .samples = json_text(item, "samples", "sample_count"),
            .coverage = json_text(item, "coverage", "actual_coverage_secs"),
            .value = json_text(item, "value", NULL),
            .min_samples = json_number(item, "min_samples", 2),
            .min_coverage = json_number(item, "min_coverage", 0),
            .reports = json_get(item, "reports"),
        };
        p->n_windows++;
    }
    return 0;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

#define REQUIRED "/policy/audit/paths/required"

static int required_twice(const struct policy *p, const cJSON *list, const char *path,
                          struct err *e)
{
    char at[POINTER_SIZE];
    const cJSON *item = NULL;
    size_t i = 0, second = 0;

    cJSON_ArrayForEach(item, list) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, path) == 0)
            second = i;
        i++;
    }
    (void) err_set(e, ERR_INPUT, "policy.duplicate", "'%s' is listed twice", path);
    return definition_blame(p->definition, entry(at, REQUIRED, second, ""), e);
}

static int read_required(struct policy *p, struct err *e)
{
    const cJSON *list =
        json_get(json_get(json_get(p->definition->policy, "audit"), "paths"), "required");
    const cJSON *item = NULL;
    size_t n = 0;

    if (count_of(p->definition, list, REQUIRED, &n, e) < 0)
        return -1;
    if (n == 0) {
        (void) err_set(e, ERR_INPUT, "policy.required", "at least one report is needed");
        return definition_blame(p->definition, REQUIRED, e);
    }
    p->required = calloc(n, sizeof *p->required);
    if (!p->required)
        return err_memory(e, "policy.memory");
    cJSON_ArrayForEach(item, list)
        p->required[p->n_required++] = cJSON_IsString(item) ? item->valuestring : "";
    qsort(p->required, n, sizeof *p->required, compare_text);
    for (size_t i = 1; i < n; i++)
        if (strcmp(p->required[i - 1], p->required[i]) == 0)
            return required_twice(p, list, p->required[i], e);
    return 0;
}

#define PRODUCE "/policy/infer/produce"

static int read_infer(struct policy *p, struct err *e)
{
    char at[POINTER_SIZE];
    const cJSON *item = NULL;
    size_t i = 0;

    p->infer = json_get(p->definition->policy, "infer");
    cJSON_ArrayForEach(item, json_get(p->infer, "produce")) {
        bool from = json_get(item, "from") != NULL;
        bool constant = json_get(item, "constant") != NULL;

        if (from == constant) {
            (void) err_set(e, ERR_INPUT, "policy.infer",
                           "exactly one of 'from' and 'constant' is needed");
            return definition_blame(p->definition, entry(at, PRODUCE, i, ""), e);
        }
        if (pointer_is_pattern(json_text(item, "path", ""))) {
            (void) err_set(e, ERR_INPUT, "policy.infer", "'*' cannot be produced");
            return definition_blame(p->definition, entry(at, PRODUCE, i, "/path"), e);
        }
        i++;
    }
    if (p->infer && !strstr(json_text(p->infer, "sibling", ""), "{point}")) {
        (void) err_set(e, ERR_INPUT, "policy.infer", "must hold {point}");
        return definition_blame(p->definition, "/policy/infer/sibling", e);
    }
    return 0;
}

int policy_read(const struct definition *d, struct policy *out, struct err *e)
{
    struct policy p = {.definition = d};

    if (read_identity(&p, e) < 0 || read_metrics(&p, e) < 0 || read_windows(&p, e) < 0 ||
        read_required(&p, e) < 0 || read_infer(&p, e) < 0) {
        policy_fini(&p);
        /* a place in the file says which gate */
        return d->source ? -1 : err_wrap(e, "gate '%s'", d->gate);
    }
    *out = p;
    return 0;
}

void policy_fini(struct policy *p)
{
    free(p->identity);
    free(p->metrics);
    free(p->windows);
    free(p->required);
    *p = (struct policy){0};
}

bool policy_applies(const cJSON *reports, const char *path)
{
    const cJSON *item = NULL;

    if (!reports)
        return true;
    cJSON_ArrayForEach(item, reports) {
        if (cJSON_IsString(item) && text_glob(item->valuestring, path))
            return true;
    }
    return false;
}

bool policy_requires(const struct policy *p, const char *path)
{
    return p->n_required > 0 &&
           bsearch(&path, p->required, p->n_required, sizeof *p->required, compare_text) != NULL;
}

/* Of a sorted list every text once; returns how many there are. */
static size_t without_twins(const char **list, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(list[kept - 1], list[i]) != 0)
            list[kept++] = list[i];
    return kept;
}

int policy_add_required(struct policy *p, const cJSON *manifest, struct err *e)
{
    const cJSON *paths = json_get(manifest, "comparison_paths");
    const cJSON *item = NULL;

    if (!manifest)
        return 0;
    if (!cJSON_IsArray(paths))
        return err_set(e, ERR_INPUT, "audit.baseline",
                       "the baseline manifest has no comparison paths");
    cJSON_ArrayForEach(item, paths) {
        const char **grown = NULL;

        if (!cJSON_IsString(item))
            return err_set(e, ERR_INPUT, "audit.baseline",
                           "a comparison path of the baseline manifest is no text");
        grown = reallocarray(p->required, p->n_required + 1, sizeof *grown);
        if (!grown)
            return err_memory(e, "policy.memory");
        p->required = grown;
        p->required[p->n_required++] = item->valuestring;
    }
    qsort(p->required, p->n_required, sizeof *p->required, compare_text);
    p->n_required = without_twins(p->required, p->n_required);
    return 0;
}
