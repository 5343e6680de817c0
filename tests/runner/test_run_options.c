/* Options of `cleanrun run` that change what is recorded or printed, up to evidence that verifies.
 */
#include <string.h>

#include "base/json_in.h"
#include "tests/runner/project.h"

static void expect(const struct test_run *r, int code)
{
    if (r->code != code)
        print_error("exit %d, not %d\nout: %s\nerr: %s\n", r->code, code, r->out, r->err);
    assert_int_equal(r->code, code);
}

static char *make_key(const struct project *p)
{
    char *keys = test_join(p->dir, "keys"), *key;
    struct test_run r;

    project_cleanrun(p, (const char *const[]){"key", "gen", "--out", keys, NULL}, NULL, &r);
    expect(&r, 0);
    test_run_fini(&r);
    key = test_join(keys, "key.pem");
    free(keys);
    return key;
}

static cJSON *read_out(const struct project *p, const char *name)
{
    char *path = project_out(p, name), *text;
    struct err e = ERR_INIT;
    cJSON *j = NULL;
    size_t len = 0;

    text = test_read_path(path, &len);
    assert_int_equal(json_parse(text, len, NULL, &j, &e), 0);
    free(text);
    free(path);
    return j;
}

/* The named project is in every document, so that the evidence can be sealed; what is measured is
 * the same. */
static void check_project(const char *in_the_file)
{
    struct project p;
    struct test_run r;

    project_new(&p, "ok", NULL);
    if (!in_the_file)
        project_edit(&p, "project: test/project\n", "");
    project_git(&p,
                (const char *const[]){"commit", "-q", "-a", "--allow-empty", "-m", "edit", NULL});
    char *key = make_key(&p), *archive = test_join(p.dir, "out.tar"),
         *pub = test_join(p.dir, "keys/pub.pem");

    project_measure(
        &p, (const char *const[]){"--project", "other/name", "--at", "HEAD", "--key", key, NULL},
        &r);
    expect(&r, 3);
    test_run_fini(&r);
    cJSON *manifest = read_out(&p, "manifest.json"), *definition = read_out(&p, "definition.json");

    assert_string_equal(json_get(manifest, "project")->valuestring, "other/name");
    assert_string_equal(json_get(definition, "project")->valuestring, "other/name");
    assert_string_equal(definition->child->next->next->string,
                        "project"); /* the canonical order of keys */
    project_cleanrun(&p, (const char *const[]){"verify", archive, "--key", pub, NULL}, NULL, &r);
    expect(&r, 0);
    test_run_fini(&r);
    cJSON_Delete(definition);
    cJSON_Delete(manifest);
    free(pub);
    free(archive);
    free(key);
    project_free(&p);
}

static void another_project_is_in_the_recorded_definition(void **state)
{
    (void) state;
    check_project("test/project");
    check_project(NULL);
}

static void a_project_that_is_none_is_refused(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    project_measure(&p, (const char *const[]){"--project", "no project", NULL}, &r);
    expect(&r, 2);
    assert_non_null(strstr(r.err, "'no project' is no project, owner/name"));
    test_run_fini(&r);
    project_free(&p);
}

static const char build[] = "command: [cc, -O1, -g, -o, workload, workload.c]";

/* FAIL with this fault, and evidence that verifies and holds the log as it was written. */
static void check_log(const struct project *p, const char *fault)
{
    struct test_run r;
    char *key = make_key(p), *archive = test_join(p->dir, "out.tar"),
         *pub = test_join(p->dir, "keys/pub.pem");

    project_measure(p, (const char *const[]){"--key", key, NULL}, &r);
    expect(&r, 4);
    if (!strstr(r.out, fault))
        fail_msg("no '%s' in %s", fault, r.out);
    test_run_fini(&r);
    project_cleanrun(p, (const char *const[]){"verify", archive, "--key", pub, NULL}, NULL, &r);
    expect(&r, 0);
    test_run_fini(&r);
    char *build_log = project_out(p, "build.log"), *run_log = project_out(p, "run.log");
    char *built = test_read_path(build_log, NULL), *ran = test_read_path(run_log, NULL);

    assert_int_equal(strncmp(built, "[cleanrun] $ ", 13), 0);
    assert_non_null(strstr(ran, "behaviour "));
    assert_non_null(strstr(ran, fault));
    free(ran);
    free(built);
    free(run_log);
    free(build_log);
    free(pub);
    free(archive);
    free(key);
}

static void logs_are_sealed_as_they_were_written(void **state)
{
    static const char *const behaviours[] = {"places-build-gone", "places-build-faked",
                                             "places-build-linked"};
    struct project p;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(behaviours); i++) {
        project_new(&p, behaviours[i], NULL);
        check_log(&p, "the program removed or changed build.log");
        project_free(&p);
    }
    project_new(&p, "ok", NULL);
    project_edit(&p, build,
                 "command: [sh, -c, 'echo fake >../out.partial/build.log; cc -O1 -g -o workload "
                 "workload.c']");
    check_log(&p, "the build removed or changed build.log");
    project_free(&p);
    project_new(&p, "ok", NULL);
    project_edit(
        &p, build,
        "command: [sh, -c, 'mv ../out.partial ../gone; cc -O1 -g -o workload workload.c']");
    check_log(&p, "the build moved or removed the run directory");
    project_free(&p);
    project_new(&p, "ok", NULL);
    project_edit(
        &p, "    phases:\n",
        "    conditioning:\n"
        "      - {name: warm, command: [sh, -c, 'rm {results}/../run.log; mkdir {results}/../x']}\n"
        "      - {name: again, command: ['true']}\n"
        "    phases:\n");
    check_log(&p, "conditioning step 'warm' removed or changed run.log");
    project_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_project_is_in_the_recorded_definition),
        cmocka_unit_test(logs_are_sealed_as_they_were_written),
        cmocka_unit_test(a_project_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
