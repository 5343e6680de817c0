/*
 * raw: a client that sends exactly the bytes it is given and reads exactly what comes back, one
 * response at a time, so that nothing is repaired on the way. Fails the running test on its own
 * trouble (no connection, no answer in time), never on the server's answers.
 */
#pragma once

#include "tests/lib/support.h"

struct raw {
    char *data; /* received and not yet taken */
    size_t len;
    size_t cap;
    int fd;
    bool closed; /* the server ended the connection */
};

struct raw_response {
    int status; /* 0: the connection closed before a whole header */
    char *head; /* header block with its final empty line, NUL-terminated */
    char *body;
    size_t body_len;
    bool whole; /* the body had its stated length */
};

/* Connects to 127.0.0.1:port. */
void raw_open(struct raw *r, unsigned port);
void raw_close(struct raw *r);
/* False when the server closed while sending. */
bool raw_send(struct raw *r, const void *bytes, size_t len);
bool raw_puts(struct raw *r, const char *text);
/* Reads one response; is_head: a body is never expected. Waits at most timeout_ms. */
void raw_read(struct raw *r, bool is_head, int timeout_ms, struct raw_response *out);
void raw_response_fini(struct raw_response *out);
/* Value of a header of the block (heap), or NULL. */
char *raw_header(const struct raw_response *r, const char *name);
size_t raw_header_count(const struct raw_response *r, const char *name);
/* True when the server ends the connection within timeout_ms; whatever it sent before stays in
 * r->data. */
bool raw_wait_closed(struct raw *r, int timeout_ms);

/* One connection: sends, reads one response, closes. */
void raw_request(unsigned port, const char *request, struct raw_response *out);
/* "METHOD TARGET HTTP/1.1" with Host, Connection: close, further header lines and a body. */
void raw_ask(unsigned port, const char *method, const char *target, const char *headers,
             const void *body, size_t len, struct raw_response *out);
