/*
 * err: the one error value. A failing function returns -1 and fills *e once, where the failure
 * happened; callers may add context with err_wrap. Nobody matches on `code` or `text`: the border
 * (exit code, HTTP status) maps `kind`. Not for domain outcomes: those are values.
 * The text is always UTF-8. Thread rule: a value, owned by its function.
 */
#pragma once

#define ERR_TEXT_MAX 512

enum err_kind {
    ERR_NONE,
    ERR_USAGE,    /* the caller asked for something impossible: exit 2, HTTP 400 */
    ERR_INPUT,    /* outside bytes are malformed */
    ERR_LIMIT,    /* outside bytes are larger than a cap of base/limits.h */
    ERR_NOTFOUND, /* the named thing does not exist */
    ERR_CONFLICT, /* the named thing exists with other content */
    ERR_TRUST,    /* hash, signature, key or provenance does not hold */
    ERR_SYS,      /* the operating system refused */
    ERR_NOSPACE,  /* disk full or quota */
    ERR_NOMEM,
    ERR_BUSY,     /* retry later */
    ERR_INTERNAL, /* our own mistake */
};

struct err {
    enum err_kind kind;
    const char *code; /* stable, static storage: "json.depth" */
    char text[ERR_TEXT_MAX];
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        .kind = ERR_NONE, .code = "", .text = ""                                                   \
    }

/* Fills *e (e may be NULL) and returns -1. Text longer than ERR_TEXT_MAX is cut at a UTF-8 border;
 * bytes of it that are no UTF-8 become '?'. */
int err_set(struct err *e, enum err_kind kind, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));

/* Puts "context: " before the text of an already filled *e; returns -1. */
int err_wrap(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Fills *e from errno: ENOSPC/EDQUOT → ERR_NOSPACE, ENOENT → ERR_NOTFOUND, ENOMEM → ERR_NOMEM, else
 * ERR_SYS; the text is "<what>: <errno description>". Returns -1. */
int err_errno(struct err *e, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* An allocation failed: fills *e with ERR_NOMEM, "out of memory" and `code`; returns -1. */
int err_memory(struct err *e, const char *code) __attribute__((cold));
