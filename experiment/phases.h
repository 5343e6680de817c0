/* phases: looking up phase markers, [{phase, kind, elapsed_ms}] in a report or a manifest. Knows no
 * rule about them. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct phase_found {
    size_t count;      /* markers of that phase and kind */
    bool valid;        /* the first has a non-negative JSON integer as elapsed_ms */
    double elapsed_ms; /* of the first, when valid */
};

/* Markers that were observed: kind "actual" or beginning with "actual_"; a marker without a kind
 * counts as observed. */
struct phase_found phases_find_actual(const cJSON *markers, const char *phase);
/* Markers of exactly this kind. */
struct phase_found phases_find_kind(const cJSON *markers, const char *phase, const char *kind);
bool phases_has_kind(const cJSON *markers, const char *kind);
