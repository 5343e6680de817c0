/* The administration commands as an operator calls them. */
#include "tests/server/store_fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json_in.h"

static char *program(void)
{
    return test_join(test_build_root(), "server/cleanrun-server");
}

/* Runs the command with --data; words are separated by '|'. */
static int admin(const char *data, const char *words, char **out, char **err_out)
{
    AUTO_FREE char *exe = program();
    AUTO_FREE char *copy = strdup(words);
    const char *argv[32] = {exe};
    struct test_run r;
    size_t n = 1;
    char *save = NULL;
    int code;

    for (char *w = strtok_r(copy, "|", &save); w && n < 28; w = strtok_r(NULL, "|", &save))
        argv[n++] = w;
    argv[n++] = "--data";
    argv[n++] = data;
    test_run(argv, NULL, NULL, NULL, &r);
    code = r.code;
    if (out)
        *out = strdup(r.out);
    if (err_out)
        *err_out = strdup(r.err);
    if (!out && !err_out && code != 0)
        print_message("%s: exit %d: %s%s\n", words, code, r.out, r.err);
    test_run_fini(&r);
    return code;
}

static void expect_text(const char *data, const char *words, int code, const char *text)
{
    char *out = NULL;
    char *err = NULL;
    int got = admin(data, words, &out, &err);

    if (got != code)
        fail_msg("%s: exit %d, not %d: %s%s", words, got, code, out, err);
    if (text && !strstr(out, text) && !strstr(err, text))
        fail_msg("%s: no '%s' in '%s%s'", words, text, out, err);
    free(out);
    free(err);
}

struct place {
    char *dir;
    char *data;
    char *pem; /* path */
    struct private_key *key;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    AUTO_FREE char *text = NULL;

    assert_non_null(p);
    p->dir = test_dir_new();
    p->data = test_join(p->dir, "data");
    p->key = package_key_new();
    text = package_key_pem(p->key);
    test_write_text(p->dir, "pub.pem", text);
    p->pem = test_join(p->dir, "pub.pem");
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    private_key_free(p->key);
    test_dir_free(p->dir);
    free(p->data);
    free(p->pem);
    free(p);
    return 0;
}

static void add_runner(const struct place *p)
{
    AUTO_FREE char *words = NULL;

    assert_true(asprintf(&words, "runner|add|metal-01|--class|%s|--key|%s|--project|%s",
                         PACKAGE_CLASS, p->pem, PACKAGE_PROJECT) > 0);
    expect_text(p->data, "project|add|" PACKAGE_PROJECT, 0, NULL);
    expect_text(p->data, words, 0, NULL);
}

/* One stored run, as a server would have made it. */
static void store_run_of(const struct place *p, const struct package_options *o,
                         struct package *out)
{
    struct store_fixture f = {.data = p->data, .key = p->key};
    struct store_project project;
    struct ingest_result r;

    MUST(store_open(p->data, STORE_SERVE, 2, &f.store, E));
    MUST(store_project_get(f.store, PACKAGE_PROJECT, &project, E));
    f.project_id = project.id;
    package_make(o, p->key, out);
    store_fixture_push(&f, out, &r);
    if (r.outcome != INGEST_STORED)
        fail_msg("not stored: %s", r.err.text);
    ingest_result_fini(&r);
    store_close(f.store);
}

static void projects_runners_and_tokens(void **state)
{
    struct place *p = *state;
    char *out = NULL;
    char *err = NULL;
    AUTO_FREE char *other = NULL;
    AUTO_FREE char *slow = NULL;

    add_runner(p);
    expect_text(p->data, "project|add|" PACKAGE_PROJECT, 2, "exists");
    expect_text(p->data, "project|add|nothing", 2, "OWNER/NAME");
    expect_text(p->data, "project|add|some/thing.json", 2, "the name not ending in .json .txt");
    expect_text(p->data,
                "baseline|retire|20261130T081017Z-fe64244d|--project|" PACKAGE_PROJECT
                "|--reviewer|r|--reason|why",
                2, "baseline list has the ids: b- and the run's id");
    expect_text(p->data, "project|add|demo/secret|--private", 0, NULL);
    expect_text(p->data, "project|list", 0, "demo/secret\tprivate");
    expect_text(p->data, "project|set|demo/secret|--public|--deadline|60|--tickets|required", 0,
                NULL);
    expect_text(p->data, "project|list", 0, "demo/secret\tpublic\ttickets required\tdeadline 60 s");
    expect_text(p->data, "runner|list", 0, "metal-01\tdemo\t");
    assert_true(asprintf(&other, "runner|add|metal-02|--class|demo|--key|%s|--project|%s", p->pem,
                         PACKAGE_PROJECT) > 0);
    expect_text(p->data, other, 2, "this key belongs to runner 'metal-01' (class demo)");
    expect_text(p->data, other, 2, "cleanrun key gen");
    assert_true(asprintf(&slow, "runner|add|metal-01|--class|slow|--key|%s|--project|%s", p->pem,
                         PACKAGE_PROJECT) > 0);
    expect_text(p->data, slow, 2, "with this key in class 'demo', not 'slow'");
    expect_text(p->data, slow, 2, "cleanrun-server runner revoke metal-01");
    expect_text(p->data, "runner|add|x|--class|demo|--key|/nowhere|--project|" PACKAGE_PROJECT, 2,
                "/nowhere");
    expect_text(p->data, "runner|revoke|metal-01", 2, "--reason");
    expect_text(p->data, "runner|revoke|metal-01|--reason|sold|--since|2026-01-02T03:04:05Z", 0,
                NULL);
    expect_text(p->data, "runner|list", 0, "revoked since 2026-01-02T03:04:05Z: sold");
    assert_int_equal(
        admin(p->data, "token|add|ci|--scope|upload|--project|" PACKAGE_PROJECT, &out, &err), 0);
    assert_int_equal(strncmp(out, "clr_", 4), 0);
    assert_int_equal(strlen(out), 69); /* a line with nothing else */
    free(out);
    free(err);
    expect_text(p->data, "token|add|ci|--scope|upload", 2, "exists");
    expect_text(p->data, "token|add|x|--scope|write", 2, "read, upload, review or admin");
    expect_text(p->data, "token|list", 0, "ci\tupload\t" PACKAGE_PROJECT);
    expect_text(p->data, "token|revoke|ci", 0, NULL);
    expect_text(p->data, "token|revoke|ci", 2, "no token");
    expect_text(p->data, "log", 0, "runner.revoke\tmetal-01\tsold");
    expect_text(p->data, "log", 0,
                "private → public, tickets optional → required, deadline 86400 s → 60 s");
    expect_text(p->data, "log", 0, "runner.add\tmetal-01\t" PACKAGE_PROJECT ", class demo, key ");
}

/* A revocation that is said again never gives back what the first one took. */
static void revocation_only_moves_to_earlier_times(void **state)
{
    struct place *p = *state;
    char future[CLOCK_RFC3339_SIZE];
    AUTO_FREE char *later = NULL;

    add_runner(p);
    clock_rfc3339(clock_realtime_us() + INT64_C(3600) * 1000000, false, future);
    assert_true(asprintf(&later, "runner|revoke|metal-01|--reason|typo|--since|%s", future) > 0);
    expect_text(p->data, later, 2, "is in the future");
    expect_text(p->data, "runner|revoke|metal-01|--reason|odd|--since|1970-01-01T00:00:00Z", 2,
                "1970");
    expect_text(p->data, "runner|revoke|metal-01|--reason|odd|--since|1969-12-31T23:59:59Z", 2,
                "1970");
    expect_text(p->data, "runner|list", 0, "seen -\t" PACKAGE_PROJECT "\n");
    expect_text(p->data, "runner|revoke|metal-01|--reason|leaked|--since|2026-01-02T03:04:05Z", 0,
                "revoked since 2026-01-02T03:04:05Z");
    expect_text(p->data, "runner|revoke|metal-01|--reason|to be sure", 0,
                "was revoked since 2026-01-02T03:04:05Z already, and that stays");
    expect_text(p->data, "runner|revoke|metal-01|--reason|and so|--since|2026-01-02T03:04:06Z", 0,
                "was revoked since 2026-01-02T03:04:05Z already, and that stays");
    expect_text(p->data, later, 2, "is in the future");
    expect_text(p->data, "runner|list", 0, "revoked since 2026-01-02T03:04:05Z: leaked");
    expect_text(p->data, "runner|revoke|metal-01|--reason|earlier|--since|2025-12-31T00:00:00Z", 0,
                "revoked since 2025-12-31T00:00:00Z");
    expect_text(p->data, "runner|list", 0, "revoked since 2025-12-31T00:00:00Z: earlier");
    expect_text(p->data, "log", 0, "metal-01\tleaked (since 2026-01-02T03:04:05Z)");
    expect_text(p->data, "log", 0,
                "metal-01\tto be sure (stays revoked since 2026-01-02T03:04:05Z)");
    expect_text(p->data, "log", 0, "metal-01\tearlier (since 2025-12-31T00:00:00Z)");
    expect_text(p->data, "runner|revoke|nobody|--reason|x", 2, "there is no runner 'nobody'");
}

/* Limits that are said and do not hold would leave a key open. */
static void limits_of_a_known_runner_hold_or_are_refused(void **state)
{
    struct place *p = *state;
    AUTO_FREE char *again = NULL;
    AUTO_FREE char *before = NULL;
    AUTO_FREE char *same = NULL;

    add_runner(p);
    expect_text(p->data, "project|add|demo/other", 0, NULL);
    assert_true(asprintf(&again,
                         "runner|add|metal-01|--class|%s|--key|%s|--project|demo/other|"
                         "--not-after|2027-01-01T00:00:00Z",
                         PACKAGE_CLASS, p->pem) > 0);
    assert_true(asprintf(&before,
                         "runner|add|metal-01|--class|%s|--key|%s|--project|demo/other|"
                         "--not-before|2026-01-01T00:00:00Z",
                         PACKAGE_CLASS, p->pem) > 0);
    expect_text(p->data, again, 2, "its key is valid -..-");
    expect_text(p->data, again, 2, "cleanrun-server runner set metal-01");
    expect_text(p->data, before, 2, "cleanrun-server runner set metal-01");
    expect_text(p->data, "runner|list", 0, "valid -..-\tseen -\t" PACKAGE_PROJECT "\n");
    expect_text(p->data, "runner|set|metal-01", 2, "what to set?");
    expect_text(p->data, "runner|set|metal-01|--not-after|soon", 2, "must be a time");
    expect_text(p->data, "runner|set|metal-01|--not-after|1970-01-01T00:00:00Z", 2, "1970");
    expect_text(p->data, "runner|set|nobody|--not-after|none", 2, "there is no runner 'nobody'");
    expect_text(p->data, "runner|set|metal-01|--not-after|2027-01-01T00:00:00Z", 0, NULL);
    expect_text(p->data, "runner|list", 0, "valid -..2027-01-01T00:00:00Z");
    expect_text(p->data, "runner|set|metal-01|--not-before|2027-01-01T00:00:00Z", 2,
                "ends before it begins");
    expect_text(p->data, "runner|set|metal-01|--not-before|2026-01-01T00:00:00Z", 0, NULL);
    expect_text(p->data, "runner|list", 0, "valid 2026-01-01T00:00:00Z..2027-01-01T00:00:00Z");
    expect_text(p->data, again, 0, NULL); /* the same limit: one more project */
    assert_true(asprintf(&same, "runner|add|metal-01|--class|%s|--key|%s|--project|demo/other",
                         PACKAGE_CLASS, p->pem) > 0);
    expect_text(p->data, same, 0, NULL); /* none named: they stay */
    expect_text(p->data, "runner|list", 0, "..2027-01-01T00:00:00Z\tseen -\tdemo/");
    expect_text(p->data, "runner|set|metal-01|--not-before|none|--not-after|none", 0, NULL);
    expect_text(p->data, "runner|list", 0, "valid -..-");
    expect_text(p->data, "log", 0, "runner.set\tmetal-01\tvalid -..- → -..2027-01-01T00:00:00Z");
    expect_text(p->data, "runner|revoke|metal-01|--reason|sold", 0, NULL);
    expect_text(p->data, "runner|set|metal-01|--not-after|none", 2, "is revoked");
}

/* Of two values one would be dropped, and nobody would know which. */
static void no_option_is_taken_twice(void **state)
{
    struct place *p = *state;
    AUTO_FREE char *add = NULL;
    static const struct {
        const char *words;
        const char *text;
    } cases[] = {
        {"token|add|x|--scope|read|--scope|admin", "--scope is given twice"},
        {"token|add|x|--scope=read|--scope|read", "--scope is given twice"},
        {"token|add|x|--scope|read|--project|a/b|--project|c/d", "--project is given twice"},
        {"project|add|e/f|--private|--private", "--private is given twice"},
        {"runner|revoke|x|--reason|a|--reason|b", "--reason is given twice"},
        {"log|--data|/nowhere", "--data is given twice"},
        {"serve|--listen|127.0.0.1:0|--listen|127.0.0.1:0", "--listen is given twice"},
        {"serve|--data=/nowhere", "--data is given twice"},
    };

    expect_text(p->data, "project|add|a/b", 0, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_text(p->data, cases[i].words, 2, cases[i].text);
    assert_true(asprintf(&add, "runner|add|x|--class|demo|--key|%s|--project|a/b|--project|c/d",
                         p->pem) > 0);
    expect_text(p->data, add, 2, "--project is given twice");
    expect_text(p->data, "token|list", 0, "");
    expect_text(p->data, "runner|list", 0, "");
}

/* A reviewer's words stay in their field of their line. */
static void free_text_forges_no_row(void **state)
{
    struct place *p = *state;
    AUTO_FREE char *approve = NULL;
    struct package run;

    add_runner(p);
    store_run_of(p, &(struct package_options){.probes = 1.31}, &run);
    assert_true(asprintf(&approve,
                         "baseline|approve|%s|--project|%s|--gate|%s|--reviewer|R\x1b[2J\xc2\x9b|"
                         "--reason|a\tb\nb-x\t\xe2\x80\xaey",
                         run.run, PACKAGE_PROJECT, PACKAGE_GATE) > 0);
    expect_text(p->data, approve, 0, NULL);
    expect_text(p->data, "baseline|list", 0, "\tR?[2J?\ta b b-x [U+202E]y\n");
    expect_text(p->data, "log", 0, "a b b-x [U+202E]y");
    expect_text(p->data, "runner|revoke|metal-01|--since|2026-01-02T03:04:05Z|--reason|so\nld", 0,
                NULL);
    expect_text(p->data, "runner|list", 0, "revoked since 2026-01-02T03:04:05Z: so ld\t");
    package_free(&run);
}

/* A token is printed once: one that nobody could read must not be valid. And no answer that was not
 * written is a success. */
static void what_cannot_be_written_was_not_done_or_is_told(void **state)
{
    struct place *p = *state;
    AUTO_FREE char *exe = program();
    static const struct {
        const char *script;
        const char *text;
    } cases[] = {
        {"exec \"$0\" token add ci --scope admin --data \"$1\" > /dev/full", "was not made"},
        {"exec \"$0\" token add ci --scope admin --data \"$1\" >&-", "was not made"},
        {"exec \"$0\" project list --data \"$1\" > /dev/full", "cannot write"},
        {"exec \"$0\" --help > /dev/full", "cannot write"},
        {"exec \"$0\" token add --help > /dev/full", "cannot write"},
        {"exec \"$0\" version > /dev/full", "cannot write"},
    };

    expect_text(p->data, "project|add|a/b", 0, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const argv[] = {"/bin/sh", "-c", cases[i].script, exe, p->data, NULL};
        struct test_run r;

        test_run(argv, NULL, NULL, NULL, &r);
        if (r.code != 2 || !strstr(r.err, cases[i].text))
            fail_msg("%s: exit %d: %s", cases[i].script, r.code, r.err);
        test_run_fini(&r);
    }
    expect_text(p->data, "log", 0, "project.add\ta/b");
    expect_text(p->data, "token|add|ci|--scope|read", 0, "clr_");
}

static void mistakes_are_named(void **state)
{
    struct place *p = *state;

    expect_text(p->data, "project|add|a/b", 0, NULL);
    expect_text(p->data, "project|ad|x", 2, "did you mean 'add'");
    expect_text(p->data, "project|add|a/b|--privat", 2, "did you mean '--private'");
    expect_text(p->data, "project|add", 2, "OWNER/NAME");
    expect_text(p->data, "token|add|x|--scope|upload|--project|no/where", 2,
                "'no/where': there is no");
    expect_text(p->data, "project|set|a/b", 2, "what to set?");
    expect_text(p->data, "gc|--keep|soon", 2, "whole number");
    expect_text(p->data, "token|add|x|--scope", 2, "'--scope' needs a value");
}

/* Nothing is made by a command that is refused, or that has nothing to work on. */
static void refused_commands_leave_nothing(void **state)
{
    static const struct {
        const char *words;
        const char *text;
    } cases[] = {
        {"token|add|x", "--scope is needed"},
        {"token|add|x|--scope|write", "read, upload, review or admin"},
        {"baseline|approve|20260101T000000Z-00000000|--project|a/b|--gate|g",
         "--reviewer is needed"},
        {"runner|add|x|--class|demo", "--key is needed"},
        {"project|add|nothing", "OWNER/NAME"},
        {"project|set|a/b", "what to set?"},
        {"token|add|x|--scope|upload", "there is no cleanrun data in"},
        {"fsck", "there is no cleanrun data in"},
        {"log", "project add"},
    };
    struct place *p = *state;
    struct stat st;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_text(p->data, cases[i].words, 2, cases[i].text);
        assert_int_equal(stat(p->data, &st), -1);
    }
    expect_text(p->data, "project|add|a/b", 0, NULL);
    expect_text(p->data, "fsck", 0, "0 problems");
}

/* One command's help is that command's. */
static void help_is_of_the_command(void **state)
{
    struct place *p = *state;
    char *out = NULL;

    assert_int_equal(admin(p->data, "project|add|--help", &out, NULL), 0);
    assert_non_null(strstr(out, "project add OWNER/NAME"));
    assert_null(strstr(out, "project set"));
    free(out);
    assert_int_equal(admin(p->data, "token|--help", &out, NULL), 0);
    assert_non_null(strstr(out, "token revoke NAME"));
    assert_null(strstr(out, "project add"));
    free(out);
    assert_int_equal(admin(p->data, "serve|--help", &out, NULL), 0);
    assert_non_null(strstr(out, "--listen"));
    assert_null(strstr(out, "baseline"));
    free(out);
    expect_text(p->data, "--help", 0, "baseline retire");
    expect_text(p->data, "bogus|--help", 2, "no command 'bogus'");
    expect_text(p->data, "baselin|list", 2, "no command 'baselin'; did you mean 'baseline'?");
    expect_text(p->data, "--quiet|project|list", 2, "the command comes first");
}

static void approving_names_what_is_unfit(void **state)
{
    struct place *p = *state;
    static const struct {
        struct package_options options;
        const char *why;
    } unfit[] = {
        {{.dirty = true}, "not a commit"},
        {{.mode = "cpu"}, "diagnostic"},
        {{.rate = 1}, "not PASS"},
        {{.fact = "unknown"}, "NC-IDENTITY-MISSING"},
        {{.report = "{\"load\":{\"capacity\":20000},\"results\":{\"rate\":50000}}"},
         "hash probes is missing in this run"},
        {{.report =
              "{\"load\":{\"capacity\":20000},\"results\":{\"rate\":50000,\"probes\":\"2\"}}"},
         "hash probes is string, not a number"},
        {{.report = "{\"load\":{},\"results\":{\"rate\":50000,\"probes\":2}}"},
         "/load/capacity is unknown in this run"},
    };
    AUTO_FREE char *good_words = NULL;
    AUTO_FREE char *id = NULL;
    struct package good;

    add_runner(p);
    for (size_t i = 0; i < sizeof unfit / sizeof unfit[0]; i++) {
        AUTO_FREE char *words = NULL;
        struct package run;

        store_run_of(p, &unfit[i].options, &run);
        assert_true(asprintf(&words,
                             "baseline|approve|%s|--project|%s|--gate|%s|--reviewer|r|--reason|why",
                             run.run, PACKAGE_PROJECT, PACKAGE_GATE) > 0);
        expect_text(p->data, words, 2, unfit[i].why);
        package_free(&run);
    }
    store_run_of(p, &(struct package_options){.probes = 1.31}, &good);
    assert_true(asprintf(&good_words,
                         "baseline|approve|%s|--project|%s|--gate|%s|--reviewer|r|--reason|why",
                         good.run, PACKAGE_PROJECT, PACKAGE_GATE) > 0);
    assert_true(asprintf(&id, "b-%s\n", good.run) > 0);
    expect_text(
        p->data,
        "baseline|approve|20260101T000000Z-00000000|--project|a/b|--gate|g|--reviewer|r|--reason|w",
        2, "no");
    expect_text(p->data, good_words, 0, id);
    expect_text(p->data, good_words, 2, "already");
    expect_text(p->data, "baseline|list", 0, "current");
    package_free(&good);
}

/* What was a REGRESSION becomes normal only with its numbers told. */
static void approving_a_regression_is_told(void **state)
{
    struct place *p = *state;
    static const struct package_options runs[] = {{.probes = 1.31}, {.probes = 2, .executable = 2}};
    char *err = NULL;

    add_runner(p);
    for (size_t i = 0; i < 2; i++) {
        AUTO_FREE char *words = NULL;
        struct package run;

        store_run_of(p, &runs[i], &run);
        assert_true(asprintf(&words,
                             "baseline|approve|%s|--project|%s|--gate|%s|--reviewer|r|--reason|why",
                             run.run, PACKAGE_PROJECT, PACKAGE_GATE) > 0);
        assert_int_equal(admin(p->data, words, NULL, &err), 0);
        if (i == 0)
            assert_string_equal(err, "");
        else
            assert_non_null(strstr(err, "hash probes: 2 probes/op, before 1.31 probes/op, "));
        free(err);
        package_free(&run);
    }
}

/* Whoever approves a run approves its limits: that has to be said when they are others. */
static void another_policy_is_approved_only_when_that_is_said(void **state)
{
    struct place *p = *state;
    static const struct package_options runs[] = {
        {.probes = 1.31}, {.probes = 1.31, .executable = 2, .tolerance_pct = 100000}};
    AUTO_FREE char *said = NULL;
    AUTO_FREE char *retire = NULL;
    char id[2][32];
    char words[2][512];
    char *err = NULL;

    add_runner(p);
    for (size_t i = 0; i < 2; i++) {
        struct package run;

        store_run_of(p, &runs[i], &run);
        assert_true(snprintf(words[i], sizeof(words[i]),
                             "baseline|approve|%s|--project|%s|--gate|%s|--reviewer|r|--reason|why",
                             run.run, PACKAGE_PROJECT, PACKAGE_GATE) > 0);
        (void) snprintf(id[i], sizeof(id[i]), "%s", run.run);
        package_free(&run);
    }
    expect_text(p->data, words[0], 0, NULL);
    expect_text(p->data, words[1], 2, "/tolerance_pct 1 -> "); /* the limit, not the list */
    expect_text(p->data, words[1], 2,
                "say --new-policy if that was reviewed as well: /audit/metrics/");
    assert_true(asprintf(&said, "%s|--new-policy", words[1]) > 0);
    expect_text(p->data, said, 0, NULL);
    /* Retiring the current one lets no other policy in. */
    assert_true(asprintf(&retire, "baseline|retire|b-%s|--project|%s|--reviewer|r|--reason|gone",
                         id[1], PACKAGE_PROJECT) > 0);
    expect_text(p->data, retire, 0, NULL);
    expect_text(p->data, words[0], 2, "--new-policy");
    expect_text(p->data, words[1], 0, NULL);
    /* And back: that is another policy than the current one again. */
    assert_int_equal(admin(p->data, words[0], NULL, &err), 2);
    assert_non_null(strstr(err, "tolerance_pct"));
    free(err);
}

/* A run that the reviewed policy fails is never promoted in silence: its own policy is another one,
 * which has to be said, and then what it no longer holds is told. */
static void approving_a_failed_run_is_told(void **state)
{
    struct place *p = *state;
    static const struct package_options runs[] = {
        {.probes = 1.31}, {.probes = 1.31, .executable = 2, .rate = 40000, .min_rate = 1}};
    AUTO_FREE char *said = NULL;
    char words[2][512];
    char *out = NULL;
    char *err = NULL;

    add_runner(p);
    for (size_t i = 0; i < 2; i++) {
        struct package run;

        store_run_of(p, &runs[i], &run);
        assert_true(snprintf(words[i], sizeof(words[i]),
                             "baseline|approve|%s|--project|%s|--gate|%s|--reviewer|r|--reason|why",
                             run.run, PACKAGE_PROJECT, PACKAGE_GATE) > 0);
        package_free(&run);
        if (i == 0)
            expect_text(p->data, words[0], 0, NULL);
    }
    expect_text(p->data, words[1], 2, "--new-policy");
    assert_true(asprintf(&said, "%s|--new-policy", words[1]) > 0);
    assert_int_equal(admin(p->data, said, &out, &err), 0);
    assert_int_equal(strncmp(out, "b-", 2), 0);
    assert_non_null(strstr(err, "note: the policy of b-"));
    assert_non_null(strstr(err, "FAIL"));
    assert_non_null(strstr(err, "rate"));
    free(out);
    free(err);
}

static void earlier_baseline_can_come_back(void **state)
{
    struct place *p = *state;
    struct package a;
    struct package b;
    AUTO_FREE char *first = NULL;
    AUTO_FREE char *second = NULL;
    char *out = NULL;
    char *err = NULL;
    const char *line;

    add_runner(p);
    store_run_of(p, &(struct package_options){.probes = 1.31}, &a);
    store_run_of(p, &(struct package_options){.probes = 1.32}, &b);
    assert_true(asprintf(&first,
                         "baseline|approve|%s|--project|%s|--gate|%s|--reviewer|r|--reason|why",
                         a.run, PACKAGE_PROJECT, PACKAGE_GATE) > 0);
    assert_true(asprintf(&second,
                         "baseline|approve|%s|--project|%s|--gate|%s|--reviewer|r|--reason|why",
                         b.run, PACKAGE_PROJECT, PACKAGE_GATE) > 0);
    expect_text(p->data, first, 0, NULL);
    expect_text(p->data, second, 0, NULL);
    expect_text(p->data, first, 0, NULL);
    assert_int_equal(admin(p->data, "baseline|list", &out, &err), 0);
    line = strstr(out, a.run);
    assert_non_null(line);
    assert_non_null(strstr(line, "current"));
    line = strstr(out, b.run);
    assert_non_null(line);
    assert_non_null(strstr(line, "superseded"));
    free(out);
    free(err);
    package_free(&a);
    package_free(&b);
}

/* A gate that is no longer measured is no longer expected. */
static void retired_baseline_is_expected_no_more(void **state)
{
    struct place *p = *state;
    static const char commit[] = "fedcba9876543210fedcba9876543210fedcba98";
    struct store_fixture f = {.data = p->data};
    AUTO_FREE char *approve = NULL;
    AUTO_FREE char *retire = NULL;
    AUTO_FREE char *short_of = NULL;
    AUTO_JSON cJSON *before = NULL;
    AUTO_JSON cJSON *after = NULL;
    AUTO_JSON cJSON *gate = NULL;
    AUTO_JSON cJSON *back = NULL;
    struct package run;

    add_runner(p);
    store_run_of(p, &(struct package_options){.probes = 1.31}, &run);
    assert_true(asprintf(&approve,
                         "baseline|approve|%s|--project|%s|--gate|%s|--reviewer|r|--reason|why",
                         run.run, PACKAGE_PROJECT, PACKAGE_GATE) > 0);
    assert_true(asprintf(&retire,
                         "baseline|retire|b-%s|--project|%s|--reviewer|bo|--reason|gate is gone",
                         run.run, PACKAGE_PROJECT) > 0);
    assert_true(asprintf(&short_of, "baseline|retire|b-%s|--project|%s", run.run, PACKAGE_PROJECT) >
                0);
    expect_text(p->data, retire, 2, "there is no baseline 'b-");
    expect_text(p->data, approve, 0, NULL);
    expect_text(p->data, short_of, 2, "--reviewer is needed");
    MUST(store_open(p->data, STORE_SERVE, 1, &f.store, E));
    MUST(doc_check(f.store, PACKAGE_PROJECT, commit, &before, E));
    assert_int_equal(cJSON_GetArraySize(at(before, "/gates")), 1);
    expect_text(p->data, retire, 0, "retired");
    expect_text(p->data, retire, 2, "not a current baseline");
    expect_text(p->data, "baseline|list", 0, "\tretired\t");
    expect_text(p->data, "baseline|list", 0, "\n  baseline.retire\t");
    expect_text(p->data, "log", 0, "bo\tbaseline.retire\tb-");
    MUST(doc_check(f.store, PACKAGE_PROJECT, commit, &after, E));
    assert_int_equal(cJSON_GetArraySize(at(after, "/gates")), 0);
    assert_string_equal(text_at(after, "/verdict"), "PENDING");
    MUST(doc_gate(f.store, PACKAGE_PROJECT, PACKAGE_GATE, &gate, E));
    assert_string_equal(text_at(gate, "/baselines/0/retired/by"), "bo");
    assert_string_equal(text_at(gate, "/baselines/0/retired/reason"), "gate is gone");
    expect_text(p->data, approve, 0, NULL); /* and back */
    expect_text(p->data, "baseline|list", 0, "\tcurrent\t");
    expect_text(p->data, "baseline|list", 0, "\n  baseline.restore\t");
    MUST(doc_baselines(f.store, PACKAGE_PROJECT, PACKAGE_GATE, &back, E));
    assert_int_equal(cJSON_GetArraySize(at(back, "/baselines/0/reviews")), 3);
    assert_string_equal(text_at(back, "/baselines/0/reviews/0/action"), "approve");
    assert_string_equal(text_at(back, "/baselines/0/reviews/1/reason"), "gate is gone");
    assert_string_equal(text_at(back, "/baselines/0/reviews/1/by"), "bo");
    assert_string_equal(text_at(back, "/baselines/0/reviews/2/action"), "restore");
    store_close(f.store);
    package_free(&run);
}

static void history_is_imported_and_never_judges(void **state)
{
    struct place *p = *state;
    AUTO_FREE char *dir = test_path("tests/data/rvoip/baselines/20260929T224805Z");
    AUTO_FREE char *definition = test_path("examples/rvoip-sip/cleanrun.yaml");
    AUTO_FREE char *words = NULL;
    AUTO_FREE char *plain = NULL;

    add_runner(p);
    assert_true(asprintf(&words,
                         "baseline|import|%s|--legacy|--project|%s|--gate|call-setup-2k|--class|"
                         "epyc|--definition|%s|--reviewer|r|"
                         "--reason|history",
                         dir, PACKAGE_PROJECT, definition) > 0);
    assert_true(asprintf(&plain,
                         "baseline|import|%s|--project|%s|--gate|call-setup-2k|--class|epyc|--"
                         "definition|%s|--reviewer|r|"
                         "--reason|history",
                         dir, PACKAGE_PROJECT, definition) > 0);
    expect_text(p->data, plain, 2, "baseline approve");
    expect_text(p->data, words, 0, "b-20260929T224805Z");
    expect_text(p->data, words, 2, "exists");
    expect_text(p->data, "baseline|list", 0, "history");
    expect_text(p->data, "fsck", 0, "1 baselines, 0 orphans, 0 problems");
    expect_text(p->data, "gc|--keep|0", 0, "removed 0 uploads");
}

static void check_finds_every_kind_of_damage(void **state)
{
    struct place *p = *state;
    struct store_fixture f = {.data = p->data};
    AUTO_FREE char *object = NULL;
    struct package run;

    add_runner(p);
    store_run_of(p, &(struct package_options){.probes = 1.31}, &run);
    expect_text(p->data, "fsck", 0, "1 objects, 1 runs, 0 baselines, 0 orphans, 0 problems");
    store_fixture_flip(&f, run.hex, run.archive_len / 2);
    expect_text(p->data, "fsck", 5, "stored object has SHA-256");
    store_fixture_flip(&f, run.hex, run.archive_len / 2);
    expect_text(p->data, "fsck", 0, "0 problems");
    test_write_text(p->data, "objects/zz/strange", "x");
    expect_text(p->data, "fsck", 5, "is no object");
    assert_true(asprintf(&object, "%s/objects/zz/strange", p->data) > 0);
    assert_int_equal(unlink(object), 0);
    test_write_text(
        p->data, "objects/01/23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "x");
    expect_text(p->data, "fsck", 0, "1 orphans");
    free(object);
    assert_true(asprintf(&object, "%s/objects/%.2s/%s", p->data, run.hex, run.hex + 2) > 0);
    assert_int_equal(unlink(object), 0);
    expect_text(p->data, "fsck", 5, "damaged: object");
    package_free(&run);
}

/* The directory may be reached by a link, what is in it is not. */
static void links_in_the_data_directory_are_named(void **state)
{
    static const char *const names[] = {"objects", "spool", "write.lock", "cleanrun.db"};
    struct place *p = *state;
    AUTO_FREE char *by_link = test_join(p->dir, "by-link");

    add_runner(p);
    assert_int_equal(symlink(p->data, by_link), 0);
    expect_text(by_link, "runner|list", 0, "metal-01");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        AUTO_FREE char *path = test_join(p->data, names[i]);
        AUTO_FREE char *moved = test_join(p->dir, "moved");
        AUTO_FREE char *text = NULL;

        assert_int_equal(rename(path, moved), 0);
        assert_int_equal(symlink(moved, path), 0);
        assert_true(asprintf(&text, "/%s' is a symbolic link", names[i]) > 0);
        expect_text(p->data, "runner|list", 2, text);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rename(moved, path), 0);
    }
    expect_text(p->data, "runner|list", 0, "metal-01");
}

/* One thing that is no file hides nothing else, and is followed by nobody. */
static void links_and_pipes_stop_no_command(void **state)
{
    struct place *p = *state;
    AUTO_FREE char *object = NULL;
    AUTO_FREE char *moved = NULL;
    AUTO_FREE char *fifo = test_join(p->data, "objects/fifo");
    AUTO_FREE char *link = test_join(p->data, "spool/link");
    AUTO_FREE char *pipe = test_join(p->data, "spool/pipe");
    AUTO_FREE char *other = NULL;
    AUTO_FREE char *full = test_join(p->dir, "full");
    AUTO_FREE char *in_full = test_join(p->dir, "full/link");
    AUTO_FREE char *words = NULL;
    AUTO_FREE char *text = NULL;
    struct store_fixture f = {.data = p->data};
    struct package run;
    struct stat st;

    add_runner(p);
    store_run_of(p, &(struct package_options){.probes = 1.31}, &run);
    assert_true(asprintf(&object, "%s/objects/%.2s/%s", p->data, run.hex, run.hex + 2) > 0);
    moved = test_join(p->dir, "moved");
    assert_int_equal(rename(object, moved), 0);
    assert_int_equal(symlink(moved, object), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    test_write_text(p->data, "objects/zz/strange", "x");
    expect_text(p->data, "fsck", 5, "stored object is not a regular file");
    expect_text(p->data, "fsck", 5, "objects/fifo is no object");
    expect_text(p->data, "fsck", 5, "objects/zz/strange is no object");
    expect_text(p->data, "gc|--keep|0", 0, "removed 0 uploads without a run, 0 files");
    assert_int_equal(stat(moved, &st), 0);
    /* What an interrupted upload left, and whoever put something there. */
    test_write_text(p->dir, "precious", "x");
    other = test_join(p->dir, "precious");
    assert_int_equal(symlink(other, link), 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    MUST(store_open(p->data, STORE_SERVE, 1, &f.store, E));
    store_close(f.store);
    assert_int_equal(lstat(link, &st), -1);
    assert_int_equal(lstat(pipe, &st), -1);
    text = test_read_path(other, NULL);
    assert_string_equal(text, "x");
    assert_int_equal(mkdir(full, 0700), 0);
    assert_int_equal(symlink("/nowhere", in_full), 0);
    assert_true(asprintf(&words, "backup|%s", full) > 0);
    expect_text(p->data, words, 2, "not empty");
    package_free(&run);
}

static void collecting_keeps_what_runs_name(void **state)
{
    struct place *p = *state;
    struct store_fixture f = {.data = p->data, .key = p->key};
    struct store_project project;
    struct package run;
    struct package unused;

    add_runner(p);
    store_run_of(p, &(struct package_options){.probes = 1.31}, &run);
    package_make(&(struct package_options){.probes = 1.4}, p->key, &unused);
    MUST(store_open(p->data, STORE_SERVE, 1, &f.store, E));
    MUST(store_project_get(f.store, PACKAGE_PROJECT, &project, E));
    f.project_id = project.id;
    (void) store_fixture_put(&f, unused.archive, unused.archive_len);
    store_close(f.store);
    expect_text(p->data, "gc", 0, "removed 0 uploads");
    expect_text(p->data, "gc|--dry-run|--keep|0", 0, "would remove 1 uploads");
    assert_int_equal(store_fixture_count(&f, "objects"), 2);
    expect_text(p->data, "gc|--keep|0", 0, "removed 1 uploads without a run, 1 files");
    assert_int_equal(store_fixture_count(&f, "objects"), 1);
    test_write_text(
        p->data, "objects/01/23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "x");
    expect_text(p->data, "gc|--keep|0", 0, "removed 0 uploads without a run, 1 files");
    expect_text(p->data, "fsck", 0, "1 objects, 1 runs, 0 baselines, 0 orphans, 0 problems");
    package_free(&run);
    package_free(&unused);
}

static void copy_can_be_restored(void **state)
{
    struct place *p = *state;
    AUTO_FREE char *copy = test_join(p->dir, "copy");
    AUTO_FREE char *other = test_join(p->dir, "other");
    AUTO_FREE char *backup = NULL;
    AUTO_FREE char *restore = NULL;
    AUTO_FREE char *object = NULL;
    struct package run;

    add_runner(p);
    store_run_of(p, &(struct package_options){.probes = 1.31}, &run);
    assert_true(asprintf(&backup, "backup|%s", copy) > 0);
    assert_true(asprintf(&restore, "restore|%s", copy) > 0);
    expect_text(p->data, backup, 0, "1 objects");
    expect_text(p->data, backup, 2, "not empty");
    expect_text(p->data, restore, 2, "not empty");
    expect_text(other, restore, 0, "1 objects");
    expect_text(other, "fsck", 0, "1 objects, 1 runs, 0 baselines, 0 orphans, 0 problems");
    expect_text(other, "runner|list", 0, "metal-01");
    /* A copy with a damaged object is refused. */
    assert_true(asprintf(&object, "%s/objects/%.2s/%s", copy, run.hex, run.hex + 2) > 0);
    assert_int_equal(chmod(object, 0600), 0);
    assert_int_equal(truncate(object, 512), 0);
    free(other);
    other = test_join(p->dir, "third");
    expect_text(other, restore, 5, "SHA-256");
    package_free(&run);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(projects_runners_and_tokens),
        T(revocation_only_moves_to_earlier_times),
        T(limits_of_a_known_runner_hold_or_are_refused),
        T(no_option_is_taken_twice),
        T(free_text_forges_no_row),
        T(what_cannot_be_written_was_not_done_or_is_told),
        T(mistakes_are_named),
        T(refused_commands_leave_nothing),
        T(help_is_of_the_command),
        T(retired_baseline_is_expected_no_more),
        T(approving_a_regression_is_told),
        T(approving_names_what_is_unfit),
        T(earlier_baseline_can_come_back),
        T(approving_a_failed_run_is_told),
        T(another_policy_is_approved_only_when_that_is_said),
        T(history_is_imported_and_never_judges),
        T(check_finds_every_kind_of_damage),
        T(links_in_the_data_directory_are_named),
        T(links_and_pipes_stop_no_command),
        T(collecting_keeps_what_runs_name),
        T(copy_can_be_restored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
