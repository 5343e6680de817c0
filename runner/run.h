/*
 * run: one execution of a gate, from the refusal of overrides to the sealed directory. A value on
 * cmd_run's stack; it moves only forward through its stages and ends in exactly one of run_finish
 * (a manifest) or run_abort (a note of what failed, no evidence).
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/verdict.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "evidence/keyring.h"
#include "experiment/definition.h"
#include "runner/artifact.h"
#include "runner/build.h"
#include "runner/cli.h"
#include "runner/git.h"
#include "runner/keep.h"
#include "runner/leftover.h"
#include "runner/measure.h"
#include "runner/plan.h"
#include "runner/procfs.h"
#include "runner/reference.h"
#include "runner/rundir.h"
#include "runner/source.h"

#define RUN_FAULTS_MAX 16

struct run_options {
    const char *gate, *definition, *at, *out, *project;
    const char *baseline, *baseline_sha256;
    const char *server, *token_file;     /* where the reviewed baseline is when none is named */
    const struct keyring *baseline_keys; /* one of them signed it; NULL: not asked */
    const char *control; /* id or directory of the unprofiled control, for diagnostic modes */
    enum plan_mode mode;
    bool build_only, json;
    bool push;       /* afterwards: whether the server will take it is asked before the build */
    const char *key; /* private, PEM: to seal with; NULL: not sealed */
    uint64_t attempt, wait_s;
};

struct run {
    struct cli *cli;
    struct run_options options;
    struct arena arena;
    struct definition_file file;
    const struct definition *definition; /* borrowed from file */
    struct plan plan;
    const char *project;
    const char *state; /* state directory, in the arena; NULL: there is none */
    struct git git;
    struct source start, end;
    struct source_ignored ignored; /* before the build */
    char changed[1024];            /* the first changed files of a dirty start, for people */
    struct sysroot sysroot;
    struct rundir dir;
    char id[RUN_ID_SIZE];
    int64_t started_us;
    int signal_fd, lock_fd;
    char mark[LEFTOVER_MARK_SIZE]; /* on what is measured */
    size_t leftovers_ended;        /* processes of earlier runs */
    uint64_t started_ns;           /* the same moment, monotonic */
    struct reference reference;    /* the baseline; absent when none is given */
    struct build_result build;
    struct artifact artifact;
    cJSON *patterns, *facts, *readings, *before, *steps;
    struct measure measure;
    struct {
        struct keep build_log, build_messages, run_log;
    } kept;                    /* what foreign programs could change, as it was written */
    char control[RUN_ID_SIZE]; /* of the control that fits, "" when unpaired */
    bool measured, interrupted;
    const char *stage;            /* what is being done, for error.json */
    char *faults[RUN_FAULTS_MAX]; /* why the run is a FAIL: it was carried out, and this is what is
                                     wrong with it */
    size_t n_faults;
};

/* Remembers a fault; the evidence is kept and the run is a FAIL. */
void run_fault(struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* *e, when it is a mistake of the definition's (ERR_USAGE), is about the part at this pointer, and
 * its place is told. Returns -1. */
int run_blame(const struct run *r, const char *pointer, struct err *e);
/* One talk line per event, or one JSON object per line with --json. */
void run_say(struct run *r, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* After measuring (or building, with build_only): fingerprint again, report, acceptance, audit,
 * manifest, durable directory. *out_exit: the local verdict's exit code. */
int run_finish(struct run *r, int *out_exit, struct err *e) MUST_CHECK;
/* Infrastructure failure: error.json instead of a manifest; the directory keeps its logs. Returns
 * the exit code. */
int run_abort(struct run *r, const struct err *why);
void run_close(struct run *r);
