/*
 * manage: what an administrator or a reviewer changes: projects, runners, tokens, baselines. Each
 * is one write transaction with a line in the audit log. Names are checked here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "server/store/store.h"

/* ERR_CONFLICT when it exists. */
int manage_project_add(struct store *s, const char *name, bool is_private,
                       struct err *e) MUST_CHECK;
struct manage_project {
    const bool *is_private; /* NULL: unchanged */
    const char *tickets;    /* "optional", "required" or NULL */
    const int64_t *deadline_s;
};
int manage_project_set(struct store *s, const char *name, const struct manage_project *change,
                       struct err *e) MUST_CHECK;

struct manage_runner {
    const char *name, *machine_class, *project;
    const char *key_pem;                 /* SPKI PEM, P-256 */
    int64_t not_before_us, not_after_us; /* 0: unbounded */
};
/* A known name with the same key and class is allowed for one more project; with others, or with a
 * validity that is not the runner's, it is ERR_CONFLICT. A key belongs to one runner only, a
 * revoked one to none. */
int manage_runner_add(struct store *s, const struct manage_runner *r, struct err *e) MUST_CHECK;

struct manage_validity {
    const int64_t *not_before_us, *not_after_us; /* NULL: unchanged, 0: unbounded */
};
/* When a key that is not revoked is valid. */
int manage_runner_set(struct store *s, const char *name, const struct manage_validity *change,
                      struct err *e) MUST_CHECK;
struct manage_revoked {
    int64_t since_us; /* what holds after it */
    bool stands;      /* an earlier revocation stands, with its time and its reason */
};
/* since_us 0: from now; a time to come is ERR_USAGE. The time of a revoked runner only ever moves
 * to an earlier one: what signed in between was INVALID and stays so. out may be NULL. */
int manage_runner_revoke(struct store *s, const char *name, const char *reason, int64_t since_us,
                         struct manage_revoked *out, struct err *e) MUST_CHECK;

#define MANAGE_TOKEN_SIZE 80
/* Hands the new token to whoever asked for it; -1 with *e when that failed. */
typedef int (*manage_token_shown)(void *ctx, const char *token, struct err *e);
/* project NULL: every project. The text exists nowhere else: only its hash is stored, and only when
 * `show` said that it was shown: a token that nobody has seen must not be valid. */
int manage_token_add(struct store *s, const char *name, unsigned scopes, const char *project,
                     manage_token_shown show, void *ctx, struct err *e) MUST_CHECK;
int manage_token_revoke(struct store *s, const char *name, struct err *e) MUST_CHECK;

#define MANAGE_PROJECT_RULE                                                                        \
    "OWNER/NAME, each of letters, digits and . _ -, at most 64, the name not ending in .json "     \
    ".txt "                                                                                        \
    ".md .git"
#define MANAGE_ID_SIZE 128
struct manage_review {
    const char *project, *gate, *reviewer, *reason;
    bool new_policy; /* the run's policy was reviewed, too: it may differ from the current one */
};
/* Promotes a stored run: mode clean, status PASS, not dirty, its object sound, its
 * runner's key not revoked before it was received, and a later run could be compared with it
 * (audit_would_compare; else ERR_CONFLICT with the reasons). It becomes the current baseline of its
 * (gate, class); the one before is superseded. A run that is the baseline already is ERR_CONFLICT;
 * an earlier baseline becomes current again. A policy that differs from the current
 * baseline's, or from that of one that was retired without a successor, is ERR_CONFLICT with what
 * differs, unless review->new_policy. */
int manage_baseline_approve(struct store *s, const char *run, const struct manage_review *review,
                            char out_id[MANAGE_ID_SIZE], struct err *e) MUST_CHECK;

/* Withdraws a current baseline without a successor: its (gate, class) is no longer expected of a
 * commit, and its runs are NON_COMPARABLE until another one is approved. review->gate is not
 * looked at. Not current: ERR_CONFLICT. */
int manage_baseline_retire(struct store *s, const char *id, const struct manage_review *review,
                           struct err *e) MUST_CHECK;

struct manage_import {
    const char *dir;        /* with a baseline manifest (manifest.json) that its files satisfy */
    const char *definition; /* cleanrun.yaml or definition.json of the gate */
    const char *machine_class;
    const char *commit; /* NULL: what the manifest says, else unknown */
};
/* Unsigned history: kept and shown, never judging. Id: "b-<baseline id>". */
int manage_baseline_import(struct store *s, const struct manage_import *in,
                           const struct manage_review *review, char out_id[MANAGE_ID_SIZE],
                           struct err *e) MUST_CHECK;
