/* One document says the same numbers as page, text and Markdown, and in the one line for a forge.
 */
#include "audit/audit.h"
#include "audit/verdict.h"
#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "server/pages/pages.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

struct row {
    const char *unit, *baseline, *current, *delta_pct, *tolerance, *floor, *limit;
    const char *before, *after, *change, *limit_text; /* as all three must show them */
    bool gated;
};

static const struct row rows[] = {
    {"ns", "464", "576", "24.137931", "25", "0", "580", "464 ns", "576 ns", "+24.1 %", "+25 %",
     true},
    {"ns", "1776", "2768", "55.855855", "25", "0", "2220", "1.776 µs", "2.768 µs", "+55.9 %",
     "+25 %", true},
    {"ns", "41834211", "41834311", "0.000239", "25", "0", "52292763", "41.8342 ms", "41.8343 ms",
     "+0.0002 %", "+25 %", true},
    {"ns", "2500000000", "2600000000", "4", "5", "0", "2625000000", "2.5 s", "2.6 s", "+4 %",
     "+5 %", true},
    {"us", "12", "11", "-8.333333", "10", "0", "13.2", "12 µs", "11 µs", "-8.3 %", "+10 %", true},
    {"ms", "40", "61.234999", "53.0875", "25", "0", "50", "40 ms", "61.23 ms", "+53.1 %", "+25 %",
     true},
    {"s", "0.00002", "0.00003", "50", "20", "0", "0.000024", "0.00002 s", "0.00003 s", "+50 %",
     "none", false},
    {"B", "1000", "1073741825", "107374082.5", "10", "0", "1100", "1,000 B", "1,073,741,825 B",
     "+107,374,082.5 %", "+10 %", true},
    {"B", "1073741824", "1073741825", "0.00000009", "10", "0", "1181116006.4", "1 GiB",
     "1.000000001 GiB", "+0.0000 %", "+10 %", true},
    {"B", "61440", "71680", "16.66667", "10", "0", "67584", "60 KiB", "70 KiB", "+16.7 %", "+10 %",
     true},
    {"s", "0.000000033333333", "0.00000004", "20.00000012", "15", "0", "0.00000003833",
     "3.333e-8 s", "4e-8 s", "+20.0 %", "+15 %", true},
    {"MB", "1e300", "2e300", "100", "15", "0", "1.15e300", "1e+300 MB", "2e+300 MB", "+100 %",
     "+15 %", true},
    {"MB/h", "9.3", "1528.1", "16331.18", "25", "100", "100", "9.3 MB/h", "1,528.1 MB/h",
     "+1,518.8 MB/h", "100 MB/h (near-zero floor)", true},
    {"MB/h", "-3", "60", "2100", "25", "100", "100", "-3 MB/h", "60 MB/h", "+63 MB/h",
     "100 MB/h (near-zero floor)", true},
    {"%", "50", "55", "10", "20", "0", "60", "50 %", "55 %", "+10 %", "+20 %", true},
    {"1", "3258008", "3458008", "6.138721", "1", "0", "3290588.08", "3,258,008", "3,458,008",
     "+6.1 %", "+1 %", true},
    {"1", "9007199254740990", "9007199254740991", "0.00000000000001", "1", "0",
     "9.097271247288399e15", "9,007,199,254,740,990", "9,007,199,254,740,991", "+0.0000 %", "+1 %",
     true},
    {"1", "0", "3", "null", "1", "0.5", "0.5", "0", "3", "+3", "0.5 (near-zero floor)", true},
    {"ratio", "0.99998", "0.5", "-49.9990", "1", "0", "0.98", "0.99998", "0.5", "-50.0 %", "-1 %",
     true},
    {"1/s", "1000", "899", "-10.1", "10", "0", "900", "1,000 /s", "899 /s", "-10.1 %", "-10 %",
     true},
};

static bool lower_is_worse(const struct row *r)
{
    return r->limit_text[0] == '-';
}

static cJSON *comparison(const struct row *r)
{
    char text[2048];
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    (void) snprintf(
        text, sizeof text,
        "{\"path\":\"s/1.json\",\"metric\":\"/m\",\"label\":\"metric\",\"unit\":\"%s\","
        "\"baseline\":%s,\"current\":%s,\"delta_pct\":%s,\"tolerance_pct\":%s,\"floor\":%s,"
        "\"limit\":%s,\"gated\":%s,\"worse\":\"%s\",\"verdict\":\"regression\"}",
        r->unit, r->baseline, r->current, r->delta_pct, r->tolerance, r->floor, r->limit,
        r->gated ? "true" : "false", lower_is_worse(r) ? "lower" : "higher");
    if (json_parse(text, strlen(text), NULL, &j, &e) < 0)
        fail_msg("%s: %s", text, e.text);
    return j;
}

static cJSON *audit_of(const struct row *r)
{
    AUTO_BUF struct buf text = {0};
    AUTO_JSON cJSON *row = comparison(r);
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    buf_init(&text, LIMIT_KIB(16));
    buf_puts(&text,
             "{\"schema\":\"cleanrun-audit/1\",\"verdict\":\"REGRESSION\",\"gate\":\"g\","
             "\"made_comparisons\":1,\"expected_comparisons\":1,\"reasons\":[],\"comparisons\":[");
    json_write(&text, row, JSON_COMPACT);
    buf_puts(&text, "]}");
    assert_int_equal(json_parse(text.data, text.len, NULL, &j, &e), 0);
    return j;
}

static cJSON *page_document(const cJSON *audit)
{
    AUTO_BUF struct buf text = {0};
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    buf_init(&text, LIMIT_KIB(16));
    buf_puts(&text, "{\"project\":\"o/"
                    "n\",\"gate\":\"g\",\"verdict\":\"REGRESSION\",\"current\":{\"run\":\"r\"},"
                    "\"baseline\":{\"id\":\"b\"},\"audit\":");
    json_write(&text, audit, JSON_COMPACT);
    buf_puts(&text, "}");
    assert_int_equal(json_parse(text.data, text.len, NULL, &j, &e), 0);
    return j;
}

static void contains(const char *text, const char *part, const char *what)
{
    if (!strstr(text, part))
        fail_msg("%s: '%s' is not in:\n%s", what, part, text);
}

/* "-" as the page writes it; an exponent's is a hyphen. */
static void put_html(struct buf *out, const char *text)
{
    char before = 0;

    for (; *text && !strchr("(", *text); before = *text, text++) {
        if (*text == '-' && before != 'e')
            buf_puts(out, "−");
        else
            buf_putc(out, *text);
    }
}

static void check_html(const struct pages *p, const cJSON *document, const struct row *r)
{
    static const struct page_context ctx = {
        .base_url = "http://h", .path = "/x", .now_us = 0, .version = "t"};
    AUTO_BUF struct buf page = {0};
    AUTO_BUF struct buf plain = {0};
    AUTO_BUF struct buf want = {0};
    const char *const values[] = {r->before, r->after, r->change, r->limit_text};
    const char *from;
    struct err e = ERR_INIT;

    buf_init(&page, LIMIT_PAGE);
    buf_init(&plain, LIMIT_PAGE);
    buf_init(&want, LIMIT_KIB(4));
    if (page_render(p, "compare.html", document, &ctx, &page, &e) < 0)
        fail_msg("%s", e.text);
    from = strstr(page.data, "<tbody>");
    assert_non_null(from);
    for (bool tag = false; *from && strncmp(from, "</tbody>", 8) != 0;
         from++) { /* text without its tags */
        tag = tag || *from == '<';
        if (!tag)
            buf_putc(&plain, *from);
        tag = tag && *from != '>';
    }
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        buf_clear(&want);
        put_html(&want, values[i]);
        contains(plain.data, want.data, "html");
    }
}

static void check_text(const struct pages *p, const cJSON *document, const struct row *r)
{
    static const struct page_context ctx = {
        .base_url = "http://h", .path = "/x", .now_us = 0, .version = "t"};
    AUTO_BUF struct buf page = {0};
    char want[512];
    struct err e = ERR_INIT;

    buf_init(&page, LIMIT_PAGE);
    if (page_render(p, "compare.txt", document, &ctx, &page, &e) < 0)
        fail_msg("%s", e.text);
    (void) snprintf(want, sizeof want, "metric: %s -> %s, change %s, limit %s\n", r->before,
                    r->after, r->change, r->limit_text);
    contains(page.data, want, "txt");
    (void) snprintf(want, sizeof want, "metric %s, before %s, %s; limit %s.", r->after, r->before,
                    r->change, r->limit_text);
    contains(page.data, want, "txt, first line");
}

static void check_markdown(const cJSON *audit, const struct row *r)
{
    AUTO_FREE char *text = NULL;
    char want[512];
    size_t len = 0;
    struct err e = ERR_INIT;

    if (audit_markdown(audit, NULL, &text, &len, &e) < 0)
        fail_msg("%s", e.text);
    (void) snprintf(want, sizeof want, "| s/1.json | metric | %s | %s | %s | %s | REGRESSION |\n",
                    r->before, r->after, r->change, r->limit_text);
    contains(text, want, "md");
}

static void check_description(const cJSON *audit, const struct row *r)
{
    AUTO_JSON cJSON *acceptance = NULL;
    AUTO_JSON cJSON *document = NULL;
    static const char passed[] = "{\"verdict\":\"PASS\",\"checks\":[]}";
    struct verdict_input in = {
        .project = "o/n", .gate = "g", .run = "r", .mode = "clean", .audit = audit};
    enum verdict v = VERDICT_MAX;
    char want[512];
    struct err e = ERR_INIT;

    if (!r->gated)
        return;
    assert_int_equal(json_parse(passed, strlen(passed), NULL, &acceptance, &e), 0);
    in.acceptance = acceptance;
    if (verdict_document(&in, &v, &document, &e) < 0)
        fail_msg("%s", e.text);
    (void) snprintf(want, sizeof want,
                    "REGRESSION 1 of 1 metric: metric %s, before %s, %s; limit %s", r->after,
                    r->before, r->change, r->limit_text);
    assert_string_equal(json_get(document, "description")->valuestring, want);
}

static void every_form_says_the_same_numbers(void **state)
{
    struct pages *pages = NULL;
    struct err e = ERR_INIT;

    (void) state;
    if (pages_load(NULL, &pages, &e) < 0)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON cJSON *audit = audit_of(&rows[i]);
        AUTO_JSON cJSON *document = page_document(audit);

        check_html(pages, document, &rows[i]);
        check_text(pages, document, &rows[i]);
        check_markdown(audit, &rows[i]);
        check_description(audit, &rows[i]);
    }
    pages_free(pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_says_the_same_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
