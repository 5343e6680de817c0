/* The endpoint estimator's reported numbers among themselves. */
#include "experiment/acceptance_check.h"

#include <math.h>

#include "base/json_in.h"
#include "experiment/estimator.h"
#include "experiment/pointer.h"
#include "experiment/stats.h"

enum part {
    START_MEDIAN,
    END_MEDIAN,
    RETAINED,
    FIRST,
    LAST,
    COVERAGE,
    BAND,
    START_TIME,
    END_TIME,
    SEPARATION,
    RATE,
    PARTS
};

static const char *const part_keys[PARTS] = {
    [START_MEDIAN] = "start_median",
    [END_MEDIAN] = "end_median",
    [RETAINED] = "retained",
    [FIRST] = "first_sample",
    [LAST] = "last_sample",
    [COVERAGE] = "coverage",
    [BAND] = "band",
    [START_TIME] = "start_time",
    [END_TIME] = "end_time",
    [SEPARATION] = "separation",
    [RATE] = "rate_per_hour",
};

struct tolerance {
    double rel;
    double abs;
    double time;
};

static bool read_number(struct checks *c, const char *path, double *out, struct problems *p)
{
    const cJSON *j = pointer_get(c->report, path);

    if (!cJSON_IsNumber(j) || !isfinite(j->valuedouble)) {
        problems_add(p, "%s is %s", path, j ? "not a number" : "absent");
        return false;
    }
    *out = j->valuedouble;
    return true;
}

static void check_relations(const double v[PARTS], const struct tolerance *tol, struct problems *p)
{
    if (!stats_close(v[RETAINED], v[END_MEDIAN] - v[START_MEDIAN], tol->rel, tol->abs))
        problems_add(p, "retained is %.17g, the medians differ by %.17g", v[RETAINED],
                     v[END_MEDIAN] - v[START_MEDIAN]);
    if (!(v[SEPARATION] > 0) ||
        !stats_close(v[SEPARATION], v[END_TIME] - v[START_TIME], tol->rel, tol->abs))
        problems_add(p, "separation is %.17g, the representative times differ by %.17g",
                     v[SEPARATION], v[END_TIME] - v[START_TIME]);
    if (!(fabs(v[COVERAGE] - (v[LAST] - v[FIRST])) <= tol->time))
        problems_add(p, "coverage is %.17g, first and last sample differ by %.17g", v[COVERAGE],
                     v[LAST] - v[FIRST]);
    if (!(v[START_TIME] >= v[FIRST] - tol->time && v[START_TIME] <= v[FIRST] + v[BAND] + tol->time))
        problems_add(p, "the start time %.17g lies outside the first band", v[START_TIME]);
    if (!(v[END_TIME] >= v[LAST] - v[BAND] - tol->time && v[END_TIME] <= v[LAST] + tol->time))
        problems_add(p, "the end time %.17g lies outside the last band", v[END_TIME]);
    if (!(v[SEPARATION] > 0) ||
        !stats_close(v[RATE], v[RETAINED] * SECONDS_PER_HOUR / v[SEPARATION], tol->rel, tol->abs))
        problems_add(p, "the rate is %.17g, not retained · 3600 / separation", v[RATE]);
}

static void check_copies(struct checks *c, const cJSON *paths, double expected,
                         const struct tolerance *tol, struct problems *p)
{
    const cJSON *path = NULL;

    cJSON_ArrayForEach(path, paths) {
        double copy = 0;

        if (read_number(c, path->valuestring, &copy, p) &&
            !stats_close(copy, expected, tol->rel, tol->abs))
            problems_add(p, "%s is %.17g, the window says %.17g", path->valuestring, copy,
                         expected);
    }
}

int checks_consistent(struct checks *c, const cJSON *accept, struct err *e)
{
    const cJSON *entry = NULL;

    (void) e;
    cJSON_ArrayForEach(entry, json_get(accept, "consistent")) {
        struct tolerance tol = {.rel = check_number(entry, "rel_tolerance", 1e-9),
                                .abs = check_number(entry, "abs_tolerance", 1e-8),
                                .time = check_number(entry, "time_tolerance_secs", 1e-6)};
        double v[PARTS] = {0};
        size_t known = 0;
        AUTO_PROBLEMS struct problems p;

        problems_init(&p);
        for (size_t i = 0; i < PARTS; i++)
            known += read_number(c, check_text(entry, part_keys[i]), &v[i], &p);
        if (known == PARTS) {
            check_relations(v, &tol, &p);
            check_copies(c, json_get(entry, "also_retained"), v[RETAINED], &tol, &p);
            check_copies(c, json_get(entry, "also_rate_per_hour"), v[RATE], &tol, &p);
        }
        checks_add_problems(c, check_name(entry, check_text(entry, "rate_per_hour")), "consistent",
                            NULL, &p);
    }
    return 0;
}
