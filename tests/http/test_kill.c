/*
 * The server is killed with SIGKILL at moments spread evenly over the measured length of an upload,
 * and once more on purpose at each stage of it. Nothing that was acknowledged may be lost, nothing
 * that was not verified may be visible, and the same upload sent again must succeed.
 */
#include "tests/http/live.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json_in.h"
#include "tests/http/uploader.h"

#define SPREAD 60 /* kills spread over the upload */
#define AIMED 5   /* kills per aimed stage */
#define TRIES 60  /* kills until one falls into a short stage */
#define PADDING ((size_t) 6 << 20)
#define LARGE ((size_t) 18 << 20) /* hashed and written by threads of their own */

enum stage {
    RECEIVING,
    SYNCING,
    RENAMED,
    COMMITTING,
    REPLYING,
    JUDGING,
    RECORDING,
    ANSWERING,
    FINISHED,
    STAGES
};

static const char *const stage_names[STAGES] = {
    "receiving",              /* bytes of the archive still come */
    "fsync",                  /* all bytes came, the file is still in the spool */
    "rename",                 /* the object has its name, the transaction has not begun */
    "transaction",            /* the transaction of the archive is being written */
    "reply",                  /* the archive is stored, the client has no answer */
    "verify",                 /* the statement is being judged */
    "transaction of the run", /* the transaction of the run is being written */
    "reply of the run",       /* the run is stored, the client has no answer */
    "after",                  /* everything was acknowledged */
};

struct fixture {
    struct live live;
    struct uploads *uploads;
    size_t counts[STAGES];
    size_t next;     /* package */
    size_t padding;  /* of the packages */
    uint64_t length; /* of an undisturbed upload, ns */
};

/* One upload in a thread of its own. */
struct upload {
    struct raw connection;
    const struct uploads *uploads;
    const struct package *package;
    atomic_bool sent; /* every byte of the archive is sent */
    atomic_bool put_acknowledged, post_sent, post_acknowledged;
    int64_t post_ns; /* coarse wall clock, as file times are, before the statement was sent */
    char *answer;    /* of the POST */
};

static int64_t coarse_ns(void)
{
    struct timespec t = {.tv_sec = 0};

    (void) clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *upload_run(void *cls)
{
    struct upload *u = cls;
    struct raw_response a;

    if (upload_send_archive(&u->connection, u->uploads, u->package))
        atomic_store(&u->sent, true);
    raw_read(&u->connection, false, 20000, &a);
    if (a.status == 200 || a.status == 201)
        atomic_store(&u->put_acknowledged, true);
    raw_response_fini(&a);
    if (atomic_load(&u->put_acknowledged)) {
        u->post_ns = coarse_ns();
        if (upload_send_statement(&u->connection, u->uploads, u->package))
            atomic_store(&u->post_sent, true);
        raw_read(&u->connection, false, 20000, &a);
        if ((a.status == 200 || a.status == 201) && a.whole) {
            u->answer = a.body;
            a.body = NULL;
            atomic_store(&u->post_acknowledged, true);
        }
        raw_response_fini(&a);
    }
    raw_close(&u->connection);
    return NULL;
}

#define BLOB_ROWS "SELECT count(*) FROM blobs WHERE sha256 = ?"
#define RUN_ROWS "SELECT count(*) FROM runs WHERE run = ?"

/* The rows of a package in a database, which is only read. */
static int count_rows(const char *database, const char *sql, const struct package *p)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    int n = -1;

    if (sqlite3_open_v2(database, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(db, 5000) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK) {
        if (strcmp(sql, BLOB_ROWS) == 0)
            (void) sqlite3_bind_blob(s, 1, p->digest.bytes, DIGEST_SIZE, SQLITE_STATIC);
        else
            (void) sqlite3_bind_text(s, 1, p->run, -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_ROW)
            n = sqlite3_column_int(s, 0);
    }
    (void) sqlite3_finalize(s);
    (void) sqlite3_close(db);
    assert_true(n >= 0);
    return n;
}

/* Of the running server. */
static int count_live(const struct live *l, const char *sql, const struct package *p)
{
    char *path = test_join(l->data, "cleanrun.db");
    int n = count_rows(path, sql, p);

    free(path);
    return n;
}

/* What the killed server left, on a copy: its own recovery must not be done for it. */
static char *copy_database(const struct live *l)
{
    static const char *const names[] = {"cleanrun.db", "cleanrun.db-wal"};
    char *dir = test_join(l->dir, "copy");
    size_t i = 0;

    test_write_text(l->dir, "copy/cleanrun.db-shm", "");
    for (i = 0; i < ARRAY_LEN(names); i++) {
        char *path = test_join(l->data, names[i]);
        size_t len = 0;
        char *bytes = test_read_path(path, &len);
        char *name = test_join("copy", names[i]);

        test_write(l->dir, name, bytes, len);
        free(name);
        free(bytes);
        free(path);
    }
    {
        char *path = test_join(dir, "cleanrun.db");
        char *shm = test_join(dir, "cleanrun.db-shm");

        (void) unlink(shm);
        free(shm);
        free(dir);
        return path;
    }
}

static char *object_path(const struct live *l, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];
    char *path = NULL;

    digest_hex(d, hex);
    assert_true(asprintf(&path, "%s/objects/%.2s/%s", l->data, hex, hex + 2) > 0);
    return path;
}

static int64_t changed_ns(const char *path)
{
    struct stat st;

    return stat(path, &st) < 0 ? -1 : (int64_t) st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
}

/* Where the kill fell, from what lies on the disk and what the client had sent and heard. */
static enum stage find_stage(const struct fixture *f, const struct upload *u)
{
    const struct live *l = &f->live;
    char *object = object_path(l, &u->package->digest);
    char *wal = test_join(l->data, "cleanrun.db-wal");
    int64_t object_ns = changed_ns(object);
    int64_t wal_ns = changed_ns(wal);
    enum stage stage = RECEIVING;
    char *copy = copy_database(l);

    free(object);
    free(wal);
    if (atomic_load(&u->post_acknowledged))
        stage = FINISHED;
    else if (count_rows(copy, RUN_ROWS, u->package) > 0)
        stage = ANSWERING;
    else if (atomic_load(&u->post_sent))
        stage = wal_ns > u->post_ns ? RECORDING : JUDGING;
    else if (count_rows(copy, BLOB_ROWS, u->package) > 0)
        stage = REPLYING;
    else if (object_ns >= 0)
        stage = wal_ns >= object_ns ? COMMITTING : RENAMED; /* times are as coarse as a tick */
    else if (atomic_load(&u->sent))
        stage = SYNCING;
    free(copy);
    return stage;
}

static void start(struct fixture *f)
{
    live_start(&f->live, NULL);
}

static int status_of(struct live *l, const char *target, struct raw_response *a)
{
    raw_ask(l->port, "GET", target, NULL, NULL, 0, a);
    return a->status;
}

/* Every object has the bytes of its name. */
static void check_objects(const struct live *l)
{
    char *dir = test_join(l->data, "objects");
    char **folders = NULL;
    size_t n = test_list(dir, "", &folders);
    size_t i = 0;

    for (i = 0; i < n; i++) {
        char *folder = test_join(dir, folders[i]);
        char **names = NULL;
        size_t m = test_list(folder, "", &names);
        size_t k = 0;

        for (k = 0; k < m; k++) {
            char *path = test_join(folder, names[k]);
            struct digest d = {.bytes = {0}};
            char hex[DIGEST_HEX_SIZE];
            uint64_t size = 0;
            struct err e = ERR_INIT;
            int fd = open(path, O_RDONLY | O_CLOEXEC);

            assert_true(fd >= 0);
            assert_int_equal(digest_of_fd(fd, &d, &size, &e), 0);
            (void) close(fd);
            digest_hex(&d, hex);
            if (strncmp(hex, folders[i], 2) != 0 || strcmp(hex + 2, names[k]) != 0)
                fail_msg("object %s%s has digest %s", folders[i], names[k], hex);
            free(path);
        }
        test_names_free(names);
        free(folder);
    }
    test_names_free(folders);
    free(dir);
}

/* What the gate lists is complete: each run answers with its verdict. */
static void check_listed(struct fixture *f)
{
    AUTO_JSON cJSON *gate = NULL;
    const cJSON *run = NULL;
    struct raw_response a;
    struct err e = ERR_INIT;

    if (status_of(&f->live, "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE ".json", &a) == 404) {
        raw_response_fini(&a);
        return;
    }
    assert_int_equal(a.status, 200);
    assert_int_equal(json_parse(a.body, a.body_len, NULL, &gate, &e), 0);
    raw_response_fini(&a);
    cJSON_ArrayForEach(run, json_get(gate, "runs")) {
        const char *id = cJSON_GetStringValue(json_get(run, "run"));
        char *target = NULL;

        assert_true(asprintf(&target, "/api/v1/projects/" UPLOAD_PROJECT "/runs/%s/verdict", id) >
                    0);
        assert_int_equal(status_of(&f->live, target, &a), 200);
        raw_response_fini(&a);
        free(target);
    }
}

/* After the restart: what the client heard is true, and what it did not hear is absent or whole. */
static void check_promises(struct fixture *f, const struct upload *u)
{
    struct live *l = &f->live;
    struct raw_response a;
    char *target = NULL;

    assert_int_equal(live_count(l, "spool"), 0);
    check_objects(l);
    if (atomic_load(&u->put_acknowledged))
        assert_int_equal(count_live(l, BLOB_ROWS, u->package), 1);
    assert_true(asprintf(&target, "/api/v1/projects/" UPLOAD_PROJECT "/runs/%s/verdict",
                         u->package->run) > 0);
    (void) status_of(l, target, &a);
    if (atomic_load(&u->post_acknowledged)) {
        assert_int_equal(a.status, 200);
        assert_string_equal(a.body, u->answer);
    } else {
        assert_true(a.status == 404 || a.status == 200);
    }
    raw_response_fini(&a);
    free(target);
    check_listed(f);
}

/* The client tries again. */
static void check_repeat(struct fixture *f, const struct upload *u)
{
    struct upload again = {.uploads = u->uploads, .package = u->package};

    raw_open(&again.connection, f->live.port);
    (void) upload_run(&again);
    assert_true(atomic_load(&again.put_acknowledged));
    assert_true(atomic_load(&again.post_acknowledged));
    if (u->answer)
        assert_string_equal(again.answer, u->answer);
    free(again.answer);
}

static struct upload *upload_begin(struct fixture *f, pthread_t *thread)
{
    struct upload *u = calloc(1, sizeof *u);

    assert_non_null(u);
    raw_open(&u->connection, f->live.port);
    u->uploads = f->uploads;
    u->package = uploads_package(f->uploads, f->next++, f->padding);
    assert_int_equal(pthread_create(thread, NULL, upload_run, u), 0);
    return u;
}

static void after_kill(struct fixture *f, struct upload *u, pthread_t thread)
{
    enum stage stage = STAGES;

    (void) pthread_join(thread, NULL);
    stage = find_stage(f, u);
    f->counts[stage]++;
    start(f);
    check_promises(f, u);
    check_repeat(f, u);
    free(u->answer);
    free(u);
}

static void measure(struct fixture *f)
{
    int i = 0;

    for (i = 0; i < 3; i++) {
        uint64_t began = 0;
        uint64_t took = 0;
        pthread_t thread;
        struct upload *u = NULL;

        f->next++; /* packages are made before the clock starts */
        (void) uploads_package(f->uploads, f->next, f->padding);
        began = clock_monotonic_ns();
        u = upload_begin(f, &thread);
        (void) pthread_join(thread, NULL);
        assert_true(atomic_load(&u->post_acknowledged));
        took = clock_monotonic_ns() - began;
        if (f->length == 0 || took < f->length)
            f->length = took;
        free(u->answer);
        free(u);
    }
}

static void kill_spread(struct fixture *f, int i)
{
    uint64_t delay_ns = f->length * (uint64_t) (2 * i + 1) / (2 * SPREAD);
    const struct timespec delay = {.tv_sec = (time_t) (delay_ns / 1000000000),
                                   .tv_nsec = (long) (delay_ns % 1000000000)};
    pthread_t thread;
    struct upload *u = NULL;

    (void) uploads_package(f->uploads, f->next, f->padding);
    u = upload_begin(f, &thread);
    (void) nanosleep(&delay, NULL);
    live_kill(&f->live);
    after_kill(f, u, thread);
}

/* Waits until an event names a file of the watched folder ("" for any); false after five seconds
 * without events. */
static bool wait_event(int fd, const char *name)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char events[4096] __attribute__((aligned(8)));

    while (poll(&p, 1, 5000) == 1) {
        ssize_t n = read(fd, events, sizeof events);
        ssize_t at = 0;

        while (at < n) {
            struct inotify_event event;

            memcpy(&event, events + at, sizeof event);
            if (name[0] == '\0' || (event.len > 0 && strcmp(events + at + sizeof event, name) == 0))
                return true;
            at += (ssize_t) (sizeof event + event.len);
        }
    }
    return false;
}

static int watch(const char *path, uint32_t mask)
{
    int fd = inotify_init1(IN_CLOEXEC);

    assert_true(fd >= 0);
    assert_true(inotify_add_watch(fd, path, mask) >= 0);
    return fd;
}

/* Waits until the upload is in the stage, seen from outside, and kills at once. */
static void kill_aimed(struct fixture *f, enum stage wanted)
{
    char *spool = test_join(f->live.data, "spool");
    pthread_t thread;
    struct upload *u = NULL;
    int made = -1;
    int moved = -1;
    int written = -1;

    (void) uploads_package(f->uploads, f->next, f->padding);
    made = watch(spool, IN_CREATE);
    moved = watch(spool, IN_MOVED_FROM);
    written = watch(f->live.data, IN_MODIFY);
    u = upload_begin(f, &thread);
    if (wanted == RECEIVING) {
        (void) wait_event(made, "");
    } else if (wanted == SYNCING) {
        while (!atomic_load(&u->sent))
            usleep(100);
    } else {
        (void) wait_event(moved, "");
    }
    if (wanted == COMMITTING) {
        (void) wait_event(written, "cleanrun.db-wal");
    } else if (wanted == REPLYING) {
        while (count_live(&f->live, BLOB_ROWS, u->package) == 0)
            continue;
    }
    live_kill(&f->live);
    after_kill(f, u, thread);
    (void) close(made);
    (void) close(moved);
    (void) close(written);
    free(spool);
}

static void killed_at_any_moment_nothing_is_lost_or_half_visible(void **state)
{
    static const enum stage aimed[] = {RECEIVING, SYNCING, RENAMED, COMMITTING, REPLYING};
    static const char *const fsck[] = {"fsck", NULL};
    struct fixture f = {.padding = PADDING};
    size_t total = 0;
    size_t i = 0;
    int k = 0;

    (void) state;
    live_init(&f.live);
    f.uploads = uploads_new(&f.live);
    start(&f);
    measure(&f);
    for (k = 0; k < SPREAD; k++)
        kill_spread(&f, k);
    for (i = 0; i < ARRAY_LEN(aimed); i++) {
        for (k = 0; k < AIMED || (f.counts[aimed[i]] == 0 && k < TRIES); k++)
            kill_aimed(&f, aimed[i]);
    }
    f.padding = LARGE;
    for (k = 0; k < AIMED; k++)
        kill_aimed(&f, k % 2 == 0 ? RECEIVING : SYNCING);
    print_message("an upload takes %.1f ms; kills by stage:\n", (double) f.length / 1e6);
    for (i = 0; i < STAGES; i++) {
        print_message("  %-24s %zu\n", stage_names[i], f.counts[i]);
        total += f.counts[i];
    }
    assert_true(total >= 50);
    for (i = RECEIVING; i <= REPLYING; i++) {
        if (f.counts[i] == 0)
            fail_msg("no kill fell into: %s", stage_names[i]);
    }
    assert_true(f.counts[JUDGING] + f.counts[RECORDING] + f.counts[ANSWERING] > 0);
    assert_int_equal(live_stop(&f.live), 0);
    assert_int_equal(live_admin(&f.live, fsck, NULL), 0);
    uploads_free(f.uploads);
    live_fini(&f.live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_any_moment_nothing_is_lost_or_half_visible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
