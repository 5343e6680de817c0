/* The measured part of a run: a quiet machine, conditioning, the program, and whether its end was
 * its own. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "runner/interference.h"
#include "runner/run.h"
#include "runner/run_stages.h"
#include "runner/tidy.h"

#define QUIET_LOOK_MS 1000
#define SHORT_LOOK_MS 250
#define SNAPSHOTS_SIZE_MAX LIMIT_MIB(64) /* 512 of 256 processes */

/* Waits, but not past an interrupt. */
static bool pause_ms(struct run *r, int ms)
{
    struct pollfd p = {.fd = r->signal_fd, .events = POLLIN};
    int ignored = 0;

    return poll(&p, 1, ms) == 0 || !loop_signals_pending(r->signal_fd, &ignored);
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
    if (!cJSON_AddNumberToObject(r->before, "leftovers_ended", (double) r->leftovers_ended))
        return err_memory(e, "run.memory");
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

/* Was it the program's own end? Anything else is ERROR. */
static int check_end(struct run *r, const char *what, const char *pointer,
                     const struct loop_result *l, uint64_t oom_kills, struct err *e)
{
    char place[DEFINITION_PLACE_SIZE];

    switch (l->end) {
    case LOOP_TIMED_OUT:
        return err_set(e, ERR_SYS, "run.timeout",
                       "%s timed out after %.1f s and was killed (its `timeout`: %s)", what,
                       (double) l->wall_ns / 1e9, definition_place(r->definition, pointer, place));
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
                                             const char *profile, const char *fingerprint)
{
    return (struct measure_input){
        .plan = &r->plan,
        .artifact = &r->artifact,
        .sysroot = &r->sysroot,
        .source_root = r->git.root,
        .source_fd = r->git.root_fd,
        .run_fd = r->dir.fd,
        .log = &r->kept.run_log,
        .results_path = results,
        .profile_path = profile,
        .environment = r->cli->environment,
        .run_id = r->id,
        .fingerprint = fingerprint,
        .mark = r->mark,
        .signal_fd = r->signal_fd,
        .lock_fd = r->lock_fd,
        .arena = &r->arena,
    };
}

/* The step as the identity has it: what the definition says, not how it went. */
static int record_step(struct run *r, const cJSON *step, struct err *e)
{
    cJSON *copy = cJSON_Duplicate(step, true);

    if (!copy || !cJSON_AddItemToArray(r->steps, copy)) {
        json_free(copy);
        return err_memory(e, "run.memory");
    }
    return 0;
}

static int run_step(struct run *r, struct measure_input *in, const cJSON *step, size_t number,
                    struct err *e)
{
    const char *name = json_get(step, "name")->valuestring;
    struct loop_result result;
    char what[120], pointer[64], timeout[64];

    (void) snprintf(what, sizeof(what), "conditioning step '%s'",
                    name); /* a cut name still tells */
    (void) snprintf(pointer, sizeof(pointer), "/experiment/conditioning/%zu/command",
                    number); /* fits */
    (void) snprintf(timeout, sizeof(timeout), "/experiment/conditioning/%zu/timeout",
                    number); /* fits */
    if (measure_step(in, step, plan_step_timeout_ms(&r->plan, number), &result, e) < 0)
        return run_blame(r, pointer, e);
    if (check_end(r, what, timeout, &result, 0, e) < 0)
        return -1;
    if (!result.status.exited || result.status.code != 0)
        return err_set(e, ERR_SYS, "run.conditioning", "%s failed (%s %d); see run.log", what,
                       result.status.exited ? "exit" : "signal",
                       result.status.exited ? result.status.code : result.status.signal);
    if (run_tidy(r, what, true, e) < 0)
        return -1;
    in->run_fd = r->dir.fd;
    run_say(r, "condition", "%s", name);
    return 0;
}

static int condition(struct run *r, struct measure_input *in, struct err *e)
{
    const cJSON *step = NULL;
    size_t number = 0;

    r->stage = "conditioning";
    cJSON_ArrayForEach(step, r->plan.conditioning) {
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

static bool is_filled(int dir_fd, const char *name)
{
    struct stat st;

    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           st.st_size > 0;
}

/* A name, or a pattern with '*' that some file must match. */
static bool is_left(int dir_fd, const struct file_list *files, const char *wanted)
{
    for (size_t i = 0; i < files->n; i++)
        if (text_glob(wanted, files->names[i]) && is_filled(dir_fd, files->names[i]))
            return true;
    return false;
}

/* Each file that the mode promises must be there and hold something. */
static int check_profile(struct run *r, struct err *e)
{
    AUTO_FILE_LIST struct file_list files = {.n = 0};
    AUTO_FD int fd = -1;
    const cJSON *name = NULL;

    if (r->plan.mode == PLAN_CLEAN)
        return 0;
    if (file_open_dir_at(r->dir.fd, PROFILE_DIR, &fd, e) < 0)
        return -1;
    if (file_list_at(fd, LIMIT_MEMBERS, &files, e) < 0) {
        run_fault(r, "what the profiler left can't be packaged: %s", e->text);
        *e = (struct err) ERR_INIT;
        return file_remove_tree_at(r->dir.fd, PROFILE_DIR, e);
    }
    cJSON_ArrayForEach(name, json_get(r->plan.mode_spec, "output")) {
        if (!is_left(fd, &files, name->valuestring))
            run_fault(r, "the profiler left no %s", name->valuestring);
    }
    return 0;
}

static int write_snapshots(struct run *r, struct err *e)
{
    AUTO_JSON cJSON *j = NULL;
    const char *missing;

    if (!r->measure.snapshots)
        return 0;
    missing = snapshots_missing(r->measure.snapshots);
    if (missing)
        run_fault(r, "no snapshot at '%s': its phase marker did not come while the program ran",
                  missing);
    if (snapshots_document(r->measure.snapshots, &j, e) < 0)
        return -1;
    return rundir_write_json(&r->dir, SNAPSHOTS_FILE, j, SNAPSHOTS_SIZE_MAX, e);
}

static int judge_noise(struct run *r, struct err *e)
{
    AUTO_BUF struct buf b = {.data = NULL};
    char why[200];

    buf_init(&b, LIMIT_KIB(4));
    interference_describe(r->measure.interference, &b);
    if (!b.failed && b.len > 0)
        run_say(r, "machine", "%s", b.data);
    if (interference_is_loud(r->measure.interference) && !r->plan.quiet)
        run_say(r, "warning",
                "this machine was not quiet, and the gate sets no limit: host.quiet in its "
                "definition makes such a run an ERROR");
    if (interference_breaks(r->plan.quiet, r->measure.interference, false, why, sizeof(why)))
        return err_set(e, ERR_SYS, "run.noise", "the machine was disturbed during the run: %s",
                       why);
    return 0;
}

/* Numbers of a part of the program would be smaller ones of the whole. */
static int judge_samples(const struct run *r, struct err *e)
{
    char still[120];
    const char *why = "";
    size_t n = sampler_incomplete(r->measure.sampler, &why);

    if (pace_stood_still(&r->measure.pace, still, sizeof(still)))
        return err_set(e, ERR_SYS, "run.stall", "the machine was disturbed during the run: %s",
                       still);
    if (n > 0)
        return err_set(e, ERR_SYS, "run.samples", "%zu samples don't count the whole program: %s",
                       n, why);
    return 0;
}

int run_measure(struct run *r, struct err *e)
{
    char *results = arena_printf(&r->arena, "%s.partial/" RESULTS_DIR, r->dir.path);
    char *profile = arena_printf(&r->arena, "%s.partial/" PROFILE_DIR, r->dir.path);
    bool diagnostic = r->plan.mode != PLAN_CLEAN;
    char fingerprint[DIGEST_HEX_SIZE];

    if (!results || !profile)
        return arena_full(e);
    digest_hex(&r->start.fingerprint, fingerprint);
    struct measure_input in =
        measure_input_of(r, results, diagnostic ? profile : NULL, fingerprint);

    if (file_mkdirs_at(r->dir.fd, RESULTS_DIR, 0755, e) < 0 ||
        (diagnostic && file_mkdirs_at(r->dir.fd, PROFILE_DIR, 0755, e) < 0))
        return -1;
    if (look_around(r, e) < 0 || condition(r, &in, e) < 0)
        return -1;
    r->stage = "measure";
    in.progress = on_phase;
    in.progress_context = r;
    if (measure_run(&in, &r->measure, e) < 0 && run_blame(r, "/experiment/run/command", e) < 0)
        return -1;
    r->measured = true;
    run_say(r, "measured", "%.1f s, %zu samples", (double) r->measure.loop.wall_ns / 1e9,
            sampler_count(r->measure.sampler));
    if (check_end(r, "the program", "/experiment/run/timeout", &r->measure.loop,
                  r->measure.box.oom_kills, e) < 0 ||
        judge_noise(r, e) < 0 || judge_samples(r, e) < 0)
        return -1;
    return run_tidy(r, "the program", true, e) < 0 || write_snapshots(r, e) < 0
               ? -1
               : check_profile(r, e);
}
