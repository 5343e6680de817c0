#include "runner/fetch.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "evidence/verify.h"
#include "evidence/verify_stream.h"
#include "runner/http.h"
#include "runner/push.h"
#include "runner/scratch.h"

#define ARCHIVE_NAME "evidence.tar"
#define TREE_NAME "run"
#define COPY_CHUNK LIMIT_KIB(64)

/* The row of the list that names the baseline; strings are borrowed from the list. */
struct listed {
    const char *id, *run, *commit, *reviewer, *at;
    const char *revoked_since; /* the key that signed it, before it was received; or NULL */
    struct digest archive;
};

/* The answer is no document that this program understands. */
static int unsound(const char *what, struct err *e)
{
    return err_set(e, ERR_INTERNAL, "fetch.answer", "the server's list of baselines: %s", what);
}

static int untrusted(const struct listed *l, const char *what, struct err *e)
{
    return err_set(e, ERR_TRUST, "fetch.differs", "reviewed baseline %s: %s", l->id, what);
}

static int refused(const struct fetch_question *q, const char *what, long status, struct err *e)
{
    const struct push_target target = {.token_file = q->token_file};
    const char *hint = push_hint(status, &target);

    if (status == 401 && !q->token_file)
        hint = "; give --token-file FILE";
    if (status == 403)
        hint = "; a token needs the scope `read` and this project";
    return err_set(e, status >= 500 || status == 429 ? ERR_BUSY : ERR_USAGE, "fetch.refused",
                   "%s of %s: the server answered %ld%s", what, q->project, status, hint);
}

/* One document of the server, or with `save` into a file; any other answer than 200 is a refusal.
 * url: of push_url, NULL is its failure. */
static int get(const struct fetch_question *q, const char *token, const char *url, const char *what,
               const struct http_save *save, struct http_reply *reply, struct err *e)
{
    if (!url)
        return err_set(e, ERR_USAGE, "fetch.url", "the server's address is too long");
    struct http_request request = {
        .method = "GET", .url = url, .token = token, .file_fd = -1, .save = save};

    if (http_retry(&request, reply, e) < 0)
        return -1;
    return reply->status == 200 ? 0 : refused(q, what, reply->status, e);
}

static int ask(const struct fetch_question *q, const char *token, cJSON **out, struct err *e)
{
    AUTO_FREE char *url =
        push_url(q->server, "/api/v1/projects/%s/gates/%s/baselines", q->project, q->gate);
    AUTO_HTTP_REPLY struct http_reply reply = {.status = 0};
    struct json_limits limits = {.max_bytes = LIMIT_MIB(16)};

    if (get(q, token, url, "the list of baselines", NULL, &reply, e) < 0)
        return -1;
    if (json_parse(reply.body, reply.len, &limits, out, e) < 0)
        return unsound("it is no JSON", e);
    return 0;
}

static int read_row(const cJSON *row, struct listed *out, struct err *e)
{
    *out = (struct listed){
        .id = json_text(row, "id", ""),
        .run = json_text(row, "run", ""),
        .commit = json_text(row, "commit", ""),
        .reviewer = json_text(row, "reviewer", ""),
        .at = json_text(row, "at", ""),
        .revoked_since = json_text(row, "revoked_since", NULL),
    };
    if (!text_is_run_id(out->run) ||
        !digest_parse(json_text(row, "evidence_sha256", ""), &out->archive))
        return unsound("the current baseline names no run or no digest", e);
    return 0;
}

/* The current row of the class. *out_found false: none. History without evidence is never current.
 */
static int choose(const cJSON *list, const char *machine_class, struct listed *out, bool *out_found,
                  struct err *e)
{
    const cJSON *rows = json_get(list, "baselines");
    const cJSON *row = NULL;
    bool found = false;

    if (strcmp(json_text(list, "schema", ""), "cleanrun-baselines/1") != 0 || !cJSON_IsArray(rows))
        return unsound("it is no cleanrun-baselines/1", e);
    cJSON_ArrayForEach(row, rows) {
        if (!cJSON_IsTrue(json_get(row, "current")) || cJSON_IsTrue(json_get(row, "legacy")) ||
            strcmp(json_text(row, "class", ""), machine_class) != 0)
            continue;
        if (found)
            return unsound("two baselines are current", e);
        if (read_row(row, out, e) < 0)
            return -1;
        found = true;
    }
    *out_found = found;
    return 0;
}

static int download(const struct fetch_question *q, const char *token, const struct listed *l,
                    int fd, struct err *e)
{
    AUTO_FREE char *url =
        push_url(q->server, "/api/v1/projects/%s/runs/%s/archive", q->project, l->run);
    AUTO_HTTP_REPLY struct http_reply reply = {.status = 0};
    struct http_save save = {.fd = fd, .max = LIMIT_ARCHIVE};

    return get(q, token, url, "the baseline's evidence", &save, &reply, e);
}

/* The detail of the stage that failed. */
static const char *failed_detail(const struct verify_report *report)
{
    const cJSON *stage = NULL;

    cJSON_ArrayForEach(stage, json_get(report->document, "stages")) {
        if (strcmp(json_text(stage, "result", ""), "failed") == 0)
            return json_text(stage, "detail", "");
    }
    return "";
}

/* Signed, by a key that the caller trusts, as exactly these bytes. */
static int check_signature(const struct fetch_question *q, const char *token,
                           const struct listed *l, int fd, struct err *e)
{
    AUTO_FREE char *url =
        push_url(q->server, "/api/v1/projects/%s/runs/%s/attestation", q->project, l->run);
    AUTO_HTTP_REPLY struct http_reply reply = {.status = 0};
    AUTO_EVIDENCE struct evidence *ev = NULL;
    AUTO_VERIFY_REPORT struct verify_report report = {.document = NULL};

    if (get(q, token, url, "the baseline's attestation", NULL, &reply, e) < 0)
        return -1;
    struct verify_input in = {
        .archive_fd = fd,
        .archive_digest = &l->archive,
        .envelope = reply.body,
        .envelope_len = reply.len,
        .keyring = q->keyring,
        .gate = q->gate,
        .now_us = clock_realtime_us(),
    };

    if (evidence_verify(&in, &ev, &report, e) < 0)
        return -1;
    return ev ? 0
              : err_set(e, ERR_TRUST, "fetch.signature",
                        "reviewed baseline %s is not what a key of --baseline-key signed: %s: %s",
                        l->id, report.code ? report.code : "?", failed_detail(&report));
}

static int read_member(int fd, const struct archive_member *m, char **out, struct err *e)
{
    AUTO_FREE char *bytes = NULL;

    if (m->size > LIMIT_JSON_DOCUMENT)
        return err_set(e, ERR_LIMIT, "fetch.member", "%s is too large", m->name);
    bytes = malloc(m->size + 1);
    if (!bytes)
        return err_memory(e, "fetch.memory");
    if (pread(fd, bytes, m->size, (off_t) m->offset) != (ssize_t) m->size)
        return err_errno(e, "fetch.read", "cannot read the archive");
    bytes[m->size] = '\0';
    *out = STEAL(bytes);
    return 0;
}

/* Every member is listed with its digest, and nothing else is there. */
static int check_members(const struct listed *l, const struct manifest *m,
                         const struct archive_index *x, struct err *e)
{
    if (x->n != m->n_files + 1)
        return untrusted(l, "its manifest does not list what the archive holds", e);
    for (size_t i = 0; i < m->n_files; i++) {
        const struct archive_member *member = archive_index_find(x, m->files[i].path);

        if (!member || member->size != m->files[i].size ||
            !digest_equal(&member->digest, &m->files[i].digest))
            return untrusted(l, m->files[i].path, e);
    }
    return 0;
}

/* The manifest speaks of the run that was reviewed, for this gate. */
static int check_subject(const struct fetch_question *q, const struct listed *l,
                         const struct manifest *m, struct err *e)
{
    if (strcmp(m->run, l->run) != 0 || strcmp(m->project, q->project) != 0 ||
        strcmp(m->gate, q->gate) != 0 || strcmp(m->machine_class, q->machine_class) != 0 ||
        strcmp(m->commit, l->commit) != 0)
        return untrusted(l, "its manifest is of another run, gate, class or commit", e);
    if (m->status != MANIFEST_PASS || strcmp(m->mode, "clean") != 0 || m->dirty)
        return untrusted(l, "its run was no passing clean run of a commit", e);
    return 0;
}

static int copy_range(int from, uint64_t offset, uint64_t size, int to, struct err *e)
{
    AUTO_FREE char *chunk = malloc(COPY_CHUNK);

    if (!chunk)
        return err_memory(e, "fetch.memory");
    while (size > 0) {
        size_t want = size < COPY_CHUNK ? (size_t) size : COPY_CHUNK;
        ssize_t n = pread(from, chunk, want, (off_t) offset);

        if (n <= 0)
            return err_errno(e, "fetch.read", "cannot read the archive");
        if (file_write_all(to, chunk, (size_t) n, e) < 0)
            return -1;
        offset += (uint64_t) n;
        size -= (uint64_t) n;
    }
    return 0;
}

static int write_member(int fd, const struct archive_member *m, int dir_fd, struct err *e)
{
    AUTO_FREE char *parent = strdup(m->name);
    AUTO_FD int to = -1;
    char *slash;

    if (!parent)
        return err_memory(e, "fetch.memory");
    slash = strrchr(parent, '/');
    if (slash) {
        *slash = '\0';
        if (file_mkdirs_at(dir_fd, parent, 0700, e) < 0)
            return -1;
    }
    to = openat(dir_fd, m->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return err_errno(e, "fetch.write", "cannot create '%s'", m->name);
    return copy_range(fd, m->offset, m->size, to, e);
}

/* Names in an index are canonical relative names (relname), so none leads out of the directory. */
static int unpack(int fd, const struct archive_index *x, int dir_fd, struct err *e)
{
    for (size_t i = 0; i < x->n; i++) {
        const char *name = x->members[i].name;

        if (strcmp(name, MANIFEST_NAME) != 0 && !reference_keeps(name))
            continue;
        if (write_member(fd, &x->members[i], dir_fd, e) < 0)
            return -1;
    }
    return 0;
}

static int check_archive(const struct fetch_question *q, const struct listed *l, int fd,
                         struct archive_index **out, struct err *e)
{
    AUTO_ARCHIVE_INDEX struct archive_index *x = NULL;
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    AUTO_FREE char *bytes = NULL;

    if (archive_index_of_fd(fd, &x, e) < 0)
        return -1;
    assert(x); /* it succeeded */
    if (!digest_equal(&x->digest, &l->archive))
        return untrusted(l, "the archive has another SHA-256 than the one that was reviewed", e);
    if (x->problem)
        return untrusted(l, x->problem, e);
    if (read_member(fd, &x->members[0], &bytes, e) < 0)
        return -1;
    if (manifest_parse(bytes, x->members[0].size, &m, e) < 0) {
        e->kind = ERR_TRUST;
        return err_wrap(e, "reviewed baseline %s", l->id);
    }
    if (check_members(l, &m, x, e) < 0 || check_subject(q, l, &m, e) < 0)
        return -1;
    *out = STEAL(x);
    return 0;
}

/* The checked archive as a run directory, opened as one that the caller named. */
static int open_unpacked(const struct listed *l, int fd, const struct archive_index *x,
                         struct scratch *scratch, struct reference *out, struct err *e)
{
    char hex[DIGEST_HEX_SIZE];
    AUTO_FREE char *tree = NULL;
    AUTO_FD int dir_fd = -1;

    if (asprintf(&tree, "%s/" TREE_NAME, scratch->path) < 0) {
        tree = NULL;
        return err_memory(e, "fetch.memory");
    }
    if (file_mkdirs_at(scratch->fd, TREE_NAME, 0700, e) < 0 ||
        file_open_dir_at(scratch->fd, TREE_NAME, &dir_fd, e) < 0 || unpack(fd, x, dir_fd, e) < 0)
        return -1;
    digest_hex(&x->members[0].digest, hex);
    if (reference_open(tree, hex, out, e) < 0) {
        /* Its bytes are what was reviewed: a document in it can't be read by this version. */
        if (e->kind == ERR_USAGE)
            e->kind = ERR_TRUST;
        return err_wrap(e, "reviewed baseline %s", l->id);
    }
    out->has_evidence = true;
    out->evidence_digest = l->archive;
    (void) snprintf(out->id, sizeof(out->id), "%s", l->id); /* a run id and two letters */
    return 0;
}

static int fetch_listed(const struct fetch_question *q, const char *token, const struct listed *l,
                        struct reference *out, struct err *e)
{
    AUTO_SCRATCH struct scratch scratch = {.fd = -1};
    AUTO_ARCHIVE_INDEX struct archive_index *x = NULL;
    AUTO_FD int fd = -1;

    if (scratch_open(q->state, &scratch, e) < 0)
        return -1;
    fd = openat(scratch.fd, ARCHIVE_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "fetch.create", "cannot create a temporary file");
    if (download(q, token, l, fd, e) < 0 ||
        (q->keyring && check_signature(q, token, l, fd, e) < 0) ||
        check_archive(q, l, fd, &x, e) < 0)
        return -1;
    assert(x); /* it succeeded */
    if (open_unpacked(l, fd, x, &scratch, out, e) < 0)
        return -1;
    out->scratch = scratch; /* lives as long as the reference */
    scratch = (struct scratch){.fd = -1};
    return 0;
}

int fetch_baseline(const struct fetch_question *q, struct reference *out, char *note, size_t size,
                   struct err *e)
{
    AUTO_FREE char *token = NULL;
    AUTO_JSON cJSON *list = NULL;
    struct reference made = {.dir_fd = -1};
    struct listed l;
    bool found = false;

    if (q->token_file && push_read_token(q->token_file, &token, e) < 0)
        return -1;
    if (ask(q, token, &list, e) < 0 || choose(list, q->machine_class, &l, &found, e) < 0)
        return -1;
    if (!found) {
        (void) snprintf(note, size, "none is reviewed for class %s", q->machine_class);
        *out = made;
        return 0;
    }
    if (l.revoked_since) {
        (void) snprintf(note, size, "none: the key that signed %s is revoked since %s", l.id,
                        l.revoked_since); /* may be cut: talk */
        *out = made;
        return 0;
    }
    if (fetch_listed(q, token, &l, &made, e) < 0)
        return -1;
    (void) snprintf(note, size, "%s  commit %.12s  reviewed by %s at %s", l.id, l.commit,
                    l.reviewer, l.at); /* may be cut: talk */
    *out = made;
    return 0;
}
