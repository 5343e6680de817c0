/* The audit document as Markdown, in the layout that readers of the seed's reports know (seed-rvoip
 * §2.9). */
#include <string.h>

#include "audit/comparison_text.h"
#include "audit/parts.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/plain.h"

static size_t length_of(const cJSON *array)
{
    size_t n = 0;
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, array)
        n++;
    return n;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Outside text can form no markup, no table cell, no HTML, no mention and no issue reference. An
 * underscore inside a word is none: names of reports stay as they are. */
static void escape_markup(struct buf *out, const char *s)
{
    char before = 0;

    for (; *s; before = *s, s++) {
        if (*s == '<')
            buf_puts(out, "&lt;");
        else if (*s == '>')
            buf_puts(out, "&gt;");
        else if (*s == '&')
            buf_puts(out, "&amp;");
        else if (*s == '@')
            buf_puts(out, "&#64;");
        else if (*s == '#')
            buf_puts(out, "&#35;");
        else if (*s == '_' && is_word(before) && is_word(s[1]))
            buf_putc(out, '_');
        else if (strchr("\\`*_[]|~!", *s))
            buf_printf(out, "\\%c", *s);
        else
            buf_putc(out, *s);
    }
}

/* Nor a line, nor a turned direction. */
static void escape(struct buf *out, const char *s)
{
    AUTO_BUF struct buf plain = {0};

    buf_init(&plain, LIMIT_MIB(16));
    plain_puts(&plain, s);
    if (plain.failed)
        buf_fail(out, plain.failure);
    else
        escape_markup(out, plain.data ? plain.data : "");
}

static void escape_value(struct buf *out, const cJSON *v)
{
    AUTO_BUF struct buf text = {0};

    buf_init(&text, LIMIT_KIB(4));
    if (v)
        value_text(&text, v, 400);
    else
        buf_puts(&text, "(absent)");
    escape(out, text.data ? text.data : "");
}

static void side(struct buf *out, const char *name, const cJSON *s)
{
    static const struct {
        const char *key;
        const char *word;
    } parts[] = {{"run", "run"}, {"commit", "commit"}, {"class", "class"}};
    const char *id = json_text(s, "id", json_text(s, "root", json_text(s, "run", "(unknown)")));

    buf_printf(out, "%s: ", name);
    escape(out, id);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const char *value = json_text(s, parts[i].key, NULL);

        if (!value || strcmp(value, id) == 0)
            continue;
        buf_printf(out, ", %s ", parts[i].word);
        escape(out, value);
    }
    buf_puts(out, "\n\n");
}

static void put_link(struct buf *out, const struct audit_link *l)
{
    buf_putc(out, '[');
    escape(out, l->text);
    buf_puts(out, "](");
    for (const char *p = l->address; *p; p++) {
        if (is_word(*p) ||
            strchr("-._~:/?=&%+,", *p)) /* an address of ours; nothing else can end the link */
            buf_putc(out, *p);
        else
            buf_printf(out, "%%%02X", (unsigned) (unsigned char) *p);
    }
    buf_putc(out, ')');
}

static void put_count(struct buf *out, const cJSON *n)
{
    char text[QUANTITY_TEXT];

    quantity_number(cJSON_IsNumber(n) ? n->valuedouble : 0, false, true, text);
    buf_puts(out, text);
}

static void head(struct buf *out, const cJSON *d, const struct audit_markdown_options *options)
{
    buf_puts(out, "# Performance audit: ");
    escape(out, json_text(d, "gate", "?"));
    buf_printf(out, "\n\nstatus: %s\n\n", json_text(d, "verdict", "?"));
    if (options->remark) {
        escape(out, options->remark);
        buf_puts(out, "\n\n");
    }
    for (size_t i = 0; i < options->n_links; i++) {
        buf_puts(out, i ? " · " : "");
        put_link(out, &options->links[i]);
    }
    buf_puts(out, options->n_links ? "\n\n" : "");
    if (cJSON_IsTrue(json_get(d, "same_executable")))
        buf_puts(out,
                 cJSON_IsTrue(json_get(d, "same_source"))
                     ? "same binary and same source: yes, so every difference below is noise\n\n"
                     : "same binary: the same program file; its source tree differs\n\n");
    buf_puts(out, "comparisons made: ");
    put_count(out, json_get(d, "made_comparisons"));
    buf_puts(out, " of ");
    put_count(out, json_get(d, "expected_comparisons"));
    buf_puts(out, "\n");
}

static void sides(struct buf *out, const cJSON *d)
{
    const cJSON *reviewed = json_get(json_get(d, "baseline"), "reviewed");
    const cJSON *coverage = json_get(d, "coverage");

    buf_puts(out, "\n## Both sides\n\n");
    side(out, "baseline", json_get(d, "baseline"));
    if (reviewed) {
        buf_puts(out, "reviewed baseline: ");
        escape(out, json_text(reviewed, "id", "?"));
        buf_printf(out, " (manifest SHA-256 %s)\n\n",
                   json_text(reviewed, "manifest_sha256", "unknown"));
    }
    side(out, "current", json_get(d, "current"));
    buf_printf(out, "tolerances: of the definition (policy SHA-256 %s)\n\n",
               json_text(json_get(d, "definition"), "policy_sha256", "unknown"));
    buf_printf(out, "scenarios compared: %zu (baseline-only: %zu, current-only: %zu)\n",
               length_of(json_get(d, "paths")), length_of(json_get(coverage, "baseline_only")),
               length_of(json_get(coverage, "current_only")));
}

/* What of a list or an object differs, one line each. */
static void elements_of(struct buf *out, const cJSON *reason)
{
    const cJSON *list = json_get(reason, "elements");
    const cJSON *omitted = json_get(reason, "elements_omitted");
    const cJSON *element = NULL;
    size_t skip = strlen(json_text(reason, "field", ""));

    if (!cJSON_IsArray(list) || !list->child)
        return;
    buf_puts(out, "\n");
    escape(out, json_text(reason, "path", "definition"));
    buf_putc(out, ' ');
    escape(out, json_text(reason, "field", ""));
    buf_puts(out, ":\n\n");
    cJSON_ArrayForEach(element, list) {
        AUTO_BUF struct buf text = {0};

        if (strlen(json_text(element, "field", "")) < skip)
            continue;
        buf_init(&text, LIMIT_KIB(4));
        value_element_text(&text, element, skip, 200);
        buf_puts(out, "- ");
        escape(out, text.data ? text.data : "");
        buf_putc(out, '\n');
    }
    if (cJSON_IsNumber(omitted))
        buf_printf(out, "- and %.0f more\n", omitted->valuedouble);
}

static void refusals(struct buf *out, const cJSON *reasons)
{
    const cJSON *reason = NULL;

    if (!reasons || !reasons->child)
        return;
    buf_printf(out,
               "\n## Refused comparisons (%zu)\n\nNo scalar comparison was performed on what is "
               "refused.\n\n",
               length_of(reasons));
    buf_puts(
        out,
        "| code | scenario | field | baseline | current | what |\n|---|---|---|---|---|---|\n");
    cJSON_ArrayForEach(reason, reasons) {
        buf_puts(out, "| ");
        escape(out, json_text(reason, "code", "?"));
        buf_puts(out, " | ");
        escape(out, json_text(reason, "path", "(run)"));
        buf_puts(out, " | ");
        escape(out, json_text(reason, "field", ""));
        buf_puts(out, " | ");
        escape_value(out, json_get(reason, "baseline"));
        buf_puts(out, " | ");
        escape_value(out, json_get(reason, "current"));
        buf_puts(out, " | ");
        escape(out, json_text(reason, "text", ""));
        buf_puts(out, " |\n");
    }
    cJSON_ArrayForEach(reason, reasons)
        elements_of(out, reason);
    buf_puts(out, "\nWhat ends it:\n\n");
    for (size_t i = 0; i < reasons_count; i++) {
        bool used = false;

        cJSON_ArrayForEach(reason, reasons)
            used = used || strcmp(json_text(reason, "code", ""), reasons_table[i].code) == 0;
        if (used)
            buf_printf(out, "- %s: %s\n", reasons_table[i].code, reasons_table[i].resolve);
    }
}

/* What is not the same, or not known, stands in the open; the long list of equal fields is folded.
 */
static void identity(struct buf *out, const cJSON *identity, bool folds)
{
    size_t equal = length_of(json_get(identity, "equal"));
    const cJSON *row = NULL;

    buf_puts(out, "\n## Measurement identity and coverage\n\n");
    buf_printf(out, "- equal fields: %zu, different: %zu\n", equal,
               length_of(json_get(identity, "different")));
    cJSON_ArrayForEach(row, json_get(identity, "inferred")) {
        size_t n = length_of(json_get(row, "fields"));

        buf_puts(out, "- inferred for the baseline's ");
        escape(out, json_text(row, "path", "?"));
        buf_printf(out, ": %zu field%s by ", n, n == 1 ? "" : "s");
        escape(out, json_text(row, "source", "?"));
        buf_putc(out, '\n');
    }
    cJSON_ArrayForEach(row, json_get(identity, "not_recorded")) {
        buf_puts(out, "- not recorded on either side: ");
        escape(out, json_text(row, "field", "?"));
        buf_putc(out, '\n');
    }
    if (equal == 0)
        return;
    if (folds)
        buf_printf(out, "\n<details><summary>equal on both sides: %zu field%s</summary>\n\n", equal,
                   equal == 1 ? "" : "s");
    else
        buf_puts(out, "\nequal on both sides:\n\n");
    cJSON_ArrayForEach(row, json_get(identity, "equal")) {
        buf_puts(out, "- ");
        escape(out, json_text(row, "path", "manifest"));
        buf_putc(out, ' ');
        escape(out, json_text(row, "field", "?"));
        buf_puts(out, " = ");
        escape_value(out, json_get(row, "value"));
        buf_putc(out, '\n');
    }
    buf_puts(out, folds ? "\n</details>\n" : "");
}

static void cell(struct buf *out, const struct comparison_text *t,
                 void (*put)(struct buf *, const struct comparison_text *))
{
    AUTO_BUF struct buf text = {0};

    buf_init(&text, LIMIT_KIB(64));
    put(&text, t);
    escape(out, text.failed || !text.data ? "?" : text.data);
    buf_puts(out, " | ");
}

static void table_row(struct buf *out, const cJSON *row, const char *verdict)
{
    struct comparison_text t;

    comparison_text(row, true, &t);
    buf_puts(out, "| ");
    escape(out, json_text(row, "path", "?"));
    buf_puts(out, " | ");
    escape(out, t.label);
    buf_puts(out, " | ");
    cell(out, &t, comparison_put_before);
    cell(out, &t, comparison_put_after);
    cell(out, &t, comparison_put_change);
    cell(out, &t, comparison_put_limit);
    buf_printf(out, "%s |\n", strcmp(verdict, "regression") == 0 ? "REGRESSION" : verdict);
}

static void table(struct buf *out, const cJSON *comparisons, const char *only)
{
    const cJSON *row = NULL;

    buf_puts(out, "| scenario | metric | baseline | current | delta | limit | verdict "
                  "|\n|---|---|---|---|---|---|---|\n");
    cJSON_ArrayForEach(row, comparisons) {
        const char *verdict = json_text(row, "verdict", "?");

        if (!only || strcmp(verdict, only) == 0)
            table_row(out, row, verdict);
    }
}

static void metrics(struct buf *out, const cJSON *comparisons)
{
    size_t regressed = 0;
    size_t n = 0;
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, comparisons) {
        n++;
        regressed += strcmp(json_text(row, "verdict", ""), "regression") == 0 ? 1 : 0;
    }
    if (regressed > 0) {
        buf_printf(out, "\n## Regressions (%zu)\n\n", regressed);
        table(out, comparisons, "regression");
    }
    if (n > regressed) {
        buf_printf(out, "\n## All metrics (%zu)\n\n", n);
        table(out, comparisons, NULL);
    }
}

static void notes(struct buf *out, const char *what, const cJSON *list, const char *key)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, list) {
        buf_printf(out, "- %s: ", what);
        escape(out, key                    ? json_text(item, key, "?")
                    : cJSON_IsString(item) ? item->valuestring
                                           : "?");
        if (key) {
            buf_puts(out, " (");
            escape(out, json_text(item, strcmp(key, "metric") == 0 ? "path" : "problem", "?"));
            buf_puts(out, ")");
        }
        buf_putc(out, '\n');
    }
}

static void coverage_notes(struct buf *out, const cJSON *coverage)
{
    AUTO_BUF struct buf text = {0};

    buf_init(&text, LIMIT_MIB(16));
    notes(&text, "only in the baseline", json_get(coverage, "baseline_only"), NULL);
    notes(&text, "only in the current run", json_get(coverage, "current_only"), NULL);
    notes(&text, "on both sides, but no report of this gate", json_get(coverage, "not_compared"),
          NULL);
    notes(&text, "unreadable", json_get(coverage, "unreadable"), "path");
    notes(&text, "new and not gated", json_get(coverage, "ungated"), "metric");
    if (text.failed)
        buf_fail(out, text.failure);
    else if (text.len > 0)
        buf_printf(out, "\n## Coverage notes\n\n%s", text.data);
}

/* What decides comes first; what is the same on both sides comes last. */
int audit_markdown(const cJSON *document, const struct audit_markdown_options *options, char **out,
                   size_t *out_len, struct err *e)
{
    static const struct audit_markdown_options none = {0};
    AUTO_BUF struct buf text = {0};

    options = options ? options : &none;
    buf_init(&text, LIMIT_MIB(16));
    head(&text, document, options);
    refusals(&text, json_get(document, "reasons"));
    metrics(&text, json_get(document, "comparisons"));
    coverage_notes(&text, json_get(document, "coverage"));
    sides(&text, document);
    identity(&text, json_get(document, "identity"), !options->unfolded);
    if (buf_check(&text, e) < 0)
        return -1;
    *out = buf_take(&text, out_len);
    return *out ? 0 : err_memory(e, "audit.memory");
}
