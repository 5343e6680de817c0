/* The badge of a gate: the newest verdict's word and colour, kept by nobody longer than it holds.
 */
#include "tests/http/uploader.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define BADGE "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE "/badge.svg"

static void badge_is(const struct live *l, const char *word, const char *colour)
{
    AUTO_FREE char *label = NULL;
    AUTO_FREE char *fill = NULL;
    struct raw_response a;

    assert_true(asprintf(&label, "aria-label=\"cleanrun: %s\"", word) > 0);
    assert_true(asprintf(&fill, "fill=\"%s\"/>", colour) > 0);
    raw_ask(l->port, "GET", BADGE, NULL, NULL, 0, &a);
    assert_int_equal(a.status, 200);
    if (!strstr(a.body, label) || !strstr(a.body, fill))
        fail_msg("wanted %s %s: %s", word, colour, a.body);
    raw_response_fini(&a);
}

static void push(struct live *l, const struct uploads *u, const struct package_options *o,
                 char run[32])
{
    struct package p;

    package_make(o, uploads_key(u), &p);
    upload_package(l, u, &p);
    (void) snprintf(run, 32, "%s", p.run);
    package_free(&p);
}

static void the_badge_is_the_newest_verdict(void **state)
{
    static const struct {
        struct package_options o;
        const char *word, *colour;
    } rows[] = {
        {{.commit = "1123456789abcdef0123456789abcdef01234567", .executable = 2}, "OK", "#0a6b32"},
        {{.commit = "2123456789abcdef0123456789abcdef01234567", .executable = 3, .probes = 2},
         "REGRESSION",
         "#b00020"},
        {{.commit = "3123456789abcdef0123456789abcdef01234567", .executable = 4, .rate = 10},
         "FAIL",
         "#b00020"},
        /* neither has a verdict */
        {{.commit = "4123456789abcdef0123456789abcdef01234567", .mode = "memory"},
         "FAIL",
         "#b00020"},
        {{.commit = "5123456789abcdef0123456789abcdef01234567", .build_only = true},
         "FAIL",
         "#b00020"},
        {{.commit = "6123456789abcdef0123456789abcdef01234567", .executable = 5}, "OK", "#0a6b32"},
        {{.commit = "7123456789abcdef0123456789abcdef01234567", .executable = 6, .capacity = 1},
         "NON_COMPARABLE",
         "#7a4700"},
    };
    struct uploads *u;
    struct live l;
    char run[32];

    (void) state;
    live_init(&l);
    u = uploads_new(&l);
    live_start(&l, NULL);
    badge_is(&l, "no data", "#57606a");
    push(&l, u, &(struct package_options){.executable = 1}, run);
    badge_is(&l, "NON_COMPARABLE", "#7a4700");
    upload_approve(&l, run);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        push(&l, u, &rows[i].o, run);
        badge_is(&l, rows[i].word, rows[i].colour);
    }
    uploads_free(u);
    live_fini(&l);
}

static void the_badge_is_asked_for_again(void **state)
{
    AUTO_FREE char *etag = NULL;
    AUTO_FREE char *caching = NULL;
    AUTO_FREE char *header = NULL;
    struct raw_response a;
    struct uploads *u;
    struct live l;

    (void) state;
    live_init(&l);
    u = uploads_new(&l);
    live_start(&l, NULL);
    raw_ask(l.port, "GET", BADGE, NULL, NULL, 0, &a);
    etag = raw_header(&a, "ETag");
    caching = raw_header(&a, "Cache-Control");
    raw_response_fini(&a);
    assert_string_equal(caching, "no-cache");
    assert_non_null(etag);
    assert_true(asprintf(&header, "If-None-Match: %s\r\n", etag) > 0);
    raw_ask(l.port, "GET", BADGE, header, NULL, 0, &a);
    assert_int_equal(a.status, 304);
    raw_response_fini(&a);
    raw_ask(l.port, "GET", "/p/" UPLOAD_PROJECT "/No.Gate/badge.svg", NULL, NULL, 0, &a);
    assert_int_equal(a.status, 404);
    raw_response_fini(&a);
    uploads_free(u);
    live_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_badge_is_the_newest_verdict),
        cmocka_unit_test(the_badge_is_asked_for_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
