#include "experiment/leak.h"

#include <math.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/num.h"
#include "experiment/estimator.h"
#include "experiment/samples.h"
#include "experiment/stats.h"

#define LEAK_Z 1.6448536269514722 /* one-sided 95 % */

enum { BLOCK_MS = 60000 };

/* Medians of the one-minute blocks. */
struct blocks {
    double *t;
    double *y;
    size_t n;
};

struct numbers {
    bool has_series; /* endpoint, theil_sen and ols were tried */
    struct endpoint endpoint;
    struct stats_slope theil_sen;
    double ols;
    size_t blocks;
    bool has_blocks; /* the following */
    double rate;
    double sigma;
    double r1;
    double r1_corrected;
    double se;
};

const char *leak_verdict_name(enum leak_verdict verdict)
{
    switch (verdict) {
    case LEAK_PASS:
        return "PASS";
    case LEAK_FAIL:
        return "FAIL";
    case LEAK_INCONCLUSIVE:
        return "INCONCLUSIVE";
    case LEAK_INVALID:
        return "INVALID";
    }
    return "INVALID";
}

bool leak_window_parse(const char *text, struct leak_window *out)
{
    const char *dots = strstr(text, "..");
    struct leak_window w = {0};

    if (!dots || !num_parse_i64(text, (size_t) (dots - text), &w.from_ms) ||
        !num_parse_i64(dots + 2, strlen(dots + 2), &w.to_ms) || w.from_ms > w.to_ms)
        return false;
    *out = w;
    return true;
}

static void cut(struct samples *s, const struct leak_window *window)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (s->t_ms[i] < window->from_ms || s->t_ms[i] > window->to_ms)
            continue;
        s->t_ms[kept] = s->t_ms[i];
        s->rss_kib[kept] = s->rss_kib[i];
        s->t_secs[kept] = s->t_secs[i];
        s->value[kept++] = s->value[i];
    }
    s->n = kept;
}

static bool is_sorted(const struct samples *s)
{
    for (size_t i = 1; i < s->n; i++)
        if (s->t_ms[i] < s->t_ms[i - 1])
            return false;
    return true;
}

static int compare_integer(const void *a, const void *b)
{
    int64_t x = *(const int64_t *) a;
    int64_t y = *(const int64_t *) b;

    return (x > y) - (x < y);
}

/* The lower middle of the gaps between samples: a 599.5 s span sampled every 0.5 s is ten minutes.
 */
static int lower_middle_gap(const struct samples *s, int64_t *out, struct err *e)
{
    AUTO_FREE int64_t *gaps = NULL;

    *out = 0;
    if (s->n < 2)
        return 0;
    gaps = calloc(s->n - 1, sizeof *gaps);
    if (!gaps)
        return err_memory(e, "leak.memory");
    for (size_t i = 0; i + 1 < s->n; i++)
        gaps[i] = s->t_ms[i + 1] - s->t_ms[i];
    qsort(gaps, s->n - 1, sizeof *gaps, compare_integer);
    *out = gaps[(s->n - 2) / 2];
    return 0;
}

static int make_blocks(const struct samples *s, struct blocks *b, struct err *e)
{
    int64_t gap = 0;
    int64_t last_block = 0;
    size_t from = 0;

    if (lower_middle_gap(s, &gap, e) < 0)
        return -1;
    last_block = (s->t_ms[s->n - 1] - s->t_ms[0] + gap) / BLOCK_MS;
    while (from < s->n) {
        int64_t block = (s->t_ms[from] - s->t_ms[0]) / BLOCK_MS;
        size_t to = from;

        while (to < s->n && (s->t_ms[to] - s->t_ms[0]) / BLOCK_MS == block)
            to++;
        if (block < last_block && to - from >= LEAK_MIN_BLOCK_SAMPLES) {
            if (stats_median(s->t_secs + from, to - from, &b->t[b->n], e) < 0 ||
                stats_median(s->value + from, to - from, &b->y[b->n], e) < 0)
                return -1;
            b->n++;
        }
        from = to;
    }
    return 0;
}

/* Lag-1 autocorrelation of v about its mean; 0 for a constant. */
static double autocorrelation(const double *v, size_t n)
{
    double mean = 0;
    double squares = 0;
    double products = 0;

    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double) n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    for (size_t i = 0; i + 1 < n; i++)
        products += (v[i] - mean) * (v[i + 1] - mean);
    return squares > 0 ? products / squares : 0;
}

/* Slope of the blocks, noise about it and its standard error, widened for correlated noise. */
static int judge_blocks(const struct blocks *b, struct numbers *out, struct err *e)
{
    struct stats_slope slope = {0};
    AUTO_FREE double *residuals = calloc(b->n, sizeof *residuals);
    double k = (double) b->n;
    double middle = 0;
    double squares = 0;
    double mean_t = 0;
    double spread_t = 0;

    if (!residuals)
        return err_memory(e, "leak.memory");
    if (stats_theil_sen(b->t, b->y, b->n, &slope, NULL, e) < 0)
        return -1;
    out->rate = slope.slope * SECONDS_PER_HOUR;
    for (size_t i = 0; i < b->n; i++)
        residuals[i] = b->y[i] - out->rate / SECONDS_PER_HOUR * b->t[i];
    if (stats_median(residuals, b->n, &middle, e) < 0)
        return -1;
    for (size_t i = 0; i < b->n; i++) {
        residuals[i] -= middle;
        squares += residuals[i] * residuals[i];
        mean_t += b->t[i] / k;
    }
    for (size_t i = 0; i < b->n; i++)
        spread_t += (b->t[i] - mean_t) * (b->t[i] - mean_t);
    out->sigma = sqrt(squares / (k - 2));
    out->r1 = autocorrelation(residuals, b->n);
    out->r1_corrected = fmin(0.8, fmax(0.0, out->r1 + (1 + 3 * fmax(out->r1, 0.0)) / k));
    out->se = out->sigma * SECONDS_PER_HOUR / sqrt(spread_t) *
              sqrt((1 + out->r1_corrected) / (1 - out->r1_corrected));
    out->has_blocks = true;
    return 0;
}

static int measure(const struct samples *s, struct numbers *out, struct err *e)
{
    AUTO_FREE double *t = calloc(s->n, sizeof *t);
    AUTO_FREE double *y = calloc(s->n, sizeof *y);
    struct blocks b = {.t = t, .y = y};

    if (!t || !y)
        return err_memory(e, "leak.memory");
    out->has_series = true;
    if (endpoint_estimate(s->t_secs, s->value, s->n, &endpoint_rule_default, &out->endpoint, e) <
            0 ||
        stats_theil_sen(s->t_secs, s->value, s->n, &out->theil_sen, NULL, e) < 0)
        return -1;
    out->ols = stats_least_squares(s->t_secs, s->value, s->n).slope * SECONDS_PER_HOUR;
    if (make_blocks(s, &b, e) < 0)
        return -1;
    out->blocks = b.n;
    if (b.n >= LEAK_MIN_BLOCKS && out->endpoint.state == ENDPOINT_OK)
        return judge_blocks(&b, out, e);
    return 0;
}

static enum leak_verdict decide(const struct numbers *v, double limit, const char **out_reason)
{
    double ends = v->endpoint.rate_per_hour;
    double half = LEAK_Z * v->se;

    *out_reason = NULL;
    if (!v->has_blocks) {
        *out_reason = "window_too_short";
        return LEAK_INCONCLUSIVE;
    }
    if (v->rate > limit && ends > limit && v->rate - half > 0)
        return LEAK_FAIL;
    if (v->rate + half <= limit && ends <= limit)
        return LEAK_PASS;
    if ((v->rate > limit) != (ends > limit))
        *out_reason = "estimators_disagree";
    else
        *out_reason = half > limit / 2 ? "underpowered" : "near_limit";
    return LEAK_INCONCLUSIVE;
}

static void add_number(struct json_doc *d, cJSON *parent, const char *key, bool known, double v)
{
    if (known)
        json_add_double(d, parent, key, v);
    else
        json_add_null(d, parent, key);
}

static void add_gate(struct json_doc *d, cJSON *parent, const char *key, bool known, double v,
                     double limit)
{
    json_add_string(d, parent, key, !known ? NULL : v <= limit ? "PASS" : "FAIL");
}

static void add_numbers(struct json_doc *d, const struct numbers *v, double limit)
{
    bool ends = v->has_series && v->endpoint.state == ENDPOINT_OK;
    bool slope = v->has_series && v->theil_sen.defined;
    double theil_sen = v->theil_sen.slope * SECONDS_PER_HOUR;
    cJSON *estimators = json_add_object(d, NULL, "estimators");
    cJSON *gates = NULL;

    add_number(d, estimators, "endpoint_mb_per_hour", ends, v->endpoint.rate_per_hour);
    add_number(d, estimators, "theil_sen_mb_per_hour", slope, theil_sen);
    add_number(d, estimators, "ols_mb_per_hour", slope, v->ols);
    add_number(d, estimators, "block_theil_sen_mb_per_hour", v->has_blocks, v->rate);
    json_add_int(d, NULL, "blocks", (int64_t) v->blocks);
    add_number(d, NULL, "sigma_block", v->has_blocks, v->sigma);
    add_number(d, NULL, "r1", v->has_blocks, v->r1);
    add_number(d, NULL, "r1_corrected", v->has_blocks, v->r1_corrected);
    add_number(d, NULL, "se", v->has_blocks, v->se);
    add_number(d, NULL, "lo", v->has_blocks, v->rate - LEAK_Z * v->se);
    add_number(d, NULL, "hi", v->has_blocks, v->rate + LEAK_Z * v->se);
    gates = json_add_object(d, NULL, "gates");
    add_gate(d, gates, "endpoint", ends, v->endpoint.rate_per_hour, limit);
    add_gate(d, gates, "theil_sen", slope, theil_sen, limit);
}

static int write_document(const struct numbers *v, const char *reason, double limit, size_t n,
                          const struct leak_window *window, struct leak *out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {0};

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-leak/1");
    json_add_string(&d, NULL, "verdict", leak_verdict_name(out->verdict));
    json_add_string(&d, NULL, "reason", reason);
    json_add_double(&d, NULL, "limit_mb_per_hour", limit);
    if (window) {
        cJSON *w = json_add_object(&d, NULL, "window_ms");

        json_add_int(&d, w, "from", window->from_ms);
        json_add_int(&d, w, "to", window->to_ms);
    } else {
        json_add_null(&d, NULL, "window_ms");
    }
    json_add_int(&d, NULL, "samples", (int64_t) n);
    add_numbers(&d, v, limit);
    out->document = json_doc_take(&d, e);
    return out->document ? 0 : -1;
}

int leak_evaluate(const char *csv, size_t len, double limit_mb_per_hour,
                  const struct leak_window *window, struct leak *out, struct err *e)
{
    AUTO_SAMPLES struct samples s = {0};
    struct leak made = {.verdict = LEAK_INVALID};
    struct numbers v = {0};
    const char *reason = NULL;

    if (!isfinite(limit_mb_per_hour) || limit_mb_per_hour < 0)
        return err_set(e, ERR_USAGE, "leak.limit",
                       "the limit must be a number of MB per hour, 0 or more");
    if (samples_read_csv(csv, len, &s, &reason, e) < 0)
        return -1;
    if (reason[0] == '\0' && !is_sorted(&s))
        reason = "not_sorted";
    if (reason[0] == '\0') {
        if (window)
            cut(&s, window);
        if (s.n > 0 && measure(&s, &v, e) < 0)
            return -1;
        made.verdict = decide(&v, limit_mb_per_hour, &reason);
        if (s.n == 0)
            reason = "no_samples";
    }
    if (write_document(&v, reason, limit_mb_per_hour, s.n, window, &made, e) < 0)
        return -1;
    *out = made;
    return 0;
}

void leak_fini(struct leak *l)
{
    if (!l)
        return;
    json_free(l->document);
    *l = (struct leak){0};
}
