#include "experiment/samples.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"

#define KIB_PER_MB 1024.0
#define MS_PER_SEC 1000.0

static const char header_start[] = "t_ms,rss_kib";

enum { COLUMNS_MAX = 64 };

void samples_fini(struct samples *s)
{
    if (!s)
        return;
    free(s->t_secs);
    free(s->value);
    free(s->cpu_pct);
    free(s->t_ms);
    free(s->rss_kib);
    *s = (struct samples){0};
}

int samples_alloc(size_t n, bool with_cpu, bool with_integers, struct samples *out, struct err *e)
{
    struct samples s = {.n = n};
    size_t room = n ? n : 1;

    s.t_secs = calloc(room, sizeof *s.t_secs);
    s.value = calloc(room, sizeof *s.value);
    if (with_cpu)
        s.cpu_pct = calloc(room, sizeof *s.cpu_pct);
    if (with_integers) {
        s.t_ms = calloc(room, sizeof *s.t_ms);
        s.rss_kib = calloc(room, sizeof *s.rss_kib);
    }
    if (!s.t_secs || !s.value || (with_cpu && !s.cpu_pct) ||
        (with_integers && (!s.t_ms || !s.rss_kib))) {
        samples_fini(&s);
        return err_memory(e, "samples.memory");
    }
    *out = s;
    return 0;
}

struct cell {
    const char *p;
    size_t len;
};

struct reader {
    const char *p;
    const char *end;
    size_t columns;
    size_t cpu_column; /* 0: none */
};

/* The next line without its end; false after the last. */
static bool next_line(struct reader *r, struct cell *out)
{
    const char *newline = NULL;
    const char *stop = NULL;

    if (r->p == r->end)
        return false;
    newline = memchr(r->p, '\n', (size_t) (r->end - r->p));
    stop = newline ? newline : r->end;
    *out = (struct cell){.p = r->p, .len = (size_t) (stop - r->p)};
    if (out->len > 0 && out->p[out->len - 1] == '\r')
        out->len--;
    r->p = newline ? newline + 1 : r->end;
    return true;
}

/* Cells of a line, at most COLUMNS_MAX; more count as COLUMNS_MAX + 1. */
static size_t split(struct cell line, struct cell cells[COLUMNS_MAX])
{
    const char *p = line.p;
    const char *end = line.p + line.len;
    size_t n = 0;

    for (;;) {
        const char *comma = p < end ? memchr(p, ',', (size_t) (end - p)) : NULL;
        const char *stop = comma ? comma : end;

        if (n == COLUMNS_MAX)
            return COLUMNS_MAX + 1;
        cells[n++] = (struct cell){.p = p, .len = (size_t) (stop - p)};
        if (!comma)
            return n;
        p = comma + 1;
    }
}

static bool cell_is(struct cell c, const char *word)
{
    return c.len == strlen(word) && memcmp(c.p, word, c.len) == 0;
}

static int read_header(struct reader *r, struct err *e)
{
    struct cell line = {0};
    struct cell cells[COLUMNS_MAX];

    if (!next_line(r, &line) || line.len < sizeof header_start - 1 ||
        memcmp(line.p, header_start, sizeof header_start - 1) != 0)
        return err_set(e, ERR_INPUT, "samples.header", "the first line must begin with '%s'",
                       header_start);
    r->columns = split(line, cells);
    if (r->columns > COLUMNS_MAX)
        return err_set(e, ERR_LIMIT, "samples.columns", "more than %d columns", COLUMNS_MAX);
    if (r->columns < 2 || !cell_is(cells[1], "rss_kib"))
        return err_set(e, ERR_INPUT, "samples.header", "the first columns must be '%s'",
                       header_start);
    for (size_t i = 2; i < r->columns; i++)
        if (cell_is(cells[i], "cpu_pct"))
            r->cpu_column = i;
    return 0;
}

/* Only what numbers are written with. The bytes end with the cell, not with a NUL. */
static bool is_number_like(struct cell c)
{
    for (size_t i = 0; i < c.len; i++)
        if (c.p[i] == '\0' || !strchr("-0123456789.eE+", c.p[i]))
            return false;
    return true;
}

static const char *integer_problem(struct cell c)
{
    static const char *const words[] = {"nan", "inf"};
    double v = 0;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t sign = c.len > 0 && (c.p[0] == '-' || c.p[0] == '+') ? 1 : 0;

        if (c.len >= sign + 3 && strncasecmp(c.p + sign, words[i], 3) == 0)
            return "not_finite";
    }
    if (c.len > 0 && !num_parse_double(c.p, c.len, &v) && is_number_like(c))
        return "not_finite"; /* 1e999 */
    return "not_integer";
}

/* "" or why the line is no sample. */
static const char *read_row(const struct reader *r, struct cell line, struct samples *s, size_t row)
{
    struct cell cells[COLUMNS_MAX];

    assert(s->t_ms && s->rss_kib);
    if (split(line, cells) != r->columns)
        return "row_length";
    for (size_t i = 0; i < 2; i++)
        if (!num_parse_i64(cells[i].p, cells[i].len, i == 0 ? &s->t_ms[row] : &s->rss_kib[row]))
            return integer_problem(cells[i]);
    if (s->rss_kib[row] < 0)
        return "negative";
    if (!num_is_safe_integer((double) s->t_ms[row]) ||
        !num_is_safe_integer((double) s->rss_kib[row]))
        return "not_integer";
    s->t_secs[row] = (double) s->t_ms[row] / MS_PER_SEC;
    s->value[row] = (double) s->rss_kib[row] / KIB_PER_MB;
    if (r->cpu_column > 0) {
        struct cell c = cells[r->cpu_column];

        if (c.len == 0 && row == 0)
            s->cpu_pct[row] = 0;
        else if (!num_parse_double(c.p, c.len, &s->cpu_pct[row]))
            return "not_finite";
    }
    return "";
}

static size_t count_lines(const struct reader *r)
{
    size_t n = 0;

    for (const char *p = r->p; p < r->end; n++) {
        const char *newline = memchr(p, '\n', (size_t) (r->end - p));

        p = newline ? newline + 1 : r->end;
    }
    return n;
}

int samples_read_csv(const char *bytes, size_t len, struct samples *out, const char **out_problem,
                     struct err *e)
{
    struct reader r = {.p = bytes, .end = bytes + len};
    AUTO_SAMPLES struct samples s = {0};
    struct cell line = {0};
    const char *problem = "";
    size_t rows = 0;

    if (len > LIMIT_SAMPLES_FILE)
        return err_set(e, ERR_LIMIT, "samples.size", "samples are larger than %zu bytes",
                       LIMIT_SAMPLES_FILE);
    if (read_header(&r, e) < 0)
        return -1;
    rows = count_lines(&r);
    if (rows > LIMIT_SAMPLES)
        return err_set(e, ERR_LIMIT, "samples.count", "more than %zu samples", LIMIT_SAMPLES);
    if (samples_alloc(rows, r.cpu_column > 0, true, &s, e) < 0)
        return -1;
    for (size_t row = 0; row < rows && problem[0] == '\0' && next_line(&r, &line); row++)
        problem = read_row(&r, line, &s, row);
    *out_problem = problem;
    if (problem[0] != '\0')
        samples_fini(&s);
    *out = s;
    s = (struct samples){0};
    return 0;
}

int samples_parse_csv(const char *bytes, size_t len, struct samples *out, struct err *e)
{
    const char *problem = "";
    AUTO_SAMPLES struct samples s = {0};

    if (samples_read_csv(bytes, len, &s, &problem, e) < 0)
        return -1;
    if (problem[0] != '\0')
        return err_set(e, ERR_INPUT, "samples.row", "a row of the samples is malformed: %s",
                       problem);
    *out = s;
    s = (struct samples){0};
    return 0;
}

static const char *read_object(const cJSON *item, const struct samples_members *m,
                               struct samples *s, size_t row)
{
    const cJSON *t = json_get(item, m->t);
    const cJSON *value = json_get(item, m->value);
    const cJSON *cpu = m->cpu ? json_get(item, m->cpu) : NULL;

    if (!cJSON_IsNumber(t) || !cJSON_IsNumber(value) || (m->cpu && !cJSON_IsNumber(cpu)))
        return "not_number";
    if (!isfinite(t->valuedouble) || !isfinite(value->valuedouble) ||
        (cpu && !isfinite(cpu->valuedouble)))
        return "not_finite";
    assert(s->t_secs && s->value);
    s->t_secs[row] = t->valuedouble;
    s->value[row] = value->valuedouble;
    if (cpu)
        s->cpu_pct[row] = m->cpu_binary32 ? (double) (float) cpu->valuedouble : cpu->valuedouble;
    return "";
}

int samples_from_json(const cJSON *array, const struct samples_members *members,
                      struct samples *out, const char **out_problem, struct err *e)
{
    AUTO_SAMPLES struct samples s = {0};
    const char *problem = "";
    const cJSON *item = NULL;
    size_t row = 0;
    size_t n = 0;

    cJSON_ArrayForEach(item, array)
        n++;
    if (!cJSON_IsArray(array) || n == 0)
        problem = "no_samples";
    else if (n > LIMIT_SAMPLES)
        return err_set(e, ERR_LIMIT, "samples.count", "more than %zu samples", LIMIT_SAMPLES);
    else if (samples_alloc(n, members->cpu != NULL, false, &s, e) < 0)
        return -1;
    if (problem[0] == '\0')
        cJSON_ArrayForEach(item, array) {
            problem = read_object(item, members, &s, row++);
            if (problem[0] != '\0')
                break;
        }
    *out_problem = problem;
    if (problem[0] != '\0')
        samples_fini(&s);
    *out = s;
    s = (struct samples){0};
    return 0;
}
