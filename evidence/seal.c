#include "evidence/seal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"
#include "evidence/attest.h"
#include "evidence/dsse.h"
#include "evidence/keyring.h"
#include "evidence/manifest.h"
#include "evidence/pack.h"
#include "evidence/verify.h"

#define RANDOM_TAG 8
#define SUFFIXES 3

static const char *const suffixes[SUFFIXES] = {".dsse.json", ".sigstore.json", ".sig"};

struct output {
    int dirfd;
    char *name;      /* of the archive, inside dirfd */
    char *temporary; /* its name until it is complete */
    int fd;
    bool placed; /* the archive has its name */
};

static void output_fini(struct output *o)
{
    if (o->fd >= 0)
        (void) close(o->fd); /* synced before it counts */
    if (o->dirfd >= 0)
        (void) close(o->dirfd); /* only a place */
    free(o->name);
    free(o->temporary);
}

static int join(char **out, const char *a, const char *b, const char *c, struct err *e)
{
    size_t n = strlen(a) + strlen(b) + strlen(c) + 1;
    char *s = malloc(n);

    if (!s)
        return err_set(e, ERR_NOMEM, "seal.memory", "no memory for a file name");
    (void) snprintf(s, n, "%s%s%s", a, b, c); /* n is the exact size */
    *out = s;
    return 0;
}

/* Whatever an unfinished seal has left. */
static void output_undo(struct output *o)
{
    if (o->temporary && o->fd >= 0)
        (void) unlinkat(o->dirfd, o->temporary, 0); /* may have been renamed already */
    if (!o->placed || !o->name)
        return;
    (void) unlinkat(o->dirfd, o->name, 0);
    for (size_t i = 0; i < SUFFIXES; i++) {
        struct err ignored = ERR_INIT;
        AUTO_FREE char *name = NULL;

        if (join(&name, o->name, suffixes[i], "", &ignored) == 0 && name)
            (void) unlinkat(o->dirfd, name, 0); /* it may not be there yet */
    }
}

/* An archive inside its own run directory would be an unlisted file of it. */
static int check_place(int run_dirfd, int out_dirfd, struct err *e)
{
    struct stat run;
    struct stat out;

    if (fstat(run_dirfd, &run) < 0 || fstat(out_dirfd, &out) < 0)
        return err_errno(e, "seal.place", "cannot look at the directories");
    if (run.st_dev == out.st_dev && run.st_ino == out.st_ino)
        return err_set(e, ERR_USAGE, "seal.place",
                       "the archive cannot lie inside the run directory");
    return 0;
}

static int output_open(struct output *o, int run_dirfd, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *directory = slash ? strndup(path, (size_t) (slash - path) + 1) : strdup("./");
    uint8_t tag[RANDOM_TAG];
    char hex[2 * RANDOM_TAG + 1];

    if (!directory)
        return err_set(e, ERR_NOMEM, "seal.memory", "no memory for a file name");
    if (!(slash ? slash + 1 : path)[0])
        return err_set(e, ERR_USAGE, "seal.name", "'%s' names no file", path);
    if (join(&o->name, slash ? slash + 1 : path, "", "", e) < 0 ||
        file_open_dir(directory, &o->dirfd, e) < 0 || check_place(run_dirfd, o->dirfd, e) < 0 ||
        random_bytes(tag, sizeof tag, e) < 0)
        return -1;
    text_hex(tag, sizeof tag, hex);
    if (join(&o->temporary, ".seal-", hex, ".tmp", e) < 0)
        return -1;
    o->fd =
        openat(o->dirfd, o->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    return o->fd < 0 ? err_errno(e, "seal.create", "cannot write beside '%s'", path) : 0;
}

/* Links, devices and other strangers are refused by file_list_at. */
static int list_files(int run_dirfd, struct file_list *out, struct err *e)
{
    if (file_list_at(run_dirfd, LIMIT_MEMBERS, out, e) == 0)
        return 0;
    if (e->kind == ERR_INPUT || e->kind == ERR_LIMIT)
        e->kind = ERR_TRUST;
    return -1;
}

/* The files there must be exactly those listed. */
static int check_closed(const struct file_list *found, const struct manifest *m, struct err *e)
{
    size_t listed = 0;

    for (size_t i = 0; i < found->n; i++) {
        int order;

        if (strcmp(found->names[i], MANIFEST_NAME) == 0)
            continue;
        order = listed < m->n_files ? strcmp(m->files[listed].path, found->names[i]) : 1;
        if (order < 0)
            break;
        if (order > 0)
            return err_set(e, ERR_TRUST, "seal.unlisted",
                           "'%s' is in the run directory but not in its manifest", found->names[i]);
        listed++;
    }
    if (listed < m->n_files)
        return err_set(e, ERR_TRUST, "seal.missing",
                       "'%s' is in the manifest but not in the run directory",
                       m->files[listed].path);
    return 0;
}

static int write_archive(int run_dirfd, const struct manifest *m, uint64_t manifest_size,
                         struct output *o, struct digest *out_digest, uint64_t *out_size,
                         struct err *e)
{
    AUTO_FREE struct pack_file *files = calloc(m->n_files + 1, sizeof *files);

    if (!files)
        return err_set(e, ERR_NOMEM, "seal.memory", "no memory for %zu files", m->n_files);
    files[0] =
        (struct pack_file){.name = MANIFEST_NAME, .size = manifest_size, .digest = &m->digest};
    for (size_t i = 0; i < m->n_files; i++)
        files[i + 1] = (struct pack_file){
            .name = m->files[i].path, .size = m->files[i].size, .digest = &m->files[i].digest};
    if (pack_write(run_dirfd, files, m->n_files + 1, o->fd, out_digest, e) < 0)
        return -1;
    *out_size = pack_size(files, m->n_files + 1);
    return fsync(o->fd) < 0 ? err_errno(e, "seal.sync", "cannot store the archive") : 0;
}

/* The product of sealing must pass the very function that will judge it elsewhere. */
static int check_result(const struct output *o, const struct digest *digest, const char *envelope,
                        size_t len, const struct private_key *key, struct err *e)
{
    const struct keyring_entry anyone = {.name = NULL};
    AUTO_KEYRING struct keyring *ring = keyring_new();
    AUTO_EVIDENCE struct evidence *ev = NULL;
    AUTO_VERIFY_REPORT struct verify_report report = {.document = NULL};
    AUTO_FREE char *pem = NULL;
    struct public_key *own = NULL;
    const cJSON *stage;
    const char *detail = "";

    if (!ring)
        return err_set(e, ERR_NOMEM, "seal.memory", "no memory to check the sealed archive");
    if (public_key_write(private_key_public(key), &pem, e) < 0 ||
        public_key_parse(pem, strlen(pem), &own, e) < 0 || keyring_add(ring, own, &anyone, e) < 0)
        return -1;
    if (evidence_verify(&(struct verify_input){.archive_fd = o->fd,
                                               .archive_digest = digest,
                                               .envelope = envelope,
                                               .envelope_len = len,
                                               .keyring = ring,
                                               .now_us = clock_realtime_us()},
                        &ev, &report, e) < 0)
        return -1;
    if (ev)
        return 0;
    stage = cJSON_GetArrayItem(json_get(report.document, "stages"), (int) report.failed_stage);
    if (json_get_string(stage, "detail", &detail, e) < 0)
        return -1;
    return err_set(e, ERR_TRUST, "seal.refused", "this run directory would not verify: %s (%s): %s",
                   report.code, verify_stage_name(report.failed_stage), detail);
}

static int place(struct output *o, struct err *e)
{
    if (renameat(o->dirfd, o->temporary, o->dirfd, o->name) < 0)
        return err_errno(e, "seal.rename", "cannot name the archive '%s'", o->name);
    o->placed = true;
    return 0;
}

static int write_beside(const struct output *o, size_t which, const void *bytes, size_t len,
                        struct err *e)
{
    AUTO_FREE char *name = NULL;

    if (join(&name, o->name, suffixes[which], "", e) < 0)
        return -1;
    return file_write_at(o->dirfd, name, bytes, len, 0644, e);
}

static int finish(struct output *o, const struct digest *digest, const char *envelope,
                  size_t envelope_len, const struct private_key *key, struct err *e)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    AUTO_FREE char *bundle = NULL;
    size_t bundle_len = 0;
    uint8_t sig[SIGNATURE_MAX];
    size_t sig_len = 0;

    if (dsse_parse(envelope, envelope_len, &d, e) < 0 ||
        dsse_sigstore_bundle(&d, &bundle, &bundle_len, e) < 0 ||
        private_key_sign(key, digest, sig, &sig_len, e) < 0)
        return -1;
    if (place(o, e) < 0 || write_beside(o, 0, envelope, envelope_len, e) < 0 ||
        write_beside(o, 1, bundle, bundle_len, e) < 0 || write_beside(o, 2, sig, sig_len, e) < 0)
        return -1;
    return file_sync_dir(o->dirfd, e);
}

static int seal_into(struct output *o, int run_dirfd, const struct private_key *key,
                     struct digest *out_digest, struct err *e)
{
    AUTO_FILE_LIST struct file_list found = {.names = NULL};
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    AUTO_FREE char *bytes = NULL;
    AUTO_FREE char *envelope = NULL;
    size_t len = 0;
    size_t envelope_len = 0;
    uint64_t size = 0;

    if (list_files(run_dirfd, &found, e) < 0)
        return -1;
    if (file_read_at(run_dirfd, MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0 ||
        manifest_parse(bytes, len, &m, e) < 0) {
        if (e->kind == ERR_INPUT || e->kind == ERR_LIMIT || e->kind == ERR_NOTFOUND)
            e->kind = ERR_TRUST; /* a directory without a valid manifest is no evidence */
        return -1;
    }
    if (check_closed(&found, &m, e) < 0 ||
        write_archive(run_dirfd, &m, len, o, out_digest, &size, e) < 0 ||
        attest_run(&m, out_digest, size, key, &envelope, &envelope_len, e) < 0 ||
        check_result(o, out_digest, envelope, envelope_len, key, e) < 0)
        return -1;
    return finish(o, out_digest, envelope, envelope_len, key, e);
}

int seal_run(int run_dirfd, const struct private_key *key, const char *out_path,
             struct digest *out_digest, struct err *e)
{
    __attribute__((cleanup(output_fini))) struct output o = {.dirfd = -1, .fd = -1};
    struct err local = ERR_INIT;
    struct digest digest;

    if (!e)
        e = &local;
    if (output_open(&o, run_dirfd, out_path, e) < 0)
        return -1;
    if (seal_into(&o, run_dirfd, key, &digest, e) < 0) {
        output_undo(&o);
        return -1;
    }
    *out_digest = digest;
    return 0;
}
