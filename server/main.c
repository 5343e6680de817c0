/* cleanrun-server: serves one data directory, or administers it. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "audit/verdict.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "server/admin.h"
#include "server/api/api.h"
#include "server/config.h"
#include "server/healthcheck.h"
#include "server/notify.h"
#include "server/service.h"

#define TICK_MS 100
#define DESCRIPTORS 4096
#define HEAPS 4 /* malloc arenas: bounds memory that one thread freed and another cannot use */

static const char serve_usage[] =
    "  serve [--data DIR] [--listen ADDR:PORT] [--base-url URL] [--templates DIR]\n"
    "        [--threads N] [--port-file FILE] [--idle-timeout S] [--header-timeout S]\n"
    "        [--drain-timeout S]\n"
    "        answers HTTP until SIGTERM\n";
static const char healthcheck_usage[] = "  healthcheck [--listen ADDR:PORT]\n"
                                        "        exit 0 when the server is ready, 1 when not\n";
static const char version_usage[] = "  version\n";
static const char environment_usage[] =
    "\nOptions of serve may also come from the environment, a flag wins:\n"
    "CLEANRUN_SERVER_DATA, _LISTEN, _BASE_URL, _TEMPLATES, _THREADS, _IDLE_TIMEOUT,\n"
    "_HEADER_TIMEOUT and _DRAIN_TIMEOUT. CLEANRUN_LOG: debug, info (default), warn or error.\n";

static void print_help(FILE *out)
{
    (void) fprintf(out,
                   "  cleanrun-server project add owner/name\n"
                   "  cleanrun-server serve --data /var/lib/cleanrun --listen 127.0.0.1:8620\n\n"
                   "Usage: cleanrun-server COMMAND [OPTION...]\n\n%s%s%s",
                   serve_usage, healthcheck_usage, version_usage);
    admin_help(out);
    (void) fprintf(out,
                   "%s"
                   "\nExit: 0 done; 1 healthcheck: not ready; 2 usage, or it could not be done;\n"
                   "5 evidence or stored data is broken (fsck, and reviews of damaged runs).\n",
                   environment_usage);
}

/* false: no such command. */
static bool print_help_of(const char *command, const char *verb, FILE *out)
{
    static const char usage[] = "Usage: cleanrun-server COMMAND [OPTION...]\n\n";

    if (strcmp(command, "serve") == 0)
        (void) fprintf(out, "%s%s%s", usage, serve_usage, environment_usage);
    else if (strcmp(command, "healthcheck") == 0)
        (void) fprintf(out, "%s%s", usage, healthcheck_usage);
    else if (strcmp(command, "version") == 0)
        (void) fprintf(out, "%s%s", usage, version_usage);
    else
        return admin_help_of(command, verb, out);
    return true;
}

static int usage(const struct err *e)
{
    (void) fprintf(stderr, "cleanrun-server: %s\n", e->text);
    return EXIT_USAGE;
}

/* Uploads hold two descriptors each. */
static void raise_descriptors(void)
{
    struct rlimit r = {.rlim_cur = 0};

    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= DESCRIPTORS)
        return;
    r.rlim_cur = r.rlim_max < DESCRIPTORS ? r.rlim_max : DESCRIPTORS;
    if (setrlimit(RLIMIT_NOFILE, &r) < 0)
        log_event(LOG_WARN, "serve.descriptors", "text=\"%s\"", strerrordesc_np(errno));
}

/* Until a signal ends it; returns its number. */
static int run(struct service *s, const sigset_t *signals, char *const environment[])
{
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
    uint64_t watchdog_ns = notify_watchdog_ns(environment);
    uint64_t fed_ns = clock_monotonic_ns();

    for (;;) {
        int signal_number = sigtimedwait(signals, NULL, &tick);

        if (signal_number == SIGTERM || signal_number == SIGINT)
            return signal_number;
        service_tick(s);
        if (watchdog_ns > 0 && clock_monotonic_ns() - fed_ns >= watchdog_ns) {
            notify_send(environment, "WATCHDOG=1");
            fed_ns = clock_monotonic_ns();
        }
    }
}

static int serve(int argc, char *const argv[], char *const environment[])
{
    struct config config = {.data = NULL};
    struct service *s = NULL;
    sigset_t signals;
    int listen_fd = -1;
    int by = 0;
    struct err e = ERR_INIT;

    if (config_parse(argc, argv, environment, &config, &e) < 0 ||
        notify_listen_fd(environment, &listen_fd, &e) < 0)
        return usage(&e);
    /* Blocked before the first thread, so that every thread inherits it and only sigtimedwait sees
     * them. */
    (void) sigemptyset(&signals);
    (void) sigaddset(&signals, SIGTERM);
    (void) sigaddset(&signals, SIGINT);
    (void) sigaddset(&signals, SIGHUP);
    (void) sigaddset(&signals, SIGPIPE);
    (void) pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void) mallopt(M_ARENA_MAX, HEAPS); /* NOLINT(concurrency-mt-unsafe): no other thread yet */
    raise_descriptors();
    if (service_start(&config, listen_fd, &s, &e) < 0) {
        log_event(LOG_ERROR, "serve.failed", "code=%s text=\"%s\"", e.code, e.text);
        return EXIT_USAGE;
    }
    log_event(LOG_INFO, "serve.ready", "url=%s data=%s threads=%u version=" CLEANRUN_VERSION,
              service_base_url(s), config.data, config.threads);
    notify_send(environment, "READY=1");
    by = run(s, &signals, environment);
    notify_send(environment, "STOPPING=1");
    log_event(LOG_INFO, "serve.stopping", "signal=%s", by == SIGINT ? "INT" : "TERM");
    service_stop(s);
    log_event(LOG_INFO, "serve.stopped", "by=%s", by == SIGINT ? "INT" : "TERM");
    return EXIT_OK;
}

static int check_health(int argc, char *const argv[], char *const environment[])
{
    struct config config = {.data = NULL};
    struct err e = ERR_INIT;

    if (config_parse(argc, argv, environment, &config, &e) < 0)
        return usage(&e);
    if (healthcheck(config.listen, &e) < 0) {
        (void) fprintf(stderr, "cleanrun-server: %s\n", e.text);
        return 1;
    }
    return EXIT_OK;
}

/* "--help" anywhere, "help" or "-h" first. */
static bool asks_help(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || (i == 1 && strcmp(argv[i], "-h") == 0))
            return true;
    return argc > 1 && strcmp(argv[1], "help") == 0;
}

/* Few words: the whole list would push them out of sight. */
static int unknown(const char *command)
{
    static const char *const own[] = {"serve", "healthcheck", "version", "help"};
    const char *near = text_nearest(command, own, ARRAY_LEN(own));

    if (!near)
        near = admin_nearest(command);
    if (command[0] == '-')
        (void) fprintf(stderr,
                       "cleanrun-server: the command comes first, then options such as '%s' "
                       "(cleanrun-server --help lists the commands)\n",
                       command);
    else
        (void) fprintf(stderr,
                       "cleanrun-server: no command '%s'%s%s%s (cleanrun-server --help lists "
                       "them)\n",
                       command, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return EXIT_USAGE;
}

/* "COMMAND [VERB] --help" and "help COMMAND [VERB]" say that one, all others everything. */
static int help(int argc, char *argv[])
{
    const char *words[2] = {"", ""};
    size_t n = 0;

    for (int i = strcmp(argv[1], "help") == 0 ? 2 : 1;
         i < argc && n < ARRAY_LEN(words) && argv[i][0] != '-'; i++)
        words[n++] = argv[i];
    if (n == 0)
        print_help(stdout);
    else if (!print_help_of(words[0], words[1], stdout))
        return unknown(words[0]);
    return EXIT_OK;
}

/* What was not written was not said. */
static int written(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    (void) fputs("cleanrun-server: cannot write the answer\n", stderr);
    return EXIT_USAGE;
}

int main(int argc, char *argv[])
{
    const char *command = argc > 1 ? argv[1] : "";

    if (asks_help(argc, argv))
        return written(help(argc, argv));
    if (strcmp(command, "serve") == 0)
        return serve(argc - 2, argv + 2, environ);
    if (strcmp(command, "healthcheck") == 0)
        return check_health(argc - 2, argv + 2, environ);
    if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0) {
        (void) printf("cleanrun-server %s\n", CLEANRUN_VERSION); /* checked by written() */
        return written(EXIT_OK);
    }
    if (admin_knows(command))
        return admin_main(argc - 1, argv + 1, environ);
    if (argc > 1)
        return unknown(command);
    print_help(stderr);
    return EXIT_USAGE;
}
