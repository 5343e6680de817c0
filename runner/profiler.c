#include "runner/profiler.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "runner/leftover.h"
#include "runner/loop.h"

#define TRIAL_PROGRAM "true"
#define TRIAL_TIMEOUT_MS 60000
#define WORDS_MAX 24

/* Tools that need no command in the definition. NULL-ended; the measured command follows. */
struct known {
    const char *tool;
    enum plan_mode mode;  /* PLAN_MODE_MAX: any */
    const char *switches; /* added for context_switches, or NULL: the tool can't */
    const char *argv[14];
};

static const struct known known_tools[] = {
    {"perf",
     PLAN_MODE_MAX,
     "--switch-events",
     {"perf", "record", "-q", "-F", "{rate}", "-g", "-o", "{profile}/perf.data", "--"}},
    {"samply",
     PLAN_MODE_MAX,
     NULL,
     {"samply", "record", "--save-only", "--rate", "{rate}", "-o", "{profile}/profile.json.gz",
      "--"}},
    {"heaptrack", PLAN_MODE_MAX, NULL, {"heaptrack", "-o", "{profile}/heaptrack"}},
    {"instruments",
     PLAN_MEMORY,
     NULL,
     {"xctrace", "record", "--template", "Allocations", "--output", "{profile}/memory.trace",
      "--target-stdout", "-", "--launch", "--"}},
    {"instruments",
     PLAN_MODE_MAX,
     NULL,
     {"xctrace", "record", "--template", "Time Profiler", "--output", "{profile}/time.trace",
      "--target-stdout", "-", "--launch", "--"}},
};

static const struct known *find_known(const char *tool, enum plan_mode mode)
{
    for (size_t i = 0; i < ARRAY_LEN(known_tools); i++)
        if (!strcmp(known_tools[i].tool, tool) &&
            (known_tools[i].mode == mode || known_tools[i].mode == PLAN_MODE_MAX))
            return &known_tools[i];
    return NULL;
}

/* The names of the tools that are known, each once. */
static size_t tool_names(const char *out[ARRAY_LEN(known_tools)])
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(known_tools); i++)
        if (n == 0 || strcmp(out[n - 1], known_tools[i].tool) != 0)
            out[n++] = known_tools[i].tool;
    return n;
}

/* *e is about this key of the mode ("" for all of it); returns -1. */
static int placed(const struct plan *p, const char *key, struct err *e)
{
    char pointer[64];

    (void) snprintf(pointer, sizeof pointer, "/experiment/modes/%s%s", plan_mode_word(p->mode),
                    key); /* fits: words of ours */
    return definition_blame(p->definition, pointer, e);
}

/* The known tool's words, with the one for context switches before its output. */
static int known_argv(const struct plan *p, const struct known *k, const struct plan_word *words,
                      size_t n_words, struct arena *a, const char *const **out, struct err *e)
{
    bool switches = cJSON_IsTrue(json_get(p->mode_spec, "context_switches"));
    const char **argv = arena_calloc(a, WORDS_MAX, sizeof(*argv));
    size_t n = 0;

    if (!argv)
        return arena_full(e);
    if (switches && !k->switches) {
        (void) err_set(e, ERR_USAGE, "profiler.switches",
                       "mode %s: '%s' records no context switches; give modes.%s.command",
                       plan_mode_word(p->mode), k->tool, plan_mode_word(p->mode));
        return placed(p, "/context_switches", e);
    }
    for (size_t i = 0; k->argv[i]; i++) {
        if (switches && !strcmp(k->argv[i], "-o"))
            argv[n++] = k->switches;
        argv[n] = plan_fill(k->argv[i], words, n_words, a);
        if (!argv[n++])
            return arena_full(e);
    }
    *out = argv;
    return 0;
}

int profiler_check_tool(const struct plan *p, struct err *e)
{
    const cJSON *tool = json_get(p->mode_spec, "tool");
    const char *names[ARRAY_LEN(known_tools)];
    const char *near;

    if (!tool || json_get(p->mode_spec, "command") || find_known(tool->valuestring, p->mode))
        return 0;
    near = text_nearest(tool->valuestring, names, tool_names(names));
    (void) err_set(
        e, ERR_USAGE, "profiler.tool",
        "mode %s: tool '%.80s' is not known here%s%s%s; known are perf, samply, heaptrack "
        "and instruments, for another one give its command (modes.%s.command)",
        plan_mode_word(p->mode), tool->valuestring, near ? ", did you mean '" : "",
        near ? near : "", near ? "'?" : "", plan_mode_word(p->mode));
    return placed(p, "/tool", e);
}

int profiler_prefix(const struct plan *p, const struct plan_word *words, size_t n_words,
                    struct arena *a, const char *const **out, struct err *e)
{
    const cJSON *command = json_get(p->mode_spec, "command");
    const cJSON *tool = json_get(p->mode_spec, "tool");
    const struct known *k = tool ? find_known(tool->valuestring, p->mode) : NULL;
    const char **none;

    if (command)
        return plan_argv(command, words, n_words, a, out, e);
    if (k)
        return known_argv(p, k, words, n_words, a, out, e);
    if (tool)
        return profiler_check_tool(p, e);
    none = arena_calloc(a, 1, sizeof(*none));
    if (!none)
        return arena_full(e);
    *out = none;
    return 0;
}

/* The environment of the trial: the run's rules with the mode's additions. */
static int trial_environment(const struct plan *p, const struct profiler_place *at,
                             const struct plan_word *words, size_t n_words, const char *const **out,
                             struct err *e)
{
    const cJSON *own = json_get(p->run.env, "set");
    const cJSON *mode = json_get(json_get(p->mode_spec, "env"), "set");
    size_t room = (size_t) cJSON_GetArraySize(own) + (size_t) cJSON_GetArraySize(mode) + 2, n = 0;
    struct plan_variable *extra = arena_calloc(at->arena, room, sizeof(*extra));
    const cJSON *sets[] = {own, mode};

    if (!extra)
        return arena_full(e);
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        const cJSON *item = NULL;

        cJSON_ArrayForEach(item, sets[i]) {
            const char *text = plan_fill(item->valuestring, words, n_words, at->arena);

            if (!text)
                return arena_full(e);
            extra[n++] = (struct plan_variable){item->string, text};
        }
    }
    extra[n++] = (struct plan_variable){LEFTOVER_VARIABLE, at->mark};
    struct plan_sources from = {
        .env = p->run.env, .own = at->environment, .extra = extra, .n_extra = n};

    return plan_environment(&from, at->arena, out, NULL, e);
}

static int keep(void *context, const char *bytes, size_t len, struct err *e)
{
    struct buf *b = context;

    (void) e;
    if (b->len + len < LIMIT_KIB(60)) /* the first words tell; a chatty tool is no failure */
        buf_put(b, bytes, len);
    return 0;
}

/* The last line that says something; at most a few hundred bytes. */
static const char *last_words(struct buf *b)
{
    char *at;

    buf_puts(b, "");
    if (b->failed || !b->data)
        return "it says nothing";
    for (size_t n = b->len; n > 0 && strchr(" \t\r\n", b->data[n - 1]); n--)
        b->data[n - 1] = '\0';
    at = strrchr(b->data, '\n');
    at = at ? at + 1 : b->data;
    if (strlen(at) > 300)
        at[300] = '\0';
    return *at ? at : "it says nothing";
}

static int judge(const struct plan *p, const char *name, const struct loop_result *r, struct buf *b,
                 struct err *e)
{
    if (r->end == LOOP_INTERRUPTED)
        return err_set(e, ERR_SYS, "run.interrupted", "interrupted");
    if (r->end == LOOP_TIMED_OUT)
        return err_set(e, ERR_USAGE, "profiler.trial",
                       "mode %s: a trial capture with '%s' did not end within a minute",
                       plan_mode_word(p->mode), name);
    if (!r->status.exited || r->status.code != 0)
        return err_set(e, ERR_USAGE, "profiler.trial",
                       "mode %s: a trial capture with '%s' failed (%s %d): %s",
                       plan_mode_word(p->mode), name, r->status.exited ? "exit" : "signal",
                       r->status.exited ? r->status.code : r->status.signal, last_words(b));
    return 0;
}

static int capture(const struct profiler_place *at, const char *const *argv,
                   const char *const *envp, struct buf *words, struct loop_result *out,
                   struct err *e)
{
    struct child_spec spec = CHILD_SPEC_INIT;
    struct child child = {.pid = -1, .pidfd = -1};
    int pipe_fds[2];
    int r;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_errno(e, "profiler.pipe", "cannot make a pipe");
    spec.argv = argv;
    spec.envp = envp;
    spec.path = plan_env_get(envp, "PATH");
    spec.cwd_fd = at->directory_fd;
    spec.stdout_fd = pipe_fds[1];
    spec.stderr_fd = pipe_fds[1];
    r = child_start(&spec, &child, e);
    (void) close(pipe_fds[1]); /* the child has its own */
    if (r == 0) {
        struct loop loop = {
            .child = &child,
            .streams = {{pipe_fds[0], keep, words}},
            .n_streams = 1,
            .timeout_ms = TRIAL_TIMEOUT_MS,
            .signal_fd = at->signal_fd,
        };

        r = loop_run(&loop, out, e);
    }
    (void) close(pipe_fds[0]); /* was only read */
    child_fini(&child);
    return r;
}

/* The prefix with the trial program after it. */
static int trial_argv(const char *const *prefix, const char *program, struct arena *a,
                      const char *const **out, struct err *e)
{
    const char **argv;
    size_t n = 0;

    while (prefix[n])
        n++;
    argv = arena_calloc(a, n + 2, sizeof(*argv));
    if (!argv)
        return arena_full(e);
    memcpy(argv, prefix, n * sizeof(*argv));
    argv[n] = program;
    *out = argv;
    return 0;
}

int profiler_try(const struct plan *p, struct profiler_place *at, struct err *e)
{
    AUTO_FREE char *found = NULL;
    AUTO_FREE char *program = NULL;
    AUTO_BUF struct buf said = {.data = NULL};
    const char *const *prefix = NULL, *const *argv = NULL, *const *envp = NULL;
    struct plan_word words[] = {{"executable", TRIAL_PROGRAM},
                                {"results", at->directory},
                                {"profile", at->directory},
                                {"rate", p->rate}};
    struct loop_result result = {.end = LOOP_ENDED};

    buf_init(&said, LIMIT_KIB(64));
    if (trial_environment(p, at, words, ARRAY_LEN(words), &envp, e) < 0)
        return -1;
    program = child_find_program(TRIAL_PROGRAM, plan_env_get(envp, "PATH"));
    if (program)
        words[0].value = program;
    if (profiler_prefix(p, words, ARRAY_LEN(words), at->arena, &prefix, e) < 0)
        return -1;
    assert(prefix && envp); /* both succeeded */
    if (!prefix[0])
        return 0;
    found = child_find_program(prefix[0], plan_env_get(envp, "PATH"));
    if (!found) {
        (void) err_set(e, ERR_USAGE, "profiler.missing",
                       "mode %s needs '%s', which is not installed here (PATH of run.env)",
                       plan_mode_word(p->mode), prefix[0]);
        return placed(p, "", e);
    }
    if (trial_argv(prefix, words[0].value, at->arena, &argv, e) < 0 ||
        capture(at, argv, envp, &said, &result, e) < 0)
        return -1;
    at->interrupted = result.end == LOOP_INTERRUPTED;
    return judge(p, prefix[0], &result, &said, e);
}
