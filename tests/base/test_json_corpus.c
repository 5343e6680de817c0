/*
 * The parsing corpus (data/corpora/json): y_ must be taken, n_ refused, i_ as the table below
 * decides; and the two parsers agree: whatever our automaton takes, cJSON reads, on every file and
 * on 100,000 mutations of them.
 */
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"

#define CORPUS "data/corpora/json"
#define MUTATIONS 100000

static const struct json_limits corpus_limits = {.max_bytes = LIMIT_MIB(4)};

struct file {
    char *name;
    char *bytes;
    size_t len;
};

struct corpus {
    struct file *files;
    size_t n;
};

/* RFC 8259 allows these; our profile does not, and says why. */
static const struct {
    const char *name;
    const char *code;
} refused_good[] = {
    {"y_object_duplicated_key.json", "json.duplicate"},
    {"y_object_duplicated_key_and_value.json", "json.duplicate"},
    {"y_object_escaped_null_in_key.json", "json.nul"},
    {"y_string_null_escape.json", "json.nul"},
};

/* Left free by the RFC; NULL means taken. */
static const struct {
    const char *name;
    const char *code;
} decided[] = {
    {"i_number_double_huge_neg_exp.json", NULL},
    {"i_number_huge_exp.json", "json.number"},
    {"i_number_neg_int_huge_exp.json", "json.number"},
    {"i_number_pos_double_huge_exp.json", "json.number"},
    {"i_number_real_neg_overflow.json", "json.number"},
    {"i_number_real_pos_overflow.json", "json.number"},
    {"i_number_real_underflow.json", NULL},
    {"i_number_too_big_neg_int.json", "json.integer"},
    {"i_number_too_big_pos_int.json", "json.integer"},
    {"i_number_very_big_negative_int.json", "json.integer"},
    {"i_object_key_lone_2nd_surrogate.json", "json.surrogate"},
    {"i_string_1st_surrogate_but_2nd_missing.json", "json.surrogate"},
    {"i_string_1st_valid_surrogate_2nd_invalid.json", "json.surrogate"},
    {"i_string_UTF-16LE_with_BOM.json", "json.syntax"},
    {"i_string_UTF-8_invalid_sequence.json", "json.utf8"},
    {"i_string_UTF8_surrogate_U+D800.json", "json.utf8"},
    {"i_string_incomplete_surrogate_and_escape_valid.json", "json.surrogate"},
    {"i_string_incomplete_surrogate_pair.json", "json.surrogate"},
    {"i_string_incomplete_surrogates_escape_valid.json", "json.surrogate"},
    {"i_string_invalid_lonely_surrogate.json", "json.surrogate"},
    {"i_string_invalid_surrogate.json", "json.surrogate"},
    {"i_string_invalid_utf-8.json", "json.utf8"},
    {"i_string_inverted_surrogates_U+1D11E.json", "json.surrogate"},
    {"i_string_iso_latin_1.json", "json.utf8"},
    {"i_string_lone_second_surrogate.json", "json.surrogate"},
    {"i_string_lone_utf8_continuation_byte.json", "json.utf8"},
    {"i_string_not_in_unicode_range.json", "json.utf8"},
    {"i_string_overlong_sequence_2_bytes.json", "json.utf8"},
    {"i_string_overlong_sequence_6_bytes.json", "json.utf8"},
    {"i_string_overlong_sequence_6_bytes_null.json", "json.utf8"},
    {"i_string_truncated-utf-8.json", "json.utf8"},
    {"i_string_utf16BE_no_BOM.json", "json.syntax"},
    {"i_string_utf16LE_no_BOM.json", "json.syntax"},
    {"i_structure_500_nested_arrays.json", "json.depth"},
    {"i_structure_UTF-8_BOM_empty_object.json", "json.syntax"},
};

static int load(void **state)
{
    static struct corpus corpus;
    char *dir = test_shared(CORPUS);
    char **names = NULL;

    *state = &corpus;
    if (!dir)
        return 0; /* every test skips */
    corpus.n = test_list(dir, ".json", &names);
    corpus.files = calloc(corpus.n, sizeof(*corpus.files));
    for (size_t i = 0; i < corpus.n; i++) {
        char *path = test_join(dir, names[i]);

        corpus.files[i].name = strdup(names[i]);
        corpus.files[i].bytes = test_read_path(path, &corpus.files[i].len);
        free(path);
    }
    test_names_free(names);
    free(dir);
    return 0;
}

static int unload(void **state)
{
    struct corpus *corpus = *state;

    for (size_t i = 0; i < corpus->n; i++) {
        free(corpus->files[i].name);
        free(corpus->files[i].bytes);
    }
    free(corpus->files);
    return 0;
}

static const struct corpus *loaded(void **state)
{
    const struct corpus *corpus = *state;

    if (corpus->n == 0)
        skip();
    return corpus;
}

/* code NULL: must be taken. */
static void assert_outcome(const struct file *f, const char *code)
{
    struct err e = ERR_INIT;
    AUTO_JSON cJSON *j = NULL;
    bool taken = json_parse(f->bytes, f->len, &corpus_limits, &j, &e) == 0;

    if (taken != (code == NULL))
        fail_msg("%s: %s", f->name, taken ? "taken" : e.text);
    if (code && code[0] != '\0' && strcmp(e.code, code) != 0)
        fail_msg("%s: refused as %s (%s), not %s", f->name, e.code, e.text, code);
}

static void good_files_are_taken(void **state)
{
    const struct corpus *corpus = loaded(state);
    size_t seen = 0;
    size_t exceptions = 0;

    for (size_t i = 0; i < corpus->n; i++) {
        const char *code = NULL;

        if (strncmp(corpus->files[i].name, "y_", 2) != 0)
            continue;
        seen++;
        for (size_t k = 0; k < ARRAY_LEN(refused_good); k++) {
            if (strcmp(corpus->files[i].name, refused_good[k].name) == 0)
                code = refused_good[k].code;
        }
        exceptions += code != NULL;
        assert_outcome(&corpus->files[i], code);
    }
    assert_int_equal(seen, 95);
    assert_int_equal(exceptions, ARRAY_LEN(refused_good));
}

static void bad_files_are_refused(void **state)
{
    const struct corpus *corpus = loaded(state);
    size_t seen = 0;

    for (size_t i = 0; i < corpus->n; i++) {
        if (strncmp(corpus->files[i].name, "n_", 2) != 0)
            continue;
        seen++;
        assert_outcome(&corpus->files[i], "");
    }
    assert_int_equal(seen, 188);
}

static void free_files_are_decided(void **state)
{
    const struct corpus *corpus = loaded(state);
    size_t seen = 0;

    for (size_t i = 0; i < corpus->n; i++) {
        const char *name = corpus->files[i].name;
        size_t k = 0;

        if (strncmp(name, "i_", 2) != 0)
            continue;
        while (k < ARRAY_LEN(decided) && strcmp(decided[k].name, name) != 0)
            k++;
        if (k == ARRAY_LEN(decided))
            fail_msg("%s is not decided", name);
        else
            assert_outcome(&corpus->files[i], decided[k].code);
        seen++;
    }
    assert_int_equal(seen, ARRAY_LEN(decided));
}

/* What the automaton takes cJSON reads to the end, and what we write of it is taken again and
 * equal. */
static bool agree(const char *bytes, size_t len)
{
    struct err e = ERR_INIT;
    AUTO_JSON cJSON *j = NULL;
    AUTO_JSON cJSON *again = NULL;
    AUTO_BUF struct buf text = {0};

    if (json_validate(bytes, len, &corpus_limits, &e) < 0)
        return false;
    if (json_parse(bytes, len, &corpus_limits, &j, &e) < 0)
        fail_msg("the automaton takes what cJSON does not: %.*s: %s", (int) len, bytes, e.text);
    buf_init(&text, LIMIT_MIB(16));
    json_write(&text, j, len % 2 == 0 ? JSON_COMPACT : JSON_PRETTY);
    if (buf_check(&text, &e) < 0 ||
        json_parse(text.data, text.len, &corpus_limits, &again, &e) < 0 || !json_equal(j, again))
        fail_msg("not the same when written: %.*s: %s", (int) len, bytes, e.text);
    return true;
}

static size_t mutate(uint64_t *seed, const struct corpus *corpus, char *out, size_t max)
{
    static const char spice[] = "{}[]\",:\\u0dDeE+-.19 \n\t/tfn\x00\x7f\x80\xc3\xed\xf4\xff";
    /* half of them from the good files, which sort last: small changes often leave those good */
    size_t good = corpus->n - 1 - test_random_below(seed, 95);
    size_t any = test_random_below(seed, corpus->n);
    const struct file *f = &corpus->files[test_random_below(seed, 2) == 0 ? good : any];
    size_t len = f->len < max / 2 ? f->len : max / 2;

    memcpy(out, f->bytes, len);
    for (size_t edits = 1 + test_random_below(seed, 3); edits > 0; edits--) {
        size_t at = len > 0 ? test_random_below(seed, len) : 0;
        char c = test_random_below(seed, 8) == 0
                     ? (char) test_random(seed)
                     : spice[test_random_below(seed, sizeof(spice) - 1)];

        switch (test_random_below(seed, 4)) {
        case 0: /* change */
            if (len > 0)
                out[at] = c;
            break;
        case 1: /* insert */
            memmove(out + at + 1, out + at, len - at);
            out[at] = c;
            len++;
            break;
        case 2: /* delete */
            if (len > 0) {
                memmove(out + at, out + at + 1, len - at - 1);
                len--;
            }
            break;
        default: /* splice the head of another file in */
        {
            const struct file *g = &corpus->files[test_random_below(seed, corpus->n)];
            size_t n = g->len < 64 ? g->len : 64;

            if (len + n > max)
                break;
            memmove(out + at + n, out + at, len - at);
            memcpy(out + at, g->bytes, n);
            len += n;
            break;
        }
        }
    }
    return len;
}

static void both_parsers_agree_on_files_and_mutations(void **state)
{
    const struct corpus *corpus = loaded(state);
    const size_t max = 4096;
    char *bytes = malloc(max);
    uint64_t seed = 20261129;
    size_t taken = 0;

    for (size_t i = 0; i < corpus->n; i++)
        (void) agree(corpus->files[i].bytes, corpus->files[i].len);
    for (size_t i = 0; i < MUTATIONS; i++) {
        size_t len = mutate(&seed, corpus, bytes, max);

        taken += agree(bytes, len);
    }
    free(bytes);
    /* enough of them are still JSON for the comparison to mean something */
    (void) printf("%zu of %d mutations are JSON\n", taken, MUTATIONS);
    assert_true(taken > 5000);
    assert_true(taken < MUTATIONS - 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_are_taken),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(free_files_are_decided),
        cmocka_unit_test(both_parsers_agree_on_files_and_mutations),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
