-- A baseline may be withdrawn without a successor: its gate is no longer expected of a commit.
ALTER TABLE baselines ADD COLUMN retired_us INTEGER NOT NULL DEFAULT 0; -- 0: it was not
ALTER TABLE baselines ADD COLUMN retired_by TEXT;
ALTER TABLE baselines ADD COLUMN retired_reason TEXT;
