/*
 * profiler: the tool of a diagnostic mode: its command line, and proof before the build that it is
 * there and can capture. A definition names any tool by `command`; a few are known by name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "runner/plan.h"

/* A mode's tool that is not known and has no command of its own is ERR_USAGE, with its place. */
int profiler_check_tool(const struct plan *p, struct err *e) MUST_CHECK;
/* What stands before the measured command: mode.command, or what is known for mode.tool; empty
 * (only the NULL) in clean mode and in modes that need no tool. */
int profiler_prefix(const struct plan *p, const struct plan_word *words, size_t n_words,
                    struct arena *a, const char *const **out, struct err *e) MUST_CHECK;

struct profiler_place {
    const char *directory; /* absolute, empty, ours: trial captures go there */
    int directory_fd;
    char *const *environment; /* the caller's */
    int signal_fd;
    struct arena *arena;
    const char *mark; /* leftover.h */
    bool interrupted; /* set when a signal of ours ended the trial */
};
/* Captures a program that does nothing, in the environment of the run. ERR_USAGE with the tool's
 * own words when it is missing or fails. */
int profiler_try(const struct plan *p, struct profiler_place *at, struct err *e) MUST_CHECK;
