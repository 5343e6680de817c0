/* Entries for reports that the gate does not compare: a slip in a name would take an identity field
 * or a gated metric out of every comparison, and nobody would see it. */
#include <stdio.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/text.h"

struct entry {
    const char *list; /* of definition.json */
    size_t index;
    const char *pointer;
    const cJSON *reports;
    const char *code;
    const char *what;
};

static bool is_compared(const struct policy *p, const char *pattern)
{
    for (size_t i = 0; i < p->n_required; i++) {
        if (text_glob(pattern, p->required[i]))
            return true;
    }
    return false;
}

static void look(const struct policy *p, const struct entry *entry, reach_gap *tell, void *context)
{
    const cJSON *item = NULL;
    size_t i = 0;

    cJSON_ArrayForEach(item, entry->reports) {
        struct reach gap = {.code = entry->code,
                            .pointer = entry->pointer,
                            .what = entry->what,
                            .report = cJSON_IsString(item) ? item->valuestring : ""};

        if (!is_compared(p, gap.report)) {
            (void) snprintf(gap.place, sizeof gap.place, "%s/%zu/reports/%zu", entry->list,
                            entry->index, i); /* fits: words of ours */
            tell(context, &gap);
        }
        i++;
    }
}

void reach_gaps(const struct policy *p, reach_gap *tell, void *context)
{
    for (size_t i = 0; i < p->n_identity; i++)
        look(p,
             &(struct entry){"/policy/identity", i, p->identity[i].pointer, p->identity[i].reports,
                             "NC-IDENTITY-MISSING", "identity field"},
             tell, context);
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].gated)
            look(p,
                 &(struct entry){"/policy/audit/metrics", i, p->metrics[i].pointer,
                                 p->metrics[i].reports, "NC-METRIC-NONE", "gated metric"},
                 tell, context);
    for (size_t i = 0; i < p->n_windows; i++)
        look(p,
             &(struct entry){"/policy/audit/windows", i, p->windows[i].pointer,
                             p->windows[i].reports, "NC-WINDOW-INCOMPLETE", "window"},
             tell, context);
}

static void refuse(void *context, const struct reach *gap)
{
    struct finding what = {.code = gap->code, .field = gap->pointer};

    findings_reason(context, &what,
                    "the %s %s is asked of '%s', and no report of that name is compared "
                    "(audit.paths.required)",
                    gap->what, gap->pointer, gap->report);
}

void reach_check(const struct policy *p, struct findings *f)
{
    reach_gaps(p, refuse, f);
}
