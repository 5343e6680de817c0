/* measure_command: what exactly is started: arguments and environment of the measured program and
 * of conditioning steps. */
#pragma once

#include "runner/measure.h"

/* The command line of the run: the plan's, with the mode's profiler before it. First word
 * "{executable}" means the artifact's own descriptor in clean mode. */
int measure_argv(const struct measure_input *in, const char *const **out, bool *out_by_descriptor,
                 struct err *e) MUST_CHECK;
/* The run's environment: its own rules, the mode's additions, and the contract with the workload.
 * record may be NULL. */
int measure_environment(const struct measure_input *in, bool with_markers, const char *const **envp,
                        cJSON **record, struct err *e) MUST_CHECK;
/* The command's first word is "{executable}". */
bool measure_is_executable_word(const cJSON *command);
