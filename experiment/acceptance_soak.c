/* The policy's soak rule as a check. */
#include "experiment/acceptance_check.h"

#include <math.h>
#include <stdio.h>

#include "base/json_in.h"
#include "base/text.h"
#include "experiment/phases.h"
#include "experiment/pointer.h"
#include "experiment/soak.h"
#include "experiment/stats.h"

#define REL_TOLERANCE 1e-9
#define ABS_TOLERANCE 1e-8

enum { ERROR_SIZE = 200, PATH_SHOWN = 80 };

/* End of the active phase in seconds; false when the report does not tell. */
static bool find_active_end(const struct checks *c, const cJSON *accept, const cJSON *rules,
                            double *out)
{
    const char *phase = check_text(rules, "active_end");
    const cJSON *secs = pointer_get(c->report, check_text(rules, "active_secs"));
    struct phase_found found = {0};

    if (phase[0] == '\0') {
        if (!cJSON_IsNumber(secs) || !isfinite(secs->valuedouble))
            return false;
        *out = secs->valuedouble;
        return true;
    }
    found = phases_find_actual(check_markers(c, accept), phase);
    *out = found.elapsed_ms / 1000.0;
    return found.count == 1 && found.valid;
}

static int load(const struct checks *c, const cJSON *rules, struct samples *out,
                const char **out_problem, struct err *e)
{
    const cJSON *samples = json_get(rules, "samples");
    const struct samples_members members = {.t = check_text(samples, "t"),
                                            .value = check_text(samples, "value")};

    if (samples)
        return samples_from_json(pointer_get(c->report, check_text(samples, "path")), &members, out,
                                 out_problem, e);
    if (c->in->samples_csv)
        return samples_read_csv(c->in->samples_csv, c->in->samples_len, out, out_problem, e);
    *out_problem = "no_samples";
    return 0;
}

static void explain(const struct checks *c, const cJSON *rules, const struct soak_rule *rule,
                    const struct soak *soak, bool *passed, char error[ERROR_SIZE])
{
    const char *path = check_text(rules, "reported");
    const cJSON *reported = pointer_get(c->report, path);
    char window[SOAK_NAME_SIZE];

    soak_window_name(soak->window, rule, window);
    *passed = soak->passes;
    if (!soak->complete) {
        (void) snprintf(error, ERROR_SIZE, "only %s: %zu samples over %.9g s do not qualify",
                        window, soak->n, soak->coverage);
    } else if (path[0] != '\0' && (!cJSON_IsNumber(reported) ||
                                   !stats_close(reported->valuedouble, soak->theil_sen_per_hour,
                                                REL_TOLERANCE, ABS_TOLERANCE))) {
        char shown[PATH_SHOWN + 1];

        *passed = false;
        (void) snprintf(error, ERROR_SIZE, "%s is not what the samples give",
                        text_copy(shown, sizeof shown, path)); /* fits */
    }
}

int checks_soak(struct checks *c, const cJSON *accept, struct err *e)
{
    const cJSON *rules = json_get(c->in->definition->policy, "soak");
    AUTO_SAMPLES struct samples samples = {0};
    AUTO_JSON cJSON *actual = NULL;
    struct soak_rule rule;
    struct soak soak = {0};
    const char *problem = "";
    char error[ERROR_SIZE] = "";
    bool passed = false;
    double end = 0;

    if (!rules)
        return 0;
    soak_rule_from(rules, &rule);
    if (load(c, rules, &samples, &problem, e) < 0) {
        if (!e || e->kind == ERR_NOMEM)
            return -1;
        problem = "unreadable"; /* evidence that does not hold, not a failure of ours */
    }
    if (problem[0] != '\0') {
        (void) snprintf(error, sizeof error, "no raw samples: %s", problem);
    } else if (!find_active_end(c, accept, rules, &end)) {
        (void) snprintf(error, sizeof error, "the end of the active phase is unknown");
    } else {
        if (soak_evaluate(&samples, end, &rule, &soak, e) < 0)
            return -1;
        explain(c, rules, &rule, &soak, &passed, error);
    }
    if (soak.has_growth) {
        actual = cJSON_CreateNumber(soak.theil_sen_per_hour);
        if (!actual)
            return err_memory(e, "acceptance.memory");
    }
    checks_add(c, check_name(rules, "soak"), "<=", json_get(rules, "limit_mb_per_hour"), actual,
               passed, error[0] != '\0' ? error : NULL);
    return 0;
}
