#include "tests/http/live.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"

#define ARGS_MAX 24
#define START_MS 20000

static char *program(void)
{
    char *path = NULL;

    assert_true(asprintf(&path, "%s/server/cleanrun-server", test_build_root()) > 0);
    return path;
}

void live_init(struct live *l)
{
    memset(l, 0, sizeof *l);
    l->dir = test_dir_new();
    l->data = test_join(l->dir, "data");
}

void live_init_at(struct live *l, const char *data)
{
    live_init(l);
    free(l->data);
    l->data = strdup(data);
    assert_non_null(l->data);
}

static void exec_server(struct live *l, const char *path, const char *const extra[])
{
    const char *args[ARGS_MAX] = {path,       "serve",       "--data",     l->data,
                                  "--listen", "127.0.0.1:0", "--port-file"};
    char *port = test_join(l->dir, "port");
    char *log = test_join(l->dir, "log");
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    size_t n = 7;
    size_t i = 0;

    args[n++] = port;
    for (i = 0; extra && extra[i] && n < ARGS_MAX - 1; i++)
        args[n++] = extra[i];
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves no server */
    (void) dup2(fd, 2);
    (void) dup2(fd, 1);
    (void) execv(path, (char *const *) (uintptr_t) args); /* argv is not written */
    _exit(127);
}

static bool is_alive(unsigned port)
{
    struct raw_response a;
    bool alive = false;

    raw_request(port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", &a);
    alive = a.status == 200;
    raw_response_fini(&a);
    return alive;
}

static bool read_port(const char *path, unsigned *out)
{
    char text[16] = "";
    uint64_t port = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        (void) close(fd);
    if (n < 2 || text[n - 1] != '\n' || !num_parse_u64(text, (size_t) n - 1, 65535, &port))
        return false;
    *out = (unsigned) port;
    return true;
}

void live_start(struct live *l, const char *const extra[])
{
    char *path = program();
    char *port = test_join(l->dir, "port");
    int waited = 0;
    int status = 0;

    (void) unlink(port);
    l->pid = fork();
    assert_true(l->pid >= 0);
    if (l->pid == 0)
        exec_server(l, path, extra);
    while (!read_port(port, &l->port) || !is_alive(l->port)) {
        if (waitpid(l->pid, &status, WNOHANG) == l->pid || waited > START_MS) {
            char *log = live_log(l);

            l->pid = 0;
            fail_msg("the server did not start: %s", log);
        }
        usleep(5000);
        waited += 5;
    }
    free(path);
    free(port);
}

int live_stop(struct live *l)
{
    int status = 0;

    assert_true(l->pid > 0);
    assert_int_equal(kill(l->pid, SIGTERM), 0);
    assert_int_equal(waitpid(l->pid, &status, 0), l->pid);
    l->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void live_kill(struct live *l)
{
    int status = 0;

    assert_true(l->pid > 0);
    (void) kill(l->pid, SIGKILL); /* it may have died already */
    (void) waitpid(l->pid, &status, 0);
    l->pid = 0;
}

void live_fini(struct live *l)
{
    if (l->pid > 0)
        live_kill(l);
    test_dir_free(l->dir);
    free(l->data);
    memset(l, 0, sizeof *l);
}

int live_admin(struct live *l, const char *const args[], char **out_text)
{
    const char *argv[ARGS_MAX] = {NULL};
    char *path = program();
    struct test_run r;
    size_t n = 0;
    size_t i = 0;
    int code = 0;

    memset(&r, 0, sizeof r);
    argv[n++] = path;
    for (i = 0; args[i] && n < ARGS_MAX - 3; i++)
        argv[n++] = args[i];
    argv[n++] = "--data";
    argv[n++] = l->data;
    test_run(argv, NULL, NULL, NULL, &r);
    code = r.code;
    if (code != 0)
        print_message("admin %s: exit %d: %s\n", args[0], code, r.err);
    if (out_text) {
        *out_text = r.out;
        r.out = NULL;
    }
    test_run_fini(&r);
    free(path);
    return code;
}

unsigned long live_rss_kib(const struct live *l, bool peak)
{
    char path[64];
    char *text = NULL;
    const char *line = NULL;
    uint64_t kib = 0;

    (void) snprintf(path, sizeof path, "/proc/%d/status", (int) l->pid);
    text = test_read_path(path, NULL);
    line = strstr(text, peak ? "VmHWM:" : "VmRSS:");
    if (line) {
        line += 6;
        line += strspn(line, " \t");
        if (!num_parse_u64(line, strspn(line, "0123456789"), UINT32_MAX, &kib))
            kib = 0;
    }
    free(text);
    return (unsigned long) kib;
}

char *live_log(const struct live *l)
{
    char *path = test_join(l->dir, "log");
    char *text = test_read_path(path, NULL);

    free(path);
    return text;
}

/* Regular files of one directory, hidden ones not counted. */
static size_t count_here(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *entry = NULL;
    size_t n = 0;

    while (d && (entry = readdir(d))) {
        struct stat st;

        if (entry->d_name[0] != '.' &&
            fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            n += S_ISREG(st.st_mode);
    }
    if (d)
        (void) closedir(d);
    return n;
}

size_t live_count(const struct live *l, const char *folder)
{
    char *path = test_join(l->data, folder);
    char **names = NULL;
    size_t n = test_list(path, "", &names);
    size_t total = count_here(path);
    size_t i = 0;

    for (i = 0; i < n; i++) {
        char *below = test_join(path, names[i]);

        total += count_here(below); /* a file has none */
        free(below);
    }
    test_names_free(names);
    free(path);
    return total;
}
