#include "evidence/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/relname.h"
#include "evidence/dsse.h"
#include "evidence/statement.h"
#include "evidence/ustar.h"

/* Every part but the archive: four envelopes at the most, keys and the text. */
#define HEAD_MAX (8 * LIMIT_ENVELOPE)

struct bundle {
    char *head; /* all small files, and the archive's header at the end */
    size_t head_len;
    uint64_t archive_size;
    char tail[USTAR_BLOCK + USTAR_END]; /* padding after the archive, end of the tar */
    size_t tail_len;
};

struct writer {
    const struct bundle_input *in;
    struct buf out;
    struct dsse run;
    struct dsse verdict;
};

static int put_name(struct writer *w, const char *name, char out[LIMIT_RELNAME + 1], struct err *e)
{
    AUTO_BUF struct buf full = {.data = NULL};

    buf_init(&full, LIMIT_RELNAME);
    buf_printf(&full, "%s/%s", w->in->run, name);
    if (buf_check(&full, e) < 0)
        return -1;
    if (!relname_ok(full.data))
        return err_set(e, ERR_INTERNAL, "bundle.name", "'%.100s' is no name for a bundle",
                       w->in->run);
    memcpy(out, full.data, full.len + 1);
    return 0;
}

static int put_header(struct writer *w, const char *name, uint64_t size, struct err *e)
{
    char full[LIMIT_RELNAME + 1];
    char header[USTAR_BLOCK];

    if (put_name(w, name, full, e) < 0)
        return -1;
    ustar_header(header, full, size);
    buf_put(&w->out, header, sizeof header);
    return 0;
}

static int put_file(struct writer *w, const char *name, const void *bytes, size_t len,
                    struct err *e)
{
    static const char zeros[USTAR_BLOCK];

    if (put_header(w, name, len, e) < 0)
        return -1;
    buf_put(&w->out, bytes, len);
    buf_put(&w->out, zeros, ustar_padding(len));
    return 0;
}

static int put_key(struct writer *w, const char *name, const struct public_key *k, struct err *e)
{
    AUTO_FREE char *pem = NULL;

    if (public_key_write(k, &pem, e) < 0)
        return -1;
    return put_file(w, name, pem, strlen(pem), e);
}

/* An envelope, and the same taken apart so that openssl alone can check it. */
static int put_envelope(struct writer *w, const struct dsse *d, const char *const names[3],
                        const char *bytes, size_t len, struct err *e)
{
    AUTO_BUF struct buf pae = {.data = NULL};

    buf_init(&pae, LIMIT_ENVELOPE);
    dsse_pae(&pae, d->payload_type, d->payload, d->payload_len);
    if (buf_check(&pae, e) < 0 || put_file(w, names[0], bytes, len, e) < 0 ||
        put_file(w, names[1], pae.data, pae.len, e) < 0)
        return -1;
    return put_file(w, names[2], d->signatures[0].sig, d->signatures[0].sig_len, e);
}

static int put_sigstore(struct writer *w, struct err *e)
{
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    if (w->run.n != 1)
        return 0; /* the format carries exactly one signature */
    if (dsse_sigstore_bundle(&w->run, &text, &len, e) < 0)
        return -1;
    return put_file(w, "evidence.tar.sigstore.json", text, len, e);
}

static void text_key(struct buf *b, const char *file, const struct public_key *k)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(public_key_fingerprint(k), hex);
    buf_printf(b, "    openssl pkey -pubin -in %s -outform DER | sha256sum\n    # here: %s\n", file,
               hex);
}

static void text_head(struct buf *b, const struct bundle_input *in, const char *archive)
{
    buf_printf(b, "# Evidence of run %s\n\n", in->run);
    buf_puts(b,
             "Everything below works without cleanrun, with tools of other people. Run the "
             "commands in this\n"
             "directory.\n\n"
             "## 1. Whose keys\n\n"
             "A key inside this bundle proves nothing: whoever makes a bundle can put any key "
             "into it. Compare the\n"
             "fingerprints with what you get from elsewhere before you trust the rest: the server "
             "shows its own at\n"
             "`/api/v1/keys` and the runner's on the run's page; better, ask the operators of "
             "both machines.\n\n");
    text_key(b, "keys/runner.pem", in->runner_key);
    if (in->server_key)
        text_key(b, "keys/server.pem", in->server_key);
    buf_printf(
        b,
        "\n## 2. The runner's statement\n\n"
        "The signature is over `evidence.tar.statement.pae` (DSSE's pre-authentication encoding of "
        "the in-toto\n"
        "statement). The statement must name the archive's SHA-256:\n\n"
        "    openssl dgst -sha256 -verify keys/runner.pem -signature evidence.tar.statement.sig "
        "evidence.tar.statement.pae\n"
        "    sha256sum evidence.tar\n"
        "    # must be: %s\n"
        "    grep -c '\"sha256\":\"%s\"' evidence.tar.statement.pae\n\n",
        archive, archive);
}

static void text_rest(struct buf *b, const struct writer *w, const char *archive)
{
    if (w->in->archive_sig)
        buf_puts(b, "The runner also signed the archive's bytes directly:\n\n"
                    "    openssl dgst -sha256 -verify keys/runner.pem -signature evidence.tar.sig "
                    "evidence.tar\n\n");
    if (w->run.n == 1)
        buf_puts(b, "The same with Sigstore's client, offline:\n\n"
                    "    cosign verify-blob-attestation --key keys/runner.pem --bundle "
                    "evidence.tar.sigstore.json \\\n"
                    "      --insecure-ignore-tlog=true --type " STATEMENT_PREDICATE_RUN
                    " evidence.tar\n\n");
    buf_puts(b, "## 3. The files inside\n\n"
                "`manifest.json` is the archive's first member and lists every other one with its "
                "SHA-256:\n\n"
                "    mkdir evidence && tar -xf evidence.tar -C evidence\n"
                "    cd evidence && jq -r '.files[] | \"\\(.sha256)  \\(.path)\"' manifest.json | "
                "sha256sum -c && cd ..\n\n");
    if (w->in->verdict_envelope)
        buf_printf(
            b,
            "## 4. The server's verdict\n\n"
            "A SLSA Verification Summary about the same archive. Only "
            "`\"verificationResult\":\"PASSED\"` is green:\n"
            "without it nothing was passed.\n\n"
            "    openssl dgst -sha256 -verify keys/server.pem -signature verdict.sig verdict.pae\n"
            "    grep -c '\"sha256\":\"%s\"' verdict.pae\n"
            "    grep -o '\"verificationResult\":\"[A-Z]*\"' verdict.pae\n\n",
            archive);
    buf_puts(
        b,
        "These checks say who measured what, and that nobody changed it since. They do not say "
        "that the\n"
        "measurement was a good idea: for that read the definition and the acceptance inside.\n");
}

static int put_text(struct writer *w, struct err *e)
{
    AUTO_BUF struct buf b = {.data = NULL};
    char archive[DIGEST_HEX_SIZE];

    buf_init(&b, LIMIT_KIB(16));
    digest_hex(w->in->archive_digest, archive);
    text_head(&b, w->in, archive);
    text_rest(&b, w, archive);
    if (buf_check(&b, e) < 0)
        return -1;
    return put_file(w, "VERIFY.md", b.data, b.len, e);
}

static int put_all(struct writer *w, struct err *e)
{
    static const char *const run_names[] = {"evidence.tar.dsse.json", "evidence.tar.statement.pae",
                                            "evidence.tar.statement.sig"};
    static const char *const verdict_names[] = {"verdict.dsse.json", "verdict.pae", "verdict.sig"};
    const struct bundle_input *in = w->in;

    if (dsse_parse(in->envelope, in->envelope_len, &w->run, e) < 0 || put_text(w, e) < 0 ||
        put_key(w, "keys/runner.pem", in->runner_key, e) < 0 ||
        (in->server_key && put_key(w, "keys/server.pem", in->server_key, e) < 0) ||
        put_envelope(w, &w->run, run_names, in->envelope, in->envelope_len, e) < 0 ||
        put_sigstore(w, e) < 0)
        return -1;
    if (in->archive_sig &&
        put_file(w, "evidence.tar.sig", in->archive_sig, in->archive_sig_len, e) < 0)
        return -1;
    if (in->verdict_envelope &&
        (dsse_parse(in->verdict_envelope, in->verdict_envelope_len, &w->verdict, e) < 0 ||
         put_envelope(w, &w->verdict, verdict_names, in->verdict_envelope, in->verdict_envelope_len,
                      e) < 0))
        return -1;
    if (put_header(w, "evidence.tar", in->archive_size, e) < 0)
        return -1;
    return buf_check(&w->out, e);
}

static void writer_fini(struct writer *w)
{
    buf_fini(&w->out);
    dsse_fini(&w->run);
    dsse_fini(&w->verdict);
}

int bundle_new(const struct bundle_input *in, struct bundle **out, struct err *e)
{
    __attribute__((cleanup(writer_fini))) struct writer w = {.in = in};
    struct bundle *b;

    if (in->archive_size > LIMIT_ARCHIVE || (in->verdict_envelope && !in->server_key))
        return err_set(e, ERR_INTERNAL, "bundle.input",
                       "a bundle needs an archive within limits and the keys of all statements");
    buf_init(&w.out, HEAD_MAX);
    if (put_all(&w, e) < 0)
        return -1;
    b = calloc(1, sizeof *b);
    if (!b)
        return err_set(e, ERR_NOMEM, "bundle.memory", "no memory for a bundle");
    b->head = buf_take(&w.out, &b->head_len);
    b->archive_size = in->archive_size;
    b->tail_len = ustar_padding(in->archive_size) + USTAR_END;
    *out = b;
    return 0;
}

void bundle_free(struct bundle *b)
{
    if (!b)
        return;
    free(b->head);
    free(b);
}

uint64_t bundle_size(const struct bundle *b)
{
    return b->head_len + b->archive_size + b->tail_len;
}

size_t bundle_part_count(const struct bundle *b)
{
    (void) b; /* always the same three */
    return 3;
}

struct bundle_part bundle_part_get(const struct bundle *b, size_t i)
{
    if (i == 0)
        return (struct bundle_part){.bytes = b->head, .len = b->head_len};
    if (i == 1)
        return (struct bundle_part){.bytes = NULL, .len = b->archive_size};
    return (struct bundle_part){.bytes = b->tail, .len = b->tail_len};
}

static int read_archive(int fd, uint64_t offset, void *p, size_t len, size_t *out_len,
                        struct err *e)
{
    for (;;) {
        ssize_t n = pread(fd, p, len, (off_t) offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "bundle.read", "cannot read the archive");
        if (n == 0)
            return err_set(e, ERR_TRUST, "bundle.short", "the archive has become shorter");
        *out_len = (size_t) n;
        return 0;
    }
}

int bundle_read(const struct bundle *b, int archive_fd, uint64_t pos, void *p, size_t len,
                size_t *out_len, struct err *e)
{
    for (size_t i = 0; len > 0 && i < bundle_part_count(b); i++) {
        struct bundle_part part = bundle_part_get(b, i);
        size_t take;

        if (pos >= part.len) {
            pos -= part.len;
            continue;
        }
        take = part.len - pos < len ? (size_t) (part.len - pos) : len;
        if (!part.bytes)
            return read_archive(archive_fd, pos, p, take, out_len, e);
        memcpy(p, (const char *) part.bytes + pos, take);
        *out_len = take;
        return 0;
    }
    *out_len = 0;
    return 0;
}
