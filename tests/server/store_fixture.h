/* store_fixture: a data directory with one project and one runner, and uploads without HTTP. */
#pragma once

#include "tests/lib/must.h"
#include "tests/lib/package.h"
#include "tests/lib/support.h"

#include <cjson/cJSON.h>

#include "server/ingest/ingest.h"
#include "server/ingest/spool.h"
#include "server/store/documents.h"
#include "server/store/manage.h"
#include "server/store/store_private.h"

struct store_fixture {
    char *dir; /* temporary root; the data directory is "data" in it */
    char *data;
    struct store *store;
    /* Of runner "metal-01", class PACKAGE_CLASS, project PACKAGE_PROJECT. */
    struct private_key *key;
    int64_t project_id;
    int64_t clock_off_us; /* the server's clock at an upload is wrong by this */
};

/* For cmocka's setup and teardown: *state becomes the fixture. */
int store_fixture_setup(void **state);
int store_fixture_teardown(void **state);
static inline struct store_fixture *fixture(void **state)
{
    return *state;
}
/* Closes the store and opens it again, as a restart does. */
void store_fixture_reopen(struct store_fixture *f);

/* Adds a runner with a new key. */
struct private_key *store_fixture_runner(struct store_fixture *f, const char *name,
                                         const char *machine_class, const char *project);
/* Receives the archive in pieces. Returns whether it was new. */
bool store_fixture_put(struct store_fixture *f, const char *archive, size_t len);
/* Posts an envelope; the caller ends the result. */
void store_fixture_post(struct store_fixture *f, const char *gate, const char *envelope, size_t len,
                        struct ingest_result *out);
/* Both, to PACKAGE_GATE. */
void store_fixture_push(struct store_fixture *f, const struct package *p,
                        struct ingest_result *out);
/* Makes, pushes and expects 201; the verdict's word ("null" for none) is checked. Options may be
 * NULL; out NULL: the package is dropped. */
void store_fixture_run(struct store_fixture *f, const struct package_options *o,
                       const char *verdict, struct package *out);
/* Approves the run as the baseline. */
void store_fixture_approve(struct store_fixture *f, const char *run);
/* The gate's first run, approved. out as above. */
void store_fixture_baseline(struct store_fixture *f, const struct package_options *o,
                            struct package *out);
/* Makes a package signed by the key, pushes it and expects a refusal with this code first. */
void store_fixture_refuse(struct store_fixture *f, const struct private_key *key,
                          const struct package_options *o, const char *code);

/* The check of a commit; the caller frees. */
cJSON *store_fixture_check(struct store_fixture *f, const char *commit);
/* Its verdict, which its description begins with. */
void store_fixture_expect(struct store_fixture *f, const char *commit, const char *verdict);

/* The verdict's word in an answer's body, "null" when it is null. */
const char *store_fixture_verdict(const struct ingest_result *r, char out[32]);
/* JSON text as a tree that the caller frees; a stored document of a run so. */
cJSON *parsed(const char *text, size_t len);
cJSON *stored(struct store_fixture *f, const char *run, enum store_document kind);
/* Text at a JSON Pointer, "" when absent or no text. */
const char *text_at(const cJSON *j, const char *pointer);
const cJSON *at(const cJSON *j, const char *pointer);
/* Code of the first reason of an INVALID answer. */
const char *store_fixture_code(const struct ingest_result *r);
/* Inverts one byte of the stored object. */
void store_fixture_flip(struct store_fixture *f, const char *hex, size_t offset);
/* Files below the data directory's folder ("spool", "objects"). */
size_t store_fixture_count(struct store_fixture *f, const char *folder);
