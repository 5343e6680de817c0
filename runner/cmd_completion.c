/* cleanrun completion: a shell function made from the command tables. */
#include <stdio.h>
#include <string.h>

#include "audit/verdict.h"
#include "base/err.h"
#include "runner/commands.h"

/* Flushed and checked by main. */
#define PUT(...) (void) fprintf(out, __VA_ARGS__)

static void put_words(FILE *out)
{
    const char *last = "";

    for (size_t i = 0; command_table[i]; i++) {
        const char *name = command_table[i]->name;
        size_t len = strcspn(name, " ");

        if (strncmp(last, name, len) != 0 || strcspn(last, " ") != len)
            PUT("%.*s ", (int) len, name);
        last = name;
    }
    PUT("help");
}

static void put_second_words(FILE *out)
{
    for (size_t i = 0; command_table[i]; i++) {
        const char *name = command_table[i]->name;
        const char *space = strchr(name, ' ');

        if (!space ||
            (i > 0 && !strncmp(command_table[i - 1]->name, name, (size_t) (space - name) + 1)))
            continue;
        PUT("    %.*s) words='", (int) (space - name), name);
        for (size_t k = i; command_table[k] &&
                           !strncmp(command_table[k]->name, name, (size_t) (space - name) + 1);
             k++)
            PUT("%s%s", k > i ? " " : "", strchr(command_table[k]->name, ' ') + 1);
        PUT("' ;;\n");
    }
    PUT("    help) words='exit-codes environment identity reasons definition' ;;\n");
}

static void put_options(FILE *out)
{
    for (size_t i = 0; command_table[i]; i++) {
        PUT("    '%s') options='", command_table[i]->name);
        for (size_t k = 0; k < command_table[i]->n_options; k++)
            PUT("--%s ", command_table[i]->options[k].name);
        PUT("--help' ;;\n");
    }
}

static void put_bash(FILE *out)
{
    PUT("# cleanrun completion for bash: eval \"$(cleanrun completion bash)\"\n_cleanrun() {\n"
        "  local cur=${COMP_WORDS[COMP_CWORD]} words='' options='' command=${COMP_WORDS[1]}\n"
        "  if [ \"$COMP_CWORD\" = 1 ]; then\n    COMPREPLY=($(compgen -W '");
    put_words(out);
    PUT("' -- \"$cur\"))\n    return\n  fi\n  case $command in\n");
    put_second_words(out);
    PUT("  esac\n  if [ \"$COMP_CWORD\" = 2 ] && [ -n \"$words\" ]; then\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n    return\n  fi\n"
        "  [ -z \"$words\" ] || command=\"$command ${COMP_WORDS[2]}\"\n  case $command in\n");
    put_options(out);
    PUT("  esac\n  case $cur in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
        "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n  esac\n}\ncomplete -o filenames -F "
        "_cleanrun cleanrun\n");
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;

    if (strcmp(a->args[0], "bash") != 0) {
        (void) err_set(&e, ERR_USAGE, "completion.shell", "only bash is supported");
        return cli_fail(c, &e);
    }
    put_bash(c->out);
    return EXIT_OK;
}

const struct command command_completion = {
    .name = "completion",
    .summary = "completion for the shell",
    .synopsis = "bash",
    .examples = "  eval \"$(cleanrun completion bash)\"\n",
    .notes = "Exit: 0, or 2 for another shell than bash.\n",
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
