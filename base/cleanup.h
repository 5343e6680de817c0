/*
 * cleanup: scope-bound release, the only macros of their kind. `AUTO_x` frees at the end of the
 * scope; STEAL moves the value out, so a function ends with `*out = STEAL(x); return 0;`.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
    free(*(void **) p);
}

static inline void cleanup_fd(const int *fd)
{
    if (*fd >= 0)
        (void) close(*fd); /* a descriptor that was only read, or that was already synced */
}

#define AUTO_FREE __attribute__((cleanup(cleanup_free)))
#define AUTO_FD __attribute__((cleanup(cleanup_fd)))

#define STEAL(p)                                                                                   \
    __extension__({                                                                                \
        __typeof__(p) stolen_ = (p);                                                               \
        (p) = NULL;                                                                                \
        stolen_;                                                                                   \
    })

static inline int fd_steal(int *fd)
{
    int f = *fd;

    *fd = -1;
    return f;
}

#define MUST_CHECK __attribute__((warn_unused_result))
/* Ignores a MUST_CHECK result on purpose (gcc does not accept a cast to void); say why beside it.
 */
#define IGNORE(expr) ((void) !(expr))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
