/* cleanrun leak: does memory grow without end? Every estimator side by side, and the verdict. */
#include <stdlib.h>
#include <string.h>

#include "audit/verdict.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/plain.h"
#include "base/quantity.h"
#include "experiment/leak.h"
#include "runner/commands.h"

static int exit_of(enum leak_verdict v)
{
    switch (v) {
    case LEAK_PASS:
        return EXIT_OK;
    case LEAK_FAIL:
        return EXIT_REGRESSION;
    case LEAK_INCONCLUSIVE:
    case LEAK_INVALID:
        break;
    }
    return EXIT_NON_COMPARABLE;
}

/* main flushes and checks the stream, here and below. */
static void print_number(FILE *to, const char *name, const cJSON *v)
{
    char text[QUANTITY_TEXT];

    if (!cJSON_IsNumber(v)) {
        plain_line(to, "  %-26s %10s", name, "-");
        return;
    }
    quantity_number(v->valuedouble, false, true, text);
    plain_line(to, "  %-26s %10s MB/h", name, text);
}

/* How much longer a series must be that is too short to say anything. */
static void print_too_short(FILE *to, const cJSON *blocks)
{
    double have = cJSON_IsNumber(blocks) ? blocks->valuedouble : 0;

    if (have < LEAK_MIN_BLOCKS)
        plain_line(to,
                   "  the window must hold %d whole minutes with %d samples or more in each; it "
                   "holds %.0f",
                   LEAK_MIN_BLOCKS, LEAK_MIN_BLOCK_SAMPLES, have);
    else
        plain_line(to, "  the window holds too few samples at its beginning or its end");
}

static void summarise(FILE *to, const struct leak *leak, double limit)
{
    const cJSON *estimators = json_get(leak->document, "estimators");
    const cJSON *reason = json_get(leak->document, "reason");
    const cJSON *e = NULL;
    char text[QUANTITY_TEXT];

    quantity_number(limit, false, true, text);
    plain_line(to, "%s%s%s  limit %s MB/h", leak_verdict_name(leak->verdict),
               cJSON_IsString(reason) ? " " : "", cJSON_IsString(reason) ? reason->valuestring : "",
               text);
    if (cJSON_IsString(reason) && strcmp(reason->valuestring, "window_too_short") == 0)
        print_too_short(to, json_get(leak->document, "blocks"));
    cJSON_ArrayForEach(e, estimators)
        print_number(to, e->string, e);
    print_number(to, "lower bound", json_get(leak->document, "lo"));
    print_number(to, "upper bound", json_get(leak->document, "hi"));
}

static int evaluate(const struct cli_args *a, struct leak *out, double *out_limit, struct err *e)
{
    const char *limit = cli_get(a, "limit");
    const char *window = cli_get(a, "window");
    struct leak_window range = {0};
    AUTO_FREE char *csv = NULL;
    size_t len = 0;

    if (!limit || !num_parse_double(limit, strlen(limit), out_limit) || *out_limit < 0)
        return err_set(e, ERR_USAGE, "leak.limit",
                       "--limit needs a number of MB per hour, 0 or more");
    if (window && !leak_window_parse(window, &range))
        return err_set(e, ERR_USAGE, "leak.window",
                       "--window needs A..B in milliseconds, A not after B");
    if (file_read(a->args[0], LIMIT_SAMPLES_FILE, &csv, &len, e) < 0)
        return -1;
    if (leak_evaluate(csv, len, *out_limit, window ? &range : NULL, out, e) < 0)
        return err_wrap(e, "%s", a->args[0]);
    return 0;
}

static int run(struct cli *c, const struct cli_args *a)
{
    const char *json = cli_get(a, "json");
    bool to_stdout = json && strcmp(json, "-") == 0;
    AUTO_LEAK struct leak leak = {0};
    struct err e = ERR_INIT;
    double limit = 0;

    if (evaluate(a, &leak, &limit, &e) < 0 ||
        (json && cli_write_json(c, json, leak.document, &e) < 0))
        return cli_fail(c, &e);
    if (!c->quiet)
        summarise(to_stdout ? c->err : c->out, &leak, limit);
    return exit_of(leak.verdict);
}

static const struct cli_option options[] = {
    {.name = "limit", .value = "MB_PER_HOUR", .help = "growth that is still allowed"},
    {.name = "window",
     .value = "A..B",
     .help = "only samples from A to B milliseconds, both inclusive"},
    {.name = "json", .value = "FILE|-", .help = "write cleanrun-leak/1"},
};

const struct command command_leak = {
    .name = "leak",
    .summary = "judge the growth of a memory series",
    .synopsis = "SAMPLES.csv --limit MB_PER_HOUR [--window A..B] [--json FILE|-]",
    .examples = "  cleanrun leak samples/process.csv --limit 10 --window 95000..695000\n",
    .notes = "The file begins with the line t_ms,rss_kib (more columns may follow). A verdict "
             "needs 8 whole minutes with\n"
             "3 samples or more in each; a shorter window is INCONCLUSIVE window_too_short.\n"
             "Exit: 0 PASS, 1 FAIL, 3 INCONCLUSIVE or INVALID, 2 the file could not be read.\n",
    COMMAND_OPTIONS(options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
