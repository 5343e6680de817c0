/*
 * auth: who asks. A bearer token is hashed at once; only its SHA-256 is looked up, compared and
 * kept. Knows nothing of where tokens are stored. Pure functions.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/digest.h"

struct request;

#define AUTH_TOKEN_MIN 20
#define AUTH_TOKEN_MAX 128

enum auth_result {
    AUTH_ABSENT,    /* no Authorization field */
    AUTH_TOKEN,     /* *out_hash is set */
    AUTH_MALFORMED, /* another scheme, or no token of ours */
};

/* Scopes of a token; each includes those before it in meaning only where auth_allows says so. The
 * database holds these bits: they never change. */
#define AUTH_READ 1u
#define AUTH_UPLOAD 2u
#define AUTH_REVIEW 4u
#define AUTH_ADMIN 8u

enum auth_result auth_bearer(const struct request *q, struct digest *out_hash) MUST_CHECK;
/* Reading is part of every scope; admin may do everything; otherwise exactly the scope. */
bool auth_allows(unsigned held, unsigned needed);
/* "read" "upload" "review" "admin" → bit, 0 for anything else. */
unsigned auth_scope(const char *word);
/* The word of the highest of the scopes; static. */
const char *auth_scope_word(unsigned scopes);
