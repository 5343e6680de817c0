/* definition_load: the --definition and --gate options of the offline commands. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/definition.h"
#include "runner/cli.h"

struct definition_source {
    struct definition_file file;     /* of a cleanrun.yaml */
    struct definition one;           /* of a definition.json */
    const struct definition *chosen; /* borrowed from one of them */
};

/* path NULL: cleanrun.yaml. gate NULL: the file's only gate. ERR_USAGE for a gate that is not
 * there. */
int definition_load(const char *path, const char *gate, struct definition_source *out,
                    struct err *e) MUST_CHECK;
void definition_source_fini(struct definition_source *s); /* accepts zeroed */
#define AUTO_DEFINITION_SOURCE __attribute__((cleanup(definition_source_fini)))

/* The project of the nearest cleanrun.yaml of the repository we stand in. Heap; NULL when it names
 * none. */
int definition_project_here(const struct cli *c, char **out, struct err *e) MUST_CHECK;
