/*
 * findings: what an audit collects while it looks: reasons, identity lists, rows. Additions cannot
 * fail half-way unnoticed: memory failure sticks and is told once by findings_ok. One thread.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json_out.h"

struct findings {
    cJSON *reasons; /* arrays, owned */
    cJSON *equal;
    cJSON *different;
    cJSON *inferred;
    cJSON *not_recorded;
    cJSON *comparisons;
    cJSON *ungated;
    cJSON *paths;
    size_t expected;
    size_t listed; /* expected ones, and members that are not gated: at most LIMIT_COMPARISONS */
    size_t made;
    bool regression;
    bool self; /* one run stands on both sides (audit_would_compare) */
    /* about what the rows take, so that no more is built than a document may hold */
    size_t bytes;
    bool over;        /* it is more than a document may hold: NC-TOO-MANY, and nothing is listed */
    bool invalid;     /* a side's evidence is broken: no comparison, and the verdict is INVALID */
    bool refused_all; /* a reason without a report path stands: no number anywhere */
    struct json_doc marks; /* its `failed` is the sticky failure */
};

int findings_init(struct findings *f, struct err *e) MUST_CHECK; /* -1: no memory */
void findings_fini(struct findings *f);                          /* accepts zeroed */
/* -1: memory ran out in some addition since findings_init. */
int findings_ok(const struct findings *f, struct err *e) MUST_CHECK;

struct value_elements;

struct finding {
    const char *code;      /* of the registry */
    const char *path;      /* report path or NULL */
    const char *field;     /* JSON Pointer or NULL */
    const cJSON *baseline; /* raw values; NULL: absent */
    const cJSON *current;
    const struct value_elements *elements; /* in what the two differ, or NULL */
};
/* Takes room for a row of about so many bytes; false when there is none, and then nothing is added
 * any more. */
bool findings_room(struct findings *f, size_t bytes);
/* One comparison more is expected (or a member listed as not gated). */
void findings_expect(struct findings *f, size_t n);
/* Empties the lists for the one reason that stands when all of it is too much for a document. */
int findings_too_many(struct findings *f, struct err *e) MUST_CHECK;
/* Nothing is added when there is no room. */
void findings_reason(struct findings *f, const struct finding *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Where something is wrong, at least on one side, as words for a reason: "in the baseline", "in the
 * current run", "on both sides"; "in this run" when both sides are one run. Static text. */
const char *findings_where(const struct findings *f, bool in_baseline, bool in_current);
/* Whether a reason names this report. */
bool findings_refused(const struct findings *f, const char *path);
/* By their order in reasons.def, then path, then field. */
int findings_sort_reasons(struct findings *f, struct err *e) MUST_CHECK;
