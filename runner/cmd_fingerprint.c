/* cleanrun fingerprint: the source block of a work tree. */
#include <stdio.h>

#include "audit/verdict.h"
#include "base/json_in.h"
#include "runner/checkout.h"
#include "runner/commands.h"
#include "runner/source.h"

static int fingerprint(struct cli *c, const struct cli_args *a, struct err *e)
{
    AUTO_GIT struct git g = {.root_fd = -1};
    AUTO_SOURCE struct source s = {.scheme = NULL};
    AUTO_JSON cJSON *j = NULL;
    AUTO_FREE char *state = NULL;
    struct source_ignored beside = {.n = 0};
    struct err ignored = ERR_INIT; /* without a state directory, /tmp serves */
    char hex[DIGEST_HEX_SIZE];

    if (git_open(a->n_args ? a->args[0] : c->directory, cli_env(c, "PATH"), c->environment, &g, e) <
        0)
        return -1;
    if (checkout_state_dir(c, &state, &ignored) == 0)
        g.scratch = state;
    if (source_take(&g, cli_get(a, "scheme"), &s, e) < 0)
        return -1;
    if (source_count_ignored(&g, NULL, &beside, e) < 0)
        return -1;
    if (cli_has(a, "json")) {
        if (source_to_json(&s, &j, e) < 0)
            return -1;
        if (!cJSON_AddNumberToObject(j, "ignored", (double) beside.n))
            return err_memory(e, "fingerprint.memory");
        return cli_write_json(c, NULL, j, e);
    }
    digest_hex(&s.fingerprint, hex);
    /* Flushed and checked by main. */
    (void) fprintf(c->out, "%s\n", hex);
    cli_say(c, "commit %s%s, %zu files, %zu untracked, %zu ignored, scheme %s", s.commit,
            s.dirty ? " (dirty)" : "", s.files, s.untracked, beside.n, s.scheme);
    return 0;
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;

    return fingerprint(c, a, &e) < 0 ? cli_fail(c, &e) : EXIT_OK;
}

static const struct cli_option options[] = {
    {.name = "json", .help = "the source block as it stands in a manifest, and `ignored`"},
    {.name = "scheme", .value = "NAME", .help = "cleanrun-source/1 (default) or rvoip-v1"},
};

const struct command command_fingerprint = {
    .name = "fingerprint",
    .summary = "identify the exact source tree",
    .synopsis = "[DIR] [--json] [--scheme NAME]",
    .examples = "  cleanrun fingerprint\n  cleanrun fingerprint --json ~/src/project\n",
    .notes = "Covers the commit, and the real bytes and modes of every tracked and untracked file. "
             "Files that a .gitignore\n"
             "of the tree ignores are left out and only counted. No git setting changes the "
             "answer. Exit: 0, or 2.\n",
    COMMAND_OPTIONS(options),
    .max_args = 1,
    .run = run,
};
