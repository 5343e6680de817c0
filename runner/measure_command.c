#include "runner/measure_command.h"

#include <assert.h>
#include <string.h>

#include "base/json_in.h"
#include "runner/leftover.h"
#include "runner/profiler.h"

bool measure_is_executable_word(const cJSON *command)
{
    const cJSON *first = command ? command->child : NULL;

    return first && !strcmp(first->valuestring, "{executable}");
}

static size_t count(const char *const *argv)
{
    size_t n = 0;

    while (argv[n])
        n++;
    return n;
}

#define N_WORDS 4

static void words_of(const struct measure_input *in, struct plan_word out[N_WORDS])
{
    out[0] = (struct plan_word){"executable", in->artifact->path};
    out[1] = (struct plan_word){"results", in->results_path};
    out[2] = (struct plan_word){"profile", in->profile_path ? in->profile_path : ""};
    out[3] = (struct plan_word){"rate", in->plan->rate};
}

int measure_argv(const struct measure_input *in, const char *const **out, bool *out_by_descriptor,
                 struct err *e)
{
    struct plan_word words[N_WORDS];
    const char *const *own = NULL, *const *prefix = NULL;
    const char **both;
    size_t n_prefix, n_own;

    words_of(in, words);
    if (plan_argv(in->plan->run.command, words, N_WORDS, in->arena, &own, e) < 0 ||
        profiler_prefix(in->plan, words, N_WORDS, in->arena, &prefix, e) < 0)
        return -1;
    assert(prefix && own); /* both succeeded */
    *out_by_descriptor = !prefix[0] && measure_is_executable_word(in->plan->run.command);
    n_prefix = count(prefix);
    n_own = count(own);
    both = arena_calloc(in->arena, n_prefix + n_own + 1, sizeof(*both));
    if (!both)
        return arena_full(e);
    memcpy(both, prefix, n_prefix * sizeof(*both));
    memcpy(both + n_prefix, own, n_own * sizeof(*both));
    *out = both;
    return 0;
}

static const char *conditioning_names(const struct measure_input *in)
{
    const cJSON *step = NULL;
    const char *list = "";

    cJSON_ArrayForEach(step, in->plan->conditioning) {
        if (json_get(step, "command"))
            continue;
        list = arena_printf(in->arena, "%s%s%s", list, *list ? "," : "",
                            json_get(step, "name")->valuestring);
        if (!list)
            return NULL;
    }
    return list;
}

/* Every member of a `set` whose text names a place, or all of them. */
static int add_filled(const struct measure_input *in, const cJSON *set, bool all,
                      struct plan_variable *to, size_t *n, struct err *e)
{
    struct plan_word words[N_WORDS];
    const cJSON *item = NULL;

    words_of(in, words);

    cJSON_ArrayForEach(item, set) {
        const char *text = item->valuestring;

        if (!all && !strchr(text, '{'))
            continue;
        text = plan_fill(text, words, N_WORDS, in->arena);
        if (!text)
            return arena_full(e);
        to[(*n)++] = (struct plan_variable){item->string, text};
    }
    return 0;
}

/* The run's environment: its own rules, the mode's additions, and the contract with the workload.
 */
int measure_environment(const struct measure_input *in, bool with_markers, const char *const **envp,
                        cJSON **record, struct err *e)
{
    const cJSON *own = json_get(in->plan->run.env, "set");
    const cJSON *mode = json_get(json_get(in->plan->mode_spec, "env"), "set");
    size_t room = (size_t) cJSON_GetArraySize(own) + (size_t) cJSON_GetArraySize(mode) + 6, n = 0;
    struct plan_variable *extra = arena_calloc(in->arena, room, sizeof(*extra));
    const char *names = conditioning_names(in);

    if (!names || !extra)
        return arena_full(e);
    if (add_filled(in, own, false, extra, &n, e) < 0 ||
        add_filled(in, mode, true, extra, &n, e) < 0)
        return -1;
    extra[n++] = (struct plan_variable){"CLEANRUN_RESULTS", in->results_path};
    extra[n++] = (struct plan_variable){"CLEANRUN_MODE", plan_mode_word(in->plan->mode)};
    extra[n++] = (struct plan_variable){"CLEANRUN_CONDITIONING", names};
    extra[n++] = (struct plan_variable){"CLEANRUN_SOURCE_SHA256", in->fingerprint};
    extra[n++] = (struct plan_variable){LEFTOVER_VARIABLE, in->mark};
    if (with_markers)
        extra[n++] = (struct plan_variable){"CLEANRUN_PHASE_FD", "3"};
    struct plan_sources from = {
        .env = in->plan->run.env, .own = in->environment, .extra = extra, .n_extra = n};

    return plan_environment(&from, in->arena, envp, record, e);
}
