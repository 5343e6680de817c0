/* The manifest against the documents beside it. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/text.h"
#include "evidence/agreement.h"
#include "evidence/agreement_parts.h"
#include "experiment/environment.h"
#include "experiment/pointer.h"
#include "experiment/proof.h"

#define SNAPSHOT "baseline/"
#define SHOWN 90 /* bytes of a value in a text */

/* Absent and null are one in a record. */
static bool same(const cJSON *a, const cJSON *b)
{
    bool no_a = !a || cJSON_IsNull(a);
    bool no_b = !b || cJSON_IsNull(b);

    return no_a || no_b ? no_a == no_b : json_equal(a, b);
}

static void show(const cJSON *j, char out[SHOWN + 4])
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_CANONICAL);
    if (j)
        json_write(&b, j, JSON_COMPACT);
    else
        buf_puts(&b, "nothing");
    (void) snprintf(out, SHOWN + 4, "%.*s%s", SHOWN, b.data ? b.data : "?",
                    b.len > SHOWN ? "..." : ""); /* err_set mends a cut character */
}

static int differs(const char *field, const cJSON *stated, const char *other, const cJSON *found,
                   struct err *e)
{
    char a[SHOWN + 4];
    char b[SHOWN + 4];

    show(stated, a);
    show(found, b);
    return err_set(e, ERR_TRUST, "agreement.differs", "the manifest's %.100s is %s, %.100s says %s",
                   field, a, other, b);
}

/* Two values, or the first member in which two objects differ. */
int agreement_compare(const char *field, const cJSON *stated, const char *other, const cJSON *found,
                      struct err *e)
{
    char place[160];
    const cJSON *item = NULL;

    if (same(stated, found))
        return 0;
    if (!cJSON_IsObject(stated) || !cJSON_IsObject(found))
        return differs(field, stated, other, found, e);
    cJSON_ArrayForEach(item, stated) {
        if (same(item, json_get(found, item->string)))
            continue;
        (void) snprintf(place, sizeof place, "%s/%.60s", field, item->string); /* cut, it tells */
        return differs(place, item, other, json_get(found, item->string), e);
    }
    cJSON_ArrayForEach(item, found) {
        if (same(item, json_get(stated, item->string)))
            continue;
        (void) snprintf(place, sizeof place, "%s/%.60s", field, item->string); /* cut, it tells */
        return differs(place, json_get(stated, item->string), other, item, e);
    }
    return differs(field, stated, other, found, e);
}

int agreement_member(const struct agreement_reader *reader, const char *name, cJSON **out,
                     struct err *e)
{
    if (reader->read(reader->ctx, name, out, e) < 0)
        return -1;
    return *out ? 0
                : err_set(e, ERR_TRUST, "agreement.absent", "'%.100s' is not in the archive", name);
}

static bool matches(const cJSON *patterns, const char *name)
{
    const cJSON *pattern = NULL;

    cJSON_ArrayForEach(pattern, patterns) {
        if (cJSON_IsString(pattern) && text_glob(pattern->valuestring, name))
            return true;
    }
    return false;
}

/* What nobody may choose: every program gets the same. */
static int check_defaults(const char *half, const cJSON *defaults, struct err *e)
{
    size_t n = 0;
    const struct environment_variable *wanted = environment_defaults(&n);

    for (size_t i = 0; i < n; i++) {
        const cJSON *value = json_get(defaults, wanted[i].name);
        char shown[SHOWN + 4];

        show(value, shown);
        if (!cJSON_IsString(value) || strcmp(value->valuestring, wanted[i].value) != 0)
            return err_set(e, ERR_TRUST, "agreement.environment",
                           "environment.json gives the %s %s %s by default, every runner gives %s",
                           half, wanted[i].name, shown, wanted[i].value);
    }
    if (cJSON_GetArraySize(defaults) == (int) n)
        return 0;
    return err_set(e, ERR_TRUST, "agreement.environment",
                   "environment.json gives the %s %d variables by default, every runner gives %zu",
                   half, cJSON_GetArraySize(defaults), n);
}

/* Only what the definition allows and does not reject comes from the caller. */
static int check_passed(const struct manifest *m, const char *half, const cJSON *env,
                        const cJSON *passed, struct err *e)
{
    const cJSON *rejected = pointer_get(m->document, "/build/rejected_patterns");
    const cJSON *item = NULL;

    if (!cJSON_IsObject(passed))
        return differs("environment", NULL, "environment.json", passed, e);
    cJSON_ArrayForEach(item, passed) {
        bool allowed = matches(json_get(env, "allow"), item->string);

        if (allowed && cJSON_IsString(item) && !matches(rejected, item->string))
            continue;
        return err_set(e, ERR_TRUST, "agreement.environment",
                       "environment.json passes %.100s to the %s, the definition %s it",
                       item->string, half,
                       !allowed               ? "does not allow"
                       : cJSON_IsString(item) ? "rejects"
                                              : "allows only text for");
    }
    return 0;
}

static int check_set(const char *half, const cJSON *wanted, const cJSON *set, struct err *e)
{
    char a[SHOWN + 4];
    char b[SHOWN + 4];

    if (json_equal(wanted, set) || (!wanted && cJSON_IsObject(set) && !set->child))
        return 0;
    show(set, a);
    show(wanted, b);
    return err_set(e, ERR_TRUST, "agreement.environment",
                   "environment.json sets %s for the %s, the definition sets %s", a, half, b);
}

/* One program's variables: in the record as the definition lets them be, in the manifest as the
 * record gives them. */
static int check_variables(const struct manifest *m, const char *half, const cJSON *env,
                           const cJSON *record, const cJSON *stated, struct err *e)
{
    AUTO_JSON cJSON *effective = NULL;
    char field[40];

    if (check_defaults(half, json_get(record, "defaults"), e) < 0 ||
        check_passed(m, half, env, json_get(record, "passed"), e) < 0 ||
        check_set(half, json_get(env, "set"), json_get(record, "set"), e) < 0 ||
        environment_effective(record, &effective, e) < 0)
        return -1;
    (void) snprintf(field, sizeof field, "environment of the %s", half); /* fits */
    return agreement_compare(field, stated, "environment.json", effective, e);
}

static int check_environment(const struct manifest *m, const struct definition *d,
                             const struct agreement_reader *reader, struct err *e)
{
    AUTO_JSON cJSON *record = NULL;
    const cJSON *ran = json_get(m->document, "environment");
    const cJSON *run = NULL;

    if (agreement_member(reader, "environment.json", &record, e) < 0)
        return -1;
    run = json_get(record, "run");
    if (check_variables(m, "build", pointer_get(d->experiment, "/build/env"),
                        json_get(record, "build"), pointer_get(m->document, "/build/environment"),
                        e) < 0)
        return -1;
    if (cJSON_IsNull(ran) ? m->status == MANIFEST_PASS : m->status == MANIFEST_BUILD_ONLY)
        return differs("environment", ran, "its status", json_get(m->document, "status"), e);
    if (cJSON_IsNull(ran) ? run && !cJSON_IsNull(run)
                          : check_variables(m, "program", pointer_get(d->experiment, "/run/env"),
                                            run, ran, e) < 0)
        return cJSON_IsNull(ran) ? differs("environment", ran, "environment.json", run, e) : -1;
    return agreement_compare("build/rejected_patterns",
                             pointer_get(m->document, "/build/rejected_patterns"),
                             "environment.json", json_get(record, "rejected_patterns"), e);
}

static int check_host(const struct manifest *m, const struct definition *d,
                      const struct agreement_reader *reader, struct err *e)
{
    static const char *const keys[][2] = {
        {"machine", "facts"},
        {"machine", "readings"},
        {"interference", "before"},
        {"interference", "during"},
    };
    AUTO_JSON cJSON *host = NULL;

    if (agreement_member(reader, "host.json", &host, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char field[32];

        (void) snprintf(field, sizeof field, "%s/%s", keys[i][0], keys[i][1]); /* fits */
        if (agreement_compare(field, json_get(json_get(m->document, keys[i][0]), keys[i][1]),
                              "host.json", json_get(host, keys[i][1]), e) < 0)
            return -1;
    }
    return agreement_run(m, d, host, reader, e);
}

/* Coverage: one row a window that the runner derived, in their order. */

static int check_row(const cJSON *window, const cJSON *row, struct err *e)
{
    static const char *const keys[][2] = {
        {"requested_coverage_secs", "requested_secs"},
        {"actual_coverage_secs", "actual_secs"},
        {"sample_count", "samples"},
        {"complete", "complete"},
    };
    const cJSON *name = json_get(row, "window");
    char field[160];

    if (!window || !cJSON_IsString(name) || strcmp(name->valuestring, window->string) != 0)
        return err_set(
            e, ERR_TRUST, "agreement.coverage",
            "the manifest's coverage names window %.60s, the report's windows have %.60s "
            "there",
            cJSON_IsString(name) ? name->valuestring : "(none)",
            window ? window->string : "(none)");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        (void) snprintf(field, sizeof field, "coverage of window %.60s, %s,", window->string,
                        keys[i][1]); /* fits */
        if (agreement_compare(field, json_get(row, keys[i][1]), "the report",
                              json_get(window, keys[i][0]), e) < 0)
            return -1;
    }
    return 0;
}

static int check_coverage(const struct manifest *m, const struct definition *d, const cJSON *report,
                          struct err *e)
{
    const cJSON *into = pointer_get(d->experiment, "/sampling/into");
    const cJSON *section = cJSON_IsString(into) ? pointer_get(report, into->valuestring) : NULL;
    const cJSON *windows = json_get(section, "windows");
    const cJSON *window = windows ? windows->child : NULL;
    const cJSON *rows = json_get(m->document, "coverage");
    const cJSON *row = rows ? rows->child : NULL;

    for (; window || row; window = window ? window->next : NULL, row = row ? row->next : NULL) {
        if (check_row(window, row, e) < 0)
            return -1;
    }
    return 0;
}

static int read_report(const struct agreement_reader *reader, const char *name, cJSON **out,
                       struct err *e)
{
    char path[LIMIT_RELNAME * 2];

    (void) snprintf(path, sizeof path, "results/%.*s", LIMIT_RELNAME, name); /* fits */
    return reader->read(reader->ctx, path, out, e);
}

static bool captured(const struct manifest *m)
{
    const cJSON *status = json_get(m->document, "report_status");

    return m->report && cJSON_IsString(status) && strcmp(status->valuestring, "CAPTURED") == 0;
}

static int check_report(const struct manifest *m, const struct definition *d,
                        const struct agreement_reader *reader, struct err *e)
{
    AUTO_JSON cJSON *report = NULL;

    if (captured(m) && read_report(reader, m->report, &report, e) < 0)
        return -1;
    return check_coverage(m, d, report, e);
}

/* A runner fails a run whose steps left no proof. */
static int check_proofs(const struct manifest *m, const struct definition *d,
                        const struct agreement_reader *reader, struct err *e)
{
    const cJSON *step = NULL;

    if (m->status != MANIFEST_PASS)
        return 0;
    cJSON_ArrayForEach(step, json_get(d->experiment, "conditioning")) {
        AUTO_JSON cJSON *report = NULL;
        const cJSON *proof = json_get(step, "proof");
        const cJSON *name = json_get(proof, "report");
        const cJSON *step_name = json_get(step, "name");
        const char *pointer = "";
        const char *lack;

        if (!cJSON_IsString(name) || !cJSON_IsString(step_name))
            continue;
        if (read_report(reader, name->valuestring, &report, e) < 0)
            return -1;
        lack = report ? proof_break(proof, report, &pointer) : "is not in the archive";
        if (lack)
            return err_set(e, ERR_TRUST, "agreement.proof",
                           "status PASS although conditioning step '%.60s' is unproven: %.100s of "
                           "%.100s %s",
                           step_name->valuestring, pointer, name->valuestring, lack);
    }
    return 0;
}

static bool has_snapshot(const struct manifest *m)
{
    for (size_t i = 0; i < m->n_files; i++) {
        if (strncmp(m->files[i].path, SNAPSHOT, strlen(SNAPSHOT)) == 0)
            return true;
    }
    return false;
}

static int check_snapshot(const struct manifest *m, const struct agreement_reader *reader,
                          struct err *e)
{
    const struct manifest_file *f = manifest_find(m, SNAPSHOT MANIFEST_NAME);
    const cJSON *named = json_get(m->document, "baseline");
    const cJSON *id = json_get(named, "id");
    const cJSON *stated = json_get(named, "manifest_sha256");
    AUTO_JSON cJSON *snapshot = NULL;
    const cJSON *run = NULL;
    char hex[DIGEST_HEX_SIZE];

    if (!cJSON_IsObject(named))
        return has_snapshot(m)
                   ? err_set(e, ERR_TRUST, "agreement.baseline",
                             "the manifest names no baseline, the archive holds a snapshot of one")
                   : 0;
    if (!f)
        return err_set(e, ERR_TRUST, "agreement.baseline",
                       "the manifest names baseline %.60s, the archive holds no snapshot of it",
                       cJSON_IsString(id) ? id->valuestring : "");
    digest_hex(&f->digest, hex);
    if (!cJSON_IsString(stated) || strcmp(stated->valuestring, hex) != 0)
        return err_set(e, ERR_TRUST, "agreement.baseline",
                       "the manifest's baseline/manifest_sha256 is %.64s, the snapshot has %s",
                       cJSON_IsString(stated) ? stated->valuestring : "null", hex);
    if (agreement_member(reader, SNAPSHOT MANIFEST_NAME, &snapshot, e) < 0)
        return -1;
    run = json_get(snapshot, "run");
    if (cJSON_IsString(run) && cJSON_IsString(id) && strncmp(id->valuestring, "b-", 2) == 0 &&
        strcmp(id->valuestring + 2, run->valuestring) == 0)
        return 0;
    return differs("baseline/id", id, "the snapshot's run", run, e);
}

int agreement_files(const struct manifest *m, const struct definition *d,
                    const struct agreement_reader *reader, struct err *e)
{
    if (check_environment(m, d, reader, e) < 0 || check_host(m, d, reader, e) < 0 ||
        check_report(m, d, reader, e) < 0 || check_proofs(m, d, reader, e) < 0)
        return -1;
    return check_snapshot(m, reader, e);
}
