/* Checks of single values: exact, absent, absolute_path, floors, limits. */
#include "experiment/acceptance_check.h"

#include <math.h>
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/exact.h"
#include "experiment/pointer.h"

enum field_kind { FIELD_EXACT, FIELD_ABSENT, FIELD_ABSOLUTE, FIELD_FLOOR, FIELD_LIMIT };

static const struct {
    enum field_kind kind;
    const char *key;
} families[] = {
    {FIELD_EXACT, "exact"},  {FIELD_ABSENT, "absent"}, {FIELD_ABSOLUTE, "absolute_path"},
    {FIELD_FLOOR, "floors"}, {FIELD_LIMIT, "limits"},
};

static void check_threshold(struct checks *c, const char *name, const char *op, const cJSON *limit,
                            const cJSON *actual)
{
    bool number = actual && cJSON_IsNumber(actual) && isfinite(actual->valuedouble);
    bool passed = number && (strcmp(op, ">=") == 0 ? actual->valuedouble >= limit->valuedouble
                                                   : actual->valuedouble <= limit->valuedouble);

    checks_add(c, name, op, limit, actual, passed,
               !actual  ? "absent"
               : number ? NULL
                        : "not a number");
}

static void check_value(struct checks *c, enum field_kind kind, const cJSON *entry,
                        const char *name, const cJSON *actual)
{
    switch (kind) {
    case FIELD_EXACT: {
        const cJSON *expected = json_get(entry, "equals");

        checks_add(c, name, "==", expected, actual, actual && exact_equal(actual, expected),
                   !actual                 ? "absent"
                   : exact_numbers(actual) ? NULL
                                           : "a number beyond 2^53-1 is not exact");
        return;
    }
    case FIELD_ABSENT:
        checks_add(c, name, "absent", NULL, actual, !actual, actual ? "present" : NULL);
        return;
    case FIELD_ABSOLUTE: {
        bool absolute = actual && cJSON_IsString(actual) && actual->valuestring[0] == '/';

        checks_add(c, name, "absolute_path", NULL, actual, absolute,
                   !actual    ? "absent"
                   : absolute ? NULL
                              : "not an absolute path");
        return;
    }
    case FIELD_FLOOR:
        check_threshold(c, name, ">=", json_get(entry, "min"), actual);
        return;
    case FIELD_LIMIT:
        check_threshold(c, name, check_text(entry, "op"), json_get(entry, "value"), actual);
        return;
    }
}

/* One check for each match of a pattern, or one for its absence. A member that lacks what the
 * others have is no way around a threshold. */
static int check_pattern(struct checks *c, enum field_kind kind, const cJSON *entry,
                         const char *path, struct err *e)
{
    AUTO_POINTER_LIST struct pointer_list matches = {0};

    if ((kind == FIELD_ABSENT
             ? pointer_expand(c->report, path, LIMIT_CHECKS, &matches, e)
             : pointer_expand_every(c->report, path, LIMIT_CHECKS, &matches, e)) < 0)
        return -1;
    if (matches.total > c->widest_n) {
        c->widest = path;
        c->widest_n = matches.total;
    }
    if (matches.over) {
        c->n += matches.total;
        c->bytes += LIMIT_JSON_DOCUMENT + 1;
    }
    for (size_t i = 0; i < matches.n; i++)
        check_value(c, kind, entry, matches.items[i].pointer, matches.items[i].value);
    if (matches.total == 0)
        check_value(c, kind, entry, check_name(entry, path), NULL);
    return 0;
}

int checks_fields(struct checks *c, const cJSON *accept, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        const cJSON *entry = NULL;

        cJSON_ArrayForEach(entry, json_get(accept, families[i].key)) {
            const char *path = check_text(entry, "path");

            if (!pointer_is_pattern(path))
                check_value(c, families[i].kind, entry, check_name(entry, path),
                            pointer_get(c->report, path));
            else if (check_pattern(c, families[i].kind, entry, path, e) < 0)
                return -1;
        }
    }
    return 0;
}
