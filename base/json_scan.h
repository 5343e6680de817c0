/*
 * json_scan: the validating automaton, which also says where the document's numbers stand. Private
 * to base/json_*.c; others call json_validate. One thread per call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/json_in.h"

struct json_literal {
    size_t at;
    size_t len;
    bool integer; /* neither point nor exponent */
};

/* In document order. */
struct json_literals {
    struct json_literal *items;
    size_t n;
    size_t cap;
};

void json_literals_fini(struct json_literals *l); /* accepts zeroed */
#define AUTO_JSON_LITERALS __attribute__((cleanup(json_literals_fini)))

/* As json_validate; adds every number to `literals`, unless NULL (also on failure: those before
 * it). */
int json_scan(const char *bytes, size_t len, const struct json_limits *limits,
              struct json_literals *literals, struct err *e) MUST_CHECK;
