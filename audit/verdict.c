#include "audit/verdict.h"

#include <assert.h>
#include <string.h>

struct row {
    const char *word;
    enum exit_code code;
    int rank; /* lower is worse: the order 5 6 4 1 3 7 8 0 of exit codes */
};

static const struct row rows[VERDICT_MAX] = {
    [VERDICT_INVALID] = {"INVALID", EXIT_INVALID, 0},
    [VERDICT_ERROR] = {"ERROR", EXIT_ERROR, 1},
    [VERDICT_FAIL] = {"FAIL", EXIT_FAIL, 2},
    [VERDICT_REGRESSION] = {"REGRESSION", EXIT_REGRESSION, 3},
    [VERDICT_NON_COMPARABLE] = {"NON_COMPARABLE", EXIT_NON_COMPARABLE, 4},
    [VERDICT_PENDING] = {"PENDING", EXIT_PENDING, 5},
    [VERDICT_OK] = {"OK", EXIT_OK, 6},
};

const char *verdict_word(enum verdict v)
{
    assert(v < VERDICT_MAX);
    return rows[v].word;
}

bool verdict_parse(const char *word, enum verdict *out)
{
    for (size_t i = 0; i < VERDICT_MAX; i++)
        if (strcmp(rows[i].word, word) == 0) {
            *out = (enum verdict) i;
            return true;
        }
    return false;
}

int verdict_exit(enum verdict v)
{
    assert(v < VERDICT_MAX);
    return (int) rows[v].code;
}

enum verdict verdict_worse(enum verdict a, enum verdict b)
{
    assert(a < VERDICT_MAX && b < VERDICT_MAX);
    return rows[a].rank <= rows[b].rank ? a : b;
}
