/* The shape of a policy's `accept` part; what each check means: experiment/acceptance.h. */
#include "experiment/schema.h"

#define NAME_AND_LABEL                                                                             \
    {"name", &text, false, false},                                                                 \
    {                                                                                              \
        "label", &text, false, true                                                                \
    }

static const struct schema text = {.type = SCHEMA_STRING};
static const struct schema texts = {.type = SCHEMA_ARRAY, .item = &text};
static const struct schema any = {.type = SCHEMA_ANY};
static const struct schema anys = {.type = SCHEMA_ARRAY, .item = &any, .min_items = 1};
static const struct schema number = {.type = SCHEMA_NUMBER};
static const struct schema positive = {.type = SCHEMA_NUMBER, .min = 0, .max = 1e300};
static const struct schema count = {.type = SCHEMA_INTEGER, .min = 1, .max = 1e6};
static const struct schema fraction = {.type = SCHEMA_INTEGER, .min = 2, .max = 100};
static const struct schema share = {.type = SCHEMA_NUMBER, .min = 0, .max = 1};
static const struct schema duration = {.type = SCHEMA_DURATION};
static const struct schema pointer = {.type = SCHEMA_POINTER};
static const struct schema pointers = {.type = SCHEMA_ARRAY, .item = &pointer, .min_items = 2};
static const struct schema parts = {.type = SCHEMA_ARRAY, .item = &pointer, .min_items = 1};

/* Single values. */
static const struct schema_field exact_fields[] = {
    NAME_AND_LABEL,
    {"path", &pointer, true, false},
    {"equals", &any, true, false},
};
static const struct schema exact_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(exact_fields)};
static const struct schema exact = {
    .type = SCHEMA_ARRAY,
    .item = &exact_entry,
    .about = "The value must be there and equal, type and all; 2000 equals 2000.0, 1 is not true, "
             "absent is not null.",
};

static const struct schema_field path_fields[] = {NAME_AND_LABEL, {"path", &pointer, true, false}};
static const struct schema path_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(path_fields)};
static const struct schema absent = {
    .type = SCHEMA_ARRAY, .item = &path_entry, .about = "Nothing may stand there, not even null."};
static const struct schema absolute_path = {
    .type = SCHEMA_ARRAY, .item = &path_entry, .about = "A text that begins with '/'."};
static const struct schema zero_tree = {
    .type = SCHEMA_ARRAY,
    .item = &path_entry,
    .about = "A tree of counters: at least one, each a JSON integer (0.0 is none), all zero.",
};

static const struct schema_field floor_fields[] = {
    NAME_AND_LABEL,
    {"path", &pointer, true, false},
    {"min", &number, true, false},
    {"unit", &text, false, false},
};
static const struct schema floor_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(floor_fields)};
static const struct schema floors = {
    .type = SCHEMA_ARRAY, .item = &floor_entry, .about = "Coverage: a number of at least `min`."};

static const char *const op_words[] = {">=", "<=", NULL};
static const struct schema op = {.type = SCHEMA_ENUM, .words = op_words};
static const struct schema_field limit_fields[] = {
    NAME_AND_LABEL,
    {"path", &pointer, true, false},
    {"op", &op, true, false},
    {"value", &number, true, false},
    {"unit", &text, true, false},
};
static const struct schema limit_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(limit_fields)};
static const struct schema limits = {
    .type = SCHEMA_ARRAY, .item = &limit_entry, .about = "Thresholds; the limit itself passes."};

/* Counts that belong together. */
static const struct schema_field equal_fields[] = {NAME_AND_LABEL,
                                                   {"paths", &pointers, true, false}};
static const struct schema equal_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(equal_fields)};
static const struct schema equal = {
    .type = SCHEMA_ARRAY, .item = &equal_entry, .about = "JSON integers, all the same."};

static const struct schema_field sum_fields[] = {
    NAME_AND_LABEL,
    {"total", &pointer, true, false},
    {"parts", &parts, true, false},
};
static const struct schema sum_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(sum_fields)};
static const struct schema sums = {.type = SCHEMA_ARRAY,
                                   .item = &sum_entry,
                                   .about = "JSON integers: the total is the sum of its parts."};

static const struct schema_field share_fields[] = {
    NAME_AND_LABEL,
    {"part", &pointer, true, false},
    {"of", &pointer, true, false},
    {"max", &share, true, false},
};
static const struct schema share_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(share_fields)};
static const struct schema shares = {.type = SCHEMA_ARRAY,
                                     .item = &share_entry,
                                     .about = "part / of is at most `max`; `of` is above 0."};

/* Phases. */
static const struct schema_field planned_fields[] = {{"phase", &text, true, false},
                                                     {"elapsed", &duration, true, false}};
static const struct schema planned_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(planned_fields)};
static const struct schema planned = {.type = SCHEMA_ARRAY, .item = &planned_entry};
static const struct schema_field span_fields[] = {
    {"from", &text, true, false},
    {"to", &text, true, false},
    {"min", &duration, true, false},
};
static const struct schema span_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(span_fields)};
static const struct schema spans = {.type = SCHEMA_ARRAY, .item = &span_entry};
static const struct schema_field phases_fields[] = {
    NAME_AND_LABEL,
    {"markers", &pointer, true, false},
    {"planned", &planned, false, false},
    {"required", &texts, false, false},
    {"forbidden_kinds", &texts, false, false},
    {"monotonic", &texts, false, false},
    {"min_spans", &spans, false, false},
};
static const struct schema phases = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(phases_fields),
    .about = "Rules for phase markers [{phase, kind, elapsed_ms}]: planned ones at their exact "
             "time, observed ones that must "
             "be there, kinds that must not, their order, and how long they lie apart at least.",
};

/* Windows tied to phases. */
static const struct schema_field bound_fields[] = {{"value", &pointer, true, false},
                                                   {"phase", &text, true, false}};
static const struct schema bound_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(bound_fields)};
static const struct schema bounds = {.type = SCHEMA_ARRAY, .item = &bound_entry, .min_items = 1};
static const struct schema_field binding_fields[] = {
    NAME_AND_LABEL,
    {"markers", &pointer, true, false},
    {"origin", &text, true, false},
    {"tolerance", &duration, true, false},
    {"bounds", &bounds, true, false},
};
static const struct schema binding_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(binding_fields)};
static const struct schema bindings = {
    .type = SCHEMA_ARRAY,
    .item = &binding_entry,
    .about = "Window boundaries in seconds must lie at their phase's marker (counted from the "
             "origin's), so that no window "
             "slides into a quieter phase.",
};

/* Repeated structures. */
static const struct schema element_exact = {.type = SCHEMA_ARRAY, .item = &exact_entry};
static const struct schema_field start_fields[] = {{"path", &pointer, true, false},
                                                   {"text", &text, true, false}};
static const struct schema start_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(start_fields)};
static const struct schema starts = {.type = SCHEMA_ARRAY,
                                     .item = &start_entry,
                                     .about = "{index} stands for the element's number from 0."};
static const struct schema_field series_fields[] = {{"path", &pointer, true, false},
                                                    {"values", &anys, true, false}};
static const struct schema series_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(series_fields)};
static const struct schema series = {
    .type = SCHEMA_ARRAY, .item = &series_entry, .about = "One value for each element, in order."};
static const struct schema_field repeated_fields[] = {
    NAME_AND_LABEL,
    {"path", &pointer, true, false},
    {"count", &count, true, false},
    {"exact", &element_exact, false, false},
    {"starts_with", &starts, false, false},
    {"series", &series, false, false},
};
static const struct schema repeated_entry = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(repeated_fields)};
static const struct schema repeated = {
    .type = SCHEMA_ARRAY,
    .item = &repeated_entry,
    .about = "A list of exactly `count` alike elements; paths count from the element.",
};

/* Recomputation from raw samples. */
static const char *const float_words[] = {"binary32", "binary64", NULL};
static const struct schema float_type = {.type = SCHEMA_ENUM, .words = float_words};
static const struct schema_field samples_fields[] = {
    {"path", &pointer, true, false},         {"t", &text, true, false},
    {"value", &text, true, false},           {"cpu", &text, false, false},
    {"cpu_type", &float_type, false, false},
};
static const struct schema samples = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(samples_fields),
    .about =
        "A list of objects in the report and the names of their members: seconds, MB and per cent.",
};

static const struct schema_field endpoint_fields[] = {
    {"fraction", &fraction, false, false},
    {"cap", &duration, false, false},
    {"min_samples", &count, false, false},
    {"min_band_samples", &count, false, false},
};
static const struct schema endpoint = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(endpoint_fields)};

static const char *const total_words[] = {
    "sample-count", "interval",          "first",           "peak",
    "mean-cpu",     "growth-per-minute", "growth-per-hour", NULL};
static const char *const tail_words[] = {"coverage", "sample-count", "complete",
                                         "growth-per-minute", NULL};
static const char *const window_words[] = {"first-sample",
                                           "last-sample",
                                           "coverage",
                                           "sample-count",
                                           "boundary-tolerance",
                                           "complete",
                                           "growth-per-minute",
                                           "growth-per-hour",
                                           "start-median",
                                           "end-median",
                                           "retained",
                                           "start-time",
                                           "end-time",
                                           "separation",
                                           "band",
                                           "start-sample-count",
                                           "end-sample-count",
                                           "endpoint-growth-per-hour",
                                           "theil-sen-per-hour",
                                           NULL};
static const struct schema total_word = {.type = SCHEMA_ENUM, .words = total_words};
static const struct schema tail_word = {.type = SCHEMA_ENUM, .words = tail_words};
static const struct schema window_word = {.type = SCHEMA_ENUM, .words = window_words};
static const struct schema_field total_fields[] = {{"path", &pointer, true, false},
                                                   {"is", &total_word, true, false}};
static const struct schema_field tail_item_fields[] = {{"path", &pointer, true, false},
                                                       {"is", &tail_word, true, false}};
static const struct schema_field window_item_fields[] = {{"path", &pointer, true, false},
                                                         {"is", &window_word, true, false}};
static const struct schema total_item = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(total_fields)};
static const struct schema tail_item = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(tail_item_fields)};
static const struct schema window_item = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(window_item_fields)};
static const struct schema totals = {.type = SCHEMA_ARRAY, .item = &total_item};
static const struct schema tail_items = {.type = SCHEMA_ARRAY, .item = &tail_item, .min_items = 1};
static const struct schema window_items = {
    .type = SCHEMA_ARRAY, .item = &window_item, .min_items = 1};

static const struct schema_field tail_fields[] = {{"requested", &pointer, true, false},
                                                  {"fields", &tail_items, true, false}};
static const struct schema tail = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(tail_fields)};
static const struct schema_field window_fields[] = {
    {"requested_start", &pointer, true, false},     {"requested_end", &pointer, true, false},
    {"requested_coverage", &pointer, false, false}, {"span_under", &duration, false, false},
    {"span_over", &duration, false, false},         {"fields", &window_items, true, false},
};
static const struct schema window = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(window_fields),
    .about = "The boundaries are read from the report (tie them to phases by a binding); their "
             "distance must be the requested "
             "coverage, less by at most span_under and more by at most span_over.",
};
static const struct schema windows = {.type = SCHEMA_ARRAY, .item = &window};

static const struct schema_field recompute_fields[] = {
    NAME_AND_LABEL,
    {"samples", &samples, true, false},
    {"rel_tolerance", &positive, false, false},
    {"abs_tolerance", &positive, false, false},
    {"boundary_factor", &positive, false, false},
    {"endpoint", &endpoint, false, false},
    {"totals", &totals, false, false},
    {"tail", &tail, false, false},
    {"windows", &windows, false, false},
};
static const struct schema recompute = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(recompute_fields),
    .about = "Summaries that must follow from the report's own raw samples: counts and truth "
             "values exactly, numbers within "
             "max(rel_tolerance · magnitude, abs_tolerance).",
};

/* Reported numbers of the endpoint estimator among themselves. */
static const struct schema_field consistent_fields[] = {
    NAME_AND_LABEL,
    {"start_median", &pointer, true, false},
    {"end_median", &pointer, true, false},
    {"retained", &pointer, true, false},
    {"first_sample", &pointer, true, false},
    {"last_sample", &pointer, true, false},
    {"coverage", &pointer, true, false},
    {"band", &pointer, true, false},
    {"start_time", &pointer, true, false},
    {"end_time", &pointer, true, false},
    {"separation", &pointer, true, false},
    {"rate_per_hour", &pointer, true, false},
    {"also_retained", &parts, false, false},
    {"also_rate_per_hour", &parts, false, false},
    {"rel_tolerance", &positive, false, false},
    {"abs_tolerance", &positive, false, false},
    {"time_tolerance_secs", &positive, false, false},
};
static const struct schema consistent_entry = {.type = SCHEMA_OBJECT,
                                               SCHEMA_FIELDS(consistent_fields)};
static const struct schema consistent = {
    .type = SCHEMA_ARRAY,
    .item = &consistent_entry,
    .about = "The endpoint estimator's reported parts must make its reported rate, wherever that "
             "is repeated.",
};

static const struct schema_field accept_fields[] = {
    {"exact", &exact, false, false},
    {"absent", &absent, false, false},
    {"absolute_path", &absolute_path, false, false},
    {"floors", &floors, false, false},
    {"limits", &limits, false, false},
    {"equal", &equal, false, false},
    {"sums", &sums, false, false},
    {"shares", &shares, false, false},
    {"zero_tree", &zero_tree, false, false},
    {"phases", &phases, false, false},
    {"bindings", &bindings, false, false},
    {"repeated", &repeated, false, false},
    {"recompute", &recompute, false, false},
    {"consistent", &consistent, false, false},
};

const struct schema schema_accept = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(accept_fields),
    .about = "Absolute checks of one report. `name` is the check's name in every answer; without "
             "it, its path.",
};
