/* admin_commands: the handlers behind the command table of admin.c. Private to server/admin*.c. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "server/admin_args.h"
#include "server/store/store.h"

/* Answers go to a->out, a line each, fields apart by tabs. A failed write is told by admin_main's
 * flush. */
void admin_say(const struct admin_args *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* One line of fields apart by tabs; no field can hold a tab, a line end or a control character
 * (base/plain.h). */
void admin_row(const struct admin_args *a, const char *const *fields, size_t n);
/* Time for a line, "-" for 0. */
const char *admin_when(int64_t us, char out[CLOCK_RFC3339_SIZE]);

/* What can be told wrong before a store is opened. */
typedef int (*admin_check)(const struct admin_args *a, struct err *e);
int admin_check_project_add(const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_check_project_set(const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_check_runner_set(const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_check_token_add(const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_check_baseline_import(const struct admin_args *a, struct err *e) MUST_CHECK;

/* The exit code, or -1 with *e. */
typedef int (*admin_handler)(struct store *s, const struct admin_args *a, struct err *e);

int admin_project_add(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_project_set(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_project_list(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_runner_add(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_runner_set(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_runner_revoke(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_runner_list(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_token_add(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_token_revoke(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_token_list(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_baseline_approve(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_baseline_retire(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_baseline_import(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_baseline_list(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_migrate(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_fsck(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_gc(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_backup(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_log(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
/* These open no store (s is NULL). */
int admin_restore(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_config(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;

/* --data, CLEANRUN_SERVER_DATA, CLEANRUN_DATA, the default. */
const char *admin_data(const struct admin_args *a);
