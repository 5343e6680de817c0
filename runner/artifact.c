#include "runner/artifact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "runner/name_list.h"

/* Diagnostics in cargo's messages nest deeper than documents of ours. */
static const struct json_limits message_limits = {
    .max_bytes = LIMIT_BUILD_MESSAGES, .max_depth = 64, .big_integers = true};

static int not_one(const char *target, size_t n, const struct name_list *made, struct err *e)
{
    return err_set(
        e, ERR_USAGE, "artifact.count",
        "expected exactly one executable of target '%s' in the build's messages, found "
        "%zu; of all targets: %s (build.executable: target, kind, src_path; Cargo links a "
        "bench with `cargo bench --no-run`, a test with `cargo test --no-run`)",
        target, n, made->n ? made->text : "no executable");
}

struct cargo_search {
    const struct artifact_wanted *wanted;
    char *path;
    cJSON *details;
    size_t distinct;
    struct name_list made; /* every executable: "name (kind)" */
    bool finished, success;
};

static bool has_kind(const cJSON *kinds, const char *kind)
{
    const cJSON *k = NULL;

    if (!kind)
        return true;
    cJSON_ArrayForEach(k, kinds) {
        if (cJSON_IsString(k) && !strcmp(k->valuestring, kind))
            return true;
    }
    return false;
}

/* The message's source file against one given relative to the root (or absolute). */
static bool same_source(const char *seen, const char *wanted, const char *root)
{
    size_t len = strlen(root);

    if (!wanted)
        return true;
    if (!seen)
        return false;
    if (wanted[0] == '/')
        return !strcmp(seen, wanted);
    return !strncmp(seen, root, len) && seen[len] == '/' && !strcmp(seen + len + 1, wanted);
}

static int take_details(struct cargo_search *s, const cJSON *message, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};

    json_doc_init_object(&d);
    json_add_copy(&d, NULL, "features", json_get(message, "features"));
    json_add_copy(&d, NULL, "fresh", json_get(message, "fresh"));
    json_add_copy(&d, NULL, "profile", json_get(message, "profile"));
    json_free(s->details);
    s->details = json_doc_take(&d, e);
    return s->details ? 0 : -1;
}

static int on_artifact(struct cargo_search *s, const cJSON *message, struct err *e)
{
    const cJSON *target = json_get(message, "target");
    const char *name = json_text(target, "name", NULL);
    const char *executable = json_text(message, "executable", NULL);
    const cJSON *kind = json_get(target, "kind");
    char told[160];

    if (name && executable) {
        (void) snprintf(told, sizeof(told), "%.80s (%.40s)", name,
                        kind && cJSON_IsString(kind->child) ? kind->child->valuestring : "?");
        name_list_add(&s->made, "", told);
    }
    if (!name || strcmp(name, s->wanted->target) != 0 || !executable ||
        !has_kind(json_get(target, "kind"), s->wanted->kind) ||
        !same_source(json_text(target, "src_path", NULL), s->wanted->src_path, s->wanted->root))
        return 0;
    AUTO_FREE char *resolved = realpath(executable, NULL);
    AUTO_FREE char *path = resolved ? STEAL(resolved) : strdup(executable);

    if (!path)
        return err_memory(e, "artifact.memory");
    if (s->path && strcmp(s->path, path) == 0)
        return take_details(s, message, e);
    s->distinct++;
    if (s->path)
        return 0;
    s->path = STEAL(path);
    return take_details(s, message, e);
}

static int on_message(struct cargo_search *s, const cJSON *message, struct err *e)
{
    const char *reason = json_text(message, "reason", NULL);

    if (reason && !strcmp(reason, "compiler-artifact"))
        return on_artifact(s, message, e);
    if (reason && !strcmp(reason, "build-finished")) {
        s->finished = true;
        s->success = cJSON_IsTrue(json_get(message, "success"));
    }
    return 0;
}

/* A line is a message, or plain text of the build's own; half a message or another JSON value is a
 * fault. */
static int on_line(struct cargo_search *s, const char *line, size_t len, size_t number,
                   struct err *e)
{
    AUTO_JSON cJSON *message = NULL;
    struct err why = ERR_INIT;
    size_t skip = strspn(line, " \t");
    bool bad;

    if (skip >= len)
        return 0;
    if (json_parse(line, len, &message_limits, &message, &why) < 0) {
        if (why.kind == ERR_NOMEM)
            return err_memory(e, "artifact.memory");
        bad = line[skip] == '{';
    } else {
        bad = !cJSON_IsObject(message);
    }
    if (bad)
        return err_set(e, ERR_INPUT, "artifact.message",
                       "invalid Cargo JSON object in line %zu of the build's messages", number);
    return message ? on_message(s, message, e) : 0;
}

static int search_cargo(struct cargo_search *s, const char *messages, size_t len, struct err *e)
{
    size_t number = 0;

    for (size_t at = 0; at < len;) {
        const char *end = memchr(messages + at, '\n', len - at);
        size_t n = end ? (size_t) (end - messages) - at : len - at;

        if (on_line(s, messages + at, n, ++number, e) < 0)
            return -1;
        at += n + 1;
    }
    if (!s->finished || !s->success)
        return err_set(e, ERR_INPUT, "artifact.unfinished",
                       "the build did not finish: its messages do not end in success");
    return s->distinct == 1 ? 0 : not_one(s->wanted->target, s->distinct, &s->made, e);
}

int artifact_from_cargo(const struct artifact_wanted *w, const char *messages, size_t len,
                        char **out_path, cJSON **out_details, struct err *e)
{
    struct cargo_search s = {.wanted = w};

    if (search_cargo(&s, messages, len, e) < 0) {
        free(s.path);
        json_free(s.details);
        return -1;
    }
    *out_path = s.path;
    *out_details = s.details;
    return 0;
}

static bool is_meson_match(const cJSON *t, const struct artifact_wanted *w)
{
    const char *name = json_text(t, "name", NULL);
    const char *type = json_text(t, "type", NULL);

    return name && type && !strcmp(name, w->target) &&
           !strcmp(type, w->kind ? w->kind : "executable");
}

int artifact_from_meson(const struct artifact_wanted *w, const char *json, size_t len,
                        char **out_path, cJSON **out_details, struct err *e)
{
    AUTO_JSON cJSON *targets = NULL;
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    const cJSON *t = NULL;
    const char *found = NULL;
    struct name_list made = {.n = 0};
    size_t n = 0;

    json_doc_init_object(&d);
    if (json_parse(json, len, &message_limits, &targets, e) < 0)
        return err_wrap(e, "meson introspect");
    cJSON_ArrayForEach(t, targets) {
        const cJSON *files = json_get(t, "filename");

        if (json_text(t, "name", NULL) && json_text(t, "type", NULL) &&
            !strcmp(json_text(t, "type", NULL), "executable"))
            name_list_add(&made, "", json_text(t, "name", NULL));
        if (!is_meson_match(t, w))
            continue;
        n += (size_t) cJSON_GetArraySize(files);
        if (cJSON_IsArray(files) && files->child && cJSON_IsString(files->child))
            found = files->child->valuestring;
        json_add_copy(&d, NULL, "type", json_get(t, "type"));
        json_add_copy(&d, NULL, "build_by_default", json_get(t, "build_by_default"));
    }
    if (n != 1 || !found)
        return not_one(w->target, n, &made, e);
    AUTO_FREE char *path = strdup(found);

    if (!path)
        return err_memory(e, "artifact.memory");
    *out_details = json_doc_take(&d, e);
    if (!*out_details)
        return -1;
    *out_path = STEAL(path);
    return 0;
}

static int check_magic(int fd, const char *name, struct err *e)
{
    unsigned char magic[4] = {0};
    ssize_t n = pread(fd, magic, sizeof(magic), 0);

    if (n < 0)
        return err_errno(e, "artifact.read", "cannot read '%s'", name);
    if (n >= 2 && magic[0] == '#' && magic[1] == '!')
        return err_set(
            e, ERR_USAGE, "artifact.script",
            "'%s' is a script: what would run is its interpreter, which no hash covers; let the "
            "build copy the interpreter (command: [cp, /usr/bin/python3, build/py]), name that "
            "(executable: {from: path, path: build/py}) and give it the script (run.command: "
            "['{executable}', %s]); the source's fingerprint covers the script",
            name, name);
    if (n != 4 || memcmp(magic, "\177ELF", 4) != 0)
        return err_set(e, ERR_USAGE, "artifact.format", "'%s' is no ELF executable", name);
    return 0;
}

int artifact_open(const char *path, const char *resolved, struct artifact *out, struct err *e)
{
    struct stat st;
    AUTO_FREE char *copy = strdup(path);
    AUTO_FREE char *name = strdup(strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct digest digest;
    uint64_t size = 0;

    if (!copy || !name)
        return err_memory(e, "artifact.memory");
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(e, ERR_USAGE, "artifact.open",
                       "the build left no '%s', the program that build.executable names", name);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "artifact.open",
                         "cannot open '%s', the program that build.executable names", name);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_USAGE, "artifact.kind", "'%s' is not a regular file", name);
    if (faccessat(fd, "", X_OK, AT_EMPTY_PATH) < 0 || (st.st_mode & 0111) == 0)
        return err_set(e, ERR_USAGE, "artifact.mode", "'%s' is not executable", name);
    if (check_magic(fd, name, e) < 0 || digest_of_fd(fd, &digest, &size, e) < 0)
        return -1;
    *out = (struct artifact){.fd = fd_steal(&fd),
                             .path = STEAL(copy),
                             .name = STEAL(name),
                             .resolved = resolved,
                             .digest = digest,
                             .size = size};
    return 0;
}

static int resolve_cargo(const struct build_input *in, const struct artifact_wanted *w, char **path,
                         cJSON **details, struct err *e)
{
    AUTO_FREE char *messages = NULL;
    size_t len = 0;

    if (file_read_at(in->run_fd, BUILD_MESSAGES, LIMIT_BUILD_MESSAGES, &messages, &len, e) < 0)
        return -1;
    return artifact_from_cargo(w, messages, len, path, details, e);
}

static int resolve_meson(const struct build_input *in, const struct artifact_wanted *w, char **path,
                         cJSON **details, struct err *e)
{
    AUTO_FREE char *json = NULL;
    size_t len = 0;
    AUTO_JSON cJSON *command = cJSON_CreateArray();
    const char *const words[] = {"meson", "introspect", "--targets", in->plan->build.build_dir};

    for (size_t i = 0; command && i < ARRAY_LEN(words); i++)
        if (!cJSON_AddItemToArray(command, cJSON_CreateString(words[i])))
            return err_memory(e, "artifact.memory");
    if (!command)
        return err_memory(e, "artifact.memory");
    if (build_query(in, command, LIMIT_BUILD_MESSAGES, &json, &len, e) < 0)
        return err_wrap(e, "meson introspect");
    if (file_create_at(in->run_fd, BUILD_MESSAGES, json, len, 0644, e) < 0 ||
        keep_open(in->messages, BUILD_MESSAGES, e) < 0 || keep_put(in->messages, json, len, e) < 0)
        return -1;
    return artifact_from_meson(w, json, len, path, details, e);
}

int artifact_resolve(const struct build_input *in, const char *root, struct artifact *out,
                     struct err *e)
{
    AUTO_FREE char *path = NULL;
    AUTO_JSON cJSON *details = NULL;
    const char *word = "path";
    struct artifact_wanted wanted = {.target = in->plan->build.target,
                                     .kind = in->plan->build.kind,
                                     .src_path = in->plan->build.src_path,
                                     .root = root};
    int r = 0;

    switch (in->plan->build.resolve) {
    case PLAN_RESOLVE_PATH:
        if (asprintf(&path, "%s/%s", root, in->plan->build.path) < 0) {
            path = NULL;
            r = err_memory(e, "artifact.memory");
        }
        break;
    case PLAN_RESOLVE_CARGO:
        word = "cargo-messages";
        r = resolve_cargo(in, &wanted, &path, &details, e);
        break;
    case PLAN_RESOLVE_MESON:
        word = "meson-introspection";
        r = resolve_meson(in, &wanted, &path, &details, e);
        break;
    }
    if (r < 0 || !path || artifact_open(path, word, out, e) < 0)
        return -1;
    out->details = STEAL(details);
    return 0;
}

int artifact_unchanged(const struct artifact *a, bool *out, struct err *e)
{
    struct digest now;

    if (lseek(a->fd, 0, SEEK_SET) < 0)
        return err_errno(e, "artifact.read", "cannot read '%s' again", a->name);
    if (digest_of_fd(a->fd, &now, NULL, e) < 0)
        return -1;
    *out = digest_equal(&now, &a->digest);
    return 0;
}

void artifact_fini(struct artifact *a)
{
    if (a->path && a->fd >= 0)
        (void) close(a->fd); /* a file that was only read */
    free(a->path);
    free(a->name);
    json_free(a->details);
    *a = (struct artifact){.fd = -1};
}
