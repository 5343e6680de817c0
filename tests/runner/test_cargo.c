/* A project that cargo builds, from the command to the run: `cargo` is a stand-in that says what a
 * real one said (captured messages, with the paths of this checkout) and leaves a program where
 * they point. */
#include "tests/runner/project.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "base/json_in.h"

#define DEPS "target/debug/deps/"

/* Arguments arrive as they stand in the definition; the exit is the third captured file's own. */
static const char script[] =
    "#!/bin/sh\n"
    "set -e\n"
    "test \"$*\" = 'test --no-run --message-format json'\n"
    "mkdir -p " DEPS " target/release\n"
    "cc -O1 -g -o " DEPS "helloworld-c3a78d6ebb21ba3f workload.c\n"
    /* other variants beside it, newer: never to be chosen */
    "printf 'int main(void) { return 3; }\\n' >target/other.c\n"
    "cc -o " DEPS "helloworld-ffffffffffffffff target/other.c\n"
    "cp " DEPS "helloworld-ffffffffffffffff target/release/helloworld\n"
    "for f in %s; do\n"
    "    sed \"s|/build/cj/collector/compile-benchmarks/helloworld|$PWD|g\" \"%s/$f\"\n"
    "done\n"
    "exit %d\n";

static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    char *out = NULL;
    int before = 0;

    if (!at)
        fail_msg("no '%s'", from);
    before = (int) (at - text);
    if (asprintf(&out, "%.*s%s%s", before, text, to, text + before + strlen(from)) < 0)
        fail_msg("out of memory");
    return out;
}

/* The fixture's project, built by cargo. */
static void cargo_project(struct project *p)
{
    static const char *const add[] = {"add", "-A", NULL};
    static const char *const commit[] = {"commit", "-qm", "cargo", NULL};

    project_new(p, "ok", NULL);
    char *file = test_join(p->repo, "cleanrun.yaml"), *text = test_read_path(file, NULL);
    char *first = replaced(
        text, "command: [cc, -O1, -g, -o, workload, workload.c]",
        "command: [cargo, test, --no-run, --message-format, json]\n      messages: cargo-json\n"
        "      profile: {file: Cargo.toml, section: profile.release, expect: {debug: true}}");
    char *second =
        replaced(first, "{from: path, path: workload}",
                 "{from: cargo-messages, target: helloworld, kind: bin, src_path: src/main.rs}");

    test_write_text(p->repo, "cleanrun.yaml", second);
    test_write_text(p->repo, "Cargo.toml",
                    "[package]\nname = \"helloworld\"\nversion = "
                    "\"0.1.0\"\n\n[profile.release]\ndebug = true\n");
    test_write_text(p->repo, "src/main.rs", "fn main() {}\n");
    test_write_text(p->repo, ".gitignore", "/target/\n");
    project_git(p, add);
    project_git(p, commit);
    free(file);
    free(text);
    free(first);
    free(second);
}

/* Runs it with a cargo that prints these captured files. */
static void measure(const struct project *p, const char *messages, const char *files, int exit_code,
                    struct test_run *r)
{
    char *tools = test_join(p->dir, "tools"), *tool = test_join(tools, "cargo"), *text = NULL,
         *path = NULL;
    const char *out_args[] = {"run", "g", "--out", NULL, NULL};
    char *out = project_out(p, "");

    assert_true(asprintf(&text, script, files, messages, exit_code) > 0);
    test_write_text(tools, "cargo", text);
    assert_int_equal(chmod(tool, 0755), 0);
    assert_true(asprintf(&path, "PATH=%s:%s", tools, getenv("PATH")) > 0);
    const char *const env[] = {path, NULL};

    out_args[3] = out;
    project_cleanrun(p, out_args, env, r);
    free(tools);
    free(tool);
    free(text);
    free(path);
    free(out);
}

static void the_program_that_cargo_names_is_measured(void **state)
{
    char *messages = test_shared("data/formats/cargo-json");
    struct project p;
    struct test_run r;
    struct err e = ERR_INIT;
    cJSON *manifest = NULL;

    (void) state;
    if (!messages)
        skip();
    cargo_project(&p);
    measure(&p, messages, "helloworld-test-norun.ndjson", 0, &r);
    if (r.code != 3)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 3); /* measured; no baseline yet */
    test_run_fini(&r);
    char *file = project_out(&p, "manifest.json"), *kept = project_out(&p, "build-messages.jsonl");
    size_t len = 0;
    char *text = test_read_path(file, &len), *said = test_read_path(kept, NULL);

    assert_int_equal(json_parse(text, len, NULL, &manifest, &e), 0);
    const cJSON *executable = json_get(manifest, "executable");

    assert_string_equal(json_get(executable, "name")->valuestring, "helloworld-c3a78d6ebb21ba3f");
    assert_string_equal(json_get(executable, "resolved")->valuestring, "cargo-messages");
    assert_string_equal(json_get(manifest, "acceptance_status")->valuestring, "PASS");
    /* cargo's words are kept, without the place of the checkout */
    assert_non_null(strstr(said, "\"reason\":\"build-finished\",\"success\":true"));
    assert_non_null(strstr(said, "{source}/" DEPS "helloworld-c3a78d6ebb21ba3f"));
    assert_null(strstr(said, p.dir));
    cJSON_Delete(manifest);
    free(file);
    free(kept);
    free(text);
    free(said);
    free(messages);
    project_free(&p);
}

/* Nothing is measured when the messages do not name one program of a finished build. */
static void what_cargo_does_not_say_clearly_is_an_error(void **state)
{
    static const struct {
        const char *files;
        int exit_code;
        int answer; /* 2: the definition names no program, or too many */
        const char *words;
    } rows[] = {
        {"build-failed.ndjson", 101, 6, "build"},
        {"build-failed.ndjson", 0, 6, ""}, /* though it ends well */
        {"helloworld-build.ndjson helloworld-test-norun.ndjson", 0, 2,
         "cleanrun.yaml:10:7: expected exactly one"},
        /* another one */
        {"await-call-tree-lib.ndjson", 0, 2, "cleanrun.yaml:10:7: expected exactly one"},
    };
    char *messages = test_shared("data/formats/cargo-json");

    (void) state;
    if (!messages)
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct project p;
        struct test_run r;
        struct stat st;

        cargo_project(&p);
        measure(&p, messages, rows[i].files, rows[i].exit_code, &r);
        if (r.code != rows[i].answer || !strstr(r.err, rows[i].words))
            print_error("%s: %d: %s%s\n", rows[i].files, r.code, r.out, r.err);
        assert_int_equal(r.code, rows[i].answer);
        assert_non_null(strstr(r.err, rows[i].words));
        char *results = project_out(&p, "results/s/p.json");

        assert_int_equal(stat(results, &st), -1);
        free(results);
        test_run_fini(&r);
        project_free(&p);
    }
    free(messages);
}

/* What the release profile would be is part of the experiment: another one is refused before the
 * build. */
static void another_release_profile_is_refused_before_the_build(void **state)
{
    static const char *const commit[] = {"commit", "-qam", "thin", NULL};
    char *messages = test_shared("data/formats/cargo-json");
    struct project p;
    struct test_run r;

    (void) state;
    if (!messages)
        skip();
    cargo_project(&p);
    test_write_text(
        p.repo, "Cargo.toml",
        "[package]\nname = \"helloworld\"\nversion = \"0.1.0\"\n\n[profile.release]\ndebug = 1\n");
    project_git(&p, commit);
    measure(&p, messages, "helloworld-test-norun.ndjson", 0, &r);
    if (r.code == 3 || !strstr(r.err, "profile.release"))
        print_error("%d: %s%s\n", r.code, r.out, r.err);
    assert_int_not_equal(r.code, 3);
    assert_int_not_equal(r.code, 0);
    assert_non_null(strstr(r.err, "profile.release"));
    char *target = test_join(p.repo, "target");
    struct stat st;

    assert_int_equal(stat(target, &st), -1);
    free(target);
    test_run_fini(&r);
    free(messages);
    project_free(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_that_cargo_names_is_measured),
        cmocka_unit_test(what_cargo_does_not_say_clearly_is_an_error),
        cmocka_unit_test(another_release_profile_is_refused_before_the_build),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/cargo", tests, NULL, NULL);
}
