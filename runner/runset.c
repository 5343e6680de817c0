/* Loading a set of runs. What it lacks: runset_judge.c. What it says: runset_index.c. */
#include "runner/runset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/relname.h"
#include "base/text.h"

void runset_close(struct runset *s)
{
    for (size_t i = 0; i < s->n; i++)
        runset_run_close(&s->runs[i]);
    free(s->runs);
    if (s->has_definition)
        definition_fini(&s->definition);
    json_free(s->start);
    json_free(s->now);
    json_free(s->acceptances);
    json_free(s->shortcomings);
    *s = (struct runset){.runs = NULL};
}

void runset_run_name(size_t i, char out[RUNSET_RUN_NAME_SIZE])
{
    (void) snprintf(out, RUNSET_RUN_NAME_SIZE, "run-%zu", i % 1000 + 1); /* fits */
}

bool runset_same_source(const cJSON *a, const cJSON *b)
{
    static const char *const keys[] = {"scheme", "commit", "tree", "dirty", "fingerprint"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const cJSON *x = json_get(a, keys[i]);

        if (!x || !json_equal(x, json_get(b, keys[i])))
            return false;
    }
    return true;
}

/* Every run against the first and the one before. */
static int check_order(const struct runset *s, struct err *e)
{
    for (size_t i = 1; i < s->n; i++) {
        const struct manifest *first = &s->runs[0].manifest;
        const struct manifest *m = &s->runs[i].manifest;

        for (size_t j = 0; j < i; j++) {
            if ((s->runs[j].device == s->runs[i].device && s->runs[j].inode == s->runs[i].inode) ||
                strcmp(s->runs[j].manifest.run, m->run) == 0)
                return err_set(e, ERR_TRUST, "runset.distinct",
                               "runs must be distinct: %s comes twice", m->run);
        }
        if (strcmp(first->project, m->project) != 0 || strcmp(first->gate, m->gate) != 0 ||
            strcmp(first->machine_class, m->machine_class) != 0)
            return err_set(e, ERR_TRUST, "runset.gate",
                           "run %s is of %s, gate %s, class %s; the first is not", m->run,
                           m->project, m->gate, m->machine_class);
        if (m->started_us <= s->runs[i - 1].manifest.started_us)
            return err_set(
                e, ERR_TRUST, "runset.order",
                "runs must be given in strictly chronological order: %s did not begin after %s",
                m->run, s->runs[i - 1].manifest.run);
    }
    return 0;
}

int runset_open(const char *const *paths, size_t n, struct runset *out, struct err *e)
{
    struct runset s = {.runs = NULL};
    int rc = 0;

    if (n == 0 || n > RUNSET_MAX)
        return err_set(e, ERR_USAGE, "runset.count", "1 to %d runs make a package", RUNSET_MAX);
    s.runs = calloc(n, sizeof *s.runs);
    if (!s.runs)
        return err_memory(e, "runset.memory");
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = runset_run_open(paths[i], &s.runs[i], e);
        if (rc == 0)
            s.n = i + 1;
    }
    if (rc < 0 || check_order(&s, e) < 0) {
        runset_close(&s);
        return -1;
    }
    *out = s;
    return 0;
}

/* Source blocks. */

static bool is_hex(const cJSON *block, const char *key, size_t a, size_t b)
{
    const cJSON *j = json_get(block, key);
    size_t len = cJSON_IsString(j) ? strlen(j->valuestring) : 0;

    return (len == a || len == b) && text_is_hex(j->valuestring, len);
}

static int check_block(const cJSON *block, struct err *e)
{
    const char *schema = NULL;
    const char *scheme = NULL;
    bool dirty = false;

    if (json_get_string(block, "schema", &schema, e) < 0 ||
        json_get_string(block, "scheme", &scheme, e) < 0 ||
        json_get_bool(block, "dirty", &dirty, e) < 0)
        return -1;
    if (strcmp(schema, "cleanrun-source/1") != 0)
        return err_set(e, ERR_INPUT, "runset.block", "'%.80s' is not cleanrun-source/1", schema);
    if (!is_hex(block, "commit", 40, 64) || !is_hex(block, "tree", 40, 64) ||
        !is_hex(block, "fingerprint", 64, 64))
        return err_set(e, ERR_INPUT, "runset.block",
                       "commit, tree or fingerprint is invalid or unknown");
    return 0;
}

static int set_block(cJSON **at, const cJSON *block, struct err *e)
{
    cJSON *copy = NULL;

    if (check_block(block, e) < 0)
        return -1;
    copy = cJSON_Duplicate(block, true);
    if (!copy)
        return err_memory(e, "runset.memory");
    json_free(*at);
    *at = copy;
    return 0;
}

int runset_set_start(struct runset *s, const cJSON *block, struct err *e)
{
    return set_block(&s->start, block, e);
}

int runset_set_now(struct runset *s, const cJSON *block, struct err *e)
{
    return set_block(&s->now, block, e);
}

int runset_set_definition(struct runset *s, const struct definition *d, struct err *e)
{
    struct definition copy = {.gate = NULL};
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (definition_write(d, &bytes, &len, e) < 0 || definition_parse(bytes, len, &copy, e) < 0)
        return -1;
    if (s->has_definition)
        definition_fini(&s->definition);
    s->definition = copy;
    s->has_definition = true;
    return 0;
}

int runset_set_executable(struct runset *s, const struct digest *digest, uint64_t size,
                          struct err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct manifest *m = &s->runs[i].manifest;

        if (!m->has_executable || !digest_equal(&m->executable_digest, digest))
            return err_set(
                e, ERR_TRUST, "runset.executable",
                "the executable's content differs from the hash in the manifest of run %s", m->run);
    }
    s->executable = *digest;
    s->executable_size = size;
    s->has_executable = true;
    return 0;
}

/* Packages. */

/* Does "run-<k>" with 1 ≤ k ≤ n lead the name? Then the run's own manifest answers for the rest. */
static bool in_a_run(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char run[RUNSET_RUN_NAME_SIZE];

        runset_run_name(i, run);
        if (strncmp(name, run, strlen(run)) == 0 && name[strlen(run)] == '/')
            return true;
    }
    return false;
}

static bool has_place(const char *name, size_t n)
{
    static const char *const single[] = {RUNSET_README, RUNSET_DEFINITION, RUNSET_START,
                                         RUNSET_NOW};
    size_t prefix = strlen(RUNSET_EXECUTABLE "/");

    for (size_t i = 0; i < ARRAY_LEN(single); i++) {
        if (strcmp(name, single[i]) == 0)
            return true;
    }
    if (strncmp(name, RUNSET_EXECUTABLE "/", prefix) == 0)
        return relname_segment_ok(name + prefix);
    return in_a_run(name, n);
}

static bool is_frame(const char *name)
{
    return strcmp(name, RUNSET_INDEX) == 0 || strcmp(name, RUNSET_CHECKSUM) == 0 ||
           strcmp(name, RUNSET_ENVELOPE) == 0;
}

static int add_file(cJSON *list, int dirfd, const char *name, struct err *e)
{
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];
    cJSON *row = NULL;

    if (file_open_at(dirfd, name, &fd, &size, e) < 0 || digest_of_fd(fd, &digest, &size, e) < 0)
        return -1;
    digest_hex(&digest, hex);
    row = cJSON_CreateObject();
    if (!row || !cJSON_AddItemToArray(list, row)) {
        json_free(row);
        return err_memory(e, "runset.memory");
    }
    return cJSON_AddStringToObject(row, "path", name) &&
                   cJSON_AddNumberToObject(row, "size", (double) size) &&
                   cJSON_AddStringToObject(row, "sha256", hex)
               ? 0
               : err_memory(e, "runset.memory");
}

/* An index is JSON and can name no such file; nor can a message show it as it is. */
static int misnamed(const char *name, struct err *e)
{
    char shown[80];
    size_t n = 0;

    for (; name[n] && n + 1 < sizeof shown; n++) {
        unsigned char c = (unsigned char) name[n];

        shown[n] = (char) (c < 0x20 || c >= 0x7f ? '?' : c);
    }
    shown[n] = '\0';
    return err_set(e, ERR_TRUST, "runset.name",
                   "a file whose name is no UTF-8 ('%s') has no place in a package", shown);
}

int runset_files(int dirfd, size_t n, cJSON **out, struct err *e)
{
    AUTO_FILE_LIST struct file_list names = {.names = NULL};
    AUTO_JSON cJSON *list = cJSON_CreateArray();

    if (!list)
        return err_memory(e, "runset.memory");
    if (file_list_at(dirfd, LIMIT_PACKAGE_FILES, &names, e) < 0) {
        if (e && e->kind == ERR_INPUT)
            e->kind = ERR_TRUST; /* a link or a device */
        return -1;
    }
    for (size_t i = 0; i < names.n; i++) {
        if (is_frame(names.names[i]))
            continue;
        if (!text_is_utf8(names.names[i], strlen(names.names[i])))
            return misnamed(names.names[i], e);
        if (!has_place(names.names[i], n))
            return err_set(e, ERR_TRUST, "runset.place",
                           "'%.200s' has no place in a package of %zu runs", names.names[i], n);
        if (add_file(list, dirfd, names.names[i], e) < 0)
            return -1;
    }
    *out = STEAL(list);
    return 0;
}

static int count_runs(int dirfd, size_t *out, struct err *e)
{
    char name[RUNSET_RUN_NAME_SIZE];
    struct stat st;
    size_t n = 0;

    for (; n <= RUNSET_MAX; n++) {
        runset_run_name(n, name);
        if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            break;
    }
    if (n == 0 || n > RUNSET_MAX)
        return err_set(e, ERR_TRUST, "runset.count", "a package holds 1 to %d runs", RUNSET_MAX);
    *out = n;
    return 0;
}

static int open_runs(const char *dir, size_t n, struct runset *out, struct err *e)
{
    char *paths[RUNSET_MAX] = {NULL};
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        char name[RUNSET_RUN_NAME_SIZE];

        runset_run_name(i, name);
        if (asprintf(&paths[i], "%s/%s", dir, name) < 0) {
            paths[i] = NULL; /* asprintf leaves it undefined */
            rc = err_memory(e, "runset.memory");
        }
    }
    if (rc == 0)
        rc = runset_open((const char *const *) paths, n, out, e);
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    return rc;
}

/* *out NULL when it is absent and may be. */
static int read_block(int dirfd, const char *name, bool optional, cJSON **out, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    struct err why = ERR_INIT;
    size_t len = 0;

    if (file_read_at(dirfd, name, LIMIT_JSON_DOCUMENT, &bytes, &len, &why) < 0)
        return optional && why.kind == ERR_NOTFOUND
                   ? 0
                   : err_set(e, ERR_TRUST, "runset.read", "%s", why.text);
    if (json_parse(bytes, len, NULL, out, &why) < 0)
        return err_set(e, ERR_TRUST, "runset.json", "%s: %s", name, why.text);
    return 0;
}

static int read_sources(int dirfd, struct runset *s, struct err *e)
{
    AUTO_JSON cJSON *start = NULL;
    AUTO_JSON cJSON *now = NULL;
    struct err why = ERR_INIT;

    if (read_block(dirfd, RUNSET_START, false, &start, e) < 0 ||
        read_block(dirfd, RUNSET_NOW, true, &now, e) < 0)
        return -1;
    if (runset_set_start(s, start, &why) < 0 || (now && runset_set_now(s, now, &why) < 0))
        return err_set(e, why.kind == ERR_NOMEM ? ERR_NOMEM : ERR_TRUST, "runset.source",
                       "source block: %s", why.text);
    return 0;
}

static int read_definition(int dirfd, struct runset *s, struct err *e)
{
    AUTO_DEFINITION struct definition d = {.gate = NULL};
    AUTO_FREE char *bytes = NULL;
    AUTO_FREE char *canonical = NULL;
    size_t len = 0;
    size_t canonical_len = 0;
    struct err why = ERR_INIT;

    if (file_read_at(dirfd, RUNSET_DEFINITION, LIMIT_JSON_DOCUMENT, &bytes, &len, &why) < 0 ||
        definition_parse(bytes, len, &d, &why) < 0 ||
        definition_write(&d, &canonical, &canonical_len, &why) < 0 ||
        runset_set_definition(s, &d, &why) < 0)
        return err_set(e, why.kind == ERR_NOMEM ? ERR_NOMEM : ERR_TRUST, "runset.definition", "%s",
                       why.text);
    if (len != canonical_len || memcmp(bytes, canonical, len) != 0)
        return err_set(e, ERR_TRUST, "runset.definition",
                       RUNSET_DEFINITION " is not in canonical form");
    return 0;
}

static int read_executable(int dirfd, struct runset *s, struct err *e)
{
    AUTO_FILE_LIST struct file_list names = {.names = NULL};
    const cJSON *described = s->runs ? json_get(s->runs[0].manifest.document, "executable") : NULL;
    const cJSON *name = json_get(described, "name");
    AUTO_FD int dir = -1;
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    struct digest digest;
    struct stat st;

    if (fstatat(dirfd, RUNSET_EXECUTABLE, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT
                   ? 0
                   : err_errno(e, "runset.executable", "cannot look at " RUNSET_EXECUTABLE);
    if (file_open_dir_at(dirfd, RUNSET_EXECUTABLE, &dir, e) < 0 ||
        file_list_at(dir, 2, &names, e) < 0 || names.n != 1 || !cJSON_IsString(name) ||
        strcmp(names.names[0], name->valuestring) != 0)
        return err_set(e, ERR_TRUST, "runset.executable",
                       RUNSET_EXECUTABLE " holds other files than the runs' executable");
    if (file_open_at(dir, names.names[0], &fd, &size, e) < 0 ||
        digest_of_fd(fd, &digest, &size, e) < 0)
        return -1;
    return runset_set_executable(s, &digest, size, e);
}

int runset_open_package(const char *dir, struct runset *out, struct err *e)
{
    struct runset s = {.runs = NULL};
    AUTO_FD int dirfd = -1;
    size_t n = 0;
    struct err why = ERR_INIT;

    if (file_open_dir(dir, &dirfd, e) < 0 || count_runs(dirfd, &n, e) < 0)
        return -1;
    if (open_runs(dir, n, &s, &why) < 0 || read_definition(dirfd, &s, &why) < 0 ||
        read_sources(dirfd, &s, &why) < 0 || read_executable(dirfd, &s, &why) < 0) {
        runset_close(&s);
        /* Inside a package a part that can't be read is a broken package. */
        if (why.kind == ERR_NOTFOUND || why.kind == ERR_INPUT || why.kind == ERR_LIMIT ||
            why.kind == ERR_USAGE)
            why.kind = ERR_TRUST;
        return err_set(e, why.kind, why.code, "%s", why.text);
    }
    *out = s;
    return 0;
}
