/* mistaken: a command was given the other thing that a run leaves: its directory for its sealed
 * archive, the archive for the directory. Each says so in place of an already filled *e about the
 * path, or leaves that as it is; returns -1. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/* An archive was wanted: is it a run directory? */
int mistaken_directory(const char *path, struct err *e);
/* A run directory was wanted: is it a file? */
int mistaken_file(const char *path, struct err *e);
/* A report was wanted: is it a run directory that has one? */
int mistaken_run(const char *path, struct err *e);
/* The directory of a run that ended in an ERROR: it never has a manifest. */
bool mistaken_error(int dir_fd);
