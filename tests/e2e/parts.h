/* parts: the tests of the call-setup experiment that stand in files of their own; the state is the
 * fixture. */
#pragma once

/* modes.c: diagnostic modes and build-only, with the experiment's own program. */
void cpu_mode_samples_stacks(void **state);
void timing_mode_records_switches(void **state);
void memory_mode_takes_retention_snapshots_at_four_phases(void **state);
void boundary_mode_takes_a_snapshot_after_each_point(void **state);
void build_only_is_never_a_result(void **state);

/* served.c: the same evidence at a real server. */
void server_judges_as_the_runner_did(void **state);
void server_pages_say_what_the_documents_say(void **state);
void server_refusal_marks_the_missing_element(void **state);
void server_takes_no_diagnostic_run_as_evidence(void **state);
