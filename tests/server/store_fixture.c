#include "tests/server/store_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "experiment/pointer.h"

#define PIECE 4099

static void open_store(struct store_fixture *f)
{
    struct store_project p;

    MUST(store_open(f->data, STORE_SERVE, 4, &f->store, E));
    MUST(store_set_base_url(f->store, "https://perf.example", E));
    if (f->project_id == 0)
        MUST(manage_project_add(f->store, PACKAGE_PROJECT, false, E));
    MUST(store_project_get(f->store, PACKAGE_PROJECT, &p, E));
    f->project_id = p.id;
}

int store_fixture_setup(void **state)
{
    struct store_fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->dir = test_dir_new();
    f->data = test_join(f->dir, "data");
    open_store(f);
    f->key = store_fixture_runner(f, "metal-01", PACKAGE_CLASS, PACKAGE_PROJECT);
    *state = f;
    return 0;
}

int store_fixture_teardown(void **state)
{
    struct store_fixture *f = *state;

    store_close(f->store);
    private_key_free(f->key);
    test_dir_free(f->dir);
    free(f->data);
    free(f);
    return 0;
}

void store_fixture_reopen(struct store_fixture *f)
{
    store_close(f->store);
    f->store = NULL;
    open_store(f);
}

struct private_key *store_fixture_runner(struct store_fixture *f, const char *name,
                                         const char *machine_class, const char *project)
{
    struct private_key *key = package_key_new();
    AUTO_FREE char *pem = package_key_pem(key);
    const struct manage_runner r = {
        .name = name, .machine_class = machine_class, .project = project, .key_pem = pem};

    MUST(manage_runner_add(f->store, &r, E));
    return key;
}

bool store_fixture_put(struct store_fixture *f, const char *archive, size_t len)
{
    struct digest digest = digest_of(archive, len);
    struct spool *sp = NULL;
    bool is_new = false;

    MUST(spool_open(f->store, f->project_id, &digest, len, &sp, E));
    for (size_t at = 0; at < len; at += PIECE)
        MUST(spool_write(sp, archive + at, len - at < PIECE ? len - at : PIECE, E));
    MUST(spool_commit(sp, &is_new, E));
    spool_free(sp);
    return is_new;
}

void store_fixture_post(struct store_fixture *f, const char *gate, const char *envelope, size_t len,
                        struct ingest_result *out)
{
    const struct ingest_request r = {
        .project = PACKAGE_PROJECT, .gate = gate, .envelope = envelope, .envelope_len = len};

    ingest_process(f->store, &r, clock_realtime_us() + f->clock_off_us, out);
}

void store_fixture_push(struct store_fixture *f, const struct package *p, struct ingest_result *out)
{
    (void) store_fixture_put(f, p->archive, p->archive_len);
    store_fixture_post(f, PACKAGE_GATE, p->envelope, p->envelope_len, out);
}

void store_fixture_run(struct store_fixture *f, const struct package_options *o,
                       const char *verdict, struct package *out)
{
    static const struct package_options defaults;
    struct ingest_result r;
    struct package p;
    char word[32];

    package_make(o ? o : &defaults, f->key, &p);
    store_fixture_push(f, &p, &r);
    if (r.outcome != INGEST_STORED)
        fail_msg("not stored: %s", r.err.text);
    assert_string_equal(store_fixture_verdict(&r, word), verdict);
    assert_string_equal(r.run, p.run);
    ingest_result_fini(&r);
    if (out)
        *out = p;
    else
        package_free(&p);
}

void store_fixture_approve(struct store_fixture *f, const char *run)
{
    const struct manage_review review = {.project = PACKAGE_PROJECT,
                                         .gate = PACKAGE_GATE,
                                         .reviewer = "a.reviewer",
                                         .reason = "looks right"};
    char id[MANAGE_ID_SIZE];

    MUST(manage_baseline_approve(f->store, run, &review, id, E));
    assert_int_equal(strncmp(id, "b-", 2), 0);
    assert_string_equal(id + 2, run);
}

void store_fixture_baseline(struct store_fixture *f, const struct package_options *o,
                            struct package *out)
{
    struct package p;

    store_fixture_run(f, o, "NON_COMPARABLE", &p);
    store_fixture_approve(f, p.run);
    if (out)
        *out = p;
    else
        package_free(&p);
}

void store_fixture_refuse(struct store_fixture *f, const struct private_key *key,
                          const struct package_options *o, const char *code)
{
    struct ingest_result r;
    struct package p;

    package_make(o, key, &p);
    store_fixture_push(f, &p, &r);
    assert_string_equal(store_fixture_code(&r), code);
    ingest_result_fini(&r);
    package_free(&p);
}

cJSON *parsed(const char *text, size_t len)
{
    const struct json_limits limits = {.max_bytes = 32 << 20};
    cJSON *j = NULL;

    MUST(json_parse(text, len, &limits, &j, E));
    return j;
}

cJSON *stored(struct store_fixture *f, const char *run, enum store_document kind)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    MUST(store_run_document(f->store, run, kind, &bytes, &len, E));
    return parsed(bytes, len);
}

const cJSON *at(const cJSON *j, const char *pointer)
{
    return pointer_get(j, pointer);
}

const char *text_at(const cJSON *j, const char *pointer)
{
    const cJSON *v = pointer_get(j, pointer);

    return cJSON_IsString(v) ? v->valuestring : "";
}

cJSON *store_fixture_check(struct store_fixture *f, const char *commit)
{
    cJSON *j = NULL;

    MUST(doc_check(f->store, PACKAGE_PROJECT, commit, &j, E));
    return j;
}

void store_fixture_expect(struct store_fixture *f, const char *commit, const char *verdict)
{
    AUTO_JSON cJSON *j = store_fixture_check(f, commit);

    assert_string_equal(text_at(j, "/verdict"), verdict);
    assert_int_equal(strncmp(text_at(j, "/description"), verdict, strlen(verdict)), 0);
    assert_true(strlen(text_at(j, "/description")) <= 140);
}

const char *store_fixture_verdict(const struct ingest_result *r, char out[32])
{
    cJSON *j;
    const cJSON *v;

    assert_non_null(r->body);
    j = parsed(r->body, r->body_len);
    v = at(j, "/verdict");
    (void) snprintf(out, 32, "%s",
                    cJSON_IsString(v) ? v->valuestring
                    : cJSON_IsNull(v) ? "null"
                                      : "absent");
    json_free(j);
    return out;
}

const char *store_fixture_code(const struct ingest_result *r)
{
    if (r->outcome != INGEST_INVALID)
        fail_msg("outcome %d, not INVALID: %s", r->outcome, r->err.text);
    return text_at(r->problem, "/reasons/0/code");
}

void store_fixture_flip(struct store_fixture *f, const char *hex, size_t offset)
{
    char path[512];
    char byte = 0;
    int fd;

    (void) snprintf(path, sizeof path, "%s/objects/%.2s/%s", f->data, hex, hex + 2);
    assert_int_equal(chmod(path, 0600), 0);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t) offset), 1);
    byte = (char) ~byte;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t) offset), 1);
    assert_int_equal(close(fd), 0);
}

size_t store_fixture_count(struct store_fixture *f, const char *folder)
{
    AUTO_FILE_LIST struct file_list list = {.names = NULL};
    AUTO_FREE char *path = test_join(f->data, folder);
    int fd = -1;

    MUST(file_open_dir(path, &fd, E));
    MUST(file_list_at(fd, 100000, &list, E));
    (void) close(fd);
    return list.n;
}
