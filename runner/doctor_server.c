#include "runner/doctor_server.h"

#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "evidence/sign.h"
#include "runner/http.h"

struct row {
    const char *name, *state, *value, *text, *fix;
};

static int add_row(cJSON *rows, const struct row *r, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    cJSON *made;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "name", r->name);
    json_add_string(&d, NULL, "state", r->state);
    json_add_string(&d, NULL, "value", r->value);
    json_add_string(&d, NULL, "text", r->text);
    if (r->fix)
        json_add_string(&d, NULL, "fix", r->fix);
    made = json_doc_take(&d, e);
    if (!made)
        return -1;
    if (!cJSON_AddItemToArray(rows, made)) {
        json_free(made);
        return err_memory(e, "doctor.memory");
    }
    return 0;
}

/* ERR_* as the text of a row: that there is no answer is what was to be found out. */
static int ask_version(const struct push_target *t, struct err *why)
{
    AUTO_FREE char *url = push_url(t->server, "/version");
    AUTO_HTTP_REPLY struct http_reply reply = {.status = 0};

    if (!url)
        return err_set(why, ERR_USAGE, "doctor.url", "the server's address is too long");
    struct http_request q = {.method = "GET", .url = url, .file_fd = -1};

    if (http_do(&q, &reply, why) < 0)
        return -1;
    return reply.status == 200 ? 0
                               : err_set(why, ERR_USAGE, "doctor.server",
                                         "what is there answered %ld to /version", reply.status);
}

static int ask_key(const struct push_target *t, const char *path, struct err *why)
{
    AUTO_PRIVATE_KEY struct private_key *key = NULL;

    return private_key_load(path, &key, why) < 0
               ? -1
               : push_check_key(t, public_key_fingerprint(private_key_public(key)), NULL, why);
}

static int check_key(const struct push_target *t, const char *path, cJSON *rows, struct err *e)
{
    struct err why = ERR_INIT;
    struct row r = {.name = "key", .state = "warn", .value = path};

    if (!path) {
        r.text = "no key: whether the server knows it was not asked";
        r.fix = "--key FILE, the one that evidence will be signed with";
    } else if (ask_key(t, path, &why) < 0) {
        r.state = "bad";
        r.text = why.text;
        r.fix = "cleanrun-server runner list shows what is registered there";
    } else {
        r.state = "ok";
        r.text = "the server believes what it signs for this project";
    }
    return add_row(rows, &r, e);
}

static int check_upload(const struct push_target *t, const char *key, cJSON *rows, struct err *e)
{
    struct err why = ERR_INIT;
    struct row r = {.name = "upload", .state = "warn", .value = t->project};

    if (!t->token_file) {
        r.text = "no token: whether it may upload was not asked";
        r.fix = "--token-file FILE or CLEANRUN_TOKEN_FILE";
    } else if (!t->project) {
        r.text = "no project: whether the token may upload was not asked";
        r.fix = "--project OWNER/NAME, or call it where cleanrun.yaml is";
    } else if (push_check_server(t, &why) < 0) {
        r.state = "bad";
        r.text = why.text;
        r.fix = "cleanrun-server token add NAME --scope upload --project OWNER/NAME makes a token";
    } else {
        r.state = "ok";
        r.text = "the token may upload";
        if (add_row(rows, &r, e) < 0)
            return -1;
        return check_key(t, key, rows, e);
    }
    return add_row(rows, &r, e);
}

int doctor_server(const struct push_target *t, const char *key, cJSON *rows, struct err *e)
{
    struct err why = ERR_INIT;
    bool answers = ask_version(t, &why) == 0;
    const struct row r = {
        .name = "server",
        .state = answers ? "ok" : "bad",
        .value = t->server,
        .text = answers ? "answers" : why.text,
        .fix =
            answers ? NULL : "is it running, and is this its address (--server, CLEANRUN_SERVER)?",
    };

    if (add_row(rows, &r, e) < 0)
        return -1;
    return answers ? check_upload(t, key, rows, e) : 0;
}
