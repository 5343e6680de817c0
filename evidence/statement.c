#include "evidence/statement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"

#define SUBJECTS_MAX 1024 /* what stock verifiers read */
#define U64_TEXT 24
#define SHOWN 90        /* bytes of a value in a text */
#define PLACE_SIZE 128  /* of a member's place in a text */
#define MEMBERS_DEPTH 3 /* of the predicate */

static void add_hex(struct json_doc *d, cJSON *parent, const char *key, const struct digest *v)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(v, hex);
    json_add_string(d, parent, key, hex);
}

static void add_subject(struct json_doc *d, cJSON *list, const char *name, const char *algorithm,
                        const char *hex)
{
    cJSON *subject = json_add_object(d, list, NULL);

    if (name)
        json_add_string(d, subject, "name", name);
    json_add_string(d, json_add_object(d, subject, "digest"), algorithm, hex);
}

static void add_subjects(struct json_doc *d, const struct manifest *m, const struct digest *archive)
{
    cJSON *list = json_add_array(d, NULL, "subject");
    const char *name = NULL;
    char hex[DIGEST_HEX_SIZE];

    digest_hex(archive, hex);
    add_subject(d, list, STATEMENT_ARCHIVE_NAME, "sha256", hex);
    if (m->has_executable) {
        struct err ignored = ERR_INIT;

        if (json_get_string(json_get(m->document, "executable"), "name", &name, &ignored) < 0 ||
            strcmp(name, STATEMENT_ARCHIVE_NAME) == 0)
            name = "executable"; /* subject names are unique */
        digest_hex(&m->executable_digest, hex);
        add_subject(d, list, name, "sha256", hex);
    }
    if (!m->dirty)
        add_subject(d, list, NULL, "gitCommit", m->commit);
}

static void add_run_predicate(struct json_doc *d, const struct manifest *m, uint64_t archive_size)
{
    cJSON *p = json_add_object(d, NULL, "predicate");
    const cJSON *source = json_get(json_get(m->document, "source"), "start");
    char size[U64_TEXT];
    cJSON *part;

    (void) snprintf(size, sizeof size, "%" PRIu64, archive_size); /* 20 digits at most */
    json_add_string(d, p, "runId", m->run);
    json_add_string(d, p, "project", m->project);
    json_add_string(d, p, "gate", m->gate);
    json_add_string(d, p, "machineClass", m->machine_class);
    json_add_string(d, p, "mode", m->mode);
    json_add_string(d, p, "status", manifest_status_name(m->status));
    json_add_copy(d, p, "startedOn", json_get(m->document, "started_at"));
    json_add_copy(d, p, "finishedOn", json_get(m->document, "finished_at"));
    json_add_string(d, p, "archiveSize", size);
    part = json_add_object(d, p, "manifest");
    json_add_string(d, part, "name", MANIFEST_NAME);
    add_hex(d, json_add_object(d, part, "digest"), "sha256", &m->digest);
    part = json_add_object(d, p, "definition");
    add_hex(d, part, "experimentSha256", &m->experiment_digest);
    add_hex(d, part, "policySha256", &m->policy_digest);
    part = json_add_object(d, p, "source");
    json_add_copy(d, part, "scheme", json_get(source, "scheme"));
    json_add_string(d, part, "fingerprint", m->fingerprint);
    json_add_string(d, part, "commit", m->commit);
    json_add_copy(d, part, "tree", json_get(source, "tree"));
    json_add_bool(d, part, "dirty", m->dirty);
    json_add_copy(d, p, "runner", json_get(m->document, "runner"));
}

int statement_bytes(struct json_doc *d, struct buf *out, struct err *e)
{
    AUTO_JSON cJSON *root = json_doc_take(d, e);

    if (!root)
        return -1;
    buf_init(out, LIMIT_ENVELOPE / 2);
    json_write(out, root, JSON_COMPACT);
    return buf_check(out, e);
}

int statement_write_run(const struct manifest *m, const struct digest *archive_digest,
                        uint64_t archive_size, char **out, size_t *out_len, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_BUF struct buf b = {.data = NULL};

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "_type", STATEMENT_TYPE);
    add_subjects(&d, m, archive_digest);
    json_add_string(&d, NULL, "predicateType", STATEMENT_PREDICATE_RUN);
    add_run_predicate(&d, m, archive_size);
    if (statement_bytes(&d, &b, e) < 0)
        return -1;
    *out = buf_take(&b, out_len);
    return 0;
}

static int check_subjects(const cJSON *list, struct err *e)
{
    size_t n = 0;

    for (const cJSON *s = list->child; s; s = s->next) {
        const cJSON *digests = NULL;

        if (++n > SUBJECTS_MAX)
            return err_set(e, ERR_LIMIT, "statement.subjects",
                           "the statement has more than %d subjects", SUBJECTS_MAX);
        if (json_get_object(s, "digest", &digests, e) < 0)
            return err_wrap(e, "statement subject %zu", n);
    }
    if (n == 0)
        return err_set(e, ERR_INPUT, "statement.subjects", "the statement has no subject");
    return 0;
}

int statement_parse(const void *bytes, size_t len, struct statement *out, struct err *e)
{
    static const struct json_limits limits = {.max_bytes = LIMIT_ENVELOPE, .big_integers = true};
    AUTO_JSON cJSON *root = NULL;
    const char *type = NULL;
    const char *predicate_type = NULL;
    const cJSON *subjects = NULL;

    if (json_parse(bytes, len, &limits, &root, e) < 0 ||
        json_get_string(root, "_type", &type, e) < 0 ||
        json_get_string(root, "predicateType", &predicate_type, e) < 0 ||
        json_get_array(root, "subject", &subjects, e) < 0)
        return err_wrap(e, "statement");
    if (strcmp(type, STATEMENT_TYPE) != 0)
        return err_set(e, ERR_INPUT, "statement.type",
                       "the statement's _type is not " STATEMENT_TYPE);
    if (check_subjects(subjects, e) < 0)
        return -1;
    out->predicate_type = predicate_type;
    out->predicate = json_get(root, "predicate");
    out->document = STEAL(root);
    return 0;
}

void statement_fini(struct statement *s)
{
    json_free(s->document);
    *s = (struct statement){.document = NULL};
}

bool statement_names(const struct statement *s, const struct digest *sha256)
{
    const cJSON *list = json_get(s->document, "subject");
    struct err ignored = ERR_INIT;

    for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
        const char *hex = NULL;
        struct digest d;

        if (json_get_string(json_get(item, "digest"), "sha256", &hex, &ignored) == 0 &&
            digest_parse(hex, &d) && digest_equal(&d, sha256))
            return true;
    }
    return false;
}

static void show(const cJSON *value, char out[SHOWN + 4])
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_ENVELOPE * 8);
    if (value)
        json_write(&b, value, JSON_COMPACT);
    else
        buf_puts(&b, "nothing");
    (void) snprintf(out, SHOWN + 4, "%.*s%s", SHOWN, b.data ? b.data : "?",
                    b.len > SHOWN ? "..." : ""); /* err_set mends a cut character */
}

static int differs(const char *key, const cJSON *have, const cJSON *want, struct err *e)
{
    char a[SHOWN + 4];
    char b[SHOWN + 4];

    show(have, a);
    show(want, b);
    return err_set(e, ERR_TRUST, "statement.differs",
                   "the statement says %.60s is %s, the manifest and the archive say %s", key, a,
                   b);
}

/* Every member of `want` is in `have`; what else is there says nothing to us, as in-toto asks.
 * Recursion is bounded by `depth`. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static int holds_members(const char *place, const cJSON *have, const cJSON *want, unsigned depth,
                         struct err *e)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, want) {
        const cJSON *found = json_get(have, item->string);
        char name[PLACE_SIZE];

        (void) snprintf(name, sizeof name, "%.80s%s%.40s", place, place[0] ? "." : "",
                        item->string); /* cut, it tells */
        if (cJSON_IsObject(item) && cJSON_IsObject(found) && depth > 0) {
            if (holds_members(name, found, item, depth - 1, e) < 0)
                return -1;
        } else if (!json_equal(found, item)) {
            return differs(name, found, item, e);
        }
    }
    return 0;
}

/* Other tools attest each subject to their users: exactly ours, and nothing beside them. */
static int same_subjects(const cJSON *have, const cJSON *want, struct err *e)
{
    const cJSON *a = have ? have->child : NULL;
    const cJSON *b = want->child;

    for (unsigned n = 1; a || b; n++) {
        char name[PLACE_SIZE];

        (void) snprintf(name, sizeof name, "subject %u", n); /* fits */
        if (!a || !b || !json_equal(json_get(a, "digest"), json_get(b, "digest")) ||
            (json_get(b, "name") ? !json_equal(json_get(a, "name"), json_get(b, "name"))
                                 : json_get(a, "name") != NULL))
            return differs(name, a, b, e);
        a = a->next;
        b = b->next;
    }
    return 0;
}

int statement_agrees(const struct statement *s, const struct manifest *m,
                     const struct digest *archive_digest, uint64_t archive_size, struct err *e)
{
    AUTO_STATEMENT struct statement want = {.document = NULL};
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    if (statement_write_run(m, archive_digest, archive_size, &text, &len, e) < 0 ||
        statement_parse(text, len, &want, e) < 0)
        return -1;
    if (holds_members("", s->predicate, want.predicate, MEMBERS_DEPTH, e) < 0)
        return -1;
    return same_subjects(json_get(s->document, "subject"), json_get(want.document, "subject"), e);
}
