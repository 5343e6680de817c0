#include "runner/program.h"

#include <string.h>

#include "audit/verdict.h"
#include "base/plain.h"
#include "base/text.h"
#include "runner/help.h"
#include "runner/version.h"

#define NAMES_MAX 64

/* Number of argv words that the command's name takes (1 or 2), 0 when it is another command. */
static int matches(const struct command *cmd, int argc, char **argv)
{
    const char *space = strchr(cmd->name, ' ');
    size_t first = space ? (size_t) (space - cmd->name) : strlen(cmd->name);

    if (argc < 1 || strlen(argv[0]) != first || strncmp(argv[0], cmd->name, first) != 0)
        return 0;
    if (!space)
        return 1;
    return argc >= 2 && !strcmp(argv[1], space + 1) ? 2 : 0;
}

static const struct command *find(int argc, char **argv, int *out_words)
{
    for (size_t i = 0; command_table[i]; i++) {
        *out_words = matches(command_table[i], argc, argv);
        if (*out_words)
            return command_table[i];
    }
    return NULL;
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--"))
            return false;
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    }
    return false;
}

/* "key" alone: the second word is missing; names what there is. */
static bool tell_second_words(FILE *to, const char *first)
{
    size_t len = strlen(first);
    bool found = false;

    for (size_t i = 0; command_table[i]; i++) {
        if (strncmp(command_table[i]->name, first, len) != 0 || command_table[i]->name[len] != ' ')
            continue;
        plain_line(to, "%s cleanrun %-18s %s", found ? "    or" : "usage:", command_table[i]->name,
                   command_table[i]->summary); /* talk, or flushed and checked by main */
        found = true;
    }
    return found;
}

static bool has_second_words(const char *first)
{
    size_t len = strlen(first);

    for (size_t i = 0; command_table[i]; i++)
        if (!strncmp(command_table[i]->name, first, len) && command_table[i]->name[len] == ' ')
            return true;
    return false;
}

static int unknown(const struct cli *c, int argc, char **argv)
{
    const char *names[NAMES_MAX];
    char hint[TEXT_HINT_SIZE];
    size_t n = 0;

    if (argc > 1 && asks_help(argc - 1, argv + 1) && tell_second_words(c->out, argv[0]))
        return EXIT_OK;
    if (has_second_words(argv[0])) {
        if (argc > 1 && argv[1][0] != '-')
            plain_line(c->err, "cleanrun: no command '%.40s %.40s'", argv[0], argv[1]); /* talk */
        (void) tell_second_words(c->err, argv[0]); /* it has some */
        return EXIT_USAGE;
    }
    for (size_t i = 0; command_table[i] && n < NAMES_MAX - 1; i++)
        names[n++] = command_table[i]->name;
    names[n++] = "help";
    /* Talk. */
    plain_line(c->err, "cleanrun: no command '%.60s'%s (cleanrun help lists them)", argv[0],
               text_hint(text_nearest(argv[0], names, n), hint));
    return EXIT_USAGE;
}

static int help(const struct cli *c, int argc, char **argv)
{
    int words = 0;
    const struct command *cmd = argc > 0 ? find(argc, argv, &words) : NULL;
    const char *near = NULL;
    char hint[TEXT_HINT_SIZE];

    if (argc == 0 || asks_help(argc, argv)) {
        help_overview(c->out);
    } else if (cmd) {
        help_command(c->out, cmd);
    } else if (!help_topic(c->out, argv[0], &near)) {
        if (argc < 2 && tell_second_words(c->out, argv[0]))
            return EXIT_OK;
        /* Talk. */
        plain_line(c->err, "cleanrun help: no topic '%.60s%s%.60s'%s", argv[0], argc > 1 ? " " : "",
                   argc > 1 ? argv[1] : "", text_hint(near, hint));
        help_list(c->err);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static int run_command(struct cli *c, const struct command *cmd, int argc, char **argv)
{
    struct cli_args args;
    struct err e = ERR_INIT;

    c->command = cmd->name;
    if (asks_help(argc, argv)) {
        help_command(c->out, cmd);
        return EXIT_OK;
    }
    if (cli_parse(c, cmd, argc, argv, &args, &e) < 0)
        return cli_fail(c, &e);
    return cmd->run(c, &args);
}

static bool wants_color(const struct cli *c)
{
    const char *no = cli_env(c, "NO_COLOR");
    const char *force = cli_env(c, "CLICOLOR_FORCE");

    if (no && *no)
        return false;
    return c->terminal || (force && strcmp(force, "0") != 0);
}

static int dispatch(struct cli *c, int argc, char **argv)
{
    int words = 0;
    const struct command *cmd;

    if (argc == 0) {
        help_overview(c->err);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[0], "--version") || !strcmp(argv[0], "version")) {
        (void) fprintf(c->out, "cleanrun " CLEANRUN_VERSION "\n"); /* checked below */
        return EXIT_OK;
    }
    if (!strcmp(argv[0], "help") || !strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"))
        return help(c, argc - 1, argv + 1);
    cmd = find(argc, argv, &words);
    return cmd ? run_command(c, cmd, argc - words, argv + words) : unknown(c, argc, argv);
}

/* `cleanrun -C DIR run` reads like `cleanrun run -C DIR`. */
static void take_leading_directory(struct cli *c, int *argc, char ***argv)
{
    while (*argc >= 2 && !strcmp((*argv)[0], "-C")) {
        c->directory = (*argv)[1];
        *argc -= 2;
        *argv += 2;
    }
}

int program_main(struct cli *c, int argc, char **argv)
{
    int code;

    argc--;
    argv++;
    c->color = wants_color(c);
    take_leading_directory(c, &argc, &argv);
    code = dispatch(c, argc, argv);
    if (fflush(c->out) != 0 || ferror(c->out)) {
        plain_line(c->err, "cleanrun: cannot write to standard output"); /* talk */
        return code == EXIT_OK ? EXIT_USAGE : code;
    }
    return code;
}
