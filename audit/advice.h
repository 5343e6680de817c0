/*
 * advice: the registry's commands (reasons.def) with the names that are known in place of their
 * words in capitals, so that what a page prints can be typed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* All borrowed; a word whose name is NULL stays as it is. */
struct advice_names {
    const char *project, *gate, *machine_class, *run, *commit;
    const char *baseline_commit;
    const char *server; /* base URL that `cleanrun run` and `push` are told; NULL or "": none */
    bool is_private;    /* reading needs a token, too */
};

/* Appends one command, `len` bytes. */
void advice_command(struct buf *out, const char *command, size_t len,
                    const struct advice_names *names);
/* Appends prose, in which every command stands between backquotes. */
void advice_prose(struct buf *out, const char *prose, const struct advice_names *names);
