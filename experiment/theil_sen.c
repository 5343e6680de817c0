/*
 * The exact median of all pairwise slopes in O(n log n) comparisons.
 *
 * A slope s = dy/dx gives each point the key z = y·dx - x·dy: of two points with x_i < x_j the
 * pair's slope is below s exactly when z_j < z_i. So the pairs with slopes strictly between lo and
 * hi are the strict inversions of z(hi) among the points sorted by (z(lo), z(hi)): counted, sampled
 * or listed by a merge sort. The interval is narrowed around the wanted rank by slopes of sampled
 * pairs until few enough pairs are left to be listed. All keys are integers of at most 125 bits, so
 * counts are exact. The generator's seed is fixed; the answer does not depend on it.
 */
#include "experiment/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 2048,  /* pairs drawn per round */
    MARGIN = 72,     /* bracket around the wanted rank: 1.6·sqrt(SAMPLES) samples to each side */
    LIST_FACTOR = 4, /* at most 4·n pairs are listed … */
    LIST_MIN = 4096, /* … or this many */
    KEY_BITS = 60,   /* magnitudes below 2^61 */
};

__extension__ typedef __int128 wide;

struct point {
    int64_t x;
    int64_t y;
    wide a;
    wide b;
};

enum slope_kind { SLOPE_LOWEST, SLOPE_FINITE, SLOPE_HIGHEST };

struct slope {
    enum slope_kind kind;
    int64_t dy;
    int64_t dx; /* > 0 when finite */
};

struct counts {
    uint64_t below; /* pairs with a smaller slope */
    uint64_t equal;
};

struct work {
    size_t n;
    struct point *points;
    struct point *scratch;
    struct slope *listed; /* pairs of the interval, or drawn ones */
    uint64_t *drawn;      /* sorted indices of drawn inversions */
    uint64_t same_points; /* pairs with equal x and y */
    uint64_t random;
    uint64_t comparisons;
};

/* Where merge passes put inversions: `next` walks through w->drawn when it is used. */
struct listing {
    bool all;
    uint64_t seen;
    size_t next;
    size_t n_drawn;
    size_t n;
};

static uint64_t draw(struct work *w, uint64_t below)
{
    uint64_t z = w->random += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (z ^ (z >> 31)) % below;
}

static wide key(const struct point *p, const struct slope *s)
{
    switch (s->kind) {
    case SLOPE_LOWEST:
        return p->x;
    case SLOPE_HIGHEST:
        return -(wide) p->x;
    case SLOPE_FINITE:
        break;
    }
    return (wide) p->y * s->dx - (wide) p->x * s->dy;
}

static int compare_slopes(const void *a, const void *b, void *counter)
{
    const struct slope *s = a;
    const struct slope *t = b;
    wide left = (wide) s->dy * t->dx;
    wide right = (wide) t->dy * s->dx;

    ++*(uint64_t *) counter;
    return (left > right) - (left < right);
}

static int compare_drawn(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a;
    uint64_t y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}

static bool by_a_then_b(const struct point *p, const struct point *q)
{
    return p->a < q->a || (p->a == q->a && p->b < q->b);
}

static bool by_b(const struct point *p, const struct point *q)
{
    return p->b < q->b;
}

static void list_pair(struct work *w, struct listing *l, const struct point *p,
                      const struct point *q)
{
    struct slope *s = &w->listed[l->n++];

    s->kind = SLOPE_FINITE;
    s->dy = q->x > p->x ? q->y - p->y : p->y - q->y;
    s->dx = q->x > p->x ? q->x - p->x : p->x - q->x;
}

/* `right` comes before the n points from `left` on: n inversions with the numbers l->seen … */
static void list_run(struct work *w, struct listing *l, const struct point *left, size_t n,
                     const struct point *right)
{
    if (l->all)
        for (size_t i = 0; i < n; i++)
            list_pair(w, l, &left[i], right);
    while (l->next < l->n_drawn && w->drawn[l->next] < l->seen + n) {
        list_pair(w, l, &left[w->drawn[l->next] - l->seen], right);
        l->next++;
    }
    l->seen += n;
}

typedef bool order(const struct point *p, const struct point *q);

/* Merges points[start..middle) and points[middle..end) into scratch; returns the inversions between
 * them. */
static uint64_t merge(struct work *w, size_t start, size_t middle, size_t end, order *less,
                      struct listing *l)
{
    uint64_t inversions = 0;
    size_t left = start;
    size_t right = middle;
    size_t to = start;

    while (left < middle && right < end) {
        w->comparisons++;
        if (!less(&w->points[right], &w->points[left])) {
            w->scratch[to++] = w->points[left++];
            continue;
        }
        if (l)
            list_run(w, l, &w->points[left], middle - left, &w->points[right]);
        inversions += middle - left;
        w->scratch[to++] = w->points[right++];
    }
    while (left < middle)
        w->scratch[to++] = w->points[left++];
    while (right < end)
        w->scratch[to++] = w->points[right++];
    return inversions;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Stable bottom-up merge sort of w->points. Returns the strict inversions; l (may be NULL) sees
 * each of them. */
static uint64_t merge_sort(struct work *w, order *less, struct listing *l)
{
    uint64_t inversions = 0;

    for (size_t width = 1; width < w->n; width *= 2) {
        struct point *swap = w->points;

        for (size_t start = 0; start < w->n; start += 2 * width)
            inversions += merge(w, start, smaller(start + width, w->n),
                                smaller(start + 2 * width, w->n), less, l);
        w->points = w->scratch;
        w->scratch = swap;
    }
    return inversions;
}

static uint64_t pairs(uint64_t n)
{
    return n * (n - 1) / 2;
}

/* Pairs whose slope is below s, and equal to it. */
static struct counts count_slope(struct work *w, const struct slope *s)
{
    struct counts c = {0};
    uint64_t group = 1;

    for (size_t i = 0; i < w->n; i++) {
        w->points[i].a = w->points[i].x;
        w->points[i].b = key(&w->points[i], s);
    }
    (void) merge_sort(w, by_a_then_b, NULL);
    c.below = merge_sort(w, by_b, NULL);
    for (size_t i = 1; i <= w->n; i++) {
        w->comparisons++;
        if (i < w->n && w->points[i].b == w->points[i - 1].b) {
            group++;
            continue;
        }
        c.equal += pairs(group);
        group = 1;
    }
    c.equal -= w->same_points;
    return c;
}

/* Lists the pairs with slopes strictly between lo and hi: all, or the drawn ones; sorted. Returns
 * how many. */
static size_t list_between(struct work *w, const struct slope *lo, const struct slope *hi,
                           struct listing l)
{
    for (size_t i = 0; i < w->n; i++) {
        w->points[i].a = key(&w->points[i], lo);
        w->points[i].b = key(&w->points[i], hi);
    }
    (void) merge_sort(w, by_a_then_b, NULL);
    (void) merge_sort(w, by_b, &l);
    qsort_r(w->listed, l.n, sizeof *w->listed, compare_slopes, &w->comparisons);
    return l.n;
}

/* The interval (lo, hi): `below` pairs have slopes ≤ lo, `above` pairs have slopes < hi; below <
 * rank ≤ above. */
struct interval {
    struct slope lo;
    struct slope hi;
    uint64_t below;
    uint64_t above;
};

/* Moves one end of the interval to s, or finds that the wanted slope is s. */
static bool narrow(struct work *w, struct interval *iv, const struct slope *s, uint64_t rank)
{
    struct counts c = count_slope(w, s);

    if (rank <= c.below) {
        iv->hi = *s;
        iv->above = c.below;
        return false;
    }
    if (rank > c.below + c.equal) {
        iv->lo = *s;
        iv->below = c.below + c.equal;
        return false;
    }
    return true;
}

static bool is_inside(struct work *w, const struct interval *iv, const struct slope *s)
{
    if (iv->lo.kind == SLOPE_FINITE && compare_slopes(s, &iv->lo, &w->comparisons) <= 0)
        return false;
    return iv->hi.kind != SLOPE_FINITE || compare_slopes(s, &iv->hi, &w->comparisons) < 0;
}

/* Samples the interval and narrows it. True when a sampled slope is the wanted one. */
static bool contract(struct work *w, struct interval *iv, uint64_t rank, struct slope *out)
{
    uint64_t inside = iv->above - iv->below;
    struct listing l = {.n_drawn = SAMPLES};
    size_t n = 0;
    size_t middle = 0;
    struct slope bracket[2];

    for (size_t i = 0; i < SAMPLES; i++)
        w->drawn[i] = draw(w, inside);
    qsort(w->drawn, SAMPLES, sizeof *w->drawn, compare_drawn);
    n = list_between(w, &iv->lo, &iv->hi, l);
    assert(n == SAMPLES);
    middle = (size_t) ((double) (rank - iv->below) / (double) inside * SAMPLES);
    bracket[0] = w->listed[middle > MARGIN ? middle - MARGIN : 0];
    bracket[1] = w->listed[middle + MARGIN < n ? middle + MARGIN : n - 1];
    for (size_t i = 0; i < 2; i++)
        if (is_inside(w, iv, &bracket[i]) && narrow(w, iv, &bracket[i], rank)) {
            *out = bracket[i];
            return true;
        }
    return false;
}

static size_t list_limit(size_t n)
{
    return LIST_FACTOR * n > LIST_MIN ? LIST_FACTOR * n : LIST_MIN;
}

/* The rank-th smallest slope (from 1) of the interval; the interval is left around it. */
static struct slope select_slope(struct work *w, struct interval *iv, uint64_t rank)
{
    struct slope found = {.kind = SLOPE_FINITE, .dx = 1};

    while (iv->above - iv->below > list_limit(w->n))
        if (contract(w, iv, rank, &found))
            return found;
    (void) list_between(w, &iv->lo, &iv->hi, (struct listing){.all = true});
    return w->listed[rank - iv->below - 1];
}

/* The slope after `s`, which is the rank-th: the same again, the next inside the interval, or its
 * upper end. */
static struct slope next_slope(struct work *w, struct interval *iv, const struct slope *s,
                               uint64_t rank)
{
    struct counts c = count_slope(w, s);

    if (rank < c.below + c.equal)
        return *s;
    iv->lo = *s;
    iv->below = c.below + c.equal;
    if (rank + 1 > iv->above)
        return iv->hi;
    return select_slope(w, iv, rank + 1);
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

/* Equal fractions give equal doubles: reduced first, then one rounding when both parts fit a
 * double. */
static double slope_value(const struct slope *s, int exponent)
{
    uint64_t magnitude = s->dy < 0 ? (uint64_t) -s->dy : (uint64_t) s->dy;
    uint64_t divisor = greatest_divisor(magnitude, (uint64_t) s->dx);
    uint64_t dy = magnitude / divisor;
    uint64_t dx = (uint64_t) s->dx / divisor;
    const uint64_t exact = (uint64_t) 1 << 53;
    double v = dy <= exact && dx <= exact ? (double) dy / (double) dx
                                          : (double) ((long double) dy / (long double) dx);

    return ldexp(s->dy < 0 ? -v : v, exponent);
}

/* The power of two that brings all values below 2^61. */
static int scale_of(const double *v, size_t n)
{
    double largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(v[i]));
    return largest > 0 ? KEY_BITS - ilogb(largest) : 0;
}

static uint64_t count_groups(struct work *w, bool with_y)
{
    uint64_t group = 1;
    uint64_t sum = 0;

    for (size_t i = 1; i <= w->n; i++) {
        const struct point *p = &w->points[i - 1];

        if (i < w->n && p->x == p[1].x && (!with_y || p->y == p[1].y)) {
            group++;
            continue;
        }
        sum += pairs(group);
        group = 1;
    }
    return sum;
}

/* Fills the points, sorted by x, then y. Returns the pairs with different x. */
static uint64_t fill(struct work *w, const double *t, const double *y, int scale_t, int scale_y)
{
    for (size_t i = 0; i < w->n; i++) {
        struct point *p = &w->points[i];

        p->x = llrint(ldexp(t[i], scale_t));
        p->y = llrint(ldexp(y[i], scale_y));
        p->a = p->x;
        p->b = p->y;
    }
    (void) merge_sort(w, by_a_then_b, NULL);
    w->same_points = count_groups(w, true);
    return pairs(w->n) - count_groups(w, false);
}

static void work_run(struct work *w, const double *t, const double *y, struct stats_slope *out)
{
    int scale_t = scale_of(t, w->n);
    int scale_y = scale_of(y, w->n);
    uint64_t all = fill(w, t, y, scale_t, scale_y);
    struct interval iv = {
        .lo = {.kind = SLOPE_LOWEST}, .hi = {.kind = SLOPE_HIGHEST}, .above = all};
    struct slope first;

    *out = (struct stats_slope){.n_slopes = all};
    if (all == 0)
        return;
    first = select_slope(w, &iv, (all + 1) / 2);
    out->defined = true;
    out->slope = slope_value(&first, scale_t - scale_y);
    if (all % 2 == 0) {
        struct slope second = next_slope(w, &iv, &first, all / 2);

        out->slope = (out->slope + slope_value(&second, scale_t - scale_y)) / 2.0;
    }
}

int stats_theil_sen(const double *t, const double *y, size_t n, struct stats_slope *out,
                    uint64_t *comparisons, struct err *e)
{
    AUTO_FREE struct point *points = NULL;
    AUTO_FREE struct point *scratch = NULL;
    AUTO_FREE struct slope *listed = NULL;
    AUTO_FREE uint64_t *drawn = NULL;
    struct work w = {.n = n, .random = 20260706};

    *out = (struct stats_slope){0};
    if (n < 2)
        return 0;
    if (n > INT32_MAX)
        return err_set(e, ERR_LIMIT, "stats.points", "too many points");
    points = reallocarray(NULL, n, sizeof *points);
    scratch = reallocarray(NULL, n, sizeof *scratch);
    listed = reallocarray(NULL, list_limit(n), sizeof *listed);
    drawn = reallocarray(NULL, SAMPLES, sizeof *drawn);
    if (!points || !scratch || !listed || !drawn)
        return err_memory(e, "stats.memory");
    w.points = points;
    w.scratch = scratch;
    w.listed = listed;
    w.drawn = drawn;
    work_run(&w, t, y, out);
    if (comparisons)
        *comparisons += w.comparisons;
    return 0;
}
