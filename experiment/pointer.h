/* pointer: JSON Pointer (RFC 6901) with one extension: a token that is exactly "*" matches every member or
 * element (decisions U9). Plain pointers give one value; patterns are expanded to plain pointers first. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { POINTER_MAX_BYTES = 512 };

bool pointer_ok(const char *pointer);          /* "" or "/tok/tok…", ~0 ~1 only, ≤ 16 tokens, ≤ 512 bytes */
bool pointer_is_pattern(const char *pointer);  /* holds a "*" token */
const cJSON *pointer_get(const cJSON *root, const char *pointer); /* NULL when absent or not pointer_ok */
/* Decodes the token at *p, which stands after a '/' of a pointer that is ok, and moves *p to the next '/' or the end. */
void pointer_token(const char **p, char out[POINTER_MAX_BYTES + 1]);
/* Plain pointers of every match in document order (members sorted bytewise); heap strings. */
struct pointer_list {
    char **items;
    size_t n;
};
int pointer_expand(const cJSON *root, const char *pattern, struct pointer_list *out, struct err *e) MUST_CHECK;
void pointer_list_fini(struct pointer_list *l);
/* Appends "/token" with ~ and / escaped; heap string. */
char *pointer_join(const char *base, const char *token) MUST_CHECK;
/* A label with {1}, {2} replaced by what the stars of the pattern stand for in the plain pointer; label NULL: the pointer.
 * Heap string, NULL without memory. */
char *pointer_label(const char *label, const char *pattern, const char *pointer) MUST_CHECK;
#define AUTO_POINTER_LIST __attribute__((cleanup(pointer_list_fini)))
