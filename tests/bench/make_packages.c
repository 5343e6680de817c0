/*
 * make_packages DIR NAME KIND KIB COUNT: signed packages for ci/bench, as DIR/NAME-<i>.tar with its
 * attestation beside it, about KIB KiB each, every one with other bytes that do not compress well.
 * Prints "RUN SHA256 FILE" of each. DIR/key.pem and DIR/pub.pem are made by the first call and used
 * by the next.
 *
 * KIND: base, ok (better than base by less than the tolerance), regression, other (another
 * experiment).
 */
#include "tests/lib/package.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"

#define COUNT_MAX 1000
#define KIB_MAX (1024U * 1024U)

struct kind {
    const char *name;
    double probes;
    int capacity;
    int executable; /* of the first package; each further one has another */
};

static const struct kind kinds[] = {
    {"base", 1.31, 20000, 1},
    {"ok", 1.3, 20000, 10000},
    {"regression", 1.5, 20000, 20000},
    {"other", 1.31, 40000, 30000},
};

static const struct kind *kind_find(const char *name)
{
    size_t i = 0;

    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

/* The key of DIR, made when there is none. */
static struct private_key *take_key(const char *dir)
{
    struct private_key *key = NULL;
    struct err e = ERR_INIT;
    char *path = test_join(dir, "key.pem");
    char *pem = NULL;

    if (private_key_load(path, &key, &e) == 0) {
        free(path);
        return key;
    }
    key = package_key_new();
    assert_int_equal(private_key_write(key, &pem, &e), 0);
    test_write_text(dir, "key.pem", pem);
    assert_int_equal(chmod(path, 0600), 0);
    free(pem);
    pem = package_key_pem(key);
    test_write_text(dir, "pub.pem", pem);
    free(pem);
    free(path);
    return key;
}

static void move(const char *tar, const char *target, const char *suffix)
{
    char *from = NULL;
    char *to = NULL;

    assert_true(asprintf(&from, "%s%s", tar, suffix) > 0);
    assert_true(asprintf(&to, "%s%s", target, suffix) > 0);
    if (rename(from, to) != 0)
        fail_msg("cannot move %s: TMPDIR must be on the file system of DIR", from);
    free(from);
    free(to);
}

static void make_one(const char *dir, const char *name, const struct kind *kind, size_t kib, int i,
                     const struct private_key *key)
{
    const struct package_options o = {
        .probes = kind->probes,
        .capacity = kind->capacity,
        .executable = kind->executable + i,
        .padding = kib << 10,
    };
    struct package p;
    char *target = NULL;

    package_make(&o, key, &p);
    assert_true(asprintf(&target, "%s/%s-%d.tar", dir, name, i) > 0);
    move(p.tar, target, "");
    move(p.tar, target, ".dsse.json");
    (void) printf("%s %s %s\n", p.run, p.hex, target);
    free(target);
    package_free(&p);
}

int main(int argc, char **argv)
{
    const struct kind *kind = argc == 6 ? kind_find(argv[3]) : NULL;
    struct private_key *key = NULL;
    uint64_t kib = 0;
    uint64_t count = 0;
    int i = 0;

    if (!kind || !num_parse_u64(argv[4], strlen(argv[4]), KIB_MAX, &kib) ||
        !num_parse_u64(argv[5], strlen(argv[5]), COUNT_MAX, &count)) {
        (void) fputs("usage: make_packages DIR NAME base|ok|regression|other KIB COUNT\n", stderr);
        return 2;
    }
    key = take_key(argv[1]);
    for (i = 0; i < (int) count; i++)
        make_one(argv[1], argv[2], kind, (size_t) kib, i, key);
    private_key_free(key);
    return fflush(stdout) == 0 ? 0 : 1;
}
