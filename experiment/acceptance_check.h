/* acceptance_check: the list of checks that the check families (acceptance_*.c) append to. Private
 * to acceptance. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json_out.h"
#include "experiment/acceptance.h"

struct checks {
    struct json_doc *doc;
    cJSON *list;
    size_t n;
    size_t failed;
    size_t bytes; /* about what the rows take, so that no more is built than a document may hold */
    const char *widest; /* the pattern with the most matches, or NULL */
    size_t widest_n;
    const cJSON *report;
    const struct acceptance_input *in;
};

/* Whether everything still fits into an acceptance document (LIMIT_CHECKS, LIMIT_JSON_DOCUMENT). */
bool checks_fit(const struct checks *c);

/* One row (it is only counted once they do not fit): limit and actual are copied (NULL: null);
 * error NULL when passed or when the numbers say it all. A huge value is shown by its type and size
 * only. */
void checks_add(struct checks *c, const char *name, const char *operator, const cJSON * limit,
                const cJSON *actual, bool passed, const char *error);

/* Problems of a check that looks at many things: each a text; the first becomes the check's error.
 */
struct problems {
    cJSON *list; /* array of strings; NULL: no memory, which counts as a problem */
    size_t n;
};
void problems_init(struct problems *p);
void problems_fini(struct problems *p);
void problems_add(struct problems *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The check's row: actual is the list of problems. */
void checks_add_problems(struct checks *c, const char *name, const char *operator,
                         const cJSON * limit, const struct problems *p);
#define AUTO_PROBLEMS __attribute__((cleanup(problems_fini)))

/* The entry's `name`, or `otherwise`. */
const char *check_name(const cJSON *entry, const char *otherwise);
/* A member that the schema promises; "" when it is not there. */
const char *check_text(const cJSON *entry, const char *key);
double check_number(const cJSON *entry, const char *key, double otherwise);
bool check_is_count(const cJSON *j); /* a JSON integer ≥ 0 */

/* The families. -1: no memory or a broken definition; never for a failing check. */
int checks_fields(struct checks *c, const cJSON *accept, struct err *e) MUST_CHECK;
int checks_counts(struct checks *c, const cJSON *accept, struct err *e) MUST_CHECK;
int checks_phases(struct checks *c, const cJSON *accept, struct err *e) MUST_CHECK;
int checks_repeated(struct checks *c, const cJSON *accept, struct err *e) MUST_CHECK;
int checks_recompute(struct checks *c, const cJSON *accept, struct err *e) MUST_CHECK;
int checks_consistent(struct checks *c, const cJSON *accept, struct err *e) MUST_CHECK;
/* The section that the runner derived from its own samples (sampling.into). */
int checks_derived(struct checks *c, const cJSON *accept, struct err *e) MUST_CHECK;
/* The policy's soak rule, beside `accept`. */
int checks_soak(struct checks *c, const cJSON *accept, struct err *e) MUST_CHECK;
/* The markers of the run: the manifest's, else where `accept.phases` points in the report; NULL
 * when there are none. */
const cJSON *check_markers(const struct checks *c, const cJSON *accept);
