/* cleanrun run --server: the reviewed baseline comes from the real server, and whatever is wrong
 * with it is found before anything is built. */
#include "tests/runner/project.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/digest.h"
#include "base/json_in.h"
#include "tests/http/live.h"

#define PROJECT "test/project"

struct place {
    struct project p;
    struct live live;
    char *key, *pub, *token, *url;
};

static void must_run(const char *const argv[], const char *cwd)
{
    struct test_run r;

    test_run(argv, NULL, cwd, NULL, &r);
    if (r.code != 0)
        print_error("%s: %s%s\n", argv[0], r.out, r.err);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
}

static void place_new(struct place *x, bool private)
{
    char *keys = NULL, *text = NULL;
    struct test_run r;

    project_new(&x->p, "ok", NULL);
    live_init(&x->live);
    keys = test_join(x->p.dir, "keys");
    x->key = test_join(keys, "key.pem");
    x->pub = test_join(keys, "pub.pem");
    x->token = test_join(x->p.dir, "token");
    const char *const gen[] = {"key", "gen", "--out", keys, NULL};
    const char *const project[] = {"project", "add", PROJECT, private ? "--private" : NULL, NULL};
    const char *const runner[] = {"runner", "add",  "machine",   "--class", "test-class",
                                  "--key",  x->pub, "--project", PROJECT,   NULL};
    const char *const token[] = {"token",  "add",       "t",     "--scope",
                                 "upload", "--project", PROJECT, NULL};

    project_cleanrun(&x->p, gen, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    assert_int_equal(live_admin(&x->live, (const char *const[]){"migrate", NULL}, NULL), 0);
    assert_int_equal(live_admin(&x->live, project, NULL), 0);
    assert_int_equal(live_admin(&x->live, runner, NULL), 0);
    assert_int_equal(live_admin(&x->live, token, &text), 0);
    test_write_text(x->p.dir, "token", text);
    assert_int_equal(chmod(x->token, 0600), 0);
    live_start(&x->live, NULL);
    assert_true(asprintf(&x->url, "http://127.0.0.1:%u", x->live.port) > 0);
    free(text);
    free(keys);
}

static void place_free(struct place *x)
{
    live_fini(&x->live);
    project_free(&x->p);
    free(x->key);
    free(x->pub);
    free(x->token);
    free(x->url);
}

/* `cleanrun run g --out <dir>/NAME` with further arguments. */
static void measure(struct place *x, const char *name, const char *const more[], struct test_run *r)
{
    char *out = test_join(x->p.dir, name);
    const char *args[20] = {"run", "g", "--json", "--at", "HEAD", "--out", out};
    size_t n = 7;

    for (size_t i = 0; more && more[i]; i++)
        args[n++] = more[i];
    project_cleanrun(&x->p, args, NULL, r);
    free(out);
}

/* Measures, pushes, and has it reviewed; the run's id is copied. */
static void review_first(struct place *x, char run[32])
{
    const char *const push[] = {"--key", x->key,         "--push", "--server",
                                x->url,  "--token-file", x->token, NULL};
    struct test_run r;
    char *at;

    measure(x, "first", push, &r);
    if (r.code != 3)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 3);
    assert_non_null(strstr(r.out, "none is reviewed for class test-class"));
    at = strstr(r.out, "\"event\":\"result\",\"run\":\"");
    assert_non_null(at);
    snprintf(run, 32, "%.25s", at + strlen("\"event\":\"result\",\"run\":\""));
    const char *const approve[] = {"baseline", "approve",    run,  "--project", PROJECT, "--gate",
                                   "g",        "--reviewer", "me", "--reason",  "first", NULL};

    assert_int_equal(live_admin(&x->live, approve, NULL), 0);
    test_run_fini(&r);
}

static bool there(const struct place *x, const char *name)
{
    char *path = test_join(x->p.dir, name);
    struct stat st;
    bool found = stat(path, &st) == 0;

    free(path);
    return found;
}

static cJSON *manifest(const struct place *x, const char *name)
{
    char *dir = test_join(x->p.dir, name), *path = test_join(dir, "manifest.json");
    size_t len = 0;
    char *text = test_read_path(path, &len);
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(json_parse(text, len, NULL, &j, &e), 0);
    free(text);
    free(path);
    free(dir);
    return j;
}

static size_t scratch_left(const struct place *x)
{
    char *state = test_join(x->p.state, "cleanrun/scratch");
    char **names = NULL;
    struct stat st;
    size_t n = stat(state, &st) == 0 ? test_list(state, "", &names) : 0;

    if (names)
        test_names_free(names);
    free(state);
    return n;
}

static void the_reviewed_baseline_is_fetched_checked_and_snapshotted(void **state)
{
    struct place x;
    struct test_run r;
    char run[32], id[40], hex[DIGEST_HEX_SIZE];
    size_t len = 0;

    (void) state;
    place_new(&x, true);
    review_first(&x, run);
    const char *const server[] = {"--server", x.url, "--token-file", x.token, NULL};

    measure(&x, "second", server, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    snprintf(id, sizeof id, "b-%s", run);
    assert_non_null(strstr(r.out, id));
    assert_non_null(strstr(r.out, "reviewed by me"));
    test_run_fini(&r);
    cJSON *m = manifest(&x, "second");
    const cJSON *baseline = json_get(m, "baseline");
    char *archive = test_join(x.p.dir, "first.tar"), *bytes = test_read_path(archive, &len);
    struct digest d = digest_of(bytes, len);

    digest_hex(&d, hex);
    assert_string_equal(json_get(baseline, "id")->valuestring, id);
    assert_string_equal(json_get(baseline, "evidence_sha256")->valuestring, hex);
    assert_string_equal(json_get(m, "audit_status")->valuestring, "OK");
    assert_true(there(&x, "second/baseline/manifest.json"));
    assert_true(there(&x, "second/baseline/definition.json"));
    assert_true(there(&x, "second/baseline/results/s/p.json"));
    assert_false(there(&x, "second/baseline/run.log"));
    /* Nothing of the download stays behind. */
    assert_int_equal(scratch_left(&x), 0);
    cJSON_Delete(m);
    free(bytes);
    free(archive);

    /* What was judged here is judged the same there. */
    const char *const push[] = {"--server", x.url,          "--key", x.key,
                                "--push",   "--token-file", x.token, NULL};

    measure(&x, "third", push, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    place_free(&x);
}

/* In a file of the repository, and committed. */
static void change(const struct place *x, const char *name, const char *from, const char *to)
{
    static const char *const commit[] = {"commit", "-q", "-a", "-m", "branch", NULL};
    char *path = test_join(x->p.repo, name);
    char *text = test_read_path(path, NULL);
    char *at = strstr(text, from);
    char *changed = NULL;

    assert_non_null(at);
    assert_true(asprintf(&changed, "%.*s%s%s", (int) (at - text), text, to, at + strlen(from)) >=
                0);
    test_write_text(x->p.repo, name, changed);
    project_git(&x->p, commit);
    free(changed);
    free(text);
    free(path);
}

/* One story here and there: the branch's policy would say OK, the reviewed one judges. */
static void a_branch_that_loosens_its_policy_regresses_on_both_sides(void **state)
{
    struct place x;
    struct test_run r;
    char run[32];

    (void) state;
    place_new(&x, false);
    review_first(&x, run);
    change(&x, "workload.c", "\\\"n\\\": 3, \\\"errors", "\\\"n\\\": 5, \\\"errors");
    change(&x, "cleanrun.yaml", "tolerance_pct: 10", "tolerance_pct: 90");
    const char *const push[] = {"--server", x.url,          "--key", x.key,
                                "--push",   "--token-file", x.token, NULL};

    measure(&x, "loose", push, &r);
    if (r.code != 1)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.out, "\"verdict\":\"REGRESSION\""));
    assert_non_null(strstr(r.out, "gains nothing until reviewed"));
    assert_null(strstr(r.out, "\"verdict\":\"OK\""));
    assert_null(strstr(r.err, "judges otherwise"));
    test_run_fini(&r);
    place_free(&x);
}

static void refused_before_the_build(struct place *x, const char *const more[], int code,
                                     const char *words);

/* Who signed the baseline is asked when a key is given, and otherwise it is said that it is not. */
static void the_baseline_must_be_signed_by_a_key_that_is_given(void **state)
{
    struct place x;
    struct test_run r;
    char run[32];

    (void) state;
    place_new(&x, true);
    review_first(&x, run);
    char *other = test_join(x.p.dir, "other"), *stranger = test_join(other, "pub.pem");
    const char *const gen[] = {"key", "gen", "--out", other, NULL};
    const char *const none[] = {"--server", x.url, "--token-file", x.token, NULL};
    const char *const right[] = {
        "--server", x.url, "--token-file", x.token, "--baseline-key", stranger, "--baseline-key",
        x.pub,      NULL};
    const char *const wrong[] = {"--server", x.url, "--token-file", x.token, "--baseline-key",
                                 stranger,   NULL};
    const char *const no_key[] = {"--server", x.url, "--token-file", x.token, "--baseline-key",
                                  x.token,    NULL};
    const char *const no_server[] = {"--baseline-key", x.pub, NULL};

    project_cleanrun(&x.p, gen, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    refused_before_the_build(&x, wrong, 5, "IN-KEY");
    refused_before_the_build(&x, no_key, 2, x.token);
    refused_before_the_build(&x, no_server, 2, "--baseline-key");
    assert_int_equal(scratch_left(&x), 0);
    measure(&x, "signed", right, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "signed by a key of --baseline-key"));
    test_run_fini(&r);
    measure(&x, "unsigned", none, &r);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "the server's word is taken"));
    test_run_fini(&r);
    free(stranger);
    free(other);
    place_free(&x);
}

/* Each of these ends before the build: there is no run directory. */
static void refused_before_the_build(struct place *x, const char *const more[], int code,
                                     const char *words)
{
    struct test_run r;

    measure(x, "refused", more, &r);
    if (r.code != code || !strstr(r.err, words))
        print_error("%d %s%s\n", r.code, r.out, r.err);
    assert_int_equal(r.code, code);
    assert_non_null(strstr(r.err, words));
    assert_false(there(x, "refused"));
    assert_null(strstr(r.out, "\"build\""));
    test_run_fini(&r);
}

/* State of the row "key" of `cleanrun doctor`, and its text. */
static void doctor_says(const struct place *x, const char *key, const char *state,
                        const char *words)
{
    const char *const args[] = {"doctor",       "--json", "--server",  x->url,
                                "--token-file", x->token, "--project", PROJECT,
                                "--key",        key,      NULL};
    AUTO_JSON cJSON *j = NULL;
    const cJSON *row = NULL;
    struct err e = ERR_INIT;
    struct test_run r;
    bool found = false;

    project_cleanrun(&x->p, args, NULL, &r);
    assert_int_equal(json_parse(r.out, r.out_len, NULL, &j, &e), 0);
    cJSON_ArrayForEach(row, json_get(j, "checks")) {
        if (strcmp(json_text(row, "name", ""), "key") != 0)
            continue;
        found = true;
        assert_string_equal(json_text(row, "state", ""), state);
        assert_non_null(strstr(json_text(row, "text", ""), words));
    }
    assert_true(found);
    test_run_fini(&r);
}

/* An hour of measuring is not spent for evidence that the server will refuse. */
static void a_key_that_is_not_believed_is_told_before_the_build(void **state)
{
    static const char *const revoke[] = {"runner",   "revoke",  "machine",
                                         "--reason", "it left", NULL};
    struct place x;

    (void) state;
    place_new(&x, true);
    char *keys = test_join(x.p.dir, "more");
    char *key = test_join(keys, "key.pem");
    char *pub = test_join(keys, "pub.pem");
    const char *const gen[] = {"key", "gen", "--out", keys, NULL};
    const char *const add[] = {"runner", "add", "second",    "--class", "other-class",
                               "--key",  pub,   "--project", PROJECT,   NULL};
    const char *const own[] = {"--server", x.url,          "--key", x.key,
                               "--push",   "--token-file", x.token, NULL};
    const char *const other[] = {"--server", x.url,          "--key", key,
                                 "--push",   "--token-file", x.token, NULL};
    struct test_run r;

    project_cleanrun(&x.p, gen, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    doctor_says(&x, x.key, "ok", "believes");
    doctor_says(&x, key, "bad", "knows no runner of " PROJECT);
    refused_before_the_build(&x, other, 2, "knows no runner of " PROJECT);
    assert_int_equal(live_admin(&x.live, add, NULL), 0);
    doctor_says(&x, key, "ok", "believes"); /* of which gate is not known there */
    refused_before_the_build(&x, other, 2, "for a machine of class 'other-class'");
    assert_int_equal(live_admin(&x.live, revoke, NULL), 0);
    doctor_says(&x, x.key, "bad", "the key was revoked");
    refused_before_the_build(&x, own, 2, "the key was revoked");
    free(pub);
    free(key);
    free(keys);
    place_free(&x);
}

/* Compared with it, a run here could be OK that the server refuses. */
static void a_baseline_of_a_revoked_key_is_not_compared_with(void **state)
{
    static const char *const revoke[] = {
        "runner",   "revoke", "machine", "--since", "2020-01-01T00:00:00Z",
        "--reason", "stolen", NULL};
    struct place x;
    struct test_run r;
    char run[32];
    char words[128];

    (void) state;
    place_new(&x, true);
    const char *const server[] = {"--server", x.url, "--token-file", x.token, NULL};

    review_first(&x, run);
    measure(&x, "before", server, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    assert_int_equal(live_admin(&x.live, revoke, NULL), 0);
    (void) snprintf(words, sizeof words, "none: the key that signed b-%s is revoked since 2020",
                    run);
    measure(&x, "after", server, &r);
    assert_int_equal(r.code, 3);
    if (!strstr(r.out, words))
        fail_msg("%s lacks '%s'", r.out, words);
    assert_non_null(strstr(r.out, "NC-BASELINE-NONE"));
    test_run_fini(&r);
    place_free(&x);
}

static void a_server_that_does_not_answer_is_an_error(void **state)
{
    struct place x;

    (void) state;
    place_new(&x, true);
    const char *const server[] = {"--server", x.url, "--token-file", x.token, NULL};
    const char *const anonymous[] = {"--server", x.url, NULL};

    refused_before_the_build(&x, anonymous, 2, "the server answered 404");
    assert_int_equal(live_stop(&x.live), 0);
    refused_before_the_build(&x, server, 6, "http");
    place_free(&x);
}

/* The stored archive of the only run. */
static char *stored_archive(const struct place *x)
{
    char *archive = test_join(x->p.dir, "first.tar");
    size_t len = 0;
    char *bytes = test_read_path(archive, &len);
    struct digest d = digest_of(bytes, len);
    char hex[DIGEST_HEX_SIZE];
    struct test_run r;
    char *out;

    digest_hex(&d, hex);
    char *pattern = NULL;

    assert_true(asprintf(&pattern, "*%s*", hex + 2) > 0);
    const char *const find_rest[] = {"find", x->live.data, "-type", "f", "-name", pattern, NULL};

    test_run(find_rest, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 0);
    out = strndup(r.out, strcspn(r.out, "\n"));
    assert_true(out && *out);
    test_run_fini(&r);
    free(pattern);
    free(bytes);
    free(archive);
    return out;
}

static void damaged_evidence_of_a_baseline_is_never_used(void **state)
{
    struct place x;
    char run[32];

    (void) state;
    place_new(&x, false);
    review_first(&x, run);
    char *path = stored_archive(&x);
    const char *const damage[] = {
        "sh", "-c",
        "chmod u+w \"$0\" && printf X | dd of=\"$0\" bs=1 seek=700 conv=notrunc status=none", path,
        NULL};
    const char *const server[] = {"--server", x.url, NULL};

    must_run(damage, NULL);
    /* The server finds it itself and answers 500: no bytes, an error. */
    refused_before_the_build(&x, server, 6, "the server answered 500");
    assert_int_equal(scratch_left(&x), 0);
    free(path);
    place_free(&x);
}

/* A server that lies: the first request gets `list`, the second the bytes. Its address goes to url.
 */
static pid_t lie(const char *list, const char *bytes, size_t len, char url[64])
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof addr;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *) &addr, sizeof addr), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &addr, &size), 0);
    snprintf(url, 64, "http://127.0.0.1:%d", ntohs(addr.sin_port));
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0) {
        close(listener);
        return pid;
    }
    for (int i = 0; i < 2; i++) {
        int fd = accept(listener, NULL, NULL);
        char request[8192];
        size_t n = i == 0 ? strlen(list) : len;
        const char *body = i == 0 ? list : bytes;

        if (fd < 0 || read(fd, request, sizeof request) <= 0)
            break;
        dprintf(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", n);
        while (n > 0) {
            ssize_t sent = write(fd, body, n);

            if (sent <= 0)
                break;
            body += sent;
            n -= (size_t) sent;
        }
        close(fd);
    }
    _exit(0);
}

/* What a lie tells: about which run, with which digest, and what comes as its archive. */
struct fib {
    const char *run, *row; /* row: more text after the baseline's row */
    const char *bytes;
    size_t len, digest_len; /* the digest is that of `digest_of_bytes` */
    const char *digest_of_bytes;
};

static void lied_to(struct place *x, const char *commit, const struct fib *f, int code,
                    const char *words)
{
    struct digest d = digest_of(f->digest_of_bytes, f->digest_len);
    char hex[DIGEST_HEX_SIZE], url[64];
    char *list = NULL;

    digest_hex(&d, hex);
    assert_true(asprintf(&list,
                         "{\"schema\": \"cleanrun-baselines/1\", \"baselines\": [{\"class\": "
                         "\"test-class\", \"id\": \"b-%s\", \"run\": \"%s\", \"current\": true, "
                         "\"legacy\": false, \"commit\": \"%s\", \"evidence_sha256\": \"%s\"}%s",
                         f->run, f->run, commit, hex, f->row) > 0);
    pid_t pid = lie(list, f->bytes, f->len, url);
    const char *const server[] = {"--server", url, NULL};

    refused_before_the_build(x, server, code, words);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(scratch_left(x), 0);
    free(list);
}

static void what_a_lying_server_sends_is_invalid(void **state)
{
    struct place x;
    char run[32];
    size_t len = 0;

    (void) state;
    place_new(&x, false);
    review_first(&x, run);
    char *archive = test_join(x.p.dir, "first.tar"), *honest = test_read_path(archive, &len);
    char *bent = malloc(len);
    cJSON *m = manifest(&x, "first");
    const char *commit = json_get(json_get(json_get(m, "source"), "start"), "commit")->valuestring;

    assert_non_null(bent);
    memcpy(bent, honest, len);
    char *at = memmem(bent, len, "\"n\": 3", 6);

    assert_non_null(at);
    at[5] = '2'; /* a better number in the measured report */
    const struct fib good = {.run = run,
                             .row = "]}",
                             .bytes = honest,
                             .len = len,
                             .digest_of_bytes = honest,
                             .digest_len = len};
    struct fib f = good;

    f.bytes = bent;
    lied_to(&x, commit, &f, 5, "another SHA-256");
    f.digest_of_bytes = bent; /* now the list goes along, but the manifest does not */
    lied_to(&x, commit, &f, 5, "results/s/p.json");
    f = good;
    f.len = len - 512;
    f.digest_len = len - 512;
    lied_to(&x, commit, &f, 5, "reviewed baseline");
    f = good;
    f.run = "20260101T000000Z-00000000";
    lied_to(&x, commit, &f, 5, "of another run");
    lied_to(&x, "0000000000000000000000000000000000000000", &good, 5, "or commit");
    f = good;
    f.row = "";
    lied_to(&x, commit, &f, 6, "no JSON");
    cJSON_Delete(m);
    free(bent);
    free(honest);
    free(archive);
    place_free(&x);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reviewed_baseline_is_fetched_checked_and_snapshotted),
        cmocka_unit_test(a_branch_that_loosens_its_policy_regresses_on_both_sides),
        cmocka_unit_test(the_baseline_must_be_signed_by_a_key_that_is_given),
        cmocka_unit_test(a_key_that_is_not_believed_is_told_before_the_build),
        cmocka_unit_test(a_baseline_of_a_revoked_key_is_not_compared_with),
        cmocka_unit_test(a_server_that_does_not_answer_is_an_error),
        cmocka_unit_test(damaged_evidence_of_a_baseline_is_never_used),
        cmocka_unit_test(what_a_lying_server_sends_is_invalid),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("http/fetch", tests, NULL, NULL);
}
