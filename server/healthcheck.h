/* healthcheck: asks a running server whether it is ready; for containers and service managers. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"

/* GET /readyz at ADDR:PORT (a wildcard address is asked on loopback), within five seconds. 0: it
 * said 200. */
int healthcheck(const char *listen, struct err *e) MUST_CHECK;
