/* make_run DIR: leaves DIR/run, a small run directory with a valid manifest, for tests in other
 * languages. */
#include "tests/evidence/fixture.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct fixture f;
    struct test_run r = {0};
    const char *copy[] = {"cp", "-r", NULL, NULL, NULL};
    int code;

    if (argc != 2) {
        (void) fputs("usage: make_run DIR\n", stderr);
        return 2;
    }
    fixture_init(&f);
    copy[2] = f.run;
    copy[3] = argv[1];
    test_run(copy, NULL, NULL, NULL, &r);
    code = r.code;
    test_run_fini(&r);
    fixture_fini(&f);
    return code == 0 ? 0 : 1;
}
