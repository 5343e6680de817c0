#include "server/store/sql.h"

#include <assert.h>
#include <stddef.h>

/* 0x434c524e, "CLRN" */
const char sql_pragmas[] =
    "PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;"
    "PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;";
const char sql_pragmas_writer[] = "PRAGMA synchronous = FULL;";
const char sql_migrations[] =
    "CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL,"
    " sha256 BLOB NOT NULL CHECK (length(sha256) = 32), applied_us INTEGER NOT NULL) STRICT;";
const char sql_begin_write[] = "BEGIN IMMEDIATE";
const char sql_commit[] = "COMMIT";
const char sql_rollback[] = "ROLLBACK";
const char sql_quick_check[] = "PRAGMA quick_check(1)";
const char sql_integrity_check[] = "PRAGMA integrity_check(10)";
const char sql_foreign_key_check[] = "PRAGMA foreign_key_check";
const char sql_vacuum_into[] = "VACUUM INTO ?";
const char sql_application_id[] = "PRAGMA application_id";
const char sql_application_id_set[] = "PRAGMA application_id = 1129075278";
const char sql_table_count[] = "SELECT count(*) FROM sqlite_schema";
const char sql_journal_mode[] = "PRAGMA journal_mode = WAL";
const char sql_migration_list[] =
    "SELECT number, name, sha256 FROM schema_migrations ORDER BY number";
const char sql_migration_add[] =
    "INSERT INTO schema_migrations (number, name, sha256, applied_us) VALUES (?, ?, ?, ?)";

/* What a run answers now depends on who signed it and, where it has one, its baseline. */
#define WITH_SIGNERS                                                                               \
    " JOIN runners n ON n.id = r.runner LEFT JOIN baselines jb ON jb.id = r.baseline"              \
    " LEFT JOIN runs jr ON jr.id = jb.run LEFT JOIN runners jn ON jn.id = jr.runner "
/* A run that was received after its runner's key was revoked is no answer any more. */
#define REVOKED_BEFORE(run, runner)                                                                \
    "(" runner ".revoked_since_us > 0 AND " run ".received_us >= " runner ".revoked_since_us)"
#define REVOKED REVOKED_BEFORE("r", "n")
/* Nor is one whose stored evidence was found damaged. */
#define DAMAGED "EXISTS (SELECT 1 FROM damage x WHERE x.sha256 = r.archive)"
/* Nor is what a baseline that came from such a run said of a change. */
#define JUDGE_REVOKED REVOKED_BEFORE("jr", "jn")
#define UNJUDGED "r.verdict IN ('OK', 'REGRESSION') AND " JUDGE_REVOKED
#define VERDICT_NOW                                                                                \
    "CASE WHEN r.verdict IS NOT NULL AND (" REVOKED " OR " DAMAGED                                 \
    ") THEN 'INVALID' WHEN " UNJUDGED " THEN 'NON_COMPARABLE' ELSE r.verdict END"
#define DESCRIPTION_NOW                                                                            \
    "CASE WHEN r.verdict IS NOT NULL AND " DAMAGED " THEN '" DAMAGED_DESCRIPTION "'"               \
    " WHEN r.verdict IS NOT NULL AND " REVOKED                                                     \
    " THEN 'INVALID IN-KEY: its runner''s key was revoked before this run was received'"           \
    " WHEN " UNJUDGED " THEN 'NON_COMPARABLE NC-BASELINE-NONE: the key behind its baseline was"    \
    " revoked before the baseline''s run was received' ELSE r.description END"

#define RUN_COLUMNS                                                                                \
    "r.id, r.project, p.name, p.private, r.run, r.gate, r.class, r.mode, r.status, r.commit_id, "  \
    "r.dirty, r.archive,"                                                                          \
    " r.archive_size, r.keyid, r.started_us, r.finished_us, r.received_us, " VERDICT_NOW           \
    ", " DESCRIPTION_NOW ", r.baseline,"                                                           \
    " r.executable, n.name, r.experiment, r.policy, CASE WHEN " REVOKED                            \
    " THEN n.revoked_since_us ELSE 0 END, " DAMAGED                                                \
    ", r.verdict, r.fingerprint, CASE WHEN " JUDGE_REVOKED " THEN jn.revoked_since_us ELSE 0 END"
#define RUN_FROM " FROM runs r JOIN projects p ON p.id = r.project" WITH_SIGNERS

#define BASELINE_COLUMNS                                                                           \
    "b.id, b.project, p.name, p.private, b.gate, b.class, r.run, b.commit_id, b.legacy, "          \
    "b.archive, b.manifest,"                                                                       \
    " b.experiment, b.policy, b.reviewer, b.reason, b.at_us, b.current, b.superseded_by, "         \
    "b.definition, EXISTS (SELECT 1 FROM damage x WHERE x.sha256 = b.archive), b.retired_us, "     \
    "b.retired_by, b.retired_reason, CASE WHEN " REVOKED " THEN n.revoked_since_us ELSE 0 END"
#define BASELINE_FROM                                                                              \
    " FROM baselines b JOIN projects p ON p.id = b.project LEFT JOIN runs r ON r.id = b.run"       \
    " LEFT JOIN runners n ON n.id = r.runner "

#define ATTEMPT_COLUMNS "a.at_us, a.run, a.code, a.detail, a.keyid, a.gate, a.class, a.commit_id"

/* Visible: ?1 sees all, or the project is public, or it is ?2. */
#define VISIBLE "(?1 OR p.private = 0 OR p.id = ?2)"

static const struct sql_statement statements[SQL_MAX] = {
    [SQL_READ_BEGIN] = {"BEGIN", false},
    [SQL_READ_END] = {"ROLLBACK", false},

    [SQL_GENERATION_GET] = {"SELECT value FROM counters WHERE name = 'generation'", false},
    [SQL_GENERATION_BUMP] = {"UPDATE counters SET value = value + 1 WHERE name = 'generation'",
                             true},

    [SQL_PROJECT_ADD] = {"INSERT INTO projects (name, private, created_us) VALUES (?, ?, ?)", true},
    [SQL_PROJECT_SET] =
        {"UPDATE projects SET private = coalesce(?2, private), tickets = coalesce(?3, tickets),"
         " deadline_s = coalesce(?4, deadline_s) WHERE name = ?1",
         true},
    [SQL_PROJECT_GET] = {"SELECT id, private, tickets, deadline_s FROM projects WHERE name = ?",
                         false},
    [SQL_PROJECT_LIST] =
        {"SELECT p.id, p.name, p.private, p.tickets, p.deadline_s,"
         " (SELECT count(*) FROM runs r WHERE r.project = p.id) FROM projects p ORDER BY p.name",
         false},
    [SQL_PROJECT_OLDEST_OF_COMMIT] =
        {"SELECT min(t) FROM (SELECT min(received_us) AS t FROM runs"
         " WHERE project = ?1 AND commit_id = ?2 UNION ALL"
         " SELECT min(at_us) FROM attempts WHERE project = ?1 AND commit_id = ?2)",
         false},

    [SQL_RUNNER_ADD] = {"INSERT INTO runners (name, class, key_pem, keyid, not_before_us, "
                        "not_after_us, created_us)"
                        " VALUES (?, ?, ?, ?, ?, ?, ?)",
                        true},
    [SQL_RUNNER_GET] =
        {"SELECT id, class, key_pem, keyid, revoked_since_us, not_before_us, not_after_us"
         " FROM runners WHERE name = ?",
         false},
    [SQL_RUNNER_SET] = {"UPDATE runners SET not_before_us = ?2, not_after_us = ?3 WHERE id = ?1",
                        true},
    [SQL_RUNNER_BY_KEY] = {"SELECT name, class, revoked_since_us FROM runners WHERE keyid = ?",
                           false},
    [SQL_RUNNER_LIST] = {"SELECT id, name, class, keyid, not_before_us, not_after_us, "
                         "revoked_since_us, revoked_reason,"
                         " last_seen_us FROM runners ORDER BY name",
                         false},
    [SQL_RUNNER_LIST_VISIBLE] =
        {"SELECT n.name, n.class, n.last_seen_us, n.not_before_us, n.not_after_us,"
         " n.revoked_since_us FROM runners n WHERE"
         " EXISTS (SELECT 1 FROM runner_projects x JOIN projects p ON p.id = x.project"
         " WHERE x.runner = n.id AND " VISIBLE ") ORDER BY n.name",
         false},
    [SQL_RUNNER_REVOKE] =
        {"UPDATE runners SET revoked_since_us = ?2, revoked_reason = ?3 WHERE name = ?1"
         " AND (revoked_since_us = 0 OR revoked_since_us > ?2)",
         true},
    [SQL_RUNNER_SEEN] = {"UPDATE runners SET last_seen_us = max(last_seen_us, ?2) WHERE id = ?1",
                         true},
    [SQL_RUNNER_ALLOW] =
        {"INSERT INTO runner_projects (runner, project) VALUES (?, ?) ON CONFLICT DO NOTHING",
         true},
    [SQL_RUNNER_PROJECTS] = {"SELECT p.name FROM runner_projects x JOIN projects p ON p.id = "
                             "x.project WHERE x.runner = ?"
                             " ORDER BY p.name",
                             false},
    [SQL_RUNNER_BASELINES] =
        {"SELECT b.id, p.name, b.gate, b.class FROM runners n JOIN runs r ON r.runner = n.id"
         " JOIN baselines b ON b.run = r.id JOIN projects p ON p.id = b.project"
         " WHERE n.name = ?1 AND r.received_us >= ?2 AND b.current = 1 ORDER BY p.name, b.gate,"
         " b.class",
         false},
    [SQL_RUNNERS_OF_PROJECT] =
        {"SELECT n.id, n.name, n.class, n.key_pem, n.not_before_us, n.not_after_us,"
         " n.revoked_since_us FROM runner_projects x JOIN runners n ON n.id = x.runner"
         " WHERE x.project = ? ORDER BY n.id",
         false},
    [SQL_RUNNER_OF_PROJECT] =
        {"SELECT n.name, n.class, n.not_before_us, n.not_after_us, n.revoked_since_us"
         " FROM runner_projects x JOIN runners n ON n.id = x.runner"
         " WHERE x.project = ? AND n.keyid = ?",
         false},

    [SQL_TOKEN_ADD] =
        {"INSERT INTO tokens (name, hash, scopes, project, created_us) VALUES (?, ?, ?, ?, ?)",
         true},
    [SQL_TOKEN_FIND] =
        {"SELECT name, scopes, project FROM tokens WHERE hash = ? AND revoked_us = 0", false},
    [SQL_TOKEN_LIST] = {"SELECT t.name, t.scopes, p.name, t.created_us, t.revoked_us FROM tokens t"
                        " LEFT JOIN projects p ON p.id = t.project ORDER BY t.name",
                        false},
    [SQL_TOKEN_REVOKE] = {"UPDATE tokens SET revoked_us = ?2 WHERE name = ?1 AND revoked_us = 0",
                          true},

    [SQL_BLOB_PUT] =
        {"INSERT INTO blobs (project, sha256, size, received_us) VALUES (?1, ?2, ?3, ?4)"
         " ON CONFLICT (project, sha256) DO UPDATE SET received_us = max(received_us, "
         "excluded.received_us)",
         true},
    [SQL_BLOB_GET] = {"SELECT size, received_us FROM blobs WHERE project = ? AND sha256 = ?",
                      false},
    [SQL_BLOB_LIST] = {"SELECT b.sha256, b.size, p.name FROM blobs b JOIN projects p ON p.id = "
                       "b.project ORDER BY b.sha256",
                       false},
    [SQL_BLOB_COLLECTABLE] =
        {"SELECT b.project, b.sha256, b.size FROM blobs b WHERE b.received_us < ?1"
         " AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.project = b.project AND r.archive = "
         "b.sha256)"
         " AND NOT EXISTS (SELECT 1 FROM baselines l WHERE l.project = b.project"
         " AND l.archive = b.sha256) LIMIT ?2",
         false},
    [SQL_BLOB_DELETE] = {"DELETE FROM blobs WHERE project = ? AND sha256 = ?", true},
    [SQL_BLOB_HOLDERS] = {"SELECT count(*) FROM blobs WHERE sha256 = ?", false},
    [SQL_BLOB_AFTER] = {"SELECT sha256 FROM blobs WHERE sha256 > ? ORDER BY sha256 LIMIT 1", false},

    [SQL_DAMAGE_GET] = {"SELECT what FROM damage WHERE sha256 = ?", false},
    [SQL_DAMAGE_PUT] = {"INSERT INTO damage (sha256, found_us, what) VALUES (?, ?, ?)"
                        " ON CONFLICT (sha256) DO UPDATE SET what = excluded.what",
                        true},
    [SQL_DAMAGE_CLEAR] = {"DELETE FROM damage WHERE sha256 = ?", true},

    [SQL_GATE_KNOWN] =
        {"SELECT EXISTS (SELECT 1 FROM runs WHERE project = ?1 AND gate = ?2 AND class = ?3)"
         " OR EXISTS (SELECT 1 FROM attempts WHERE project = ?1 AND gate = ?2 AND class = ?3)"
         " OR EXISTS (SELECT 1 FROM baselines WHERE project = ?1 AND gate = ?2 AND class = ?3)",
         false},
    [SQL_GATE_COUNT] =
        {"SELECT count(*) FROM (SELECT gate, class FROM runs WHERE project = ?1 UNION"
         " SELECT gate, class FROM attempts WHERE project = ?1 AND gate IS NOT NULL"
         " AND class IS NOT NULL UNION SELECT gate, class FROM baselines WHERE project = ?1)",
         false},
    [SQL_COMMIT_COUNT] =
        {"SELECT (SELECT count(*) FROM runs WHERE project = ?1 AND commit_id = ?2)"
         " + (SELECT count(*) FROM attempts WHERE project = ?1 AND commit_id = ?2)",
         false},

    [SQL_RUN_ADD] = {"INSERT INTO runs (run, project, gate, class, mode, status, commit_id, dirty, "
                     "fingerprint, executable,"
                     " experiment, policy, archive, archive_size, keyid, runner, started_us, "
                     "finished_us, received_us,"
                     " verdict, description, baseline)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     true},
    [SQL_RUN_GET] = {"SELECT " RUN_COLUMNS RUN_FROM "WHERE r.run = ?", false},
    [SQL_RUN_KEY] =
        {"SELECT n.key_pem FROM runs r JOIN runners n ON n.id = r.runner WHERE r.run = ?", false},
    [SQL_RUNS_OF_GATE] = {"SELECT " RUN_COLUMNS RUN_FROM
                          "WHERE r.project = ? AND r.gate = ? ORDER BY r.id DESC LIMIT ?",
                          false},
    [SQL_RUNS_OF_CHECK] =
        {"SELECT r.gate, r.class, r.run, " VERDICT_NOW ", " DESCRIPTION_NOW
         ", r.received_us, r.baseline, r.executable,"
         " NOT r.dirty, r.verdict = 'REGRESSION' AND NOT " REVOKED " FROM runs r" WITH_SIGNERS
         "WHERE r.project = ?1 AND r.commit_id = ?2"
         " AND (?3 IS NULL OR (r.gate = ?3 AND r.class = ?4)) AND r.mode = 'clean'"
         " AND r.verdict IS NOT NULL ORDER BY r.id",
         false},
    [SQL_ARCHIVES_OF_COMMIT] = {"SELECT r.archive, " DAMAGED
                                " FROM runs r WHERE r.project = ? AND r.commit_id = ?"
                                " AND r.mode = 'clean' AND r.verdict IS NOT NULL ORDER BY r.id",
                                false},
    [SQL_RUNS_OF_ATTEMPT] =
        {"SELECT r.run, " VERDICT_NOW ", r.received_us FROM runs r" WITH_SIGNERS
         "WHERE r.project = ? AND r.gate = ?"
         " AND r.class = ? AND r.commit_id = ? AND r.mode = 'clean' AND r.verdict IS NOT NULL"
         " ORDER BY r.id",
         false},
    [SQL_RUNS_NEWEST] = {"SELECT " RUN_COLUMNS RUN_FROM
                         "WHERE r.id IN (SELECT max(id) FROM runs WHERE mode = 'clean'"
                         " AND verdict IS NOT NULL GROUP BY project, gate, class) AND " VISIBLE
                         " AND (?3 IS NULL OR r.project = ?3) ORDER BY p.name, r.gate, r.class",
                         false},
    [SQL_RUNS_RECENT] =
        {"SELECT " VERDICT_NOW " FROM runs r" WITH_SIGNERS "WHERE r.project = ?"
         " AND r.gate = ? AND r.class = ?"
         " AND r.mode = 'clean' AND r.verdict IS NOT NULL ORDER BY r.id DESC LIMIT ?",
         false},
    [SQL_RUN_LIST] = {"SELECT " RUN_COLUMNS RUN_FROM "WHERE r.id > ? ORDER BY r.id LIMIT ?", false},
    [SQL_COMMITS_OF_PROJECT] =
        {"SELECT c, max(t) FROM (SELECT commit_id AS c, max(received_us) AS t FROM runs"
         " WHERE project = ?1 AND mode = 'clean' AND verdict IS NOT NULL GROUP BY commit_id UNION "
         "ALL"
         " SELECT commit_id, max(at_us) FROM attempts WHERE project = ?1 AND commit_id IS NOT NULL"
         " AND class IS NOT NULL GROUP BY commit_id)"
         " GROUP BY c ORDER BY max(t) DESC LIMIT ?2",
         false},
    [SQL_DOCUMENT_ADD] = {"INSERT INTO documents (run, kind, bytes) VALUES (?, ?, ?)", true},
    [SQL_DOCUMENT_GET] = {"SELECT d.bytes FROM documents d JOIN runs r ON r.id = d.run WHERE r.run "
                          "= ? AND d.kind = ?",
                          false},
    [SQL_MEMBER_ADD] =
        {"INSERT INTO members (run, path, role, position, size, sha256) VALUES (?, ?, ?, ?, ?, ?)",
         true},
    [SQL_MEMBER_GET] =
        {"SELECT m.position, m.size, m.sha256, m.role FROM members m JOIN runs r ON r.id = m.run"
         " WHERE r.run = ? AND m.path = ?",
         false},
    [SQL_MEMBER_LIST] =
        {"SELECT m.path, m.role, m.position, m.size, m.sha256 FROM members m WHERE m.run = ?"
         " ORDER BY m.path",
         false},
    [SQL_METRIC_ADD] = {"INSERT INTO metrics (run, path, metric, value) VALUES (?, ?, ?, ?) ON "
                        "CONFLICT DO NOTHING",
                        true},
    [SQL_METRICS_OF_GATE] =
        {"SELECT r.run, m.path, m.metric, m.value, " VERDICT_NOW
         ", r.experiment, r.baseline, r.received_us FROM runs r JOIN metrics m"
         " ON m.run = r.id" WITH_SIGNERS
         "WHERE r.project = ?1 AND r.gate = ?2 AND r.class = ?3 AND r.mode = 'clean' AND r.id IN"
         " (SELECT id FROM runs WHERE project = ?1 AND gate = ?2 AND class = ?3 AND mode = 'clean'"
         " AND verdict IS NOT NULL ORDER BY id DESC LIMIT ?4) ORDER BY r.id, m.path, m.metric",
         false},

    [SQL_METRICS_OF_RUN] = {"SELECT m.path, m.metric, m.value FROM metrics m JOIN runs r"
                            " ON r.id = m.run WHERE r.run = ? ORDER BY m.path, m.metric",
                            false},

    [SQL_BASELINE_ADD] = {"INSERT INTO baselines (id, project, gate, class, run, commit_id, "
                          "legacy, archive, manifest,"
                          " definition, experiment, policy, reviewer, reason, at_us, current)"
                          " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                          true},
    [SQL_BASELINE_STEP_DOWN] = {"UPDATE baselines SET current = 0 WHERE project = ? AND gate = ?"
                                " AND class = ? AND current = 1",
                                true},
    [SQL_BASELINE_RETIRE] = {"UPDATE baselines SET current = 0, retired_us = ?2, retired_by = ?3,"
                             " retired_reason = ?4 WHERE id = ?1 AND current = 1",
                             true},
    [SQL_BASELINE_SUPERSEDE] = {"UPDATE baselines SET superseded_by = ?2 WHERE id = ?1", true},
    [SQL_BASELINE_RESTORE] =
        {"UPDATE baselines SET current = 1, superseded_by = NULL, retired_us = 0,"
         " retired_by = NULL, retired_reason = NULL WHERE id = ? AND legacy = 0",
         true},
    [SQL_BASELINE_GET] = {"SELECT " BASELINE_COLUMNS BASELINE_FROM "WHERE b.id = ?", false},
    [SQL_BASELINE_CURRENT] = {"SELECT " BASELINE_COLUMNS BASELINE_FROM
                              "WHERE b.project = ? AND b.gate = ? AND b.class = ?"
                              " AND b.current = 1",
                              false},
    [SQL_BASELINE_RETIRED_LAST] = {"SELECT " BASELINE_COLUMNS BASELINE_FROM
                                   "WHERE b.project = ? AND b.gate = ? AND b.class = ?"
                                   " AND b.retired_us > 0"
                                   " ORDER BY b.retired_us DESC, b.id DESC LIMIT 1",
                                   false},
    [SQL_BASELINES_OF_GATE] = {"SELECT " BASELINE_COLUMNS BASELINE_FROM
                               "WHERE b.project = ? AND b.gate = ?"
                               " ORDER BY b.current DESC, b.at_us DESC, b.id DESC LIMIT ?",
                               false},
    [SQL_BASELINES_EXPECTED] = {"SELECT gate, class FROM baselines WHERE project = ?"
                                " AND current = 1 ORDER BY gate, class",
                                false},
    [SQL_BASELINE_DEFINITION] = {"SELECT definition FROM baselines WHERE id = ?", false},
    [SQL_BASELINE_LIST] = {"SELECT " BASELINE_COLUMNS BASELINE_FROM
                           "ORDER BY p.name, b.gate, b.class, b.at_us",
                           false},
    [SQL_BASELINE_USES] = {"SELECT " RUN_COLUMNS RUN_FROM
                           "WHERE r.baseline = ? ORDER BY r.id DESC LIMIT ?",
                           false},
    [SQL_BASELINE_PREDECESSOR] =
        {"SELECT id FROM baselines WHERE superseded_by = ? ORDER BY at_us DESC LIMIT 1", false},
    [SQL_BASELINE_REVIEWS] = {"SELECT at_us, actor, action, detail FROM audit_log"
                              " WHERE subject = ? AND action IN ('baseline.approve',"
                              " 'baseline.import', 'baseline.restore', 'baseline.retire')"
                              " ORDER BY id",
                              false},
    [SQL_HISTORY_GATES] = {"SELECT p.name, b.gate, b.class, count(*) FROM baselines b"
                           " JOIN projects p ON p.id = b.project WHERE b.legacy = 1 AND " VISIBLE
                           " AND (?3 IS NULL OR b.project = ?3)"
                           " GROUP BY b.project, b.gate, b.class ORDER BY p.name, b.gate, b.class",
                           false},

    [SQL_ATTEMPT_ADD] = {"INSERT INTO attempts (project, signed, gate, class, commit_id, run, "
                         "code, detail, keyid, archive,"
                         " problem, at_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         true},
    [SQL_ATTEMPTS_OF_GATE] = {"SELECT " ATTEMPT_COLUMNS
                              " FROM attempts a WHERE a.project = ? AND a.gate = ?"
                              " ORDER BY a.id DESC LIMIT ?",
                              false},
    [SQL_ATTEMPTS_UNSIGNED] = {"SELECT " ATTEMPT_COLUMNS
                               " FROM attempts a WHERE a.project = ? AND a.signed = 0"
                               " ORDER BY a.id DESC LIMIT ?",
                               false},
    [SQL_ATTEMPTS_OF_COMMIT] = {"SELECT " ATTEMPT_COLUMNS
                                " FROM attempts a WHERE a.project = ? AND a.commit_id = ?"
                                " AND a.gate IS NOT NULL AND a.class IS NOT NULL ORDER BY a.id",
                                false},
    [SQL_ATTEMPTS_BEFORE] = {"SELECT " ATTEMPT_COLUMNS
                             " FROM attempts a WHERE a.project = ? AND a.gate = ? AND a.class = ?"
                             " AND a.commit_id = ? ORDER BY a.id",
                             false},
    [SQL_ATTEMPTS_NEWEST] =
        {"SELECT " ATTEMPT_COLUMNS ", p.name FROM attempts a JOIN projects p ON p.id = a.project"
         " WHERE a.id IN (SELECT max(id) FROM attempts WHERE gate IS NOT NULL AND class IS NOT NULL"
         " AND commit_id IS NOT NULL GROUP BY project, gate, class) AND " VISIBLE
         " AND (?3 IS NULL OR a.project = ?3) ORDER BY p.name, a.gate, a.class",
         false},

    [SQL_LOG_ADD] =
        {"INSERT INTO audit_log (at_us, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
         true},
    [SQL_LOG_LIST] =
        {"SELECT at_us, actor, action, subject, detail FROM audit_log ORDER BY id DESC LIMIT ?",
         false},

    [SQL_FIGURES] = {"SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM runs), (SELECT "
                     "count(*) FROM baselines),"
                     " (SELECT count(*) FROM attempts), (SELECT count(*) FROM blobs),"
                     " (SELECT coalesce(sum(size), 0) FROM blobs)",
                     false},
    [SQL_FIGURE_VERDICTS] = {"SELECT " VERDICT_NOW " AS v, count(*) FROM runs r" WITH_SIGNERS
                             "WHERE r.verdict IS NOT NULL GROUP BY v",
                             false},
};

const struct sql_statement *sql_get(enum sql id)
{
    assert((unsigned) id < SQL_MAX && statements[id].text);
    return &statements[id];
}
