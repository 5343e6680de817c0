/*
 * support: what every test needs: CMocka, temporary directories, fixtures, shared corpora, close
 * numbers, running a program. Independent of the product's folders. Helpers fail the running test
 * themselves, so they return plain values. Paths and bytes they return are freed with free().
 */
#pragma once

/* As far as the compiler knows, CMocka's assertions return: what assert_non_null checked counts as
 * maybe null. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wnull-dereference"
#endif

/* CMocka wants these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>

/* CLEANRUN_SOURCE_ROOT and CLEANRUN_BUILD_ROOT, which meson sets; fails the test without them. */
const char *test_source_root(void);
const char *test_build_root(void);

/* Absolute path of a file below the source root ("tests/data/rvoip/x.json"). */
char *test_path(const char *relative);
void test_pause_ms(long ms);
/* Whole file, NUL after the data; out_len may be NULL. The first is relative to the source root. */
char *test_read(const char *relative, size_t *out_len);
char *test_read_path(const char *path, size_t *out_len);

/* Absolute path of something below CLEANRUN_SHARED (default: <source root>/../shared), such as
 * "data/corpora/json". When it is not there, prints "SKIPPED corpus: <relative>" and returns NULL:
 *     char *dir = test_shared("data/corpora/json");
 *     if (!dir)
 *         skip(); */
char *test_shared(const char *relative);

/* Fresh directory below $TMPDIR or /tmp; test_dir_free removes it with everything in it. */
char *test_dir_new(void);
void test_dir_free(char *path); /* accepts NULL */
/* "<dir>/<name>" */
char *test_join(const char *dir, const char *name);
/* The pattern with each {1} and {2} replaced; two NULL where the pattern has no {2}. Caller frees.
 */
char *test_fill(const char *pattern, const char *one, const char *two);
/* Creates or replaces <dir>/<name>; missing folders on the way are made. */
void test_write(const char *dir, const char *name, const void *bytes, size_t len);
void test_write_text(const char *dir, const char *name, const char *text);

/* |a - b| ≤ tolerance · max(1, |b|); NaN never. */
void test_close_at(double a, double b, double tolerance, const char *what, const char *file,
                   int line);
#define assert_close(a, b, tolerance)                                                              \
    test_close_at((a), (b), (tolerance), #a " ~ " #b, __FILE__, __LINE__)

struct test_run {
    int code; /* exit code, or 128 + signal number */
    char *out;
    size_t out_len;
    char *err;
    size_t err_len;
};

/* Runs argv (argv[0] is a path or found on PATH) to its end. env: NULL or a NULL-ended list of
 * "NAME=VALUE" put before the test's own environment; cwd: NULL or a directory; input: NULL or text
 * for its standard input. */
void test_run(const char *const argv[], const char *const env[], const char *cwd, const char *input,
              struct test_run *out);
void test_run_fini(struct test_run *r); /* accepts zeroed */

/* git with these arguments (NULL-ended, without the program's name) in dir: a fixed identity and
 * date, nobody's configuration, submodules from files. */
void test_git(const char *dir, const char *const argv[]);
#define TEST_GIT(dir, ...) test_git((dir), (const char *const[]){__VA_ARGS__, NULL})

/* Names in a directory that end in `suffix` ("" for all), in byte order, without "." and "..";
 * *out_names is NULL-ended, freed with test_names_free. */
size_t test_list(const char *dir, const char *suffix, char ***out_names);
void test_names_free(char **names);

/* Small reproducible generator for property tests (splitmix64); the state is the seed. */
uint64_t test_random(uint64_t *state);
/* 0 ≤ result < n. */
size_t test_random_below(uint64_t *state, size_t n);
