#include "tests/lib/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* fail_msg never comes back, which neither compiler nor analyser knows. */
#define GIVE_UP(...)                                                                               \
    do {                                                                                           \
        fail_msg(__VA_ARGS__);                                                                     \
        abort();                                                                                   \
    } while (0)

static const char *root_of(const char *name)
{
    const char *value = getenv(name);

    if (!value || value[0] != '/') {
        GIVE_UP("%s is not set to an absolute path: run tests with meson test", name);
        return "/";
    }
    return value;
}

const char *test_source_root(void)
{
    return root_of("CLEANRUN_SOURCE_ROOT");
}

const char *test_build_root(void)
{
    return root_of("CLEANRUN_BUILD_ROOT");
}

char *test_join(const char *dir, const char *name)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s", dir, name) < 0)
        GIVE_UP("no memory");
    return path;
}

char *test_fill(const char *pattern, const char *one, const char *two)
{
    char *out = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&out, &len);

    if (!f)
        GIVE_UP("no memory");
    for (const char *p = pattern; *p; p++) {
        if (strncmp(p, "{1}", 3) != 0 && strncmp(p, "{2}", 3) != 0) {
            fputc(*p, f);
            continue;
        }
        fputs(p[1] == '1' ? one : two, f);
        p += 2;
    }
    if (fclose(f) != 0)
        GIVE_UP("no memory");
    return out;
}

char *test_path(const char *relative)
{
    return test_join(test_source_root(), relative);
}

char *test_read(const char *relative, size_t *out_len)
{
    char *path = test_path(relative);
    char *bytes = test_read_path(path, out_len);

    free(path);
    return bytes;
}

/* Everything up to end of file; NULL on a read error. */
static char *read_all(int fd, size_t *out_len)
{
    size_t cap = 65536;
    size_t len = 0;
    char *bytes = malloc(cap);

    while (bytes) {
        ssize_t got = read(fd, bytes + len, cap - len - 1);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            free(bytes);
            return NULL;
        }
        if (got == 0)
            break;
        len += (size_t) got;
        if (cap - len < 4096) {
            char *more = realloc(bytes, cap * 2);

            if (!more) {
                free(bytes);
                return NULL;
            }
            bytes = more;
            cap *= 2;
        }
    }
    if (!bytes)
        return NULL;
    bytes[len] = '\0';
    *out_len = len;
    return bytes;
}

char *test_read_path(const char *path, size_t *out_len)
{
    size_t len = 0;
    char *bytes = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        GIVE_UP("cannot open %s: %s", path, strerrordesc_np(errno));
    bytes = read_all(fd, &len);
    (void) close(fd);
    if (!bytes)
        GIVE_UP("cannot read %s", path);
    if (out_len)
        *out_len = len;
    return bytes;
}

char *test_shared(const char *relative)
{
    const char *shared = getenv("CLEANRUN_SHARED");
    char *root = shared && shared[0] ? strdup(shared) : test_path("../shared");
    char *path = test_join(root, relative);

    free(root);
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    (void) printf("SKIPPED corpus: %s\n", relative);
    (void) fflush(stdout);
    return NULL;
}

char *test_dir_new(void)
{
    const char *tmp = getenv("TMPDIR");
    char *path = test_join(tmp && tmp[0] ? tmp : "/tmp", "cleanrun-test-XXXXXX");

    if (!mkdtemp(path))
        GIVE_UP("cannot make %s: %s", path, strerrordesc_np(errno));
    return path;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void) st;
    (void) ftw;
    if (kind ==
        FTW_DNR) /* a test took the permission away; give it back so that its content goes too */
        (void) chmod(path, 0700);
    return remove(path);
}

void test_dir_free(char *path)
{
    if (!path)
        return;
    (void) nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS); /* a leftover in /tmp fails no test */
    free(path);
}

static void make_parents(char *path)
{
    char *slash = path;

    while ((slash = strchr(slash + 1, '/')) != NULL) {
        *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            GIVE_UP("cannot make %s: %s", path, strerrordesc_np(errno));
        *slash = '/';
    }
}

void test_write(const char *dir, const char *name, const void *bytes, size_t len)
{
    char *path = test_join(dir, name);
    FILE *f = NULL;

    make_parents(path);
    f = fopen(path, "wbe");
    if (!f || (len > 0 && fwrite(bytes, 1, len, f) != len) || fclose(f) != 0)
        GIVE_UP("cannot write %s: %s", path, strerrordesc_np(errno));
    free(path);
}

void test_write_text(const char *dir, const char *name, const char *text)
{
    test_write(dir, name, text, strlen(text));
}

void test_close_at(double a, double b, double tolerance, const char *what, const char *file,
                   int line)
{
    if (!(fabs(a - b) <= tolerance * fmax(1.0, fabs(b)))) {
        print_error("%.17g is not within %g of %.17g: %s\n", a, tolerance, b, what);
        _fail(file, line);
    }
}

/* The extra variables first, then those of our own environment that they do not replace. */
static char **merge_env(const char *const env[])
{
    size_t n_extra = 0;
    size_t n_own = 0;
    size_t n = 0;
    char **merged = NULL;

    while (env && env[n_extra])
        n_extra++;
    while (environ[n_own])
        n_own++;
    merged = calloc(n_extra + n_own + 1, sizeof(*merged));
    if (!merged)
        GIVE_UP("no memory");
    for (size_t i = 0; i < n_extra; i++)
        merged[n++] = strdup(env[i]);
    for (size_t i = 0; i < n_own; i++) {
        size_t name_len = strcspn(environ[i], "=") + 1;
        bool replaced = false;

        for (size_t k = 0; k < n_extra; k++)
            replaced = replaced || strncmp(environ[i], env[k], name_len) == 0;
        if (!replaced)
            merged[n++] = strdup(environ[i]);
    }
    return merged;
}

/* An unnamed temporary file: no pipe that could fill up and block. */
static int temporary(const char *content)
{
    int fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

    if (fd < 0) {
        char name[] = "/tmp/cleanrun-test-XXXXXX";

        fd = mkostemp(name, O_CLOEXEC);
        if (fd >= 0)
            (void) unlink(name);
    }
    if (fd < 0)
        GIVE_UP("no temporary file: %s", strerrordesc_np(errno));
    if (content) {
        size_t len = strlen(content);

        if (write(fd, content, len) != (ssize_t) len || lseek(fd, 0, SEEK_SET) != 0)
            GIVE_UP("cannot write a temporary file");
    }
    return fd;
}

static char *collect(int fd, size_t *out_len)
{
    char *bytes = NULL;

    if (lseek(fd, 0, SEEK_SET) != 0)
        GIVE_UP("cannot rewind a temporary file");
    bytes = read_all(fd, out_len);
    if (!bytes)
        GIVE_UP("cannot read a temporary file");
    (void) close(fd);
    return bytes;
}

static pid_t spawn(const char *const argv[], char **merged, const char *cwd, const int fds[3])
{
    posix_spawn_file_actions_t actions;
    char **copy = NULL;
    size_t n = 0;
    pid_t pid = 0;
    int trouble = 0;

    while (argv[n])
        n++;
    if (n == 0)
        GIVE_UP("no program to run");
    copy = calloc(n + 1, sizeof(*copy));
    if (!copy || posix_spawn_file_actions_init(&actions) != 0) {
        GIVE_UP("no memory");
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        copy[i] = strdup(argv[i]);
    for (int i = 0; i < 3; i++)
        trouble |= posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    if (cwd)
        trouble |= posix_spawn_file_actions_addchdir_np(&actions, cwd);
    if (trouble != 0)
        GIVE_UP("cannot prepare %s", argv[0]);
    trouble = posix_spawnp(&pid, argv[0], &actions, NULL, copy, merged);
    (void) posix_spawn_file_actions_destroy(&actions);
    if (trouble != 0)
        GIVE_UP("cannot start %s: %s", argv[0], strerrordesc_np(trouble));
    test_names_free(copy);
    return pid;
}

void test_run(const char *const argv[], const char *const env[], const char *cwd, const char *input,
              struct test_run *out)
{
    int fds[3] = {temporary(input ? input : ""), temporary(NULL), temporary(NULL)};
    char **merged = merge_env(env);
    pid_t pid = spawn(argv, merged, cwd, fds);
    int status = 0;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            GIVE_UP("cannot wait for %s", argv[0]);
    }
    test_names_free(merged);
    (void) close(fds[0]);
    out->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    out->out = collect(fds[1], &out->out_len);
    out->err = collect(fds[2], &out->err_len);
}

void test_run_fini(struct test_run *r)
{
    free(r->out);
    free(r->err);
    r->out = NULL;
    r->err = NULL;
}

void test_git(const char *dir, const char *const argv[])
{
    static const char *const env[] = {
        "GIT_AUTHOR_NAME=Fixture",
        "GIT_AUTHOR_EMAIL=fixture@example.invalid",
        "GIT_COMMITTER_NAME=Fixture",
        "GIT_COMMITTER_EMAIL=fixture@example.invalid",
        "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
        "GIT_CONFIG_GLOBAL=/dev/null",
        "GIT_CONFIG_NOSYSTEM=1",
        NULL,
    };
    const char *full[32] = {"git", "-c", "protocol.file.allow=always"};
    struct test_run r;
    size_t n = 3;

    for (size_t i = 0; argv[i]; i++) {
        assert_true(n < sizeof full / sizeof full[0] - 1);
        full[n++] = argv[i];
    }
    test_run(full, env, dir, NULL, &r);
    if (r.code != 0)
        fail_msg("git %s: %s", argv[0], r.err);
    test_run_fini(&r);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

size_t test_list(const char *dir, const char *suffix, char ***out_names)
{
    size_t n = 0;
    size_t cap = 64;
    size_t suffix_len = strlen(suffix);
    struct dirent *entry = NULL;
    char **names = calloc(cap, sizeof(*names));
    DIR *d = opendir(dir);

    if (!d || !names) {
        GIVE_UP("cannot list %s", dir);
        return 0;
    }
    while ((entry = readdir(d)) != NULL) {
        size_t len = strlen(entry->d_name);

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            len < suffix_len || strcmp(entry->d_name + len - suffix_len, suffix) != 0)
            continue;
        if (n + 2 > cap) {
            char **more = realloc(names, 2 * cap * sizeof(*names));

            if (!more) {
                GIVE_UP("no memory");
                break;
            }
            names = more;
            cap *= 2;
        }
        names[n++] = strdup(entry->d_name);
    }
    (void) closedir(d);
    names[n] = NULL;
    qsort(names, n, sizeof(*names), by_text);
    *out_names = names;
    return n;
}

void test_names_free(char **names)
{
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}

uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

size_t test_random_below(uint64_t *state, size_t n)
{
    return (size_t) (test_random(state) % n);
}

void test_pause_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}
