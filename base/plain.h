/*
 * plain: outside text that people read: on a terminal, in a log, in a line of a page. Nothing in it
 * can begin a line, move a cursor, or turn the direction of its neighbours. Bytes that are no UTF-8
 * are told by '?'. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

/* \t \n \r and Unicode's line ends become a blank; other controls (C0, DEL, C1) and broken bytes
 * '?'; marks of direction their name, "[U+202E]". */
void plain_put(struct buf *out, const char *s, size_t len);
void plain_puts(struct buf *out, const char *s); /* NULL: nothing */
/* plain_put over each line of a text of ours that quotes others; line ends and tabs stay. */
void plain_put_lines(struct buf *out, const char *s, size_t len);
/* A whole line to a stream of people: what the format gives, plain, and a line end. Errors stay in
 * the stream. */
void plain_line(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plain_vline(FILE *to, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));
/* Bytes of the mark of direction that s begins with, else 0. */
size_t plain_direction_mark(const char *s, size_t len, unsigned *out_point);
