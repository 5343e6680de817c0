/*
 * workers: a few threads for work that may block on the disk (fsync, hashing a large file,
 * rendering what is not cached), so that the threads that move bytes never wait. Bounded queue,
 * first in first out. workers_submit may be called from any thread.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct workers;

int workers_start(unsigned threads, struct workers **out, struct err *e) MUST_CHECK;
/* ERR_BUSY when LIMIT_QUEUE jobs wait or it is stopping. */
int workers_submit(struct workers *w, void (*work)(void *cls), void *cls, struct err *e) MUST_CHECK;
/* Finishes what waits, then ends the threads; further jobs are ERR_BUSY. */
void workers_drain(struct workers *w);
/* Drains, then frees. Accepts NULL. */
void workers_stop(struct workers *w);
