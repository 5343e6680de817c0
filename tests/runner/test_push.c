/* Upload against a scripted server on loopback: what is sent, what each answer means. */
#include "tests/lib/support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/json_in.h"
#include "tests/evidence/fixture.h"
#include "tests/runner/run_command.h"

#include "runner/http.h"
#include "runner/push.h"

#define TOKEN "cr_0123456789abcdef"

/* Answers the n-th request with the n-th script and ends; everything received goes to `log`. */
struct script {
    const char *const *answers;
    size_t n;
};

static void read_request(int fd, FILE *log)
{
    static char text[400000];
    size_t len = 0, want = 0;
    bool told = false;

    for (;;) {
        ssize_t n = read(fd, text + len, sizeof text - 1 - len);

        if (n <= 0)
            break;
        len += (size_t) n;
        text[len] = '\0';
        char *end = strstr(text, "\r\n\r\n");

        if (!end)
            continue;
        if (want == 0) {
            char *length = strcasestr(text, "content-length:");
            size_t body = 0;

            for (char *p = length ? length + 15 : NULL; p && *p; p++) {
                if (*p >= '0' && *p <= '9')
                    body = body * 10 + (size_t) (*p - '0');
                else if (*p != ' ')
                    break;
            }
            want = (size_t) (end - text) + 4 + body;
        }
        if (!told && strcasestr(text, "expect: 100-continue") && len < want) {
            if (write(fd, "HTTP/1.1 100 Continue\r\n\r\n", 25) != 25)
                break;
            told = true;
        }
        if (len >= want)
            break;
    }
    text[len] = '\0';
    fwrite(text, 1, len, log);
    fputs("\n=====\n", log);
    fflush(log);
}

static pid_t serve(const struct script *script, const char *log_path, int *out_port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof addr;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *) &addr, sizeof addr), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &addr, &size), 0);
    *out_port = ntohs(addr.sin_port);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        FILE *log = fopen(log_path, "w");

        for (size_t i = 0; log && i < script->n; i++) {
            int fd = accept(listener, NULL, NULL);

            if (fd < 0)
                break;
            read_request(fd, log);
            if (write(fd, script->answers[i], strlen(script->answers[i])) < 0)
                break;
            close(fd);
        }
        _exit(0);
    }
    close(listener);
    return pid;
}

#define CREATED(body)                                                                              \
    "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n" body
#define OK(body)                                                                                   \
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n" body
#define STATUS(line, body)                                                                         \
    "HTTP/1.1 " line "\r\nConnection: close\r\nContent-Type: "                                     \
    "application/problem+json\r\n\r\n" body
#define BLOB CREATED("{\"schema\": \"cleanrun-blob/1\"}")

#define PROJECT "demo/kvcache"
#define GATE "kvcache-50k"
/* The verdict on the bench's run; `word` is JSON. */
#define VERDICT_OF(project, gate, run, commit, word)                                               \
    "{\"schema\": \"cleanrun-verdict/1\", \"project\": \"" project "\", \"gate\": \"" gate         \
    "\", \"run\": \"" run "\", \"commit\": \"" commit "\", \"description\": \"OK: 1\", "           \
    "\"mode\": \"clean\", \"baseline\": \"b-1\", \"acceptance\": {\"verdict\": \"PASS\"}, "        \
    "\"audit\": {\"verdict\": \"OK\"}, \"expected_comparisons\": 2, \"made_comparisons\": 2, "     \
    "\"reasons\": [], \"verdict\": " word "}"
#define VERDICT(word) VERDICT_OF(PROJECT, GATE, FIXTURE_RUN, FIXTURE_COMMIT, word)

/* A sealed run and a token. */
struct bench {
    struct fixture sealed;
    char *dir, *archive, *token, *log;
};

static void bench_new(struct bench *b)
{
    fixture_init(&b->sealed);
    fixture_seal(&b->sealed);
    b->dir = test_dir_new();
    b->archive = strdup(b->sealed.tar);
    b->token = test_join(b->dir, "token");
    b->log = test_join(b->dir, "log");
    test_write_text(b->dir, "token", TOKEN "\n");
    assert_int_equal(chmod(b->token, 0600), 0);
}

static void bench_free(struct bench *b)
{
    fixture_fini(&b->sealed);
    test_dir_free(b->dir);
    free(b->archive);
    free(b->token);
    free(b->log);
}

/* Pushes with these scripted answers. *out_log: what the server got (caller frees). */
static void push(struct bench *b, const char *const *answers, size_t n, struct command_result *r,
                 char **out_log)
{
    struct script script = {answers, n};
    char url[64];
    int port = 0;
    pid_t server = serve(&script, b->log, &port);

    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    const char *const argv[] = {"push",         b->archive, "--server", url,
                                "--project",    PROJECT,    "--gate",   GATE,
                                "--token-file", b->token,   "--json",   NULL};

    run_command(&command_push, argv, r);
    kill(server, SIGKILL);
    assert_int_equal(waitpid(server, NULL, 0), server);
    *out_log = test_read_path(b->log, NULL);
}

#define PUSH(b, r, log, ...)                                                                       \
    push((b), (const char *const[]){__VA_ARGS__},                                                  \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (r), (log))

/* Measuring again until it is OK: the check of the commit stays, and so does the exit code. */
static void what_stands_in_the_check_decides_the_exit(void **state)
{
    static const struct {
        const char *answer;
        int code;
    } cases[] = {
        {CREATED("{\"check\": {\"verdict\": \"REGRESSION\", \"description\": \"OK, but\", "
                 "\"run\": \"" FIXTURE_RUN "\"}, ") /* then the verdict's members */,
         1},
        {CREATED("{\"check\": {\"verdict\": \"FAIL\", \"description\": \"OK, but\"}, "), 4},
        {CREATED("{\"check\": {\"verdict\": \"GREAT\"}, "), 6},
        {CREATED("{\"check\": {}, "), 7},
    };
    struct bench b;

    (void) state;
    bench_new(&b);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO_FREE char *answer = NULL;
        struct command_result r;
        char *log = NULL;

        assert_true(asprintf(&answer, "%s%s", cases[i].answer, &VERDICT("\"OK\"")[1]) > 0);
        PUSH(&b, &r, &log, BLOB, answer);
        assert_int_equal(r.code, cases[i].code);
        command_result_fini(&r);
        free(log);
    }
    bench_free(&b);
}

static void both_steps_are_sent_as_the_contract_says(void **state)
{
    struct bench b;
    struct command_result r;
    char *log = NULL, hex[DIGEST_HEX_SIZE], line[256];
    AUTO_FREE char *archive = NULL;
    AUTO_FREE char *envelope = NULL;
    size_t len = 0, envelope_len = 0;
    struct digest d;

    (void) state;
    bench_new(&b);
    archive = fixture_archive(&b.sealed, &len);
    envelope = fixture_envelope(&b.sealed, &envelope_len);
    d = digest_of(archive, len);
    digest_hex(&d, hex);
    PUSH(&b, &r, &log, BLOB, CREATED(VERDICT("\"OK\"")));
    assert_int_equal(r.code, 0);
    snprintf(line, sizeof line, "PUT /api/v1/projects/" PROJECT "/blobs/sha256:%s HTTP/1.1", hex);
    assert_non_null(strstr(log, line));
    assert_non_null(strstr(log, "Expect: 100-continue"));
    snprintf(line, sizeof line, "Content-Length: %zu\r\n", len);
    assert_non_null(strstr(log, line));
    assert_non_null(strstr(log, "Authorization: Bearer " TOKEN));
    {
        AUTO_FREE char *all = test_read_path(b.log, &len);

        assert_non_null(memmem(all, len, "\r\n\r\nmanifest.json", 17));
        assert_non_null(memmem(all, len, envelope, envelope_len));
        free(log);
        log = strdup(strstr((char *) memmem(all, len, "\nPOST ", 6), "POST"));
    }
    assert_non_null(
        strstr(log, "POST /api/v1/projects/" PROJECT "/gates/" GATE "/runs?archive=sha256:"));
    assert_non_null(strstr(log, "Content-Type: application/vnd.dsse+json"));
    assert_non_null(strstr(r.out, "\"run\": \"" FIXTURE_RUN "\""));
    assert_null(strstr(r.err, TOKEN));
    command_result_fini(&r);
    free(log);
    bench_free(&b);
}

static void the_exit_code_is_the_server_s_verdict(void **state)
{
    static const struct {
        const char *answer;
        int code;
    } rows[] = {
        {OK(VERDICT("\"OK\"")), 0},
        {CREATED(VERDICT("\"REGRESSION\"")), 1},
        {CREATED(VERDICT("\"NON_COMPARABLE\"")), 3},
        {CREATED(VERDICT("\"FAIL\"")), 4},
        {STATUS(
             "422 Unprocessable",
             "{\"detail\": \"broken\", \"reasons\": [{\"code\": \"IN-HASH\", \"text\": \"x\"}]}"),
         5},
        {CREATED(VERDICT("\"ERROR\"")), 6},
        {CREATED(VERDICT("null")), 7},
        {CREATED(VERDICT("\"PENDING\"")), 8},
        /* Never green by not understanding, nor by what is of something else. */
        {CREATED(VERDICT("\"something new\"")), 6},
        {CREATED(VERDICT("true")), 6},
        {CREATED("not json"), 6},
        {OK("{\"verdict\": \"OK\"}"), 6},
        {OK("{\"schema\": \"cleanrun-verdict/2\", \"verdict\": \"OK\"}"), 6},
        {OK(VERDICT_OF("o/p", GATE, FIXTURE_RUN, FIXTURE_COMMIT, "\"OK\"")), 6},
        {OK(VERDICT_OF(PROJECT, "g", FIXTURE_RUN, FIXTURE_COMMIT, "\"OK\"")), 6},
        {OK(VERDICT_OF(PROJECT, GATE, "20241129T141502Z-00000000", FIXTURE_COMMIT, "\"OK\"")), 6},
        {OK(VERDICT_OF(PROJECT, GATE, FIXTURE_RUN, "f123456789abcdef0123456789abcdef01234567",
                       "\"OK\"")),
         6},
        {STATUS("409 Conflict", "{\"detail\": \"another archive\"}"), 5},
        {STATUS("401 Unauthorized", "{\"detail\": \"no\"}"), 2},
        {STATUS("403 Forbidden", "{}"), 2},
        {STATUS("404 Not Found", "{}"), 2},
        {STATUS("500 Internal", "{}"), 6},
        {STATUS("301 Moved\r\nLocation: http://127.0.0.1:1/", ""), 2},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench b;
        struct command_result r;
        char *log = NULL;

        bench_new(&b);
        PUSH(&b, &r, &log, BLOB, rows[i].answer);
        if (r.code != rows[i].code)
            print_error("row %zu: exit %d, %s%s\n", i, r.code, r.out, r.err);
        assert_int_equal(r.code, rows[i].code);
        command_result_fini(&r);
        free(log);
        bench_free(&b);
    }
}

/* A verdict whose members deny its OK is none. */
static void an_ok_says_so_throughout(void **state)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"\"clean\"", "\"cpu\""},
        {"\"baseline\": \"b-1\"", "\"baseline\": null"},
        {"\"PASS\"", "\"FAIL\""},
        {"\"acceptance\"", "\"accepted\""},
        {"\"audit\": {\"verdict\": \"OK\"}", "\"audit\": {\"verdict\": \"REGRESSION\"}"},
        {"\"audit\": {\"verdict\": \"OK\"}", "\"audit\": null"},
        {"\"made_comparisons\": 2", "\"made_comparisons\": 1"},
        {"\"expected_comparisons\": 2, \"made_comparisons\": 2",
         "\"expected_comparisons\": 0, \"made_comparisons\": 0"},
        {"\"made_comparisons\"", "\"comparisons\""},
        {"\"reasons\": []", "\"reasons\": [{\"code\": \"NC-MODE\", \"text\": \"x\"}]"},
        {"\"reasons\"", "\"because\""},
    };
    static const char good[] = CREATED(VERDICT("\"OK\""));
    struct bench b;

    (void) state;
    bench_new(&b);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *at = strstr(good, rows[i].from);
        AUTO_FREE char *answer = NULL;
        struct command_result r;
        char *log = NULL;

        assert_non_null(at);
        assert_true(asprintf(&answer, "%.*s%s%s", (int) (at - good), good, rows[i].to,
                             at + strlen(rows[i].from)) > 0);
        PUSH(&b, &r, &log, BLOB, answer);
        if (r.code != 6)
            print_error("row %zu: exit %d, %s%s\n", i, r.code, r.out, r.err);
        assert_int_equal(r.code, 6);
        assert_string_equal(r.out, "");
        command_result_fini(&r);
        free(log);
    }
    bench_free(&b);
}

static void refusals_of_the_archive_end_before_the_second_step(void **state)
{
    static const struct {
        const char *answer;
        int code;
    } rows[] = {
        {STATUS("422 Unprocessable", "{\"detail\": \"another digest\"}"), 5},
        {STATUS("413 Too Large", "{\"detail\": \"too big\"}"), 2},
        {STATUS("507 Insufficient Storage", "{\"detail\": \"disk\"}"), 6},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench b;
        struct command_result r;
        char *log = NULL;
        size_t len = 0;

        bench_new(&b);
        PUSH(&b, &r, &log, rows[i].answer);
        assert_int_equal(r.code, rows[i].code);
        free(log);
        log = test_read_path(b.log, &len); /* with the archive's bytes */
        assert_non_null(memmem(log, len, "PUT /", 5));
        assert_null(memmem(log, len, "POST /", 6));
        command_result_fini(&r);
        free(log);
        bench_free(&b);
    }
}

/* The server is the judge of a damaged archive, and can only refuse it. */
static void an_archive_that_cannot_be_read_is_never_green(void **state)
{
    struct bench b;
    struct command_result r;
    char *log = NULL;

    (void) state;
    bench_new(&b);
    test_write_text(b.sealed.dir, strrchr(b.archive, '/') + 1, "archive bytes");
    PUSH(&b, &r, &log, BLOB, CREATED(VERDICT("\"OK\"")));
    assert_int_equal(r.code, 6);
    assert_non_null(strstr(r.err, "is no verdict on this run"));
    assert_string_equal(r.out, "");
    command_result_fini(&r);
    free(log);
    bench_free(&b);
}

/* Another gate than the archive's is known before anything is sent. */
static void an_archive_of_another_gate_is_not_sent(void **state)
{
    static const char *const named[][2] = {{"--gate", "other-gate"},
                                           {"--project", "other/project"}};
    struct fixture fx;
    struct bench b;

    (void) state;
    bench_new(&b);
    fixture_init(&fx);
    fixture_seal(&fx);
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        const char *const argv[] = {
            "push",      fx.tar,      "--server", "http://127.0.0.1:9", "--token-file", b.token,
            named[i][0], named[i][1], NULL};
        struct command_result r;

        run_command(&command_push, argv, &r);
        assert_int_equal(r.code, 2);
        assert_non_null(strstr(r.err, "nothing was sent"));
        assert_non_null(strstr(r.err, named[i][1]));
        command_result_fini(&r);
    }
    fixture_fini(&fx);
    bench_free(&b);
}

/* A key that the server refuses with these words: what is told, and what is not (NULL: anything).
 */
static void refused_key(const char *text, const char *told, const char *not_told)
{
    struct fixture fx;
    char *refused = NULL, *body = NULL;

    fixture_init(&fx);
    fixture_seal(&fx);
    assert_true(asprintf(&body,
                         "{\"detail\": \"%s\", \"reasons\": [{\"code\": \"IN-KEY\", "
                         "\"text\": \"%s\"}]}",
                         text, text) > 0);
    assert_true(asprintf(&refused,
                         "HTTP/1.1 422 Unprocessable\r\nContent-Type: application/json\r\n"
                         "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                         strlen(body), body) > 0);
    for (int quiet = 0; quiet < 2; quiet++) {
        const char *const answers[] = {BLOB, refused};
        struct script script = {answers, 2};
        struct command_result r;
        struct bench b;
        char url[64];
        int port = 0;

        bench_new(&b);
        pid_t server = serve(&script, b.log, &port);

        snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
        const char *const argv[] = {"push",         fx.tar,  "--server",          url,
                                    "--token-file", b.token, quiet ? "-q" : NULL, NULL};

        run_command(&command_push, argv, &r);
        kill(server, SIGKILL);
        assert_int_equal(waitpid(server, NULL, 0), server);
        assert_int_equal(r.code, 5);
        const char *reason = strstr(r.err, text);

        assert_non_null(reason);
        assert_null(strstr(reason + 1, text));
        if (!quiet && !strstr(r.err, told))
            fail_msg("no '%s' in: %s", told, r.err);
        assert_true(!not_told || !strstr(r.err, not_told));
        command_result_fini(&r);
        bench_free(&b);
    }
    free(refused);
    free(body);
    fixture_fini(&fx);
}

/* The administrator has to know which key; and -q leaves the reason. */
static void an_unknown_key_is_named(void **state)
{
    (void) state;
    refused_key("no key is trusted", "cleanrun-server runner add", "key gen");
    refused_key("no key is trusted", "signed with key ", NULL);
}

/* A key that is known is not to be registered again. */
static void a_known_key_gets_its_own_way_out(void **state)
{
    (void) state;
    refused_key("the key has expired (valid until 2026-01-01T00:00:00Z): sha256:1 of runner old",
                "cleanrun key gen --out DIR", "does not know");
    refused_key("the key was revoked (since 2026-01-01T00:00:00Z): sha256:1 of runner old",
                "under a new name", "does not know");
    refused_key("the key is not valid yet (valid from 2030-01-01T00:00:00Z): sha256:1",
                "push it again when the key is valid", "runner add");
    refused_key("the key may not sign for this project: o/n", "allows it with", "does not know");
}

/* Before a run: what a revoked token, a wrong project and a good server are told apart by. */
static void a_server_is_tried_before_the_run(void **state)
{
    static const struct {
        const char *answer;
        int result;
        const char *text;
    } rows[] = {
        {STATUS("415 Unsupported Media Type", "{}"), 0, NULL},
        {OK("{}"), -1, "the server answered 200"}, /* no server of ours */
        {STATUS("403 Forbidden", "{}"), -1, "a token needs the scope `upload` and this project"},
        {STATUS("401 Unauthorized", "{}"), -1, "is it a token of this server, and not revoked?"},
        {STATUS("404 Not Found", "{}"), -1, "is there such a project"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *const answers[] = {rows[i].answer};
        struct script script = {answers, 1};
        struct err e = ERR_INIT;
        struct bench b;
        char url[64];
        int port = 0;

        bench_new(&b);
        pid_t server = serve(&script, b.log, &port);

        snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
        const struct push_target t = {
            .server = url, .project = "o/p", .gate = "g", .token_file = b.token};

        assert_int_equal(push_check_server(&t, &e), rows[i].result);
        assert_true(!rows[i].text || strstr(e.text, rows[i].text));
        kill(server, SIGKILL);
        assert_int_equal(waitpid(server, NULL, 0), server);
        bench_free(&b);
    }
}

static const char *row_text(const cJSON *document, const char *name, const char *key)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, json_get(document, "checks")) {
        const cJSON *v = json_get(row, key);

        if (strcmp(json_get(row, "name")->valuestring, name) == 0)
            return cJSON_IsString(v) ? v->valuestring : "";
    }
    return NULL;
}

/* Beside the machine, and not part of its fitness. */
static void doctor_tells_whether_the_token_may_upload(void **state)
{
    static const struct {
        const char *answers[2];
        const char *project;
        const char *server, *upload; /* states; NULL: no such row */
        const char *text;            /* of the last row */
    } rows[] = {
        {{OK("{}"), STATUS("415 Type", "{}")}, "o/p", "ok", "ok", "may upload"},
        {{OK("{}"), STATUS("403 Forbidden", "{}")}, "o/p", "ok", "bad", "the scope `upload`"},
        {{OK("{}"), STATUS("404 Not Found", "{}")}, "o/p", "ok", "bad", "is there such a project"},
        {{OK("{}"), ""}, "p", "ok", "bad", "'p' is no project"},
        {{STATUS("404 Not Found", "{}"), ""}, "o/p", "bad", NULL, "answered 404"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct script script = {rows[i].answers, 2};
        struct command_result r, alone;
        struct err e = ERR_INIT;
        struct bench b;
        char url[64];
        int port = 0;

        bench_new(&b);
        pid_t server = serve(&script, b.log, &port);

        snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
        const char *const argv[] = {"doctor", "--json",    "--server",      url, "--token-file",
                                    b.token,  "--project", rows[i].project, NULL};
        const char *const plain[] = {"doctor", "--json", NULL};

        run_command(&command_doctor, argv, &r);
        run_command(&command_doctor, plain, &alone);
        kill(server, SIGKILL);
        assert_int_equal(waitpid(server, NULL, 0), server);
        AUTO_JSON cJSON *j = NULL;
        AUTO_JSON cJSON *k = NULL;

        assert_int_equal(json_parse(r.out, strlen(r.out), NULL, &j, &e), 0);
        assert_int_equal(json_parse(alone.out, strlen(alone.out), NULL, &k, &e), 0);
        assert_string_equal(row_text(j, "server", "state"), rows[i].server);
        assert_null(row_text(k, "server", "state"));
        if (rows[i].upload)
            assert_string_equal(row_text(j, "upload", "state"), rows[i].upload);
        else
            assert_null(row_text(j, "upload", "state"));
        assert_non_null(
            strstr(row_text(j, rows[i].upload ? "upload" : "server", "text"), rows[i].text));
        if (i > 0) {
            assert_int_equal(r.code, 4);
            assert_true(*row_text(j, rows[i].upload ? "upload" : "server", "fix"));
        } else {
            assert_int_equal(r.code, alone.code);
        }
        command_result_fini(&r);
        command_result_fini(&alone);
        bench_free(&b);
    }
}

static void busy_servers_are_asked_again(void **state)
{
    struct bench b;
    struct command_result r;
    char *log = NULL;

    (void) state;
    bench_new(&b);
    PUSH(&b, &r, &log, STATUS("503 Busy", "{}"), BLOB, STATUS("429 Slow\r\nRetry-After: 1", "{}"),
         CREATED(VERDICT("\"OK\"")));
    assert_int_equal(r.code, 0);
    command_result_fini(&r);
    free(log);
    bench_free(&b);
}

/* Never silent, never done: every wait of the client has an end. */
static pid_t trickle(int *out_port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof addr;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *) &addr, sizeof addr), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &addr, &size), 0);
    *out_port = ntohs(addr.sin_port);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
        int fd = accept(listener, NULL, NULL);

        (void) alarm(60);
        if (write(fd, head, sizeof head - 1) < 0)
            _exit(1);
        while (send(fd, " ", 1, MSG_NOSIGNAL) == 1)
            (void) usleep(100000);
        (void) accept(listener, NULL, NULL); /* a second try would hang here */
        _exit(0);
    }
    close(listener);
    return pid;
}

static void a_server_that_only_trickles_is_given_up(void **state)
{
    struct err e = ERR_INIT;
    struct http_reply reply = {.status = 0};
    char url[64];
    int port = 0;
    pid_t server = trickle(&port);
    time_t begin = time(NULL);

    (void) state;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    const struct http_request q = {.method = "GET", .url = url, .file_fd = -1, .total_s = 1};

    assert_int_equal(http_retry(&q, &reply, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY); /* exit 6 */
    assert_non_null(strstr(e.text, "the server is too slow"));
    assert_true(time(NULL) - begin < 15);
    kill(server, SIGKILL);
    assert_int_equal(waitpid(server, NULL, 0), server);
}

/* Nobody has to ask for it. */
static void every_exchange_has_an_end(void **state)
{
    const struct http_save save = {.fd = -1, .max = UINT64_C(1) << 31};
    const struct http_request small = {.method = "GET", .file_fd = -1};
    const struct http_request large = {.method = "GET", .file_fd = -1, .save = &save};
    const struct http_request upload = {.method = "PUT", .file_fd = 3, .file_size = 1 << 20};

    (void) state;
    assert_int_equal(http_total_seconds(&small), HTTP_TOTAL_S);
    assert_int_equal(http_total_seconds(&upload), HTTP_TOTAL_S + 64);
    assert_in_range(http_total_seconds(&large), 3600, 48 * 3600);
}

static void an_unreachable_server_is_an_infrastructure_error(void **state)
{
    struct bench b;
    struct command_result r;

    (void) state;
    bench_new(&b);
    const char *const argv[] = {"push",         b.archive, "--server", "http://127.0.0.1:9",
                                "--project",    PROJECT,   "--gate",   GATE,
                                "--token-file", b.token,   NULL};

    run_command(&command_push, argv, &r);
    assert_int_equal(r.code, 6);
    command_result_fini(&r);
    bench_free(&b);
}

/* Decisions U26. */
static void a_token_never_goes_unencrypted_to_another_machine(void **state)
{
    static const char *const bad[] = {"http://perf.example.org", "http://127.0.0.1.example.org",
                                      "http://127.evil.example", "http://10.0.0.1:80",
                                      "HTTP://[2001:db8::1]/"};
    struct bench b;
    struct command_result r;

    (void) state;
    bench_new(&b);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *const argv[] = {"push",         b.archive, "--server", bad[i],
                                    "--project",    PROJECT,   "--gate",   GATE,
                                    "--token-file", b.token,   NULL};

        run_command(&command_push, argv, &r);
        assert_int_equal(r.code, 2);
        assert_non_null(strstr(r.err, "refusing to send a token unencrypted"));
        command_result_fini(&r);
    }
    const char *const file[] = {"push",         b.archive, "--server", "file:///etc",
                                "--project",    PROJECT,   "--gate",   GATE,
                                "--token-file", b.token,   NULL};

    run_command(&command_push, file, &r);
    assert_int_equal(r.code, 2);
    command_result_fini(&r);
    assert_true(http_is_loopback("http://127.0.0.1:8620/"));
    assert_true(http_is_loopback("http://[::1]:8620/"));
    assert_true(http_is_loopback("http://localhost/"));
    assert_false(http_is_loopback("http://localhost.example.org/"));
    bench_free(&b);
}

static void token_files_must_be_private(void **state)
{
    struct bench b;
    char *token = NULL;
    struct err e = ERR_INIT;

    (void) state;
    bench_new(&b);
    assert_int_equal(push_read_token(b.token, &token, &e), 0);
    assert_string_equal(token, TOKEN);
    free(token);
    assert_int_equal(chmod(b.token, 0640), 0);
    assert_int_equal(push_read_token(b.token, &token, &e), -1);
    assert_non_null(strstr(e.text, "chmod 600"));
    assert_int_equal(chmod(b.token, 0600), 0);
    test_write_text(b.dir, "token", "two words\n");
    assert_int_equal(chmod(b.token, 0600), 0);
    assert_int_equal(push_read_token(b.token, &token, &e), -1);
    test_write_text(b.dir, "token", "");
    assert_int_equal(push_read_token(b.token, &token, &e), -1);
    bench_free(&b);
}

/* What a server passes on may have been written by whoever wrote the archive. */
static void a_refusal_stays_in_its_lines(void **state)
{
    static const char *const answers[] = {
        STATUS("422 Unprocessable", "{\"reasons\": [{\"code\": \"IN-MANIFEST\", \"text\": "
                                    "\"a\\u001b[31m\\nresult     OK\"}]}"),
        STATUS("422 Unprocessable", "{\"detail\": \"a\\u001b[31m\\nresult     OK\"}")};
    struct bench b;

    (void) state;
    bench_new(&b);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct command_result r;
        char *log = NULL;

        PUSH(&b, &r, &log, BLOB, answers[i]);
        assert_int_equal(r.code, 5);
        assert_non_null(strstr(r.err, "a?[31m result     OK"));
        assert_null(strchr(r.err, '\x1b'));
        assert_null(strstr(r.err, "\nresult"));
        command_result_fini(&r);
        free(log);
    }
    bench_free(&b);
}

#define NO_CHECK "is no check of this commit"
#define COMMIT "c6f068d4e70ae7a6b7eefefdfe50fec8272f513e"
#define CHECK_OF(schema, project, commit, word, gates)                                             \
    "{\"schema\": \"" schema "\", \"project\": \"" project "\", \"commit\": \"" commit             \
    "\", \"verdict\": \"" word "\", \"description\": \"" word " 1 of 1 gate\", \"gates\": [" gates \
    "]}"
#define CHECK(word, gates) CHECK_OF("cleanrun-check/1", "o/p", COMMIT, word, gates)
#define GATE_ROW(name, word)                                                                       \
    "{\"gate\": \"" name "\", \"verdict\": \"" word "\", \"description\": \"" word                 \
    " RSS\", \"url\": \"/r/1\"}"

static void status_watches_until_there_is_a_verdict(void **state)
{
    const char *const answers[] = {OK(CHECK("PENDING", "")), OK(CHECK("OK", GATE_ROW("g", "OK")))};
    struct script script = {answers, 2};
    struct command_result r;
    struct bench b;
    char url[64];
    int port = 0;

    (void) state;
    bench_new(&b);
    pid_t server = serve(&script, b.log, &port);

    snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    const char *const argv[] = {"status",    COMMIT, "--server", url,
                                "--project", "o/p",  "--watch",  NULL};

    run_command(&command_status, argv, &r);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "PENDING"));
    assert_non_null(strstr(r.out, "OK  1 of 1 gate"));
    assert_non_null(strstr(r.err, "c6f068d4e70a has no verdict yet; asked again every 5 s"));
    kill(server, SIGKILL);
    assert_int_equal(waitpid(server, NULL, 0), server);
    command_result_fini(&r);
    bench_free(&b);
}

static void status_exits_by_the_worst_verdict(void **state)
{
    static const struct {
        const char *answer;
        int code;
        const char *out, *err, *page;
    } rows[] = {
        {OK(CHECK("PENDING", "")), 8, "PENDING", NULL, NULL},
        {OK(CHECK("REGRESSION", GATE_ROW("g", "REGRESSION"))), 1,
         "REGRESSION  1 of 1 gate\n  g                        REGRESSION       RSS\n", NULL,
         "/r/1"},
        {OK(CHECK("OK", GATE_ROW("g", "OK") ", " GATE_ROW("h", "OK"))), 0, "OK", NULL, NULL},
        {OK(CHECK("FAIL", GATE_ROW("g", "OK") ", " GATE_ROW("h", "FAIL"))), 4, "FAIL", NULL, NULL},
        /* A green word counts only in a whole answer about what was asked. */
        {OK("{\"verdict\": \"OK\"}"), 6, NULL, NO_CHECK, NULL},
        {OK(CHECK("OK", "")), 6, NULL, NO_CHECK, NULL},
        {OK(CHECK_OF("cleanrun-check/2", "o/p", COMMIT, "OK", GATE_ROW("g", "OK"))), 6, NULL,
         NO_CHECK, NULL},
        {OK(CHECK_OF("cleanrun-check/1", "o/q", COMMIT, "OK", GATE_ROW("g", "OK"))), 6, NULL,
         NO_CHECK, NULL},
        {OK(CHECK_OF("cleanrun-check/1", "o/p", FIXTURE_COMMIT, "OK", GATE_ROW("g", "OK"))), 6,
         NULL, NO_CHECK, NULL},
        {OK(CHECK("OK", GATE_ROW("g", "OK") ", " GATE_ROW("h", "FAIL"))), 6, NULL, NO_CHECK, NULL},
        {OK(CHECK("OK", GATE_ROW("g", "fine"))), 6, NULL, NO_CHECK, NULL},
        {OK(CHECK("OK", "\"g\"")), 6, NULL, NO_CHECK, NULL},
        {OK(CHECK("fine", GATE_ROW("g", "OK"))), 6, NULL, NO_CHECK, NULL},
        {OK("<html>"), 6, NULL, NO_CHECK, NULL},
        {STATUS("404 Not Found", "{}"), 2, NULL,
         "o/p: the server answered 404; is there such a project", NULL},
        {OK("{}"), 6, NULL, NULL, NULL},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const answers[] = {rows[i].answer};
        struct script script = {answers, 1};
        struct command_result r;
        struct bench b;
        char url[64];
        int port = 0;

        bench_new(&b);
        pid_t server = serve(&script, b.log, &port);

        snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
        const char *const argv[] = {"status",    "c6f068d4e70ae7a6b7eefefdfe50fec8272f513e",
                                    "--server",  url,
                                    "--project", "o/p",
                                    NULL};

        run_command(&command_status, argv, &r);
        assert_int_equal(r.code, rows[i].code);
        if ((rows[i].out && !strstr(r.out, rows[i].out)) ||
            (rows[i].err && !strstr(r.err, rows[i].err)))
            fail_msg("out: %s\nerr: %s", r.out, r.err);
        if (rows[i].page) { /* as an address that can be opened */
            char page[100];

            snprintf(page, sizeof page, "%s%s\n", url, rows[i].page);
            assert_non_null(strstr(r.out, page));
        }
        kill(server, SIGKILL);
        assert_int_equal(waitpid(server, NULL, 0), server);
        char *log = test_read_path(b.log, NULL);

        assert_non_null(strstr(
            log, "GET /api/v1/projects/o/p/commits/c6f068d4e70ae7a6b7eefefdfe50fec8272f513e/check "
                 "HTTP/1.1"));
        assert_null(strstr(log, "Authorization"));
        free(log);
        command_result_fini(&r);
        bench_free(&b);
    }
}

/* In a repository with a cleanrun.yaml nobody has to repeat its project. */
static void status_takes_the_project_of_the_definition(void **state)
{
    static const struct {
        const char *yaml;
        int code;
        const char *err;
        const char *ci;
    } rows[] = {
        {"version: 1\nproject: o/p\n", 0, "project o/p, as the nearest cleanrun.yaml says", "CI="},
        {"version: 1\nproject: o/p\n", 0, "project o/p, as the nearest cleanrun.yaml says", "CI=0"},
        /* The change that is asked about must not choose who answers. */
        {"version: 1\nproject: o/p\n", 2, "in CI (CI is set) --project OWNER/NAME", "CI=true"},
        {"version: 1\n", 2, "which project? --project OWNER/NAME", "CI="},
        {NULL, 2, "which project? --project OWNER/NAME", "CI="},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *const answers[] = {OK(CHECK("OK", GATE_ROW("g", "OK")))};
        struct script script = {answers, 1};
        struct bench b;
        char url[64], *out = NULL, *err = NULL;
        size_t out_len = 0, err_len = 0;
        int port = 0;
        struct test_run git;
        struct err e = ERR_INIT;

        bench_new(&b);
        static const char *const init[] = {"git", "init", "-q", ".", NULL};

        test_run(init, NULL, b.dir, NULL, &git);
        assert_int_equal(git.code, 0);
        test_run_fini(&git);
        if (rows[i].yaml) {
            char *text = NULL;

            assert_true(asprintf(&text,
                                 "%sgates:\n  g:\n    class: c\n    build: {command: [make], "
                                 "executable: {from: path, path: a}}\n    run: {command: "
                                 "['{executable}'], report: s/p.json}\n    identity: [{path: /n, "
                                 "require: required}]\n    accept: {}\n    audit: {paths: "
                                 "{required: [s/p.json]}, metrics: [{path: /n, unit: '1', worse: "
                                 "lower, tolerance_pct: 1}]}\n",
                                 rows[i].yaml) > 0);
            test_write_text(b.dir, "cleanrun.yaml", text);
            free(text);
        }
        pid_t server = serve(&script, b.log, &port);

        snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
        static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
        AUTO_FREE char *ci = strdup(rows[i].ci);
        char *const environment[] = {path, ci, NULL};
        char commit[] = "c6f068d4e70ae7a6b7eefefdfe50fec8272f513e", option[] = "--server";
        char *argv[] = {commit, option, url};
        struct cli c = {.command = "status", .directory = b.dir, .environment = environment};
        struct cli_args args = {.n_args = 0};

        c.out = open_memstream(&out, &out_len);
        c.err = open_memstream(&err, &err_len);
        assert_true(c.out && c.err);
        assert_int_equal(cli_parse(&c, &command_status, 3, argv, &args, &e), 0);
        int code = command_status.run(&c, &args);

        assert_int_equal(fclose(c.out), 0);
        assert_int_equal(fclose(c.err), 0);
        if (code != rows[i].code || (rows[i].err && !strstr(err, rows[i].err)))
            fail_msg("row %zu: exit %d\n%s%s", i, code, out, err);
        kill(server, SIGKILL);
        assert_int_equal(waitpid(server, NULL, 0), server);
        if (code == 0) {
            char *log = test_read_path(b.log, NULL);

            assert_non_null(strstr(log, "GET /api/v1/projects/o/p/commits/"));
            free(log);
        }
        free(out);
        free(err);
        bench_free(&b);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_steps_are_sent_as_the_contract_says),
        cmocka_unit_test(what_stands_in_the_check_decides_the_exit),
        cmocka_unit_test(an_ok_says_so_throughout),
        cmocka_unit_test(the_exit_code_is_the_server_s_verdict),
        cmocka_unit_test(refusals_of_the_archive_end_before_the_second_step),
        cmocka_unit_test(an_archive_that_cannot_be_read_is_never_green),
        cmocka_unit_test(an_archive_of_another_gate_is_not_sent),
        cmocka_unit_test(an_unknown_key_is_named),
        cmocka_unit_test(a_known_key_gets_its_own_way_out),
        cmocka_unit_test(a_server_is_tried_before_the_run),
        cmocka_unit_test(doctor_tells_whether_the_token_may_upload),
        cmocka_unit_test(busy_servers_are_asked_again),
        cmocka_unit_test(a_server_that_only_trickles_is_given_up),
        cmocka_unit_test(every_exchange_has_an_end),
        cmocka_unit_test(an_unreachable_server_is_an_infrastructure_error),
        cmocka_unit_test(a_token_never_goes_unencrypted_to_another_machine),
        cmocka_unit_test(token_files_must_be_private),
        cmocka_unit_test(a_refusal_stays_in_its_lines),
        cmocka_unit_test(status_watches_until_there_is_a_verdict),
        cmocka_unit_test(status_exits_by_the_worst_verdict),
        cmocka_unit_test(status_takes_the_project_of_the_definition),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/push", tests, NULL, NULL);
}
