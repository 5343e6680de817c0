/*
 * guard: what libmicrohttpd's lenient parser lets through and a server must not: framing, Host,
 * method, header names, target. Runs before any route and before any body byte is read; a refusal
 * always closes the connection, because what follows can no longer be trusted to be a request.
 * Pure: reads the request, fills path, content_length and expects_continue.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"

struct request;

struct guard_refusal {
    unsigned status;
    const char *slug;   /* problem type: "framing" */
    const char *detail; /* static text */
};

/* True: go on. False: *out says what to answer. Needs method_text, version, target, raw_path and
 * headers. */
bool guard_check(struct request *q, struct guard_refusal *out) MUST_CHECK;
