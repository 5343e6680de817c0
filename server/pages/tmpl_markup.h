/*
 * tmpl_markup: where in HTML a template's text stands: enough of a tokenizer to know whether a
 * value may be written there. Not a validator. One compiler at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

enum tmpl_place {
    TMPL_IN_DATA,   /* text between tags */
    TMPL_AFTER_LT,  /* right behind '<' */
    TMPL_IN_TAG,    /* tag and attribute names */
    TMPL_IN_DOUBLE, /* "attribute value" */
    TMPL_IN_SINGLE, /* 'attribute value' */
};

struct tmpl_markup {
    enum tmpl_place place;
    char last;      /* in a tag: the character before */
    bool url;       /* in the value of a URL attribute */
    bool url_start; /* nothing of that value yet */
    bool url_value; /* the value so far is one template value */
};

/* Reads text[from, to). Returns NULL, or why it is refused (static), with the place in *out_at. */
const char *tmpl_markup_feed(struct tmpl_markup *m, const char *text, size_t from, size_t to,
                             size_t *out_at) MUST_CHECK;
/* A template value comes here; NULL, or why it may not. */
const char *tmpl_markup_value(struct tmpl_markup *m, bool *out_url) MUST_CHECK;
