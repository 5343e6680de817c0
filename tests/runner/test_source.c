/* Source fingerprints with the real git: what must change them, and what must not. */
#include "tests/lib/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/json_in.h"
#include "base/text.h"
#include "runner/source.h"

/* The repository of vectors.json's recipe. */
static char *new_repo(void)
{
    char *dir = test_dir_new();

    TEST_GIT(dir, "init", "-q", "-b", "main", ".");
    test_write_text(dir, ".gitignore", "/target\n");
    test_write_text(dir, "source.txt", "release source\n");
    TEST_GIT(dir, "add", ".");
    TEST_GIT(dir, "commit", "-q", "-m", "fixture");
    return dir;
}

static void take(const char *dir, const char *scheme, struct source *s)
{
    struct git g;
    struct err e = ERR_INIT;

    if (git_open(dir, NULL, NULL, &g, &e) < 0 || source_take(&g, scheme, s, &e) < 0)
        fail_msg("%s", e.text);
    git_close(&g);
}

static void assert_differs(const char *dir, const struct source *before, bool dirty)
{
    struct source now = {.scheme = NULL};

    take(dir, NULL, &now);
    assert_false(digest_equal(&now.fingerprint, &before->fingerprint));
    assert_int_equal(now.dirty, dirty);
    source_fini(&now);
}

static void assert_same(const char *dir, const struct source *before)
{
    struct source now = {.scheme = NULL};

    take(dir, NULL, &now);
    assert_true(source_equal(&now, before));
    source_fini(&now);
}

static void clean_tree_names_its_commit(void **state)
{
    char *dir = new_repo();
    struct source s = {.scheme = NULL};

    (void) state;
    take(dir, NULL, &s);
    assert_string_equal(s.commit, "c6f068d4e70ae7a6b7eefefdfe50fec8272f513e");
    assert_string_equal(s.tree, "2329c0863416d3683a60929cb4cd6488d8640d0b");
    assert_int_equal(s.n_parents, 0);
    assert_false(s.dirty);
    assert_int_equal(s.files, 2);
    assert_int_equal(s.untracked, 0);
    source_fini(&s);
    test_dir_free(dir);
}

static void content_mode_and_untracked_files_count(void **state)
{
    char *dir = new_repo();
    char *file = test_join(dir, "source.txt");
    struct source clean = {.scheme = NULL};

    (void) state;
    take(dir, NULL, &clean);
    test_write_text(dir, "source.txt", "Release source\n"); /* the same length */
    assert_differs(dir, &clean, true);
    test_write_text(dir, "source.txt", "release source\n");
    assert_same(dir, &clean);
    assert_int_equal(chmod(file, 0755), 0);
    assert_differs(dir, &clean, true);
    assert_int_equal(chmod(file, 0644), 0);
    assert_same(dir, &clean);

    test_write_text(dir, "new file", "x");
    struct source one = {.scheme = NULL};

    take(dir, NULL, &one);
    assert_true(one.dirty);
    assert_int_equal(one.untracked, 1);
    assert_false(digest_equal(&one.fingerprint, &clean.fingerprint));
    test_write_text(dir, "new file", "y");
    assert_differs(dir, &one, true);
    test_write_text(dir, "new file", "x");
    char *fresh = test_join(dir, "new file");

    assert_int_equal(chmod(fresh, 0755), 0);
    assert_differs(dir, &one, true);
    assert_int_equal(unlink(fresh), 0);
    assert_same(dir, &clean);
    assert_int_equal(unlink(file), 0);
    assert_differs(dir, &clean, true);
    free(fresh);
    free(file);
    source_fini(&one);
    source_fini(&clean);
    test_dir_free(dir);
}

static void ignored_files_are_left_out_only_by_the_tree_s_own_rule(void **state)
{
    char *dir = new_repo();
    struct source clean = {.scheme = NULL};

    (void) state;
    take(dir, NULL, &clean);
    test_write_text(dir, "target/ignored", "1");
    assert_same(dir, &clean);
    /* A personal rule hides nothing. */
    test_write_text(dir, ".git/info/exclude", "hidden\n");
    test_write_text(dir, "hidden", "1");
    assert_differs(dir, &clean, true);
    source_fini(&clean);
    test_dir_free(dir);
}

static void git_configuration_changes_nothing(void **state)
{
    static const char *const settings[][2] = {
        {"diff.noprefix", "true"},       {"core.fileMode", "false"},
        {"core.autocrlf", "true"},       {"status.showUntrackedFiles", "no"},
        {"core.quotePath", "false"},     {"diff.algorithm", "patience"},
        {"core.ignoreStat", "true"},     {"core.abbrev", "12"},
        {"diff.external", "/bin/false"}, {"core.fsmonitor", "/bin/false"},
        {"diff.context", "9"},
    };
    char *dir = new_repo();
    struct source before = {.scheme = NULL}, seed = {.scheme = NULL};

    (void) state;
    test_write_text(dir, "source.txt", "mutated source\n");
    test_write_text(dir, "other", "x");
    take(dir, NULL, &before);
    take(dir, SOURCE_SCHEME_RVOIP, &seed);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        struct source now = {.scheme = NULL};

        TEST_GIT(dir, "config", settings[i][0], settings[i][1]);
        assert_same(dir, &before);
        take(dir, SOURCE_SCHEME_RVOIP, &now);
        assert_true(source_equal(&now, &seed));
        source_fini(&now);
    }
    source_fini(&seed);
    source_fini(&before);
    test_dir_free(dir);
}

static void flags_that_hide_changes_hide_nothing(void **state)
{
    char *dir = new_repo();
    struct source clean = {.scheme = NULL};

    (void) state;
    take(dir, NULL, &clean);
    TEST_GIT(dir, "update-index", "--assume-unchanged", "source.txt");
    assert_same(dir, &clean);
    test_write_text(dir, "source.txt", "hidden source.\n");
    assert_differs(dir, &clean, true);
    TEST_GIT(dir, "update-index", "--no-assume-unchanged", "source.txt");
    TEST_GIT(dir, "update-index", "--skip-worktree", "source.txt");
    assert_differs(dir, &clean, true);
    source_fini(&clean);
    test_dir_free(dir);
}

static void the_index_alone_counts(void **state)
{
    char *dir = new_repo();
    struct source clean = {.scheme = NULL};

    (void) state;
    take(dir, NULL, &clean);
    test_write_text(dir, "source.txt", "staged\n");
    TEST_GIT(dir, "add", "source.txt");
    test_write_text(dir, "source.txt", "release source\n");
    assert_differs(dir, &clean, true);
    TEST_GIT(dir, "reset", "-q");
    assert_same(dir, &clean);
    /* An ignored file that was added by force is source. */
    test_write_text(dir, "target/forced", "1");
    TEST_GIT(dir, "add", "-f", "target/forced");
    assert_differs(dir, &clean, true);
    source_fini(&clean);
    test_dir_free(dir);
}

static void links_count_by_their_target(void **state)
{
    char *dir = new_repo();
    char *link = test_join(dir, "link");
    struct source one = {.scheme = NULL};

    (void) state;
    assert_int_equal(symlink("source.txt", link), 0);
    take(dir, NULL, &one);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("other.txt", link), 0); /* dangling: no error */
    assert_differs(dir, &one, true);
    /* A tracked directory that became a link does not lead outside. */
    test_write_text(dir, "sub/a", "1");
    TEST_GIT(dir, "add", ".");
    TEST_GIT(dir, "commit", "-q", "-m", "sub");
    struct source two = {.scheme = NULL};

    take(dir, NULL, &two);
    assert_false(two.dirty);
    char *sub = test_join(dir, "sub"), *moved = test_join(dir, "target");

    assert_int_equal(rename(sub, moved), 0);
    assert_int_equal(symlink("target", sub), 0);
    assert_differs(dir, &two, true);
    free(moved);
    free(sub);
    source_fini(&two);
    source_fini(&one);
    free(link);
    test_dir_free(dir);
}

static void line_end_attributes_of_the_tree_are_no_change(void **state)
{
    char *dir = test_dir_new();
    struct source s = {.scheme = NULL};

    (void) state;
    TEST_GIT(dir, "init", "-q", "-b", "main", ".");
    test_write_text(dir, ".gitattributes", "*.bat text eol=crlf\n");
    test_write_text(dir, "x.bat", "one\r\ntwo\r\n");
    TEST_GIT(dir, "add", ".");
    TEST_GIT(dir, "commit", "-q", "-m", "crlf");
    take(dir, NULL, &s);
    assert_false(s.dirty);
    test_write_text(dir, "x.bat", "one\r\nTWO\r\n");
    assert_differs(dir, &s, true);
    source_fini(&s);
    test_dir_free(dir);
}

static bool is_dirty(const char *dir, const char *scheme)
{
    struct source s = {.scheme = NULL};
    bool dirty;

    take(dir, scheme, &s);
    dirty = s.dirty;
    source_fini(&s);
    return dirty;
}

/* A filter that makes git take any content for the committed one. */
static void local_filters_hide_nothing(void **state)
{
    char *dir = new_repo();

    (void) state;
    TEST_GIT(dir, "config", "filter.hide.clean", "printf 'release source\\n'");
    test_write_text(dir, ".git/info/attributes", "source.txt filter=hide\n");
    assert_false(is_dirty(dir, NULL));
    test_write_text(dir, "source.txt", "another source\n");
    assert_true(is_dirty(dir, NULL));
    assert_true(is_dirty(dir, SOURCE_SCHEME_RVOIP));
    test_write_text(dir, "source.txt", "release source\n");
    /* Attributes of the commit name it, and the program still comes from this repository only. */
    test_write_text(dir, ".git/info/attributes", "");
    test_write_text(dir, ".gitattributes", "source.txt filter=hide\n");
    TEST_GIT(dir, "add", ".");
    TEST_GIT(dir, "commit", "-q", "-m", "filter");
    assert_false(is_dirty(dir, NULL));
    test_write_text(dir, "source.txt", "another source\n");
    assert_true(is_dirty(dir, NULL));
    test_dir_free(dir);
}

/* What git would take for unchanged is a change when a fresh checkout writes other bytes. */
static void conversions_count_as_a_fresh_checkout_makes_them(void **state)
{
    char *dir = test_dir_new();

    (void) state;
    TEST_GIT(dir, "init", "-q", "-b", "main", ".");
    test_write_text(dir, ".gitattributes", "id.c ident\n*.txt text\n*.bat text eol=crlf\n");
    test_write_text(dir, "id.c", "/* $Id$ */\n");
    test_write_text(dir, "x.txt", "one\n");
    test_write_text(dir, "x.bat", "one\r\n");
    TEST_GIT(dir, "add", ".");
    TEST_GIT(dir, "commit", "-q", "-m", "conversions");
    TEST_GIT(dir, "checkout", "-q", "HEAD", "--", ".");
    char *id = test_join(dir, "id.c");

    assert_int_equal(unlink(id), 0);
    TEST_GIT(dir, "checkout", "-q", "HEAD", "--", "id.c"); /* git writes the blob's name into it */
    assert_false(is_dirty(dir, NULL));
    test_write_text(dir, "id.c", "/* $Id: anything at all $ */\n");
    assert_true(is_dirty(dir, NULL));
    assert_int_equal(unlink(id), 0);
    TEST_GIT(dir, "checkout", "-q", "HEAD", "--", "id.c");
    assert_false(is_dirty(dir, NULL));
    test_write_text(dir, "x.txt", "one\r\n");
    assert_true(is_dirty(dir, NULL));
    free(id);
    test_dir_free(dir);
}

static void assert_ignored(const char *dir, const char *run_directory, size_t n, const char *names)
{
    struct source_ignored found = {.n = 99};
    struct git g;
    struct err e = ERR_INIT;

    if (git_open(dir, NULL, NULL, &g, &e) < 0)
        fail_msg("%s", e.text);
    char *run = run_directory ? test_join(g.root, run_directory) : NULL;

    if (source_count_ignored(&g, run, &found, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(found.n, n);
    assert_string_equal(found.list.text, names);
    free(run);
    git_close(&g);
}

static void ignored_files_are_counted_but_for_the_run_directory(void **state)
{
    char *dir = new_repo();
    char *inner = new_repo();

    (void) state;
    assert_ignored(dir, NULL, 0, "");
    test_write_text(dir, "target/bench", "1");
    assert_ignored(dir, NULL, 1, "target/bench");
    assert_ignored(dir, "elsewhere/run", 1, "target/bench");
    /* The run's own directory is being written; what looks like one may be planted, or hold what is
     * built. */
    test_write_text(dir, "target/b.partial/definition.json", "1");
    assert_ignored(dir, "target/b", 1, "target/bench");
    test_write_text(dir, "target/a/definition.json", "{}");
    test_write_text(dir, "target/a/source-at-start.json", "{}");
    test_write_text(dir, "target/a/fast.c", "1");
    assert_ignored(dir, "target/b", 4,
                   "target/a/definition.json, target/a/fast.c, target/a/source-at-start.json, …");
    assert_ignored(dir, NULL, 5,
                   "target/a/definition.json, target/a/fast.c, target/a/source-at-start.json, …");
    /* Tracked, though a rule ignores it: source, and seen by the fingerprint. */
    TEST_GIT(dir, "add", "-f", "target");
    assert_ignored(dir, NULL, 0, "");
    TEST_GIT(dir, "reset", "-q");
    /* What a submodule ignores lies in this tree. */
    TEST_GIT(dir, "submodule", "--quiet", "add", inner, "sub");
    test_write_text(dir, "sub/target/local.h", "1");
    assert_ignored(dir, "target/a", 6,
                   "target/a/definition.json, target/a/fast.c, target/a/source-at-start.json, …");
    /* A repository of its own that is ignored is no way out. */
    test_write_text(inner, "target/nested/x", "1");
    char *nested = test_join(inner, "target/nested");

    TEST_GIT(nested, "init", "-q", "-b", "main", ".");
    assert_ignored(inner, NULL, 1, "target/nested/");
    free(nested);
    test_dir_free(inner);
    test_dir_free(dir);
}

/* git lists nothing that lies below a directory named .git, repository or not. */
static void files_below_a_git_directory_are_counted(void **state)
{
    char *dir = new_repo();
    char *inner = new_repo();

    (void) state;
    test_write_text(dir, "nest/.git/evil.c", "1");
    assert_false(is_dirty(dir, NULL)); /* what git says */
    assert_ignored(dir, NULL, 1, "nest/.git/evil.c");
    test_write_text(dir, "src/main.c", "1");
    test_write_text(dir, "src/.git/deep/evil.c", "1");
    assert_ignored(dir, NULL, 2, "nest/.git/evil.c, src/.git/deep/evil.c");
    /* A submodule's own, and the repository's, hold what git keeps there. */
    TEST_GIT(dir, "submodule", "--quiet", "add", inner, "sub");
    test_write_text(dir, "sub/x/.git/evil.c", "1");
    assert_ignored(dir, NULL, 3, "nest/.git/evil.c, src/.git/deep/evil.c, sub/x/.git/evil.c");
    test_dir_free(inner);
    test_dir_free(dir);
}

/* Else a regression in the submodule's code would go away with the submodule. */
static void a_submodule_not_checked_out_is_a_change(void **state)
{
    char *dir = new_repo();
    char *inner = new_repo();

    (void) state;
    TEST_GIT(dir, "submodule", "--quiet", "add", inner, "sub");
    TEST_GIT(dir, "commit", "-q", "-m", "submodule");
    assert_false(is_dirty(dir, NULL));
    TEST_GIT(dir, "submodule", "--quiet", "deinit", "-f", "sub");
    assert_true(is_dirty(dir, NULL));
    test_write_text(dir, "sub/local.h", "1");
    assert_true(is_dirty(dir, NULL));
    test_dir_free(inner);
    test_dir_free(dir);
}

static void submodules_and_nested_repositories_are_read(void **state)
{
    char *dir = new_repo();
    char *inner = new_repo();
    struct source clean = {.scheme = NULL}, with_nested = {.scheme = NULL};

    (void) state;
    TEST_GIT(dir, "submodule", "--quiet", "add", inner, "sub");
    TEST_GIT(dir, "commit", "-q", "-m", "submodule");
    take(dir, NULL, &clean);
    assert_false(clean.dirty);
    test_write_text(dir, "sub/source.txt", "changed in the submodule\n");
    assert_differs(dir, &clean, true);
    test_write_text(dir, "sub/source.txt", "release source\n");
    assert_same(dir, &clean);
    test_write_text(dir, "sub/untracked", "1");
    assert_differs(dir, &clean, true);
    char *untracked = test_join(dir, "sub/untracked");

    assert_int_equal(unlink(untracked), 0);
    /* Another commit checked out in the submodule is a change of this tree. */
    test_write_text(dir, "sub/source.txt", "next\n");
    char *sub = test_join(dir, "sub");

    TEST_GIT(sub, "commit", "-q", "-a", "-m", "next");
    assert_differs(dir, &clean, true);
    TEST_GIT(sub, "checkout", "-q", "HEAD~1");
    assert_same(dir, &clean);

    char *nested = test_join(dir, "nested");

    assert_int_equal(mkdir(nested, 0755), 0);
    TEST_GIT(nested, "init", "-q", "-b", "main", ".");
    test_write_text(dir, "nested/deep/file", "1");
    take(dir, NULL, &with_nested);
    assert_true(with_nested.dirty);
    test_write_text(dir, "nested/deep/file", "2");
    assert_differs(dir, &with_nested, true);
    free(nested);
    free(sub);
    free(untracked);
    source_fini(&with_nested);
    source_fini(&clean);
    test_dir_free(inner);
    test_dir_free(dir);
}

static void parents_are_recorded(void **state)
{
    char *dir = new_repo();
    struct source s = {.scheme = NULL};

    (void) state;
    test_write_text(dir, "source.txt", "second\n");
    TEST_GIT(dir, "commit", "-q", "-a", "-m", "second");
    take(dir, NULL, &s);
    assert_int_equal(s.n_parents, 1);
    assert_string_equal(s.parents[0], "c6f068d4e70ae7a6b7eefefdfe50fec8272f513e");
    source_fini(&s);
    test_dir_free(dir);
}

/* 0: refused with the file's name. As another user when this one may read everything. */
static int take_unreadable(const char *dir)
{
    struct git g;
    struct source s = {.scheme = NULL};
    struct err e = ERR_INIT;

    if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
        return 2;
    if (git_open(dir, NULL, NULL, &g, &e) < 0)
        return 3;
    if (source_take(&g, NULL, &s, &e) == 0)
        return 4;
    return strstr(e.text, "source.txt") ? 0 : 5;
}

static void unreadable_files_are_an_error(void **state)
{
    char *dir = new_repo();
    char *file = test_join(dir, "source.txt");
    const char *const chown[] = {"chown", "-R", "65534:65534", dir, NULL};
    struct test_run r;
    int status = 0;

    (void) state;
    assert_int_equal(chmod(file, 0), 0);
    if (geteuid() == 0) {
        test_run(chown, NULL, NULL, NULL, &r);
        assert_int_equal(r.code, 0);
        test_run_fini(&r);
    }
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(take_unreadable(dir));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    free(file);
    test_dir_free(dir);
}

static cJSON *vectors(void)
{
    size_t len = 0;
    char *text = test_read("tests/data/rvoip/vectors.json", &len);
    struct json_limits limits = {.max_bytes = len};
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(json_parse(text, len, &limits, &j, &e), 0);
    free(text);
    return j;
}

static size_t unhex(const cJSON *j, uint8_t out[256])
{
    size_t len = strlen(j->valuestring);

    assert_true(len <= 512);
    assert_true(text_unhex(j->valuestring, len, out));
    return len / 2;
}

static void assert_digest(const struct digest *d, const cJSON *expected)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(d, hex);
    assert_string_equal(hex, expected->valuestring);
}

/* FPR-01, 03, 05, 06, 08 and the rest of the published vectors. */
static void seed_vectors_are_reproduced(void **state)
{
    cJSON *all = vectors();
    const cJSON *v = NULL;
    size_t n = 0;

    (void) state;
    cJSON_ArrayForEach(v, json_get(json_get(all, "source_fingerprint"), "vectors")) {
        uint8_t status[256], diff[256], content[4][256];
        struct source_untracked files[4];
        const cJSON *file = NULL;
        struct digest digest;
        struct err e = ERR_INIT;
        size_t count = 0;
        size_t status_len = unhex(json_get(v, "status_hex"), status);
        size_t diff_len = unhex(json_get(v, "diff_hex"), diff);

        cJSON_ArrayForEach(file, json_get(v, "untracked")) {
            files[count].path = file->child->valuestring;
            files[count].len = unhex(file->child->next, content[count]);
            files[count].content = content[count];
            count++;
        }
        struct source_seed_parts parts = {.commit = json_get(v, "commit")->valuestring,
                                          .status = status,
                                          .status_len = status_len,
                                          .diff = diff,
                                          .diff_len = diff_len,
                                          .untracked = files,
                                          .n_untracked = count};

        assert_int_equal(source_rvoip_digest(&parts, &digest, &e), 0);
        assert_digest(&digest, json_get(v, "sha256"));
        n++;
    }
    assert_int_equal(n, 6);
    /* FPR-03: another clean commit. */
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];
    struct err e = ERR_INIT;

    struct source_seed_parts clean = {
        .commit = "fbc96ed4f1736f1cc4b0a1145497183d6acf0d2f", .status = "", .diff = ""};

    assert_int_equal(source_rvoip_digest(&clean, &digest, &e), 0);
    digest_hex(&digest, hex);
    assert_string_equal(hex, "cd26a7d50a512633344d931acbed15cf4523c87808d14b7c8acd4dbeb42dd70c");
    cJSON_Delete(all);
}

static void assert_seed(const char *dir, const cJSON *step)
{
    struct source s = {.scheme = NULL};

    take(dir, SOURCE_SCHEME_RVOIP, &s);
    assert_digest(&s.fingerprint, json_get(step, "sha256"));
    source_fini(&s);
}

static void seed_scenario_is_reproduced_with_real_git(void **state)
{
    cJSON *all = vectors();
    const cJSON *step =
        json_get(json_get(json_get(all, "source_fingerprint"), "git_scenario"), "steps")->child;
    char *dir = new_repo();

    (void) state;
    assert_seed(dir, step);
    step = step->next;
    test_write_text(dir, "source.txt", "mutated source\n");
    assert_seed(dir, step);
    step = step->next;
    test_write_text(dir, "new file", "x");
    assert_seed(dir, step);
    step = step->next;
    test_write_text(dir, "target/ignored", "1");
    assert_seed(dir, step);
    /* The seed's digest changed with this setting; ours does not. */
    TEST_GIT(dir, "config", "diff.noprefix", "true");
    assert_seed(dir, step);
    test_dir_free(dir);
    cJSON_Delete(all);
}

static void a_directory_outside_any_repository_is_refused(void **state)
{
    char *dir = test_dir_new();
    struct git g;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(git_open(dir, NULL, NULL, &g, &e), -1);
    assert_non_null(strstr(e.text, "is in no git repository"));
    test_dir_free(dir);
}

static void unknown_scheme_is_refused(void **state)
{
    char *dir = new_repo();
    struct git g;
    struct source s = {.scheme = NULL};
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(git_open(dir, NULL, NULL, &g, &e), 0);
    assert_int_equal(source_take(&g, "md5", &s, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    git_close(&g);
    test_dir_free(dir);
}

/* A git on PATH that answers `command` with `answer` (printf's format) and leaves the rest to the
 * real one. */
static void assert_listing_refused(const char *dir, const char *command, const char *answer)
{
    static const char script[] = "#!/bin/sh\n"
                                 "PATH='%s'\n"
                                 "case \" $* \" in\n"
                                 "*' %s '*) printf '%s' ;;\n"
                                 "*) exec git \"$@\" ;;\n"
                                 "esac\n";
    const char *real = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe) */
    char *bin = test_dir_new();
    char *program = test_join(bin, "git");
    char *path = NULL, *text = NULL;
    struct git g;
    struct source s = {.scheme = NULL};
    struct err e = ERR_INIT;

    assert_non_null(real);
    assert_true(asprintf(&path, "%s:%s", bin, real) > 0);
    assert_true(asprintf(&text, script, real, command, answer) > 0);
    test_write_text(bin, "git", text);
    assert_int_equal(chmod(program, 0755), 0);
    if (git_open(dir, path, NULL, &g, &e) < 0)
        fail_msg("%s", e.text);
    if (source_take(&g, NULL, &s, &e) == 0)
        fail_msg("%s: taken: %s", command, answer);
    assert_string_equal(e.text, "git's list of files is malformed");
    git_close(&g);
    free(text);
    free(path);
    free(program);
    test_dir_free(bin);
}

#define OID20 "0123456789abcdef0123"
#define OID OID20 OID20

static void a_listing_that_git_would_not_print_is_refused(void **state)
{
    static const char *const trees[] = {
        "100644\\tsource.txt\\0",
        "1\\tsource.txt\\0",
        "\\tsource.txt\\0",
        "100644 blob " OID "\\0",
        "100644 blob\\tsource.txt\\0",
        "100644 blob \\tsource.txt\\0",
        "100644 blob " OID20 "\\tsource.txt\\0",
        "100644 blob " OID "\\t\\0",
        "100644 blob " OID20 "0123456789ABCDEF0123\\tsource.txt\\0",
        "1006440000 blob " OID "\\tsource.txt\\0",
        "160000 commit " OID OID OID OID "\\tsource.txt\\0",
        "100644 blob " OID "\\ta\\000100644 blob " OID OID20 "0123\\tb\\0",
    };
    static const char *const indexes[] = {
        "100644 0\\tsource.txt\\0", "100644\\tsource.txt\\0", "100644 " OID20 " 0\\tsource.txt\\0",
        "100644 " OID OID20 "0123 0\\tsource.txt\\0", /* another kind than the tree's */
    };
    char *dir = new_repo();

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(trees); i++)
        assert_listing_refused(dir, "ls-tree", trees[i]);
    for (size_t i = 0; i < ARRAY_LEN(indexes); i++)
        assert_listing_refused(dir, "ls-files -s", indexes[i]);
    test_dir_free(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_tree_names_its_commit),
        cmocka_unit_test(content_mode_and_untracked_files_count),
        cmocka_unit_test(ignored_files_are_left_out_only_by_the_tree_s_own_rule),
        cmocka_unit_test(git_configuration_changes_nothing),
        cmocka_unit_test(flags_that_hide_changes_hide_nothing),
        cmocka_unit_test(the_index_alone_counts),
        cmocka_unit_test(links_count_by_their_target),
        cmocka_unit_test(line_end_attributes_of_the_tree_are_no_change),
        cmocka_unit_test(local_filters_hide_nothing),
        cmocka_unit_test(conversions_count_as_a_fresh_checkout_makes_them),
        cmocka_unit_test(ignored_files_are_counted_but_for_the_run_directory),
        cmocka_unit_test(files_below_a_git_directory_are_counted),
        cmocka_unit_test(a_submodule_not_checked_out_is_a_change),
        cmocka_unit_test(submodules_and_nested_repositories_are_read),
        cmocka_unit_test(parents_are_recorded),
        cmocka_unit_test(unreadable_files_are_an_error),
        cmocka_unit_test(seed_vectors_are_reproduced),
        cmocka_unit_test(seed_scenario_is_reproduced_with_real_git),
        cmocka_unit_test(a_directory_outside_any_repository_is_refused),
        cmocka_unit_test(unknown_scheme_is_refused),
        cmocka_unit_test(a_listing_that_git_would_not_print_is_refused),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/source", tests, NULL, NULL);
}
