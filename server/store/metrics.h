/* metrics: the numbers that a definition's metrics select in reports. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/definition.h"
#include "experiment/tree.h"

struct metric_value {
    char *path;   /* report */
    char *metric; /* plain pointer */
    double value;
};
struct metric_values {
    struct metric_value *items;
    size_t n;
};
/* At most LIMIT_METRICS, metric by metric in the definition's order. */
int metric_values_collect(const struct definition *d, const struct tree *t,
                          struct metric_values *out, struct err *e) MUST_CHECK;
void metric_values_fini(struct metric_values *m); /* accepts zeroed */
#define AUTO_METRIC_VALUES __attribute__((cleanup(metric_values_fini)))
