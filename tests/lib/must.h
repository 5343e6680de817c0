/*
 * must: a call that has to succeed, with E as its error: MUST(file_sync(fd, E)). Its error fails
 * the running test.
 */
#pragma once

#include "tests/lib/support.h"

#include "base/err.h"

static inline void must_fail(const struct err *e, const char *file, int line)
{
    fail_msg("%s:%d: unexpected error %s: %s", file, line, e->code, e->text);
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        struct err e_ = ERR_INIT;                                                                  \
        if ((call) < 0)                                                                            \
            must_fail(&e_, __FILE__, __LINE__);                                                    \
    } while (0)
#define E (&e_)
