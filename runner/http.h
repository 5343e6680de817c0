/*
 * http: the only place of the runner that speaks HTTP (libcurl): no redirects, bounded replies,
 * time-outs, TLS always checked. Knows no address of the product.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

#define HTTP_TOTAL_S 60

struct http_request {
    const char *method; /* GET, PUT, POST */
    const char *url;
    const char *token;        /* Bearer; NULL: none. Refused over plain http to another machine. */
    const char *content_type; /* of the body */
    const char *body;         /* POST; NULL for none */
    size_t body_len;
    int file_fd; /* PUT: the file to send from its start; -1: none */
    uint64_t file_size;
    /* where a 200 answer's body goes instead of memory; NULL: memory */
    const struct http_save *save;
    bool expect_continue; /* ask before sending: a server that refuses saves the upload */
    unsigned total_s;     /* 0: http_total_seconds decides */
};

/* An open file, emptied first; a body beyond max is a failed transfer. */
struct http_save {
    int fd;
    uint64_t max;
};

struct http_reply {
    long status;
    char *body; /* NUL after it */
    size_t len;
    unsigned retry_after_s; /* 0 when not told */
};

/* -1: no reply (network, TLS, refusal of our own): kind ERR_BUSY when trying again may help,
 * ERR_USAGE for our refusal. */
int http_do(const struct http_request *q, struct http_reply *out, struct err *e) MUST_CHECK;
/* The same with up to five tries while the server is unreachable or answers 429, 502, 503 or 504; a
 * question that got no whole answer in time is not asked again. Only for idempotent requests. */
int http_retry(const struct http_request *q, struct http_reply *out, struct err *e) MUST_CHECK;
/* Seconds after which an exchange is given up: small documents have a fixed time, what may be as
 * long as an archive has time by its length. */
long http_total_seconds(const struct http_request *q);
void http_reply_fini(struct http_reply *r); /* accepts zeroed */
/* True when the URL's host is this machine. */
bool http_is_loopback(const char *url);

#define AUTO_HTTP_REPLY __attribute__((cleanup(http_reply_fini)))
