/*
 * shape: what closed documents are described with: an object is a table of members, each required
 * and of one kind. Knows kinds of values, no document; manifest_shape.c has the manifest's tables.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Is the value of a kind? Else e says what it must be. */
typedef int (*shape_checker)(const cJSON *value, struct err *e);

struct shape_member {
    const char *key;
    shape_checker check;
};

/* An object with exactly these members (at most 32), each of its kind; e names the member. */
int shape_object(const cJSON *object, const struct shape_member *members, size_t n,
                 struct err *e) MUST_CHECK;
/* An array whose every item is of the kind; e names the item by its index. */
int shape_each(const cJSON *array, shape_checker check, struct err *e) MUST_CHECK;
/* A text that is one of n words. */
bool shape_one_of(const cJSON *v, const char *const *words, size_t n);
/* Always -1: the value must be `what`, and is something else. */
int shape_refuse(struct err *e, const char *what, const cJSON *value) MUST_CHECK;

/* The kinds; each is a shape_checker. */
int shape_any_object(const cJSON *v, struct err *e) MUST_CHECK;
int shape_object_or_null(const cJSON *v, struct err *e) MUST_CHECK;
int shape_any_array(const cJSON *v, struct err *e) MUST_CHECK;
int shape_bool(const cJSON *v, struct err *e) MUST_CHECK;
int shape_some_text(const cJSON *v, struct err *e) MUST_CHECK; /* 1 to 4096 bytes */
int shape_any_text(const cJSON *v, struct err *e) MUST_CHECK;
int shape_text_or_null(const cJSON *v, struct err *e) MUST_CHECK;
int shape_texts(const cJSON *v, struct err *e) MUST_CHECK;
int shape_text_map(const cJSON *v, struct err *e) MUST_CHECK; /* any keys; texts or nulls */
int shape_count(const cJSON *v, struct err *e) MUST_CHECK;    /* whole, from 0, at most 2^53-1 */
int shape_number(const cJSON *v, struct err *e) MUST_CHECK;   /* finite */
int shape_number_or_null(const cJSON *v, struct err *e) MUST_CHECK;
int shape_hash(const cJSON *v, struct err *e) MUST_CHECK; /* SHA-256, lower-case hex */
int shape_hash_or_null(const cJSON *v, struct err *e) MUST_CHECK;
int shape_object_id(const cJSON *v, struct err *e) MUST_CHECK; /* git's, SHA-1 or SHA-256 */
int shape_object_ids(const cJSON *v, struct err *e) MUST_CHECK;
int shape_stamp(const cJSON *v, struct err *e) MUST_CHECK; /* RFC 3339 in UTC */
int shape_project(const cJSON *v, struct err *e) MUST_CHECK;
int shape_gate(const cJSON *v, struct err *e) MUST_CHECK;
int shape_name(const cJSON *v, struct err *e) MUST_CHECK;
int shape_run_id(const cJSON *v, struct err *e) MUST_CHECK;
int shape_run_id_or_null(const cJSON *v, struct err *e) MUST_CHECK;
int shape_relname(const cJSON *v, struct err *e) MUST_CHECK; /* see base/relname.h */
int shape_relname_or_null(const cJSON *v, struct err *e) MUST_CHECK;
