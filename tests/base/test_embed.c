/* tools/embed: a table of known files, compiled into this test (tests/base/meson.build). */
#include "tests/lib/support.h"

#include <string.h>

#include "tools/embed.h"

extern const struct embed_table embed_sample;

static void table_holds_the_files_bytes_in_name_order(void **state)
{
    (void) state;
    assert_true(embed_sample.n >= 2);
    for (size_t i = 0; i < embed_sample.n; i++) {
        const struct embed_file *f = &embed_sample.files[i];
        char *dir = test_path("tests/lib");
        char *path = test_join(dir, f->name);
        size_t len = 0;
        char *bytes = test_read_path(path, &len);

        assert_int_equal(f->size, len);
        assert_memory_equal(f->bytes, bytes, len);
        assert_int_equal(f->bytes[f->size], 0);
        if (i > 0)
            assert_true(strcmp(embed_sample.files[i - 1].name, f->name) < 0);
        free(bytes);
        free(path);
        free(dir);
    }
}

static void find_knows_exact_names_only(void **state)
{
    (void) state;
    assert_ptr_equal(embed_find(&embed_sample, "support.c"), &embed_sample.files[1]);
    assert_string_equal(embed_find(&embed_sample, "meson.build")->name, "meson.build");
    assert_null(embed_find(&embed_sample, "support"));
    assert_null(embed_find(&embed_sample, ""));
    assert_null(embed_find(&embed_sample, "zzz"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_holds_the_files_bytes_in_name_order),
        cmocka_unit_test(find_knows_exact_names_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
