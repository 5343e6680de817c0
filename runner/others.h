/*
 * others: processor time of the machine's processes that are neither this one and its children nor
 * the measured program's, by looks at all of them. What no look can see, because it came and went
 * between two and nobody waited for it, is the caller's to add (interference.c). One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runner/procfs.h"

#define OTHERS_BUSIEST 5

struct others_busy {
    char comm[32];
    uint64_t ticks;
};

struct others_seen;
/* Kept from look to look, and no larger than the machine needs: fresh memory is dear. */
struct others_list {
    struct others_seen *items;
    size_t n, room;
};

/* Begins with the first three, all else zero. */
struct others {
    const struct sysroot *root;
    bool (*mine)(const void *context, pid_t pid); /* of the measured program; NULL: none is */
    const void *context;
    uint64_t ticks; /* of the clock (_SC_CLK_TCK), since the first look */
    size_t looks;
    struct others_busy busiest[OTHERS_BUSIEST]; /* in no order; ticks 0: nobody */
    struct others_list now, before; /* of the last look, and the memory of the one before */
};

/* The first look only takes stock. A machine that can't be read adds nothing. */
void others_look(struct others *o);
void others_fini(struct others *o);
