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
    const char *build;  /* %s: the target */
    const char *ignore; /* what the build leaves in the tree; NULL: the target itself */
};

#define REJECT "reject: [CFLAGS, CXXFLAGS, LDFLAGS, CPPFLAGS, RUSTFLAGS, LD_PRELOAD, 'MALLOC_*']"

static const struct kind kinds[] = {
    {"meson", "meson.build",
     "      prepare:\n        - [meson, setup, build, --buildtype=release]\n"
     "      command: [meson, compile, -C, build]\n"
     "      executable: {from: meson-introspection, target: %s, build_dir: build}  # EDIT\n"
     "      toolchain: [cc, --version]\n"
     "      env: {" REJECT "}\n",
     "/build/"},
    {"cargo", "Cargo.toml",
     "      command: [cargo, build, --release, --message-format=json]\n"
     "      messages: cargo-json\n"
     "      executable: {from: cargo-messages, target: %s, kind: bin}  # EDIT\n"
     "      toolchain: [rustc, --version]\n"
     "      env: {allow: [PATH, HOME], " REJECT "}\n",
     "/target/"},
    {"cmake", "CMakeLists.txt",
     "      prepare:\n        - [cmake, -S, ., -B, build, -DCMAKE_BUILD_TYPE=Release]\n"
     "      command: [cmake, --build, build]\n"
     "      executable: {from: path, path: build/%s}  # EDIT\n"
     "      toolchain: [cc, --version]\n"
     "      env: {" REJECT "}\n",
     "/build/"},
    {"make", "Makefile",
     "      command: [make]\n"
     "      executable: {from: path, path: %s}  # EDIT\n"
     "      toolchain: [cc, --version]\n"
     "      env: {" REJECT "}\n",
     NULL},
};

#define CARGO_KIND(name, build, kind)                                                              \
    {                                                                                              \
        name, "Cargo.toml",                                                                        \
            "      command: [cargo, " build ", --no-run, --" kind ", %s, --message-format=json]\n" \
            "      messages: cargo-json\n"                                                         \
            "      executable: {from: cargo-messages, target: %s, kind: " kind "}  # EDIT\n"       \
            "      toolchain: [rustc, --version]\n"                                                \
            "      env: {allow: [PATH, HOME], " REJECT "}\n",                                      \
            "/target/"                                                                             \
    }

/* Cargo links these with other commands than a program. */
static const struct kind cargo_bench = CARGO_KIND("cargo bench", "bench", "bench");
static const struct kind cargo_test = CARGO_KIND("cargo test", "test, --release", "test");

/* Is there a table [[word]] with this name? Good for what people write; else `kind` is edited. */
static bool cargo_has(const char *toml, const char *word, const char *target)
{
    char header[32], name[128];
    bool inside = false;

    (void) snprintf(header, sizeof(header), "[[%s]]", word); /* fits */
    (void) snprintf(name, sizeof(name), "\"%s\"", target);   /* fits: a name is short */
    for (const char *line = toml; *line;) {
        size_t len = strcspn(line, "\n");

        if (line[0] == '[')
            inside = strncmp(line, header, strlen(header)) == 0;
        else if (inside && !strncmp(line, "name", 4) && strspn(line + 4, " \t=") > 0 &&
                 !strncmp(line + 4 + strspn(line + 4, " \t="), name, strlen(name)))
            return true;
        line += len + (line[len] == '\n' ? 1 : 0);
    }
    return false;
}

static const struct kind *of_target(const struct kind *k, const char *directory, const char *target)
{
    AUTO_FREE char *toml = NULL;
    AUTO_FD int dir = -1;
    struct err unread = ERR_INIT; /* then it is taken for a program */
    size_t len = 0;

    if (strcmp(k->name, "cargo") != 0 || file_open_dir(directory, &dir, &unread) < 0 ||
        file_read_at(dir, k->file, LIMIT_MIB(1), &toml, &len, &unread) < 0)
        return k;
    if (cargo_has(toml, "bench", target))
        return &cargo_bench;
    return cargo_has(toml, "test", target) ? &cargo_test : k;
}

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
    const char *from = k->build;

    for (const char *at = strstr(from, "%s"); at; at = strstr(from, "%s")) {
        buf_put(b, from, (size_t) (at - from));
        buf_puts(b, target);
        from = at + 2;
    }
    buf_puts(b, from);
}

/* The simplest sound gate; everything else stands there to be uncommented. */
static void write_gate(struct buf *b, const struct kind *k, const char *project, const char *gate,
                       const char *target, const char *class)
{
    buf_printf(
        b,
        "# A performance gate. Edit the names marked EDIT, then: cleanrun check; cleanrun run "
        "%s.\n"
        "# Every key: cleanrun help definition, man cleanrun.yaml.\n"
        "version: 1\nproject: %s  # EDIT: owner/name\ngates:\n  %s:\n"
        "    class: %s  # EDIT: your name for this kind of machine\n    build:\n",
        gate, project, gate, class);
    put_build(b, k, target);
    buf_printf(
        b,
        "      allocator: malloc\n"
        "    run:\n"
        "      # For a program that prints its report, one JSON object, to standard output. One "
        "that writes it to the\n"
        "      # file $CLEANRUN_RESULTS/%s/default.json itself has `command: ['{executable}']`.\n"
        "      command:\n"
        "        - sh\n"
        "        - -c\n"
        "        - 'mkdir -p \"$CLEANRUN_RESULTS/%s\" && exec \"$@\" "
        ">\"$CLEANRUN_RESULTS/%s/default.json\"'\n"
        "        - sh\n"
        "        - '{executable}'\n"
        "      report: %s/default.json\n"
        "      timeout: 10m\n",
        gate, gate, gate, gate);
    buf_printf(
        b,
        "    # What the run was of: members of the report that must be equal before two runs are "
        "compared.\n"
        "    identity:\n"
        "      - {path: /n, require: required}  # EDIT\n"
        "    # What one run must keep to by itself: at least one check.\n"
        "    accept:\n"
        "      limits:\n"
        "        - {name: something was measured, path: /seconds, op: '>=', value: 0, unit: s}  # "
        "EDIT\n"
        "      # exact: [{name: nothing failed, path: /errors, equals: 0}]\n"
        "    # What is compared with the baseline.\n"
        "    audit:\n"
        "      paths: {required: [%s/default.json]}\n"
        "      metrics:\n"
        "        - {path: /seconds, unit: s, worse: higher, tolerance_pct: 20}  # EDIT\n"
        "        # - {path: /resources/peak_rss_mb, label: peak RSS, unit: MB, worse: higher, "
        "tolerance_pct: 15}\n"
        "    # Memory over time: the runner samples the program and adds `resources` to the "
        "report; "
        "worth it for a\n"
        "    # program that runs for seconds at least.\n"
        "    # sampling: {interval: 100ms, into: /resources}\n"
        "    # Growth between two moments that the program tells: a line with the name to the "
        "descriptor\n"
        "    # $CLEANRUN_PHASE_FD; the metric is /resources/windows/steady/growth_mb_per_hour.\n"
        "    # phases: {markers: [window_start, window_end], required: [window_start, "
        "window_end]}\n"
        "    # windows:\n"
        "    #   steady: {start_phase: window_start, end_phase: window_end, estimator: "
        "endpoint-bands}\n",
        gate);
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

static void tell_next(const struct cli *c, const struct kind *k, const char *gate,
                      const char *target)
{
    cli_say(c, "wrote cleanrun.yaml for a %s build that makes '%s'; next:", k->name, target);
    cli_say(c, "  edit the names marked EDIT: project, class, program, identity, check and metric");
    cli_say(c, "  echo %s%s >>.gitignore    # what a build leaves is no change of the source",
            k->ignore ? k->ignore : "/", k->ignore ? "" : target);
    cli_say(c, "  git add cleanrun.yaml .gitignore && git commit");
    cli_say(c, "  cleanrun check && cleanrun run %s", gate);
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
                       "build write cleanrun.yaml by hand: cleanrun help definition, man "
                       "cleanrun.yaml");
    if (!text_is_slug(gate) || !text_is_project(project) || !text_is_slug(class) ||
        !text_is_name(target))
        return err_set(
            e, ERR_USAGE, "init.name",
            "a gate and a class are [a-z0-9-], a project is owner/name, a target is a name");
    k = of_target(k, c->directory, target);
    buf_init(&b, LIMIT_YAML);
    write_gate(&b, k, project, gate, target, class);
    if (buf_check(&b, e) < 0 || check_text(b.data, b.len, e) < 0)
        return -1;
    if (cli_has(a, "dry-run"))
        return cli_write_text(c, NULL, b.data, b.len, e);
    if (file_open_dir(c->directory, &dir, e) < 0 ||
        file_create_at(dir, "cleanrun.yaml", b.data, b.len, 0644, e) < 0)
        return -1;
    tell_next(c, k, gate, target);
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
             "cleanrun.yaml is left alone.\nExit: 0, or 2 when it stands there already, no build "
             "system is found, or it can't be written.\n",
    COMMAND_OPTIONS(options),
    .max_args = 0,
    .run = run,
};
