/*
 * workload: a small measured program for tests: writes phase markers and a report, and misbehaves
 * on request. It is also copied into the repositories that tests make, and built there. Needs
 * nothing but libc.
 *
 * usage: workload BEHAVIOUR [ARGUMENT]
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&t, &t) < 0)
        continue; /* a signal came */
}

static void mark(const char *name)
{
    const char *fd = getenv("CLEANRUN_PHASE_FD");

    if (fd)
        dprintf(fd[0] - '0', "%s\n", name);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t) strlen(text)) {
        perror(path);
        exit(9);
    }
    close(fd);
}

static void write_report(const char *text)
{
    const char *dir = getenv("CLEANRUN_RESULTS");
    char path[4096];

    if (!dir)
        exit(8);
    snprintf(path, sizeof path, "%s/s", dir);
    mkdir(path, 0755);
    write_file(dir, "s/p.json", text);
}

#define GOOD                                                                                       \
    "{\"scenario\": \"s\", \"load\": {\"rate\": 7}, \"results\": {\"n\": 3, \"errors\": {\"x\": "  \
    "0}}}\n"

/* A heap profiler that dumps when it is told to. */
static void on_dump(int signal)
{
    static int n;
    char path[4096];
    const char *where = getenv("DUMPS");
    int fd;

    (void) signal;
    if (!where)
        _exit(11);
    snprintf(path, sizeof path, "%s.%d", where, ++n);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0 || write(fd, "heap\n", 5) != 5)
        _exit(12);
    close(fd);
}

/* A report that names its source: as the runner says, or another one. */
static void write_source(bool right)
{
    const char *said = getenv("CLEANRUN_SOURCE_SHA256");
    char text[512];

    snprintf(text, sizeof text,
             "{\"scenario\": \"s\", \"load\": {\"rate\": 7}, \"source\": \"%s\", \"results\": "
             "{\"n\": 3, \"errors\": {\"x\": 0}}}\n",
             right && said ? said : "0123");
    write_report(text);
}

/* Result trees that no package can hold. */
static void write_results(const char *how)
{
    const char *dir = getenv("CLEANRUN_RESULTS");
    char path[4096];

    write_report(GOOD);
    if (!strcmp(how, "directory")) {
        snprintf(path, sizeof path, "%s/s/p.json", dir);
        unlink(path);
        mkdir(path, 0755);
    } else if (!strcmp(how, "case")) {
        write_file(dir, "s/P.json", GOOD);
    } else if (!strcmp(how, "ours")) { /* the name that the runner keeps the report under */
        write_file(dir, "s/p.json.as-written", "mine\n");
    } else if (!strcmp(how, "ours-directory")) {
        snprintf(path, sizeof path, "%s/s/p.json.as-written", dir);
        mkdir(path, 0755);
        write_file(dir, "s/p.json.as-written/x", "mine\n");
    } else if (!strcmp(how, "deep")) {
        snprintf(path, sizeof path, "%s/s", dir);
        for (int i = 0; i < 40; i++) {
            size_t len = strlen(path);

            snprintf(path + len, sizeof path - len, "/d");
            mkdir(path, 0755);
        }
    } else if (!strcmp(how, "abyss")) {
        int fd = open(dir, O_RDONLY | O_DIRECTORY);

        for (int i = 0; i < 3000; i++) {
            int next;

            mkdirat(fd, "d", 0755);
            next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
            close(fd);
            fd = next;
        }
        close(openat(fd, "f", O_WRONLY | O_CREAT, 0644));
        close(fd);
    } else if (!strcmp(how, "huge")) {
        write_file(dir, "s/huge.json", "{}");
        snprintf(path, sizeof path, "%s/s/huge.json", dir);
        if (truncate(path, (off_t) 3 << 30) < 0)
            exit(10);
    }
}

/* What becomes of a file that the runner wrote before the program started. */
static void break_build_log(const char *run, const char *how)
{
    char log[4200], other[4300];

    snprintf(log, sizeof log, "%s/build.log", run);
    snprintf(other, sizeof other, "%s/results/s/log", run);
    if (!strcmp(how, "gone")) {
        unlink(log);
    } else if (!strcmp(how, "faked")) {
        write_file(run, "build.log", "fake\n");
    } else if (!strcmp(how, "huge")) {
        if (truncate(log, (off_t) 3 << 30) < 0)
            exit(10);
    } else if (!strcmp(how, "linked")) {
        if (rename(log, other) < 0 || symlink(other, log) < 0)
            exit(10);
    } else if (!strcmp(how, "twice")) {
        if (link(log, other) < 0)
            exit(10);
    }
}

/* What becomes of the results directory and of the run directory around it. */
static void break_places(const char *how)
{
    const char *dir = getenv("CLEANRUN_RESULTS");
    char run[4096], other[4200];

    write_report(GOOD);
    snprintf(run, sizeof run, "%s", dir);
    *strrchr(run, '/') = '\0';
    snprintf(other, sizeof other, "%s/elsewhere", run);
    if (!strcmp(how, "renamed")) {
        rename(dir, other);
    } else if (!strcmp(how, "file")) {
        rename(dir, other);
        write_file(run, "results", "no directory\n");
    } else if (!strcmp(how, "link")) {
        rename(dir, other);
        if (symlink(other, dir) < 0)
            exit(10);
    } else if (!strcmp(how, "stray")) {
        write_file(run, "manifest.json", "{}\n");
        write_file(run, "odd name", "x\n");
        write_file(run, "samples", "no directory\n");
    } else if (!strcmp(how, "definition")) {
        write_file(run, "definition.json", "{}\n");
    } else if (!strcmp(how, "log")) {
        snprintf(other, sizeof other, "%s/run.log", run);
        unlink(other);
        mkdir(other, 0755);
    } else if (!strcmp(how, "log-gone")) {
        snprintf(other, sizeof other, "%s/run.log", run);
        unlink(other);
    } else if (!strcmp(how, "log-cut")) {
        snprintf(other, sizeof other, "%s/run.log", run);
        if (truncate(other, 0) < 0)
            exit(10);
    } else if (!strncmp(how, "build-", 6)) {
        break_build_log(run, how + 6);
    } else if (!strcmp(how, "closed")) {
        chmod(run, 0);
    } else if (!strcmp(how, "run")) {
        snprintf(other, sizeof other, "%s.moved", run);
        rename(run, other);
    }
}

static int misbehave_late(const char *how, const char *argument)
{
    if (!strcmp(how, "segv"))
        raise(SIGSEGV);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "exit3"))
        return 3;
    if (!strcmp(how, "edit-source"))
        write_file(argument, "workload.c", "/* edited while the load ran */\n");
    if (!strcmp(how, "sleep") || !strcmp(how, "orphan-stays") || !strcmp(how, "orphan-bare"))
        pause_ms(60000);
    return 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "ok";
    const char *argument = argc > 2 ? argv[2] : "";

    printf("behaviour %s\n", how);
    fflush(stdout);
    if (!strcmp(how, "environment")) {
        extern char **environ;

        for (char **p = environ; *p; p++)
            printf("%s\n", *p);
        fflush(stdout);
    }
    if (!strcmp(how, "dumps"))
        signal(SIGUSR2, on_dump);
    mark("begin");
    if (!strncmp(how, "orphan", 6) && fork() == 0) {
        setsid();
        if (fork() == 0) {
            char number[32];

            snprintf(number, sizeof number, "%d\n", (int) getpid());
            if (*argument)
                write_file(argument, "../orphan.pid", number);
            if (!strcmp(how, "orphan-bare"))
                execle("/bin/sleep", "sleep", "60", (char *) NULL, (char *[]){NULL});
            pause_ms(60000);
        }
        _exit(0);
    }
    pause_ms(60);
    if (strcmp(how, "no-markers") != 0)
        mark("window_start");
    pause_ms(600);
    bool stops = !strncmp(how, "stop-runner", 11);

    if (stops)
        kill(getppid(), SIGSTOP);
    if (stops)
        pause_ms(!strcmp(how, "stop-runner-long") ? 1500 : 250);
    if (strcmp(how, "no-markers") != 0)
        mark("window_end");
    if (stops)
        kill(getppid(), SIGCONT);
    if (!strcmp(how, "bad-json"))
        write_report("{\"scenario\": NaN}\n");
    else if (!strcmp(how, "array"))
        write_report("[1]\n");
    else if (!strcmp(how, "own-resources"))
        write_report("{\"scenario\": \"s\", \"load\": {\"rate\": 7}, \"resources\": {}}\n");
    else if (!strcmp(how, "wrong") || !strcmp(how, "stop-runner-wrong"))
        write_report("{\"scenario\": \"s\", \"load\": {\"rate\": 8}, \"results\": {\"n\": 3, "
                     "\"errors\": {\"x\": 0}}}\n");
    else if (!strcmp(how, "other-name"))
        write_report(GOOD), write_file(getenv("CLEANRUN_RESULTS"), "odd name", "x");
    else if (!strncmp(how, "results-", 8))
        write_results(how + 8);
    else if (strstr(how, "fingerprint"))
        write_source(!strcmp(how, "fingerprint"));
    else if (!strncmp(how, "places-", 7))
        break_places(how + 7);
    else if (strcmp(how, "no-report") != 0)
        write_report(GOOD);
    return misbehave_late(how, argument);
}
