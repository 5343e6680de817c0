/* Objects and the data directory: whole or absent, checked before use, one server at a time. */
#include "tests/server/store_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/json_in.h"
#include "server/http/auth.h"

static void object_is_at_its_name_and_read_only(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package p;
    char path[512];
    struct stat st;
    bool has = false;

    package_make(&(struct package_options){.probes = 1}, f->key, &p);
    assert_true(store_fixture_put(f, p.archive, p.archive_len));
    (void) snprintf(path, sizeof path, "%s/objects/%.2s/%s", f->data, p.hex, p.hex + 2);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0400);
    assert_int_equal(st.st_size, p.archive_len);
    assert_int_equal(store_fixture_count(f, "spool"), 0);
    MUST(store_blob_has(f->store, f->project_id, &p.digest, &has, E));
    assert_true(has);
    MUST(store_blob_has(f->store, f->project_id + 1, &p.digest, &has, E));
    assert_false(has);
    package_free(&p);
}

static void wrong_short_and_long_bodies_leave_nothing(void **state)
{
    static const char body[] = "0123456789";
    struct store_fixture *f = fixture(state);
    struct digest other = digest_of("x", 1);
    struct digest right = digest_of(body, 10);
    struct spool *sp = NULL;
    struct err e = ERR_INIT;
    bool is_new = false;
    bool has = true;

    MUST(spool_open(f->store, f->project_id, &other, 10, &sp, E));
    MUST(spool_write(sp, body, 10, E));
    assert_int_equal(spool_commit(sp, &is_new, &e), -1);
    assert_int_equal(e.kind, ERR_TRUST);
    spool_free(sp);
    MUST(spool_open(f->store, f->project_id, &right, 10, &sp, E));
    MUST(spool_write(sp, body, 9, E));
    assert_int_equal(spool_commit(sp, &is_new, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    spool_free(sp);
    MUST(spool_open(f->store, f->project_id, &right, 10, &sp, E));
    MUST(spool_write(sp, body, 10, E));
    assert_int_equal(spool_write(sp, "x", 1, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    spool_free(sp);
    MUST(spool_open(f->store, f->project_id, &right, 10, &sp, E));
    MUST(spool_write(sp, body, 5, E));
    spool_free(sp); /* the client went away */
    assert_int_equal(spool_open(f->store, f->project_id, &right, UINT64_MAX, &sp, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(store_fixture_count(f, "spool"), 0);
    assert_int_equal(store_fixture_count(f, "objects"), 0);
    MUST(store_blob_has(f->store, f->project_id, &right, &has, E));
    assert_false(has);
}

static void flipped_byte_is_seen_at_the_next_read(void **state)
{
    struct store_fixture *f = fixture(state);
    struct blob_stamp stamp;
    struct package p;
    uint64_t size = 0;
    struct err e = ERR_INIT;
    int fd = -1;

    package_make(&(struct package_options){.probes = 1}, f->key, &p);
    (void) store_fixture_put(f, p.archive, p.archive_len);
    MUST(blobs_open(store_blobs(f->store), &p.digest, &fd, &size, &stamp, E));
    (void) close(fd);
    assert_true(blobs_untouched(store_blobs(f->store), &p.digest, &stamp));
    store_fixture_flip(f, p.hex, p.archive_len / 2);
    assert_false(blobs_untouched(store_blobs(f->store), &p.digest, &stamp));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(blobs_open(store_blobs(f->store), &p.digest, &fd, &size, NULL, &e), -1);
        assert_int_equal(e.kind, ERR_TRUST);
    }
    store_fixture_reopen(f);
    assert_int_equal(blobs_open(store_blobs(f->store), &p.digest, &fd, &size, NULL, &e), -1);
    /* Sending it again heals it. */
    assert_false(store_fixture_put(f, p.archive, p.archive_len));
    MUST(blobs_open(store_blobs(f->store), &p.digest, &fd, &size, NULL, E));
    assert_int_equal(size, p.archive_len);
    (void) close(fd);
    package_free(&p);
}

static void index_is_the_same_remembered_or_computed(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_ARCHIVE_INDEX struct archive_index *a = NULL;
    AUTO_ARCHIVE_INDEX struct archive_index *b = NULL;
    struct package p;
    uint64_t size = 0;
    int fd = -1;

    package_make(&(struct package_options){.probes = 1}, f->key, &p);
    (void) store_fixture_put(f, p.archive, p.archive_len);
    MUST(blobs_open(store_blobs(f->store), &p.digest, &fd, &size, NULL, E));
    MUST(blobs_index(store_blobs(f->store), &p.digest, fd, &a, E));
    (void) close(fd);
    store_fixture_reopen(f);
    MUST(blobs_open(store_blobs(f->store), &p.digest, &fd, &size, NULL, E));
    MUST(blobs_index(store_blobs(f->store), &p.digest, fd, &b, E));
    (void) close(fd);
    assert_null(a->problem);
    assert_true(a->n > 5);
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_string_equal(a->members[i].name, b->members[i].name);
        assert_int_equal(a->members[i].offset, b->members[i].offset);
        assert_true(digest_equal(&a->members[i].digest, &b->members[i].digest));
    }
    package_free(&p);
}

static void start_removes_what_a_killed_server_left(void **state)
{
    struct store_fixture *f = fixture(state);

    test_write_text(f->data, "spool/0011", "half an archive");
    store_fixture_reopen(f);
    assert_int_equal(store_fixture_count(f, "spool"), 0);
}

static void second_server_is_refused(void **state)
{
    struct store_fixture *f = fixture(state);
    struct store *second = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(store_open(f->data, STORE_SERVE, 1, &second, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
}

static void commands_work_beside_a_server(void **state)
{
    struct store_fixture *f = fixture(state);
    struct store *admin = NULL;
    struct store_project p;
    uint64_t before = 0;
    uint64_t after = 0;

    MUST(store_generation(f->store, &before, E));
    MUST(store_open(f->data, STORE_ADMIN, 1, &admin, E));
    MUST(manage_project_add(admin, "demo/second", true, E));
    MUST(store_project_get(f->store, "demo/second", &p, E));
    assert_true(p.is_private);
    MUST(manage_project_add(f->store, "demo/third", false, E));
    MUST(store_project_get(admin, "demo/third", &p, E));
    MUST(store_generation(f->store, &after, E));
    assert_int_equal(after, before + 2);
    store_close(admin);
}

static void key_is_made_once_and_private(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_FREE char *id = strdup(public_key_id(private_key_public(store_key(f->store))));
    AUTO_FREE char *path = test_join(f->data, "server-key.pem");
    struct store *s = NULL;
    struct stat st;
    struct err e = ERR_INIT;

    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    store_fixture_reopen(f);
    assert_string_equal(public_key_id(private_key_public(store_key(f->store))), id);
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(store_open(f->data, STORE_SERVE, 1, &s, &e), -1);
    assert_int_equal(chmod(path, 0600), 0);
    store_fixture_reopen(f);
}

/* ctx: MANAGE_TOKEN_SIZE bytes, or NULL: it cannot be shown. */
static int take_token(void *ctx, const char *token, struct err *e)
{
    if (!ctx)
        return err_set(e, ERR_SYS, "test.shown", "nobody looks");
    assert_true(strlen(token) < MANAGE_TOKEN_SIZE);
    memcpy(ctx, token, strlen(token) + 1);
    return 0;
}

static void tokens_are_found_by_hash_only_while_valid(void **state)
{
    struct store_fixture *f = fixture(state);
    char text[MANAGE_TOKEN_SIZE];
    struct store_token token;
    struct digest hash;
    struct err refused = ERR_INIT;

    assert_int_equal(
        manage_token_add(f->store, "ci", AUTH_UPLOAD, PACKAGE_PROJECT, take_token, NULL, &refused),
        -1);
    assert_string_equal(refused.code, "test.shown");
    /* So the name is free. */
    MUST(manage_token_add(f->store, "ci", AUTH_UPLOAD, PACKAGE_PROJECT, take_token, text, E));
    hash = digest_of(text, strlen(text));
    MUST(store_token_find(f->store, &hash, &token, E));
    assert_true(token.found);
    assert_int_equal(token.scopes, AUTH_UPLOAD);
    assert_false(token.all_projects);
    assert_int_equal(token.project_id, f->project_id);
    assert_string_equal(token.name, "ci");
    text[10] ^= 1;
    hash = digest_of(text, strlen(text));
    MUST(store_token_find(f->store, &hash, &token, E));
    assert_false(token.found);
    text[10] ^= 1;
    hash = digest_of(text, strlen(text));
    MUST(manage_token_revoke(f->store, "ci", E));
    MUST(store_token_find(f->store, &hash, &token, E));
    assert_false(token.found);
}

/* A file system of 8 MiB that nobody else fills; needs root. */
static void full_disk_is_told_and_leaves_nothing(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_FREE char *mount_point = test_join(f->dir, "small");
    AUTO_FREE char *data = test_join(mount_point, "data");
    AUTO_FREE char *bytes = calloc(1, 1 << 20);
    struct store *s = NULL;
    struct store_project p;
    struct spool *sp = NULL;
    struct digest digest = digest_of("x", 1);
    struct err e = ERR_INIT;
    int fd = -1;

    assert_non_null(bytes);
    assert_int_equal(mkdir(mount_point, 0700), 0);
    if (mount("tmpfs", mount_point, "tmpfs", 0, "size=8m") < 0) {
        print_message("SKIPPED mount: needs root\n");
        skip();
    }
    MUST(store_open(data, STORE_SERVE, 1, &s, E));
    MUST(manage_project_add(s, "a/b", false, E));
    MUST(store_project_get(s, "a/b", &p, E));
    assert_int_equal(spool_open(s, p.id, &digest, 100 << 20, &sp, &e), -1);
    assert_int_equal(e.kind, ERR_NOSPACE);
    /* Filled by somebody else while it is received. */
    MUST(spool_open(s, p.id, &digest, 0, &sp, E));
    spool_free(sp);
    fd = open(mount_point, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, bytes, 1 << 16) > 0)
        ;
    assert_int_equal(spool_open(s, p.id, &digest, 1 << 20, &sp, &e), -1);
    assert_int_equal(e.kind, ERR_NOSPACE);
    assert_int_equal(manage_project_add(s, "a/full", false, &e), -1);
    assert_int_equal(e.kind, ERR_NOSPACE);
    (void) close(fd);
    MUST(manage_project_add(s, "a/room", false, E));
    {
        AUTO_FREE char *spool = test_join(data, "spool");
        char **names = NULL;

        assert_int_equal(test_list(spool, "", &names), 0);
        test_names_free(names);
    }
    store_close(s);
    assert_int_equal(umount(mount_point), 0);
}

static void killed_writer_loses_nothing_acknowledged(void **state)
{
    struct store_fixture *f = fixture(state);
    struct store_project p;
    int pipe_fds[2];
    char ack = 0;
    pid_t child;
    int status = 0;
    struct err e = ERR_INIT;

    store_close(f->store);
    f->store = NULL;
    assert_int_equal(pipe(pipe_fds), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct store *s = NULL;
        struct store_write w;

        if (store_open(f->data, STORE_SERVE, 1, &s, &e) == 0 &&
            manage_project_add(s, "a/kept", false, &e) == 0 && store_write_open(s, &w, &e) == 0 &&
            db_script(w.db,
                      "INSERT INTO projects (name, private, created_us) VALUES ('a/half', 0, 1)",
                      &e) == 0)
            IGNORE(write(pipe_fds[1], "k", 1)); /* the parent sees it or fails */
        for (;;)
            (void) pause();
    }
    assert_int_equal(read(pipe_fds[0], &ack, 1), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    store_fixture_reopen(f);
    MUST(store_project_get(f->store, "a/kept", &p, E));
    assert_int_equal(store_project_get(f->store, "a/half", &p, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    (void) close(pipe_fds[0]);
    (void) close(pipe_fds[1]);
}

struct crowd {
    struct store_fixture *f;
    struct package packages[8];
    atomic_size_t next;
    atomic_size_t failures;
};

static void *upload_and_read(void *arg)
{
    struct crowd *c = arg;
    const struct store_viewer all = {.all = true};

    for (size_t i = atomic_fetch_add(&c->next, 1); i < 8; i = atomic_fetch_add(&c->next, 1)) {
        const struct package *p = &c->packages[i];
        struct spool *sp = NULL;
        struct err e = ERR_INIT;
        cJSON *home = NULL;
        bool is_new = false;

        if (spool_open(c->f->store, c->f->project_id, &p->digest, p->archive_len, &sp, &e) < 0 ||
            spool_write(sp, p->archive, p->archive_len, &e) < 0 ||
            spool_commit(sp, &is_new, &e) < 0 || !is_new)
            atomic_fetch_add(&c->failures, 1);
        spool_free(sp);
        if (doc_home(c->f->store, &all, &home, &e) < 0)
            atomic_fetch_add(&c->failures, 1);
        json_free(home);
    }
    return NULL;
}

static void uploads_readers_and_judging_do_not_disturb_each_other(void **state)
{
    struct store_fixture *f = fixture(state);
    struct crowd *c = calloc(1, sizeof *c);
    pthread_t threads[4];
    struct package first;

    assert_non_null(c);
    c->f = f;
    for (size_t i = 0; i < 8; i++)
        package_make(&(struct package_options){.probes = 1 + (double) i}, f->key, &c->packages[i]);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, upload_and_read, c), 0);
    store_fixture_run(f, NULL, "NON_COMPARABLE", &first);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&c->failures), 0);
    assert_int_equal(store_fixture_count(f, "objects"), 9);
    for (size_t i = 0; i < 8; i++)
        package_free(&c->packages[i]);
    package_free(&first);
    free(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(object_is_at_its_name_and_read_only),
        T(wrong_short_and_long_bodies_leave_nothing),
        T(flipped_byte_is_seen_at_the_next_read),
        T(index_is_the_same_remembered_or_computed),
        T(start_removes_what_a_killed_server_left),
        T(second_server_is_refused),
        T(commands_work_beside_a_server),
        T(key_is_made_once_and_private),
        T(tokens_are_found_by_hash_only_while_valid),
        T(full_disk_is_told_and_leaves_nothing),
        T(killed_writer_loses_nothing_acknowledged),
        T(uploads_readers_and_judging_do_not_disturb_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
