#include "runner/push.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/verdict.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "evidence/manifest.h"
#include "runner/http.h"
#include "runner/mistaken.h"
#include "runner/push_answer.h"

#define TOKEN_MAX LIMIT_KIB(4)
#define ANY_GATE "any" /* a gate need not be there to be uploaded to */
#define MAY_UPLOAD 415 /* docs/api.md: everything but the type was right */
#define TAR_BLOCK 512
#define TAR_SIZE_AT 124
#define TAR_SIZE_LEN 11

void push_target_from(const struct cli *c, const struct cli_args *a, struct push_target *out)
{
    const char *server = cli_get(a, "server");
    const char *token = cli_get(a, "token-file");

    *out = (struct push_target){
        .server = server ? server : cli_env(c, "CLEANRUN_SERVER"),
        .project = cli_get(a, "project"),
        .token_file = token ? token : cli_env(c, "CLEANRUN_TOKEN_FILE"),
        .json = cli_has(a, "json"),
    };
}

int push_read_token(const char *path, char **out, struct err *e)
{
    struct stat st;
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "push.token", "cannot read the token file '%s'", path);
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)
        return err_set(
            e, ERR_USAGE, "push.token",
            "the token file '%s' must be a file that only its owner can read (chmod 600)", path);
    if ((uint64_t) st.st_size > TOKEN_MAX)
        return err_set(e, ERR_USAGE, "push.token", "the token file '%s' holds no token", path);
    text = calloc((size_t) st.st_size + 1, 1);
    if (!text)
        return err_memory(e, "push.memory");
    while (len < (size_t) st.st_size) {
        ssize_t n = read(fd, text + len, (size_t) st.st_size - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t) n;
    }
    len = strcspn(text, "\r\n");
    text[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            len = 0;
    if (len == 0)
        return err_set(e, ERR_USAGE, "push.token", "the token file '%s' holds no token", path);
    *out = STEAL(text);
    return 0;
}

char *push_url(const char *server, const char *format, ...)
{
    AUTO_BUF struct buf b = {.data = NULL};
    va_list ap;
    size_t len = strlen(server);

    while (len > 0 && server[len - 1] == '/')
        len--;
    buf_init(&b, LIMIT_URL);
    buf_put(&b, server, len);
    va_start(ap, format);
    buf_vprintf(&b, format, ap);
    va_end(ap);
    return b.failed ? NULL : buf_take(&b, NULL);
}

/* manifest.json is the archive's first member: its bytes stand right after the first header block.
 */
static int read_manifest(int fd, struct manifest *out, struct err *e)
{
    char head[TAR_BLOCK];
    uint64_t size = 0;
    AUTO_FREE char *bytes = NULL;

    if (pread(fd, head, sizeof(head), 0) != (ssize_t) sizeof(head) ||
        strncmp(head, MANIFEST_NAME, 100) != 0)
        return err_set(e, ERR_INPUT, "push.archive",
                       "this is no evidence archive: " MANIFEST_NAME " is not its first member");
    for (int i = 0; i < TAR_SIZE_LEN; i++) {
        char c = head[TAR_SIZE_AT + i];

        if (c < '0' || c > '7')
            return err_set(e, ERR_INPUT, "push.archive", "the archive's first header is malformed");
        size = size * 8 + (uint64_t) (c - '0');
    }
    if (size > LIMIT_JSON_DOCUMENT)
        return err_set(e, ERR_LIMIT, "push.archive", "the archive's manifest is too large");
    bytes = malloc(size + 1);
    if (!bytes)
        return err_memory(e, "push.memory");
    if (pread(fd, bytes, size, TAR_BLOCK) != (ssize_t) size)
        return err_set(e, ERR_INPUT, "push.archive", "the archive is cut short");
    bytes[size] = '\0';
    return manifest_parse(bytes, size, out, e);
}

int push_verdict_exit(const char *word)
{
    enum verdict v;

    if (!word)
        return EXIT_NOTHING;
    return verdict_parse(word, &v) ? verdict_exit(v) : EXIT_ERROR;
}

char *push_page(const char *server, const char *page)
{
    return page[0] == '/' ? push_url(server, "%s", page) : strdup(page);
}

const char *push_hint(long status, const struct push_target *t)
{
    if (status == 401)
        return t->token_file ? "; is it a token of this server, and not revoked?" : "";
    if (status == 403)
        return "; a token needs the scope `upload` and this project";
    if (status == 404)
        return "; is there such a project, and does the token cover it?";
    return "";
}

static int put_blob(const struct push_upload *u, struct err *e)
{
    char hex[DIGEST_HEX_SIZE];
    AUTO_FREE char *url = NULL;
    AUTO_HTTP_REPLY struct http_reply reply = {.status = 0};

    digest_hex(&u->digest, hex);
    url = push_url(u->target->server, "/api/v1/projects/%s/blobs/sha256:%s", u->project, hex);
    if (!url)
        return err_set(e, ERR_USAGE, "push.url", "the server's address is too long");
    struct http_request q = {.method = "PUT",
                             .url = url,
                             .token = u->token,
                             .content_type = "application/x-tar",
                             .file_fd = u->fd,
                             .file_size = u->size,
                             .expect_continue = true};

    if (http_retry(&q, &reply, e) < 0)
        return -1;
    return reply.status == 200 || reply.status == 201
               ? 0
               : push_refused(u, "storing the archive", &reply, e);
}

static int read_envelope(const struct push_upload *u, char **out, size_t *out_len, struct err *e)
{
    AUTO_FREE char *beside = NULL;
    const char *path = u->target->attestation;

    if (!path) {
        if (asprintf(&beside, "%s.dsse.json", u->archive) < 0) {
            beside = NULL;
            return err_memory(e, "push.memory");
        }
        path = beside;
    }
    return file_read(path, LIMIT_ENVELOPE, out, out_len, e);
}

static int post_run(struct push_upload *u, struct http_reply *reply, struct err *e)
{
    AUTO_FREE char *url = NULL;
    char hex[DIGEST_HEX_SIZE];

    /* The archive is named, so that the server can tell when the envelope is about another one. */
    digest_hex(&u->digest, hex);
    url = push_url(u->target->server, "/api/v1/projects/%s/gates/%s/runs?archive=sha256:%s",
                   u->project, u->gate, hex);
    if (!url)
        return err_set(e, ERR_USAGE, "push.url", "the server's address is too long");
    if (read_envelope(u, &u->envelope, &u->envelope_len, e) < 0)
        return -1;
    struct http_request q = {.method = "POST",
                             .url = url,
                             .token = u->token,
                             .content_type = "application/vnd.dsse+json",
                             .body = u->envelope,
                             .body_len = u->envelope_len,
                             .file_fd = -1};

    return http_retry(&q, reply, e);
}

static int check_target(const struct push_target *t, struct err *e)
{
    if (!t->server || !*t->server)
        return err_set(e, ERR_USAGE, "push.server",
                       "which server? --server URL or CLEANRUN_SERVER");
    if (!t->token_file)
        return err_set(e, ERR_USAGE, "push.token",
                       "which token? --token-file FILE or CLEANRUN_TOKEN_FILE");
    return 0;
}

int push_check_options(const struct push_target *t, struct err *e)
{
    AUTO_FREE char *token = NULL;

    return check_target(t, e) < 0 ? -1 : push_read_token(t->token_file, &token, e);
}

int push_check_server(const struct push_target *t, struct err *e)
{
    AUTO_FREE char *token = NULL;
    AUTO_FREE char *url = NULL;
    AUTO_HTTP_REPLY struct http_reply reply = {.status = 0};
    struct push_upload u = {.target = t, .project = t->project};

    if (check_target(t, e) < 0 || push_read_token(t->token_file, &token, e) < 0)
        return -1;
    if (!text_is_project(t->project))
        return err_set(e, ERR_USAGE, "push.names", "'%.200s' is no project, owner/name",
                       t->project);
    /* Step two with a body that is no statement: whether the token may is judged before that. */
    url = push_url(t->server, "/api/v1/projects/%s/gates/%s/runs", t->project,
                   t->gate ? t->gate : ANY_GATE);
    if (!url)
        return err_set(e, ERR_USAGE, "push.url", "the server's address is too long");
    struct http_request q = {.method = "POST",
                             .url = url,
                             .token = token,
                             .content_type = "text/plain",
                             .body = "?",
                             .body_len = 1,
                             .file_fd = -1};

    if (http_retry(&q, &reply, e) < 0)
        return -1;
    return reply.status == MAY_UPLOAD ? 0 : push_refused(&u, "asking", &reply, e);
}

/* The answer to the question for a key. */
static int judge_key(const cJSON *answer, const char *hex, const char *machine_class, struct err *e)
{
    const char *refusal = json_text(answer, "refusal", NULL);
    const char *known = json_text(answer, "class", "");

    if (strcmp(json_text(answer, "schema", ""), "cleanrun-runner/1") != 0)
        return err_set(e, ERR_BUSY, "push.key", "what the server says of a key is no answer");
    if (refusal)
        return err_set(e, ERR_USAGE, "push.key",
                       "the server would refuse what key %s signs: %.200s", hex, refusal);
    if (machine_class && strcmp(known, machine_class) != 0)
        return err_set(e, ERR_USAGE, "push.key",
                       "key %s is registered for a machine of class '%.100s', and the gate is for "
                       "class '%s'",
                       hex, known, machine_class);
    return 0;
}

int push_check_key(const struct push_target *t, const struct digest *fingerprint,
                   const char *machine_class, struct err *e)
{
    AUTO_FREE char *token = NULL;
    AUTO_FREE char *url = NULL;
    AUTO_JSON cJSON *answer = NULL;
    AUTO_HTTP_REPLY struct http_reply reply = {.status = 0};
    const struct push_upload u = {.target = t, .project = t->project};
    char hex[DIGEST_HEX_SIZE];

    digest_hex(fingerprint, hex);
    url = push_url(t->server, "/api/v1/projects/%s/runners/%s", t->project, hex);
    if (!url)
        return err_set(e, ERR_USAGE, "push.url", "the server's address is too long");
    if (push_read_token(t->token_file, &token, e) < 0)
        return -1;
    const struct http_request q = {.method = "GET", .url = url, .token = token, .file_fd = -1};

    if (http_retry(&q, &reply, e) < 0)
        return -1;
    if (reply.status == 404)
        return err_set(
            e, ERR_USAGE, "push.key",
            "the server knows no runner of %s with key %s: there, cleanrun-server runner "
            "add NAME --class %s --key PUB.pem --project %s registers it",
            t->project, hex, machine_class ? machine_class : "CLASS", t->project);
    if (reply.status != 200)
        return push_refused(&u, "asking for the key", &reply, e);
    return json_parse(reply.body, reply.len, NULL, &answer, e) < 0
               ? -1
               : judge_key(answer, hex, machine_class, e);
}

/* What is asked for on the command line against what the archive says of itself: known before
 * anything is sent. A damaged archive may still be sent when both names are given: the server is
 * the judge. */
static int choose_names(struct push_upload *u, struct manifest *m, struct err *e)
{
    const struct push_target *t = u->target;
    struct err unreadable = ERR_INIT;
    bool readable = read_manifest(u->fd, m, &unreadable) == 0;
    const char *own_project = readable ? m->project : t->project;
    const char *own_gate = readable ? m->gate : t->gate;

    if (!own_project || !own_gate) {
        *e = unreadable;
        return err_wrap(e, "'%s' is damaged or no evidence", u->archive);
    }
    u->project = t->project ? t->project : own_project;
    u->gate = t->gate ? t->gate : own_gate;
    u->manifest = readable ? m : NULL;
    if (strcmp(u->gate, own_gate) != 0)
        return err_set(e, ERR_USAGE, "push.gate",
                       "the archive is of gate %s, not of '%.100s'; nothing was sent", own_gate,
                       u->gate);
    if (strcmp(u->project, own_project) != 0)
        return err_set(e, ERR_USAGE, "push.project",
                       "the archive is of project %s, not of '%.200s'; nothing was sent",
                       own_project, u->project);
    if (!text_is_project(u->project) || !text_is_slug(u->gate))
        return err_set(e, ERR_USAGE, "push.names",
                       "project must be owner/name, and gate a gate's name");
    return 0;
}

int push_archive(struct cli *c, const char *archive, const struct push_target *t, int *out_exit,
                 struct err *e)
{
    struct push_upload u = {.c = c, .target = t, .archive = archive};
    AUTO_MANIFEST struct manifest manifest = {.document = NULL};
    AUTO_FREE char *token = NULL;
    AUTO_HTTP_REPLY struct http_reply reply = {.status = 0};
    AUTO_FD int fd = -1;
    uint64_t size = 0;

    if (check_target(t, e) < 0 ||
        (file_open(archive, &fd, &size, e) < 0 && mistaken_directory(archive, e) < 0) ||
        push_read_token(t->token_file, &token, e) < 0 ||
        digest_of_fd(fd, &u.digest, &u.size, e) < 0)
        return -1;
    u.fd = fd;
    if (choose_names(&u, &manifest, e) < 0)
        return -1;
    u.token = token;
    int r = put_blob(&u, e) < 0 || post_run(&u, &reply, e) < 0
                ? -1
                : push_tell_verdict(&u, &reply, out_exit, e);

    free(u.envelope);
    return r;
}
