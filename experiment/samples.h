/*
 * samples: a raw series of one process tree: time, RSS, CPU. Integers as measured: milliseconds
 * since the point's start and KiB. The file form is CSV with the header
 * "t_ms,rss_kib,cpu_pct,threads,…" (columns after rss_kib optional, unknown ones kept out); the
 * report form is an embedded array.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct samples {
    double *t_secs;  /* non-decreasing is NOT guaranteed here: the estimators check */
    double *value;   /* RSS in MB, which is KiB/1024 throughout (docs/definition.md) */
    double *cpu_pct; /* NULL when not recorded */
    size_t n;
    int64_t *t_ms; /* as written; NULL when the source has seconds and MB */
    int64_t *rss_kib;
};

void samples_fini(struct samples *s); /* accepts zeroed */

/* Malformed rows are ERR_INPUT; for those who must tell a bad row from a bad file:
 * samples_read_csv. */
int samples_parse_csv(const char *bytes, size_t len, struct samples *out, struct err *e) MUST_CHECK;

/* *out_problem: "" or why a row is no sample ("not_integer", "row_length", "negative",
 * "not_finite"), with *out empty then. -1: no such file at all (header, size), no memory. A row:
 * integers t_ms and rss_kib ≥ 0, then as many cells as the header has columns; a column cpu_pct
 * holds numbers, and may be empty in the first row (there is no interval before it yet). */
int samples_read_csv(const char *bytes, size_t len, struct samples *out, const char **out_problem,
                     struct err *e) MUST_CHECK;

/* Member names of an embedded array of objects. cpu NULL: not recorded. */
struct samples_members {
    const char *t;     /* seconds */
    const char *value; /* MB */
    const char *cpu;
    bool cpu_binary32; /* the program had 32-bit floats: values are rounded to them */
};
/* *out_problem as above: "no_samples" (absent, no array, empty), "not_number". */
int samples_from_json(const cJSON *array, const struct samples_members *members,
                      struct samples *out, const char **out_problem, struct err *e) MUST_CHECK;

/* Arrays for n samples; cpu and integers on demand. */
int samples_alloc(size_t n, bool with_cpu, bool with_integers, struct samples *out,
                  struct err *e) MUST_CHECK;

#define AUTO_SAMPLES __attribute__((cleanup(samples_fini)))
