#include "tests/e2e/callsim.h"

#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json_in.h"

#define ARGS_MAX 24

static const struct {
    /* at: NULL for a work tree of its own, which is the run's directory's neighbour */
    const char *name, *at;
    const char *mode; /* NULL: clean */
} kinds[RUNS] = {
    [BASELINE] = {"baseline", "main", NULL},
    [CLEAN] = {"clean", "main", NULL},
    [SLOWER] = {"slower", "slower", NULL},
    [LEAK] = {"leak", "leak", NULL},
    [DROPPED] = {"dropped", "dropped-point", NULL},
    [EDITED] = {"edited", NULL, NULL},
    [KILLED] = {"killed", NULL, NULL},
    [SKIPPED] = {"skipped", "skipped-point", NULL},
    [THINNER] = {"thinner", "thinner-point", NULL},
    [FORGED] = {"forged", "forged-source", NULL},
    [CPU] = {"cpu", "main", "cpu"},
    [TIMING] = {"timing", "main", "timing"},
    [MEMORY] = {"memory", "main", "memory"},
    [BOUNDARY] = {"boundary", "main", "boundary"},
};

/* Programs. */

char *text(const char *format, ...)
{
    char *out = NULL;
    va_list ap;

    va_start(ap, format);
    assert_true(vasprintf(&out, format, ap) >= 0);
    va_end(ap);
    return out;
}

/* The test's own environment without what the gate refuses (meson sets MALLOC_PERTURB_). */
static char **environment_for(char *const extra[], size_t n_extra)
{
    size_t n = 0, k = 0;

    while (environ[n])
        n++;
    char **env = calloc(n + n_extra + 1, sizeof *env);

    assert_non_null(env);
    for (size_t i = 0; i < n_extra; i++)
        env[k++] = extra[i];
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "MALLOC_", 7) != 0)
            env[k++] = environ[i];
    return env;
}

static void git(const char *const args[])
{
    static const char *const env[] = {"GIT_CONFIG_GLOBAL=/dev/null", NULL};
    struct test_run r;

    test_run(args, env, NULL, NULL, &r);
    if (r.code != 0)
        print_error("%s: %s\n", args[0], r.err);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
}

char *cleanrun(void)
{
    return test_join(test_build_root(), "runner/cleanrun");
}

bool has_tool(const char *name)
{
    const char *const which[] = {"sh", "-c", "command -v \"$1\"", "sh", name, NULL};
    struct test_run r;
    bool found = false;

    test_run(which, NULL, NULL, NULL, &r);
    found = r.code == 0;
    test_run_fini(&r);
    return found;
}

/* "<dir>/<name>/<file>": the work tree, out (the run directory), out.tar, state and lock of one
 * run. */
char *place(const struct fixture *f, enum which w, const char *file)
{
    return text("%s/%s/%s", f->dir, kinds[w].name, file);
}

/* Starts `cleanrun run callsim` of one kind. With a key, so that a finished run would be sealed. */
void callsim_start(struct fixture *f, enum which w)
{
    struct running *r = &f->runs[w];
    AUTO_FREE char *own = place(f, w, "");
    AUTO_FREE char *out = place(f, w, "out");
    AUTO_FREE char *tree = kinds[w].at ? strdup(f->repo) : place(f, w, "tree");
    AUTO_FREE char *baseline = place(f, BASELINE, "out");
    AUTO_FREE char *exe = cleanrun();
    AUTO_FREE char *state = text("XDG_STATE_HOME=%s/%s/state", f->dir, kinds[w].name);
    AUTO_FREE char *lock = text("CLEANRUN_LOCK=%s/%s/lock", f->dir, kinds[w].name);
    char *extra[] = {state, lock};
    AUTO_FREE char **env = environment_for(extra, 2);
    const char *argv[ARGS_MAX] = {exe, "run", "callsim", "--json", "--out", out, "--key", f->key};
    size_t n = 8;
    posix_spawn_file_actions_t actions;
    int ends[2];

    assert_int_equal(mkdir(own, 0755), 0);
    if (kinds[w].at) {
        argv[n++] = "--at";
        argv[n++] = kinds[w].at;
    } else {
        const char *const clone[] = {"git", "clone", "-q", f->repo, tree, NULL};

        git(clone);
    }
    if (kinds[w].mode) {
        argv[n++] = "--mode";
        argv[n++] = kinds[w].mode;
        argv[n++] = "--control";
        argv[n++] = baseline;
    }
    if (w != BASELINE) {
        argv[n++] = "--baseline";
        argv[n++] = baseline;
        argv[n++] = "--baseline-sha256";
        argv[n++] = f->baseline_sha256;
    }
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    posix_spawn_file_actions_addchdir_np(&actions, tree);
    assert_int_equal(
        posix_spawn(&r->pid, exe, &actions, NULL, (char *const *) (uintptr_t) argv, env), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    r->talk = fdopen(ends[0], "r");
    assert_non_null(r->talk);
}

/* The next event; false at the end. The result is remembered. */
static bool next_event(struct running *r, const char *event, const char *words)
{
    AUTO_FREE char *line = NULL;
    size_t room = 0;
    bool found = false;

    while (!found && getline(&line, &room, r->talk) > 0) {
        struct err e = ERR_INIT;
        cJSON *j = NULL;

        line[strcspn(line, "\n")] = '\0';
        if (json_parse(line, strlen(line), NULL, &j, &e) < 0)
            fail_msg("no JSON: %s", line);
        const cJSON *kind = json_get(j, "event"), *said = json_get(j, "text");

        assert_true(cJSON_IsString(kind));
        found = !strcmp(kind->valuestring, event) && cJSON_IsString(said) &&
                strstr(said->valuestring, words);
        if (!strcmp(kind->valuestring, "result")) {
            cJSON_Delete(r->result);
            r->result = j;
        } else {
            cJSON_Delete(j);
        }
    }
    return found;
}

/* Waits for the end once; later calls find it ended. */
struct running *callsim_finish(struct fixture *f, enum which w)
{
    struct running *r = &f->runs[w];
    int status = 0;

    assert_int_not_equal(r->pid, 0);
    if (r->pid < 0)
        return r;
    assert_false(next_event(r, "", ""));
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    r->pid = -1;
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return r;
}

/* What a run left. */

cJSON *left_json(const struct fixture *f, enum which w, const char *name)
{
    AUTO_FREE char *file = text("out/%s", name);
    AUTO_FREE char *path = place(f, w, file);
    size_t len = 0;
    AUTO_FREE char *bytes = test_read_path(path, &len);
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(bytes, len, NULL, &j, &e) < 0)
        fail_msg("%s: %s", path, e.text);
    return j;
}

bool left(const struct fixture *f, enum which w, const char *name)
{
    AUTO_FREE char *path = place(f, w, name);
    struct stat st;

    return stat(path, &st) == 0;
}

const char *text_at(const cJSON *j, const char *key)
{
    const cJSON *v = json_get(j, key);

    return cJSON_IsString(v) ? v->valuestring : "(none)";
}

static void print_failures(const struct fixture *f, enum which w, const cJSON *result)
{
    const cJSON *fault = NULL, *check = NULL;

    cJSON_ArrayForEach(fault, json_get(result, "faults")) {
        print_error("fault: %s\n", fault->valuestring);
    }
    if (left(f, w, "out/acceptance.json")) {
        cJSON *j = left_json(f, w, "acceptance.json");

        cJSON_ArrayForEach(check, json_get(j, "checks")) {
            if (!cJSON_IsTrue(json_get(check, "passed"))) {
                AUTO_FREE char *words = cJSON_PrintUnformatted(check);

                print_error("check: %s\n", words);
            }
        }
        cJSON_Delete(j);
    }
}

/* The run ended with this verdict, and its documents say the same. */
void assert_end(struct fixture *f, enum which w, int code, const char *verdict, const char *status)
{
    const struct running *r = callsim_finish(f, w);

    if (r->code != code || !r->result || strcmp(text_at(r->result, "verdict"), verdict) != 0) {
        print_error("%s: exit %d, verdict %s\n", kinds[w].name, r->code,
                    text_at(r->result, "verdict"));
        print_failures(f, w, r->result);
    }
    assert_int_equal(r->code, code);
    assert_string_equal(text_at(r->result, "verdict"), verdict);
    cJSON *manifest = left_json(f, w, "manifest.json");

    assert_string_equal(text_at(manifest, "status"), status);
    assert_string_equal(text_at(manifest, "project"), "demo/callsim");
    assert_string_equal(text_at(manifest, "gate"), "callsim");
    cJSON_Delete(manifest);
    assert_true(left(f, w, "out.tar")); /* a FAIL is evidence too */
}

bool has_fault(const struct fixture *f, enum which w, const char *words)
{
    const cJSON *fault = NULL;
    bool found = false;

    cJSON_ArrayForEach(fault, json_get(f->runs[w].result, "faults")) {
        found = found || strstr(fault->valuestring, words);
    }
    return found;
}

size_t failed_checks(const cJSON *acceptance, const char **first)
{
    const cJSON *check = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(check, json_get(acceptance, "checks")) {
        if (cJSON_IsTrue(json_get(check, "passed")))
            continue;
        if (n++ == 0)
            *first = text_at(check, "name");
    }
    return n;
}

bool has_reason(const cJSON *audit, const char *code, const char *field, const char *words)
{
    const cJSON *reason = NULL;

    cJSON_ArrayForEach(reason, json_get(audit, "reasons")) {
        if (!strcmp(text_at(reason, "code"), code) && !strcmp(text_at(reason, "field"), field) &&
            strstr(text_at(reason, "text"), words))
            return true;
    }
    return false;
}

/* Verdict word of one comparison, "(none)" when it was not made. */
const char *comparison(const cJSON *audit, const char *metric)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, json_get(audit, "comparisons")) {
        if (!strcmp(text_at(row, "metric"), metric))
            return text_at(row, "verdict");
    }
    return "(none)";
}

/* The fixture. */

int callsim_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->dir = test_dir_new();
    f->repo = test_join(f->dir, "repo");
    AUTO_FREE char *script = test_path("demo/make-callsim-repo.sh");
    const char *const make[] = {script, f->repo, NULL};
    AUTO_FREE char *exe = cleanrun();
    AUTO_FREE char *keys = test_join(f->dir, "keys");
    const char *const gen[] = {exe, "key", "gen", "--out", keys, NULL};
    struct test_run r;

    git(make);
    test_run(gen, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    f->key = test_join(keys, "key.pem");
    f->public_key = test_join(keys, "pub.pem");
    *state = f;
    return 0;
}

int callsim_teardown(void **state)
{
    struct fixture *f = *state;

    for (size_t w = 0; w < RUNS; w++) {
        struct running *r = &f->runs[w];

        if (r->pid > 0) { /* a test failed before its end: SIGTERM ends the workload with it */
            kill(r->pid, SIGTERM);
            waitpid(r->pid, NULL, 0);
        }
        if (r->talk)
            fclose(r->talk);
        cJSON_Delete(r->result);
    }
    test_dir_free(f->dir);
    free(f->repo);
    free(f->key);
    free(f->public_key);
    free(f);
    return 0;
}

/* Every other run is compared with this one. */
void need_baseline(struct fixture *f)
{
    AUTO_FREE char *path = place(f, BASELINE, "out/manifest.json");
    size_t len = 0;

    if (f->runs[BASELINE].pid == 0)
        callsim_start(f, BASELINE);
    callsim_finish(f, BASELINE);
    AUTO_FREE char *bytes = test_read_path(path, &len);
    struct digest d = digest_of(bytes, len);

    digest_hex(&d, f->baseline_sha256);
}

void need_alone(struct fixture *f, enum which w)
{
    need_baseline(f);
    if (f->runs[w].pid == 0)
        callsim_start(f, w);
    callsim_finish(f, w);
}

/* The pid of the program measured in this run's own work tree; 0 when there is none. */
static pid_t find_workload(const struct fixture *f, enum which w)
{
    AUTO_FREE char *exe = place(f, w, "tree/build/callsim");
    AUTO_FREE char *real = realpath(exe, NULL);
    DIR *proc = opendir("/proc");
    pid_t found = 0;

    assert_non_null(real);
    assert_non_null(proc);
    for (struct dirent *d = readdir(proc); d && !found; d = readdir(proc)) {
        AUTO_FREE char *link = text("/proc/%s/exe", d->d_name);
        char target[4096] = "";
        ssize_t n = d->d_name[0] >= '1' && d->d_name[0] <= '9'
                        ? readlink(link, target, sizeof target - 1)
                        : -1;

        if (n > 0 && !strcmp(target, real))
            found = (pid_t) strtol(d->d_name, NULL, 10);
    }
    closedir(proc);
    return found;
}

/* Starts the runs that do not disturb each other's verdicts and does to two of them what is to be
 * done. */
void need_crowd(struct fixture *f)
{
    if (f->runs[LEAK].pid != 0)
        return;
    need_baseline(f);
    for (enum which w = LEAK; w <= KILLED; w++)
        callsim_start(f, w);
    assert_true(next_event(&f->runs[KILLED], "phase", "point-50"));
    pid_t pid = find_workload(f, KILLED);

    assert_int_not_equal(pid, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_true(next_event(&f->runs[EDITED], "phase", "point-50"));
    AUTO_FREE char *source = place(f, EDITED, "tree/answer.c");
    FILE *file = fopen(source, "a");

    assert_non_null(file);
    fputs("/* edited while the load ran */\n", file);
    assert_int_equal(fclose(file), 0);
}

void need_second_crowd(struct fixture *f)
{
    if (f->runs[SKIPPED].pid != 0)
        return;
    need_baseline(f);
    for (enum which w = SKIPPED; w <= BOUNDARY; w++)
        if ((w != CPU && w != TIMING) || has_tool("perf"))
            callsim_start(f, w);
}
