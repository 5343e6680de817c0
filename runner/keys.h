/* keys: the public keys that an option names (PEM files, repeatable), as a keyring. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "evidence/keyring.h"
#include "runner/cli.h"

/* Adds every file of the option; the same key twice is one. A file that holds no public key is
 * ERR_USAGE: it is the caller's, not evidence that is broken. */
int keys_load(const struct cli_args *a, const char *option, struct keyring *ring,
              struct err *e) MUST_CHECK;
