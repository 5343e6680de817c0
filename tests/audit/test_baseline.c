/*
 * Neighbours of the seed's baseline rows: every value of a reviewed manifest taken away, made null,
 * and given other types. Only what the format leaves open may change; everything else is a broken
 * manifest.
 */
#include "tests/lib/cases.h"
#include "tests/lib/pointers.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "audit/baseline.h"
#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "experiment/pointer.h"

static const char ours[] =
    "{\"schema\":\"cleanrun-baseline/"
    "1\",\"baseline_id\":\"b-20260929T200900Z-0000000a\",\"run\":\"20260929T200900Z-0000000a\","
    "\"project\":\"o/r\",\"gate\":\"g\",\"class\":\"box\",\"reviewed\":{\"by\":\"A. "
    "Person\",\"at\":\"2026-09-30T08:00:00Z\","
    "\"reason\":\"first\"},\"evidence_sha256\":"
    "\"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9\","
    "\"comparison_paths\":[\"s/1.json\"],\"files\":[{\"path\":\"s/1.json\",\"size\":2,"
    "\"sha256\":\"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9\"}]}";

static bool reads(const cJSON *manifest)
{
    AUTO_BASELINE struct baseline b = {0};
    AUTO_BUF struct buf text = {0};
    struct err e = ERR_INIT;

    buf_init(&text, LIMIT_MIB(1));
    json_write(&text, manifest, JSON_COMPACT);
    assert_false(text.failed);
    if (baseline_parse(text.data, text.len, false, &b, &e) == 0)
        return true;
    assert_int_equal(e.kind, ERR_TRUST);
    return false;
}

/* A copy with the value replaced, or (json NULL) taken away. */
static cJSON *changed(const cJSON *manifest, const char *pointer, const char *json)
{
    cJSON *copy = cJSON_Duplicate(manifest, true);
    cJSON *value = NULL;

    if (!json) {
        pointers_remove(copy, pointer);
        return copy;
    }
    value = cJSON_Parse(json);
    assert_non_null(value);
    pointers_swap(pointers_at(copy, pointer), value);
    cJSON_Delete(value);
    return copy;
}

static const char *const others[] = {"null",  "true", "false", "7",  "-1",    "1.5",
                                     "\"x\"", "\"\"", "[]",    "{}", "[null]"};

struct allowance {
    const char *pointer;
    const char *changes;
};

static void change_everything(const cJSON *manifest, const struct allowance *allowed,
                              size_t n_allowed)
{
    struct pointers p;

    assert_true(reads(manifest));
    pointers_of(manifest, SIZE_MAX, &p);
    for (size_t i = 0; i < p.n; i++) {
        AUTO_BUF struct buf found = {0};
        const char *expected = "";

        buf_init(&found, LIMIT_KIB(4));
        buf_puts(&found, "");
        for (size_t k = 0; k <= ARRAY_LEN(others); k++) {
            const char *json = k == 0 ? NULL : others[k - 1];
            cJSON *copy = changed(manifest, p.items[i], json);

            if (reads(copy) && !json_equal(copy, manifest))
                buf_printf(&found, "%s%s", found.len > 0 ? " " : "", json ? json : "removed");
            cJSON_Delete(copy);
        }
        for (size_t k = 0; k < n_allowed; k++)
            if (strcmp(allowed[k].pointer, p.items[i]) == 0)
                expected = allowed[k].changes;
        if (strcmp(found.data ? found.data : "", expected) != 0)
            fail_msg("%s reads with: %s; allowed: %s", p.items[i], found.data, expected);
    }
    pointers_fini(&p);
}

static void only_what_the_seeds_format_leaves_open_may_change(void **state)
{
    static const struct allowance allowed[] = {
        {"/qualification/permitted_use", "\"x\""},
        {"/source/git_revision", "\"x\""},
        {"/files/0", "removed"}, /* the inventory is compared with the tree, not with itself */
        {"/files/1", "removed"},
        {"/files/2", "removed"},
        {"/files/3", "removed"},
        {"/files/5", "removed"}, /* 4 is the comparison path */
        {"/files/0/bytes", "7"},
        {"/files/1/bytes", "7"},
        {"/files/2/bytes", "7"},
        {"/files/3/bytes", "7"},
        {"/files/4/bytes", "7"},
        {"/files/5/bytes", "7"},
        {"/files/0/path", "\"x\""},
        {"/files/1/path", "\"x\""},
        {"/files/2/path", "\"x\""},
        {"/files/3/path", "\"x\""},
        {"/files/5/path", "\"x\""},
    };
    cJSON *manifest = cases_read_json("tests/data/rvoip/baselines/20260706T181609Z/manifest.json");

    (void) state;
    change_everything(manifest, allowed, ARRAY_LEN(allowed));
    cJSON_Delete(manifest);
}

static void only_what_our_format_leaves_open_may_change(void **state)
{
    static const struct allowance allowed[] = {
        {"/run", "removed"},           {"/gate", "\"x\""},
        {"/class", "\"x\""},           {"/reviewed/by", "\"x\""},
        {"/reviewed/reason", "\"x\""}, {"/evidence_sha256", "removed"},
        {"/files/0/size", "7"},
    };
    cJSON *manifest = cJSON_Parse(ours);

    (void) state;
    change_everything(manifest, allowed, ARRAY_LEN(allowed));
    cJSON_Delete(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_the_seeds_format_leaves_open_may_change),
        cmocka_unit_test(only_what_our_format_leaves_open_may_change),
    };

    return cmocka_run_group_tests_name("audit_baseline", tests, NULL, NULL);
}
