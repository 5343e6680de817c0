-- The store: enduring facts first, then what was computed from evidence. Times are microseconds since
-- 1970 UTC. Digests are 32 bytes.

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('generation', 1);

CREATE TABLE projects (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    private INTEGER NOT NULL CHECK (private IN (0, 1)),
    tickets TEXT NOT NULL DEFAULT 'optional' CHECK (tickets IN ('optional', 'required')),
    deadline_s INTEGER NOT NULL DEFAULT 86400 CHECK (deadline_s > 0),
    created_us INTEGER NOT NULL
) STRICT;

CREATE TABLE runners (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    class TEXT NOT NULL,
    key_pem TEXT NOT NULL,
    keyid TEXT NOT NULL UNIQUE,
    not_before_us INTEGER NOT NULL DEFAULT 0,
    not_after_us INTEGER NOT NULL DEFAULT 0,
    revoked_since_us INTEGER NOT NULL DEFAULT 0,
    revoked_reason TEXT,
    created_us INTEGER NOT NULL,
    last_seen_us INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE runner_projects (
    runner INTEGER NOT NULL REFERENCES runners (id),
    project INTEGER NOT NULL REFERENCES projects (id),
    PRIMARY KEY (runner, project)
) STRICT, WITHOUT ROWID;

CREATE INDEX runner_projects_project ON runner_projects (project);

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    scopes INTEGER NOT NULL CHECK (scopes > 0),
    project INTEGER REFERENCES projects (id), -- null: every project
    created_us INTEGER NOT NULL,
    revoked_us INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Which project holds which object; an object may be held by several.
CREATE TABLE blobs (
    project INTEGER NOT NULL REFERENCES projects (id),
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    size INTEGER NOT NULL CHECK (size >= 0),
    received_us INTEGER NOT NULL,
    PRIMARY KEY (project, sha256)
) STRICT, WITHOUT ROWID;

CREATE INDEX blobs_sha256 ON blobs (sha256);

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    project INTEGER NOT NULL REFERENCES projects (id),
    gate TEXT NOT NULL,
    class TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('clean', 'cpu', 'timing', 'memory', 'boundary')),
    status TEXT NOT NULL CHECK (status IN ('BUILD_ONLY', 'PASS', 'FAIL')),
    commit_id TEXT NOT NULL,
    dirty INTEGER NOT NULL CHECK (dirty IN (0, 1)),
    fingerprint TEXT NOT NULL,
    executable BLOB CHECK (length(executable) = 32),
    experiment BLOB NOT NULL CHECK (length(experiment) = 32),
    policy BLOB NOT NULL CHECK (length(policy) = 32),
    archive BLOB NOT NULL CHECK (length(archive) = 32),
    archive_size INTEGER NOT NULL,
    keyid TEXT NOT NULL,
    runner INTEGER NOT NULL REFERENCES runners (id),
    started_us INTEGER NOT NULL,
    finished_us INTEGER NOT NULL,
    received_us INTEGER NOT NULL,
    verdict TEXT CHECK (verdict IN ('OK', 'REGRESSION', 'NON_COMPARABLE', 'FAIL')), -- null: diagnostic, build-only
    description TEXT NOT NULL,
    baseline TEXT, -- what it was judged against
    FOREIGN KEY (project, archive) REFERENCES blobs (project, sha256)
) STRICT;

CREATE INDEX runs_gate ON runs (project, gate, class, id);
CREATE INDEX runs_commit ON runs (project, commit_id, id);
CREATE INDEX runs_baseline ON runs (baseline, id);
CREATE INDEX runs_archive ON runs (project, archive);
CREATE INDEX runs_runner ON runs (runner);

-- Bytes as received or as computed here, never written again.
CREATE TABLE documents (
    run INTEGER NOT NULL REFERENCES runs (id),
    kind TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (run, kind)
) STRICT;

CREATE TABLE members (
    run INTEGER NOT NULL REFERENCES runs (id),
    path TEXT NOT NULL,
    role TEXT NOT NULL,
    position INTEGER NOT NULL,
    size INTEGER NOT NULL,
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    PRIMARY KEY (run, path)
) STRICT, WITHOUT ROWID;

-- Values of the judging policy's metrics in the run's own reports, for history lines.
CREATE TABLE metrics (
    run INTEGER NOT NULL REFERENCES runs (id),
    path TEXT NOT NULL,
    metric TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (run, path, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE baselines (
    id TEXT PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    gate TEXT NOT NULL,
    class TEXT NOT NULL,
    run INTEGER REFERENCES runs (id), -- null: imported history
    commit_id TEXT NOT NULL,
    legacy INTEGER NOT NULL CHECK (legacy IN (0, 1)),
    archive BLOB NOT NULL CHECK (length(archive) = 32),
    manifest BLOB NOT NULL CHECK (length(manifest) = 32),
    definition BLOB NOT NULL, -- canonical bytes
    experiment BLOB NOT NULL CHECK (length(experiment) = 32),
    policy BLOB NOT NULL CHECK (length(policy) = 32),
    reviewer TEXT NOT NULL CHECK (length(reviewer) > 0),
    reason TEXT NOT NULL CHECK (length(reason) > 0),
    at_us INTEGER NOT NULL,
    current INTEGER NOT NULL CHECK (current IN (0, 1)),
    superseded_by TEXT REFERENCES baselines (id),
    CHECK (legacy = 0 OR current = 0), -- history never judges
    CHECK (legacy = (run IS NULL)),
    FOREIGN KEY (project, archive) REFERENCES blobs (project, sha256)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX baselines_current ON baselines (project, gate, class) WHERE current = 1;
CREATE INDEX baselines_gate ON baselines (project, gate, class, at_us);
CREATE INDEX baselines_archive ON baselines (project, archive);
CREATE INDEX baselines_run ON baselines (run);
CREATE INDEX baselines_superseded ON baselines (superseded_by);

-- Uploads that were refused. Without a valid signature nothing but the project is known.
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    signed INTEGER NOT NULL CHECK (signed IN (0, 1)),
    gate TEXT,
    class TEXT,
    commit_id TEXT,
    run TEXT,
    code TEXT NOT NULL,
    detail TEXT NOT NULL,
    keyid TEXT,
    archive BLOB CHECK (length(archive) = 32), -- null: the statement names none
    problem BLOB NOT NULL,
    at_us INTEGER NOT NULL,
    CHECK (signed = 1 OR (gate IS NULL AND class IS NULL AND commit_id IS NULL AND run IS NULL))
) STRICT;

CREATE INDEX attempts_gate ON attempts (project, gate, class, id);
CREATE INDEX attempts_commit ON attempts (project, commit_id, id);

CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;

-- Written once.
CREATE TRIGGER audit_log_update BEFORE UPDATE ON audit_log BEGIN SELECT raise(ABORT, 'audit_log is append-only'); END;
CREATE TRIGGER audit_log_delete BEFORE DELETE ON audit_log BEGIN SELECT raise(ABORT, 'audit_log is append-only'); END;
CREATE TRIGGER attempts_update BEFORE UPDATE ON attempts BEGIN SELECT raise(ABORT, 'attempts are append-only'); END;
CREATE TRIGGER attempts_delete BEFORE DELETE ON attempts BEGIN SELECT raise(ABORT, 'attempts are append-only'); END;
CREATE TRIGGER runs_update BEFORE UPDATE ON runs BEGIN SELECT raise(ABORT, 'runs are written once'); END;
CREATE TRIGGER runs_delete BEFORE DELETE ON runs BEGIN SELECT raise(ABORT, 'runs are written once'); END;
CREATE TRIGGER documents_update BEFORE UPDATE ON documents BEGIN SELECT raise(ABORT, 'documents are written once'); END;
CREATE TRIGGER documents_delete BEFORE DELETE ON documents BEGIN SELECT raise(ABORT, 'documents are written once'); END;
CREATE TRIGGER baselines_delete BEFORE DELETE ON baselines BEGIN SELECT raise(ABORT, 'baselines are kept'); END;
CREATE TRIGGER baselines_update BEFORE UPDATE ON baselines
WHEN old.id <> new.id OR old.project <> new.project OR old.gate <> new.gate OR old.class <> new.class OR old.archive <> new.archive
  OR old.definition <> new.definition OR old.reviewer <> new.reviewer OR old.reason <> new.reason OR old.at_us <> new.at_us
BEGIN SELECT raise(ABORT, 'baselines are immutable'); END;
