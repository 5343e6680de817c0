/* The widest report that a definition may spread out goes the whole way; what is wider is the same
 * plain answer everywhere. */
#include "tests/server/store_fixture.h"

#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "server/pages/pages.h"

static const char yaml[] = "version: 1\n"
                           "project: " PACKAGE_PROJECT "\n"
                           "gates:\n"
                           "  " PACKAGE_GATE ":\n"
                           "    class: " PACKAGE_CLASS "\n"
                           "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
                           "    run: {command: ['{executable}'], report: " PACKAGE_REPORT "}\n"
                           "    identity: [{path: /n, require: required}]\n"
                           "    accept: {floors: [{path: '/m/*', min: 0}]}\n"
                           "    audit:\n"
                           "      paths: {required: [" PACKAGE_REPORT "]}\n"
                           "      metrics: [{path: '/m/*', label: 'a \"quoted\" & <marked> {1}', "
                           "unit: x, worse: higher, tolerance_pct: 1, gated: true}]\n";

/* The reviewed one accepts every member, the branch none of them. */
static const char loose_yaml[] =
    "version: 1\n"
    "project: " PACKAGE_PROJECT "\n"
    "gates:\n"
    "  " PACKAGE_GATE ":\n"
    "    class: " PACKAGE_CLASS "\n"
    "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
    "    run: {command: ['{executable}'], report: " PACKAGE_REPORT "}\n"
    "    identity: [{path: /n, require: required}]\n"
    "    accept: {exact: [{path: /n, equals: 1}]}\n"
    "    audit:\n"
    "      paths: {required: [" PACKAGE_REPORT "]}\n"
    "      metrics: [{path: '/m/*', label: 'a \"quoted\" & <marked> {1}', unit: x, worse: higher, "
    "tolerance_pct: 1, gated: true}]\n";

/* Two runs are never the same bytes: `serial`. */
static char *report(size_t n, int serial)
{
    struct buf b;
    char *text = NULL;

    buf_init(&b, LIMIT_REPORT);
    buf_printf(&b, "{\"n\":1,\"serial\":%d,\"m\":{", serial);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s\"k%06zu\":%zu.25", i == 0 ? "" : ",", i, i + 1);
    buf_puts(&b, "}}");
    text = buf_take(&b, NULL);
    assert_non_null(text);
    return text;
}

static void renders(const char *page, const cJSON *document)
{
    static const char *const suffixes[] = {".html", ".txt"};
    static const struct page_context ctx = {
        .base_url = "https://perf.example.test",
        .path = "/x",
        .now_us = 1795965060000000,
        .version = "1",
        .all_metrics = true,
    };
    AUTO_PAGES struct pages *pages = NULL;

    MUST(pages_load(NULL, &pages, E));
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        AUTO_BUF struct buf b;
        char name[64];

        (void) snprintf(name, sizeof name, "%s%s", page, suffixes[i]);
        buf_init(&b, LIMIT_PAGE);
        MUST(page_render(pages, name, document, &ctx, &b, E));
        MUST(buf_check(&b, E));
        print_message("%s: %zu bytes\n", name, b.len);
    }
}

static void widest_report_goes_the_whole_way(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_FREE char *first = report(LIMIT_COMPARISONS, 1);
    AUTO_FREE char *second = report(LIMIT_COMPARISONS, 2);
    AUTO_JSON cJSON *run = NULL;
    AUTO_JSON cJSON *compare = NULL;
    AUTO_JSON cJSON *gate = NULL;
    AUTO_JSON cJSON *audit = NULL;
    struct package base;
    struct package later;
    char id[64];

    assert_int_equal(LIMIT_COMPARISONS, LIMIT_CHECKS);
    store_fixture_baseline(f, &(struct package_options){.definition = yaml, .report = first},
                           &base);
    store_fixture_run(
        f,
        &(struct package_options){
            .definition = yaml, .report = second, .baseline_run = base.run_dir, .executable = 2},
        "OK", &later);
    audit = stored(f, later.run, STORE_AUDIT);
    assert_int_equal(cJSON_GetArraySize(at(audit, "/comparisons")), LIMIT_COMPARISONS);
    (void) snprintf(id, sizeof id, "b-%s", base.run);
    MUST(doc_run(f->store, later.run, &run, E));
    renders("run", run);
    MUST(doc_compare(f->store, later.run, id, &compare, E));
    renders("compare", compare);
    MUST(doc_gate(f->store, PACKAGE_PROJECT, PACKAGE_GATE, &gate, E));
    renders("gate", gate);
    package_free(&base);
    package_free(&later);
}

/* Sound evidence: neither INVALID nor an error, and it never judges. */
static void more_is_refused_and_cannot_become_a_baseline(void **state)
{
    static const struct manage_review review = {
        .project = PACKAGE_PROJECT, .gate = PACKAGE_GATE, .reviewer = "r", .reason = "w"};
    struct store_fixture *f = fixture(state);
    AUTO_FREE char *few = report(10, 1);
    AUTO_FREE char *many = report(LIMIT_COMPARISONS + 1, 2);
    AUTO_JSON cJSON *audit = NULL;
    AUTO_JSON cJSON *acceptance = NULL;
    char id[MANAGE_ID_SIZE];
    struct err e = ERR_INIT;
    struct package base;
    struct package wide;

    store_fixture_run(
        f, &(struct package_options){.definition = loose_yaml, .report = many, .executable = 2},
        "NON_COMPARABLE", &wide);
    assert_int_equal(manage_baseline_approve(f->store, wide.run, &review, id, &e), -1);
    assert_int_equal(e.kind, ERR_CONFLICT);
    assert_non_null(strstr(e.text, "NC-TOO-MANY"));
    assert_non_null(
        strstr(e.text, "/m/* matches 2049 members in this run, at most 2048 can be compared"));
    package_free(&wide);
    /* The same report against a baseline of few, judged by a policy that checks every member. */
    store_fixture_baseline(f, &(struct package_options){.definition = yaml, .report = few}, &base);
    store_fixture_run(f,
                      &(struct package_options){.definition = loose_yaml,
                                                .report = many,
                                                .baseline_run = base.run_dir,
                                                .executable = 3},
                      "FAIL", &wide);
    acceptance = stored(f, wide.run, STORE_ACCEPTANCE);
    assert_string_equal(text_at(acceptance, "/checks/0/name"), "accept");
    assert_non_null(
        strstr(text_at(acceptance, "/checks/0/error"), "2049 checks of one report, at most 2048"));
    audit = stored(f, wide.run, STORE_AUDIT);
    assert_string_equal(text_at(audit, "/verdict"), "NON_COMPARABLE");
    assert_string_equal(text_at(audit, "/reasons/0/code"), "NC-TOO-MANY");
    package_free(&wide);
    package_free(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(widest_report_goes_the_whole_way, store_fixture_setup,
                                        store_fixture_teardown),
        cmocka_unit_test_setup_teardown(more_is_refused_and_cannot_become_a_baseline,
                                        store_fixture_setup, store_fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
