/* Migrations: once, whole or not at all, never altered. */
#include "tests/server/store_fixture.h"

#include <string.h>

#include "server/store/db.h"
#include "server/store/migrate.h"

#define FILE_OF(n, text)                                                                           \
    {                                                                                              \
        .name = (n), .bytes = (const unsigned char *) (text), .size = sizeof(text) - 1             \
    }

struct bare {
    char *dir;
    char *path;
    struct db *d;
};

static int setup(void **state)
{
    struct bare *b = calloc(1, sizeof *b);

    assert_non_null(b);
    b->dir = test_dir_new();
    b->path = test_join(b->dir, "cleanrun.db");
    MUST(db_open(b->path, DB_WRITER, &b->d, E));
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bare *b = *state;

    db_close(b->d);
    test_dir_free(b->dir);
    free(b->path);
    free(b);
    return 0;
}

static int64_t tables(struct db *d)
{
    int64_t n = -1;

    MUST(db_script_int(
        d, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name LIKE 't%'", &n, E));
    return n;
}

static void files_are_applied_once_in_order(void **state)
{
    static const struct embed_file files[] = {
        FILE_OF("0001_a.sql", "CREATE TABLE t1 (a INTEGER) STRICT; INSERT INTO t1 VALUES (1);"),
        FILE_OF("0002_b.sql", "CREATE TABLE t2 AS SELECT a FROM t1;"),
    };
    const struct embed_table one = {files, 1};
    const struct embed_table two = {files, 2};
    struct bare *b = *state;
    size_t n = 0;

    MUST(migrate_run(b->d, &one, &n, E));
    assert_int_equal(n, 1);
    MUST(migrate_run(b->d, &two, &n, E));
    assert_int_equal(n, 1);
    MUST(migrate_run(b->d, &two, &n, E));
    assert_int_equal(n, 0);
    assert_int_equal(tables(b->d), 2);
}

static void altered_file_is_refused(void **state)
{
    static const struct embed_file before[] = {
        FILE_OF("0001_a.sql", "CREATE TABLE t1 (a INTEGER) STRICT;")};
    static const struct embed_file after[] = {
        FILE_OF("0001_a.sql", "CREATE TABLE t1 (a INTEGER) STRICT; ")};
    static const struct embed_file renamed[] = {
        FILE_OF("0001_b.sql", "CREATE TABLE t1 (a INTEGER) STRICT;")};
    struct bare *b = *state;
    struct err e = ERR_INIT;
    size_t n = 0;

    MUST(migrate_run(b->d, &(struct embed_table){before, 1}, &n, E));
    assert_int_equal(migrate_run(b->d, &(struct embed_table){after, 1}, &n, &e), -1);
    assert_int_equal(e.kind, ERR_CONFLICT);
    assert_int_equal(migrate_run(b->d, &(struct embed_table){renamed, 1}, &n, &e), -1);
    assert_int_equal(e.kind, ERR_CONFLICT);
}

static void newer_database_is_refused(void **state)
{
    static const struct embed_file files[] = {
        FILE_OF("0001_a.sql", "CREATE TABLE t1 (a INTEGER) STRICT;"),
        FILE_OF("0002_b.sql", "CREATE TABLE t2 (a INTEGER) STRICT;")};
    struct bare *b = *state;
    struct err e = ERR_INIT;
    size_t n = 0;

    MUST(migrate_run(b->d, &(struct embed_table){files, 2}, &n, E));
    assert_int_equal(migrate_run(b->d, &(struct embed_table){files, 1}, &n, &e), -1);
    assert_int_equal(e.kind, ERR_CONFLICT);
}

static void failing_file_leaves_nothing(void **state)
{
    static const struct embed_file bad[] = {
        FILE_OF("0001_a.sql", "CREATE TABLE t1 (a INTEGER) STRICT;"),
        FILE_OF("0002_b.sql", "CREATE TABLE t2 (a INTEGER) STRICT; CREATE TABLE t2 (a);")};
    static const struct embed_file good[] = {
        FILE_OF("0001_a.sql", "CREATE TABLE t1 (a INTEGER) STRICT;"),
        FILE_OF("0002_b.sql", "CREATE TABLE t2 (a INTEGER) STRICT;")};
    struct bare *b = *state;
    struct err e = ERR_INIT;
    size_t n = 0;

    assert_int_equal(migrate_run(b->d, &(struct embed_table){bad, 2}, &n, &e), -1);
    assert_false(db_in_transaction(b->d));
    assert_int_equal(tables(b->d), 1); /* the first one stands, of the second nothing */
    MUST(migrate_run(b->d, &(struct embed_table){good, 2}, &n, E));
    assert_int_equal(n, 1);
}

static void gaps_and_odd_names_are_refused(void **state)
{
    static const char *const names[] = {"0002_a.sql", "1_a.sql", "0001a.sql", "0001_a.txt",
                                        "x001_a.sql"};
    struct bare *b = *state;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct embed_file file = {
            .name = names[i], .bytes = (const unsigned char *) "", .size = 0};
        struct err e = ERR_INIT;
        size_t n = 0;

        assert_int_equal(migrate_run(b->d, &(struct embed_table){&file, 1}, &n, &e), -1);
    }
}

static void shipped_files_make_strict_tables_only(void **state)
{
    struct bare *b = *state;
    int64_t n = -1;
    size_t applied = 0;

    MUST(migrate_run(b->d, &embed_migrations, &applied, E));
    assert_int_equal(applied, embed_migrations.n);
    MUST(db_script_int(b->d,
                       "SELECT count(*) FROM pragma_table_list WHERE type = 'table' AND strict = 0 "
                       "AND name NOT LIKE 'sqlite%'",
                       &n, E));
    assert_int_equal(n, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(files_are_applied_once_in_order), T(altered_file_is_refused),
        T(newer_database_is_refused),       T(failing_file_leaves_nothing),
        T(gaps_and_odd_names_are_refused),  T(shipped_files_make_strict_tables_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
