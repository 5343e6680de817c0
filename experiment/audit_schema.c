/* The shape of a policy's `identity`, `infer` and `audit` parts. What they mean: audit/policy.h. */
#include "experiment/schema.h"

static const struct schema text = {.type = SCHEMA_STRING};
static const struct schema flag = {.type = SCHEMA_BOOL};
static const struct schema pointer = {.type = SCHEMA_POINTER};
static const struct schema anything = {.type = SCHEMA_ANY};
static const struct schema relname = {.type = SCHEMA_RELNAME};
static const struct schema count = {.type = SCHEMA_INTEGER, .min = 1, .max = 1e9};
static const struct schema percent = {.type = SCHEMA_NUMBER, .min = 0, .max = 1e6};
static const struct schema positive = {.type = SCHEMA_NUMBER, .min = 0, .max = 1e300};
static const struct schema pointers = {.type = SCHEMA_ARRAY, .item = &pointer, .min_items = 1};
static const struct schema pointer_map = {.type = SCHEMA_MAP, .item = &pointer};
static const struct schema reports = {
    .type = SCHEMA_ARRAY,
    .item = &text,
    .min_items = 1,
    .about = "Report paths this entry applies to; '*' matches any text. Without it: every compared "
             "report.",
};

/* identity */
static const char *const require_words[] = {"required", "both-may-lack", NULL};
static const struct schema require = {
    .type = SCHEMA_ENUM,
    .words = require_words,
    .about = "both-may-lack: may be absent on both sides when the baseline is legacy; the answer "
             "then lists it as not "
             "recorded. On one side only it is a refusal like any other.",
};
static const char *const type_words[] = {"string", "boolean", "integer", "number",
                                         "array",  "object",  NULL};
static const struct schema type = {.type = SCHEMA_ENUM,
                                   .words = type_words,
                                   .about = "A value of another type is a malformed identity."};
static const struct schema within = {
    .type = SCHEMA_POINTER,
    .about = "The object that must hold this field: when the object is there and the field is not, "
             "the identity is malformed.",
};

static const struct schema_field identity_fields[] = {
    {"path", &pointer, true, false},       {"require", &require, true, false},
    {"type", &type, false, false},         {"within", &within, false, false},
    {"may_be_empty", &flag, false, false}, {"reports", &reports, false, false},
    {"label", &text, false, true},         {"why", &text, false, true},
};
static const struct schema identity_field = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(identity_fields)};

const struct schema schema_identity = {
    .type = SCHEMA_ARRAY,
    .item = &identity_field,
    .min_items = 1,
    .about =
        "Report fields that must be known and equal on both sides before any number is compared.",
};

/* infer */
static const struct schema_field scenario_fields[] = {
    {"path", &pointer, true, false},
    {"prefix", &text, true, false},
};
static const struct schema scenario = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(scenario_fields)};

static const struct schema_field sweep_fields[] = {
    {"file", &relname, true, false},
    {"points", &pointer, true, false},
    {"alone_at_root", &flag, false, false},
};
static const struct schema sweep = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(sweep_fields),
    .about = "The sibling file that lists the points of the sweep in order. alone_at_root: a "
             "report at the top of the tree is "
             "a sweep of its own point.",
};

static const struct schema_field earlier_fields[] = {
    {"point", &text, true, false},
    {"counts", &pointer_map, true, false},
};
static const struct schema earlier = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(earlier_fields),
    .about = "Each earlier point becomes an object: its load under the name `point`, and integer "
             "counts read from its report.",
};

static const char *const from_words[] = {"point", "points", "earlier", NULL};
static const struct schema from = {.type = SCHEMA_ENUM, .words = from_words};
static const struct schema_field produce_fields[] = {
    {"path", &pointer, true, false},
    {"from", &from, false, false},
    {"constant", &anything, false, false},
};
static const struct schema produce_field = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(produce_fields)};
static const struct schema produce = {.type = SCHEMA_ARRAY, .item = &produce_field, .min_items = 1};

static const struct schema_field infer_fields[] = {
    {"name", &text, true, false},          {"explicit", &pointer, true, false},
    {"scenario", &scenario, true, false},  {"skip_prefix", &text, false, false},
    {"sweep", &sweep, true, false},        {"point", &pointer, true, false},
    {"sibling", &text, true, false},       {"earlier", &earlier, true, false},
    {"integers", &pointers, false, false}, {"produce", &produce, true, false},
};

const struct schema schema_infer = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(infer_fields),
    .about = "How the identity of a legacy baseline's report is derived from the complete sweep "
             "beside it, when the report has "
             "no object at `explicit`. `sibling` names an earlier point's file: {point} is its "
             "load in shortest form. All "
             "conditions hold, or there is no identity.",
};

/* audit */
static const struct schema required = {.type = SCHEMA_ARRAY, .item = &relname, .min_items = 1};
static const struct schema_field paths_fields[] = {{"required", &required, true, false}};
static const struct schema paths = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(paths_fields),
    .about = "The closed set of reports this gate compares.",
};

static const char *const worse_words[] = {"higher", "lower", NULL};
static const struct schema worse = {.type = SCHEMA_ENUM, .words = worse_words};
static const struct schema floor_value = {
    .type = SCHEMA_NUMBER,
    .min = 0,
    .max = 1e300,
    .about = "Near zero (|baseline| under the floor) a higher-is-worse metric regresses only above "
             "the floor and above twice "
             "the baseline.",
};
static const struct schema_field metric_fields[] = {
    {"path", &pointer, true, false},       {"unit", &text, true, false},
    {"worse", &worse, true, false},        {"tolerance_pct", &percent, true, false},
    {"floor", &floor_value, false, false}, {"gated", &flag, false, false},
    {"reports", &reports, false, false},   {"fallback", &pointer, false, false},
    {"label", &text, false, true},
};
static const struct schema metric = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(metric_fields),
    .about = "A '*' in the path expands over the baseline's members, and {1}, {2} in the label are "
             "what it matched. `fallback` "
             "stands in on an inferred legacy baseline only.",
};
static const struct schema metrics = {.type = SCHEMA_ARRAY, .item = &metric, .min_items = 1};

static const struct schema_field window_fields[] = {
    {"path", &pointer, true, false},   {"complete", &text, false, false},
    {"samples", &text, false, false},  {"min_samples", &count, false, false},
    {"coverage", &text, false, false}, {"min_coverage", &positive, false, false},
    {"value", &pointer, false, false}, {"reports", &reports, false, false},
    {"label", &text, false, true},
};
static const struct schema window = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(window_fields),
    .about = "Evidence that a measured window was covered: the object at `path` has its member "
             "`complete` true, at least "
             "min_samples (2) under `samples`, more than min_coverage (0) under `coverage`, and "
             "the metric at `value` is there.",
};
static const struct schema windows = {.type = SCHEMA_ARRAY, .item = &window, .min_items = 1};

static const struct schema_field audit_fields[] = {
    {"paths", &paths, true, false},
    {"metrics", &metrics, true, false},
    {"windows", &windows, false, false},
};

const struct schema schema_audit = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(audit_fields),
    .about = "What is compared with the baseline, and how much worse it may be.",
};
