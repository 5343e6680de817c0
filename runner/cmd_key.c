/* cleanrun key gen, key show: P-256 keys as PEM files. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/verdict.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "evidence/keyring.h"
#include "evidence/sign.h"
#include "runner/commands.h"

#define PRIVATE_NAME "key.pem"
#define PUBLIC_NAME "pub.pem"

static int show(struct cli *c, const struct public_key *k, const char *json, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *root = NULL;
    char hex[DIGEST_HEX_SIZE];

    digest_hex(public_key_fingerprint(k), hex);
    if (!json || strcmp(json, "-") != 0)
        (void) fprintf(c->out, "keyid        %s\nfingerprint  %s\n", public_key_id(k),
                       hex); /* checked by main */
    if (!json)
        return 0;
    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-key/1");
    json_add_string(&d, NULL, "keyid", public_key_id(k));
    json_add_string(&d, NULL, "fingerprint", hex);
    root = json_doc_take(&d, e);
    return root ? cli_write_json(c, json, root, e) : -1;
}

static int generate(struct cli *c, const struct cli_args *a, struct err *e)
{
    AUTO_PRIVATE_KEY struct private_key *key = NULL;
    AUTO_FREE char *private_pem = NULL;
    AUTO_FREE char *public_pem = NULL;
    AUTO_FD int dir = -1;
    const char *out = cli_get(a, "out");
    int rc;

    if (!out)
        return err_set(e, ERR_USAGE, "key.options", "--out DIR is needed");
    if (mkdir(out, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "key.directory", "cannot make '%s'", out);
    if (file_open_dir(out, &dir, e) < 0)
        return -1;
    if (private_key_generate(&key, e) < 0 || private_key_write(key, &private_pem, e) < 0 ||
        public_key_write(private_key_public(key), &public_pem, e) < 0)
        return -1;
    rc = file_create_at(dir, PRIVATE_NAME, private_pem, strlen(private_pem), 0600, e);
    explicit_bzero(private_pem, strlen(private_pem));
    if (rc < 0)
        return err_wrap(e, "'%s'", out); /* an old key is never overwritten */
    if (file_write_at(dir, PUBLIC_NAME, public_pem, strlen(public_pem), 0644, e) < 0)
        return -1;
    cli_say(c, "wrote %s/" PRIVATE_NAME " (keep it secret) and %s/" PUBLIC_NAME, out, out);
    return show(c, private_key_public(key), cli_get(a, "json"), e);
}

static int show_file(struct cli *c, const struct cli_args *a, struct err *e)
{
    AUTO_PRIVATE_KEY struct private_key *private = NULL;
    AUTO_PUBLIC_KEY struct public_key *public = NULL;
    AUTO_FREE char *pem = NULL;
    size_t len = 0;

    if (file_read(a->args[0], LIMIT_PEM, &pem, &len, e) < 0)
        return -1;
    if (!strstr(pem, "PRIVATE KEY-----")) {
        if (public_key_parse(pem, len, &public, e) < 0)
            return err_wrap(e, "'%s'", a->args[0]);
        return show(c, public, cli_get(a, "json"), e);
    }
    explicit_bzero(pem, len);
    if (private_key_load(a->args[0], &private, e) < 0)
        return -1;
    return show(c, private_key_public(private), cli_get(a, "json"), e);
}

static int fail(struct cli *c, struct err *e)
{
    if (e->kind == ERR_TRUST)
        e->kind = ERR_USAGE; /* a key file that others can read is a mistake of set-up, not broken
                                evidence */
    return cli_fail(c, e);
}

static int run_gen(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;

    return generate(c, a, &e) < 0 ? fail(c, &e) : EXIT_OK;
}

static int run_show(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;

    return show_file(c, a, &e) < 0 ? fail(c, &e) : EXIT_OK;
}

static const struct cli_option gen_options[] = {
    {.name = "out", .value = "DIR", .help = "directory for key.pem and pub.pem; made when missing"},
    {.name = "json", .value = "FILE", .help = "write cleanrun-key/1; - is standard output"},
};

static const struct cli_option show_options[] = {
    {.name = "json", .value = "FILE", .help = "write cleanrun-key/1; - is standard output"},
};

const struct command command_key_gen = {
    .name = "key gen",
    .summary = "make a signing key",
    .synopsis = "--out DIR [--json FILE|-]",
    .examples = "  cleanrun key gen --out keys\n",
    .notes = "Writes key.pem (mode 0600) and pub.pem. An existing key.pem is never overwritten.\n"
             "Exit: 0, or 2.\n",
    COMMAND_OPTIONS(gen_options),
    .run = run_gen,
};

const struct command command_key_show = {
    .name = "key show",
    .summary = "print a key's id and fingerprint",
    .synopsis = "FILE [--json FILE|-]",
    .examples = "  cleanrun key show pub.pem\n",
    .notes = "FILE is a public or a private key in PEM form.\nExit: 0, or 2.\n",
    COMMAND_OPTIONS(show_options),
    .min_args = 1,
    .max_args = 1,
    .run = run_show,
};
