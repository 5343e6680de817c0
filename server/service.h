/*
 * service: the running server: everything below it, started and stopped in one order. One thread
 * starts, ticks and stops it.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "server/config.h"

struct service;

/* listen_fd: a socket handed over by a service manager (taken), or -1 to bind config.listen. The
 * config is borrowed. */
int service_start(const struct config *config, int listen_fd, struct service **out,
                  struct err *e) MUST_CHECK;
/* "http://127.0.0.1:8620" */
const char *service_base_url(const struct service *s);
/* Deadlines of connections, and changes that other processes made to the data; a few times a
 * second. */
void service_tick(struct service *s);
/* Stops accepting, answers what is under way (at most config.drain_s seconds), then ends
 * everything. Accepts NULL. */
void service_stop(struct service *s);
