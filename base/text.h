/*
 * text: byte classes and encodings of text: UTF-8, hex, base64 (RFC 4648), slugs. No locale.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

bool text_is_utf8(const char *s, size_t len); /* RFC 3629: no overlong, no surrogates, ≤ U+10FFFF */
/* Bytes of the well-formed sequence that s starts with (1 to 4), 0 when it starts with none. */
size_t text_utf8_length(const char *s, size_t len);
/* Bytes of s, max at most, without a sequence that max, or an earlier cut, left in two. */
size_t text_whole_length(const char *s, size_t max);
/* Copies as much of s as fits with its NUL, whole sequences only. Returns out. */
const char *text_copy(char *out, size_t size, const char *s);
/* Bytes that s begins with and that a JSON string holds as they are: printable ASCII (U+007F too)
 * but '"' and '\\'. */
size_t text_plain_length(const char *s, size_t len);
bool text_is_hex(const char *s, size_t len);                /* lower case only */
void text_hex(const uint8_t *bytes, size_t len, char *out); /* writes 2·len + NUL */
/* lower case only, len even, writes len/2 */
bool text_unhex(const char *s, size_t len, uint8_t *out) MUST_CHECK;

/* bytes text_base64 writes, NUL included */
size_t text_base64_size(size_t len);
void text_base64(const uint8_t *p, size_t len, char *out); /* standard alphabet, padded, NUL */
/* Standard or URL-safe alphabet (not both in one text), padding required or absent consistently, no
 * white space, zero trailing bits (DSSE protocol: verifiers accept both alphabets). out holds at
 * least len/4*3+3 bytes. */
bool text_unbase64(const char *s, size_t len, uint8_t *out, size_t *out_len) MUST_CHECK;

bool text_is_slug(const char *s); /* gates: [a-z0-9][a-z0-9-]{0,62} */
/* owner, repository, runner, token names: [A-Za-z0-9_][A-Za-z0-9._-]{0,63}, no ".." */
bool text_is_name(const char *s);
/* owner/name, both text_is_name, name not ending .json .txt .md .git */
bool text_is_project(const char *s);
bool text_is_run_id(const char *s); /* YYYYMMDDThhmmssZ-xxxxxxxx, a real date */
/* The nearest of n candidates by optimal string alignment distance (a change, an insertion, a
 * deletion or an exchange of neighbours is 1), at most 2, or 1 for words under 4 letters; else
 * NULL.
 */
const char *text_nearest(const char *word, const char *const *candidates, size_t n);
/* "; did you mean 'NEAR'?" for the end of a message; "" for NULL. Returns out. */
#define TEXT_HINT_SIZE 96
const char *text_hint(const char *near, char out[TEXT_HINT_SIZE]);
/* Shell-style pattern with '*' only (environment names: "MIMALLOC_*"). */
bool text_glob(const char *pattern, const char *s);
