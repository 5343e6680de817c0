#include "tests/http/raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define ANSWER_MS 20000

void raw_open(struct raw *r, unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};

    memset(r, 0, sizeof *r);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(r->fd >= 0);
    if (connect(r->fd, (const struct sockaddr *) &address, sizeof address) < 0)
        fail_msg("connect: %s", strerrordesc_np(errno));
}

void raw_close(struct raw *r)
{
    if (r->fd >= 0)
        (void) close(r->fd);
    r->fd = -1;
    free(r->data);
    r->data = NULL;
}

bool raw_send(struct raw *r, const void *bytes, size_t len)
{
    const char *p = bytes;

    while (len > 0) {
        ssize_t n = send(r->fd, p, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        p += n;
        len -= (size_t) n;
    }
    return true;
}

bool raw_puts(struct raw *r, const char *text)
{
    return raw_send(r, text, strlen(text));
}

/* Waits for more; false when closed or too late. */
static bool receive(struct raw *r, uint64_t until_ns)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    uint64_t now = clock_monotonic_ns();
    ssize_t n = 0;

    if (r->closed || now >= until_ns || poll(&p, 1, (int) ((until_ns - now) / 1000000) + 1) <= 0)
        return false;
    if (r->cap - r->len < 65536) {
        r->cap = r->cap * 2 + 131072;
        r->data = realloc(r->data, r->cap);
        assert_non_null(r->data);
    }
    n = recv(r->fd, r->data + r->len, r->cap - r->len - 1, 0);
    if (n <= 0) {
        r->closed = true;
        return false;
    }
    r->len += (size_t) n;
    r->data[r->len] = '\0';
    return true;
}

static char *find_header(const char *head, const char *name, size_t *count)
{
    char *found = NULL;
    size_t len = strlen(name);
    const char *line = strstr(head, "\r\n");

    while (line && line[2] != '\r') {
        const char *end = strstr(line + 2, "\r\n");

        if (!end)
            break;
        if (strncasecmp(line + 2, name, len) == 0 && line[2 + len] == ':') {
            const char *value = line + 3 + len;

            while (*value == ' ')
                value++;
            if (!found)
                found = strndup(value, (size_t) (end - value));
            *count += 1;
        }
        line = end;
    }
    return found;
}

char *raw_header(const struct raw_response *r, const char *name)
{
    size_t count = 0;

    return r->head ? find_header(r->head, name, &count) : NULL;
}

size_t raw_header_count(const struct raw_response *r, const char *name)
{
    size_t count = 0;

    if (r->head)
        free(find_header(r->head, name, &count));
    return count;
}

static void take(struct raw *r, size_t n)
{
    memmove(r->data, r->data + n, r->len - n);
    r->len -= n;
    r->data[r->len] = '\0';
}

void raw_read(struct raw *r, bool is_head, int timeout_ms, struct raw_response *out)
{
    uint64_t until = clock_monotonic_ns() + (uint64_t) timeout_ms * 1000000u;
    const char *end = NULL;
    char *length = NULL;
    uint64_t status = 0;
    uint64_t want = 0;

    memset(out, 0, sizeof *out);
    while (!(end = r->len > 0 ? strstr(r->data, "\r\n\r\n") : NULL)) {
        if (!receive(r, until))
            return;
    }
    out->head = strndup(r->data, (size_t) (end - r->data) + 4);
    assert_non_null(out->head);
    take(r, (size_t) (end - r->data) + 4);
    if (strncmp(out->head, "HTTP/1.1 ", 9) != 0 || !num_parse_u64(out->head + 9, 3, 999, &status))
        fail_msg("no HTTP/1.1 status line: %.60s", out->head);
    out->status = (int) status;
    length = raw_header(out, "Content-Length");
    if (length && (!num_parse_u64(length, strlen(length), SIZE_MAX, &want)))
        fail_msg("bad Content-Length '%s'", length);
    if (is_head || status == 304 || status == 204 || status < 200)
        want = 0;
    if (!length && !is_head && status >= 200 && status != 304 && status != 204)
        want = SIZE_MAX; /* until the end */
    free(length);
    while (r->len < want && receive(r, until))
        continue;
    out->whole = want == SIZE_MAX ? r->closed : r->len >= want;
    out->body_len = r->len < want ? r->len : (size_t) want;
    out->body = malloc(out->body_len < SIZE_MAX ? out->body_len + 1 : 1);
    assert_non_null(out->body);
    if (out->body_len > 0)
        memcpy(out->body, r->data, out->body_len);
    out->body[out->body_len] = '\0';
    if (r->len > 0)
        take(r, out->body_len);
}

void raw_response_fini(struct raw_response *out)
{
    free(out->head);
    free(out->body);
    memset(out, 0, sizeof *out);
}

bool raw_wait_closed(struct raw *r, int timeout_ms)
{
    uint64_t until = clock_monotonic_ns() + (uint64_t) timeout_ms * 1000000u;

    while (receive(r, until))
        continue;
    return r->closed;
}

void raw_request(unsigned port, const char *request, struct raw_response *out)
{
    struct raw r;

    raw_open(&r, port);
    (void) raw_puts(&r, request); /* the answer may come before all was sent */
    raw_read(&r, strncmp(request, "HEAD ", 5) == 0, ANSWER_MS, out);
    raw_close(&r);
}

void raw_ask(unsigned port, const char *method, const char *target, const char *headers,
             const void *body, size_t len, struct raw_response *out)
{
    char *head = NULL;
    struct raw r;

    raw_open(&r, port);
    if (body)
        assert_true(asprintf(&head,
                             "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: "
                             "close\r\nContent-Length: %zu\r\n%s\r\n",
                             method, target, len, headers ? headers : "") > 0);
    else
        assert_true(asprintf(&head,
                             "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n",
                             method, target, headers ? headers : "") > 0);
    (void) raw_puts(&r, head); /* the answer may come before all was sent */
    if (body)
        (void) raw_send(&r, body, len);
    raw_read(&r, strcmp(method, "HEAD") == 0, ANSWER_MS, out);
    raw_close(&r);
    free(head);
}
