-- Objects that were found to be no longer what their name says. A row is removed when the object is found sound again.
CREATE TABLE damage (
    sha256 BLOB PRIMARY KEY CHECK (length(sha256) = 32),
    found_us INTEGER NOT NULL,
    what TEXT NOT NULL -- what was found instead
) STRICT, WITHOUT ROWID;
