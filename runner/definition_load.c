#include "runner/definition_load.h"

#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "runner/checkout.h"
#include "runner/git.h"

void definition_source_fini(struct definition_source *s)
{
    definition_file_fini(&s->file);
    definition_fini(&s->one);
    s->chosen = NULL;
}

static int choose(const char *path, const char *gate, struct definition_source *s, struct err *e)
{
    if (s->one.gate && (!gate || strcmp(gate, s->one.gate) == 0))
        s->chosen = &s->one;
    else if (!s->one.gate)
        s->chosen = definition_file_gate(&s->file, gate);
    if (s->chosen)
        return 0;
    if (gate)
        return err_set(e, ERR_USAGE, "definition.gate", "%s has no gate '%.80s'", path, gate);
    return err_set(e, ERR_USAGE, "definition.gate", "%s has several gates: name one with --gate",
                   path);
}

int definition_load(const char *path, const char *gate, struct definition_source *out,
                    struct err *e)
{
    const char *name = path ? path : "cleanrun.yaml";
    struct definition_source s = {0};
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    int rc = 0;

    if (file_read(name, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0)
        return -1;
    /* definition.json is a canonical document; a YAML file never holds its schema name in this
     * form. */
    if (bytes[0] == '{' && memmem(bytes, len, "\"cleanrun-definition/1\"", 23))
        rc = definition_parse(bytes, len, &s.one, e) < 0 ? err_wrap(e, "%s", name) : 0;
    else
        rc = definition_file_parse(name, bytes, len, &s.file, e);
    if (rc == 0)
        rc = choose(name, gate, &s, e);
    if (rc < 0) {
        definition_source_fini(&s);
        return -1;
    }
    *out = s;
    if (s.one.gate)
        out->chosen = &out->one;
    return 0;
}

int definition_project_here(const struct cli *c, char **out, struct err *e)
{
    AUTO_GIT struct git g = {.root_fd = -1};
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *bytes = NULL;
    struct definition_file file = {.n = 0};
    size_t len = 0;
    int result;

    if (git_open(c->directory, cli_env(c, "PATH"), c->environment, &g, e) < 0 ||
        checkout_find_definition(c->directory, g.root, &path, e) < 0 ||
        file_read(path, LIMIT_YAML, &bytes, &len, e) < 0 ||
        definition_file_parse(path, bytes, len, &file, e) < 0)
        return -1;
    const char *project = file.n > 0 ? file.gates[0].project : NULL; /* one for all gates */

    *out = project ? strdup(project) : NULL;
    result = project && !*out ? err_memory(e, "definition.memory") : 0;
    definition_file_fini(&file);
    return result;
}
