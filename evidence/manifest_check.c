/* What the parts of a manifest say about each other. Shape is checked first: after it every member
 * has its type. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "evidence/manifest.h"
#include "evidence/manifest_shape.h"
#include "evidence/names.h"

static const char *text_of(const cJSON *v)
{
    return cJSON_IsString(v) ? v->valuestring : "";
}

static bool is(const cJSON *d, const char *key, const char *word)
{
    return strcmp(text_of(json_get(d, key)), word) == 0;
}

static bool is_null(const cJSON *d, const char *key)
{
    return cJSON_IsNull(json_get(d, key));
}

static bool exited_with_0(const cJSON *d)
{
    const cJSON *code = json_get(d, "exit_code");

    return cJSON_IsNumber(code) && code->valuedouble < 0.5;
}

static bool built(const cJSON *d)
{
    return exited_with_0(json_get(d, "build"));
}

static int contradiction(struct err *e, const char *text)
{
    return err_set(e, ERR_INPUT, "manifest.contradiction", "%s", text);
}

static int check_times(const cJSON *d, struct err *e)
{
    int64_t start = 0;
    int64_t end = 0;

    if (!clock_parse_rfc3339(text_of(json_get(d, "started_at")), &start) ||
        !clock_parse_rfc3339(text_of(json_get(d, "finished_at")), &end) || start > end)
        return contradiction(e, "finished_at lies before started_at");
    return 0;
}

static int check_source(const cJSON *d, struct err *e)
{
    static const char *const keys[] = {"scheme", "commit", "tree", "dirty", "fingerprint"};
    static const char *const ends[] = {"start", "end"};
    const cJSON *s = json_get(d, "source");
    bool same = true;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        same = same && json_equal(json_get(json_get(s, "start"), keys[i]),
                                  json_get(json_get(s, "end"), keys[i]));
    if (same != cJSON_IsTrue(json_get(s, "unchanged")))
        return contradiction(e,
                             "source.unchanged does not say what source.start and source.end show");
    if (same && !json_equal(json_get(s, "start"), json_get(s, "end")))
        return contradiction(e, "source.start and source.end have one fingerprint and differ");
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const cJSON *block = json_get(s, ends[i]);

        if (json_get(block, "untracked")->valuedouble > 0 &&
            cJSON_IsFalse(json_get(block, "dirty")))
            return contradiction(e, "a source with untracked files is not clean");
    }
    return 0;
}

static const cJSON *find_file(const cJSON *d, const char *prefix, const char *path)
{
    size_t n = strlen(prefix);

    for (const cJSON *f = json_get(d, "files")->child; f; f = f->next) {
        const char *p = text_of(json_get(f, "path"));

        if (strncmp(p, prefix, n) == 0 && strcmp(p + n, path) == 0)
            return f;
    }
    return NULL;
}

static int check_report(const cJSON *d, struct err *e)
{
    bool captured = is(d, "report_status", "CAPTURED");
    const cJSON *file;

    if (is_null(d, "report"))
        return captured ? contradiction(e, "report_status is CAPTURED without a report") : 0;
    if (!captured && !is(d, "report_status", "INVALID"))
        return contradiction(e, "a report is named that report_status says does not exist");
    file = find_file(d, "results/", text_of(json_get(d, "report")));
    if (!file)
        return contradiction(e, "the report is not among the files below results/");
    if (!is(file, "role", captured ? "report" : "raw-report"))
        return contradiction(e, captured ? "the captured report's role is not report"
                                         : "the invalid report's role is not raw-report");
    return 0;
}

static int check_outcome_files(const cJSON *d, struct err *e)
{
    bool accepted = !is(d, "acceptance_status", "NOT_APPLICABLE");
    bool audited = !is(d, "audit_status", "NOT_APPLICABLE");

    if (!find_file(d, "", "definition.json"))
        return contradiction(e, "definition.json is not among the files");
    if (accepted != (find_file(d, "", "acceptance.json") != NULL))
        return contradiction(e, "acceptance_status and the presence of acceptance.json disagree");
    if (audited != (find_file(d, "", "audit.json") != NULL))
        return contradiction(e, "audit_status and the presence of audit.json disagree");
    if (is(d, "acceptance_status", "PASS") && !is(d, "report_status", "CAPTURED"))
        return contradiction(e, "acceptance PASS without a captured report");
    return 0;
}

static int check_build_only(const cJSON *d, struct err *e)
{
    if (!is_null(d, "exit_code") || !is_null(d, "signal") || !is_null(d, "report") ||
        !is(d, "report_status", "NOT_EXPECTED") || !is(d, "acceptance_status", "NOT_APPLICABLE") ||
        !is(d, "audit_status", "NOT_APPLICABLE"))
        return contradiction(
            e, "a BUILD_ONLY run has no exit code, signal, report, acceptance or audit");
    return 0;
}

static int check_pass(const cJSON *d, struct err *e)
{
    if (!exited_with_0(d) || !is_null(d, "signal"))
        return contradiction(e, "status PASS although the program did not exit with 0");
    if (!cJSON_IsTrue(json_get(json_get(d, "source"), "unchanged")))
        return contradiction(e, "status PASS although the source changed during the run");
    if (is_null(d, "executable"))
        return contradiction(e, "status PASS without an executable");
    if (!built(d))
        return contradiction(e, "status PASS although the build did not exit with 0");
    if (is(d, "acceptance_status", "FAIL"))
        return contradiction(e, "status PASS although acceptance is FAIL");
    if (is(d, "report_status", "MISSING") || is(d, "report_status", "INVALID"))
        return contradiction(e, "status PASS although the report is missing or invalid");
    if (!is(d, "mode", "clean"))
        return 0;
    if (!is(d, "report_status", "CAPTURED"))
        return contradiction(e, "status PASS of a clean run without a captured report");
    if (!is(d, "acceptance_status", "PASS"))
        return contradiction(e, "status PASS of a clean run without acceptance PASS");
    return 0;
}

static int check_outcome(const cJSON *d, struct err *e)
{
    if (!is_null(d, "exit_code") && !is_null(d, "signal"))
        return contradiction(e, "a program that died of a signal has no exit code");
    if (is(d, "mode", "clean") && !is_null(d, "control"))
        return contradiction(e, "a clean run has no control run");
    if (check_report(d, e) < 0 || check_outcome_files(d, e) < 0)
        return -1;
    if (is(d, "status", "BUILD_ONLY"))
        return check_build_only(d, e);
    return is(d, "status", "PASS") ? check_pass(d, e) : 0;
}

static bool under(const char *path, const char *directory)
{
    return strncmp(path, directory, strlen(directory)) == 0;
}

/* Roles decide how a member is read, so a name may not hide behind another role. */
static int check_role(const cJSON *file, struct err *e)
{
    static const char *const single[] = {"definition", "source",         "acceptance",
                                         "audit",      "audit-markdown", "baseline"};
    const char *path = text_of(json_get(file, "path"));
    const char *standard = manifest_role_of(path);
    bool in_results = under(path, "results/");

    if (standard && !in_results && !is(file, "role", standard))
        return err_set(e, ERR_INPUT, "manifest.role", "'%s' must have the role %s", path, standard);
    if (in_results != (is(file, "role", "report") || is(file, "role", "raw-report")))
        return err_set(e, ERR_INPUT, "manifest.role",
                       "'%s': reports, and nothing else, lie below results/", path);
    for (size_t i = 0; !standard && i < ARRAY_LEN(single); i++) {
        if (is(file, "role", single[i]))
            return err_set(e, ERR_INPUT, "manifest.role",
                           "'%s' cannot have the role of a standard file", path);
    }
    return 0;
}

static int check_file_list(const cJSON *d, struct err *e)
{
    const cJSON *list = json_get(d, "files");
    AUTO_FREE const char **paths = calloc(LIMIT_MEMBERS, sizeof *paths);
    double total = 0;
    size_t n = 0;

    if (!paths)
        return err_set(e, ERR_NOMEM, "manifest.memory", "no memory for a list of files");
    for (const cJSON *f = list->child; f && n < LIMIT_MEMBERS - 1; f = f->next) {
        const char *path = text_of(json_get(f, "path"));

        if (strcmp(path, MANIFEST_NAME) == 0)
            return err_set(e, ERR_INPUT, "manifest.self", "the manifest lists itself");
        if (n > 0 && strcmp(paths[n - 1], path) >= 0)
            return err_set(e, ERR_INPUT, "manifest.order", "'%s' is not in byte order after '%s'",
                           path, paths[n - 1]);
        if (check_role(f, e) < 0)
            return -1;
        total += json_get(f, "size")->valuedouble;
        paths[n++] = path;
    }
    if (n == 0)
        return err_set(e, ERR_INPUT, "manifest.empty", "the list of files is empty");
    if (total > (double) LIMIT_ARCHIVE)
        return err_set(e, ERR_LIMIT, "manifest.total",
                       "the files are larger than an archive may be");
    paths[n] = MANIFEST_NAME; /* a name that differs from it only in case, or lies below it, is
                                 refused too */
    return names_check(paths, n + 1, e);
}

int manifest_check(const cJSON *document, struct err *e)
{
    if (manifest_shape(document, e) < 0 || check_times(document, e) < 0 ||
        check_source(document, e) < 0 || check_file_list(document, e) < 0)
        return -1;
    return check_outcome(document, e);
}
