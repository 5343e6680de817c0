#include "runner/scrub.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "runner/build.h"
#include "runner/capture.h"
#include "runner/measure.h"

#define N_RENAMES 3

/* *partial owns one of the texts and must outlive the renames. */
static int renames_of(const struct run *r, char **partial, struct capture_rename out[N_RENAMES],
                      struct err *e)
{
    const char *home = cli_env(r->cli, "HOME");

    if (asprintf(partial, "%s.partial", r->dir.path) < 0) {
        *partial = NULL;
        return err_memory(e, "scrub.memory");
    }
    out[0] = (struct capture_rename){*partial, "{run}"};
    out[1] = (struct capture_rename){r->git.root, "{source}"};
    out[2] = (struct capture_rename){home ? home : "", "{home}"};
    return 0;
}

int scrub_logs(struct run *r, struct err *e)
{
    static const char *const logs[] = {BUILD_LOG, BUILD_MESSAGES, RUN_LOG};
    struct capture_rename renames[N_RENAMES];
    AUTO_FREE char *partial = NULL;

    if (renames_of(r, &partial, renames, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(logs); i++) {
        if (faccessat(r->dir.fd, logs[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (capture_scrub(r->dir.fd, logs[i], renames, N_RENAMES, e) < 0)
            return err_wrap(e, "%s", logs[i]);
    }
    return 0;
}

static int scrub_record(cJSON *record, const struct capture_rename *renames, struct err *e)
{
    const cJSON *passed = json_get(record, "passed");

    for (cJSON *item = passed ? passed->child : NULL; item; item = item->next) {
        AUTO_BUF struct buf b = {.data = NULL};

        buf_init(&b, LIMIT_MIB(1));
        if (!capture_replace(item->valuestring, strlen(item->valuestring), renames, N_RENAMES, &b))
            continue;
        if (buf_check(&b, e) < 0)
            return -1;
        char *text = buf_take(&b, NULL);

        if (!text)
            return err_memory(e, "scrub.memory");
        cJSON_free(item->valuestring);
        item->valuestring = text;
    }
    return 0;
}

int scrub_environments(struct run *r, struct err *e)
{
    struct capture_rename renames[N_RENAMES];
    AUTO_FREE char *partial = NULL;

    if (renames_of(r, &partial, renames, e) < 0 ||
        scrub_record(r->build.environment, renames, e) < 0)
        return -1;
    return r->measured ? scrub_record(r->measure.environment, renames, e) : 0;
}
