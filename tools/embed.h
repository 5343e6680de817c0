/*
 * embed: files of the source tree as constant tables in the program (web/, templates/,
 * migrations/). The tables are written at build time by tools/embed.c and sorted by name in byte
 * order; names are relative to the folder ("style.css", "0001_runs.sql"). Constant, so any thread
 * may read.
 */
#pragma once

#include <stddef.h>

struct embed_file {
    const char *name;
    const unsigned char *bytes; /* followed by a NUL that `size` does not count */
    size_t size;
};

struct embed_table {
    const struct embed_file *files;
    size_t n;
};

extern const struct embed_table embed_web;
extern const struct embed_table embed_templates;
extern const struct embed_table embed_migrations;
extern const struct embed_table embed_openapi;

/* The file of exactly this name, or NULL. */
const struct embed_file *embed_find(const struct embed_table *table, const char *name);
