#include "runner/build.h"

#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "runner/capture.h"
#include "runner/loop.h"
#include "runner/machine_lock.h"

#define QUERY_TIMEOUT_MS 60000
#define TOOLCHAIN_MAX LIMIT_KIB(64)
#define TOOLCHAIN_LINE 200

struct stage {
    const struct build_input *in;
    const char *const *envp;
    int cwd_fd;
    struct capture log;
    struct capture messages; /* fd -1 unless the build command speaks a message format */
    uint64_t timeout_ms;
    bool interrupted;
};

static int make_pipe(int *read_end, int *write_end, struct err *e)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_errno(e, "build.pipe", "cannot make a pipe");
    *read_end = pair[0];
    *write_end = pair[1];
    return 0;
}

/* Says what ended a build program; 0 when it succeeded. */
static int judge(const struct build_input *in, const char *program, const struct loop_result *r,
                 struct err *e)
{
    char place[DEFINITION_PLACE_SIZE];

    switch (r->end) {
    case LOOP_TIMED_OUT:
        return err_set(
            e, ERR_SYS, "build.timeout",
            "the build timed out in '%s' after %.1f s (build.timeout: %s); see " BUILD_LOG, program,
            (double) r->wall_ns / 1e9,
            definition_place(in->plan->definition, "/experiment/build/timeout", place));
    case LOOP_INTERRUPTED:
        return err_set(e, ERR_SYS, "build.interrupted", "interrupted while building");
    case LOOP_ENDED:
        break;
    }
    if (!r->status.exited)
        return err_set(e, ERR_SYS, "build.failed",
                       "the build failed: '%s' was killed by signal %d; see " BUILD_LOG, program,
                       r->status.signal);
    if (r->status.code != 0)
        return err_set(e, ERR_SYS, "build.failed",
                       "the build failed: '%s' exited with %d; see " BUILD_LOG, program,
                       r->status.code);
    return 0;
}

/* Runs one program; its outputs go to the two sinks. */
static int run_to(struct stage *s, const char *const *argv, struct loop_stream out,
                  struct loop_stream err, struct err *e)
{
    struct child_spec spec = CHILD_SPEC_INIT;
    struct child child;
    struct loop_result result;
    AUTO_FD int out_read = -1;
    AUTO_FD int out_write = -1;
    AUTO_FD int err_read = -1;
    AUTO_FD int err_write = -1;

    if (make_pipe(&out_read, &out_write, e) < 0 || make_pipe(&err_read, &err_write, e) < 0)
        return -1;
    spec.argv = argv;
    spec.envp = s->envp;
    spec.path = plan_env_get(s->envp, "PATH");
    spec.cwd_fd = s->cwd_fd;
    spec.stdout_fd = out_write;
    spec.stderr_fd = err_write;
    if (child_start(&spec, &child, e) < 0)
        return -1;
    machine_lock_note(s->in->lock_fd, child.pid);
    (void) close(fd_steal(&out_write)); /* the child has its own */
    (void) close(fd_steal(&err_write));
    out.fd = out_read;
    err.fd = err_read;
    struct loop loop = {.child = &child,
                        .streams = {out, err},
                        .n_streams = 2,
                        .timeout_ms = s->timeout_ms,
                        .signal_fd = s->in->signal_fd};
    int r = loop_run(&loop, &result, e);

    child_fini(&child);
    if (r < 0)
        return -1;
    s->interrupted = result.end == LOOP_INTERRUPTED;
    return judge(s->in, argv[0], &result, e);
}

/* A program that is not there is the definition's mistake, or this machine lacks what it builds
 * with: the caller's to resolve. */
static int absent(const struct build_input *in, const char *pointer, struct err *e)
{
    if (e->kind != ERR_NOTFOUND)
        return -1;
    e->kind = ERR_USAGE;
    return definition_blame(in->plan->definition, pointer, e);
}

static void note_command(struct stage *s, const char *const *argv)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_KIB(64));
    for (size_t i = 0; argv[i]; i++)
        buf_printf(&b, "%s%s", i ? " " : "", argv[i]);
    (void) capture_note(&s->log, "$ %s", b.data ? b.data : "");
}

static int run_step(struct stage *s, const cJSON *command, bool is_build, struct err *e)
{
    const char *const *argv = NULL;
    bool messages = is_build && s->messages.fd >= 0;

    if (plan_argv(command, NULL, 0, s->in->arena, &argv, e) < 0)
        return -1;
    note_command(s, argv);
    return run_to(
        s, argv,
        (struct loop_stream){.data = capture_data, .context = messages ? &s->messages : &s->log},
        (struct loop_stream){.data = capture_data, .context = &s->log}, e);
}

static int open_workdir(const struct build_input *in, int *out, struct err *e)
{
    if (in->plan->build.workdir)
        return file_open_dir_at(in->source_fd, in->plan->build.workdir, out, e);
    *out = fcntl(in->source_fd, F_DUPFD_CLOEXEC, 0);
    return *out < 0 ? err_errno(e, "build.directory", "cannot open the work tree") : 0;
}

struct query {
    struct buf bytes;
};

static int query_data(void *context, const char *bytes, size_t len, struct err *e)
{
    struct query *q = context;

    buf_put(&q->bytes, bytes, len);
    return buf_check(&q->bytes, e);
}

static int ignore_data(void *context, const char *bytes, size_t len, struct err *e)
{
    (void) context;
    (void) bytes;
    (void) len;
    (void) e;
    return 0;
}

int build_query(const struct build_input *in, const cJSON *command, size_t max, char **out,
                size_t *out_len, struct err *e)
{
    struct stage s = {.in = in, .timeout_ms = QUERY_TIMEOUT_MS};
    struct query q;
    const char *const *argv = NULL;
    AUTO_FD int cwd = -1;

    struct plan_sources from = {.env = in->plan->build.env, .own = in->environment};

    if (plan_environment(&from, in->arena, &s.envp, NULL, e) < 0 ||
        plan_argv(command, NULL, 0, in->arena, &argv, e) < 0 || open_workdir(in, &cwd, e) < 0)
        return -1;
    s.cwd_fd = cwd;
    buf_init(&q.bytes, max);
    int r = run_to(&s, argv, (struct loop_stream){.data = query_data, .context = &q},
                   (struct loop_stream){.data = ignore_data}, e);

    if (r == 0) {
        buf_puts(&q.bytes, "");
        *out = buf_take(&q.bytes, out_len);
        r = *out ? 0 : err_memory(e, "build.memory");
    }
    buf_fini(&q.bytes);
    return r;
}

static int ask_toolchain(const struct build_input *in, char **out, struct err *e)
{
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    *out = NULL;
    if (!in->plan->build.toolchain)
        return 0;
    if (build_query(in, in->plan->build.toolchain, TOOLCHAIN_MAX, &text, &len, e) < 0) {
        (void) err_wrap(e, "build.toolchain"); /* always -1 */
        return absent(in, "/experiment/build/toolchain", e);
    }
    len = text ? strcspn(text, "\r\n") : 0;
    *out = strndup(text ? text : "", len < TOOLCHAIN_LINE ? len : TOOLCHAIN_LINE);
    return *out ? 0 : err_memory(e, "build.memory");
}

static int run_all(struct stage *s, struct err *e)
{
    const cJSON *step = NULL;

    cJSON_ArrayForEach(step, s->in->plan->build.prepare) {
        if (run_step(s, step, false, e) < 0)
            return absent(s->in, "/experiment/build/prepare", e);
    }
    return run_step(s, s->in->plan->build.command, true, e) < 0
               ? absent(s->in, "/experiment/build/command", e)
               : 0;
}

int build_run(const struct build_input *in, struct build_result *out, struct err *e)
{
    struct stage s = {.in = in,
                      .log = {.fd = -1},
                      .messages = {.fd = -1},
                      .timeout_ms = in->plan->build.timeout_ms};
    struct build_result made = {.environment = NULL};
    struct plan_sources from = {.env = in->plan->build.env, .own = in->environment};
    AUTO_FD int cwd = -1;
    int r = open_workdir(in, &cwd, e);

    if (r < 0)
        return absent(in, "/experiment/build/workdir", e);
    s.cwd_fd = cwd;
    if (r == 0)
        r = plan_environment(&from, in->arena, &s.envp, &made.environment, e);
    if (r == 0)
        r = capture_open(&s.log, in->run_fd, BUILD_LOG, LIMIT_LOG, in->log, e);
    if (r == 0 && in->plan->build.messages == PLAN_MESSAGES_CARGO)
        r = capture_open(&s.messages, in->run_fd, BUILD_MESSAGES, LIMIT_BUILD_MESSAGES,
                         in->messages, e);
    if (r == 0)
        r = run_all(&s, e);
    if (r == 0 && s.messages.cut)
        r = err_set(e, ERR_LIMIT, "build.messages",
                    "the build's messages are longer than %zu bytes",
                    (size_t) LIMIT_BUILD_MESSAGES);
    capture_close(&s.log);
    capture_close(&s.messages);
    if (r == 0)
        r = ask_toolchain(in, &made.toolchain, e);
    out->interrupted = s.interrupted;
    if (r < 0) {
        build_result_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

void build_result_fini(struct build_result *r)
{
    json_free(r->environment);
    free(r->toolchain);
    *r = (struct build_result){.environment = NULL};
}
