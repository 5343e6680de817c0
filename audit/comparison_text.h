/*
 * comparison_text: one row of an audit's `comparisons` in words: the only place where before,
 * after, change and limit become text. Pages, text, Markdown, the terminal and the one line for a
 * forge all show what it gives. Pure; one thread.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/quantity.h"

struct comparison_text {
    /* The metric's pointer when it has none; points into the row, as the unit does. */
    const char *label;
    const char *unit; /* of before, after, change_n and limit_n; "" for a plain number */
    bool has_before, has_after;
    bool has_change;      /* a percentage, else change_n is a difference in `unit` ("" when there is
                             none) */
    const char *limit_is; /* words of the limit: "none"; NULL: limit_n and limit_why */
    const char *limit_why; /* "near-zero floor"; NULL when the limit is a percentage */
    char before[QUANTITY_TEXT];
    char after[QUANTITY_TEXT];
    char change[QUANTITY_TEXT];
    char limit[QUANTITY_TEXT];
};

/* ascii: '-' is the sign, for a terminal. A row that is no object gives empty texts. */
void comparison_text(const cJSON *row, bool ascii, struct comparison_text *out);
/* How much of its limit the change takes: 1 is the limit, more is beyond it, below 0 is better. */
double comparison_used(const cJSON *row);
/* "464 ns", "n/a" when absent */
void comparison_put_before(struct buf *out, const struct comparison_text *t);
void comparison_put_after(struct buf *out, const struct comparison_text *t);
/* "+24.1 %", near zero "+91 MB/h" */
void comparison_put_change(struct buf *out, const struct comparison_text *t);
/* "+25 %", "100 MB/h (near-zero floor)" */
void comparison_put_limit(struct buf *out, const struct comparison_text *t);
/* "576 ns, before 464 ns, +24.1 %; limit +25 %" */
void comparison_put(struct buf *out, const struct comparison_text *t);
