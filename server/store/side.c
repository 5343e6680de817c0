#include "server/store/side.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/limits.h"

#define RESULTS "results/"

int side_range(int fd, const struct archive_member *m, size_t max, char **out, size_t *out_len,
               struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    struct digest found;
    size_t done = 0;

    if (m->size > max)
        return err_set(e, ERR_LIMIT, "member.size",
                       "'%s' has %" PRIu64 " bytes; at most %zu are read", m->name, m->size, max);
    bytes = malloc((size_t) m->size + 1);
    if (!bytes)
        return err_set(e, ERR_NOMEM, "member.memory", "no memory for '%s'", m->name);
    while (done < m->size) {
        ssize_t n = pread(fd, bytes + done, (size_t) m->size - done, (off_t) (m->offset + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "member.read", "cannot read '%s' from the archive", m->name);
        if (n == 0)
            return err_set(e, ERR_TRUST, "member.short", "the archive ends inside '%s'", m->name);
        done += (size_t) n;
    }
    bytes[m->size] = '\0';
    found = digest_of(bytes, (size_t) m->size);
    if (!digest_equal(&found, &m->digest))
        return err_set(e, ERR_TRUST, "member.changed", "'%s' in the stored archive is damaged",
                       m->name);
    *out_len = (size_t) m->size;
    *out = STEAL(bytes);
    return 0;
}

int side_member(int fd, const struct archive_index *index, const char *name, size_t max, char **out,
                size_t *out_len, struct err *e)
{
    const struct archive_member *m = archive_index_find(index, name);

    if (!m)
        return err_set(e, ERR_NOTFOUND, "member.absent", "the archive has no '%s'", name);
    return side_range(fd, m, max, out, out_len, e);
}

static int read_manifest(int fd, const struct archive_index *index, const char *prefix,
                         struct side *s, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    char name[LIMIT_RELNAME + 1];
    size_t len = 0;

    (void) snprintf(name, sizeof name, "%s" MANIFEST_NAME, prefix); /* a cut name is not found */
    if (!archive_index_find(index, name))
        return 0;
    if (side_member(fd, index, name, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0 ||
        manifest_parse(bytes, len, &s->manifest, e) < 0)
        return err_wrap(e, "'%s'", name);
    s->has_manifest = true;
    return 0;
}

static int read_definition(int fd, const struct archive_index *index, const char *prefix,
                           struct side *s, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    char name[LIMIT_RELNAME + 1];
    size_t len = 0;

    (void) snprintf(name, sizeof name, "%sdefinition.json", prefix); /* a cut name is not found */
    if (!archive_index_find(index, name))
        return 0;
    if (side_member(fd, index, name, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0 ||
        definition_parse(bytes, len, &s->definition, e) < 0)
        return err_wrap(e, "'%s'", name);
    s->has_definition = true;
    return 0;
}

/* One report by the side's own manifest, whose digest the archive's member must have. */
static int read_report(int fd, const struct archive_index *index, const char *prefix,
                       const struct manifest_file *f, struct side *s, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    const struct archive_member *m;
    char name[LIMIT_RELNAME + 1];
    size_t len = 0;
    int n = snprintf(name, sizeof name, "%s%s", prefix, f->path);

    m = n > 0 && (size_t) n < sizeof name ? archive_index_find(index, name) : NULL;
    if (!m)
        return err_set(e, ERR_TRUST, "side.missing", "the manifest lists '%s', which is missing",
                       f->path);
    if (!digest_equal(&m->digest, &f->digest))
        return err_set(e, ERR_TRUST, "side.differs", "'%s' is not the one that its manifest lists",
                       name);
    if (side_range(fd, m, LIMIT_REPORT, &bytes, &len, e) < 0)
        return -1;
    return tree_add(&s->tree, f->path + strlen(RESULTS), bytes, len, e);
}

/* Only members of role report: what a run left malformed has another role and is no report. */
static int read_reports(int fd, const struct archive_index *index, const char *prefix,
                        struct side *s, struct err *e)
{
    for (size_t i = 0; i < s->manifest.n_files; i++) {
        const struct manifest_file *f = &s->manifest.files[i];

        if (strcmp(f->role, "report") != 0 || strncmp(f->path, RESULTS, strlen(RESULTS)) != 0)
            continue;
        if (read_report(fd, index, prefix, f, s, e) < 0)
            return -1;
    }
    return 0;
}

int side_read(int fd, const struct archive_index *index, const char *prefix, struct side *out,
              struct err *e)
{
    AUTO_SIDE struct side s = {.has_manifest = false};

    tree_init(&s.tree);
    if (read_manifest(fd, index, prefix, &s, e) < 0 ||
        read_definition(fd, index, prefix, &s, e) < 0 || read_reports(fd, index, prefix, &s, e) < 0)
        return -1;
    *out = s;
    memset(&s, 0, sizeof s); /* moved out */
    return 0;
}

void side_fini(struct side *s)
{
    manifest_fini(&s->manifest);
    definition_fini(&s->definition);
    tree_fini(&s->tree);
    *s = (struct side){.has_manifest = false};
}

struct audit_side side_for_audit(const struct side *s, const char *id, const char *evidence_hex,
                                 const char *root)
{
    return (struct audit_side){
        .tree = &s->tree,
        .manifest = s->has_manifest ? s->manifest.document : NULL,
        .definition = s->has_definition ? &s->definition : NULL,
        .id = id,
        .evidence_sha256 = evidence_hex,
        .root = root,
    };
}
