/* Preconditions of a run: nothing is built; every failure is the caller's to resolve. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "evidence/sign.h"
#include "runner/checkout.h"
#include "runner/envguard.h"
#include "runner/fetch.h"
#include "runner/host_limits.h"
#include "runner/leftover.h"
#include "runner/machine_lock.h"
#include "runner/profiler.h"
#include "runner/push.h"
#include "runner/run.h"
#include "runner/run_stages.h"
#include "runner/scratch.h"

#define NOTE_MAX 300
#define LOCK_LOOK_MS 1000

static int open_definition(struct run *r, struct err *e)
{
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (r->options.definition)
        path = strdup(r->options.definition);
    else if (checkout_find_definition(r->options.at ? r->git.root : r->cli->directory, r->git.root,
                                      &path, e) < 0)
        return -1;
    if (!path)
        return err_memory(e, "run.memory");
    if (file_read(path, LIMIT_YAML, &bytes, &len, e) < 0)
        return -1;
    const char *name =
        !strncmp(path, r->git.root, strlen(r->git.root)) ? path + strlen(r->git.root) + 1 : path;

    /* --project is part of what is recorded: definition.json and manifest.json name one project. */
    return definition_file_parse_for(name, bytes, len, r->options.project, &r->file, e);
}

static int choose_gate(struct run *r, struct err *e)
{
    AUTO_BUF struct buf names = {.data = NULL};

    r->definition = definition_file_gate(&r->file, r->options.gate);
    if (r->definition)
        return 0;
    buf_init(&names, LIMIT_KIB(16));
    for (size_t i = 0; i < r->file.n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", r->file.gates[i].gate);
    if (r->options.gate)
        return err_set(e, ERR_USAGE, "run.gate", "no gate '%s'; there are: %s", r->options.gate,
                       names.data);
    return err_set(e, ERR_USAGE, "run.gate", "which gate? %s", names.data);
}

static int name_project(struct run *r, struct err *e)
{
    r->project = r->definition->project;
    if (!r->project)
        return err_set(e, ERR_USAGE, "run.project",
                       "no project: set `project: owner/name` in the definition or use --project");
    return 0;
}

/* Without HOME there is no state directory: that matters only to what needs one. */
static int find_state(struct run *r, struct err *e)
{
    AUTO_FREE char *state = NULL;
    struct err ignored = ERR_INIT;

    if (checkout_state_dir(r->cli, &state, &ignored) < 0)
        return 0;
    r->state = arena_printf(&r->arena, "%s", state);
    return r->state ? 0 : arena_full(e);
}

static int check_preconditions(struct run *r, struct err *e)
{
    if (find_state(r, e) < 0)
        return -1;
    if (git_open(r->cli->directory, cli_env(r->cli, "PATH"), r->cli->environment, &r->git, e) < 0) {
        e->kind = ERR_USAGE;
        return -1;
    }
    r->git.scratch = r->state;
    if (r->options.out && checkout_check_ignored(&r->git, r->options.out, e) < 0)
        return -1;
    return reference_open(r->options.baseline, r->options.baseline_sha256, &r->reference, e);
}

/* What can't be recorded is refused now, not when the evidence is written. */
static int check_environments(struct run *r, struct err *e)
{
    const cJSON *const rules[] = {r->plan.build.env, r->plan.run.env};
    const char *const *ignored = NULL;

    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        struct plan_sources from = {.env = rules[i], .own = r->cli->environment};

        if (plan_environment(&from, &r->arena, &ignored, NULL, e) < 0)
            return -1;
    }
    return 0;
}

static int read_definition(struct run *r, struct err *e)
{
    if (open_definition(r, e) < 0 || choose_gate(r, e) < 0 || name_project(r, e) < 0 ||
        audit_check_policy(r->definition, e) < 0 || host_limits_check(r->definition, e) < 0 ||
        plan_read(r->definition, r->options.mode, &r->plan, e) < 0)
        return -1;
    if (envguard_check(&r->plan, r->cli->environment, e) < 0 ||
        envguard_patterns(&r->plan, &r->patterns, e) < 0 || check_environments(r, e) < 0)
        return -1;
    return envguard_profile(&r->plan, r->git.root_fd, e);
}

static int open_directory(struct run *r, struct err *e)
{
    AUTO_FREE char *state = NULL;
    AUTO_FREE char *runs = NULL;
    AUTO_FREE char *path = NULL;
    size_t swept;

    r->started_us = clock_realtime_us();
    r->started_ns = clock_monotonic_ns();
    if (rundir_new_id(r->started_us, r->id, e) < 0)
        return -1;
    if (r->state)
        (void) scratch_sweep(r->state, false); /* tidying: how much there was is of no interest */
    if (r->options.out)
        return rundir_open(r->options.out, &r->dir, e);
    if (checkout_state_dir(r->cli, &state, e) < 0)
        return -1;
    if (asprintf(&runs, "%s/runs", state) < 0 || asprintf(&path, "%s/runs/%s", state, r->id) < 0)
        return err_memory(e, "run.memory");
    swept = rundir_sweep(runs);
    if (swept > 0)
        run_say(r, "swept", "%zu unfinished runs of runners that died", swept);
    return rundir_open(path, &r->dir, e);
}

/* --at: the definition is the revision's own, so the checkout comes first, under the lock. */
static int move_to_revision(struct run *r, struct err *e)
{
    AUTO_FREE char *state = NULL;

    if (!r->options.at)
        return 0;
    return checkout_state_dir(r->cli, &state, e) < 0
               ? -1
               : checkout_at(&r->git, r->options.at, state, e);
}

/* A mode's tool must exist and work before the build, not be missed after an hour. */
static int try_profiler(struct run *r, struct err *e)
{
    AUTO_SCRATCH struct scratch scratch = {.fd = -1};

    if (r->plan.mode == PLAN_CLEAN || r->options.build_only)
        return 0;
    if (scratch_open(r->state, &scratch, e) < 0)
        return -1;
    struct profiler_place at = {.directory = scratch.path,
                                .directory_fd = scratch.fd,
                                .environment = r->cli->environment,
                                .signal_fd = r->signal_fd,
                                .mark = r->mark,
                                .arena = &r->arena};

    int result = profiler_try(&r->plan, &at, e);

    r->interrupted = at.interrupted;
    return result;
}

/* An hour of measuring is not spent for a server that will not take it. */
static int check_push(struct run *r, struct err *e)
{
    const struct push_target t = {.server = r->options.server,
                                  .token_file = r->options.token_file,
                                  .project = r->project,
                                  .gate = r->definition->gate};
    AUTO_PRIVATE_KEY struct private_key *key = NULL;

    if (!r->options.push)
        return 0;
    if (private_key_load(r->options.key, &key, e) < 0 || push_check_server(&t, e) < 0)
        return -1;
    return push_check_key(&t, public_key_fingerprint(private_key_public(key)),
                          r->plan.machine_class, e);
}

/* No baseline named, but a server that knows the reviewed one: it is fetched and checked before the
 * build. Diagnostic runs are compared with nothing. */
static int fetch_reference(struct run *r, struct err *e)
{
    struct fetch_question q = {
        .server = r->options.server,
        .token_file = r->options.token_file,
        .project = r->project,
        .gate = r->definition->gate,
        .machine_class = r->plan.machine_class,
        .state = r->state,
        .keyring = r->options.baseline_keys,
    };
    char note[NOTE_MAX];

    if (r->options.baseline_keys && (r->reference.present || !q.server || !*q.server))
        return err_set(e, ERR_USAGE, "run.baseline_key",
                       "--baseline-key is about the baseline that --server gives");
    if (r->reference.present || !q.server || !*q.server || r->options.build_only ||
        r->plan.mode != PLAN_CLEAN)
        return check_push(r, e);
    if (fetch_baseline(&q, &r->reference, note, sizeof(note), e) < 0)
        return -1;
    run_say(r, "baseline", "%s", note);
    if (check_push(r, e) < 0)
        return -1;
    if (r->reference.present)
        run_say(r, "baseline", "%s",
                q.keyring ? "signed by a key of --baseline-key"
                          : "who signed it is not checked, the server's word is taken "
                            "(--baseline-key PUB.pem checks it)");
    return 0;
}

/* Under the lock, before anything is started: nothing of an earlier run is measured beside this
 * one. */
static int end_leftovers(struct run *r, struct err *e)
{
    AUTO_FREE char *group = sysroot_read(&r->sysroot, "proc/self/cgroup");
    AUTO_FD int mount_fd = openat(r->sysroot.fd, BOX_MOUNT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct machine_program last;
    struct leftovers_ended ended;
    bool known = machine_lock_last(r->lock_fd, &r->sysroot, &last);

    if (leftovers_end(&r->sysroot, known ? &last : NULL, &ended, e) < 0)
        return -1;
    if (group)
        box_sweep(mount_fd, group);
    r->leftovers_ended = ended.n;
    if (ended.n > 0)
        run_say(r, "leftover", "ended %zu process%s of an earlier run whose runner was killed: %s",
                ended.n, ended.n == 1 ? "" : "es", ended.names);
    machine_lock_note(r->lock_fd, 0);
    return leftover_mark(&r->sysroot, r->mark, e);
}

/* Another measurement goes on: what to do. */
static int busy(const struct run *r, struct err *e)
{
    const struct err was = *e;

    return err_set(e, ERR_BUSY, "lock.busy", "%s: run again when it has ended%s", was.text,
                   r->options.wait_s ? "" : ", or wait for it with --wait SECONDS");
}

/* One measurement at a time; with --wait the end of another one is waited for. */
static int take_lock(struct run *r, struct err *e)
{
    const char *path = machine_lock_path(cli_env(r->cli, MACHINE_LOCK_VARIABLE));
    uint64_t until = clock_monotonic_ns() + r->options.wait_s * 1000000000U;
    struct pollfd p = {.fd = r->signal_fd, .events = POLLIN};
    int signal = 0;

    for (bool told = false; machine_lock_take(path, &r->lock_fd, e) < 0; told = true) {
        if (e->kind != ERR_BUSY)
            return -1;
        if (clock_monotonic_ns() >= until)
            return busy(r, e);
        if (!told)
            run_say(r, "waiting", "%s", e->text);
        if (poll(&p, 1, LOCK_LOOK_MS) != 0 && loop_signals_pending(r->signal_fd, &signal)) {
            r->interrupted = true;
            return err_set(e, ERR_SYS, "run.interrupted",
                           "interrupted while waiting for the machine");
        }
        *e = (struct err) ERR_INIT;
    }
    return 0;
}

int run_prepare(struct run *r, struct err *e)
{
    r->stage = "prepare";
    /* Overrides are refused before anything else is done, and again for the revision's own
     * definition. */
    if (check_preconditions(r, e) < 0 || (!r->options.at && read_definition(r, e) < 0))
        return -1;
    if (take_lock(r, e) < 0 || sysroot_open("/", &r->sysroot, e) < 0 || end_leftovers(r, e) < 0 ||
        move_to_revision(r, e) < 0 || (r->options.at && read_definition(r, e) < 0))
        return -1;
    if (fetch_reference(r, e) < 0)
        return -1;
    if (child_adopt_orphans(e) < 0 || try_profiler(r, e) < 0)
        return -1;
    return open_directory(r, e);
}
