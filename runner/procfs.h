/*
 * procfs: reading /proc and /sys below a root that tests can make up. Pure parsing plus small
 * reads; no state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Where /proc, /sys and /etc are: "/" in life, a directory in tests. */
struct sysroot {
    int fd; /* the root directory */
};

int sysroot_open(const char *path, struct sysroot *out, struct err *e) MUST_CHECK;
void sysroot_close(struct sysroot *r);
/* A small text file ("proc/loadavg"), heap, NULL when absent or unreadable: unknown is a value
 * here. UTF-8: another byte is told as "\\xe9". */
char *sysroot_read(const struct sysroot *r, const char *name) MUST_CHECK;
/* Its first line without white space at the ends; NULL when absent or empty. */
char *sysroot_line(const struct sysroot *r, const char *name) MUST_CHECK;
/* The line, or "none" where the machine has no such control at all: known, and equal only to
 * "none". NULL: it is there and cannot be read, so it is unknown (or no memory). */
char *sysroot_line_or_none(const struct sysroot *r, const char *name) MUST_CHECK;
bool sysroot_number(const struct sysroot *r, const char *name, uint64_t *out);
/* Text after "key" and ':' or white space in a "key: value" file; heap or NULL. */
char *procfs_field(const char *text, const char *key) MUST_CHECK;
bool procfs_field_number(const char *text, const char *key, uint64_t *out);

#define PROC_COMM_SIZE 32

struct proc_stat {
    pid_t pid;                 /* 0 when the text does not begin with a number */
    char comm[PROC_COMM_SIZE]; /* UTF-8: '?' for other bytes */
    char state;
    pid_t ppid, session;
    uint64_t minor_faults, major_faults;
    uint64_t user_ticks, system_ticks;
    uint64_t waited_ticks; /* of children that ended and were waited for, and of theirs */
    uint64_t threads;
    uint64_t start_ticks;
    uint64_t rss_pages;
};
/* /proc/PID/stat, whose second field may hold anything: fields are counted from the last ')'. */
bool proc_stat_parse(const char *text, struct proc_stat *out);
/* The same of a file below dirfd ("77/stat"); false when it can't be read or is none. */
bool proc_stat_read(int dirfd, const char *name, struct proc_stat *out);

/* Calls `each` with every number of a white-space separated list that may be longer than any
 * buffer (task/TID/children): a number that a read cuts is joined with its rest, never taken for
 * two. False, with errno, when it can't be read to its end; a process that is gone has none. */
bool procfs_each_number(int fd, void (*each)(void *context, uint64_t number),
                        void *context) MUST_CHECK;

/* A process whose first thread ended before the others: the kernel shows it as a zombie without
 * memory, although the others go on. */
enum proc_live {
    PROC_LIVE_FOUND, /* *out: what a thread that runs says; memory is that of the whole process */
    PROC_LIVE_NONE,  /* no thread has memory: it is ending, or gone */
    PROC_LIVE_UNKNOWN,
};
enum proc_live proc_live_thread(const struct sysroot *root, pid_t pid,
                                struct proc_stat *out) MUST_CHECK;
/* What an open file of /proc holds from its beginning, at most size - 1 bytes and a NUL, however
 * often it was read before. False with errno; a negative fd leaves errno as its open set it. */
bool procfs_read_open(int fd, char *text, size_t size);
/* Whether an error of open or read says that the process or thread is no more. */
bool procfs_is_gone(int error_number) MUST_CHECK;

/* First line of /proc/stat, in ticks. */
struct cpu_times {
    uint64_t busy, idle, steal; /* busy holds everything but idle, iowait and steal */
    uint64_t interrupts;        /* the part of busy that is no process's: irq and softirq */
};
bool cpu_times_parse(const char *text, struct cpu_times *out);

/* One of /proc/pressure: stall totals in microseconds, and the ten-second averages in per cent. */
struct pressure {
    bool known;
    uint64_t some_us, full_us;
    double some_avg10, full_avg10;
};
void pressure_parse(const char *text, struct pressure *out);
