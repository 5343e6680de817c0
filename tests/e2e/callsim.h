/*
 * callsim: the call-setup experiment of demo/callsim, built, measured and judged by the program
 * itself, once for each kind of end. Runs whose verdict hangs on speed come one after the other;
 * those whose verdict does not run at the same time, each with a lock and a state directory of its
 * own. A run is made when the first test needs it.
 */
#pragma once

#include "tests/lib/support.h"

#include <stdio.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "base/digest.h"

#define SCENARIO "callsim_call_setup"
#define MEASURED SCENARIO "/800.json"
#define LAST_PHASES                                                                                \
    13 /* markers of a clean run: four conditioning points, nine of the measured one */

/* The order is that of the crowds: LEAK to KILLED run together, then SKIPPED to BOUNDARY. */
enum which {
    BASELINE,
    CLEAN,
    SLOWER,
    LEAK,
    DROPPED,
    EDITED,
    KILLED,
    SKIPPED,
    THINNER,
    FORGED,
    CPU,
    TIMING,
    MEMORY,
    BOUNDARY,
    RUNS
};

struct running {
    pid_t pid;  /* 0: not started, -1: ended */
    FILE *talk; /* its standard output, a JSON object a line */
    int code;
    cJSON *result; /* the last line, NULL without one */
};

struct fixture {
    char *dir, *repo, *key, *public_key;
    char baseline_sha256[DIGEST_HEX_SIZE];
    struct running runs[RUNS];
};

int callsim_setup(void **state);
int callsim_teardown(void **state);

/* Heap text. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The program under test. */
char *cleanrun(void);
/* Is this tool on PATH? */
bool has_tool(const char *name);

/* "<dir>/<name>/<file>": the work tree, out (the run directory), out.tar, state and lock of one
 * run. */
char *place(const struct fixture *f, enum which w, const char *file);
/* Starts one run. Finishing waits for its end once; later calls find it ended. */
void callsim_start(struct fixture *f, enum which w);
struct running *callsim_finish(struct fixture *f, enum which w);
/* Every other run is compared with this one. */
void need_baseline(struct fixture *f);
/* One that has no other beside it. */
void need_alone(struct fixture *f, enum which w);
/* Those that fail or are refused for another reason than speed; and those that skip, or are
 * diagnostic. */
void need_crowd(struct fixture *f);
void need_second_crowd(struct fixture *f);

/* What a run left in its run directory (JSON), and whether a file is beside it. */
cJSON *left_json(const struct fixture *f, enum which w, const char *name);
bool left(const struct fixture *f, enum which w, const char *name);
/* The text at a key, "(none)" without. */
const char *text_at(const cJSON *j, const char *key);
/* The run ended with this verdict, and its documents say the same. */
void assert_end(struct fixture *f, enum which w, int code, const char *verdict, const char *status);
bool has_fault(const struct fixture *f, enum which w, const char *words);
size_t failed_checks(const cJSON *acceptance, const char **first);
bool has_reason(const cJSON *audit, const char *code, const char *field, const char *words);
/* Verdict word of one comparison, "(none)" when it was not made. */
const char *comparison(const cJSON *audit, const char *metric);
