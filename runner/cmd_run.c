/* cleanrun run: the canonical clean run, step by step. */
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "runner/checkout.h"
#include "runner/commands.h"
#include "runner/control.h"
#include "runner/keys.h"
#include "runner/push.h"
#include "runner/run.h"
#include "runner/run_stages.h"
#include "runner/submit.h"

#define WAIT_MAX_S 86400

/* Between stages nobody looks at signals; here they are honoured. */
static int check_interrupt(struct run *r, struct err *e)
{
    int signal = 0;

    r->interrupted = loop_signals_pending(r->signal_fd, &signal);
    return r->interrupted ? err_set(e, ERR_SYS, "run.interrupted", "interrupted") : 0;
}

/* A diagnostic run counts as paired only with a clean run of the same source, program and
 * experiment. */
static int pair_with_control(struct run *r, struct err *e)
{
    AUTO_FREE char *state = NULL;
    char why[160];

    if (!r->options.control)
        return 0;
    if (checkout_state_dir(r->cli, &state, e) < 0 ||
        control_find(r, state, why, sizeof(why), e) < 0)
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
        return err_memory(e, "run.memory");
    run_say(r, "gate", "%s  class %s  run %s", r->definition->gate, r->plan.machine_class, r->id);
    if (run_fingerprint(r, e) < 0 || check_interrupt(r, e) < 0 || run_build(r, e) < 0 ||
        run_check_host(r, e) < 0)
        return -1;
    if (pair_with_control(r, e) < 0 || check_interrupt(r, e) < 0)
        return -1;
    if (!r->options.build_only && run_measure(r, e) < 0)
        return -1;
    return run_finish(r, out_exit, e);
}

static int read_options(const struct cli *c, const struct cli_args *a, struct run_options *o,
                        struct err *e)
{
    const char *mode = cli_get(a, "mode");
    const char *attempt = cli_get(a, "attempt");
    const char *wait = cli_get(a, "wait");
    struct push_target server;

    push_target_from(c, a, &server);
    *o = (struct run_options){
        .gate = a->n_args ? a->args[0] : NULL,
        .definition = cli_get(a, "definition"),
        .at = cli_get(a, "at"),
        .out = cli_get(a, "out"),
        .project = cli_get(a, "project"),
        .baseline = cli_get(a, "baseline"),
        .baseline_sha256 = cli_get(a, "baseline-sha256"),
        .server = server.server,
        .token_file = server.token_file,
        .control = cli_get(a, "control"),
        .build_only = cli_has(a, "build-only"),
        .json = cli_has(a, "json"),
        .push = cli_has(a, "push"),
        .key = cli_get(a, "key"),
        .attempt = 1,
    };
    if (mode && !plan_mode_parse(mode, &o->mode))
        return err_set(e, ERR_USAGE, "run.mode",
                       "no mode '%s': clean, cpu, timing, memory or boundary", mode);
    if (attempt && (!num_parse_u64(attempt, strlen(attempt), 1000, &o->attempt) || o->attempt == 0))
        return err_set(e, ERR_USAGE, "run.attempt", "--attempt needs a number from 1");
    if (wait && !num_parse_u64(wait, strlen(wait), WAIT_MAX_S, &o->wait_s))
        return err_set(e, ERR_USAGE, "run.wait", "--wait needs a number of seconds, at most %d",
                       WAIT_MAX_S);
    if (o->control && o->mode == PLAN_CLEAN)
        return err_set(e, ERR_USAGE, "run.control",
                       "--control names the clean run that a diagnostic run is paired with");
    return submit_check_options(c, a, e);
}

/* NULL in the options when none is named. */
static int read_keys(const struct cli_args *a, struct keyring *ring, struct run_options *o,
                     struct err *e)
{
    if (!ring)
        return err_memory(e, "run.memory");
    if (keys_load(a, "baseline-key", ring, e) < 0)
        return -1;
    o->baseline_keys = keyring_count(ring) > 0 ? ring : NULL;
    return 0;
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
    AUTO_KEYRING struct keyring *ring = keyring_new();

    arena_init(&r.arena, LIMIT_MIB(16));
    if (read_options(c, a, &r.options, &e) < 0 || read_keys(a, ring, &r.options, &e) < 0 ||
        loop_signals_open(&r.signal_fd, &e) < 0 || run_prepare(&r, &e) < 0) {
        code = cli_fail(c, &e);
        if (r.interrupted)
            code = EXIT_INTERRUPTED;
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
    {.name = "baseline-key",
     .value = "FILE",
     .help = "with --server: the baseline must be signed by this public key (PEM)",
     .repeats = true},
    {.name = "definition", .value = "FILE", .help = "instead of the nearest cleanrun.yaml"},
    {.name = "project",
     .value = "OWNER/NAME",
     .help = "instead of the definition's project; recorded so"},
    {.name = "attempt", .value = "N", .help = "which attempt this is (default 1); recorded"},
    {.name = "wait",
     .value = "SECONDS",
     .help = "wait so long for another measurement on this machine to end (default 0)"},
    {.name = "control",
     .value = "RUN",
     .help = "diagnostic modes: the clean run (id or directory) this one is paired with"},
    {.name = "key", .value = "FILE", .help = "seal the finished run with this private key"},
    {.name = "push", .help = "upload the sealed run (needs --key, --server, --token-file)"},
    {.name = "server",
     .value = "URL",
     .help = "fetch the reviewed baseline there, push there (or CLEANRUN_SERVER)"},
    {.name = "token-file",
     .value = "FILE",
     .help = "file with a token, mode 0600 (or CLEANRUN_TOKEN_FILE)"},
    {.name = "json",
     .help = "one JSON object per line on standard output; with --push the server's answer is the "
             "last"},
};

const struct command command_run = {
    .name = "run",
    .summary = "build, measure and package one gate",
    .synopsis = "[GATE] [OPTION...]",
    .examples = "  cleanrun run kvcache-50k\n"
                "  cleanrun run kvcache-50k --at main --out /tmp/main\n"
                "  cleanrun run kvcache-50k --server https://perf.example.org\n"
                "  cleanrun run kvcache-50k --baseline /tmp/main --baseline-sha256 $(sha256sum "
                "</tmp/main/manifest.json | cut -c-64)\n",
    .notes =
        "The baseline: --baseline, or with --server the reviewed one of this gate and class; "
        "with neither the run\n"
        "is NON_COMPARABLE. The policy reviewed with the baseline judges, not this "
        "checkout's.\n"
        "Prints the run directory's path.\n"
        "Exit: by the local verdict, with --push by the server's (cleanrun help exit-codes); 7 for "
        "a sound\ndiagnostic or build-only run, 2 when the definition or an option is wrong, 5 "
        "when the baseline is not what\nits manifest and its signature say, 6 when the machine or "
        "a tool failed, 130 when interrupted.\n",
    COMMAND_OPTIONS(options),
    .max_args = 1,
    .run = run,
};
