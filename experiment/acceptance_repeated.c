/* Checks of lists of alike elements. */
#include "experiment/acceptance_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/exact.h"
#include "experiment/pointer.h"

static void check_exact(const cJSON *element, size_t index, const cJSON *rules, struct problems *p)
{
    const cJSON *rule = NULL;

    cJSON_ArrayForEach(rule, rules) {
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

    cJSON_ArrayForEach(rule, rules) {
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

/* at: the expected value of each rule for this element; moved on to the next. */
static void check_series(const cJSON *element, size_t index, const cJSON *rules, const cJSON **at,
                         struct problems *p)
{
    const cJSON *rule = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(rule, rules) {
        const char *path = check_text(rule, "path");
        const cJSON *expected = at[n];
        const cJSON *actual = pointer_get(element, path);

        at[n++] = expected ? expected->next : NULL;
        if (!expected || !actual || !exact_equal(actual, expected))
            problems_add(p, "element %zu: %s is %s", index, path,
                         !expected ? "without an expected value"
                         : actual  ? "another value"
                                   : "absent");
    }
}

/* The first expected value of every rule; heap. */
static const cJSON **first_values(const cJSON *rules)
{
    size_t n = cJSON_IsArray(rules) ? (size_t) cJSON_GetArraySize(rules) : 0;
    const cJSON **at = calloc(n + 1, sizeof *at);
    const cJSON *rule = NULL;
    size_t i = 0;

    cJSON_ArrayForEach(rule, rules) {
        const cJSON *values = json_get(rule, "values");

        if (at && i < n)
            at[i++] = values ? values->child : NULL;
    }
    return at;
}

int checks_repeated(struct checks *c, const cJSON *accept, struct err *e)
{
    const cJSON *entry = NULL;

    cJSON_ArrayForEach(entry, json_get(accept, "repeated")) {
        const char *path = check_text(entry, "path");
        const cJSON *list = pointer_get(c->report, path);
        double count = check_number(entry, "count", 0);
        const cJSON *element = NULL;
        size_t index = 0;
        const cJSON *series = json_get(entry, "series");
        AUTO_FREE const cJSON **at = first_values(series);
        AUTO_PROBLEMS struct problems p;

        if (!at)
            return err_memory(e, "acceptance.memory");
        problems_init(&p);
        if (!cJSON_IsArray(list))
            problems_add(&p, "%s", list ? "not a list" : "absent");
        else if (cJSON_GetArraySize(list) != (int) count)
            problems_add(&p, "%d elements, %.0f expected", cJSON_GetArraySize(list), count);
        else
            cJSON_ArrayForEach(element, list) {
                check_exact(element, index, json_get(entry, "exact"), &p);
                check_starts(element, index, json_get(entry, "starts_with"), &p);
                check_series(element, index, series, at, &p);
                index++;
            }
        checks_add_problems(c, check_name(entry, path), "repeated", json_get(entry, "count"), &p);
    }
    return 0;
}
