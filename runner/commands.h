/* commands: the rows of command_table. Each command lives in its own cmd_<name>.c. */
#pragma once

#include "runner/cli.h"

extern const struct command command_init;
extern const struct command command_check;
extern const struct command command_doctor;
extern const struct command command_run;
extern const struct command command_fingerprint;
extern const struct command command_gc;
extern const struct command command_push;
extern const struct command command_status;
extern const struct command command_show;
extern const struct command command_completion;
extern const struct command command_seal;
extern const struct command command_verify;
extern const struct command command_key_gen;
extern const struct command command_key_show;
extern const struct command command_audit;
extern const struct command command_accept;
extern const struct command command_baseline_verify;
extern const struct command command_baseline_package;
extern const struct command command_leak;
extern const struct command command_package;
extern const struct command command_package_verify;
