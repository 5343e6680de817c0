/*
 * leftover: processes that go on running after their runner was killed, which would be measured
 * beside the next run. Every program that is measured or conditions the machine is started with a
 * mark in its environment that names its runner; a process is left over when it bears the mark of a
 * runner that is no more, is in the box of one (box.h), or descends from such a process. What only
 * the machine's lock tells (machine_lock.h) is told, and never ended. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/machine_lock.h"
#include "runner/procfs.h"

#define LEFTOVER_VARIABLE "CLEANRUN_RUNNER"
#define LEFTOVER_MARK_SIZE 43 /* always the same length: an environment's size moves the stack */

/* The mark of this process: its PID namespace, its number, its start. */
int leftover_mark(const struct sysroot *root, char out[LEFTOVER_MARK_SIZE],
                  struct err *e) MUST_CHECK;

struct leftover {
    pid_t pid;
    uint64_t start_ticks;
    char name[32];
    bool certain; /* marked, in a box or of one that is, and this user's: it may be ended */
};

struct leftovers {
    struct leftover *items;
    size_t n;
};

/* The certain ones first. last: the program of the machine's lock, or NULL. Never this process or
 * one that it descends from, and never a process of a runner that lives. */
int leftovers_find(const struct sysroot *root, const struct machine_program *last,
                   struct leftovers *out, struct err *e) MUST_CHECK;
void leftovers_fini(struct leftovers *l);
#define AUTO_LEFTOVERS __attribute__((cleanup(leftovers_fini)))
/* "name (PID), name (PID) and 3 more" of at most `max`; cut to size. */
void leftovers_list(const struct leftovers *l, size_t max, char *out, size_t size);

struct leftovers_ended {
    size_t n;
    char names[200];
};
/* Ends the certain ones and waits for the others to end by themselves, both for some seconds.
 * ERR_BUSY with what to do when some remain. */
int leftovers_end(const struct sysroot *root, const struct machine_program *last,
                  struct leftovers_ended *out, struct err *e) MUST_CHECK;
