/* cleanrun doctor: is this machine fit to measure, and for what? */
#include <string.h>

#include "audit/verdict.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/plain.h"
#include "runner/commands.h"
#include "runner/definition_load.h"
#include "runner/doctor_server.h"
#include "runner/host.h"

static size_t count_state(const cJSON *rows, const char *state)
{
    const cJSON *row = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(row, rows) {
        n += strcmp(json_get(row, "state")->valuestring, state) == 0 ? 1 : 0;
    }
    return n;
}

static const char *fitness_of(const cJSON *rows)
{
    if (count_state(rows, "bad") > 0)
        return "UNFIT for latency and throughput; fit for memory growth and exact counts";
    if (count_state(rows, "warn") + count_state(rows, "unknown") > 0)
        return "fit for memory growth and exact counts; latency and throughput only with wide "
               "tolerances";
    return "fit";
}

static void print_text(const struct cli *c, const cJSON *rows, const char *fitness,
                       const cJSON *facts)
{
    const cJSON *model = json_get(facts, "cpu_model");
    const cJSON *kernel = json_get(facts, "kernel");
    const cJSON *row = NULL;

    /* Flushed and checked by main. */
    plain_line(c->out, "%s, kernel %s",
               cJSON_IsString(model) ? model->valuestring : "unknown processor",
               cJSON_IsString(kernel) ? kernel->valuestring : "unknown");
    cJSON_ArrayForEach(row, rows) {
        const char *state = json_get(row, "state")->valuestring;
        const cJSON *value = json_get(row, "value");
        const cJSON *fix = json_get(row, "fix");

        plain_line(c->out, "%-8s %-16s %-22s %s", state, json_get(row, "name")->valuestring,
                   cJSON_IsString(value) ? value->valuestring : "-",
                   json_get(row, "text")->valuestring);
        if (cJSON_IsString(fix))
            plain_line(c->out, "%-8s %-16s fix: %s", "", "", fix->valuestring);
    }
    plain_line(c->out, "this machine is %s", fitness);
}

static int print_json(const struct cli *c, const cJSON *rows, const char *fitness,
                      const cJSON *facts, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *j = NULL;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-doctor/1");
    json_add_string(&d, NULL, "fitness", fitness);
    json_add_copy(&d, NULL, "checks", rows);
    json_add_copy(&d, NULL, "facts", facts);
    j = json_doc_take(&d, e);
    return j ? cli_write_json(c, NULL, j, e) : -1;
}

/* A server that is configured is asked as well: nothing of it says how fit the machine is. */
static int ask_server(const struct cli *c, const struct cli_args *a, cJSON *rows, struct err *e)
{
    struct push_target t;
    AUTO_FREE char *here = NULL;
    struct err ignored = ERR_INIT; /* no definition here: told as an unknown project */

    push_target_from(c, a, &t);
    if (!t.server || !*t.server)
        return 0;
    if (!t.project && definition_project_here(c, &here, &ignored) == 0)
        t.project = here;
    return doctor_server(&t, cli_get(a, "key"), rows, e);
}

static int doctor(struct cli *c, const struct cli_args *a, int *out_exit, struct err *e)
{
    const char *path = cli_get(a, "root");
    struct sysroot root;
    struct machine_program last;
    AUTO_JSON cJSON *rows = NULL;
    AUTO_JSON cJSON *facts = NULL;
    int r;

    if (sysroot_open(path ? path : "/", &root, e) < 0)
        return -1;
    r = host_fitness(
        &root,
        machine_lock_abandoned(machine_lock_path(cli_env(c, MACHINE_LOCK_VARIABLE)), &root, &last)
            ? &last
            : NULL,
        &rows, e);
    if (r == 0)
        r = host_facts(&root, NULL, &facts, e);
    sysroot_close(&root);
    if (r < 0)
        return -1;
    const char *fitness = fitness_of(rows);

    if (ask_server(c, a, rows, e) < 0)
        return -1;
    *out_exit = count_state(rows, "bad") > 0 ? EXIT_FAIL : EXIT_OK;
    if (cli_has(a, "json"))
        return print_json(c, rows, fitness, facts, e);
    print_text(c, rows, fitness, facts);
    return 0;
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;
    int code = EXIT_ERROR;

    return doctor(c, a, &code, &e) < 0 ? cli_fail(c, &e) : code;
}

static const struct cli_option options[] = {
    {.name = "json", .help = "checks and facts as JSON"},
    {.name = "server", .value = "URL", .help = "also ask this server (or CLEANRUN_SERVER)"},
    {.name = "token-file",
     .value = "FILE",
     .help = "whether this token may upload (or CLEANRUN_TOKEN_FILE)"},
    {.name = "project", .value = "OWNER/NAME", .help = "to there (default: cleanrun.yaml's)"},
    {.name = "key", .value = "FILE", .help = "whether it believes what this private key signs"},
    {.name = "root", .value = "DIR", .help = "read proc, sys and etc below DIR instead of /"},
};

const struct command command_doctor = {
    .name = "doctor",
    .summary = "is this machine fit to measure",
    .synopsis = "[--json] [--server URL --token-file FILE --key FILE]",
    .examples =
        "  cleanrun doctor\n"
        "  cleanrun doctor --server https://perf.example.org --token-file token --key key.pem\n",
    .notes = "Exit: 0 when nothing is bad (warnings are told), 4 when something is, 2 when it "
             "can't be read.\n",
    COMMAND_OPTIONS(options),
    .max_args = 0,
    .run = run,
};
