/* host_facts: how each machine fact is read. A reader gives heap text, or NULL when it can't tell.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "runner/procfs.h"

struct host_reader {
    const char *name;
    char *(*read)(const struct sysroot *root);
};

const struct host_reader *host_reader_find(const char *name);

/* host_memory.c: the smallest memory limit over this process's groups, "none" without one. */
char *host_memory_limit(const struct sysroot *root) MUST_CHECK;

/* host_cpu.c: facts of all processors that are online. */
char *host_boost(const struct sysroot *root) MUST_CHECK;
char *host_cpus_logical(const struct sysroot *root) MUST_CHECK;
char *host_cpus_physical(const struct sysroot *root) MUST_CHECK;
char *host_governor(const struct sysroot *root) MUST_CHECK;
char *host_scaling_driver(const struct sysroot *root) MUST_CHECK;
char *host_smt(const struct sysroot *root) MUST_CHECK;
/* How many a list such as "0-3,8-11" names; false for none or no list. */
bool host_list_size(const char *text, uint64_t *out);
char *host_number_text(uint64_t v) MUST_CHECK;
