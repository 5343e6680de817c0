/* admin_args: words and flags of an administration command. Values are borrowed from argv. Private
 * to server/admin*.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"

#define ADMIN_WORDS 4
#define ADMIN_FLAGS 16

struct admin_args {
    const char *words[ADMIN_WORDS]; /* after command and sub-command */
    size_t n_words;
    struct {
        const char *name;  /* without "--" */
        const char *value; /* NULL: a switch */
    } flags[ADMIN_FLAGS];
    size_t n_flags;
    FILE *out;
    char *const *environment;
};

/* allowed: "data= private scope=": a name that ends in '=' takes a value. Unknown flags are
 * ERR_USAGE with "did you mean", and so is a flag that is given twice: no command takes two. */
int admin_args_parse(int argc, char *const argv[], const char *const *allowed, size_t n_allowed,
                     struct admin_args *out, struct err *e) MUST_CHECK;
/* Value of a flag, or NULL. */
const char *admin_args_get(const struct admin_args *a, const char *name);
bool admin_args_has(const struct admin_args *a, const char *name);
/* The same, but absent is ERR_USAGE. */
int admin_args_need(const struct admin_args *a, const char *name, const char **out,
                    struct err *e) MUST_CHECK;
/* RFC 3339 time of a flag in microseconds; absent gives 0, and 1970 is ERR_USAGE: 0 means no limit
 * where a time is stored. */
int admin_args_time(const struct admin_args *a, const char *name, int64_t *out_us,
                    struct err *e) MUST_CHECK;
