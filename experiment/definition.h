/*
 * definition: the parsed, canonical cleanrun.yaml gate. Two halves with a digest each
 * (docs/definition.md): the experiment decides what is measured and is identity; the policy decides
 * limits, tolerances and what is compared. Immutable once made; free to share between threads.
 *
 * The halves are kept as schema-checked JSON trees: each consumer (acceptance, audit, runner) reads
 * its own part into its own struct once.
 *
 * Canonical document, `cleanrun-definition/1`: {"schema", "gate", "project"?, "experiment": {…},
 * "policy": {…}, "notes": {…unhashed labels, time-outs…}}
 *
 * experiment: class build run conditioning phases sampling windows modes host
 *
 * policy: identity infer accept audit repeats confirm soak
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"

#define DEFINITION_PLACE_SIZE 320

struct yaml_node;

struct definition {
    char *gate;
    char *project;           /* NULL when the file names none */
    cJSON *document;         /* the canonical document */
    const cJSON *experiment; /* borrowed from document */
    const cJSON *policy;
    /* unhashed values by JSON Pointer into the document: {"/experiment/run/timeout": 600000} */
    const cJSON *notes;
    /* the gate in cleanrun.yaml, borrowed from its definition_file; NULL: definition.json */
    const struct yaml_node *source;
    const char *file;                /* that file's name, borrowed as well */
    struct digest experiment_digest; /* SHA-256 of RFC 8785 form */
    struct digest policy_digest;
};

/* The policy that was reviewed on the experiment that was run: what judges a run. Borrows from
 * both; not to be freed. */
struct definition definition_judging(const struct definition *run,
                                     const struct definition *reviewed);

struct definition_file {
    struct definition *gates; /* in file order */
    size_t n;
    const char *name;
    struct arena arena; /* the name, and the nodes that tell where the gates' parts stand */
};

/* cleanrun.yaml (or JSON) bytes → every gate. `name` is used in messages: "cleanrun.yaml:12:5:
 * unknown key 'tolerence'; did you mean …". */
int definition_file_parse(const char *name, const char *bytes, size_t len,
                          struct definition_file *out, struct err *e) MUST_CHECK;
/* The same, but the gates belong to `project` (owner/name; NULL: the file's), in their documents as
 * well. */
int definition_file_parse_for(const char *name, const char *bytes, size_t len, const char *project,
                              struct definition_file *out, struct err *e) MUST_CHECK;
void definition_file_fini(struct definition_file *f);
/* Borrowed; NULL when no such gate. gate NULL: the only gate, or NULL when there are several. */
const struct definition *definition_file_gate(const struct definition_file *f, const char *gate);

/* definition.json bytes (canonical document) → one gate; shape and digests are recomputed. */
int definition_parse(const char *bytes, size_t len, struct definition *out,
                     struct err *e) MUST_CHECK;
void definition_fini(struct definition *d); /* accepts zeroed */
/* The canonical bytes of definition.json (pretty JSON, fixed key order). Caller frees. */
int definition_write(const struct definition *d, char **out, size_t *out_len,
                     struct err *e) MUST_CHECK;
/* An unhashed value (label, time-out) by its pointer in the document,
 * "/policy/audit/metrics/0/label"; NULL when not given. */
const cJSON *definition_note(const struct definition *d, const char *pointer);
/* For messages: where the part at this pointer of the document (or what holds it) stands,
 * "cleanrun.yaml:12:5"; the pointer itself (cut, when it is longer) when the definition did not
 * come from such a file. Returns out. */
const char *definition_place(const struct definition *d, const char *pointer,
                             char out[DEFINITION_PLACE_SIZE]);
/* An already filled *e is about the part at this pointer: its place goes before the text. Returns
 * -1. */
int definition_blame(const struct definition *d, const char *pointer, struct err *e);
/* Does the report name its source where run.report_commit and run.report_fingerprint say? NULL when
 * it does or nothing is asked, else what it does not name: "commit" or "fingerprint". */
const char *definition_report_misnames(const struct definition *d, const cJSON *report,
                                       const char *commit, const char *fingerprint);
/* JSON Pointers of experiment keys whose values differ, as a JSON array of {field, baseline,
 * current} (absent side omitted). */
int definition_experiment_diff(const struct definition *baseline, const struct definition *current,
                               cJSON **out, struct err *e) MUST_CHECK;
/* The JSON Schema of cleanrun.yaml (caller frees). */
int definition_json_schema(cJSON **out, struct err *e) MUST_CHECK;

#define AUTO_DEFINITION __attribute__((cleanup(definition_fini)))
#define AUTO_DEFINITION_FILE __attribute__((cleanup(definition_file_fini)))
