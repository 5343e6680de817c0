/* view_parts: the pieces that the view_*.c files share; private to server/pages. One view, one
 * thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_out.h"
#include "base/quantity.h"
#include "server/pages/pages.h"

#define VIEW_TEXT 512 /* one formatted piece */

struct view {
    struct json_doc doc; /* the copy with its additions; failed when memory ran out */
    const struct page_context *ctx;
    bool text;              /* ASCII signs for a terminal */
    char prefix[VIEW_TEXT]; /* path part of the base URL, "" or "/below" */
};

/* ---- view_num.c: ages and steps (no allocation); numbers are base/quantity.h's */

/* "25 min ago", "in 3 h". */
void view_age_text(int64_t age_us, char out[VIEW_TEXT]);
/* 1, 2 or 5 times a power of ten, so that `span` has at most `max` steps. */
double view_nice_step(double span, unsigned max);

/* ---- view_parts.c: additions to the copy */

cJSON *view_get(const cJSON *object, const char *key);      /* as json_get, for our own copy */
const char *view_str(const cJSON *object, const char *key); /* "" when absent or no string */
bool view_flag(const cJSON *object, const char *key);
bool view_double(const cJSON *object, const char *key, double *out);
size_t view_count(const cJSON *array);
/* The objects among an array's elements, one after the other; NULL at the end, and for anything but
 * an array. */
cJSON *view_first(const cJSON *array);
cJSON *view_next(const cJSON *element);
void view_format(struct view *v, cJSON *o, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* {word, glyph, class} of a verdict, comparison, stage or acceptance word; any other word gets
 * class "none". */
void view_word(struct view *v, cJSON *o, const char *key, const char *word);
int view_rank(const char *verdict); /* red first: 0 is the worst; unknown words last */
/* {iso, text, age}; a text that is no time is shown as it is, without iso. */
void view_time(struct view *v, cJSON *o, const char *key, const char *stamp);
/* {value, text, unit, shown}: value is the document's number, text what people see, shown both with
 * the unit. */
void view_number(struct view *v, cJSON *o, const char *key, double value,
                 struct quantity_unit unit);
/* The same with digits that were chosen before. */
void view_number_as(struct view *v, cJSON *o, const char *key, double value, const char *text,
                    const char *unit);
void view_plain(struct view *v, cJSON *o, const char *key, double value); /* without unit */
/* A document's value in words: strings as they are, others as JSON, NULL as "(absent)". Free with
 * free(); NULL: no memory. */
char *view_value_text(const cJSON *value, bool quoted) MUST_CHECK;
void view_value(struct view *v, cJSON *o, const char *key, const cJSON *value);
/* [{text, code}]: what stands between backquotes in `text` is code. */
void view_marked(struct view *v, cJSON *o, const char *key, const char *text);
/* quiet {text, loud}: what else the machine did, by a manifest's `interference.during`; nothing for
 * no record. */
void view_interference(struct view *v, cJSON *o, const cJSON *record);
/* Orders an array's elements; equal ones keep their order. */
void view_sort(struct view *v, cJSON *array, int (*compare)(const cJSON *, const cJSON *));

/* ---- view_list.c: element by element: adds base_items and now_items [{text, mark, absent, sep}]
 */
void view_difference(struct view *v, cJSON *o, const cJSON *baseline, const cJSON *current);

/* ---- view_checks.c: groups, failed ones and counts of an acceptance document */

void view_checks(struct view *v, cJSON *acceptance);

/* ---- one per chart (view_series.c, view_timeline.c, view_history.c): adds what is drawn, nothing
 * when there is too little to draw */

void view_series(struct view *v, cJSON *root);
void view_timeline(struct view *v, cJSON *root);
void view_history(struct view *v, cJSON *metric);

/* ---- one per document family */
void view_compare(struct view *v, cJSON *root);
/* Adds fields[] (those with values) and plain_reasons[]; `different`: the audit's
 * identity.different or NULL. */
void view_reasons(struct view *v, cJSON *parent, const cJSON *reasons, const cJSON *different);
void view_run(struct view *v, cJSON *root);
/* Adds review_list [{done, at_t, by, reason}] to a baseline's row or record. */
void view_reviewed(struct view *v, cJSON *baseline);
void view_reviews(struct view *v, cJSON *root); /* the same for each of baselines[] */
void view_home(struct view *v, cJSON *root);
void view_project(struct view *v, cJSON *root);
void view_gate(struct view *v, cJSON *root);
void view_commit(struct view *v, cJSON *root);
void view_problem(struct view *v, cJSON *root);
void view_definition(struct view *v, cJSON *definition);
