/* The local verdict of a finished run, in words, as JSON and as an exit code. */
#include "runner/finish.h"

#include <stdio.h>

#include "audit/verdict.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"

#define REASONS_TOLD 20

static const char *failed_check(const struct acceptance *a)
{
    const cJSON *check = NULL;

    cJSON_ArrayForEach(check, json_get(a->document, "checks"))
    {
        if (!cJSON_IsTrue(json_get(check, "passed")) && cJSON_IsString(json_get(check, "name")))
            return json_get(check, "name")->valuestring;
    }
    return "?";
}

/* The exit code of the local verdict (decisions C20, U19, C22). */
int finish_exit(const struct finish *f)
{
    if (f->run->options.build_only || (f->run->plan.mode != PLAN_CLEAN && f->run->n_faults == 0))
        return EXIT_NOTHING;
    if (f->run->n_faults > 0)
        return EXIT_FAIL;
    return f->has_audit ? verdict_exit(f->audit.verdict) : EXIT_NON_COMPARABLE;
}

static const char *local_verdict(const struct finish *f)
{
    if (f->run->options.build_only || f->run->plan.mode != PLAN_CLEAN)
        return NULL;
    if (f->run->n_faults > 0)
        return "FAIL";
    return f->has_audit ? verdict_word(f->audit.verdict) : "NON_COMPARABLE";
}

static void tell_json(struct finish *f, int code)
{
    struct run *r = f->run;
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *j = NULL;
    AUTO_BUF struct buf b = {.data = NULL};
    struct err ignored = ERR_INIT;
    cJSON *list;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "event", "result");
    json_add_string(&d, NULL, "run", r->id);
    json_add_string(&d, NULL, "directory", r->dir.path);
    json_add_string(&d, NULL, "status", f->status);
    json_add_string(&d, NULL, "verdict", local_verdict(f));
    json_add_string(&d, NULL, "acceptance", f->acceptance_status);
    json_add_string(&d, NULL, "audit", f->audit_status);
    list = json_add_array(&d, NULL, "faults");
    for (size_t i = 0; i < r->n_faults; i++)
        json_add_string(&d, list, NULL, r->faults[i]);
    list = json_add_array(&d, NULL, "reasons");
    if (f->has_audit) {
        const cJSON *reason = NULL;

        cJSON_ArrayForEach(reason, json_get(f->audit.document, "reasons"))
        {
            json_add_copy(&d, list, NULL, reason);
        }
    } else if (local_verdict(f) && r->n_faults == 0) {
        cJSON *row = json_add_object(&d, list, NULL);

        json_add_string(&d, row, "code", "NC-BASELINE-NONE");
        json_add_string(&d, row, "text",
                        f->run->options.server ? "no baseline is reviewed for this gate and class"
                                               : "no baseline was named");
    }
    json_add_int(&d, NULL, "exit", code);
    j = json_doc_take(&d, &ignored);
    buf_init(&b, LIMIT_MIB(4));
    json_write(&b, j, JSON_COMPACT);
    if (!b.failed)
        (void) fprintf(r->cli->out, "%s\n", b.data); /* flushed and checked by main */
}

/* Why the comparison refused; audit.md has the rest of a long list. */
static void tell_reasons(const struct finish *f)
{
    const cJSON *reason = NULL;
    size_t n = 0;

    if (!f->has_audit)
        return;
    cJSON_ArrayForEach(reason, json_get(f->audit.document, "reasons"))
    {
        if (n++ == REASONS_TOLD) {
            cli_say(f->run->cli, "  - and more: audit.md lists every reason");
            return;
        }
        cli_say(f->run->cli, "  - %s: %s", json_get(reason, "code")->valuestring,
                json_get(reason, "text")->valuestring);
    }
}

void finish_tell(struct finish *f, int code)
{
    struct run *r = f->run;

    if (r->options.json) {
        tell_json(f, code);
        return;
    }
    for (size_t i = 0; i < r->n_faults; i++)
        cli_say(r->cli, "  - %s", r->faults[i] ? r->faults[i] : "?");
    tell_reasons(f);
    if (f->has_acceptance && f->acceptance.verdict == ACCEPTANCE_FAIL)
        cli_say(r->cli, "acceptance FAIL, first at: %s (acceptance.json lists every check)",
                failed_check(&f->acceptance));
    if (!local_verdict(f))
        cli_say(r->cli, "%-10s %s: no verdict comes of it", "result",
                r->options.build_only ? "built" : "diagnostic run");
    else if (f->has_audit || r->n_faults > 0)
        cli_say(r->cli, "%-10s %s", "result", local_verdict(f));
    else
        cli_say(r->cli,
                "%-10s NON_COMPARABLE  NC-BASELINE-NONE: no baseline %s; to propose this run as one, push "
                "it and have it reviewed (cleanrun help reasons)",
                "result", r->options.server ? "is reviewed" : "was named");
    (void) fprintf(r->cli->out, "%s\n", r->dir.path); /* flushed and checked by main */
}
