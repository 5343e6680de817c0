/*
 * json_keys: the keys of the objects that are open while a document is read, and the answer whether
 * one of them came twice. Keys are compared after unescaping. Private to json_in. One thread at a
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct json_key {
    const char *text; /* in the document, or in `unescaped` */
    size_t len;
    size_t at; /* byte offset in the document, for messages */
};

struct json_keys {
    struct json_key *keys; /* of all open objects, outermost first */
    size_t n;
    size_t cap;
    char *unescaped; /* as long as the document; taken when the first escaped key comes */
    size_t unescaped_len;
    size_t document_len;
};

/* Where an object's keys start; taken when the object opens. */
struct json_keys_mark {
    size_t n;
    size_t unescaped_len;
};

void json_keys_init(struct json_keys *k, size_t document_len);
void json_keys_fini(struct json_keys *k); /* accepts zeroed */
struct json_keys_mark json_keys_open(const struct json_keys *k);
/* Adds a key: the well-formed text between the quotes, borrowed. False when memory is short. */
bool json_keys_add(struct json_keys *k, const char *raw, size_t len, size_t at) MUST_CHECK;
/* Ends the innermost object. True when all its keys differ; otherwise *out_at is where one comes
 * again. */
bool json_keys_close(struct json_keys *k, struct json_keys_mark mark, size_t *out_at) MUST_CHECK;

#define AUTO_JSON_KEYS __attribute__((cleanup(json_keys_fini)))
