/*
 * pointers: a JSON tree taken apart by its JSON Pointers, for tests that change every value of a
 * document. Helpers fail the running test themselves.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

struct pointers {
    char **items;
    size_t n;
};

/* The pointer of every value below the root, in document order. Of a list with more than `whole`
 * elements the first three and the last stand for all. */
void pointers_of(const cJSON *root, size_t whole, struct pointers *out);
void pointers_fini(struct pointers *p);

/* The value at a plain pointer. */
cJSON *pointers_at(cJSON *root, const char *pointer);
/* Exchanges what two values hold; their places and names stay. */
void pointers_swap(cJSON *a, cJSON *b);
/* Takes the value at a pointer (not the root) out of its list or object. */
void pointers_remove(cJSON *root, const char *pointer);
