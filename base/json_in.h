/*
 * json_in: strict reading. A complete RFC 8259 automaton checks every byte before cJSON sees it
 * (UTF-8, grammar, no duplicate keys, no U+0000, depth, size, nothing after the value), because
 * bare cJSON accepts much that is not JSON. Typed getters; no cJSON function with a case-blind
 * look-up is ever used. Numbers that were written as integers keep that fact (json_is_integer).
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct json_limits {
    size_t max_bytes;
    size_t max_depth;  /* nesting of arrays and objects; 0 means LIMIT_JSON_DEPTH */
    size_t max_tokens; /* values and keys; 0 means LIMIT_JSON_TOKENS */
    /* false: an integer literal beyond ±(2^53-1) is refused; true: it is rounded like any double */
    bool big_integers;
};

/* Validates only. Error text ends "at byte N". */
int json_validate(const char *bytes, size_t len, const struct json_limits *limits,
                  struct err *e) MUST_CHECK;
/* Validates, then parses. *out is owned by the caller (json_free). limits NULL: document defaults
 * of base/limits.h. */
int json_parse(const char *bytes, size_t len, const struct json_limits *limits, cJSON **out,
               struct err *e) MUST_CHECK;
void json_free(cJSON *j); /* accepts NULL */
static inline void cleanup_json(cJSON **j)
{
    json_free(*j);
}
#define AUTO_JSON __attribute__((cleanup(cleanup_json)))

/* Exact, case-sensitive member look-up; NULL when absent or `object` is no object (NULL allowed).
 */
const cJSON *json_get(const cJSON *object, const char *key);
/* The member's text (borrowed) or number, `otherwise` when it is absent or of another type: for
 * what is shown, or has a default. What a document must hold is asked for with the typed getters
 * below. */
const char *json_text(const cJSON *object, const char *key, const char *otherwise);
double json_number(const cJSON *object, const char *key, double otherwise);
/* a number written without point or exponent and within ±(2^53-1) */
bool json_is_integer(const cJSON *j);
/* Deep value equality: numbers by value (2000 == 2000.0), types strict (1 != true), object member
 * order ignored. */
bool json_equal(const cJSON *a, const cJSON *b);
/* "null", "boolean", "integer", "number", "string", "array", "object", or "absent" for NULL. */
const char *json_type_name(const cJSON *j);

/* Typed member getters: absent or of another type is ERR_INPUT naming the key. Strings are borrowed
 * from the tree. */
int json_get_string(const cJSON *object, const char *key, const char **out,
                    struct err *e) MUST_CHECK;
int json_get_string_or_null(const cJSON *object, const char *key, const char **out,
                            struct err *e) MUST_CHECK;
int json_get_bool(const cJSON *object, const char *key, bool *out, struct err *e) MUST_CHECK;
int json_get_u53(const cJSON *object, const char *key, uint64_t max, uint64_t *out,
                 struct err *e) MUST_CHECK;
int json_get_object(const cJSON *object, const char *key, const cJSON **out,
                    struct err *e) MUST_CHECK;
int json_get_array(const cJSON *object, const char *key, const cJSON **out,
                   struct err *e) MUST_CHECK;
/* Every member's key must be one of `known` (n of them): our own documents refuse unknown keys,
 * with "did you mean". */
int json_only_keys(const cJSON *object, const char *const *known, size_t n,
                   struct err *e) MUST_CHECK;
