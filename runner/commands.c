/* The table of commands: help, completion and dispatch are made from it. */
#include "runner/commands.h"

#include <stddef.h>

const struct command *const command_table[] = {
    &command_init,
    &command_check,
    &command_doctor,
    &command_run,
    &command_fingerprint,
    &command_audit,
    &command_accept,
    &command_leak,
    &command_baseline_verify,
    &command_baseline_package,
    &command_package_verify,
    &command_package,
    &command_seal,
    &command_verify,
    &command_key_gen,
    &command_key_show,
    &command_push,
    &command_status,
    &command_show,
    &command_gc,
    &command_completion,
    NULL,
};
