/* cleanrun gc: old runs, checkouts nobody uses, and what killed runners left. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/verdict.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "base/plain.h"
#include "base/text.h"
#include "runner/checkout.h"
#include "runner/commands.h"
#include "runner/machine_lock.h"
#include "runner/rundir.h"
#include "runner/scratch.h"

#define DEFAULT_DAYS 30
#define US_PER_DAY ((int64_t) 86400 * 1000000)
#define STAMP_LEN 16
#define CHECKOUT_NAME_LEN 16

struct gc {
    struct cli *c;
    bool dry_run;
    int64_t before_us; /* what is older goes */
    size_t removed, failed;
};

enum age { AGE_KEEP, AGE_OLD };

/* A run directory, or an archive that was sealed beside it; the name tells when it started. */
static enum age run_age(const struct gc *g, int dir_fd, const char *name)
{
    static const char *const tails[] = {"", ".tar", ".tar.dsse.json", ".tar.sigstore.json",
                                        ".tar.sig"};
    char id[RUN_ID_SIZE], stamp[STAMP_LEN + 1];
    int64_t at = 0;

    if (strlen(name) < RUN_ID_SIZE - 1)
        return AGE_KEEP;
    memcpy(id, name, RUN_ID_SIZE - 1);
    id[RUN_ID_SIZE - 1] = '\0';
    memcpy(stamp, name, STAMP_LEN);
    stamp[STAMP_LEN] = '\0';
    if (!text_is_run_id(id) || !clock_parse_compact(stamp, &at))
        return AGE_KEEP;
    if (!strcmp(name + RUN_ID_SIZE - 1, ".partial"))
        return rundir_is_abandoned(dir_fd, name) ? AGE_OLD : AGE_KEEP;
    for (size_t i = 0; i < ARRAY_LEN(tails); i++)
        if (!strcmp(name + RUN_ID_SIZE - 1, tails[i]))
            return at <= g->before_us ? AGE_OLD : AGE_KEEP;
    return AGE_KEEP;
}

/* A checkout is made anew for each use, so its directory's time is that of its last use. */
static enum age checkout_age(const struct gc *g, int dir_fd, const char *name)
{
    struct stat st;

    if (strlen(name) != CHECKOUT_NAME_LEN || !text_is_hex(name, CHECKOUT_NAME_LEN) ||
        fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return AGE_KEEP;
    return (int64_t) st.st_mtim.tv_sec * 1000000 <= g->before_us ? AGE_OLD : AGE_KEEP;
}

static void take_away(struct gc *g, const char *path, int dir_fd, const char *name)
{
    struct err e = ERR_INIT;

    if (!g->dry_run && file_remove_tree_at(dir_fd, name, &e) < 0) {
        g->failed++;
        plain_line(g->c->err, "cleanrun gc: %s/%s: %s", path, name, e.text);
        return;
    }
    g->removed++;
    plain_line(g->c->out, "%s/%s", path, name); /* flushed and checked by main */
}

static int sweep(struct gc *g, const char *state, const char *part,
                 enum age (*age)(const struct gc *, int, const char *), struct err *e)
{
    AUTO_FREE char *path = NULL;
    struct dirent **names = NULL;
    int n;

    if (asprintf(&path, "%s/%s", state, part) < 0) {
        path = NULL;
        return err_memory(e, "gc.memory");
    }
    AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    n = fd < 0 ? 0 : scandirat(fd, ".", &names, NULL, alphasort);
    if (n < 0)
        return err_errno(e, "gc.list", "cannot read '%s'", path);
    for (int i = 0; i < n; i++) {
        if (age(g, fd, names[i]->d_name) == AGE_OLD)
            take_away(g, path, fd, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return 0;
}

static int collect(struct gc *g, const struct cli_args *a, struct err *e)
{
    const char *days_text = cli_get(a, "older-than");
    AUTO_FREE char *state = NULL;
    AUTO_FD int lock = -1;
    uint64_t days = DEFAULT_DAYS;
    size_t left;

    if (days_text && !num_parse_u64(days_text, strlen(days_text), 36500, &days))
        return err_set(e, ERR_USAGE, "gc.days", "--older-than needs a number of days");
    g->before_us = clock_realtime_us() - (int64_t) days * US_PER_DAY;
    /* A measurement builds in its checkout and reads its baseline: nothing is removed beside it. */
    if (checkout_state_dir(g->c, &state, e) < 0 ||
        (!g->dry_run &&
         machine_lock_take(machine_lock_path(cli_env(g->c, MACHINE_LOCK_VARIABLE)), &lock, e) < 0))
        return -1;
    if (sweep(g, state, "runs", run_age, e) < 0 || sweep(g, state, "checkout", checkout_age, e) < 0)
        return -1;
    left = scratch_sweep(state, g->dry_run);
    cli_say(g->c, "%s%zu runs, archives and checkouts, %zu leftovers",
            g->dry_run ? "would remove " : "removed ", g->removed, left);
    return g->failed ? err_set(e, ERR_SYS, "gc.failed", "%zu could not be removed", g->failed) : 0;
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct gc g = {.c = c, .dry_run = cli_has(a, "dry-run")};
    struct err e = ERR_INIT;

    return collect(&g, a, &e) < 0 ? cli_fail(c, &e) : EXIT_OK;
}

static const struct cli_option options[] = {
    {.name = "older-than", .value = "DAYS", .help = "age of what is removed (default 30; 0: all)"},
    {.name = "dry-run", .help = "only tell what would be removed"},
};

const struct command command_gc = {
    .name = "gc",
    .summary = "remove old runs and checkouts of this user",
    .synopsis = "[--older-than DAYS] [--dry-run]",
    .examples = "  cleanrun gc --dry-run\n  cleanrun gc --older-than 7\n",
    .notes = "Looks only below $XDG_STATE_HOME/cleanrun (~/.local/state/cleanrun): runs with their "
             "sealed archives,\n"
             "checkouts of --at, directories of runners that were killed. Runs made with --out are "
             "yours. Prints what\n"
             "was removed, one path a line. Exit: 0; 6 while a measurement is active; 2 when "
             "something stays.\n",
    COMMAND_OPTIONS(options),
    .max_args = 0,
    .run = run,
};
