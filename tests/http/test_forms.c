/* How an upload may be written: media type, digest and size at their edges, and what its answers
 * name and change. */
#include "tests/http/uploader.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

#define PROJECT "/api/v1/projects/" UPLOAD_PROJECT
#define RUNS PROJECT "/gates/" UPLOAD_GATE "/runs"
#define DSSE "Content-Type: application/vnd.dsse+json\r\n"

struct fixture {
    struct live live;
    struct uploads *uploads;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    live_init(&f->live);
    f->uploads = uploads_new(&f->live);
    live_start(&f->live, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    uploads_free(f->uploads);
    live_fini(&f->live);
    free(f);
    return 0;
}

static int send_body(const struct fixture *f, const char *method, const char *target,
                     const char *type, const void *body, size_t len)
{
    AUTO_FREE char *headers = NULL;
    struct raw_response a;
    int status = 0;

    assert_true(asprintf(&headers, "%s%s", uploads_authorization(f->uploads), type) > 0);
    raw_ask(f->live.port, method, target, headers, body, len, &a);
    status = a.status;
    raw_response_fini(&a);
    return status;
}

static void put(struct fixture *f, const struct package *p)
{
    struct raw_response a;

    upload_archive(&f->live, f->uploads, UPLOAD_PROJECT, p, &a);
    assert_int_equal(a.status, 201);
    raw_response_fini(&a);
}

static void the_media_type_is_read_as_http_says(void **state)
{
    static const struct {
        const char *type;
        int status;
    } rows[] = {
        {"Content-Type: application/vnd.dsse+jsonx\r\n", 415},
        {"Content-Type: application/json\r\n", 415},
        {"Content-Type: application/vnd.dsse+json; charset=utf-8\r\n", 201},
        {"Content-Type: application/vnd.dsse+json;charset=utf-8\r\n", 200},
        {"Content-Type: Application/VND.dsse+JSON\r\n", 200},
        {DSSE, 200},
    };
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 0, 0);

    put(f, p);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int status = send_body(f, "POST", RUNS, rows[i].type, p->envelope, p->envelope_len);

        if (status != rows[i].status)
            fail_msg("%s: %d", rows[i].type, status);
    }
}

/* ?archive= may say which archive is meant. */
static void a_digest_is_sha256_and_64_digits(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 1, 0);
    AUTO_FREE char *cut = strndup(p->hex, 63);
    const struct {
        const char *pattern;
        int status;
    } rows[] = {
        {RUNS "?archive={1}", 400},        {RUNS "?archive=sha512:{1}", 400},
        {RUNS "?archive=SHA256:{1}", 400}, {RUNS "?archive=sha256:{2}", 400},
        {RUNS "?archive=", 400},           {RUNS "?archive=sha256:{1}", 201},
    };
    const char *const blobs[] = {PROJECT "/blobs/{1}", PROJECT "/blobs/sha512:{1}",
                                 PROJECT "/blobs/SHA256:{1}", PROJECT "/blobs/sha256:{2}"};

    put(f, p);
    for (size_t i = 0; i < ARRAY_LEN(rows) + ARRAY_LEN(blobs); i++) {
        AUTO_FREE char *target = NULL;
        bool is_run = i < ARRAY_LEN(rows);
        int wanted = is_run ? rows[i].status : 400;
        int status = 0;

        target = test_fill(is_run ? rows[i].pattern : blobs[i - ARRAY_LEN(rows)], p->hex, cut);
        status = is_run ? send_body(f, "POST", target, DSSE, p->envelope, p->envelope_len)
                        : send_body(f, "PUT", target, "", p->archive, p->archive_len);
        if (status != wanted)
            fail_msg("%s: %d", target, status);
    }
}

/* As many bytes as are allowed are read and judged; one more is refused. */
static void the_largest_envelope_is_read(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *big = malloc(LIMIT_ENVELOPE + 1);

    assert_non_null(big);
    memset(big, ' ', LIMIT_ENVELOPE + 1);
    assert_int_equal(send_body(f, "POST", RUNS, DSSE, big, LIMIT_ENVELOPE), 422);
    assert_int_equal(send_body(f, "POST", RUNS, DSSE, big, LIMIT_ENVELOPE + 1), 413);
}

static void an_archive_is_found_where_its_answer_says(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 2, 0);
    AUTO_FREE char *location = NULL;
    AUTO_FREE char *path = NULL;
    struct raw_response a;

    upload_archive(&f->live, f->uploads, UPLOAD_PROJECT, p, &a);
    assert_int_equal(a.status, 201);
    location = raw_header(&a, "Location");
    assert_non_null(location);
    assert_true(asprintf(&path, PROJECT "/blobs/sha256:%s", p->hex) > 0);
    assert_true(strlen(location) > strlen(path));
    assert_string_equal(location + strlen(location) - strlen(path), path);
    assert_non_null(strstr(a.body, p->hex));
    raw_response_fini(&a);
}

/* What an upload changes is seen by whoever asks after its answer, whatever was kept before. */
static void an_answered_upload_is_seen_at_once(void **state)
{
    struct fixture *f = *state;
    static const char *const pages[] = {"/p/" UPLOAD_PROJECT "/" UPLOAD_GATE ".json",
                                        "/p/" UPLOAD_PROJECT "/commit/" PACKAGE_COMMIT ".json"};

    for (size_t i = 3; i < 9; i++) {
        const struct package *p = uploads_package(f->uploads, i, 0);

        put(f, p);
        for (size_t k = 0; k < ARRAY_LEN(pages); k++)
            for (int again = 0; again < 2; again++) {
                struct raw_response a;

                raw_ask(f->live.port, "GET", pages[k], NULL, NULL, 0, &a);
                assert_null(strstr(a.body, p->run));
                raw_response_fini(&a);
            }
        assert_int_equal(send_body(f, "POST", RUNS, DSSE, p->envelope, p->envelope_len), 201);
        for (size_t k = 0; k < ARRAY_LEN(pages); k++) {
            struct raw_response a;

            raw_ask(f->live.port, "GET", pages[k], NULL, NULL, 0, &a);
            assert_int_equal(a.status, 200);
            if (!strstr(a.body, p->run))
                fail_msg("%s does not show run %s: %.2000s", pages[k], p->run, a.body);
            raw_response_fini(&a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_media_type_is_read_as_http_says),
        cmocka_unit_test(a_digest_is_sha256_and_64_digits),
        cmocka_unit_test(the_largest_envelope_is_read),
        cmocka_unit_test(an_archive_is_found_where_its_answer_says),
        cmocka_unit_test(an_answered_upload_is_seen_at_once),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
