/*
 * make_package: one signed package for tests in other languages. Prints the run id; leaves
 * OUT.tar, OUT.tar.dsse.json and so on.
 *
 *   make_package --out OUT.tar --key KEY.pem [--definition F] [--report F] [--report-name N]
 *       [--samples F] [--markers F] [--project P] [--gate G] [--class C] [--run ID] [--mode M]
 *       [--commit HEX] [--control RUN] [--fact TEXT] [--executable N] [--exit-code N]
 *       [--dirty] [--derive] [--lie acceptance]
 */
#include "tests/lib/package.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"

struct arguments {
    struct package_options o;
    const char *out;
    const char *key;
    char *texts[8]; /* owned */
    size_t n;
};

static const char *file_text(struct arguments *a, const char *path)
{
    size_t len = 0;
    char *text = test_read_path(path, &len);

    assert_true(a->n < ARRAY_LEN(a->texts));
    a->texts[a->n++] = text;
    return text;
}

static int number(const char *text)
{
    uint64_t v = 0;

    assert_true(num_parse_u64(text, strlen(text), 255, &v));
    return (int) v;
}

/* *out_key_known: the option takes a value and was understood. */
static bool take_value(struct arguments *a, const char *key, const char *value)
{
    const struct {
        const char *name;
        const char **to;
        bool file;
    } texts[] = {
        {"--out", &a->out, false},
        {"--key", &a->key, false},
        {"--definition", &a->o.definition, true},
        {"--report", &a->o.report, true},
        {"--samples", &a->o.samples, true},
        {"--markers", &a->o.markers, true},
        {"--report-name", &a->o.report_name, false},
        {"--project", &a->o.project, false},
        {"--gate", &a->o.gate, false},
        {"--class", &a->o.machine_class, false},
        {"--run", &a->o.run, false},
        {"--mode", &a->o.mode, false},
        {"--commit", &a->o.commit, false},
        {"--control", &a->o.control, false},
        {"--fact", &a->o.fact, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (strcmp(texts[i].name, key) == 0) {
            *texts[i].to = texts[i].file ? file_text(a, value) : value;
            return true;
        }
    }
    if (strcmp(key, "--executable") == 0)
        a->o.executable = number(value);
    else if (strcmp(key, "--exit-code") == 0)
        a->o.exit_code = number(value);
    else if (strcmp(key, "--lie") == 0 && strcmp(value, "acceptance") == 0)
        a->o.lie = PACKAGE_ACCEPTANCE_PASS;
    else
        return false;
    return true;
}

static bool take_arguments(struct arguments *a, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--dirty") == 0) {
            a->o.dirty = true;
        } else if (strcmp(argv[i], "--derive") == 0) {
            a->o.derive = true;
        } else if (i + 1 == argc || !take_value(a, argv[i], argv[i + 1])) {
            (void) fprintf(stderr, "make_package: what is '%s'?\n", argv[i]);
            return false;
        } else {
            i++;
        }
    }
    return a->out && a->key;
}

static void copy_to(const struct package *p, const char *out, const char *suffix)
{
    char *from = NULL;
    char *to = NULL;
    const char *copy[] = {"cp", NULL, NULL, NULL};
    struct test_run r = {0};

    assert_true(asprintf(&from, "%s%s", p->tar, suffix) > 0);
    assert_true(asprintf(&to, "%s%s", out, suffix) > 0);
    copy[1] = from;
    copy[2] = to;
    test_run(copy, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    free(from);
    free(to);
}

int main(int argc, char **argv)
{
    struct arguments a = {.out = NULL};
    struct private_key *key = NULL;
    struct package p = {.dir = NULL};
    struct err e = ERR_INIT;

    if (!take_arguments(&a, argc, argv))
        return 2;
    if (private_key_load(a.key, &key, &e) < 0) {
        (void) fprintf(stderr, "make_package: %s\n", e.text);
        return 2;
    }
    package_make(&a.o, key, &p);
    copy_to(&p, a.out, "");
    copy_to(&p, a.out, ".dsse.json");
    (void) printf("%s\n", p.run);
    package_free(&p);
    private_key_free(key);
    for (size_t i = 0; i < a.n; i++)
        free(a.texts[i]);
    return 0;
}
