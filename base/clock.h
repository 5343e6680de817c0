/* clock: durations are monotonic, stamps are realtime UTC; never subtract stamps to get a duration.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define CLOCK_RFC3339_SIZE 32

uint64_t clock_monotonic_ns(void);
int64_t clock_realtime_us(void); /* microseconds since 1970, UTC */

/* "2026-11-29T14:15:02Z" (whole seconds) or with ".ffffff" when us_digits is true. */
void clock_rfc3339(int64_t realtime_us, bool us_digits, char out[CLOCK_RFC3339_SIZE]);
/* RFC 3339 with 'Z' or a numeric offset (required), fraction ≤ 9 digits; seconds 60 refused. */
bool clock_parse_rfc3339(const char *s, int64_t *out_us) MUST_CHECK;
/* "20261129T141502Z" */
void clock_compact(int64_t realtime_us, char out[CLOCK_RFC3339_SIZE]);
bool clock_parse_compact(const char *s, int64_t *out_us) MUST_CHECK;
