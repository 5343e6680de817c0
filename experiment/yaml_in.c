#include "experiment/yaml_in.h"

#include <string.h>
#include <yaml.h>

#include "base/limits.h"
#include "base/text.h"

struct reader {
    const char *name;
    struct arena *arena;
    yaml_parser_t parser;
    struct yaml_node *stack[LIMIT_YAML_DEPTH]; /* open containers */
    size_t depth;
    const char *key; /* pending key of the innermost mapping */
    size_t key_line, key_column;
    struct yaml_node *root;
    size_t documents;
    struct err *e;
};

static int fail_at(const struct reader *r, yaml_mark_t mark, const char *code, const char *text)
{
    return err_set(r->e, ERR_INPUT, code, "%s:%zu:%zu: %s", r->name, mark.line + 1, mark.column + 1,
                   text);
}

static int fail_parser(const struct reader *r)
{
    yaml_mark_t mark = r->parser.problem_mark;

    return err_set(r->e, ERR_INPUT, "yaml.syntax", "%s:%zu:%zu: %s", r->name, mark.line + 1,
                   mark.column + 1, r->parser.problem ? r->parser.problem : "not readable as YAML");
}

static int take_key(struct reader *r, const yaml_event_t *event)
{
    struct yaml_node *mapping = r->stack[r->depth - 1];
    const char *text = (const char *) event->data.scalar.value;

    if (event->type != YAML_SCALAR_EVENT)
        return fail_at(r, event->start_mark, "yaml.key", "a key must be a plain word");
    if (strlen(text) != event->data.scalar.length || text[0] == 0)
        return fail_at(r, event->start_mark, "yaml.key", "a key must not be empty nor hold U+0000");
    if (strcmp(text, "<<") == 0)
        return fail_at(r, event->start_mark, "yaml.merge",
                       "merge keys are not allowed; write the values out");
    for (const struct yaml_node *n = mapping->first; n; n = n->next)
        if (strcmp(n->key, text) == 0)
            return err_set(r->e, ERR_INPUT, "yaml.duplicate",
                           "%s:%zu:%zu: key '%s' again, first at line %zu", r->name,
                           event->start_mark.line + 1, event->start_mark.column + 1, text,
                           n->key_line);
    r->key = arena_strdup(r->arena, text);
    r->key_line = event->start_mark.line + 1;
    r->key_column = event->start_mark.column + 1;
    return r->key ? 0 : arena_full(r->e);
}

static void attach(struct reader *r, struct yaml_node *node)
{
    struct yaml_node *parent = r->depth ? r->stack[r->depth - 1] : NULL;

    if (!parent) {
        r->root = node;
        return;
    }
    if (parent->kind == YAML_MAPPING) {
        node->key = r->key;
        node->key_line = r->key_line;
        node->key_column = r->key_column;
        r->key = NULL;
    }
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    parent->count++;
}

static int take_scalar(struct reader *r, const yaml_event_t *event, struct yaml_node *node)
{
    const char *text = (const char *) event->data.scalar.value;

    node->kind = YAML_SCALAR;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (strlen(text) != event->data.scalar.length)
        return fail_at(r, event->start_mark, "yaml.nul", "U+0000 is not allowed");
    if (node->plain && text[0] == 0)
        return fail_at(r, event->start_mark, "yaml.empty",
                       "a value is missing here (write \"\" or null if that is meant)");
    node->text = arena_strdup(r->arena, text);
    return node->text ? 0 : arena_full(r->e);
}

static const void *anchor_or_tag(const yaml_event_t *event, bool *out_tag)
{
    *out_tag = false;
    if (event->type == YAML_SCALAR_EVENT) {
        *out_tag = event->data.scalar.tag != NULL;
        return event->data.scalar.anchor;
    }
    if (event->type == YAML_SEQUENCE_START_EVENT) {
        *out_tag = event->data.sequence_start.tag != NULL;
        return event->data.sequence_start.anchor;
    }
    *out_tag = event->data.mapping_start.tag != NULL;
    return event->data.mapping_start.anchor;
}

static int take_value(struct reader *r, const yaml_event_t *event)
{
    struct yaml_node *node = NULL;
    bool tag = false;

    if (anchor_or_tag(event, &tag))
        return fail_at(r, event->start_mark, "yaml.anchor",
                       "anchors are not allowed; write the value out");
    if (tag)
        return fail_at(r, event->start_mark, "yaml.tag",
                       "tags are not allowed; the key decides the type");
    if (r->depth && r->stack[r->depth - 1]->kind == YAML_MAPPING && !r->key)
        return take_key(r, event);
    node = arena_alloc(r->arena, sizeof *node);
    if (!node)
        return arena_full(r->e);
    node->line = event->start_mark.line + 1;
    node->column = event->start_mark.column + 1;
    if (event->type == YAML_SCALAR_EVENT) {
        if (take_scalar(r, event, node) < 0)
            return -1;
        attach(r, node);
        return 0;
    }
    node->kind = event->type == YAML_SEQUENCE_START_EVENT ? YAML_LIST : YAML_MAPPING;
    attach(r, node);
    if (r->depth == LIMIT_YAML_DEPTH)
        return fail_at(r, event->start_mark, "yaml.depth", "nested too deeply");
    r->stack[r->depth++] = node;
    return 0;
}

static int take_event(struct reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return fail_at(r, event->start_mark, "yaml.alias",
                       "aliases are not allowed; write the value out");
    case YAML_SCALAR_EVENT:
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return take_value(r, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        return 0;
    case YAML_DOCUMENT_START_EVENT:
        if (++r->documents > 1)
            return fail_at(r, event->start_mark, "yaml.documents",
                           "only one document is allowed in a file");
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return 0;
    }
    return 0;
}

static int read_events(struct reader *r)
{
    for (;;) {
        yaml_event_t event;
        bool end = false;
        int rc = 0;

        if (!yaml_parser_parse(&r->parser, &event))
            return fail_parser(r);
        end = event.type == YAML_STREAM_END_EVENT;
        rc = take_event(r, &event);
        yaml_event_delete(&event);
        if (rc < 0 || end)
            return rc;
    }
}

int yaml_parse(const char *name, const char *bytes, size_t len, struct arena *a,
               struct yaml_node **out, struct err *e)
{
    struct reader r = {.name = name, .arena = a, .e = e};
    int rc = 0;

    if (len > LIMIT_YAML)
        return err_set(e, ERR_LIMIT, "yaml.size", "%s: larger than %zu bytes", name, LIMIT_YAML);
    if (!text_is_utf8(bytes, len) || memchr(bytes, 0, len))
        return err_set(e, ERR_INPUT, "yaml.utf8", "%s: not UTF-8 text", name);
    if (!yaml_parser_initialize(&r.parser))
        return err_memory(e, "yaml.memory");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *) bytes, len);
    rc = read_events(&r);
    yaml_parser_delete(&r.parser);
    if (rc < 0)
        return -1;
    if (!r.root)
        return err_set(e, ERR_INPUT, "yaml.empty", "%s: the file is empty", name);
    *out = r.root;
    return 0;
}
