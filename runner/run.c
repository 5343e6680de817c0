#include "runner/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/plain.h"
#include "runner/machine_lock.h"

#define TEXT_MAX 1024

int run_blame(const struct run *r, const char *pointer, struct err *e)
{
    return e->kind == ERR_USAGE ? definition_blame(r->definition, pointer, e) : -1;
}

void run_say(struct run *r, const char *what, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (n < 0)
        return;
    if (r->options.json) {
        AUTO_BUF struct buf b = {.data = NULL};

        buf_init(&b, LIMIT_KIB(16));
        buf_puts(&b, "{\"event\":");
        json_write_string(&b, what);
        buf_puts(&b, ",\"text\":");
        json_write_string(&b, text);
        buf_puts(&b, "}\n");
        if (!b.failed)
            (void) fwrite(b.data, 1, b.len, r->cli->out); /* flushed and checked by main */
        (void) fflush(r->cli->out);
        return;
    }
    cli_say(r->cli, "%-10s %s", what, text);
}

static int write_error(struct run *r, const struct err *why, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *j = NULL;
    char at[CLOCK_RFC3339_SIZE];

    clock_rfc3339(clock_realtime_us(), false, at);
    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-error/1");
    json_add_string(&d, NULL, "verdict", "ERROR");
    json_add_string(&d, NULL, "project", r->project);
    json_add_string(&d, NULL, "gate", r->definition ? r->definition->gate : NULL);
    json_add_string(&d, NULL, "run", r->id);
    json_add_string(&d, NULL, "commit", r->start.scheme ? r->start.commit : NULL);
    json_add_string(&d, NULL, "stage", r->stage);
    json_add_string(&d, NULL, "code", why->code);
    json_add_string(&d, NULL, "text", why->text);
    json_add_bool(&d, NULL, "interrupted", r->interrupted);
    json_add_string(&d, NULL, "at", at);
    j = json_doc_take(&d, e);
    return j ? rundir_write_json(&r->dir, RUNDIR_ERROR, j, LIMIT_KIB(64), e) : -1;
}

/* Nothing that looks like evidence may stay beside error.json. */
static int drop_manifest(struct run *r, struct err *e)
{
    return file_remove_tree_at(r->dir.fd, "manifest.json", e);
}

int run_abort(struct run *r, const struct err *why)
{
    struct err e = ERR_INIT;
    bool kept = r->dir.path && !r->dir.committed && why->kind != ERR_USAGE;

    if (kept && (drop_manifest(r, &e) < 0 || write_error(r, why, &e) < 0 ||
                 rundir_commit(&r->dir, &e) < 0)) {
        cli_say(r->cli, "the run directory could not be kept: %s", e.text);
        kept = false;
    }
    plain_line(r->cli->err, "cleanrun run: %s",
               why->text); /* a broken standard error is no reason to stop */
    if (kept && r->options.json)
        run_say(r, "error", "%s", why->text);
    else if (kept)
        cli_say(r->cli, "%-10s ERROR in stage %s; logs are kept in %s", "result", r->stage,
                r->dir.path);
    if (r->interrupted)
        return EXIT_INTERRUPTED;
    return why->kind == ERR_USAGE ? EXIT_USAGE : EXIT_ERROR;
}

void run_close(struct run *r)
{
    rundir_close(&r->dir);
    measure_fini(&r->measure);
    keep_close(&r->kept.build_log);
    keep_close(&r->kept.build_messages);
    keep_close(&r->kept.run_log);
    artifact_fini(&r->artifact);
    build_result_fini(&r->build);
    reference_close(&r->reference);
    source_fini(&r->start);
    source_fini(&r->end);
    git_close(&r->git);
    json_free(r->patterns);
    json_free(r->facts);
    json_free(r->readings);
    json_free(r->before);
    json_free(r->steps);
    definition_file_fini(&r->file);
    for (size_t i = 0; i < r->n_faults; i++)
        free(r->faults[i]);
    sysroot_close(&r->sysroot);
    if (r->signal_fd >= 0)
        (void) close(r->signal_fd); /* was only read */
    if (r->lock_fd >= 0) {
        if (r->mark[0]) /* else what an earlier runner noted stands */
            machine_lock_note(r->lock_fd, 0);
        (void) close(r->lock_fd); /* releases the lock */
    }
    arena_fini(&r->arena);
}
