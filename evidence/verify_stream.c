#include "evidence/verify_stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence/manifest.h"
#include "evidence/names.h"
#include "evidence/ustar.h"

/* What one look at the size limit covers. */
#define FEED_STEP LIMIT_KIB(64)
#define READ_STEP LIMIT_MIB(1)

enum place { IN_HEADER, IN_DATA, IN_PADDING, IN_END, AFTER_END };

struct verify_stream {
    struct digest_state *archive;
    struct digest_state *member;
    enum place place;
    char block[USTAR_BLOCK]; /* the header that is being collected */
    size_t block_len;
    uint64_t left; /* bytes of data or padding still to come */
    size_t cap;
    bool no_memory;
    struct archive_index index;
};

struct verify_stream *verify_stream_new(void)
{
    struct verify_stream *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->archive = digest_new();
    s->member = digest_new();
    if (s->archive && s->member)
        return s;
    verify_stream_free(s);
    return NULL;
}

static void index_fini(struct archive_index *x)
{
    free(x->members);
    free(x->problem);
    *x = (struct archive_index){.members = NULL};
}

void verify_stream_free(struct verify_stream *s)
{
    if (!s)
        return;
    digest_free(s->archive);
    digest_free(s->member);
    index_fini(&s->index);
    free(s);
}

/* The first problem stays; members are of no use any more. */
static void set_problem(struct verify_stream *s, const char *text)
{
    if (s->index.problem)
        return;
    s->index.problem = strdup(text);
    if (!s->index.problem)
        s->no_memory = true;
}

static int add_member(struct verify_stream *s, const char *name, uint64_t size, struct err *e)
{
    struct archive_index *x = &s->index;
    struct archive_member *m;

    if (x->n == 0 && strcmp(name, MANIFEST_NAME) != 0)
        return err_set(e, ERR_INPUT, "archive.first",
                       "the first member is '%s', not " MANIFEST_NAME, name);
    if (x->n > 0 && strcmp(name, MANIFEST_NAME) == 0)
        return err_set(e, ERR_INPUT, "archive.twice", MANIFEST_NAME " is there twice");
    if (x->n > 1 && strcmp(x->members[x->n - 1].name, name) >= 0)
        return err_set(e, ERR_INPUT, "archive.order", "member '%s' is not in byte order after '%s'",
                       name, x->members[x->n - 1].name);
    if (x->n == LIMIT_MEMBERS)
        return err_set(e, ERR_LIMIT, "archive.members", "more than %d members", LIMIT_MEMBERS);
    if (x->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 32;
        struct archive_member *grown = realloc(x->members, cap * sizeof *grown);

        if (!grown) {
            s->no_memory = true;
            return err_set(e, ERR_NOMEM, "archive.memory", "no memory");
        }
        x->members = grown;
        s->cap = cap;
    }
    m = &x->members[x->n++];
    memset(m, 0, sizeof *m);
    memcpy(m->name, name, strlen(name) + 1);
    m->size = size;
    return 0;
}

/* One complete 512-byte block where a header or the end may stand. `end` is the archive position
 * after it. */
static void take_block(struct verify_stream *s, uint64_t end)
{
    struct err e = ERR_INIT;
    char name[LIMIT_RELNAME + 1];
    uint64_t size = 0;

    if (ustar_is_zero(s->block, USTAR_BLOCK)) {
        s->place = s->place == IN_END ? AFTER_END : IN_END;
        return;
    }
    if (s->place == IN_END) {
        set_problem(s, "one zero block is not followed by a second");
        return;
    }
    if (ustar_parse(s->block, name, &size, &e) < 0 || add_member(s, name, size, &e) < 0) {
        set_problem(s, e.text);
        return;
    }
    s->index.members[s->index.n - 1].offset = end;
    s->left = size;
    s->place = IN_DATA;
}

static size_t step_block(struct verify_stream *s, const char *p, size_t len, uint64_t at)
{
    size_t take = USTAR_BLOCK - s->block_len;

    if (take > len)
        take = len;
    memcpy(s->block + s->block_len, p, take);
    s->block_len += take;
    if (s->block_len == USTAR_BLOCK) {
        s->block_len = 0;
        take_block(s, at + take);
    }
    return take;
}

/* Hashes what it takes for member and archive at once. */
static size_t step_data(struct verify_stream *s, const char *p, size_t len)
{
    size_t take = s->left < len ? (size_t) s->left : len;

    digest_update_two(s->archive, s->member, p, take);
    s->left -= take;
    return take;
}

static size_t step_padding(struct verify_stream *s, const char *p, size_t len)
{
    size_t take = s->left < len ? (size_t) s->left : len;

    if (!ustar_is_zero(p, take))
        set_problem(s, "padding after a member is not zero");
    s->left -= take;
    return take;
}

/* Leaves finished data and padding, which may have no bytes at all. */
static void settle(struct verify_stream *s)
{
    if (s->place == IN_DATA && s->left == 0) {
        struct archive_member *m = &s->index.members[s->index.n - 1];

        digest_finish(s->member, &m->digest);
        s->left = ustar_padding(m->size);
        s->place = IN_PADDING;
    }
    if (s->place == IN_PADDING && s->left == 0)
        s->place = IN_HEADER;
}

/* Returns from where on the bytes are not in the archive's hash yet. */
static const char *parse(struct verify_stream *s, const char *p, size_t len)
{
    uint64_t at = s->index.size;
    const char *unhashed = p;

    while (len > 0 && !s->index.problem) {
        size_t used = 0;

        switch (s->place) {
        case IN_HEADER:
        case IN_END:
            used = step_block(s, p, len, at);
            break;
        case IN_DATA:
            digest_update(s->archive, unhashed, (size_t) (p - unhashed));
            used = step_data(s, p, len);
            unhashed = p + used;
            break;
        case IN_PADDING:
            used = step_padding(s, p, len);
            break;
        case AFTER_END:
            set_problem(s, "bytes follow the two zero blocks that end the archive");
            return unhashed;
        }
        settle(s);
        p += used;
        len -= used;
        at += used;
    }
    return unhashed;
}

void verify_stream_feed(struct verify_stream *s, const void *bytes, size_t len)
{
    const char *p = bytes;

    while (len > 0) {
        size_t step = len < FEED_STEP ? len : FEED_STEP;
        const char *unhashed = p;

        if (!s->index.problem && !s->no_memory) {
            if (s->index.size + step > LIMIT_ARCHIVE)
                set_problem(s, "the archive is larger than the limit");
            unhashed = parse(s, p, step);
        }
        digest_update(s->archive, unhashed, (size_t) (p + step - unhashed));
        s->index.size += step;
        p += step;
        len -= step;
    }
}

static int check_end(struct verify_stream *s, struct err *e)
{
    AUTO_FREE const char **names = NULL;
    struct err why = ERR_INIT;

    if (s->index.problem)
        return 0;
    if (s->place != AFTER_END) {
        set_problem(s, s->index.size == 0 ? "the archive is empty" : "the archive is cut off");
        return 0;
    }
    if (s->index.n == 0) {
        set_problem(s, "the archive has no members");
        return 0;
    }
    names = calloc(s->index.n, sizeof *names);
    if (!names)
        return err_set(e, ERR_NOMEM, "archive.memory", "no memory for %zu names", s->index.n);
    for (size_t i = 0; i < s->index.n; i++)
        names[i] = s->index.members[i].name;
    if (names_check(names, s->index.n, &why) == 0)
        return 0;
    if (why.kind == ERR_NOMEM)
        return err_set(e, ERR_NOMEM, "archive.memory", "%s", why.text);
    set_problem(s, why.text);
    return 0;
}

int verify_stream_finish(struct verify_stream *s, struct archive_index **out, struct err *e)
{
    struct archive_index *x;

    if (check_end(s, e) < 0)
        return -1;
    x = calloc(1, sizeof *x);
    if (!x || s->no_memory) {
        free(x);
        return err_set(e, ERR_NOMEM, "archive.memory", "no memory for the archive's index");
    }
    digest_finish(s->archive, &s->index.digest);
    *x = s->index;
    s->index = (struct archive_index){.members = NULL};
    if (x->problem) {
        free(x->members);
        x->members = NULL;
        x->n = 0;
    }
    *out = x;
    return 0;
}

void archive_index_free(struct archive_index *x)
{
    if (!x)
        return;
    index_fini(x);
    free(x);
}

int archive_index_copy(const struct archive_index *x, struct archive_index **out, struct err *e)
{
    AUTO_ARCHIVE_INDEX struct archive_index *copy = calloc(1, sizeof *copy);

    if (!copy)
        return err_set(e, ERR_NOMEM, "archive.memory", "no memory for an archive's index");
    copy->size = x->size;
    copy->digest = x->digest;
    if (x->n > 0) {
        copy->members = calloc(x->n, sizeof *copy->members);
        if (!copy->members)
            return err_set(e, ERR_NOMEM, "archive.memory", "no memory for an archive's index");
        memcpy(copy->members, x->members, x->n * sizeof *copy->members);
        copy->n = x->n;
    }
    if (x->problem) {
        copy->problem = strdup(x->problem);
        if (!copy->problem)
            return err_set(e, ERR_NOMEM, "archive.memory", "no memory for an archive's index");
    }
    *out = STEAL(copy);
    return 0;
}

static int compare_member(const void *key, const void *member)
{
    const struct archive_member *m = member;

    return strcmp(key, m->name);
}

const struct archive_member *archive_index_find(const struct archive_index *x, const char *name)
{
    if (x->n == 0)
        return NULL;
    if (strcmp(name, MANIFEST_NAME) == 0)
        return &x->members[0];
    return bsearch(name, x->members + 1, x->n - 1, sizeof *x->members, compare_member);
}

int archive_index_of_fd(int fd, struct archive_index **out, struct err *e)
{
    AUTO_VERIFY_STREAM struct verify_stream *s = verify_stream_new();
    AUTO_FREE char *chunk = malloc(READ_STEP);
    off_t at = 0;

    if (!s || !chunk)
        return err_set(e, ERR_NOMEM, "archive.memory", "no memory to read an archive");
    for (;;) {
        ssize_t n = pread(fd, chunk, READ_STEP, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "archive.read", "cannot read the archive");
        if (n == 0)
            return verify_stream_finish(s, out, e);
        verify_stream_feed(s, chunk, (size_t) n);
        at += n;
    }
}
