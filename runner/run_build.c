/* From the source tree to the exact executable on a known machine. */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "runner/elf.h"
#include "runner/host.h"
#include "runner/host_limits.h"
#include "runner/run.h"
#include "runner/run_stages.h"
#include "runner/source_changed.h"
#include "runner/tidy.h"

#define LOG_TOLD 15
#define LOG_TOLD_BYTES 8192

static int write_definition(struct run *r, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (definition_write(r->definition, &bytes, &len, e) < 0)
        return -1;
    return file_write_at(r->dir.fd, RUNDIR_DEFINITION, bytes, len, 0644, e);
}

int run_fingerprint(struct run *r, struct err *e)
{
    AUTO_JSON cJSON *j = NULL;

    r->stage = "fingerprint";
    if (write_definition(r, e) < 0 ||
        source_take(&r->git, r->plan.source_scheme, &r->start, e) < 0 ||
        source_to_json(&r->start, &j, e) < 0)
        return -1;
    if (source_count_ignored(&r->git, r->dir.path, &r->ignored, e) < 0)
        return -1;
    if (r->start.dirty)
        source_changed(&r->git, &r->start, &r->start, 0, r->changed, sizeof(r->changed));
    run_say(r, "source", "commit %.12s%s%s%s", r->start.commit,
            r->start.dirty ? " with changes" : "", r->changed[0] ? ": " : "", r->changed);
    if (r->start.dirty)
        run_say(r, "source",
                "a run with changes is never a baseline and never green: commit them, or "
                "measure a commit with --at REV");
    if (r->ignored.n > 0)
        run_say(r, "ignored",
                "%zu file%s that git ignores %s in the work tree (%s): the program may not be this "
                "commit's (never a baseline, never green); `cleanrun run %s --at HEAD` measures a "
                "fresh checkout",
                r->ignored.n, r->ignored.n == 1 ? "" : "s", r->ignored.n == 1 ? "lies" : "lie",
                r->ignored.list.text, r->definition->gate);
    return rundir_write_json(&r->dir, RUNDIR_SOURCE_AT_START, j, LIMIT_KIB(64), e);
}

/* A profile of a stripped program names no function: found now, not after the run. */
static int check_debug_info(const struct run *r, struct err *e)
{
    bool there = false;

    if (!cJSON_IsTrue(json_get(r->plan.mode_spec, "debug_info")))
        return 0;
    if (elf_has_debug_info(r->artifact.fd, &there, e) < 0)
        return -1;
    return there ? 0
                 : err_set(e, ERR_SYS, "run.debug_info",
                           "mode %s needs debug information, and '%s' has none",
                           plan_mode_word(r->plan.mode), r->artifact.name);
}

/* The last lines of build.log, where a failed build says why. */
static void tell_log(const struct run *r)
{
    AUTO_FREE char *text = NULL;
    struct err ignored = ERR_INIT; /* without a log there is nothing to show */
    size_t len = 0, from, lines = 0;

    if (r->options.json ||
        file_read_at(r->dir.fd, BUILD_LOG, LIMIT_LOG * 2, &text, &len, &ignored) < 0)
        return;
    while (len > 0 && text[len - 1] == '\n')
        len--;
    for (from = len; from > 0 && len - from < LOG_TOLD_BYTES; from--)
        if (text[from - 1] == '\n' && ++lines == LOG_TOLD)
            break;
    if (from < len)
        cli_say(r->cli, "the end of " BUILD_LOG ":");
    for (size_t line = from; line < len;) {
        size_t n = strcspn(text + line, "\n");

        n = n < len - line ? n : len - line;
        cli_say(r->cli, "  | %.*s", (int) n, text + line);
        line += n + 1;
    }
}

int run_build(struct run *r, struct err *e)
{
    struct build_input in = {
        .plan = &r->plan,
        .source_fd = r->git.root_fd,
        .run_fd = r->dir.fd,
        .log = &r->kept.build_log,
        .messages = &r->kept.build_messages,
        .environment = r->cli->environment,
        .signal_fd = r->signal_fd,
        .lock_fd = r->lock_fd,
        .arena = &r->arena,
    };
    char hex[DIGEST_HEX_SIZE];
    uint64_t began = clock_monotonic_ns();

    r->stage = "host";
    if (host_limits_before_build(r->definition, &r->sysroot, e) < 0)
        return -1;
    r->stage = "build";
    if (build_run(&in, &r->build, e) < 0) {
        r->interrupted = r->build.interrupted;
        if (!r->interrupted && e->kind == ERR_SYS)
            tell_log(r);
        return -1;
    }
    /* A build has the same rights in the run directory as we have. */
    if (run_tidy(r, "the build", false, e) < 0)
        return -1;
    in.run_fd = r->dir.fd;
    run_say(r, "build", "done in %.1f s", (double) (clock_monotonic_ns() - began) / 1e9);
    r->stage = "executable";
    if (artifact_resolve(&in, r->git.root, &r->artifact, e) < 0)
        return run_blame(r, "/experiment/build/executable/path", e);
    if (check_debug_info(r, e) < 0)
        return -1;
    digest_hex(&r->artifact.digest, hex);
    run_say(r, "executable", "%s  sha256 %.16s…  (from %s)", r->artifact.name, hex,
            r->artifact.resolved);
    return 0;
}

int run_check_host(struct run *r, struct err *e)
{
    struct host_build known = {.toolchain = r->build.toolchain,
                               .allocator = r->plan.build.allocator,
                               .features = r->plan.build.features};
    char why[200];

    r->stage = "host";
    if (host_facts(&r->sysroot, &known, &r->facts, e) < 0 ||
        host_readings(&r->sysroot, &r->readings, e) < 0)
        return -1;
    if (host_breaks(r->plan.limits, r->facts, r->readings, why, sizeof(why)))
        return err_set(e, ERR_SYS, "run.host", "this machine is not what the gate demands: %s",
                       why);
    return 0;
}
