/*
 * verdict: the product's one answer with its exit code and its ranking, and the reasons
 * registry. A verdict is a value; failing to reach one is an error (struct err).
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum verdict {
    VERDICT_OK,
    VERDICT_REGRESSION,
    VERDICT_NON_COMPARABLE,
    VERDICT_FAIL,
    VERDICT_INVALID,
    VERDICT_ERROR,
    VERDICT_PENDING,
    VERDICT_MAX,
};

enum exit_code {
    EXIT_OK = 0,
    EXIT_REGRESSION = 1,
    EXIT_USAGE = 2,
    EXIT_NON_COMPARABLE = 3,
    EXIT_FAIL = 4,
    EXIT_INVALID = 5,
    EXIT_ERROR = 6,
    EXIT_NOTHING = 7,
    EXIT_PENDING = 8,
    EXIT_INTERRUPTED = 130,
};

/* "REGRESSION" and the like, as in every document (static); and back. */
const char *verdict_word(enum verdict v);
bool verdict_parse(const char *word, enum verdict *out) MUST_CHECK;
/* The exit code (enum exit_code) of a program whose answer this is. */
int verdict_exit(enum verdict v);
/* The worse of two by the order of exit codes 5 6 4 1 3 7 8 0 (several gates). */
enum verdict verdict_worse(enum verdict a, enum verdict b);

/* The reasons registry: one row per code, in registry order (audit/reasons.def). */
struct reason_info {
    const char *code;
    const char *title;   /* one line */
    const char *text;    /* what it means */
    const char *resolve; /* who can resolve it, and the one command that does */
};
extern const struct reason_info reasons_table[];
extern const size_t reasons_count;
const struct reason_info *reason_find(const char *code); /* NULL: no such code */

/* One run's answer as cleanrun-verdict/1 (docs/json.md). */
struct verdict_input {
    const char *project, *gate, *run, *commit, *mode, *machine_class;
    const char *baseline;    /* id or NULL */
    const cJSON *attempt;    /* {n, of, previous[]} or NULL → {1,1,[]} */
    const cJSON *acceptance; /* cleanrun-acceptance/1 or NULL */
    const cJSON *audit;      /* cleanrun-audit/1 or NULL */
    /* array of reasons when the evidence is broken: verdict INVALID */
    const cJSON *invalid_reasons;
    const char *error_text;   /* infrastructure error: verdict ERROR */
    const cJSON *links;       /* object or NULL */
    const cJSON *policy_note; /* object or NULL: {differs, reviewed_sha256, run_sha256} */
    bool no_ticket;
};
/*
 * The first of INVALID, ERROR, FAIL, then the audit's verdict. Without an audit
 * document the answer is NON_COMPARABLE with NC-BASELINE-NONE; without an acceptance document (and
 * neither broken evidence nor an error) there is no decision: -1. A mode other than "clean" has no
 * verdict: *out is VERDICT_MAX, `verdict` is null. `description` is at most
 * VERDICT_DESCRIPTION_MAX bytes of whole UTF-8 characters and begins with the verdict's word.
 */
#define VERDICT_DESCRIPTION_MAX 140
int verdict_document(const struct verdict_input *in, enum verdict *out, cJSON **out_document,
                     struct err *e) MUST_CHECK;
