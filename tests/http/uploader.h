/*
 * uploader: a project, a runner and a token on a live server's data, and signed packages to send.
 * Packages are made once and kept until the end. One thread makes, any thread sends.
 */
#pragma once

#include "tests/http/live.h"
#include "tests/lib/package.h"

#define UPLOAD_PROJECT PACKAGE_PROJECT
#define UPLOAD_GATE PACKAGE_GATE

struct uploads;

/* Adds project, runner and token by the server's commands; works before and while it runs. */
struct uploads *uploads_new(struct live *l);
void uploads_free(struct uploads *u);
const char *uploads_authorization(const struct uploads *u); /* "Authorization: Bearer …\r\n" */
const struct private_key *uploads_key(const struct uploads *u);
/* The honest package number `i`, with `padding` bytes in its log. */
const struct package *uploads_package(struct uploads *u, size_t i, size_t padding);

/* Sends the request and all of the body on an open connection; false when the server closed. The
 * answer is not read. */
bool upload_send_archive(struct raw *r, const struct uploads *u, const struct package *p);
bool upload_send_statement(struct raw *r, const struct uploads *u, const struct package *p);
/* Archive and statement, both expected to be new. */
void upload_package(struct live *l, const struct uploads *u, const struct package *p);
/* Approves the run as the baseline of UPLOAD_GATE. */
void upload_approve(struct live *l, const char *run);
/* One request on a connection of its own. project and gate as in the address; headers: further
 * lines or NULL. */
void upload_archive(struct live *l, const struct uploads *u, const char *project,
                    const struct package *p, struct raw_response *out);
void upload_statement(struct live *l, const struct uploads *u, const char *project,
                      const char *gate, const struct package *p, struct raw_response *out);
