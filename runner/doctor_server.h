/*
 * doctor_server: what can be asked of a server before an hour is measured for it: that it answers,
 * that the token may upload for the project, and that the key is a registered one. Sends nothing
 * that is kept. One thread.
 */
#pragma once

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/push.h"

/* Appends rows "server", "upload" and "key" as host_fitness makes them. t->project NULL: unknown;
 * key: the file of a private one, NULL: not asked. */
int doctor_server(const struct push_target *t, const char *key, cJSON *rows,
                  struct err *e) MUST_CHECK;
