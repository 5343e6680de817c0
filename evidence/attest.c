#include "evidence/attest.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "evidence/dsse.h"
#include "evidence/statement.h"

#define SLSA_VERSION "1.2"
#define REASONS_MAX 100 /* copied into the statement; the total stands beside them */

int attest_run(const struct manifest *m, const struct digest *archive_digest, uint64_t archive_size,
               const struct private_key *key, char **out, size_t *out_len, struct err *e)
{
    AUTO_FREE char *statement = NULL;
    size_t len = 0;

    if (statement_write_run(m, archive_digest, archive_size, &statement, &len, e) < 0)
        return -1;
    return dsse_sign(STATEMENT_PAYLOAD_TYPE, statement, len, key, out, out_len, e);
}

static void add_sha256(struct json_doc *d, cJSON *parent, const struct digest *v)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(v, hex);
    json_add_string(d, json_add_object(d, parent, "digest"), "sha256", hex);
}

static void add_subjects(struct json_doc *d, const struct attest_verdict_input *in)
{
    cJSON *list = json_add_array(d, NULL, "subject");
    cJSON *subject = json_add_object(d, list, NULL);

    json_add_string(d, subject, "name", STATEMENT_ARCHIVE_NAME);
    add_sha256(d, subject, in->archive_digest);
    if (in->commit) {
        subject = json_add_object(d, list, NULL);
        json_add_string(d, json_add_object(d, subject, "digest"), "gitCommit", in->commit);
    }
}

/* Our own fields: who ignores them loses a reason, never a refusal. */
static void add_extension(struct json_doc *d, cJSON *predicate,
                          const struct attest_verdict_input *in)
{
    cJSON *ours = json_add_object(d, predicate, STATEMENT_VERDICT_FIELD);
    cJSON *list;
    int64_t n = 0;

    json_add_string(d, ours, "state", in->verdict);
    json_add_string(d, ours, "baseline", in->baseline);
    list = json_add_array(d, ours, "reasons");
    for (const cJSON *r = in->reasons ? in->reasons->child : NULL; r; r = r->next) {
        if (n++ < REASONS_MAX)
            json_add_copy(d, list, NULL, r);
    }
    json_add_int(d, ours, "reasonsTotal", n);
}

static void add_predicate(struct json_doc *d, const struct attest_verdict_input *in)
{
    bool passed = strcmp(in->verdict, "OK") == 0;
    cJSON *p = json_add_object(d, NULL, "predicate");
    char when[CLOCK_RFC3339_SIZE];
    cJSON *part = json_add_object(d, p, "verifier");

    json_add_string(d, part, "id", in->verifier_id);
    if (in->verifier_version)
        json_add_string(d, json_add_object(d, part, "version"), "cleanrun-server",
                        in->verifier_version);
    clock_rfc3339(in->verified_at_us, false, when);
    json_add_string(d, p, "timeVerified", when);
    json_add_string(d, p, "resourceUri", in->resource_uri);
    part = json_add_object(d, p, "policy");
    json_add_string(d, part, "uri", in->policy_uri);
    if (in->policy_digest)
        add_sha256(d, part, in->policy_digest);
    part = json_add_object(d, json_add_array(d, p, "inputAttestations"), NULL);
    json_add_string(d, part, "uri", in->envelope_uri);
    add_sha256(d, part, in->envelope_digest);
    json_add_string(d, p, "verificationResult", passed ? "PASSED" : "FAILED");
    part = json_add_array(d, p, "verifiedLevels");
    if (passed) {
        json_add_string(d, part, NULL, ATTEST_LEVEL_PROVENANCE);
        json_add_string(d, part, NULL, ATTEST_LEVEL_COMPARABLE);
        json_add_string(d, part, NULL, ATTEST_LEVEL_NO_REGRESSION);
    } else {
        json_add_string(d, part, NULL, "FAILED");
    }
    json_add_string(d, p, "slsaVersion", SLSA_VERSION);
    add_extension(d, p, in);
}

int attest_verdict(const struct attest_verdict_input *in, const struct private_key *key, char **out,
                   size_t *out_len, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_BUF struct buf b = {.data = NULL};

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "_type", STATEMENT_TYPE);
    add_subjects(&d, in);
    json_add_string(&d, NULL, "predicateType", STATEMENT_PREDICATE_VSA);
    add_predicate(&d, in);
    if (statement_bytes(&d, &b, e) < 0)
        return -1;
    return dsse_sign(STATEMENT_PAYLOAD_TYPE, b.data, b.len, key, out, out_len, e);
}
