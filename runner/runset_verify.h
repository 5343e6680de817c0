/*
 * runset_verify: is a package what its index says? Stage by stage: checksum of the index, signature
 * (when keys are given), the index's own form, the inventory, every run by itself, then every
 * derived section made again from the files and compared whole. Needs nothing but the directory.
 * Whether the runs pass is another question: the eligibility in the index, which by then is proven.
 * One thread.
 *
 * cleanrun-package-verify/1: {schema, verdict: VALID|INVALID, status: PASS|FAIL|null,
 * index_sha256|null, keyid|null, signed: bool, stages[{name, result: ok|failed|not_run|not_asked,
 * detail}], eligibility{}|null, shortcomings[], unmet[]}
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "evidence/keyring.h"

struct runset_demand {
    bool clean, unchanged_source, no_skips, pass;
    size_t count; /* runs; 0: any number */
};

struct runset_verdict {
    cJSON *document;
    bool valid;
    bool eligible; /* valid, and every demand is met */
};

/* keys NULL: signatures are not asked for. -1: no decision (the directory can't be opened, I/O,
 * memory). */
int runset_verify(const char *dir, const struct keyring *keys, const struct runset_demand *demand,
                  struct runset_verdict *out, struct err *e) MUST_CHECK;
void runset_verdict_fini(struct runset_verdict *v); /* accepts zeroed */
#define AUTO_RUNSET_VERDICT __attribute__((cleanup(runset_verdict_fini)))
