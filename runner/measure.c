#include "runner/measure.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "runner/capture.h"
#include "runner/interference.h"
#include "runner/machine_lock.h"
#include "runner/measure_command.h"

#define DEFAULT_INTERVAL_MS 500
#define SCAN_MS 10000
#define SNAPSHOT_PROCESSES 256
#define FIRST_LOOK_MS 20 /* the loader has mapped the libraries by then */
#define NS_PER_MS ((uint64_t) 1000000)

/* What the loop's callbacks share. */
struct point {
    const struct measure_input *in;
    struct child child;
    struct markers *markers;
    struct sampler *sampler;
    struct mapped *mapped;
    struct snapshots *snapshots;
    struct interference *interference;
    struct capture log;
    struct pace *pace;
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

static uint64_t own_cpu_ns(void)
{
    struct timespec t = {0};

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) < 0)
        return 0;
    return (uint64_t) t.tv_sec * 1000000000U + (uint64_t) t.tv_nsec;
}

static int on_sample(void *context, uint64_t missed, struct err *e)
{
    struct point *p = context;
    uint64_t now = clock_monotonic_ns();

    (void) missed; /* a gap in the samples, and pace sees gaps */
    (void) e;
    pace_tick(p->pace, now, own_cpu_ns());
    sampler_take(p->sampler, (now - p->start_ns) / NS_PER_MS);
    interference_tick(p->interference, now);
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

/* name NULL: by the clock. */
static void take_snapshot(struct point *p, const char *name)
{
    pid_t pids[SNAPSHOT_PROCESSES];
    size_t n;

    if (!p->snapshots || !p->sampler || (name && !snapshots_want(p->snapshots, name)))
        return;
    n = sampler_list(p->sampler, pids, ARRAY_LEN(pids));
    snapshots_take(p->snapshots, p->in->sysroot, pids, n, name,
                   (clock_monotonic_ns() - p->start_ns) / NS_PER_MS);
}

static int on_clock(void *context, uint64_t missed, struct err *e)
{
    (void) missed; /* the next look tells its own time */
    (void) e;
    take_snapshot(context, NULL);
    return 0;
}

static void on_marker(void *context, const char *name)
{
    struct point *p = context;

    take_snapshot(p, name);

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

/* A program or directory that is not there was named by the definition: the caller's to resolve. */
static int absent(struct err *e)
{
    if (e->kind == ERR_NOTFOUND)
        e->kind = ERR_USAGE;
    return -1;
}

/* Starts the program; on success the child's pipe ends are closed here. */
static int start(const struct measure_input *in, const struct command *c, struct pipes *pipes,
                 struct child *child, struct err *e)
{
    struct child_spec spec = CHILD_SPEC_INIT;
    AUTO_FD int cwd = -1;

    if (open_workdir(in, &cwd, e) < 0)
        return absent(e);
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
        return absent(e);
    machine_lock_note(in->lock_fd, child->pid);
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
    struct command c = {.by_descriptor = measure_is_executable_word(command)};
    struct pipes pipes;
    struct child child = {.pid = -1, .pidfd = -1};
    struct capture log = {.fd = -1};

    if (plan_argv(command, words, ARRAY_LEN(words), in->arena, &c.argv, e) < 0 ||
        measure_environment(in, false, &c.envp, NULL, e) < 0 ||
        capture_append(&log, in->run_fd, RUN_LOG, LIMIT_LOG, in->log, e) < 0)
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
    box_open(box, "/" BOX_MOUNT, self ? self : "", in->run_id);
}

static uint64_t interval_ms(const struct plan *p)
{
    return p->sample_interval_ms > 0 ? p->sample_interval_ms : DEFAULT_INTERVAL_MS;
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
    uint64_t slack = sampler_slack_ns(every);
    struct loop loop = {
        .child = &p->child,
        .box = box,
        .streams = {{pipes->out[0], capture_data, &p->log},
                    {pipes->err[0], capture_data, &p->log},
                    {pipes->phase[0], on_phase, p}},
        .n_streams = 3,
        .timers = {{every, every, slack, on_sample, p},
                   {SCAN_MS * NS_PER_MS, SCAN_MS * NS_PER_MS, slack, on_scan, p},
                   {FIRST_LOOK_MS * NS_PER_MS, 0, 0, on_first_look, p}},
        .n_timers = 3,
        .timeout_ms = p->in->plan->run.timeout_ms,
        .signal_fd = p->in->signal_fd,
    };

    uint64_t look_ns = p->in->plan->snapshot_every_ms * NS_PER_MS;

    if (look_ns > 0)
        loop.timers[loop.n_timers++] = (struct loop_timer){look_ns, look_ns, 0, on_clock, p};
    pace_start(&out->pace, p->start_ns, own_cpu_ns(), every);
    p->pace = &out->pace;
    if (loop_run(&loop, &out->loop, e) < 0)
        return -1;
    pace_tick(&out->pace, p->start_ns + out->loop.wall_ns, own_cpu_ns());
    return 0;
}

/* Everything that must exist before the program starts, so that nothing of it costs time
 * afterwards. */
static int prepare(const struct measure_input *in, struct point *p, struct measure *out,
                   struct err *e)
{
    out->markers = calloc(1, sizeof(*out->markers));
    if (!out->markers)
        return err_memory(e, "measure.memory");
    p->in = in;
    p->markers = out->markers;
    const struct snapshots_plan looks = {
        .phases = in->plan->snapshots,
        .mode = plan_mode_word(in->plan->mode),
        .executable_fd = in->artifact->fd,
        .every_ms = in->plan->snapshot_every_ms,
        .dump_signal = in->plan->dump_signal,
    };

    if ((looks.phases || looks.every_ms > 0) && snapshots_new(&looks, &out->snapshots, e) < 0)
        return -1;
    p->snapshots = out->snapshots;
    if (mapped_new(in->source_root, &out->mapped, e) < 0 ||
        capture_append(&p->log, in->run_fd, RUN_LOG, LIMIT_LOG, in->log, e) < 0)
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
        measure_environment(in, true, &c.envp, &out->environment, e) < 0 ||
        pipes_open(&pipes, e) < 0)
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
        if (r == 0 && in->plan->mode == PLAN_CLEAN) /* else a profiler's helpers are ours, too */
            sampler_adopt(out->sampler, getpid());
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
    snapshots_free(m->snapshots);
    json_free(m->interference);
    json_free(m->environment);
    *m = (struct measure){.markers = NULL};
}
