/*
 * mapped: every file that the running program executes from (PROT_EXEC mappings: itself, its
 * libraries), each held open and hashed when first seen and again at the end, so that a change in
 * place is noticed.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "runner/artifact.h"

struct mapped;

/* source_root: paths below it are named relative to it; system paths keep their names; others only
 * their last segment. */
int mapped_new(const char *source_root, struct mapped **out, struct err *e) MUST_CHECK;
void mapped_free(struct mapped *m);
/* Reads /proc/PID/maps and takes up what is new. A process that is gone is no error. A mapped file
 * that was deleted or replaced meanwhile is remembered as a change. */
int mapped_scan(struct mapped *m, pid_t pid, struct err *e) MUST_CHECK;
/* /proc/PID/exe must be the artifact, byte for byte; a difference is remembered as a change. */
int mapped_check_exe(struct mapped *m, pid_t pid, const struct artifact *a,
                     struct err *e) MUST_CHECK;
/* Hashes everything again. *out_changed: name of the first file that changed (borrowed), or NULL.
 */
int mapped_check(struct mapped *m, const char **out_changed, struct err *e) MUST_CHECK;
size_t mapped_count(const struct mapped *m);
/* [{name, sha256}] sorted by name. */
int mapped_to_json(const struct mapped *m, cJSON **out, struct err *e) MUST_CHECK;
