/*
 * samples: a raw series of one process tree: time, RSS, CPU. Integers as measured: milliseconds since
 * the point's start and KiB. The file form is CSV with the header "t_ms,rss_kib,cpu_pct,threads,…"
 * (columns after rss_kib optional, unknown ones kept out); the report form is an embedded array.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct samples {
    double *t_secs; /* non-decreasing is NOT guaranteed here: the estimators check */
    double *value;  /* RSS in MB (MB = KiB/1024 throughout: seed-rvoip §1.1) */
    double *cpu_pct; /* NULL when not recorded */
    size_t n;
};

void samples_fini(struct samples *s); /* accepts zeroed */
int samples_parse_csv(const char *bytes, size_t len, struct samples *out, struct err *e) MUST_CHECK;
#define AUTO_SAMPLES __attribute__((cleanup(samples_fini)))
