/*
 * resources: what the runner derives from its own samples and phase markers, and what the server
 * derives again from the same bytes: the `resources` section of a report whose definition says
 * `sampling: {into: /resources}`. Runner and server call the same function, so a report that claims
 * other numbers than its samples is caught (replay).
 *
 * Section: {source: "cleanrun-runner", sample_count, sample_interval_ms, baseline_rss_mb,
 * peak_rss_mb, avg_cpu_pct, windows: {<name>: {start_phase, end_phase, estimator,
 * requested_start_secs, requested_end_secs, requested_coverage_secs, actual_coverage_secs,
 * sample_count, complete, start_median_mb, end_median_mb, retained_mb, separation_secs,
 * endpoint_mb_per_hour, theil_sen_mb_per_hour, ols_mb_per_hour, growth_mb_per_hour (= the
 * definition's estimator)}}} A window that cannot be computed has complete=false, null numbers and
 * a `reason`. With `sampling.embed` also samples: {t_ms: [], rss_kib: [], cpu_pct: [] (when
 * recorded)}.
 *
 * Markers and samples have one clock: elapsed_ms and t_ms count from the same moment. The first
 * marker of a phase whose kind does not begin with "planned" counts; a phase seen twice makes its
 * windows incomplete.
 */
#pragma once

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/definition.h"
#include "experiment/samples.h"

/* markers: JSON array [{phase, kind, elapsed_ms}]. New tree, caller frees. */
int resources_derive(const struct definition *d, const struct samples *s, const cJSON *markers,
                     cJSON **out, struct err *e) MUST_CHECK;
/* The same for samples and markers of a report: a window's boundaries are the ones the report
 * states, where the policy binds those to the window's phases (accept.bindings) and recomputes the
 * window. A marker is cut to milliseconds, so the window between two may lack a sample. report:
 * NULL for none. */
int resources_derive_stated(const struct definition *d, const struct samples *s,
                            const cJSON *markers, const cJSON *report, cJSON **out,
                            struct err *e) MUST_CHECK;

/* The embedded `samples` of a section back to a series; *out_problem as samples_from_json. */
int resources_embedded_samples(const cJSON *section, struct samples *out, const char **out_problem,
                               struct err *e) MUST_CHECK;
