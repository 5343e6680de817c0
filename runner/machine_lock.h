/*
 * machine_lock: one measurement per machine, whoever starts it. The lock's file also says which
 * program was started last, so that who comes after a runner that was killed can look for what is
 * left of it. The file belongs to every user of the machine: what it says is a reason to look and
 * to refuse, never to end a process. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/procfs.h"

#define MACHINE_LOCK_VARIABLE "CLEANRUN_LOCK"

/* Where it stands: what the variable names (NULL or "": nothing), or below /run/lock or /tmp. */
const char *machine_lock_path(const char *named);
/* Takes the lock file, or ERR_BUSY naming the process that holds it. The descriptor is the lock. */
int machine_lock_take(const char *path, int *out_fd, struct err *e) MUST_CHECK;

/* A program that leads a session of its own. */
struct machine_program {
    pid_t session;
    uint64_t start_ticks; /* of its leader; with the session's number nearly a name */
};

/* Under the lock: this program of ours runs now; 0: none does. Where the file can't be written (it
 * is another user's) nothing is noted. */
void machine_lock_note(int fd, pid_t program);
/* Under the lock: what the last holder noted and did not take back. False: nothing, or of an
 * earlier boot. */
bool machine_lock_last(int fd, const struct sysroot *root, struct machine_program *out);
/* The same without the lock, to tell only. False while a holder lives. */
bool machine_lock_abandoned(const char *path, const struct sysroot *root,
                            struct machine_program *out);
