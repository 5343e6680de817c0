#include "tests/lib/support.h"

#include <string.h>

#include "base/random.h"

static void bytes_differ_between_calls(void **state)
{
    unsigned char a[32] = {0};
    unsigned char b[32] = {0};

    (void) state;
    assert_int_equal(random_bytes(a, sizeof(a), NULL), 0);
    assert_int_equal(random_bytes(b, sizeof(b), NULL), 0);
    assert_memory_not_equal(a, b, sizeof(a));
}

/* All of a large block is filled: a byte value that never comes has a chance of 256 · e^-3906. */
static void large_blocks_are_filled_to_the_end(void **state)
{
    const size_t len = 1000000;
    unsigned char *bytes = calloc(1, len + 1);
    size_t seen[256] = {0};

    (void) state;
    assert_int_equal(random_bytes(bytes, len, NULL), 0);
    assert_int_equal(bytes[len], 0);
    for (size_t i = 0; i < len; i++)
        seen[bytes[i]]++;
    for (size_t i = 0; i < 256; i++)
        assert_true(seen[i] > 2000 && seen[i] < 6000);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_differ_between_calls),
        cmocka_unit_test(large_blocks_are_filled_to_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
