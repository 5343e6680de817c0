#include "server/http/guard.h"

#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/num.h"
#include "server/http/request.h"

#define HOST_MAX 255

static bool refuse(struct guard_refusal *out, unsigned status, const char *slug, const char *detail)
{
    *out = (struct guard_refusal){.status = status, .slug = slug, .detail = detail};
    return false;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* RFC 9110 token. */
static bool is_token(const char *s)
{
    const char *p = s;

    for (; *p != '\0'; p++) {
        if (!is_alnum(*p) && !strchr("!#$%&'*+-.^_`|~", *p))
            return false;
    }
    return p != s;
}

static bool is_field_value(const char *s)
{
    for (; *s != '\0'; s++) {
        if (((unsigned char) *s < 0x20 && *s != '\t') || *s == 0x7f)
            return false;
    }
    return true;
}

static bool check_request_line(struct request *q, struct guard_refusal *out)
{
    q->method = request_method_parse(q->method_text);
    if (q->method == HTTP_UNKNOWN)
        return refuse(out, 501, "method", "this method is not implemented");
    if (strcmp(q->version, "HTTP/1.1") != 0 && strcmp(q->version, "HTTP/1.0") != 0)
        return refuse(out, 505, "version", "this server speaks HTTP/1.1");
    if (strlen(q->target) > LIMIT_URL)
        return refuse(out, 414, "too-large", "the request target is longer than 2048 bytes");
    return true;
}

/* libmicrohttpd glues a folded line to the field's name: "Content-Length:<CRLF> 5" is the field
 * "Content-Length5" here, and a length of 5 to a proxy that unfolds. */
static bool is_folded(const char *name, const char *field)
{
    size_t len = strlen(field);

    return strncasecmp(name, field, len) == 0 && name[len] != '\0' && name[len] != '-';
}

static bool check_headers(const struct request *q, struct guard_refusal *out)
{
    static const char *const once[] = {
        "Host",  "Content-Length", "Content-Type", "Transfer-Encoding", "Authorization",
        "Range", "If-Range",       "If-Match",     "If-None-Match",     "Expect"};
    size_t i = 0;

    if (q->too_many_headers)
        return refuse(out, 431, "too-large", "too many header fields");
    for (i = 0; i < q->n_headers; i++) {
        if (!is_token(q->headers[i].name))
            return refuse(out, 400, "framing", "a header field name is not a token");
        if (!is_field_value(q->headers[i].value))
            return refuse(out, 400, "framing", "a header field value holds a control character");
    }
    for (i = 0; i < ARRAY_LEN(once); i++) {
        if (request_header_count(q, once[i]) > 1)
            return refuse(out, 400, "framing", "a header field that must be single is given twice");
        for (size_t h = 0; h < q->n_headers; h++) {
            if (is_folded(q->headers[h].name, once[i]))
                return refuse(out, 400, "framing", "a header field is folded over two lines");
        }
    }
    return true;
}

static bool check_host(const struct request *q, struct guard_refusal *out)
{
    const char *host = request_header(q, "Host");
    const char *p = host;

    if (!host)
        return strcmp(q->version, "HTTP/1.0") == 0 ||
               refuse(out, 400, "framing", "the Host field is missing");
    if (*host == '\0' || strlen(host) > HOST_MAX)
        return refuse(out, 400, "framing", "the Host field is empty or too long");
    for (; *p != '\0'; p++) {
        if (!is_alnum(*p) && !strchr(".-_:[]", *p))
            return refuse(out, 400, "framing", "the Host field is malformed");
    }
    return true;
}

/* The length of the body must be known from exactly one field, or requests could be smuggled behind
 * it. */
static bool check_framing(struct request *q, struct guard_refusal *out)
{
    const char *encoding = request_header(q, "Transfer-Encoding");
    const char *length = request_header(q, "Content-Length");
    const char *expect = request_header(q, "Expect");

    if (encoding && length)
        return refuse(out, 400, "framing",
                      "Transfer-Encoding and Content-Length exclude each other");
    if (encoding && strcasecmp(encoding, "chunked") != 0)
        return refuse(out, 501, "framing", "this transfer encoding is not implemented");
    if (encoding)
        return refuse(out, 411, "length-required", "a body needs a Content-Length");
    if (length) {
        if (!num_parse_u64(length, strlen(length), INT64_MAX, &q->content_length))
            return refuse(out, 400, "framing", "Content-Length is not a decimal number");
        q->has_length = true;
    }
    if (q->content_length > 0 && (request_is_read(q) || q->method == HTTP_OPTIONS))
        return refuse(out, 400, "framing", "this method takes no body");
    if (expect && strcasecmp(expect, "100-continue") != 0)
        return refuse(out, 417, "expectation", "this expectation cannot be met");
    q->expects_continue = expect != NULL;
    return true;
}

bool guard_check(struct request *q, struct guard_refusal *out)
{
    const char *why = "";

    if (!check_request_line(q, out) || !check_headers(q, out) || !check_host(q, out) ||
        !check_framing(q, out))
        return false;
    if (!uri_split(&q->arena, q->raw_path, &q->path, &why))
        return refuse(out, 400, "target", why);
    if (!uri_query_is_plain(q->raw_query))
        return refuse(out, 400, "target",
                      "the query holds a byte that must be percent-encoded, or a broken %-escape");
    return true;
}
