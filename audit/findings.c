#include "audit/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "audit/verdict.h"
#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"

int findings_init(struct findings *f, struct err *e)
{
    cJSON **lists[] = {&f->reasons,      &f->equal,       &f->different, &f->inferred,
                       &f->not_recorded, &f->comparisons, &f->ungated,   &f->paths};

    *f = (struct findings){0};
    json_doc_init_object(&f->marks);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        *lists[i] = cJSON_CreateArray();
        if (!*lists[i]) {
            findings_fini(f);
            return err_memory(e, "audit.memory");
        }
    }
    return 0;
}

void findings_fini(struct findings *f)
{
    json_free(f->reasons);
    json_free(f->equal);
    json_free(f->different);
    json_free(f->inferred);
    json_free(f->not_recorded);
    json_free(f->comparisons);
    json_free(f->ungated);
    json_free(f->paths);
    json_doc_fini(&f->marks);
    *f = (struct findings){0};
}

int findings_ok(const struct findings *f, struct err *e)
{
    return f->marks.failed ? err_memory(e, "audit.memory") : 0;
}

enum { ROW_BYTES = 100 /* keys, quotes and lines of a row, at least */, REASON_TEXT_MAX = 4 << 10 };

bool findings_room(struct findings *f, size_t bytes)
{
    if (f->over)
        return false;
    f->bytes += bytes + ROW_BYTES;
    f->over = f->bytes > LIMIT_JSON_DOCUMENT;
    return !f->over;
}

void findings_expect(struct findings *f, size_t n)
{
    f->listed += n;
    f->over = f->over || f->listed > LIMIT_COMPARISONS;
}

static size_t length(const char *s)
{
    return s ? strlen(s) : 0;
}

/* Text of any length, as much of it as a reason shows. */
__attribute__((format(printf, 2, 0))) static void put_text(struct buf *out, const char *format,
                                                           va_list ap)
{
    AUTO_BUF struct buf whole = {0};

    buf_init(&whole, LIMIT_CANONICAL);
    buf_vprintf(&whole, format, ap);
    if (whole.failed)
        buf_fail(out, whole.failure);
    else
        buf_put_cut(out, whole.data ? whole.data : "", REASON_TEXT_MAX);
}

void findings_reason(struct findings *f, const struct finding *what, const char *format, ...)
{
    struct json_doc *d = &f->marks;
    cJSON *reason = NULL;
    AUTO_BUF struct buf text = {0};
    va_list ap;

    if (!what->path)
        f->refused_all = true;
    buf_init(&text, (size_t) REASON_TEXT_MAX + 8);
    va_start(ap, format);
    put_text(&text, format, ap);
    va_end(ap);
    if (!findings_room(f, text.len + length(what->path) + length(what->field)))
        return;
    reason = json_add_object(d, f->reasons, NULL);
    if (!reason || text.failed) {
        d->failed = true;
        return;
    }
    json_add_string(d, reason, "code", what->code);
    json_add_string(d, reason, "path", what->path);
    json_add_string(d, reason, "field", what->field);
    f->bytes += value_add_bounded(d, reason, "baseline", what->baseline, VALUE_BYTES_MAX);
    f->bytes += value_add_bounded(d, reason, "current", what->current, VALUE_BYTES_MAX);
    if (what->elements && what->elements->list)
        f->bytes += value_add_elements(d, reason, what->elements);
    json_add_string(d, reason, "text", text.data ? text.data : "");
}

int findings_too_many(struct findings *f, struct err *e)
{
    struct finding what = {.code = f->invalid ? "IN-JSON" : "NC-TOO-MANY"};
    struct findings fresh;

    if (findings_init(&fresh, e) < 0)
        return -1;
    fresh.expected = f->expected;
    fresh.listed = f->listed;
    fresh.self = f->self;
    fresh.invalid = f->invalid;
    if (f->invalid)
        findings_reason(&fresh, &what,
                        "required reports of a side cannot be read, more than can be listed");
    else if (f->listed > LIMIT_COMPARISONS)
        findings_reason(&fresh, &what,
                        "the metrics of the definition give more than %d comparisons of %s "
                        "reports: let the reports hold "
                        "fewer members, or let the definition name only those that count",
                        LIMIT_COMPARISONS, f->self ? "this run's" : "these");
    else
        findings_reason(&fresh, &what,
                        "the comparison of %s reports takes more than the %zu bytes of a document: "
                        "let the reports hold "
                        "fewer, shorter members, or let the definition name only those that count",
                        f->self ? "this run's" : "these", LIMIT_JSON_DOCUMENT);
    fresh.over = true; /* and that is all */
    findings_fini(f);
    *f = fresh;
    return 0;
}

const char *findings_where(const struct findings *f, bool in_baseline, bool in_current)
{
    if (in_baseline && in_current)
        return f->self ? "in this run" : "on both sides";
    return in_baseline ? "in the baseline" : "in the current run";
}

bool findings_refused(const struct findings *f, const char *path)
{
    const cJSON *reason = NULL;

    cJSON_ArrayForEach(reason, f->reasons) {
        const cJSON *at = json_get(reason, "path");

        if (cJSON_IsString(at) && strcmp(at->valuestring, path) == 0)
            return true;
    }
    return false;
}

static size_t rank_of(const cJSON *reason)
{
    const cJSON *code = json_get(reason, "code");

    for (size_t i = 0; i < reasons_count; i++)
        if (cJSON_IsString(code) && strcmp(reasons_table[i].code, code->valuestring) == 0)
            return i;
    return reasons_count;
}

struct slot {
    cJSON *reason;
};

static int compare_reasons(const void *a, const void *b)
{
    const cJSON *left = ((const struct slot *) a)->reason;
    const cJSON *right = ((const struct slot *) b)->reason;
    size_t rank_left = rank_of(left);
    size_t rank_right = rank_of(right);
    int order = 0;

    if (rank_left != rank_right)
        return rank_left < rank_right ? -1 : 1;
    order = strcmp(json_text(left, "path", ""), json_text(right, "path", ""));
    if (order == 0)
        order = strcmp(json_text(left, "field", ""), json_text(right, "field", ""));
    return order != 0 ? order : strcmp(json_text(left, "text", ""), json_text(right, "text", ""));
}

int findings_sort_reasons(struct findings *f, struct err *e)
{
    size_t n = 0;
    size_t at = 0;
    AUTO_FREE struct slot *items = NULL;
    cJSON *reason = NULL;

    cJSON_ArrayForEach(reason, f->reasons)
        n++;
    items = calloc(n + 1, sizeof *items);
    if (!items)
        return err_memory(e, "audit.memory");
    while (f->reasons->child)
        items[at++].reason = cJSON_DetachItemViaPointer(f->reasons, f->reasons->child);
    qsort(items, n, sizeof *items, compare_reasons);
    for (size_t i = 0; i < n; i++)
        /* fails for NULL or the array itself only */
        (void) cJSON_AddItemToArray(f->reasons, items[i].reason);
    return 0;
}
