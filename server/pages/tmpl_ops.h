/* tmpl_ops: the compiled form of a template, shared by tmpl.c (compiler) and tmpl_run.c (renderer)
 * only. */
#pragma once

#include <stddef.h>

#include "server/pages/tmpl.h"

enum tmpl_op_kind {
    TMPL_OP_TEXT,     /* write text[from, from + len) */
    TMPL_OP_INDENT,   /* a line begins: write the indentation of the partial */
    TMPL_OP_VALUE,    /* write the value of `name` */
    TMPL_OP_URL,      /* the same, at the beginning of a URL attribute */
    TMPL_OP_SECTION,  /* to: its TMPL_OP_END */
    TMPL_OP_INVERTED, /* to: its TMPL_OP_END */
    TMPL_OP_END,      /* to: its opening */
    TMPL_OP_PARTIAL,  /* to: index of the template, or SIZE_MAX for a missing one; [from, len):
                         indentation */
};

struct tmpl_op {
    enum tmpl_op_kind kind;
    bool standalone;   /* partial alone on its line: its indentation adds to the outer one */
    char *name;        /* owned; its segments one after the other, each ended by NUL */
    size_t n_segments; /* 0: the implicit iterator "." */
    size_t from;
    size_t len;
    size_t to;
};

struct tmpl {
    char *name;
    char *text; /* NUL-terminated copy */
    enum tmpl_kind kind;
    struct tmpl_op *ops;
    size_t n_ops;
};

struct tmpl_set {
    struct tmpl *templates;
    size_t n;
};
