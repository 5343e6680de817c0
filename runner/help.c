#include "runner/help.h"

#include <string.h>

#include "audit/verdict.h"
#include "base/text.h"
#include "experiment/facts.h"
#include "experiment/schema.h"

/* Help goes to a stream that main flushes and checks, so single results are not looked at. */
#define PUT(...) (void) fprintf(out, __VA_ARGS__)

#define TOPICS_MAX 8

static void put_option(FILE *out, const struct cli_option *o)
{
    char name[80];
    char letter[8] = "";

    if (o->letter)
        (void) snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    (void) snprintf(name, sizeof(name), "%s--%s%s%s%s", letter, o->name,
                    o->value ? (o->optional ? "[=" : " ") : "", o->value ? o->value : "",
                    o->value && o->optional ? "]" : ""); /* our own tables: fits */
    PUT("  %-28s %s%s\n", name, o->help, o->repeats ? " (repeatable)" : "");
}

void help_overview(FILE *out)
{
    PUT("cleanrun: performance gates that never go green without their experiment\n\n");
    PUT("  cleanrun init                    write a first cleanrun.yaml\n");
    PUT("  cleanrun run GATE                build, measure, package\n");
    PUT("  cleanrun audit --definition cleanrun.yaml --gate GATE --baseline DIR --current DIR\n");
    PUT("  cleanrun verify evidence.tar --key pub.pem\n\n");
    PUT("Commands:\n");
    for (size_t i = 0; command_table[i]; i++)
        PUT("  %-18s %s\n", command_table[i]->name, command_table[i]->summary);
    PUT("\nOptions of every command:\n");
    for (size_t i = 0; i < cli_global_count; i++)
        put_option(out, &cli_global_options[i]);
    PUT("  %-28s what the command does, its options and exit codes\n", "-h, --help");
    PUT("\nTopics: cleanrun help exit-codes | environment | identity | reasons | definition\n");
}

void help_command(FILE *out, const struct command *cmd)
{
    if (cmd->examples)
        PUT("%s\n", cmd->examples);
    PUT("usage: cleanrun %s %s\n%s\n", cmd->name, cmd->synopsis, cmd->summary);
    if (cmd->n_options > 0)
        PUT("\n");
    for (size_t i = 0; i < cmd->n_options; i++)
        put_option(out, &cmd->options[i]);
    if (cmd->notes)
        PUT("\n%s", cmd->notes);
}

static void topic_exit_codes(FILE *out)
{
    static const struct {
        int code;
        const char *text;
    } rows[] = {
        {EXIT_OK, "OK: the same experiment, inside all limits"},
        {EXIT_REGRESSION, "REGRESSION: the same experiment, a gated metric beyond its limit"},
        {EXIT_USAGE, "usage, configuration or input and output"},
        {EXIT_NON_COMPARABLE, "NON_COMPARABLE: no claim is made; the reasons say why"},
        {EXIT_FAIL, "FAIL: acceptance failed, or the program did"},
        {EXIT_INVALID, "INVALID: the evidence is broken"},
        {EXIT_ERROR, "ERROR: infrastructure; never looks like a regression"},
        {EXIT_NOTHING, "nothing to do, and sound diagnostic or build-only runs"},
        {EXIT_PENDING, "PENDING: queued or measuring"},
        {EXIT_INTERRUPTED, "interrupted"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        PUT("%3d  %s\n", rows[i].code, rows[i].text);
    PUT("Several gates: the worst, in the order 5 6 4 1 3 7 8 0.\n");
}

static void topic_environment(FILE *out)
{
    PUT("For cleanrun:\n"
        "  XDG_STATE_HOME       run directories and checkouts are below $XDG_STATE_HOME/cleanrun "
        "(default ~/.local/state)\n"
        "  CLEANRUN_SERVER      server address for run, push and status\n"
        "  CLEANRUN_TOKEN_FILE  file with the token, mode 0600\n"
        "  CLEANRUN_LOCK        the machine's lock file (default /run/lock/cleanrun.lock): one "
        "measurement at a time\n"
        "  NO_COLOR, CLICOLOR_FORCE\n\n"
        "Programs that cleanrun starts get an emptied environment: PATH, LANG=C.UTF-8, TZ=UTC and "
        "TMPDIR=/tmp, what the\n"
        "definition allows or sets, and for the measured program:\n"
        "  CLEANRUN_RESULTS       absolute directory for <scenario>/<point>.json\n"
        "  CLEANRUN_PHASE_FD      descriptor for phase markers, one name a line\n"
        "  CLEANRUN_CONDITIONING  names of the conditioning steps that are the program's own, "
        "separated by commas\n"
        "  CLEANRUN_MODE          clean, cpu, timing, memory or boundary\n"
        "  CLEANRUN_SOURCE_SHA256 fingerprint of the source it was built from\n"
        "  CLEANRUN_RUNNER        mark by which the next run finds what a killed runner left\n"
        "A run is refused when a variable that the definition rejects is exported at all, even "
        "empty.\n");
}

static void topic_identity(FILE *out)
{
    PUT("Two runs are compared only when they are the same experiment on the same kind of machine: "
        "experiment digest,\n"
        "machine class, conditioning, the identity fields of the definition, and these facts of "
        "the machine. An unknown\n"
        "fact is a refusal, not a match.\n\n");
    for (size_t i = 0; i < facts_count; i++)
        PUT("  %-24s %s\n  %-24s %s\n", facts_table[i].name, facts_table[i].label, "",
            facts_table[i].why);
    PUT("\nReadings (current frequency, load, host name) are recorded and never compared.\n");
}

static void topic_reasons(FILE *out)
{
    for (size_t i = 0; i < reasons_count; i++)
        PUT("%-24s %s\n", reasons_table[i].code, reasons_table[i].title);
    PUT("\ncleanrun help CODE says what one means and how to resolve it.\n");
}

static void topic_definition(FILE *out)
{
    PUT("cleanrun.yaml: version: 1, project: owner/name, gates: {<name>: …}. Parts of a "
        "gate:\n\nexperiment (what is measured; "
        "its digest is identity)\n");
    for (size_t i = 0; i < schema_experiment.n_fields; i++) {
        const struct schema_field *f = &schema_experiment.fields[i];

        PUT("  %-14s %s%s\n", f->key, f->required ? "(required) " : "",
            f->schema->about ? f->schema->about : "");
    }
    PUT("\npolicy (how it is judged)\n");
    for (size_t i = 0; i < schema_policy.n_fields; i++) {
        const struct schema_field *f = &schema_policy.fields[i];

        PUT("  %-14s %s%s\n", f->key, f->required ? "(required) " : "",
            f->schema->about ? f->schema->about : "");
    }
    PUT("\nA first one to edit: cleanrun init. The whole shape: cleanrun check --schema (a JSON "
        "Schema for editors).\nEvery key with its default: man cleanrun.yaml.\n");
}

static const struct {
    const char *name;
    void (*put)(FILE *out);
} topics[] = {
    {"exit-codes", topic_exit_codes}, {"environment", topic_environment},
    {"identity", topic_identity},     {"reasons", topic_reasons},
    {"definition", topic_definition},
};

void help_list(FILE *out)
{
    PUT("topics:");
    for (size_t i = 0; i < ARRAY_LEN(topics); i++)
        PUT(" %s", topics[i].name);
    PUT("; also each command, and each code of `cleanrun help reasons`\n");
}

bool help_topic(FILE *out, const char *topic, const char **out_near)
{
    const struct reason_info *reason = reason_find(topic);
    const char *names[TOPICS_MAX];

    for (size_t i = 0; i < ARRAY_LEN(topics); i++) {
        names[i] = topics[i].name;
        if (!strcmp(topics[i].name, topic)) {
            topics[i].put(out);
            return true;
        }
    }
    if (reason) {
        PUT("%s  %s\n\n%s\n\n%s\n", reason->code, reason->title, reason->text, reason->resolve);
        return true;
    }
    *out_near = text_nearest(topic, names, ARRAY_LEN(topics));
    return false;
}
