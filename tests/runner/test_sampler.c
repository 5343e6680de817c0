/* The sampler on real process trees, and what disturbs a machine. */
#include "tests/lib/support.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/json_in.h"
#include "experiment/samples.h"
#include "runner/child.h"
#include "runner/interference.h"
#include "runner/process_tree.h"
#include "runner/sampler.h"

/* Of this process's own time, however long others keep it waiting. */
static void burn_cpu_ms(long ms)
{
    struct timespec t = {0};

    while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms)
        assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
}

static void tell(int fd)
{
    if (write(fd, "r", 1) != 1)
        _exit(4);
}

static void await(int fd)
{
    char byte;

    assert_int_equal(read(fd, &byte, 1), 1);
}

/* Takes that much memory, really. */
static void take_mib(size_t mib)
{
    char *p = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        _exit(3);
    memset(p, 1, mib << 20);
}

/* A child that starts a child, each with memory of its own. Tells when all of it is there, and when
 * the second one has used 200 ms. */
static pid_t start_tree(int ready[2])
{
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        take_mib(16);
        if (fork() == 0) {
            (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
            take_mib(32);
            tell(ready[1]);
            burn_cpu_ms(200);
            tell(ready[1]);
        }
        for (;;)
            test_pause_ms(60000);
    }
    return pid;
}

/* A process that lost its parent before any sample saw it still counts. */
static void orphans_stay_in_the_sums(void **state)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;
    pid_t orphan = 0;
    int ready[2];
    pid_t pid;

    (void) state;
    assert_int_equal(child_adopt_orphans(&e), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pid_t middle = fork();

        if (middle == 0) {
            (void) setsid();
            if (fork() != 0)
                _exit(0);
            take_mib(64);
            orphan = getpid();
            if (write(ready[1], &orphan, sizeof orphan) != sizeof orphan)
                _exit(4);
            test_pause_ms(60000);
            _exit(0);
        }
        (void) waitpid(middle, NULL, 0);
        test_pause_ms(60000);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &orphan, sizeof orphan), sizeof orphan);
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, pid, NULL, 100, &s, &e), 0);
    sampler_take(s, 0);
    assert_true(sampler_at(s, 0)->rss_kib < 64 * 1024);
    sampler_adopt(s, getpid());
    sampler_take(s, 1);
    assert_true(sampler_tracks(s, orphan));
    assert_true(sampler_at(s, 1)->rss_kib >= 64 * 1024);
    assert_int_equal(sampler_at(s, 1)->processes, 2);
    sampler_free(s);
    sysroot_close(&root);
    (void) kill(orphan, SIGKILL);
    (void) kill(pid, SIGKILL);
    (void) waitpid(orphan, NULL, 0);
    (void) waitpid(pid, NULL, 0);
    (void) close(ready[0]);
    (void) close(ready[1]);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0L, 0L, 0L, 0L), 0);
}

/* A program that leaves ended children to nobody doesn't fill the table of processes with them. */
static void orphans_that_ended_are_waited_for(void **state)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;
    siginfo_t info = {.si_pid = 0};
    int done[2];
    char byte;
    pid_t pid;
    uint64_t i;

    (void) state;
    assert_int_equal(child_adopt_orphans(&e), 0);
    assert_int_equal(pipe2(done, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (int k = 0; k < 50; k++) {
            pid_t middle = fork();

            if (middle == 0) {
                (void) fork(); /* both end: the second one as an orphan */
                _exit(0);
            }
            (void) waitpid(middle, NULL, 0);
        }
        (void) close(done[1]);
        test_pause_ms(60000);
        _exit(0);
    }
    (void) close(done[1]);
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, pid, NULL, 100, &s, &e), 0);
    sampler_adopt(s, getpid());
    assert_int_equal(read(done[0], &byte, 1), 0); /* all of them have ended, or nearly */
    /* before: they are there to be waited for */
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    assert_true(info.si_pid > 0);
    for (i = 0; i < 90 && (i < 2 || sampler_at(s, i - 1)->processes > 1); i++) {
        sampler_take(s, i);
        test_pause_ms(10);
    }
    assert_int_equal(sampler_at(s, i - 1)->processes, 1);
    info.si_pid = 0;
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    assert_int_equal(info.si_pid, 0);
    sampler_free(s);
    sysroot_close(&root);
    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);
    (void) close(done[0]);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0L, 0L, 0L, 0L), 0);
}

static void a_tree_is_summed_and_its_cpu_seen(void **state)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;
    int ready[2];
    pid_t pid = start_tree(ready);

    (void) state;
    await(ready[0]);
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, pid, NULL, 100, &s, &e), 0);
    for (uint64_t i = 0; i < 11; i++)
        sampler_take(s, i * 50);
    await(ready[0]);
    sampler_take(s, 550);
    assert_int_equal(sampler_count(s), 12);
    const struct sample *x = sampler_at(s, 11);

    assert_int_equal(x->processes, 2);
    assert_int_equal(x->threads, 2);
    assert_true(x->rss_kib >= 48 * 1024 && x->rss_kib < 80 * 1024);
    assert_true(x->minor_faults >= 48 * 256 / 2);
    assert_true(sampler_cpu_us(s) > 100000);
    assert_true(x->cpu_pct > 0);
    assert_true(sampler_tracks(s, pid));
    assert_false(sampler_tracks(s, getpid()));
    /* Sums never fall, also when a process of the tree ends. */
    uint64_t cpu = sampler_cpu_us(s);

    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    sampler_take(s, 700);
    assert_true(sampler_cpu_us(s) >= cpu);

    struct buf csv;
    struct samples parsed;

    buf_init(&csv, 1 << 20);
    sampler_write(s, &csv);
    assert_int_equal(samples_parse_csv(csv.data, csv.len, &parsed, &e), 0);
    assert_int_equal(parsed.n, sampler_count(s));
    assert_close(parsed.t_secs[3], 0.15, 1e-9);
    assert_close(parsed.value[11], (double) x->rss_kib / 1024.0, 1e-9);
    samples_fini(&parsed);
    buf_fini(&csv);
    sampler_free(s);
    sysroot_close(&root);
    close(ready[0]);
    close(ready[1]);
}

/* Makes a child at each byte of `orders`, and says when it is there. */
static void breed(int orders, int done)
{
    char byte = 0;

    while (read(orders, &byte, 1) == 1) {
        pid_t child = fork();

        if (child == 0)
            for (;;)
                test_pause_ms(1000);
        if (child < 0 || write(done, "r", 1) != 1)
            _exit(4);
    }
    _exit(0);
}

static void a_new_child_is_in_the_next_sample(void **state)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;
    int orders[2];
    int done[2];
    char byte = 0;

    (void) state;
    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(done, O_CLOEXEC), 0);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void) setpgid(0, 0);
        breed(orders[0], done[1]);
    }
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, pid, NULL, 100, &s, &e), 0);
    for (uint64_t i = 0; i < 12; i++) {
        /* two samples between one child and the next: the second has nothing new to find */
        if (i % 2 == 1) {
            assert_int_equal(write(orders[1], "c", 1), 1);
            assert_int_equal(read(done[0], &byte, 1), 1);
        }
        sampler_take(s, i);
        assert_int_equal(sampler_at(s, i)->processes, 1 + (i + 1) / 2);
    }
    (void) kill(-pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    sampler_free(s);
    sysroot_close(&root);
    for (int i = 0; i < 2; i++) {
        (void) close(orders[i]);
        (void) close(done[i]);
    }
}

static void switches_are_at_most_three_samples_old(void **state)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;
    int orders[2];
    int done[2];

    (void) state;
    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(done, O_CLOEXEC), 0);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        for (;;) {
            await(orders[0]);
            test_pause_ms(1); /* a switch, at least */
            tell(done[1]);
        }
    }
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, pid, NULL, 100, &s, &e), 0);
    for (uint64_t i = 0; i < 16; i++) {
        sampler_take(s, i);
        if (i >= 4)
            assert_true(sampler_at(s, i)->voluntary_switches >
                        sampler_at(s, i - 4)->voluntary_switches);
        tell(orders[1]);
        await(done[0]);
    }
    (void) kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 2; i++) {
        (void) close(orders[i]);
        (void) close(done[i]);
    }
    sampler_free(s);
    sysroot_close(&root);
}

static void a_full_ring_counts_what_it_loses(void **state)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, getpid(), NULL, 3, &s, &e), 0);
    for (uint64_t i = 0; i < 5; i++)
        sampler_take(s, i);
    assert_int_equal(sampler_count(s), 3);
    assert_int_equal(sampler_lost(s), 2);
    assert_int_equal(sampler_at(s, 2)->t_ms, 2);
    assert_null(sampler_at(s, 3));
    sampler_free(s);
    sysroot_close(&root);
}

static void a_tree_that_is_gone_leaves_no_sample(void **state)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;
    pid_t pid = fork();

    (void) state;
    if (pid == 0)
        _exit(0);
    siginfo_t info;

    assert_int_equal(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, pid, NULL, 3, &s, &e), 0);
    sampler_take(s, 0); /* a zombie uses nothing: no sample of 0 is claimed */
    assert_int_equal(sampler_count(s), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    sampler_take(s, 1);
    assert_int_equal(sampler_count(s), 0);
    sampler_free(s);
    sysroot_close(&root);
}

/* A process group of its own that ends with the test; `body` says on the pipe that it is there. */
static pid_t start_group(void (*body)(int ready))
{
    int ready[2];
    char byte = 0;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void) setpgid(0, 0);
        (void) prctl(PR_SET_PDEATHSIG, (unsigned long) SIGKILL, 0L, 0L, 0L);
        body(ready[1]);
        for (;;)
            test_pause_ms(1000);
    }
    (void) close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void) close(ready[0]);
    return pid;
}

static void end_group(pid_t pid)
{
    (void) kill(-pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* One sample of the tree; fails the test when it was not whole. */
static struct sample sample_of(pid_t pid)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;
    struct sample x;
    const char *why = "";

    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, pid, NULL, 4, &s, &e), 0);
    sampler_take(s, 1);
    assert_int_equal(sampler_incomplete(s, &why), 0);
    assert_string_equal(why, "");
    assert_int_equal(sampler_count(s), 1);
    x = *sampler_at(s, 0);
    sampler_free(s);
    sysroot_close(&root);
    return x;
}

static void say_ready(int ready)
{
    if (write(ready, "r", 1) != 1)
        _exit(4);
}

static pthread_t first_thread;

static void *outlive_the_first(void *arg)
{
    const int *ready = arg;

    (void) pthread_join(first_thread, NULL);
    take_mib(48);
    say_ready(*ready);
    while (pause() < 0)
        continue;
    return NULL;
}

static void end_first_thread(int ready)
{
    static int descriptor;
    pthread_t thread;

    descriptor = ready;
    first_thread = pthread_self();
    if (pthread_create(&thread, NULL, outlive_the_first, &descriptor) != 0)
        _exit(5);
    pthread_exit(NULL);
}

/* The kernel shows such a process as a zombie without memory. */
static void a_process_outlives_its_first_thread(void **state)
{
    pid_t pid = start_group(end_first_thread);
    struct sample x;

    (void) state;
    test_pause_ms(50); /* joined is a little before ended */
    x = sample_of(pid);
    end_group(pid);
    assert_int_equal(x.processes, 1);
    assert_true(x.rss_kib >= 48 * 1024);
}

#define MANY 800

static void have_many_children(int ready)
{
    for (int i = 0; i < MANY; i++) {
        pid_t child = fork();

        if (child < 0)
            _exit(5);
        if (child == 0)
            for (;;)
                (void) pause();
    }
    say_ready(ready);
}

/* More children than a page of their numbers holds, and than there are descriptors to keep. */
static void many_children_are_all_counted(void **state)
{
    struct rlimit saved, few;
    pid_t pid = start_group(have_many_children);
    struct sample x;

    (void) state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
    few = (struct rlimit){.rlim_cur = 1024, .rlim_max = saved.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    x = sample_of(pid);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
    end_group(pid);
    assert_int_equal(x.processes, 1 + MANY);
}

#define THREADS 400

struct fork_order {
    pthread_barrier_t all;
    int ready;
};

static void *be_a_thread(void *arg)
{
    struct fork_order *order = arg;
    int turn = pthread_barrier_wait(&order->all);

    if (turn == PTHREAD_BARRIER_SERIAL_THREAD) {
        /* the last one to come: it was made after most others */
        if (fork() == 0) {
            take_mib(48);
            say_ready(order->ready);
        }
    }
    while (pause() < 0)
        continue;
    return NULL;
}

static void fork_from_the_last_thread(int ready)
{
    static struct fork_order order;
    pthread_attr_t attr;
    pthread_t thread;

    order.ready = ready;
    (void) pthread_barrier_init(&order.all, NULL, THREADS);
    (void) pthread_attr_init(&attr);
    (void) pthread_attr_setstacksize(&attr, 65536);
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread, &attr, be_a_thread, &order) != 0)
            _exit(5);
    }
}

static void a_child_of_the_last_thread_is_counted(void **state)
{
    pid_t pid = start_group(fork_from_the_last_thread);
    struct sample x = sample_of(pid);

    (void) state;
    end_group(pid);
    assert_int_equal(x.processes, 2);
    assert_int_equal(x.threads, 1 + THREADS + 1);
    assert_true(x.rss_kib >= 48 * 1024);
}

/* What can't be counted is told, and no sample is made of the rest. */
static void check_incomplete(const struct sysroot *root, pid_t pid, const char *wanted)
{
    struct sampler *s = NULL;
    struct err e = ERR_INIT;
    const char *why = "";

    assert_int_equal(sampler_new(root, pid, NULL, 4, &s, &e), 0);
    sampler_take(s, 1);
    sampler_take(s, 2);
    assert_int_equal(sampler_incomplete(s, &why), 2);
    assert_string_equal(why, wanted);
    assert_int_equal(sampler_count(s), 0);
    sampler_free(s);
}

static void more_processes_than_counted_are_no_sample(void **state)
{
    char *dir = test_dir_new();
    char name[64];
    struct sysroot root;
    struct err e = ERR_INIT;
    struct buf list;
    AUTO_FD int fd = -1;

    (void) state;
    test_write_text(dir, "proc/1/stat",
                    "1 (a) S 0 1 1 0 -1 0 9 0 0 0 1 2 0 0 20 0 1 0 100 1 50 0\n");
    buf_init(&list, 1 << 20);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 2; i <= PROCESS_TREE_MAX + 10; i++) {
        buf_printf(&list, "%d ", i);
        (void) snprintf(name, sizeof name, "proc/%d", i);
        assert_int_equal(symlinkat("1", fd, name), 0);
    }
    test_write_text(dir, "proc/1/task/1/children", list.data);
    assert_int_equal(sysroot_open(dir, &root, &e), 0);
    check_incomplete(&root, 1, "more than 4096 processes");
    sysroot_close(&root);
    buf_fini(&list);
    test_dir_free(dir);
}

static void without_descriptors_there_is_no_sample(void **state)
{
    struct sysroot root;
    struct rlimit saved, none;
    struct err e = ERR_INIT;
    int lowest;

    (void) state;
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    lowest = dup(root.fd);
    assert_true(lowest >= 0);
    (void) close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t) lowest, .rlim_max = saved.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    check_incomplete(&root, getpid(), "a process of the tree can't be read");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
    sysroot_close(&root);
}

/* Equal times would make the whole series useless. */
static void two_samples_of_one_millisecond_are_one(void **state)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, getpid(), NULL, 4, &s, &e), 0);
    sampler_take(s, 500);
    sampler_take(s, 500);
    sampler_take(s, 499);
    sampler_take(s, 1000);
    assert_int_equal(sampler_count(s), 2);
    assert_int_equal(sampler_at(s, 1)->t_ms, 1000);
    assert_int_equal(sampler_lost(s), 0);
    sampler_free(s);
    sysroot_close(&root);
}

static cJSON *record_for(long ms)
{
    struct sysroot root;
    struct interference *i = NULL;
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(interference_new(&root, NULL, NULL, &i, &e), 0);
    test_pause_ms(ms);
    assert_int_equal(interference_record(i, 0, NULL, &j, &e), 0);
    interference_free(i);
    sysroot_close(&root);
    return j;
}

/* Starts a busy process that is not this test's child: its parent ends at once. */
static pid_t start_competitor(void)
{
    int pair[2];
    pid_t busy = 0;

    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    pid_t middle = fork();

    assert_true(middle >= 0);
    if (middle == 0) {
        busy = fork();
        if (busy == 0) {
            FILE *f = fopen("/proc/self/comm", "w");

            if (f) {
                fputs("t7-busy-loop", f);
                fclose(f);
            }
            busy = getpid();
            if (write(pair[1], &busy, sizeof busy) != (ssize_t) sizeof busy)
                _exit(4);
            for (;;)
                ;
        }
        _exit(0);
    }
    assert_int_equal(waitpid(middle, NULL, 0), middle);
    assert_int_equal(read(pair[0], &busy, sizeof busy), sizeof busy);
    close(pair[0]);
    close(pair[1]);
    return busy;
}

static double competitor_in(const cJSON *record)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, json_get(record, "busiest_others")) {
        if (!strcmp(json_get(row, "name")->valuestring, "t7-busy-loop"))
            return json_get(row, "cpu_pct")->valuedouble;
    }
    return 0;
}

static void a_competing_busy_loop_is_recorded(void **state)
{
    pid_t busy = start_competitor();
    cJSON *record = record_for(800);
    double seen = competitor_in(record);

    (void) state;
    /* Where many compete it may not be among the busiest at once. */
    for (int i = 0; i < 20 && seen <= 5; i++) {
        cJSON_Delete(record);
        record = record_for(800);
        seen = competitor_in(record);
    }
    kill(busy, SIGKILL);
    assert_true(seen > 5);
    assert_true(json_get(record, "other_cpu_pct")->valuedouble >= seen - 0.01);
    cJSON_Delete(record);
}

static void every_sample_counts_twenty_processes(void **state)
{
    struct sysroot root;
    struct sampler *s = NULL;
    struct err e = ERR_INIT;
    int block[2];
    int ready[2];
    pid_t top;

    (void) state;
    assert_int_equal(pipe2(block, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    top = fork();
    if (top == 0) {
        char byte;

        for (int i = 0; i < 19; i++) {
            if (fork() == 0)
                break;
        }
        close(block[1]);
        tell(ready[1]);
        _exit(read(block[0], &byte, 1) == 0 ? 0 : 1);
    }
    for (int i = 0; i < 20; i++)
        await(ready[0]);
    assert_int_equal(sysroot_open("/", &root, &e), 0);
    assert_int_equal(sampler_new(&root, top, NULL, 1000, &s, &e), 0);
    sampler_take(s, 0);
    for (uint64_t i = 1; i <= 100; i++)
        sampler_take(s, i);
    for (size_t i = 0; i <= 100; i++)
        assert_int_equal(sampler_at(s, i)->processes, 20);
    close(block[0]);
    close(block[1]);
    close(ready[0]);
    close(ready[1]);
    kill(top, SIGKILL);
    assert_int_equal(waitpid(top, NULL, 0), top);
    sampler_free(s);
    sysroot_close(&root);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_summed_and_its_cpu_seen),
        cmocka_unit_test(orphans_stay_in_the_sums),
        cmocka_unit_test(orphans_that_ended_are_waited_for),
        cmocka_unit_test(a_new_child_is_in_the_next_sample),
        cmocka_unit_test(switches_are_at_most_three_samples_old),
        cmocka_unit_test(a_full_ring_counts_what_it_loses),
        cmocka_unit_test(a_tree_that_is_gone_leaves_no_sample),
        cmocka_unit_test(a_process_outlives_its_first_thread),
        cmocka_unit_test(many_children_are_all_counted),
        cmocka_unit_test(a_child_of_the_last_thread_is_counted),
        cmocka_unit_test(more_processes_than_counted_are_no_sample),
        cmocka_unit_test(without_descriptors_there_is_no_sample),
        cmocka_unit_test(two_samples_of_one_millisecond_are_one),
        cmocka_unit_test(a_competing_busy_loop_is_recorded),
        cmocka_unit_test(every_sample_counts_twenty_processes),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/sampler", tests, NULL, NULL);
}
