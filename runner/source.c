#include "runner/source.h"

#include <stdint.h>
#include <string.h>

#include "base/json_out.h"
#include "base/text.h"
#include "runner/source_frame.h"

#define PARENTS_MAX 64

void source_frame(struct digest_state *d, const void *p, size_t len)
{
    uint8_t size[8];

    for (size_t i = 0; i < sizeof(size); i++)
        size[i] = (uint8_t) ((uint64_t) len >> (8 * i));
    digest_update(d, size, sizeof(size));
    digest_update(d, p, len);
}

void source_frame_text(struct digest_state *d, const char *s)
{
    source_frame(d, s, strlen(s));
}

bool source_is_oid(const char *s, size_t len)
{
    return (len == 40 || len == 64) && text_is_hex(s, len);
}

static bool copy_oid(const char *s, size_t len, char out[SOURCE_OID_SIZE])
{
    if (!source_is_oid(s, len))
        return false;
    memcpy(out, s, len);
    out[len] = '\0';
    return true;
}

static int add_parent(struct source *s, const char *oid, size_t len, struct err *e)
{
    char(*grown)[SOURCE_OID_SIZE];

    if (s->n_parents == PARENTS_MAX)
        return err_set(e, ERR_LIMIT, "source.parents", "HEAD has more than %d parents",
                       PARENTS_MAX);
    grown = realloc(s->parents, (s->n_parents + 1) * sizeof(*grown));
    if (!grown)
        return err_memory(e, "source.memory");
    s->parents = grown;
    if (!copy_oid(oid, len, s->parents[s->n_parents]))
        return err_set(e, ERR_INPUT, "source.commit", "HEAD's commit object is malformed");
    s->n_parents++;
    return 0;
}

/* "tree X\nparent Y\n…" up to the first other line. */
static int read_commit(struct source *s, const char *text, struct err *e)
{
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        if (len > 5 && !strncmp(line, "tree ", 5)) {
            if (!copy_oid(line + 5, len - 5, s->tree))
                break;
        } else if (len > 7 && !strncmp(line, "parent ", 7)) {
            if (add_parent(s, line + 7, len - 7, e) < 0)
                return -1;
        } else {
            break;
        }
        line += len + (line[len] == '\n' ? 1 : 0);
    }
    if (!s->tree[0])
        return err_set(e, ERR_INPUT, "source.commit", "HEAD's commit object is malformed");
    return 0;
}

int source_head(const struct git *g, struct source *out, struct err *e)
{
    static const char *const head[] = {"rev-parse", "--verify", "--quiet", "HEAD^{commit}", NULL};
    AUTO_GIT_OUTPUT struct git_output name = {.data = NULL};
    AUTO_GIT_OUTPUT struct git_output object = {.data = NULL};

    if (git_run(g, head, true, &name, e) < 0)
        return -1;
    if (name.code != 0)
        return err_set(e, ERR_USAGE, "source.unborn",
                       "this repository has no commit yet, and a run is a run of a commit: commit "
                       "first (git add . && git commit)");
    if (!copy_oid(name.data, strcspn(name.data, "\n"), out->commit))
        return err_set(e, ERR_INPUT, "source.commit", "git does not name HEAD's commit");
    const char *const cat[] = {"cat-file", "commit", out->commit, NULL};

    if (git_run(g, cat, false, &object, e) < 0)
        return -1;
    return read_commit(out, object.data, e);
}

/* The seed's digest is made of git's own answers, which local settings can bend: whether the tree
 * is the commit is decided by its bytes all the same. */
static int take_seed(const struct git *g, struct source *s, struct err *e)
{
    AUTO_SOURCE struct source bytes = {.scheme = SOURCE_SCHEMA};

    s->scheme = SOURCE_SCHEME_RVOIP;
    if (source_take_rvoip(g, s, e) < 0 || source_take_cleanrun(g, &bytes, e) < 0)
        return -1;
    s->dirty = s->dirty || bytes.dirty;
    return 0;
}

int source_take(const struct git *g, const char *scheme, struct source *out, struct err *e)
{
    AUTO_SOURCE struct source s = {.scheme = SOURCE_SCHEMA};
    int r;

    if (!scheme || !strcmp(scheme, SOURCE_SCHEMA)) {
        r = source_take_cleanrun(g, &s, e);
    } else if (!strcmp(scheme, SOURCE_SCHEME_RVOIP)) {
        r = take_seed(g, &s, e);
    } else {
        return err_set(e, ERR_USAGE, "source.scheme",
                       "no scheme '%s': " SOURCE_SCHEMA " or " SOURCE_SCHEME_RVOIP, scheme);
    }
    if (r < 0)
        return -1;
    *out = s;
    s = (struct source){.scheme = NULL};
    return 0;
}

void source_fini(struct source *s)
{
    free(s->parents);
    *s = (struct source){.scheme = NULL};
}

bool source_equal(const struct source *a, const struct source *b)
{
    return !strcmp(a->commit, b->commit) && !strcmp(a->tree, b->tree) && a->dirty == b->dirty &&
           !strcmp(a->scheme, b->scheme) && digest_equal(&a->fingerprint, &b->fingerprint);
}

int source_to_json(const struct source *s, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    char hex[DIGEST_HEX_SIZE];
    cJSON *parents;

    digest_hex(&s->fingerprint, hex);
    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", SOURCE_SCHEMA);
    json_add_string(&d, NULL, "scheme", s->scheme);
    json_add_string(&d, NULL, "commit", s->commit);
    json_add_string(&d, NULL, "tree", s->tree);
    parents = json_add_array(&d, NULL, "parents");
    for (size_t i = 0; i < s->n_parents; i++)
        json_add_string(&d, parents, NULL, s->parents[i]);
    json_add_bool(&d, NULL, "dirty", s->dirty);
    json_add_string(&d, NULL, "fingerprint", hex);
    json_add_int(&d, NULL, "files", (int64_t) s->files);
    json_add_int(&d, NULL, "untracked", (int64_t) s->untracked);
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}
