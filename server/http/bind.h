/* bind: the listening socket from its text form. No state. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"

/* Bound, listening, close-on-exec TCP socket for "ADDR:PORT" ("[::1]:8080", port 0 picks one);
 * *out_port is the real port. */
int bind_listen(const char *address, int *out_fd, unsigned *out_port, struct err *e) MUST_CHECK;
