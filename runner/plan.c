#include "runner/plan.h"

#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/text.h"
#include "experiment/environment.h"
#include "runner/conditioning.h"

#define BUILD_TIMEOUT_MS ((uint64_t) 60 * 60 * 1000)
#define RUN_TIMEOUT_MS ((uint64_t) 2 * 60 * 60 * 1000)
#define VARIABLES_MAX 512
#define DEFAULT_RATE 499.0
#define SNAPSHOT_EVERY_MIN_MS 100
/* What is let through is written into the manifest, whose size is limited. */
#define PASSED_NAME_MAX 100
#define PASSED_VALUE_MAX LIMIT_KIB(16)
#define PASSED_MAX LIMIT_KIB(64)

static const char *const mode_words[PLAN_MODE_MAX] = {
    [PLAN_CLEAN] = "clean",   [PLAN_CPU] = "cpu",           [PLAN_TIMING] = "timing",
    [PLAN_MEMORY] = "memory", [PLAN_BOUNDARY] = "boundary",
};

const char *plan_mode_word(enum plan_mode m)
{
    return mode_words[m];
}

bool plan_mode_parse(const char *word, enum plan_mode *out)
{
    for (int m = 0; m < PLAN_MODE_MAX; m++) {
        if (!strcmp(mode_words[m], word)) {
            *out = (enum plan_mode) m;
            return true;
        }
    }
    return false;
}

static uint64_t note_ms(const struct definition *d, const char *pointer, uint64_t otherwise)
{
    const cJSON *j = definition_note(d, pointer);

    return j && cJSON_IsNumber(j) && j->valuedouble >= 1 ? (uint64_t) j->valuedouble : otherwise;
}

/* A path that can't lead out of the source. */
static bool is_below(const char *path)
{
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/' && p != path ? 1 : 0;
        if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2]))
            return false;
        if (*p == '/' && p == path)
            return false;
    }
    return true;
}

static int check_below(const struct definition *d, const char *pointer, const char *path,
                       struct err *e)
{
    char place[DEFINITION_PLACE_SIZE];

    if (!path || is_below(path))
        return 0;
    return err_set(
        e, ERR_USAGE, "plan.path",
        "%s: '%.100s' must lie below the root of the source: a relative path without '..'",
        definition_place(d, pointer, place), path);
}

static int read_build(const struct definition *d, struct plan *p, struct err *e)
{
    char place[DEFINITION_PLACE_SIZE];
    const char *at = definition_place(d, "/experiment/build/executable", place);
    const cJSON *build = json_get(d->experiment, "build");
    const cJSON *exe = json_get(build, "executable");
    const char *messages = json_text(build, "messages", NULL);
    const char *from = json_text(exe, "from", NULL);

    p->build.prepare = json_get(build, "prepare");
    p->build.command = json_get(build, "command");
    p->build.env = json_get(build, "env");
    p->build.profile = json_get(build, "profile");
    p->build.toolchain = json_get(build, "toolchain");
    p->build.features = json_get(build, "features");
    p->build.allocator = json_text(build, "allocator", NULL);
    p->build.workdir = json_text(build, "workdir", NULL);
    p->build.messages =
        messages && !strcmp(messages, "cargo-json") ? PLAN_MESSAGES_CARGO : PLAN_MESSAGES_NONE;
    p->build.target = json_text(exe, "target", NULL);
    p->build.path = json_text(exe, "path", NULL);
    p->build.kind = json_text(exe, "kind", NULL);
    p->build.src_path = json_text(exe, "src_path", NULL);
    p->build.build_dir = json_text(exe, "build_dir", NULL);
    p->build.timeout_ms = note_ms(d, "/experiment/build/timeout", BUILD_TIMEOUT_MS);
    if (!strcmp(from, "path")) {
        p->build.resolve = PLAN_RESOLVE_PATH;
        if (!p->build.path)
            return err_set(e, ERR_USAGE, "plan.executable",
                           "%s: build.executable from path needs `path`", at);
        return check_below(d, "/experiment/build/executable/path", p->build.path, e);
    }
    p->build.resolve = !strcmp(from, "cargo-messages") ? PLAN_RESOLVE_CARGO : PLAN_RESOLVE_MESON;
    if (!p->build.target)
        return err_set(e, ERR_USAGE, "plan.executable",
                       "%s: build.executable from %s needs `target`", at, from);
    if (p->build.resolve == PLAN_RESOLVE_CARGO && p->build.messages != PLAN_MESSAGES_CARGO)
        return err_set(e, ERR_USAGE, "plan.executable",
                       "%s: build.executable from cargo-messages needs `messages: cargo-json`", at);
    if (p->build.resolve == PLAN_RESOLVE_MESON && !p->build.build_dir)
        return err_set(e, ERR_USAGE, "plan.executable",
                       "%s: build.executable from meson-introspection needs `build_dir`", at);
    return 0;
}

/* A mode that is about a tool's data names the tool. */
static int check_mode(const struct plan *p, struct err *e)
{
    bool needs_tool = p->mode == PLAN_CPU || p->mode == PLAN_TIMING;

    if (needs_tool && !json_get(p->mode_spec, "tool") && !json_get(p->mode_spec, "command"))
        return err_set(e, ERR_USAGE, "plan.tool",
                       "mode %s names no tool (modes.%s.tool or modes.%s.command)",
                       plan_mode_word(p->mode), plan_mode_word(p->mode), plan_mode_word(p->mode));
    if (p->snapshots && p->markers_in_report)
        return err_set(e, ERR_USAGE, "plan.snapshots",
                       "mode %s: snapshots need markers as they happen, not phases.from: report",
                       plan_mode_word(p->mode));
    return 0;
}

/* Looks at memory by the clock, and what is sent to the program then. */
static int read_clock(struct plan *p, struct err *e)
{
    static const struct {
        const char *word;
        int number;
    } signals[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}};
    const cJSON *every = json_get(p->mode_spec, "snapshot_every");
    const char *word = json_text(p->mode_spec, "dump_signal", NULL);

    p->snapshot_every_ms = every ? (uint64_t) every->valuedouble : 0;
    p->dump_signal = 0;
    for (size_t i = 0; word && i < ARRAY_LEN(signals); i++) {
        if (!strcmp(signals[i].word, word))
            p->dump_signal = signals[i].number;
    }
    if (every && p->snapshot_every_ms < SNAPSHOT_EVERY_MIN_MS)
        return err_set(e, ERR_USAGE, "plan.snapshots", "mode %s: snapshot_every is at least %dms",
                       plan_mode_word(p->mode), SNAPSHOT_EVERY_MIN_MS);
    if (word && !every)
        return err_set(e, ERR_USAGE, "plan.snapshots",
                       "mode %s: dump_signal needs snapshot_every: how often",
                       plan_mode_word(p->mode));
    return 0;
}

static int read_mode(const struct definition *d, enum plan_mode mode, struct plan *p, struct err *e)
{
    p->mode = mode;
    p->mode_spec = NULL;
    if (mode == PLAN_CLEAN)
        return 0;
    p->mode_spec = json_get(json_get(d->experiment, "modes"), mode_words[mode]);
    if (!p->mode_spec)
        return err_set(e, ERR_USAGE, "plan.mode", "gate %s defines no mode '%s' (modes.%s)",
                       d->gate, mode_words[mode], mode_words[mode]);
    p->snapshots = json_get(p->mode_spec, "snapshots");
    const cJSON *rate = json_get(p->mode_spec, "rate");

    (void) num_double_shortest(rate ? rate->valuedouble : DEFAULT_RATE,
                               p->rate); /* its length is not needed */
    if (read_clock(p, e) == 0 && check_mode(p, e) == 0)
        return 0;
    char pointer[64];

    (void) snprintf(pointer, sizeof(pointer), "/experiment/modes/%s", mode_words[mode]); /* fits */
    return definition_blame(d, pointer, e);
}

int plan_read(const struct definition *d, enum plan_mode mode, struct plan *out, struct err *e)
{
    struct plan p = {.definition = d};
    const cJSON *run = json_get(d->experiment, "run");
    const cJSON *phases = json_get(d->experiment, "phases");
    const cJSON *sampling = json_get(d->experiment, "sampling");
    const cJSON *host = json_get(d->experiment, "host");
    const cJSON *interval = json_get(sampling, "interval");

    const char *from = json_text(phases, "from", NULL);

    p.markers_in_report = from && !strcmp(from, "report");
    p.machine_class = json_text(d->experiment, "class", NULL);
    if (read_build(d, &p, e) < 0 || read_mode(d, mode, &p, e) < 0)
        return -1;
    p.run.command = json_get(run, "command");
    p.run.env = json_get(run, "env");
    p.run.workdir = json_text(run, "workdir", NULL);
    p.run.report = json_text(run, "report", NULL);
    if (check_below(d, "/experiment/build/workdir", p.build.workdir, e) < 0 ||
        check_below(d, "/experiment/run/workdir", p.run.workdir, e) < 0)
        return -1;
    p.source_scheme = json_text(run, "source_scheme", NULL);
    p.run.timeout_ms = note_ms(d, "/experiment/run/timeout", RUN_TIMEOUT_MS);
    p.conditioning = json_get(d->experiment, "conditioning");
    p.markers = json_get(phases, "markers");
    p.required = json_get(phases, "required");
    p.sample_interval_ms = interval ? (uint64_t) interval->valuedouble : 0;
    p.sampling_into = json_text(sampling, "into", NULL);
    p.sampling_embed = cJSON_IsTrue(json_get(sampling, "embed"));
    p.limits = json_get(host, "limits");
    p.quiet = json_get(host, "quiet");
    if (conditioning_check(&p, e) < 0)
        return -1;
    *out = p;
    return 0;
}

uint64_t plan_step_timeout_ms(const struct plan *p, size_t step)
{
    char pointer[64];

    (void) snprintf(pointer, sizeof(pointer), "/experiment/conditioning/%zu/timeout",
                    step); /* fits */
    return note_ms(p->definition, pointer, p->run.timeout_ms);
}

const char *plan_fill(const char *text, const struct plan_word *words, size_t n_words,
                      struct arena *a)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_KIB(64));
    while (*text) {
        bool replaced = false;

        for (size_t i = 0; *text == '{' && i < n_words && !replaced; i++) {
            size_t len = strlen(words[i].name);

            if (!strncmp(text + 1, words[i].name, len) && text[1 + len] == '}') {
                buf_puts(&b, words[i].value);
                text += len + 2;
                replaced = true;
            }
        }
        if (!replaced)
            buf_putc(&b, *text++);
    }
    return b.failed ? NULL : arena_strdup(a, b.data ? b.data : "");
}

int plan_argv(const cJSON *command, const struct plan_word *words, size_t n_words, struct arena *a,
              const char *const **out, struct err *e)
{
    size_t n = (size_t) cJSON_GetArraySize(command), i = 0;
    const char **argv = arena_calloc(a, n + 1, sizeof(*argv));
    const cJSON *item = NULL;

    if (!argv)
        return arena_full(e);
    cJSON_ArrayForEach(item, command) {
        argv[i] = plan_fill(item->valuestring, words, n_words, a);
        if (!argv[i++])
            return arena_full(e);
    }
    *out = argv;
    return 0;
}

struct variables {
    struct plan_variable items[VARIABLES_MAX];
    size_t n;
};

static int assign(struct variables *v, const char *name, const char *value, struct err *e)
{
    for (size_t i = 0; i < v->n; i++) {
        if (!strcmp(v->items[i].name, name)) {
            v->items[i].value = value;
            return 0;
        }
    }
    if (v->n == VARIABLES_MAX)
        return err_set(e, ERR_LIMIT, "plan.environment", "more than %d environment variables",
                       VARIABLES_MAX);
    v->items[v->n++] = (struct plan_variable){name, value};
    return 0;
}

static bool allowed(const cJSON *allow, const char *name)
{
    const cJSON *pattern = NULL;

    cJSON_ArrayForEach(pattern, allow) {
        if (text_glob(pattern->valuestring, name))
            return true;
    }
    return false;
}

static int check_recordable(const char *name, const char *value, size_t total, struct err *e)
{
    const char *why = NULL;

    if (!text_is_utf8(name, strlen(name)) || !text_is_utf8(value, strlen(value)))
        why = "is not UTF-8";
    else if (strlen(name) > PASSED_NAME_MAX || strlen(value) > PASSED_VALUE_MAX)
        why = "is too long";
    else if (total > PASSED_MAX)
        why = "is one too many: together they are too long";
    return why ? err_set(e, ERR_USAGE, "plan.environment",
                         "env.allow lets the variable '%.100s' through, but it can't be recorded: "
                         "it %s; unset it",
                         name, why)
               : 0;
}

/* What `allow` lets through, in the caller's order; of a name that comes twice, the last. */
static int pass_through(struct variables *v, const cJSON *allow, char *const *own, struct arena *a,
                        struct json_doc *record, cJSON *passed, struct err *e)
{
    size_t total = 0;

    for (; own && *own; own++) {
        const char *equals = strchr(*own, '=');
        const char *name = equals ? arena_memdup(a, *own, (size_t) (equals - *own)) : NULL;

        if (!equals)
            continue;
        if (!name)
            return arena_full(e);
        if (!allowed(allow, name))
            continue;
        total += strlen(*own);
        if (check_recordable(name, equals + 1, total, e) < 0)
            return -1;
        cJSON_DeleteItemFromObjectCaseSensitive(passed, name);
        json_add_string(record, passed, name, equals + 1);
        if (assign(v, name, equals + 1, e) < 0)
            return -1;
    }
    return 0;
}

static int join(const struct variables *v, struct arena *a, const char *const **out, struct err *e)
{
    const char **envp = arena_calloc(a, v->n + 1, sizeof(*envp));

    if (!envp)
        return arena_full(e);
    for (size_t i = 0; i < v->n; i++) {
        envp[i] = arena_printf(a, "%s=%s", v->items[i].name, v->items[i].value);
        if (!envp[i])
            return arena_full(e);
    }
    *out = envp;
    return 0;
}

int plan_environment(const struct plan_sources *from, struct arena *a, const char *const **out,
                     cJSON **out_record, struct err *e)
{
    struct variables *v = arena_alloc(a, sizeof(*v));
    AUTO_JSON_DOC struct json_doc record = {.root = NULL};
    size_t n_defaults = 0;
    const struct environment_variable *defaults = environment_defaults(&n_defaults);
    const cJSON *item = NULL;
    cJSON *part, *passed;

    if (!v)
        return arena_full(e);
    json_doc_init_object(&record);
    part = json_add_object(&record, NULL, "defaults");
    for (size_t i = 0; i < n_defaults; i++) {
        json_add_string(&record, part, defaults[i].name, defaults[i].value);
        if (assign(v, defaults[i].name, defaults[i].value, e) < 0)
            return -1;
    }
    passed = json_add_object(&record, NULL, "passed");
    if (pass_through(v, json_get(from->env, "allow"), from->own, a, &record, passed, e) < 0)
        return -1;
    part = json_add_object(&record, NULL, "set");
    cJSON_ArrayForEach(item, json_get(from->env, "set")) {
        json_add_string(&record, part, item->string, item->valuestring);
        if (assign(v, item->string, item->valuestring, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < from->n_extra; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(passed, from->extra[i].name);
        if (assign(v, from->extra[i].name, from->extra[i].value, e) < 0)
            return -1;
    }
    if (join(v, a, out, e) < 0)
        return -1;
    if (!out_record)
        return 0;
    *out_record = json_doc_take(&record, e);
    return *out_record ? 0 : -1;
}

const char *plan_env_get(const char *const *envp, const char *name)
{
    size_t len = strlen(name);

    for (; *envp; envp++)
        if (!strncmp(*envp, name, len) && (*envp)[len] == '=')
            return *envp + len + 1;
    return NULL;
}
