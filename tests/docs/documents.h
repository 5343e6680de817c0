/*
 * documents: makes the programs write every kind of document they have, and holds each against the
 * tables of docs/json.md. Helpers fail the running test themselves when a program does not do what
 * it is asked; complaints about documents are counted.
 */
#pragma once

#include "tests/docs/members.h"

/* A server of its own, with its data. */
struct site;

struct site *site_new(struct members *m);
void site_free(struct site *s);
/* What the server answers. Returns the number of complaints. */
int site_check(struct site *s);

/* What `cleanrun … --json` writes; dir: an empty directory. */
int commands_check(struct members *m, const char *dir);
