#include "tests/docs/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/support.h"

char *words_say(const char *program, const char *a, const char *b, const char *c)
{
    bool server = strcmp(program, "cleanrun-server") == 0;
    char *path =
        test_join(test_build_root(), server ? "server/cleanrun-server" : "runner/cleanrun");
    const char *const argv[] = {path, a, b, c, NULL};
    struct test_run r = {0};
    char *out = NULL;

    test_run(argv, NULL, NULL, NULL, &r);
    if (r.code != 0)
        fail_msg("%s %s %s: exit %d", program, a, b ? b : "", r.code);
    out = strdup(r.out);
    assert_non_null(out);
    test_run_fini(&r);
    free(path);
    return out;
}

char *words_help(const char *name)
{
    char *first = strndup(name, strcspn(name, " "));
    const char *second = strchr(name, ' ');
    char *page = NULL;

    assert_non_null(first);
    page = words_say("cleanrun", first, second ? second + 1 : "--help", second ? "--help" : NULL);
    free(first);
    return page;
}

static struct words *words_new(void)
{
    struct words *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    return w;
}

static struct words_command *add_command(struct words *w, const char *name, size_t len)
{
    struct words_command *c = &w->list[w->n];

    assert_true(w->n < WORDS_COMMANDS && len < WORDS_LEN);
    memset(c, 0, sizeof(*c));
    memcpy(c->name, name, len);
    w->n++;
    return c;
}

static void add_option(struct words_command *c, const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

    assert_true(len > 0 && len < WORDS_LEN && c->n < WORDS_OPTIONS);
    memcpy(c->options[c->n], name, len);
    c->options[c->n][len] = '\0';
    if (!words_has(c, c->options[c->n]))
        c->n++;
}

const struct words_command *words_find(const struct words *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->list[i].name, name) == 0)
            return &w->list[i];
    return NULL;
}

bool words_has(const struct words_command *c, const char *option)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->options[i], option) == 0)
            return true;
    return false;
}

/* The line after this one, or NULL. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : NULL;
}

/* Lines "  --name" and "  -x, --name" from `text` on, as long as the lines are of that form. */
static void take_option_lines(struct words_command *c, const char *text)
{
    for (const char *line = text; line && *line; line = next_line(line)) {
        const char *dashes = NULL;

        if (strncmp(line, "  -", 3) != 0)
            continue;
        dashes = line[3] == '-' ? line + 2 : strstr(line, ", --") + 2;
        add_option(c, dashes + 2);
    }
}

/* Length of "word word" before two spaces, an upper-case word or the line's end. */
static size_t name_length(const char *at)
{
    size_t len = 0;

    for (;;) {
        size_t word = strspn(at + len, "abcdefghijklmnopqrstuvwxyz-");

        if (word == 0 || at[len] == '-')
            return len > 0 ? len - 1 : 0;
        len += word;
        if (at[len] != ' ' || at[len + 1] == ' ')
            return len;
        len++;
    }
}

struct words *words_of_cleanrun(void)
{
    struct words *out = words_new();
    char *overview = words_say("cleanrun", "--help", NULL, NULL);
    const char *line = strstr(overview, "\nCommands:\n");
    const char *globals = strstr(overview, "\nOptions of every command:\n");

    assert_non_null(line);
    assert_non_null(globals);
    take_option_lines(add_command(out, "", 0), globals);
    line = next_line(next_line(line));
    for (; line && line[0] == ' '; line = next_line(line)) {
        struct words_command *c = add_command(out, line + 2, name_length(line + 2));
        char *page = words_help(c->name);

        take_option_lines(c, page);
        free(page);
    }
    free(overview);
    assert_true(out->n > 15);
    return out;
}

struct words *words_of_server(void)
{
    struct words *out = words_new();
    char *page = words_say("cleanrun-server", "--help", NULL, NULL);
    const char *line = strstr(page, "Usage:");
    struct words_command *c = NULL;

    assert_non_null(line);
    for (line = next_line(line); line && *line; line = next_line(line)) {
        const char *end = line + strcspn(line, "\n");

        if (line[0] != ' ')
            c = NULL;
        else if (line[2] != ' ')
            c = add_command(out, line + 2, name_length(line + 2));
        for (const char *p = strstr(line, "--"); c && p && p < end; p = strstr(p + 2, "--"))
            add_option(c, p + 2);
    }
    free(page);
    assert_true(out->n > 15);
    return out;
}

char *words_manual_path(const char *name)
{
    char relative[80];

    (void) snprintf(relative, sizeof(relative), "docs/man/%s", name);
    return strcmp(name, "cleanrun.yaml.5") == 0 ? test_join(test_build_root(), relative)
                                                : test_path(relative);
}

struct words *words_of_manual(const char *name)
{
    struct words *out = words_new();
    char *path = words_manual_path(name);
    char *text = test_read_path(path, NULL);
    struct words_command *c = add_command(out, "", 0);

    for (const char *line = text; line && *line; line = next_line(line)) {
        const char *end = line + strcspn(line, "\n");

        if (strncmp(line, ".Ss ", 4) == 0)
            c = add_command(out, line + 4, (size_t) (end - line) - 4);
        if (strncmp(line, ".It Fl ", 7) != 0)
            continue;
        for (const char *p = line + 7; p < end; p++)
            if (p[-1] == ' ' && p[0] == '-' && islower((unsigned char) p[1]))
                add_option(c, p + 1);
    }
    free(text);
    free(path);
    return out;
}

char *words_block(const char *page, const char *mark)
{
    char *text = test_read(page, NULL);
    const char *at = strstr(text, mark);
    char *out = calloc(strlen(text) + 1, 1);
    size_t n = 0;

    at = at ? strstr(at, "\n    ") : NULL;
    if (!at || !out) {
        fail_msg("%s has no block after '%s'", page, mark);
        abort(); /* not reached: fail_msg does not return */
    }
    for (at++; strncmp(at, "    ", 4) == 0 || *at == '\n';) {
        size_t skip = *at == '\n' ? 0 : 4;
        size_t len = strcspn(at + skip, "\n") + 1;

        memcpy(out + n, at + skip, len);
        n += len;
        at += skip + len;
    }
    free(text);
    return out;
}

const struct words_command *words_at(const struct words *w, const char *line)
{
    const struct words_command *best = NULL;

    for (size_t i = 0; i < w->n; i++) {
        size_t len = strlen(w->list[i].name);

        if (len > 0 && strncmp(line, w->list[i].name, len) == 0 &&
            !isalnum((unsigned char) line[len]) && line[len] != '-' &&
            (!best || strlen(best->name) < len))
            best = &w->list[i];
    }
    return best;
}

int words_wrong_options(const char *place, const struct words *w, const struct words_command *c,
                        bool is_server, const char *line)
{
    const struct words_command *common = words_find(w, "");
    int wrong = 0;

    for (const char *o = strstr(line, " --"); o; o = strstr(o + 3, " --")) {
        char option[WORDS_LEN];
        size_t len = strspn(o + 3, "abcdefghijklmnopqrstuvwxyz0123456789-");

        if (len == 0 || len >= sizeof(option))
            continue;
        memcpy(option, o + 3, len);
        option[len] = '\0';
        if (words_has(c, option) || (common && words_has(common, option)) ||
            strcmp(option, "help") == 0 || (is_server && strcmp(option, "data") == 0))
            continue;
        print_error("%s: '%s' has no option --%s\n", place, c->name, option);
        wrong++;
    }
    return wrong;
}
