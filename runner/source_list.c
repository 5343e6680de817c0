#include "runner/source_list.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/source_frame.h"

#define PATHS_MAX ((size_t) 4 << 20)

void source_list_fini(struct source_list *l)
{
    for (size_t i = 0; i < l->n_extra; i++)
        free(l->extra[i]);
    free(l->extra);
    free(l->items);
    for (size_t i = 0; i < ARRAY_LEN(l->listed); i++)
        git_output_fini(&l->listed[i]);
    *l = (struct source_list){.n = 0};
}

static struct source_path *entries_add(struct source_list *l, const char *path, struct err *e)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 256;
        struct source_path *grown =
            l->n < PATHS_MAX ? realloc(l->items, cap * sizeof(*grown)) : NULL;

        if (!grown) {
            (void) err_set(e, ERR_LIMIT, "source.paths", "too many paths, or out of memory");
            return NULL;
        }
        l->items = grown;
        l->cap = cap;
    }
    l->items[l->n] = (struct source_path){.path = path};
    return &l->items[l->n++];
}

/* "MODE TYPE OID\tPATH" (ls-tree) or "MODE OID STAGE\tPATH" (ls-files -s). One repository has ids
 * of one length. */
static int add_listed(struct source_list *l, const char *record, bool head, struct err *e)
{
    size_t mode_len = strcspn(record, " \t");
    const char *oid = record + mode_len;
    const char *tab;
    size_t oid_len;
    struct source_path *x;

    if (head && *oid == ' ')
        oid += 1 + strcspn(oid + 1, " \t");
    oid += *oid == ' ' ? 1 : 0;
    oid_len = strcspn(oid, " \t");
    tab = strchr(oid + oid_len, '\t');
    if (mode_len == 0 || mode_len >= SOURCE_MODE_SIZE || !source_is_oid(oid, oid_len) ||
        (l->n > 0 && l->items[0].oid_len != oid_len) || !tab || !tab[1])
        return err_set(e, ERR_INPUT, "source.list", "git's list of files is malformed");
    x = entries_add(l, tab + 1, e);
    if (!x)
        return -1;
    memcpy(head ? x->head_mode : x->index_mode, record, mode_len);
    x->oid_len = oid_len;
    x->in_head = head;
    x->in_index = !head;
    *(head ? &x->head_oid : &x->index_oid) = oid;
    return 0;
}

static int add_records(struct source_list *l, const struct git_output *o, bool head, struct err *e)
{
    for (const char *p = o->data; p < o->data + o->len; p += strlen(p) + 1)
        if (add_listed(l, p, head, e) < 0)
            return -1;
    return 0;
}

static int by_path(const void *a, const void *b)
{
    const struct source_path *x = a;
    const struct source_path *y = b;

    return strcmp(x->path, y->path);
}

/* Sorts, and makes one entry of all that name the same path. */
static void entries_merge(struct source_list *l)
{
    size_t kept = 0;

    if (l->n == 0)
        return;
    qsort(l->items, l->n, sizeof(*l->items), by_path);
    for (size_t i = 1; i < l->n; i++) {
        struct source_path *to = &l->items[kept];
        const struct source_path *from = &l->items[i];

        if (strcmp(to->path, from->path) != 0) {
            l->items[++kept] = *from;
            continue;
        }
        to->on_disk = to->on_disk || from->on_disk;
        if (from->in_head) {
            to->in_head = true;
            to->head_oid = from->head_oid;
            to->oid_len = from->oid_len;
            memcpy(to->head_mode, from->head_mode, SOURCE_MODE_SIZE);
        }
        if (from->in_index) {
            to->in_index = true;
            to->index_oid = from->index_oid;
            memcpy(to->index_mode, from->index_mode, SOURCE_MODE_SIZE);
            if (!to->in_head)
                to->oid_len = from->oid_len;
        }
    }
    l->n = kept + 1;
}

/* An untracked repository of its own: git does not list what is in it, so every file below is read.
 */
static int add_nested(struct source_list *l, const struct git *g, const char *dir, struct err *e)
{
    AUTO_FREE char *root = NULL;
    size_t skip = strlen(g->root) + 1;
    FTSENT *f;
    int r = 0;

    if (asprintf(&root, "%s/%s", g->root, dir) < 0) {
        root = NULL;
        return err_memory(e, "source.memory");
    }
    root[strlen(root) - 1] = '\0'; /* git ends it with '/' */
    char *const roots[] = {root, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

    if (!fts)
        return err_errno(e, "source.walk", "cannot read '%s'", dir);
    while (r == 0 && (f = fts_read(fts)) != NULL) {
        if (f->fts_info == FTS_D && !strcmp(f->fts_name, ".git")) {
            (void) fts_set(fts, f, FTS_SKIP); /* fails only for an unknown instruction */
        } else if (f->fts_info == FTS_DNR || f->fts_info == FTS_ERR) {
            errno = f->fts_errno;
            r = err_errno(e, "source.walk", "cannot read '%s'", f->fts_path + skip);
        } else if (f->fts_info != FTS_D && f->fts_info != FTS_DP) {
            char **grown = realloc(l->extra, (l->n_extra + 1) * sizeof(*grown));
            char *copy = strdup(f->fts_path + skip);

            if (grown)
                l->extra = grown;
            if (!grown || !copy) {
                free(copy);
                r = err_memory(e, "source.memory");
                break;
            }
            l->extra[l->n_extra++] = copy;
            struct source_path *x = entries_add(l, copy, e);

            if (x)
                x->on_disk = true;
            else
                r = -1;
        }
    }
    (void) fts_close(fts); /* nothing was written */
    return r;
}

static int add_untracked(struct source_list *l, const struct git *g, struct git_output *o,
                         struct err *e)
{
    for (char *p = o->data; p < o->data + o->len; p += strlen(p) + 1) {
        size_t len = strlen(p);

        if (len > 0 && p[len - 1] == '/') {
            if (add_nested(l, g, p, e) < 0)
                return -1;
            continue;
        }
        struct source_path *x = entries_add(l, p, e);

        if (!x)
            return -1;
        x->on_disk = true;
    }
    return 0;
}

int source_list_read(const struct git *g, struct source_list *out, struct err *e)
{
    static const char *const head[] = {"ls-tree", "-r", "-z", "--full-tree", "HEAD", NULL};
    static const char *const index[] = {"ls-files", "-s", "-z", NULL};
    static const char *const others[] = {"ls-files", "--others",
                                         "--exclude-per-directory=.gitignore", "-z", NULL};
    AUTO_SOURCE_LIST struct source_list l = {.n = 0};

    if (git_run(g, head, false, &l.listed[0], e) < 0 ||
        git_run(g, index, false, &l.listed[1], e) < 0 ||
        git_run(g, others, false, &l.listed[2], e) < 0)
        return -1;
    if (add_records(&l, &l.listed[0], true, e) < 0 || add_records(&l, &l.listed[1], false, e) < 0 ||
        add_untracked(&l, g, &l.listed[2], e) < 0)
        return -1;
    entries_merge(&l);
    *out = l;
    l = (struct source_list){.n = 0};
    return 0;
}
