/* cleanrun push: uploads sealed evidence and tells the server's verdict. */
#include "audit/verdict.h"
#include "runner/commands.h"
#include "runner/push.h"

static int run(struct cli *c, const struct cli_args *a)
{
    struct push_target t;
    struct err e = ERR_INIT;
    int code = EXIT_ERROR;

    push_target_from(c, a, &t);
    t.gate = cli_get(a, "gate");
    t.attestation = cli_get(a, "attestation");
    return push_archive(c, a->args[0], &t, &code, &e) < 0 ? cli_fail(c, &e) : code;
}

static const struct cli_option options[] = {
    {.name = "server", .value = "URL", .help = "the server (or CLEANRUN_SERVER)"},
    {.name = "project", .value = "OWNER/NAME", .help = "default: as the archive's manifest says"},
    {.name = "gate", .value = "GATE", .help = "default: as the archive's manifest says"},
    {.name = "token-file",
     .value = "FILE",
     .help = "file with the upload token, mode 0600 (or CLEANRUN_TOKEN_FILE)"},
    {.name = "attestation",
     .value = "FILE",
     .help = "the DSSE envelope (default: ARCHIVE.dsse.json)"},
    {.name = "json", .help = "print the server's answer as it came"},
};

const struct command command_push = {
    .name = "push",
    .summary = "upload sealed evidence and get its verdict",
    .synopsis = "ARCHIVE --server URL --token-file FILE [OPTION...]",
    .examples = "  cleanrun push evidence.tar --server https://perf.example.org --token-file "
                "~/.config/cleanrun/token\n",
    .notes =
        "Safe to repeat: both steps are idempotent. A token never goes unencrypted to another "
        "machine.\n"
        "Exit: by the server's verdict; 7 when a diagnostic or build-only run has none, 2 when "
        "a file can't\nbe read or the server refuses the request, 5 INVALID or 409, 6 when it "
        "can't be reached or is busy.\n",
    COMMAND_OPTIONS(options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
