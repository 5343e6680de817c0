/* cleanrun show: a run directory as text. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/verdict.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/plain.h"
#include "evidence/manifest.h"
#include "experiment/acceptance.h"
#include "runner/commands.h"
#include "runner/measure.h"
#include "runner/mistaken.h"
#include "runner/rundir.h"

#define SNAPSHOT "baseline/manifest.json"
#define AUDIT_MARKDOWN "audit.md"

static int read_json(int dir_fd, const char *name, cJSON **out, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (file_read_at(dir_fd, name, LIMIT_REPORT, &bytes, &len, e) < 0)
        return -1;
    return json_parse(bytes, len, NULL, out, e);
}

/* A run that ended in ERROR has this instead of a manifest. */
static int show_error(struct cli *c, int dir_fd, struct err *e)
{
    AUTO_JSON cJSON *j = NULL;

    if (read_json(dir_fd, RUNDIR_ERROR, &j, e) < 0)
        return -1;
    /* Flushed and checked by main, and so below. */
    plain_line(c->out, "run       %s", json_text(j, "run", "-"));
    plain_line(c->out, "gate      %s", json_text(j, "gate", "-"));
    plain_line(c->out, "result    ERROR in stage %s", json_text(j, "stage", "-"));
    plain_line(c->out, "          %s", json_text(j, "text", "-"));
    return 0;
}

static void show_head(struct cli *c, const struct manifest *m)
{
    const cJSON *d = m->document;
    char hex[DIGEST_HEX_SIZE];

    (void) fprintf(c->out, "run       %s\nproject   %s\ngate      %s\nclass     %s\nmode      %s\n",
                   m->run, m->project, m->gate, m->machine_class, m->mode);
    plain_line(c->out, "started   %s", json_text(d, "started_at", "-"));
    plain_line(c->out, "finished  %s", json_text(d, "finished_at", "-"));
    plain_line(c->out, "commit    %s%s", m->commit, manifest_is_dirty(m) ? " (dirty)" : "");
    if (m->has_executable) {
        digest_hex(&m->executable_digest, hex);
        plain_line(c->out, "program   %s sha256 %s",
                   json_text(json_get(d, "executable"), "name", "-"), hex);
    }
    (void) fprintf(
        c->out, "status    %s\nreport    %s\naccepted  %s\naudit     %s\nfiles     %zu\n",
        manifest_status_name(m->status), json_text(d, "report_status", "-"),
        json_text(d, "acceptance_status", "-"), json_text(d, "audit_status", "-"), m->n_files);
}

static void show_check(struct cli *c, const cJSON *check)
{
    AUTO_BUF struct buf words = {.data = NULL};

    buf_init(&words, LIMIT_KIB(4));
    acceptance_put_check(&words, check);
    plain_line(c->out, "  failed: %s", words.data ? words.data : "?");
}

static int show_acceptance(struct cli *c, int dir_fd, struct err *e)
{
    AUTO_JSON cJSON *j = NULL;
    const cJSON *check = NULL;
    size_t failed = 0, n = 0;

    if (read_json(dir_fd, "acceptance.json", &j, e) < 0)
        return -1;
    cJSON_ArrayForEach(check, json_get(j, "checks")) {
        bool passed = cJSON_IsTrue(json_get(check, "passed"));

        n++;
        failed += passed ? 0 : 1;
        if (!passed)
            show_check(c, check);
    }
    plain_line(c->out, "checks    %zu, %zu failed", n, failed);
    return 0;
}

/* Why a run failed: what the runner noted at its end, which no other document repeats. */
static void show_faults(struct cli *c, int dir_fd)
{
    static const char mark[] = "[cleanrun] FAIL: ";
    AUTO_FREE char *log = NULL;
    struct err ignored = ERR_INIT;
    size_t len = 0, n = 0;

    if (file_read_at(dir_fd, RUN_LOG, LIMIT_LOG + LIMIT_MIB(1), &log, &len, &ignored) == 0) {
        for (char *line = log; line && *line; line = strchr(line, '\n')) {
            line += *line == '\n' ? 1 : 0;
            if (strncmp(line, mark, sizeof(mark) - 1) != 0)
                continue;
            line += sizeof(mark) - 1;
            plain_line(c->out, "fault     %.*s", (int) strcspn(line, "\n"), line);
            n++;
        }
    }
    if (n == 0)
        (void) fputs("fault     not noted in " RUN_LOG "; status, report and acceptance tell what "
                     "there is\n",
                     c->out);
}

/* The snapshot's policy is not the run's: then audit.json and acceptance.json, which the run's own
 * policy gives, are not what counts. */
static bool policy_differs(int dir_fd, const struct manifest *m)
{
    AUTO_JSON cJSON *j = NULL;
    struct err ignored = ERR_INIT;
    const cJSON *reviewed;
    char hex[DIGEST_HEX_SIZE];

    if (!manifest_find(m, SNAPSHOT) || read_json(dir_fd, SNAPSHOT, &j, &ignored) < 0)
        return false;
    reviewed = json_get(json_get(j, "definition"), "policy_sha256");
    digest_hex(&m->policy_digest, hex);
    return cJSON_IsString(reviewed) && strcmp(reviewed->valuestring, hex) != 0;
}

/* A directory is only a directory: what is said to be Markdown may hold anything. */
static int put_markdown(struct cli *c, const char *text, size_t len, struct err *e)
{
    AUTO_BUF struct buf plain = {.data = NULL};

    buf_init(&plain, LIMIT_REPORT * 8); /* a byte becomes eight at most */
    buf_putc(&plain, '\n');
    plain_put_lines(&plain, text, len);
    if (buf_check(&plain, e) < 0)
        return -1;
    (void) fwrite(plain.data, 1, plain.len, c->out);
    return 0;
}

/* What the run was told when it ended: its acceptance, then the comparison. */
static void show_result(struct cli *c, int dir_fd, const struct manifest *m)
{
    const char *acceptance = json_text(m->document, "acceptance_status", "-");
    const char *audit = json_text(m->document, "audit_status", "-");

    if (m->status == MANIFEST_BUILD_ONLY)
        plain_line(c->out, "result    built: no verdict comes of it");
    else if (strcmp(m->mode, "clean") != 0)
        plain_line(c->out, "result    diagnostic run: no verdict comes of it");
    else if (policy_differs(dir_fd, m))
        return; /* told below */
    else if (m->status == MANIFEST_FAIL || strcmp(acceptance, "FAIL") == 0)
        plain_line(c->out, "result    FAIL");
    else if (strcmp(audit, "NOT_APPLICABLE") == 0)
        plain_line(
            c->out,
            "result    NON_COMPARABLE  NC-BASELINE-NONE: this run was compared with no baseline "
            "(cleanrun help NC-BASELINE-NONE)");
    else
        plain_line(c->out, "result    %s", audit);
}

static int show_audit(struct cli *c, int dir_fd, const struct manifest *m, struct err *e)
{
    static const struct audit_markdown_options options = {.unfolded = true};
    AUTO_JSON cJSON *audit = NULL;
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    if (policy_differs(dir_fd, m)) {
        (void) fputs("policy    this run's own differs from the one reviewed with the baseline and "
                     "gains nothing until reviewed:\n          accepted and audit above are by its "
                     "own, below is " AUDIT_MARKDOWN "\n",
                     c->out);
        if (manifest_find(m, AUDIT_MARKDOWN)) {
            if (file_read_at(dir_fd, AUDIT_MARKDOWN, LIMIT_REPORT, &text, &len, e) < 0)
                return -1;
            return put_markdown(c, text, len, e);
        }
    }
    if (read_json(dir_fd, "audit.json", &audit, e) < 0 ||
        audit_markdown(audit, &options, &text, &len, e) < 0)
        return -1;
    return put_markdown(c, text, len, e);
}

static int show(struct cli *c, const struct cli_args *a, struct err *e)
{
    AUTO_FD int fd = -1;
    AUTO_FREE char *bytes = NULL;
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    size_t len = 0;

    if (file_open_dir(a->args[0], &fd, e) < 0)
        return mistaken_file(a->args[0], e);
    if (faccessat(fd, MANIFEST_NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
        if (faccessat(fd, RUNDIR_ERROR, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return err_set(e, ERR_INPUT, "show.directory",
                           "'%s' is no run directory: it holds no " MANIFEST_NAME, a->args[0]);
        return show_error(c, fd, e);
    }
    if (file_read_at(fd, MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0 ||
        manifest_parse(bytes, len, &m, e) < 0)
        return -1;
    if (cli_has(a, "json"))
        return cli_write_json(c, NULL, m.document, e);
    show_head(c, &m);
    show_result(c, fd, &m);
    if (m.status == MANIFEST_FAIL)
        show_faults(c, fd);
    if (manifest_find(&m, "acceptance.json") && show_acceptance(c, fd, e) < 0)
        return -1;
    return manifest_find(&m, "audit.json") ? show_audit(c, fd, &m, e) : 0;
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;

    return show(c, a, &e) < 0 ? cli_fail(c, &e) : EXIT_OK;
}

static const struct cli_option options[] = {
    {.name = "json", .help = "print the manifest"},
};

const struct command command_show = {
    .name = "show",
    .summary = "print a run directory as text",
    .synopsis = "RUN_DIR [--json]",
    .examples = "  cleanrun show ~/.local/state/cleanrun/runs/20261129T141502Z-9c1e07ab\n",
    .notes =
        "Shows what the directory says; `cleanrun verify` checks sealed evidence. Exit: 0, or 2.\n",
    COMMAND_OPTIONS(options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
