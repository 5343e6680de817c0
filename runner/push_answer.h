/*
 * push_answer: what a server's answer to an upload means, for people and as exit code. Sends
 * nothing. Only push.c uses it. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/manifest.h"
#include "runner/cli.h"
#include "runner/http.h"
#include "runner/push.h"

struct push_upload {
    struct cli *c;
    const struct push_target *target;
    const char *archive;
    const char *project, *gate;
    const struct manifest *manifest; /* NULL: it cannot be read */
    const char *token;
    char *envelope; /* the attestation as it was sent; NULL before that */
    size_t envelope_len;
    int fd;
    uint64_t size;
    struct digest digest;
};

/* The error that a refusing status is; always -1. */
int push_refused(const struct push_upload *u, const char *step, const struct http_reply *r,
                 struct err *e) MUST_CHECK;
/* Tells the verdict on the run that was sent. -1: the answer is none. */
int push_tell_verdict(const struct push_upload *u, const struct http_reply *reply, int *out_exit,
                      struct err *e) MUST_CHECK;
