#include "experiment/tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"

static void file_fini(struct tree_file *f)
{
    free(f->path);
    json_free(f->report);
    free(f->problem);
}

void tree_init(struct tree *t)
{
    *t = (struct tree){0};
}

void tree_fini(struct tree *t)
{
    for (size_t i = 0; i < t->n; i++)
        file_fini(&t->files[i]);
    free(t->files);
    tree_init(t);
}

/* Index of the first file whose path is not less than `path`. */
static size_t position(const struct tree *t, const char *path)
{
    size_t low = 0;
    size_t high = t->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(t->files[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct tree_file *tree_find(const struct tree *t, const char *path)
{
    size_t at = position(t, path);

    return at < t->n && strcmp(t->files[at].path, path) == 0 ? &t->files[at] : NULL;
}

/* Moves *f into its place; on failure the caller still owns it. */
static int insert(struct tree *t, struct tree_file *f, struct err *e)
{
    size_t at = position(t, f->path);
    struct tree_file *grown = NULL;

    if (!text_is_utf8(f->path, strlen(f->path)))
        return err_set(e, ERR_INPUT, "tree.name", "a report's name is not UTF-8");
    if (at < t->n && strcmp(t->files[at].path, f->path) == 0)
        return err_set(e, ERR_INPUT, "tree.duplicate", "'%s' occurs twice", f->path);
    if (t->n >= LIMIT_TREE_FILES)
        return err_set(e, ERR_LIMIT, "tree.files", "more than %d reports", LIMIT_TREE_FILES);
    /* Grows by doubling: capacity is the power of two that holds n, at least 16. */
    if (t->n == 0 || (t->n >= 16 && (t->n & (t->n - 1)) == 0)) {
        grown = realloc(t->files, (t->n == 0 ? 16 : t->n * 2) * sizeof *grown);
        if (!grown)
            return err_memory(e, "tree.memory");
        t->files = grown;
    }
    memmove(&t->files[at + 1], &t->files[at], (t->n - at) * sizeof *t->files);
    t->files[at] = *f;
    t->n++;
    *f = (struct tree_file){0};
    return 0;
}

static int insert_or_free(struct tree *t, struct tree_file *f, struct err *e)
{
    int rc = f->path ? insert(t, f, e) : err_memory(e, "tree.memory");

    file_fini(f);
    return rc;
}

/* A file that could not even be read whole. */
static int add_problem(struct tree *t, const char *path, const char *why, struct err *e)
{
    struct tree_file f = {.path = strdup(path), .problem = strdup(why)};

    if (!f.problem) {
        file_fini(&f);
        return err_memory(e, "tree.memory");
    }
    return insert_or_free(t, &f, e);
}

int tree_add(struct tree *t, const char *path, const char *bytes, size_t len, struct err *e)
{
    static const struct json_limits limits = {.max_bytes = LIMIT_REPORT};
    struct tree_file f = {.path = strdup(path), .size = len, .digest = digest_of(bytes, len)};
    struct err why = ERR_INIT;

    if (json_parse(bytes, len, &limits, &f.report, &why) < 0) {
        if (why.kind == ERR_NOMEM) {
            file_fini(&f);
            return err_memory(e, "tree.memory");
        }
        f.problem = strdup(why.text);
    } else if (!cJSON_IsObject(f.report)) {
        json_free(f.report);
        f.report = NULL;
        f.problem = strdup("not an object");
    }
    if (!f.report && !f.problem) {
        file_fini(&f);
        return err_memory(e, "tree.memory");
    }
    return insert_or_free(t, &f, e);
}

static bool is_hidden(const char *path)
{
    return path[0] == '.' || strstr(path, "/.") != NULL;
}

static bool is_json(const char *path)
{
    size_t len = strlen(path);

    return len > 5 && strcmp(path + len - 5, ".json") == 0;
}

static int load_one(struct tree *t, int dirfd, const char *name, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct err why = ERR_INIT;

    if (file_read_at(dirfd, name, LIMIT_REPORT, &bytes, &len, &why) == 0)
        return tree_add(t, name, bytes, len, e);
    if (why.kind != ERR_LIMIT)
        return err_set(e, why.kind, why.code, "%s", why.text);
    return add_problem(t, name, why.text, e);
}

int tree_load(struct tree *t, int dirfd, struct err *e)
{
    AUTO_FILE_LIST struct file_list list = {0};

    if (file_list_at(dirfd, LIMIT_TREE_FILES, &list, e) < 0)
        return -1;
    for (size_t i = 0; i < list.n; i++)
        if (is_json(list.names[i]) && !is_hidden(list.names[i]))
            if (load_one(t, dirfd, list.names[i], e) < 0)
                return -1;
    return 0;
}
