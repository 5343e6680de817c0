#include "server/store/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/pointer.h"

void metric_values_fini(struct metric_values *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->items[i].path);
        free(m->items[i].metric);
    }
    free(m->items);
    *m = (struct metric_values){.items = NULL};
}

static int add_metric(struct metric_values *m, const char *path, const char *pointer, double value,
                      struct err *e)
{
    struct metric_value item = {.path = strdup(path), .metric = strdup(pointer), .value = value};

    if (!item.path || !item.metric) {
        free(item.path);
        free(item.metric);
        return err_memory(e, "metrics.memory");
    }
    m->items[m->n++] = item;
    return 0;
}

static int collect_from(const struct tree_file *f, const char *pattern, struct metric_values *m,
                        struct err *e)
{
    AUTO_POINTER_LIST struct pointer_list list = {.items = NULL};

    if (!f->report)
        return 0;
    if (pointer_expand(f->report, pattern, LIMIT_COMPARISONS, &list, e) < 0)
        return -1;
    for (size_t i = 0; i < list.n && m->n < LIMIT_METRICS; i++) {
        const cJSON *v = list.items[i].value;
        const char *pointer = list.items[i].pointer;

        if (strlen(pointer) <= POINTER_MAX_BYTES && cJSON_IsNumber(v) && isfinite(v->valuedouble) &&
            add_metric(m, f->path, pointer, v->valuedouble, e) < 0)
            return -1;
    }
    return 0;
}

int metric_values_collect(const struct definition *d, const struct tree *t,
                          struct metric_values *out, struct err *e)
{
    AUTO_METRIC_VALUES struct metric_values m = {.items = calloc(LIMIT_METRICS, sizeof *m.items)};
    const cJSON *metrics = pointer_get(d->policy, "/audit/metrics");
    const cJSON *metric = NULL;

    if (!m.items)
        return err_memory(e, "metrics.memory");
    cJSON_ArrayForEach(metric, metrics) {
        const cJSON *path = json_get(metric, "path");

        for (size_t i = 0; cJSON_IsString(path) && i < t->n; i++) {
            if (collect_from(&t->files[i], path->valuestring, &m, e) < 0)
                return -1;
        }
    }
    *out = m;
    memset(&m, 0, sizeof m); /* moved out */
    return 0;
}
