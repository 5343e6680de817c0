/* Does a packaged audit document say what the recomputed one says? */
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "experiment/pointer.h"

struct difference {
    struct json_doc doc;
    bool found;
};

static bool same(const cJSON *a, const cJSON *b)
{
    return !a || !b ? a == b : json_equal(a, b);
}

static void differs(struct difference *d, const char *field, const cJSON *packaged,
                    const cJSON *recomputed)
{
    if (d->found)
        return;
    d->found = true;
    json_add_string(&d->doc, NULL, "field", field);
    json_add_copy(&d->doc, NULL, "packaged", packaged);
    json_add_copy(&d->doc, NULL, "recomputed", recomputed);
}

static void compare_members(struct difference *d, const char *where, const cJSON *a, const cJSON *b,
                            const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n && !d->found; i++) {
        const cJSON *left = json_get(a, keys[i]);
        const cJSON *right = json_get(b, keys[i]);
        AUTO_FREE char *at = same(left, right) ? NULL : pointer_join(where, keys[i]);

        if (same(left, right))
            continue;
        if (!at)
            d->doc.failed = true;
        differs(d, at ? at : where, left, right);
    }
}

static void compare_lists(struct difference *d, const char *key, const cJSON *packaged,
                          const cJSON *recomputed, const char *const *keys, size_t n)
{
    const cJSON *a = json_get(packaged, key);
    const cJSON *b = json_get(recomputed, key);
    const cJSON *left = cJSON_IsArray(a) ? a->child : NULL;
    const cJSON *right = cJSON_IsArray(b) ? b->child : NULL;

    if (!cJSON_IsArray(a) || !cJSON_IsArray(b)) {
        AUTO_FREE char *at = pointer_join("", key);

        differs(d, at ? at : "", a, b);
        return;
    }
    for (size_t i = 0; (left || right) && !d->found; i++) {
        char where[64];

        (void) snprintf(where, sizeof where, "/%s/%zu", key, i);
        if (!left || !right)
            differs(d, where, left, right);
        else
            compare_members(d, where, left, right, keys, n);
        left = left ? left->next : NULL;
        right = right ? right->next : NULL;
    }
}

int audit_compare_documents(const cJSON *packaged, const cJSON *recomputed, cJSON **out_differs,
                            struct err *e)
{
    static const char *const top[] = {"schema",          "verdict",         "gate",
                                      "definition",      "same_executable", "expected_comparisons",
                                      "made_comparisons"};
    static const char *const reason[] = {"code", "path", "field", "baseline", "current"};
    static const char *const comparison[] = {
        "path",      "metric",        "unit",  "worse", "baseline", "current", "delta",
        "delta_pct", "tolerance_pct", "floor", "limit", "gated",    "verdict"};
    struct difference d = {0};
    cJSON *made = NULL;

    json_doc_init_object(&d.doc);
    compare_members(&d, "", packaged, recomputed, top, ARRAY_LEN(top));
    if (!d.found)
        compare_lists(&d, "reasons", packaged, recomputed, reason, ARRAY_LEN(reason));
    if (!d.found)
        compare_lists(&d, "comparisons", packaged, recomputed, comparison, ARRAY_LEN(comparison));
    made = json_doc_take(&d.doc, e);
    json_doc_fini(&d.doc);
    if (!made)
        return -1;
    if (!d.found) {
        json_free(made);
        made = NULL;
    }
    *out_differs = made;
    return 0;
}
