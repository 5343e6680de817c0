/*
 * The two steps of an upload and what they leave, against the real program: every status of the
 * table, idempotency, bad input, parallel uploads, a full disk, an orderly stop.
 */
#include "tests/http/uploader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json_in.h"
#include "base/text.h"

/* A sanitizer's shadow memory says nothing about the program's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

struct fixture {
    struct live live;
    struct uploads *uploads;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    static const char *const other[] = {"project", "add", "demo/other", NULL};

    assert_non_null(f);
    live_init(&f->live);
    f->uploads = uploads_new(&f->live);
    assert_int_equal(live_admin(&f->live, other, NULL), 0);
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

static void expect(const struct raw_response *a, int status, const char *what)
{
    if (a->status != status)
        fail_msg("%s: %d, wanted %d: %.400s", what, a->status, status, a->body ? a->body : "");
}

static void put(struct fixture *f, const struct package *p, int status)
{
    struct raw_response a;

    upload_archive(&f->live, f->uploads, UPLOAD_PROJECT, p, &a);
    expect(&a, status, "archive");
    raw_response_fini(&a);
}

static void post(struct fixture *f, const struct package *p, int status)
{
    struct raw_response a;

    upload_statement(&f->live, f->uploads, UPLOAD_PROJECT, UPLOAD_GATE, p, &a);
    expect(&a, status, "statement");
    raw_response_fini(&a);
}

static void get(struct fixture *f, const char *target, int status, struct raw_response *out)
{
    raw_ask(f->live.port, "GET", target, NULL, NULL, 0, out);
    expect(out, status, target);
}

static cJSON *parse(const struct raw_response *a)
{
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(a->body, a->body_len, NULL, &j, &e) < 0)
        fail_msg("%s: %.200s", e.text, a->body);
    return j;
}

static const char *text(const cJSON *j, const char *key)
{
    const char *value = cJSON_GetStringValue(json_get(j, key));

    return value ? value : "(absent)";
}

static void header_is(const struct raw_response *a, const char *name, const char *want)
{
    AUTO_FREE char *got = raw_header(a, name);

    if (!got || strcmp(got, want) != 0)
        fail_msg("%s is '%s', wanted '%s'", name, got ? got : "(absent)", want);
}

static void upload_is_judged_and_repeatable(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 0, 1000);
    struct raw_response first;
    struct raw_response a;
    AUTO_JSON cJSON *verdict = NULL;
    AUTO_FREE char *location = NULL;
    AUTO_FREE char *target = NULL;

    post(f, p, 404); /* the archive is not there yet */
    put(f, p, 201);
    put(f, p, 200);
    upload_statement(&f->live, f->uploads, UPLOAD_PROJECT, UPLOAD_GATE, p, &first);
    expect(&first, 201, "statement");
    verdict = parse(&first);
    assert_string_equal(text(verdict, "schema"), "cleanrun-verdict/1");
    assert_string_equal(text(verdict, "verdict"), "NON_COMPARABLE"); /* no baseline yet */
    assert_string_equal(text(verdict, "run"), p->run);
    location = raw_header(&first, "Location");
    assert_non_null(location);
    assert_non_null(strstr(location, p->run));
    upload_statement(&f->live, f->uploads, UPLOAD_PROJECT, UPLOAD_GATE, p, &a);
    expect(&a, 200, "statement again");
    assert_string_equal(a.body, first.body);
    raw_response_fini(&a);
    put(f, p, 200);

    assert_true(asprintf(&target, "/api/v1/projects/" UPLOAD_PROJECT "/runs/%s/verdict", p->run) >
                0);
    get(f, target, 200, &a);
    assert_string_equal(a.body, first.body);
    raw_response_fini(&a);
    raw_response_fini(&first);
}

static void archives_belong_to_one_project(void **state)
{
    static const char *const token[] = {"token", "add", "both", "--scope", "upload", NULL};
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 1, 1000);
    struct raw_response a;
    AUTO_FREE char *secret = NULL;
    AUTO_FREE char *headers = NULL;

    put(f, p, 201);
    assert_int_equal(live_admin(&f->live, token, &secret), 0);
    secret[strcspn(secret, "\r\n")] = '\0';
    assert_true(asprintf(&headers,
                         "Authorization: Bearer %s\r\nContent-Type: application/vnd.dsse+json\r\n",
                         secret) > 0);
    raw_ask(f->live.port, "POST", "/api/v1/projects/demo/other/gates/" UPLOAD_GATE "/runs", headers,
            p->envelope, p->envelope_len, &a);
    expect(&a, 404, "a digest stored elsewhere");
    raw_response_fini(&a);
    /* The token of one project does nothing in another. */
    upload_archive(&f->live, f->uploads, "demo/other", p, &a);
    expect(&a, 403, "another project's token");
    raw_response_fini(&a);
    upload_archive(&f->live, f->uploads, "demo/none", p, &a);
    expect(&a, 404, "no such project");
    raw_response_fini(&a);
}

/* docs/api.md: step two with another media type tells whether a token may upload, and keeps
 * nothing. */
static void may_upload_is_answered_without_an_upload(void **state)
{
    static const struct {
        const char *scope, *project, *target;
        int status;
    } rows[] = {
        {"upload", UPLOAD_PROJECT, UPLOAD_PROJECT "/gates/any/runs", 415},
        {"admin", UPLOAD_PROJECT, UPLOAD_PROJECT "/gates/any/runs", 415},
        {"read", UPLOAD_PROJECT, UPLOAD_PROJECT "/gates/any/runs", 403},
        {"review", UPLOAD_PROJECT, UPLOAD_PROJECT "/gates/any/runs", 403},
        {"upload", "demo/other", UPLOAD_PROJECT "/gates/any/runs", 403},
        {"upload", UPLOAD_PROJECT, "demo/none/gates/any/runs", 404},
    };
    struct fixture *f = *state;
    size_t objects = live_count(&f->live, "objects");
    struct raw_response a;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_FREE char *secret = NULL;
        AUTO_FREE char *headers = NULL;
        AUTO_FREE char *target = NULL;
        char name[16];

        snprintf(name, sizeof name, "may-%zu", i);
        const char *const token[] = {"token",     "add",           name, "--scope", rows[i].scope,
                                     "--project", rows[i].project, NULL};

        assert_int_equal(live_admin(&f->live, token, &secret), 0);
        secret[strcspn(secret, "\r\n")] = '\0';
        assert_true(asprintf(&headers, "Authorization: Bearer %s\r\nContent-Type: text/plain\r\n",
                             secret) > 0);
        assert_true(asprintf(&target, "/api/v1/projects/%s", rows[i].target) > 0);
        raw_ask(f->live.port, "POST", target, headers, "?", 1, &a);
        expect(&a, rows[i].status, name);
        raw_response_fini(&a);
    }
    raw_ask(f->live.port, "POST", "/api/v1/projects/" UPLOAD_PROJECT "/gates/any/runs",
            "Content-Type: text/plain\r\n", "?", 1, &a);
    expect(&a, 401, "no token");
    raw_response_fini(&a);
    assert_int_equal(live_count(&f->live, "objects"), objects);
}

static void step_one_refuses_what_it_must(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 2, 1000);
    const char *auth = uploads_authorization(f->uploads);
    size_t objects = live_count(&f->live, "objects");
    AUTO_FREE char *target = NULL;
    AUTO_FREE char *request = NULL;
    struct raw_response a;

    assert_true(asprintf(&target, "/api/v1/projects/" UPLOAD_PROJECT "/blobs/sha256:%s", p->hex) >
                0);
    raw_ask(f->live.port, "PUT", target, auth, p->archive, p->archive_len - 512, &a);
    expect(&a, 422, "other bytes");
    raw_response_fini(&a);
    raw_ask(f->live.port, "PUT", "/api/v1/projects/" UPLOAD_PROJECT "/blobs/sha256:xyz", auth,
            "abc", 3, &a);
    expect(&a, 400, "no digest");
    raw_response_fini(&a);
    raw_ask(f->live.port, "PUT", "/api/v1/projects/" UPLOAD_PROJECT "/blobs/md5:0123", auth, "abc",
            3, &a);
    expect(&a, 400, "another algorithm");
    raw_response_fini(&a);
    raw_ask(f->live.port, "PUT", target, auth, NULL, 0, &a);
    expect(&a, 411, "no length");
    raw_response_fini(&a);
    assert_true(asprintf(&request,
                         "PUT %s HTTP/1.1\r\nHost: localhost\r\n%sExpect: 100-continue\r\n"
                         "Content-Length: 2147483649\r\n\r\n",
                         target, auth) > 0);
    raw_request(f->live.port, request, &a);
    expect(&a, 413, "too large");
    raw_response_fini(&a);
    assert_int_equal(live_count(&f->live, "objects"), objects);
    assert_int_equal(live_count(&f->live, "spool"), 0);
}

static void step_two_refuses_what_it_must(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 3, 1000);
    const char *auth = uploads_authorization(f->uploads);
    const char *target = "/api/v1/projects/" UPLOAD_PROJECT "/gates/" UPLOAD_GATE "/runs";
    AUTO_FREE char *headers = NULL;
    AUTO_FREE char *big = calloc(1, 300000);
    struct raw_response a;

    put(f, p, 201);
    assert_true(asprintf(&headers, "%sContent-Type: application/vnd.dsse+json\r\n", auth) > 0);
    raw_ask(f->live.port, "POST", target, auth, p->envelope, p->envelope_len, &a);
    expect(&a, 415, "no media type");
    raw_response_fini(&a);
    raw_ask(f->live.port, "POST", target, headers, big, 300000, &a);
    expect(&a, 413, "envelope too big");
    raw_response_fini(&a);
    raw_ask(f->live.port, "POST", "/api/v1/projects/" UPLOAD_PROJECT "/gates/Bad.Gate/runs",
            headers, p->envelope, p->envelope_len, &a);
    expect(&a, 404, "no gate name");
    raw_response_fini(&a);
    raw_ask(f->live.port, "POST", target, headers, "{", 1, &a);
    assert_true(a.status == 422 || a.status == 400);
    raw_response_fini(&a);
    raw_ask(f->live.port, "GET", target, NULL, NULL, 0, &a);
    expect(&a, 405, "GET");
    header_is(&a, "Allow", "POST, OPTIONS");
    raw_response_fini(&a);
}

/* Sends a package whose evidence is broken: 422 with the reason, and the run does not exist. */
static void refused(struct fixture *f, const struct package *p, const char *code)
{
    struct raw_response a;
    AUTO_JSON cJSON *problem = NULL;
    const cJSON *reason = NULL;
    AUTO_FREE char *target = NULL;
    bool found = false;

    upload_archive(&f->live, f->uploads, UPLOAD_PROJECT, p, &a);
    assert_true(a.status == 201 || a.status == 200);
    raw_response_fini(&a);
    upload_statement(&f->live, f->uploads, UPLOAD_PROJECT, UPLOAD_GATE, p, &a);
    expect(&a, 422, code);
    header_is(&a, "Content-Type", "application/problem+json");
    problem = parse(&a);
    raw_response_fini(&a);
    assert_string_equal(text(problem, "verdict"), "INVALID");
    cJSON_ArrayForEach(reason, json_get(problem, "reasons")) {
        found = found || strcmp(text(reason, "code"), code) == 0;
    }
    if (!found)
        fail_msg("reason %s is missing", code);
    assert_true(asprintf(&target, "/r/%s.json", p->run) > 0);
    get(f, target, 404, &a);
    raw_response_fini(&a);
}

static void broken_evidence_is_invalid_with_its_reason(void **state)
{
    struct fixture *f = *state;
    struct private_key *stranger = package_key_new();
    const struct package_options honest = {.padding = 100};
    const struct package_options liar = {.rate = 10, .lie = PACKAGE_ACCEPTANCE_PASS};
    const struct package_options elsewhere = {.project = "demo/other"};
    struct package p;

    package_make(&honest, stranger, &p);
    refused(f, &p, "IN-KEY");
    package_free(&p);
    package_make(&liar, uploads_key(f->uploads), &p);
    refused(f, &p, "IN-ACCEPTANCE");
    package_free(&p);
    package_make(&elsewhere, uploads_key(f->uploads), &p);
    refused(f, &p, "IN-MANIFEST");
    package_free(&p);
    package_make(&honest, uploads_key(f->uploads), &p);
    p.envelope[p.envelope_len / 2] = p.envelope[p.envelope_len / 2] == 'A' ? 'B' : 'A';
    {
        struct raw_response a;

        put(f, &p, 201);
        upload_statement(&f->live, f->uploads, UPLOAD_PROJECT, UPLOAD_GATE, &p, &a);
        /* Which code depends on the byte; never a run. */
        assert_true(a.status == 422 || a.status == 404);
        raw_response_fini(&a);
    }
    package_free(&p);
    private_key_free(stranger);
}

static void run_id_with_another_archive_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    struct package_options o = {.padding = 100};
    struct package one;
    struct package two;
    struct raw_response a;
    AUTO_FREE char *target = NULL;

    package_make(&o, uploads_key(f->uploads), &one);
    o.run = one.run;
    o.padding = 101;
    package_make(&o, uploads_key(f->uploads), &two);
    put(f, &one, 201);
    post(f, &one, 201);
    put(f, &two, 201);
    post(f, &two, 409);
    post(f, &one, 200);
    assert_true(asprintf(&target, "/r/%s/evidence.tar", one.run) > 0);
    get(f, target, 200, &a);
    assert_int_equal(a.body_len, one.archive_len);
    assert_memory_equal(a.body, one.archive, one.archive_len);
    raw_response_fini(&a);
    package_free(&one);
    package_free(&two);
}

/* One download address: whole, range, revalidation, HEAD; its digest is the one it states. */
static void check_download(struct fixture *f, const char *target, const char *whole, size_t len)
{
    struct raw_response a;
    struct digest d = {.bytes = {0}};
    char hex[DIGEST_HEX_SIZE];
    char base64[48];
    AUTO_FREE char *repr = NULL;
    AUTO_FREE char *length = NULL;
    AUTO_FREE char *etag = NULL;
    AUTO_FREE char *want = NULL;
    AUTO_FREE char *condition = NULL;

    get(f, target, 200, &a);
    if (whole) {
        assert_int_equal(a.body_len, len);
        assert_memory_equal(a.body, whole, len);
    }
    d = digest_of(a.body, a.body_len);
    digest_hex(&d, hex);
    assert_true(asprintf(&want, "\"sha256-%s\"", hex) > 0);
    header_is(&a, "ETag", want);
    header_is(&a, "Accept-Ranges", "bytes");
    header_is(&a, "Cache-Control", "public, max-age=31536000, immutable");
    text_base64(d.bytes, DIGEST_SIZE, base64);
    assert_true(asprintf(&repr, "sha-256=:%s:", base64) > 0);
    assert_int_equal(raw_header_count(&a, "Repr-Digest"), 1);
    header_is(&a, "Repr-Digest", repr);
    len = a.body_len;
    assert_true(asprintf(&length, "%zu", len) > 0);
    etag = raw_header(&a, "ETag");
    assert_true(asprintf(&condition, "If-None-Match: %s\r\n", etag) > 0);
    {
        struct raw_response part;

        raw_ask(f->live.port, "GET", target, "Range: bytes=10-19\r\n", NULL, 0, &part);
        expect(&part, 206, target);
        assert_int_equal(part.body_len, 10);
        assert_memory_equal(part.body, a.body + 10, 10);
        header_is(&part, "ETag", etag);
        header_is(&part, "Repr-Digest", repr); /* of the whole, not of the part */
        raw_response_fini(&part);
        raw_ask(f->live.port, "GET", target, "Range: bytes=-5\r\n", NULL, 0, &part);
        expect(&part, 206, target);
        assert_memory_equal(part.body, a.body + len - 5, 5);
        raw_response_fini(&part);
        raw_ask(f->live.port, "GET", target, "Range: bytes=99999999-\r\n", NULL, 0, &part);
        expect(&part, 416, target);
        raw_response_fini(&part);
        raw_ask(f->live.port, "GET", target, condition, NULL, 0, &part);
        expect(&part, 304, target);
        header_is(&part, "ETag", etag);
        raw_response_fini(&part);
        raw_ask(f->live.port, "GET", target, "If-Match: \"sha256-0\"\r\n", NULL, 0, &part);
        expect(&part, 412, target);
        raw_response_fini(&part);
        raw_ask(f->live.port, "GET", target, "If-Range: \"sha256-0\"\r\nRange: bytes=0-1\r\n", NULL,
                0, &part);
        expect(&part, 200, target);
        assert_int_equal(part.body_len, len);
        raw_response_fini(&part);
        raw_ask(f->live.port, "HEAD", target, NULL, NULL, 0, &part);
        expect(&part, 200, target);
        header_is(&part, "ETag", etag);
        header_is(&part, "Content-Length", length);
        header_is(&part, "Repr-Digest", repr);
        assert_int_equal(part.body_len, 0);
        raw_response_fini(&part);
    }
    raw_response_fini(&a);
}

static void downloads_are_ranged_tagged_and_sandboxed(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 4, 200000);
    struct raw_response a;
    AUTO_FREE char *base = NULL;
    AUTO_FREE char *target = NULL;
    AUTO_FREE char *manifest = NULL;
    AUTO_FREE char *csp = NULL;
    size_t len = 0;
    static const char *const ends[] = {
        "/archive",      "/bundle", "/attestation", "/verdict/attestation", "/files/manifest.json",
        "/files/run.log"};
    size_t i = 0;

    put(f, p, 201);
    post(f, p, 201);
    target = test_join(p->run_dir, "manifest.json");
    manifest = test_read_path(target, &len);
    assert_true(asprintf(&base, "/api/v1/projects/" UPLOAD_PROJECT "/runs/%s", p->run) > 0);
    for (i = 0; i < ARRAY_LEN(ends); i++) {
        AUTO_FREE char *one = NULL;

        assert_true(asprintf(&one, "%s%s", base, ends[i]) > 0);
        if (i == 0)
            check_download(f, one, p->archive, p->archive_len);
        else if (i == 2)
            check_download(f, one, p->envelope, p->envelope_len);
        else if (i == 4)
            check_download(f, one, manifest, len);
        else
            check_download(f, one, NULL, 0);
    }
    free(target);
    assert_true(asprintf(&target, "/r/%s/evidence.tar", p->run) > 0);
    check_download(f, target, p->archive, p->archive_len);
    free(target);
    assert_true(asprintf(&target, "/r/%s/f/definition.json", p->run) > 0);
    check_download(f, target, NULL, 0);
    get(f, target, 200, &a);
    header_is(&a, "Content-Type", "text/plain; charset=utf-8");
    header_is(&a, "X-Content-Type-Options", "nosniff");
    csp = raw_header(&a, "Content-Security-Policy");
    assert_memory_equal(csp, "sandbox;", 8);
    raw_response_fini(&a);
    free(target);
    assert_true(asprintf(&target, "/r/%s/f/none.txt", p->run) > 0);
    get(f, target, 404, &a);
    raw_response_fini(&a);
    free(target);
    assert_true(asprintf(&target, "/r/%s/f/..%%2f..%%2fcleanrun.db", p->run) > 0);
    get(f, target, 400, &a);
    raw_response_fini(&a);
}

/* The Markdown is read in a forge: its links say where the pages are. */
static void links_are_whole(const struct fixture *f, const char *markdown, const char *run,
                            const char *base)
{
    AUTO_FREE char *want = NULL;

    assert_true(asprintf(&want,
                         "status: OK\n\n[this comparison](http://127.0.0.1:%u/r/%s/vs/b-%s) · "
                         "[the run](http://127.0.0.1:%u/r/%s) · "
                         "[the baseline](http://127.0.0.1:%u/b/b-%s)\n\n",
                         (unsigned) f->live.port, run, base, (unsigned) f->live.port, run,
                         (unsigned) f->live.port, base) > 0);
    if (!strstr(markdown, want))
        fail_msg("'%s' is not in:\n%s", want, markdown);
}

static void pages_of_a_run_answer_in_every_form(void **state)
{
    static const char *const forms[] = {"", ".json", ".txt"};
    struct fixture *f = *state;
    const struct package *base = uploads_package(f->uploads, 5, 1000);
    const struct package *p = uploads_package(f->uploads, 6, 1001);
    const char *const approve[] = {"baseline",     "approve",  base->run,   "--project",
                                   UPLOAD_PROJECT, "--gate",   UPLOAD_GATE, "--reviewer",
                                   "ann",          "--reason", "first",     NULL};
    struct raw_response a;
    size_t i = 0;

    put(f, base, 201);
    post(f, base, 201);
    assert_int_equal(live_admin(&f->live, approve, NULL), 0);
    put(f, p, 201);
    upload_statement(&f->live, f->uploads, UPLOAD_PROJECT, UPLOAD_GATE, p, &a);
    expect(&a, 201, "statement");
    {
        AUTO_JSON cJSON *verdict = parse(&a);

        assert_string_equal(text(verdict, "verdict"), "OK");
        assert_memory_equal(text(verdict, "baseline"), "b-", 2);
    }
    raw_response_fini(&a);
    for (i = 0; i < ARRAY_LEN(forms); i++) {
        AUTO_FREE char *targets[6] = {NULL};
        size_t k = 0;

        assert_true(asprintf(&targets[0], "/r/%s%s", p->run, forms[i]) > 0);
        assert_true(asprintf(&targets[1], "/r/%s/vs/b-%s%s", p->run, base->run, forms[i]) > 0);
        assert_true(asprintf(&targets[2], "/b/b-%s%s", base->run, forms[i]) > 0);
        assert_true(asprintf(&targets[3], "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE "%s", forms[i]) > 0);
        assert_true(asprintf(&targets[4], "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE "/baselines%s",
                             forms[i]) > 0);
        assert_true(asprintf(&targets[5], "/p/" UPLOAD_PROJECT "/commit/" PACKAGE_COMMIT "%s",
                             forms[i]) > 0);
        for (k = 0; k < ARRAY_LEN(targets); k++) {
            get(f, targets[k], 200, &a);
            assert_true(a.body_len > 50);
            raw_response_fini(&a);
            get(f, targets[k], 200, &a); /* from the cache: the same */
            raw_response_fini(&a);
            if (k > 0)
                free(targets[k]);
        }
    }
    {
        AUTO_FREE char *markdown = NULL;
        AUTO_FREE char *informational = NULL;

        assert_true(asprintf(&markdown, "/r/%s/vs/b-%s.md", p->run, base->run) > 0);
        get(f, markdown, 200, &a);
        header_is(&a, "Content-Type", "text/markdown; charset=utf-8");
        links_are_whole(f, a.body, p->run, base->run);
        raw_response_fini(&a);
        assert_true(asprintf(&informational, "/api/v1/projects/" UPLOAD_PROJECT "/compare/%s/%s",
                             p->run, base->run) > 0);
        get(f, informational, 200, &a);
        {
            AUTO_JSON cJSON *j = parse(&a);

            assert_true(cJSON_IsTrue(json_get(j, "informational")));
        }
        raw_response_fini(&a);
        get(f, "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE "/badge.svg", 200, &a);
        assert_non_null(strstr(a.body, "cleanrun: OK"));
        header_is(&a, "Cross-Origin-Resource-Policy", "cross-origin");
        raw_response_fini(&a);
    }
}

/* Every GET of the published description answers as it says, with real values for its parameters.
 */
/* Measured again until green: badge, text, Markdown and the answer say what stands. */
static void green_after_red_is_not_green(void **state)
{
    static const char commit[] = "abcdef0123456789abcdef0123456789abcdef01";
    static const char said[] = "OK, but an earlier run of this program was REGRESSION";
    static const char badge[] = "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE "/badge.svg";
    struct fixture *f = *state;
    const char *base = uploads_package(f->uploads, 5, 1000)->run; /* approved above */
    AUTO_FREE char *page = NULL;
    AUTO_FREE char *markdown = NULL;
    AUTO_JSON cJSON *answer = NULL;
    struct raw_response a;
    struct package red;
    struct package green;

    package_make(&(struct package_options){.commit = commit, .probes = 2, .executable = 2},
                 uploads_key(f->uploads), &red);
    package_make(&(struct package_options){.commit = commit, .executable = 3},
                 uploads_key(f->uploads), &green);
    put(f, &red, 201);
    post(f, &red, 201);
    put(f, &green, 201);
    upload_statement(&f->live, f->uploads, UPLOAD_PROJECT, UPLOAD_GATE, &green, &a);
    expect(&a, 201, "statement");
    answer = parse(&a);
    raw_response_fini(&a);
    assert_string_equal(text(answer, "verdict"), "OK");
    assert_string_equal(text(json_get(answer, "check"), "verdict"), "REGRESSION");
    get(f, badge, 200, &a);
    assert_non_null(strstr(a.body, "REGRESSION"));
    raw_response_fini(&a);
    assert_true(asprintf(&page, "/r/%s/vs/b-%s.txt", green.run, base) > 0);
    assert_true(asprintf(&markdown, "/r/%s/vs/b-%s.md", green.run, base) > 0);
    get(f, page, 200, &a);
    assert_non_null(strstr(a.body, said));
    assert_null(strstr(a.body, "Nothing to do"));
    raw_response_fini(&a);
    get(f, markdown, 200, &a);
    assert_non_null(strstr(a.body, "status: OK\n\ncheck: OK, but an earlier run"));
    raw_response_fini(&a);
    package_free(&red);
    package_free(&green);
}

static void openapi_describes_what_is_served(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 10, 1000);
    char baseline[40];
    char fingerprint[DIGEST_HEX_SIZE];
    const char *const values[][2] = {
        {"{owner}", "demo"},         {"{repository}", "kvcache"},   {"{run}", p->run},
        {"{other}", p->run},         {"{gate}", UPLOAD_GATE},       {"{sha}", PACKAGE_COMMIT},
        {"{path}", "manifest.json"}, {"{name}", "cleanrun-v1"},     {"{digest}", p->hex},
        {"{baseline}", baseline},    {"{otherBaseline}", baseline}, {"{code}", "NC-UNIT"},
        {"{slug}", "damaged"},       {"{asset}", "style.css"},      {"{fingerprint}", fingerprint},
    };
    const char *const approve[] = {"baseline",     "approve",  p->run,      "--project",
                                   UPLOAD_PROJECT, "--gate",   UPLOAD_GATE, "--reviewer",
                                   "ann",          "--reason", "first",     NULL};
    AUTO_JSON cJSON *description = NULL;
    const cJSON *path = NULL;
    struct raw_response a;
    size_t n = 0;

    (void) snprintf(baseline, sizeof baseline, "b-%s", p->run);
    digest_hex(public_key_fingerprint(private_key_public(uploads_key(f->uploads))), fingerprint);
    put(f, p, 201);
    post(f, p, 201);
    assert_int_equal(live_admin(&f->live, approve, NULL), 0);
    get(f, "/api/v1/openapi.json", 200, &a);
    description = parse(&a);
    raw_response_fini(&a);
    cJSON_ArrayForEach(path, json_get(description, "paths")) {
        const cJSON *operation = json_get(path, "get");
        AUTO_FREE char *target = strdup(path->string);
        AUTO_FREE char *type = NULL;
        size_t i = 0;

        for (i = 0; i < ARRAY_LEN(values); i++) {
            char *at = strstr(target, values[i][0]);
            char *filled = NULL;

            if (!at)
                continue;
            assert_true(asprintf(&filled, "%.*s%s%s", (int) (at - target), target, values[i][1],
                                 at + strlen(values[i][0])) > 0);
            free(target);
            target = filled;
        }
        if (strchr(target, '{'))
            fail_msg("%s: a parameter without a value here", path->string);
        raw_ask(f->live.port, "GET", target, NULL, NULL, 0, &a);
        expect(&a, operation ? 200 : 405, target);
        type = raw_header(&a, "Content-Type");
        if (operation) {
            const cJSON *content =
                json_get(json_get(json_get(operation, "responses"), "200"), "content");
            const cJSON *described = content->child;

            type[strcspn(type, ";")] = '\0';
            while (described && strcmp(described->string, type) != 0)
                described = described->next;
            /* a member's type depends on its name */
            if (!described && !strstr(target, "/files/"))
                fail_msg("%s: %s is not described", target, type);
        }
        raw_response_fini(&a);
        n++;
    }
    assert_true(n >= 35);
}

static void damage_on_the_disk_is_told_at_the_next_read(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 7, 5000);
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *page = NULL;
    AUTO_FREE char *archive = NULL;
    struct raw_response a;
    char byte = 0;
    int turn = 0;
    int fd = -1;

    put(f, p, 201);
    post(f, p, 201);
    assert_true(asprintf(&page, "/r/%s.json", p->run) > 0);
    assert_true(asprintf(&archive, "/r/%s/evidence.tar", p->run) > 0);
    assert_true(asprintf(&path, "%s/objects/%.2s/%s", f->live.data, p->hex, p->hex + 2) > 0);
    assert_int_equal(chmod(path, 0600), 0);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (turn = 0; turn < 4; turn++) { /* sound, damaged, sound, damaged */
        get(f, page, 200, &a);
        {
            AUTO_JSON cJSON *j = parse(&a);

            assert_int_equal(cJSON_IsTrue(json_get(json_get(j, "evidence"), "damaged")), turn % 2);
        }
        raw_response_fini(&a);
        get(f, archive, turn % 2 ? 500 : 200, &a);
        if (turn % 2) {
            assert_non_null(strstr(a.body, "damaged"));
            assert_true(a.body_len < p->archive_len);
        }
        raw_response_fini(&a);
        assert_int_equal(pread(fd, &byte, 1, 3000), 1);
        byte = (char) ~byte;
        assert_int_equal(pwrite(fd, &byte, 1, 3000), 1);
    }
    (void) close(fd);
    put(f, p, 200); /* the same bytes again make it sound */
    get(f, archive, 200, &a);
    raw_response_fini(&a);
}

static void interrupted_uploads_leave_nothing(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 8, 3000000);
    size_t objects = live_count(&f->live, "objects");
    AUTO_FREE char *request = NULL;
    struct raw r;
    int tries = 0;

    assert_true(asprintf(&request,
                         "PUT /api/v1/projects/" UPLOAD_PROJECT
                         "/blobs/sha256:%s HTTP/1.1\r\nHost: h\r\n%sContent-Length: "
                         "%zu\r\n\r\n",
                         p->hex, uploads_authorization(f->uploads), p->archive_len) > 0);
    raw_open(&r, f->live.port);
    assert_true(raw_puts(&r, request));
    assert_true(raw_send(&r, p->archive, p->archive_len / 2));
    while (live_count(&f->live, "spool") == 0 && tries++ < 500)
        usleep(10000);
    assert_int_equal(live_count(&f->live, "spool"), 1);
    raw_close(&r);
    for (tries = 0; live_count(&f->live, "spool") > 0 && tries < 2500; tries++)
        usleep(10000);
    assert_int_equal(live_count(&f->live, "spool"), 0);
    assert_int_equal(live_count(&f->live, "objects"), objects);
}

struct parallel {
    struct fixture *fixture;
    const struct package *package;
    int put_status, post_status;
};

static void *upload_one(void *cls)
{
    struct parallel *p = cls;
    struct raw_response a;

    upload_archive(&p->fixture->live, p->fixture->uploads, UPLOAD_PROJECT, p->package, &a);
    p->put_status = a.status;
    raw_response_fini(&a);
    upload_statement(&p->fixture->live, p->fixture->uploads, UPLOAD_PROJECT, UPLOAD_GATE,
                     p->package, &a);
    p->post_status = a.status;
    raw_response_fini(&a);
    return NULL;
}

static void fifty_parallel_uploads_all_succeed(void **state)
{
    struct fixture *f = *state;
    struct parallel p[50];
    pthread_t threads[ARRAY_LEN(p)];
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(p); i++) /* ten of them are sent twice at once */
        p[i] = (struct parallel){.fixture = f,
                                 .package = uploads_package(f->uploads, 20 + i % 40, 50000)};
    for (i = 0; i < ARRAY_LEN(p); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, upload_one, &p[i]), 0);
    for (i = 0; i < ARRAY_LEN(p); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (i = 0; i < ARRAY_LEN(p); i++) {
        if ((p[i].put_status != 201 && p[i].put_status != 200) ||
            (p[i].post_status != 201 && p[i].post_status != 200))
            fail_msg("upload %zu: %d, %d", i, p[i].put_status, p[i].post_status);
    }
    assert_int_equal(live_count(&f->live, "spool"), 0);
}

static void *put_only(void *cls)
{
    struct parallel *p = cls;
    struct raw_response a;

    upload_archive(&p->fixture->live, p->fixture->uploads, UPLOAD_PROJECT, p->package, &a);
    p->put_status = a.status;
    raw_response_fini(&a);
    return NULL;
}

/* Large archives are hashed by threads of their own, of which there are fewer than uploads here. */
static void large_archives_are_taken_and_false_ones_refused(void **state)
{
    struct fixture *f = *state;
    const struct package *sound = uploads_package(f->uploads, 11, (size_t) 20 << 20);
    struct package altered = *sound;
    struct parallel p[8];
    pthread_t threads[ARRAY_LEN(p)];
    size_t i = 0;

    altered.archive = malloc(sound->archive_len);
    assert_non_null(altered.archive);
    memcpy(altered.archive, sound->archive, sound->archive_len);
    altered.archive[sound->archive_len - 2000] ^= 1;
    for (i = 0; i < ARRAY_LEN(p); i++) {
        p[i] = (struct parallel){.fixture = f, .package = i % 2 ? &altered : sound};
        assert_int_equal(pthread_create(&threads[i], NULL, put_only, &p[i]), 0);
    }
    for (i = 0; i < ARRAY_LEN(p); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (i = 0; i < ARRAY_LEN(p); i++) {
        if (i % 2 ? p[i].put_status != 422 : p[i].put_status != 201 && p[i].put_status != 200)
            fail_msg("upload %zu: %d", i, p[i].put_status);
    }
    post(f, sound, 201);
    assert_int_equal(live_count(&f->live, "spool"), 0);
    free(altered.archive);
}

/* 200 open uploads that trickle: memory stays bounded, and readers are still served. */
static void memory_is_bounded_under_200_uploads(void **state)
{
    struct fixture *f = *state;
    const struct package *p = uploads_package(f->uploads, 9, 3000000);
    AUTO_FREE char *request = NULL;
    static struct raw r[200];
    struct raw_response a;
    size_t at = 0;
    size_t i = 0;

    assert_true(asprintf(&request,
                         "PUT /api/v1/projects/" UPLOAD_PROJECT
                         "/blobs/sha256:%s HTTP/1.1\r\nHost: h\r\n%sContent-Length: "
                         "%zu\r\n\r\n",
                         p->hex, uploads_authorization(f->uploads), p->archive_len) > 0);
    for (i = 0; i < ARRAY_LEN(r); i++) {
        raw_open(&r[i], f->live.port);
        assert_true(raw_puts(&r[i], request));
    }
    for (at = 0; at < p->archive_len; at += 262144) {
        size_t n = p->archive_len - at < 262144 ? p->archive_len - at : 262144;

        for (i = 0; i < ARRAY_LEN(r); i++)
            assert_true(raw_send(&r[i], p->archive + at, n));
    }
    get(f, "/healthz", 200, &a);
    raw_response_fini(&a);
    for (i = 0; i < ARRAY_LEN(r); i++) {
        raw_read(&r[i], false, 60000, &a);
        if (a.status != 201 && a.status != 200)
            fail_msg("upload %zu: %d", i, a.status);
        raw_response_fini(&a);
        raw_close(&r[i]);
    }
    print_message("resident: %lu KiB, at most %lu KiB\n", live_rss_kib(&f->live, false),
                  live_rss_kib(&f->live, true));
    /* 512 connections of 128 KiB, cache, job: far below what 200 archives of 3 MB would need. */
    if (!SANITIZED)
        assert_true(live_rss_kib(&f->live, true) < 192 * 1024);
}

/* Takes every free byte below a folder. */
static void fill(const char *dir)
{
    AUTO_FREE char *path = test_join(dir, "filler");
    static const char zeros[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    (void) close(fd);
}

static void unfill(const char *dir)
{
    AUTO_FREE char *path = test_join(dir, "filler");

    assert_int_equal(unlink(path), 0);
}

static void full_disk_is_told_and_nothing_is_left(void **state)
{
    struct live l;
    struct fixture f;
    const struct package *p = NULL;
    char *mount_point = test_dir_new();
    AUTO_FREE char *data = test_join(mount_point, "data");
    AUTO_FREE char *page = NULL;
    struct raw_response a;

    (void) state;
    /* In a mount table of its own, which goes with the process. */
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", mount_point, "tmpfs", 0, "size=6m") < 0) {
        print_message("SKIPPED: a small tmpfs cannot be mounted: %s\n", strerrordesc_np(errno));
        test_dir_free(mount_point);
        skip();
    }
    live_init_at(&l, data);
    f.uploads = uploads_new(&l);
    live_start(&l, NULL);
    f.live = l;
    p = uploads_package(f.uploads, 0, 20000000);
    upload_archive(&l, f.uploads, UPLOAD_PROJECT, p, &a);
    expect(&a, 507, "larger than the disk");
    raw_response_fini(&a);
    get(&f, "/readyz", 503, &a); /* little room is told before it is none */
    assert_non_null(strstr(a.body, "\"disk\""));
    raw_response_fini(&a);
    assert_int_equal(live_count(&l, "spool"), 0);
    assert_int_equal(live_count(&l, "objects"), 0);
    p = uploads_package(f.uploads, 1, 1000); /* a small one still fits */
    put(&f, p, 201);
    fill(mount_point);
    post(&f, p, 507); /* no room for the transaction: nothing of the run is there */
    assert_true(asprintf(&page, "/r/%s", p->run) > 0);
    get(&f, page, 404, &a);
    raw_response_fini(&a);
    unfill(mount_point);
    post(&f, p, 201);
    get(&f, page, 200, &a);
    raw_response_fini(&a);
    assert_int_equal(live_stop(&l), 0);
    uploads_free(f.uploads);
    live_fini(&l);
    assert_int_equal(umount2(mount_point, MNT_DETACH), 0);
    test_dir_free(mount_point);
}

/* SIGTERM in the middle of an upload: it is answered, then the server ends with 0 and the run is
 * there. */
static void stop_answers_what_is_under_way(void **state)
{
    struct live l;
    struct uploads *u = NULL;
    const struct package *p = NULL;
    struct raw r;
    struct raw late;
    struct raw_response a;
    AUTO_FREE char *request = NULL;
    int status = 0;

    (void) state;
    live_init(&l);
    u = uploads_new(&l);
    live_start(&l, NULL);
    p = uploads_package(u, 0, 500000);
    assert_true(asprintf(&request,
                         "PUT /api/v1/projects/" UPLOAD_PROJECT
                         "/blobs/sha256:%s HTTP/1.1\r\nHost: h\r\n%sContent-Length: "
                         "%zu\r\n\r\n",
                         p->hex, uploads_authorization(u), p->archive_len) > 0);
    raw_open(&late, l.port); /* idle: must not hold up the end */
    raw_open(&r, l.port);
    assert_true(raw_puts(&r, request));
    assert_true(raw_send(&r, p->archive, p->archive_len / 2));
    while (live_count(&l, "spool") == 0)
        usleep(5000);
    assert_int_equal(kill(l.pid, SIGTERM), 0);
    usleep(200000); /* not for order: to let it begin to stop */
    assert_true(raw_send(&r, p->archive + p->archive_len / 2, p->archive_len - p->archive_len / 2));
    raw_read(&r, false, 20000, &a);
    expect(&a, 201, "upload during the stop");
    raw_response_fini(&a);
    raw_close(&r);
    assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
    l.pid = 0;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    raw_close(&late);
    live_start(&l, NULL);
    upload_statement(&l, u, UPLOAD_PROJECT, UPLOAD_GATE, p, &a);
    expect(&a, 201, "statement after the restart");
    raw_response_fini(&a);
    assert_int_equal(live_stop(&l), 0);
    uploads_free(u);
    live_fini(&l);
}

static void idle_server_is_small(void **state)
{
    struct live l;

    (void) state;
    live_init(&l);
    live_start(&l, NULL);
    print_message("idle: %lu KiB\n", live_rss_kib(&l, false));
    if (!SANITIZED)
        assert_true(live_rss_kib(&l, false) < 64 * 1024);
    assert_int_equal(live_stop(&l), 0);
    live_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(upload_is_judged_and_repeatable),
        cmocka_unit_test(archives_belong_to_one_project),
        cmocka_unit_test(may_upload_is_answered_without_an_upload),
        cmocka_unit_test(step_one_refuses_what_it_must),
        cmocka_unit_test(step_two_refuses_what_it_must),
        cmocka_unit_test(broken_evidence_is_invalid_with_its_reason),
        cmocka_unit_test(run_id_with_another_archive_is_a_conflict),
        cmocka_unit_test(downloads_are_ranged_tagged_and_sandboxed),
        cmocka_unit_test(pages_of_a_run_answer_in_every_form),
        cmocka_unit_test(green_after_red_is_not_green),
        cmocka_unit_test(openapi_describes_what_is_served),
        cmocka_unit_test(damage_on_the_disk_is_told_at_the_next_read),
        cmocka_unit_test(interrupted_uploads_leave_nothing),
        cmocka_unit_test(fifty_parallel_uploads_all_succeed),
        cmocka_unit_test(large_archives_are_taken_and_false_ones_refused),
        cmocka_unit_test(memory_is_bounded_under_200_uploads),
        cmocka_unit_test(full_disk_is_told_and_nothing_is_left),
        cmocka_unit_test(stop_answers_what_is_under_way),
        cmocka_unit_test(idle_server_is_small),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
