/*
 * schema: table-driven shape of a definition. One table per document part feeds four things: the
 * type of each YAML scalar, the error messages, the canonical form and the published JSON Schema.
 * Knows nothing of what the parts mean. Tables are const and shared.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/yaml_in.h"

enum schema_type {
    SCHEMA_STRING,  /* any text */
    SCHEMA_BOOL,    /* true | false */
    SCHEMA_INTEGER, /* |n| ≤ 2^53-1 */
    SCHEMA_NUMBER,  /* finite */
    /* "500ms" "95s" "10m" "1h" → canonical integer milliseconds; a bare integer is refused */
    SCHEMA_DURATION,
    SCHEMA_ENUM,    /* one of .words */
    SCHEMA_POINTER, /* RFC 6901, '*' tokens allowed */
    SCHEMA_RELNAME, /* base/relname.h */
    SCHEMA_SLUG,    /* text_is_slug */
    /* any JSON value: plain YAML scalars are typed by the JSON grammar, quoted ones are strings */
    SCHEMA_ANY,
    SCHEMA_ARRAY,  /* of .item, at least .min_items */
    SCHEMA_OBJECT, /* .fields, closed */
    SCHEMA_MAP,    /* free keys, values of .item */
};

struct schema;

struct schema_field {
    const char *key;
    const struct schema *schema;
    bool required;
    bool unhashed; /* labels and time-outs: kept, but in neither digest */
};

struct schema {
    enum schema_type type;
    const char *about; /* one sentence for the JSON Schema and `cleanrun help definition` */
    const struct schema_field *fields;
    size_t n_fields;
    const struct schema *item;
    const char *const *words; /* ENUM: NULL-terminated */
    /* STRING: the {names} that are replaced, NULL-terminated; NULL: none are looked for */
    const char *const *placeholders;
    bool only_placeholders; /* a text that is one {word} must be one of them */
    size_t min_items;
    /* INTEGER and NUMBER: used when min < max. DURATION: min alone, in ms; the most is
     * LIMIT_DURATION_MS. */
    double min;
    double max;
};

#define SCHEMA_FIELDS(table) .fields = (table), .n_fields = sizeof(table) / sizeof((table)[0])

/* Checks an already typed JSON value (definition.json) against a table; `where` is the value's JSON
 * Pointer and begins the message. Unhashed fields must not stand in it: they live in the notes. */
int schema_check(const struct schema *s, const cJSON *value, const char *where,
                 struct err *e) MUST_CHECK;
/* The table entry for a plain pointer below `s`, e.g. "/run/timeout"; NULL when there is none.
 * *out_unhashed tells whether the last field on the way is unhashed. */
const struct schema *schema_at(const struct schema *s, const char *pointer, bool *out_unhashed);
/* One value of a leaf type (no ARRAY, OBJECT, MAP), as it stands in a canonical document. */
int schema_check_leaf(const struct schema *s, const cJSON *value, const char *where,
                      struct err *e) MUST_CHECK;
/* A number, of a DURATION its milliseconds, against the bounds of its table entry. `found` is how
 * it was written, NULL: as in a canonical document; `where` begins the message. */
int schema_check_range(const struct schema *s, double value, const char *found, const char *where,
                       struct err *e) MUST_CHECK;
/* "one, two, three" of an ENUM's words, ended by … when they don't fit. */
void schema_list_words(const char *const *words, char *out, size_t size);
/* YAML nodes → the typed canonical value (new tree, caller frees). Unhashed values go to `notes`
 * (an object) under their JSON Pointer, which begins with `where`. Messages carry file:line:column
 * and "did you mean". */
int schema_from_yaml(const struct schema *s, const char *file, const struct yaml_node *node,
                     const char *where, cJSON *notes, cJSON **out, struct err *e) MUST_CHECK;

/* The table as a JSON Schema 2020-12 fragment (new tree, caller frees). */
int schema_to_json_schema(const struct schema *s, cJSON **out, struct err *e) MUST_CHECK;

/* The parts. Each table lives with the module that gives it meaning. */
/* definition_schema.c: one gate as written in cleanrun.yaml */
extern const struct schema schema_gate;
/* definition_schema.c: class build run conditioning phases sampling windows modes host */
extern const struct schema schema_experiment;
/* definition_schema.c: identity infer accept audit repeats confirm soak */
extern const struct schema schema_policy;
extern const struct schema schema_accept;   /* acceptance_schema.c: policy `accept` */
extern const struct schema schema_identity; /* audit_schema.c: policy `identity` */
extern const struct schema schema_infer;    /* audit_schema.c: policy `infer` */
extern const struct schema schema_audit;    /* audit_schema.c: policy `audit` */
