/*
 * documents: the JSON documents that the API returns and the pages render, complete with their
 * links (root-relative; whoever serves adds the base). Each is a fresh tree that the caller frees;
 * -1 with ERR_NOTFOUND when the thing does not exist. Whether the asker may see a project is
 * decided by the caller before (store_project_get), except where a viewer is given. Any thread. The
 * fields are those of tests/data/pages/<name>.json.
 */
#pragma once

#include <cjson/cJSON.h>

#include "server/store/store.h"

/* cleanrun-home/1: newest answer of every (project, gate, class) the viewer sees. */
int doc_home(struct store *s, const struct store_viewer *viewer, cJSON **out,
             struct err *e) MUST_CHECK;
/* cleanrun-project/1 */
int doc_project(struct store *s, const char *project, cJSON **out, struct err *e) MUST_CHECK;
/* cleanrun-gate/1; ERR_NOTFOUND for a gate without runs, baselines and attempts. */
int doc_gate(struct store *s, const char *project, const char *gate, cJSON **out,
             struct err *e) MUST_CHECK;
/* cleanrun-baselines/1 */
int doc_baselines(struct store *s, const char *project, const char *gate, cJSON **out,
                  struct err *e) MUST_CHECK;
/* cleanrun-baseline-record/1 by id ("b-…") */
int doc_baseline(struct store *s, const char *id, cJSON **out, struct err *e) MUST_CHECK;
/* cleanrun-run/1. When the stored object is damaged, evidence.damaged is true, the first stage is
 * failed and nothing that would have to be read from the object is shown. */
int doc_run(struct store *s, const char *run, cJSON **out, struct err *e) MUST_CHECK;
/* cleanrun-verdict/1 as text, the bytes that were given; when the stored object is damaged, or the
 * runner's key was revoked before the run was received, the verdict is INVALID with that as its
 * only reason. The caller frees it. ERR_NOTFOUND: the run has none. */
int doc_verdict(struct store *s, const char *run, char **out, size_t *out_len,
                struct err *e) MUST_CHECK;
/* cleanrun-compare/1: run against a baseline id or another run of the same gate. The comparison
 * that gave the run its verdict comes from the store; any other is computed now and informational
 * (verdict null). */
int doc_compare(struct store *s, const char *run, const char *other, cJSON **out,
                struct err *e) MUST_CHECK;
/* cleanrun-compare/1 of two baselines of one gate, imported history included: always informational.
 * `current` and `baseline` have {id, run (the id when there is none), commit|null, class, legacy,
 * reviewed, …}. */
int doc_compare_baselines(struct store *s, const char *id, const char *other, cJSON **out,
                          struct err *e) MUST_CHECK;
/* cleanrun-check/1; an unknown commit is PENDING. commit: 40 or 64 hex digits, else ERR_USAGE. */
int doc_check(struct store *s, const char *project, const char *commit, cJSON **out,
              struct err *e) MUST_CHECK;
/* cleanrun-runner/1: the runner of a project whose key has this fingerprint, and whether what it
 * signs now is believed; ERR_NOTFOUND when none is registered for the project. */
int doc_runner(struct store *s, const char *project, const struct digest *fingerprint, cJSON **out,
               struct err *e) MUST_CHECK;
/* cleanrun-keys/1: {schema, keys[{keyid, fingerprint_sha256, pem, use: "verdicts"}]} */
int doc_keys(struct store *s, cJSON **out, struct err *e) MUST_CHECK;
