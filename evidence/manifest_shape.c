/* Closed objects, exact types: one table per object. */
#include "evidence/manifest_shape.h"

#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "evidence/manifest.h"
#include "evidence/shape.h"

#define SIGNAL_MAX 64

static int attempt(const cJSON *v, struct err *e)
{
    return json_is_integer(v) && v->valuedouble >= 1 ? 0
                                                     : shape_refuse(e, "a whole number from 1", v);
}

static int exit_code(const cJSON *v, struct err *e)
{
    if (cJSON_IsNull(v) || (json_is_integer(v) && v->valuedouble >= 0 && v->valuedouble <= 255))
        return 0;
    return shape_refuse(e, "an exit code from 0 to 255 or null", v);
}

static int signal_number(const cJSON *v, struct err *e)
{
    if (cJSON_IsNull(v) ||
        (json_is_integer(v) && v->valuedouble >= 1 && v->valuedouble <= SIGNAL_MAX))
        return 0;
    return shape_refuse(e, "a signal number or null", v);
}

/* A file's own name, without any directory. */
static int base_name(const cJSON *v, struct err *e)
{
    const char *s = cJSON_GetStringValue(v);

    return s && s[0] && strlen(s) <= 255 && !strchr(s, '/')
               ? 0
               : shape_refuse(e, "a file name without directories", v);
}

static int schema_name(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"cleanrun-manifest/2"};

    return shape_one_of(v, words, ARRAY_LEN(words)) ? 0
                                                    : shape_refuse(e, "\"cleanrun-manifest/2\"", v);
}

static int source_schema(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"cleanrun-source/1"};

    return shape_one_of(v, words, ARRAY_LEN(words)) ? 0
                                                    : shape_refuse(e, "\"cleanrun-source/1\"", v);
}

static int source_scheme(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"cleanrun-source/1", "rvoip-v1"};

    return shape_one_of(v, words, ARRAY_LEN(words))
               ? 0
               : shape_refuse(e, "a known fingerprint scheme", v);
}

static int mode(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"clean", "cpu", "timing", "memory", "boundary"};

    return shape_one_of(v, words, ARRAY_LEN(words))
               ? 0
               : shape_refuse(e, "clean, cpu, timing, memory or boundary", v);
}

static int status(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"BUILD_ONLY", "PASS", "FAIL"};

    return shape_one_of(v, words, ARRAY_LEN(words))
               ? 0
               : shape_refuse(e, "BUILD_ONLY, PASS or FAIL", v);
}

static int report_status(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"NOT_EXPECTED", "MISSING", "INVALID", "CAPTURED"};

    return shape_one_of(v, words, ARRAY_LEN(words))
               ? 0
               : shape_refuse(e, "NOT_EXPECTED, MISSING, INVALID or CAPTURED", v);
}

static int acceptance_status(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"PASS", "FAIL", "NOT_APPLICABLE"};

    return shape_one_of(v, words, ARRAY_LEN(words))
               ? 0
               : shape_refuse(e, "PASS, FAIL or NOT_APPLICABLE", v);
}

static int audit_status(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"OK", "REGRESSION", "NON_COMPARABLE", "NOT_APPLICABLE"};

    return shape_one_of(v, words, ARRAY_LEN(words))
               ? 0
               : shape_refuse(e, "OK, REGRESSION, NON_COMPARABLE or NOT_APPLICABLE", v);
}

static int resolved(const cJSON *v, struct err *e)
{
    static const char *const words[] = {"path", "cargo-messages", "meson-introspection"};

    return shape_one_of(v, words, ARRAY_LEN(words))
               ? 0
               : shape_refuse(e, "path, cargo-messages or meson-introspection", v);
}

static int role(const cJSON *v, struct err *e)
{
    const char *s = cJSON_GetStringValue(v);

    return s && manifest_role_known(s) ? 0 : shape_refuse(e, "a known role", v);
}

static int file_size(const cJSON *v, struct err *e)
{
    if (shape_count(v, e) < 0)
        return -1;
    if (v->valuedouble > (double) LIMIT_MEMBER)
        return err_set(e, ERR_LIMIT, "manifest.size", "is larger than a member may be");
    return 0;
}

static int definition(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"experiment_sha256", shape_hash},
                                                  {"policy_sha256", shape_hash}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int source_block(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {
        {"schema", source_schema},   {"scheme", source_scheme},     {"commit", shape_object_id},
        {"tree", shape_object_id},   {"parents", shape_object_ids}, {"dirty", shape_bool},
        {"fingerprint", shape_hash}, {"files", shape_count},        {"untracked", shape_count},
    };

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int source(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"start", source_block},
                                                  {"end", source_block},
                                                  {"unchanged", shape_bool},
                                                  {"ignored", shape_count}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int mapped_file(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"name", shape_some_text},
                                                  {"sha256", shape_hash}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int mapped_files(const cJSON *v, struct err *e)
{
    return shape_each(v, mapped_file, e);
}

static int executable(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"name", base_name},
                                                  {"sha256", shape_hash},
                                                  {"size", shape_count},
                                                  {"resolved", resolved},
                                                  {"mapped", mapped_files}};

    return cJSON_IsNull(v) ? 0 : shape_object(v, members, ARRAY_LEN(members), e);
}

static int build(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"command", shape_texts},
                                                  {"exit_code", exit_code},
                                                  {"environment", shape_text_map},
                                                  {"rejected_patterns", shape_texts},
                                                  {"profile", shape_any_object}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int environment(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : shape_text_map(v, e);
}

static int machine(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"facts", shape_text_map},
                                                  {"readings", shape_any_object}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int interference(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"before", shape_object_or_null},
                                                  {"during", shape_object_or_null}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int baseline(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"id", shape_some_text},
                                                  {"evidence_sha256", shape_hash_or_null},
                                                  {"manifest_sha256", shape_hash_or_null}};

    return cJSON_IsNull(v) ? 0 : shape_object(v, members, ARRAY_LEN(members), e);
}

static int conditioning(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"steps", shape_any_array},
                                                  {"sha256", shape_hash}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int phase_marker(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {
        {"phase", shape_some_text}, {"kind", shape_some_text}, {"elapsed_ms", shape_number}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int phase_markers(const cJSON *v, struct err *e)
{
    return shape_each(v, phase_marker, e);
}

static int coverage_window(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"window", shape_some_text},
                                                  {"requested_secs", shape_number_or_null},
                                                  {"actual_secs", shape_number_or_null},
                                                  {"samples", shape_count},
                                                  {"complete", shape_bool}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int coverage(const cJSON *v, struct err *e)
{
    return shape_each(v, coverage_window, e);
}

static int runner(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {{"version", shape_some_text}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int file_entry(const cJSON *v, struct err *e)
{
    static const struct shape_member members[] = {
        {"path", shape_relname}, {"size", file_size}, {"sha256", shape_hash}, {"role", role}};

    return shape_object(v, members, ARRAY_LEN(members), e);
}

static int files(const cJSON *v, struct err *e)
{
    if (cJSON_IsArray(v) && cJSON_GetArraySize(v) > LIMIT_MEMBERS - 1)
        return err_set(e, ERR_LIMIT, "manifest.files", "lists %d files; the limit is %d",
                       cJSON_GetArraySize(v), LIMIT_MEMBERS - 1);
    return shape_each(v, file_entry, e);
}

static const struct shape_member manifest_members[] = {
    {"schema", schema_name},
    {"project", shape_project},
    {"gate", shape_gate},
    {"class", shape_name},
    {"run", shape_run_id},
    {"mode", mode},
    {"status", status},
    {"attempt", attempt},
    {"started_at", shape_stamp},
    {"finished_at", shape_stamp},
    {"exit_code", exit_code},
    {"signal", signal_number},
    {"report_status", report_status},
    {"report", shape_relname_or_null},
    {"acceptance_status", acceptance_status},
    {"audit_status", audit_status},
    {"definition", definition},
    {"source", source},
    {"executable", executable},
    {"build", build},
    {"environment", environment},
    {"machine", machine},
    {"interference", interference},
    {"ticket", shape_object_or_null},
    {"baseline", baseline},
    {"conditioning", conditioning},
    {"phase_markers", phase_markers},
    {"coverage", coverage},
    {"control", shape_run_id_or_null},
    {"runner", runner},
    {"files", files},
};

int manifest_shape(const cJSON *document, struct err *e)
{
    return shape_object(document, manifest_members, ARRAY_LEN(manifest_members), e);
}
