/* The archive format: what our writer makes, what GNU tar makes of it, and every attack on the
 * reader. */
#include "tests/evidence/fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "evidence/ustar.h"

static struct fixture fx;
static char *good;
static size_t good_len;

static int set_up(void **state)
{
    (void) state;
    fixture_init(&fx);
    fixture_seal(&fx);
    good = fixture_archive(&fx, &good_len);
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    free(good);
    fixture_fini(&fx);
    return 0;
}

static struct archive_index *index_in_steps(const char *p, size_t len, size_t step)
{
    AUTO_VERIFY_STREAM struct verify_stream *s = verify_stream_new();
    struct archive_index *x = NULL;

    assert_non_null(s);
    for (size_t at = 0; at < len; at += step)
        verify_stream_feed(s, p + at, len - at < step ? len - at : step);
    MUST(verify_stream_finish(s, &x, E));
    return x;
}

static void same_files_give_same_bytes(void **state)
{
    AUTO_FREE char *again = NULL;
    size_t len = 0;

    (void) state;
    fixture_seal(&fx);
    again = fixture_archive(&fx, &len);
    assert_int_equal(len, good_len);
    assert_memory_equal(again, good, len);
}

static void gnu_tar_makes_the_same_bytes(void **state)
{
    const char *const argv[] = {
        "sh", "-c",
        "{ echo manifest.json; find . -type f ! -name manifest.json | cut -c3- | LC_ALL=C sort; } |"
        " tar --format=ustar --numeric-owner --owner=0 --group=0 --mtime=@0 --mode=0644 -b1"
        " --no-recursion -T- -cf -",
        NULL};
    struct test_run r = {0};

    (void) state;
    test_run(argv, NULL, fx.run, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.out_len, good_len);
    assert_memory_equal(r.out, good, good_len);
    test_run_fini(&r);
}

static void gnu_tar_reads_it(void **state)
{
    const char *const argv[] = {
        "sh", "-c", "mkdir out && tar -xf evidence.tar -C out && diff -r out run", NULL};
    struct test_run r = {0};

    (void) state;
    test_run(argv, NULL, fx.dir, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
}

static void stream_gives_the_same_index_for_every_chunking(void **state)
{
    static const size_t steps[] = {1, 7, 511, 512, 513, 65536, 1000000};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        AUTO_ARCHIVE_INDEX struct archive_index *x = index_in_steps(good, good_len, steps[i]);
        struct digest whole = digest_of(good, good_len);

        assert_null(x->problem);
        assert_int_equal(x->n, 15);
        assert_int_equal(x->size, good_len);
        assert_true(digest_equal(&x->digest, &whole));
        assert_string_equal(x->members[0].name, "manifest.json");
        for (size_t k = 0; k < x->n; k++) {
            const struct archive_member *m = &x->members[k];
            struct digest d = digest_of(good + m->offset, (size_t) m->size);

            assert_true(digest_equal(&m->digest, &d));
            assert_ptr_equal(archive_index_find(x, m->name), m);
        }
        assert_null(archive_index_find(x, "nothing"));
    }
}

/* One more member with a header of our choice, put where byte order wants it. */
static void with_member(struct buf *out, const char *header, const char *data, size_t len)
{
    static const char zeros[USTAR_BLOCK];
    AUTO_ARCHIVE_INDEX struct archive_index *x = index_in_steps(good, good_len, 4096);
    size_t at = good_len - USTAR_END;

    for (size_t i = x->n; i-- > 1;) {
        if (strcmp(header, x->members[i].name) < 0)
            at = (size_t) x->members[i].offset - USTAR_BLOCK;
    }
    buf_init(out, LIMIT_MIB(16));
    buf_put(out, good, at);
    buf_put(out, header, USTAR_BLOCK);
    buf_put(out, data, len);
    buf_put(out, zeros, ustar_padding(len));
    buf_put(out, good + at, good_len - at);
    MUST(buf_check(out, E));
}

static void fix_checksum(char *h)
{
    unsigned sum = 0;

    memset(h + 148, ' ', 8);
    for (size_t i = 0; i < USTAR_BLOCK; i++)
        sum += (unsigned char) h[i];
    (void) snprintf(h + 148, 8, "%06o", sum & 0777777u);
    h[155] = ' ';
}

static void refused_member(const char *label, const char *header, const char *data, size_t len,
                           const char *expect)
{
    AUTO_BUF struct buf tar = {.data = NULL};
    char detail[ERR_TEXT_MAX] = "";
    const char *code;

    with_member(&tar, header, data, len);
    code = fixture_judge_signed(&fx, tar.data, tar.len, detail);
    if (strcmp(code, "IN-ARCHIVE") != 0 || !strstr(detail, expect))
        fail_msg("%s: %s: %s (expected IN-ARCHIVE: …%s…)", label, code, detail, expect);
}

static void names_outside_the_grammar_are_refused(void **state)
{
    static const char *const names[] = {
        "../evil",
        "/tmp/evil",
        "./a.json",
        "b//c",
        "b/./c",
        "b/../c",
        "a\\b",
        "C:x",
        " a",
        "a b",
        "-a",
        ".a",
        "b/.c",
        "b/",
        "a\tb",
        "caf\xc3\xa9",
        "a\xff",
        "a\nb",
        "a/b/c/d/e/f/g/h/i",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char h[USTAR_BLOCK];

        ustar_header(h, names[i], 3);
        refused_member(names[i], h, "abc", 3, "name is not allowed");
    }
}

static void every_kind_but_regular_files_is_refused(void **state)
{
    static const struct {
        char type;
        const char *expect;
    } rows[] = {
        {'1', "hard link"},    {'2', "symbolic link"}, {'3', "character device"},
        {'4', "block device"}, {'5', "directory"},     {'6', "fifo"},
        {'7', "contiguous"},   {'x', "extension"},     {'g', "extension"},
        {'L', "extension"},    {'K', "extension"},     {'S', "extension"},
        {'A', "extension"},    {'\0', "old format"},   {'D', "extension"},
        {'V', "extension"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char h[USTAR_BLOCK];

        ustar_header(h, "evil", 0);
        h[156] = rows[i].type;
        if (rows[i].type == '1' || rows[i].type == '2')
            memcpy(h + 157, "/etc/passwd", 12);
        fix_checksum(h);
        refused_member(rows[i].expect, h, "", 0, rows[i].expect);
    }
}

struct tweak {
    const char *label;
    size_t at;
    const char *bytes;
    size_t len;
    const char *expect;
};

static void every_header_field_must_be_canonical(void **state)
{
    static const struct tweak rows[] = {
        {"setuid", 100, "0006755", 7, "mode"},
        {"mode without zero", 100, "644 \0\0\0", 7, "mode"},
        {"uid", 108, "0001750", 7, "uid"},
        {"gid", 116, "0001750", 7, "gid"},
        {"size with spaces", 124, "         3 ", 11, "size field"},
        {"size, no octal digit", 134, "8", 1, "size field"},
        {"size, a letter", 130, "a", 1, "size field"},
        {"size, base 256", 124, "\x80\0\0\0\0\0\0\0\0\0\0\3", 12, "size field"},
        {"size, no NUL", 135, " ", 1, "size field"},
        {"size beyond the limit", 124, "77777777777", 11, "limit"},
        {"mtime", 136, "14000000000", 11, "mtime"},
        {"link name", 157, "x", 1, "link name"},
        {"GNU magic", 257, "ustar  \0", 8, "magic"},
        {"version 01", 263, "01", 2, "magic"},
        {"old magic", 257, "\0\0\0\0\0\0\0\0", 8, "magic"},
        {"owner", 265, "root", 4, "owner"},
        {"group", 297, "root", 4, "group"},
        {"device", 329, "0000001", 7, "device major"},
        {"device minor", 337, "0000001", 7, "device minor"},
        {"prefix", 345, "etc", 3, "prefix"},
        {"bytes after the header", 500, "x", 1, "padding"},
        {"NUL inside the name", 5, "b", 1, "name is not canonical"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char h[USTAR_BLOCK];

        ustar_header(h, "evil", 3);
        memcpy(h + rows[i].at, rows[i].bytes, rows[i].len);
        fix_checksum(h);
        refused_member(rows[i].label, h, "abc", 3, rows[i].expect);
    }
}

static void a_wrong_checksum_is_refused(void **state)
{
    static const char *const sums[] = {"000000", " 11677", "11677 "};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
        char h[USTAR_BLOCK];

        ustar_header(h, "evil", 3);
        memcpy(h + 148, sums[i], 6);
        refused_member(sums[i], h, "abc", 3, "checksum");
    }
}

static void a_sparse_file_of_2_to_the_63_is_refused(void **state)
{
    static const char pax[] = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n37 "
                              "GNU.sparse.realsize=9223372036854775807\n";
    char h[USTAR_BLOCK];

    (void) state;
    ustar_header(h, "evil", sizeof pax - 1);
    h[156] = 'x';
    fix_checksum(h);
    refused_member("sparse", h, pax, sizeof pax - 1, "extension");
}

static void names_that_collide_are_refused(void **state)
{
    static const struct {
        const char *name;
        const char *expect;
    } rows[] = {
        {"build.log", "byte order"}, /* twice */
        {"Build.log", "differ only in case"},
        {"build.log/x", "also the directory"},
        {"BUILD.LOG/x", "also the directory"},
        {"samples", "also the directory"},
        {"manifest.json", "twice"},
        {"Manifest.json", "differ only in case"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char h[USTAR_BLOCK];

        ustar_header(h, rows[i].name, 1);
        refused_member(rows[i].name, h, "x", 1, rows[i].expect);
    }
}

static void refused_bytes(const char *label, const char *p, size_t len, const char *expect)
{
    char detail[ERR_TEXT_MAX] = "";
    const char *code = fixture_judge_signed(&fx, p, len, detail);

    if (strcmp(code, "IN-ARCHIVE") != 0 || !strstr(detail, expect))
        fail_msg("%s: %s: %s (expected IN-ARCHIVE: …%s…)", label, code, detail, expect);
}

static void archives_cut_off_anywhere_are_refused(void **state)
{
    (void) state;
    refused_bytes("nothing", "", 0, "empty");
    for (size_t len = USTAR_BLOCK; len < good_len; len += USTAR_BLOCK)
        refused_bytes("cut at a block", good, len, "cut off");
    refused_bytes("cut in a header", good, 100, "cut off");
    refused_bytes("cut in the end", good, good_len - 1, "cut off");
}

static void bytes_after_the_end_are_refused(void **state)
{
    AUTO_BUF struct buf b = {.data = NULL};
    static const char zeros[USTAR_BLOCK * 18];

    (void) state;
    buf_init(&b, LIMIT_MIB(16));
    buf_put(&b, good, good_len);
    buf_put(&b, zeros, sizeof zeros);
    refused_bytes("blocking factor 20", b.data, b.len, "bytes follow");
    refused_bytes("one zero byte", b.data, good_len + 1, "bytes follow");
    buf_clear(&b);
    buf_put(&b, good, good_len);
    buf_put(&b, good, good_len);
    refused_bytes("a second archive", b.data, b.len, "bytes follow");
    buf_clear(&b);
    buf_put(&b, good, good_len - USTAR_END);
    buf_put(&b, zeros, USTAR_BLOCK);
    buf_put(&b, good, good_len);
    refused_bytes("one zero block", b.data, b.len, "not followed by a second");
}

static void padding_must_be_zero(void **state)
{
    AUTO_ARCHIVE_INDEX struct archive_index *x = index_in_steps(good, good_len, 4096);
    AUTO_FREE char *copy = malloc(good_len);

    (void) state;
    assert_non_null(copy);
    memcpy(copy, good, good_len);
    copy[x->members[2].offset + x->members[2].size] = 'x';
    refused_bytes("padding", copy, good_len, "padding after a member");
}

static void members_out_of_order_are_refused(void **state)
{
    static const char end[USTAR_END];
    AUTO_ARCHIVE_INDEX struct archive_index *x = index_in_steps(good, good_len, 4096);
    AUTO_BUF struct buf b = {.data = NULL};
    size_t first = (size_t) x->members[1].offset - USTAR_BLOCK;
    size_t second = (size_t) x->members[2].offset - USTAR_BLOCK;
    size_t third = (size_t) x->members[3].offset - USTAR_BLOCK;

    (void) state;
    buf_init(&b, LIMIT_MIB(16));
    buf_put(&b, good, first);
    buf_put(&b, good + second, third - second);
    buf_put(&b, good + first, second - first);
    buf_put(&b, good + third, good_len - third);
    refused_bytes("swapped", b.data, b.len, "byte order");
    buf_clear(&b);
    buf_put(&b, good + first, good_len - first - USTAR_END);
    buf_put(&b, good, first);
    buf_put(&b, end, sizeof end);
    refused_bytes("manifest last", b.data, b.len, "not manifest.json");
    buf_clear(&b);
    buf_put(&b, good, first);
    buf_put(&b, good, good_len);
    refused_bytes("manifest twice at once", b.data, b.len, "is there twice");
}

static void ten_thousand_members_are_refused_early(void **state)
{
    AUTO_BUF struct buf b = {.data = NULL};
    AUTO_ARCHIVE_INDEX struct archive_index *x = NULL;
    static const char end[USTAR_END];

    (void) state;
    buf_init(&b, LIMIT_MIB(64));
    for (int i = 0; i < 10000; i++) {
        char h[USTAR_BLOCK];
        char name[32];

        (void) snprintf(name, sizeof name, i == 0 ? "manifest.json" : "samples/%05d", i);
        ustar_header(h, name, 0);
        buf_put(&b, h, sizeof h);
    }
    buf_put(&b, end, sizeof end);
    MUST(buf_check(&b, E));
    x = index_in_steps(b.data, b.len, 65536);
    assert_non_null(x->problem);
    assert_non_null(strstr(x->problem, "more than 4096 members"));
    assert_int_equal(x->n, 0);
    refused_bytes("10,000 members", b.data, b.len, "more than 4096 members");
}

static void other_formats_are_refused(void **state)
{
    static const char *const commands[] = {
        "gzip -nc evidence.tar",
        "cd run && tar --format=gnu -cf - manifest.json",
        "cd run && tar --format=pax -cf - manifest.json",
        "cd run && tar --format=v7 -cf - manifest.json",
        "cd run && tar --format=ustar -cf - manifest.json build.log",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        const char *const argv[] = {"sh", "-c", commands[i], NULL};
        struct test_run r = {0};

        test_run(argv, NULL, fx.dir, NULL, &r);
        assert_int_equal(r.code, 0);
        refused_bytes(commands[i], r.out, r.out_len, "");
        test_run_fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_files_give_same_bytes),
        cmocka_unit_test(gnu_tar_makes_the_same_bytes),
        cmocka_unit_test(gnu_tar_reads_it),
        cmocka_unit_test(stream_gives_the_same_index_for_every_chunking),
        cmocka_unit_test(names_outside_the_grammar_are_refused),
        cmocka_unit_test(every_kind_but_regular_files_is_refused),
        cmocka_unit_test(every_header_field_must_be_canonical),
        cmocka_unit_test(a_wrong_checksum_is_refused),
        cmocka_unit_test(a_sparse_file_of_2_to_the_63_is_refused),
        cmocka_unit_test(names_that_collide_are_refused),
        cmocka_unit_test(archives_cut_off_anywhere_are_refused),
        cmocka_unit_test(bytes_after_the_end_are_refused),
        cmocka_unit_test(padding_must_be_zero),
        cmocka_unit_test(members_out_of_order_are_refused),
        cmocka_unit_test(ten_thousand_members_are_refused_early),
        cmocka_unit_test(other_formats_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
