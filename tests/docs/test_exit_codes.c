/* Exit codes: the manual page and --help name the same ones for each command, and each cheap
 * mistake gives the one that both name. */
#include "tests/docs/words.h"
#include "tests/lib/package.h"
#include "tests/lib/support.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CODES = 131 };

/* Numbers that stand alone in the text, as exit codes. */
static void take_codes(const char *from, const char *end, bool codes[CODES])
{
    for (const char *p = from; p < end; p++) {
        size_t n = strspn(p, "0123456789");
        int value = 0;

        if (n == 0)
            continue;
        for (size_t i = 0; i < n && n <= 3; i++)
            value = value * 10 + (p[i] - '0');
        /* not "409", "2 GiB", "2^3", "a1" */
        if (value < CODES && !isalnum((unsigned char) p[-1]) && !strchr("^-.(", p[-1]) &&
            !isalnum((unsigned char) p[n]) && strncmp(p + n, " GiB", 4) != 0)
            codes[value] = true;
        p += n;
    }
}

static void codes_of_help(const char *name, bool codes[CODES])
{
    char *page = words_help(name);
    const char *at = strstr(page, "Exit: ");

    assert_non_null(at);
    take_codes(at, at + strlen(at), codes);
    free(page);
}

/* From the line "Exit:" of the command's section to its end. */
static void codes_of_manual(const char *manual, const char *name, bool codes[CODES])
{
    char *heading = NULL;
    const char *section;
    const char *end;
    const char *at;

    assert_true(asprintf(&heading, "\n.Ss %s\n", name) > 0);
    section = strstr(manual, heading);
    if (!section) {
        fail_msg("cleanrun.1 has no section %s", name);
        return;
    }
    end = section + 1 + strcspn(section + 1, "\n");
    while (strncmp(end, "\n.Ss ", 5) != 0 && strncmp(end, "\n.Sh ", 5) != 0)
        end += 1 + strcspn(end + 1, "\n");
    at = strstr(section, "\nExit: ");
    if (!at || at > end) {
        fail_msg("cleanrun.1: %s: no exit codes", name);
        return;
    }
    take_codes(at, end, codes);
    free(heading);
}

static void page_and_help_name_the_same_codes(void **state)
{
    struct words *help = words_of_cleanrun();
    char *path = words_manual_path("cleanrun.1");
    char *manual = test_read_path(path, NULL);
    int bad = 0;

    (void) state;
    for (size_t i = 1; i < help->n; i++) {
        bool told[CODES] = {false};
        bool printed[CODES] = {false};

        codes_of_help(help->list[i].name, told);
        codes_of_manual(manual, help->list[i].name, printed);
        for (int code = 0; code < CODES; code++) {
            if (told[code] == printed[code])
                continue;
            print_error("%s: exit %d is only in %s\n", help->list[i].name, code,
                        told[code] ? "--help" : "cleanrun.1");
            bad++;
        }
    }
    assert_int_equal(bad, 0);
    free(manual);
    free(path);
    free(help);
}

struct row {
    const char *command;
    int code;
    const char *words[8]; /* after the command */
};

#define URL "http://127.0.0.1:1"
#define SHA "0123456789abcdef0123456789abcdef01234567"

static const struct row rows[] = {
    {"init", 2, {NULL}}, /* no build system */
    {"init", 0, {"-C", "meson", NULL}},
    {"init", 2, {"-C", "meson", NULL}}, /* stands there already */
    {"check", 0, {"meson/cleanrun.yaml", NULL}},
    {"check", 2, {"broken.json", NULL}},
    {"check", 2, {"absent", NULL}},
    {"doctor", 2, {"--root", "absent", NULL}},
    {"run", 2, {"no-such-gate", NULL}},
    {"fingerprint", 2, {"empty", NULL}},
    {"audit", 2, {"--baseline", "absent", "--current", "absent", NULL}},
    {"accept", 2, {"--definition", "meson/cleanrun.yaml", "broken.json", NULL}},
    {"leak", 3, {"--limit", "1", "one.csv", NULL}},
    {"leak", 2, {"--limit", "1", "broken.json", NULL}},
    {"baseline verify", 2, {"absent", NULL}},
    {"baseline verify", 5, {"object.json", NULL}},
    {"baseline package", 5, {"object.json", "--out", "packaged", NULL}},
    {"package verify", 2, {"absent", NULL}},
    {"package verify", 5, {"empty", NULL}},
    {"package", 2, {"absent", "--count", "1", "--source-at-start", "absent", "--out", "p", NULL}},
    {"seal", 2, {"--key", "k/key.pem", "--out", "e.tar", "absent", NULL}},
    {"seal", 5, {"--key", "k/key.pem", "--out", "e.tar", "empty", NULL}},
    {"key gen", 0, {"--out", "k2", NULL}},
    {"key gen", 2, {"--out", "k2", NULL}}, /* never overwritten */
    {"key show", 0, {"k2/pub.pem", NULL}},
    {"key show", 2, {"broken.json", NULL}},
    {"push", 2, {"absent", "--server", URL, "--token-file", "k/key.pem", NULL}},
    {"status", 6, {SHA, "--server", URL, "--project", "a/b", NULL}},
    {"status", 2, {"no-commit", "--server", URL, "--project", "a/b", NULL}},
    {"show", 2, {"empty", NULL}},
    {"gc", 0, {"--dry-run", NULL}},
    {"completion", 0, {"bash", NULL}},
    {"completion", 2, {"zsh", NULL}},
    /* 5: the evidence is broken; 2: what was asked for cannot be done */
    {"verify", 0, {"good.tar", "--key", "k/pub.pem", NULL}},
    {"verify", 4, {"good.tar", "--key", "k/pub.pem", "--require", "mode=cpu", NULL}},
    {"verify", 5, {"good.tar", NULL}},                          /* no key */
    {"verify", 5, {"good.tar", "--key", "other.pem", NULL}},    /* another key */
    {"verify", 5, {"alone.tar", "--key", "k/pub.pem", NULL}},   /* no attestation */
    {"verify", 5, {"nothing.tar", "--key", "k/pub.pem", NULL}}, /* an empty file */
    {"verify", 5, {"object.json", "--key", "k/pub.pem", NULL}}, /* no archive */
    {"verify", 5, {"good.tar", "--key", "k/pub.pem", "--attestation", "broken.json", NULL}},
    {"verify", 5, {"good.tar", "--key", "k/pub.pem", "--attestation", "huge", NULL}},
    {"verify", 2, {"good.tar", "--key", "k/pub.pem", "--attestation", "absent", NULL}},
    {"verify", 2, {"good.tar", "--key", "absent", NULL}},
    {"verify", 2, {"good.tar", "--key", "broken.json", NULL}},
    {"verify", 2, {"absent", "--key", "k/pub.pem", NULL}},
    {"verify", 2, {"empty", "--key", "k/pub.pem", NULL}}, /* a directory */
    {"verify", 2, {"large.tar", "--key", "k/pub.pem", NULL}},
    {"verify", 2, {"good.tar", "--key", "k/pub.pem", "--require", "green", NULL}},
};

static int run_row(const char *dir, const struct row *row)
{
    char *program = test_join(test_build_root(), "runner/cleanrun");
    char *first = strndup(row->command, strcspn(row->command, " "));
    const char *second = strchr(row->command, ' ');
    const char *argv[16] = {program, first};
    const char *const env[] = {"XDG_STATE_HOME=state", "CLEANRUN_LOCK=lock", NULL};
    struct test_run r = {0};
    size_t n = 2;
    int code;

    assert_non_null(first);
    if (second)
        argv[n++] = second + 1;
    for (size_t i = 0; row->words[i]; i++)
        argv[n++] = row->words[i];
    test_run(argv, env, dir, NULL, &r);
    code = r.code;
    if (code != row->code)
        print_error("%s %s: exit %d, wanted %d: %s%s\n", row->command,
                    row->words[0] ? row->words[0] : "", code, row->code, r.out, r.err);
    test_run_fini(&r);
    free(first);
    free(program);
    return code;
}

static char *furnished(void)
{
    static const char *const files[][2] = {
        {"meson/meson.build", "project('p', 'c')\nexecutable('bench', 'bench.c')\n"},
        {"broken.json", "{"},
        {"object.json", "{}"},
        {"one.csv", "t_ms,rss_kib\n0,1\n"},
        {"empty/x", ""},
        {"nothing.tar", ""},
        {"large.tar", ""},
    };
    static const char *const copies[] = {"", ".dsse.json"};
    struct private_key *other = package_key_new();
    char *dir = test_dir_new();
    char *pem = package_key_pem(other);
    char *large = test_join(dir, "large.tar");
    char *huge = calloc(1, 300001);
    struct private_key *key = package_key_new();
    struct package p;

    assert_non_null(huge);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        test_write_text(dir, files[i][0], files[i][1]);
    assert_int_equal(truncate(large, (off_t) 3 << 30), 0); /* a hole */
    memset(huge, ' ', 300000);
    test_write_text(dir, "huge", huge);
    test_write_text(dir, "other.pem", pem);
    package_make(&(struct package_options){.executable = 1}, key, &p);
    for (size_t i = 0; i < 2; i++) {
        char *from = NULL;
        char *to = NULL;
        size_t len = 0;
        char *bytes;

        assert_true(asprintf(&from, "%s%s", p.tar, copies[i]) > 0);
        assert_true(asprintf(&to, "good.tar%s", copies[i]) > 0);
        bytes = test_read_path(from, &len);
        test_write(dir, to, bytes, len);
        if (i == 0)
            test_write(dir, "alone.tar", bytes, len);
        free(bytes);
        free(to);
        free(from);
    }
    free(pem);
    pem = package_key_pem(key);
    test_write_text(dir, "k/pub.pem", pem);
    package_free(&p);
    private_key_free(key);
    private_key_free(other);
    free(huge);
    free(large);
    free(pem);
    return dir;
}

/* A signing key for `seal`; the trusted one of the archive is only its public half. */
static void put_signing_key(const char *dir)
{
    char *from = test_join(dir, "k3/key.pem");
    const struct row gen = {"key gen", 0, {"--out", "k3", NULL}};
    const char *const mode[] = {"cp", "-p", from, "k/key.pem", NULL};
    struct test_run r = {0};

    assert_int_equal(run_row(dir, &gen), 0);
    test_run(mode, NULL, dir, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    free(from);
}

static void mistakes_give_the_code_that_is_told(void **state)
{
    char *dir = furnished();
    int bad = 0;

    (void) state;
    put_signing_key(dir);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool told[CODES] = {false};

        codes_of_help(rows[i].command, told);
        if (!told[rows[i].code]) {
            print_error("%s: exit %d is not told\n", rows[i].command, rows[i].code);
            bad++;
        }
        bad += run_row(dir, &rows[i]) != rows[i].code;
    }
    assert_int_equal(bad, 0);
    test_dir_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_and_help_name_the_same_codes),
        cmocka_unit_test(mistakes_give_the_code_that_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
