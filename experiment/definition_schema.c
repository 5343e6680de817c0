/* The shape of a gate in cleanrun.yaml (docs/definition.md). What a part means stands with the
 * module that uses it. */
#include "experiment/schema.h"
#include "experiment/soak.h"
#include "experiment/window.h"

#include "base/limits.h"

static const struct schema text = {.type = SCHEMA_STRING};
static const struct schema flag = {.type = SCHEMA_BOOL};
static const struct schema some_time = {
    .type = SCHEMA_DURATION,
    .min = 1,
    .about = "A duration with its unit, not 0: 500ms, 95s, 10m, 1h."};
static const struct schema interval = {.type = SCHEMA_DURATION,
                                       .min = LIMIT_INTERVAL_MS,
                                       .about = "A duration with its unit, 10ms or more."};
static const struct schema any = {.type = SCHEMA_ANY};
static const struct schema argv = {.type = SCHEMA_ARRAY,
                                   .item = &text,
                                   .min_items = 1,
                                   .about = "Program and arguments; no shell is involved."};
/* {names} of the measured command and its variables. */
static const char *const run_names[] = {"executable", "results", "profile", "rate", NULL};
static const struct schema run_text = {.type = SCHEMA_STRING, .placeholders = run_names};
static const struct schema run_word = {
    .type = SCHEMA_STRING, .placeholders = run_names, .only_placeholders = true};
static const struct schema run_argv = {.type = SCHEMA_ARRAY,
                                       .item = &run_word,
                                       .min_items = 1,
                                       .about = "Program and arguments; no shell is involved."};
static const struct schema run_text_map = {.type = SCHEMA_MAP, .item = &run_text};
static const char *const step_names[] = {"executable", "results", NULL};
static const struct schema step_text = {
    .type = SCHEMA_STRING, .placeholders = step_names, .only_placeholders = true};
static const struct schema step_argv = {.type = SCHEMA_ARRAY,
                                        .item = &step_text,
                                        .min_items = 1,
                                        .about = "Program and arguments; no shell is involved."};
static const struct schema texts = {.type = SCHEMA_ARRAY, .item = &text};
static const struct schema text_map = {.type = SCHEMA_MAP, .item = &text};
static const struct schema any_map = {.type = SCHEMA_MAP, .item = &any};
static const struct schema number = {.type = SCHEMA_NUMBER};
static const struct schema share = {
    .type = SCHEMA_NUMBER, .min = 0, .max = 100, .about = "Per cent of one core or of time."};
static const struct schema pointer = {.type = SCHEMA_POINTER};
static const struct schema report_path = {
    .type = SCHEMA_RELNAME,
    .about = "The measured report below the result directory: <scenario>/<point>.json."};

/* Environment. */
static const struct schema_field env_fields[] = {
    {"set", &text_map, false, false},
    {"allow", &texts, false, false},
    {"reject", &texts, false, false},
};
static const struct schema_field run_env_fields[] = {
    {"set", &run_text_map, false, false},
    {"allow", &texts, false, false},
    {"reject", &texts, false, false},
};
static const struct schema env = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(env_fields),
    .about = "Programs start with an emptied environment: `set` is assigned, `allow` is passed "
             "through, and a run is refused "
             "when a variable that matches `reject` is exported at all. Patterns may hold '*'.",
};
static const struct schema run_env = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(run_env_fields),
    .about = "As in build; {executable} and {results} are replaced in `set`.",
};

/* build */
static const char *const message_words[] = {"none", "cargo-json", NULL};
static const struct schema messages = {.type = SCHEMA_ENUM, .words = message_words};
static const char *const resolve_words[] = {"path", "cargo-messages", "meson-introspection", NULL};
static const struct schema resolve = {.type = SCHEMA_ENUM, .words = resolve_words};

static const struct schema_field executable_fields[] = {
    {"from", &resolve, true, false},   {"target", &text, false, false},
    {"path", &text, false, false},     {"kind", &text, false, false},
    {"src_path", &text, false, false}, {"build_dir", &text, false, false},
};
static const struct schema executable = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(executable_fields),
    .about = "How the exact executable is found: an explicit path, or the build tool's own "
             "messages. Never by modification time.",
};

static const struct schema_field profile_fields[] = {
    {"file", &text, true, false},
    {"section", &text, true, false},
    {"expect", &any_map, true, false},
};
static const struct schema profile = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(profile_fields),
    .about = "Release-profile facts that must stand in a project file before the build."};
static const struct schema argv_list = {.type = SCHEMA_ARRAY, .item = &argv};

static const struct schema_field build_fields[] = {
    {"prepare", &argv_list, false, false},    {"command", &argv, true, false},
    {"workdir", &text, false, false},         {"messages", &messages, false, false},
    {"executable", &executable, true, false}, {"env", &env, false, false},
    {"profile", &profile, false, false},      {"toolchain", &argv, false, false},
    {"allocator", &text, false, false},       {"features", &texts, false, false},
    {"timeout", &some_time, false, true},
};
static const struct schema build = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(build_fields),
    .about = "How the program is built: `prepare` and `command` in a pinned environment, and how "
             "the exact executable is found "
             "afterwards. `toolchain`, `allocator` and `features` are facts that must be equal.",
};

/* run */
static const struct schema report_commit = {
    .type = SCHEMA_POINTER,
    .about =
        "Where the report names the commit that the program was built from: it must be the run's.",
};
static const struct schema report_fingerprint = {
    .type = SCHEMA_POINTER,
    .about = "Where the report repeats CLEANRUN_SOURCE_SHA256, the fingerprint of the source: it "
             "must be the run's.",
};
static const char *const scheme_words[] = {"cleanrun-source/1", "rvoip-v1", NULL};
static const struct schema source_scheme = {
    .type = SCHEMA_ENUM,
    .words = scheme_words,
    .about = "How the source's fingerprint is made (`cleanrun fingerprint --scheme`): another one "
             "than cleanrun-source/1 is for "
             "programs that make their own and put it where run.report_fingerprint points.",
};
static const char *const format_words[] = {"cleanrun", NULL};
static const struct schema format = {.type = SCHEMA_ENUM, .words = format_words};

static const struct schema_field run_fields[] = {
    {"command", &run_argv, true, false},
    {"report", &report_path, true, false},
    {"format", &format, false, false},
    {"workdir", &text, false, false},
    {"env", &run_env, false, false},
    {"timeout", &some_time, false, true},
    {"report_commit", &report_commit, false, false},
    {"report_fingerprint", &report_fingerprint, false, false},
    {"source_scheme", &source_scheme, false, false},
};
static const struct schema run = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(run_fields),
    .about = "The measured program. {executable} and {results} are replaced in the command and in "
             "env.set; CLEANRUN_RESULTS and "
             "CLEANRUN_PHASE_FD tell the program where to write reports and phase markers.",
};

/* conditioning */
static const struct schema pointers = {.type = SCHEMA_ARRAY, .item = &pointer, .min_items = 2};
static const struct schema_field proof_fields[] = {
    {"report", &report_path, true, false},
    {"equal", &pointers, false, false},
    {"values", &any_map, false, false},
};
static const struct schema proof = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(proof_fields),
    .about = "That the step happened: the report of its own that it leaves below the result "
             "directory. The numbers at `equal` "
             "must be the same, and `values` (JSON Pointer: value) must stand in it.",
};
static const struct schema_field step_fields[] = {
    {"name", &text, true, false},         {"command", &step_argv, false, false},
    {"value", &any, false, false},        {"proof", &proof, false, false},
    {"timeout", &some_time, false, true},
};
static const struct schema step = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(step_fields)};
static const struct schema conditioning = {
    .type = SCHEMA_ARRAY,
    .item = &step,
    .about = "What happens before the measured point, in order; part of the identity. A step with "
             "a command is run by the "
             "runner; one without is the program's own and must show as a phase marker of that "
             "name, or by its `proof`.",
};

/* phases */
static const char *const marker_words[] = {"descriptor", "report", NULL};
static const struct schema markers_from = {.type = SCHEMA_ENUM, .words = marker_words};
static const struct schema_field phases_fields[] = {
    {"from", &markers_from, false, false},
    {"markers", &texts, false, false},
    {"required", &texts, false, false},
};
static const struct schema phases = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(phases_fields),
    .about =
        "Phase markers in their order, and those that must be seen. `from: descriptor` (the "
        "default): the "
        "program writes them to CLEANRUN_PHASE_FD; `report`: they stand only in its report, and "
        "`accept.phases` judges them there."};

/* sampling */
static const struct schema_field sampling_fields[] = {
    {"interval", &interval, true, false},
    {"into", &pointer, false, false},
    {"embed", &flag, false, false},
};
static const struct schema sampling = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(sampling_fields),
    .about = "The runner samples the process tree at this interval; `into` adds what it derives to "
             "the report.",
};

/* modes */
static const struct schema_field mode_env_fields[] = {{"set", &run_text_map, false, false}};
static const struct schema mode_env = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(mode_env_fields)};
static const struct schema_field mode_fields[] = {
    {"tool", &text, false, false},       {"command", &run_argv, false, false},
    {"rate", &number, false, false},     {"context_switches", &flag, false, false},
    {"env", &mode_env, false, false},    {"output", &texts, false, false},
    {"debug_info", &flag, false, false},
};
#define MODE_ABOUT                                                                                 \
    "A diagnostic mode, never evidence for a gate. `tool` (perf, samply, heaptrack, instruments) " \
    "or `command` stands before "                                                                  \
    "the measured command and may name {executable} {results} {profile} {rate}; what it leaves "   \
    "in {profile} is kept, and each "                                                              \
    "name or pattern of `output` must be there. A trial capture runs before the build."
static const struct schema mode = {
    .type = SCHEMA_OBJECT, SCHEMA_FIELDS(mode_fields), .about = MODE_ABOUT};
static const char *const signal_words[] = {"USR1", "USR2", "HUP", NULL};
static const struct schema dump_signal = {
    .type = SCHEMA_ENUM,
    .words = signal_words,
    .about = "Sent to the measured program at every `snapshot_every`, for a heap profiler that "
             "dumps when it is told to.",
};
static const struct schema_field snapshot_mode_fields[] = {
    {"tool", &text, false, false},
    {"command", &run_argv, false, false},
    {"rate", &number, false, false},
    {"context_switches", &flag, false, false},
    {"env", &mode_env, false, false},
    {"snapshots", &texts, false, false},
    {"output", &texts, false, false},
    {"debug_info", &flag, false, false},
    {"snapshot_every", &some_time, false, false},
    {"dump_signal", &dump_signal, false, false},
};
static const struct schema snapshot_mode = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(snapshot_mode_fields),
    .about = MODE_ABOUT " At each phase marker of `snapshots`, and every `snapshot_every`, the "
                        "memory of the process tree is written to "
                        "profile/snapshots.json, while the program goes on.",
};
static const struct schema_field modes_fields[] = {
    {"cpu", &mode, false, false},
    {"timing", &mode, false, false},
    {"memory", &snapshot_mode, false, false},
    {"boundary", &snapshot_mode, false, false},
};
static const struct schema modes = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(modes_fields),
    .about = "Diagnostic modes for `cleanrun run --mode`: cpu, timing, memory, boundary, each with "
             "its profiler. Never evidence "
             "for a gate.",
};

/* host */
static const struct schema_field limit_fields[] = {
    {"fact", &text, false, false},    {"equals", &any, false, false},
    {"reading", &text, false, false}, {"min", &number, false, false},
    {"max", &number, false, false},
};
static const struct schema limit = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(limit_fields)};
static const struct schema limits = {.type = SCHEMA_ARRAY, .item = &limit};
static const struct schema_field quiet_fields[] = {
    {"max_other_cpu_pct", &number, false, false},
    {"max_load", &number, false, false},
    {"max_steal_pct", &share, false, false},
    {"max_pressure_pct", &share, false, false},
};
static const struct schema quiet = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(quiet_fields)};
static const struct schema_field host_fields[] = {
    {"limits", &limits, false, false},
    {"quiet", &quiet, false, false},
};
static const struct schema host = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(host_fields),
    .about = "What the machine must be, and how quiet, before and during the run."};

/* Policy parts that no other module owns. */
static const struct schema count = {.type = SCHEMA_INTEGER, .min = 1, .max = 100};
static const struct schema_field repeats_fields[] = {
    {"baseline", &count, false, false},
    {"candidate", &count, false, false},
};
static const struct schema repeats = {
    .type = SCHEMA_OBJECT,
    SCHEMA_FIELDS(repeats_fields),
    .about = "How many runs of each side a comparison asks for.",
};
static const struct schema confirm = {
    .type = SCHEMA_INTEGER,
    .min = 1,
    .max = 10,
    .about = "Runs that must agree before a change of verdict counts."};

static const struct schema class = {.type = SCHEMA_SLUG,
                                    .about = "The machine class: hardware that may be compared."};
static const struct schema label = {.type = SCHEMA_STRING};

#define EXPERIMENT_FIELDS                                                                          \
    {"class", &class, true, false}, {"build", &build, true, false}, {"run", &run, true, false},    \
        {"conditioning", &conditioning, false, false}, {"phases", &phases, false, false},          \
        {"sampling", &sampling, false, false}, {"windows", &schema_windows, false, false},         \
        {"modes", &modes, false, false},                                                           \
    {                                                                                              \
        "host", &host, false, false                                                                \
    }

#define POLICY_FIELDS                                                                              \
    {"identity", &schema_identity, true, false}, {"infer", &schema_infer, false, false},           \
        {"accept", &schema_accept, true, false}, {"audit", &schema_audit, true, false},            \
        {"repeats", &repeats, false, false}, {"confirm", &confirm, false, false},                  \
    {                                                                                              \
        "soak", &schema_soak, false, false                                                         \
    }

static const struct schema_field experiment_fields[] = {EXPERIMENT_FIELDS};
static const struct schema_field policy_fields[] = {POLICY_FIELDS};
static const struct schema_field gate_fields[] = {
    {"title", &label, false, true},
    {"description", &label, false, true},
    EXPERIMENT_FIELDS,
    POLICY_FIELDS,
};

const struct schema schema_experiment = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(experiment_fields)};
const struct schema schema_policy = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(policy_fields)};
const struct schema schema_gate = {.type = SCHEMA_OBJECT, SCHEMA_FIELDS(gate_fields)};
