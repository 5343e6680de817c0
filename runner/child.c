#include "runner/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/buf.h"
#include "base/num.h"
#include "runner/paths.h"

#define PATH_BYTES 4096
#define SPARE_FD_FLOOR 16 /* descriptors are moved up here before they are put in their places */
#define ORPHAN_ROUNDS 200

/* What the child tells its parent when it cannot start the program. */
struct start_failure {
    int error;
    int step;
};

enum start_step { STEP_SESSION, STEP_BOX, STEP_DIRECTORY, STEP_DESCRIPTORS, STEP_EXEC };

static const char *const step_words[] = {
    [STEP_SESSION] = "new session",       [STEP_BOX] = "join the box",
    [STEP_DIRECTORY] = "enter directory", [STEP_DESCRIPTORS] = "place descriptors",
    [STEP_EXEC] = "start program",
};

int child_adopt_orphans(struct err *e)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) < 0)
        return err_errno(e, "child.subreaper", "cannot adopt orphaned processes");
    return 0;
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0;
}

char *child_find_program(const char *name, const char *path)
{
    if (strchr(name, '/'))
        return is_program(name) ? strdup(name) : NULL;
    while (path && *path) {
        size_t len = strcspn(path, ":");
        AUTO_BUF struct buf b = {.data = NULL};

        buf_init(&b, PATH_BYTES);
        buf_put(&b, path, len);
        buf_putc(&b, '/');
        buf_puts(&b, name);
        if (len > 0 && !b.failed && is_program(b.data))
            return buf_take(&b, NULL);
        path += len;
        if (*path == ':')
            path++;
    }
    return NULL;
}

/* From here on up to exec only async-signal-safe calls are made in the child. */

_Noreturn static void fail_start(int report_fd, enum start_step step)
{
    struct start_failure f = {.error = errno, .step = (int) step};
    ssize_t n = write(report_fd, &f, sizeof(f));

    _exit(n == (ssize_t) sizeof(f) ? 126 : 127);
}

static int above(int fd)
{
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, SPARE_FD_FLOOR);
}

/* Puts fd (or /dev/null) at `place`, open across exec. */
static bool put_fd(int fd, int place, int null_fd)
{
    return dup2(fd >= 0 ? fd : null_fd, place) == place;
}

static bool place_descriptors(const struct child_spec *s, int *exec_fd, int *report_fd)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int in = above(s->stdin_fd), out = above(s->stdout_fd), err = above(s->stderr_fd);
    int extra = above(s->extra_fd);
    int high_null = above(null_fd);

    *exec_fd = above(s->exec_fd);
    *report_fd = above(*report_fd);
    if (high_null < 0 || *report_fd < 0 || (s->exec_fd >= 0 && *exec_fd < 0))
        return false;
    if ((s->stdin_fd >= 0 && in < 0) || (s->stdout_fd >= 0 && out < 0) ||
        (s->stderr_fd >= 0 && err < 0) || (s->extra_fd >= 0 && extra < 0))
        return false;
    /* Nothing that this process inherited or forgot to mark reaches the program. */
    if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) < 0)
        return false;
    return put_fd(in, 0, high_null) && put_fd(out, 1, high_null) && put_fd(err, 2, high_null) &&
           (extra < 0 || dup2(extra, CHILD_EXTRA_FD) == CHILD_EXTRA_FD);
}

static void reset_signals(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int s = 1; s < SIGRTMIN; s++)
        (void) sigaction(s, &usual, NULL); /* fails only for the two that cannot be caught */
    sigemptyset(&none);
    (void) pthread_sigmask(SIG_SETMASK, &none, NULL); /* cannot fail with these arguments */
}

_Noreturn static void run_child(const struct child_spec *s, const char *program, int report_fd,
                                pid_t parent)
{
    int exec_fd = -1;
    char *const *argv = (char *const *) (uintptr_t) s->argv;
    char *const *envp = (char *const *) (uintptr_t) s->envp;

    reset_signals();
    /* A runner that dies takes the program with it. */
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, (unsigned long) SIGKILL, 0L, 0L, 0L) < 0 ||
        getppid() != parent)
        fail_start(report_fd, STEP_SESSION);
    if (s->cgroup_procs_fd >= 0 && write(s->cgroup_procs_fd, "0", 1) != 1)
        fail_start(report_fd, STEP_BOX);
    if (s->cwd_fd >= 0 && fchdir(s->cwd_fd) < 0)
        fail_start(report_fd, STEP_DIRECTORY);
    if (!place_descriptors(s, &exec_fd, &report_fd))
        fail_start(report_fd, STEP_DESCRIPTORS);
    if (exec_fd >= 0)
        (void) syscall(SYS_execveat, exec_fd, "", argv, envp,
                       AT_EMPTY_PATH); /* returns only on failure */
    else
        (void) execve(program, argv, envp); /* the same */
    fail_start(report_fd, STEP_EXEC);
}

/* Waits for the report pipe to close (the program runs) or for the failure in it. */
static int await_start(int report_fd, const char *name, struct err *e)
{
    struct start_failure f;
    ssize_t n;

    do {
        n = read(report_fd, &f, sizeof(f));
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    if (n != (ssize_t) sizeof(f) || f.step < 0 || f.step > (int) STEP_EXEC)
        return err_set(e, ERR_SYS, "child.start", "cannot start '%s'", name);
    errno = f.error;
    return err_errno(e, "child.start", "cannot %s '%s'", step_words[f.step], name);
}

int child_start(const struct child_spec *spec, struct child *out, struct err *e)
{
    int pair[2];
    AUTO_FREE char *program = NULL;
    struct child made = {.pid = -1, .pidfd = -1};
    pid_t parent = getpid();

    if (spec->exec_fd < 0) {
        program = child_find_program(spec->argv[0], spec->path);
        if (!program)
            return err_set(e, ERR_NOTFOUND, "child.program", "no program '%s'", spec->argv[0]);
    }
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_errno(e, "child.pipe", "cannot make a pipe");
    AUTO_FD int read_end = pair[0];
    AUTO_FD int write_end = pair[1];

    made.pid = fork();
    if (made.pid < 0)
        return err_errno(e, "child.fork", "cannot start '%s'", spec->argv[0]);
    if (made.pid == 0)
        run_child(spec, program, write_end, parent);
    (void) close(fd_steal(&write_end)); /* a pipe end has nothing to lose */
    made.pidfd = pidfd_open(made.pid, 0);
    if (made.pidfd < 0 || await_start(read_end, spec->argv[0], e) < 0) {
        int failed =
            made.pidfd < 0 ? err_errno(e, "child.pidfd", "cannot watch '%s'", spec->argv[0]) : -1;

        (void) kill(made.pid, SIGKILL); /* not reaped yet, so the number is still this child's */
        (void) waitpid(made.pid, NULL, 0);
        child_fini(&made);
        return failed;
    }
    *out = made;
    return 0;
}

void child_signal(const struct child *c, int signal)
{
    /* Not to be called after child_wait: until then its group number can't be another's. */
    if (c->pidfd >= 0) {
        (void) pidfd_send_signal(c->pidfd, signal, NULL, 0); /* gone already: nothing to do */
        (void) kill(-c->pid, signal);
    }
}

static uint64_t micros(struct timeval t)
{
    return (uint64_t) t.tv_sec * 1000000U + (uint64_t) t.tv_usec;
}

int child_wait(struct child *c, struct child_status *out, struct err *e)
{
    siginfo_t info;
    struct rusage usage;
    long r;

    memset(&info, 0, sizeof(info));
    memset(&usage, 0, sizeof(usage));
    do {
        /* The raw call, since the library's waitid has no usage argument. */
        r = syscall(SYS_waitid, P_PIDFD, c->pidfd, &info, WEXITED, &usage);
    } while (r < 0 && errno == EINTR);
    if (r < 0)
        return err_errno(e, "child.wait", "cannot wait for the program");
    *out = (struct child_status){
        .exited = info.si_code == CLD_EXITED,
        .code = info.si_code == CLD_EXITED ? info.si_status : 0,
        .signal = info.si_code == CLD_EXITED ? 0 : info.si_status,
        .user_us = micros(usage.ru_utime),
        .system_us = micros(usage.ru_stime),
        .max_rss_kib = (uint64_t) usage.ru_maxrss,
        .minor_faults = (uint64_t) usage.ru_minflt,
        .major_faults = (uint64_t) usage.ru_majflt,
        .voluntary_switches = (uint64_t) usage.ru_nvcsw,
        .involuntary_switches = (uint64_t) usage.ru_nivcsw,
    };
    return 0;
}

/* Kills one child of ours (an adopted orphan) by its own pidfd. False when it is gone. */
static bool kill_orphan(pid_t pid)
{
    AUTO_FD int fd = pidfd_open(pid, 0);
    siginfo_t info;

    /* Only our own unreaped children are listed, so the number is theirs until waitid below. */
    if (fd < 0)
        return false;
    (void) pidfd_send_signal(fd, SIGKILL, NULL,
                             0); /* a zombie takes no signal, and is reaped all the same */
    memset(&info, 0, sizeof(info));
    return waitid(P_PIDFD, (id_t) fd, &info, WEXITED) == 0;
}

/* The children of this process but `except`, from /proc; the number written to pids. */
static size_t own_children(pid_t except, pid_t *pids, size_t max)
{
    size_t n = 0;
    char name[64];

    (void) snprintf(name, sizeof(name), "/proc/self/task/%d/children", (int) getpid()); /* fits */
    AUTO_FREE char *text = paths_read_pseudo(AT_FDCWD, name, 1 << 16);

    if (!text)
        return 0;
    for (const char *p = text; *p && n < max;) {
        size_t digits = strspn(p, "0123456789");
        uint64_t pid = 0;

        if (digits == 0)
            break;
        if (num_parse_u64(p, digits, INT32_MAX, &pid) && (pid_t) pid != except)
            pids[n++] = (pid_t) pid;
        p += digits;
        p += strspn(p, " \n");
    }
    return n;
}

size_t child_kill_rest(const struct child *c)
{
    size_t found = 0;

    /* The child itself may be a zombie but is not reaped: its number is still its group's. */
    if (c->pid > 0)
        (void) kill(-c->pid, SIGKILL); /* ESRCH: the group is empty */
    for (int round = 0; round < ORPHAN_ROUNDS; round++) {
        pid_t pids[64];
        size_t n = own_children(c->pid, pids, ARRAY_LEN(pids));

        if (n == 0)
            break;
        for (size_t i = 0; i < n; i++)
            found += kill_orphan(pids[i]) ? 1 : 0;
    }
    return found;
}

void child_fini(struct child *c)
{
    if (c->pidfd >= 0)
        (void) close(c->pidfd);
    c->pidfd = -1;
    c->pid = -1;
}
