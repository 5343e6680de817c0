/* random: bytes from the system's source (getrandom(2)). */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Fills all of out, waiting for the source to be seeded. */
int random_bytes(void *out, size_t len, struct err *e) MUST_CHECK;
