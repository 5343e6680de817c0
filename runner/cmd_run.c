/* cleanrun run: the canonical clean run, step by step. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/text.h"
#include "runner/capture.h"
#include "runner/checkout.h"
#include "runner/commands.h"
#include "runner/control.h"
#include "runner/elf.h"
#include "runner/envguard.h"
#include "runner/host.h"
#include "runner/interference.h"
#include "runner/run.h"
#include "runner/submit.h"

#define DEFAULT_LOCK "/run/lock/cleanrun.lock"
#define FALLBACK_LOCK "/tmp/cleanrun.lock"
#define QUIET_LOOK_MS 1000
#define SHORT_LOOK_MS 250

/* Preconditions: nothing is written, nothing is built; every failure is the caller's to resolve. */

static int open_definition(struct run *r, struct err *e)
{
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (r->options.definition)
        path = strdup(r->options.definition);
    else if (find_definition(r->options.at ? r->git.root : r->cli->directory, r->git.root, &path,
                             e) < 0)
        return -1;
    if (!path)
        return err_set(e, ERR_NOMEM, "run.memory", "out of memory");
    if (file_read(path, LIMIT_YAML, &bytes, &len, e) < 0)
        return -1;
    const char *name =
        !strncmp(path, r->git.root, strlen(r->git.root)) ? path + strlen(r->git.root) + 1 : path;

    return definition_file_parse(name, bytes, len, &r->file, e);
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
    r->project = r->options.project ? r->options.project : r->definition->project;
    if (!r->project)
        return err_set(e, ERR_USAGE, "run.project",
                       "no project: set `project: owner/name` in the definition or use --project");
    if (!text_is_project(r->project))
        return err_set(e, ERR_USAGE, "run.project", "'%s' is no project, owner/name", r->project);
    return 0;
}

/* A mode's tool must exist before the build, not be missed after it. */
static int check_tool(const struct run *r, struct err *e)
{
    const cJSON *command = json_get(r->plan.mode_spec, "command");
    const cJSON *tool = json_get(r->plan.mode_spec, "tool");
    const char *name = command ? command->child->valuestring : tool ? tool->valuestring : NULL;
    const char *path = cli_env(r->cli, "PATH");
    AUTO_FREE char *found = NULL;

    if (!name || name[0] == '{')
        return 0;
    found = child_find_program(name, path);
    if (!found)
        return err_set(e, ERR_USAGE, "run.tool", "mode %s needs '%s', which is not installed here",
                       plan_mode_word(r->plan.mode), name);
    return 0;
}

static int check_preconditions(struct run *r, struct err *e)
{
    if (git_open(r->cli->directory, cli_env(r->cli, "PATH"), r->cli->environment, &r->git, e) < 0) {
        e->kind = ERR_USAGE;
        return -1;
    }
    if (r->options.out && check_out_ignored(&r->git, r->options.out, e) < 0)
        return -1;
    return reference_open(r->options.baseline, r->options.baseline_sha256, &r->reference, e);
}

static int take_lock(struct run *r, struct err *e)
{
    const char *path = cli_env(r->cli, "CLEANRUN_LOCK");
    struct stat st;

    if (!path || !*path)
        path = stat("/run/lock", &st) == 0 && S_ISDIR(st.st_mode) ? DEFAULT_LOCK : FALLBACK_LOCK;
    return machine_lock(path, &r->lock_fd, e);
}

static int read_definition(struct run *r, struct err *e)
{
    if (open_definition(r, e) < 0 || choose_gate(r, e) < 0 || name_project(r, e) < 0 ||
        plan_read(r->definition, r->options.mode, &r->plan, e) < 0)
        return -1;
    if (envguard_check(&r->plan, r->cli->environment, e) < 0 ||
        envguard_patterns(&r->plan, &r->patterns, e) < 0 || check_tool(r, e) < 0)
        return -1;
    return envguard_profile(&r->plan, r->git.root_fd, e);
}

static int open_directory(struct run *r, struct err *e)
{
    AUTO_FREE char *state = NULL;
    AUTO_FREE char *runs = NULL;
    AUTO_FREE char *path = NULL;
    size_t swept;

    if (run_id_new(r->id, e) < 0)
        return -1;
    r->started_us = clock_realtime_us();
    if (r->options.out)
        return rundir_open(r->options.out, &r->dir, e);
    if (state_dir(r->cli, &state, e) < 0)
        return -1;
    if (asprintf(&runs, "%s/runs", state) < 0 || asprintf(&path, "%s/runs/%s", state, r->id) < 0)
        return err_set(e, ERR_NOMEM, "run.memory", "out of memory");
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
    return state_dir(r->cli, &state, e) < 0 ? -1 : checkout_at(&r->git, r->options.at, state, e);
}

static int prepare(struct run *r, struct err *e)
{
    r->stage = "prepare";
    /* Overrides are refused before anything else is done, and again for the revision's own
     * definition. */
    if (check_preconditions(r, e) < 0 || (!r->options.at && read_definition(r, e) < 0))
        return -1;
    if (take_lock(r, e) < 0 || move_to_revision(r, e) < 0 ||
        (r->options.at && read_definition(r, e) < 0))
        return -1;
    if (sysroot_open("/", &r->sysroot, e) < 0 || child_adopt_orphans(e) < 0)
        return -1;
    return open_directory(r, e);
}

/* The run. From here on a failure is ERROR: the directory is kept with error.json. */

static int write_definition(struct run *r, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (definition_write(r->definition, &bytes, &len, e) < 0)
        return -1;
    return file_write_at(r->dir.fd, "definition.json", bytes, len, 0644, e);
}

static int fingerprint(struct run *r, struct err *e)
{
    AUTO_JSON cJSON *j = NULL;
    AUTO_BUF struct buf b = {.data = NULL};

    r->stage = "fingerprint";
    if (write_definition(r, e) < 0 || source_take(&r->git, NULL, &r->start, e) < 0 ||
        source_to_json(&r->start, &j, e) < 0)
        return -1;
    run_say(r, "source", "commit %.12s%s", r->start.commit,
            r->start.dirty ? " with changes (never a baseline, never green)" : "");
    buf_init(&b, LIMIT_KIB(64));
    json_write(&b, j, JSON_PRETTY);
    return buf_check(&b, e) < 0
               ? -1
               : file_write_at(r->dir.fd, "source-at-start.json", b.data, b.len, 0644, e);
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

static int build(struct run *r, struct err *e)
{
    struct build_input in = {
        .plan = &r->plan,
        .source_fd = r->git.root_fd,
        .run_fd = r->dir.fd,
        .environment = r->cli->environment,
        .signal_fd = r->signal_fd,
        .arena = &r->arena,
    };
    char hex[DIGEST_HEX_SIZE];
    uint64_t began = clock_monotonic_ns();

    r->stage = "build";
    if (build_run(&in, &r->build, e) < 0) {
        r->interrupted = r->build.interrupted;
        return -1;
    }
    run_say(r, "build", "done in %.1f s", (double) (clock_monotonic_ns() - began) / 1e9);
    r->stage = "executable";
    if (artifact_resolve(&in, r->git.root, &r->artifact, e) < 0)
        return -1;
    if (check_debug_info(r, e) < 0)
        return -1;
    digest_hex(&r->artifact.digest, hex);
    run_say(r, "executable", "%s  sha256 %.16s…  (from %s)", r->artifact.name, hex,
            r->artifact.resolved);
    return 0;
}

static int check_host(struct run *r, struct err *e)
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

/* Waits, but not past an interrupt. */
static bool pause_ms(struct run *r, int ms)
{
    struct pollfd p = {.fd = r->signal_fd, .events = POLLIN};
    int ignored = 0;

    return poll(&p, 1, ms) == 0 || !signals_pending(r->signal_fd, &ignored);
}

/* How quiet is it before our own program starts? */
static int look_around(struct run *r, struct err *e)
{
    struct interference *i = NULL;
    char why[200];
    int result;

    r->stage = "quiet";
    if (interference_new(&r->sysroot, NULL, NULL, &i, e) < 0)
        return -1;
    r->interrupted = !pause_ms(r, r->plan.quiet ? QUIET_LOOK_MS : SHORT_LOOK_MS);
    result = interference_record(i, 0, NULL, &r->before, e);
    interference_free(i);
    if (result < 0)
        return -1;
    if (r->interrupted)
        return err_set(e, ERR_SYS, "run.interrupted", "interrupted");
    if (interference_breaks(r->plan.quiet, r->before, true, why, sizeof(why)))
        return err_set(e, ERR_SYS, "run.noise", "this machine is not quiet enough: %s", why);
    return 0;
}

/* Signals that a program does not raise against itself: somebody or something else ended it. */
static bool from_outside(int signal)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU, SIGXFSZ};

    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (signals[i] == signal)
            return true;
    return false;
}

/* Was it the program's own end? Anything else is ERROR (decisions C6). */
static int check_end(struct run *r, const char *what, const struct loop_result *l,
                     uint64_t oom_kills, struct err *e)
{
    switch (l->end) {
    case LOOP_TIMED_OUT:
        return err_set(e, ERR_SYS, "run.timeout", "%s timed out after %.1f s and was killed", what,
                       (double) l->wall_ns / 1e9);
    case LOOP_INTERRUPTED:
        r->interrupted = true;
        return err_set(e, ERR_SYS, "run.interrupted", "interrupted during %s", what);
    case LOOP_ENDED:
        break;
    }
    if (oom_kills > 0)
        return err_set(e, ERR_SYS, "run.oom", "%s ran out of memory and was killed by the kernel",
                       what);
    if (!l->status.exited && from_outside(l->status.signal))
        return err_set(e, ERR_SYS, "run.killed", "%s was killed from outside: SIG%s", what,
                       sigabbrev_np(l->status.signal));
    return 0;
}

static struct measure_input measure_input_of(struct run *r, const char *results,
                                             const char *profile)
{
    return (struct measure_input){
        .plan = &r->plan,
        .artifact = &r->artifact,
        .sysroot = &r->sysroot,
        .source_root = r->git.root,
        .source_fd = r->git.root_fd,
        .run_fd = r->dir.fd,
        .results_path = results,
        .profile_path = profile,
        .environment = r->cli->environment,
        .run_id = r->id,
        .signal_fd = r->signal_fd,
        .arena = &r->arena,
    };
}

/* The step as the identity has it: what the definition says, not how it went. */
static int record_step(struct run *r, const cJSON *step, struct err *e)
{
    cJSON *copy = cJSON_Duplicate(step, true);

    if (!copy || !cJSON_AddItemToArray(r->steps, copy)) {
        json_free(copy);
        return err_set(e, ERR_NOMEM, "run.memory", "out of memory");
    }
    return 0;
}

static int run_step(struct run *r, const struct measure_input *in, const cJSON *step, size_t number,
                    struct err *e)
{
    const char *name = json_get(step, "name")->valuestring;
    struct loop_result result;
    char what[120];

    (void) snprintf(what, sizeof(what), "conditioning step '%s'",
                    name); /* a cut name still tells */
    if (measure_step(in, step, plan_step_timeout_ms(&r->plan, number), &result, e) < 0 ||
        check_end(r, what, &result, 0, e) < 0)
        return -1;
    if (!result.status.exited || result.status.code != 0)
        return err_set(e, ERR_SYS, "run.conditioning", "%s failed (%s %d); see run.log", what,
                       result.status.exited ? "exit" : "signal",
                       result.status.exited ? result.status.code : result.status.signal);
    run_say(r, "condition", "%s", name);
    return 0;
}

static int condition(struct run *r, const struct measure_input *in, struct err *e)
{
    const cJSON *step = NULL;
    size_t number = 0;

    r->stage = "conditioning";
    cJSON_ArrayForEach(step, r->plan.conditioning)
    {
        if (record_step(r, step, e) < 0 ||
            (json_get(step, "command") && run_step(r, in, step, number, e) < 0))
            return -1;
        number++;
    }
    return 0;
}

static void on_phase(void *context, const char *phase, uint64_t elapsed_ms)
{
    run_say(context, "phase", "%-28s %8.1f s", phase, (double) elapsed_ms / 1000.0);
}

/* Each file that the mode promises must be there and hold something. */
static void check_profile(struct run *r)
{
    const cJSON *name = NULL;

    cJSON_ArrayForEach(name, json_get(r->plan.mode_spec, "output"))
    {
        struct stat st;
        AUTO_FREE char *path = NULL;

        if (asprintf(&path, PROFILE_DIR "/%s", name->valuestring) < 0)
            path = NULL;
        if (!path || fstatat(r->dir.fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_size == 0)
            run_fault(r, "the profiler left no %s", name->valuestring);
    }
}

static int judge_noise(struct run *r, struct err *e)
{
    char why[200];

    if (interference_breaks(r->plan.quiet, r->measure.interference, false, why, sizeof(why)))
        return err_set(e, ERR_SYS, "run.noise", "the machine was disturbed during the run: %s",
                       why);
    return 0;
}

static int measure(struct run *r, struct err *e)
{
    char *results = arena_printf(&r->arena, "%s.partial/" RESULTS_DIR, r->dir.path);
    char *profile = arena_printf(&r->arena, "%s.partial/" PROFILE_DIR, r->dir.path);
    bool diagnostic = r->plan.mode != PLAN_CLEAN;

    if (!results || !profile)
        return arena_full(e);
    struct measure_input in = measure_input_of(r, results, diagnostic ? profile : NULL);

    if (file_mkdirs_at(r->dir.fd, RESULTS_DIR, 0755, e) < 0 ||
        (diagnostic && file_mkdirs_at(r->dir.fd, PROFILE_DIR, 0755, e) < 0))
        return -1;
    if (look_around(r, e) < 0 || condition(r, &in, e) < 0)
        return -1;
    r->stage = "measure";
    in.progress = on_phase;
    in.progress_context = r;
    if (measure_run(&in, &r->measure, e) < 0)
        return -1;
    r->measured = true;
    run_say(r, "measured", "%.1f s, %zu samples", (double) r->measure.loop.wall_ns / 1e9,
            sampler_count(r->measure.sampler));
    if (check_end(r, "the program", &r->measure.loop, r->measure.box.oom_kills, e) < 0 ||
        judge_noise(r, e) < 0)
        return -1;
    check_profile(r);
    return 0;
}

/* Between stages nobody looks at signals; here they are honoured. */
static int check_interrupt(struct run *r, struct err *e)
{
    int signal = 0;

    r->interrupted = signals_pending(r->signal_fd, &signal);
    return r->interrupted ? err_set(e, ERR_SYS, "run.interrupted", "interrupted") : 0;
}

/* A diagnostic run counts as paired only with a clean run of the same source, program and
 * experiment (decisions S10). */
static int pair_with_control(struct run *r, struct err *e)
{
    AUTO_FREE char *state = NULL;
    char why[160];

    if (!r->options.control)
        return 0;
    if (state_dir(r->cli, &state, e) < 0 || control_find(r, state, why, sizeof(why), e) < 0)
        return -1;
    if (r->control[0])
        run_say(r, "control", "%s", r->control);
    else
        run_say(r, "control", "unpaired: %s", why);
    return 0;
}

static int execute(struct run *r, int *out_exit, struct err *e)
{
    r->steps = cJSON_CreateArray();
    if (!r->steps)
        return err_set(e, ERR_NOMEM, "run.memory", "out of memory");
    run_say(r, "gate", "%s  class %s  run %s", r->definition->gate, r->plan.machine_class, r->id);
    if (fingerprint(r, e) < 0 || check_interrupt(r, e) < 0 || build(r, e) < 0 ||
        check_host(r, e) < 0)
        return -1;
    if (pair_with_control(r, e) < 0 || check_interrupt(r, e) < 0)
        return -1;
    if (!r->options.build_only && measure(r, e) < 0)
        return -1;
    return run_finish(r, out_exit, e);
}

static int read_options(const struct cli_args *a, struct run_options *o, struct err *e)
{
    const char *mode = cli_get(a, "mode");
    const char *attempt = cli_get(a, "attempt");

    *o = (struct run_options){
        .gate = a->n_args ? a->args[0] : NULL,
        .definition = cli_get(a, "definition"),
        .at = cli_get(a, "at"),
        .out = cli_get(a, "out"),
        .project = cli_get(a, "project"),
        .baseline = cli_get(a, "baseline"),
        .baseline_sha256 = cli_get(a, "baseline-sha256"),
        .control = cli_get(a, "control"),
        .build_only = cli_has(a, "build-only"),
        .json = cli_has(a, "json"),
        .attempt = 1,
    };
    if (mode && !plan_mode_parse(mode, &o->mode))
        return err_set(e, ERR_USAGE, "run.mode",
                       "no mode '%s': clean, cpu, timing, memory or boundary", mode);
    if (attempt && (!num_parse_u64(attempt, strlen(attempt), 1000, &o->attempt) || o->attempt == 0))
        return err_set(e, ERR_USAGE, "run.attempt", "--attempt needs a number from 1");
    if (o->control && o->mode == PLAN_CLEAN)
        return err_set(e, ERR_USAGE, "run.control",
                       "--control names the clean run that a diagnostic run is paired with");
    return submit_check_options(a, e);
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct run r = {.cli = c,
                    .signal_fd = -1,
                    .lock_fd = -1,
                    .sysroot = {.fd = -1},
                    .artifact = {.fd = -1},
                    .reference = {.dir_fd = -1},
                    .git = {.root_fd = -1},
                    .stage = "start"};
    struct err e = ERR_INIT;
    int code = EXIT_ERROR;
    AUTO_FREE char *directory = NULL;

    arena_init(&r.arena, LIMIT_MIB(16));
    if (read_options(a, &r.options, &e) < 0 || signals_open(&r.signal_fd, &e) < 0 ||
        prepare(&r, &e) < 0) {
        code = cli_fail(c, &e);
    } else if (execute(&r, &code, &e) < 0) {
        code = run_abort(&r, &e);
    } else {
        directory = strdup(r.dir.path);
        code = submit_run(c, a, directory, r.project, r.definition->gate, code);
    }
    run_close(&r);
    return code;
}

static const struct cli_option options[] = {
    {.name = "at",
     .value = "REV",
     .help = "measure a fresh checkout of this revision, not the work tree"},
    {.name = "mode", .value = "MODE", .help = "clean (default), cpu, timing, memory or boundary"},
    {.name = "build-only", .help = "stop after the build"},
    {.name = "out",
     .value = "DIR",
     .help = "the run directory to make (default: below $XDG_STATE_HOME/cleanrun/runs)"},
    {.name = "baseline", .value = "DIR", .help = "the reviewed baseline's run directory"},
    {.name = "baseline-sha256",
     .value = "HEX",
     .help = "SHA-256 of its manifest.json; needed with --baseline"},
    {.name = "definition", .value = "FILE", .help = "instead of the nearest cleanrun.yaml"},
    {.name = "project", .value = "OWNER/NAME", .help = "instead of the definition's project"},
    {.name = "attempt", .value = "N", .help = "which attempt this is (default 1); recorded"},
    {.name = "control",
     .value = "RUN",
     .help = "diagnostic modes: the clean run (id or directory) this one is paired with"},
    {.name = "key", .value = "FILE", .help = "seal the finished run with this private key"},
    {.name = "push", .help = "upload the sealed run (needs --key, --server, --token-file)"},
    {.name = "server", .value = "URL", .help = "the server to push to (or CLEANRUN_SERVER)"},
    {.name = "token-file",
     .value = "FILE",
     .help = "file with the upload token, mode 0600 (or CLEANRUN_TOKEN_FILE)"},
    {.name = "json", .help = "one JSON object per line on standard output"},
};

const struct command command_run = {
    .name = "run",
    .summary = "build, measure and package one gate",
    .synopsis = "[GATE] [OPTION...]",
    .examples = "  cleanrun run kvcache-50k\n"
                "  cleanrun run kvcache-50k --at main --out /tmp/main\n"
                "  cleanrun run kvcache-50k --baseline /tmp/main --baseline-sha256 $(sha256sum "
                "</tmp/main/manifest.json | cut -c-64)\n",
    .notes = "Prints the run directory's path. Exit: by the local verdict (cleanrun help "
             "exit-codes); 7 for a sound\n"
             "diagnostic or build-only run, 6 when the machine or a tool failed, 130 when "
             "interrupted.\n",
    COMMAND_OPTIONS(options),
    .max_args = 1,
    .run = run,
};
