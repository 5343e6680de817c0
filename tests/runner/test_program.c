/* The command line: help, "did you mean", completion, and the small commands, through the real
 * entry point. */
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "audit/verdict.h"
#include "base/json_in.h"
#include "runner/cli.h"
#include "runner/program.h"

struct said {
    int code;
    char *out, *err;
};

static void said_fini(struct said *s)
{
    free(s->out);
    free(s->err);
}

/* program_main with a NULL-ended list of words after "cleanrun". */
static void say(struct said *s, const char *const words[])
{
    static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", home[] = "HOME=/nonexistent";
    char *const environment[] = {path, home, NULL};
    char *argv[32] = {strdup("cleanrun")};
    size_t out_len = 0, err_len = 0;
    int argc = 1;
    struct cli c = {.command = "", .directory = ".", .environment = environment};

    *s = (struct said){.code = -1};
    c.out = open_memstream(&s->out, &out_len);
    c.err = open_memstream(&s->err, &err_len);
    assert_true(c.out && c.err);
    for (; words[argc - 1]; argc++) {
        assert_true(argc < 31);
        argv[argc] = strdup(words[argc - 1]);
    }
    s->code = program_main(&c, argc, argv);
    assert_int_equal(fclose(c.out), 0);
    assert_int_equal(fclose(c.err), 0);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
}

#define SAY(s, ...) say((s), (const char *const[]){__VA_ARGS__, NULL})

static void assert_said(const struct said *s, int code, const char *out, const char *err)
{
    if (s->code != code || (out && !strstr(s->out, out)) || (err && !strstr(s->err, err)))
        print_error("exit %d\nout: %s\nerr: %s\n", s->code, s->out, s->err);
    assert_int_equal(s->code, code);
    assert_true(!out || strstr(s->out, out));
    assert_true(!err || strstr(s->err, err));
}

static void help_is_complete_and_examples_come_first(void **state)
{
    struct said s;

    (void) state;
    SAY(&s, "help");
    for (size_t i = 0; command_table[i]; i++)
        assert_non_null(strstr(s.out, command_table[i]->name));
    said_fini(&s);
    for (size_t i = 0; command_table[i]; i++) {
        const struct command *cmd = command_table[i];
        const char *space = strchr(cmd->name, ' ');
        char *first = strndup(cmd->name, strcspn(cmd->name, " "));

        if (space)
            SAY(&s, first, space + 1, "--help");
        else
            SAY(&s, first, "--help");
        free(first);
        assert_said(&s, 0, "usage: cleanrun", NULL);
        assert_non_null(strstr(s.out, cmd->summary));
        for (size_t k = 0; k < cmd->n_options; k++)
            assert_non_null(strstr(s.out, cmd->options[k].name));
        if (cmd->examples)
            assert_true(strstr(s.out, cmd->examples) < strstr(s.out, "usage:"));
        said_fini(&s);
    }
}

static void every_topic_and_reason_has_help(void **state)
{
    static const char *const topics[] = {"exit-codes", "environment", "identity", "reasons",
                                         "definition"};
    struct said s;

    (void) state;
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        SAY(&s, "help", topics[i]);
        assert_int_equal(s.code, 0);
        assert_true(strlen(s.out) > 200);
        said_fini(&s);
    }
    for (size_t i = 0; i < reasons_count; i++) {
        SAY(&s, "help", reasons_table[i].code);
        assert_said(&s, 0, reasons_table[i].resolve, NULL);
        said_fini(&s);
    }
}

static void mistakes_are_usage_with_a_suggestion(void **state)
{
    struct said s;

    (void) state;
    SAY(&s, "rum");
    assert_said(&s, 2, NULL, "did you mean 'run'?");
    said_fini(&s);
    SAY(&s, "help", "exitcodes");
    assert_said(&s, 2, NULL, "did you mean 'exit-codes'?");
    said_fini(&s);
    SAY(&s, "help", "XYZ");
    assert_said(&s, 2, NULL,
                "no topic 'XYZ'\ntopics: exit-codes environment identity reasons definition");
    said_fini(&s);
    SAY(&s, "help", "key", "bogus");
    assert_said(&s, 2, NULL, "no topic 'key bogus'");
    said_fini(&s);
    SAY(&s, "run", "--frobnicate");
    assert_said(&s, 2, NULL, "unknown option --frobnicate; cleanrun run --help lists them");
    said_fini(&s);
    SAY(&s, "run", "-x");
    assert_said(&s, 2, NULL, "unknown option -x; cleanrun run --help lists them");
    said_fini(&s);
    SAY(&s, "key", "bogus");
    assert_said(&s, 2, NULL, "no command 'key bogus'");
    assert_non_null(strstr(s.err, "cleanrun key show"));
    said_fini(&s);
    SAY(&s, "run", "--bulid-only");
    assert_said(&s, 2, NULL, "did you mean --build-only?");
    said_fini(&s);
    SAY(&s, "key");
    assert_said(&s, 2, NULL, "cleanrun key gen");
    said_fini(&s);
    SAY(&s, "key", "--help");
    assert_said(&s, 0, "cleanrun key gen", NULL);
    said_fini(&s);
    SAY(&s, "help", "--help");
    assert_said(&s, 0, "Commands:", NULL);
    said_fini(&s);
    SAY(&s, "run", "--mode");
    assert_said(&s, 2, NULL, "--mode needs MODE");
    said_fini(&s);
    SAY(&s, "run", "--json=1");
    assert_said(&s, 2, NULL, "takes no value");
    said_fini(&s);
    SAY(&s, "run", "--out", "a", "--out", "b");
    assert_said(&s, 2, NULL, "given twice");
    said_fini(&s);
    SAY(&s, "run", "a", "b");
    assert_said(&s, 2, NULL, "'b' is one argument too many; usage: cleanrun run");
    said_fini(&s);
    SAY(&s, "seal");
    assert_said(&s, 2, NULL, "an argument is missing; usage: cleanrun seal");
    said_fini(&s);
    SAY(&s, "--version");
    assert_said(&s, 0, "cleanrun 0.", NULL);
    said_fini(&s);
    say(&s, (const char *const[]){NULL});
    assert_int_equal(s.code, 2);
    said_fini(&s);
}

static void completion_is_bash_that_knows_every_option(void **state)
{
    struct said s;
    struct test_run r;

    (void) state;
    SAY(&s, "completion", "bash");
    assert_said(&s, 0, "complete -o filenames -F _cleanrun cleanrun", NULL);
    static const char script[] =
        "eval \"$0\"; "
        "COMP_WORDS=(cleanrun ru); COMP_CWORD=1; _cleanrun; echo \"1 ${COMPREPLY[*]}\"; "
        "COMP_WORDS=(cleanrun key ''); COMP_CWORD=2; _cleanrun; echo \"2 ${COMPREPLY[*]}\"; "
        "COMP_WORDS=(cleanrun run --bas); COMP_CWORD=2; _cleanrun; echo \"3 ${COMPREPLY[*]}\"";
    const char *const check[] = {"bash", "-c", script, s.out, NULL};

    test_run(check, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out,
                        "1 run\n2 gen show\n3 --baseline --baseline-sha256 --baseline-key\n");
    test_run_fini(&r);
    said_fini(&s);
    SAY(&s, "completion", "fish");
    assert_said(&s, 2, NULL, "only bash");
    said_fini(&s);
}

static void init_writes_what_check_accepts(void **state)
{
    static const char *const files[] = {"meson.build", "Cargo.toml", "CMakeLists.txt", "Makefile"};
    struct said s;

    (void) state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *dir = test_dir_new(), *file = test_join(dir, "cleanrun.yaml");
        cJSON *j = NULL;
        struct err e = ERR_INIT;

        SAY(&s, "init", "-C", dir);
        assert_said(&s, 2, NULL, "no meson.build");
        said_fini(&s);
        test_write_text(dir, files[i], "");
        SAY(&s, "init", "-C", dir, "--gate", "g-1", "--project", "o/p", "--target", "prog");
        assert_said(&s, 0, NULL, "wrote cleanrun.yaml");
        said_fini(&s);
        SAY(&s, "check", file, "--json");
        assert_said(&s, 0, "\"g-1\"", NULL);
        assert_int_equal(json_parse(s.out, strlen(s.out), NULL, &j, &e), 0);
        assert_int_equal(
            strlen(json_get(json_get(j, "gates")->child, "experiment_sha256")->valuestring), 64);
        cJSON_Delete(j);
        said_fini(&s);
        SAY(&s, "-C", dir, "check", "--canonical");
        assert_said(&s, 0, "cleanrun-definition/1", NULL);
        said_fini(&s);
        SAY(&s, "init", "-C", dir);
        assert_int_equal(s.code, 2); /* never overwrites */
        said_fini(&s);
        free(file);
        test_dir_free(dir);
    }
}

static void files_that_are_none_are_named(void **state)
{
    char *dir = test_dir_new(), *csv = test_join(dir, "x.csv"), *key = test_join(dir, "key.pem");
    struct said s;

    (void) state;
    test_write_text(dir, "x.csv", "a,b\n");
    SAY(&s, "leak", csv, "--limit", "1");
    assert_said(&s, 2, NULL, csv);
    said_fini(&s);
    SAY(&s, "show", dir);
    assert_said(&s, 2, NULL, "is no run directory");
    said_fini(&s);
    SAY(&s, "key", "gen", "--out", dir);
    assert_said(&s, 0, "fingerprint", NULL);
    said_fini(&s);
    SAY(&s, "seal", dir, "--key", key, "--out", csv);
    assert_int_equal(s.code, 2);
    assert_non_null(strstr(s.err, dir));
    said_fini(&s);
    SAY(&s, "key", "gen", "--out", dir);
    assert_said(&s, 2, NULL, dir);
    said_fini(&s);
    free(csv);
    free(key);
    test_dir_free(dir);
}

/* PATH stands in line 6, FACT in line 7, the metrics from line 11. */
#define DEFINITION(PATH, FACT, GATED)                                                              \
    "version: 1\n"                                                                                 \
    "gates:\n"                                                                                     \
    "  g:\n"                                                                                       \
    "    class: c\n"                                                                               \
    "    build:\n"                                                                                 \
    "      executable: {from: path, path: " PATH "}\n"                                             \
    "      " FACT "\n"                                                                             \
    "      command: [make]\n"                                                                      \
    "    run: {command: ['{executable}'], report: s/1.json}\n"                                     \
    "    audit:\n"                                                                                 \
    "      metrics: [{path: /a, unit: s, worse: higher, tolerance_pct: 1, " GATED "}]\n"           \
    "      paths: {required: [s/1.json]}\n"                                                        \
    "    identity: [{path: /n, require: required}]\n"                                              \
    "    accept: {}\n"

static void check_tells_where_a_definition_is_wrong(void **state)
{
    char *dir = test_dir_new(), *file = test_join(dir, "cleanrun.yaml");
    struct said s;

    (void) state;
    test_write_text(dir, "cleanrun.yaml", "version: 1\ngates:\n  g:\n    clas: x\n");
    SAY(&s, "check", file);
    assert_said(&s, 2, NULL, "cleanrun.yaml:4:5");
    assert_non_null(strstr(s.err, "did you mean 'class'"));
    said_fini(&s);
    test_write_text(dir, "cleanrun.yaml",
                    DEFINITION("app", "toolchain: [cc, --version]", "gated: false"));
    SAY(&s, "check", file);
    assert_said(&s, 2, NULL, "cleanrun.yaml:11:7: at least one metric must be gated");
    said_fini(&s);
    test_write_text(dir, "cleanrun.yaml",
                    DEFINITION("/usr/bin/app", "toolchain: [cc, --version]", "gated: true"));
    SAY(&s, "check", file);
    assert_said(&s, 2, NULL,
                "cleanrun.yaml:6:32: '/usr/bin/app' must lie below the root of the source");
    said_fini(&s);
    test_write_text(dir, "cleanrun.yaml",
                    DEFINITION("a/../../app", "toolchain: [cc, --version]", "gated: true"));
    SAY(&s, "check", file);
    assert_said(&s, 2, NULL, "'a/../../app' must lie below the root of the source");
    said_fini(&s);
    /* Sound, but no run of it could be compared. */
    test_write_text(dir, "cleanrun.yaml",
                    DEFINITION("..app/b..c", "allocator: malloc", "gated: true"));
    SAY(&s, "check", file);
    assert_said(&s, 0, "experiment ",
                "cleanrun.yaml:5:5: warning: gate g: build.toolchain is missing");
    assert_null(strstr(s.err, "build.allocator"));
    assert_non_null(strstr(s.err, "cleanrun.yaml:14:5: warning: gate g: accept holds no check"));
    said_fini(&s);
    SAY(&s, "check", file, "--json");
    assert_said(&s, 0, "\"text\": \"build.toolchain is missing", NULL);
    assert_null(strstr(s.out, "build.allocator"));
    said_fini(&s);
    test_write_text(dir, "cleanrun.yaml",
                    DEFINITION("app", "allocator: malloc",
                               "reports: [s/1.json, S/1.json]}, {path: /b, unit: s, worse: lower, "
                               "tolerance_pct: 100"));
    SAY(&s, "check", file);
    assert_said(&s, 0, NULL,
                "cleanrun.yaml:11:90: warning: gate g: no report of audit.paths.required is "
                "'S/1.json'");
    assert_non_null(strstr(s.err, "cleanrun.yaml:11:136: warning: gate g: 100 % or more"));
    said_fini(&s);
    SAY(&s, "check", file, "--json");
    assert_said(&s, 0, "cleanrun.yaml:11:90", NULL);
    said_fini(&s);
    SAY(&s, "check", "--schema");
    assert_said(&s, 0, "https://json-schema.org/draft/2020-12/schema", NULL);
    said_fini(&s);
    free(file);
    test_dir_free(dir);
}

static void fingerprint_and_doctor_speak_json(void **state)
{
    char *dir = test_dir_new();
    struct said s;
    struct err e = ERR_INIT;
    cJSON *j = NULL;
    const char *const make[] = {
        "sh", "-c",
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x", NULL};
    struct test_run r;

    (void) state;
    SAY(&s, "fingerprint", dir);
    assert_said(&s, 2, NULL, "is in no git repository");
    said_fini(&s);
    test_run(make, NULL, dir, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    SAY(&s, "fingerprint", dir, "--json");
    assert_int_equal(s.code, 0);
    assert_int_equal(json_parse(s.out, strlen(s.out), NULL, &j, &e), 0);
    assert_int_equal(cJSON_GetArraySize(j), 10);
    assert_true(cJSON_IsFalse(json_get(j, "dirty")));
    assert_true(cJSON_IsNumber(json_get(j, "ignored")));
    cJSON_Delete(j);
    said_fini(&s);
    SAY(&s, "fingerprint", dir, "--scheme", "nonsense");
    assert_int_equal(s.code, 2);
    said_fini(&s);
    SAY(&s, "doctor", "--json");
    assert_true(s.code == 0 || s.code == 4);
    assert_int_equal(json_parse(s.out, strlen(s.out), NULL, &j, &e), 0);
    assert_true(cJSON_GetArraySize(json_get(j, "checks")) >= 10);
    cJSON_Delete(j);
    said_fini(&s);
    test_dir_free(dir);
}

static void broken_standard_output_is_no_success(void **state)
{
    char *program = test_join(test_build_root(), "runner/cleanrun");
    const char *const argv[] = {"sh", "-c", "\"$0\" help > /dev/full", program, NULL};
    struct test_run r;

    (void) state;
    if (access(program, X_OK) != 0) {
        free(program);
        skip();
    }
    test_run(argv, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 2);
    test_run_fini(&r);
    free(program);
}

/* No part of the definition is left without a word. */
static void every_part_of_the_definition_is_explained(void **state)
{
    static const char *const parts[] = {"build", "run", "modes", "host", "repeats", "confirm"};
    struct said s;

    (void) state;
    SAY(&s, "help", "definition");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char key[32];
        const char *at;

        (void) snprintf(key, sizeof key, "\n  %s ", parts[i]);
        at = strstr(s.out, key);
        assert_non_null(at);
        at += 17; /* the key's column */
        at += strncmp(at, "(required) ", 11) == 0 ? 11 : 0;
        if (strcspn(at, "\n") < 20)
            fail_msg("%s is not explained: %.40s", parts[i], at);
    }
    said_fini(&s);
}

/* A pipe, a device or a directory where a file is wanted: refused at once, never waited for. */
static void files_that_are_none_are_refused(void **state)
{
    char *dir = test_dir_new();
    char *pipe_path = test_join(dir, "pipe");
    const char *const odd[] = {pipe_path, "/dev/zero", dir};
    const char *const definition = "examples/rvoip-sip/cleanrun.yaml";
    char *good = test_join(test_source_root(), definition);
    char *empty = test_join(dir, "empty");
    char *token = test_join(dir, "token");
    char *out = test_join(dir, "out");

    (void) state;
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(mkdir(empty, 0755), 0);
    test_write_text(dir, "token", "crt_x\n");
    assert_int_equal(chmod(token, 0600), 0);
    test_write_text(dir, "file", "x\n");
    char *file = test_join(dir, "file");

    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        const char *const f = odd[i];
        const char *const calls[][14] = {
            {"check", f},
            {"accept", "--definition", good, "--gate", "call-setup-2k", f},
            {"accept", "--definition", f, "--gate", "call-setup-2k", file},
            {"audit", "--definition", f, "--gate", "call-setup-2k", "--baseline", empty,
             "--current", empty},
            {"audit", "--definition", good, "--gate", "call-setup-2k", "--baseline", empty,
             "--current", empty, "--baseline-manifest", f},
            {"leak", f, "--limit", "10"},
            {"baseline", "verify", f},
            {"baseline", "package", f, "--out", out},
            {"verify", f, "--key", file},
            {"verify", file, "--key", f},
            {"verify", file, "--attestation", f},
            {"key", "show", f},
            {"seal", empty, "--key", f, "--out", out},
            {"push", f, "--server", "http://127.0.0.1:9", "--token-file", token},
            {"push", file, "--server", "http://127.0.0.1:9", "--token-file", f},
            {"package", empty, "--count", "1", "--source-at-start", file, "--out", out, "--key", f},
            {"package", "verify", empty, "--key", f},
        };

        for (size_t k = 0; k < ARRAY_LEN(calls); k++) {
            struct said s;

            (void) alarm(60); /* instead of waiting for ever */
            say(&s, calls[k]);
            (void) alarm(0);
            /* a baseline that is no file is a broken baseline */
            if (s.code != (strcmp(calls[k][0], "baseline") == 0 ? 5 : 2) || !*s.err)
                fail_msg("%s %s … %s: exit %d\n%s%s", calls[k][0], calls[k][1], f, s.code, s.out,
                         s.err);
            said_fini(&s);
        }
    }
    free(file);
    free(token);
    free(out);
    free(empty);
    free(good);
    free(pipe_path);
    test_dir_free(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_is_complete_and_examples_come_first),
        cmocka_unit_test(every_topic_and_reason_has_help),
        cmocka_unit_test(mistakes_are_usage_with_a_suggestion),
        cmocka_unit_test(completion_is_bash_that_knows_every_option),
        cmocka_unit_test(init_writes_what_check_accepts),
        cmocka_unit_test(files_that_are_none_are_named),
        cmocka_unit_test(check_tells_where_a_definition_is_wrong),
        cmocka_unit_test(fingerprint_and_doctor_speak_json),
        cmocka_unit_test(broken_standard_output_is_no_success),
        cmocka_unit_test(every_part_of_the_definition_is_explained),
        cmocka_unit_test(files_that_are_none_are_refused),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/program", tests, NULL, NULL);
}
