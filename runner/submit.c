#include "runner/submit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/verdict.h"
#include "base/file.h"
#include "evidence/seal.h"
#include "evidence/sign.h"
#include "runner/push.h"

/* The archive beside the run directory: nothing is overwritten after an hour of measuring. */
static int check_archive(const char *directory, struct err *e)
{
    size_t len = strlen(directory);
    AUTO_FREE char *archive = NULL;
    struct stat st;

    while (len > 1 && directory[len - 1] == '/')
        len--;
    if (asprintf(&archive, "%.*s.tar", (int) len, directory) < 0) {
        archive = NULL;
        return err_memory(e, "submit.memory");
    }
    if (lstat(archive, &st) < 0)
        return 0;
    return err_set(e, ERR_USAGE, "submit.archive",
                   "'%s' exists already, and the sealed run would take its place: move it away, or "
                   "name another directory with --out",
                   archive);
}

int submit_check_options(const struct cli *c, const struct cli_args *a, struct err *e)
{
    struct private_key *key = NULL;
    const char *path = cli_get(a, "key");
    struct push_target target;

    if (cli_has(a, "push") && !path)
        return err_set(e, ERR_USAGE, "submit.key", "--push needs --key");
    if (!path)
        return 0;
    if (cli_get(a, "out") && check_archive(cli_get(a, "out"), e) < 0)
        return -1;
    /* A key that can't be used is found before an hour of measuring, not after. */
    if (private_key_load(path, &key, e) < 0) {
        e->kind = ERR_USAGE;
        return -1;
    }
    private_key_free(key);
    push_target_from(c, a, &target);
    if (cli_has(a, "push") && push_check_options(&target, e) < 0) {
        e->kind = ERR_USAGE;
        return -1;
    }
    return 0;
}

static int seal(const char *directory, const char *key_path, const char *archive, struct err *e)
{
    struct private_key *key = NULL;
    struct digest digest;
    AUTO_FD int fd = -1;
    int r;

    if (file_open_dir(directory, &fd, e) < 0 || private_key_load(key_path, &key, e) < 0)
        return -1;
    r = seal_run(fd, key, archive, &digest, e);
    private_key_free(key);
    return r;
}

int submit_run(struct cli *c, const struct cli_args *a, const char *directory, const char *project,
               const char *gate, int code)
{
    const char *key = cli_get(a, "key");
    struct err e = ERR_INIT;
    AUTO_FREE char *archive = NULL;
    struct push_target target;
    int answered = code;

    if (!key)
        return code;
    if (!directory || asprintf(&archive, "%s.tar", directory) < 0) {
        archive = NULL;
        (void) err_memory(&e, "submit.memory");
        return cli_fail(c, &e);
    }
    if (seal(directory, key, archive, &e) < 0) {
        code = cli_fail(c, &e);
        cli_say(c, "the run is kept; go on with: cleanrun seal %s --key %s --out %s", directory,
                key, archive);
        return code;
    }
    cli_say(c, "%-10s %s", "sealed", archive);
    if (!cli_has(a, "push"))
        return code;
    push_target_from(c, a, &target);
    target.one_line = true; /* of `run --json` */
    target.project = project;
    target.gate = gate;
    if (push_archive(c, archive, &target, &answered, &e) < 0) {
        code = cli_fail(c, &e);
        cli_say(c,
                "the run is measured and sealed; go on with: cleanrun push %s --server %s "
                "--token-file %s --project %s",
                archive, target.server, target.token_file, project);
        return code;
    }
    if (answered == EXIT_INVALID)
        cli_say(c, "the server did not take the run: see above; it is kept in %s", archive);
    else if (answered != code)
        cli_say(c, "the server judges otherwise than this machine did, and its verdict counts: it "
                   "knows the current reviewed baseline");
    return answered;
}
