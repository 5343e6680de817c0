/* What ends a supervised program before its time: signals to us, asked once and twice, and output
 * that cannot be kept. */
#include "tests/lib/support.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runner/loop.h"

#define LONG_MS UINT64_C(600000) /* longer than the test may take */

struct talk {
    const char *word; /* whenever the program says it, … */
    int signal;       /* … we get this */
};

static int answer(void *context, const char *bytes, size_t len, struct err *e)
{
    const struct talk *t = context;

    (void) e;
    if (memmem(bytes, len, t->word, strlen(t->word)))
        (void) kill(getpid(), t->signal);
    return 0;
}

static int refuse(void *context, const char *bytes, size_t len, struct err *e)
{
    (void) context;
    (void) bytes;
    (void) len;
    return err_set(e, ERR_SYS, "test.full", "no room for it");
}

static int supervise(const char *script,
                     int (*data)(void *context, const char *bytes, size_t len, struct err *e),
                     struct talk *talk, struct loop_result *out, struct err *e)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    struct child_spec spec = CHILD_SPEC_INIT;
    struct child child;
    int ends[2];
    int signals = -1;
    int rc = 0;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(loop_signals_open(&signals, e), 0);
    spec.argv = argv;
    spec.envp = envp;
    spec.path = "/usr/bin:/bin";
    spec.stdout_fd = ends[1];
    assert_int_equal(child_start(&spec, &child, e), 0);
    (void) close(ends[1]);
    {
        struct loop loop = {.child = &child,
                            .streams = {{ends[0], data, talk}},
                            .n_streams = 1,
                            .grace_ms = LONG_MS,
                            .signal_fd = signals};

        rc = loop_run(&loop, out, e);
    }
    child_fini(&child);
    (void) close(ends[0]);
    (void) close(signals);
    return rc;
}

static void each_of_our_signals_interrupts(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        struct talk t = {.word = "ready", .signal = signals[i]};
        struct loop_result r;
        struct err e = ERR_INIT;

        assert_int_equal(
            supervise("trap 'exit 7' TERM; echo ready; sleep 1000 & wait", answer, &t, &r, &e), 0);
        assert_int_equal(r.end, LOOP_INTERRUPTED);
        assert_int_equal(r.interrupt, signals[i]);
        assert_true(r.status.exited);
        assert_int_equal(r.status.code, 7);
    }
}

/* It says that it heard the first signal and goes on; the second does not wait for the grace. */
static void asked_twice_it_is_killed_at_once(void **state)
{
    struct talk t = {.word = "again", .signal = SIGINT};
    struct loop_result r;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(supervise("trap 'echo again' TERM; echo again; "
                               "while :; do sleep 1000 & wait; done",
                               answer, &t, &r, &e),
                     0);
    assert_int_equal(r.end, LOOP_INTERRUPTED);
    assert_false(r.status.exited);
    assert_int_equal(r.status.signal, SIGKILL);
}

static void output_that_cannot_be_kept_ends_the_program(void **state)
{
    struct loop_result r;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(supervise("echo x; sleep 1000", refuse, NULL, &r, &e), -1);
    assert_string_equal(e.code, "test.full");
}

static int adopt(void **state)
{
    struct err e = ERR_INIT;

    (void) state;
    return child_adopt_orphans(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_our_signals_interrupts),
        cmocka_unit_test(asked_twice_it_is_killed_at_once),
        cmocka_unit_test(output_that_cannot_be_kept_ends_the_program),
    };

    return cmocka_run_group_tests_name("runner/loop", tests, adopt, NULL);
}
