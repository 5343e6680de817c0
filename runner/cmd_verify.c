/* cleanrun verify: every stage of judging a sealed archive, offline. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/verdict.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/text.h"
#include "evidence/dsse.h"
#include "evidence/keyring.h"
#include "evidence/manifest.h"
#include "evidence/verify.h"
#include "runner/commands.h"
#include "runner/keys.h"
#include "runner/mistaken.h"

#define DETAIL_COLUMN 10

/* Nothing beside the archive is no failure to read: it is evidence that nobody signed. A
 * file that was named but is not there is: the check that was asked for can't be made. */
static int read_attestation(const struct cli *c, const struct cli_args *a, char **out,
                            size_t *out_len, struct err *e)
{
    const char *given = cli_get(a, "attestation");
    AUTO_FREE char *beside = NULL;

    if (!given && asprintf(&beside, "%s.dsse.json", a->args[0]) < 0) {
        beside = NULL; /* asprintf leaves it undefined */
        return err_set(e, ERR_NOMEM, "verify.memory", "no memory for a file name");
    }
    if (file_read(given ? given : beside, LIMIT_ENVELOPE, out, out_len, e) == 0)
        return 0;
    if (e->kind != ERR_LIMIT && (given || e->kind != ERR_NOTFOUND))
        return err_wrap(e, "attestation");
    cli_say(
        c, "attestation: %s%s", e->text,
        given || e->kind != ERR_NOTFOUND
            ? ""
            : "; without one nobody vouches for the archive (--attestation FILE names another)");
    *e = (struct err) ERR_INIT;
    return 0;
}

static const char *text_in(const cJSON *object, const char *key)
{
    const cJSON *v = json_get(object, key);

    return cJSON_IsString(v) ? v->valuestring : "";
}

static void print_report(struct cli *c, const struct verify_report *r)
{
    const cJSON *stages = json_get(r->document, "stages");
    const cJSON *run = json_get(r->document, "run");

    for (const cJSON *s = stages->child; s; s = s->next) {
        const char *result = text_in(s, "result");
        const char *code = text_in(s, "code");
        bool ok = strcmp(result, "ok") == 0;
        bool not_run = strcmp(result, "not_run") == 0;

        plain_line(c->out, "%s %-*s %s%s%s",
                   ok        ? "\u2713"
                   : not_run ? "\u00b7"
                             : "\u2717",
                   DETAIL_COLUMN, text_in(s, "name"), code, code[0] ? ": " : "",
                   not_run ? "not run" : text_in(s, "detail"));
    }
    if (r->code) {
        plain_line(c->out, "INVALID (%s)", r->code);
        return;
    }
    plain_line(c->out, "run %s of %s, gate %s, class %s, mode %s, status %s", text_in(run, "run"),
               text_in(run, "project"), text_in(run, "gate"), text_in(run, "class"),
               text_in(run, "mode"), text_in(run, "status"));
    (void) fputs("VALID. This says who measured what; it does not say the result is good.\n",
                 c->out);
}

/* One word of --require. ERR_USAGE for a word that is none; *out_met tells. */
static int check_requirement(const struct manifest *m, const char *word, bool *out_met,
                             struct err *e)
{
    if (strcmp(word, "clean") == 0) {
        *out_met = !m || !m->dirty;
        return 0;
    }
    if (strcmp(word, "pass") == 0) {
        *out_met = !m || m->status == MANIFEST_PASS;
        return 0;
    }
    if (strncmp(word, "mode=", 5) == 0) {
        static const char *const modes[] = {"clean", "cpu", "timing", "memory", "boundary"};
        bool known = false;

        for (size_t i = 0; i < ARRAY_LEN(modes); i++)
            known = known || strcmp(word + 5, modes[i]) == 0;
        *out_met = !m || strcmp(m->mode, word + 5) == 0;
        return known ? 0
                     : err_set(e, ERR_USAGE, "verify.require", "--require: '%s' is no mode",
                               word + 5);
    }
    if (strncmp(word, "commit=", 7) == 0) {
        size_t n = strlen(word + 7);

        if ((n != 40 && n != 64) || !text_is_hex(word + 7, n))
            return err_set(e, ERR_USAGE, "verify.require",
                           "--require commit= needs the whole commit id in lower case");
        *out_met = !m || strcmp(m->commit, word + 7) == 0;
        return 0;
    }
    return err_set(e, ERR_USAGE, "verify.require",
                   "--require knows clean, pass, mode=MODE and commit=HEX, not '%s'", word);
}

/* All words of all --require options; m NULL: only their grammar. */
static int check_requirements(const struct cli *c, const struct cli_args *a,
                              const struct manifest *m, bool *out_met, struct err *e)
{
    const char *json = cli_get(a, "json");
    const char *list;
    bool all = true;

    for (size_t i = 0; (list = cli_get_nth(a, "require", i)); i++) {
        for (const char *p = list;; p++) {
            size_t n = strcspn(p, ",");
            AUTO_FREE char *word = strndup(p, n);
            bool met = false;

            if (!word)
                return err_set(e, ERR_NOMEM, "verify.memory", "no memory");
            if (check_requirement(m, word, &met, e) < 0)
                return -1;
            if (!met) /* flushed and checked by main */
                plain_line(json && !strcmp(json, "-") ? c->err : c->out, "REQUIREMENT NOT MET: %s",
                           word);
            all = all && met;
            p += n;
            if (!*p)
                break;
        }
    }
    *out_met = all;
    return 0;
}

/* Who claims to have signed what no trusted key did: a claim only, but it tells which key to look
 * for. */
static void tell_signer(const struct cli *c, const struct verify_input *in)
{
    AUTO_DSSE struct dsse d = {.payload = NULL};
    struct err ignored = ERR_INIT;

    if (!in->envelope || dsse_parse(in->envelope, in->envelope_len, &d, &ignored) < 0)
        return;
    for (size_t i = 0; i < d.n; i++) {
        if (d.signatures[i].keyid[0])
            cli_say(c,
                    "the signature names key %.100s: to trust it get that public key from whoever "
                    "runs the machine, compare the id (cleanrun key show PUB.pem) and give --key "
                    "PUB.pem",
                    d.signatures[i].keyid);
    }
}

static int verify(struct cli *c, const struct cli_args *a, int *out_exit, struct err *e)
{
    AUTO_KEYRING struct keyring *ring = keyring_new();
    AUTO_EVIDENCE struct evidence *ev = NULL;
    AUTO_VERIFY_REPORT struct verify_report report = {.document = NULL};
    AUTO_FREE char *envelope = NULL;
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    struct verify_input in = {.keyring = ring, .now_us = clock_realtime_us()};
    const char *json = cli_get(a, "json");
    bool met = true;

    if (!ring)
        return err_set(e, ERR_NOMEM, "verify.memory", "no memory");
    if (check_requirements(c, a, NULL, &met, e) < 0 || keys_load(a, "key", ring, e) < 0 ||
        (file_open(a->args[0], &fd, &size, e) < 0 && mistaken_directory(a->args[0], e) < 0) ||
        read_attestation(c, a, &envelope, &in.envelope_len, e) < 0)
        return -1;
    if (size > LIMIT_ARCHIVE) /* known before a byte is read */
        return err_set(e, ERR_LIMIT, "verify.size", "'%s' has %llu bytes; evidence has at most %zu",
                       a->args[0], (unsigned long long) size, LIMIT_ARCHIVE);
    in.archive_fd = fd;
    in.envelope = envelope;
    if (evidence_verify(&in, &ev, &report, e) < 0)
        return -1;
    if (!json || strcmp(json, "-") != 0)
        print_report(c, &report);
    if (json && cli_write_json(c, json, report.document, e) < 0)
        return -1;
    if (!ev) {
        if (keyring_count(ring) == 0)
            cli_say(c, "no key is trusted: give --key PUB.pem");
        if (report.code && strcmp(report.code, "IN-KEY") == 0)
            tell_signer(c, &in);
        *out_exit = EXIT_INVALID;
        return 0;
    }
    if (check_requirements(c, a, evidence_manifest(ev), &met, e) < 0)
        return -1;
    *out_exit = met ? EXIT_OK : EXIT_FAIL;
    return 0;
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;
    int code = EXIT_INVALID;

    return verify(c, a, &code, &e) < 0 ? cli_fail(c, &e) : code;
}

static const struct cli_option options[] = {
    {.name = "attestation",
     .value = "FILE",
     .help = "the DSSE envelope (default: ARCHIVE.dsse.json)"},
    {.name = "key",
     .value = "FILE",
     .help = "a trusted public key (PEM); may be given more than once",
     .repeats = true},
    {.name = "require",
     .value = "WORDS",
     .help = "also demand: clean, pass, mode=MODE, commit=HEX (comma list)",
     .repeats = true},
    {.name = "json", .value = "FILE", .help = "write cleanrun-verify/1; - is standard output"},
};

const struct command command_verify = {
    .name = "verify",
    .summary = "check a sealed archive and its signature",
    .synopsis = "EVIDENCE.tar --key PUB.pem [--attestation FILE] [--require WORDS] [--json FILE|-]",
    .examples = "  cleanrun verify evidence.tar --key pub.pem\n"
                "  cleanrun verify evidence.tar --key pub.pem --require clean,pass,mode=clean\n",
    .notes =
        "VALID means: a trusted key signed exactly these bytes and everything inside agrees.\n"
        "It does not mean that the result is good; --require asks for that.\n"
        "Without an attestation beside the archive it is INVALID: nobody signed it.\n"
        "Exit: 0 valid, 5 INVALID (so also: no --key, no attestation, an empty file), 4 valid but "
        "a requirement is\nunmet, 2 nothing was decided: a file that was named can't be "
        "read, --key is no key, the archive is too large.\n",
    COMMAND_OPTIONS(options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
