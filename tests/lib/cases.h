/*
 * cases: replays the rows of tests/data/rvoip/cases.json: finds rows, lays out their trees, applies
 * their edit operations to a JSON tree or to files. Knows nothing of what is then evaluated.
 * Helpers fail the running test themselves.
 *
 * Operations: set, del, add (number), append, pop_last with `path` as a list (strings are keys,
 * integers array indices; missing objects on the way of a set are made); {"$num": "nan"|"inf"} in a
 * value stands for a bare NaN or Infinity; on files: mv, rm, mkdir, write, copy.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

/* The whole list; freed with cJSON_Delete. */
cJSON *cases_load(void);
/* Borrowed row; fails the test when there is none. */
const cJSON *cases_find(const cJSON *rows, const char *id);
/* A JSON fixture below the source root. */
cJSON *cases_read_json(const char *relative);

/* Applies one operation without `file` to a tree. A root cannot be deleted. */
void cases_edit(cJSON *root, const cJSON *op);
/* Applies a row's operations (NULL: none) to a tree; an operation on files fails the test. */
void cases_edit_all(cJSON *root, const cJSON *ops);

/* Lays out an audit row's base below dir: dir/baseline, dir/current, dir/manifest.json. */
void cases_audit_tree(const char *dir, const cJSON *row);
/* Applies a row's operations to the files below dir (paths are the operations' `file`, `from`,
 * `to`). */
void cases_apply(const char *dir, const cJSON *ops);

/* JSON text of a tree, heap string. Floats keep their point (0.0 is not written as 0), and
 * {"$num": "nan"} is written as NaN: so a text may be no JSON on purpose. */
char *cases_print(const cJSON *j);
