/* elf: is there debug information in an executable? Profiles without it name no functions. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/* 64-bit ELF only; a file whose section table is stripped or malformed has none. -1: it can't be
 * read. */
int elf_has_debug_info(int fd, bool *out, struct err *e) MUST_CHECK;
