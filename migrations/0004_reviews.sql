-- The reviews of a baseline are read from the log by its id.
CREATE INDEX audit_log_subject ON audit_log (subject, id);
