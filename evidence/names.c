#include "evidence/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/relname.h"

struct folded {
    char text[LIMIT_RELNAME + 1]; /* ASCII lower case */
    const char *name;
};

static int compare_folded(const void *a, const void *b)
{
    const struct folded *x = a;
    const struct folded *y = b;

    return strcmp(x->text, y->text);
}

static void fold(struct folded *out, const char *name)
{
    size_t i = 0;

    for (; name[i] && i < LIMIT_RELNAME; i++)
        out->text[i] = (char) (name[i] >= 'A' && name[i] <= 'Z' ? name[i] + ('a' - 'A') : name[i]);
    out->text[i] = '\0';
    out->name = name;
}

static int check_directories(struct folded *all, size_t n, const struct folded *one, struct err *e)
{
    struct folded parent = *one;

    for (char *slash = strrchr(parent.text, '/'); slash; slash = strrchr(parent.text, '/')) {
        const struct folded *hit;

        *slash = '\0';
        hit = bsearch(&parent, all, n, sizeof *all, compare_folded);
        if (hit)
            return err_set(e, ERR_INPUT, "names.directory",
                           "'%s' is a file and also the directory of '%s'", hit->name, one->name);
    }
    return 0;
}

int names_check(const char *const *names, size_t n, struct err *e)
{
    AUTO_FREE struct folded *all = NULL;

    if (n > LIMIT_MEMBERS)
        return err_set(e, ERR_LIMIT, "names.count", "%zu names; the limit is %d", n, LIMIT_MEMBERS);
    all = calloc(n + 1, sizeof *all);
    if (!all)
        return err_set(e, ERR_NOMEM, "names.memory", "no memory for %zu names", n);
    for (size_t i = 0; i < n; i++) {
        if (!relname_ok(names[i]))
            return err_set(e, ERR_INPUT, "names.name", "the name '%.100s' is not allowed",
                           names[i]);
        fold(&all[i], names[i]);
    }
    qsort(all, n, sizeof *all, compare_folded);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(all[i - 1].text, all[i].text) != 0)
            continue;
        if (strcmp(all[i - 1].name, all[i].name) == 0)
            return err_set(e, ERR_INPUT, "names.duplicate", "'%s' is there twice", all[i].name);
        return err_set(e, ERR_INPUT, "names.case", "'%s' and '%s' differ only in case",
                       all[i - 1].name, all[i].name);
    }
    for (size_t i = 0; i < n; i++) {
        if (check_directories(all, n, &all[i], e) < 0)
            return -1;
    }
    return 0;
}
