/* Every kind of document that the real server answers with, once at least. */
#include "tests/docs/documents.h"
#include "tests/http/uploader.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_in.h"

#define GATE "/api/v1/projects/" UPLOAD_PROJECT "/gates/" UPLOAD_GATE
#define PAGE "/p/" UPLOAD_PROJECT
#define RUNS "/api/v1/projects/" UPLOAD_PROJECT "/runs/"

#define HISTORY_GATE "call-setup-2k"
#define TEN "9,9,9,9,9,9,9,9,9,9,"
#define MANY_POINTS "[" TEN TEN TEN TEN TEN TEN "9]"

enum { PACKAGES = 24 };

static const char definition[] =
    "version: 1\n"
    "project: " UPLOAD_PROJECT "\n"
    "gates:\n"
    "  " UPLOAD_GATE ":\n"
    "    title: cache\n"
    "    class: " PACKAGE_CLASS "\n"
    "    build: {command: [%s], executable: {from: path, path: kvcache}}\n"
    "    run: {command: ['{executable}'], report: " PACKAGE_REPORT "}\n"
    "    modes: {cpu: {command: [prof]}}\n"
    "    phases: {markers: [a, b, c], required: [a, b]}\n"
    "    sampling: {interval: 100ms, into: /resources}\n"
    "    windows:\n"
    "      load: {start_phase: a, end_phase: b, estimator: endpoint-bands, fraction: 6, cap: 60s,\n"
    "        min_samples: 20, min_band_samples: 3, min_coverage: 9s}\n"
    "      tail: {start_phase: b, end_phase: c, estimator: endpoint-bands, min_samples: 20}\n"
    "    identity:\n"
    "      - {path: /load/capacity, require: required, label: capacity, why: it decides}\n"
    "      - {path: /load/points, require: required, type: array}\n"
    "    accept:\n"
    "      limits: [{name: rate, path: /results/rate, op: '>=', value: 49000, unit: 1/s}]\n"
    "    audit:\n"
    "      paths: {required: [" PACKAGE_REPORT "]}\n"
    "      metrics:\n"
    "        - {path: /results/probes, label: probes, unit: probes/op, worse: higher,\n"
    "           tolerance_pct: %s, gated: true}\n"
    "        - {path: /resources/windows/load/growth_mb_per_hour, unit: MB/h, worse: higher,\n"
    "           tolerance_pct: 20, floor: 100, gated: true}\n"
    "        - {path: /results/rate, unit: 1/s, worse: lower, tolerance_pct: 5, gated: false}\n";

static const char markers[] = "[{\"phase\":\"a\",\"kind\":\"actual\",\"elapsed_ms\":0},"
                              "{\"phase\":\"b\",\"kind\":\"actual\",\"elapsed_ms\":10000},"
                              "{\"phase\":\"c\",\"kind\":\"actual\",\"elapsed_ms\":10500}]";

struct site {
    struct live live;
    struct uploads *uploads;
    struct members *members;
    struct package packages[PACKAGES];
    size_t n;
    char *samples;
    int bad;
};

/* What a package says; zeroed: the baseline's. */
struct said {
    const char *build;
    const char *tolerance;
    const char *points;
    const char *commit;
    const char *mode;
    const char *control;
    const struct private_key *key; /* the registered one */
    double probes;
    double rate;
    int executable;
    enum package_lie lie;
    bool dirty;
    bool build_only;
};

static void check(struct site *s, const char *section, const struct raw_response *a,
                  const char *what)
{
    AUTO_JSON cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(a->body, a->body_len, NULL, &j, &e) < 0)
        fail_msg("%s: %s: %.200s", what, e.text, a->body);
    s->bad += members_check(s->members, section, j, what);
}

/* The document at an address. */
static void look(struct site *s, const char *section, int status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void look(struct site *s, const char *section, int status, const char *format, ...)
{
    AUTO_FREE char *target = NULL;
    struct raw_response a;
    va_list ap;

    va_start(ap, format);
    assert_true(vasprintf(&target, format, ap) > 0);
    va_end(ap);
    raw_ask(s->live.port, "GET", target, NULL, NULL, 0, &a);
    if (a.status != status)
        fail_msg("%s: %d, wanted %d: %.300s", target, a.status, status, a.body);
    check(s, section, &a, target);
    raw_response_fini(&a);
}

static char *samples_csv(void)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    (void) fprintf(f, "t_ms,rss_kib\n");
    for (int t = 0; t <= 10500; t += 100)
        (void) fprintf(f, "%d,%d\n", t, 40960 + t / 200);
    assert_int_equal(fclose(f), 0);
    return text;
}

/* Makes a package, sends it, looks at both answers; section: of the second one. */
static const struct package *push(struct site *s, const struct said *w, int status,
                                  const char *section)
{
    struct package *p = &s->packages[s->n++];
    AUTO_FREE char *yaml = NULL;
    AUTO_FREE char *report = NULL;
    struct raw_response a;
    struct package_options o = {.markers = markers,
                                .samples = s->samples,
                                .derive = !w->build_only,
                                .commit = w->commit,
                                .mode = w->mode,
                                .control = w->control,
                                .executable = w->executable,
                                .lie = w->lie,
                                .dirty = w->dirty,
                                .build_only = w->build_only};

    assert_true(s->n <= PACKAGES);
    assert_true(asprintf(&yaml, definition, w->build ? w->build : "make", /* NOLINT: ours */
                         w->tolerance ? w->tolerance : "1") > 0);
    assert_true(asprintf(&report,
                         "{\"load\":{\"capacity\":1,\"points\":%s},\"results\":{\"rate\":%.17g,"
                         "\"probes\":%.17g},\"note\":%zu}",
                         w->points ? w->points : "[1,2]", w->rate > 0 ? w->rate : 50000,
                         w->probes > 0 ? w->probes : 1.31, s->n) > 0);
    o.definition = yaml;
    o.report = report;
    package_make(&o, w->key ? w->key : uploads_key(s->uploads), p);
    upload_archive(&s->live, s->uploads, UPLOAD_PROJECT, p, &a);
    assert_int_equal(a.status, 201);
    check(s, "blob", &a, "PUT");
    raw_response_fini(&a);
    upload_statement(&s->live, s->uploads, UPLOAD_PROJECT, UPLOAD_GATE, p, &a);
    if (a.status != status)
        fail_msg("%d, wanted %d: %.500s", a.status, status, a.body);
    check(s, section, &a, "POST");
    raw_response_fini(&a);
    return p;
}

/* One byte of the stored archive becomes another. */
static void flip(struct site *s, const struct package *p)
{
    char *path = NULL;
    char byte = 0;
    int fd;

    assert_true(asprintf(&path, "%s/objects/%.2s/%s", s->live.data, p->hex, p->hex + 2) > 0);
    assert_int_equal(chmod(path, 0600), 0);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, (off_t) p->archive_len / 2), 1);
    byte = (char) ~byte;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t) p->archive_len / 2), 1);
    assert_int_equal(close(fd), 0);
    free(path);
}

static void approve(struct site *s, const char *run)
{
    const char *const args[] = {"baseline",     "approve",  run,         "--project",
                                UPLOAD_PROJECT, "--gate",   UPLOAD_GATE, "--reviewer",
                                "somebody",     "--reason", "first",     NULL};

    assert_int_equal(live_admin(&s->live, args, NULL), 0);
}

struct site *site_new(struct members *m)
{
    struct site *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->members = m;
    s->samples = samples_csv();
    live_init(&s->live);
    s->uploads = uploads_new(&s->live);
    live_start(&s->live, NULL);
    return s;
}

void site_free(struct site *s)
{
    for (size_t i = 0; i < PACKAGES; i++)
        package_free(&s->packages[i]);
    uploads_free(s->uploads);
    live_fini(&s->live);
    free(s->samples);
    free(s);
}

static void look_at_run(struct site *s, const struct package *p, bool judged, const char *other)
{
    look(s, "run", 200, "/r/%s.json", p->run);
    look(s, "run", 200, RUNS "%s", p->run);
    look(s, judged ? "verdict" : "problem", judged ? 200 : 404, RUNS "%s/verdict", p->run);
    if (other)
        look(s, "compare", 200, "/r/%s/vs/%s.json", p->run, other);
}

/* Runs with every verdict, and lists of them; the first one is the baseline. */
static const struct package *every_verdict(struct site *s)
{
    static const char c2[] = "1111111111111111111111111111111111111111";
    static const char c3[] = "2222222222222222222222222222222222222222";
    const struct package *first = push(s, &(struct said){.executable = 1}, 201, "verdict");
    const struct said judged[] = {
        {.executable = 2, .commit = c2},
        {.executable = 3, .commit = c3, .probes = 2.6},
        {.executable = 3, .commit = c3}, /* does not cure the regression */
        {.executable = 4, .points = "[1,3,4]"},
        {.executable = 4, .points = "[1]"},
        {.executable = 4, .points = MANY_POINTS},
        {.executable = 4, .build = "make, fast", .tolerance = "50"},
        {.executable = 5, .rate = 1},
    };
    const struct package *p;
    char base[64];

    look_at_run(s, first, true, NULL);
    look(s, "gate", 200, PAGE "/" UPLOAD_GATE ".json");
    approve(s, first->run);
    (void) snprintf(base, sizeof base, "b-%s", first->run);
    for (size_t i = 0; i < sizeof judged / sizeof judged[0]; i++) {
        p = push(s, &judged[i], 201, "verdict");
        look_at_run(s, p, true, base);
        if (i == 2) {
            look(s, "project", 200, PAGE ".json");
            look(s, "home", 200, "/index.json");
        }
    }
    look(s, "check", 200, PAGE "/commit/%s.json", c3);
    look(s, "check", 200, "/api/v1/projects/" UPLOAD_PROJECT "/commits/%s/check", c2);
    look(s, "baseline", 200, "/b/%s.json", base);
    look(s, "run", 200, "/r/%s.json", first->run);
    p = push(s, &(struct said){.executable = 5, .mode = "cpu", .control = first->run}, 201,
             "verdict");
    look_at_run(s, p, false, first->run);
    p = push(s, &(struct said){.build_only = true}, 201, "verdict");
    look_at_run(s, p, false, NULL);
    return first;
}

/* Evidence that is refused, and evidence that breaks afterwards. */
static void broken_ones(struct site *s)
{
    struct private_key *stranger = package_key_new();
    const struct package *p;

    (void) push(s, &(struct said){.rate = 1, .lie = PACKAGE_ACCEPTANCE_PASS}, 422, "problem");
    (void) push(s, &(struct said){.lie = PACKAGE_ACCEPTANCE_VALUE}, 422, "problem");
    (void) push(s, &(struct said){.key = stranger}, 422, "problem");
    private_key_free(stranger);
    p = push(s, &(struct said){.executable = 6}, 201, "verdict");
    flip(s, p);
    look(s, "problem", 500, RUNS "%s/archive", p->run);
    look_at_run(s, p, true, NULL);
}

static void lists(struct site *s)
{
    char key[DIGEST_HEX_SIZE];

    look(s, "gate", 200, PAGE "/" UPLOAD_GATE ".json");
    look(s, "baselines", 200, PAGE "/" UPLOAD_GATE "/baselines.json");
    look(s, "baselines", 200, GATE "/baselines");
    look(s, "project", 200, PAGE ".json");
    look(s, "home", 200, "/index.json");
    look(s, "keys", 200, "/api/v1/keys");
    digest_hex(public_key_fingerprint(private_key_public(uploads_key(s->uploads))), key);
    look(s, "runner", 200, "/api/v1/projects/" UPLOAD_PROJECT "/runners/%s", key);
    look(s, "help", 200, "/help.json");
    look(s, "help-of-a-reason", 200, "/help/reasons/IN-HASH.json");
    look(s, "healthz", 200, "/healthz");
    look(s, "version", 200, "/version");
    look(s, "problem", 404, "/api/v1/nothing");
}

/* Imported baselines, which have neither run nor archive of ours. */
static void history(struct site *s)
{
    static const char *const ids[] = {"20260706T181609Z", "20260929T034251Z"};
    static const char *const project[] = {"project", "add", "old/history", NULL};
    char *definition_path = test_path("examples/rvoip-sip/cleanrun.yaml");

    assert_int_equal(live_admin(&s->live, project, NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        char *name = test_join("baselines/rvoip-sip/" HISTORY_GATE, ids[i]);
        char *dir = test_path(name);
        const char *const args[] = {"baseline",
                                    "import",
                                    dir,
                                    "--legacy",
                                    "--project",
                                    "old/history",
                                    "--gate",
                                    HISTORY_GATE,
                                    "--class",
                                    "old-machine",
                                    "--definition",
                                    definition_path,
                                    "--reviewer",
                                    "somebody",
                                    "--reason",
                                    "history",
                                    NULL};

        assert_int_equal(live_admin(&s->live, args, NULL), 0);
        free(dir);
        free(name);
    }
    look(s, "baselines", 200, "/p/old/history/" HISTORY_GATE "/baselines.json");
    look(s, "gate", 200, "/p/old/history/" HISTORY_GATE ".json");
    look(s, "baseline", 200, "/b/b-%s.json", ids[0]);
    look(s, "compare", 200, "/b/b-%s/vs/b-%s.json", ids[0], ids[1]);
    free(definition_path);
}

/* A server whose disk is nearly full says so, in a mount table of our own. */
static void little_room(struct site *s)
{
    struct site small = {.members = s->members};
    char *mount_point = test_dir_new();
    char *data = test_join(mount_point, "data");

    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", mount_point, "tmpfs", 0, "size=6m") < 0) {
        print_message("without a small tmpfs readyz is not asked for its complaint\n");
        members_excuse(s->members, "readyz", "checks[].text");
    } else {
        live_init_at(&small.live, data);
        live_start(&small.live, NULL);
        look(&small, "readyz", 503, "/readyz");
        assert_int_equal(live_stop(&small.live), 0);
        live_fini(&small.live);
        s->bad += small.bad;
        assert_int_equal(umount2(mount_point, MNT_DETACH), 0);
    }
    free(data);
    test_dir_free(mount_point);
}

int site_check(struct site *s)
{
    const struct package *first = every_verdict(s);

    broken_ones(s);
    lists(s);
    history(s);
    look(s, "envelope", 200, RUNS "%s/attestation", first->run);
    look(s, "envelope", 200, RUNS "%s/verdict/attestation", first->run);
    {
        char base[64];
        const char *const retire[] = {"baseline",     "retire",     base,       "--project",
                                      UPLOAD_PROJECT, "--reviewer", "somebody", "--reason",
                                      "over",         NULL};

        (void) snprintf(base, sizeof base, "b-%s", first->run);
        assert_int_equal(live_admin(&s->live, retire, NULL), 0);
        look(s, "baseline", 200, "/b/%s.json", base);
        look(s, "gate", 200, PAGE "/" UPLOAD_GATE ".json");
    }
    look(s, "readyz", 200, "/readyz");
    little_room(s);
    return s->bad;
}
