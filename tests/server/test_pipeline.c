/* A large archive through two threads: the same bytes in the file and in the hash, errors told. */
#include "server/ingest/pipeline.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/digest.h"
#include "tests/lib/support.h"

#define MIB ((size_t) 1 << 20)

static char *make_bytes(size_t len)
{
    char *bytes = malloc(len > 0 ? len : 1);
    uint32_t x = 12345;

    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (char) (x >> 24);
    }
    return bytes;
}

static int open_new(const char *dir, char **out_path)
{
    int fd = -1;

    assert_true(asprintf(out_path, "%s/archive", dir) > 0);
    fd = open(*out_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

/* Pieces of `piece` bytes; file and digest are those of the bytes, and the file can be read on. */
static void check_whole(const char *dir, size_t len, size_t piece)
{
    char *bytes = make_bytes(len);
    char *path = NULL;
    int fd = open_new(dir, &path);
    struct verify_stream *stream = verify_stream_new();
    struct archive_index *index = NULL;
    struct pipeline *p = NULL;
    struct err e = ERR_INIT;
    struct digest wanted = digest_of(bytes, len);
    size_t got_len = 0;
    char *got = NULL;

    assert_non_null(stream);
    assert_int_equal(pipeline_start(fd, stream, &p, &e), 0);
    for (size_t at = 0; at < len; at += piece)
        assert_int_equal(pipeline_put(p, bytes + at, len - at < piece ? len - at : piece, &e), 0);
    assert_int_equal(pipeline_finish(p, &e), 0);
    pipeline_free(p);
    assert_int_equal(fcntl(fd, F_GETFL) & O_DIRECT, 0);
    assert_int_equal(verify_stream_finish(stream, &index, &e), 0);
    assert_true(digest_equal(&index->digest, &wanted));
    got = test_read_path(path, &got_len);
    assert_int_equal(got_len, len);
    assert_memory_equal(got, bytes, len);
    archive_index_free(index);
    verify_stream_free(stream);
    (void) close(fd);
    (void) unlink(path);
    free(got);
    free(path);
    free(bytes);
}

static void file_and_hash_have_every_byte_whatever_the_pieces(void **state)
{
    static const struct {
        size_t len;
        size_t piece;
    } cases[] = {
        {0, 1},
        {1, 1},
        {511, 100},
        {4096, 4096},
        {PIPELINE_BLOCK, 1000},
        {PIPELINE_BLOCK + 512, PIPELINE_BLOCK},
        {2 * PIPELINE_BLOCK, 3 * PIPELINE_BLOCK},
        {PIPELINE_BYTES, 65536},
        {PIPELINE_BYTES + 1, 65537},
        {17 * MIB + 1536, 32768},
        {24 * MIB, 5 * MIB},
    };
    char *dir = test_dir_new();

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_whole(dir, cases[i].len, cases[i].piece);
    test_dir_free(dir);
}

static void file_system_without_direct_writing_is_no_obstacle(void **state)
{
    char dir[] = "/dev/shm/pipeline-XXXXXX"; /* tmpfs: older kernels refuse O_DIRECT there */

    (void) state;
    if (!mkdtemp(dir)) {
        print_message("SKIPPED test: no /dev/shm\n");
        skip();
    }
    check_whole(dir, 3 * MIB + 77, 10000);
    (void) rmdir(dir);
}

/* The file may not grow past 2 MiB: the owner hears of it, and nothing hangs. */
static void failed_write_is_told_to_who_puts_or_finishes(void **state)
{
    char *dir = test_dir_new();
    char *path = NULL;
    int fd = open_new(dir, &path);
    char *bytes = make_bytes(MIB);
    struct verify_stream *stream = verify_stream_new();
    struct pipeline *p = NULL;
    struct err e = ERR_INIT;
    struct rlimit before = {.rlim_cur = 0};
    struct rlimit small = {.rlim_cur = 0};
    int rc = 0;

    (void) state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 2 * MIB;
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(pipeline_start(fd, stream, &p, &e), 0);
    for (int i = 0; i < 32 && rc == 0; i++)
        rc = pipeline_put(p, bytes, MIB, &e);
    if (rc == 0)
        rc = pipeline_finish(p, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, -1);
    assert_true(e.kind == ERR_LIMIT || e.kind == ERR_SYS || e.kind == ERR_NOSPACE);
    assert_non_null(strstr(e.text, "archive"));
    pipeline_free(p);
    verify_stream_free(stream);
    (void) close(fd);
    free(bytes);
    free(path);
    test_dir_free(dir);
}

static void pipeline_dropped_in_the_middle_ends(void **state)
{
    char *dir = test_dir_new();
    char *path = NULL;
    int fd = open_new(dir, &path);
    char *bytes = make_bytes(MIB);
    struct err e = ERR_INIT;

    (void) state;
    for (int i = 0; i < 20; i++) {
        struct verify_stream *stream = verify_stream_new();
        struct pipeline *p = NULL;

        assert_int_equal(pipeline_start(fd, stream, &p, &e), 0);
        for (int k = 0; k < i; k++)
            assert_int_equal(pipeline_put(p, bytes, MIB / 3, &e), 0);
        pipeline_free(p);
        verify_stream_free(stream);
    }
    (void) close(fd);
    free(bytes);
    free(path);
    test_dir_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_and_hash_have_every_byte_whatever_the_pieces),
        cmocka_unit_test(file_system_without_direct_writing_is_no_obstacle),
        cmocka_unit_test(failed_write_is_told_to_who_puts_or_finishes),
        cmocka_unit_test(pipeline_dropped_in_the_middle_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
