#include "tests/http/uploader.h"

#include <string.h>

#include "base/cleanup.h"

#define PACKAGES_MAX 512

struct uploads {
    struct private_key *key;
    char *authorization;
    struct package *packages[PACKAGES_MAX];
};

struct uploads *uploads_new(struct live *l)
{
    struct uploads *u = calloc(1, sizeof *u);
    char *pem_path = test_join(l->dir, "pub.pem");
    const char *const project[] = {"project", "add", UPLOAD_PROJECT, NULL};
    const char *const runner[] = {"runner", "add",    "machine",   "--class",      PACKAGE_CLASS,
                                  "--key",  pem_path, "--project", UPLOAD_PROJECT, NULL};
    const char *const token[] = {"token",  "add",       "uploader",     "--scope",
                                 "upload", "--project", UPLOAD_PROJECT, NULL};
    char *secret = NULL;
    char *pem = NULL;

    assert_non_null(u);
    u->key = package_key_new();
    pem = package_key_pem(u->key);
    test_write_text(l->dir, "pub.pem", pem);
    assert_int_equal(live_admin(l, project, NULL), 0);
    assert_int_equal(live_admin(l, runner, NULL), 0);
    assert_int_equal(live_admin(l, token, &secret), 0);
    secret[strcspn(secret, "\r\n")] = '\0';
    assert_true(asprintf(&u->authorization, "Authorization: Bearer %s\r\n", secret) > 0);
    free(secret);
    free(pem);
    free(pem_path);
    return u;
}

void uploads_free(struct uploads *u)
{
    size_t i = 0;

    if (!u)
        return;
    for (i = 0; i < PACKAGES_MAX; i++) {
        if (u->packages[i])
            package_free(u->packages[i]);
        free(u->packages[i]);
    }
    private_key_free(u->key);
    free(u->authorization);
    free(u);
}

const char *uploads_authorization(const struct uploads *u)
{
    return u->authorization;
}

const struct private_key *uploads_key(const struct uploads *u)
{
    return u->key;
}

const struct package *uploads_package(struct uploads *u, size_t i, size_t padding)
{
    const struct package_options o = {.padding = padding};

    assert_true(i < PACKAGES_MAX);
    if (!u->packages[i]) {
        u->packages[i] = calloc(1, sizeof *u->packages[i]);
        assert_non_null(u->packages[i]);
        package_make(&o, u->key, u->packages[i]);
    }
    return u->packages[i];
}

static char *archive_target(const char *project, const struct package *p)
{
    char *target = NULL;

    assert_true(asprintf(&target, "/api/v1/projects/%s/blobs/sha256:%s", project, p->hex) > 0);
    return target;
}

static char *statement_target(const char *project, const char *gate)
{
    char *target = NULL;

    assert_true(asprintf(&target, "/api/v1/projects/%s/gates/%s/runs", project, gate) > 0);
    return target;
}

static bool send_request(struct raw *r, const struct uploads *u, const char *method,
                         const char *target, const char *type, const char *body, size_t len)
{
    char *head = NULL;
    bool sent = false;

    assert_true(asprintf(&head,
                         "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: "
                         "%s\r\nContent-Length: %zu\r\n\r\n",
                         method, target, u->authorization, type, len) > 0);
    sent = raw_puts(r, head) && raw_send(r, body, len);
    free(head);
    return sent;
}

bool upload_send_archive(struct raw *r, const struct uploads *u, const struct package *p)
{
    AUTO_FREE char *target = archive_target(UPLOAD_PROJECT, p);

    return send_request(r, u, "PUT", target, "application/x-tar", p->archive, p->archive_len);
}

bool upload_send_statement(struct raw *r, const struct uploads *u, const struct package *p)
{
    AUTO_FREE char *target = statement_target(UPLOAD_PROJECT, UPLOAD_GATE);

    return send_request(r, u, "POST", target, "application/vnd.dsse+json", p->envelope,
                        p->envelope_len);
}

void upload_archive(struct live *l, const struct uploads *u, const char *project,
                    const struct package *p, struct raw_response *out)
{
    AUTO_FREE char *target = archive_target(project, p);

    raw_ask(l->port, "PUT", target, u->authorization, p->archive, p->archive_len, out);
}

void upload_statement(struct live *l, const struct uploads *u, const char *project,
                      const char *gate, const struct package *p, struct raw_response *out)
{
    AUTO_FREE char *target = statement_target(project, gate);
    AUTO_FREE char *headers = NULL;

    assert_true(
        asprintf(&headers, "%sContent-Type: application/vnd.dsse+json\r\n", u->authorization) > 0);
    raw_ask(l->port, "POST", target, headers, p->envelope, p->envelope_len, out);
}

void upload_package(struct live *l, const struct uploads *u, const struct package *p)
{
    struct raw_response r;

    upload_archive(l, u, UPLOAD_PROJECT, p, &r);
    assert_int_equal(r.status, 201);
    raw_response_fini(&r);
    upload_statement(l, u, UPLOAD_PROJECT, UPLOAD_GATE, p, &r);
    assert_int_equal(r.status, 201);
    raw_response_fini(&r);
}

void upload_approve(struct live *l, const char *run)
{
    const char *const argv[] = {"baseline", "approve",   run,          "--project", UPLOAD_PROJECT,
                                "--gate",   UPLOAD_GATE, "--reviewer", "r",         "--reason",
                                "first",    NULL};

    assert_int_equal(live_admin(l, argv, NULL), 0);
}
