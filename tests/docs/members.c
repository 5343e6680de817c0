#include "tests/docs/members.h"

#include <ctype.h>
#include <string.h>

#include "base/json_in.h"
#include "tests/lib/support.h"

#define SECTIONS_MAX 96
#define ROWS_MAX 1024
#define PATH_MAX_LEN 160
#define DEPTH_MAX 16

struct row {
    char path[PATH_MAX_LEN]; /* "gates[].recent", "facts.*" */
    char *type;
    char *meaning;
    size_t section;
    bool optional;
    bool seen;
};

struct members {
    char sections[SECTIONS_MAX][64];
    bool served[SECTIONS_MAX]; /* not below "# Output of …" */
    size_t n_sections;
    struct row rows[ROWS_MAX];
    size_t n_rows;
};

/* Reading the page. */

static void add_section(struct members *m, const char *title, size_t len, bool served)
{
    char *to = m->sections[m->n_sections];
    size_t n = 0;

    assert_true(m->n_sections < SECTIONS_MAX && len < sizeof m->sections[0]);
    for (size_t i = 0; i < len; i++) {
        if (title[i] == ' ')
            to[n++] = '-';
        else if (isalnum((unsigned char) title[i]) || title[i] == '-')
            to[n++] = (char) tolower((unsigned char) title[i]);
    }
    to[n] = '\0';
    m->served[m->n_sections++] = served;
}

/* The next cell of a table's line, without the blanks around it; NULL: there is none. */
static char *next_cell(char **rest)
{
    char *cell = *rest ? strchr(*rest, '|') : NULL;
    char *end = cell ? strchr(cell + 1, '|') : NULL;

    if (!end)
        return NULL;
    *rest = end;
    cell++;
    while (*cell == ' ')
        cell++;
    while (end > cell && end[-1] == ' ')
        end--;
    return strndup(cell, (size_t) (end - cell));
}

/* One row for each name between backticks in the first cell. */
static void add_rows(struct members *m, char *line)
{
    char *rest = line;
    char *names = next_cell(&rest);
    char *type = next_cell(&rest);
    char *meaning = next_cell(&rest); /* a page of names only has none */

    if (m->n_sections == 0 || !names || names[0] != '`' || !type) {
        free(names);
        free(type);
        free(meaning);
        return;
    }
    for (const char *at = strchr(names, '`'); at; at = strchr(at, '`')) {
        size_t len = strcspn(at + 1, "`");
        struct row *r = &m->rows[m->n_rows++];

        assert_true(m->n_rows < ROWS_MAX && len < PATH_MAX_LEN);
        memcpy(r->path, at + 1, len);
        r->type = strdup(type);
        r->meaning = strdup(meaning ? meaning : type);
        assert_true(r->type && r->meaning);
        r->section = m->n_sections - 1;
        r->optional = strstr(type, "optional") != NULL;
        r->type[strcspn(r->type, ",")] = '\0';
        at += len + 2;
    }
    free(names);
    free(type);
    free(meaning);
}

struct members *members_load(const char *page)
{
    struct members *m = calloc(1, sizeof *m);
    char *text = test_read(page, NULL);
    bool served = true;

    assert_non_null(m);
    for (char *rest = text, *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        if (strncmp(line, "## ", 3) == 0 || strncmp(line, "### ", 4) == 0)
            add_section(m, strchr(line, ' ') + 1, strlen(strchr(line, ' ') + 1), served);
        else if (strncmp(line, "# ", 2) == 0)
            served = strncmp(line, "# Output of ", 12) != 0;
        else if (line[0] == '|')
            add_rows(m, line);
    }
    free(text);
    return m;
}

void members_free(struct members *m)
{
    for (size_t i = 0; m && i < m->n_rows; i++) {
        free(m->rows[i].type);
        free(m->rows[i].meaning);
    }
    free(m);
}

/* Looking things up. */

static size_t section_of(const struct members *m, const char *name, size_t len)
{
    for (size_t i = 0; i < m->n_sections; i++) {
        if (strlen(m->sections[i]) == len && strncmp(m->sections[i], name, len) == 0)
            return i;
    }
    fail_msg("the page has no section '%.*s'", (int) len, name);
    return 0;
}

static struct row *find(struct members *m, size_t section, const char *path)
{
    for (size_t i = 0; i < m->n_rows; i++) {
        if (m->rows[i].section == section && strcmp(m->rows[i].path, path) == 0)
            return &m->rows[i];
    }
    return NULL;
}

static void join_text(char out[PATH_MAX_LEN], const char *a, const char *between, const char *b)
{
    size_t n = strlen(a);
    size_t m = strlen(between);

    assert_true(n + m + strlen(b) < PATH_MAX_LEN);
    memmove(out, a, n);
    memcpy(out + n, between, m);
    memcpy(out + n + m, b, strlen(b) + 1);
}

static void join(char out[PATH_MAX_LEN], const char *parent, const char *key)
{
    join_text(out, parent, parent[0] ? "." : "", key);
}

/* Is `path` a member of the object at `parent` itself? *out_key is its name. */
static bool child_of(const char *path, const char *parent, const char **out_key)
{
    size_t len = strlen(parent);

    if (strncmp(path, parent, len) != 0 || (len > 0 && path[len] != '.'))
        return false;
    *out_key = path + len + (len > 0);
    return (*out_key)[0] != '\0' && !strpbrk(*out_key, ".[");
}

/* Types. */

/* One word of a type cell, such as "text" in "text or null". */
struct alternative {
    char word[48];   /* text integer number boolean null object array any link */
    char target[64]; /* of a link: the section, or empty when it is another page's */
    char items[96];  /* of an array: the type of its items */
};

static void read_alternative(const char *from, size_t len, struct alternative *a)
{
    const char *close = memchr(from, ']', len);

    memset(a, 0, sizeof *a);
    if (len > 9 && strncmp(from, "array of ", 9) == 0) {
        memcpy(a->word, "array", 5);
        assert_true(len - 9 < sizeof a->items);
        memcpy(a->items, from + 9, len - 9);
    } else if (from[0] == '[') {
        memcpy(a->word, "link", 4);
        assert_true(close && close[1] == '(' && from[len - 1] == ')');
        if (close[2] == '#') {
            assert_true((size_t) (from + len - close - 4) < sizeof a->target);
            memcpy(a->target, close + 3, (size_t) (from + len - close - 4));
        }
    } else {
        assert_true(len < sizeof a->word);
        memcpy(a->word, from, len);
    }
}

static bool fits_word(const struct alternative *a, const cJSON *v)
{
    if (strcmp(a->word, "any") == 0)
        return true;
    if (strcmp(a->word, "text") == 0)
        return cJSON_IsString(v);
    if (strcmp(a->word, "integer") == 0)
        return json_is_integer(v);
    if (strcmp(a->word, "number") == 0)
        return cJSON_IsNumber(v);
    if (strcmp(a->word, "boolean") == 0)
        return cJSON_IsBool(v);
    if (strcmp(a->word, "null") == 0)
        return cJSON_IsNull(v);
    if (strcmp(a->word, "array") == 0 || strcmp(a->word, "any array") == 0)
        return cJSON_IsArray(v);
    if (strcmp(a->word, "object") == 0 || strcmp(a->word, "any object") == 0 ||
        strcmp(a->word, "link") == 0)
        return cJSON_IsObject(v);
    fail_msg("'%s' is no type", a->word);
    return false;
}

/* The first alternative of a type cell that the value is of. */
static bool fits(const char *type, const cJSON *v, struct alternative *out)
{
    for (const char *at = type; *at;) {
        const char *end = strstr(at, " or ");
        size_t len = end ? (size_t) (end - at) : strlen(at);

        read_alternative(at, len, out);
        if (fits_word(out, v))
            return true;
        at += len + (end ? 4 : 0);
    }
    return false;
}

/* The walk. */

struct walk {
    struct members *m;
    const char *where;
    int complaints;
};

static void complain(struct walk *w, size_t section, const char *path, const cJSON *v,
                     const char *what)
{
    print_error("%s: %s: `%s` (%s) %s\n", w->where, w->m->sections[section], path,
                v ? json_type_name(v) : "absent", what);
    w->complaints++;
}

static void check_object(struct walk *w, size_t section, const char *path, const cJSON *object,
                         int depth);

/* A value of a type; path: its row's, whose members are rows of the same section. */
static void check_typed(struct walk *w, size_t section, const char *path, const char *type,
                        const cJSON *v, int depth)
{
    struct alternative a;
    char below[PATH_MAX_LEN];
    const cJSON *item = NULL;

    assert_true(depth < DEPTH_MAX);
    if (!fits(type, v, &a)) {
        complain(w, section, path, v, "is of another type");
    } else if (strcmp(a.word, "link") == 0 && a.target[0]) {
        check_object(w, section_of(w->m, a.target, strlen(a.target)), "", v, depth + 1);
    } else if (strcmp(a.word, "object") == 0) {
        check_object(w, section, path, v, depth + 1);
    } else if (strcmp(a.word, "array") == 0) {
        join_text(below, path, "", "[]");
        cJSON_ArrayForEach(item, v)
            check_typed(w, section, below, a.items, item, depth + 1);
    }
}

static void check_member(struct walk *w, size_t section, const char *parent, const cJSON *v,
                         int depth)
{
    char path[PATH_MAX_LEN];
    struct row *r;

    join(path, parent, v->string);
    r = find(w->m, section, path);
    if (!r) {
        char any[PATH_MAX_LEN];

        join(any, parent, "*");
        r = find(w->m, section, any);
    }
    if (!r) {
        complain(w, section, path, v, "has no row");
        return;
    }
    r->seen = true;
    if (strcmp(v->string, "schema") == 0 && cJSON_IsString(v) &&
        !strstr(r->meaning, v->valuestring))
        complain(w, section, path, v, v->valuestring);
    check_typed(w, section, r->path, r->type, v, depth);
}

static void check_object(struct walk *w, size_t section, const char *path, const cJSON *object,
                         int depth)
{
    const cJSON *member = NULL;

    cJSON_ArrayForEach(member, object)
        check_member(w, section, path, member, depth);
    for (size_t i = 0; i < w->m->n_rows; i++) {
        const struct row *r = &w->m->rows[i];
        const char *key = NULL;

        if (r->section == section && !r->optional && child_of(r->path, path, &key) &&
            strcmp(key, "*") != 0 && !json_get(object, key))
            complain(w, section, r->path, NULL, "is not said to be optional");
    }
}

int members_check(struct members *m, const char *section, const cJSON *document, const char *where)
{
    struct walk w = {.m = m, .where = where};

    check_object(&w, section_of(m, section, strlen(section)), "", document, 0);
    return w.complaints;
}

int members_unseen(const struct members *m, bool served)
{
    int n = 0;

    for (size_t i = 0; i < m->n_rows; i++) {
        if (m->rows[i].seen || (served && !m->served[m->rows[i].section]))
            continue;
        print_error("%s: `%s` is described, no document had it\n", m->sections[m->rows[i].section],
                    m->rows[i].path);
        n++;
    }
    return n;
}

void members_excuse(struct members *m, const char *section, const char *path)
{
    struct row *r = find(m, section_of(m, section, strlen(section)), path);

    assert_non_null(r);
    r->seen = true;
}

int members_check_names(const char *page, const char *section, const cJSON *document)
{
    struct members *m = members_load(page);
    size_t k = section_of(m, section, strlen(section));
    const cJSON *member = NULL;
    int n = 0;

    cJSON_ArrayForEach(member, document) {
        if (find(m, k, member->string))
            continue;
        print_error("%s: %s: `%s` has no row\n", page, section, member->string);
        n++;
    }
    for (size_t i = 0; i < m->n_rows; i++) {
        if (m->rows[i].section != k || json_get(document, m->rows[i].path))
            continue;
        print_error("%s: %s: the document has no `%s`\n", page, section, m->rows[i].path);
        n++;
    }
    members_free(m);
    return n;
}

/* The other description. */

/* "BaselineRow" is "baseline-row". */
static void slug_of(const char *name, char out[64])
{
    size_t n = 0;

    for (const char *p = name; *p; p++) {
        assert_true(n + 2 < 64);
        if (isupper((unsigned char) *p) && p > name)
            out[n++] = '-';
        out[n++] = (char) tolower((unsigned char) *p);
    }
    out[n] = '\0';
}

static bool requires(const cJSON *schema, const char *key)
{
    const cJSON *name = NULL;

    cJSON_ArrayForEach(name, json_get(schema, "required")) {
        if (strcmp(name->valuestring, key) == 0)
            return true;
    }
    return false;
}

static void check_properties(struct walk *w, size_t section, const char *parent,
                             const cJSON *schema, int depth)
{
    const cJSON *property = NULL;

    assert_true(depth < DEPTH_MAX);
    cJSON_ArrayForEach(property, json_get(schema, "properties")) {
        const cJSON *at = property;
        char path[PATH_MAX_LEN];
        struct row *r;

        join(path, parent, property->string);
        r = find(w->m, section, path);
        if (!r)
            complain(w, section, path, property, "has no row");
        else if (r->optional == requires(schema, property->string))
            complain(w, section, path, property, "is required in one, optional in the other");
        if (r)
            r->seen = true;
        for (; json_get(at, "items"); at = json_get(at, "items"))
            join_text(path, path, "", "[]");
        check_properties(w, section, path, at, depth + 1);
    }
}

int members_check_schemas(struct members *m, const cJSON *schemas)
{
    struct walk w = {.m = m, .where = "openapi.json"};
    const cJSON *schema = NULL;

    cJSON_ArrayForEach(schema, schemas) {
        char slug[64];

        slug_of(schema->string, slug);
        check_properties(&w, section_of(m, slug, strlen(slug)), "", schema, 0);
    }
    return w.complaints + members_unseen(m, true);
}
