#include "tests/runner/project.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_in.h"
#include "evidence/manifest.h"

#define ARGS_MAX 48

static const char definition[] =
    "version: 1\n"
    "project: test/project\n"
    "gates:\n"
    "  g:\n"
    "    class: test-class\n"
    "    build:\n"
    "      command: [cc, -O1, -g, -o, workload, workload.c]\n"
    "      executable: {from: path, path: workload}\n"
    "      toolchain: [cc, --version]\n"
    "      allocator: malloc\n"
    "      env: {allow: [PATH], reject: [RUSTFLAGS, CARGO_ENCODED_RUSTFLAGS, CARGO_INCREMENTAL, "
    "'CARGO_TARGET_*_RUSTFLAGS', 'MIMALLOC_*']}\n"
    "    run:\n"
    "      command: ['{executable}', %s]\n"
    "      report: s/p.json\n"
    "      timeout: 20s\n"
    "    phases:\n"
    "      markers: [begin, window_start, window_end]\n"
    "      required: [window_start, window_end]\n"
    "    sampling: {interval: 20ms, into: /resources, embed: true}\n"
    "    windows:\n"
    "      steady: {start_phase: window_start, end_phase: window_end, estimator: endpoint-bands}\n"
    "    identity:\n"
    "      - {path: /load/rate, require: required}\n"
    "    accept:\n"
    "      exact:\n"
    "        - {name: rate, path: /load/rate, equals: 7}\n"
    "    audit:\n"
    "      paths: {required: [s/p.json]}\n"
    "      metrics:\n"
    "        - {path: /results/n, label: n, unit: items, worse: higher, tolerance_pct: 10, gated: "
    "true}\n"
    "%s";

static char *concat(const char *a, const char *b, const char *c)
{
    char *text = NULL;

    assert_true(asprintf(&text, "%s%s%s", a, b, c) >= 0);
    return text;
}

/* Every REPO in `text` becomes the path. */
static char *with_repo(const char *text, const char *repo)
{
    char *out = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&out, &len);

    assert_non_null(f);
    for (const char *at = strstr(text, "REPO"); at; at = strstr(text, "REPO")) {
        fprintf(f, "%.*s%s", (int) (at - text), text, repo);
        text = at + 4;
    }
    fprintf(f, "%s", text);
    assert_int_equal(fclose(f), 0);
    return out;
}

void project_git(const struct project *p, const char *const argv[])
{
    test_git(p->repo, argv);
}

void project_new(struct project *p, const char *behaviour, const char *extra)
{
    static const char *const init[] = {"init", "-q", "-b", "main", ".", NULL};
    static const char *const add[] = {"add", ".", NULL};
    static const char *const commit[] = {"commit", "-q", "-m", "fixture", NULL};
    char *source = test_read("tests/runner/workload.c", NULL);
    char *text = NULL;

    *p = (struct project){.dir = test_dir_new()};
    p->repo = test_join(p->dir, "repo");
    p->state = test_join(p->dir, "state");
    assert_int_equal(mkdir(p->repo, 0755), 0);
    p->env[0] = concat("XDG_STATE_HOME=", p->state, "");
    p->env[1] = concat("CLEANRUN_LOCK=", p->dir, "/lock");
    char *words = with_repo(behaviour, p->repo);

    assert_true(asprintf(&text, definition, words, extra ? extra : "") >=
                0); /* NOLINT: a literal of ours */
    test_write_text(p->repo, "cleanrun.yaml", text);
    test_write_text(p->repo, "workload.c", source);
    test_write_text(p->repo, ".gitignore", "/workload\n/ignored/\n");
    project_git(p, init);
    project_git(p, add);
    project_git(p, commit);
    free(words);
    free(text);
    free(source);
}

/* Replaces the first `from` of a file of the repository, which must be there. */
static void replace(const struct project *p, const char *name, const char *from, const char *to)
{
    char *path = test_join(p->repo, name), *text = test_read_path(path, NULL), *made = NULL;
    char *at = strstr(text, from);

    if (!at)
        fail_msg("no '%s' in:\n%s", from, text);
    assert_true(asprintf(&made, "%.*s%s%s", (int) (at - text), text, to, at + strlen(from)) >= 0);
    test_write_text(p->repo, name, made);
    free(made);
    free(text);
    free(path);
}

void project_edit(const struct project *p, const char *from, const char *to)
{
    replace(p, "cleanrun.yaml", from, to);
}

void project_free(struct project *p)
{
    test_dir_free(p->dir);
    free(p->repo);
    free(p->state);
    for (size_t i = 0; p->env[i]; i++)
        free(p->env[i]);
    *p = (struct project){.dir = NULL};
}

void project_cleanrun(const struct project *p, const char *const args[], const char *const env[],
                      struct test_run *r)
{
    char *program = test_join(test_build_root(), "runner/cleanrun");
    /* meson test sets this variable, and many a definition refuses it */
    const char *full[ARGS_MAX] = {"/usr/bin/env", "-u", "MALLOC_PERTURB_", program};
    const char *all_env[16] = {NULL};
    size_t n = 4, k = 0;

    for (size_t i = 0; args[i] && n < ARGS_MAX - 1; i++)
        full[n++] = args[i];
    for (size_t i = 0; p->env[i]; i++)
        all_env[k++] = p->env[i];
    for (size_t i = 0; env && env[i] && k < 15; i++)
        all_env[k++] = env[i];
    test_run(full, all_env, p->repo, NULL, r);
    free(program);
}

void project_measure(const struct project *p, const char *const args[], struct test_run *r)
{
    char *out = project_out(p, "");
    const char *full[ARGS_MAX] = {"run", "g", "--json", "--out", out};
    size_t n = 5;

    out[strlen(out) - 1] = '\0';
    for (size_t i = 0; args && args[i]; i++)
        full[n++] = args[i];
    project_cleanrun(p, full, NULL, r);
    free(out);
}

char *project_out(const struct project *p, const char *name)
{
    return concat(p->dir, "/out/", name);
}

void project_change(const struct project *p, const char *name, const char *from, const char *to)
{
    static const char *const commit[] = {"commit", "-q", "-a", "-m", "branch", NULL};

    replace(p, name, from, to);
    project_git(p, commit);
}

cJSON *project_json(const struct project *p, const char *name)
{
    char *path = project_out(p, name);
    size_t len = 0;
    char *text = test_read_path(path, &len);
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(text, len, NULL, &j, &e) < 0)
        fail_msg("%s: %s", name, e.text);
    free(text);
    free(path);
    return j;
}

bool project_has(const struct project *p, const char *name)
{
    char *path = project_out(p, name);
    struct stat st;
    bool there = stat(path, &st) == 0;

    free(path);
    return there;
}

void project_manifest_digest(const char *dir, char hex[DIGEST_HEX_SIZE])
{
    char *path = test_join(dir, "manifest.json");
    size_t len = 0;
    char *bytes = test_read_path(path, &len);
    struct digest d = digest_of(bytes, len);

    digest_hex(&d, hex);
    free(bytes);
    free(path);
}

pid_t project_start(const struct project *p)
{
    char *program = test_join(test_build_root(), "runner/cleanrun");
    char *out = project_out(p, "");
    pid_t pid = fork();

    assert_true(pid >= 0);
    out[strlen(out) - 1] = '\0';
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        dup2(null, 1);
        dup2(null, 2);
        putenv(p->env[0]);
        putenv(p->env[1]);
        execl(program, program, "run", "g", "-C", p->repo, "--out", out, (char *) NULL);
        _exit(99);
    }
    free(out);
    free(program);
    return pid;
}

cJSON *project_manifest(const struct project *p)
{
    char *dir = project_out(p, "");
    char *path = project_out(p, "manifest.json");
    size_t len = 0, listed = 0;
    char *text = test_read_path(path, &len);
    struct manifest m;
    struct err e = ERR_INIT;
    struct file_list files;
    int fd = -1;

    if (manifest_parse(text, len, &m, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(file_open_dir(dir, &fd, &e), 0);
    assert_int_equal(file_list_at(fd, 1000, &files, &e), 0);
    for (size_t i = 0; i < files.n; i++) {
        const struct manifest_file *f = manifest_find(&m, files.names[i]);
        struct digest digest;
        uint64_t size = 0;
        int member = -1;

        if (!strcmp(files.names[i], "manifest.json"))
            continue;
        assert_non_null(f);
        assert_int_equal(file_open_at(fd, files.names[i], &member, &size, &e), 0);
        assert_int_equal(digest_of_fd(member, &digest, &size, &e), 0);
        close(member);
        assert_true(digest_equal(&digest, &f->digest));
        listed++;
    }
    assert_int_equal(listed, m.n_files);
    cJSON *copy = cJSON_Duplicate(m.document, true);

    manifest_fini(&m);
    file_list_fini(&files);
    close(fd);
    free(text);
    free(path);
    free(dir);
    return copy;
}
