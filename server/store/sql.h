/*
 * sql: every statement of the product, by name; the text is in sql.c and nowhere else. Parameters
 * are bound, never formatted. Constant.
 */
#pragma once

#include <stdbool.h>

/* The description of a run whose stored evidence is damaged. */
#define DAMAGED_DESCRIPTION "INVALID IN-HASH: its stored evidence is damaged"

enum sql {
    SQL_READ_BEGIN,
    SQL_READ_END,

    SQL_GENERATION_GET,
    SQL_GENERATION_BUMP,

    SQL_PROJECT_ADD,
    SQL_PROJECT_SET,
    SQL_PROJECT_GET,
    SQL_PROJECT_LIST,
    SQL_PROJECT_OLDEST_OF_COMMIT,

    SQL_RUNNER_ADD,
    SQL_RUNNER_GET,
    SQL_RUNNER_SET,
    SQL_RUNNER_BY_KEY,
    SQL_RUNNER_LIST,
    SQL_RUNNER_LIST_VISIBLE,
    SQL_RUNNER_REVOKE,
    SQL_RUNNER_SEEN,
    SQL_RUNNER_ALLOW,
    SQL_RUNNER_PROJECTS,
    SQL_RUNNER_BASELINES, /* current ones whose run came from it since */
    SQL_RUNNERS_OF_PROJECT,
    SQL_RUNNER_OF_PROJECT,

    SQL_TOKEN_ADD,
    SQL_TOKEN_FIND,
    SQL_TOKEN_LIST,
    SQL_TOKEN_REVOKE,

    SQL_BLOB_PUT,
    SQL_BLOB_GET,
    SQL_BLOB_LIST,
    SQL_BLOB_COLLECTABLE,
    SQL_BLOB_DELETE,
    SQL_BLOB_HOLDERS,
    SQL_BLOB_AFTER,

    SQL_DAMAGE_GET,
    SQL_DAMAGE_PUT,
    SQL_DAMAGE_CLEAR,

    SQL_GATE_KNOWN,
    SQL_GATE_COUNT,
    SQL_COMMIT_COUNT,

    SQL_RUN_ADD,
    SQL_RUN_GET,
    SQL_RUN_KEY,
    SQL_RUNS_OF_GATE,
    SQL_RUNS_OF_CHECK,
    SQL_ARCHIVES_OF_COMMIT,
    SQL_RUNS_OF_ATTEMPT,
    SQL_RUNS_NEWEST,
    SQL_RUNS_RECENT,
    SQL_RUN_LIST,
    SQL_COMMITS_OF_PROJECT,
    SQL_DOCUMENT_ADD,
    SQL_DOCUMENT_GET,
    SQL_MEMBER_ADD,
    SQL_MEMBER_GET,
    SQL_MEMBER_LIST,
    SQL_METRIC_ADD,
    SQL_METRICS_OF_GATE,
    SQL_METRICS_OF_RUN,

    SQL_BASELINE_ADD,
    SQL_BASELINE_STEP_DOWN,
    SQL_BASELINE_RETIRE,
    SQL_BASELINE_SUPERSEDE,
    SQL_BASELINE_RESTORE,
    SQL_BASELINE_GET,
    SQL_BASELINE_CURRENT,
    SQL_BASELINE_RETIRED_LAST,
    SQL_BASELINES_OF_GATE,
    SQL_BASELINES_EXPECTED,
    SQL_BASELINE_DEFINITION,
    SQL_BASELINE_LIST,
    SQL_BASELINE_USES,
    SQL_BASELINE_PREDECESSOR,
    SQL_BASELINE_REVIEWS,
    SQL_HISTORY_GATES,

    SQL_ATTEMPT_ADD,
    SQL_ATTEMPTS_OF_GATE,
    SQL_ATTEMPTS_UNSIGNED,
    SQL_ATTEMPTS_OF_COMMIT,
    SQL_ATTEMPTS_BEFORE,
    SQL_ATTEMPTS_NEWEST,

    SQL_LOG_ADD,
    SQL_LOG_LIST,

    SQL_FIGURES,
    SQL_FIGURE_VERDICTS,

    SQL_MAX,
};

struct sql_statement {
    const char *text;
    bool writes; /* not prepared on readers */
};

/* Asserts that the id is one of the list. */
const struct sql_statement *sql_get(enum sql id);

/* Scripts of several statements, run once at open or by a command. */
extern const char sql_pragmas[];        /* every connection */
extern const char sql_pragmas_writer[]; /* the writer besides */
extern const char sql_migrations[];     /* the table of applied migrations */
extern const char sql_begin_write[];
extern const char sql_commit[];
extern const char sql_rollback[];
extern const char sql_quick_check[];
extern const char sql_integrity_check[];
extern const char sql_foreign_key_check[];
extern const char sql_vacuum_into[];
extern const char sql_application_id[];
extern const char sql_application_id_set[];
extern const char sql_table_count[];
extern const char sql_journal_mode[];
extern const char sql_migration_list[];
extern const char sql_migration_add[];
