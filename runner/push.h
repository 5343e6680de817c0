/* push: the two idempotent steps of an upload, and reading what stands in an archive's first
 * member. */
#pragma once

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "runner/cli.h"

struct push_target {
    const char *server;
    const char *project, *gate; /* NULL: from the archive's manifest */
    const char *attestation;    /* NULL: <archive>.dsse.json */
    const char *token_file;
    bool json;
    bool one_line; /* with json: the answer as one line, not as it came */
};

/* Fills server and token file from options, then environment (CLEANRUN_SERVER,
 * CLEANRUN_TOKEN_FILE). */
void push_target_from(const struct cli *c, const struct cli_args *a, struct push_target *out);
/* What can be found before anything is measured; nothing is stored, kinds of errors are
 * push_archive's. A server and a token file that can be read. */
int push_check_options(const struct push_target *t, struct err *e) MUST_CHECK;
/* The server takes uploads for this project from this token; gate NULL: any. */
int push_check_server(const struct push_target *t, struct err *e) MUST_CHECK;
/* ... and believes now what the key with this fingerprint signs, on a machine of this class (NULL:
 * not asked). After push_check_server. */
int push_check_key(const struct push_target *t, const struct digest *fingerprint,
                   const char *machine_class, struct err *e) MUST_CHECK;
/* Uploads and tells the server's verdict; *out_exit is its exit code. ERR_USAGE before anything is
 * sent when the archive is of another project or gate than the target names. */
int push_archive(struct cli *c, const char *archive, const struct push_target *t, int *out_exit,
                 struct err *e) MUST_CHECK;
/* Token from a file that only its owner can read; heap, line end removed. */
int push_read_token(const char *path, char **out, struct err *e) MUST_CHECK;
/* What a refusing status usually means here, to be put behind a message; "" when nothing is known.
 */
const char *push_hint(long status, const struct push_target *t);
/* A page the server named, as an address that can be opened. Heap; NULL without memory. */
char *push_page(const char *server, const char *page);
/* An address below the server's; heap or NULL. */
char *push_url(const char *server, const char *format, ...)
    __attribute__((format(printf, 2, 3))) MUST_CHECK;
/* Exit code of a verdict document; no verdict (a diagnostic run) is EXIT_NOTHING. */
int push_verdict_exit(const char *word);
