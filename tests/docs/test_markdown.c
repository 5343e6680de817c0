/* What the Markdown files name is there: links, files and folders of the tree, commands and their
 * options. */
#include "tests/docs/words.h"
#include "tests/lib/support.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const folders[] = {"", "docs", "baselines", "demo", "examples", "tests"};

/* Calls see for every Markdown file of the tree; returns what it returned, added. */
static int for_every_page(int (*see)(const char *name, char *text, void *ctx), void *ctx)
{
    int n = 0;
    size_t seen = 0;

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        char *dir = test_path(folders[i]);
        char **names = NULL;
        size_t count = test_list(dir, ".md", &names);

        for (size_t k = 0; k < count; k++) {
            char *name = test_join(folders[i][0] ? folders[i] : ".", names[k]);
            char *text = test_read(name, NULL);

            n += see(name, text, ctx);
            seen++;
            free(text);
            free(name);
        }
        test_names_free(names);
        free(dir);
    }
    assert_true(seen >= 9);
    return n;
}

static bool stands(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* [text](target): a relative target is a file beside the page. */
static int see_links(const char *name, char *text, void *ctx)
{
    int bad = 0;

    (void) ctx;
    for (char *at = strstr(text, "]("); at; at = strstr(at + 2, "](")) {
        char *target = strndup(at + 2, strcspn(at + 2, ")# \n"));
        char *relative = NULL;
        char *path = NULL;

        if (*target && !strstr(target, "://") && strncmp(target, "mailto:", 7) != 0) {
            assert_true(asprintf(&relative, "%.*s/%s", (int) (strrchr(name, '/') - name), name,
                                 target) > 0);
            path = test_path(relative);
            if (!stands(path)) {
                print_error("%s: link to %s, which is not there\n", name, target);
                bad++;
            }
        }
        free(path);
        free(relative);
        free(target);
    }
    return bad;
}

static void links_lead_somewhere(void **state)
{
    (void) state;
    assert_int_equal(for_every_page(see_links, NULL), 0);
}

/* "tests/<folder>/x" becomes a pattern: what stands in angles or capitals is anything. */
static char *as_pattern(const char *word)
{
    char *pattern = calloc(strlen(word) + 2, 1);
    size_t n = 0;

    assert_non_null(pattern);
    for (const char *p = word; *p; p++) {
        if (*p == '<') {
            pattern[n++] = '*';
            p += strcspn(p, ">");
            if (!*p)
                break;
        } else if (strncmp(p, "NAME", 4) == 0) {
            pattern[n++] = '*';
            p += 3;
        } else {
            pattern[n++] = *p;
        }
    }
    return pattern;
}

/* A path below a folder of the source tree; a target of the build has a source of its name. */
static bool in_the_tree(const char *word)
{
    char *pattern = as_pattern(word);
    char *path = test_path(pattern);
    char *source = NULL;
    glob_t found = {0};
    bool is = false;

    assert_true(asprintf(&source, "%s.c", path) > 0);
    is = glob(path, 0, NULL, &found) == 0 || stands(source);
    globfree(&found);
    free(source);
    free(path);
    free(pattern);
    return is;
}

static bool is_folder_of_the_tree(const char *word)
{
    static const char *const top[] = {
        "base",       "experiment", "evidence", "audit", "runner", "server", "templates", "web",
        "migrations", "tools",      "ci",       "tests", "docs",   "demo",   "examples",  ".ci"};
    size_t len = strcspn(word, "/");

    for (size_t i = 0; i < sizeof(top) / sizeof(top[0]); i++)
        if (strlen(top[i]) == len && strncmp(word, top[i], len) == 0)
            return word[len] == '/';
    return false;
}

static int see_paths(const char *name, char *text, void *ctx)
{
    size_t *io_n = ctx;
    int bad = 0;

    /* what is no letter of a path ends a word */
    for (char *rest = text, *word = strsep(&rest, " \n\t`'\"(),;:|=[]{}"); word;
         word = strsep(&rest, " \n\t`'\"(),;:|=[]{}")) {
        size_t len = strlen(word);

        while (len > 0 && (word[len - 1] == '.' || word[len - 1] == '?'))
            word[--len] = '\0';
        if (strncmp(word, "./", 2) == 0)
            word += 2;
        if (!is_folder_of_the_tree(word))
            continue;
        ++*io_n;
        if (!in_the_tree(word)) {
            print_error("%s: %s is not there\n", name, word);
            bad++;
        }
    }
    return bad;
}

static void files_and_folders_exist(void **state)
{
    size_t n = 0;

    (void) state;
    assert_int_equal(for_every_page(see_paths, &n), 0);
    assert_true(n > 50);
}

struct programs {
    struct words *cleanrun;
    struct words *server;
    size_t seen;
};

/* One command line as a page shows it, without what stands before the program's name. */
static int see_command(const char *name, const char *line, bool is_server, struct programs *p)
{
    const struct words *w = is_server ? p->server : p->cleanrun;
    const struct words_command *c = NULL;

    line += strspn(line, " ");
    /* "cleanrun help …", "cleanrun's", an option before the command, a name alone */
    if (!islower((unsigned char) *line) || strncmp(line, "help", 4) == 0)
        return 0;
    c = words_at(w, line);
    if (!c) {
        print_error("%s: no such command: %s\n", name, line);
        return 1;
    }
    p->seen++;
    return words_wrong_options(name, w, c, is_server, line);
}

/* Every command line in one piece of code. */
static int see_code(const char *name, const char *code, struct programs *p)
{
    int bad = 0;

    for (const char *at = strstr(code, "cleanrun"); at; at = strstr(at + 8, "cleanrun")) {
        bool is_server = strncmp(at, "cleanrun-server ", 16) == 0;
        char *line = NULL;

        if ((!is_server && at[8] != ' ') || (at > code && !strchr(" `($/\"", at[-1])))
            continue;
        at += is_server ? 16 : 9;
        line = strndup(at, strcspn(at, "#|)>&;"));
        bad += see_command(name, line, is_server, p);
        free(line);
    }
    return bad;
}

static int see_commands(const char *name, char *text, void *ctx)
{
    int bad = 0;

    /* a line that ends in a backslash goes on in the next */
    for (char *p = strstr(text, "\\\n"); p; p = strstr(p, "\\\n"))
        p[0] = p[1] = ' ';
    for (char *rest = text, *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        if (strncmp(line, "    ", 4) == 0 && line[4] != '|') {
            bad += see_code(name, line + 4, ctx);
            continue;
        }
        for (char *open = strchr(line, '`'); open;) {
            char *close = strchr(open + 1, '`');

            if (!close)
                break;
            *close = '\0';
            bad += see_code(name, open + 1, ctx);
            open = strchr(close + 1, '`');
        }
    }
    return bad;
}

static void commands_and_options_exist(void **state)
{
    struct programs p = {.cleanrun = words_of_cleanrun(), .server = words_of_server()};

    (void) state;
    assert_int_equal(for_every_page(see_commands, &p), 0);
    assert_true(p.seen > 60);
    free(p.server);
    free(p.cleanrun);
}

/* The checks themselves can fail. */
static void what_is_not_there_is_found(void **state)
{
    struct programs p = {.cleanrun = words_of_cleanrun(), .server = words_of_server()};
    char links[] = "see [this](docs/nowhere.md) and [that](README.md#x) and [web](https://a.b/c)";
    char paths[] = "`runner/nothing.c`, tests/<folder>/test_<module>.c and base/num.h.";
    char commands[] = "`cleanrun rum GATE`, `cleanrun run GATE --fast`\n\n    cleanrun-server \\\n"
                      "      gc --dry-run --everything\n";
    size_t n = 0;

    (void) state;
    assert_int_equal(see_links("./a.md", links, NULL), 1);
    assert_int_equal(see_paths("a.md", paths, &n), 1);
    assert_int_equal(n, 3);
    assert_int_equal(see_commands("a.md", commands, &p), 3);
    free(p.server);
    free(p.cleanrun);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_lead_somewhere),
        cmocka_unit_test(files_and_folders_exist),
        cmocka_unit_test(commands_and_options_exist),
        cmocka_unit_test(what_is_not_there_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
