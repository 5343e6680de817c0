/* ci/demo does not take another server for its own, nor another demo's data. */
#include "tests/lib/support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A socket that listens on a free port of loopback. */
static int listen_somewhere(unsigned *out_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *) &a, sizeof a), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &a, &len), 0);
    *out_port = ntohs(a.sin_port);
    return fd;
}

static void a_taken_port_is_refused_before_anything_is_done(void **state)
{
    char *dir = test_dir_new();
    char *demo = test_path("ci/demo");
    char *kept = test_join(dir, "state/mine");
    char *data = test_join(dir, "state");
    char port[16];
    char want[64];
    unsigned number = 0;
    int fd = listen_somewhere(&number);
    const char *const argv[] = {demo, "--once", "--port", port, "--state", data, NULL};
    struct test_run r = {0};

    (void) state;
    (void) snprintf(port, sizeof port, "%u", number);
    (void) snprintf(want, sizeof want, "port %u is taken", number);
    test_write_text(dir, "state/.cleanrun-demo", "");
    test_write_text(dir, "state/mine", "data");
    test_run(argv, NULL, dir, NULL, &r);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, want));
    assert_string_equal(r.out, "");
    assert_int_equal(access(kept, F_OK), 0);
    test_run_fini(&r);
    (void) close(fd);
    free(data);
    free(kept);
    free(demo);
    test_dir_free(dir);
}

static void a_running_demos_data_is_not_removed(void **state)
{
    static const char script[] =
        "mkdir -p other/ci st; printf 'sleep 60 & echo $! > s; wait\\n' > other/ci/demo\n"
        "bash other/ci/demo & pid=$!; echo $pid > st/.cleanrun-demo; touch st/mine\n"
        "until [ -s s ]; do sleep 0.02; done\n"
        "code=0; \"$1\" --once --state \"$PWD/st\" || code=$?\n"
        "kill $pid $(cat s); [ -f st/mine ] && exit $code\n";
    char *dir = test_dir_new();
    char *demo = test_path("ci/demo");
    const char *const argv[] = {"bash", "-c", script, "bash", demo, NULL};
    struct test_run r = {0};

    (void) state;
    test_run(argv, NULL, dir, NULL, &r);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "belongs to a demo that is running"));
    test_run_fini(&r);
    free(demo);
    test_dir_free(dir);
}

/* The demo's own question, asked of two servers. */
static void only_the_server_of_the_data_directory_is_ours(void **state)
{
    static const char script[] =
        "eval \"$(sed -n '/^is_ours() {/,/^}/p' \"$1\")\"; type is_ours >/dev/null\n"
        "mkdir a b\n"
        "serve() { \"$2\" serve --data $1 --listen 127.0.0.1:$3 --base-url http://127.0.0.1:$3 "
        "2>$1.log & }\n"
        "serve a \"$2\" $3; first=$!; serve b \"$2\" $4; second=$!\n"
        "for p in $3 $4; do for i in $(seq 200); do\n"
        "    curl -fsS -o x http://127.0.0.1:$p/readyz 2>/dev/null && break; sleep 0.05\n"
        "done; done\n"
        "ask() { is_ours http://127.0.0.1:$1 $2 && echo ours || echo not; }\n"
        "ask $3 a; ask $4 b; ask $3 b; ask $4 a; ask $3 nowhere\n"
        "kill $first $second; wait; ask $3 a\n";
    char *dir = test_dir_new();
    char *demo = test_path("ci/demo");
    char *server = test_join(test_build_root(), "server/cleanrun-server");
    char first[16];
    char second[16];
    unsigned number = 0;
    unsigned other = 0;
    int fd = listen_somewhere(&number);
    int fd2 = listen_somewhere(&other);
    const char *const argv[] = {"bash", "-c", script, "bash", demo, server, first, second, NULL};
    struct test_run r = {0};

    (void) state;
    (void) close(fd);
    (void) close(fd2);
    (void) snprintf(first, sizeof first, "%u", number);
    (void) snprintf(second, sizeof second, "%u", other);
    test_run(argv, NULL, dir, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "ours\nours\nnot\nnot\nnot\nnot\n");
    test_run_fini(&r);
    free(server);
    free(demo);
    test_dir_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_taken_port_is_refused_before_anything_is_done),
        cmocka_unit_test(a_running_demos_data_is_not_removed),
        cmocka_unit_test(only_the_server_of_the_data_directory_is_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
