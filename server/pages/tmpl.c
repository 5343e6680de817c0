#include "server/pages/tmpl.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/pages/tmpl_markup.h"
#include "server/pages/tmpl_ops.h"

#define TMPL_OPS_MAX ((size_t) 65536)

struct open_section {
    size_t op;
    size_t name, name_len;
    struct tmpl_markup markup;
};

/* One template being compiled. */
struct compiler {
    struct tmpl *t;
    enum tmpl_mode mode;
    size_t cap_ops;
    size_t len;
    bool at_line_start; /* the next output is the first of its line */
    struct tmpl_markup markup;
    struct open_section open[TMPL_SECTION_DEPTH];
    size_t n_open;
};

/* One tag: {{[sigil]name}} at text[from, to). */
struct tag {
    char sigil; /* '#', '^', '/', '>', '!' or 0 for a value */
    size_t from, to;
    size_t name, name_len;
    bool standalone;
    size_t line_from, line_to; /* what a standalone tag takes with it */
};

static int refuse(const struct compiler *c, size_t at, const char *what, struct err *e)
{
    size_t line = 1;

    for (size_t i = 0; i < at; i++)
        line += c->t->text[i] == '\n';
    return err_set(e, ERR_INPUT, "template.syntax", "%s:%zu: %s", c->t->name, line, what);
}

static struct tmpl_op *add_op(struct compiler *c, enum tmpl_op_kind kind)
{
    struct tmpl *t = c->t;

    if (t->n_ops == c->cap_ops) {
        size_t cap = c->cap_ops ? c->cap_ops * 2 : 64;
        struct tmpl_op *ops = cap > TMPL_OPS_MAX ? NULL : reallocarray(t->ops, cap, sizeof(*ops));

        if (!ops)
            return NULL;
        t->ops = ops;
        c->cap_ops = cap;
    }
    t->ops[t->n_ops] = (struct tmpl_op){.kind = kind};
    return &t->ops[t->n_ops++];
}

static int no_memory(const struct compiler *c, struct err *e)
{
    return err_set(e, ERR_NOMEM, "template.memory", "%s: no memory, or more than %zu parts",
                   c->t->name, TMPL_OPS_MAX);
}

static int begin_line(struct compiler *c, struct err *e)
{
    if (!c->at_line_start)
        return 0;
    c->at_line_start = false;
    return add_op(c, TMPL_OP_INDENT) ? 0 : no_memory(c, e);
}

static int add_text(struct compiler *c, size_t from, size_t to, struct err *e)
{
    const char *text = c->t->text;

    if (c->t->kind == TMPL_HTML && c->mode == TMPL_STRICT) {
        size_t at = from;
        const char *refusal = tmpl_markup_feed(&c->markup, text, from, to, &at);

        if (refusal)
            return refuse(c, at, refusal, e);
    }
    while (from < to) {
        const char *end = memchr(text + from, '\n', to - from);
        size_t next = end ? (size_t) (end - text) + 1 : to;
        struct tmpl_op *op;

        if (begin_line(c, e) < 0)
            return -1;
        op = add_op(c, TMPL_OP_TEXT);
        if (!op)
            return no_memory(c, e);
        op->from = from;
        op->len = next - from;
        c->at_line_start = end != NULL;
        from = next;
    }
    return 0;
}

static bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t';
}

static bool is_space(char ch)
{
    return is_blank(ch) || ch == '\n' || ch == '\r';
}

/* A tag that writes nothing and is alone on its line takes the whole line. */
static void find_line(const struct compiler *c, struct tag *tag)
{
    const char *text = c->t->text;
    size_t from = tag->from;
    size_t to = tag->to;

    tag->standalone = false;
    tag->line_from = tag->from;
    tag->line_to = tag->to;
    if (tag->sigil == 0)
        return;
    while (from > 0 && is_blank(text[from - 1]))
        from--;
    if (from > 0 && text[from - 1] != '\n')
        return;
    while (to < c->len && is_blank(text[to]))
        to++;
    if (to < c->len && text[to] == '\r' && to + 1 < c->len && text[to + 1] == '\n')
        to++;
    if (to < c->len && text[to] != '\n')
        return;
    tag->standalone = true;
    tag->line_from = from;
    tag->line_to = to < c->len ? to + 1 : to;
}

static bool name_byte(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_' || ch == '-' || ch == '.';
}

static bool name_ok(const char *name, size_t len)
{
    if (len == 1 && name[0] == '.')
        return true;
    if (len == 0 || name[0] == '.' || name[len - 1] == '.')
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!name_byte(name[i]) || (name[i] == '.' && name[i + 1] == '.'))
            return false;
    }
    return true;
}

/* The tag that begins at `from`. */
static int read_tag(const struct compiler *c, size_t from, struct tag *tag, struct err *e)
{
    const char *text = c->t->text;
    size_t i = from + 2;
    const char *end;
    size_t stop;

    *tag = (struct tag){.from = from};
    if (text[i] == '{')
        return refuse(c, from, "raw output {{{ }}} is not available", e);
    end = strstr(text + i, "}}");
    if (!end)
        return refuse(c, from, "a tag without }}", e);
    stop = (size_t) (end - text);
    tag->to = stop + 2;
    while (i < stop && is_space(text[i]))
        i++;
    if (text[i] == '&')
        return refuse(c, from, "raw output {{& }} is not available", e);
    if (text[i] == '=')
        return refuse(c, from, "set-delimiter tags are not available", e);
    if (i < stop && strchr("#^/>!", text[i]))
        tag->sigil = text[i++];
    if (tag->sigil != '!') {
        while (i < stop && is_space(text[i]))
            i++;
        while (stop > i && is_space(text[stop - 1]))
            stop--;
        if (!name_ok(text + i, stop - i))
            return refuse(c, from, "not a name: letters, digits, '_', '-', joined by '.'", e);
        tag->name = i;
        tag->name_len = stop - i;
    }
    find_line(c, tag);
    return 0;
}

static int set_name(const struct compiler *c, struct tmpl_op *op, const struct tag *tag,
                    struct err *e)
{
    op->name = strndup(c->t->text + tag->name, tag->name_len);
    if (!op->name)
        return no_memory(c, e);
    if (op->kind == TMPL_OP_PARTIAL || strcmp(op->name, ".") == 0)
        return 0;
    op->n_segments = 1;
    for (size_t i = 0; i < tag->name_len; i++) {
        if (op->name[i] == '.') {
            op->name[i] = '\0';
            op->n_segments++;
        }
    }
    return 0;
}

static bool has_rules(const struct compiler *c)
{
    return c->t->kind == TMPL_HTML && c->mode == TMPL_STRICT;
}

static int add_value(struct compiler *c, const struct tag *tag, struct err *e)
{
    bool url = false;
    struct tmpl_op *op;

    if (has_rules(c)) {
        const char *refusal = tmpl_markup_value(&c->markup, &url);

        if (refusal)
            return refuse(c, tag->from, refusal, e);
    }
    op = add_op(c, url ? TMPL_OP_URL : TMPL_OP_VALUE);
    return op ? set_name(c, op, tag, e) : no_memory(c, e);
}

static int add_partial(struct compiler *c, const struct tag *tag, struct err *e)
{
    struct tmpl_op *op;

    if (has_rules(c) && c->markup.place != TMPL_IN_DATA)
        return refuse(c, tag->from, "a partial inside a tag", e);
    op = add_op(c, TMPL_OP_PARTIAL);
    if (!op)
        return no_memory(c, e);
    op->standalone = tag->standalone;
    op->from = tag->line_from;
    op->len = tag->standalone ? tag->from - tag->line_from : 0;
    return set_name(c, op, tag, e);
}

static int open_section(struct compiler *c, const struct tag *tag, struct err *e)
{
    struct tmpl_op *op;

    if (c->n_open == TMPL_SECTION_DEPTH)
        return refuse(c, tag->from, "sections too deep", e);
    if (has_rules(c) && c->markup.place == TMPL_AFTER_LT)
        return refuse(c, tag->from, "a section inside a tag's name", e);
    c->open[c->n_open++] = (struct open_section){
        .op = c->t->n_ops,
        .name = tag->name,
        .name_len = tag->name_len,
        .markup = c->markup,
    };
    op = add_op(c, tag->sigil == '#' ? TMPL_OP_SECTION : TMPL_OP_INVERTED);
    return op ? set_name(c, op, tag, e) : no_memory(c, e);
}

static int close_section(struct compiler *c, const struct tag *tag, struct err *e)
{
    struct tmpl_op *op = add_op(c, TMPL_OP_END);
    const struct open_section *open;

    if (!op)
        return no_memory(c, e);
    if (c->n_open == 0)
        return refuse(c, tag->from, "the end of a section that was not begun", e);
    open = &c->open[--c->n_open];
    op->to = open->op;
    c->t->ops[open->op].to = c->t->n_ops - 1;
    if (tag->name_len != open->name_len ||
        memcmp(c->t->text + tag->name, c->t->text + open->name, tag->name_len) != 0)
        return refuse(c, tag->from, "the end of another section than the one begun last", e);
    if (c->markup.place != open->markup.place)
        return refuse(c, tag->from, "a section that ends elsewhere in the markup than it began", e);
    c->markup = open->markup;
    return 0;
}

static int add_tag(struct compiler *c, const struct tag *tag, struct err *e)
{
    if (!tag->standalone && begin_line(c, e) < 0)
        return -1;
    switch (tag->sigil) {
    case '#':
    case '^':
        return open_section(c, tag, e);
    case '/':
        return close_section(c, tag, e);
    case '>':
        return add_partial(c, tag, e);
    case '!':
        return 0;
    default:
        return add_value(c, tag, e);
    }
}

static int compile(struct compiler *c, struct err *e)
{
    size_t at = 0;

    while (at < c->len) {
        const char *open = strstr(c->t->text + at, "{{");
        struct tag tag;

        if (!open) {
            if (add_text(c, at, c->len, e) < 0)
                return -1;
            break;
        }
        if (read_tag(c, (size_t) (open - c->t->text), &tag, e) < 0 ||
            add_text(c, at, tag.line_from, e) < 0 || add_tag(c, &tag, e) < 0)
            return -1;
        at = tag.line_to;
    }
    if (c->n_open > 0)
        return refuse(c, c->len, "a section is not ended", e);
    if (has_rules(c) && c->markup.place != TMPL_IN_DATA)
        return refuse(c, c->len, "ends inside a tag", e);
    return 0;
}

static int kind_of(const char *name, enum tmpl_kind *out, struct err *e)
{
    size_t n = strlen(name);

    if (n > 5 && strcmp(name + n - 5, ".html") == 0)
        *out = TMPL_HTML;
    else if (n > 4 && strcmp(name + n - 4, ".txt") == 0)
        *out = TMPL_TEXT;
    else
        return err_set(e, ERR_INPUT, "template.suffix",
                       "template '%s': the name must end .html or .txt", name);
    return 0;
}

static const struct tmpl *find(const struct tmpl_set *set, const char *name)
{
    for (size_t i = 0; i < set->n; i++) {
        if (set->templates[i].name && strcmp(set->templates[i].name, name) == 0)
            return &set->templates[i];
    }
    return NULL;
}

static int compile_source(struct tmpl_set *set, const struct tmpl_source *source,
                          enum tmpl_mode mode, struct err *e)
{
    struct tmpl *t = &set->templates[set->n];
    struct compiler c = {.t = t, .mode = mode, .len = source->len, .at_line_start = true};

    if (kind_of(source->name, &t->kind, e) < 0)
        return -1;
    if (find(set, source->name))
        return err_set(e, ERR_INPUT, "template.name", "template '%s' exists twice", source->name);
    if (memchr(source->text, 0, source->len))
        return err_set(e, ERR_INPUT, "template.nul", "template '%s' holds a NUL byte",
                       source->name);
    set->n++;
    t->name = strdup(source->name);
    t->text = strndup(source->text, source->len);
    if (!t->name || !t->text)
        return err_set(e, ERR_NOMEM, "template.memory", "template '%s': no memory", source->name);
    return compile(&c, e);
}

/* "part" named in "run.html" is "part.html". */
static bool same_name(const char *part, const struct tmpl *t, const struct tmpl *in)
{
    size_t n = strlen(part);

    return t->kind == in->kind && strncmp(t->name, part, n) == 0 && t->name[n] == '.' &&
           !strchr(t->name + n + 1, '.');
}

static int link_partials(struct tmpl_set *set, struct tmpl *t, enum tmpl_mode mode, struct err *e)
{
    for (size_t i = 0; i < t->n_ops; i++) {
        struct tmpl_op *op = &t->ops[i];

        if (op->kind != TMPL_OP_PARTIAL)
            continue;
        op->to = SIZE_MAX;
        for (size_t k = 0; k < set->n && op->to == SIZE_MAX; k++) {
            if (same_name(op->name, &set->templates[k], t))
                op->to = k;
        }
        if (op->to == SIZE_MAX && mode == TMPL_STRICT)
            return err_set(e, ERR_INPUT, "template.partial", "%s: unknown partial '%s'", t->name,
                           op->name);
    }
    return 0;
}

int tmpl_set_new(const struct tmpl_source *sources, size_t n, enum tmpl_mode mode,
                 struct tmpl_set **out, struct err *e)
{
    AUTO_TMPL_SET struct tmpl_set *set = calloc(1, sizeof(*set));

    if (set)
        set->templates = calloc(n ? n : 1, sizeof(*set->templates));
    if (!set || !set->templates)
        return err_set(e, ERR_NOMEM, "template.memory", "no memory for templates");
    for (size_t i = 0; i < n; i++) {
        if (compile_source(set, &sources[i], mode, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < n; i++) {
        if (link_partials(set, &set->templates[i], mode, e) < 0)
            return -1;
    }
    *out = STEAL(set);
    return 0;
}

void tmpl_set_free(struct tmpl_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; set->templates && i < set->n; i++) {
        struct tmpl *t = &set->templates[i];

        for (size_t k = 0; k < t->n_ops; k++)
            free(t->ops[k].name);
        free(t->ops);
        free(t->text);
        free(t->name);
    }
    free(set->templates);
    free(set);
}
