/*
 * plan: the experiment half of a definition as the runner uses it. Strings and trees are borrowed
 * from the definition, which outlives the plan. Knows how to build environments and argument lists
 * from it.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/num.h"
#include "experiment/definition.h"

enum plan_messages { PLAN_MESSAGES_NONE, PLAN_MESSAGES_CARGO };
enum plan_resolve { PLAN_RESOLVE_PATH, PLAN_RESOLVE_CARGO, PLAN_RESOLVE_MESON };

/* clean is the only evidence for a gate; the four others are diagnostic. */
enum plan_mode { PLAN_CLEAN, PLAN_CPU, PLAN_TIMING, PLAN_MEMORY, PLAN_BOUNDARY, PLAN_MODE_MAX };

struct plan {
    const struct definition *definition;
    const char *machine_class;
    struct {
        const cJSON *prepare, *command, *env, *profile, *toolchain, *features;
        const char *workdir, *allocator;
        enum plan_messages messages;
        enum plan_resolve resolve;
        const char *target, *path, *kind, *src_path, *build_dir;
        uint64_t timeout_ms;
    } build;
    struct {
        const cJSON *command, *env;
        const char *workdir, *report;
        uint64_t timeout_ms;
    } run;
    const cJSON *conditioning;       /* array or NULL */
    const cJSON *markers, *required; /* arrays or NULL */
    uint64_t sample_interval_ms; /* 0: no sampling asked; the runner samples at its default all the
                                    same */
    const char *sampling_into;   /* NULL: the workload's report carries its own */
    bool sampling_embed;
    enum plan_mode mode;
    const cJSON *mode_spec;     /* NULL in clean mode */
    const cJSON *snapshots;     /* markers at which the tree is looked at, or NULL */
    uint64_t snapshot_every_ms; /* 0: not by the clock */
    int dump_signal;            /* sent at those moments; 0: none */
    char rate[NUM_DOUBLE_TEXT]; /* {rate} of the mode */
    const char *source_scheme;  /* of run.source_scheme; NULL: the default */
    bool markers_in_report;     /* phases.from: the program writes none to the descriptor */
    const cJSON *limits, *quiet;
};

const char *plan_mode_word(enum plan_mode m);
bool plan_mode_parse(const char *word, enum plan_mode *out) MUST_CHECK;

/* A mode other than clean that the definition does not describe is ERR_USAGE. */
int plan_read(const struct definition *d, enum plan_mode mode, struct plan *out,
              struct err *e) MUST_CHECK;
/* Time-out of one conditioning step, or the run's. */
uint64_t plan_step_timeout_ms(const struct plan *p, size_t step);

/* Placeholders in arguments: "{name}" becomes the value; others are left alone. */
struct plan_word {
    const char *name; /* without braces */
    const char *value;
};
/* One text; NULL without memory. */
const char *plan_fill(const char *text, const struct plan_word *words, size_t n_words,
                      struct arena *a);
/* A JSON array of strings → NULL-ended argv in the arena. */
int plan_argv(const cJSON *command, const struct plan_word *words, size_t n_words, struct arena *a,
              const char *const **out, struct err *e) MUST_CHECK;

struct plan_variable {
    const char *name, *value;
};
/* The emptied environment plus defaults, what `allow` lets through from `own`, what `set` assigns,
 * and `extra` (strongest last). Placeholders are the caller's: `extra` may repeat a name of `set`
 * with its text filled in, the record keeps the text as defined. *out_record (may be NULL) is
 * {set{}, passed{}, defaults{}}; scrub_environment takes the caller's own paths out of what was
 * passed. A passed variable that can't be recorded (no UTF-8, too long) is ERR_USAGE. */
struct plan_sources {
    const cJSON *env; /* {set, allow, reject} or NULL */
    char *const *own; /* the caller's environment */
    const struct plan_variable *extra;
    size_t n_extra;
};
int plan_environment(const struct plan_sources *from, struct arena *a, const char *const **out,
                     cJSON **out_record, struct err *e) MUST_CHECK;
/* PATH's value in such an environment. */
const char *plan_env_get(const char *const *envp, const char *name);
