#include "runner/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/num.h"

#define REPLY_MAX LIMIT_MIB(16)
#define TRIES 5
#define CONNECT_TIMEOUT_MS 10000L
#define STALL_SECONDS 60L
/* A server that sends a byte a second must not hold anybody for ever: less than this is none. */
#define SLOWEST_BYTES 16384
#define RETRY_AFTER_MAX_S 30U
#define TIMED_OUT "http.slow" /* an error's code */

struct transfer {
    struct buf body;
    int fd;
    uint64_t at, size;
    unsigned retry_after_s;
    CURL *curl;
    const struct http_save *save;
    uint64_t saved;
};

static bool host_of(const char *url, char *out, size_t size, bool *out_plain)
{
    CURLU *u = curl_url();
    char *host = NULL, *scheme = NULL;
    bool ok = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && strlen(host) < size;

    if (ok) {
        memcpy(out, host, strlen(host) + 1);
        *out_plain = strcasecmp(scheme, "https") != 0;
    }
    curl_free(host);
    curl_free(scheme);
    curl_url_cleanup(u);
    return ok;
}

static bool is_loopback_host(const char *host)
{
    uint64_t n = 0;

    if (!strcasecmp(host, "localhost") || !strcmp(host, "[::1]") || !strcmp(host, "::1"))
        return true;
    if (strncmp(host, "127.", 4) != 0)
        return false;
    /* Really an address: "127.evil.example" is not. */
    size_t parts = 0;
    for (const char *p = host; *p; parts++) {
        size_t len = strcspn(p, ".");

        if (!num_parse_u64(p, len, 255, &n))
            return false;
        p += len + (p[len] == '.' ? 1 : 0);
    }
    return parts == 4;
}

bool http_is_loopback(const char *url)
{
    char host[256];
    bool plain = false;

    return host_of(url, host, sizeof(host), &plain) && is_loopback_host(host);
}

/* Of an address, without what we put behind the server's. */
static size_t base_length(const char *url)
{
    const char *api = strstr(url, "/api/");

    return api ? (size_t) (api - url) : strlen(url);
}

static int check_url(const struct http_request *q, struct err *e)
{
    char host[256];
    bool plain = false;

    if ((strncasecmp(q->url, "http://", 7) != 0 && strncasecmp(q->url, "https://", 8) != 0) ||
        !host_of(q->url, host, sizeof(host), &plain))
        return err_set(e, ERR_USAGE, "http.url",
                       "--server '%.*s' is no http or https address, such as https://perf.example",
                       (int) base_length(q->url), q->url);
    if (q->token && plain && !is_loopback_host(host))
        return err_set(e, ERR_USAGE, "http.plain",
                       "refusing to send a token unencrypted to %s: use https", host);
    return 0;
}

static size_t on_body(char *bytes, size_t one, size_t n, void *context)
{
    struct transfer *t = context;
    struct err ignored = ERR_INIT; /* a short write ends the transfer, which is told */
    long status = 0;

    if (t->save && curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
        status == 200) {
        t->saved += one * n;
        return t->saved > t->save->max || file_write_all(t->save->fd, bytes, one * n, &ignored) < 0
                   ? 0
                   : one * n;
    }
    buf_put(&t->body, bytes, one * n);
    return t->body.failed ? 0 : one * n;
}

static size_t on_header(char *bytes, size_t one, size_t n, void *context)
{
    struct transfer *t = context;
    size_t len = one * n;
    uint64_t seconds = 0;

    if (len > 12 && !strncasecmp(bytes, "retry-after:", 12)) {
        const char *p = bytes + 12;
        size_t left = len - 12;

        while (left > 0 && (*p == ' ' || *p == '\t')) {
            p++;
            left--;
        }
        size_t digits = 0;

        while (digits < left && p[digits] >= '0' && p[digits] <= '9')
            digits++;
        if (num_parse_u64(p, digits, 3600, &seconds))
            t->retry_after_s = (unsigned) seconds;
    }
    return len;
}

static size_t on_read(char *bytes, size_t one, size_t n, void *context)
{
    struct transfer *t = context;
    uint64_t left = t->size - t->at;
    size_t want = one * n < left ? one * n : (size_t) left;
    ssize_t got = pread(t->fd, bytes, want, (off_t) t->at);

    if (got < 0 || ((size_t) got < want && got == 0))
        return CURL_READFUNC_ABORT;
    t->at += (uint64_t) got;
    return (size_t) got;
}

static int on_seek(void *context, curl_off_t offset, int origin)
{
    struct transfer *t = context;

    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_FAIL;
    t->at = (uint64_t) offset;
    return CURL_SEEKFUNC_OK;
}

static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
    AUTO_FREE char *line = NULL;
    struct curl_slist *grown;

    if (asprintf(&line, "%s: %s", name, value) < 0) {
        line = NULL;
        return false;
    }
    grown = curl_slist_append(*list, line);
    if (grown)
        *list = grown;
    return grown != NULL;
}

static bool add_headers(const struct http_request *q, struct curl_slist **list)
{
    AUTO_FREE char *bearer = NULL;

    if (q->token) {
        if (asprintf(&bearer, "Bearer %s", q->token) < 0) {
            bearer = NULL;
            return false;
        }
        if (!add_header(list, "Authorization", bearer))
            return false;
    }
    return add_header(list, "Accept", "application/json, application/problem+json") &&
           (!q->content_type || add_header(list, "Content-Type", q->content_type)) &&
           add_header(list, "Expect", q->expect_continue ? "100-continue" : "");
}

long http_total_seconds(const struct http_request *q)
{
    uint64_t bytes = q->file_fd >= 0 ? q->file_size : q->save ? q->save->max : q->body_len;

    return q->total_s ? (long) q->total_s : HTTP_TOTAL_S + (long) (bytes / SLOWEST_BYTES);
}

#define SET(option, value) (ok = ok && curl_easy_setopt(curl, (option), (value)) == CURLE_OK)

static bool set_options(CURL *curl, const struct http_request *q, struct transfer *t,
                        struct curl_slist *headers, char *words)
{
    bool ok = true;

    SET(CURLOPT_URL, q->url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_USERAGENT, "cleanrun");
    SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    SET(CURLOPT_TIMEOUT, http_total_seconds(q));
    SET(CURLOPT_LOW_SPEED_LIMIT, q->save || q->file_fd >= 0 ? (long) SLOWEST_BYTES : 1L);
    SET(CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
    SET(CURLOPT_ERRORBUFFER, words);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_CUSTOMREQUEST, q->method);
    return ok;
}

static bool set_body(CURL *curl, const struct http_request *q, struct transfer *t)
{
    bool ok = true;

    if (q->file_fd >= 0) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_READFUNCTION, on_read);
        SET(CURLOPT_READDATA, t);
        SET(CURLOPT_SEEKFUNCTION, on_seek);
        SET(CURLOPT_SEEKDATA, t);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t) q->file_size);
    } else if (q->body) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDS, q->body);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) q->body_len);
    }
    return ok;
}

static int perform(CURL *curl, const struct http_request *q, struct transfer *t, const char *words,
                   struct http_reply *out, struct err *e)
{
    struct http_reply made = {.status = 0};
    CURLcode code = curl_easy_perform(curl);

    if (code == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, ERR_BUSY, TIMED_OUT, "%s %s: the server is too slow: %s", q->method,
                       q->url, words[0] ? words : curl_easy_strerror(code));
    if (code != CURLE_OK)
        return err_set(e, ERR_BUSY, "http.transfer", "%s %s: %s", q->method, q->url,
                       words[0] ? words : curl_easy_strerror(code));
    if (curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &made.status) != CURLE_OK)
        return err_set(e, ERR_INTERNAL, "http.status", "no status code");
    made.retry_after_s = t->retry_after_s;
    buf_puts(&t->body, "");
    made.body = buf_take(&t->body, &made.len);
    if (!made.body)
        return err_memory(e, "http.memory");
    *out = made;
    return 0;
}

int http_do(const struct http_request *q, struct http_reply *out, struct err *e)
{
    struct transfer t = {.fd = q->file_fd, .size = q->file_size, .save = q->save};
    struct curl_slist *headers = NULL;
    char words[CURL_ERROR_SIZE] = "";
    CURL *curl;
    int r;

    if (check_url(q, e) < 0)
        return -1;
    if (q->save && (ftruncate(q->save->fd, 0) < 0 || lseek(q->save->fd, 0, SEEK_SET) < 0))
        return err_errno(e, "http.save", "cannot empty the file for the answer");
    buf_init(&t.body, REPLY_MAX);
    curl = curl_easy_init();
    t.curl = curl;
    if (!curl || !add_headers(q, &headers) || !set_body(curl, q, &t) ||
        !set_options(curl, q, &t, headers, words))
        r = err_set(e, ERR_NOMEM, "http.setup", "cannot set up the HTTP client");
    else
        r = perform(curl, q, &t, words, out, e);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    buf_fini(&t.body);
    return r;
}

static bool may_pass(long status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static void wait_before(unsigned try, unsigned told_s)
{
    struct timespec t = {.tv_sec = told_s < RETRY_AFTER_MAX_S ? told_s : RETRY_AFTER_MAX_S};

    if (told_s == 0)
        t = (struct timespec){.tv_sec = try > 2 ? 1 << (try - 3) : 0,
                              .tv_nsec = 200000000L * (long) try % 1000000000L};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

/* What a slow server was sent may be done meanwhile; what it was asked is not asked again. */
static bool may_help(const struct http_request *q, const struct err *e)
{
    bool sends = q->body || q->file_fd >= 0;

    return e->kind == ERR_BUSY && (sends || strcmp(e->code, TIMED_OUT) != 0);
}

int http_retry(const struct http_request *q, struct http_reply *out, struct err *e)
{
    for (unsigned try = 1;; try++) {
        struct http_reply r = {.status = 0};
        int done = http_do(q, &r, e);

        if (done < 0 && (!may_help(q, e) || try == TRIES))
            return -1;
        if (done == 0 && (!may_pass(r.status) || try == TRIES)) {
            *out = r;
            return 0;
        }
        wait_before(try, r.retry_after_s);
        http_reply_fini(&r);
    }
}

void http_reply_fini(struct http_reply *r)
{
    free(r->body);
    *r = (struct http_reply){.status = 0};
}
