/*
 * leak: does memory grow without end? `leak rule v1` over a file of raw integer samples: a
 * three-way verdict from the Theil-Sen slope of one-minute block medians with its uncertainty and
 * from the endpoint bands, beside every other estimator. PASS or FAIL only when both agree and the
 * uncertainty allows it. Pure; knows no definition.
 *
 * cleanrun-leak/1: {schema, verdict, reason|null, limit_mb_per_hour, window_ms: {from, to}|null,
 * samples, estimators: {endpoint_mb_per_hour, theil_sen_mb_per_hour, ols_mb_per_hour,
 * block_theil_sen_mb_per_hour}, blocks, sigma_block, r1, r1_corrected, se, lo, hi, gates:
 * {endpoint, theil_sen}} What could not be computed is null. gates compare the endpoint rate and
 * the Theil-Sen slope over all samples with the limit, each by itself. Reasons: no_samples
 * window_too_short estimators_disagree underpowered near_limit (INCONCLUSIVE), not_sorted
 * not_integer not_finite row_length negative (INVALID).
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* A shorter series is INCONCLUSIVE: so many whole minutes, each with so many samples. */
enum { LEAK_MIN_BLOCKS = 8, LEAK_MIN_BLOCK_SAMPLES = 3 };

enum leak_verdict { LEAK_PASS, LEAK_FAIL, LEAK_INCONCLUSIVE, LEAK_INVALID };

struct leak_window {
    int64_t from_ms; /* both inclusive */
    int64_t to_ms;
};

struct leak {
    enum leak_verdict verdict;
    cJSON *document; /* owned */
};

const char *leak_verdict_name(enum leak_verdict verdict);
/* "A..B" in milliseconds, A ≤ B. */
bool leak_window_parse(const char *text, struct leak_window *out) MUST_CHECK;
/* csv: header "t_ms,rss_kib[,…]". window NULL: all samples. limit_mb_per_hour finite and ≥ 0 (else
 * ERR_USAGE). -1: not such a file, too large, no memory. A bad row or order is the verdict INVALID.
 */
int leak_evaluate(const char *csv, size_t len, double limit_mb_per_hour,
                  const struct leak_window *window, struct leak *out, struct err *e) MUST_CHECK;
void leak_fini(struct leak *l); /* accepts zeroed */
#define AUTO_LEAK __attribute__((cleanup(leak_fini)))
