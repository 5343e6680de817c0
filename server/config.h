/*
 * config: the server's settings: flag, else environment, else default. Parsed once into a struct;
 * nobody reads flags or the environment later. No shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct config {
    const char *data;      /* --data, CLEANRUN_SERVER_DATA, CLEANRUN_DATA, /var/lib/cleanrun */
    const char *listen;    /* --listen, CLEANRUN_SERVER_LISTEN, 127.0.0.1:8620 */
    const char *base_url;  /* --base-url, CLEANRUN_SERVER_BASE_URL; NULL: http://<listen> */
    const char *templates; /* --templates, CLEANRUN_SERVER_TEMPLATES; NULL: those in the program */
    const char *port_file; /* --port-file: the real address is written there once it is listening;
                              NULL: not */
    unsigned threads;      /* --threads, CLEANRUN_SERVER_THREADS, max(4, 2 × processors) */
    unsigned idle_s;       /* --idle-timeout, CLEANRUN_SERVER_IDLE_TIMEOUT, 15 */
    unsigned header_s;     /* --header-timeout, CLEANRUN_SERVER_HEADER_TIMEOUT, 20 */
    unsigned drain_s;      /* --drain-timeout, CLEANRUN_SERVER_DRAIN_TIMEOUT, 30 */
};

#define CONFIG_DATA_DEFAULT "/var/lib/cleanrun"
#define CONFIG_LISTEN_DEFAULT "127.0.0.1:8620"

/* argv: the words after the command. Values are borrowed from argv and environment. A flag may be
 * "--x V" or "--x=V"; unknown ones are ERR_USAGE with "did you mean". */
int config_parse(int argc, char *const argv[], char *const environment[], struct config *out,
                 struct err *e) MUST_CHECK;
/* Value of NAME in a NULL-ended environment list, or NULL. Empty counts as absent. */
const char *config_env(char *const environment[], const char *name);
