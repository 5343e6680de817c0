/*
 * artifact: the exact executable that the build made: named by the build tool's own messages or an
 * explicit path, never found by searching or by time. Opened once; hashed, started and checked
 * again through the same descriptor. Knows nothing of runs.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "runner/build.h"

struct artifact {
    int fd;               /* O_RDONLY, for execveat */
    char *path;           /* absolute */
    char *name;           /* last segment of the path */
    const char *resolved; /* "path", "cargo-messages", "meson-introspection" */
    struct digest digest;
    uint64_t size;
    cJSON *details; /* what the messages say: features, fresh, profile; owned, may be NULL */
};

/* Which target of the build; kind and src_path may be NULL, src_path is absolute or relative to
 * root. */
struct artifact_wanted {
    const char *target, *kind, *src_path, *root;
};

/* The single executable of the target in cargo's messages: heap path. Errors are ERR_INPUT:
 * "expected exactly one executable …", "invalid Cargo JSON object", "the build did not finish". */
int artifact_from_cargo(const struct artifact_wanted *w, const char *messages, size_t len,
                        char **out_path, cJSON **out_details, struct err *e) MUST_CHECK;
/* The same in the output of `meson introspect --targets`. */
int artifact_from_meson(const struct artifact_wanted *w, const char *json, size_t len,
                        char **out_path, cJSON **out_details, struct err *e) MUST_CHECK;
/* Opens and hashes: a regular, executable ELF file; scripts are refused. */
int artifact_open(const char *path, const char *resolved, struct artifact *out,
                  struct err *e) MUST_CHECK;

/* By the definition's rule, after build_run. meson's answer is kept as BUILD_MESSAGES. */
int artifact_resolve(const struct build_input *in, const char *root, struct artifact *out,
                     struct err *e) MUST_CHECK;
/* True when the descriptor's bytes still have the digest. */
int artifact_unchanged(const struct artifact *a, bool *out, struct err *e) MUST_CHECK;
void artifact_fini(struct artifact *a); /* accepts zeroed with fd -1 */

#define AUTO_ARTIFACT __attribute__((cleanup(artifact_fini)))
