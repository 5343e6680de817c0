/* What a pattern matches in the two reports of a pair, and when that is too much
 * (LIMIT_COMPARISONS). */
#include <string.h>

#include "audit/parts.h"
#include "base/limits.h"

/* The reports are their author's: too many members are a refusal, neither an error nor broken
 * evidence. */
static void say_too_many(const struct pair *pair, const char *pattern, const struct pointer_list *l,
                         const char *where, struct findings *f)
{
    static const char advice[] =
        "let the report hold fewer, or let the definition name only those that count";
    struct finding what = {.code = "NC-TOO-MANY", .path = pair->path, .field = pattern};

    if (l->total > LIMIT_COMPARISONS)
        findings_reason(f, &what, "%s matches %zu members %s, at most %d can be compared: %s",
                        pattern, l->total, where, LIMIT_COMPARISONS, advice);
    else
        findings_reason(f, &what,
                        "%s matches %zu members %s, whose names take more than %zu bytes: %s",
                        pattern, l->total, where, LIMIT_JSON_DOCUMENT, advice);
}

int expand_pair(const struct pair *pair, const char *pattern, expander *expand, struct findings *f,
                struct expanded *out, struct err *e)
{
    AUTO_EXPANDED struct expanded x = {0};

    if (expand(pair->baseline, pattern, LIMIT_COMPARISONS, &x.baseline, e) < 0 ||
        expand(pair->current, pattern, LIMIT_COMPARISONS, &x.current, e) < 0)
        return -1;
    if (x.baseline.over && !f->self)
        say_too_many(pair, pattern, &x.baseline, "in the baseline", f);
    if (x.current.over)
        say_too_many(pair, pattern, &x.current, f->self ? "in this run" : "in the current run", f);
    if (x.baseline.over || x.current.over) {
        *out = (struct expanded){.refused = true};
        return 0;
    }
    *out = x;
    memset(&x, 0, sizeof x); /* moved out */
    return 0;
}

void expanded_fini(struct expanded *x)
{
    pointer_list_fini(&x->baseline);
    pointer_list_fini(&x->current);
}
