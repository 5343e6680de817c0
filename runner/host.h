/*
 * host: the machine as it is, read below a root that tests make up: stable facts
 * (experiment/facts.h; identity) and readings (never identity). A fact that can't be determined is
 * null; a feature the machine does not have is a known fact and reads "none".
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/host_rules.h"
#include "runner/machine_lock.h"
#include "runner/plan.h"
#include "runner/procfs.h"

/* What only the build knows; NULL members are recorded as null where a fact needs them. */
struct host_build {
    const char *toolchain;
    const char *allocator;
    const cJSON *features; /* array of strings */
};

/* {"<fact>": text|null} with exactly the keys of facts_table, in its order. build may be NULL. */
int host_facts(const struct sysroot *root, const struct host_build *build, cJSON **out,
               struct err *e) MUST_CHECK;
/* Free-form readings: frequency, temperature, uptime, memory, clock source drift, container. */
int host_readings(const struct sysroot *root, cJSON **out, struct err *e) MUST_CHECK;

/* Fitness for measuring, one row a check: {name, state: ok|warn|bad|unknown, value, text, fix?}.
 * last: what a runner that was killed noted in the machine's lock, or NULL. */
int host_fitness(const struct sysroot *root, const struct machine_program *last, cJSON **out,
                 struct err *e) MUST_CHECK;
