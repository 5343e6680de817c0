/* Who reaches what, and where: runs and baselines of a private project in every form, a run under
 * another project's address, and what each token sees on the first page. */
#include "tests/http/uploader.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define CLOSED "demo/closed"
#define TYPE "Content-Type: application/vnd.dsse+json\r\n"

/* An open and a private project, each with a run that is its baseline, and one more run. */
struct fixture {
    struct live live;
    struct uploads *uploads;
    struct private_key *key; /* of the private project's runner */
    struct package closed, closed_next;
    const struct package *open;
    char *mine, *stranger,
        *all; /* header lines: of the private project, of the open one, of both */
};

static char *token(struct live *l, const char *name, const char *scope, const char *project)
{
    const char *const argv[] = {
        "token", "add", name, "--scope", scope, project ? "--project" : NULL, project, NULL};
    char *secret = NULL;
    char *header = NULL;

    assert_int_equal(live_admin(l, argv, &secret), 0);
    secret[strcspn(secret, "\r\n")] = '\0';
    assert_true(asprintf(&header, "Authorization: Bearer %s\r\n", secret) > 0);
    free(secret);
    return header;
}

static void approve(struct live *l, const char *project, const char *run)
{
    const char *const argv[] = {"baseline",  "approve",    run, "--project", project, "--gate",
                                UPLOAD_GATE, "--reviewer", "r", "--reason",  "first", NULL};

    assert_int_equal(live_admin(l, argv, NULL), 0);
}

static void push(struct fixture *f, const char *project, const char *authorization,
                 const struct package *p)
{
    AUTO_FREE char *blob = NULL;
    AUTO_FREE char *runs = NULL;
    AUTO_FREE char *headers = NULL;
    struct raw_response a;

    assert_true(asprintf(&blob, "/api/v1/projects/%s/blobs/sha256:%s", project, p->hex) > 0);
    assert_true(asprintf(&runs, "/api/v1/projects/%s/gates/" UPLOAD_GATE "/runs", project) > 0);
    assert_true(asprintf(&headers, "%s" TYPE, authorization) > 0);
    raw_ask(f->live.port, "PUT", blob, authorization, p->archive, p->archive_len, &a);
    assert_int_equal(a.status, 201);
    raw_response_fini(&a);
    raw_ask(f->live.port, "POST", runs, headers, p->envelope, p->envelope_len, &a);
    assert_int_equal(a.status, 201);
    raw_response_fini(&a);
}

static struct private_key *add_closed(struct live *l)
{
    struct private_key *key = package_key_new();
    AUTO_FREE char *pem = package_key_pem(key);
    AUTO_FREE char *path = test_join(l->dir, "closed.pem");
    const char *const project[] = {"project", "add", CLOSED, "--private", NULL};
    const char *const runner[] = {"runner", "add", "closed",    "--class", PACKAGE_CLASS,
                                  "--key",  path,  "--project", CLOSED,    NULL};

    test_write_text(l->dir, "closed.pem", pem);
    assert_int_equal(live_admin(l, project, NULL), 0);
    assert_int_equal(live_admin(l, runner, NULL), 0);
    return key;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    AUTO_FREE char *upload = NULL;

    assert_non_null(f);
    live_init(&f->live);
    f->uploads = uploads_new(&f->live);
    f->key = add_closed(&f->live);
    f->mine = token(&f->live, "mine", "read", CLOSED);
    f->stranger = token(&f->live, "stranger", "upload", UPLOAD_PROJECT);
    f->all = token(&f->live, "all", "read", NULL);
    upload = token(&f->live, "send", "upload", CLOSED);
    live_start(&f->live, NULL);
    f->open = uploads_package(f->uploads, 0, 0);
    push(f, UPLOAD_PROJECT, uploads_authorization(f->uploads), f->open);
    approve(&f->live, UPLOAD_PROJECT, f->open->run);
    package_make(&(struct package_options){.project = CLOSED}, f->key, &f->closed);
    push(f, CLOSED, upload, &f->closed);
    approve(&f->live, CLOSED, f->closed.run);
    package_make(&(struct package_options){.project = CLOSED, .executable = 2}, f->key,
                 &f->closed_next);
    push(f, CLOSED, upload, &f->closed_next);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    package_free(&f->closed);
    package_free(&f->closed_next);
    private_key_free(f->key);
    uploads_free(f->uploads);
    live_fini(&f->live);
    free(f->mine);
    free(f->stranger);
    free(f->all);
    free(f);
    return 0;
}

static void ask(const struct fixture *f, const char *target, const char *headers, int status,
                struct raw_response *a)
{
    raw_ask(f->live.port, "GET", target, headers, NULL, 0, a);
    if (a->status != status)
        fail_msg("GET %s: %d, wanted %d: %.300s", target, a->status, status,
                 a->body ? a->body : "");
}

static void expect(const struct fixture *f, const char *target, const char *headers, int status)
{
    struct raw_response a;

    ask(f, target, headers, status, &a);
    raw_response_fini(&a);
}

static void a_run_is_found_under_its_own_project_only(void **state)
{
    static const char *const suffixes[] = {
        "",         "/verdict", "/verdict/attestation", "/attestation",
        "/archive", "/bundle",  "/files/manifest.json",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        AUTO_FREE char *own = NULL;
        AUTO_FREE char *other = NULL;
        AUTO_FREE char *none = NULL;

        assert_true(asprintf(&own, "/api/v1/projects/" UPLOAD_PROJECT "/runs/%s%s", f->open->run,
                             suffixes[i]) > 0);
        assert_true(asprintf(&other, "/api/v1/projects/" CLOSED "/runs/%s%s", f->open->run,
                             suffixes[i]) > 0);
        assert_true(
            asprintf(&none, "/api/v1/projects/demo/none/runs/%s%s", f->open->run, suffixes[i]) > 0);
        expect(f, own, NULL, 200);
        expect(f, other, NULL, 404);
        expect(f, other, f->all, 404);
        expect(f, none, NULL, 404);
    }
}

/* Everything of a private run: 404 to who may not see it, before and after somebody saw it; and
 * whoever sees it is told that the answer is his alone. */
static void private_runs_are_not_there(void **state)
{
    static const char *const forms[] = {
        "/r/{1}",
        "/r/{1}.json",
        "/r/{1}.txt",
        "/r/{1}/evidence.tar",
        "/r/{1}/f/manifest.json",
        "/r/{1}/vs/b-{2}",
        "/r/{1}/vs/b-{2}.json",
        "/r/{1}/vs/b-{2}.md",
        "/r/{1}/vs/{2}.txt",
        "/b/b-{2}",
        "/b/b-{2}.json",
        "/b/b-{2}/vs/b-{2}",
        "/p/" CLOSED "/" UPLOAD_GATE,
        "/p/" CLOSED "/" UPLOAD_GATE ".json",
        "/p/" CLOSED "/" UPLOAD_GATE "/baselines",
        "/p/" CLOSED "/commit/" PACKAGE_COMMIT,
        "/api/v1/projects/" CLOSED "/runs/{1}",
        "/api/v1/projects/" CLOSED "/runs/{1}/verdict",
        "/api/v1/projects/" CLOSED "/runs/{1}/verdict/attestation",
        "/api/v1/projects/" CLOSED "/runs/{1}/attestation",
        "/api/v1/projects/" CLOSED "/runs/{1}/archive",
        "/api/v1/projects/" CLOSED "/runs/{1}/bundle",
        "/api/v1/projects/" CLOSED "/runs/{1}/files/manifest.json",
        "/api/v1/projects/" CLOSED "/compare/{1}/b-{2}",
        "/api/v1/projects/" CLOSED "/gates/" UPLOAD_GATE "/baselines",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        AUTO_FREE char *target = NULL;
        AUTO_FREE char *caching = NULL;
        AUTO_FREE char *vary = NULL;
        struct raw_response a;

        target = test_fill(forms[i], f->closed_next.run, f->closed.run);
        expect(f, target, NULL, 404);
        expect(f, target, f->stranger, 404);
        expect(f, target, f->all, 200);
        ask(f, target, f->mine, 200, &a);
        caching = raw_header(&a, "Cache-Control");
        vary = raw_header(&a, "Vary");
        if (!caching || strncmp(caching, "private", 7) != 0 || !vary ||
            !strstr(vary, "Authorization"))
            fail_msg("%s: Cache-Control %s, Vary %s", target, caching ? caching : "-",
                     vary ? vary : "-");
        raw_response_fini(&a);
        expect(f, target, NULL, 404);
        expect(f, target, f->stranger, 404);
    }
}

/* An open run beside a private one: the private one is as absent as one that never was. */
static void a_comparison_needs_both_sides(void **state)
{
    static const char *const forms[] = {
        "/r/{1}/vs/b-{2}", "/r/{1}/vs/{2}",     "/r/{1}/vs/{2}.md",
        "/r/{2}/vs/{1}",   "/b/b-{1}/vs/b-{2}", "/b/b-{1}/vs/{2}",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        AUTO_FREE char *target = NULL;
        AUTO_FREE char *absent = NULL;
        struct raw_response a;

        target = test_fill(forms[i], f->open->run, f->closed.run);
        absent = test_fill(forms[i], f->open->run, "20261129T141502Z-9c1e07ab");
        ask(f, target, NULL, 404, &a);
        assert_null(strstr(a.body, f->closed.run + 17)); /* nor is it named */
        assert_null(strstr(a.body, "another project"));
        raw_response_fini(&a);
        expect(f, absent, NULL, 404);
        expect(f, target, f->stranger, 404);
    }
}

static void the_first_page_lists_what_its_reader_may_see(void **state)
{
    static const char *const targets[] = {"/index.json", "/index.txt", "/"};
    struct fixture *f = *state;
    const struct {
        const char *headers;
        bool closed;
    } rows[] = {
        {NULL, false}, {f->stranger, false}, {f->mine, true}, {f->all, true}, {NULL, false}};

    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
            AUTO_FREE char *caching = NULL;
            struct raw_response a;

            ask(f, targets[i], rows[k].headers, 200, &a);
            caching = raw_header(&a, "Cache-Control");
            assert_non_null(strstr(a.body, UPLOAD_PROJECT));
            if ((strstr(a.body, CLOSED) != NULL) != rows[k].closed)
                fail_msg("%s, row %zu: %.600s", targets[i], k, a.body);
            assert_string_equal(caching, rows[k].headers ? "private, no-cache" : "no-cache");
            raw_response_fini(&a);
        }
    }
}

/* Who may not see a project is not told by an upload that it is there. */
static void an_upload_to_a_private_project_finds_none(void **state)
{
    struct fixture *f = *state;
    static const char *const projects[] = {CLOSED, "demo/none"};
    AUTO_FREE char *headers = NULL;

    assert_true(asprintf(&headers, "%s" TYPE, f->stranger) > 0);
    for (size_t i = 0; i < ARRAY_LEN(projects); i++) {
        AUTO_FREE char *blob = NULL;
        AUTO_FREE char *runs = NULL;
        struct raw_response a;

        assert_true(
            asprintf(&blob, "/api/v1/projects/%s/blobs/sha256:%s", projects[i], f->open->hex) > 0);
        assert_true(asprintf(&runs, "/api/v1/projects/%s/gates/" UPLOAD_GATE "/runs", projects[i]) >
                    0);
        raw_ask(f->live.port, "PUT", blob, f->stranger, f->open->archive, f->open->archive_len, &a);
        assert_int_equal(a.status, 404);
        raw_response_fini(&a);
        raw_ask(f->live.port, "POST", runs, headers, f->open->envelope, f->open->envelope_len, &a);
        assert_int_equal(a.status, 404);
        raw_response_fini(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_found_under_its_own_project_only),
        cmocka_unit_test(private_runs_are_not_there),
        cmocka_unit_test(a_comparison_needs_both_sides),
        cmocka_unit_test(the_first_page_lists_what_its_reader_may_see),
        cmocka_unit_test(an_upload_to_a_private_project_finds_none),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
