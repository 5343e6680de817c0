/*
 * report: what the workload left below results/, checked, and completed with what the runner
 * measured when the definition says so. Judges form only; acceptance judges content.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/definition.h"
#include "runner/name_list.h"
#include "runner/plan.h"

enum report_status { REPORT_NOT_EXPECTED, REPORT_MISSING, REPORT_INVALID, REPORT_CAPTURED };

struct report {
    enum report_status status;
    char why[ERR_TEXT_MAX]; /* for MISSING and INVALID */
    cJSON *document;        /* final report when CAPTURED, else NULL */
    cJSON *resources;       /* the derived section, NULL when the definition derives none */
};

const char *report_status_word(enum report_status s);
/* csv: samples/process.csv's bytes; markers: the manifest's. The final report replaces the
 * workload's, whose own bytes stay beside it as "<report>.as-written". -1: I/O or memory. */
int report_take(const struct plan *p, int run_fd, const char *csv, size_t csv_len,
                const cJSON *markers, struct report *out, struct err *e) MUST_CHECK;
void report_fini(struct report *r); /* accepts zeroed */

/* Removes from results/ what can't be packaged (links, devices, names beyond relname or clashing by
 * case, too many, too large) and empty directories; says which. */
int report_clean_results(int run_fd, struct name_list *out_removed, struct err *e) MUST_CHECK;
/* True when the bytes are strict JSON of a report's size: such a file may have the role report. */
int report_is_json(int run_fd, const char *path, bool *out, struct err *e) MUST_CHECK;
