/* Two baselines side by side, imported history included: for information, never a verdict. */
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/baseline.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "server/store/doc.h"
#include "server/store/documents.h"
#include "server/store/side.h"

#define MANIFEST_MEMBER "manifest.json"

/* One baseline with its reports. */
struct past {
    struct store_baseline record;
    struct digest archive;
    struct side side;         /* only the tree, when it is imported history */
    struct baseline manifest; /* of imported history */
    struct definition definition;
    char hex[DIGEST_HEX_SIZE];
};

static void past_fini(struct past *p)
{
    store_baseline_fini(&p->record);
    side_fini(&p->side);
    baseline_fini(&p->manifest);
    definition_fini(&p->definition);
}
#define AUTO_PAST __attribute__((cleanup(past_fini)))

static int read_record(struct db *db, const char *id, struct past *p, struct err *e)
{
    AUTO_QUERY struct query q = {.statement = NULL};
    const char *bytes;
    size_t len = 0;

    if (store_baseline_read(db, id, &p->record, e) < 0)
        return -1;
    q = query_begin(db, SQL_BASELINE_GET);
    query_text(&q, id);
    if (query_one(&q, "such baseline", e) < 0)
        return -1;
    bytes = query_get_bytes(&q, BASE_DEFINITION, &len);
    if (!query_get_digest(&q, BASE_ARCHIVE, &p->archive) || !bytes)
        return err_set(e, ERR_INTERNAL, "history.record",
                       "baseline %s lacks its archive or its definition", id);
    digest_hex(&p->archive, p->hex);
    return definition_parse(bytes, len, &p->definition, e);
}

/* Imported history is its manifest and the files that it lists. */
static int read_imported(int fd, const struct archive_index *index, struct past *p, struct err *e)
{
    AUTO_FREE char *manifest = NULL;
    size_t len = 0;

    if (side_member(fd, index, MANIFEST_MEMBER, LIMIT_JSON_DOCUMENT, &manifest, &len, e) < 0 ||
        baseline_parse(manifest, len, false, &p->manifest, e) < 0)
        return -1;
    tree_init(&p->side.tree);
    for (size_t i = 0; i < p->manifest.n_files; i++) {
        const struct baseline_file *f = &p->manifest.files[i];
        size_t n = strlen(f->path);
        AUTO_FREE char *bytes = NULL;

        if (n < 5 || strcmp(f->path + n - 5, ".json") != 0)
            continue;
        if (side_member(fd, index, f->path, LIMIT_REPORT, &bytes, &len, e) < 0 ||
            tree_add(&p->side.tree, f->path, bytes, len, e) < 0)
            return -1;
    }
    return 0;
}

static int read_evidence(struct store *s, struct past *p, struct err *e)
{
    AUTO_ARCHIVE_INDEX struct archive_index *index = NULL;
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    int rc;

    if (store_object_open(s, &p->archive, false, &fd, &size, NULL, e) < 0 ||
        blobs_index(store_blobs(s), &p->archive, fd, &index, e) < 0)
        return err_wrap(e, "baseline %s", p->record.id);
    rc = p->record.legacy ? read_imported(fd, index, p, e) : side_read(fd, index, "", &p->side, e);
    return rc < 0 ? err_wrap(e, "baseline %s", p->record.id) : 0;
}

static int read_past(struct store *s, const char *id, struct past *p, struct err *e)
{
    {
        AUTO_STORE_READ struct store_read r = {.db = NULL};

        if (store_read_open(s, &r, e) < 0 || read_record(r.db, id, p, e) < 0)
            return -1;
    }
    return read_evidence(s, p, e);
}

int doc_imported(struct store *s, const char *id, struct side *out, struct err *e)
{
    AUTO_PAST struct past p = {.hex = ""};

    if (read_past(s, id, &p, e) < 0)
        return -1;
    *out = p.side;
    p.side = (struct side){.has_manifest = false}; /* moved out */
    return 0;
}

static struct audit_side side_of(const struct past *p, const char *root)
{
    struct audit_side side = side_for_audit(&p->side, p->record.id, p->hex, root);

    side.legacy = p->record.legacy;
    side.machine_class = p->record.machine_class;
    return side;
}

static int compute(const struct past *baseline, const struct past *current, struct audit *out,
                   struct err *e)
{
    struct audit_input in = {.policy = &baseline->definition};

    in.baseline = side_of(baseline, "baseline");
    in.current = side_of(current, ".");
    if (baseline->record.legacy)
        in.baseline_manifest = baseline->manifest.document;
    return audit_run(&in, out, e);
}

/* Writing: the fields of a comparison, as far as a baseline has them. */

static void add_side(struct json_doc *d, const char *key, const struct past *p)
{
    cJSON *o = json_add_object(d, NULL, key);
    const struct store_baseline *b = &p->record;
    cJSON *reviewed;

    json_add_string(d, o, "id", b->id);
    json_add_string(d, o, "run", b->run ? b->run : b->id);
    json_add_string(d, o, "commit", b->commit && b->commit[0] ? b->commit : NULL);
    json_add_string(d, o, "class", b->machine_class);
    json_add_null(d, o, "runner");
    json_add_bool(d, o, "legacy", b->legacy);
    doc_time(d, o, "at", b->at_us);
    reviewed = json_add_object(d, o, "reviewed");
    json_add_string(d, reviewed, "by", b->reviewer);
    doc_time(d, reviewed, "at", b->at_us);
    json_add_string(d, reviewed, "reason", b->reason);
    doc_format(d, o, "url", "/b/%s", b->id);
}

static void add_links(struct json_doc *d, const char *id, const char *other)
{
    cJSON *links = json_add_object(d, NULL, "links");

    doc_format(d, links, "json", "/b/%s/vs/%s.json", id, other);
    doc_format(d, links, "text", "/b/%s/vs/%s.txt", id, other);
    doc_format(d, links, "markdown", "/b/%s/vs/%s.md", id, other);
    doc_format(d, links, "baseline", "/b/%s", other);
}

int doc_compare_baselines(struct store *s, const char *id, const char *other, cJSON **out,
                          struct err *e)
{
    AUTO_PAST struct past current = {.hex = ""};
    AUTO_PAST struct past baseline = {.hex = ""};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    struct audit audit = {.document = NULL};
    cJSON *made;

    json_doc_init_object(&d);
    if (read_past(s, id, &current, e) < 0 || read_past(s, other, &baseline, e) < 0)
        return -1;
    if (strcmp(current.record.project, baseline.record.project) != 0 ||
        strcmp(current.record.gate, baseline.record.gate) != 0)
        return err_set(e, ERR_NOTFOUND, "compare.absent", "the two are not of the same gate");
    if (compute(&baseline, &current, &audit, e) < 0)
        return -1;
    json_add_string(&d, NULL, "schema", "cleanrun-compare/1");
    json_add_bool(&d, NULL, "informational", true);
    json_add_string(&d, NULL, "project", current.record.project);
    json_add_string(&d, NULL, "gate", current.record.gate);
    json_add_null(&d, NULL, "verdict");
    json_add(&d, NULL, "audit", STEAL(audit.document));
    audit_fini(&audit);
    json_add_null(&d, NULL, "acceptance");
    add_side(&d, "baseline", &baseline);
    add_side(&d, "current", &current);
    json_add_null(&d, NULL, "policy");
    (void) json_add_array(&d, NULL, "next"); /* failure stays in d */
    add_links(&d, id, other);
    made = json_doc_take(&d, e);
    if (!made)
        return -1;
    *out = made;
    return 0;
}
