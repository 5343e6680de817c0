/* The shape of an entry of experiment.windows; its meaning: experiment/window.h. */
#include "experiment/window.h"

#include <string.h>

#include "base/json_in.h"

static const char *const estimator_words[] = {"endpoint-bands", "theil-sen", "least-squares", NULL};

static const struct schema phase = {.type = SCHEMA_STRING, .about = "Name of a phase marker."};
static const struct schema label = {.type = SCHEMA_STRING};
static const struct schema estimator = {
    .type = SCHEMA_ENUM,
    .words = estimator_words,
    .about = "Which estimate is the window's growth; all of them are reported.",
};
static const struct schema fraction = {
    .type = SCHEMA_INTEGER,
    .min = 2,
    .max = 100,
    .about = "An endpoint band is at most this part of the window (default 6: a sixth)."};
static const struct schema cap = {.type = SCHEMA_DURATION,
                                  .about = "An endpoint band is at most this long (default 60s)."};
static const struct schema min_samples = {
    .type = SCHEMA_INTEGER,
    .min = 2,
    .max = 1e6,
    .about = "Fewer samples: the window is not complete (default 6)."};
static const struct schema min_band = {
    .type = SCHEMA_INTEGER,
    .min = 1,
    .max = 1e6,
    .about = "Fewer samples in an endpoint band: no estimate (default 3)."};
static const struct schema min_coverage = {
    .type = SCHEMA_DURATION,
    .about = "Less time between first and last sample: the window is not complete."};
static const struct schema boundary_factor = {
    .type = SCHEMA_NUMBER,
    .min = 0,
    .max = 100,
    .about = "First and last sample may miss the requested boundaries by this many sample "
             "intervals (default 1.5).",
};

static const struct schema_field window_fields[] = {
    {"start_phase", &phase, true, false},
    {"end_phase", &phase, true, false},
    {"estimator", &estimator, true, false},
    {"fraction", &fraction, false, false},
    {"cap", &cap, false, false},
    {"min_samples", &min_samples, false, false},
    {"min_band_samples", &min_band, false, false},
    {"min_coverage", &min_coverage, false, false},
    {"boundary_factor", &boundary_factor, false, false},
    {"label", &label, false, true},
};
static const struct schema window = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(window_fields),
    .about = "Samples between two phase markers, and how growth in them is estimated."};

const struct schema schema_windows = {
    .type = SCHEMA_MAP,
    .item = &window,
    .about = "By name: samples between two phase markers, and how growth in them is estimated."};

static double number_or(const cJSON *entry, const char *key, double otherwise)
{
    const cJSON *j = json_get(entry, key);

    return cJSON_IsNumber(j) ? j->valuedouble : otherwise;
}

static const char *text_or_empty(const cJSON *entry, const char *key)
{
    const cJSON *j = json_get(entry, key);

    return cJSON_IsString(j) ? j->valuestring : "";
}

const char *window_estimator_name(enum window_estimator estimator_kind)
{
    return estimator_words[estimator_kind];
}

void window_rule_from(const cJSON *entry, struct window_rule *out)
{
    const struct endpoint_rule *d = &endpoint_rule_default;
    const char *word = text_or_empty(entry, "estimator");

    *out = (struct window_rule){
        .name = entry->string ? entry->string : "",
        .start_phase = text_or_empty(entry, "start_phase"),
        .end_phase = text_or_empty(entry, "end_phase"),
        .estimator = WINDOW_ENDPOINT_BANDS,
        .endpoint = {.fraction = number_or(entry, "fraction", d->fraction),
                     .cap_secs = number_or(entry, "cap", d->cap_secs * 1000.0) / 1000.0,
                     .min_samples =
                         (size_t) number_or(entry, "min_samples", (double) d->min_samples),
                     .min_band =
                         (size_t) number_or(entry, "min_band_samples", (double) d->min_band)},
        .boundary_factor = number_or(entry, "boundary_factor", 1.5),
        .min_coverage_secs = number_or(entry, "min_coverage", 0) / 1000.0,
    };
    out->min_samples = out->endpoint.min_samples;
    for (size_t i = 0; estimator_words[i]; i++)
        if (strcmp(word, estimator_words[i]) == 0)
            out->estimator = (enum window_estimator) i;
}
