/*
 * cli: one table per command describes its options; the parser, the help text and the shell
 * completion are all made from it. Knows nothing of what commands do. Data goes to `out`, talk to
 * `err`. One thread.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"

struct cli {
    FILE *out;           /* data */
    FILE *err;           /* talk */
    const char *command; /* shown in messages */
    bool color;          /* escape sequences are welcome on `err` */
    bool terminal;       /* `err` is a terminal: progress may be redrawn */
    bool quiet;
    bool verbose;
    const char *directory;    /* -C DIR, or "." */
    char *const *environment; /* the process's, read once by main */
};

struct cli_option {
    const char *name;  /* long name without dashes */
    const char *value; /* name of its value in help ("FILE"); NULL: a flag */
    const char *help;
    char letter;   /* short form, or 0 */
    bool repeats;  /* may be given more than once */
    bool optional; /* the value may be left out; only "--name=VALUE" then carries one */
};

struct cli_given {
    const struct cli_option *option;
    const char *value; /* "" for a flag */
};

#define CLI_GIVEN_MAX 64
#define CLI_ARGS_MAX 64

struct cli_args {
    struct cli_given given[CLI_GIVEN_MAX];
    size_t n_given;
    const char *args[CLI_ARGS_MAX]; /* positional */
    size_t n_args;
};

/* One command: `cleanrun seal`, or two words: `cleanrun key gen`. */
struct command {
    const char *name;
    const char *summary;  /* one line */
    const char *synopsis; /* what stands after the name in the usage line */
    const char *examples; /* lines shown first in its help */
    const char *notes;    /* exit codes and further text, or NULL */
    const struct cli_option *options;
    size_t n_options;
    size_t min_args, max_args;
    /* Returns the process's exit code (enum exit_code). */
    int (*run)(struct cli *c, const struct cli_args *a);
};

#define COMMAND_OPTIONS(table) .options = (table), .n_options = sizeof(table) / sizeof((table)[0])

/* Every command, in help order; ends with NULL. A new command adds its row in commands.c. */
extern const struct command *const command_table[];

/* What every command takes besides its own: -C, -q and so on. */
extern const struct cli_option cli_global_options[];
extern const size_t cli_global_count;

/* Parses argv[0..argc) against the command's table and the global options. ERR_USAGE with a "did
 * you mean". */
int cli_parse(struct cli *c, const struct command *cmd, int argc, char **argv, struct cli_args *out,
              struct err *e) MUST_CHECK;
/* Value of an option: the last given, "" for a flag, NULL when not given. */
const char *cli_get(const struct cli_args *a, const char *name);
/* The n-th value of a repeated option, or NULL. */
const char *cli_get_nth(const struct cli_args *a, const char *name, size_t n);
bool cli_has(const struct cli_args *a, const char *name);

/* "cleanrun COMMAND: text" to `err`; returns the exit code that the error's kind stands for:
 * ERR_TRUST → EXIT_INVALID, ERR_BUSY and ERR_INTERNAL → EXIT_ERROR, everything else → EXIT_USAGE.
 */
int cli_fail(const struct cli *c, const struct err *e);
/* A talk line (newline added); nothing with --quiet. Whatever it quotes, it stays one line and
 * holds no control character, as cli_fail's (base/plain.h). */
void cli_say(const struct cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes a JSON document, pretty: target NULL or "-" is standard output, else a file that is
 * replaced whole. */
int cli_write_json(const struct cli *c, const char *target, const cJSON *j,
                   struct err *e) MUST_CHECK;
/* The same for text. */
int cli_write_text(const struct cli *c, const char *target, const char *text, size_t len,
                   struct err *e) MUST_CHECK;
/* The environment's value of a name, or NULL. */
const char *cli_env(const struct cli *c, const char *name);
