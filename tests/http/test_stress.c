/*
 * Everything at once: good, broken and aborted uploads, pages, ranges, half requests and floods of
 * connections from several processes, while administration works on the same data and the server is
 * told to reload, stopped and started again. It must neither die nor leak descriptors, end with 0
 * when told to, and what is stored afterwards must be whole. CLEANRUN_STRESS_SECONDS makes it last.
 */
#include "tests/http/live.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "tests/http/uploader.h"

#define CLIENTS 12
#define PACKAGES 24
#define ANSWER_MS 8000
#define SECONDS 4

struct stress {
    struct live live;
    struct uploads *uploads;
    uint64_t until_ns;
    atomic_size_t *answers; /* shared with the clients: by class of status */
};

/* Of a client: its own process, so that its descriptors are its own. */
struct client {
    const struct stress *s;
    uint64_t seed;
    size_t asked, answered, broken; /* broken: an answer that no server may give */
};

static int connect_to(const struct stress *s)
{
    AUTO_FREE char *path = test_join(s->live.dir, "port");
    struct sockaddr_in address = {.sin_family = AF_INET};
    FILE *f = fopen(path, "re");
    char text[16] = "";
    uint64_t port = 0;
    int fd = -1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!f)
        return -1; /* between two servers */
    if (fgets(text, sizeof text, f) && num_parse_u64(text, strcspn(text, "\n"), 65535, &port))
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void) fclose(f); /* was only read */
    address.sin_port = htons((uint16_t) port);
    if (fd >= 0 && connect(fd, (const struct sockaddr *) &address, sizeof address) < 0) {
        (void) close(fd); /* nothing was sent */
        fd = -1;
    }
    return fd;
}

static bool send_some(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t) n;
    }
    return true;
}

/* Reads until the end of the answer's connection; the status, 0 for none. */
static int read_answer(int fd, bool to_the_end)
{
    char bytes[8192];
    char head[13] = "";
    size_t got = 0;
    uint64_t status = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (poll(&p, 1, ANSWER_MS) > 0) {
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);

        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n && got < sizeof head - 1; i++)
            head[got++] = bytes[i];
        if (!to_the_end && got == sizeof head - 1)
            break;
    }
    if (got < sizeof head - 1)
        return 0;
    return strncmp(head, "HTTP/1.1 ", 9) == 0 && num_parse_u64(head + 9, 3, 599, &status)
               ? (int) status
               : -1;
}

/* One request; part: how much of the body is sent before the client goes away (len: all of it). */
static void ask(struct client *c, const char *method, const char *target, const char *headers,
                const char *body, size_t len, size_t part)
{
    AUTO_FREE char *length = NULL;
    AUTO_FREE char *head = NULL;
    int fd = connect_to(c->s);
    int status = 0;

    if (fd < 0)
        return;
    c->asked++;
    if (asprintf(&length, "Content-Length: %zu\r\n", len) < 0 ||
        asprintf(&head, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s\r\n",
                 method, target, headers, body ? length : "") < 0)
        abort();
    if (send_some(fd, head, strlen(head)) && send_some(fd, body ? body : "", part) && part == len)
        status = read_answer(fd, test_random_below(&c->seed, 8) != 0);
    if (status > 0) {
        c->answered++;
        atomic_fetch_add(&c->s->answers[status / 100 % 6], 1);
    }
    if (status < 0 || status == 500)
        c->broken++;
    (void) close(fd); /* a client may leave at any time */
}

static const struct package *any_package(struct client *c)
{
    return uploads_package(c->s->uploads, test_random_below(&c->seed, PACKAGES), 0);
}

static void upload(struct client *c)
{
    const struct package *p = any_package(c);
    const char *auth = uploads_authorization(c->s->uploads);
    char target[256];
    char headers[512];
    AUTO_FREE char *bad = malloc(p->archive_len);
    uint64_t kind = test_random_below(&c->seed, 8);
    size_t part = kind == 0 ? test_random_below(&c->seed, p->archive_len) : p->archive_len;
    const char *bytes = p->archive;

    if (!bad)
        return;
    if (kind == 1) { /* other bytes than announced */
        memcpy(bad, p->archive, p->archive_len);
        bad[test_random_below(&c->seed, p->archive_len)] ^= 1;
        bytes = bad;
    }
    (void) snprintf(target, sizeof target, "/api/v1/projects/" UPLOAD_PROJECT "/blobs/sha256:%s",
                    p->hex);
    ask(c, "PUT", target, auth, bytes, p->archive_len, part);
    (void) snprintf(headers, sizeof headers, "%sContent-Type: application/vnd.dsse+json\r\n", auth);
    part = kind == 2 ? test_random_below(&c->seed, p->envelope_len) : p->envelope_len;
    if (kind == 3)
        ask(c, "POST", "/api/v1/projects/" UPLOAD_PROJECT "/gates/" UPLOAD_GATE "/runs", headers,
            "{\"payloadType\":1}", 17, 17);
    ask(c, "POST", "/api/v1/projects/" UPLOAD_PROJECT "/gates/" UPLOAD_GATE "/runs", headers,
        p->envelope, p->envelope_len, part);
}

static void read_page(struct client *c)
{
    static const char *const pages[] = {
        "/",
        "/index.json",
        "/p/" UPLOAD_PROJECT,
        "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE,
        "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE ".json",
        "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE "/badge.svg",
        "/p/" UPLOAD_PROJECT "/commit/" PACKAGE_COMMIT,
        "/api/v1/projects/" UPLOAD_PROJECT "/commits/" PACKAGE_COMMIT "/check",
        "/metrics",
        "/readyz",
        "/help",
        "/api/v1/openapi.json",
        "/nothing/here",
        "/%zz",
    };
    static const char *const of_run[] = {
        "",           ".json",     ".txt",
        "/verdict",   "/bundle",   "/evidence.tar",
        "/f/run.log", "/f/../etc", "/vs/b-20241129T141502Z-00000000"};
    char target[256];
    char headers[128] = "";
    const char *const *what = of_run + test_random_below(&c->seed, ARRAY_LEN(of_run));

    if (test_random_below(&c->seed, 3) == 0)
        (void) snprintf(headers, sizeof headers, "Range: bytes=%zu-%zu\r\n",
                        test_random_below(&c->seed, 9000), test_random_below(&c->seed, 20000));
    if (test_random_below(&c->seed, 2)) {
        ask(c, test_random_below(&c->seed, 5) ? "GET" : "HEAD",
            pages[test_random_below(&c->seed, ARRAY_LEN(pages))], headers, NULL, 0, 0);
        return;
    }
    if (strcmp(*what, "/verdict") == 0 || strcmp(*what, "/bundle") == 0)
        (void) snprintf(target, sizeof target, "/api/v1/projects/" UPLOAD_PROJECT "/runs/%s%s",
                        any_package(c)->run, *what);
    else
        (void) snprintf(target, sizeof target, "/r/%s%s", any_package(c)->run, *what);
    ask(c, "GET", target, headers, NULL, 0, 0);
}

/* Connections that say nothing, or half of a request, and then go away. */
static void flood(struct client *c)
{
    static const char half[] = "GET /p/" UPLOAD_PROJECT " HTTP/1.1\r\nHost: local";
    int fds[16];
    size_t n = 0;

    for (n = 0; n < ARRAY_LEN(fds); n++) {
        fds[n] = connect_to(c->s);
        if (fds[n] < 0)
            break;
        if (n % 2)
            (void) send_some(fds[n], half, test_random_below(&c->seed, sizeof half));
    }
    usleep(20000);
    while (n > 0)
        (void) close(fds[--n]); /* unfinished on purpose */
}

static int client_run(const struct stress *s, uint64_t seed)
{
    struct client c = {.s = s, .seed = seed};

    while (clock_monotonic_ns() < s->until_ns) {
        uint64_t what = test_random_below(&c.seed, 20);

        if (what == 0)
            flood(&c);
        else if (what < 8)
            upload(&c);
        else
            read_page(&c);
    }
    if (c.broken > 0 || c.answered == 0)
        (void) fprintf(stderr, "client: %zu asked, %zu answered, %zu broken\n", c.asked, c.answered,
                       c.broken);
    return c.broken > 0 || c.answered == 0;
}

static size_t open_descriptors(const struct live *l)
{
    char path[64];
    DIR *d = NULL;
    size_t n = 0;

    (void) snprintf(path, sizeof path, "/proc/%d/fd", (int) l->pid);
    d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    (void) closedir(d); /* was only read */
    return n;
}

/* What an administrator does meanwhile. */
static void administer(struct stress *s, size_t round)
{
    char name[32];
    const char *const commands[][6] = {
        {"fsck", NULL},
        {"gc", NULL},
        {"token", "add", name, "--scope", "read", NULL},
        {"project", "list", NULL},
        {"runner", "list", NULL},
    };
    size_t which = round % ARRAY_LEN(commands);

    (void) snprintf(name, sizeof name, "t%zu", round);
    assert_int_equal(live_admin(&s->live, commands[which], NULL), 0);
    assert_int_equal(kill(s->live.pid, SIGHUP), 0); /* means nothing, and ends nothing */
}

static void start_clients(struct stress *s, pid_t pids[CLIENTS])
{
    for (size_t i = 0; i < CLIENTS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves no client */
            _exit(client_run(s, i + 1));
        }
    }
}

static void settle(struct stress *s, size_t before)
{
    for (int i = 0; i < 200 && open_descriptors(&s->live) > before; i++)
        usleep(100000);
    if (open_descriptors(&s->live) > before)
        fail_msg("%zu descriptors before, %zu after", before, open_descriptors(&s->live));
}

static void warm(struct stress *s)
{
    struct raw_response a;

    for (size_t i = 0; i < PACKAGES; i++)
        (void) uploads_package(s->uploads, i, i % 4 == 0 ? 200000 : 0);
    upload_archive(&s->live, s->uploads, UPLOAD_PROJECT, uploads_package(s->uploads, 0, 0), &a);
    assert_int_equal(a.status, 201);
    raw_response_fini(&a);
    upload_statement(&s->live, s->uploads, UPLOAD_PROJECT, UPLOAD_GATE,
                     uploads_package(s->uploads, 0, 0), &a);
    assert_int_equal(a.status, 201);
    raw_response_fini(&a);
}

static void nothing_breaks_when_all_happens_at_once(void **state)
{
    struct stress s = {.uploads = NULL};
    const char *seconds = getenv("CLEANRUN_STRESS_SECONDS"); /* NOLINT(concurrency-mt-unsafe) */
    const char *const fsck[] = {"fsck", NULL};
    uint64_t lasts = SECONDS;
    pid_t pids[CLIENTS];
    size_t before = 0;
    char *log = NULL;
    int status = 0;

    (void) state;
    s.answers = mmap(NULL, 6 * sizeof *s.answers, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s.answers != MAP_FAILED);
    if (seconds && !num_parse_u64(seconds, strlen(seconds), 86400, &lasts))
        fail_msg("CLEANRUN_STRESS_SECONDS is '%s'", seconds);
    live_init(&s.live);
    live_start(&s.live, NULL);
    s.uploads = uploads_new(&s.live);
    warm(&s);
    before = open_descriptors(&s.live) + 4; /* an object, a reader's files */
    s.until_ns = clock_monotonic_ns() + lasts * UINT64_C(1000000000);
    start_clients(&s, pids);
    for (size_t round = 0; clock_monotonic_ns() < s.until_ns; round++) {
        administer(&s, round);
        if (round % 10 == 4) {
            assert_int_equal(live_stop(&s.live), 0);
            live_start(&s.live, NULL);
        }
        usleep(100000);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    print_message("answers: %zu good, %zu no, %zu later\n", atomic_load(&s.answers[2]),
                  atomic_load(&s.answers[4]), atomic_load(&s.answers[5]));
    assert_true(atomic_load(&s.answers[2]) > 50 && atomic_load(&s.answers[4]) > 10);
    settle(&s, before);
    assert_int_equal(live_admin(&s.live, fsck, NULL), 0);
    log = live_log(&s.live);
    assert_int_equal(live_stop(&s.live), 0);
    if (strstr(log, "Sanitizer") || strstr(log, "runtime error"))
        fail_msg("%s", log);
    free(log);
    uploads_free(s.uploads);
    live_fini(&s.live);
    (void) munmap(s.answers, 6 * sizeof *s.answers); /* nobody uses it */
}

/* Shorter than the time for which the body of a client that went away is awaited while serving. */
static const char *const end_soon[] = {"--drain-timeout", "4", NULL};

static void stops_without_a_cut(struct live *l)
{
    AUTO_FREE char *log = NULL;

    assert_int_equal(live_stop(l), 0);
    log = live_log(l);
    if (strstr(log, "service.cut"))
        fail_msg("%s", log);
}

/* An end in order is not put off by who says nothing or only half of something. */
static void silent_connections_do_not_delay_the_end(void **state)
{
    static const char *const said[] = {"", "GET /", "GET / HTTP/1.1\r\nHost: local",
                                       "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"};
    struct raw connections[ARRAY_LEN(said)];
    struct live live;

    (void) state;
    live_init(&live);
    live_start(&live, end_soon);
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        raw_open(&connections[i], live.port);
        assert_true(raw_puts(&connections[i], said[i]));
    }
    usleep(300000); /* all of it has arrived */
    assert_int_equal(kill(live.pid, SIGHUP), 0);
    usleep(100000);
    stops_without_a_cut(&live);
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        raw_close(&connections[i]);
    live_fini(&live);
}

/* Nor by a client that went away in the middle of its body. */
static void aborted_uploads_do_not_delay_the_end(void **state)
{
    struct stress s = {.uploads = NULL};
    AUTO_FREE char *head = NULL;

    (void) state;
    live_init(&s.live);
    live_start(&s.live, end_soon);
    s.uploads = uploads_new(&s.live);
    assert_true(asprintf(&head,
                         "POST /api/v1/projects/" UPLOAD_PROJECT "/gates/" UPLOAD_GATE
                         "/runs HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: "
                         "application/vnd.dsse+json\r\nContent-Length: 1000\r\n\r\n{\"half\"",
                         uploads_authorization(s.uploads)) > 0);
    for (size_t i = 0; i < 50; i++) {
        struct raw r;

        raw_open(&r, s.live.port);
        assert_true(raw_puts(&r, head));
        raw_close(&r); /* the end arrives with the bytes */
    }
    stops_without_a_cut(&s.live);
    uploads_free(s.uploads);
    live_fini(&s.live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_connections_do_not_delay_the_end),
        cmocka_unit_test(aborted_uploads_do_not_delay_the_end),
        cmocka_unit_test(nothing_breaks_when_all_happens_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
