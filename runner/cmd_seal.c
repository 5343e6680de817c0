/* cleanrun seal: a finished run directory becomes evidence.tar and its three signature files. */
#include "audit/verdict.h"
#include "base/digest.h"
#include "base/file.h"
#include "evidence/keyring.h"
#include "evidence/seal.h"
#include "evidence/sign.h"
#include "runner/commands.h"
#include "runner/mistaken.h"

static int seal(struct cli *c, const struct cli_args *a, struct err *e)
{
    AUTO_PRIVATE_KEY struct private_key *key = NULL;
    AUTO_FD int run_fd = -1;
    const char *out = cli_get(a, "out");
    char hex[DIGEST_HEX_SIZE];
    struct digest digest;

    if (!cli_get(a, "key") || !out)
        return err_set(e, ERR_USAGE, "seal.options", "--key and --out are needed");
    if (file_open_dir(a->args[0], &run_fd, e) < 0)
        return mistaken_file(a->args[0], e);
    if (mistaken_error(run_fd))
        return err_set(
            e, ERR_TRUST, "seal.error",
            "'%s' is the directory of a run that ended in an ERROR: nothing in it can be "
            "sealed; cleanrun show says what happened",
            a->args[0]);
    if (private_key_load(cli_get(a, "key"), &key, e) < 0) {
        e->kind = ERR_USAGE; /* the key is the caller's, not evidence that is broken */
        return -1;
    }
    if (seal_run(run_fd, key, out, &digest, e) < 0)
        return e->kind == ERR_TRUST ? err_wrap(e, "'%s'", a->args[0])
                                    : err_wrap(e, "writing '%s'", out);
    digest_hex(&digest, hex);
    (void) fprintf(c->out, "%s  %s\n", hex,
                   out); /* as sha256sum prints; flushed and checked by main */
    cli_say(c, "sealed with key %s", public_key_id(private_key_public(key)));
    cli_say(c, "also written: %s.dsse.json, %s.sigstore.json, %s.sig", out, out, out);
    return 0;
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;

    return seal(c, a, &e) < 0 ? cli_fail(c, &e) : EXIT_OK;
}

static const struct cli_option options[] = {
    {.name = "key", .value = "FILE", .help = "the private key (PEM, mode 0600)"},
    {.name = "out", .value = "FILE", .help = "the archive to write, usually evidence.tar"},
};

const struct command command_seal = {
    .name = "seal",
    .summary = "pack and sign a run directory",
    .synopsis = "RUN_DIR --key FILE --out FILE",
    .examples = "  cleanrun seal run --key key.pem --out evidence.tar\n",
    .notes = "The directory must hold a valid manifest.json that lists every other file.\n"
             "Writes FILE, FILE.dsse.json, FILE.sigstore.json and FILE.sig; nothing is left on "
             "failure.\n"
             "Exit: 0 sealed, 5 the directory is no valid evidence, 2 anything else.\n",
    COMMAND_OPTIONS(options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
