/*
 * verify_stages: what each stage of a verification looks at. For verify.c, which runs them in order
 * and alone makes evidence of seven passed ones; a stage fills what it read into `ev` and decides
 * nothing about other stages.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "evidence/dsse.h"
#include "evidence/evidence_parts.h"
#include "evidence/statement.h"
#include "evidence/verify.h"

enum verify_outcome { VERIFY_NOT_RUN, VERIFY_PASSED, VERIFY_FAILED };

struct verify_step {
    enum verify_outcome outcome;
    const char *code; /* IN-… when failed, static */
    char detail[ERR_TEXT_MAX];
};

struct verify_work {
    const struct verify_input *in;
    struct verify_step stages[VERIFY_STAGES];
    enum verify_stage now;
    struct evidence *ev; /* in the making; handed out only when every stage is ok */
    struct dsse envelope;
    struct statement statement;
    bool readable; /* the envelope holds a statement of our kind */
    struct err unreadable;
    size_t key; /* index into the ring */
};

/* Runs the stage w->now, whose predecessors have passed (`digest` may be left out when nothing is
 * readable). 0: it came to a decision, which stands in w->stages[w->now]; -1: it could not (I/O,
 * memory). */
int verify_stage_run(struct verify_work *w, struct err *e) MUST_CHECK;
