/* What to do next: steps of prose, each with a command that can be typed as it stands. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "server/store/doc.h"

#define ADVICE_MAX LIMIT_KIB(4)

void doc_names(const struct store *s, const struct store_run *run, struct advice_names *out)
{
    *out = (struct advice_names){.project = run->project,
                                 .gate = run->gate,
                                 .machine_class = run->machine_class,
                                 .run = run->run,
                                 .commit = run->commit,
                                 .server = store_base_url(s),
                                 .is_private = run->is_private};
}

void doc_step(struct json_doc *d, cJSON *list, const char *text, const char *command)
{
    cJSON *o = json_add_object(d, list, NULL);

    json_add_string(d, o, "text", text);
    json_add_string(d, o, "command", command);
}

static void step_of(struct json_doc *d, cJSON *list, const char *text, const char *command,
                    size_t len, const struct advice_names *names)
{
    AUTO_BUF struct buf filled = {.data = NULL};

    buf_init(&filled, ADVICE_MAX);
    advice_command(&filled, command, len, names);
    if (filled.failed || !filled.data)
        d->failed = true;
    else
        doc_step(d, list, text, filled.data);
}

void doc_step_for(struct json_doc *d, cJSON *list, const char *text, const char *command,
                  const struct advice_names *names)
{
    step_of(d, list, text, command, strlen(command), names);
}

void doc_advice(struct json_doc *d, cJSON *list, const char *code, const struct advice_names *names)
{
    const struct reason_info *info = reason_find(code);
    const char *from = info ? strchr(info->resolve, '`') : NULL;
    const char *to = from ? strchr(from + 1, '`') : NULL;
    AUTO_FREE char *text = NULL;
    size_t len;

    if (!to)
        return;
    len = (size_t) (from - info->resolve);
    while (len > 0 && info->resolve[len - 1] == ' ')
        len--;
    text = strndup(info->resolve, len);
    if (!text)
        d->failed = true;
    else
        step_of(d, list, text, from + 1, (size_t) (to - from - 1), names);
}

void doc_fallen_steps(struct json_doc *d, cJSON *list, const struct store_run *run,
                      const struct advice_names *names)
{
    if (run->damaged) {
        doc_step_for(d, list,
                     "The server's copy of this run's evidence is no longer what was accepted. If "
                     "the archive is kept elsewhere, its owner pushes it again: that heals the run "
                     "and its verdict.",
                     "cleanrun push evidence.tar --project PROJECT --gate GATE --token-file FILE",
                     names);
        doc_step(d, list, "Administrator: find out what changed the file.", "cleanrun-server fsck");
        return;
    }
    doc_step_for(d, list,
                 "Administrator: a revoked key is never trusted again. If the machine is, make a "
                 "new key on it and register that under a new name:",
                 "cleanrun-server runner add NAME --class CLASS --key pub.pem --project PROJECT",
                 names);
    doc_step_for(d, list, "Then measure this commit again with a key that is trusted:",
                 "cleanrun run GATE --at COMMIT --key key.pem --push --token-file FILE", names);
}
