/*
 * child: starts one program with explicit arguments, environment and descriptors in a session of
 * its own, and ends it with everything that descends from it. Kills go through the pidfd, the
 * process group and the box, never through a remembered number. Knows nothing of what the program
 * is for. One thread: the process must not have others when it starts a child.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

struct child_spec {
    const char *const *argv; /* NULL-ended; argv[0] is looked up on `path` unless exec_fd is given
                                or it holds '/' */
    const char *const *envp; /* NULL-ended */
    const char *path;        /* search path for argv[0]; NULL: no search, argv[0] must hold '/' */
    int exec_fd;             /* ≥ 0: the program itself, started by descriptor; else -1 */
    int cwd_fd;              /* working directory; -1: inherited */
    int stdin_fd;            /* -1: /dev/null, and so for the next two */
    int stdout_fd;
    int stderr_fd;
    int extra_fd;        /* -1: none; the child sees it as CHILD_EXTRA_FD */
    int cgroup_procs_fd; /* ≥ 0: cgroup.procs of the box the child joins before it starts */
};

#define CHILD_EXTRA_FD 3
#define CHILD_SPEC_INIT                                                                            \
    {                                                                                              \
        .exec_fd = -1, .cwd_fd = -1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1,             \
        .extra_fd = -1, .cgroup_procs_fd = -1                                                      \
    }

struct child {
    pid_t pid; /* for reading /proc only */
    int pidfd; /* -1 after child_fini */
};

struct child_status {
    bool exited; /* false: ended by a signal */
    int code;    /* exit code */
    int signal;
    uint64_t user_us, system_us; /* of the child and everything it waited for */
    uint64_t max_rss_kib;
    uint64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
};

/* Makes this process adopt orphans of its descendants, so that child_end finds them. Call once,
 * before the first child. */
int child_adopt_orphans(struct err *e) MUST_CHECK;
/* Returns when the program really runs: a failing exec is this function's error (ERR_NOTFOUND for a
 * missing program). */
int child_start(const struct child_spec *spec, struct child *out, struct err *e) MUST_CHECK;
/* To the child's process group; a child that is gone is no failure. */
void child_signal(const struct child *c, int signal);
/* Blocks until the child ended and reaps it; afterwards only child_fini may follow. */
int child_wait(struct child *c, struct child_status *out, struct err *e) MUST_CHECK;
/* Between the child's end and child_wait: kills what it left behind, its group and every adopted
 * orphan, until none remains (bounded). Returns how many orphans were found. */
size_t child_kill_rest(const struct child *c);
void child_fini(struct child *c);

/* Finds a program as exec would: an absolute or relative path with '/', else along `path`. Heap
 * string or NULL. */
char *child_find_program(const char *name, const char *path) MUST_CHECK;
