#include "runner/control.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "evidence/manifest.h"

static void unpaired(char *why, size_t size, const char *text)
{
    (void) snprintf(why, size, "%s", text); /* a cut reason still explains */
}

/* "" when the run fits. */
static const char *misfit(const struct run *r, const struct manifest *m)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&r->start.fingerprint, hex);
    if (strcmp(m->mode, "clean") != 0 || m->status == MANIFEST_BUILD_ONLY)
        return "it is no clean run";
    if (strcmp(m->fingerprint, hex) != 0)
        return "it measured another source";
    if (!m->has_executable || !digest_equal(&m->executable_digest, &r->artifact.digest))
        return "it measured another executable";
    if (!digest_equal(&m->experiment_digest, &r->definition->experiment_digest))
        return "it is another experiment";
    return "";
}

int control_find(struct run *r, const char *state, char *why, size_t size, struct err *e)
{
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *bytes = NULL;
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    struct err ignored = ERR_INIT; /* a control that can't be read is unpaired, not a failure */
    bool by_id = text_is_run_id(r->options.control);
    const char *reason;
    size_t len = 0;

    if (asprintf(&path, "%s%s%s/" MANIFEST_NAME, by_id ? state : "", by_id ? "/runs/" : "",
                 r->options.control) < 0) {
        path = NULL;
        return err_memory(e, "control.memory");
    }
    if (file_read(path, LIMIT_JSON_DOCUMENT, &bytes, &len, &ignored) < 0 ||
        manifest_parse(bytes, len, &m, &ignored) < 0) {
        unpaired(why, size, "it is no finished run");
        return 0;
    }
    reason = misfit(r, &m);
    unpaired(why, size, reason);
    if (!*reason)
        (void) snprintf(r->control, sizeof(r->control), "%s", m.run); /* a run id: fits */
    return 0;
}
