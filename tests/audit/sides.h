/*
 * sides: a small gate and two sides that compare as OK, for tests to break one thing at a time.
 * Helpers fail the running test themselves. Include after tests/lib/support.h.
 */
#pragma once

#include <string.h>

#include "audit/audit.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"
#include "experiment/facts.h"
#include "experiment/pointer.h"
#include "tests/lib/support.h"

#define SIDES_REPORT "s/1.json"

static const char sides_yaml[] =
    "version: 1\n"
    "project: o/r\n"
    "gates:\n"
    "  g:\n"
    "    class: box\n"
    "    build: {command: [make], executable: {from: path, path: app}}\n"
    "    run: {command: ['{executable}'], report: s/1.json}\n"
    "    conditioning: [{name: warm, value: 10}, {name: hot, value: 20}]\n"
    "    identity:\n"
    "      - {path: /scenario, require: required, type: string}\n"
    "      - {path: /load/rate, require: required, type: number, within: /load}\n"
    "      - {path: /load/steps, require: required, label: steps, why: order matters}\n"
    "      - {path: /environment/*, require: required}\n"
    "      - {path: /note, require: both-may-lack}\n"
    "    accept: {limits: [{path: /results/rate, op: '>=', value: 10, unit: 1/s}]}\n"
    "    audit:\n"
    "      paths: {required: [s/1.json]}\n"
    "      windows: [{path: /windows/w, value: /results/growth, label: steady}]\n"
    "      metrics:\n"
    "        - {path: /results/rate, label: rate, unit: 1/s, worse: lower, tolerance_pct: 10, "
    "gated: true}\n"
    "        - {path: /results/growth, label: RSS growth, unit: MB/h, worse: higher, "
    "tolerance_pct: 15, floor: 100}\n"
    "        - {path: /latency/*/p99, label: '{1} p99', unit: ns, worse: higher, tolerance_pct: "
    "25, gated: true}\n"
    "        - {path: /results/cpu, label: CPU, unit: '%', worse: higher, tolerance_pct: 5, gated: "
    "false}\n";

static const char sides_report[] =
    "{\"scenario\":\"s\",\"note\":\"n\",\"load\":{\"rate\":100,\"steps\":[10,20]},\"environment\":{"
    "\"cc\":\"gcc 12\",\"alloc\":\"mi\"},"
    "\"results\":{\"rate\":1000.0,\"growth\":9.3,\"cpu\":50.0,\"serial\":1},"
    "\"latency\":{\"get\":{\"p99\":2000000},\"put\":{\"p99\":3000000}},"
    "\"windows\":{\"w\":{\"complete\":true,\"sample_count\":90,\"actual_coverage_secs\":30.5,"
    "\"estimator\":\"theil-sen\"}}}";

struct sides_side {
    cJSON *report;
    cJSON *manifest;
    struct definition definition;
    struct tree tree;
};

struct sides {
    struct definition policy;
    struct sides_side baseline;
    struct sides_side current;
    bool legacy;
    bool bare;                                  /* no manifests, no definitions */
    bool digests_only;                          /* manifests, no definitions */
    const char *class_baseline, *class_current; /* what the keeper of bare trees knows */
    const char *path;                           /* of the report; SIDES_REPORT */
    const char *evidence_baseline, *evidence_current;
    const cJSON *baseline_manifest;
};

static inline cJSON *sides_json(const char *text)
{
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    if (json_parse(text, strlen(text), NULL, &j, &e) < 0)
        fail_msg("%s in %s", e.text, text);
    return j;
}

static inline char *sides_print(const cJSON *j)
{
    struct buf b = {0};
    size_t len = 0;
    char *text = NULL;

    buf_init(&b, LIMIT_MIB(8));
    json_write(&b, j, JSON_COMPACT);
    assert_false(b.failed);
    text = buf_take(&b, &len);
    buf_fini(&b);
    return text;
}

static inline void sides_definition(const char *yaml, struct definition *out)
{
    struct definition_file f = {0};
    struct err e = ERR_INIT;
    char *bytes = NULL;
    size_t len = 0;

    if (definition_file_parse("cleanrun.yaml", yaml, strlen(yaml), &f, &e) < 0 ||
        definition_write(&f.gates[0], &bytes, &len, &e) < 0 ||
        definition_parse(bytes, len, out, &e) < 0)
        fail_msg("%s", e.text);
    free(bytes);
    definition_file_fini(&f);
}

/* Replaces (value NULL: removes) what a plain pointer names; parents must exist. Consumes value. */
static inline void sides_put(cJSON *root, const char *pointer, cJSON *value)
{
    char parent[512];
    const char *slash = strrchr(pointer, '/');
    cJSON *holder = NULL;
    cJSON *old = NULL;

    assert_non_null(slash);
    assert_true((size_t) (slash - pointer) < sizeof parent);
    memcpy(parent, pointer, (size_t) (slash - pointer));
    parent[slash - pointer] = 0;
    holder = (cJSON *) (uintptr_t) pointer_get(root, parent);
    assert_non_null(holder);
    if (cJSON_IsArray(holder)) {
        old = (cJSON *) (uintptr_t) pointer_get(root, pointer);
        assert_non_null(old);
        if (value)
            assert_true(cJSON_ReplaceItemViaPointer(holder, old, value));
        else
            cJSON_Delete(cJSON_DetachItemViaPointer(holder, old));
        return;
    }
    old = cJSON_GetObjectItemCaseSensitive(holder, slash + 1);
    if (!value) {
        if (old)
            cJSON_Delete(cJSON_DetachItemViaPointer(holder, old));
    } else if (old) {
        assert_true(cJSON_ReplaceItemInObjectCaseSensitive(holder, slash + 1, value));
    } else {
        assert_true(cJSON_AddItemToObject(holder, slash + 1, value));
    }
}

static inline void sides_put_text(cJSON *root, const char *pointer, const char *json)
{
    sides_put(root, pointer, json ? sides_json(json) : NULL);
}

static inline cJSON *sides_manifest(const struct definition *d, const char *run)
{
    char hex[DIGEST_HEX_SIZE];
    cJSON *m = sides_json(
        "{\"schema\":\"cleanrun-manifest/2\",\"project\":\"o/r\",\"gate\":\"g\",\"class\":\"box\","
        "\"mode\":\"clean\",\"status\":\"PASS\",\"definition\":{},\"machine\":{\"facts\":{}},"
        "\"build\":{\"environment\":{\"PATH\":\"/bin\"}},\"environment\":{\"PATH\":\"/bin\"},"
        "\"source\":{\"start\":{\"commit\":\"c0ffee\",\"dirty\":false},\"end\":{\"dirty\":false},"
        "\"ignored\":0},"
        "\"executable\":{\"sha256\":\"aa\"},\"conditioning\":{\"steps\":[],\"sha256\":\"cc\"}}");
    cJSON *facts = (cJSON *) (uintptr_t) pointer_get(m, "/machine/facts");

    assert_non_null(cJSON_AddStringToObject(m, "run", run));
    digest_hex(&d->experiment_digest, hex);
    sides_put(m, "/definition/experiment_sha256", cJSON_CreateString(hex));
    digest_hex(&d->policy_digest, hex);
    sides_put(m, "/definition/policy_sha256", cJSON_CreateString(hex));
    for (size_t i = 0; i < facts_count; i++)
        assert_non_null(cJSON_AddStringToObject(facts, facts_table[i].name, "as always"));
    return m;
}

static inline void sides_init_with(struct sides *s, const char *yaml)
{
    *s = (struct sides){.path = SIDES_REPORT};
    sides_definition(yaml, &s->policy);
    sides_definition(yaml, &s->baseline.definition);
    sides_definition(yaml, &s->current.definition);
    s->baseline.report = sides_json(sides_report);
    s->current.report = sides_json(sides_report);
    sides_put_text(s->current.report, "/results/serial", "2");
    s->baseline.manifest = sides_manifest(&s->policy, "20261129T141502Z-9c1e07ab");
    s->current.manifest = sides_manifest(&s->policy, "20261130T141502Z-11111111");
    sides_put_text(s->current.manifest, "/executable/sha256", "\"bb\"");
}

static inline void sides_init(struct sides *s)
{
    sides_init_with(s, sides_yaml);
}

static inline void sides_fini(struct sides *s)
{
    struct sides_side *both[] = {&s->baseline, &s->current};

    definition_fini(&s->policy);
    for (size_t i = 0; i < 2; i++) {
        json_free(both[i]->report);
        json_free(both[i]->manifest);
        definition_fini(&both[i]->definition);
        tree_fini(&both[i]->tree);
    }
}

static inline void sides_add_file(struct sides_side *side, const char *path, const char *text)
{
    struct err e = ERR_INIT;

    if (tree_add(&side->tree, path, text, strlen(text), &e) < 0)
        fail_msg("%s", e.text);
}

static inline void sides_add_report(struct sides_side *side, const char *path)
{
    char *text = NULL;

    if (!side->report || tree_find(&side->tree, path))
        return;
    text = sides_print(side->report);
    sides_add_file(side, path, text);
    free(text);
}

/* Runs the audit over both reports (a NULL report is absent) and whatever files were added. */
static inline void sides_audit(struct sides *s, struct audit *out)
{
    struct audit_input in = {.policy = &s->policy, .baseline_manifest = s->baseline_manifest};
    struct err e = ERR_INIT;

    sides_add_report(&s->baseline, s->path);
    sides_add_report(&s->current, s->path);
    in.baseline = (struct audit_side){
        .tree = &s->baseline.tree, .evidence_sha256 = s->evidence_baseline, .legacy = s->legacy};
    in.current =
        (struct audit_side){.tree = &s->current.tree, .evidence_sha256 = s->evidence_current};
    in.baseline.machine_class = s->class_baseline;
    in.current.machine_class = s->class_current;
    if (!s->bare) {
        in.baseline.manifest = s->baseline.manifest;
        in.current.manifest = s->current.manifest;
    }
    if (!s->bare && !s->digests_only) {
        in.baseline.definition = &s->baseline.definition;
        in.current.definition = &s->current.definition;
    }
    if (audit_run(&in, out, &e) < 0)
        fail_msg("%s", e.text);
}

/* Whether a reason is about this field, or names it among the differing elements of a list. */
static inline bool sides_names(const cJSON *reason, const char *field)
{
    const cJSON *at = json_get(reason, "field");
    const cJSON *element = NULL;

    if (cJSON_IsString(at) && strcmp(at->valuestring, field) == 0)
        return true;
    cJSON_ArrayForEach(element, json_get(reason, "elements")) {
        if (strcmp(json_get(element, "field")->valuestring, field) == 0)
            return true;
    }
    return false;
}

/* Whether a reason with this code (and, unless NULL, this field) is in the document. */
static inline bool sides_has(const cJSON *document, const char *code, const char *field)
{
    const cJSON *reasons = json_get(document, "reasons");
    const cJSON *r = NULL;

    cJSON_ArrayForEach(r, reasons) {
        if (strcmp(json_get(r, "code")->valuestring, code) == 0 &&
            (!field || sides_names(r, field)))
            return true;
    }
    return false;
}

static inline void sides_show(const cJSON *document)
{
    char *text = sides_print(json_get(document, "reasons"));

    print_message("reasons: %s\n", text);
    free(text);
}

/* Judges, demands the verdict and (unless NULL) the reason, and frees both. */
static inline void sides_expect(struct sides *s, enum verdict verdict, const char *code,
                                const char *field)
{
    struct audit a = {0};

    sides_audit(s, &a);
    if (a.verdict != verdict || (code && !sides_has(a.document, code, field))) {
        sides_show(a.document);
        fail_msg("expected %s %s %s, found %s", verdict_word(verdict), code ? code : "",
                 field ? field : "", verdict_word(a.verdict));
    }
    assert_string_equal(json_get(a.document, "verdict")->valuestring, verdict_word(verdict));
    if (verdict != VERDICT_OK && verdict != VERDICT_REGRESSION) {
        assert_non_null(json_get(a.document, "reasons")->child);
        if (!s->baseline_manifest) /* one report: a refusal leaves no number at all */
            assert_null(json_get(a.document, "comparisons")->child);
    } else {
        assert_null(json_get(a.document, "reasons")->child);
        assert_true(num_same(json_get(a.document, "made_comparisons")->valuedouble,
                             json_get(a.document, "expected_comparisons")->valuedouble));
        assert_true(json_get(a.document, "made_comparisons")->valuedouble > 0);
    }
    audit_fini(&a);
    sides_fini(s);
}
