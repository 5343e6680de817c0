/* Every page from every example document, and from documents that are hostile, incomplete or of the
 * wrong shape. */
#include "server/pages/pages.h"

#include "base/json_in.h"
#include "base/limits.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#define NODES_MAX 20000
#define MUTATIONS_PER_DOCUMENT 120

static const char hostile[] = "\"'><script>x</script>\x1b[31m\xc2\x9b&{{page.version}}javascript:";
static const char context_url[] = "http://127.0.0.1:8620";

struct fixture {
    struct pages *pages;
    char **names;
    size_t n;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    AUTO_FREE char *dir = test_path("tests/data/pages");
    struct err e = ERR_INIT;

    assert_non_null(f);
    f->n = test_list(dir, ".json", &f->names);
    assert_true(f->n >= 20);
    if (pages_load(NULL, &f->pages, &e) < 0)
        fail_msg("%s", e.text);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    pages_free(f->pages);
    test_names_free(f->names);
    free(f);
    return 0;
}

/* The page of an example: its name up to the first '-' or '.', but for these. */
static void page_of(const char *file, char out[32])
{
    size_t n = strcspn(file, "-.");

    assert_true(n < 24);
    memcpy(out, file, n);
    out[n] = '\0';
    if (strcmp(out, "refusal") == 0)
        memcpy(out, "compare", sizeof("compare"));
    if (strcmp(out, "invalid") == 0)
        memcpy(out, "error", sizeof("error"));
}

static cJSON *read_example(const char *file)
{
    char path[128];
    AUTO_FREE char *bytes = NULL;
    cJSON *j = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;

    (void) snprintf(path, sizeof(path), "tests/data/pages/%s", file);
    bytes = test_read(path, &len);
    if (json_parse(bytes, len, &(struct json_limits){.max_bytes = LIMIT_REPORT}, &j, &e) < 0)
        fail_msg("%s: %s", file, e.text);
    return j;
}

static void render(const struct fixture *f, const char *file, const char *suffix,
                   const cJSON *document, struct buf *out)
{
    const struct page_context ctx = {
        .base_url = context_url,
        .path = "/x",
        .now_us = 1795965060000000,
        .version = "1.2.3",
    };
    struct err e = ERR_INIT;
    char page[32];
    char name[40];

    page_of(file, page);
    (void) snprintf(name, sizeof(name), "%s%s", page, suffix);
    buf_clear(out);
    if (page_render(f->pages, name, document, &ctx, out, &e) < 0)
        fail_msg("%s: %s", file, e.text);
    assert_true(out->len > 0);
}

static void every_example_becomes_both_twins(void **state)
{
    const struct fixture *f = *state;
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < f->n; i++) {
        AUTO_JSON cJSON *document = read_example(f->names[i]);

        render(f, f->names[i], ".html", document, &out);
        assert_non_null(strstr(out.data, "<h1"));
        assert_non_null(strstr(out.data, "</html>"));
        assert_null(strstr(out.data, "{{"));
        render(f, f->names[i], ".txt", document, &out);
        assert_null(strstr(out.data, "{{"));
    }
}

struct nodes {
    cJSON *at[NODES_MAX];
    size_t n;
};

/* All nodes below the root, parents first. */
static void collect(cJSON *root, struct nodes *nodes)
{
    nodes->n = 0;
    for (cJSON *c = root->child; c && nodes->n < NODES_MAX; c = c->next)
        nodes->at[nodes->n++] = c;
    for (size_t i = 0; i < nodes->n; i++) {
        for (cJSON *c = nodes->at[i]->child; c && nodes->n < NODES_MAX; c = c->next)
            nodes->at[nodes->n++] = c;
    }
}

static bool holds_control(const struct buf *out)
{
    for (size_t i = 0; i < out->len; i++) {
        unsigned char c = (unsigned char) out->data[i];

        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            return true;
        if (c == 0xc2 && (unsigned char) out->data[i + 1] >= 0x80 &&
            (unsigned char) out->data[i + 1] <= 0x9f)
            return true;
    }
    return false;
}

static bool holds(const struct buf *out, const char *text)
{
    return memmem(out->data, out->len, text, strlen(text)) != NULL;
}

static void expect_harmless(const struct fixture *f, const char *file, const cJSON *document,
                            const char *where, struct buf *out)
{
    render(f, file, ".html", document, out);
    if (holds(out, "<script") || holds(out, "\"'>") || holds(out, "'><") ||
        holds(out, "href=\"javascript:") || holds(out, "\x1b"))
        fail_msg("%s: %s comes out raw", file, where);
    render(f, file, ".txt", document, out);
    if (holds_control(out))
        fail_msg("%s: %s reaches the terminal", file, where);
}

/* A string's own memory is put back before the tree is freed. */
static void hostile_value(const struct fixture *f, const char *file, const cJSON *document,
                          cJSON *node, struct buf *out)
{
    char text[] = "javascript:alert(1)";
    char bad[sizeof(hostile)];
    char *old = node->valuestring;

    memcpy(bad, hostile, sizeof(hostile));
    node->valuestring = bad;
    expect_harmless(f, file, document, node->string ? node->string : "an element", out);
    node->valuestring = text;
    expect_harmless(f, file, document, node->string ? node->string : "an element", out);
    node->valuestring = old;
}

static void hostile_key(const struct fixture *f, const char *file, const cJSON *document,
                        cJSON *node, struct buf *out)
{
    char bad[sizeof(hostile)];
    char *old = node->string;

    memcpy(bad, hostile, sizeof(hostile));
    node->string = bad;
    expect_harmless(f, file, document, old, out);
    node->string = old;
}

static void no_string_of_any_document_comes_out_raw(void **state)
{
    const struct fixture *f = *state;
    AUTO_FREE struct nodes *nodes = malloc(sizeof(*nodes));
    AUTO_BUF struct buf out;
    size_t tried = 0;

    assert_non_null(nodes);
    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < f->n; i++) {
        AUTO_JSON cJSON *document = read_example(f->names[i]);
        size_t stride;

        collect(document, nodes);
        assert_true(nodes->n < NODES_MAX);
        /* The long lists of run documents hold the same fields again and again. */
        stride = nodes->n > 1500 ? 23 : nodes->n > 600 ? 5 : 1;
        for (size_t k = 0; k < nodes->n; k += nodes->at[k]->child ? 1 : stride) {
            if (cJSON_IsString(nodes->at[k])) {
                hostile_value(f, f->names[i], document, nodes->at[k], &out);
                tried++;
            }
            if (nodes->at[k]->string && k % 3 == 0)
                hostile_key(f, f->names[i], document, nodes->at[k], &out);
        }
    }
    assert_true(tried > 1000);
}

/* All strings at once: pieces that are joined must be harmless too. */
static void a_wholly_hostile_document_is_harmless(void **state)
{
    const struct fixture *f = *state;
    AUTO_FREE struct nodes *nodes = malloc(sizeof(*nodes));
    AUTO_BUF struct buf out;

    assert_non_null(nodes);
    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < f->n; i++) {
        AUTO_JSON cJSON *document = read_example(f->names[i]);

        collect(document, nodes);
        for (size_t k = 0; k < nodes->n; k++) {
            if (cJSON_IsString(nodes->at[k]))
                assert_non_null(cJSON_SetValuestring(nodes->at[k], hostile));
        }
        expect_harmless(f, f->names[i], document, "everything", &out);
    }
}

static void render_both(const struct fixture *f, const char *file, const cJSON *document,
                        struct buf *out)
{
    render(f, file, ".html", document, out);
    render(f, file, ".txt", document, out);
}

/* A field may be absent, null, or of any other type: the page still comes, without what it lacks.
 */
static void any_field_may_be_missing_or_strange(void **state)
{
    static const char *const replacements[] = {"null", "7",    "\"\"",           "[]",
                                               "{}",   "true", "[[],{},null,7]", "-1e300"};
    const struct fixture *f = *state;
    AUTO_FREE struct nodes *nodes = malloc(sizeof(*nodes));
    AUTO_BUF struct buf out;
    uint64_t seed = 20261129;

    assert_non_null(nodes);
    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < f->n; i++) {
        AUTO_JSON cJSON *document = read_example(f->names[i]);

        collect(document, nodes);
        for (size_t k = 0; k < MUTATIONS_PER_DOCUMENT && k < nodes->n; k++) {
            /* The first ones are the outermost: all of them; then at random. */
            size_t at = k < 60 ? k : test_random_below(&seed, nodes->n);
            const char *text = replacements[test_random_below(&seed, ARRAY_LEN(replacements))];
            cJSON *other = cJSON_Parse(text);
            cJSON saved = *nodes->at[at];

            assert_non_null(other);
            nodes->at[at]->type = other->type;
            nodes->at[at]->child = other->child;
            nodes->at[at]->valuestring = other->valuestring;
            nodes->at[at]->valuedouble = other->valuedouble;
            render_both(f, f->names[i], document, &out);
            *nodes->at[at] = saved;
            cJSON_Delete(other);
        }
    }
}

static void any_field_may_be_absent(void **state)
{
    const struct fixture *f = *state;
    AUTO_FREE struct nodes *nodes = malloc(sizeof(*nodes));
    AUTO_BUF struct buf out;
    uint64_t seed = 7;

    assert_non_null(nodes);
    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < f->n; i++) {
        AUTO_JSON cJSON *document = read_example(f->names[i]);

        collect(document, nodes);
        for (size_t k = 0; k < MUTATIONS_PER_DOCUMENT && k < nodes->n; k++) {
            size_t at = k < 60 ? k : test_random_below(&seed, nodes->n);
            char *name = nodes->at[at]->string;
            char gone[] = "\x01gone";

            if (!name)
                continue;
            nodes->at[at]->string = gone;
            render_both(f, f->names[i], document, &out);
            nodes->at[at]->string = name;
        }
        {
            AUTO_JSON cJSON *nothing = cJSON_CreateObject();

            render_both(f, f->names[i], nothing, &out);
        }
    }
}

static void a_refusal_prints_no_percentage(void **state)
{
    const struct fixture *f = *state;
    AUTO_JSON cJSON *document = read_example("refusal.json");
    AUTO_JSON cJSON *other = read_example("compare-regression.json");
    AUTO_BUF struct buf out;
    cJSON *audit = cJSON_GetObjectItemCaseSensitive(document, "audit");

    /* Even when the document carries comparisons that it should not. */
    cJSON_ReplaceItemInObjectCaseSensitive(
        audit, "comparisons",
        cJSON_Duplicate(json_get(json_get(other, "audit"), "comparisons"), true));
    buf_init(&out, LIMIT_PAGE);
    render(f, "refusal.json", ".html", document, &out);
    assert_non_null(strstr(out.data, "NON_COMPARABLE"));
    assert_null(strstr(strstr(out.data, "<main"), "%"));
    assert_null(strstr(out.data, "1,499.5"));
    render(f, "refusal.json", ".txt", document, &out);
    assert_null(strchr(out.data, '%'));
}

static void a_refusal_tells_which_elements_of_a_list_differ(void **state)
{
    const struct fixture *f = *state;
    AUTO_JSON cJSON *document = read_example("refusal.json");
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    render(f, "refusal.json", ".html", document, &out);
    assert_non_null(strstr(out.data, "<li><strong>removed</strong> /1: 20000</li>"));
    assert_non_null(strstr(out.data, "<li><strong>changed</strong> /0/duration_secs: 1 → 2</li>"));
    assert_non_null(strstr(out.data, "<li>and 7 more</li>"));
    render(f, "refusal.json", ".txt", document, &out);
    assert_non_null(strstr(out.data, "\n    * removed /1: 20000\n"));
    assert_non_null(strstr(out.data, "\n    * and 7 more\n"));
}

static void damaged_evidence_is_never_shown_as_good(void **state)
{
    const struct fixture *f = *state;
    AUTO_JSON cJSON *document = read_example("run-damaged.json");
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    render(f, "run-damaged.json", ".html", document, &out);
    assert_non_null(strstr(out.data, "<div class=\"verdict v-bad\""));
    assert_non_null(strstr(out.data, "<title>DAMAGED: run "));
    assert_null(strstr(out.data, "<div class=\"verdict v-ok\""));
    assert_non_null(strstr(out.data, "IN-HASH"));
}

static void what_else_the_machine_did_stands_with_the_numbers(void **state)
{
    static const char loud[] =
        "{\"machine_busy_pct\": 199.98, \"own_cpu_pct\": 7.37, \"other_cpu_pct\": 192.1,"
        " \"busiest_others\": [{\"name\": \"cc1\", \"cpu_pct\": 150}], \"steal_pct\": 0}";
    static const char said[] =
        "other processes 192 % of a core (cc1), measured program 7.37 %, whole machine 200 %, "
        "stolen 0 %";
    const struct fixture *f = *state;
    AUTO_JSON cJSON *run = read_example("run-ok.json");
    AUTO_JSON cJSON *compare = read_example("compare-ok.json");
    cJSON *during = cJSON_Parse(loud);
    cJSON *interference = cJSON_GetObjectItem(cJSON_GetObjectItem(run, "manifest"), "interference");
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    render(f, "run-ok.json", ".html", run, &out);
    assert_non_null(strstr(out.data, "other processes 0.6 % of a core"));
    assert_null(strstr(out.data, "not quiet"));
    assert_true(cJSON_AddItemToObject(cJSON_GetObjectItem(compare, "current"), "interference",
                                      cJSON_Duplicate(during, true)));
    assert_true(cJSON_ReplaceItemInObject(interference, "during", during));
    render(f, "run-ok.json", ".html", run, &out);
    assert_non_null(strstr(out.data, said));
    assert_non_null(strstr(out.data, "not quiet"));
    render(f, "run-ok.json", ".txt", run, &out);
    assert_non_null(strstr(out.data, "NOT QUIET: other processes 192 %"));
    render(f, "compare-ok.json", ".html", compare, &out);
    assert_non_null(strstr(out.data, said));
    assert_null(strstr(strstr(out.data, said) + 1, said));
    render(f, "compare-ok.json", ".txt", compare, &out);
    assert_non_null(strstr(out.data, "NOT QUIET: other processes 192 %"));
    /* and of both sides: a baseline that was disturbed is the worse of the two */
    assert_true(cJSON_AddItemToObject(
        cJSON_GetObjectItem(compare, "baseline"), "interference",
        cJSON_Duplicate(
            cJSON_GetObjectItem(cJSON_GetObjectItem(compare, "current"), "interference"), true)));
    render(f, "compare-ok.json", ".html", compare, &out);
    assert_non_null(strstr(strstr(out.data, said) + 1, said));
    render(f, "compare-ok.json", ".txt", compare, &out);
    assert_non_null(strstr(strstr(out.data, "NOT QUIET") + 1, "NOT QUIET"));
}

static void pages_from_a_directory_are_compiled_the_same(void **state)
{
    const struct fixture *f = *state;
    AUTO_FREE char *dir = test_path("templates");
    AUTO_PAGES struct pages *pages = NULL;
    AUTO_JSON cJSON *document = read_example("home.json");
    AUTO_BUF struct buf a;
    AUTO_BUF struct buf b;
    const struct page_context ctx = {.path = "/", .version = "1"};
    struct err e = ERR_INIT;

    buf_init(&a, LIMIT_PAGE);
    buf_init(&b, LIMIT_PAGE);
    assert_int_equal(pages_load(dir, &pages, &e), 0);
    assert_int_equal(page_render(pages, "home.html", document, &ctx, &a, &e), 0);
    assert_int_equal(page_render(f->pages, "home.html", document, &ctx, &b, &e), 0);
    assert_string_equal(a.data, b.data);
}

static void a_broken_template_stops_the_start(void **state)
{
    char *dir = test_dir_new();
    struct pages *pages = NULL;
    struct err e = ERR_INIT;

    (void) state;
    test_write_text(dir, "home.html", "<p>{{#gates}}</p>\n");
    assert_int_equal(pages_load(dir, &pages, &e), -1);
    assert_null(pages);
    assert_non_null(strstr(e.text, "home.html:"));
    test_dir_free(dir);
}

/* What stands against a green run is said in every form of every page of it. */
static void standing_regression_is_said(void **state)
{
    static const char said[] =
        "OK, but an earlier run of this program was REGRESSION: the check stays REGRESSION";
    static const struct {
        const char *file;
        const char *list; /* whose every element gets it; NULL: the document */
    } cases[] = {{"gate.json", "runs"}, {"run-ok.json", NULL}, {"compare-ok.json", NULL}};
    static const char *const suffixes[] = {".html", ".txt"};
    const struct fixture *f = *state;
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < ARRAY_LEN(cases) * 2; i++) {
        AUTO_JSON cJSON *document = read_example(cases[i / 2].file);
        cJSON *one = cases[i / 2].list
                         ? cJSON_GetObjectItemCaseSensitive(document, cases[i / 2].list)->child
                         : document;

        render(f, cases[i / 2].file, suffixes[i % 2], document, &out);
        assert_null(strstr(out.data, "earlier run of this program"));
        for (; one; one = one->next) {
            cJSON *check = cJSON_AddObjectToObject(one, "check");

            assert_non_null(check);
            assert_non_null(cJSON_AddStringToObject(check, "verdict", "REGRESSION"));
            assert_non_null(cJSON_AddStringToObject(check, "description", said));
            assert_non_null(cJSON_AddStringToObject(check, "run", "20261129T150525Z-77ab3d04"));
            assert_non_null(
                cJSON_AddStringToObject(check, "run_url", "/r/20261129T150525Z-77ab3d04"));
        }
        render(f, cases[i / 2].file, suffixes[i % 2], document, &out);
        assert_non_null(strstr(out.data, said));
    }
}

/* What failed stands with its numbers, and a report that is missing with its name. */
static void a_failed_comparison_shows_the_checks(void **state)
{
    static const char *const suffixes[] = {".html", ".txt"};
    const struct fixture *f = *state;
    AUTO_JSON cJSON *fail = read_example("run-fail.json");
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        AUTO_JSON cJSON *document = read_example("compare-ok.json");
        cJSON *checks = cJSON_Duplicate(json_get(fail, "acceptance"), true);
        AUTO_JSON cJSON *refusal = read_example("refusal.json");
        cJSON *reason = NULL;

        render(f, "compare-ok.json", suffixes[i], document, &out);
        assert_null(strstr(out.data, i == 0 ? "Failed checks" : "FAILED"));
        assert_true(checks &&
                    cJSON_ReplaceItemInObjectCaseSensitive(document, "acceptance", checks));
        render(f, "compare-ok.json", suffixes[i], document, &out);
        assert_non_null(strstr(out.data, i == 0 ? "Failed checks (4 of 199)" : "\nFAILED "));

        render(f, "refusal.json", suffixes[i], refusal, &out);
        assert_null(strstr(out.data, "other/9.json"));
        cJSON_ArrayForEach(reason, json_get(json_get(refusal, "audit"), "reasons")) {
            if (strcmp(json_text(reason, "code", ""), "NC-SOURCE-DIRTY") == 0)
                assert_true(cJSON_ReplaceItemInObjectCaseSensitive(
                    reason, "path", cJSON_CreateString("other/9.json")));
        }
        render(f, "refusal.json", suffixes[i], refusal, &out);
        assert_non_null(
            strstr(out.data, i == 0 ? "<code>other/9.json</code>: " : "other/9.json: "));
    }
}

/* A run that is INVALID now says why, first, and gives no advice for what its comparison says. */
static void fallen_verdict_says_what_happened(void **state)
{
    static const char *const suffixes[] = {".html", ".txt"};
    const struct fixture *f = *state;
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        AUTO_JSON cJSON *document = read_example("compare-invalid.json");
        const char *why;

        render(f, "compare-invalid.json", suffixes[i], document, &out);
        why = strstr(out.data, "key was revoked before this run was received");
        assert_non_null(why);
        assert_non_null(strstr(out.data, "IN-KEY"));
        assert_true(why < strstr(out.data, "RSS growth"));
        assert_non_null(strstr(out.data, "a revoked key is never trusted again"));
        assert_null(strstr(out.data, "limit."));
        assert_null(strstr(out.data, "promotes this run"));
    }
}

/* A row of the gate's page has the verdict of its own run's page. */
static void a_row_keeps_its_verdict_beside_the_check(void **state)
{
    static const char *const suffixes[] = {".html", ".txt"};
    const struct fixture *f = *state;
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        AUTO_JSON cJSON *document = read_example("gate.json");
        cJSON *run = cJSON_GetObjectItemCaseSensitive(document, "runs")->child->next;
        cJSON *check = cJSON_AddObjectToObject(run, "check");
        const char *row;
        const char *own;
        const char *other;

        (void) cJSON_ReplaceItemInObjectCaseSensitive(run, "verdict", cJSON_CreateString("OK"));
        assert_non_null(cJSON_AddStringToObject(check, "verdict", "INVALID"));
        assert_non_null(cJSON_AddStringToObject(check, "description", "decided later"));
        assert_non_null(cJSON_AddStringToObject(check, "run", "20261129T150525Z-77ab3d04"));
        render(f, "gate.json", suffixes[i], document, &out);
        row = strstr(out.data, "Runs, newest first");
        assert_non_null(row);
        own = strstr(row, i == 0 ? "✓ OK" : "[OK]");
        other = strstr(row, i == 0 ? "? INVALID" : "[INVALID]");
        assert_true(own && other && own < other);
        assert_non_null(strstr(own, "the commit's check:"));
    }
}

static void expect_text(const struct fixture *f, const cJSON *document, const char *there,
                        const char *absent)
{
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    render(f, "gate.json", ".txt", document, &out);
    if (!strstr(out.data, there) || (absent && strstr(out.data, absent)))
        fail_msg("'%s' or not '%s' in:\n%s", there, absent ? absent : "", out.data);
}

static void set_flags(cJSON *row, bool current, bool legacy)
{
    (void) cJSON_ReplaceItemInObjectCaseSensitive(row, "current", cJSON_CreateBool(current));
    cJSON_DeleteItemFromObjectCaseSensitive(row, "legacy");
    assert_non_null(cJSON_AddBoolToObject(row, "legacy", legacy));
}

/* A table of reviewed baselines does not stand below "no baseline is reviewed". */
static void baselines_that_judge_nobody_are_told_apart(void **state)
{
    const struct fixture *f = *state;
    AUTO_JSON cJSON *document = read_example("gate.json");
    AUTO_JSON cJSON *none = read_example("gate.json");
    cJSON *rows = cJSON_GetObjectItemCaseSensitive(document, "baselines");
    cJSON *row = NULL;

    expect_text(f, document, "Runs, newest first", "No baseline");
    cJSON_ArrayForEach(row, rows)
        set_flags(row, false, true);
    expect_text(f, document, "No baseline can judge: class demo-vm has 2 imported (history never",
                "No baseline is reviewed");
    expect_text(f, document, "baseline approve 20261129T150525Z-77ab3d04 --project", NULL);
    set_flags(rows->child, false, false);
    expect_text(f, document, "1 superseded", NULL);
    set_flags(rows->child, true, false);
    assert_non_null(cJSON_AddBoolToObject(rows->child, "damaged", true));
    expect_text(f, document, "1 damaged (it judges nobody until it is healed)", NULL);
    cJSON_DeleteItemFromObjectCaseSensitive(none, "baselines");
    expect_text(f, none, "No baseline is reviewed. Runs are", "class demo-vm has");
}

/* A runner whose key is no longer believed is not listed like any other. */
static void keys_that_do_not_count_are_marked(void **state)
{
    const struct fixture *f = *state;
    AUTO_JSON cJSON *document = read_example("home.json");
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    render(f, "home.json", ".txt", document, &out);
    assert_non_null(strstr(out.data, "old (demo-vm) key expired 2026-11-25 00:00 UTC,"));
    assert_non_null(strstr(out.data, "sold (demo-vm) key revoked since 2026-11-21 00:00 UTC,"));
    assert_non_null(strstr(out.data, "metal-01 (epyc-4344p) key valid, last"));
    assert_non_null(strstr(out.data, "[no verdict] rvoip/rvoip-sip call-setup-2k"));
    assert_non_null(strstr(out.data, "1 imported baseline, no run yet"));
}

/* A recomputed section says what was compared, not "[]". */
static void recomputed_sections_say_something(void **state)
{
    const struct fixture *f = *state;
    AUTO_JSON cJSON *document = read_example("run-ok.json");
    cJSON *checks = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(document, "acceptance"), "checks");
    cJSON *check = cJSON_CreateObject();
    AUTO_BUF struct buf out;

    assert_true(cJSON_AddItemToArray(checks, check));
    assert_non_null(cJSON_AddStringToObject(check, "name", "/resources"));
    assert_non_null(cJSON_AddStringToObject(check, "operator", "recomputed"));
    assert_non_null(cJSON_AddArrayToObject(check, "actual"));
    assert_non_null(cJSON_AddBoolToObject(check, "passed", true));
    buf_init(&out, LIMIT_PAGE);
    render(f, "run-ok.json", ".html", document, &out);
    assert_non_null(strstr(out.data, "the same, nothing differs"));
    assert_null(strstr(out.data, "<code>[]</code>"));
}

/* What is cut for a forge stands in full on the page. */
static void the_commits_page_cuts_nothing(void **state)
{
    static const char full[] =
        "NON_COMPARABLE NC-BASELINE-NONE: no reviewed baseline of this gate on this machine class; "
        "this run may be proposed as the first one";
    const struct fixture *f = *state;
    AUTO_JSON cJSON *document = read_example("commit.json");
    cJSON *gates = cJSON_GetObjectItemCaseSensitive(document, "gates");
    AUTO_BUF struct buf out;

    while (cJSON_GetArraySize(gates) > 1)
        cJSON_DeleteItemFromArray(gates, 1);
    (void) cJSON_ReplaceItemInObjectCaseSensitive(document, "verdict",
                                                  cJSON_CreateString("NON_COMPARABLE"));
    (void) cJSON_ReplaceItemInObjectCaseSensitive(
        document, "description",
        cJSON_CreateString("NON_COMPARABLE 1 of 1 gate: kvcache-50k NC-BASELINE-NONE: no …"));
    (void) cJSON_ReplaceItemInObjectCaseSensitive(gates->child, "verdict",
                                                  cJSON_CreateString("NON_COMPARABLE"));
    (void) cJSON_ReplaceItemInObjectCaseSensitive(gates->child, "description",
                                                  cJSON_CreateString(full));
    buf_init(&out, LIMIT_PAGE);
    render(f, "commit.json", ".txt", document, &out);
    assert_non_null(strstr(out.data,
                           " NC-BASELINE-NONE: no reviewed baseline of this gate on this "
                           "machine class; this run may be proposed as the first one\n\n"));
    assert_null(strstr(out.data, "no …"));
}

/* One of something is not called many. */
static void one_gated_metric_is_singular(void **state)
{
    const struct fixture *f = *state;
    AUTO_JSON cJSON *document = read_example("compare-ok.json");
    cJSON *audit = cJSON_GetObjectItemCaseSensitive(document, "audit");
    cJSON *rows = cJSON_GetObjectItemCaseSensitive(audit, "comparisons");
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    while (cJSON_GetArraySize(rows) > 1)
        cJSON_DeleteItemFromArray(rows, 1);
    render(f, "compare-ok.json", ".txt", document, &out);
    assert_non_null(strstr(out.data, "The gated metric is within its limit."));
}

static void unknown_pages_are_not_found(void **state)
{
    const struct fixture *f = *state;
    AUTO_JSON cJSON *document = cJSON_CreateObject();
    AUTO_BUF struct buf out;
    const struct page_context ctx = {.path = "/"};
    static const char *const names[] = {"nothing.html", "home",      "home.xml",
                                        ".html",        "head.html", ""};

    buf_init(&out, LIMIT_PAGE);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct err e = ERR_INIT;

        assert_int_equal(page_render(f->pages, names[i], document, &ctx, &out, &e), -1);
        assert_int_equal(e.kind, ERR_NOTFOUND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_becomes_both_twins),
        cmocka_unit_test(standing_regression_is_said),
        cmocka_unit_test(a_failed_comparison_shows_the_checks),
        cmocka_unit_test(one_gated_metric_is_singular),
        cmocka_unit_test(fallen_verdict_says_what_happened),
        cmocka_unit_test(the_commits_page_cuts_nothing),
        cmocka_unit_test(keys_that_do_not_count_are_marked),
        cmocka_unit_test(recomputed_sections_say_something),
        cmocka_unit_test(baselines_that_judge_nobody_are_told_apart),
        cmocka_unit_test(a_row_keeps_its_verdict_beside_the_check),
        cmocka_unit_test(no_string_of_any_document_comes_out_raw),
        cmocka_unit_test(a_wholly_hostile_document_is_harmless),
        cmocka_unit_test(any_field_may_be_missing_or_strange),
        cmocka_unit_test(any_field_may_be_absent),
        cmocka_unit_test(a_refusal_prints_no_percentage),
        cmocka_unit_test(a_refusal_tells_which_elements_of_a_list_differ),
        cmocka_unit_test(damaged_evidence_is_never_shown_as_good),
        cmocka_unit_test(what_else_the_machine_did_stands_with_the_numbers),
        cmocka_unit_test(pages_from_a_directory_are_compiled_the_same),
        cmocka_unit_test(a_broken_template_stops_the_start),
        cmocka_unit_test(unknown_pages_are_not_found),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
