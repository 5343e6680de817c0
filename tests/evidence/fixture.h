/* fixture: a valid run directory, its key, sealed archives of it, and forged ones for the tests of
 * evidence. */
#pragma once

#include "tests/lib/must.h"
#include "tests/lib/support.h"

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/digest.h"
#include "evidence/keyring.h"
#include "evidence/manifest.h"
#include "evidence/sign.h"
#include "evidence/verify.h"
#include "evidence/verify_stream.h"

#define FIXTURE_NOW_US INT64_C(1732889820000000) /* 2024-11-29T14:17:00Z: after the run */
#define FIXTURE_RUN "20241129T141502Z-9c1e07ab"
#define FIXTURE_COMMIT "0123456789abcdef0123456789abcdef01234567"

struct fixture {
    char *dir; /* temporary root */
    char *run; /* run directory below it, with a valid manifest */
    char *tar; /* where fixture_seal writes */
    int run_fd;
    struct private_key *key;
    struct keyring *ring; /* holds the key's public half */
};

void fixture_init(struct fixture *f);
void fixture_fini(struct fixture *f);

/* The manifest as a tree with files[] made from the directory; caller frees with json_free. */
cJSON *fixture_manifest(const struct fixture *f);
/* Sets the value at a JSON Pointer (json NULL: removes it). */
void fixture_set(cJSON *document, const char *pointer, const char *json);
void fixture_write_manifest(const struct fixture *f, const cJSON *document);
/* The valid manifest again, after files have changed. */
void fixture_refresh(const struct fixture *f);
char *fixture_text(const cJSON *document, size_t *out_len);

/* Seals to f->tar; fails the test when that does not work. */
void fixture_seal(const struct fixture *f);
/* The sealed archive's and envelope's bytes. */
char *fixture_archive(const struct fixture *f, size_t *out_len);
char *fixture_envelope(const struct fixture *f, size_t *out_len);

/* Another archive made of a canonical one: each change names a member; bytes NULL removes it, a new
 * name adds it. */
struct change {
    const char *name;
    const char *bytes;
    size_t len;
};
void fixture_rebuild(const char *archive, size_t len, const struct change *changes, size_t n,
                     struct buf *out);

/* Signs a statement about these archive bytes with f->key, saying what the archive's manifest says
 * when it can be parsed, what f's manifest says otherwise. Caller frees. */
char *fixture_sign(const struct fixture *f, const char *archive, size_t len, size_t *out_len);

/* Judges bytes. "VALID", or the code; detail (may be NULL, size ERR_TEXT_MAX) gets the failing
 * stage's text. */
const char *fixture_judge(const struct fixture *f, const char *archive, size_t len,
                          const char *envelope, size_t envelope_len,
                          const struct verify_input *more, char *detail);
/* fixture_sign, then fixture_judge. */
const char *fixture_judge_signed(const struct fixture *f, const char *archive, size_t len,
                                 char *detail);
