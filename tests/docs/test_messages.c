/* Commands that the programs' messages, the reasons and the pages tell people to type exist, with
 * their options. */
#include "tests/docs/words.h"
#include "tests/lib/support.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *folder, *suffix;
} places[] = {
    {"runner", ".c"},      {"server", ".c"},     {"server/store", ".c"}, {"server/pages", ".c"},
    {"server/http", ".c"}, {"audit", ".c"},      {"audit", ".def"},      {"audit", ".h"},
    {"evidence", ".c"},    {"experiment", ".c"}, {"templates", ".html"}, {"templates", ".txt"},
    {"base", ".c"},        {"server/api", ".c"},
};

/* Several literals that stand one after the other are one text. In place. */
static void join_literals(char *text)
{
    char *to = text;

    for (const char *from = text; *from;) {
        if (from[0] == '"') {
            size_t space = strspn(from + 1, " \n\t\\");

            if (space > 0 && from[1 + space] == '"' && memchr(from + 1, '\n', space)) {
                from += space + 2;
                continue;
            }
        }
        *to++ = *from++;
    }
    *to = '\0';
}

struct programs {
    struct words *cleanrun, *server;
    size_t seen;
};

/* A command stands behind a quote, a colon or a bracket; other uses of the name are prose. */
static bool is_typed(const char *text, const char *at)
{
    if (at == text)
        return false;
    if (strchr("'`>", at[-1]))
        return true;
    return at - text >= 2 && at[-1] == ' ' && (at[-2] == ':' || at[-2] == '(');
}

static int see_text(const char *name, const char *text, struct programs *p)
{
    int bad = 0;

    for (const char *at = strstr(text, "cleanrun"); at; at = strstr(at + 8, "cleanrun")) {
        bool is_server = strncmp(at, "cleanrun-server ", 16) == 0;
        const struct words *w = is_server ? p->server : p->cleanrun;
        const char *word = at + (is_server ? 16 : 9);
        const struct words_command *c;

        if ((!is_server && at[8] != ' ') || !is_typed(text, at) ||
            !islower((unsigned char) *word) || strncmp(word, "help", 4) == 0)
            continue;
        char *line = strndup(word, strcspn(word, "\"'`|<&;,\n"));

        char *sentence = strstr(line, ". ");

        if (sentence)
            *sentence = '\0';
        c = words_at(w, line);
        p->seen++;
        if (!c)
            print_error("%s: no such command: %s\n", name, line);
        bad += c ? words_wrong_options(name, w, c, is_server, line) : 1;
        free(line);
    }
    return bad;
}

static void commands_in_messages_exist(void **state)
{
    struct programs p = {.cleanrun = words_of_cleanrun(), .server = words_of_server()};
    int bad = 0;

    (void) state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char *dir = test_path(places[i].folder), **names = NULL;
        size_t n = test_list(dir, places[i].suffix, &names);

        for (size_t k = 0; k < n; k++) {
            char *name = test_join(places[i].folder, names[k]), *text = test_read(name, NULL);

            join_literals(text);
            bad += see_text(name, text, &p);
            free(text);
            free(name);
        }
        test_names_free(names);
        free(dir);
    }
    assert_int_equal(bad, 0);
    assert_true(p.seen > 60);
    free(p.server);
    free(p.cleanrun);
}

/* The check itself can fail. */
static void what_is_not_there_is_found(void **state)
{
    struct programs p = {.cleanrun = words_of_cleanrun(), .server = words_of_server()};
    char text[] =
        "err(\"make one with 'cleanrun key \"\n    \"new' or: cleanrun run G --fast\\n\");\n"
        "\"`cleanrun-server runner ad NAME`, but the cleanrun program is prose\"";

    (void) state;
    join_literals(text);
    assert_int_equal(see_text("a.c", text, &p), 3);
    assert_int_equal(p.seen, 3);
    free(p.server);
    free(p.cleanrun);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_in_messages_exist),
        cmocka_unit_test(what_is_not_there_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
