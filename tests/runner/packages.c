#include "tests/runner/packages.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/json_in.h"
#include "tests/evidence/fixture.h"
#include "tests/runner/run_command.h"

const char *const packages_require_all[] = {"--require-clean",
                                            "--require-unchanged-source",
                                            "--require-no-skips",
                                            "--require-pass",
                                            "--count",
                                            "3",
                                            NULL};

void packages_make(const struct release *r, const char *const args[], int code)
{
    const char *argv[32] = {"package", "--source-at-start", r->start, "--out", r->out};
    struct command_result result;
    size_t n = 5;

    for (size_t i = 0; args[i]; i++)
        argv[n++] = args[i];
    run_command(&command_package, argv, &result);
    if (result.code != code)
        fail_msg("package: exit %d\n%s%s", result.code, result.out, result.err);
    command_result_fini(&result);
}

void packages_copy(const struct release *from, struct release *r)
{
    const char *argv[] = {"chmod", "-R", "u+w", NULL, NULL};
    struct test_run opened;

    release_copy(from, r);
    argv[3] = r->dir;
    test_run(argv, NULL, NULL, NULL, &opened);
    assert_int_equal(opened.code, 0);
    test_run_fini(&opened);
}

cJSON *packages_verify(const char *dir, const char *const more[], int *out_code)
{
    const char *argv[16] = {"verify", dir, "--json"};
    struct command_result r;
    cJSON *j = NULL;
    size_t n = 3;

    for (size_t i = 0; more && more[i]; i++)
        argv[n++] = more[i];
    run_command(&command_package_verify, argv, &r);
    *out_code = r.code;
    if (r.out && r.out[0])
        MUST(json_parse(r.out, strlen(r.out), NULL, &j, E));
    command_result_fini(&r);
    return j;
}

void packages_expect_exit(const char *what, const char *dir, const char *const more[], int code)
{
    int found = -1;
    cJSON *j = packages_verify(dir, more, &found);

    if (found != code) {
        size_t len = 0;
        char *text = j ? fixture_text(j, &len) : NULL;

        fail_msg("%s: expected exit %d, found %d: %s", what, code, found, text ? text : "");
    }
    json_free(j);
}

void packages_expect_invalid(const char *what, const char *dir, const char *stage, const char *text)
{
    int code = -1;
    cJSON *j = packages_verify(dir, NULL, &code);
    const cJSON *s = NULL;
    const char *failed = "none";
    const char *detail = "";

    cJSON_ArrayForEach(s, json_get(j, "stages")) {
        if (strcmp(json_get(s, "result")->valuestring, "failed") == 0) {
            failed = json_get(s, "name")->valuestring;
            detail = json_get(s, "detail")->valuestring;
        }
    }
    if (code != 5 || strcmp(failed, stage) != 0 || !strstr(detail, text))
        fail_msg("%s: expected stage %s to fail with '%s', found exit %d, stage %s: %s", what,
                 stage, text, code, failed, detail);
    assert_true(
        cJSON_IsNull(json_get(j, "eligibility"))); /* nothing is claimed of a broken package */
    json_free(j);
}

static void redo_checksum(const struct release *r)
{
    char *path = test_join(r->out, "index.json");
    size_t len = 0;
    char *bytes = test_read_path(path, &len);
    struct digest d = digest_of(bytes, len);
    char hex[DIGEST_HEX_SIZE];
    char line[128];

    digest_hex(&d, hex);
    (void) snprintf(line, sizeof line, "%s  index.json\n", hex);
    test_write_text(r->out, "index.json.sha256", line);
    free(bytes);
    free(path);
}

void packages_rewrite(const struct release *r, const char *pointer, const char *json)
{
    release_edit(r->out, "index.json", pointer, json);
    redo_checksum(r);
}

void packages_remove_file(const struct release *r, const char *name)
{
    char *path = test_join(r->out, name);

    assert_int_equal(unlink(path), 0);
    free(path);
}

void packages_relist(const struct release *r)
{
    const char *const argv[] = {"find", ".", "-type", "f", "-printf", "%P\n", NULL};
    struct test_run found;
    cJSON *index = release_json(r->out, "index.json");
    cJSON *files = cJSON_CreateArray();
    const char *names[512];
    size_t n = 0;

    test_run(argv, NULL, r->out, NULL, &found);
    for (char *line = found.out; *line;) {
        size_t len = strcspn(line, "\n");

        line[len] = '\0';
        if (strncmp(line, "index.json", 10) != 0)
            names[n++] = line;
        line += len + 1;
        assert_true(n < 512);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (strcmp(names[k], names[i]) < 0) {
                const char *other = names[i];

                names[i] = names[k];
                names[k] = other;
            }
    for (size_t i = 0; i < n; i++) {
        char *path = test_join(r->out, names[i]);
        size_t len = 0;
        char *bytes = test_read_path(path, &len);
        struct digest d = digest_of(bytes, len);
        char hex[DIGEST_HEX_SIZE];
        cJSON *row = cJSON_CreateObject();

        digest_hex(&d, hex);
        assert_non_null(cJSON_AddStringToObject(row, "path", names[i]));
        assert_non_null(cJSON_AddNumberToObject(row, "size", (double) len));
        assert_non_null(cJSON_AddStringToObject(row, "sha256", hex));
        assert_true(cJSON_AddItemToArray(files, row));
        free(bytes);
        free(path);
    }
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(index, "files", files));
    release_write_json(r->out, "index.json", index);
    redo_checksum(r);
    json_free(index);
    test_run_fini(&found);
}
