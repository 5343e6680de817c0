#include "runner/runset_sign.h"

#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "evidence/dsse.h"
#include "evidence/statement.h"
#include "runner/runset.h"

static void add_subject(struct json_doc *d, const struct digest *digest)
{
    cJSON *subject = json_add_object(d, json_add_array(d, NULL, "subject"), NULL);
    char hex[DIGEST_HEX_SIZE];

    digest_hex(digest, hex);
    json_add_string(d, subject, "name", RUNSET_INDEX);
    json_add_string(d, json_add_object(d, subject, "digest"), "sha256", hex);
}

static void add_predicate(struct json_doc *d, const cJSON *index)
{
    static const char *const keys[] = {"schema", "created_at", "status",   "project",
                                       "gate",   "class",      "run_count"};
    cJSON *p = json_add_object(d, NULL, "predicate");
    const cJSON *run = NULL;
    cJSON *runs;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        json_add_copy(d, p, keys[i], json_get(index, keys[i]));
    runs = json_add_array(d, p, "runs");
    cJSON_ArrayForEach(run, json_get(index, "runs")) {
        json_add_copy(d, runs, NULL, json_get(run, "run"));
    }
}

int runset_sign(const cJSON *index, const struct digest *digest, const struct private_key *key,
                char **out, size_t *out_len, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_BUF struct buf b = {.data = NULL};

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "_type", STATEMENT_TYPE);
    add_subject(&d, digest);
    json_add_string(&d, NULL, "predicateType", STATEMENT_PREDICATE_PACKAGE);
    add_predicate(&d, index);
    if (statement_bytes(&d, &b, e) < 0)
        return -1;
    return dsse_sign(STATEMENT_PAYLOAD_TYPE, b.data, b.len, key, out, out_len, e);
}

static int not_trusted(struct err *e, const char *text)
{
    return err_set(e, ERR_TRUST, "runset.signature", "%s", text);
}

int runset_check_signature(const char *envelope, size_t len, const struct digest *digest,
                           const struct keyring *ring, const char **out_keyid, struct err *e)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    AUTO_STATEMENT struct statement s = {.document = NULL};
    struct dsse_check check = {.n = 0};
    struct err why = ERR_INIT;

    if (dsse_parse(envelope, len, &d, &why) < 0)
        return why.kind == ERR_NOMEM ? err_set(e, ERR_NOMEM, why.code, "%s", why.text)
                                     : not_trusted(e, why.text);
    if (dsse_check_keys(&d, ring, &check, e) < 0)
        return -1;
    if (check.n == 0)
        return not_trusted(e, "no trusted key signed the index");
    if (strcmp(d.payload_type, STATEMENT_PAYLOAD_TYPE) != 0)
        return not_trusted(e, "the envelope holds no in-toto statement");
    if (statement_parse(d.payload, d.payload_len, &s, &why) < 0)
        return why.kind == ERR_NOMEM ? err_set(e, ERR_NOMEM, why.code, "%s", why.text)
                                     : not_trusted(e, why.text);
    if (strcmp(s.predicate_type, STATEMENT_PREDICATE_PACKAGE) != 0)
        return not_trusted(e, "the statement is not about a package");
    if (!statement_names(&s, digest))
        return not_trusted(e, "the statement is about another index");
    *out_keyid = public_key_id(keyring_key(ring, check.keys[0]));
    return 0;
}
