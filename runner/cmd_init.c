/* cleanrun init: a first cleanrun.yaml for the build system that is there. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/verdict.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "experiment/definition.h"
#include "runner/commands.h"

/* What a build system needs in the build part. */
struct kind {
    const char *name, *file;
    const char *build; /* %s: the target */
    const char *allocator;
};

static const struct kind kinds[] = {
    {"meson", "meson.build",
     "      prepare:\n        - [meson, setup, build]\n      command: [meson, compile, -C, build]\n"
     "      executable: {from: meson-introspection, target: %s, build_dir: build}\n"
     "      toolchain: [cc, --version]\n",
     "malloc"},
    {"cargo", "Cargo.toml",
     "      command: [cargo, build, --release, --message-format=json]\n      messages: cargo-json\n"
     "      executable: {from: cargo-messages, target: %s, kind: bin}\n      toolchain: [rustc, "
     "--version]\n",
     "malloc"},
    {"cmake", "CMakeLists.txt",
     "      prepare:\n        - [cmake, -S, ., -B, build, -DCMAKE_BUILD_TYPE=Release]\n      "
     "command: [cmake, --build, build]\n"
     "      executable: {from: path, path: build/%s}\n      toolchain: [cc, --version]\n",
     "malloc"},
    {"make", "Makefile",
     "      command: [make]\n      executable: {from: path, path: %s}\n      toolchain: [cc, "
     "--version]\n",
     "malloc"},
};

static const struct kind *detect(const char *directory)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        AUTO_FREE char *path = NULL;

        if (asprintf(&path, "%s/%s", directory, kinds[i].file) < 0) {
            path = NULL;
            return NULL;
        }
        if (faccessat(AT_FDCWD, path, R_OK, 0) == 0)
            return &kinds[i];
    }
    return NULL;
}

static void put_build(struct buf *b, const struct kind *k, const char *target)
{
    const char *at = strstr(k->build, "%s");

    buf_put(b, k->build, (size_t) (at - k->build));
    buf_puts(b, target);
    buf_puts(b, at + 2);
}

static void write_gate(struct buf *b, const struct kind *k, const char *project, const char *gate,
                       const char *target, const char *class)
{
    buf_printf(b,
               "# A performance gate. Check it with `cleanrun check`; every key: "
               "docs/definition.md, cleanrun help definition.\n"
               "version: 1\nproject: %s\ngates:\n  %s:\n    class: %s\n    build:\n",
               project, gate, class);
    put_build(b, k, target);
    buf_printf(b, "      allocator: %s\n", k->allocator);
    buf_puts(b, "      env: {allow: [PATH, HOME], reject: [CFLAGS, LDFLAGS, CPPFLAGS, RUSTFLAGS, "
                "LD_PRELOAD, 'MALLOC_*']}\n"
                "      timeout: 15m\n"
                "    run:\n"
                "      # The program writes its JSON report to the file `report` below "
                "$CLEANRUN_RESULTS (it makes the\n"
                "      # directory), and a line to the descriptor $CLEANRUN_PHASE_FD when a phase "
                "begins or ends.\n"
                "      command: ['{executable}']\n");
    buf_printf(b, "      report: %s/default.json\n", gate);
    buf_puts(b, "      timeout: 10m\n"
                "    # Without phase markers in the program: take out phases, windows, "
                "accept.exact and the "
                "second metric.\n"
                "    phases:\n      markers: [window_start, window_end]\n      required: "
                "[window_start, window_end]\n"
                "    sampling: {interval: 100ms, into: /resources}\n"
                "    windows:\n      steady: {start_phase: window_start, end_phase: window_end, "
                "estimator: endpoint-bands}\n"
                "    # Members of the report that must be equal before two runs are compared.\n"
                "    identity:\n      - {path: /scenario, require: required}\n      - {path: "
                "/load, require: required}\n"
                "    accept:\n      exact:\n        - {name: window complete, path: "
                "/resources/windows/steady/complete, equals: true}\n"
                "    audit:\n");
    buf_printf(b, "      paths: {required: [%s/default.json]}\n", gate);
    buf_puts(b, "      metrics:\n"
                "        - {path: /resources/peak_rss_mb, label: peak RSS, unit: MB, worse: "
                "higher, tolerance_pct: 15, gated: true}\n"
                "        - {path: /resources/windows/steady/growth_mb_per_hour, label: RSS growth, "
                "unit: MB/h, worse: higher,"
                " tolerance_pct: 15, floor: 100, gated: true}\n");
}

/* What is written must be accepted by our own reader. */
static int check_text(const char *text, size_t len, struct err *e)
{
    struct definition_file f = {.n = 0};

    if (definition_file_parse("cleanrun.yaml", text, len, &f, e) < 0) {
        e->kind = ERR_INTERNAL;
        return -1;
    }
    definition_file_fini(&f);
    return 0;
}

static int init(struct cli *c, const struct cli_args *a, struct err *e)
{
    const struct kind *k = detect(c->directory);
    const char *gate = cli_get(a, "gate") ? cli_get(a, "gate") : "bench";
    const char *project = cli_get(a, "project") ? cli_get(a, "project") : "owner/name";
    const char *class = cli_get(a, "class") ? cli_get(a, "class") : "my-machine";
    const char *target = cli_get(a, "target") ? cli_get(a, "target") : "bench";
    AUTO_FD int dir = -1;
    AUTO_BUF struct buf b = {.data = NULL};

    if (!k)
        return err_set(e, ERR_USAGE, "init.build",
                       "no meson.build, Cargo.toml, CMakeLists.txt or Makefile here; for another "
                       "build start from docs/definition.md");
    if (!text_is_slug(gate) || !text_is_project(project) || !text_is_slug(class) ||
        !text_is_name(target))
        return err_set(
            e, ERR_USAGE, "init.name",
            "a gate and a class are [a-z0-9-], a project is owner/name, a target is a name");
    buf_init(&b, LIMIT_YAML);
    write_gate(&b, k, project, gate, target, class);
    if (buf_check(&b, e) < 0 || check_text(b.data, b.len, e) < 0)
        return -1;
    if (cli_has(a, "dry-run"))
        return cli_write_text(c, NULL, b.data, b.len, e);
    if (file_open_dir(c->directory, &dir, e) < 0 ||
        file_create_at(dir, "cleanrun.yaml", b.data, b.len, 0644, e) < 0)
        return -1;
    cli_say(
        c,
        "wrote cleanrun.yaml for a %s build that makes '%s': set project, class, report, identity "
        "and metrics; then: cleanrun check, cleanrun run %s",
        k->name, target, gate);
    return 0;
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;

    return init(c, a, &e) < 0 ? cli_fail(c, &e) : EXIT_OK;
}

static const struct cli_option options[] = {
    {.name = "gate", .value = "NAME", .help = "name of the gate (default bench)"},
    {.name = "project", .value = "OWNER/NAME", .help = "the project (default owner/name)"},
    {.name = "class", .value = "CLASS", .help = "machine class (default my-machine)"},
    {.name = "target", .value = "NAME", .help = "the program to measure (default bench)"},
    {.name = "dry-run", .help = "print instead of writing"},
};

const struct command command_init = {
    .name = "init",
    .summary = "write a first cleanrun.yaml",
    .synopsis = "[OPTION...]",
    .examples = "  cleanrun init --gate kvcache-50k --project demo/kvcache --target kvcache\n",
    .notes = "Looks for meson.build, Cargo.toml, CMakeLists.txt or Makefile. An existing "
             "cleanrun.yaml is left alone.\nExit: 0, or 2 when it stands there already or can't be "
             "written.\n",
    COMMAND_OPTIONS(options),
    .max_args = 0,
    .run = run,
};
