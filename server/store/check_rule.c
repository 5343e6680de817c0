#include "server/store/check_rule.h"

#include <string.h>

int check_attempts_add(struct check_attempts *l, struct arena *arena,
                       const struct check_attempt *from, struct err *e)
{
    struct check_attempt *a = arena_alloc(arena, sizeof *a);
    struct check_attempt **at = &l->first;

    if (!a)
        return arena_full(e);
    *a = *from;
    for (struct check_attempt **p = at; *p; p = &(*p)->next) {
        if ((*p)->complete == a->complete || (*p)->at_us <= a->at_us)
            at = &(*p)->next;
    }
    a->next = *at;
    *at = a;
    if (!a->next)
        l->last = a;
    return 0;
}

const struct check_attempt *check_latest(const struct check_attempts *l)
{
    const struct check_attempt *latest = NULL;

    for (const struct check_attempt *a = l->first; a; a = a->next) {
        if (a->complete)
            latest = a;
    }
    return latest;
}

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

bool check_same_executable(const struct check_attempt *a, const struct check_attempt *b)
{
    return a->has_executable && b->has_executable && digest_equal(&a->executable, &b->executable);
}

/* The same program: the same executable, or one built from a clean source. Attempts are of one
 * commit, so that two clean sources are the same one, even where git writes its files otherwise
 * (line ends); and a build that is not reproducible gives another executable each time. */
static bool same_question(const struct check_attempt *a, const struct check_attempt *b)
{
    return (check_same_executable(a, b) || (a->clean && b->clean)) &&
           same_text(a->baseline, b->baseline);
}

const struct check_attempt *check_earlier_regression(const struct check_attempts *l,
                                                     const struct check_attempt *ok)
{
    const struct check_attempt *found = NULL;

    for (const struct check_attempt *a = l->first; a && a != ok; a = a->next) {
        if (a->complete && a->regressed && same_question(a, ok))
            found = a;
    }
    return found;
}

int64_t check_agreeing(const struct check_attempts *l, const struct check_attempt *ok)
{
    int64_t agree = 0;

    for (const struct check_attempt *a = l->first; a; a = a->next) {
        if (a->complete && same_question(a, ok))
            agree = a->verdict == VERDICT_OK ? agree + 1 : 0;
    }
    return agree;
}
