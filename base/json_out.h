/*
 * json_out: exact writing of cJSON trees (never cJSON_Print, which loses digits) and builder
 * helpers that cannot fail half-way unnoticed. Integers without a point, doubles in their shortest
 * form that reads back equal (with ".0" beyond 2^53-1, so that json_in takes whatever is written);
 * strings escaped minimally, with '<' as \u003c so that a document may stand inside HTML.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum json_style {
    JSON_COMPACT,
    JSON_PRETTY /* two spaces, one member a line, newline at the end */
};

/* A non-finite number, an invalid string or depth over the limit marks the buffer failed. */
void json_write(struct buf *out, const cJSON *j, enum json_style style);
void json_write_string(struct buf *out, const char *s);
void json_write_number(struct buf *out, double v);

/* Builders. Each returns the new node, owned by the parent, or NULL when memory is short; that is
 * remembered in `failed`, so a chain of calls needs one check at its end: json_doc_take. */
struct json_doc {
    cJSON *root;
    bool failed;
};
void json_doc_init_object(struct json_doc *d);
void json_doc_fini(struct json_doc *d);
/* The finished root, owned by the caller (json_free); NULL and *e when any add failed. */
cJSON *json_doc_take(struct json_doc *d, struct err *e) MUST_CHECK;
/* parent NULL means the root; parent an array → key must be NULL. value is consumed in every case.
 */
cJSON *json_add(struct json_doc *d, cJSON *parent, const char *key, cJSON *value);
cJSON *json_add_object(struct json_doc *d, cJSON *parent, const char *key);
cJSON *json_add_array(struct json_doc *d, cJSON *parent, const char *key);
/* NULL s → JSON null */
void json_add_string(struct json_doc *d, cJSON *parent, const char *key, const char *s);
void json_add_bool(struct json_doc *d, cJSON *parent, const char *key, bool v);
/* |v| ≤ 2^53-1, marked integer; else failed */
void json_add_int(struct json_doc *d, cJSON *parent, const char *key, int64_t v);
/* non-finite → null */
void json_add_double(struct json_doc *d, cJSON *parent, const char *key, double v);
void json_add_null(struct json_doc *d, cJSON *parent, const char *key);
/* deep copy; NULL v → nothing */
void json_add_copy(struct json_doc *d, cJSON *parent, const char *key, const cJSON *v);
#define AUTO_JSON_DOC __attribute__((cleanup(json_doc_fini)))
