/* docs/pull-requests.md: its workflows can't be green without the server's OK, and its scripts do
 * what the page says, with a curl that answers from files. */
#include "base/arena.h"
#include "base/limits.h"
#include "experiment/yaml_in.h"
#include "tests/docs/words.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char page[] = "docs/pull-requests.md";

/* "a/b/0": members by name, elements by number; NULL when one is not there. */
static const struct yaml_node *at(const struct yaml_node *n, const char *path)
{
    while (n && *path) {
        size_t len = strcspn(path, "/");
        const struct yaml_node *child = n->first;
        size_t index = 0;

        for (; child; child = child->next, index++) {
            if (n->kind == YAML_LIST
                    ? index == (size_t) (*path - '0')
                    : strlen(child->key) == len && memcmp(child->key, path, len) == 0)
                break;
        }
        n = child;
        path += len + (path[len] == '/');
    }
    return n;
}

static void assert_text(const struct yaml_node *root, const char *path, const char *want)
{
    const struct yaml_node *n = at(root, path);

    if (!n || n->kind != YAML_SCALAR)
        fail_msg("%s is not there", path);
    else
        assert_string_equal(n->text, want);
}

/* The first block after the heading, parsed. */
static const struct yaml_node *workflow(const char *heading, struct arena *a, char **out_text)
{
    struct yaml_node *root = NULL;
    struct err e = ERR_INIT;

    *out_text = words_block(page, heading);
    arena_init(a, LIMIT_MIB(1));
    if (yaml_parse(heading, *out_text, strlen(*out_text), a, &root, &e) < 0)
        fail_msg("%s", e.text);
    return root;
}

static void the_github_verdict_is_never_skipped(void **state)
{
    struct arena a;
    char *text = NULL;
    const struct yaml_node *w = workflow("## GitHub Actions", &a, &text);

    (void) state;
    assert_text(w, "jobs/verdict/needs", "measure");
    assert_text(w, "jobs/verdict/if", "${{ always() }}");
    assert_null(at(w, "jobs/verdict/continue-on-error"));
    assert_text(w, "jobs/verdict/steps/1/run", "sh ask.sh");
    assert_null(at(w, "jobs/verdict/steps/1/if"));
    assert_null(at(w, "jobs/verdict/steps/1/continue-on-error"));
    assert_text(w, "jobs/verdict/steps/0/with/ref", "${{ github.event.pull_request.base.sha }}");
    assert_text(w, "jobs/verdict/steps/1/env/SHA", "${{ github.event.pull_request.head.sha }}");
    assert_text(w, "jobs/measure/steps/0/with/ref", "${{ github.event.pull_request.head.sha }}");
    assert_non_null(at(w, "jobs/verdict/timeout-minutes"));
    /* a waiting job of such a group is cancelled by the next one */
    assert_null(at(w, "concurrency"));
    assert_null(at(w, "jobs/measure/concurrency"));
    assert_null(at(w, "jobs/verdict/concurrency"));
    arena_fini(&a);
    free(text);
}

static void the_gitlab_verdict_always_asks(void **state)
{
    struct arena a;
    char *text = NULL;
    const struct yaml_node *w = workflow("## GitLab CI", &a, &text);

    (void) state;
    assert_text(w, "verdict/needs/0/job", "measure");
    assert_text(w, "verdict/needs/0/optional", "true");
    assert_text(w, "verdict/rules/0/when", "always");
    assert_null(at(w, "verdict/allow_failure"));
    assert_null(at(w, "verdict/rules/0/allow_failure"));
    assert_null(at(w, "measure/allow_failure"));
    assert_non_null(strstr(at(w, "verdict/script/2")->text, "sh /tmp/ask.sh"));
    assert_null(at(w, "verdict/script/3")); /* the last one is the job's answer */
    arena_fini(&a);
    free(text);
}

static const char fake_curl[] = "#!/bin/sh\n"
                                "for url; do :; done\n"
                                "name=$(printf '%s' \"${url#http://s}\" | tr / _)\n"
                                "echo \"$*\" >> \"$FAKE/asked\"\n"
                                "n=$(grep -c \"$url\\$\" \"$FAKE/asked\")\n"
                                "[ ! -f \"$FAKE/$name.$n\" ] || name=$name.$n\n"
                                "cat \"$FAKE/$name\" 2>/dev/null || exit 22\n";

static const char check_name[] = "_api_v1_projects_o_n_commits_abc_check";

/* Runs a script of the page in dir/tree; dir/fake holds the answers. */
static void run_script(const char *dir, const char *heading, struct test_run *r)
{
    static const char *const scripts[] = {"bin/curl", "bin/sleep"};
    char *script = words_block(page, heading);
    char *tree = test_join(dir, "tree");
    char fake[4096];
    char path[8192];
    const char *const env[] = {fake,      path,      "SERVER=http://s", "PROJECT=o/n",
                               "SHA=abc", "TURNS=3", "PAUSE=1",         NULL};
    const char *const argv[] = {"sh", "script.sh", NULL};

    (void) snprintf(fake, sizeof fake, "FAKE=%s/fake", dir);
    (void) snprintf(path, sizeof path, "PATH=%s/bin:%s", dir, getenv("PATH"));
    test_write_text(dir, "bin/curl", fake_curl);
    test_write_text(dir, "bin/sleep", "#!/bin/sh\n");
    test_write_text(dir, "fake/asked", "");
    test_write_text(dir, "tree/script.sh", script);
    for (size_t i = 0; i < LEN(scripts); i++) {
        char *name = test_join(dir, scripts[i]);

        assert_int_equal(chmod(name, 0755), 0);
        free(name);
    }
    test_run(argv, env, tree, NULL, r);
    free(tree);
    free(script);
}

/* Exit code of ask.sh when the server says `first`, then `second`; NULL: nothing. */
static int ask(const char *first, const char *second, int *out_asked)
{
    static const char form[] = "{\"verdict\": \"%s\", \"description\": \"d\", \"gates\": []}";
    char *dir = test_dir_new();
    char *asked;
    struct test_run r = {0};
    char name[128];
    char body[256];
    int code;

    if (first) {
        (void) snprintf(name, sizeof name, "fake/%s", check_name);
        (void) snprintf(body, sizeof body, form, second ? second : first);
        test_write_text(dir, name, body);
        (void) snprintf(name, sizeof name, "fake/%s.1", check_name);
        (void) snprintf(body, sizeof body, form, first);
        test_write_text(dir, name, *first == '<' ? first : body);
    }
    run_script(dir, "## Asking", &r);
    code = r.code;
    asked = test_join(dir, "fake/asked");
    {
        char *lines = test_read_path(asked, NULL);

        *out_asked = 0;
        for (const char *p = lines; (p = strchr(p, '\n')); p++)
            ++*out_asked;
        free(lines);
    }
    free(asked);
    test_run_fini(&r);
    test_dir_free(dir);
    return code;
}

static void only_ok_passes(void **state)
{
    static const char *const others[] = {
        "REGRESSION", "NON_COMPARABLE", "FAIL", "INVALID", "ERROR", "ok", "", "<html>"};
    int asked = 0;

    (void) state;
    assert_int_equal(ask("OK", NULL, &asked), 0);
    assert_int_equal(asked, 1);
    for (size_t i = 0; i < LEN(others); i++) {
        if (ask(others[i], NULL, &asked) == 0)
            fail_msg("'%s' passes", others[i]);
        assert_int_equal(asked, 1);
    }
    assert_int_not_equal(ask(NULL, NULL, &asked), 0);
}

static void pending_is_asked_again_and_ends_red(void **state)
{
    int asked = 0;

    (void) state;
    assert_int_equal(ask("PENDING", "OK", &asked), 0);
    assert_int_equal(asked, 2);
    assert_int_not_equal(ask("PENDING", "REGRESSION", &asked), 0);
    assert_int_equal(asked, 2);
    assert_int_not_equal(ask("PENDING", NULL, &asked), 0);
    assert_int_equal(asked, 3); /* TURNS */
}

static const char three_gates[] =
    "{\"verdict\": \"REGRESSION\", \"description\": \"REGRESSION 1 of 3 gates: `b` @all\", "
    "\"gates\": ["
    "{\"gate\": \"a\", \"class\": \"m\", \"verdict\": \"PENDING\", \"run\": null,"
    " \"url\": \"/p/o/n/a\", \"description\": \"PENDING no run of this commit yet\"},"
    "{\"gate\": \"b\", \"class\": \"m\", \"verdict\": \"REGRESSION\", \"run\": \"r1\","
    " \"url\": \"/r/r1/vs/b-1\", \"description\": \"x\"},"
    "{\"gate\": \"c\", \"class\": \"m\", \"verdict\": \"NON_COMPARABLE\", \"run\": \"r2\","
    " \"url\": \"/r/r2\", \"description\": \"y\"}]}";

static void the_comment_has_every_gates_own_run(void **state)
{
    char *dir = test_dir_new();
    char *path = test_join(dir, "tree/comment.md");
    struct test_run r = {0};
    char name[128];
    char *text;

    (void) state;
    (void) snprintf(name, sizeof name, "fake/%s", check_name);
    test_write_text(dir, name, three_gates);
    test_write_text(dir, "fake/_r_r1_vs_b-1.md", "| compares | +6 % |\n");
    test_write_text(dir, "fake/_p_o_n_a.txt", "history of another\n");
    run_script(dir, "## A comment", &r);
    assert_int_not_equal(r.code, 0); /* /r/r2.txt is not there: no half comment */
    assert_false(access(path, F_OK) == 0);
    test_run_fini(&r);

    test_write_text(dir, "fake/_r_r2.txt", "no baseline\n```\n# end\n");
    run_script(dir, "## A comment", &r);
    if (r.code != 0)
        fail_msg("exit %d: %s", r.code, r.err);
    text = test_read_path(path, NULL);
    assert_string_equal(text, "**`REGRESSION 1 of 3 gates: 'b' @all`**\n"
                              "\n### [a on m: PENDING](http://s/p/o/n/a)\n\n"
                              "    PENDING no run of this commit yet\n"
                              "\n### [b on m: REGRESSION](http://s/r/r1/vs/b-1)\n\n"
                              "| compares | +6 % |\n"
                              "\n### [c on m: NON_COMPARABLE](http://s/r/r2)\n\n"
                              "    no baseline\n    ```\n    # end\n");
    free(text);
    test_run_fini(&r);
    free(path);
    test_dir_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_github_verdict_is_never_skipped),
        cmocka_unit_test(the_gitlab_verdict_always_asks),
        cmocka_unit_test(only_ok_passes),
        cmocka_unit_test(pending_is_asked_again_and_ends_red),
        cmocka_unit_test(the_comment_has_every_gates_own_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
