/*
 * manifest: cleanrun-manifest/2, the first member of every evidence package. Closed document: unknown keys are refused.
 *
 * {"schema":"cleanrun-manifest/2","project":"demo/kvcache","gate":"kvcache-50k","class":"demo-vm","run":"20261129T141502Z-9c1e07ab",
 *  "mode":"clean|cpu|timing|memory|boundary","status":"BUILD_ONLY|PASS|FAIL","attempt":1,
 *  "started_at":"…Z","finished_at":"…Z","exit_code":0|null,"signal":null|11,
 *  "report_status":"NOT_EXPECTED|MISSING|INVALID|CAPTURED","report":"kvcache/50000.json"|null,
 *  "acceptance_status":"PASS|FAIL|NOT_APPLICABLE","audit_status":"OK|REGRESSION|NON_COMPARABLE|NOT_APPLICABLE",
 *  "definition":{"experiment_sha256":hex,"policy_sha256":hex},
 *  "source":{"start":SOURCE,"end":SOURCE,"unchanged":bool},
 *     SOURCE = {"schema":"cleanrun-source/1","scheme":"cleanrun-source/1","commit","tree","parents":[],"dirty":bool,"fingerprint":hex,"files":n,"untracked":n}
 *  "executable":{"name","sha256","size":n,"resolved":"path|cargo-messages|meson-introspection","mapped":[{"name","sha256"}]}|null,
 *  "build":{"command":[],"exit_code":0,"environment":{},"rejected_patterns":[],"profile":{}},
 *  "machine":{"facts":{…experiment/facts.h…},"readings":{…never identity…}},
 *  "interference":{"before":{},"during":{}},
 *  "ticket":null|{}, "baseline":null|{"id","evidence_sha256","manifest_sha256"},
 *  "conditioning":{"steps":[…],"sha256":hex},
 *  "phase_markers":[{"phase","kind","elapsed_ms"}],
 *  "coverage":[{"window","requested_secs","actual_secs","samples","complete"}],
 *  "control":null|run id (diagnostic modes), "runner":{"version"},
 *  "files":[{"path","size","sha256","role"}]}     every other member exactly once, byte order of path
 *
 * roles: definition build-messages build-log run-log source environment host report raw-report samples acceptance audit
 *        audit-markdown baseline profile
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
};

/* Parses and checks shape and inner coherence (status against its parts, run id, start ≤ end, file list sorted and closed). */
int manifest_parse(const char *bytes, size_t len, struct manifest *out, struct err *e) MUST_CHECK;
void manifest_fini(struct manifest *m);
const struct manifest_file *manifest_find(const struct manifest *m, const char *path);
bool manifest_is_dirty(const struct manifest *m);
#define AUTO_MANIFEST __attribute__((cleanup(manifest_fini)))
