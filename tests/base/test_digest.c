#include "tests/lib/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"

/* FIPS 180-4 examples. */
static const char *const empty_hex =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const char *const abc_hex =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char *const million_hex =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

static void assert_hex(const struct digest *d, const char *hex)
{
    char text[DIGEST_HEX_SIZE];

    digest_hex(d, text);
    assert_string_equal(text, hex);
}

static void known_digests(void **state)
{
    struct digest d = digest_of("abc", 3);

    (void) state;
    assert_hex(&d, abc_hex);
    d = digest_of(NULL, 0);
    assert_hex(&d, empty_hex);
}

static void running_hash_equals_whole_and_resets(void **state)
{
    struct digest_state *s = digest_new();
    char block[1000];
    struct digest d;

    (void) state;
    memset(block, 'a', sizeof(block));
    for (int i = 0; i < 1000; i++)
        digest_update(s, block, sizeof(block));
    digest_finish(s, &d);
    assert_hex(&d, million_hex);
    digest_update(s, "a", 1);
    digest_update(s, "bc", 2);
    digest_finish(s, &d);
    assert_hex(&d, abc_hex);
    digest_free(s);
    digest_free(NULL);
}

static void fd_is_hashed_from_its_offset(void **state)
{
    char *dir = test_dir_new();
    char *path = test_join(dir, "f");
    char *bytes = malloc(1000003);
    struct digest d;
    uint64_t size = 0;
    int fd = -1;

    (void) state;
    memset(bytes, 'a', 1000003);
    memcpy(bytes, "xyz", 3);
    test_write(dir, "f", bytes, 1000003);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 3, SEEK_SET), 3);
    assert_int_equal(digest_of_fd(fd, &d, &size, NULL), 0);
    assert_int_equal(size, 1000000);
    assert_hex(&d, million_hex);
    (void) close(fd);
    free(bytes);
    free(path);
    test_dir_free(dir);
}

static void blobs_have_git_s_names(void **state)
{
    char *dir = test_dir_new();
    char *path = test_join(dir, "f");
    char name[DIGEST_HEX_SIZE];
    struct digest d;
    int fd = -1;

    (void) state;
    digest_blob_name("hello\n", 6, 40, name);
    assert_string_equal(name, "ce013625030ba8dba906f756967f9e9ca394464a");
    digest_blob_name("", 0, 64, name);
    assert_string_equal(name, "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813");
    test_write(dir, "f", "hello\n", 6);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(digest_of_fd_as_blob(fd, 6, 40, &d, name, NULL), 0);
    assert_string_equal(name, "ce013625030ba8dba906f756967f9e9ca394464a");
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(digest_of_fd_as_blob(fd, 7, 40, &d, name, NULL), 0);
    assert_string_equal(name, ""); /* shorter than promised */
    (void) close(fd);
    free(path);
    test_dir_free(dir);
}

static void fd_error_is_reported(void **state)
{
    struct digest d;
    uint64_t size = 0;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(digest_of_fd(-1, &d, &size, &e), -1);
    assert_int_equal(e.kind, ERR_SYS);
}

static void text_form_is_exact(void **state)
{
    struct digest abc = digest_of("abc", 3);
    struct digest d;
    char text[80];

    (void) state;
    assert_true(digest_parse(abc_hex, &d));
    assert_true(digest_equal(&d, &abc));
    (void) snprintf(text, sizeof(text), "%s", abc_hex);
    text[0] = 'B';
    assert_false(digest_parse(text, &d));
    text[0] = 'g';
    assert_false(digest_parse(text, &d));
    text[0] = 'b';
    text[63] = '\0';
    assert_false(digest_parse(text, &d));
    (void) snprintf(text, sizeof(text), "%s", abc_hex);
    (void) snprintf(text, sizeof(text), "%s0", abc_hex);
    assert_false(digest_parse(text, &d));
    assert_false(digest_parse("", &d));
}

static void equal_sees_every_bit(void **state)
{
    struct digest a = digest_of("abc", 3);

    (void) state;
    for (size_t bit = 0; bit < 8 * DIGEST_SIZE; bit++) {
        struct digest b = a;

        b.bytes[bit / 8] ^= (uint8_t) (1u << bit % 8);
        assert_false(digest_equal(&a, &b));
    }
}

/* Random pieces into two states that began apart: each must equal its own plain hash. */
static void two_at_once_equal_each_alone(void **state)
{
    static uint8_t bytes[20000];
    uint64_t seed = 77;
    int turn = 0;
    size_t i = 0;

    (void) state;
    for (i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t) test_random_below(&seed, 256);
    for (turn = 0; turn < 400; turn++) {
        struct digest_state *a = digest_new();
        struct digest_state *b = digest_new();
        struct digest_state *plain_a = digest_new();
        struct digest_state *plain_b = digest_new();
        /* half the turns in step (multiples of 64 apart), half not */
        size_t lead = test_random_below(&seed, 10) * (turn % 2 ? 64 : 37);
        struct digest got = {.bytes = {0}};
        struct digest want = {.bytes = {0}};
        int piece = 0;

        digest_update(a, bytes, lead);
        digest_update(plain_a, bytes, lead);
        for (piece = 0; piece < 6; piece++) {
            size_t at = test_random_below(&seed, 1000);
            size_t len = test_random_below(&seed, turn % 3 ? 300 : 9000);

            digest_update_two(a, b, bytes + at, len);
            digest_update(plain_a, bytes + at, len);
            digest_update(plain_b, bytes + at, len);
        }
        digest_finish(a, &got);
        digest_finish(plain_a, &want);
        assert_memory_equal(got.bytes, want.bytes, DIGEST_SIZE);
        digest_finish(b, &got);
        digest_finish(plain_b, &want);
        assert_memory_equal(got.bytes, want.bytes, DIGEST_SIZE);
        digest_free(a);
        digest_free(b);
        digest_free(plain_a);
        digest_free(plain_b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_at_once_equal_each_alone),
        cmocka_unit_test(known_digests),
        cmocka_unit_test(running_hash_equals_whole_and_resets),
        cmocka_unit_test(fd_is_hashed_from_its_offset),
        cmocka_unit_test(blobs_have_git_s_names),
        cmocka_unit_test(fd_error_is_reported),
        cmocka_unit_test(text_form_is_exact),
        cmocka_unit_test(equal_sees_every_bit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
