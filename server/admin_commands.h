/* admin_commands: the handlers behind the command table of admin.c. Private to server/admin*.c. */
#pragma once

#include "base/err.h"
#include "server/admin_args.h"
#include "server/store/store.h"

/* The exit code, or -1 with *e. */
typedef int (*admin_handler)(struct store *s, const struct admin_args *a, struct err *e);

int admin_project_add(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_project_set(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_project_list(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_runner_add(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_runner_revoke(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_runner_list(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_token_add(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_token_revoke(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_token_list(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
int admin_baseline_approve(struct store *s, const struct admin_args *a, struct err *e) MUST_CHECK;
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
