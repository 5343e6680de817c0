/* Commands of the registry with real names in them. */
#include "tests/lib/support.h"

#include <string.h>

#include "audit/advice.h"
#include "audit/verdict.h"
#include "base/limits.h"

static const struct advice_names all = {.project = "demo/kvcache",
                                        .gate = "kvcache-50k",
                                        .machine_class = "metal",
                                        .run = "20261129T150525Z-77ab3d04",
                                        .commit = "0123456789abcdef0123456789abcdef01234567",
                                        .baseline_commit =
                                            "fedcba9876543210fedcba9876543210fedcba98",
                                        .server = "https://perf.example/below"};

static void expect(const char *command, const struct advice_names *names, const char *wanted)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_KIB(4));
    advice_command(&b, command, strlen(command), names);
    assert_false(b.failed);
    assert_string_equal(b.data, wanted);
}

static void words_in_capitals_get_their_names(void **state)
{
    const struct advice_names none = {.project = NULL};
    struct advice_names hidden = all;

    (void) state;
    hidden.is_private = true;
    expect("cleanrun run GATE", &all,
           "cleanrun run kvcache-50k --server https://perf.example/below");
    expect("cleanrun run GATE --at BASELINE_COMMIT", &all,
           "cleanrun run kvcache-50k --at fedcba98 --server https://perf.example/below");
    expect("cleanrun run GATE --server https://other.example", &all,
           "cleanrun run kvcache-50k --server https://other.example");
    expect("cleanrun run GATE", &hidden,
           "cleanrun run kvcache-50k --server https://perf.example/below --token-file FILE");
    expect("cleanrun check", &all, "cleanrun check");
    expect("cleanrun-server runner add NAME --class CLASS --key pub.pem --project OWNER/NAME", &all,
           "cleanrun-server runner add NAME --class metal --key pub.pem --project demo/kvcache");
    expect("cleanrun run GATE --at COMMIT", &none, "cleanrun run GATE --at COMMIT");
}

static void prose_keeps_its_words(void **state)
{
    AUTO_BUF struct buf b = {.data = NULL};

    (void) state;
    buf_init(&b, LIMIT_KIB(4));
    advice_prose(&b, "GATE is a word here. `cleanrun run GATE` and an odd ` mark", &all);
    assert_string_equal(b.data, "GATE is a word here. `cleanrun run kvcache-50k --server "
                                "https://perf.example/below` and an odd ` mark");
}

/* With everything known, only what a person must decide is left in capitals. */
static void whole_registry_can_be_filled_in(void **state)
{
    static const char *const left[] = {"NAME", "TEXT", "REPORT", "MANIFEST", "RUN_DIR", "HEAD"};

    (void) state;
    for (size_t i = 0; i < reasons_count; i++) {
        const char *from = strchr(reasons_table[i].resolve, '`') + 1;
        AUTO_BUF struct buf b = {.data = NULL};
        char *save = NULL;

        buf_init(&b, LIMIT_KIB(4));
        advice_command(&b, from, strcspn(from, "`"), &all);
        for (char *w = strtok_r(b.data, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
            bool known = strspn(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_/") != strlen(w);

            for (size_t k = 0; k < ARRAY_LEN(left); k++)
                known = known || strcmp(w, left[k]) == 0;
            if (!known)
                fail_msg("%s: '%s' is left in its command", reasons_table[i].code, w);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_in_capitals_get_their_names),
        cmocka_unit_test(prose_keeps_its_words),
        cmocka_unit_test(whole_registry_can_be_filled_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
