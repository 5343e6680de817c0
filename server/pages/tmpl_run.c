/* The renderer: a small machine over the compiled parts with its own stack, so depth has a fixed
 * bound. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/plain.h"
#include "server/pages/tmpl.h"
#include "server/pages/tmpl_ops.h"

#define FRAMES_MAX ((size_t) (TMPL_PARTIAL_DEPTH + 1) * (TMPL_SECTION_DEPTH + 1))
#define INDENT_MAX 256

struct frame {
    bool partial;
    const cJSON *context;           /* section: what names are looked up in */
    const cJSON *next;              /* section: the next element of the array */
    size_t pc;                      /* section: its first op; partial: where to go on */
    const struct tmpl *back;        /* partial: the template to go on with */
    size_t indent_from, indent_len; /* partial: the outer indentation */
};

struct run {
    const struct tmpl_set *set;
    const struct tmpl *t;
    size_t pc;
    struct frame frames[FRAMES_MAX];
    size_t n_frames;
    size_t n_partials;
    const cJSON *root;
    char indent[INDENT_MAX]; /* [indent_from, indent_len) is written at each line */
    size_t indent_from, indent_len;
    struct buf *out;
};

static const cJSON *context_at(const struct run *r, size_t from_top)
{
    for (size_t i = r->n_frames; i > 0; i--) {
        const struct frame *f = &r->frames[i - 1];

        if (f->partial)
            continue;
        if (from_top == 0)
            return f->context;
        from_top--;
    }
    return from_top == 0 ? r->root : NULL;
}

/* The first segment is searched from the innermost context out, the others only in what it gave. */
static const cJSON *look_up(const struct run *r, const struct tmpl_op *op)
{
    const char *segment = op->name;
    const cJSON *value = NULL;

    if (op->n_segments == 0)
        return context_at(r, 0);
    for (size_t i = r->n_frames; i > 0 && !value; i--) {
        if (!r->frames[i - 1].partial)
            value = json_get(r->frames[i - 1].context, segment);
    }
    if (!value)
        value = json_get(r->root, segment);
    for (size_t i = 1; i < op->n_segments && value; i++) {
        segment += strlen(segment) + 1;
        value = json_get(value, segment);
    }
    return value;
}

static bool is_true(const cJSON *v)
{
    if (!v || cJSON_IsNull(v) || cJSON_IsFalse(v))
        return false;
    if (cJSON_IsArray(v))
        return v->child != NULL;
    if (cJSON_IsString(v))
        return v->valuestring && v->valuestring[0] != '\0';
    return true;
}

static const char *html_escape(unsigned char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? "\xef\xbf\xbd" : NULL;
    }
}

/* A mark that turns the direction of what follows could rewrite its neighbours: it is shown by
 * name. */
static void write_html(struct buf *out, const char *s)
{
    size_t len = strlen(s);
    size_t from = 0;
    size_t i;

    for (i = 0; s[i]; i++) {
        const char *escape = html_escape((unsigned char) s[i]);
        unsigned point = 0;
        size_t mark = plain_direction_mark(s + i, len - i, &point);

        if (!escape && !mark)
            continue;
        buf_put(out, s + from, i - from);
        if (mark)
            buf_printf(out, "[U+%04X]", point);
        else
            buf_puts(out, escape);
        i += mark ? mark - 1 : 0;
        from = i + 1;
    }
    buf_put(out, s + from, i - from);
}

static bool url_ok(const char *s)
{
    if (s[0] == '/')
        return s[1] != '/' && s[1] != '\\';
    return s[0] == '\0' || s[0] == '#' || s[0] == '?' || strncmp(s, "https://", 8) == 0 ||
           strncmp(s, "http://", 7) == 0;
}

static void write_value(const struct run *r, const struct tmpl_op *op)
{
    const cJSON *v = look_up(r, op);
    const char *s;

    if (cJSON_IsNumber(v)) {
        json_write_number(r->out, v->valuedouble);
        return;
    }
    if (cJSON_IsBool(v))
        s = cJSON_IsTrue(v) ? "true" : "false";
    else
        s = cJSON_IsString(v) && v->valuestring ? v->valuestring : "";
    if (op->kind == TMPL_OP_URL && !url_ok(s))
        s = "#";
    if (r->t->kind == TMPL_HTML)
        write_html(r->out, s);
    else
        plain_puts(r->out, s);
}

static int too_deep(const struct run *r, struct err *e)
{
    return err_set(e, ERR_LIMIT, "template.depth", "%s: partials nested deeper than %d", r->t->name,
                   TMPL_PARTIAL_DEPTH);
}

static int enter_section(struct run *r, const struct tmpl_op *op, struct err *e)
{
    const cJSON *v = look_up(r, op);
    bool list = cJSON_IsArray(v);

    if (!is_true(v)) {
        r->pc = op->to + 1;
        return 0;
    }
    if (r->n_frames == FRAMES_MAX)
        return too_deep(r, e);
    r->frames[r->n_frames++] = (struct frame){
        .context = list ? v->child : v,
        .next = list ? v->child->next : NULL,
        .pc = r->pc + 1,
    };
    r->pc++;
    return 0;
}

static void leave_section(struct run *r, const struct tmpl_op *op)
{
    struct frame *top;

    r->pc++;
    if (r->t->ops[op->to].kind == TMPL_OP_INVERTED)
        return;
    top = &r->frames[r->n_frames - 1];
    if (top->next) {
        top->context = top->next;
        top->next = top->next->next;
        r->pc = top->pc;
    } else {
        r->n_frames--;
    }
}

static int enter_partial(struct run *r, const struct tmpl_op *op, struct err *e)
{
    r->pc++;
    if (op->to == SIZE_MAX)
        return 0;
    if (r->n_partials == TMPL_PARTIAL_DEPTH || r->n_frames == FRAMES_MAX ||
        op->len > INDENT_MAX - r->indent_len)
        return too_deep(r, e);
    r->frames[r->n_frames++] = (struct frame){
        .partial = true,
        .pc = r->pc,
        .back = r->t,
        .indent_from = r->indent_from,
        .indent_len = r->indent_len,
    };
    r->n_partials++;
    if (op->standalone)
        memcpy(r->indent + r->indent_len, r->t->text + op->from, op->len);
    else
        r->indent_from = r->indent_len;
    r->indent_len += op->len;
    r->t = &r->set->templates[op->to];
    r->pc = 0;
    return 0;
}

/* At the end of a template; false when it was the outermost. */
static bool leave_template(struct run *r)
{
    const struct frame *top;

    if (r->n_frames == 0)
        return false;
    top = &r->frames[--r->n_frames];
    assert(top->partial && top->back); /* sections are closed within their template */
    r->n_partials--;
    r->t = top->back;
    r->pc = top->pc;
    r->indent_from = top->indent_from;
    r->indent_len = top->indent_len;
    return true;
}

static int step(struct run *r, struct err *e)
{
    const struct tmpl_op *op = &r->t->ops[r->pc];

    switch (op->kind) {
    case TMPL_OP_TEXT:
        buf_put(r->out, r->t->text + op->from, op->len);
        break;
    case TMPL_OP_INDENT:
        buf_put(r->out, r->indent + r->indent_from, r->indent_len - r->indent_from);
        break;
    case TMPL_OP_VALUE:
    case TMPL_OP_URL:
        write_value(r, op);
        break;
    case TMPL_OP_SECTION:
        return enter_section(r, op, e);
    case TMPL_OP_INVERTED:
        r->pc = is_true(look_up(r, op)) ? op->to + 1 : r->pc + 1;
        return 0;
    case TMPL_OP_END:
        leave_section(r, op);
        return 0;
    case TMPL_OP_PARTIAL:
        return enter_partial(r, op, e);
    }
    r->pc++;
    return 0;
}

static const struct tmpl *find(const struct tmpl_set *set, const char *name)
{
    for (size_t i = 0; i < set->n; i++) {
        if (strcmp(set->templates[i].name, name) == 0)
            return &set->templates[i];
    }
    return NULL;
}

int tmpl_render(const struct tmpl_set *set, const char *name, const cJSON *data, struct buf *out,
                struct err *e)
{
    struct run r = {.set = set, .root = data, .out = out};

    r.t = find(set, name);
    if (!r.t)
        return err_set(e, ERR_NOTFOUND, "template.unknown", "no template '%s'", name);
    while (!out->failed) {
        if (r.pc < r.t->n_ops) {
            if (step(&r, e) < 0)
                return -1;
        } else if (!leave_template(&r)) {
            break;
        }
    }
    return buf_check(out, e);
}
