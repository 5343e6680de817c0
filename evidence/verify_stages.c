/* What each stage of evidence_verify looks at. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "evidence/agreement.h"
#include "evidence/keyring.h"
#include "evidence/verify_stages.h"
#include "experiment/definition.h"

/* Both end a stage with a decision; the return value is the stage function's. */

static int passed(struct verify_work *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int failed(struct verify_work *w, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void set_detail(struct verify_step *s, const char *format, va_list ap)
    __attribute__((format(printf, 2, 0)));
static void set_detail(struct verify_step *s, const char *format, va_list ap)
{
    struct err text = ERR_INIT;
    char line[ERR_TEXT_MAX];

    if (vsnprintf(line, sizeof line, format, ap) < 0)
        line[0] = '\0';
    err_set(&text, ERR_INPUT, "", "%s", line); /* cuts at a UTF-8 border */
    memcpy(s->detail, text.text, sizeof s->detail);
}

static int passed(struct verify_work *w, const char *format, ...)
{
    struct verify_step *s = &w->stages[w->now];
    va_list ap;

    va_start(ap, format);
    set_detail(s, format, ap);
    va_end(ap);
    s->outcome = VERIFY_PASSED;
    return 0;
}

static int failed(struct verify_work *w, const char *code, const char *format, ...)
{
    struct verify_step *s = &w->stages[w->now];
    va_list ap;

    va_start(ap, format);
    set_detail(s, format, ap);
    va_end(ap);
    s->outcome = VERIFY_FAILED;
    s->code = code;
    return 0;
}

/* What a called function reported: a fault of the bytes decides the stage, a fault of ours decides
 * nothing. */
static int judge(struct verify_work *w, const char *code, const struct err *why, struct err *e)
{
    switch (why->kind) {
    case ERR_NONE:
    case ERR_USAGE:
    case ERR_INPUT:
    case ERR_LIMIT:
    case ERR_NOTFOUND:
    case ERR_CONFLICT:
    case ERR_TRUST:
        return failed(w, code, "%s", why->text);
    case ERR_SYS:
    case ERR_NOSPACE:
    case ERR_NOMEM:
    case ERR_BUSY:
    case ERR_INTERNAL:
        break;
    }
    return err_set(e, why->kind, why->code, "%s", why->text);
}

/* Stages. Each returns 0 when it came to a decision, -1 when it could not. */

static int stage_digest(struct verify_work *w, struct err *e)
{
    const struct digest *d = &w->ev->index->digest;
    char hex[DIGEST_HEX_SIZE];
    struct stat st;

    if (fstat(w->in->archive_fd, &st) < 0)
        return err_errno(e, "evidence.stat", "cannot look at the archive");
    digest_hex(d, hex);
    if (st.st_size < 0 || (uint64_t) st.st_size != w->ev->index->size)
        return failed(w, "IN-HASH",
                      "the archive does not have the size it had when it was received");
    if (w->in->archive_digest && !digest_equal(w->in->archive_digest, d))
        return failed(w, "IN-HASH", "the archive's sha256 is %s, another one was announced", hex);
    if (!statement_names(&w->statement, d))
        return failed(w, "IN-HASH",
                      "the archive's sha256 is %s, the statement is about other bytes", hex);
    return passed(w, "sha256 %s is the statement's subject", hex);
}

#define WHEN_SIZE (CLOCK_RFC3339_SIZE + 32)

/* From when or until when, for people; "" when time is not the reason. */
static const char *when(const struct keyring_entry *en, int64_t now_us, char out[WHEN_SIZE])
{
    const char *word = NULL;
    int64_t at = 0;
    char text[CLOCK_RFC3339_SIZE];

    if (en->revoked_since_us != 0 && now_us >= en->revoked_since_us) {
        word = "since";
        at = en->revoked_since_us;
    } else if (en->not_before_us != 0 && now_us < en->not_before_us) {
        word = "valid from";
        at = en->not_before_us;
    } else if (en->not_after_us != 0 && now_us > en->not_after_us) {
        word = "valid until";
        at = en->not_after_us;
    }
    out[0] = '\0';
    if (word) {
        clock_rfc3339(at, false, text);
        (void) snprintf(out, WHEN_SIZE, " (%s %s)", word, text); /* fits */
    }
    return out;
}

static int choose_key(struct verify_work *w, const struct dsse_check *check, struct err *e)
{
    const struct keyring *ring = w->in->keyring;
    const struct keyring_entry *en;
    const char *why = NULL;
    const char *id;
    char since[WHEN_SIZE];

    for (size_t i = 0; i < check->n; i++) {
        const char *refusal = keyring_refusal(ring, check->keys[i], w->in->project, w->in->now_us);

        w->key = check->keys[i];
        if (!refusal) {
            why = NULL;
            break;
        }
        why = refusal;
    }
    id = public_key_id(keyring_key(ring, w->key));
    en = keyring_entry(ring, w->key);
    if (why)
        return failed(w, "IN-KEY", "%s%s: %s%s%s", why, when(en, w->in->now_us, since), id,
                      en->name ? " of runner " : "", en->name ? en->name : "");
    w->ev->keyid = strdup(id);
    w->ev->key_name = en->name ? strdup(en->name) : NULL;
    if (!w->ev->keyid || (en->name && !w->ev->key_name))
        return err_set(e, ERR_NOMEM, "evidence.memory", "no memory for a key's name");
    return passed(w, "key %s%s%s, payload %s", id, en->name ? " of runner " : "",
                  en->name ? en->name : "", w->envelope.payload_type);
}

static int stage_signature(struct verify_work *w, struct err *e)
{
    struct dsse_check check;
    const char *keyid;

    if (!w->readable)
        return judge(w, "IN-SIGNATURE", &w->unreadable, e);
    if (!w->in->keyring || keyring_count(w->in->keyring) == 0)
        return failed(w, "IN-KEY", "no key is trusted");
    if (dsse_check_keys(&w->envelope, w->in->keyring, &check, e) < 0)
        return -1;
    if (check.n > 0)
        return choose_key(w, &check, e);
    keyid = w->envelope.signatures[0].keyid;
    if (check.hint_known || !keyid[0])
        return failed(w, "IN-SIGNATURE", "no trusted key made this signature");
    return failed(w, "IN-KEY",
                  "no trusted key made this signature; it names the unknown key %.100s", keyid);
}

static int stage_archive(struct verify_work *w, struct err *e)
{
    const struct archive_index *x = w->ev->index;

    (void) e; /* the index was made before: nothing can fail here */
    if (x->problem)
        return failed(w, "IN-ARCHIVE", "%s", x->problem);
    return passed(w, "%zu members, %" PRIu64 " bytes", x->n, x->size);
}

/* What the key's registration and the upload's address say about the manifest. */
static int check_belonging(struct verify_work *w)
{
    const struct keyring_entry *en = keyring_entry(w->in->keyring, w->key);
    const struct manifest *m = &w->ev->manifest;
    const char *refusal = keyring_refusal(w->in->keyring, w->key, m->project, w->in->now_us);
    char hex[DIGEST_HEX_SIZE];

    if (w->in->project && strcmp(w->in->project, m->project) != 0)
        return failed(w, "IN-MANIFEST", "the evidence belongs to project %s, not to %.200s",
                      m->project, w->in->project);
    if (w->in->gate && strcmp(w->in->gate, m->gate) != 0)
        return failed(w, "IN-MANIFEST", "the evidence belongs to gate %s, not to %.100s", m->gate,
                      w->in->gate);
    if (refusal)
        return failed(w, "IN-KEY", "%s: %s", refusal, m->project);
    if (en->machine_class && strcmp(en->machine_class, m->machine_class) != 0)
        return failed(
            w, "IN-KEY",
            "the manifest names machine class %s, the key's runner is registered for %.100s",
            m->machine_class, en->machine_class);
    digest_hex(&m->digest, hex);
    return passed(w, "cleanrun-manifest/2, run %s, sha256 %s", m->run, hex);
}

static int stage_manifest(struct verify_work *w, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    struct err why = ERR_INIT;
    size_t len = 0;

    if (evidence_read_member(w->ev, &w->ev->index->members[0], LIMIT_JSON_DOCUMENT, &bytes, &len,
                             &why) < 0)
        return judge(w, why.kind == ERR_TRUST ? "IN-HASH" : "IN-MANIFEST", &why, e);
    if (manifest_parse(bytes, len, &w->ev->manifest, &why) < 0 ||
        statement_agrees(&w->statement, &w->ev->manifest, &w->ev->index->digest, w->ev->index->size,
                         &why) < 0)
        return judge(w, "IN-MANIFEST", &why, e);
    if (agreement_times(&w->ev->manifest, w->in->now_us, &why) < 0)
        return judge(w, "IN-MANIFEST", &why, e);
    return check_belonging(w);
}

static int stage_members(struct verify_work *w, struct err *e)
{
    const struct archive_index *x = w->ev->index;
    const struct manifest *m = &w->ev->manifest;

    (void) e; /* digests were made while receiving */
    for (size_t i = 0; i < m->n_files || i + 1 < x->n; i++) {
        const struct manifest_file *f = i < m->n_files ? &m->files[i] : NULL;
        const struct archive_member *a = i + 1 < x->n ? &x->members[i + 1] : NULL;

        if (f && (!a || strcmp(f->path, a->name) < 0))
            return failed(w, "IN-HASH", "'%s' is listed but is not in the archive", f->path);
        if (a && (!f || strcmp(f->path, a->name) > 0))
            return failed(w, "IN-HASH", "'%s' is in the archive but is not listed", a->name);
        if (!f || !a)
            return failed(w, "IN-HASH", "the lists of members cannot be compared");
        if (f->size != a->size)
            return failed(w, "IN-HASH", "'%s' has %" PRIu64 " bytes, the manifest says %" PRIu64,
                          f->path, a->size, f->size);
        if (!digest_equal(&f->digest, &a->digest))
            return failed(w, "IN-HASH", "'%s' does not have the sha256 that the manifest states",
                          f->path);
    }
    return passed(w, "%zu of %zu hashes", m->n_files, m->n_files);
}

static bool is_json_role(const char *role)
{
    static const char *const roles[] = {"definition", "report",      "acceptance", "audit",
                                        "source",     "environment", "host"};

    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (strcmp(role, roles[i]) == 0)
            return true;
    }
    return false;
}

/* Sets a failure or leaves the stage undecided. */
static int check_json(struct verify_work *w, const struct manifest_file *f, struct err *e)
{
    size_t max = strcmp(f->role, "report") == 0 ? LIMIT_REPORT : LIMIT_JSON_DOCUMENT;
    const struct json_limits limits = {.max_bytes = max};
    AUTO_FREE char *bytes = NULL;
    struct err why = ERR_INIT;
    size_t len = 0;

    if (evidence_read_member(w->ev, archive_index_find(w->ev->index, f->path), max, &bytes, &len,
                             &why) < 0)
        return judge(w, why.kind == ERR_TRUST ? "IN-HASH" : "IN-JSON", &why, e);
    if (json_validate(bytes, len, &limits, &why) < 0) {
        err_wrap(&why, "'%s'", f->path);
        return judge(w, "IN-JSON", &why, e);
    }
    return 0;
}

/* An agreement_reader. */
static int read_json(void *ctx, const char *name, cJSON **out, struct err *e)
{
    const struct verify_work *w = (const struct verify_work *) ctx;
    const struct json_limits limits = {.max_bytes = LIMIT_REPORT};
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    *out = NULL;
    if (!archive_index_find(w->ev->index, name))
        return 0;
    if (evidence_read(w->ev, name, LIMIT_REPORT, &bytes, &len, e) < 0 ||
        json_parse(bytes, len, &limits, out, e) < 0)
        return err_wrap(e, "'%s'", name);
    return 0;
}

/* The reader's other half. */
static int read_bytes(void *ctx, const char *name, size_t max, char **out, size_t *out_len,
                      struct err *e)
{
    const struct verify_work *w = (const struct verify_work *) ctx;

    return evidence_read(w->ev, name, max, out, out_len, e);
}

static int check_definition(struct verify_work *w, struct err *e)
{
    const struct agreement_reader reader = {.read = read_json, .bytes = read_bytes, .ctx = w};
    const struct manifest *m = &w->ev->manifest;
    AUTO_DEFINITION struct definition d = {.gate = NULL};
    AUTO_FREE char *bytes = NULL;
    struct err why = ERR_INIT;
    size_t len = 0;

    if (evidence_read(w->ev, "definition.json", LIMIT_JSON_DOCUMENT, &bytes, &len, &why) < 0)
        return judge(w, "IN-HASH", &why, e);
    if (definition_parse(bytes, len, &d, &why) < 0) {
        err_wrap(&why, "'definition.json'");
        return judge(w, "IN-JSON", &why, e);
    }
    if (agreement_check(m, &d, &why) < 0 || agreement_files(m, &d, &reader, &why) < 0)
        return judge(w, "IN-MANIFEST", &why, e);
    return 0;
}

static int stage_json(struct verify_work *w, struct err *e)
{
    const struct manifest *m = &w->ev->manifest;
    char experiment[DIGEST_HEX_SIZE];
    size_t n = 0;

    for (size_t i = 0; i < m->n_files; i++) {
        if (!is_json_role(m->files[i].role))
            continue;
        n++;
        if (check_json(w, &m->files[i], e) < 0)
            return -1;
        if (w->stages[w->now].outcome == VERIFY_FAILED)
            return 0;
    }
    if (check_definition(w, e) < 0)
        return -1;
    if (w->stages[w->now].outcome == VERIFY_FAILED)
        return 0;
    digest_hex(&m->experiment_digest, experiment);
    return passed(w, "%zu documents, experiment %s", n, experiment);
}

/* Compares one source member with the manifest's block; sets a failure or leaves the stage
 * undecided. */
static int check_source(struct verify_work *w, const char *name, const char *key, struct err *e)
{
    const cJSON *block = json_get(json_get(w->ev->manifest.document, "source"), key);
    AUTO_FREE char *bytes = NULL;
    AUTO_JSON cJSON *member = NULL;
    struct err why = ERR_INIT;
    size_t len = 0;

    if (evidence_read(w->ev, name, LIMIT_JSON_DOCUMENT, &bytes, &len, &why) < 0 ||
        json_parse(bytes, len, NULL, &member, &why) < 0)
        return judge(w, "IN-SOURCE", &why, e);
    if (!json_equal(block, member))
        return failed(w, "IN-SOURCE", "'%s' and the manifest's source.%s differ", name, key);
    return 0;
}

static int stage_source(struct verify_work *w, struct err *e)
{
    static const char *const members[][2] = {{"source-at-start.json", "start"},
                                             {"source-at-end.json", "end"}};
    const struct manifest *m = &w->ev->manifest;

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (check_source(w, members[i][0], members[i][1], e) < 0)
            return -1;
        if (w->stages[w->now].outcome == VERIFY_FAILED)
            return 0;
    }
    return passed(w, "%s %s; %s", m->commit, m->dirty ? "dirty" : "clean",
                  m->unchanged ? "start and end fingerprint are equal"
                               : "the source changed during the run");
}

int verify_stage_run(struct verify_work *w, struct err *e)
{
    static int (*const stages[VERIFY_STAGES])(struct verify_work *, struct err *) = {
        stage_digest,  stage_signature, stage_archive, stage_manifest,
        stage_members, stage_json,      stage_source,
    };

    return stages[w->now](w, e);
}
