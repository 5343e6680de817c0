/* The command table and what all commands have in common. */
#include "server/admin.h"

#include <stdio.h>
#include <string.h>

#include "audit/verdict.h"
#include "base/text.h"
#include "server/admin_commands.h"
#include "server/config.h"

struct admin_command {
    const char *command;
    const char *verb;  /* NULL: the command alone */
    const char *words; /* shown in messages: "NAME" */
    size_t n_words;
    bool store; /* opened before the handler */
    admin_handler handle;
    const char *flags[10];
};

static const struct admin_command commands[] = {
    {"project", "add", "OWNER/NAME", 1, true, admin_project_add, {"private"}},
    {"project",
     "set",
     "OWNER/NAME",
     1,
     true,
     admin_project_set,
     {"private", "public", "tickets=", "deadline="}},
    {"project", "list", "", 0, true, admin_project_list, {NULL}},
    {"runner",
     "add",
     "NAME",
     1,
     true,
     admin_runner_add,
     {"class=", "key=", "project=", "not-before=", "not-after="}},
    {"runner", "revoke", "NAME", 1, true, admin_runner_revoke, {"reason=", "since="}},
    {"runner", "list", "", 0, true, admin_runner_list, {NULL}},
    {"token", "add", "NAME", 1, true, admin_token_add, {"scope=", "project="}},
    {"token", "revoke", "NAME", 1, true, admin_token_revoke, {NULL}},
    {"token", "list", "", 0, true, admin_token_list, {NULL}},
    {"baseline",
     "approve",
     "RUN",
     1,
     true,
     admin_baseline_approve,
     {"project=", "gate=", "reviewer=", "reason="}},
    {"baseline",
     "import",
     "DIR",
     1,
     true,
     admin_baseline_import,
     {"project=", "gate=", "reviewer=", "reason=", "class=", "definition=", "commit=", "legacy"}},
    {"baseline", "list", "", 0, true, admin_baseline_list, {"project="}},
    {"migrate", NULL, "", 0, true, admin_migrate, {NULL}},
    {"fsck", NULL, "", 0, true, admin_fsck, {NULL}},
    {"gc", NULL, "", 0, true, admin_gc, {"dry-run", "keep="}},
    {"backup", NULL, "DIR", 1, true, admin_backup, {NULL}},
    {"restore", NULL, "DIR", 1, false, admin_restore, {NULL}},
    {"config", NULL, "", 0, false, admin_config, {NULL}},
    {"log", NULL, "", 0, true, admin_log, {"limit="}},
};

const char *admin_help(void)
{
    return "\nAdministration, on the data directory (--data DIR with every command, else\n"
           "CLEANRUN_SERVER_DATA, else CLEANRUN_DATA, else " CONFIG_DATA_DEFAULT "):\n"
           "  project add OWNER/NAME [--private]\n"
           "  project set OWNER/NAME [--private|--public] [--tickets optional|required]\n"
           "        [--deadline SECONDS]\n"
           "  project list\n"
           "  runner add NAME --class CLASS --key PUB.pem --project OWNER/NAME\n"
           "        [--not-before TIME] [--not-after TIME]\n"
           "  runner revoke NAME --reason TEXT [--since TIME]\n"
           "  runner list\n"
           "  token add NAME --scope read|upload|review|admin [--project OWNER/NAME]\n"
           "        the token is printed once\n"
           "  token revoke NAME\n"
           "  token list\n"
           "  baseline approve RUN --project OWNER/NAME --gate GATE --reviewer NAME\n"
           "        --reason TEXT\n"
           "  baseline import DIR --legacy --project OWNER/NAME --gate GATE --class CLASS\n"
           "        --definition FILE --reviewer NAME --reason TEXT [--commit HEX]\n"
           "        unsigned history, shown and never judging\n"
           "  baseline list [--project OWNER/NAME]\n"
           "  migrate                      applies new migrations of the database\n"
           "  fsck                         checks every object, row and signature\n"
           "  gc [--dry-run] [--keep SECONDS]\n"
           "        removes uploads that no run names, after a day\n"
           "  backup DIR                   a complete copy; DIR is new or empty\n"
           "  restore DIR                  from a backup into a new data directory\n"
           "  config                       the settings that apply, without secrets\n"
           "  log [--limit N]              who changed what\n";
}

bool admin_knows(const char *command)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].command, command) == 0)
            return true;
    }
    return false;
}

const char *admin_data(const struct admin_args *a)
{
    const char *flag = admin_args_get(a, "data");
    const char *from_environment = config_env(a->environment, "CLEANRUN_SERVER_DATA");

    if (flag)
        return flag;
    if (!from_environment)
        from_environment = config_env(a->environment, "CLEANRUN_DATA");
    return from_environment ? from_environment : CONFIG_DATA_DEFAULT;
}

static int fail(const char *command, const struct err *e)
{
    (void) fprintf(stderr, "cleanrun-server %s: %s\n", command, e->text);
    switch (e->kind) {
    case ERR_TRUST:
        return EXIT_INVALID;
    case ERR_NONE:
    case ERR_USAGE:
    case ERR_INPUT:
    case ERR_LIMIT:
    case ERR_NOTFOUND:
    case ERR_CONFLICT:
    case ERR_SYS:
    case ERR_NOSPACE:
    case ERR_NOMEM:
    case ERR_BUSY:
    case ERR_INTERNAL:
        break;
    }
    return EXIT_USAGE;
}

/* *out NULL and an error when there is no such command or verb. */
static const struct admin_command *find(int argc, char *const argv[], struct err *e)
{
    const char *verbs[ARRAY_LEN(commands)];
    const char *verb = argc > 1 ? argv[1] : "";
    const char *near;
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].command, argv[0]) != 0)
            continue;
        if (!commands[i].verb || strcmp(commands[i].verb, verb) == 0)
            return &commands[i];
        verbs[n++] = commands[i].verb;
    }
    near = n > 0 ? text_nearest(verb, verbs, n) : NULL;
    if (near)
        (void) err_set(e, ERR_USAGE, "admin.verb", "unknown command '%s'; did you mean '%s'?", verb,
                       near);
    else
        (void) err_set(e, ERR_USAGE, "admin.verb",
                       "what to do with it? see cleanrun-server --help");
    return NULL;
}

static int parse(const struct admin_command *c, int argc, char *const argv[], struct admin_args *a,
                 struct err *e)
{
    const char *allowed[ARRAY_LEN(c->flags) + 1] = {"data="};
    int skip = c->verb ? 2 : 1;
    size_t n = 1;

    for (size_t i = 0; i < ARRAY_LEN(c->flags) && c->flags[i]; i++)
        allowed[n++] = c->flags[i];
    if (admin_args_parse(argc - skip, argv + skip, allowed, n, a, e) < 0)
        return -1;
    if (a->n_words == c->n_words)
        return 0;
    if (c->n_words)
        return err_set(e, ERR_USAGE, "admin.words", "expected %s", c->words);
    return err_set(e, ERR_USAGE, "admin.words", "unexpected word '%s'", a->words[0]);
}

static int run(const struct admin_command *c, const struct admin_args *a, struct err *e)
{
    AUTO_STORE struct store *s = NULL;

    if (c->store && store_open(admin_data(a), STORE_ADMIN, 2, &s, e) < 0)
        return -1;
    return c->handle(s, a, e);
}

int admin_main(int argc, char *const argv[], char *const environment[])
{
    struct admin_args a = {.out = stdout, .environment = environment};
    const struct admin_command *c;
    struct err e = ERR_INIT;
    int code;

    c = find(argc, argv, &e);
    if (!c || parse(c, argc, argv, &a, &e) < 0)
        return fail(argv[0], &e);
    code = run(c, &a, &e);
    if (code < 0)
        return fail(argv[0], &e);
    if (fflush(stdout) != 0) {
        (void) err_set(&e, ERR_SYS, "admin.write", "cannot write the answer");
        return fail(argv[0], &e);
    }
    return code;
}
