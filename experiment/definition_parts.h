/*
 * definition_parts: what the two ways to a definition share: its canonical document
 * (definition.c) and cleanrun.yaml (definition_yaml.c). Private to definition*.c.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/definition.h"

#define DEFINITION_SCHEMA "cleanrun-definition/1"

/* Fills the names, the borrowed pointers and the digests of a definition whose document is set and
 * well-formed. After a failure definition_fini frees what was made. */
int definition_settle(struct definition *d, struct err *e) MUST_CHECK;
/* These words stand at a gate's place in addresses, so no gate has such a name. */
bool definition_gate_reserved(const char *name);
