#include "experiment/align.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/jcs.h"
#include "base/json_in.h"

enum {
    TABLE_CELLS = 4 << 20, /* 2 bytes each; lists of 2,048 by 2,048 differing elements */
    WINDOW = 24,           /* how far the walk over longer lists looks ahead */
};

struct element {
    const cJSON *value;
    const cJSON *name; /* NULL: none */
    struct digest digest;
    size_t class; /* equal values of both lists have the same */
};

struct aligner {
    struct element *all; /* baseline's, then current's */
    struct element *a, *b;
    size_t n, m;
    struct alignment *out; /* room for n + m steps */
    size_t gap_a, gap_b;   /* first elements that are not yet told */
};

static size_t count(const cJSON *list)
{
    size_t n = 0;

    for (const cJSON *j = list->child; j; j = j->next)
        n++;
    return n;
}

static int by_digest(const void *x, const void *y)
{
    const struct element *a = *(const struct element *const *) x;
    const struct element *b = *(const struct element *const *) y;

    return memcmp(&a->digest, &b->digest, sizeof a->digest);
}

/* Equal values have the same canonical form, so the same digest. */
static int classify(struct aligner *al, struct err *e)
{
    size_t total = al->n + al->m;
    AUTO_FREE struct element **order = calloc(total + 1, sizeof(struct element *));

    if (!order)
        return err_memory(e, "align.memory");
    for (size_t i = 0; i < total; i++) {
        order[i] = &al->all[i];
        if (jcs_digest(al->all[i].value, &al->all[i].digest, e) < 0)
            return -1;
    }
    qsort(order, total, sizeof *order, by_digest);
    for (size_t i = 1; i < total; i++)
        order[i]->class = order[i - 1]->class + (by_digest(&order[i - 1], &order[i]) != 0 ? 1 : 0);
    return 0;
}

static void add_step(struct aligner *al, enum align_kind kind, size_t i, size_t j)
{
    al->out->steps[al->out->n++] = (struct align_step){
        .kind = kind,
        .baseline = kind == ALIGN_ADDED ? NULL : al->a[i].value,
        .current = kind == ALIGN_REMOVED ? NULL : al->b[j].value,
        .at_baseline = i,
        .at_current = j,
    };
}

/* The member that tells an object from others of its list, or NULL. */
static const cJSON *name_of(const cJSON *value)
{
    static const char *const keys[] = {"name", "id", "path", "key"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const cJSON *j = cJSON_IsObject(value) ? json_get(value, keys[i]) : NULL;

        if (cJSON_IsString(j))
            return j;
    }
    return NULL;
}

/* Two named objects that are alike but for the name. */
static bool renamed(const struct element *a, const struct element *b)
{
    const cJSON *member = NULL;

    if (strcmp(a->name->string, b->name->string) != 0 || count(a->value) != count(b->value))
        return false;
    cJSON_ArrayForEach(member, a->value) {
        const cJSON *other = json_get(b->value, member->string);

        if (!other || (member != a->name && !json_equal(member, other)))
            return false;
    }
    return true;
}

/* Whether the one may be told as changed into the other, when no name joins them. */
static bool may_change(const struct element *a, const struct element *b)
{
    return !a->name || !b->name || renamed(a, b);
}

/* The first pair of one name at or after (i, j), below the ends. */
static bool next_named(const struct aligner *al, size_t *i, size_t *j, size_t end_a, size_t end_b)
{
    if ((end_a - *i) > TABLE_CELLS / (end_b - *j + 1))
        return false;
    for (size_t x = *i; x < end_a; x++)
        for (size_t y = *j; y < end_b && al->a[x].name; y++)
            if (al->b[y].name &&
                strcmp(al->a[x].name->valuestring, al->b[y].name->valuestring) == 0) {
                *i = x;
                *j = y;
                return true;
            }
    return false;
}

/* Elements between two told ones that no name joins: changed in turn where that may be; the rest is
 * one-sided. */
static void tell_unnamed(struct aligner *al, size_t end_a, size_t end_b)
{
    while (al->gap_a < end_a || al->gap_b < end_b) {
        bool both = al->gap_a < end_a && al->gap_b < end_b;

        if (both && may_change(&al->a[al->gap_a], &al->b[al->gap_b])) {
            add_step(al, ALIGN_CHANGED, al->gap_a, al->gap_b);
            al->gap_a++;
            al->gap_b++;
        } else if (al->gap_a < end_a) {
            add_step(al, ALIGN_REMOVED, al->gap_a++, al->gap_b);
        } else {
            add_step(al, ALIGN_ADDED, al->gap_a, al->gap_b++);
        }
    }
}

/* Everything up to (exclusive) an equal pair, or the ends. */
static void tell_gap(struct aligner *al, size_t end_a, size_t end_b)
{
    size_t i = al->gap_a;
    size_t j = al->gap_b;

    while (next_named(al, &i, &j, end_a, end_b)) {
        tell_unnamed(al, i, j);
        add_step(al, ALIGN_CHANGED, i++, j++);
        al->gap_a = i;
        al->gap_b = j;
    }
    tell_unnamed(al, end_a, end_b);
}

static void tell_equal(struct aligner *al, size_t i, size_t j)
{
    tell_gap(al, i, j);
    add_step(al, ALIGN_EQUAL, i, j);
    al->gap_a = i + 1;
    al->gap_b = j + 1;
}

static bool same(const struct aligner *al, size_t i, size_t j)
{
    return al->a[i].class == al->b[j].class;
}

struct part {
    size_t from_a, end_a, from_b, end_b;
};

/* The longest common subsequence of a part, by the table of its tails. */
static int walk_table(struct aligner *al, const struct part *p, struct err *e)
{
    size_t width = p->end_b - p->from_b + 1;
    size_t i = p->from_a;
    size_t j = p->from_b;
    AUTO_FREE uint16_t *tail = calloc((p->end_a - p->from_a + 1) * width, sizeof *tail);

    if (!tail)
        return err_memory(e, "align.memory");
    for (size_t x = p->end_a - p->from_a; x-- > 0;)
        for (size_t y = width - 1; y-- > 0;) {
            uint16_t down = tail[(x + 1) * width + y];
            uint16_t right = tail[x * width + y + 1];

            if (same(al, p->from_a + x, p->from_b + y))
                tail[x * width + y] = (uint16_t) (tail[(x + 1) * width + y + 1] + 1);
            else
                tail[x * width + y] = down > right ? down : right;
        }
    while (i < p->end_a && j < p->end_b) {
        size_t at = (i - p->from_a) * width + (j - p->from_b);

        if (same(al, i, j))
            tell_equal(al, i++, j++);
        else if (tail[at + width] >= tail[at + 1])
            i++;
        else
            j++;
    }
    return 0;
}

/* The nearest equal pair ahead of (i, j), or false. */
static bool ahead(const struct aligner *al, const struct part *p, size_t *i, size_t *j)
{
    for (size_t d = 0; d <= WINDOW; d++)
        for (size_t x = 0; x <= d; x++)
            if (*i + x < p->end_a && *j + (d - x) < p->end_b && same(al, *i + x, *j + (d - x))) {
                *i += x;
                *j += d - x;
                return true;
            }
    return false;
}

static void walk_ahead(struct aligner *al, const struct part *p)
{
    size_t i = p->from_a;
    size_t j = p->from_b;

    while (i < p->end_a && j < p->end_b) {
        if (ahead(al, p, &i, &j))
            tell_equal(al, i, j);
        i++;
        j++;
    }
}

static int walk(struct aligner *al, struct err *e)
{
    struct part p = {.end_a = al->n, .end_b = al->m};
    size_t tail = 0;

    for (; p.from_a < p.end_a && p.from_b < p.end_b && same(al, p.from_a, p.from_b);
         p.from_a++, p.from_b++)
        tell_equal(al, p.from_a, p.from_b);
    for (; p.end_a > p.from_a && p.end_b > p.from_b && same(al, p.end_a - 1, p.end_b - 1);
         p.end_a--, p.end_b--)
        tail++;
    if (p.end_a - p.from_a + 1 > TABLE_CELLS / (p.end_b - p.from_b + 1))
        walk_ahead(al, &p);
    else if (walk_table(al, &p, e) < 0)
        return -1;
    for (size_t i = 0; i < tail; i++)
        tell_equal(al, p.end_a + i, p.end_b + i);
    tell_gap(al, al->n, al->m);
    return 0;
}

static void collect(const cJSON *list, struct element *out)
{
    for (const cJSON *j = list->child; j; j = j->next, out++) {
        out->value = j;
        out->name = name_of(j);
    }
}

int align_lists(const cJSON *baseline, const cJSON *current, struct alignment *out, struct err *e)
{
    AUTO_ALIGNMENT struct alignment made = {0};
    struct aligner al = {.n = count(baseline), .m = count(current), .out = &made};
    AUTO_FREE struct element *all = calloc(al.n + al.m + 1, sizeof *all);

    made.steps = calloc(al.n + al.m + 1, sizeof *made.steps);
    if (!all || !made.steps)
        return err_memory(e, "align.memory");
    al.all = all;
    al.a = all;
    al.b = all + al.n;
    collect(baseline, al.a);
    collect(current, al.b);
    if (classify(&al, e) < 0 || walk(&al, e) < 0)
        return -1;
    out->n = made.n;
    out->steps = STEAL(made.steps);
    return 0;
}

void alignment_fini(struct alignment *a)
{
    free(a->steps);
    *a = (struct alignment){0};
}
