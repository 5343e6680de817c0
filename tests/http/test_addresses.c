/* What the real program answers without any run: pages, twins, help, health, privacy, tokens,
 * errors. */
#include "tests/http/live.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json_in.h"

static int setup(void **state)
{
    static const char *const open_project[] = {"project", "add", "demo/open", NULL};
    static const char *const closed_project[] = {"project", "add", "demo/closed", "--private",
                                                 NULL};
    struct live *l = calloc(1, sizeof *l);

    assert_non_null(l);
    live_init(l);
    assert_int_equal(live_admin(l, open_project, NULL), 0);
    assert_int_equal(live_admin(l, closed_project, NULL), 0);
    live_start(l, NULL);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    struct live *l = *state;

    live_fini(l);
    free(l);
    return 0;
}

static char *token_header(struct live *l, const char *name, const char *scope, const char *project)
{
    const char *args[] = {"token", "add", name, "--scope", scope, project ? "--project" : NULL,
                          project, NULL};
    char *secret = NULL;
    char *header = NULL;

    assert_int_equal(live_admin(l, args, &secret), 0);
    secret[strcspn(secret, "\r\n")] = '\0';
    assert_true(asprintf(&header, "Authorization: Bearer %s\r\n", secret) > 0);
    free(secret);
    return header;
}

static int status_of(struct live *l, const char *method, const char *target, const char *headers)
{
    struct raw_response a;
    int status = 0;

    raw_ask(l->port, method, target, headers, NULL, 0, &a);
    status = a.status;
    raw_response_fini(&a);
    return status;
}

static void every_address_answers_in_its_form(void **state)
{
    static const struct {
        const char *target;
        int status;
        const char *type;
    } rows[] = {
        {"/", 200, "text/html"},
        {"/index.json", 200, "application/json"},
        {"/index.txt", 200, "text/plain"},
        {"/index", 308, "text/plain"},
        {"/p/demo/open", 200, "text/html"},
        {"/p/demo/open.json", 200, "application/json"},
        {"/p/demo/open.txt", 200, "text/plain"},
        {"/p/demo/open/commit/0123456789012345678901234567890123456789", 200, "text/html"},
        {"/p/demo/open/commit/0123456789012345678901234567890123456789.json", 200,
         "application/json"},
        {"/p/demo/open/commit/xyz", 404, "text/html"},
        {"/p/demo/open/no-gate", 404, "text/html"},
        {"/p/demo/none", 404, "text/html"},
        {"/p/demo/none.json", 404, "application/problem+json"},
        {"/p/demo/none.txt", 404, "text/plain"},
        {"/r/20261129T150131Z-5e7c1a90", 404, "text/html"},
        {"/r/20261129T150131Z-5e7c1a90/vs/b-x.md", 404, "text/plain"},
        {"/r/nonsense", 404, "text/html"},
        {"/b/b-20261129T150131Z-5e7c1a90", 404, "text/html"},
        {"/p/demo/open/some-gate/badge.svg", 200, "image/svg+xml"},
        {"/help", 200, "text/html"},
        {"/help.json", 200, "application/json"},
        {"/help.txt", 200, "text/plain"},
        {"/help/reasons/IN-HASH", 200, "text/html"},
        {"/help/reasons/IN-HASH.json", 200, "application/json"},
        {"/help/reasons/IN-HASH.txt", 200, "text/plain"},
        {"/help/reasons/IN-NOTHING", 404, "text/html"},
        {"/help/problems/framing", 200, "text/plain"},
        {"/help/problems/nothing", 404, "text/html"},
        {"/web/style.css", 200, "text/css"},
        {"/web/none.css", 404, "text/html"},
        {"/healthz", 200, "application/json"},
        {"/readyz", 200, "application/json"},
        {"/version", 200, "application/json"},
        {"/metrics", 200, "text/plain"},
        {"/api/v1/openapi.json", 200, "application/json"},
        {"/api/v1/keys", 200, "application/json"},
        {"/api/v1/projects/demo/open/runners/"
         "0000000000000000000000000000000000000000000000000000000000000000",
         404, "application/problem+json"},
        {"/api/v1/projects/demo/open/runners/00", 404, "application/problem+json"},
        {"/schema/cleanrun-v1.json", 200, "application/schema+json"},
        {"/schema/cleanrun-v1", 404, "application/problem+json"},
        {"/api/v1/projects/demo/open/commits/0123456789012345678901234567890123456789/check", 200,
         "application/json"},
        {"/api/v1/projects/demo/open/runs/20261129T150131Z-5e7c1a90/verdict", 404,
         "application/problem+json"},
        {"/api/v1/projects/demo/none/runs/20261129T150131Z-5e7c1a90", 404,
         "application/problem+json"},
        {"/api/v1/nothing", 404, "application/problem+json"},
        {"/p/demo/open/", 404, "application/problem+json"},
    };
    struct live *l = *state;
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(rows); i++) {
        struct raw_response a;
        char *type = NULL;

        raw_ask(l->port, "GET", rows[i].target, NULL, NULL, 0, &a);
        type = raw_header(&a, "Content-Type");
        if (a.status != rows[i].status || !type ||
            strncmp(type, rows[i].type, strlen(rows[i].type)) != 0)
            fail_msg("%s: %d %s", rows[i].target, a.status, type ? type : "-");
        if (strstr(rows[i].type, "json")) {
            AUTO_JSON cJSON *j = NULL;
            /* a JSON Schema is deeper than our own documents */
            const struct json_limits limits = {.max_bytes = a.body_len, .max_depth = 64};
            struct err e = ERR_INIT;

            if (json_parse(a.body, a.body_len, &limits, &j, &e) < 0)
                fail_msg("%s: %s", rows[i].target, e.text);
        }
        free(type);
        raw_response_fini(&a);
        raw_ask(l->port, "HEAD", rows[i].target, NULL, NULL, 0, &a);
        if (a.status != rows[i].status)
            fail_msg("HEAD %s: %d", rows[i].target, a.status);
        raw_response_fini(&a);
    }
}

static void browsers_get_error_pages_and_programs_get_problems(void **state)
{
    static const struct {
        const char *target, *accept;
        int status;
        bool page;
    } rows[] = {
        {"/nothing", "Accept: text/html,*/*\r\n", 404, true},
        {"/nothing", "Accept: */*\r\n", 404, false},
        {"/api/v1/nothing", "Accept: text/html,*/*\r\n", 404, false},
        {"/a%00", "Accept: text/html\r\n", 400, true},
        {"/p/demo/none", "Accept: */*\r\n", 404, true},
    };
    struct live *l = *state;
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(rows); i++) {
        struct raw_response a;

        raw_ask(l->port, "GET", rows[i].target, rows[i].accept, NULL, 0, &a);
        assert_int_equal(a.status, rows[i].status);
        assert_true((strstr(a.head, "text/html") != NULL) == rows[i].page);
        raw_response_fini(&a);
    }
}

static void pages_carry_the_strict_policy(void **state)
{
    struct live *l = *state;
    struct raw_response a;
    char *csp = NULL;

    raw_ask(l->port, "GET", "/", NULL, NULL, 0, &a);
    csp = raw_header(&a, "Content-Security-Policy");
    assert_non_null(csp);
    assert_memory_equal(csp, "default-src 'none'; script-src 'self';", 38);
    assert_null(strstr(csp, "unsafe"));
    assert_null(strstr(a.body, "style=\""));
    assert_null(strstr(a.body, "<script>"));
    free(csp);
    raw_response_fini(&a);
}

static void unchanged_pages_are_304(void **state)
{
    static const char *const targets[] = {"/", "/p/demo/open.json", "/help", "/web/style.css",
                                          "/api/v1/openapi.json"};
    struct live *l = *state;
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(targets); i++) {
        struct raw_response a;
        char *etag = NULL;
        char *header = NULL;

        raw_ask(l->port, "GET", targets[i], NULL, NULL, 0, &a);
        etag = raw_header(&a, "ETag");
        assert_non_null(etag);
        assert_true(asprintf(&header, "If-None-Match: %s\r\n", etag) > 0);
        raw_response_fini(&a);
        assert_int_equal(status_of(l, "GET", targets[i], header), 304);
        assert_int_equal(status_of(l, "HEAD", targets[i], header), 304);
        free(header);
        free(etag);
    }
}

/* The style sheet that a page names is there, immutable. */
static void pages_name_assets_by_digest(void **state)
{
    struct live *l = *state;
    struct raw_response a;
    const char *at = NULL;
    char *target = NULL;
    char *caching = NULL;

    raw_ask(l->port, "GET", "/", NULL, NULL, 0, &a);
    at = strstr(a.body, "/web/style-");
    assert_non_null(at);
    target = strndup(at, strcspn(at, "\""));
    raw_response_fini(&a);
    raw_ask(l->port, "GET", target, NULL, NULL, 0, &a);
    assert_int_equal(a.status, 200);
    caching = raw_header(&a, "Cache-Control");
    assert_string_equal(caching, "public, max-age=31536000, immutable");
    free(caching);
    free(target);
    raw_response_fini(&a);
}

static void private_projects_do_not_exist_without_a_token(void **state)
{
    static const char *const targets[] = {
        "/p/demo/closed",
        "/p/demo/closed.json",
        "/p/demo/closed/commit/0123456789012345678901234567890123456789",
        "/p/demo/closed/some-gate/badge.svg",
        "/api/v1/projects/demo/closed/commits/0123456789012345678901234567890123456789/check",
    };
    struct live *l = *state;
    char *mine = token_header(l, "mine", "read", "demo/closed");
    char *other = token_header(l, "other", "read", "demo/open");
    char *all = token_header(l, "all", "read", NULL);
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(targets); i++) {
        struct raw_response a;
        struct raw_response b;
        char *caching = NULL;

        assert_int_equal(status_of(l, "GET", targets[i], other), 404);
        raw_ask(l->port, "GET", targets[i], mine, NULL, 0, &a);
        assert_int_equal(a.status, 200);
        caching = raw_header(&a, "Cache-Control");
        assert_memory_equal(caching, "private", 7);
        assert_int_equal(raw_header_count(&a, "Vary"), 1);
        free(caching);
        raw_response_fini(&a);
        assert_int_equal(status_of(l, "GET", targets[i], all), 200);
        /* After it was shown to somebody, still not to everybody. */
        raw_ask(l->port, "GET", targets[i], NULL, NULL, 0, &b);
        assert_int_equal(b.status, 404);
        assert_null(strstr(b.body, "demo-closed"));
        raw_response_fini(&b);
    }
    free(mine);
    free(other);
    free(all);
}

/* What is private and what is not there answer alike, to every kind of asker. */
static void private_and_absent_answer_alike(void **state)
{
    static const char *const absent[] = {
        "/p/demo/absent",
        "/p/demo/absent.json",
        "/p/demo/absent/commit/0123456789012345678901234567890123456789",
        "/p/demo/absent/some-gate/badge.svg",
        "/p/Demo/absent",
        "/r/20261129T141502Z-9c1e07ab",
        "/r/20261129T141502Z-9c1e07ab/vs/b-20261129T141502Z-9c1e07ab",
        "/r/no-run",
        "/b/b-20261129T141502Z-9c1e07ab",
        "/b/b-20261129T141502Z-9c1e07ab.txt",
        "/api/v1/projects/demo/absent/runs/20261129T141502Z-9c1e07ab/archive",
        "/api/v1/projects/demo/absent/commits/0123456789012345678901234567890123456789/check",
    };
    static const char *const no_tokens[] = {
        "Authorization: Bearer "
        "clr_0000000000000000000000000000000000000000000000000000000000000000\r\n",
        "Authorization: Basic YTpi\r\n"};
    struct live *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(no_tokens); i++) {
        assert_int_equal(status_of(l, "GET", "/p/demo/closed", no_tokens[i]), 401);
        for (size_t k = 0; k < ARRAY_LEN(absent); k++) {
            int status = status_of(l, "GET", absent[k], no_tokens[i]);

            if (status != 401)
                fail_msg("%s: %d, a private one says 401", absent[k], status);
        }
    }
    for (size_t k = 0; k < ARRAY_LEN(absent); k++) {
        struct raw_response a;

        raw_ask(l->port, "GET", absent[k], NULL, NULL, 0, &a);
        assert_int_equal(a.status, 404);
        assert_null(strstr(a.body, "no such"));
        raw_response_fini(&a);
    }
}

static void home_shows_only_what_the_asker_may_see(void **state)
{
    struct live *l = *state;
    struct raw_response a;

    raw_ask(l->port, "GET", "/", NULL, NULL, 0, &a);
    assert_null(strstr(a.body, "demo/closed"));
    raw_response_fini(&a);
}

static void tokens_are_checked_everywhere(void **state)
{
    struct live *l = *state;
    char *read_only = token_header(l, "read-only", "read", "demo/open");
    char *elsewhere = token_header(l, "elsewhere", "upload", "demo/closed");
    const char *blob = "/api/v1/projects/demo/open/blobs/"
                       "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const char *unknown = "Authorization: Bearer cr_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n";
    struct raw_response a;

    assert_int_equal(status_of(l, "GET", "/p/demo/open", unknown), 401);
    assert_int_equal(status_of(l, "GET", "/p/demo/open", "Authorization: Basic YTpi\r\n"), 401);
    assert_int_equal(status_of(l, "GET", "/p/demo/open", read_only), 200);
    raw_ask(l->port, "PUT", blob, NULL, "abc", 3, &a);
    assert_int_equal(a.status, 401);
    assert_int_equal(raw_header_count(&a, "WWW-Authenticate"), 1);
    raw_response_fini(&a);
    raw_ask(l->port, "PUT", blob, unknown, "abc", 3, &a);
    assert_int_equal(a.status, 401);
    raw_response_fini(&a);
    raw_ask(l->port, "PUT", blob, read_only, "abc", 3, &a);
    assert_int_equal(a.status, 403);
    raw_response_fini(&a);
    raw_ask(l->port, "PUT", blob, elsewhere, "abc", 3, &a);
    assert_int_equal(a.status, 403);
    raw_response_fini(&a);
    raw_ask(l->port, "PUT", "/api/v1/projects/demo/none/blobs/sha256:00", elsewhere, "abc", 3, &a);
    assert_int_equal(a.status, 404);
    raw_response_fini(&a);
    free(read_only);
    free(elsewhere);
}

static void revoked_tokens_stop_working(void **state)
{
    static const char *const revoke[] = {"token", "revoke", "short-lived", NULL};
    struct live *l = *state;
    char *header = token_header(l, "short-lived", "read", "demo/closed");

    assert_int_equal(status_of(l, "GET", "/p/demo/closed", header), 200);
    assert_int_equal(live_admin(l, revoke, NULL), 0);
    assert_int_equal(status_of(l, "GET", "/p/demo/closed", header), 401);
    free(header);
}

/* A command changes the data while the server runs: within a moment no cached page shows the old
 * state. */
static void changes_by_commands_are_seen(void **state)
{
    static const char *const add[] = {"project", "add", "demo/later", NULL};
    struct live *l = *state;
    int tries = 0;

    assert_int_equal(status_of(l, "GET", "/p/demo/later", NULL), 404);
    assert_int_equal(status_of(l, "GET", "/", NULL), 200);
    assert_int_equal(live_admin(l, add, NULL), 0);
    while (status_of(l, "GET", "/p/demo/later", NULL) != 200 && tries++ < 100)
        usleep(20000);
    assert_true(tries < 100);
}

static void metrics_have_both_forms(void **state)
{
    struct live *l = *state;
    struct raw_response a;
    char *type = NULL;

    raw_ask(l->port, "GET", "/metrics", NULL, NULL, 0, &a);
    assert_non_null(strstr(a.body, "# TYPE cleanrun_http_requests_total counter\n"));
    assert_null(strstr(a.body, "# EOF"));
    raw_response_fini(&a);
    raw_ask(l->port, "GET", "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n",
            NULL, 0, &a);
    type = raw_header(&a, "Content-Type");
    assert_string_equal(type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    free(type);
    assert_non_null(strstr(a.body, "# TYPE cleanrun_http_requests counter\n"));
    assert_non_null(strstr(a.body, "\ncleanrun_http_requests_total{status=\"2xx\"} "));
    assert_non_null(strstr(a.body, "le=\"+Inf\"} "));
    assert_null(strstr(a.body, "\n\n"));
    assert_true(a.body_len > 6 && strcmp(a.body + a.body_len - 6, "# EOF\n") == 0);
    raw_response_fini(&a);
}

static void healthcheck_tells_ready_from_absent(void **state)
{
    struct live *l = *state;
    char *path = NULL;
    char *address = NULL;
    const char *argv[] = {NULL, "healthcheck", "--listen", NULL, NULL};
    struct test_run r;

    assert_true(asprintf(&path, "%s/server/cleanrun-server", test_build_root()) > 0);
    assert_true(asprintf(&address, "127.0.0.1:%u", l->port) > 0);
    argv[0] = path;
    argv[3] = address;
    test_run(argv, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    argv[3] = "127.0.0.1:1";
    test_run(argv, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 1);
    test_run_fini(&r);
    free(path);
    free(address);
}

static void second_server_on_the_same_data_is_refused(void **state)
{
    struct live *l = *state;
    char *path = NULL;
    struct test_run r;

    assert_true(asprintf(&path, "%s/server/cleanrun-server", test_build_root()) > 0);
    {
        const char *const argv[] = {path,       "serve",       "--data", l->data,
                                    "--listen", "127.0.0.1:0", NULL};

        test_run(argv, NULL, NULL, NULL, &r);
    }
    assert_int_not_equal(r.code, 0);
    test_run_fini(&r);
    assert_int_equal(status_of(l, "GET", "/readyz", NULL), 200);
    free(path);
}

static void readiness_is_told_to_the_service_manager(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct live l;
    char text[64] = "";
    char *path = NULL;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void) state;
    live_init(&l);
    path = test_join(l.dir, "notify");
    assert_true(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path));
    assert_int_equal(bind(fd, (const struct sockaddr *) &address, sizeof address), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
    live_start(&l, NULL);
    (void) unsetenv("NOTIFY_SOCKET");
    assert_int_equal(recv(fd, text, sizeof text - 1, 0), 7);
    assert_string_equal(text, "READY=1");
    assert_int_equal(live_stop(&l), 0);
    memset(text, 0, sizeof text);
    assert_int_equal(recv(fd, text, sizeof text - 1, 0), 10);
    assert_string_equal(text, "STOPPING=1");
    (void) close(fd);
    free(path);
    live_fini(&l);
}

/* As a service manager starts it: the socket is there before the program. */
static void handed_socket_is_served(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    struct live l;
    AUTO_FREE char *path = NULL;
    struct raw_response a;
    int status = 0;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    (void) state;
    live_init(&l);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (const struct sockaddr *) &address, sizeof address), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &address, &len), 0);
    assert_true(asprintf(&path, "%s/server/cleanrun-server", test_build_root()) > 0);
    l.pid = fork();
    assert_true(l.pid >= 0);
    if (l.pid == 0) {
        char pid[32];

        (void) snprintf(pid, sizeof pid, "%d", (int) getpid());
        (void) setenv("LISTEN_PID", pid, 1);
        (void) setenv("LISTEN_FDS", "1", 1);
        (void) dup2(fd, 3);
        (void) execl(path, path, "serve", "--data", l.data, (char *) NULL);
        _exit(127);
    }
    (void) close(fd);
    /* The kernel queues the connection until the program accepts it. */
    raw_request(ntohs(address.sin_port),
                "GET /version HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", &a);
    assert_int_equal(a.status, 200);
    raw_response_fini(&a);
    assert_int_equal(kill(l.pid, SIGTERM), 0);
    assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    l.pid = 0;
    live_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_address_answers_in_its_form),
        cmocka_unit_test(browsers_get_error_pages_and_programs_get_problems),
        cmocka_unit_test(pages_carry_the_strict_policy),
        cmocka_unit_test(unchanged_pages_are_304),
        cmocka_unit_test(pages_name_assets_by_digest),
        cmocka_unit_test(private_projects_do_not_exist_without_a_token),
        cmocka_unit_test(private_and_absent_answer_alike),
        cmocka_unit_test(home_shows_only_what_the_asker_may_see),
        cmocka_unit_test(tokens_are_checked_everywhere),
        cmocka_unit_test(revoked_tokens_stop_working),
        cmocka_unit_test(changes_by_commands_are_seen),
        cmocka_unit_test(metrics_have_both_forms),
        cmocka_unit_test(healthcheck_tells_ready_from_absent),
        cmocka_unit_test(second_server_on_the_same_data_is_refused),
        cmocka_unit_test(readiness_is_told_to_the_service_manager),
        cmocka_unit_test(handed_socket_is_served),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
