/* cleanrun.yaml → the canonical documents of its gates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/text.h"
#include "experiment/definition_parts.h"
#include "experiment/schema.h"
#include "experiment/yaml_in.h"

static int check_gate_name(const char *file, const struct yaml_node *node, struct err *e)
{
    if (!text_is_slug(node->key))
        return err_set(
            e, ERR_INPUT, "definition.gate",
            "%s:%zu:%zu: gate name '%.80s' must be [a-z0-9][a-z0-9-]*, at most 63 characters", file,
            node->key_line, node->key_column, node->key);
    if (definition_gate_reserved(node->key))
        return err_set(e, ERR_INPUT, "definition.gate",
                       "%s:%zu:%zu: '%s' is a reserved word and can't name a gate", file,
                       node->key_line, node->key_column, node->key);
    return 0;
}

/* Moves the members of a converted gate into the half they belong to. Order follows the tables. */
static int split_halves(cJSON *gate, cJSON *experiment, cJSON *policy, struct err *e)
{
    while (gate->child) {
        cJSON *member = cJSON_DetachItemViaPointer(gate, gate->child);
        bool first = false;

        for (size_t i = 0; i < schema_experiment.n_fields && !first; i++)
            first = strcmp(schema_experiment.fields[i].key, member->string) == 0;
        if (!cJSON_AddItemToObject(first ? experiment : policy, member->string, member)) {
            json_free(member);
            return err_memory(e, "definition.memory");
        }
    }
    return 0;
}

/* Which half of the document a gate's key is in; "" for the unhashed ones beside them. */
static const char *half_of(const char *key, size_t len)
{
    for (size_t i = 0; i < schema_experiment.n_fields; i++)
        if (strlen(schema_experiment.fields[i].key) == len &&
            memcmp(schema_experiment.fields[i].key, key, len) == 0)
            return "/experiment";
    for (size_t i = 0; i < schema_policy.n_fields; i++)
        if (strlen(schema_policy.fields[i].key) == len &&
            memcmp(schema_policy.fields[i].key, key, len) == 0)
            return "/policy";
    return "";
}

/* Notes are collected under the gate's own pointers ("/run/timeout"); the document names the half
 * as well. */
static int place_notes(const cJSON *found, cJSON *notes, struct err *e)
{
    const cJSON *note = NULL;

    cJSON_ArrayForEach(note, found) {
        char key[1024];
        size_t len = strcspn(note->string + 1, "/");
        cJSON *copy = cJSON_Duplicate(note, true);

        (void) snprintf(key, sizeof key, "%s%.900s", half_of(note->string + 1, len), note->string);
        if (!copy || !cJSON_AddItemToObject(notes, key, copy)) {
            json_free(copy);
            return err_memory(e, "definition.memory");
        }
    }
    return 0;
}

static cJSON *object_in(cJSON *parent, const char *key)
{
    cJSON *made = cJSON_CreateObject();

    if (!cJSON_AddItemToObject(parent, key, made)) {
        json_free(made);
        return NULL;
    }
    return made;
}

static int gate_from_yaml(const char *file, const char *project, const struct yaml_node *node,
                          struct definition *out, struct err *e)
{
    AUTO_JSON cJSON *found = cJSON_CreateObject();
    AUTO_JSON cJSON *gate = NULL;
    cJSON *document = cJSON_CreateObject();
    cJSON *experiment = NULL, *policy = NULL, *notes = NULL;

    out->document = document;
    out->file = file;
    out->source = node;
    if (check_gate_name(file, node, e) < 0 || !found || !document)
        return found && document ? -1 : err_memory(e, "definition.memory");
    if (schema_from_yaml(&schema_gate, file, node, "", found, &gate, e) < 0)
        return -1;
    if (!cJSON_AddStringToObject(document, "schema", DEFINITION_SCHEMA) ||
        !cJSON_AddStringToObject(document, "gate", node->key) ||
        (project && !cJSON_AddStringToObject(document, "project", project)))
        return err_memory(e, "definition.memory");
    experiment = object_in(document, "experiment");
    policy = object_in(document, "policy");
    notes = object_in(document, "notes");
    if (!experiment || !policy || !notes)
        return err_memory(e, "definition.memory");
    if (split_halves(gate, experiment, policy, e) < 0 || place_notes(found, notes, e) < 0)
        return -1;
    return definition_settle(out, e);
}

static const struct yaml_node *member(const struct yaml_node *mapping, const char *key)
{
    for (const struct yaml_node *n = mapping->first; n; n = n->next)
        if (strcmp(n->key, key) == 0)
            return n;
    return NULL;
}

static int check_top_keys(const char *file, const struct yaml_node *root, struct err *e)
{
    static const char *const known[] = {"version", "project", "gates"};

    if (root->kind != YAML_MAPPING)
        return err_set(e, ERR_INPUT, "definition.type",
                       "%s:1:1: expected a mapping with version and gates", file);
    for (const struct yaml_node *n = root->first; n; n = n->next) {
        const char *near = text_nearest(n->key, known, ARRAY_LEN(known));
        char hint[TEXT_HINT_SIZE];

        if (!near || strcmp(near, n->key) != 0)
            return err_set(e, ERR_INPUT, "definition.key", "%s:%zu:%zu: unknown key '%.60s'%s",
                           file, n->key_line, n->key_column, n->key, text_hint(near, hint));
    }
    return 0;
}

/* A number as the schema says, so written as one. */
static int check_version(const char *file, const struct yaml_node *version, struct err *e)
{
    if (!version)
        return err_set(e, ERR_INPUT, "definition.version", "%s:1:1: 'version: 1' is required",
                       file);
    if (version->kind != YAML_SCALAR)
        return err_set(e, ERR_INPUT, "definition.version", "%s:%zu:%zu: 'version: 1' is required",
                       file, version->line, version->column);
    if (strcmp(version->text, "1") != 0)
        return err_set(e, ERR_INPUT, "definition.version",
                       "%s:%zu:%zu: 'version: 1' is required, not '%.40s'", file, version->line,
                       version->column, version->text);
    return version->plain
               ? 0
               : err_set(e, ERR_INPUT, "definition.version",
                         "%s:%zu:%zu: version is the number 1, without quotes: version: 1", file,
                         version->line, version->column);
}

static int check_top(const char *file, const struct yaml_node *root, struct err *e)
{
    const struct yaml_node *version = NULL;
    const struct yaml_node *project = NULL;
    const struct yaml_node *gates = NULL;

    if (check_top_keys(file, root, e) < 0)
        return -1;
    version = member(root, "version");
    if (check_version(file, version, e) < 0)
        return -1;
    project = member(root, "project");
    if (project && (project->kind != YAML_SCALAR || !text_is_project(project->text)))
        return err_set(e, ERR_INPUT, "definition.project", "%s:%zu:%zu: project must be owner/name",
                       file, project->line, project->column);
    gates = member(root, "gates");
    if (!gates || gates->kind != YAML_MAPPING || gates->count == 0)
        return err_set(e, ERR_INPUT, "definition.gates",
                       "%s:%zu:1: 'gates' must name at least one gate", file,
                       gates ? gates->line : 1);
    if (gates->count > LIMIT_GATES)
        return err_set(e, ERR_LIMIT, "definition.gates", "%s:%zu:1: more than %d gates", file,
                       gates->line, LIMIT_GATES);
    return 0;
}

static int gates_from_yaml(const struct yaml_node *root, const char *project,
                           struct definition_file *out, struct err *e)
{
    const char *name = out->name;
    const struct yaml_node *gates = member(root, "gates");
    const struct yaml_node *own = member(root, "project");

    out->gates = gates ? calloc(gates->count, sizeof *out->gates) : NULL;
    if (!out->gates)
        return err_memory(e, "definition.memory");
    if (!project && own)
        project = own->text;
    for (const struct yaml_node *n = gates->first; n; n = n->next) {
        out->n++;
        if (gate_from_yaml(name, project, n, &out->gates[out->n - 1], e) < 0)
            return -1;
    }
    return 0;
}

int definition_file_parse(const char *name, const char *bytes, size_t len,
                          struct definition_file *out, struct err *e)
{
    return definition_file_parse_for(name, bytes, len, NULL, out, e);
}

int definition_file_parse_for(const char *name, const char *bytes, size_t len, const char *project,
                              struct definition_file *out, struct err *e)
{
    AUTO_ARENA struct arena arena = {0};
    struct definition_file made = {0};
    struct yaml_node *root = NULL;

    if (project && !text_is_project(project))
        return err_set(e, ERR_USAGE, "definition.project", "'%.140s' is no project, owner/name",
                       project);
    arena_init(&arena, LIMIT_MIB(64));
    made.name = arena_strdup(&arena, name);
    if (!made.name)
        return err_memory(e, "definition.memory");
    if (yaml_parse(name, bytes, len, &arena, &root, e) < 0 || check_top(name, root, e) < 0)
        return -1;
    if (gates_from_yaml(root, project, &made, e) < 0) {
        definition_file_fini(&made);
        return -1;
    }
    made.arena = arena; /* with all its nodes; the other name of it is emptied */
    arena_init(&arena, 0);
    *out = made;
    return 0;
}

void definition_file_fini(struct definition_file *f)
{
    for (size_t i = 0; i < f->n; i++)
        definition_fini(&f->gates[i]);
    free(f->gates);
    arena_fini(&f->arena);
    *f = (struct definition_file){0};
}

const struct definition *definition_file_gate(const struct definition_file *f, const char *gate)
{
    if (!gate)
        return f->n == 1 ? &f->gates[0] : NULL;
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->gates[i].gate, gate) == 0)
            return &f->gates[i];
    return NULL;
}

int definition_json_schema(cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {0};
    AUTO_JSON cJSON *gate = NULL;
    cJSON *properties = NULL, *part = NULL;

    if (schema_to_json_schema(&schema_gate, &gate, e) < 0)
        return -1;
    json_doc_init_object(&d);
    json_add_string(&d, NULL, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_add_string(&d, NULL, "title", "cleanrun.yaml");
    json_add_string(&d, NULL, "type", "object");
    properties = json_add_object(&d, NULL, "properties");
    json_add_int(&d, json_add_object(&d, properties, "version"), "const", 1);
    part = json_add_object(&d, properties, "project");
    json_add_string(&d, part, "type", "string");
    json_add_string(&d, part, "pattern",
                    "^[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9_][A-Za-z0-9._-]*$");
    part = json_add_object(&d, properties, "gates");
    json_add_string(&d, part, "type", "object");
    json_add_int(&d, part, "minProperties", 1);
    json_add_copy(&d, part, "additionalProperties", gate);
    part = json_add_array(&d, NULL, "required");
    json_add_string(&d, part, NULL, "version");
    json_add_string(&d, part, NULL, "gates");
    json_add_bool(&d, NULL, "additionalProperties", false);
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}
