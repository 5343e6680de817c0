/* pointer: JSON Pointer (RFC 6901) with one extension: a token that is exactly "*" matches every
 * member or element. Plain pointers give one value; patterns are expanded to plain
 * pointers first. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { POINTER_MAX_BYTES = 512, POINTER_LABEL_MAX = 1024 };

/* "" or "/tok/tok…", ~0 ~1 only, ≤ 16 tokens, ≤ 512 bytes */
bool pointer_ok(const char *pointer);
bool pointer_is_pattern(const char *pointer); /* holds a "*" token */
/* NULL when absent or not pointer_ok */
const cJSON *pointer_get(const cJSON *root, const char *pointer);
/* the text there, borrowed; NULL when none */
const char *pointer_text(const cJSON *root, const char *pointer);
/* Decodes the token at *p, which stands after a '/' of a pointer that is ok, and moves *p to the
 * next '/' or the end. */
void pointer_token(const char **p, char out[POINTER_MAX_BYTES + 1]);
/*
 * Every match of a pattern, in document order (members sorted bytewise), with its value, which is
 * borrowed from the document. More than `max` of them, or pointers that together would fill a
 * document of ours (LIMIT_JSON_DOCUMENT): `over`, and the list is empty, so that nobody takes a
 * part for the whole. O(n log n) in the values that the stars pass.
 */
struct pointer_match {
    char *pointer; /* plain; heap */
    const cJSON *value;
};
struct pointer_list {
    struct pointer_match *items;
    struct pointer_match *sorted; /* the same by pointer */
    size_t n;
    size_t total; /* how many there are, listed or not */
    bool over;
};
int pointer_expand(const cJSON *root, const char *pattern, size_t max, struct pointer_list *out,
                   struct err *e) MUST_CHECK;
/* The same for "every member must have it": a member that a star passes and that lacks the rest of
 * the pattern is a match with the value NULL, called by its plain pointer and that rest. */
int pointer_expand_every(const cJSON *root, const char *pattern, size_t max,
                         struct pointer_list *out, struct err *e) MUST_CHECK;
/* The match with this pointer, or NULL. O(log n). */
const struct pointer_match *pointer_list_find(const struct pointer_list *l, const char *pointer);
/* The value of a plain pointer of the list, or NULL. O(log n). */
const cJSON *pointer_list_get(const struct pointer_list *l, const char *pointer);
void pointer_list_fini(struct pointer_list *l);
/* Appends "/token" with ~ and / escaped; heap string. */
char *pointer_join(const char *base, const char *token) MUST_CHECK;
/* A label with {1}, {2} replaced by what the stars of the pattern stand for in the plain pointer;
 * label NULL: the pointer. Cut at POINTER_LABEL_MAX bytes. Heap string, NULL without memory. */
char *pointer_label(const char *label, const char *pattern, const char *pointer) MUST_CHECK;
#define AUTO_POINTER_LIST __attribute__((cleanup(pointer_list_fini)))
