/*
 * notify: what a service manager expects, without its library: readiness datagrams, the watchdog's
 * period, and a listening socket handed over at start. Reads the environment it is given.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Sends "READY=1" and the like to $NOTIFY_SOCKET; without one does nothing. A failure is only
 * logged. */
void notify_send(char *const environment[], const char *state);
/* Half of $WATCHDOG_USEC in nanoseconds when it is meant for this process, else 0. */
uint64_t notify_watchdog_ns(char *const environment[]);
/* Descriptor 3 when exactly one socket was handed to this process (LISTEN_PID, LISTEN_FDS), made
 * close-on-exec; else -1. More than one, or one that is no listening stream socket, is an error. */
int notify_listen_fd(char *const environment[], int *out_fd, struct err *e) MUST_CHECK;
