/*
 * words: commands and their options, as the programs' --help and the manual pages tell them, so
 * that tests can compare the two and what Markdown files name. A failure to read fails the test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define WORDS_COMMANDS 64
#define WORDS_OPTIONS 32
#define WORDS_LEN 48

struct words_command {
    char name[WORDS_LEN]; /* "seal", "key gen"; "" holds the options of every command */
    char options[WORDS_OPTIONS][WORDS_LEN]; /* without dashes */
    size_t n;
};

struct words {
    struct words_command list[WORDS_COMMANDS];
    size_t n;
};

/* What `cleanrun --help` and each command's --help say. Freed with free, as the next ones. */
struct words *words_of_cleanrun(void);
/* What `cleanrun-server --help` says. */
struct words *words_of_server(void);
/* What a manual page says: .Ss headings and .It Fl below them. */
struct words *words_of_manual(const char *name);
/* The manual page's text below docs/man; cleanrun.yaml.5 is the built one. Heap. */
char *words_manual_path(const char *name);

const struct words_command *words_find(const struct words *w, const char *name);
bool words_has(const struct words_command *c, const char *option);
/* `cleanrun NAME --help` of a command of one word or two. Heap. */
char *words_help(const char *name);
/* Output of a built program with these words (NULL-ended); fails unless it exits with 0. Heap. */
char *words_say(const char *program, const char *a, const char *b, const char *c);
/* The first indented block of a page of the tree after `mark`, without its indent. Heap. */
char *words_block(const char *page, const char *mark);
/* The longest command that the line begins with; NULL: none. */
const struct words_command *words_at(const struct words *w, const char *line);
/* Says which options on the line the command has not, and returns how many. */
int words_wrong_options(const char *place, const struct words *w, const struct words_command *c,
                        bool is_server, const char *line);
