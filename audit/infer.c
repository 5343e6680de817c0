/*
 * The identity of a legacy report, derived from the complete sweep beside it
 * (docs/definition.md, infer): every condition of the policy's `infer` holds, or there is no
 * identity.
 */
#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "experiment/pointer.h"

struct inference {
    const cJSON *rule;
    const struct tree *tree;
    const struct tree_file *file;
    const cJSON *point;  /* the report's own load */
    cJSON *points;       /* owned */
    cJSON *earlier;      /* owned */
    struct json_doc doc; /* {pointer: value} */
    struct buf *why;
};

static const char *rule_text(const cJSON *rule, const char *key)
{
    const cJSON *j = json_get(rule, key);

    return cJSON_IsString(j) ? j->valuestring : "";
}

static const char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* "<directory of the report>/<name>", heap. */
static char *beside(const char *path, const char *name)
{
    AUTO_BUF struct buf out = {0};
    size_t len = 0;

    buf_init(&out, LIMIT_KIB(8));
    buf_put(&out, path, (size_t) (stem_of(path) - path));
    buf_puts(&out, name);
    return buf_take(&out, &len);
}

/* Each check returns whether the condition holds, having written the reason when it does not. */
static bool own_report_fits(struct inference *i)
{
    const cJSON *scenario_rule = json_get(i->rule, "scenario");
    const cJSON *scenario = pointer_get(i->file->report, rule_text(scenario_rule, "path"));
    const char *prefix = rule_text(scenario_rule, "prefix");
    const char *skip = rule_text(i->rule, "skip_prefix");
    const cJSON *item = NULL;

    if (skip[0] && strncmp(stem_of(i->file->path), skip, strlen(skip)) == 0) {
        buf_printf(i->why, "a file name that begins with '%s' is no point", skip);
        return false;
    }
    if (!cJSON_IsString(scenario) || strncmp(scenario->valuestring, prefix, strlen(prefix)) != 0) {
        buf_printf(i->why, "%s does not begin with '%s'", rule_text(scenario_rule, "path"), prefix);
        return false;
    }
    i->point = pointer_get(i->file->report, rule_text(i->rule, "point"));
    if (!cJSON_IsNumber(i->point)) {
        buf_printf(i->why, "%s is no number", rule_text(i->rule, "point"));
        return false;
    }
    cJSON_ArrayForEach(item, json_get(i->rule, "integers")) {
        if (!json_is_integer(pointer_get(i->file->report, item->valuestring))) {
            buf_printf(i->why, "%s is no integer", item->valuestring);
            return false;
        }
    }
    return true;
}

/* Fills i->points from the sweep file; false with the reason when there is none. */
static bool points_known(struct inference *i)
{
    const cJSON *sweep = json_get(i->rule, "sweep");
    AUTO_FREE char *path = beside(i->file->path, rule_text(sweep, "file"));
    const struct tree_file *file = path ? tree_find(i->tree, path) : NULL;
    const cJSON *points =
        file && file->report ? pointer_get(file->report, rule_text(sweep, "points")) : NULL;
    const cJSON *item = NULL;

    if (!path) {
        i->doc.failed = true;
        return false;
    }
    if (!file && cJSON_IsTrue(json_get(sweep, "alone_at_root")) && !strchr(i->file->path, '/')) {
        i->points = cJSON_CreateArray();
        json_add_copy(&i->doc, i->points, NULL, i->point);
        return i->points != NULL;
    }
    if (!cJSON_IsArray(points)) {
        buf_printf(i->why, "%s has no list at %s", path, rule_text(sweep, "points"));
        return false;
    }
    cJSON_ArrayForEach(item, points) {
        if (!cJSON_IsNumber(item)) {
            buf_printf(i->why, "%s holds a point that is no number", path);
            return false;
        }
    }
    i->points = cJSON_Duplicate(points, 1);
    if (!i->points)
        i->doc.failed = true;
    return i->points != NULL;
}

/* The file of an earlier point: {point} replaced by the number's shortest form. */
static const struct tree_file *sibling(const struct inference *i, double point, char **out_path)
{
    const char *pattern = rule_text(i->rule, "sibling");
    const char *hole = strstr(pattern, "{point}");
    char number[NUM_DOUBLE_TEXT];
    AUTO_BUF struct buf name = {0};

    buf_init(&name, LIMIT_KIB(4));
    (void) num_double_shortest(point, number); /* the length is not needed */
    buf_put(&name, pattern, (size_t) (hole - pattern));
    buf_puts(&name, number);
    buf_puts(&name, hole + strlen("{point}"));
    *out_path = name.failed ? NULL : beside(i->file->path, name.data);
    return *out_path ? tree_find(i->tree, *out_path) : NULL;
}

static bool add_earlier(struct inference *i, const cJSON *point)
{
    const cJSON *rule = json_get(i->rule, "earlier");
    AUTO_FREE char *path = NULL;
    const struct tree_file *file = sibling(i, point->valuedouble, &path);
    cJSON *made = NULL;
    const cJSON *count = NULL;

    if (!path) {
        i->doc.failed = true;
        return false;
    }
    if (!file || !file->report) {
        buf_printf(i->why, "the earlier point %s is missing", path);
        return false;
    }
    made = json_add_object(&i->doc, i->earlier, NULL);
    json_add_copy(&i->doc, made, rule_text(rule, "point"), point);
    cJSON_ArrayForEach(count, json_get(rule, "counts")) {
        const cJSON *value = pointer_get(file->report, count->valuestring);

        if (!json_is_integer(value)) {
            buf_printf(i->why, "the earlier point %s has no integer at %s", path,
                       count->valuestring);
            return false;
        }
        json_add_copy(&i->doc, made, count->string, value);
    }
    return !i->doc.failed;
}

/* Every point before the report's own (its first occurrence) must have its complete report. */
static bool earlier_known(struct inference *i)
{
    const cJSON *point = NULL;

    i->earlier = cJSON_CreateArray();
    if (!i->earlier) {
        i->doc.failed = true;
        return false;
    }
    cJSON_ArrayForEach(point, i->points) {
        if (num_same(point->valuedouble, i->point->valuedouble))
            return true;
        if (!add_earlier(i, point))
            return false;
    }
    buf_puts(i->why, "the report's own point is not in the sweep");
    return false;
}

static void produce(struct inference *i)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, json_get(i->rule, "produce")) {
        const char *from = rule_text(item, "from");
        const cJSON *value = json_get(item, "constant");

        if (strcmp(from, "point") == 0)
            value = i->point;
        else if (strcmp(from, "points") == 0)
            value = i->points;
        else if (strcmp(from, "earlier") == 0)
            value = i->earlier;
        json_add_copy(&i->doc, NULL, rule_text(item, "path"), value);
    }
}

int infer_identity(const cJSON *infer, const struct tree *tree, const struct tree_file *file,
                   cJSON **out_values, struct buf *out_why, struct err *e)
{
    struct inference i = {.rule = infer, .tree = tree, .file = file, .why = out_why};
    cJSON *values = NULL;
    int rc = 0;

    if (!infer || pointer_get(file->report, rule_text(infer, "explicit"))) {
        *out_values = NULL;
        return 0;
    }
    json_doc_init_object(&i.doc);
    if (own_report_fits(&i) && points_known(&i) && earlier_known(&i)) {
        produce(&i);
        values = json_doc_take(&i.doc, e);
        rc = values ? 0 : -1;
    } else if (i.doc.failed || buf_check(out_why, e) < 0) {
        rc = err_memory(e, "audit.memory");
    }
    json_doc_fini(&i.doc);
    json_free(i.points);
    json_free(i.earlier);
    if (rc == 0)
        *out_values = values;
    return rc;
}
