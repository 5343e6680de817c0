/* In what two experiments differ, key by key. */
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "experiment/definition.h"
#include "experiment/pointer.h"

static void add_difference(struct json_doc *doc, const char *at, const cJSON *baseline,
                           const cJSON *current)
{
    cJSON *row = json_add_object(doc, NULL, NULL);

    json_add_string(doc, row, "field", at);
    json_add_copy(doc, row, "baseline", baseline);
    json_add_copy(doc, row, "current", current);
}

/* Recursion is bounded: definitions are at most LIMIT_JSON_DEPTH deep. */
/* NOLINTBEGIN(misc-no-recursion) */
static int diff(struct json_doc *doc, const char *at, const cJSON *baseline, const cJSON *current,
                struct err *e)
{
    const cJSON *member = NULL;

    if (json_equal(baseline, current))
        return 0;
    if (!cJSON_IsObject(baseline) || !cJSON_IsObject(current)) {
        add_difference(doc, at, baseline, current);
        return 0;
    }
    cJSON_ArrayForEach(member, baseline) {
        AUTO_FREE char *below = pointer_join(at, member->string);

        if (!below)
            return err_memory(e, "definition.memory");
        if (diff(doc, below, member, json_get(current, member->string), e) < 0)
            return -1;
    }
    cJSON_ArrayForEach(member, current) {
        AUTO_FREE char *below = pointer_join(at, member->string);

        if (!below)
            return err_memory(e, "definition.memory");
        if (!json_get(baseline, member->string))
            add_difference(doc, below, NULL, member);
    }
    return 0;
}
/* NOLINTEND(misc-no-recursion) */

int definition_experiment_diff(const struct definition *baseline, const struct definition *current,
                               cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = {.root = cJSON_CreateArray()};

    if (!doc.root)
        return err_memory(e, "definition.memory");
    if (diff(&doc, "", baseline->experiment, current->experiment, e) < 0)
        return -1;
    *out = json_doc_take(&doc, e);
    return *out ? 0 : -1;
}
