/* Checks of lists of alike elements. */
#include "experiment/acceptance_check.h"

#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/exact.h"
#include "experiment/pointer.h"

static void check_exact(const cJSON *element, size_t index, const cJSON *rules, struct problems *p)
{
    const cJSON *rule = NULL;

    cJSON_ArrayForEach(rule, rules)
    {
        const char *path = check_text(rule, "path");
        const cJSON *actual = pointer_get(element, path);

        if (!actual || !exact_equal(actual, json_get(rule, "equals")))
            problems_add(p, "element %zu: %s is %s", index, path,
                         actual ? "another value" : "absent");
    }
}

/* `text` with every {index} replaced. */
static void write_template(struct buf *out, const char *text, size_t index)
{
    static const char mark[] = "{index}";

    for (const char *p = text; *p != '\0';) {
        if (strncmp(p, mark, sizeof mark - 1) == 0) {
            buf_printf(out, "%zu", index);
            p += sizeof mark - 1;
        } else {
            buf_putc(out, *p++);
        }
    }
}

static void check_starts(const cJSON *element, size_t index, const cJSON *rules, struct problems *p)
{
    const cJSON *rule = NULL;

    cJSON_ArrayForEach(rule, rules)
    {
        const char *path = check_text(rule, "path");
        const cJSON *actual = pointer_get(element, path);
        AUTO_BUF struct buf expected;

        buf_init(&expected, LIMIT_KIB(64));
        write_template(&expected, check_text(rule, "text"), index);
        if (expected.failed || !cJSON_IsString(actual) ||
            strncmp(actual->valuestring, expected.data ? expected.data : "", expected.len) != 0)
            problems_add(p, "element %zu: %s does not begin with '%s'", index, path,
                         expected.data ? expected.data : "");
        else if (strlen(actual->valuestring) == expected.len)
            problems_add(p, "element %zu: %s ends after '%s'", index, path, expected.data);
    }
}

static void check_series(const cJSON *element, size_t index, const cJSON *rules, struct problems *p)
{
    const cJSON *rule = NULL;

    cJSON_ArrayForEach(rule, rules)
    {
        const char *path = check_text(rule, "path");
        const cJSON *expected = cJSON_GetArrayItem(json_get(rule, "values"), (int) index);
        const cJSON *actual = pointer_get(element, path);

        if (!expected || !actual || !exact_equal(actual, expected))
            problems_add(p, "element %zu: %s is %s", index, path,
                         !expected ? "without an expected value"
                         : actual  ? "another value"
                                   : "absent");
    }
}

int checks_repeated(struct checks *c, const cJSON *accept, struct err *e)
{
    const cJSON *entry = NULL;

    (void) e;
    cJSON_ArrayForEach(entry, json_get(accept, "repeated"))
    {
        const char *path = check_text(entry, "path");
        const cJSON *list = pointer_get(c->report, path);
        double count = check_number(entry, "count", 0);
        const cJSON *element = NULL;
        size_t index = 0;
        AUTO_PROBLEMS struct problems p;

        problems_init(&p);
        if (!cJSON_IsArray(list))
            problems_add(&p, "%s", list ? "not a list" : "absent");
        else if (cJSON_GetArraySize(list) != (int) count)
            problems_add(&p, "%d elements, %.0f expected", cJSON_GetArraySize(list), count);
        else
            cJSON_ArrayForEach(element, list)
            {
                check_exact(element, index, json_get(entry, "exact"), &p);
                check_starts(element, index, json_get(entry, "starts_with"), &p);
                check_series(element, index, json_get(entry, "series"), &p);
                index++;
            }
        checks_add_problems(c, check_name(entry, path), "repeated", json_get(entry, "count"), &p);
    }
    return 0;
}
