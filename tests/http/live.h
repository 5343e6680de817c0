/*
 * live: the real server program on a data directory and a loopback port of its own. Fails the
 * running test when the server does not start.
 */
#pragma once

#include <sys/types.h>

#include "tests/http/raw.h"

struct live {
    pid_t pid;
    unsigned port;
    char *dir;  /* everything of this server: data/, log, port */
    char *data; /* dir/data */
};

/* A fresh directory, nothing started. */
void live_init(struct live *l);
/* The same with the data below an existing directory, which is not removed. */
void live_init_at(struct live *l, const char *data);
/* Starts with further arguments (NULL-ended, may be NULL) and waits until it answers. */
void live_start(struct live *l, const char *const extra[]);
/* SIGTERM; the exit code (128 + signal when it died of one). */
int live_stop(struct live *l);
/* SIGKILL, now. */
void live_kill(struct live *l);
/* Stops when running and removes the directory. */
void live_fini(struct live *l);
/* `cleanrun-server ARGS… --data DATA`: exit code; *out_text (heap, may be NULL) gets standard
 * output. */
int live_admin(struct live *l, const char *const args[], char **out_text);
/* Resident set of the running server in KiB, from /proc; 0 when unknown. peak: the highest so far.
 */
unsigned long live_rss_kib(const struct live *l, bool peak);
/* The server's log so far; caller frees. */
char *live_log(const struct live *l);
/* Regular files below data/objects and data/spool. */
size_t live_count(const struct live *l, const char *folder);
