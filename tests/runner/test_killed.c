/* A runner that is killed: what it leaves, and what the next run does about it. The next run of any
 * runner of this machine ends such processes, so that nothing may be measured beside these tests.
 */
#include "tests/runner/project.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/json_in.h"
#include "base/num.h"

static void remove_out(const struct project *p)
{
    char *out = test_join(p->dir, "out");
    const char *const argv[] = {"rm", "-rf", out, NULL};
    struct test_run r;

    test_run(argv, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    free(out);
}

/* Kills the runner at moments spread over a whole run: what is left is a complete run or nothing
 * that looks like one. */
static void killed_runner_leaves_no_half_evidence(void **state)
{
    struct project p;
    struct timespec a, b;
    int kills = 0, complete = 0, partial = 0;
    long length_ms;

    (void) state;
    project_new(&p, "ok", NULL);
    clock_gettime(CLOCK_MONOTONIC, &a);
    struct test_run r;

    project_measure(&p, NULL, &r);
    clock_gettime(CLOCK_MONOTONIC, &b);
    assert_int_equal(r.code, 3);
    test_run_fini(&r);
    length_ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
    for (int i = 0; i < 14; i++) {
        char *out = test_join(p.dir, "out");
        char *left = test_join(p.dir, "out.partial");
        struct stat st;
        int status = 0;

        remove_out(&p);
        pid_t runner = project_start(&p);

        test_pause_ms(length_ms * (i + 1) * 5 / (14 * 4)); /* up to 1.25 runs */
        kill(runner, SIGKILL);
        assert_int_equal(waitpid(runner, &status, 0), runner);
        if (WIFSIGNALED(status))
            kills++;
        if (stat(out, &st) == 0) {
            cJSON *m = project_manifest(&p); /* fails the test when anything is missing or wrong */

            cJSON_Delete(m);
            complete++;
        } else if (stat(left, &st) == 0) {
            partial++;
        }
        free(left);
        free(out);
    }
    print_message("killed %d of 14, %d left unfinished, %d complete\n", kills, partial, complete);
    assert_true(kills >= 6);
    assert_true(partial >= 3);
    /* The next run starts over an unfinished one of a dead runner. */
    remove_out(&p);
    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 3);
    test_run_fini(&r);
    /* Neither is anything left of the temporary files of those that were killed. */
    const char *const list[] = {"find", p.dir, "-path", "*/scratch/*", NULL};

    test_run(list, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, ""); /* the directory itself may not be there at all */
    test_run_fini(&r);
    project_free(&p);
}

/* The number that the text begins with. */
static pid_t to_pid(const char *text)
{
    uint64_t number = 0;

    assert_true(num_parse_u64(text, strspn(text, "0123456789"), INT32_MAX, &number));
    return (pid_t) number;
}

/* The whole line in the file, waited for; heap. */
static char *await_line(const char *path)
{
    for (int i = 0; i < 600; i++) {
        char text[256];
        int fd = open(path, O_RDONLY);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

        if (fd >= 0)
            close(fd);
        if (n > 1 && text[n - 1] == '\n' && !memchr(text, '\n', (size_t) n - 1)) {
            text[n - 1] = '\0';
            return strdup(text);
        }
        test_pause_ms(50);
    }
    fail_msg("no line in %s", path);
    return NULL;
}

static void kill_and_wait(pid_t runner)
{
    int status = 0;

    assert_int_equal(kill(runner, SIGKILL), 0);
    assert_int_equal(waitpid(runner, &status, 0), runner);
    assert_true(WIFSIGNALED(status));
}

/* As the manifest tells it. */
static int leftovers_ended(const struct project *p)
{
    cJSON *m = project_manifest(p);
    const cJSON *n = json_get(json_get(json_get(m, "interference"), "before"), "leftovers_ended");

    assert_true(cJSON_IsNumber(n));
    int number = n->valueint;

    cJSON_Delete(m);
    return number;
}

/* A daemon of the program outlives its runner; the next run ends it and says so. */
static void run_ends_what_a_killed_runner_left(void **state)
{
    static const char *const doctor[] = {"doctor", "--json", NULL};
    struct project p, next;
    struct test_run r;
    const cJSON *row = NULL;
    bool told = false;
    char word[64];

    (void) state;
    project_new(&p, "orphan-stays, REPO", NULL);
    project_new(&next, "ok", NULL);
    pid_t runner = project_start(&p);
    char *path = test_join(p.dir, "orphan.pid"), *number = await_line(path);
    pid_t orphan = to_pid(number);
    int pidfd = pidfd_open(orphan, 0);
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};

    assert_true(pidfd >= 0);
    /* While its runner lives, it is nobody's to end. */
    project_measure(&next, NULL, &r);
    assert_int_equal(r.code, 3);
    assert_null(strstr(r.out, "\"leftover\""));
    test_run_fini(&r);
    assert_int_equal(poll(&ended, 1, 0), 0);

    kill_and_wait(runner);
    assert_int_equal(poll(&ended, 1, 0), 0); /* this is what the next run would be beside */
    project_cleanrun(&next, doctor, NULL, &r);
    cJSON *j = cJSON_Parse(r.out);

    snprintf(word, sizeof word, "(%s)", number);
    cJSON_ArrayForEach(row, json_get(j, "checks")) {
        if (strcmp(json_get(row, "name")->valuestring, "leftovers") != 0)
            continue;
        assert_string_equal(json_get(row, "state")->valuestring, "bad");
        assert_non_null(strstr(json_get(row, "value")->valuestring, word));
        told = true;
    }
    assert_true(told);
    assert_int_equal(r.code, 4);
    cJSON_Delete(j);
    test_run_fini(&r);

    remove_out(&next);
    project_measure(&next, NULL, &r);
    assert_int_equal(r.code, 3);
    snprintf(word, sizeof word, "workload (%s)", number);
    assert_non_null(strstr(r.out, "\"leftover\""));
    assert_non_null(strstr(r.out, word));
    assert_int_equal(poll(&ended, 1, 0), 1);
    assert_true(leftovers_ended(&next) >= 1);
    test_run_fini(&r);
    remove_out(&next);
    project_measure(&next, NULL, &r);
    assert_int_equal(r.code, 3);
    assert_int_equal(leftovers_ended(&next), 0);
    test_run_fini(&r);
    close(pidfd);
    free(number);
    free(path);
    project_free(&p);
    project_free(&next);
}

/* One without a mark or a parent is still in the run's box. */
static void run_ends_what_a_killed_runner_left_in_its_box(void **state)
{
    struct project p, next;
    struct test_run r;
    char name[64], word[64];

    (void) state;
    project_new(&p, "orphan-bare, REPO", NULL);
    project_new(&next, "ok", NULL);
    pid_t runner = project_start(&p);
    char *path = test_join(p.dir, "orphan.pid"), *number = await_line(path);
    struct pollfd ended = {.fd = pidfd_open(to_pid(number), 0), .events = POLLIN};

    snprintf(name, sizeof name, "/proc/%s/cgroup", number);
    char *group = test_read_path(name, NULL);
    bool boxed = strstr(group, "/cleanrun-") != NULL;

    kill_and_wait(runner);
    if (boxed) {
        assert_int_equal(poll(&ended, 1, 0), 0);
        project_measure(&next, NULL, &r);
        assert_int_equal(r.code, 3);
        snprintf(word, sizeof word, "sleep (%s)", number);
        assert_non_null(strstr(r.out, word));
        assert_int_equal(poll(&ended, 1, 0), 1);
        test_run_fini(&r);
    } else {
        kill(to_pid(number), SIGKILL);
        print_message("SKIPPED cgroup v2: no box can be made here\n");
    }
    close(ended.fd);
    free(group);
    free(number);
    free(path);
    project_free(&p);
    project_free(&next);
    if (!boxed)
        skip();
}

/* What a build leaves bears no mark: its environment is the definition's. The lock names it, and
 * the next run does not begin beside it. */
static void run_is_refused_beside_the_build_of_a_killed_runner(void **state)
{
    static const char plain[] = "[cc, -O1, -g, -o, workload, workload.c]";
    struct project p;
    struct test_run r;
    pid_t session = 0;

    (void) state;
    project_new(&p, "ok", NULL);
    char *path = test_join(p.repo, "cleanrun.yaml"), *text = test_read_path(path, NULL);
    char *at = strstr(text, plain), *slow = NULL;

    assert_non_null(at);
    assert_true(asprintf(&slow, "%.*s[sh, -c, 'sleep 60 & sleep 60']%s", (int) (at - text), text,
                         at + strlen(plain)) > 0);
    test_write_text(p.repo, "cleanrun.yaml", slow);
    pid_t runner = project_start(&p);
    char *lock = test_join(p.dir, "lock");

    for (int i = 0; i < 600 && session == 0; i++) {
        char *noted = NULL, *line;

        test_pause_ms(50);
        if (faccessat(AT_FDCWD, lock, F_OK, 0) == 0)
            noted = test_read_path(lock, NULL);
        line = noted ? strchr(noted, '\n') : NULL;
        session = line && strchr(line, ' ') ? to_pid(line + 1) : 0;
        free(noted);
    }
    assert_true(session > 0);
    test_pause_ms(200); /* the shell has started the first of the two */
    kill_and_wait(runner);
    test_write_text(p.repo, "cleanrun.yaml", text);
    project_measure(&p, NULL, &r);
    assert_int_equal(kill(-session, 0), 0); /* it was not ended on a guess */
    assert_int_equal(r.code, 6);
    assert_non_null(strstr(r.err, "still at work"));
    assert_non_null(strstr(r.err, "sleep ("));
    assert_false(project_has(&p, "manifest.json"));
    test_run_fini(&r);
    kill(-session, SIGKILL);
    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 3);
    test_run_fini(&r);
    free(lock);
    free(slow);
    free(text);
    free(path);
    project_free(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_runner_leaves_no_half_evidence),
        cmocka_unit_test(run_ends_what_a_killed_runner_left),
        cmocka_unit_test(run_ends_what_a_killed_runner_left_in_its_box),
        cmocka_unit_test(run_is_refused_beside_the_build_of_a_killed_runner),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/killed", tests, NULL, NULL);
}
