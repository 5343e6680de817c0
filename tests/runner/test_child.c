/* Starting, supervising and ending processes. */
#include "tests/lib/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "runner/loop.h"

#define PATH "/usr/bin:/bin"
#define TICK_NS UINT64_C(20000000)

struct seen {
    struct buf out, err, extra;
};

static int to_buf(void *context, const char *bytes, size_t len, struct err *e)
{
    struct buf *b = context;

    buf_put(b, bytes, len);
    return buf_check(b, e);
}

static void seen_init(struct seen *s)
{
    buf_init(&s->out, 1 << 20);
    buf_init(&s->err, 1 << 20);
    buf_init(&s->extra, 1 << 20);
}

static void seen_fini(struct seen *s)
{
    buf_fini(&s->out);
    buf_fini(&s->err);
    buf_fini(&s->extra);
}

static const char *text(const struct buf *b)
{
    return b->data ? b->data : "";
}

/* Runs a program to its end under the loop. */
static int run(struct child_spec *spec, uint64_t timeout_ms, struct seen *s, struct loop_result *r,
               struct err *e)
{
    int pipes[3][2];
    struct child child;

    for (int i = 0; i < 3; i++)
        assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
    spec->stdout_fd = pipes[0][1];
    spec->stderr_fd = pipes[1][1];
    spec->extra_fd = pipes[2][1];
    int started = child_start(spec, &child, e);

    for (int i = 0; i < 3; i++)
        close(pipes[i][1]);
    if (started == 0) {
        struct loop loop = {.child = &child,
                            .streams = {{pipes[0][0], to_buf, &s->out},
                                        {pipes[1][0], to_buf, &s->err},
                                        {pipes[2][0], to_buf, &s->extra}},
                            .n_streams = 3,
                            .timeout_ms = timeout_ms,
                            .grace_ms = 100,
                            .signal_fd = -1};

        started = loop_run(&loop, r, e);
        child_fini(&child);
    }
    for (int i = 0; i < 3; i++)
        close(pipes[i][0]);
    return started;
}

static void shell(const char *script, uint64_t timeout_ms, struct seen *s, struct loop_result *r)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const char *const envp[] = {"PATH=" PATH, "ONLY=this", NULL};
    struct child_spec spec = CHILD_SPEC_INIT;
    struct err e = ERR_INIT;

    spec.argv = argv;
    spec.envp = envp;
    spec.path = PATH;
    seen_init(s);
    if (run(&spec, timeout_ms, s, r, &e) < 0)
        fail_msg("%s", e.text);
}

static void output_status_and_descriptor_3_arrive(void **state)
{
    struct seen s = {.out = {.data = NULL}};
    struct loop_result r = {.end = LOOP_ENDED};

    (void) state;
    shell("echo out; echo err >&2; echo mark >&3; exit 7", 5000, &s, &r);
    assert_int_equal(r.end, LOOP_ENDED);
    assert_true(r.status.exited);
    assert_int_equal(r.status.code, 7);
    assert_string_equal(text(&s.out), "out\n");
    assert_string_equal(text(&s.err), "err\n");
    assert_string_equal(text(&s.extra), "mark\n");
    seen_fini(&s);
}

static void a_program_s_own_signal_is_told(void **state)
{
    struct seen s = {.out = {.data = NULL}};
    struct loop_result r = {.end = LOOP_ENDED};

    (void) state;
    shell("kill -SEGV $$", 5000, &s, &r);
    assert_false(r.status.exited);
    assert_int_equal(r.status.signal, SIGSEGV);
    assert_int_equal(r.end, LOOP_ENDED);
    seen_fini(&s);
}

static void environment_and_descriptors_are_exactly_those_given(void **state)
{
    struct seen s = {.out = {.data = NULL}};
    struct loop_result r = {.end = LOOP_ENDED};
    int leak = open("/dev/null", O_RDONLY); /* deliberately not close-on-exec */

    (void) state;
    assert_true(leak >= 0);
    shell("env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= | sort; for n in 0 1 2 3 4 5 6 7 8 9 20 21; do "
          "readlink -q /proc/$$/fd/$n >&2 && echo fd $n; done",
          5000, &s, &r);
    close(leak);
    assert_string_equal(text(&s.out), "ONLY=this\nPATH=" PATH "\nfd 0\nfd 1\nfd 2\nfd 3\n");
    seen_fini(&s);
}

static void signals_are_reset_and_unblocked(void **state)
{
    struct seen s = {.out = {.data = NULL}};
    struct loop_result r = {.end = LOOP_ENDED};
    sigset_t set, old;

    (void) state;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, &old), 0);
    assert_true(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
    shell("grep -E 'Sig(Blk|Ign)' /proc/self/status", 5000, &s, &r);
    assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
    assert_true(signal(SIGUSR2, SIG_DFL) != SIG_ERR);
    assert_non_null(strstr(text(&s.out), "SigBlk:\t0000000000000000"));
    assert_non_null(strstr(text(&s.out), "SigIgn:\t0000000000000000"));
    seen_fini(&s);
}

static void time_out_ends_the_whole_group(void **state)
{
    struct seen s = {.out = {.data = NULL}};
    struct loop_result r = {.end = LOOP_ENDED};

    (void) state;
    /* The shell and its child ignore the polite signal. */
    shell("trap '' TERM; sleep 60 & echo $!; wait; sleep 60", 300, &s, &r);
    assert_int_equal(r.end, LOOP_TIMED_OUT);
    assert_false(r.status.exited);
    char path[64];

    snprintf(path, sizeof path, "/proc/%.*s", (int) strcspn(text(&s.out), "\n"), text(&s.out));
    assert_int_equal(access(path, F_OK), -1);
    seen_fini(&s);
}

static void orphans_are_found_and_ended(void **state)
{
    struct seen s = {.out = {.data = NULL}};
    struct loop_result r = {.end = LOOP_ENDED};

    (void) state;
    shell("setsid sh -c 'sleep 60 & echo $!; sleep 60' & sleep 0.3", 5000, &s, &r);
    assert_true(r.left_behind >= 1);
    char path[64];

    snprintf(path, sizeof path, "/proc/%.*s", (int) strcspn(text(&s.out), "\n"), text(&s.out));
    assert_int_equal(access(path, F_OK), -1);
    seen_fini(&s);
}

static void output_held_open_by_a_descendant_does_not_hang(void **state)
{
    struct seen s = {.out = {.data = NULL}};
    struct loop_result r = {.end = LOOP_ENDED};

    (void) state;
    shell("setsid sleep 30 & exit 0", 20000, &s, &r);
    assert_true(r.status.exited);
    assert_int_equal(r.left_behind, 1); /* it was not waited for */
    seen_fini(&s);
}

static void failing_to_start_is_an_error_not_an_exit_code(void **state)
{
    const char *const missing[] = {"no-such-program-here", NULL};
    const char *const directory[] = {"/tmp", NULL};
    const char *const envp[] = {NULL};
    struct child_spec spec = CHILD_SPEC_INIT;
    struct child child;
    struct err e = ERR_INIT;

    (void) state;
    spec.argv = missing;
    spec.envp = envp;
    spec.path = PATH;
    assert_int_equal(child_start(&spec, &child, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    spec.argv = directory;
    assert_int_equal(child_start(&spec, &child, &e), -1);
    /* Executable by its bits, and no program. */
    char *dir = test_dir_new(), *file = test_join(dir, "x");

    test_write_text(dir, "x", "not a program");
    const char *const chmod[] = {"chmod", "755", file, NULL};
    struct test_run made;

    test_run(chmod, NULL, NULL, NULL, &made);
    test_run_fini(&made);
    const char *const broken[] = {file, NULL};

    spec.argv = broken;
    assert_int_equal(child_start(&spec, &child, &e), -1);
    assert_non_null(strstr(e.text, "start program"));
    free(file);
    test_dir_free(dir);
}

static void a_descriptor_starts_what_was_opened_not_what_the_name_means_now(void **state)
{
    const char *const argv[] = {"named", "second argument", NULL};
    const char *const envp[] = {NULL};
    struct child_spec spec = CHILD_SPEC_INIT;
    struct seen s = {.out = {.data = NULL}};
    struct loop_result r = {.end = LOOP_ENDED};
    struct err e = ERR_INIT;
    char *dir = test_dir_new(), *program = test_join(dir, "program");
    const char *const copy[] = {"cp", "/bin/echo", program, NULL};
    const char *const replace[] = {"cp", "--remove-destination", "/bin/false", program, NULL};
    struct test_run made;

    (void) state;
    test_run(copy, NULL, NULL, NULL, &made);
    test_run_fini(&made);
    spec.argv = argv;
    spec.envp = envp;
    spec.exec_fd = open(program, O_RDONLY | O_CLOEXEC);
    assert_true(spec.exec_fd >= 0);
    test_run(replace, NULL, NULL, NULL, &made);
    test_run_fini(&made);
    seen_init(&s);
    assert_int_equal(run(&spec, 5000, &s, &r, &e), 0);
    assert_int_equal(r.status.code, 0);
    assert_string_equal(text(&s.out), "second argument\n");
    close(spec.exec_fd);
    seen_fini(&s);
    free(program);
    test_dir_free(dir);
}

static int to_nowhere(void *context, const char *bytes, size_t len, struct err *e)
{
    (void) context;
    (void) bytes;
    (void) len;
    (void) e;
    return 0;
}

/* Runs a program whose output goes to a callback. */
static struct loop_result run_into(const char *const *argv,
                                   int (*data)(void *, const char *, size_t, struct err *),
                                   void *context, uint64_t timeout_ms)
{
    const char *const envp[] = {"PATH=" PATH, NULL};
    struct child_spec spec = CHILD_SPEC_INIT;
    struct child child;
    struct loop_result r = {.end = LOOP_ENDED};
    struct err e = ERR_INIT;
    int signal_fd = -1;
    int fds[2];

    assert_int_equal(loop_signals_open(&signal_fd, &e), 0);

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    spec.argv = argv;
    spec.envp = envp;
    spec.path = PATH;
    spec.stdout_fd = fds[1];
    assert_int_equal(child_start(&spec, &child, &e), 0);
    close(fds[1]);
    struct loop loop = {.child = &child,
                        .streams = {{fds[0], data, context}},
                        .n_streams = 1,
                        .timeout_ms = timeout_ms,
                        .signal_fd = signal_fd};

    assert_int_equal(loop_run(&loop, &r, &e), 0);
    child_fini(&child);
    close(fds[0]);
    close(signal_fd);
    return r;
}

static void output_without_end_does_not_put_off_the_time_out(void **state)
{
    const char *const argv[] = {"sh", "-c", "timeout 10 yes & timeout 10 yes & timeout 10 yes",
                                NULL};

    (void) state;
    assert_int_equal(run_into(argv, to_nowhere, NULL, 300).end, LOOP_TIMED_OUT);
}

static int to_buf_slowly(void *context, const char *bytes, size_t len, struct err *e)
{
    const struct timespec pause = {0, 250000000}; /* longer than output is awaited */

    (void) nanosleep(&pause, NULL);
    return to_buf(context, bytes, len, e);
}

/* All that was written before the end is read, however late this process comes to it. */
static void a_late_reader_loses_no_output(void **state)
{
    const char *const argv[] = {"head", "-c", "40000", "/dev/zero", NULL};
    struct buf seen;

    (void) state;
    buf_init(&seen, 1 << 20);
    assert_int_equal(run_into(argv, to_buf_slowly, &seen, 0).end, LOOP_ENDED);
    assert_int_equal(seen.len, 40000);
    buf_fini(&seen);
}

static int be_late(void *context, const char *bytes, size_t len, struct err *e)
{
    const struct timespec pause = {0, 600000000};

    (void) context;
    (void) bytes;
    (void) len;
    (void) e;
    (void) nanosleep(&pause, NULL);
    return 0;
}

static int be_late_and_interrupted(void *context, const char *bytes, size_t len, struct err *e)
{
    assert_int_equal(kill(getpid(), SIGTERM), 0); /* blocked: waits in the descriptor */
    return be_late(context, bytes, len, e);
}

/* The program keeps its time to end well. */
static void a_signal_that_came_first_goes_before_the_time_out(void **state)
{
    const char *const argv[] = {"sh", "-c", "trap 'exit 7' TERM; echo x; sleep 30 & wait", NULL};
    struct loop_result r = run_into(argv, be_late_and_interrupted, NULL, 500);

    (void) state;
    assert_int_equal(r.end, LOOP_INTERRUPTED);
    assert_int_equal(r.interrupt, SIGTERM);
    assert_true(r.status.exited);
    assert_int_equal(r.status.code, 7);
}

/* Whether a program that has ended meanwhile was in time is not known then. */
static void a_late_look_is_no_time_to_spare(void **state)
{
    const char *const argv[] = {"sh", "-c", "echo x; sleep 0.45", NULL};

    (void) state;
    assert_int_equal(run_into(argv, be_late, NULL, 300).end, LOOP_TIMED_OUT);
}

/* The time-out goes on while this process stands still. */
static void being_stopped_does_not_put_off_the_time_out(void **state)
{
    const char *const argv[] = {"sleep", "1.25", NULL};
    pid_t self = getpid();
    pid_t stopper = fork();

    (void) state;
    assert_true(stopper >= 0);
    if (stopper == 0) {
        const struct timespec soon = {0, 100000000};
        const struct timespec later = {1, 0};

        (void) nanosleep(&soon, NULL);
        (void) kill(self, SIGSTOP);
        (void) nanosleep(&later, NULL);
        (void) kill(self, SIGCONT);
        _exit(0);
    }
    assert_int_equal(run_into(argv, to_nowhere, NULL, 300).end, LOOP_TIMED_OUT);
    (void) waitpid(stopper, NULL, 0); /* may have been reaped as a left-over of ours */
}

/* While the rest of the output (less than a pipe holds) is read: the program has ended, but no
 * next one is to begin. */
static int interrupt_at_the_third(void *context, const char *bytes, size_t len, struct err *e)
{
    size_t *calls = context;
    siginfo_t ended;

    (void) bytes;
    (void) len;
    (void) e;
    if (++*calls == 1)
        assert_int_equal(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
    if (*calls == 3)
        assert_int_equal(kill(getpid(), SIGTERM), 0);
    return 0;
}

static void a_signal_after_the_end_is_told(void **state)
{
    const char *const argv[] = {"head", "-c", "60000", "/dev/zero", NULL};
    size_t calls = 0;
    struct loop_result r = run_into(argv, interrupt_at_the_third, &calls, 0);

    (void) state;
    assert_true(r.status.exited);
    assert_int_equal(r.end, LOOP_INTERRUPTED);
    assert_int_equal(r.interrupt, SIGTERM);
}

struct ticks {
    size_t n;
    uint64_t start_ns, interval_ns; /* 0: not asked */
    size_t early;
    int slack_ns; /* of this process while a callback runs */
};

static int on_tick(void *context, uint64_t missed, struct err *e)
{
    struct ticks *t = context;

    (void) e;
    t->n += 1 + missed;
    if (t->interval_ns > 0 && clock_monotonic_ns() - t->start_ns < t->n * t->interval_ns)
        t->early++;
    t->slack_ns = prctl(PR_GET_TIMERSLACK);
    return 0;
}

static int fail_tick(void *context, uint64_t missed, struct err *e)
{
    (void) context;
    (void) missed;
    return err_set(e, ERR_SYS, "test.tick", "the tick failed");
}

static int loop_with_timer(const char *script, struct loop_timer timer, struct loop_result *r,
                           struct err *e)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const char *const envp[] = {NULL};
    struct child_spec spec = CHILD_SPEC_INIT;
    struct child child;

    spec.argv = argv;
    spec.envp = envp;
    spec.path = PATH;
    assert_int_equal(child_start(&spec, &child, e), 0);
    struct loop loop = {.child = &child, .timers = {timer}, .n_timers = 1, .signal_fd = -1};
    int result = loop_run(&loop, r, e);

    child_fini(&child);
    return result;
}

static void timers_tick_while_the_program_runs(void **state)
{
    struct ticks t = {.start_ns = clock_monotonic_ns(), .interval_ns = TICK_NS};
    struct loop_result r = {.end = LOOP_ENDED};
    struct err e = ERR_INIT;

    (void) state;
    struct loop_timer timer = {TICK_NS, TICK_NS, 0, on_tick, &t};

    assert_int_equal(loop_with_timer("exec sleep 0.5", timer, &r, &e), 0);
    assert_int_equal(t.early, 0);
    assert_true(t.n >= 16); /* of 25; the very end may be seen late */
    assert_true(r.wall_ns >= 490000000U);
}

/* Late is allowed, early is not, and late ones do not add up: none is lost over the whole time. */
static void a_timer_with_slack_keeps_its_schedule(void **state)
{
    int before = prctl(PR_GET_TIMERSLACK);
    struct ticks t = {.start_ns = clock_monotonic_ns(), .interval_ns = TICK_NS};
    struct loop_result r = {.end = LOOP_ENDED};
    struct err e = ERR_INIT;

    (void) state;
    struct loop_timer timer = {TICK_NS, TICK_NS, TICK_NS / 2, on_tick, &t};

    assert_int_equal(loop_with_timer("exec sleep 0.5", timer, &r, &e), 0);
    assert_int_equal(t.early, 0);
    assert_true(t.n >= 16);
    assert_int_equal(t.slack_ns, before); /* a callback's programs don't inherit it */
    assert_int_equal(prctl(PR_GET_TIMERSLACK), before);
}

static void a_failing_callback_ends_the_program_and_is_told(void **state)
{
    struct loop_result r = {.end = LOOP_ENDED};
    struct err e = ERR_INIT;
    struct loop_timer timer = {.interval_ns = TICK_NS, .tick = fail_tick};
    char *dir = test_dir_new();
    char *path = test_join(dir, "ended");
    char *script = NULL;

    (void) state;
    assert_true(asprintf(&script, "sleep 10; : > %s", path) > 0);
    assert_int_equal(loop_with_timer(script, timer, &r, &e), -1);
    assert_string_equal(e.text, "the tick failed");
    assert_int_equal(access(path, F_OK), -1); /* it did not come to its end */
    free(script);
    free(path);
    test_dir_free(dir);
}

static void our_own_signal_interrupts_the_loop(void **state)
{
    const char *const argv[] = {"sleep", "30", NULL};
    const char *const envp[] = {NULL};
    struct child_spec spec = CHILD_SPEC_INIT;
    struct child child;
    struct loop_result r = {.end = LOOP_ENDED};
    struct err e = ERR_INIT;
    int fd = -1;

    (void) state;
    assert_int_equal(loop_signals_open(&fd, &e), 0);
    spec.argv = argv;
    spec.envp = envp;
    spec.path = PATH;
    assert_int_equal(child_start(&spec, &child, &e), 0);
    assert_int_equal(kill(getpid(), SIGTERM), 0); /* blocked: waits in the descriptor */
    struct loop loop = {.child = &child, .signal_fd = fd};

    assert_int_equal(loop_run(&loop, &r, &e), 0);
    assert_int_equal(r.end, LOOP_INTERRUPTED);
    assert_int_equal(r.interrupt, SIGTERM);
    child_fini(&child);
    close(fd);
}

static int adopt(void **state)
{
    struct err e = ERR_INIT;

    (void) state;
    return child_adopt_orphans(&e);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_status_and_descriptor_3_arrive),
        cmocka_unit_test(a_program_s_own_signal_is_told),
        cmocka_unit_test(environment_and_descriptors_are_exactly_those_given),
        cmocka_unit_test(signals_are_reset_and_unblocked),
        cmocka_unit_test(time_out_ends_the_whole_group),
        cmocka_unit_test(orphans_are_found_and_ended),
        cmocka_unit_test(output_held_open_by_a_descendant_does_not_hang),
        cmocka_unit_test(failing_to_start_is_an_error_not_an_exit_code),
        cmocka_unit_test(a_descriptor_starts_what_was_opened_not_what_the_name_means_now),
        cmocka_unit_test(output_without_end_does_not_put_off_the_time_out),
        cmocka_unit_test(a_late_reader_loses_no_output),
        cmocka_unit_test(a_signal_that_came_first_goes_before_the_time_out),
        cmocka_unit_test(a_late_look_is_no_time_to_spare),
        cmocka_unit_test(being_stopped_does_not_put_off_the_time_out),
        cmocka_unit_test(a_signal_after_the_end_is_told),
        cmocka_unit_test(timers_tick_while_the_program_runs),
        cmocka_unit_test(a_timer_with_slack_keeps_its_schedule),
        cmocka_unit_test(a_failing_callback_ends_the_program_and_is_told),
        cmocka_unit_test(our_own_signal_interrupts_the_loop),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/child", tests, adopt, NULL);
}
