/* docs/json.md and the documents that the programs write are the same: every member of every
 * document has its row and type, every row is a member of some document. */
#include "tests/docs/documents.h"
#include "tests/lib/support.h"

struct fixture {
    struct members *members;
    struct site *site;
    char *dir;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    *state = f;
    f->members = members_load("docs/json.md");
    f->site = site_new(f->members);
    f->dir = test_dir_new();
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    site_free(f->site);
    members_free(f->members);
    test_dir_free(f->dir);
    free(f);
    return 0;
}

static void every_member_has_its_row_and_every_row_its_member(void **state)
{
    struct fixture *f = *state;
    int bad = site_check(f->site);

    bad += commands_check(f->members, f->dir);
    bad += members_unseen(f->members, false);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_member_has_its_row_and_every_row_its_member, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
