#include "runner/cli.h"

#include <stdarg.h>
#include <string.h>

#include "audit/verdict.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/text.h"

#define NAMES_MAX 64

const struct cli_option cli_global_options[] = {
    {.name = "directory", .letter = 'C', .value = "DIR", .help = "work as if started in DIR"},
    {.name = "quiet", .letter = 'q', .help = "no talk on standard error, only failures"},
    {.name = "verbose", .letter = 'v', .help = "add the code of a failure to its message"},
    {.name = "no-color", .help = "no colours (so does NO_COLOR in the environment)"},
    {.name = "no-input", .help = "never ask; accepted for scripts, nothing ever asks"},
};
const size_t cli_global_count = ARRAY_LEN(cli_global_options);

static const struct cli_option *find_in(const struct cli_option *table, size_t n, const char *name,
                                        size_t len, char letter)
{
    for (size_t i = 0; i < n; i++) {
        if (letter ? table[i].letter == letter
                   : strlen(table[i].name) == len && !memcmp(table[i].name, name, len))
            return &table[i];
    }
    return NULL;
}

static const struct cli_option *find(const struct command *cmd, const char *name, size_t len,
                                     char letter)
{
    const struct cli_option *o = find_in(cmd->options, cmd->n_options, name, len, letter);

    return o ? o : find_in(cli_global_options, ARRAY_LEN(cli_global_options), name, len, letter);
}

static int unknown_option(const struct command *cmd, const char *word, size_t len, struct err *e)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    char copy[64];

    for (size_t i = 0; i < cmd->n_options && n < NAMES_MAX; i++)
        names[n++] = cmd->options[i].name;
    for (size_t i = 0; i < ARRAY_LEN(cli_global_options) && n < NAMES_MAX; i++)
        names[n++] = cli_global_options[i].name;
    if (len < sizeof(copy)) {
        memcpy(copy, word, len);
        copy[len] = '\0';
        const char *near = text_nearest(copy, names, n);
        if (near)
            return err_set(e, ERR_USAGE, "cli.option",
                           "unknown option --%s; did you mean --%s? (cleanrun %s --help)", copy,
                           near, cmd->name);
    }
    return err_set(e, ERR_USAGE, "cli.option",
                   "unknown option --%.*s; cleanrun %s --help lists them",
                   (int) (len < 60 ? len : 60), word, cmd->name);
}

static int give(struct cli_args *out, const struct cli_option *o, const char *value, struct err *e)
{
    if (!o->repeats && cli_has(out, o->name))
        return err_set(e, ERR_USAGE, "cli.twice", "--%s is given twice", o->name);
    if (out->n_given == CLI_GIVEN_MAX)
        return err_set(e, ERR_USAGE, "cli.many", "too many options");
    out->given[out->n_given].option = o;
    out->given[out->n_given].value = value;
    out->n_given++;
    return 0;
}

/* One word that starts with '-'. *i is moved past a value that stands in the next word. */
static int parse_option(const struct command *cmd, int argc, char **argv, int *i,
                        struct cli_args *out, struct err *e)
{
    const char *word = argv[*i];
    bool is_long = word[1] == '-';
    const char *name = is_long ? word + 2 : word + 1;
    const char *equals = is_long ? strchr(name, '=') : NULL;
    size_t len = equals ? (size_t) (equals - name) : strlen(name);
    const struct cli_option *o = find(cmd, name, len, is_long ? '\0' : name[0]);

    if (!o && is_long)
        return unknown_option(cmd, name, len, e);
    if (!o || (!is_long && !o->value && name[1]))
        return err_set(e, ERR_USAGE, "cli.option",
                       "unknown option %.60s; cleanrun %s --help lists them", word, cmd->name);
    if (!o->value) {
        if (equals)
            return err_set(e, ERR_USAGE, "cli.flag", "--%s takes no value", o->name);
        return give(out, o, "", e);
    }
    if (equals)
        return give(out, o, equals + 1, e);
    if (!is_long && name[1])
        return give(out, o, name + 1, e);
    if (o->optional)
        return give(out, o, "", e);
    if (*i + 1 >= argc)
        return err_set(e, ERR_USAGE, "cli.value", "--%s needs %s", o->name, o->value);
    *i += 1;
    return give(out, o, argv[*i], e);
}

static void apply_globals(struct cli *c, const struct cli_args *a)
{
    const char *dir = cli_get(a, "directory");

    if (dir)
        c->directory = dir;
    c->quiet = c->quiet || cli_has(a, "quiet");
    c->verbose = c->verbose || cli_has(a, "verbose");
    if (cli_has(a, "no-color"))
        c->color = false;
}

int cli_parse(struct cli *c, const struct command *cmd, int argc, char **argv, struct cli_args *out,
              struct err *e)
{
    bool only_args = false;

    out->n_given = 0;
    out->n_args = 0;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        if (!only_args && !strcmp(word, "--")) {
            only_args = true;
        } else if (!only_args && word[0] == '-' && word[1]) {
            if (parse_option(cmd, argc, argv, &i, out, e) < 0)
                return -1;
        } else if (out->n_args == CLI_ARGS_MAX) {
            return err_set(e, ERR_USAGE, "cli.many", "too many arguments");
        } else {
            out->args[out->n_args++] = word;
        }
    }
    if (out->n_args > cmd->max_args)
        return err_set(e, ERR_USAGE, "cli.args",
                       "'%.80s' is one argument too many; usage: cleanrun %s %s",
                       out->args[cmd->max_args], cmd->name, cmd->synopsis);
    if (out->n_args < cmd->min_args)
        return err_set(e, ERR_USAGE, "cli.args", "an argument is missing; usage: cleanrun %s %s",
                       cmd->name, cmd->synopsis);
    apply_globals(c, out);
    return 0;
}

const char *cli_get_nth(const struct cli_args *a, const char *name, size_t n)
{
    for (size_t i = 0; i < a->n_given; i++) {
        if (!strcmp(a->given[i].option->name, name) && n-- == 0)
            return a->given[i].value;
    }
    return NULL;
}

const char *cli_get(const struct cli_args *a, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < a->n_given; i++) {
        if (!strcmp(a->given[i].option->name, name))
            value = a->given[i].value;
    }
    return value;
}

bool cli_has(const struct cli_args *a, const char *name)
{
    return cli_get(a, name) != NULL;
}

int cli_fail(const struct cli *c, const struct err *e)
{
    /* A broken standard error is no reason to stop. */
    plain_line(c->err, "cleanrun %s: %s%s%s%s", c->command, e->text, c->verbose ? " [" : "",
               c->verbose ? e->code : "", c->verbose ? "]" : "");
    switch (e->kind) {
    case ERR_TRUST:
        return EXIT_INVALID;
    case ERR_BUSY:
    case ERR_INTERNAL:
        return EXIT_ERROR;
    case ERR_NONE:
    case ERR_USAGE:
    case ERR_INPUT:
    case ERR_LIMIT:
    case ERR_NOTFOUND:
    case ERR_CONFLICT:
    case ERR_SYS:
    case ERR_NOSPACE:
    case ERR_NOMEM:
        break;
    }
    return EXIT_USAGE;
}

void cli_say(const struct cli *c, const char *format, ...)
{
    va_list ap;

    if (c->quiet)
        return;
    va_start(ap, format);
    plain_vline(c->err, format, ap); /* talk may get lost */
    va_end(ap);
}

int cli_write_text(const struct cli *c, const char *target, const char *text, size_t len,
                   struct err *e)
{
    if (target && strcmp(target, "-") != 0)
        return file_write(target, text, len, 0644, e);
    if (fwrite(text, 1, len, c->out) != len || fflush(c->out) != 0)
        return err_errno(e, "cli.write", "cannot write to standard output");
    return 0;
}

int cli_write_json(const struct cli *c, const char *target, const cJSON *j, struct err *e)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_MIB(64));
    json_write(&b, j, JSON_PRETTY);
    if (buf_check(&b, e) < 0)
        return -1;
    return cli_write_text(c, target, b.data, b.len, e);
}

const char *cli_env(const struct cli *c, const char *name)
{
    size_t len = strlen(name);

    for (char *const *p = c->environment; p && *p; p++) {
        if (!strncmp(*p, name, len) && (*p)[len] == '=')
            return *p + len + 1;
    }
    return NULL;
}
