#include "runner/measure.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "runner/capture.h"
#include "runner/interference.h"

#define DEFAULT_INTERVAL_MS 500
#define MIN_INTERVAL_MS 10
#define SCAN_MS 10000
#define FIRST_LOOK_MS 20 /* the loader has mapped the libraries by then */
#define NS_PER_MS ((uint64_t) 1000000)
#define CGROUP_MOUNT "/sys/fs/cgroup"

/* What the loop's callbacks share. */
struct point {
    const struct measure_input *in;
    struct child child;
    struct markers *markers;
    struct sampler *sampler;
    struct mapped *mapped;
    struct interference *interference;
    struct capture log;
    uint64_t start_ns;
    bool looked; /* the executable was checked through /proc */
};

static int look(struct point *p, struct err *e)
{
    if (!p->looked && mapped_check_exe(p->mapped, p->child.pid, p->in->artifact, e) < 0)
        return -1;
    p->looked = true;
    return mapped_scan(p->mapped, p->child.pid, e);
}

static int on_sample(void *context, uint64_t missed, struct err *e)
{
    struct point *p = context;

    (void) missed; /* a missed tick is a gap in the samples, and coverage sees gaps */
    (void) e;
    sampler_take(p->sampler, (clock_monotonic_ns() - p->start_ns) / NS_PER_MS);
    interference_tick(p->interference);
    return 0;
}

static int on_scan(void *context, uint64_t missed, struct err *e)
{
    struct point *p = context;

    (void) missed;
    interference_scan(p->interference);
    return look(p, e);
}

static int on_first_look(void *context, uint64_t missed, struct err *e)
{
    (void) missed;
    return look(context, e);
}

static void on_marker(void *context, const char *name)
{
    struct point *p = context;

    if (p->in->progress)
        p->in->progress(p->in->progress_context, name,
                        (clock_monotonic_ns() - p->start_ns) / NS_PER_MS);
}

/* Markers are also moments to see what is mapped: a program may load more as it goes. */
static int on_phase(void *context, const char *bytes, size_t len, struct err *e)
{
    struct point *p = context;

    return markers_data(p->markers, bytes, len, e) < 0 ? -1 : look(p, e);
}

static bool is_mine(const void *context, pid_t pid)
{
    const struct point *p = context;

    return p->sampler && sampler_tracks(p->sampler, pid);
}

static bool is_executable_word(const cJSON *command)
{
    const cJSON *first = command ? command->child : NULL;

    return first && !strcmp(first->valuestring, "{executable}");
}

static size_t count(const char *const *argv)
{
    size_t n = 0;

    while (argv[n])
        n++;
    return n;
}

/* perf as the default profiler of a mode that only names it. */
static int default_tool(const struct measure_input *in, const struct plan_word *words,
                        size_t n_words, const char *const **out, struct err *e)
{
    const cJSON *tool = json_get(in->plan->mode_spec, "tool");
    const cJSON *rate = json_get(in->plan->mode_spec, "rate");
    bool switches = cJSON_IsTrue(json_get(in->plan->mode_spec, "context_switches"));
    AUTO_JSON cJSON *command = cJSON_CreateArray();
    char text[NUM_DOUBLE_TEXT];
    const char *argv[16];
    size_t n = 0;

    if (!tool || strcmp(tool->valuestring, "perf") != 0)
        return err_set(e, ERR_USAGE, "measure.tool",
                       "mode %s names no command and no tool that has a default",
                       plan_mode_word(in->plan->mode));
    (void) num_double_shortest(rate ? rate->valuedouble : 499.0,
                               text); /* its length is not needed */
    argv[n++] = "perf";
    argv[n++] = "record";
    argv[n++] = "-q";
    argv[n++] = "-F";
    argv[n++] = text;
    argv[n++] = "-g";
    if (switches)
        argv[n++] = "--switch-events";
    argv[n++] = "-o";
    argv[n++] = "{profile}/perf.data";
    argv[n++] = "--";
    for (size_t i = 0; command && i < n; i++)
        if (!cJSON_AddItemToArray(command, cJSON_CreateString(argv[i])))
            return arena_full(e);
    if (!command)
        return arena_full(e);
    return plan_argv(command, words, n_words, in->arena, out, e);
}

int measure_argv(const struct measure_input *in, const char *const **out, bool *out_by_descriptor,
                 struct err *e)
{
    const struct plan_word words[] = {
        {"executable", in->artifact->path},
        {"results", in->results_path},
        {"profile", in->profile_path ? in->profile_path : ""},
    };
    const cJSON *tool = json_get(in->plan->mode_spec, "command");
    const char *const *own = NULL, *const *prefix = NULL;
    const char **both;
    size_t n_prefix, n_own;

    if (plan_argv(in->plan->run.command, words, ARRAY_LEN(words), in->arena, &own, e) < 0)
        return -1;
    *out_by_descriptor = !in->plan->mode_spec && is_executable_word(in->plan->run.command);
    *out = own;
    if (!in->plan->mode_spec || (!tool && !json_get(in->plan->mode_spec, "tool"))) {
        *out_by_descriptor = is_executable_word(in->plan->run.command);
        return 0;
    }
    if (tool ? plan_argv(tool, words, ARRAY_LEN(words), in->arena, &prefix, e) < 0
             : default_tool(in, words, ARRAY_LEN(words), &prefix, e) < 0)
        return -1;
    assert(prefix && own); /* both succeeded */
    n_prefix = count(prefix);
    n_own = count(own);
    both = arena_calloc(in->arena, n_prefix + n_own + 1, sizeof(*both));
    if (!both)
        return arena_full(e);
    memcpy(both, prefix, n_prefix * sizeof(*both));
    memcpy(both + n_prefix, own, n_own * sizeof(*both));
    *out = both;
    return 0;
}

static const char *conditioning_names(const struct measure_input *in)
{
    const cJSON *step = NULL;
    const char *list = "";

    cJSON_ArrayForEach(step, in->plan->conditioning)
    {
        if (json_get(step, "command"))
            continue;
        list = arena_printf(in->arena, "%s%s%s", list, *list ? "," : "",
                            json_get(step, "name")->valuestring);
        if (!list)
            return NULL;
    }
    return list;
}

/* Every member of a `set` whose text names a place, or all of them. */
static int add_filled(const struct measure_input *in, const cJSON *set, bool all,
                      struct plan_variable *to, size_t *n, struct err *e)
{
    const struct plan_word words[] = {
        {"executable", in->artifact->path},
        {"results", in->results_path},
        {"profile", in->profile_path ? in->profile_path : ""},
    };
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, set)
    {
        const char *text = item->valuestring;

        if (!all && !strchr(text, '{'))
            continue;
        text = plan_fill(text, words, ARRAY_LEN(words), in->arena);
        if (!text)
            return arena_full(e);
        to[(*n)++] = (struct plan_variable){item->string, text};
    }
    return 0;
}

/* The run's environment: its own rules, the mode's additions, and the contract with the workload.
 */
static int make_environment(const struct measure_input *in, bool with_markers,
                            const char *const **envp, cJSON **record, struct err *e)
{
    const cJSON *own = json_get(in->plan->run.env, "set");
    const cJSON *mode = json_get(json_get(in->plan->mode_spec, "env"), "set");
    size_t room = (size_t) cJSON_GetArraySize(own) + (size_t) cJSON_GetArraySize(mode) + 4, n = 0;
    struct plan_variable *extra = arena_calloc(in->arena, room, sizeof(*extra));
    const char *names = conditioning_names(in);

    if (!names || !extra)
        return arena_full(e);
    if (add_filled(in, own, false, extra, &n, e) < 0 ||
        add_filled(in, mode, true, extra, &n, e) < 0)
        return -1;
    extra[n++] = (struct plan_variable){"CLEANRUN_RESULTS", in->results_path};
    extra[n++] = (struct plan_variable){"CLEANRUN_MODE", plan_mode_word(in->plan->mode)};
    extra[n++] = (struct plan_variable){"CLEANRUN_CONDITIONING", names};
    if (with_markers)
        extra[n++] = (struct plan_variable){"CLEANRUN_PHASE_FD", "3"};
    struct plan_sources from = {
        .env = in->plan->run.env, .own = in->environment, .extra = extra, .n_extra = n};

    return plan_environment(&from, in->arena, envp, record, e);
}

struct pipes {
    int out[2], err[2], phase[2];
};

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0)
            (void) close(pair[i]); /* a pipe end has nothing to lose */
        pair[i] = -1;
    }
}

static void pipes_close(struct pipes *p)
{
    close_pair(p->out);
    close_pair(p->err);
    close_pair(p->phase);
}

static int pipes_open(struct pipes *p, struct err *e)
{
    *p = (struct pipes){.out = {-1, -1}, .err = {-1, -1}, .phase = {-1, -1}};
    if (pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err, O_CLOEXEC) < 0 ||
        pipe2(p->phase, O_CLOEXEC) < 0) {
        pipes_close(p);
        return err_errno(e, "measure.pipe", "cannot make a pipe");
    }
    return 0;
}

static int open_log(const struct measure_input *in, struct capture *log, struct err *e)
{
    int fd =
        openat(in->run_fd, RUN_LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);

    if (fd < 0)
        return err_errno(e, "measure.log", "cannot create " RUN_LOG);
    *log = (struct capture){.dir_fd = in->run_fd, .name = RUN_LOG, .fd = fd, .max = LIMIT_LOG};
    return 0;
}

static int open_workdir(const struct measure_input *in, int *out, struct err *e)
{
    if (in->plan->run.workdir)
        return file_open_dir_at(in->source_fd, in->plan->run.workdir, out, e);
    *out = fcntl(in->source_fd, F_DUPFD_CLOEXEC, 0);
    return *out < 0 ? err_errno(e, "measure.directory", "cannot open the work tree") : 0;
}

/* What to start, and how. */
struct command {
    const char *const *argv, *const *envp;
    bool by_descriptor;
    const struct box *box; /* NULL: none */
};

/* Starts the program; on success the child's pipe ends are closed here. */
static int start(const struct measure_input *in, const struct command *c, struct pipes *pipes,
                 struct child *child, struct err *e)
{
    struct child_spec spec = CHILD_SPEC_INIT;
    AUTO_FD int cwd = -1;

    if (open_workdir(in, &cwd, e) < 0)
        return -1;
    spec.argv = c->argv;
    spec.envp = c->envp;
    spec.path = plan_env_get(c->envp, "PATH");
    spec.exec_fd = c->by_descriptor ? in->artifact->fd : -1;
    spec.cwd_fd = cwd;
    spec.stdout_fd = pipes->out[1];
    spec.stderr_fd = pipes->err[1];
    spec.extra_fd = pipes->phase[1];
    spec.cgroup_procs_fd = c->box ? c->box->procs_fd : -1;
    if (child_start(&spec, child, e) < 0)
        return -1;
    for (int *end = (int[]){0, 1, 2, -1}; *end >= 0; end++) {
        int *pair = *end == 0 ? pipes->out : *end == 1 ? pipes->err : pipes->phase;

        (void) close(pair[1]); /* the child has its own */
        pair[1] = -1;
    }
    return 0;
}

int measure_step(const struct measure_input *in, const cJSON *step, uint64_t timeout_ms,
                 struct loop_result *out, struct err *e)
{
    const struct plan_word words[] = {{"executable", in->artifact->path},
                                      {"results", in->results_path}};
    const cJSON *command = json_get(step, "command");
    struct command c = {.by_descriptor = is_executable_word(command)};
    struct pipes pipes;
    struct child child = {.pid = -1, .pidfd = -1};
    struct capture log = {.fd = -1};

    if (plan_argv(command, words, ARRAY_LEN(words), in->arena, &c.argv, e) < 0 ||
        make_environment(in, false, &c.envp, NULL, e) < 0 || open_log(in, &log, e) < 0)
        return -1;
    (void) capture_note(&log, "conditioning %s", json_get(step, "name")->valuestring); /* talk */
    int r = pipes_open(&pipes, e);

    if (r == 0)
        r = start(in, &c, &pipes, &child, e);
    if (r == 0) {
        struct loop loop = {
            .child = &child,
            .streams = {{pipes.out[0], capture_data, &log}, {pipes.err[0], capture_data, &log}},
            .n_streams = 2,
            .timeout_ms = timeout_ms,
            .signal_fd = in->signal_fd};

        r = loop_run(&loop, out, e);
    }
    child_fini(&child);
    pipes_close(&pipes);
    capture_close(&log);
    return r;
}

static void open_box(const struct measure_input *in, struct box *box)
{
    struct sysroot life;
    struct err ignored = ERR_INIT;
    AUTO_FREE char *self = NULL;

    if (sysroot_open("/", &life, &ignored) < 0) {
        box_none(box, "no /");
        return;
    }
    self = sysroot_read(&life, "proc/self/cgroup");
    sysroot_close(&life);
    box_open(box, CGROUP_MOUNT, self ? self : "", in->run_id);
}

static uint64_t interval_ms(const struct plan *p)
{
    uint64_t ms = p->sample_interval_ms ? p->sample_interval_ms : DEFAULT_INTERVAL_MS;

    return ms < MIN_INTERVAL_MS ? MIN_INTERVAL_MS : ms;
}

static size_t ring_size(const struct plan *p)
{
    uint64_t wanted = p->run.timeout_ms / interval_ms(p) + 64;

    return wanted < LIMIT_SAMPLES ? (size_t) wanted : LIMIT_SAMPLES;
}

static int supervise(struct point *p, struct pipes *pipes, const struct box *box,
                     struct measure *out, struct err *e)
{
    uint64_t every = interval_ms(p->in->plan) * NS_PER_MS;
    struct loop loop = {
        .child = &p->child,
        .box = box,
        .streams = {{pipes->out[0], capture_data, &p->log},
                    {pipes->err[0], capture_data, &p->log},
                    {pipes->phase[0], on_phase, p}},
        .n_streams = 3,
        .timers = {{every, every, on_sample, p},
                   {SCAN_MS * NS_PER_MS, SCAN_MS * NS_PER_MS, on_scan, p},
                   {FIRST_LOOK_MS * NS_PER_MS, 0, on_first_look, p}},
        .n_timers = 3,
        .timeout_ms = p->in->plan->run.timeout_ms,
        .signal_fd = p->in->signal_fd,
    };

    return loop_run(&loop, &out->loop, e);
}

/* Everything that must exist before the program starts, so that nothing of it costs time
 * afterwards. */
static int prepare(const struct measure_input *in, struct point *p, struct measure *out,
                   struct err *e)
{
    out->markers = calloc(1, sizeof(*out->markers));
    if (!out->markers)
        return err_set(e, ERR_NOMEM, "measure.memory", "out of memory");
    p->in = in;
    p->markers = out->markers;
    if (mapped_new(in->source_root, &out->mapped, e) < 0 || open_log(in, &p->log, e) < 0)
        return -1;
    p->mapped = out->mapped;
    return 0;
}

static int run_point(const struct measure_input *in, struct point *p, struct box *box,
                     struct measure *out, struct err *e)
{
    struct command c = {.box = box_present(box) ? box : NULL};
    struct pipes pipes;
    int r;

    if (measure_argv(in, &c.argv, &c.by_descriptor, e) < 0 ||
        make_environment(in, true, &c.envp, &out->environment, e) < 0 || pipes_open(&pipes, e) < 0)
        return -1;
    r = start(in, &c, &pipes, &p->child, e);
    if (r == 0) {
        p->start_ns = clock_monotonic_ns();
        markers_init(p->markers, p->start_ns);
        p->markers->seen = on_marker;
        p->markers->context = p;
        p->looked = !c.by_descriptor; /* a profiler is not the artifact; its child is checked by
                                         digest at the end */
        r = sampler_new(in->sysroot, p->child.pid, box, ring_size(in->plan), &out->sampler, e);
        p->sampler = out->sampler;
        if (r == 0)
            r = interference_new(in->sysroot, is_mine, p, &p->interference, e);
        if (r == 0)
            r = supervise(p, &pipes, box, out, e);
        else
            child_signal(&p->child, SIGKILL);
    }
    pipes_close(&pipes);
    return r;
}

int measure_run(const struct measure_input *in, struct measure *out, struct err *e)
{
    struct measure made = {.markers = NULL};
    struct point p = {.child = {.pid = -1, .pidfd = -1}, .log = {.fd = -1}};
    struct box box;
    int r;

    open_box(in, &box);
    made.had_box = box_present(&box);
    memcpy(made.why_no_box, box.why_not, sizeof(made.why_no_box));
    r = prepare(in, &p, &made, e);
    if (r == 0)
        r = run_point(in, &p, &box, &made, e);
    box_read(&box, &made.box);
    if (r == 0)
        r = interference_record(p.interference, sampler_cpu_us(made.sampler), &box,
                                &made.interference, e);
    made.log_cut = p.log.cut;
    capture_close(&p.log);
    child_fini(&p.child);
    interference_free(p.interference);
    box_close(&box);
    if (r < 0) {
        measure_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

void measure_fini(struct measure *m)
{
    free(m->markers);
    sampler_free(m->sampler);
    mapped_free(m->mapped);
    json_free(m->interference);
    json_free(m->environment);
    *m = (struct measure){.markers = NULL};
}
