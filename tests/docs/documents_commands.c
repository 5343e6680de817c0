/* Every kind of document that `cleanrun … --json` writes, once at least. */
#include "tests/docs/documents.h"
#include "tests/lib/package.h"
#include "tests/lib/support.h"
#include "tests/runner/project.h"
#include "tests/runner/release.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_in.h"
#include "base/limits.h"

static const char pair_baseline[] = "tests/data/rvoip/audit-pair/baseline";
static const char pair_current[] = "tests/data/rvoip/audit-pair/current";
static const char pair_manifest[] = "tests/data/rvoip/audit-pair/manifest.json";
static const char history[] = "baselines/rvoip-sip/call-setup-2k/20260706T181609Z/manifest.json";

struct desk {
    struct members *members;
    const char *dir;
    char *program;
    int bad;
};

static cJSON *parse(const char *text, size_t len, const char *what)
{
    const struct json_limits limits = {.max_bytes = LIMIT_CANONICAL};
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    if (json_parse(text, len, &limits, &j, &e) < 0)
        fail_msg("%s: %s: %.300s", what, e.text, text);
    return j;
}

/* cleanrun WORDS… below the source root, which must end with this code. */
static void ask(struct desk *d, const char *section, int code, const char *const words[])
{
    const char *argv[24] = {d->program};
    struct test_run r = {0};
    cJSON *j = NULL;
    size_t n = 1;

    for (size_t i = 0; words[i]; i++)
        argv[n++] = words[i];
    test_run(argv, NULL, test_source_root(), NULL, &r);
    if (r.code != code)
        fail_msg("cleanrun %s %s: exit %d, wanted %d: %.500s%.500s", words[0], words[1], r.code,
                 code, r.out, r.err);
    j = parse(r.out, r.out_len, words[0]);
    d->bad += members_check(d->members, section, j, words[0]);
    json_free(j);
    test_run_fini(&r);
}
#define ASK(d, section, code, ...) ask(d, section, code, (const char *const[]){__VA_ARGS__, NULL})

static void keys_and_checks(struct desk *d)
{
    static const char nameless[] =
        "version: 1\n"
        "gates:\n"
        "  g:\n"
        "    class: c\n"
        "    build: {command: [make], executable: {from: path, path: p}}\n"
        "    run: {command: ['{executable}'], report: r.json}\n"
        "    identity: [{path: /n, require: required}]\n"
        "    accept: {}\n"
        "    audit: {paths: {required: [r.json]}, metrics: [{path: /m, unit: s, worse: higher, "
        "tolerance_pct: 1}]}\n";
    char *keys = test_join(d->dir, "keys");
    char *key = test_join(d->dir, "keys/pub.pem");
    char *file = test_join(d->dir, "cleanrun.yaml");
    char *root = test_join(d->dir, "root");

    ASK(d, "key", 0, "key", "gen", "--out", keys, "--json", "-", "--quiet");
    ASK(d, "key", 0, "key", "show", key, "--json", "-");
    ASK(d, "check-of-a-definition", 0, "check", "demo/kvcache/cleanrun.yaml", "--json");
    test_write_text(d->dir, "cleanrun.yaml", nameless);
    ASK(d, "check-of-a-definition", 0, "check", file, "--json");
    test_write_text(root, "proc/sys/kernel/perf_event_paranoid", "4\n");
    test_write_text(root, "proc/loadavg", "9.00 9.00 9.00 9/99 999\n");
    ASK(d, "doctor", 4, "doctor", "--root", root, "--json");
    free(root);
    free(file);
    free(key);
    free(keys);
}

static void comparisons(struct desk *d)
{
    static const char definition[] = "examples/rvoip-sip/cleanrun.yaml";
    static const char gate[] = "call-setup-2k";
    char *csv = test_join(d->dir, "m.csv");
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    ASK(d, "audit", 0, "audit", "--definition", definition, "--gate", gate, "--baseline",
        pair_baseline, "--current", pair_current, "--baseline-manifest", pair_manifest, "--json",
        "-");
    ASK(d, "audit", 3, "audit", "--definition", definition, "--gate", gate, "--baseline",
        pair_current, "--current", pair_baseline, "--json", "-");
    ASK(d, "acceptance", 0, "accept", "--definition", definition, "--gate", gate,
        "tests/data/rvoip/reports/canonical-pass-2000.json", "--json", "-");
    assert_non_null(f);
    (void) fprintf(f, "t_ms,rss_kib\n");
    for (int t = 0; t < 3600; t++)
        (void) fprintf(f, "%d,%d\n", t * 1000, 40960 + t / 100 + t * 7 % 5);
    assert_int_equal(fclose(f), 0);
    test_write(d->dir, "m.csv", text, len);
    ASK(d, "leak", 0, "leak", csv, "--limit", "10", "--json", "-");
    ASK(d, "leak", 3, "leak", csv, "--limit", "10", "--window", "0..2000", "--json", "-");
    free(text);
    free(csv);
}

/* A metric and a file of one side only, and a file that is no JSON. */
static void lopsided(struct desk *d)
{
    static const char yaml[] =
        "version: 1\n"
        "gates:\n"
        "  g:\n"
        "    class: c\n"
        "    build: {command: [make], executable: {from: path, path: p}}\n"
        "    run: {command: ['{executable}'], report: r.json}\n"
        "    identity: [{path: /n, require: required}]\n"
        "    accept: {}\n"
        "    audit: {paths: {required: [r.json]}, metrics: [{path: /m/*, unit: s, worse: higher, "
        "tolerance_pct: 1}]}\n";
    char *file = test_join(d->dir, "sides.yaml");
    char *one = test_join(d->dir, "one");
    char *two = test_join(d->dir, "two");

    test_write_text(d->dir, "sides.yaml", yaml);
    test_write_text(one, "r.json", "{\"n\":1,\"m\":{\"a\":1}}");
    test_write_text(two, "r.json", "{\"n\":1,\"m\":{\"a\":1,\"b\":2},\"own\":1}");
    test_write_text(two, "more.json", "{}");
    test_write_text(two, "broken.json", "{");
    ASK(d, "audit", 0, "audit", "--definition", file, "--baseline", one, "--current", two, "--json",
        "-");
    free(two);
    free(one);
    free(file);
}

static void baselines(struct desk *d)
{
    char *out = test_join(d->dir, "packaged");
    char *empty = test_join(d->dir, "empty");

    ASK(d, "baseline-check", 0, "baseline", "verify", history, "--json", "--quiet");
    ASK(d, "baseline-check", 0, "baseline", "package", history, "--out", out, "--json", "--quiet");
    test_write_text(empty, "x", "");
    ASK(d, "baseline-check", 5, "baseline", "verify", history, "--root", empty, "--json",
        "--quiet");
    free(empty);
    free(out);
}

static void archives(struct desk *d)
{
    const struct package_options o = {.executable = 1};
    struct private_key *key = package_key_new();
    struct private_key *other = package_key_new();
    char *pem = package_key_pem(key);
    char *wrong = package_key_pem(other);
    char *good_path = test_join(d->dir, "good.pem");
    char *wrong_path = test_join(d->dir, "wrong.pem");
    struct package p;

    package_make(&o, key, &p);
    test_write_text(d->dir, "good.pem", pem);
    test_write_text(d->dir, "wrong.pem", wrong);
    ASK(d, "verification", 0, "verify", p.tar, "--key", good_path, "--json", "-");
    ASK(d, "verification", 5, "verify", p.tar, "--key", wrong_path, "--json", "-");
    package_free(&p);
    free(wrong_path);
    free(good_path);
    free(wrong);
    free(pem);
    private_key_free(other);
    private_key_free(key);
}

static void packages(struct desk *d)
{
    struct release r;
    char *index;

    const struct release_run failed = {.status = "FAIL"};
    const struct release_run sound = {.status = NULL};

    release_new(&r, false, true);
    release_write_run(&r, 1, true, &failed);
    ASK(d, "package-result", 5, "package", r.runs[0], r.runs[1], r.runs[2], "--source-at-start",
        r.start, "--out", r.out, "--source", r.repo, "--json");
    release_write_run(&r, 1, true, &sound);
    ASK(d, "package-result", 5, "package", r.runs[0], r.runs[0], r.runs[2], "--source-at-start",
        r.start, "--out", r.out, "--source", r.repo, "--json");
    ASK(d, "package-result", 0, "package", r.runs[0], r.runs[1], r.runs[2], "--source-at-start",
        r.start, "--out", r.out, "--executable", r.executable, "--source", r.repo, "--json");
    ASK(d, "package-verification", 0, "package", "verify", r.out, "--json");
    ASK(d, "package-verification", 4, "package", "verify", r.out, "--count", "9", "--json");
    index = test_join(r.out, "index.json");
    {
        size_t len = 0;
        char *text = test_read_path(index, &len);
        cJSON *j = parse(text, len, index);

        d->bad += members_check_names("docs/evidence-format.md", "7-a-package-of-several-runs", j);
        json_free(j);
        free(text);
    }
    assert_int_equal(unlink(index), 0);
    ASK(d, "package-verification", 5, "package", "verify", r.out, "--json");
    free(index);
    release_free(&r);
}

/* Each line but the last is an event. */
static void check_lines(struct desk *d, struct test_run *r, int code)
{
    if (r->code != code)
        fail_msg("cleanrun run: exit %d, wanted %d: %s%s", r->code, code, r->out, r->err);
    for (char *rest = r->out, *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        cJSON *j = line[0] ? parse(line, strlen(line), "run") : NULL;
        const char *event = cJSON_GetStringValue(json_get(j, "event"));

        if (event && strcmp(event, "result") == 0)
            d->bad += members_check(d->members, "result-of-a-run", j, "run");
        else if (j)
            d->bad += members_check(d->members, "event-of-a-run", j, "run");
        json_free(j);
    }
    test_run_fini(r);
}

/* A branch that makes it worse and loosens its own tolerance. */
static void loosen(const struct project *p)
{
    static const char *const edits[][3] = {
        {"cleanrun.yaml", "s/tolerance_pct: 10,/tolerance_pct: 90,/", NULL},
        {"workload.c", "s/n\\\\\": 3, /n\\\\\": 5, /", NULL},
    };
    static const char *const commit[] = {"commit", "-q", "-a", "-m", "branch", NULL};

    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const char *const argv[] = {"sed", "-i", edits[i][1], edits[i][0], NULL};
        struct test_run r = {0};

        test_run(argv, NULL, p->repo, NULL, &r);
        assert_int_equal(r.code, 0);
        test_run_fini(&r);
    }
    project_git(p, commit);
}

static void runs(struct desk *d)
{
    static const char *const fingerprint[] = {"fingerprint", "--json", NULL};
    static const char *const at_head[] = {"--at", "HEAD", NULL};
    struct project p;
    struct test_run r = {0};
    char *out;
    char *base;
    char *manifest;
    char hex[DIGEST_HEX_SIZE];

    project_new(&p, "ok", NULL);
    project_cleanrun(&p, fingerprint, NULL, &r);
    assert_int_equal(r.code, 0);
    {
        cJSON *j = parse(r.out, r.out_len, "fingerprint");

        d->bad += members_check(d->members, "source", j, "fingerprint");
        json_free(j);
        test_run_fini(&r);
    }
    project_measure(&p, at_head, &r);
    check_lines(d, &r, 3);
    out = test_join(p.dir, "out");
    base = test_join(p.dir, "base");
    assert_int_equal(rename(out, base), 0);
    manifest = test_join(base, "manifest.json");
    {
        size_t len = 0;
        char *text = test_read_path(manifest, &len);
        struct digest digest = digest_of(text, len);
        cJSON *j = parse(text, len, manifest);

        digest_hex(&digest, hex);
        d->bad += members_check_names("docs/evidence-format.md", "2-the-manifest", j);
        json_free(j);
        free(text);
    }
    loosen(&p);
    {
        const char *const args[] = {"--at", "HEAD", "--baseline", base, "--baseline-sha256",
                                    hex,    NULL};

        project_measure(&p, args, &r);
        check_lines(d, &r, 1);
    }
    free(manifest);
    free(base);
    free(out);
    project_free(&p);
}

int commands_check(struct members *m, const char *dir)
{
    struct desk d = {.members = m, .dir = dir};

    d.program = test_join(test_build_root(), "runner/cleanrun");
    keys_and_checks(&d);
    comparisons(&d);
    lopsided(&d);
    baselines(&d);
    archives(&d);
    packages(&d);
    runs(&d);
    free(d.program);
    return d.bad;
}
