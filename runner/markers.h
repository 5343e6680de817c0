/*
 * markers: the phase markers that a workload writes, one name a line, stamped when they arrive, and
 * their check against the definition. Names are data. One thread.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "runner/plan.h"

#define MARKER_NAME_SIZE 64

struct marker {
    char name[MARKER_NAME_SIZE];
    uint64_t elapsed_ms;
};

struct markers {
    struct marker items[LIMIT_PHASE_MARKERS];
    size_t n;
    uint64_t start_ns; /* monotonic: the point's start */
    char line[MARKER_NAME_SIZE];
    size_t line_len;
    bool too_long;    /* the line in hand is longer than a name may be */
    size_t malformed; /* lines that are no name */
    size_t lost;      /* markers beyond the limit */
    void (*seen)(void *context, const char *name); /* NULL, or told of each marker */
    void *context;
};

void markers_init(struct markers *m, uint64_t start_ns);
/* A loop_stream callback: context is the markers. */
int markers_data(void *context, const char *bytes, size_t len, struct err *e) MUST_CHECK;
/* [{phase, kind: "actual", elapsed_ms}] */
int markers_to_json(const struct markers *m, cJSON **out, struct err *e) MUST_CHECK;
/* True when the sequence breaks the plan (unknown, repeated, out of order, missing, malformed): why
 * says what. */
bool markers_break(const struct markers *m, const struct plan *p, char *why, size_t size);
