/* The command table and what all commands have in common. */
#include "server/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/verdict.h"
#include "base/plain.h"
#include "base/text.h"
#include "server/admin_commands.h"
#include "server/config.h"

enum admin_data_use {
    DATA_NONE, /* no store is opened */
    DATA_OPEN, /* one that is there */
    DATA_MAKE, /* made when absent */
};

struct admin_command {
    const char *command;
    const char *verb;  /* NULL: the command alone */
    const char *words; /* shown in messages: "NAME" */
    size_t n_words;
    enum admin_data_use data;
    admin_check check; /* or NULL */
    admin_handler handle;
    const char *flags[10]; /* "name", "name=" takes a value, "name=!" needs one */
    const char *usage;     /* lines of --help */
};

static const struct admin_command commands[] = {
    {"project",
     "add",
     "OWNER/NAME",
     1,
     DATA_MAKE,
     admin_check_project_add,
     admin_project_add,
     {"private"},
     "  project add OWNER/NAME [--private]\n"},
    {"project",
     "set",
     "OWNER/NAME",
     1,
     DATA_OPEN,
     admin_check_project_set,
     admin_project_set,
     {"private", "public", "tickets=", "deadline="},
     "  project set OWNER/NAME [--private|--public] [--tickets optional|required]\n"
     "        [--deadline SECONDS]\n"},
    {"project", "list", "", 0, DATA_OPEN, NULL, admin_project_list, {NULL}, "  project list\n"},
    {"runner",
     "add",
     "NAME",
     1,
     DATA_OPEN,
     NULL,
     admin_runner_add,
     {"class=!", "key=!", "project=!", "not-before=", "not-after="},
     "  runner add NAME --class CLASS --key PUB.pem --project OWNER/NAME\n"
     "        [--not-before TIME] [--not-after TIME]\n"},
    {"runner",
     "set",
     "NAME",
     1,
     DATA_OPEN,
     admin_check_runner_set,
     admin_runner_set,
     {"not-before=", "not-after="},
     "  runner set NAME [--not-before TIME|none] [--not-after TIME|none]\n"},
    {"runner",
     "revoke",
     "NAME",
     1,
     DATA_OPEN,
     NULL,
     admin_runner_revoke,
     {"reason=!", "since="},
     "  runner revoke NAME --reason TEXT [--since TIME]\n"},
    {"runner", "list", "", 0, DATA_OPEN, NULL, admin_runner_list, {NULL}, "  runner list\n"},
    {"token",
     "add",
     "NAME",
     1,
     DATA_OPEN,
     admin_check_token_add,
     admin_token_add,
     {"scope=!", "project="},
     "  token add NAME --scope read|upload|review|admin [--project OWNER/NAME]\n"
     "        the token is printed once\n"},
    {"token",
     "revoke",
     "NAME",
     1,
     DATA_OPEN,
     NULL,
     admin_token_revoke,
     {NULL},
     "  token revoke NAME\n"},
    {"token", "list", "", 0, DATA_OPEN, NULL, admin_token_list, {NULL}, "  token list\n"},
    {"baseline",
     "approve",
     "RUN",
     1,
     DATA_OPEN,
     NULL,
     admin_baseline_approve,
     {"project=!", "gate=!", "reviewer=!", "reason=!", "new-policy"},
     "  baseline approve RUN --project OWNER/NAME --gate GATE --reviewer NAME\n"
     "        --reason TEXT [--new-policy]\n"},
    {"baseline",
     "retire",
     "ID",
     1,
     DATA_OPEN,
     NULL,
     admin_baseline_retire,
     {"project=!", "reviewer=!", "reason=!"},
     "  baseline retire ID --project OWNER/NAME --reviewer NAME --reason TEXT\n"
     "        without a successor: its gate is no longer expected of a commit\n"},
    {"baseline",
     "import",
     "DIR",
     1,
     DATA_OPEN,
     admin_check_baseline_import,
     admin_baseline_import,
     {"project=!", "gate=!", "reviewer=!", "reason=!", "class=!", "definition=!",
      "commit=", "legacy"},
     "  baseline import DIR --legacy --project OWNER/NAME --gate GATE --class CLASS\n"
     "        --definition FILE --reviewer NAME --reason TEXT [--commit HEX]\n"
     "        unsigned history, shown and never judging\n"},
    {"baseline",
     "list",
     "",
     0,
     DATA_OPEN,
     NULL,
     admin_baseline_list,
     {"project="},
     "  baseline list [--project OWNER/NAME]\n"},
    {"migrate",
     NULL,
     "",
     0,
     DATA_MAKE,
     NULL,
     admin_migrate,
     {NULL},
     "  migrate                      applies new migrations of the database\n"},
    {"fsck",
     NULL,
     "",
     0,
     DATA_OPEN,
     NULL,
     admin_fsck,
     {NULL},
     "  fsck                         checks every object, row and signature\n"},
    {"gc",
     NULL,
     "",
     0,
     DATA_OPEN,
     NULL,
     admin_gc,
     {"dry-run", "keep="},
     "  gc [--dry-run] [--keep SECONDS]\n"
     "        removes uploads that no run names, after a day\n"},
    {"backup",
     NULL,
     "DIR",
     1,
     DATA_OPEN,
     NULL,
     admin_backup,
     {NULL},
     "  backup DIR                   a complete copy; DIR is new or empty\n"},
    {"restore",
     NULL,
     "DIR",
     1,
     DATA_NONE,
     NULL,
     admin_restore,
     {NULL},
     "  restore DIR                  from a backup into a new data directory\n"},
    {"config",
     NULL,
     "",
     0,
     DATA_NONE,
     NULL,
     admin_config,
     {NULL},
     "  config                       the settings that apply, without secrets\n"},
    {"log",
     NULL,
     "",
     0,
     DATA_OPEN,
     NULL,
     admin_log,
     {"limit="},
     "  log [--limit N]              who changed what\n"},
};

void admin_help(FILE *out)
{
    (void) fprintf(out,
                   "\nAdministration, on the data directory (--data DIR with every command, else\n"
                   "CLEANRUN_SERVER_DATA, else CLEANRUN_DATA, else " CONFIG_DATA_DEFAULT ").\n"
                   "Only serve, project add, migrate and restore make one:\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        (void) fputs(commands[i].usage, out);
}

bool admin_help_of(const char *command, const char *verb, FILE *out)
{
    bool one = false;

    if (!admin_knows(command))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        one = one || (strcmp(commands[i].command, command) == 0 && commands[i].verb &&
                      strcmp(commands[i].verb, verb) == 0);
    (void) fputs("Usage: cleanrun-server COMMAND [OPTION...]\n\n", out);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].command, command) == 0 &&
            (!one || strcmp(commands[i].verb, verb) == 0))
            (void) fputs(commands[i].usage, out);
    }
    (void) fputs("\n  --data DIR: the data directory; 'cleanrun-server --help' says where else it "
                 "comes from.\n",
                 out);
    return true;
}

bool admin_knows(const char *command)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].command, command) == 0)
            return true;
    }
    return false;
}

const char *admin_nearest(const char *command)
{
    const char *names[ARRAY_LEN(commands)];

    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        names[i] = commands[i].command;
    return text_nearest(command, names, ARRAY_LEN(names));
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
    plain_line(stderr, "cleanrun-server %s: %s", command, e->text);
    return e->kind == ERR_TRUST ? EXIT_INVALID : EXIT_USAGE;
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

/* Before anything is opened. */
static int check(const struct admin_command *c, const struct admin_args *a, struct err *e)
{
    if (c->check && c->check(a, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(c->flags) && c->flags[i]; i++) {
        size_t len = strlen(c->flags[i]);
        const char *value = NULL;
        char name[32];

        if (c->flags[i][len - 1] != '!' || len - 2 >= sizeof name)
            continue;
        memcpy(name, c->flags[i], len - 2);
        name[len - 2] = '\0';
        if (admin_args_need(a, name, &value, e) < 0)
            return -1;
    }
    return 0;
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
    if (a->n_words != c->n_words && c->n_words)
        return err_set(e, ERR_USAGE, "admin.words", "expected %s", c->words);
    if (a->n_words != c->n_words)
        return err_set(e, ERR_USAGE, "admin.words", "unexpected word '%s'", a->words[0]);
    return check(c, a, e);
}

/* A mistyped directory, or a command before the first project, must not leave a database behind
 * that belongs to whoever called. */
static int find_data(const char *data, struct err *e)
{
    AUTO_FREE char *path = NULL;
    AUTO_FD int fd = -1;

    if (asprintf(&path, "%s/cleanrun.db", data) < 0) {
        path = NULL;
        return err_memory(e, "admin.memory");
    }
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        return 0;
    if (errno == ENOENT || errno == ENOTDIR)
        return err_set(e, ERR_NOTFOUND, "admin.data",
                       "there is no cleanrun data in '%s'; 'cleanrun-server project add' and "
                       "'serve' make it, --data says where it is",
                       data);
    if (errno == EROFS)
        return err_set(e, ERR_SYS, "admin.permission",
                       "the file system of '%s' is read-only, and every command takes a lock there",
                       data);
    if (errno == EACCES)
        return err_set(
            e, ERR_SYS, "admin.permission",
            "no permission to read and write the data in '%s': run this as the user that "
            "the server runs as",
            data);
    return err_errno(e, "admin.data", "'%s'", path);
}

static int run(const struct admin_command *c, const struct admin_args *a, struct err *e)
{
    AUTO_STORE struct store *s = NULL;

    if (c->data == DATA_OPEN && find_data(admin_data(a), e) < 0)
        return -1;
    if (c->data != DATA_NONE && store_open(admin_data(a), STORE_ADMIN, 2, &s, e) < 0)
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
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void) err_set(&e, ERR_SYS, "admin.write", "cannot write the answer");
        return fail(argv[0], &e);
    }
    return code;
}
