#include "experiment/environment.h"

#include "base/json_in.h"
#include "base/json_out.h"

const struct environment_variable *environment_defaults(size_t *out_n)
{
    static const struct environment_variable defaults[] = {
        {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {"LANG", "C.UTF-8"},
        {"TZ", "UTC"},
        {"TMPDIR", "/tmp"},
    };

    *out_n = ARRAY_LEN(defaults);
    return defaults;
}

int environment_effective(const cJSON *record, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    const cJSON *set = json_get(record, "set");
    const cJSON *passed = json_get(record, "passed");
    const cJSON *item = NULL;

    json_doc_init_object(&d);
    cJSON_ArrayForEach(item, json_get(record, "defaults")) {
        if (!json_get(set, item->string) && !json_get(passed, item->string))
            json_add_copy(&d, NULL, item->string, item);
    }
    cJSON_ArrayForEach(item, passed) {
        if (!json_get(set, item->string))
            json_add_copy(&d, NULL, item->string, item);
    }
    cJSON_ArrayForEach(item, set) {
        json_add_copy(&d, NULL, item->string, item);
    }
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}
