/*
 * manifest: cleanrun-manifest/2, the first member of every evidence package. Closed document:
 * unknown keys are refused.
 *
 * {"schema":"cleanrun-manifest/2","project":"demo/kvcache","gate":"kvcache-50k",
 *  "class":"demo-vm","run":"20261129T141502Z-9c1e07ab",
 *  "mode":"clean|cpu|timing|memory|boundary","status":"BUILD_ONLY|PASS|FAIL","attempt":1,
 *  "started_at":"…Z","finished_at":"…Z","exit_code":0|null,"signal":null|11,
 *  "report_status":"NOT_EXPECTED|MISSING|INVALID|CAPTURED","report":"kvcache/50000.json"|null,
 *  "acceptance_status":"PASS|FAIL|NOT_APPLICABLE",
 *  "audit_status":"OK|REGRESSION|NON_COMPARABLE|NOT_APPLICABLE",
 *  "definition":{"experiment_sha256":hex,"policy_sha256":hex},
 *  "source":{"start":SOURCE,"end":SOURCE,"unchanged":bool},
 *     SOURCE = {"schema":"cleanrun-source/1","scheme":"cleanrun-source/1","commit","tree",
 *               "parents":[],"dirty":bool,"fingerprint":hex,"files":n,"untracked":n}
 *  "executable":null|{"name","sha256","size":n,
 *               "resolved":"path|cargo-messages|meson-introspection","mapped":[{"name","sha256"}]},
 *  "build":{"command":[],"exit_code":0,"environment":{},"rejected_patterns":[],"profile":{}},
 *  "environment":{}|null,
 *  "machine":{"facts":{…experiment/facts.h…},"readings":{…never identity…}},
 *  "interference":{"before":{},"during":{}},
 *  "ticket":null|{}, "baseline":null|{"id","evidence_sha256","manifest_sha256"},
 *  "conditioning":{"steps":[…],"sha256":hex},
 *  "phase_markers":[{"phase","kind","elapsed_ms"}],
 *  "coverage":[{"window","requested_secs","actual_secs","samples","complete"}],
 *  "control":null|run id (diagnostic modes), "runner":{"version"},
 *  "files":[{"path","size","sha256","role"}]}  every other member once, byte order of path
 *
 * Coherence: status PASS needs exit_code 0, no signal, source.unchanged and an executable; in mode
 * clean also report CAPTURED and acceptance PASS; BUILD_ONLY has neither exit code, report,
 * acceptance nor audit. unchanged says whether start and end agree in scheme, commit, tree, dirty
 * and fingerprint. A report is the member results/<report>, of role report (CAPTURED) or raw-report
 * (INVALID). acceptance_status and audit_status other than NOT_APPLICABLE need acceptance.json and
 * audit.json. definition.json is always there. Standard names carry their standard role; roles
 * definition, source, acceptance, audit, audit-markdown only standard names.
 *
 * roles: definition build-messages build-log run-log source environment host report raw-report
 * samples acceptance audit audit-markdown baseline profile
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"

#define MANIFEST_NAME "manifest.json"

enum manifest_status { MANIFEST_BUILD_ONLY, MANIFEST_PASS, MANIFEST_FAIL };

struct manifest_file {
    const char *path; /* borrowed from document */
    const char *role;
    uint64_t size;
    struct digest digest;
};

struct manifest {
    cJSON *document; /* owned; strings below are borrowed from it */
    const char *project, *gate, *machine_class, *run, *mode;
    enum manifest_status status;
    const char *commit;      /* source.start.commit */
    const char *fingerprint; /* source.start.fingerprint */
    const char *report;      /* path below results/, or NULL */
    int64_t started_us, finished_us;
    struct digest experiment_digest, policy_digest, executable_digest;
    struct manifest_file *files;
    size_t n_files;
    struct digest digest; /* SHA-256 of the manifest's bytes */
    bool has_executable;
    bool dirty;       /* source.start.dirty or source.end.dirty, or ignored files lay there */
    uint64_t ignored; /* source.ignored */
    bool unchanged;   /* source.unchanged, and true: start and end agree */
};

/* Parses and checks shape and inner coherence (status against its parts, run id, start ≤ end, file
 * list sorted and closed). */
int manifest_parse(const char *bytes, size_t len, struct manifest *out, struct err *e) MUST_CHECK;
void manifest_fini(struct manifest *m);
const struct manifest_file *manifest_find(const struct manifest *m, const char *path);
bool manifest_is_dirty(const struct manifest *m);
#define AUTO_MANIFEST __attribute__((cleanup(manifest_fini)))

const char *manifest_status_name(enum manifest_status s); /* "BUILD_ONLY" "PASS" "FAIL" */

/* Role of a standard name of a run directory ("results/s/p.json" → "report"), NULL for a name that
 * has none. A malformed report is listed as "raw-report" by its writer: report members must be
 * strict JSON. */
const char *manifest_role_of(const char *path);
bool manifest_role_known(const char *role);

/* files[] of a run directory as a new JSON array (caller frees): every regular file but
 * manifest.json, in byte order, hashed. role NULL: manifest_role_of; role may return NULL to refuse
 * the file (ERR_INPUT). */
int manifest_files_from_dir(int dirfd, const char *(*role)(void *ctx, const char *path), void *ctx,
                            cJSON **out, struct err *e) MUST_CHECK;
/* Shape and coherence of a whole document (manifest_check.c); manifest_parse calls it. */
int manifest_check(const cJSON *document, struct err *e) MUST_CHECK;
