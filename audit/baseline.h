/*
 * baseline: the manifest of a reviewed baseline, its verification against a tree, and its
 * packaging. Reads the seed's format and our own. Knows nothing of signatures. A value, owned by
 * its function.
 *
 * cleanrun-baseline/1, closed: {schema, baseline_id: "b-<run id or UTC stamp>", run?, project,
 * gate, class, reviewed{by, at, reason}, evidence_sha256?, comparison_paths[], files[{path, size,
 * sha256}]}
 *
 * rvoip-perf-regression-baseline-v1, the format of rvoip's own scripts, so unknown keys are
 * kept.
 * "./" in its paths is dropped.
 *
 * A broken manifest or tree is ERR_TRUST; a name that cannot be opened at all is what the system
 * said of it.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"

struct baseline_file {
    char *path; /* normalised */
    uint64_t size;
    struct digest digest;
};

struct baseline {
    cJSON *document; /* comparison_paths normalised; everything else as written */
    const char *id;  /* borrowed */
    bool legacy;     /* the seed's format */
    bool paths_only; /* no inventory: it names comparison paths and vouches for no byte */
    struct baseline_file *files; /* bytewise by path */
    size_t n_files;
    struct digest digest; /* of the manifest's bytes */
};

void baseline_fini(struct baseline *b); /* accepts zeroed */
/* allow_paths_only: a seed manifest without `files` is accepted for its comparison paths alone. */
int baseline_parse(const char *bytes, size_t len, bool allow_paths_only, struct baseline *out,
                   struct err *e) MUST_CHECK;
/* Every listed file: regular, no link, size, SHA-256; and not one file more. `manifest` is {dirfd,
 * name} of a file that may stand inside the root without being listed; name NULL: none. */
struct baseline_manifest_place {
    int dirfd;
    const char *name;
};
int baseline_verify_tree(const struct baseline *b, int rootfd,
                         struct baseline_manifest_place manifest, struct err *e) MUST_CHECK;

/* Reads the manifest (a regular file, no link) and verifies the tree. root NULL: "perf-results"
 * beside the manifest if there is one, else the manifest's directory. */
int baseline_verify(const char *manifest_path, const char *root, struct baseline *out,
                    struct err *e) MUST_CHECK;
/* Verifies, copies manifest and files to <out_dir>/perf-regression-baseline/{manifest.json,
 * perf-results/…}, verifies the copy, and lets it appear at once. ERR_CONFLICT when the package is
 * there already. out_dir is made (one level). */
int baseline_package(const char *manifest_path, const char *root, const char *out_dir,
                     struct baseline *out, struct err *e) MUST_CHECK;
#define AUTO_BASELINE __attribute__((cleanup(baseline_fini)))
