/*
 * reference: the reviewed baseline of a run: a run directory that the caller names together with
 * the SHA-256 of its manifest, or that fetch.h got from the server that holds the review. Checked
 * whole before the build, copied into the run, checked again. Never chosen by us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/manifest.h"
#include "experiment/definition.h"
#include "experiment/tree.h"
#include "runner/scratch.h"

struct reference {
    bool present;
    int dir_fd;
    struct digest manifest_digest;
    struct manifest manifest;
    struct definition definition;
    struct tree tree;
    char id[64];       /* "b-<run>" */
    bool has_evidence; /* it came as an archive, with this digest */
    struct digest evidence_digest;
    struct scratch scratch; /* where the archive was unpacked; removed with the reference */
};

/* Both NULL: not present. ERR_USAGE when only one is given, the directory or digest is unusable,
 * the manifest's bytes have another digest ("reviewed baseline content differs"), or any file it
 * lists does not match. */
int reference_open(const char *dir, const char *sha256, struct reference *out,
                   struct err *e) MUST_CHECK;
/* Copies manifest.json, definition.json and results/ to <run>/baseline/ and checks every copied
 * byte again. */
int reference_snapshot(const struct reference *ref, int run_fd, struct err *e) MUST_CHECK;
/* Is this member of a run directory part of the snapshot (besides manifest.json)? */
bool reference_keeps(const char *path);
void reference_close(struct reference *r); /* accepts zeroed */
