#include "runner/conditioning.h"

#include <stdio.h>

#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/pointer.h"
#include "experiment/proof.h"
#include "runner/measure.h"

static bool plain(const char *pointer)
{
    return *pointer && pointer_ok(pointer) && !pointer_is_pattern(pointer);
}

/* *e is about the part of the step at `below`; returns -1. */
static int placed(const struct plan *p, size_t step, const char *below, struct err *e)
{
    char pointer[64];

    (void) snprintf(pointer, sizeof pointer, "/experiment/conditioning/%zu%s", step,
                    below); /* fits: a number and words of ours */
    return definition_blame(p->definition, pointer, e);
}

static int check_proof(const struct plan *p, size_t step, const cJSON *proof, const char *name,
                       struct err *e)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, json_get(proof, "equal")) {
        if (plain(item->valuestring))
            continue;
        (void) err_set(e, ERR_USAGE, "plan.proof",
                       "conditioning step '%s': '%s' names more than one value", name,
                       item->valuestring);
        return placed(p, step, "/proof/equal", e);
    }
    cJSON_ArrayForEach(item, json_get(proof, "values")) {
        if (plain(item->string))
            continue;
        (void) err_set(e, ERR_USAGE, "plan.proof",
                       "conditioning step '%s': '%s' is no JSON Pointer to one value", name,
                       item->string);
        return placed(p, step, "/proof/values", e);
    }
    return 0;
}

int conditioning_check(const struct plan *p, struct err *e)
{
    const cJSON *step = NULL;
    size_t i = 0;

    cJSON_ArrayForEach(step, p->conditioning) {
        if (check_proof(p, i++, json_get(step, "proof"), json_get(step, "name")->valuestring, e) <
            0)
            return -1;
    }
    return 0;
}

static bool step_unproven(const cJSON *step, int run_fd, char *why, size_t size)
{
    static const struct json_limits limits = {.max_bytes = LIMIT_REPORT};
    const cJSON *proof = json_get(step, "proof");
    const char *name = json_get(step, "name")->valuestring;
    const char *report_name = json_get(proof, "report")->valuestring;
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *bytes = NULL;
    AUTO_JSON cJSON *report = NULL;
    struct err e = ERR_INIT; /* its words are the reason */
    const char *pointer = "", *lack;
    size_t len = 0;

    if (asprintf(&path, RESULTS_DIR "/%s", report_name) < 0) {
        path = NULL;
        (void) snprintf(why, size, "out of memory"); /* fits */
        return true;
    }
    if (file_read_at(run_fd, path, LIMIT_REPORT, &bytes, &len, &e) < 0 ||
        json_parse(bytes, len, &limits, &report, &e) < 0) {
        (void) snprintf(why, size, "conditioning step '%s' left no sound %s: %s", name, report_name,
                        e.text); /* a cut reason still explains */
        return true;
    }
    lack = proof_break(proof, report, &pointer);
    if (lack)
        (void) snprintf(why, size, "conditioning step '%s': %s of %s %s", name, pointer,
                        report_name, lack); /* a cut reason still explains */
    return lack != NULL;
}

bool conditioning_unproven(const struct plan *p, int run_fd, char *why, size_t size)
{
    const cJSON *step = NULL;

    cJSON_ArrayForEach(step, p->conditioning) {
        if (json_get(step, "proof") && step_unproven(step, run_fd, why, size))
            return true;
    }
    return false;
}
