/* host_facts: how each machine fact is read. A reader gives heap text, or NULL when it can't tell.
 */
#pragma once

#include "base/cleanup.h"
#include "runner/procfs.h"

struct host_reader {
    const char *name;
    char *(*read)(const struct sysroot *root);
};

const struct host_reader *host_reader_find(const char *name);

/* host_memory.c: the smallest memory limit over this process's groups, "none" without one. */
char *host_memory_limit(const struct sysroot *root) MUST_CHECK;
