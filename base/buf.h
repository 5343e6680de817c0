/*
 * buf: growing byte buffer with a maximum given at init and sticky failure: appends after a failure
 * do nothing, so a writer checks once at the end. Always NUL-terminated after data (not counted).
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum buf_failure {
    BUF_FULL, /* over `max` */
    BUF_NOMEM,
    BUF_CONTENT, /* a writer was given what its format cannot hold (a NaN in JSON) */
};

struct buf {
    char *data; /* NULL until the first append; data[len] == 0 otherwise */
    size_t len;
    size_t cap;
    size_t max;
    bool failed;
    enum buf_failure failure; /* why; only when failed */
};

void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);  /* accepts zeroed */
void buf_clear(struct buf *b); /* empty, not failed, memory kept */
void buf_put(struct buf *b, const void *p, size_t len);
void buf_puts(struct buf *b, const char *s);
/* At most max bytes: a longer text is cut between two characters and ends in "…" (RFC 3629; max ≥
 * 3). */
void buf_put_cut(struct buf *b, const char *s, size_t max);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *format, va_list ap)
    __attribute__((format(printf, 2, 0)));
/* for writers on top of buf; the first reason stays */
void buf_fail(struct buf *b, enum buf_failure why);
/* 0, or -1 when any append failed: ERR_LIMIT (full), ERR_NOMEM or ERR_INTERNAL (content). */
int buf_check(const struct buf *b, struct err *e) MUST_CHECK;
/* Moves the bytes out (caller frees); the buffer is empty afterwards. Never NULL unless failed.
 * out_len may be NULL. */
char *buf_take(struct buf *b, size_t *out_len) MUST_CHECK;

#define AUTO_BUF __attribute__((cleanup(buf_fini)))
