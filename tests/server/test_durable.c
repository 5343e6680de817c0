/*
 * Acknowledged means durable: the object's bytes, then its name, then the row, then the answer.
 * Kills (tests/http/test_kill.c) cannot show a missing fsync; a disk that refuses one can.
 */
#include "tests/lib/syncs.h"
#include "tests/server/store_fixture.h"

#include <stdio.h>
#include <string.h>

#define WAL "cleanrun.db-wal"

static int put(struct store_fixture *f, const struct package *p, struct err *e)
{
    struct spool *sp = NULL;
    bool is_new = false;
    int rc = 0;

    MUST(spool_open(f->store, f->project_id, &p->digest, p->archive_len, &sp, E));
    MUST(spool_write(sp, p->archive, p->archive_len, E));
    rc = spool_commit(sp, &is_new, e);
    spool_free(sp);
    return rc;
}

static bool has_row(struct store_fixture *f, const struct package *p)
{
    bool has = false;

    MUST(store_blob_has(f->store, f->project_id, &p->digest, &has, E));
    return has;
}

static void object_then_name_then_row_then_answer(void **state)
{
    struct store_fixture *f = fixture(state);
    char shelf[32];
    char object[160];
    struct ingest_result r;
    struct package p;
    size_t bytes = 0;
    size_t renamed = 0;
    size_t named = 0;
    size_t count = 0;

    package_make(&(struct package_options){.probes = 1.3}, f->key, &p);
    (void) snprintf(shelf, sizeof shelf, "=objects/%.2s", p.hex);
    (void) snprintf(object, sizeof object, "=objects/%.2s/%.62s", p.hex, p.hex + 2);
    syncs_begin(f->data);
    MUST(put(f, &p, E));
    bytes = syncs_find(0, SYNC_BYTES, "spool/");
    renamed = syncs_find(0, SYNC_RENAME, object);
    named = syncs_find(renamed, SYNC_BYTES, shelf);
    assert_true(bytes < renamed);
    assert_true(syncs_find(0, SYNC_BYTES, "=objects") < renamed); /* the shelf is new */
    assert_true(named > renamed);
    assert_true(syncs_find(named, SYNC_BYTES, "=" WAL) > named);
    /* the run, its documents and its verdict are one transaction */
    count = syncs_count();
    store_fixture_post(f, PACKAGE_GATE, p.envelope, p.envelope_len, &r);
    syncs_end();
    assert_int_equal(r.outcome, INGEST_STORED);
    (void) syncs_find(count, SYNC_BYTES, "=" WAL);
    ingest_result_fini(&r);
    package_free(&p);
}

/* Whichever sync fails, from there on or alone: no success, and the same upload later succeeds. */
static void no_success_on_a_disk_that_fails(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package p;
    size_t syncs = 0;

    package_make(&(struct package_options){.probes = 1.3}, f->key, &p);
    syncs_begin(f->data);
    MUST(put(f, &p, E));
    for (size_t i = 0; i < syncs_count(); i++)
        syncs += syncs_at(i)->kind == SYNC_BYTES;
    syncs_end();
    package_free(&p);
    assert_true(syncs >= 3);
    for (size_t k = 0; k < syncs; k++) {
        for (size_t alone = 0; alone < 2; alone++) {
            struct err e = ERR_INIT;

            package_make(&(struct package_options){.probes = 1.3}, f->key, &p);
            syncs_begin(f->data);
            syncs_fail(k, alone ? k + 1 : SIZE_MAX);
            if (put(f, &p, &e) == 0 && k + 1 < syncs) /* the last one may be of an old shelf */
                fail_msg("sync %zu of %zu failed and the upload did not", k, syncs);
            syncs_end();
            assert_int_equal(store_fixture_count(f, "spool"), 0);
            MUST(put(f, &p, E));
            assert_true(has_row(f, &p));
            package_free(&p);
        }
    }
}

static void a_run_that_is_not_durable_is_not_answered(void **state)
{
    struct store_fixture *f = fixture(state);
    struct ingest_result r;
    struct store_run row;
    struct package p;
    struct err e = ERR_INIT;

    package_make(&(struct package_options){.probes = 1.3}, f->key, &p);
    MUST(put(f, &p, E));
    syncs_begin(f->data);
    syncs_fail(0, SIZE_MAX);
    store_fixture_post(f, PACKAGE_GATE, p.envelope, p.envelope_len, &r);
    syncs_end();
    assert_int_equal(r.outcome, INGEST_FAILED);
    ingest_result_fini(&r);
    assert_int_equal(store_run_get(f->store, p.run, &row, &e), -1);
    store_fixture_post(f, PACKAGE_GATE, p.envelope, p.envelope_len, &r);
    assert_int_equal(r.outcome, INGEST_STORED);
    ingest_result_fini(&r);
    package_free(&p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(object_then_name_then_row_then_answer),
        T(no_success_on_a_disk_that_fails),
        T(a_run_that_is_not_durable_is_not_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
