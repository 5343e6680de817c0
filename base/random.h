/* random: bytes from the system's source (getrandom(2)). */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

int random_bytes(void *out, size_t len, struct err *e) MUST_CHECK;
