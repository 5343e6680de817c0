/*
 * verify: the single entry from received bytes to trusted evidence, stage by stage
 * (docs/evidence-format.md, 5): archive digest = statement subject → envelope and key → ustar →
 * manifest → members → JSON → source. The first failing stage gives the code; later stages are
 * `not_run`. There is no other constructor of struct evidence, and a value exists only when every
 * stage is `ok`.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/manifest.h"
#include "evidence/verify_stream.h"

struct keyring;
struct evidence;

struct verify_input {
    int archive_fd; /* regular file; read by pread, offset untouched */
    /* What the caller believes it is, or NULL; another one is IN-HASH. */
    const struct digest *archive_digest;
    /* Made while receiving (evidence/verify_stream.h), or NULL: one pass here. */
    const struct archive_index *index;
    const char *envelope; /* DSSE JSON bytes; NULL or empty: IN-SIGNATURE */
    size_t envelope_len;
    const struct keyring *keyring; /* empty: IN-KEY */
    const char *project; /* NULL offline; else the key must be allowed for it and the manifest must
                            name it */
    const char *gate;    /* NULL: any; else the manifest must name it */
    int64_t now_us;      /* receive time: key validity is judged at it */
};

enum verify_stage {
    VERIFY_DIGEST,
    VERIFY_SIGNATURE,
    VERIFY_ARCHIVE,
    VERIFY_MANIFEST,
    VERIFY_MEMBERS,
    VERIFY_JSON,
    VERIFY_SOURCE,
    VERIFY_STAGES,
};

struct verify_report {
    cJSON *document;  /* cleanrun-verify/1 {schema, verdict: VALID|INVALID, archive_sha256, keyid,
                       * run, stages[{name, result, code, detail}]};  run = {project, gate, class,
                       * run, mode, status, commit, dirty} or null unless VALID */
    const char *code; /* IN-… of the failing stage, static; NULL when VALID */
    enum verify_stage failed_stage;
};

/* 0: decided (report filled; *out is set iff VALID, else NULL). -1: could not decide (I/O, memory).
 */
int evidence_verify(const struct verify_input *in, struct evidence **out,
                    struct verify_report *report, struct err *e) MUST_CHECK;
void verify_report_fini(struct verify_report *r);

void evidence_free(struct evidence *ev);
const struct manifest *evidence_manifest(const struct evidence *ev);
const struct digest *evidence_digest(const struct evidence *ev);
const char *evidence_keyid(const struct evidence *ev);    /* base64 SHA-256 of SPKI */
const char *evidence_key_name(const struct evidence *ev); /* runner name in the keyring, or NULL */
/* The verified bytes of a member, at most max; heap, caller frees. ERR_NOTFOUND, ERR_LIMIT. */
int evidence_read(const struct evidence *ev, const char *name, size_t max, char **out,
                  size_t *out_len, struct err *e) MUST_CHECK;
/* Descriptor of the archive: borrowed, read by pread only. */
int evidence_fd(const struct evidence *ev);
/* Members in archive order. */
const struct archive_index *evidence_index(const struct evidence *ev);
const char *verify_stage_name(enum verify_stage stage);

static inline void cleanup_evidence(struct evidence **ev)
{
    evidence_free(*ev);
}
#define AUTO_EVIDENCE __attribute__((cleanup(cleanup_evidence)))
#define AUTO_VERIFY_REPORT __attribute__((cleanup(verify_report_fini)))
