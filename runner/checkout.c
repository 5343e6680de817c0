#include "runner/checkout.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "runner/paths.h"

#define DEFINITION_NAME "cleanrun.yaml"

int checkout_state_dir(const struct cli *c, char **out, struct err *e)
{
    const char *xdg = cli_env(c, "XDG_STATE_HOME");
    const char *home = cli_env(c, "HOME");
    bool use_xdg = xdg && xdg[0] == '/';

    if (!use_xdg && (!home || home[0] != '/'))
        return err_set(e, ERR_USAGE, "state.home",
                       "neither XDG_STATE_HOME nor HOME names a directory");
    if (asprintf(out, "%s%s/cleanrun", use_xdg ? xdg : home, use_xdg ? "" : "/.local/state") < 0)
        return err_memory(e, "checkout.memory");
    return 0;
}

static int resolve(const struct git *g, const char *rev, char oid[65], struct err *e)
{
    AUTO_FREE char *spec = NULL;
    AUTO_GIT_OUTPUT struct git_output o = {.data = NULL};

    if (asprintf(&spec, "%s^{commit}", rev) < 0) {
        spec = NULL;
        return err_memory(e, "checkout.memory");
    }
    const char *const args[] = {"rev-parse", "--verify", "--quiet", "--end-of-options", spec, NULL};

    if (git_run(g, args, true, &o, e) < 0)
        return -1;
    size_t len = strcspn(o.data, "\n");

    if (o.code != 0 || (len != 40 && len != 64))
        return err_set(e, ERR_USAGE, "checkout.rev", "no commit '%s' in this repository", rev);
    memcpy(oid, o.data, len);
    oid[len] = '\0';
    return 0;
}

static int refuse_submodules(const struct git *g, const char *oid, struct err *e)
{
    AUTO_GIT_OUTPUT struct git_output o = {.data = NULL};
    const char *const args[] = {"ls-tree", "-r", "-z", oid, NULL};

    if (git_run(g, args, false, &o, e) < 0)
        return -1;
    for (const char *p = o.data; p < o.data + o.len; p += strlen(p) + 1)
        if (!strncmp(p, "160000 ", 7))
            return err_set(
                e, ERR_USAGE, "checkout.submodule",
                "--at can't check out submodules; check the revision out yourself and run there");
    return 0;
}

int checkout_fresh(const struct git *g, const char *oid, const char *dir, struct git *out,
                   struct err *e)
{
    AUTO_GIT_OUTPUT struct git_output cloned = {.data = NULL};
    AUTO_GIT_OUTPUT struct git_output checked = {.data = NULL};
    AUTO_GIT struct git fresh = {.root_fd = -1};
    const char *const clone[] = {"clone",     "--quiet", "--shared", "--no-checkout",
                                 "--no-tags", g->root,   dir,        NULL};
    const char *const checkout[] = {"checkout", "--quiet", "--detach", "--force", oid, NULL};

    if (git_run(g, clone, false, &cloned, e) < 0 || git_open(dir, g->path, NULL, &fresh, e) < 0 ||
        git_run(&fresh, checkout, false, &checked, e) < 0)
        return err_wrap(e, "checkout");
    fresh.scratch = g->scratch;
    *out = fresh;
    fresh = (struct git){.root_fd = -1};
    return 0;
}

int checkout_at(struct git *g, const char *rev, const char *state, struct err *e)
{
    char oid[65], name[DIGEST_HEX_SIZE];
    struct digest digest = digest_of(g->root, strlen(g->root));
    AUTO_FREE char *dir = NULL;
    struct git fresh = {.root_fd = -1};

    if (resolve(g, rev, oid, e) < 0 || refuse_submodules(g, oid, e) < 0)
        return -1;
    digest_hex(&digest, name);
    if (asprintf(&dir, "%s/checkout/%.16s", state, name) < 0) {
        dir = NULL;
        return err_memory(e, "checkout.memory");
    }
    if (paths_remove_tree(dir, e) < 0)
        return err_wrap(e, "checkout");
    if (checkout_fresh(g, oid, dir, &fresh, e) < 0)
        return -1;
    git_close(g);
    *g = fresh;
    return 0;
}

int checkout_find_definition(const char *directory, const char *root, char **out, struct err *e)
{
    AUTO_FREE char *at = realpath(directory, NULL);
    size_t root_len = strlen(root);

    if (!at)
        return err_errno(e, "definition.find", "cannot open '%s'", directory);
    while (!strncmp(at, root, root_len)) {
        AUTO_FREE char *path = NULL;
        char *slash;

        if (asprintf(&path, "%s/" DEFINITION_NAME, at) < 0) {
            path = NULL;
            return err_memory(e, "checkout.memory");
        }
        if (faccessat(AT_FDCWD, path, R_OK, 0) == 0) {
            *out = STEAL(path);
            return 0;
        }
        slash = strrchr(at, '/');
        if (!slash || strlen(at) <= root_len)
            break;
        *slash = '\0';
    }
    return err_set(e, ERR_USAGE, "definition.find",
                   "no " DEFINITION_NAME
                   " here or above, up to the repository's root; `cleanrun init` writes one");
}

/* The real path of what exists of `path`, with the rest appended. Heap or NULL. */
static char *real_prefix(const char *path)
{
    AUTO_FREE char *head = strdup(path);
    char *made = NULL;

    while (head && *head) {
        AUTO_FREE char *real = realpath(head, NULL);
        char *slash;

        if (real)
            return asprintf(&made, "%s%s", real, path + strlen(head)) < 0 ? NULL : made;
        slash = strrchr(head, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    AUTO_FREE char *here = realpath(*path == '/' ? "/" : ".", NULL);

    if (!here || asprintf(&made, "%s/%s", here, path) < 0)
        return NULL;
    return made;
}

int checkout_check_ignored(const struct git *g, const char *path, struct err *e)
{
    AUTO_FREE char *real = real_prefix(path);
    size_t root_len = strlen(g->root);
    AUTO_GIT_OUTPUT struct git_output o = {.data = NULL};

    if (!real)
        return err_memory(e, "checkout.memory");
    if (strncmp(real, g->root, root_len) != 0 || real[root_len] != '/')
        return 0;
    /* -v names the file that ignores it: only one of the tree itself counts, as in the fingerprint.
     */
    const char *const args[] = {"check-ignore", "-v", "--no-index", "--", real, NULL};

    if (git_run(g, args, true, &o, e) < 0)
        return -1;
    /* "<file>:<line>:<pattern>\t<path>"; .git/info/exclude and personal files have other names. */
    const char *source_end = strstr(o.data, ".gitignore:");

    if (o.code == 0 && o.data[0] != '/' && source_end &&
        (source_end == o.data || source_end[-1] == '/'))
        return 0;
    return err_set(e, ERR_USAGE, "run.out",
                   "--out lies inside the work tree and no .gitignore ignores it: the run would "
                   "change its own source");
}
