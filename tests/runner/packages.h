/*
 * packages: what tests of packages of several runs share: packing, verifying, and changing a
 * package as a forger would. Helpers fail the running test themselves. Include after support.h.
 */
#pragma once

#include <cjson/cJSON.h>

#include "tests/runner/release.h"

/* Every requirement that verify can be given, of three runs. */
extern const char *const packages_require_all[];
/* cleanrun package with the release's source block and destination, and what must come of it. */
void packages_make(const struct release *r, const char *const args[], int code);
/* A writable copy of a fixture with its package. */
void packages_copy(const struct release *from, struct release *r);
/* verify DIR MORE…; the document (NULL: none), freed by the caller. */
cJSON *packages_verify(const char *dir, const char *const more[], int *out_code);
void packages_expect_exit(const char *what, const char *dir, const char *const more[], int code);
/* INVALID at this stage with this text, and nothing claimed. */
void packages_expect_invalid(const char *what, const char *dir, const char *stage,
                             const char *text);
/* Sets a value in the index (json NULL: removes it) and redoes its checksum. */
void packages_rewrite(const struct release *r, const char *pointer, const char *json);
void packages_remove_file(const struct release *r, const char *name);
/* files[] of the index again from the directory, as a forger would do it. */
void packages_relist(const struct release *r);
