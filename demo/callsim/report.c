/* The reports: one JSON document a point, and the sweep with all of them. */
#include "callsim.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RETAINED_LIMIT_MB_PER_HOUR 500.0
#define MIN_SEPARATION_SECS 12.0

/* Load, results, latency. */

static void write_load(struct json *j, const struct settings *s, const struct point *p)
{
    json_open(j, "load", '{');
    json_real(j, "target_cps", p->target);
    json_integer(j, "ramp_secs", s->ramp_secs);
    json_integer(j, "steady_secs", s->steady_secs);
    json_integer(j, "cooldown_secs", p->measured ? s->cooldown_secs : 0);
    json_close(j, '}');
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double) part / (double) whole : 0;
}

static double achieved(const struct point *p)
{
    return round((double) p->tally.succeeded / p->elapsed_secs * 100) / 100;
}

static uint64_t all_errors(const struct point *p)
{
    uint64_t sum = 0;

    for (size_t k = 0; k < ERROR_KINDS; k++)
        sum += p->tally.errors[k];
    return sum;
}

static void write_results(struct json *j, const struct point *p)
{
    const struct tally *t = &p->tally;

    json_open(j, "results", '{');
    json_integer(j, "calls_offered", t->offered);
    json_integer(j, "calls_succeeded", t->succeeded);
    json_real(j, "achieved_cps", achieved(p));
    json_real(j, "cps_per_core", achieved(p) / physical_cores());
    json_real(j, "asr", share(t->succeeded, t->offered));
    json_real(
        j, "ner",
        share(t->offered - (all_errors(p) < t->offered ? all_errors(p) : t->offered), t->offered));
    json_real(j, "datagrams_per_call",
              share(t->datagrams, t->offered)); /* without those sent again */
    json_integer(j, "retransmissions", t->retransmissions);
    json_integer(j, "max_in_flight_observed", t->max_in_flight);
    json_text(j, "max_in_flight_limit", NULL);
    json_open(j, "errors", '{');
    json_integer(j, "invite_send_failed", t->errors[ERROR_INVITE_SEND]);
    json_open(j, "invite_send_error_counts", '{');
    json_close(j, '}');
    json_integer(j, "answer_failed", t->errors[ERROR_ANSWER]);
    json_integer(j, "bye_failed", t->errors[ERROR_BYE]);
    json_integer(j, "timeout", t->errors[ERROR_TIMEOUT]);
    json_integer(j, "harness_backpressure_rejected", 0); /* it never holds a call back */
    json_close(j, '}');
    json_close(j, '}');
}

static void write_family(struct json *j, const char *name, const struct histogram *h)
{
    json_open(j, name, '{');
    json_integer(j, "count", h->count);
    json_integer(j, "min", h->min);
    json_integer(j, "max", h->max);
    json_real(j, "mean", h->count ? (double) h->sum / (double) h->count : 0);
    json_integer(j, "p50", histogram_at(h, 0.50));
    json_integer(j, "p95", histogram_at(h, 0.95));
    json_integer(j, "p99", histogram_at(h, 0.99));
    json_integer(j, "p99_9", histogram_at(h, 0.999));
    json_close(j, '}');
}

/* Resources. */

static void write_window(struct json *j, const struct window *w)
{
    json_open(j, w->name, '{');
    json_text(j, "name", w->name);
    json_text(j, "start_phase", w->start_phase);
    json_text(j, "end_phase", w->end_phase);
    json_real(j, "requested_start_secs", w->requested_start);
    json_real(j, "requested_end_secs", w->requested_end);
    json_real(j, "requested_coverage_secs", w->requested_coverage);
    json_real(j, "first_sample_secs", w->first);
    json_real(j, "last_sample_secs", w->last);
    json_real(j, "actual_coverage_secs", w->coverage);
    json_integer(j, "sample_count", w->n);
    json_real(j, "boundary_tolerance_secs", w->tolerance);
    json_truth(j, "complete", w->complete);
    json_real(j, "rss_growth_mb_per_min", w->growth_per_minute);
    json_real_if(j, "rss_start_median_mb", w->has_ends, w->start_median);
    json_real_if(j, "rss_end_median_mb", w->has_ends, w->end_median);
    json_real_if(j, "rss_retained_growth_mb", w->has_ends, w->retained);
    json_real_if(j, "rss_start_representative_secs", w->has_ends, w->start_t);
    json_real_if(j, "rss_end_representative_secs", w->has_ends, w->end_t);
    json_real_if(j, "rss_endpoint_separation_secs", w->has_ends, w->separation);
    json_real_if(j, "rss_endpoint_growth_mb_per_hour", w->has_ends, w->growth_per_hour);
    json_real_if(j, "rss_endpoint_band_secs", w->has_ends, w->band);
    json_integer(j, "rss_start_sample_count", w->start_count);
    json_integer(j, "rss_end_sample_count", w->end_count);
    json_close(j, '}');
}

static void write_samples(struct json *j, const struct resources *r)
{
    json_open(j, "rss_samples_mb", '[');
    for (size_t i = 0; i < r->n; i++) {
        json_next(j, NULL);
        (void) fprintf(j->f, "{\"t_secs\": %.17g, \"rss_mb\": %.17g, \"cpu_pct\": %.17g}",
                       r->samples[i].t_secs, r->samples[i].rss_mb, r->samples[i].cpu_pct);
    }
    json_close(j, ']');
}

static void write_resources(struct json *j, const struct resources *r)
{
    bool after = r->has_cleanup;
    const struct window *c = &r->cleanup;

    json_open(j, "resources", '{');
    json_real(j, "baseline_rss_mb", r->baseline);
    json_real(j, "peak_rss_mb", r->peak);
    json_real(j, "avg_cpu_pct", r->avg_cpu);
    json_real(j, "rss_growth_mb_per_min", r->growth_per_minute);
    json_real(j, "rss_tail_window_requested_secs", r->tail_requested);
    json_real(j, "rss_tail_window_secs", r->tail_coverage);
    json_integer(j, "rss_tail_sample_count", r->tail_n);
    json_truth(j, "rss_tail_window_complete", r->tail_complete);
    json_real(j, "rss_tail_growth_mb_per_min", r->tail_growth_per_minute);
    json_real(j, "rss_active_growth_mb_per_min", r->active.growth_per_minute);
    json_real_if(j, "rss_cleanup_growth_mb_per_min", after, c->growth_per_minute);
    json_real_if(j, "rss_cleanup_growth_mb_per_hour", after, c->growth_per_minute * 60);
    json_real_if(j, "rss_cleanup_retained_growth_mb", after && c->has_ends, c->retained);
    json_real_if(j, "rss_cleanup_endpoint_growth_mb_per_hour", after && c->has_ends,
                 c->growth_per_hour);
    json_integer(j, "rss_sample_count", r->n);
    json_real(j, "rss_sample_interval_estimate_secs", r->interval);
    json_truth(j, "rss_samples_embedded", true);
    json_text(j, "rss_samples_path", NULL);
    json_open(j, "rss_windows", '{');
    write_window(j, &r->active);
    if (after)
        write_window(j, c);
    json_close(j, '}');
    write_samples(j, r);
    json_close(j, '}');
}

/* Diagnostics. */

static void write_conditioning(struct json *j, const struct sweep *s, const struct point *p)
{
    uint64_t offered = 0, succeeded = 0;

    json_open(j, "conditioning", '{');
    json_open(j, "points", '[');
    for (size_t i = 0; i < p->index; i++) {
        const struct tally *t = &s->points[i].tally;

        json_open(j, NULL, '{');
        json_real(j, "target_cps", s->points[i].target);
        json_integer(j, "calls_offered", t->offered);
        json_integer(j, "calls_succeeded", t->succeeded);
        json_close(j, '}');
        offered += t->offered;
        succeeded += t->succeeded;
    }
    json_close(j, ']');
    json_integer(j, "point_count", p->index);
    json_integer(j, "calls_offered", offered);
    json_integer(j, "calls_succeeded", succeeded);
    json_close(j, '}');
}

static void write_identity(struct json *j, const struct sweep *s, const struct point *p)
{
    bool m = p->measured;

    json_open(j, "measurement_identity", '{');
    json_text(j, "schema", "callsim-measurement-identity-v2");
    json_text(j, "peer_lifecycle", "shared_for_entire_sweep");
    json_open(j, "sweep_points_cps", '[');
    for (size_t i = 0; i < s->n; i++)
        json_real(j, NULL, s->settings->points[i]);
    json_close(j, ']');
    json_integer(j, "point_index", p->index);
    json_real(j, "measured_point_cps", p->target);
    write_conditioning(j, s, p);
    json_open(j, "resource_window", '{');
    json_text(j, "metric", "resources.rss_active_growth_mb_per_min");
    json_text(j, "kind", "active_load");
    json_text(j, "start_phase", "point_start");
    json_text(j, "end_phase", "calls_drained");
    json_integer(j, "sample_interval_ms", s->settings->sample_ms);
    json_close(j, '}');
    json_open(j, "post_drain_cleanup", '{');
    json_integer(j, "settle_secs", m ? s->settings->settle_secs : 0);
    json_integer(j, "requested_secs", m ? s->settings->window_secs : 0);
    json_text(j, "start_phase", m ? "post_drain_cleanup_start" : NULL);
    json_text(j, "end_phase", m ? "post_drain_cleanup_end" : NULL);
    json_text(j, "rss_metric", m ? "resources.rss_cleanup_endpoint_growth_mb_per_hour" : NULL);
    json_text(j, "rss_retained_delta_metric",
              m ? "resources.rss_cleanup_retained_growth_mb" : NULL);
    json_text(j, "rss_trend_metric", m ? "resources.rss_cleanup_growth_mb_per_hour" : NULL);
    json_real_if(j, "rss_intent_mb_per_hour", m, RETAINED_LIMIT_MB_PER_HOUR);
    json_real_if(j, "minimum_representative_separation_secs", m, MIN_SEPARATION_SECS);
    json_text(j, "rss_endpoint_estimator", m ? "median_first_last_sixth_capped_60s" : NULL);
    json_open(j, "structural_metrics", '[');
    if (m) {
        json_text(j, NULL, "diagnostics.cleanup_convergence_at_settle");
        json_text(j, NULL, "diagnostics.cleanup_convergence");
    }
    json_close(j, ']');
    json_close(j, '}');
    json_close(j, '}');
}

static void write_convergence(struct json *j, const char *key, const struct convergence *c,
                              unsigned shards)
{
    char name[32];

    json_open(j, key, '{');
    json_text(j, "schema", "callsim-cleanup-convergence-v1");
    json_integer(j, "endpoint_count", shards + 1);
    json_integer(j, "retained_total", c->total);
    json_integer(j, "missing_count", 0);
    json_truth(j, "converged", c->total == 0);
    json_integer(j, "required_zero_pointer_count_per_endpoint", 2);
    json_open(j, "endpoints", '[');
    json_open(j, NULL, '{');
    json_text(j, "name", "answerer");
    json_integer(j, "calls", c->answerer_calls);
    json_integer(j, "unanswered", c->answerer_queued);
    json_close(j, '}');
    for (unsigned i = 0; i < shards; i++) {
        (void) snprintf(name, sizeof(name), "caller%u", i);
        json_open(j, NULL, '{');
        json_text(j, "name", name);
        json_integer(j, "calls", c->shard_calls[i]);
        json_integer(j, "unanswered", 0); /* counted among its calls */
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static bool is_boundary(const struct settings *s)
{
    return !strcmp(s->mode, "boundary");
}

static void write_retention(struct json *j, const struct point *p, unsigned shards)
{
    json_open(j, "retention_snapshots", '[');
    for (size_t i = 0; i < p->n_retention; i++) {
        const struct retention *x = &p->retention[i];

        json_open(j, NULL, '{');
        json_text(j, "phase", x->phase);
        json_integer(j, "scheduled_ms", x->scheduled_ms);
        json_integer(j, "actual_ms", x->actual_ms);
        write_convergence(j, "held", &x->held, shards);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void write_boundary(struct json *j, const struct point *p, unsigned shards)
{
    json_open(j, "boundary_snapshot", '{');
    json_integer(j, "actual_ms", p->drained_ms);
    write_convergence(j, "held", &p->at_drain, shards);
    json_close(j, '}');
}

static void write_switches(struct json *j, const struct settings *s)
{
    static const char *const names[] = {
        "CALLSIM_COOLDOWN_SECS", "CALLSIM_HOLD_MS",      "CALLSIM_MAX_IN_FLIGHT",
        "CALLSIM_OUTPUT_ROOT",   "CALLSIM_RAMP_SECS",    "CALLSIM_RUN_MODE",
        "CALLSIM_SAMPLE_MS",     "CALLSIM_SETTLE_SECS",  "CALLSIM_SHARDS",
        "CALLSIM_STEADY_SECS",   "CALLSIM_SWEEP",        "CALLSIM_TAIL_SECS",
        "CALLSIM_TARGET_CPS",    "CALLSIM_TIMEOUT_SECS", "CALLSIM_WINDOW_SECS",
    };

    json_open(j, "runtime_switches", '{');
    json_open(j, "environment", '{');
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        json_text(j, names[i], getenv(names[i]));
    json_close(j, '}');
    json_open(j, "effective", '{');
    json_truth(j, "call_diagnostics", false);
    json_truth(j, "retention_snapshot", !strcmp(s->mode, "memory"));
    json_truth(j, "boundary_snapshot", is_boundary(s));
    json_close(j, '}');
    json_close(j, '}');
}

static void write_shard(struct json *j, const struct sweep *s, unsigned i)
{
    char from[64];

    (void) snprintf(from, sizeof(from), "call:caller%u@127.0.0.1:%u", i, s->shard_ports[i]);
    json_open(j, NULL, '{');
    json_text(j, "from", from);
    json_open(j, "config", '{');
    json_integer(j, "shard", i);
    json_integer(j, "hold_ms", s->settings->hold_ms);
    json_integer(j, "first_resend_ms", RESEND_MS);
    json_integer(j, "call_timeout_secs", s->settings->timeout_secs);
    json_integer(j, "requested_receive_buffer", SOCKET_BUFFER);
    json_close(j, '}');
    json_close(j, '}');
}

static void write_config(struct json *j, const struct sweep *s)
{
    const struct settings *set = s->settings;

    json_open(j, "effective_config", '{');
    json_text(j, "profile", "loopback");
    json_text(j, "report_scenario", SCENARIO);
    json_text(j, "client_profile", "endpoint");
    json_integer(j, "caller_shards", set->shards);
    json_text(j, "max_in_flight_override", NULL);
    json_text(j, "recipe_file", NULL);
    json_open(j, "recipe", '{');
    json_text(j, "source", "bundled");
    json_text(j, "sha256", RECIPE_SHA256);
    json_text(j, "requested_path", NULL);
    json_text(j, "resolved_path", NULL);
    json_close(j, '}');
    json_open(j, "answerer", '{');
    json_integer(j, "port", s->answerer_port);
    json_integer(j, "receivers", 1);
    json_integer(j, "workers", 1);
    json_integer(j, "call_buckets", CALL_BUCKETS);
    json_integer(j, "watch_tick_ms", WATCH_TICK_MS);
    json_integer(j, "requested_receive_buffer", SOCKET_BUFFER);
    json_close(j, '}');
    json_open(j, "caller_shard_configs", '[');
    for (unsigned i = 0; i < set->shards; i++)
        write_shard(j, s, i);
    json_close(j, ']');
    write_switches(j, set);
    json_close(j, '}');
}

static void write_diagnostics(struct json *j, const struct sweep *s, const struct point *p)
{
    json_open(j, "diagnostics", '{');
    write_identity(j, s, p);
    json_open(j, "phase_markers", '[');
    for (size_t i = 0; i < p->n_markers; i++) {
        json_open(j, NULL, '{');
        json_text(j, "phase", p->markers[i].phase);
        json_text(j, "kind", p->markers[i].kind);
        json_integer(j, "elapsed_ms", p->markers[i].elapsed_ms);
        json_close(j, '}');
    }
    json_close(j, ']');
    if (p->measured) {
        write_convergence(j, "cleanup_convergence_at_settle", &p->at_settle, s->settings->shards);
        write_convergence(j, "cleanup_convergence", &p->at_end, s->settings->shards);
    }
    if (p->n_retention)
        write_retention(j, p, s->settings->shards);
    if (is_boundary(s->settings))
        write_boundary(j, p, s->settings->shards);
    write_config(j, s);
    json_close(j, '}');
}

static void write_point(struct json *j, const char *key, const struct sweep *s,
                        const struct point *p)
{
    json_open(j, key, '{');
    json_text(j, "scenario", SCENARIO);
    json_integer(j, "duration_secs", 0);
    write_environment(j);
    write_load(j, s->settings, p);
    write_results(j, p);
    json_open(j, "latency_ns", '{');
    write_family(j, "setup_latency", &p->tally.setup);
    write_family(j, "full_cycle", &p->tally.cycle);
    json_close(j, '}');
    write_resources(j, &p->resources);
    write_diagnostics(j, s, p);
    json_close(j, '}');
}

/* Files. */

static struct json open_file(const char *root, const char *name)
{
    char path[PATH_MAX];
    struct json j = JSON_ON(NULL);

    (void) snprintf(path, sizeof(path), "%s/" SCENARIO, root);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        die(path);
    (void) snprintf(path, sizeof(path), "%s/" SCENARIO "/%s", root, name);
    j.f = fopen(path, "we");
    if (!j.f)
        die(path);
    return j;
}

static void close_file(struct json *j)
{
    (void) fputc('\n', j->f);
    if (fflush(j->f) != 0 || ferror(j->f) || fclose(j->f) != 0)
        die("report");
}

void report_point(const struct sweep *s, const struct point *p)
{
    char name[32];
    struct json j;

    (void) snprintf(name, sizeof(name), "%u.json", p->target);
    j = open_file(s->settings->output_root, name);
    write_point(&j, NULL, s, p);
    close_file(&j);
}

/* The first point that does not keep up, and why; the last point and NULL when all do. */
static const struct point *knee(const struct sweep *s, const char **reason)
{
    uint64_t first = histogram_at(&s->points[0].tally.setup, 0.99);

    for (size_t i = 0; i < s->n; i++) {
        const struct tally *t = &s->points[i].tally;

        *reason = share(t->succeeded, t->offered) < 0.95      ? "ratio<0.95"
                  : histogram_at(&t->setup, 0.99) > 5 * first ? "setup_p99>5x_first_point"
                  : share(all_errors(&s->points[i]), t->offered) > 0.005 ? "errors>0.5%"
                                                                         : NULL;
        if (*reason)
            return &s->points[i];
    }
    return &s->points[s->n - 1];
}

void report_sweep(const struct sweep *s)
{
    struct json j = open_file(s->settings->output_root, "_sweep.json");
    const char *reason = NULL;
    const struct point *last = knee(s, &reason);

    json_open(&j, NULL, '{');
    json_text(&j, "scenario", SCENARIO);
    write_environment(&j);
    json_open(&j, "headline", '{');
    json_real(&j, "operating_point", reason ? last->target * 0.8 : last->target);
    json_real(&j, "achieved", achieved(last));
    json_text(&j, "ratio_label", "ASR");
    json_real(&j, "ratio", share(last->tally.succeeded, last->tally.offered));
    json_integer(&j, "setup_p99_ns", histogram_at(&last->tally.setup, 0.99));
    json_text(&j, "framing", reason ? "sustained_at_80pct_of_knee" : "max_point_no_knee_detected");
    json_close(&j, '}');
    json_open(&j, "points", '[');
    for (size_t i = 0; i < s->n; i++)
        write_point(&j, NULL, s, &s->points[i]);
    json_close(&j, ']');
    json_open(&j, "sweep_summary", '{');
    json_open(&j, "points", '[');
    for (size_t i = 0; i < s->n; i++)
        json_real(&j, NULL, s->points[i].target);
    json_close(&j, ']');
    json_text(&j, "point_label", "calls/s target");
    json_real_if(&j, "knee_point", reason != NULL, last->target);
    json_text(&j, "knee_reason", reason);
    json_close(&j, '}');
    json_close(&j, '}');
    close_file(&j);
}
