#include "base/json_out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_node.h"
#include "base/num.h"
#include "base/text.h"

void json_write_string(struct buf *out, const char *s)
{
    size_t len = strlen(s);
    size_t done = 0;

    if (!text_is_utf8(s, len)) {
        buf_fail(out, BUF_CONTENT);
        return;
    }
    buf_putc(out, '"');
    for (size_t i = 0; i < len; i++) {
        static const char from[] = "\"\\\b\f\n\r\t";
        static const char to[] = "\"\\bfnrt";
        unsigned char c = (unsigned char) s[i];
        const char *simple = strchr(from, s[i]);

        if (c >= 0x20 && !simple && c != '<')
            continue;
        buf_put(out, s + done, i - done);
        done = i + 1;
        if (simple)
            buf_printf(out, "\\%c", to[simple - from]);
        else
            buf_printf(out, "\\u%04x", c);
    }
    buf_put(out, s + done, len - done);
    buf_putc(out, '"');
}

void json_write_number(struct buf *out, double v)
{
    char text[NUM_DOUBLE_TEXT];
    size_t n = 0;

    if (!isfinite(v)) {
        buf_fail(out, BUF_CONTENT);
        return;
    }
    n = num_double_shortest(v, text);
    buf_put(out, text, n);
    if (num_is_integer_literal(text, n) && !num_is_safe_integer(v))
        buf_puts(out, ".0"); /* an integer literal of this size would be refused when read */
}

static void write_scalar(struct buf *out, const cJSON *j)
{
    switch (json_node_kind(j)) {
    case cJSON_NULL:
        buf_puts(out, "null");
        break;
    case cJSON_True:
        buf_puts(out, "true");
        break;
    case cJSON_False:
        buf_puts(out, "false");
        break;
    case cJSON_Number:
        json_write_number(out, j->valuedouble);
        break;
    case cJSON_String:
        json_write_string(out, j->valuestring);
        break;
    default:
        buf_fail(out, BUF_CONTENT); /* raw text, or no value at all */
        break;
    }
}

static void new_line(struct buf *out, size_t depth)
{
    buf_putc(out, '\n');
    for (size_t i = 0; i < depth; i++)
        buf_puts(out, "  ");
}

/* What stands before a member: comma, line, key. `depth` containers are around it. */
static void write_lead(struct buf *out, const cJSON *parent, const cJSON *j, size_t depth,
                       enum json_style style)
{
    if (j != parent->child)
        buf_putc(out, ',');
    if (style == JSON_PRETTY)
        new_line(out, depth);
    if (json_node_kind(parent) != cJSON_Object)
        return;
    if (!j->string) {
        buf_fail(out, BUF_CONTENT);
        return;
    }
    json_write_string(out, j->string);
    buf_puts(out, style == JSON_PRETTY ? ": " : ":");
}

static void write_enter(struct buf *out, const struct json_walk *w, enum json_style style)
{
    bool container = json_node_is_container(w->node);
    size_t around = w->depth - container;

    if (around > 0)
        write_lead(out, w->up[around - 1], w->node, around, style);
    if (container)
        buf_putc(out, json_node_kind(w->node) == cJSON_Object ? '{' : '[');
    else
        write_scalar(out, w->node);
}

static void write_leave(struct buf *out, const struct json_walk *w, enum json_style style)
{
    if (style == JSON_PRETTY && w->node->child)
        new_line(out, w->depth);
    buf_putc(out, json_node_kind(w->node) == cJSON_Object ? '}' : ']');
}

void json_write(struct buf *out, const cJSON *j, enum json_style style)
{
    struct json_walk w;

    if (!j) {
        buf_fail(out, BUF_CONTENT);
        return;
    }
    json_walk_init(&w, (cJSON *) (uintptr_t) j); /* the walk itself changes nothing */
    while (!out->failed) {
        switch (json_walk_next(&w)) {
        case JSON_WALK_ENTER:
            write_enter(out, &w, style);
            break;
        case JSON_WALK_LEAVE:
            write_leave(out, &w, style);
            break;
        case JSON_WALK_DEEP:
            buf_fail(out, BUF_CONTENT);
            return;
        case JSON_WALK_END:
            if (style == JSON_PRETTY)
                buf_putc(out, '\n');
            return;
        }
    }
}
