/*
 * host_rules: the definition's `host.limits` and `host.quiet` against what a runner read. The
 * runner refuses to measure, or to finish, where one is broken; whoever verifies a package asks the
 * same of the same numbers. What is not known is within no limit.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* First of the definition's host limits that does not hold, as text in why; false when all hold. */
bool host_breaks(const cJSON *limits, const cJSON *facts, const cJSON *readings, char *why,
                 size_t size);
/* First limit of `quiet` that the record breaks, as text in why (size ≥ 160); false when it is
 * quiet. An unknown reading under a limit counts as broken. alone: nothing of ours ran in the
 * interval, so load and pressure, to which the measured program adds, are judged too. */
bool interference_breaks(const cJSON *quiet, const cJSON *record, bool alone, char *why,
                         size_t size);
/* A record for people, on one line: "other processes 192 % of a core (cc1, make), stolen 0 %, …".
 * What is unknown is left out; nothing at all for no record. */
void interference_describe(const cJSON *record, struct buf *out);
/* Whether it should make one doubt the numbers, whatever the gate allows: other processes took more
 * than a tenth of a core, the hypervisor more than 1 %, memory was swapped, or a processor was
 * throttled. What is unknown is no reason. */
bool interference_is_loud(const cJSON *record);
