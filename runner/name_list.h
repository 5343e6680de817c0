/* name_list: how many, and the first few of them by name, for messages. Names are made fit for a
 * terminal. */
#pragma once

#include <stddef.h>

#define NAME_LIST_NAMED 3

struct name_list {
    size_t n;
    char text[200 * NAME_LIST_NAMED]; /* "a, b, c, …" */
};

/* `prefix` stands before the name ("": none). Long ones are cut. */
void name_list_add(struct name_list *l, const char *prefix, const char *name);
