/* The shape of a policy's `soak` part; its meaning: experiment/soak.h. */
#include "experiment/soak.h"

static const struct schema text = {.type = SCHEMA_STRING};
static const struct schema duration = {.type = SCHEMA_DURATION};
static const struct schema pointer = {.type = SCHEMA_POINTER};
static const struct schema count = {.type = SCHEMA_INTEGER, .min = 3, .max = 1e6};
static const struct schema rate = {.type = SCHEMA_NUMBER, .min = 0, .max = 1e12};
static const struct schema phase = {
    .type = SCHEMA_STRING,
    .about = "The marker that ends the active phase; or name `active_secs`."};
static const struct schema active_secs = {
    .type = SCHEMA_POINTER,
    .about = "Where the report says how long the active phase was, in seconds."};
static const struct schema reported = {
    .type = SCHEMA_POINTER,
    .about = "The report's own figure, which must follow from the samples."};

static const struct schema_field samples_fields[] = {
    {"path", &pointer, true, false},
    {"t", &text, true, false},
    {"value", &text, true, false},
};
static const struct schema samples = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(samples_fields),
    .about = "The report's list of samples and the names of their members (seconds, MB); without "
             "it, the runner's samples.",
};

static const struct schema_field soak_fields[] = {
    {"name", &text, false, false},         {"label", &text, false, true},
    {"window", &duration, true, false},    {"min_coverage", &duration, true, false},
    {"min_samples", &count, false, false}, {"limit_mb_per_hour", &rate, true, false},
    {"active_end", &phase, false, false},  {"active_secs", &active_secs, false, false},
    {"samples", &samples, false, false},   {"reported", &reported, false, false},
};

const struct schema schema_soak = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(soak_fields),
    .about = "Growth gate over the last part of a long active phase (Theil-Sen): a check of its "
             "own, which fails when that "
             "part was not fully measured.",
};
