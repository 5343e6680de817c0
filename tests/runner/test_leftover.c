/* What is left of runs whose runner was killed: found by its mark and by what the lock notes. */
#include "tests/lib/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/box.h"
#include "runner/leftover.h"

#define SPACE 4026531836U
#define BOOT "0b1d0000-0000-0000-0000-00000000b007"

/* A made-up machine: processes with parents, sessions, starts and environments. */
static char *machine_new(struct sysroot *root)
{
    char *dir = test_dir_new(), *self = NULL;
    struct err e = ERR_INIT;

    test_write_text(dir, "proc/self/stat", "");
    test_write_text(dir, "proc/sys/kernel/random/boot_id", BOOT "\n");
    self = test_join(dir, "proc/self/ns");
    assert_int_equal(mkdir(self, 0755), 0);
    free(self);
    self = test_join(dir, "proc/self/ns/pid");
    assert_int_equal(symlink("pid:[4026531836]", self), 0);
    free(self);
    assert_int_equal(sysroot_open(dir, root, &e), 0);
    return dir;
}

struct made {
    int pid, parent, session;
    unsigned start;
    char state;
    const char *mark; /* NULL: an environment without one */
};

static void add(const char *dir, const char *at, struct made p)
{
    char name[64], stat_text[256], environ_text[256];
    int n;

    snprintf(name, sizeof name, "proc/%s/stat", at);
    snprintf(stat_text, sizeof stat_text,
             "%d (w %d) %c %d %d %d 0 -1 0 500 0 3 0 100 134 0 0 20 0 5 0 %u 1000000 250 1\n",
             p.pid, p.pid, p.state, p.parent, p.session, p.session, p.start);
    test_write_text(dir, name, stat_text);
    n = snprintf(environ_text, sizeof environ_text, "PATH=/bin%cNOT_" LEFTOVER_VARIABLE "=x%c%s%s",
                 0, 0, p.mark ? LEFTOVER_VARIABLE "=" : "A=b", p.mark ? p.mark : "");
    snprintf(name, sizeof name, "proc/%s/environ", at);
    test_write(dir, name, environ_text, (size_t) n + 1);
}

static void process(const char *dir, struct made p)
{
    char at[16];

    snprintf(at, sizeof at, "%d", p.pid);
    add(dir, at, p);
}

static const char *mark_of(char out[64], unsigned space, int pid, unsigned start)
{
    snprintf(out, 64, "%010u-%010d-%020u", space, pid, start);
    return out;
}

static void check_found(const struct sysroot *root, const struct machine_program *last,
                        const char *expected)
{
    struct leftovers l;
    struct err e = ERR_INIT;
    bool seen[1000] = {false};
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);

    assert_int_equal(leftovers_find(root, last, &l, &e), 0);
    for (size_t i = 0; i < l.n; i++) {
        assert_true(l.items[i].pid < 500);
        seen[l.items[i].pid + (l.items[i].certain ? 0 : 500)] = true;
    }
    for (int i = 0; i < 1000; i++)
        if (seen[i])
            fprintf(f, "%d%s ", i % 500, i < 500 ? "" : "?");
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, expected);
    free(text);
    leftovers_fini(&l);
}

static void found_are_those_of_runners_that_are_no_more(void **state)
{
    struct sysroot root;
    char *dir = machine_new(&root), mark[64];

    (void) state;
    process(dir, (struct made){1, 0, 1, 1, 'S', NULL});
    process(dir, (struct made){20, 1, 20, 2000, 'S', NULL}); /* a runner that lives */
    process(dir, (struct made){21, 20, 21, 2001, 'R', mark_of(mark, SPACE, 20, 2000)});
    process(dir, (struct made){22, 21, 21, 2002, 'R', NULL});
    check_found(&root, NULL, "");
    /* Of process 30, which is gone; the daemon has a session and an environment of its own. */
    process(dir, (struct made){31, 1, 31, 3001, 'R', mark_of(mark, SPACE, 30, 3000)});
    process(dir, (struct made){32, 31, 32, 3002, 'S', NULL});
    process(dir, (struct made){33, 32, 33, 3003, 'S', NULL});
    check_found(&root, NULL, "31 32 33 ");
    /* Of a number that is another process by now, and of a runner nobody has waited for yet. */
    process(dir, (struct made){41, 1, 41, 4001, 'R', mark_of(mark, SPACE, 20, 1999)});
    process(dir, (struct made){50, 1, 50, 5000, 'Z', NULL});
    process(dir, (struct made){51, 1, 51, 5001, 'R', mark_of(mark, SPACE, 50, 5000)});
    check_found(&root, NULL, "31 32 33 41 51 ");
    /* Neither what has ended, nor of another namespace's runner, nor by a mark of other form. */
    process(dir, (struct made){61, 1, 61, 6001, 'Z', mark_of(mark, SPACE, 30, 3000)});
    process(dir, (struct made){62, 1, 62, 6002, 'R', mark_of(mark, SPACE + 1, 30, 3000)});
    process(dir, (struct made){63, 1, 63, 6003, 'R', "4026531836-30-3000"});
    process(dir, (struct made){64, 1, 64, 6004, 'R', ""});
    check_found(&root, NULL, "31 32 33 41 51 ");
    /* Nor a run that lives below one that does not: its runner ends first, then it is nobody's. */
    process(dir, (struct made){70, 33, 70, 7000, 'S', NULL});
    process(dir, (struct made){71, 70, 71, 7001, 'R', mark_of(mark, SPACE, 70, 7000)});
    check_found(&root, NULL, "31 32 33 41 51 70 ");
    sysroot_close(&root);
    test_dir_free(dir);
}

static void found_is_never_the_one_who_asks(void **state)
{
    struct sysroot root;
    char *dir = machine_new(&root), mark[64];

    (void) state;
    mark_of(mark, SPACE, 30, 3000); /* gone */
    process(dir, (struct made){1, 0, 1, 1, 'S', NULL});
    process(dir, (struct made){31, 1, 31, 3001, 'S', mark});
    process(dir, (struct made){32, 31, 31, 3002, 'S', mark});
    process(dir, (struct made){33, 32, 31, 3003, 'S', mark});
    add(dir, "self", (struct made){33, 32, 31, 3003, 'S', mark});
    process(dir, (struct made){34, 31, 31, 3004, 'S', mark});
    check_found(&root, NULL, "34 ");
    sysroot_close(&root);
    test_dir_free(dir);
}

static void found_through_the_lock_are_told_and_not_certain(void **state)
{
    struct sysroot root;
    char *dir = machine_new(&root);
    const struct machine_program last = {.session = 200, .start_ticks = 9000};

    (void) state;
    process(dir, (struct made){1, 0, 1, 1, 'S', NULL});
    process(dir, (struct made){201, 1, 200, 9001, 'R', NULL});
    process(dir, (struct made){202, 1, 202, 9002, 'R', NULL});
    process(dir, (struct made){203, 1, 200, 8999, 'R', NULL}); /* was there before the program */
    check_found(&root, NULL, "");
    check_found(&root, &last, "201? ");
    process(dir, (struct made){200, 1, 200, 9000, 'R', NULL});
    check_found(&root, &last, "200? 201? ");
    process(dir, (struct made){200, 1, 200, 9500, 'R', NULL}); /* another session of this number */
    check_found(&root, &last, "");
    process(dir, (struct made){200, 1, 200, 9000, 'R', NULL});
    add(dir, "self", (struct made){202, 1, 200, 9002, 'R', NULL}); /* our own session */
    check_found(&root, &last, "");
    sysroot_close(&root);
    test_dir_free(dir);
}

static void found_is_what_an_abandoned_box_holds(void **state)
{
    struct sysroot root;
    char *dir = machine_new(&root);
    int fd;

    (void) state;
    process(dir, (struct made){1, 0, 1, 1, 'S', NULL});
    process(dir, (struct made){81, 1, 81, 8001, 'R', NULL});
    process(dir, (struct made){82, 1, 82, 8002, 'R', NULL});
    process(dir, (struct made){83, 1, 83, 8003, 'R', NULL});
    process(dir, (struct made){84, 1, 84, 8004, 'R', NULL});
    process(dir, (struct made){85, 1, 85, 8005, 'R', NULL});
    test_write_text(dir, "sys/fs/cgroup/cgroup.controllers", "");
    test_write_text(dir, "sys/fs/cgroup/a/cleanrun-20260101T000000Z-00000001/b/cgroup.procs", "");
    test_write_text(dir, "sys/fs/cgroup/a/not-a-run/cgroup.procs", "");
    test_write_text(dir, "proc/81/cgroup", "0::/a/cleanrun-20260101T000000Z-00000001/b\n");
    test_write_text(dir, "sys/fs/cgroup/20260101T000000Z-00000001/cgroup.procs", "");
    test_write_text(dir, "sys/fs/cgroup/cleanrun-mine/cgroup.procs", "");
    test_write_text(dir, "proc/82/cgroup", "0::/a/not-a-run\n");
    test_write_text(dir, "proc/84/cgroup", "0::/20260101T000000Z-00000001\n"); /* not of our form */
    test_write_text(dir, "proc/85/cgroup", "0::/cleanrun-mine\n");
    test_write_text(dir, "proc/83/cgroup",
                    "0::/cleanrun-20260101T000000Z-00000002\n"); /* not there */
    check_found(&root, NULL, "81 ");
    char *box = test_join(dir, "sys/fs/cgroup/a/cleanrun-20260101T000000Z-00000001");

    fd = open(box, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX), 0); /* as its maker does */
    check_found(&root, NULL, "");
    close(fd);
    check_found(&root, NULL, "81 ");
    free(box);
    sysroot_close(&root);
    test_dir_free(dir);
}

static void sweep_removes_empty_boxes_of_dead_runners_only(void **state)
{
    char *dir = test_dir_new();
    struct stat st;

    (void) state;
    test_write_text(dir, "cgroup.controllers", "");
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"cleanrun-20260101T000000Z-00000001",
                                            "cleanrun-20260101T000000Z-00000002", "other"};
        char *path = test_join(dir, names[i]);

        assert_int_equal(mkdir(path, 0755), 0);
        free(path);
    }
    char *live = test_join(dir, "cleanrun-20260101T000000Z-00000002");
    int fd = open(live, O_RDONLY | O_DIRECTORY), mount = open(dir, O_RDONLY | O_DIRECTORY);

    assert_int_equal(flock(fd, LOCK_EX), 0);
    box_sweep(mount, "0::/\n");
    char *gone = test_join(dir, "cleanrun-20260101T000000Z-00000001"),
         *other = test_join(dir, "other");

    assert_int_equal(stat(gone, &st), -1);
    assert_int_equal(stat(live, &st), 0);
    assert_int_equal(stat(other, &st), 0);
    close(fd);
    close(mount);
    free(gone);
    free(other);
    free(live);
    test_dir_free(dir);
}

/* A process with this mark; it has its session to itself. */
static pid_t start_marked(const char *mark)
{
    int ready[2];
    char byte;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0); /* closed when sleep runs */
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        char variable[128];
        char *env[] = {variable, NULL};

        snprintf(variable, sizeof variable, LEFTOVER_VARIABLE "=%s", mark);
        setsid();
        execle("/bin/sleep", "sleep", "60", (char *) NULL, env);
        _exit(99);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    return pid;
}

static void end_ends_what_is_left_and_not_what_lives(void **state)
{
    struct sysroot root;
    struct err e = ERR_INIT;
    char live[LEFTOVER_MARK_SIZE], dead[LEFTOVER_MARK_SIZE];
    struct leftovers_ended ended;
    int status = 0;
    char word[64];

    (void) state;
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(leftover_mark(&root, live, &e), 0);
    assert_int_equal(strlen(live), LEFTOVER_MARK_SIZE - 1);
    memcpy(dead, live, sizeof dead);
    dead[LEFTOVER_MARK_SIZE - 2] = live[LEFTOVER_MARK_SIZE - 2] == '1' ? '2' : '1'; /* its start */
    pid_t ours = start_marked(live), left = start_marked(dead);

    assert_int_equal(leftovers_end(&root, NULL, &ended, &e), 0);
    assert_true(ended.n >= 1); /* another test's may be there as well */
    snprintf(word, sizeof word, "sleep (%d)", (int) left);
    if (ended.n == 1)
        assert_string_equal(ended.names, word);
    assert_int_equal(waitpid(left, &status, 0), left);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(waitpid(ours, &status, WNOHANG), 0);
    kill(ours, SIGKILL);
    assert_int_equal(waitpid(ours, &status, 0), ours);
    sysroot_close(&root);
}

/* What only the lock tells is waited for, and then the run is refused. */
static void end_refuses_beside_what_is_not_certain(void **state)
{
    struct sysroot root;
    struct err e = ERR_INIT;
    char live[LEFTOVER_MARK_SIZE];
    struct leftovers_ended ended;
    struct machine_program last;
    char *dir = test_dir_new(), *path = test_join(dir, "lock");
    char word[64];
    int status = 0, fd = -1;

    (void) state;
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(leftover_mark(&root, live, &e), 0);
    pid_t program = start_marked("no mark");

    assert_int_equal(machine_lock_take(path, &fd, &e), 0);
    assert_false(machine_lock_last(fd, &root, &last));
    machine_lock_note(fd, program);
    assert_false(machine_lock_abandoned(path, &root, &last)); /* this process lives */
    close(fd);
    assert_int_equal(machine_lock_take(path, &fd, &e), 0); /* keeps the note */
    assert_true(machine_lock_last(fd, &root, &last));
    assert_int_equal(last.session, program);
    assert_int_equal(leftovers_end(&root, &last, &ended, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    assert_string_equal(e.code, "run.leftovers");
    snprintf(word, sizeof word, "kill -9 %d)", (int) program);
    assert_non_null(strstr(e.text, word));
    assert_int_equal(waitpid(program, &status, WNOHANG), 0);
    kill(program, SIGKILL);
    assert_int_equal(leftovers_end(&root, &last, &ended, &e), 0); /* it ends meanwhile */
    assert_int_equal(ended.n, 0);
    machine_lock_note(fd, 0);
    assert_false(machine_lock_last(fd, &root, &last));
    assert_int_equal(waitpid(program, &status, 0), program);
    close(fd);
    sysroot_close(&root);
    free(path);
    test_dir_free(dir);
}

static void lock_of_another_boot_names_nothing(void **state)
{
    struct sysroot root;
    char *dir = machine_new(&root), *path = test_join(dir, "lock");
    static const char *const texts[] = {"77\n",
                                        "77\n200 9000 another-boot\n",
                                        "77\n200 9000\n",
                                        "77\nx 9000 " BOOT "\n",
                                        "77\n0 9000 " BOOT "\n",
                                        "77\n200  " BOOT "\n",
                                        ""};
    struct machine_program last;

    (void) state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        test_write_text(dir, "lock", texts[i]);
        assert_false(machine_lock_abandoned(path, &root, &last));
    }
    test_write_text(dir, "lock", "77\n200 9000 " BOOT "\n");
    assert_true(machine_lock_abandoned(path, &root, &last));
    assert_int_equal(last.session, 200);
    assert_int_equal(last.start_ticks, 9000);
    process(dir, (struct made){77, 1, 77, 1, 'S', NULL});
    assert_false(machine_lock_abandoned(path, &root, &last));
    sysroot_close(&root);
    free(path);
    test_dir_free(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_are_those_of_runners_that_are_no_more),
        cmocka_unit_test(found_is_never_the_one_who_asks),
        cmocka_unit_test(found_through_the_lock_are_told_and_not_certain),
        cmocka_unit_test(found_is_what_an_abandoned_box_holds),
        cmocka_unit_test(sweep_removes_empty_boxes_of_dead_runners_only),
        cmocka_unit_test(end_ends_what_is_left_and_not_what_lives),
        cmocka_unit_test(end_refuses_beside_what_is_not_certain),
        cmocka_unit_test(lock_of_another_boot_names_nothing),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/leftover", tests, NULL, NULL);
}
