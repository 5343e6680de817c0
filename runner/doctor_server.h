/*
 * doctor_server: what can be asked of a server before an hour is measured for it: that it answers,
 * and that the token may upload for the project. Sends nothing that is kept. One thread.
 */
#pragma once

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/push.h"

/* Appends rows "server" and "upload" as host_fitness makes them. t->project NULL: unknown. */
int doctor_server(const struct push_target *t, cJSON *rows, struct err *e) MUST_CHECK;
