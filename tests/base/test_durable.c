/* What file.h promises about power cuts: the bytes are on the disk before they have their name, and
 * the name before the call returns; one that fails leaves what was there. */
#include "tests/lib/support.h"
#include "tests/lib/syncs.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

struct place {
    char *dir;
    int fd;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    assert_non_null(p);
    p->dir = test_dir_new();
    p->fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(p->fd >= 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    syncs_end();
    (void) close(p->fd);
    test_dir_free(p->dir);
    free(p);
    return 0;
}

enum way { WRITE, CREATE, COPY, WAYS };

static int put(const struct place *p, enum way way, const char *name, struct err *e)
{
    switch (way) {
    case WRITE:
        return file_write_at(p->fd, name, "new", 3, 0644, e);
    case CREATE:
        return file_create_at(p->fd, name, "new", 3, 0644, e);
    case COPY:
        return file_copy_at(p->fd, "source", p->fd, name, 0644, e);
    case WAYS:
        break;
    }
    return -1;
}

static void bytes_come_before_the_name_and_the_name_before_the_answer(void **state)
{
    static const char *const names[WAYS] = {"written", "created", "copied"};
    struct place *p = *state;
    struct err e = ERR_INIT;

    test_write_text(p->dir, "source", "new");
    for (enum way way = WRITE; way < WAYS; way++) {
        size_t renamed = 0;

        syncs_begin(p->dir);
        assert_int_equal(put(p, way, names[way], &e), 0);
        renamed = syncs_find(0, SYNC_RENAME, names[way]);
        assert_true(syncs_find(0, SYNC_BYTES, FILE_TEMPORARY_PREFIX) < renamed);
        assert_true(syncs_find(renamed, SYNC_BYTES, "=.") > renamed);
    }
}

static void a_disk_that_fails_is_told_and_the_old_file_stays(void **state)
{
    struct place *p = *state;

    test_write_text(p->dir, "source", "new");
    for (enum way way = WRITE; way < WAYS; way++) {
        struct err e = ERR_INIT;
        char *path = test_join(p->dir, "old");
        char *bytes = NULL;
        size_t len = 0;

        (void) unlink(path);
        if (way != CREATE)
            test_write_text(p->dir, "old", "old");
        syncs_begin(p->dir);
        syncs_fail(0, 1);
        assert_int_equal(put(p, way, "old", &e), -1);
        assert_int_equal(e.kind, ERR_SYS);
        if (way == CREATE) {
            assert_int_equal(access(path, F_OK), -1);
        } else {
            bytes = test_read_path(path, &len);
            assert_string_equal(bytes, "old");
        }
        syncs_fail(1, 2); /* the name may not last: no success either */
        assert_int_equal(put(p, way, "old", &e), -1);
        free(bytes);
        free(path);
    }
}

static void new_directories_are_durable(void **state)
{
    struct place *p = *state;
    struct err e = ERR_INIT;

    syncs_begin(p->dir);
    assert_int_equal(file_mkdirs_at(p->fd, "a/b", 0755, &e), 0);
    assert_true(syncs_find(0, SYNC_BYTES, "=.") < syncs_find(0, SYNC_BYTES, "=a"));
    syncs_begin(p->dir);
    syncs_fail(0, 1);
    assert_int_equal(file_mkdirs_at(p->fd, "c", 0755, &e), -1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(bytes_come_before_the_name_and_the_name_before_the_answer),
        T(a_disk_that_fails_is_told_and_the_old_file_stays),
        T(new_directories_are_durable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
