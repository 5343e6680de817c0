/* The database: what every connection promises. */
#include "tests/server/store_fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "server/store/db.h"
#include "server/store/migrate.h"

struct bare {
    char *dir;
    char *path;
    struct db *writer;
    struct db *reader;
};

static int setup(void **state)
{
    struct bare *b = calloc(1, sizeof *b);
    size_t applied = 0;

    assert_non_null(b);
    b->dir = test_dir_new();
    b->path = test_join(b->dir, "cleanrun.db");
    MUST(db_open(b->path, DB_WRITER, &b->writer, E));
    MUST(migrate_run(b->writer, &embed_migrations, &applied, E));
    assert_true(applied > 0);
    MUST(db_prepare(b->writer, E));
    MUST(db_open(b->path, DB_READER, &b->reader, E));
    MUST(db_prepare(b->reader, E));
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bare *b = *state;

    db_close(b->reader);
    db_close(b->writer);
    test_dir_free(b->dir);
    free(b->path);
    free(b);
    return 0;
}

static int64_t value(struct db *d, const char *sql)
{
    int64_t v = -1;

    MUST(db_script_int(d, sql, &v, E));
    return v;
}

static void writer_is_durable_and_never_checkpoints_by_itself(void **state)
{
    struct bare *b = *state;
    AUTO_FREE char *mode = NULL;

    MUST(db_script_text(b->writer, "PRAGMA journal_mode", &mode, E));
    assert_string_equal(mode, "wal");
    assert_int_equal(value(b->writer, "PRAGMA synchronous"), 2);
    assert_int_equal(value(b->writer, "PRAGMA foreign_keys"), 1);
    assert_int_equal(value(b->writer, "PRAGMA wal_autocheckpoint"), 0);
    assert_int_equal(value(b->writer, "PRAGMA trusted_schema"), 0);
    assert_int_equal(value(b->writer, "PRAGMA cell_size_check"), 1);
    assert_int_equal(value(b->writer, "PRAGMA application_id"), 1129075278);
}

static void closing_leaves_the_log_alone(void **state)
{
    struct bare *b = *state;
    AUTO_FREE char *log = NULL;
    char *bytes;
    size_t len = 0;

    assert_true(asprintf(&log, "%s-wal", b->path) > 0);
    db_close(b->reader);
    db_close(b->writer);
    b->reader = NULL;
    b->writer = NULL;
    bytes = test_read_path(log, &len);
    assert_true(len > 0);
    free(bytes);
}

static void readers_cannot_change_anything(void **state)
{
    static const char *const tries[] = {
        "INSERT INTO projects (name, private, created_us) VALUES ('a/b', 0, 1)",
        "DELETE FROM runs",
        "CREATE TABLE x (a INTEGER) STRICT",
        "PRAGMA user_version = 7",
        "ATTACH ':memory:' AS other",
        "SELECT load_extension('x')",
    };
    struct bare *b = *state;

    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        struct err e = ERR_INIT;

        assert_int_equal(db_script(b->reader, tries[i], &e), -1);
    }
}

static void writer_cannot_attach_or_drop(void **state)
{
    struct bare *b = *state;
    struct err e = ERR_INIT;

    assert_int_equal(db_script(b->writer, "ATTACH ':memory:' AS other", &e), -1);
    assert_int_equal(db_script(b->writer, "DROP TABLE runs", &e), -1);
}

static void double_quotes_are_no_strings(void **state)
{
    struct bare *b = *state;
    struct err e = ERR_INIT;

    assert_int_equal(db_script(b->writer, "SELECT \"nosuch\"", &e), -1);
}

static void wrong_types_are_refused(void **state)
{
    struct bare *b = *state;
    struct err e = ERR_INIT;

    assert_int_equal(
        db_script(b->writer,
                  "INSERT INTO projects (name, private, created_us) VALUES ('a/b', 'no', 1)", &e),
        -1);
    assert_int_equal(e.kind, ERR_CONFLICT);
    assert_int_equal(db_script(b->writer, "INSERT INTO blobs VALUES (1, x'00', 1, 1)", &e), -1);
}

static void history_is_append_only(void **state)
{
    static const char *const tries[] = {
        "UPDATE audit_log SET actor = 'x'",
        "DELETE FROM audit_log",
    };
    struct bare *b = *state;

    MUST(db_script(b->writer,
                   "INSERT INTO audit_log (at_us, actor, action, subject, detail) VALUES (1, 'a', "
                   "'b', 'c', 'd')",
                   E));
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        struct err e = ERR_INIT;

        assert_int_equal(db_script(b->writer, tries[i], &e), -1);
    }
}

static void one_baseline_is_current(void **state)
{
    static const char row[] =
        "INSERT INTO baselines (id, project, gate, class, run, commit_id, legacy, archive, "
        "manifest, definition,"
        " experiment, policy, reviewer, reason, at_us, current) VALUES ('b-%d', 1, 'g', 'c', NULL, "
        "'', 1,"
        " zeroblob(32), zeroblob(32), x'00', zeroblob(32), zeroblob(32), 'r', 'why', 1, %d)";
    struct bare *b = *state;
    char sql[512];
    struct err e = ERR_INIT;

    MUST(db_script(b->writer,
                   "INSERT INTO projects (id, name, private, created_us) VALUES (1, 'a/b', 0, 1);"
                   "INSERT INTO blobs VALUES (1, zeroblob(32), 1, 1)",
                   E));
    (void) snprintf(sql, sizeof sql, row, 1, 0);
    MUST(db_script(b->writer, sql, E));
    /* Imported history never judges. */
    (void) snprintf(sql, sizeof sql, row, 2, 1);
    assert_int_equal(db_script(b->writer, sql, &e), -1);
    assert_int_equal(db_script(b->writer, "UPDATE baselines SET reason = 'other'", &e), -1);
    assert_int_equal(db_script(b->writer, "DELETE FROM baselines", &e), -1);
}

/* Statements that a page or an upload waits for. */
static void hot_statements_use_indexes(void **state)
{
    static const enum sql hot[] = {
        SQL_PROJECT_GET,        SQL_TOKEN_FIND,
        SQL_BLOB_GET,           SQL_RUN_GET,
        SQL_RUNS_OF_GATE,       SQL_RUNS_OF_CHECK,
        SQL_ARCHIVES_OF_COMMIT, SQL_RUNS_OF_ATTEMPT,
        SQL_RUNS_RECENT,        SQL_DOCUMENT_GET,
        SQL_MEMBER_GET,         SQL_MEMBER_LIST,
        SQL_BASELINE_GET,       SQL_BASELINE_CURRENT,
        SQL_BASELINES_EXPECTED, SQL_BASELINE_DEFINITION,
        SQL_BASELINE_USES,      SQL_ATTEMPTS_OF_COMMIT,
        SQL_ATTEMPTS_OF_GATE,   SQL_ATTEMPTS_BEFORE,
        SQL_GENERATION_GET,     SQL_BASELINES_OF_GATE,
        SQL_METRICS_OF_GATE,    SQL_BLOB_HOLDERS,
        SQL_RUNNERS_OF_PROJECT, SQL_BASELINE_PREDECESSOR,
    };
    struct bare *b = *state;

    for (size_t i = 0; i < sizeof hot / sizeof hot[0]; i++) {
        AUTO_FREE char *explain = NULL;
        sqlite3_stmt *st = NULL;

        assert_true(asprintf(&explain, "EXPLAIN QUERY PLAN %s", sql_get(hot[i])->text) > 0);
        assert_int_equal(sqlite3_prepare_v2(db_handle(b->writer), explain, -1, &st, NULL),
                         SQLITE_OK);
        while (sqlite3_step(st) == SQLITE_ROW) {
            const char *detail = (const char *) sqlite3_column_text(st, 3);

            if (strncmp(detail, "SCAN", 4) == 0 && !strstr(detail, "CONSTANT"))
                fail_msg("statement %u scans: %s (%s)", (unsigned) hot[i], detail, explain);
        }
        (void) sqlite3_finalize(st);
    }
}

static void every_statement_says_whether_it_writes(void **state)
{
    struct bare *b = *state;

    for (unsigned i = 0; i < SQL_MAX; i++) {
        const struct sql_statement *s = sql_get((enum sql) i);
        sqlite3_stmt *st = NULL;

        assert_int_equal(sqlite3_prepare_v2(db_handle(b->writer), s->text, -1, &st, NULL),
                         SQLITE_OK);
        if (!sqlite3_stmt_readonly(st) != s->writes)
            fail_msg("statement %u: %s", i, s->text);
        (void) sqlite3_finalize(st);
    }
}

static void database_of_another_program_is_left_alone(void **state)
{
    struct bare *b = *state;
    AUTO_FREE char *path = test_join(b->dir, "other.db");
    sqlite3 *other = NULL;
    struct db *d = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "CREATE TABLE t (a)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(db_open(path, DB_WRITER, &d, &e), -1);
    assert_int_equal(e.kind, ERR_CONFLICT);
}

static void links_are_not_followed(void **state)
{
    struct bare *b = *state;
    AUTO_FREE char *link = test_join(b->dir, "link.db");
    struct db *d = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(symlink(b->path, link), 0);
    assert_int_equal(db_open(link, DB_READER, &d, &e), -1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(writer_is_durable_and_never_checkpoints_by_itself),
        T(closing_leaves_the_log_alone),
        T(readers_cannot_change_anything),
        T(writer_cannot_attach_or_drop),
        T(double_quotes_are_no_strings),
        T(wrong_types_are_refused),
        T(history_is_append_only),
        T(one_baseline_is_current),
        T(hot_statements_use_indexes),
        T(every_statement_says_whether_it_writes),
        T(database_of_another_program_is_left_alone),
        T(links_are_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
