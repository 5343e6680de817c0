#include "tests/lib/support.h"

#include <stdalign.h>
#include <string.h>

#include "base/arena.h"

static void gives_zeroed_aligned_distinct_memory(void **state)
{
    AUTO_ARENA struct arena a = {0};
    unsigned char *before = NULL;

    (void) state;
    arena_init(&a, (size_t) 1 << 20);
    for (size_t size = 0; size < 300; size++) {
        unsigned char *p = arena_alloc(&a, size);

        assert_non_null(p);
        assert_ptr_not_equal(p, before);
        assert_int_equal((uintptr_t) p % alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
        before = p;
    }
}

static void cap_is_kept(void **state)
{
    AUTO_ARENA struct arena a = {0};
    size_t given = 0;
    struct err e = ERR_INIT;

    (void) state;
    arena_init(&a, 10000);
    while (arena_alloc(&a, 100))
        given += 100;
    assert_true(given <= 10000);
    assert_true(given >= 8000);
    assert_true(a.used <= a.max);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 8));
    assert_int_equal(arena_full(&e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_string_equal(e.code, "arena.full");
}

static void calloc_refuses_overflow(void **state)
{
    AUTO_ARENA struct arena a = {0};

    (void) state;
    arena_init(&a, SIZE_MAX);
    assert_null(arena_calloc(&a, SIZE_MAX / 2, 3));
    assert_non_null(arena_calloc(&a, 1000, 16));
}

static void large_block_gets_its_own_chunk(void **state)
{
    AUTO_ARENA struct arena a = {0};
    char *small = NULL;
    char *large = NULL;

    (void) state;
    arena_init(&a, (size_t) 64 << 20);
    small = arena_strdup(&a, "small");
    large = arena_alloc(&a, (size_t) 5 << 20);
    assert_non_null(large);
    memset(large, 'x', (size_t) 5 << 20);
    assert_string_equal(small, "small");
    assert_string_equal(arena_strdup(&a, "after"), "after");
}

static void copies_are_terminated(void **state)
{
    AUTO_ARENA struct arena a = {0};
    const char bytes[] = {'a', '\0', 'b'};
    const char *copy = NULL;

    (void) state;
    arena_init(&a, 1000);
    copy = arena_memdup(&a, bytes, 3);
    assert_memory_equal(copy, "a\0b", 4);
    assert_string_equal(arena_memdup(&a, NULL, 0), "");
    assert_string_equal(arena_printf(&a, "%s-%05d", "n", 42), "n-00042");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_zeroed_aligned_distinct_memory),
        cmocka_unit_test(cap_is_kept),
        cmocka_unit_test(calloc_refuses_overflow),
        cmocka_unit_test(large_block_gets_its_own_chunk),
        cmocka_unit_test(copies_are_terminated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
