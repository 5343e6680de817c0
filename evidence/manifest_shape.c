/* Closed objects, exact types: one table per object. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/relname.h"
#include "base/text.h"
#include "evidence/manifest.h"
#include "evidence/manifest_shape.h"

#define TEXT_MAX 4096
#define SIGNAL_MAX 64

typedef int (*checker)(const cJSON *value, struct err *e);

/* One member: required, and of a kind. */
struct member {
    const char *key;
    checker check;
};

static int refuse(struct err *e, const char *what, const cJSON *value)
{
    return err_set(e, ERR_INPUT, "manifest.value", "must be %s, is %s", what,
                   json_type_name(value));
}

static int check_members(const cJSON *object, const struct member *members, size_t n, struct err *e)
{
    const char *keys[32];

    if (!cJSON_IsObject(object))
        return refuse(e, "an object", object);
    if (n > ARRAY_LEN(keys))
        return err_set(e, ERR_INTERNAL, "manifest.table", "a table of members is too long");
    for (size_t i = 0; i < n; i++)
        keys[i] = members[i].key;
    if (json_only_keys(object, keys, n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const cJSON *value = json_get(object, members[i].key);

        if (!value)
            return err_set(e, ERR_INPUT, "manifest.missing", "'%s' is missing", members[i].key);
        if (members[i].check(value, e) < 0)
            return err_wrap(e, "'%s'", members[i].key);
    }
    return 0;
}

static int check_each(const cJSON *array, checker check, struct err *e)
{
    size_t n = 0;

    if (!cJSON_IsArray(array))
        return refuse(e, "an array", array);
    for (const cJSON *item = array->child; item; item = item->next, n++) {
        if (check(item, e) < 0)
            return err_wrap(e, "[%zu]", n);
    }
    return 0;
}

static const char *text_of(const cJSON *v)
{
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

static bool one_of(const cJSON *v, const char *const *words, size_t n)
{
    const char *s = text_of(v);

    for (size_t i = 0; s && i < n; i++) {
        if (strcmp(s, words[i]) == 0)
            return true;
    }
    return false;
}

static int any_object(const cJSON *v, struct err *e)
{
    return cJSON_IsObject(v) ? 0 : refuse(e, "an object", v);
}

static int object_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsObject(v) || cJSON_IsNull(v) ? 0 : refuse(e, "an object or null", v);
}

static int a_bool(const cJSON *v, struct err *e)
{
    return cJSON_IsBool(v) ? 0 : refuse(e, "true or false", v);
}

static int any_array(const cJSON *v, struct err *e)
{
    return cJSON_IsArray(v) ? 0 : refuse(e, "an array", v);
}

static int some_text(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && s[0] && strlen(s) <= TEXT_MAX ? 0 : refuse(e, "a text that is not empty", v);
}

static int any_text(const cJSON *v, struct err *e)
{
    return cJSON_IsString(v) ? 0 : refuse(e, "a text", v);
}

static int text_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsString(v) || cJSON_IsNull(v) ? 0 : refuse(e, "a text or null", v);
}

static int texts(const cJSON *v, struct err *e)
{
    return check_each(v, any_text, e);
}

static int text_map(const cJSON *v, struct err *e)
{
    if (!cJSON_IsObject(v))
        return refuse(e, "an object", v);
    for (const cJSON *item = v->child; item; item = item->next) {
        if (text_or_null(item, e) < 0)
            return err_wrap(e, "'%.100s'", item->string);
    }
    return 0;
}

static int count(const cJSON *v, struct err *e)
{
    return json_is_integer(v) && v->valuedouble >= 0 ? 0 : refuse(e, "a whole number from 0", v);
}

static int a_number(const cJSON *v, struct err *e)
{
    return cJSON_IsNumber(v) && isfinite(v->valuedouble) ? 0 : refuse(e, "a number", v);
}

static int number_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : a_number(v, e);
}

static int attempt(const cJSON *v, struct err *e)
{
    return json_is_integer(v) && v->valuedouble >= 1 ? 0 : refuse(e, "a whole number from 1", v);
}

static int exit_code(const cJSON *v, struct err *e)
{
    if (cJSON_IsNull(v) || (json_is_integer(v) && v->valuedouble >= 0 && v->valuedouble <= 255))
        return 0;
    return refuse(e, "an exit code from 0 to 255 or null", v);
}

static int signal_number(const cJSON *v, struct err *e)
{
    if (cJSON_IsNull(v) ||
        (json_is_integer(v) && v->valuedouble >= 1 && v->valuedouble <= SIGNAL_MAX))
        return 0;
    return refuse(e, "a signal number or null", v);
}

static int hash(const cJSON *v, struct err *e)
{
    struct digest ignored;
    const char *s = text_of(v);

    return s && digest_parse(s, &ignored) ? 0 : refuse(e, "64 lower-case hex digits", v);
}

static int hash_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : hash(v, e);
}

/* A git object id, SHA-1 or SHA-256. */
static int object_id(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);
    size_t n = s ? strlen(s) : 0;

    return (n == 40 || n == 64) && text_is_hex(s, n)
               ? 0
               : refuse(e, "40 or 64 lower-case hex digits", v);
}

static int object_ids(const cJSON *v, struct err *e)
{
    return check_each(v, object_id, e);
}

static int stamp(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);
    int64_t ignored = 0;

    if (!s || !clock_parse_rfc3339(s, &ignored) || s[strlen(s) - 1] != 'Z')
        return refuse(e, "a time in UTC like 2026-11-29T14:15:02Z", v);
    return 0;
}

static int schema_name(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"cleanrun-manifest/2"};

    return one_of(v, words, ARRAY_LEN(words)) ? 0 : refuse(e, "\"cleanrun-manifest/2\"", v);
}

static int source_schema(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"cleanrun-source/1"};

    return one_of(v, words, ARRAY_LEN(words)) ? 0 : refuse(e, "\"cleanrun-source/1\"", v);
}

static int source_scheme(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"cleanrun-source/1", "rvoip-v1"};

    return one_of(v, words, ARRAY_LEN(words)) ? 0 : refuse(e, "a known fingerprint scheme", v);
}

static int project(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && text_is_project(s) ? 0 : refuse(e, "a project, owner/name", v);
}

static int gate(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && text_is_slug(s) ? 0 : refuse(e, "a gate's name", v);
}

static int name(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && text_is_name(s) ? 0 : refuse(e, "a name", v);
}

static int run_id(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && text_is_run_id(s) ? 0 : refuse(e, "a run id", v);
}

static int run_id_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : run_id(v, e);
}

static int relname(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && relname_ok(s) ? 0 : refuse(e, "an allowed relative file name", v);
}

static int relname_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : relname(v, e);
}

/* A file's own name, without any directory. */
static int base_name(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && s[0] && strlen(s) <= 255 && !strchr(s, '/')
               ? 0
               : refuse(e, "a file name without directories", v);
}

static int mode(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"clean", "cpu", "timing", "memory", "boundary"};

    return one_of(v, words, ARRAY_LEN(words))
               ? 0
               : refuse(e, "clean, cpu, timing, memory or boundary", v);
}

static int status(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"BUILD_ONLY", "PASS", "FAIL"};

    return one_of(v, words, ARRAY_LEN(words)) ? 0 : refuse(e, "BUILD_ONLY, PASS or FAIL", v);
}

static int report_status(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"NOT_EXPECTED", "MISSING", "INVALID", "CAPTURED"};

    return one_of(v, words, ARRAY_LEN(words))
               ? 0
               : refuse(e, "NOT_EXPECTED, MISSING, INVALID or CAPTURED", v);
}

static int acceptance_status(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"PASS", "FAIL", "NOT_APPLICABLE"};

    return one_of(v, words, ARRAY_LEN(words)) ? 0 : refuse(e, "PASS, FAIL or NOT_APPLICABLE", v);
}

static int audit_status(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"OK", "REGRESSION", "NON_COMPARABLE", "NOT_APPLICABLE"};

    return one_of(v, words, ARRAY_LEN(words))
               ? 0
               : refuse(e, "OK, REGRESSION, NON_COMPARABLE or NOT_APPLICABLE", v);
}

static int resolved(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"path", "cargo-messages", "meson-introspection"};

    return one_of(v, words, ARRAY_LEN(words))
               ? 0
               : refuse(e, "path, cargo-messages or meson-introspection", v);
}

static int role(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && manifest_role_known(s) ? 0 : refuse(e, "a known role", v);
}

static int file_size(const cJSON *v, struct err *e)
{
    if (count(v, e) < 0)
        return -1;
    if (v->valuedouble > (double) LIMIT_MEMBER)
        return err_set(e, ERR_LIMIT, "manifest.size", "is larger than a member may be");
    return 0;
}

static int definition(const cJSON *v, struct err *e)
{
    static const struct member members[] = {{"experiment_sha256", hash}, {"policy_sha256", hash}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int source_block(const cJSON *v, struct err *e)
{
    static const struct member members[] = {
        {"schema", source_schema}, {"scheme", source_scheme}, {"commit", object_id},
        {"tree", object_id},       {"parents", object_ids},   {"dirty", a_bool},
        {"fingerprint", hash},     {"files", count},          {"untracked", count},
    };

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int source(const cJSON *v, struct err *e)
{
    static const struct member members[] = {
        {"start", source_block}, {"end", source_block}, {"unchanged", a_bool}, {"ignored", count}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int mapped_file(const cJSON *v, struct err *e)
{
    static const struct member members[] = {{"name", some_text}, {"sha256", hash}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int mapped_files(const cJSON *v, struct err *e)
{
    return check_each(v, mapped_file, e);
}

static int executable(const cJSON *v, struct err *e)
{
    static const struct member members[] = {{"name", base_name},
                                            {"sha256", hash},
                                            {"size", count},
                                            {"resolved", resolved},
                                            {"mapped", mapped_files}};

    return cJSON_IsNull(v) ? 0 : check_members(v, members, ARRAY_LEN(members), e);
}

static int build(const cJSON *v, struct err *e)
{
    static const struct member members[] = {{"command", texts},
                                            {"exit_code", exit_code},
                                            {"environment", text_map},
                                            {"rejected_patterns", texts},
                                            {"profile", any_object}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int environment(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : text_map(v, e);
}

static int machine(const cJSON *v, struct err *e)
{
    static const struct member members[] = {{"facts", text_map}, {"readings", any_object}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int interference(const cJSON *v, struct err *e)
{
    static const struct member members[] = {{"before", object_or_null}, {"during", object_or_null}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int baseline(const cJSON *v, struct err *e)
{
    static const struct member members[] = {
        {"id", some_text}, {"evidence_sha256", hash_or_null}, {"manifest_sha256", hash_or_null}};

    return cJSON_IsNull(v) ? 0 : check_members(v, members, ARRAY_LEN(members), e);
}

static int conditioning(const cJSON *v, struct err *e)
{
    static const struct member members[] = {{"steps", any_array}, {"sha256", hash}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int phase_marker(const cJSON *v, struct err *e)
{
    static const struct member members[] = {
        {"phase", some_text}, {"kind", some_text}, {"elapsed_ms", a_number}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int phase_markers(const cJSON *v, struct err *e)
{
    return check_each(v, phase_marker, e);
}

static int coverage_window(const cJSON *v, struct err *e)
{
    static const struct member members[] = {{"window", some_text},
                                            {"requested_secs", number_or_null},
                                            {"actual_secs", number_or_null},
                                            {"samples", count},
                                            {"complete", a_bool}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int coverage(const cJSON *v, struct err *e)
{
    return check_each(v, coverage_window, e);
}

static int runner(const cJSON *v, struct err *e)
{
    static const struct member members[] = {{"version", some_text}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int file_entry(const cJSON *v, struct err *e)
{
    static const struct member members[] = {
        {"path", relname}, {"size", file_size}, {"sha256", hash}, {"role", role}};

    return check_members(v, members, ARRAY_LEN(members), e);
}

static int files(const cJSON *v, struct err *e)
{
    if (cJSON_IsArray(v) && cJSON_GetArraySize(v) > LIMIT_MEMBERS - 1)
        return err_set(e, ERR_LIMIT, "manifest.files", "lists %d files; the limit is %d",
                       cJSON_GetArraySize(v), LIMIT_MEMBERS - 1);
    return check_each(v, file_entry, e);
}

static const struct member manifest_members[] = {
    {"schema", schema_name},
    {"project", project},
    {"gate", gate},
    {"class", name},
    {"run", run_id},
    {"mode", mode},
    {"status", status},
    {"attempt", attempt},
    {"started_at", stamp},
    {"finished_at", stamp},
    {"exit_code", exit_code},
    {"signal", signal_number},
    {"report_status", report_status},
    {"report", relname_or_null},
    {"acceptance_status", acceptance_status},
    {"audit_status", audit_status},
    {"definition", definition},
    {"source", source},
    {"executable", executable},
    {"build", build},
    {"environment", environment},
    {"machine", machine},
    {"interference", interference},
    {"ticket", object_or_null},
    {"baseline", baseline},
    {"conditioning", conditioning},
    {"phase_markers", phase_markers},
    {"coverage", coverage},
    {"control", run_id_or_null},
    {"runner", runner},
    {"files", files},
};

int manifest_shape(const cJSON *document, struct err *e)
{
    return check_members(document, manifest_members, ARRAY_LEN(manifest_members), e);
}
