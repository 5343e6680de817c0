/*
 * members: the tables of docs/json.md, held against documents that the programs really write. Every
 * member of a document must have its row, of that type; rows that no document had are told at the
 * end. Complaints go to standard error; helpers fail the test when the page cannot be read.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

struct members;

/* The page's rows by section (its heading's anchor). */
struct members *members_load(const char *page);
void members_free(struct members *m);
/* How many complaints there are about this document of that section. where: what it is of. */
int members_check(struct members *m, const char *section, const cJSON *document, const char *where);
/* How many rows no checked document had; served: only of sections about the server. */
int members_unseen(const struct members *m, bool served);
/* The row needs what this machine does not give: it counts as seen. */
void members_excuse(struct members *m, const char *section, const char *path);
/* Another page that tells only the names of a closed document's members, in the table of a section:
 * how many names only one of the two has. */
int members_check_names(const char *page, const char *section, const cJSON *document);
/* The schemas of an OpenAPI description and the page's sections about the server say the same: one
 * schema a section (BaselineRow for baseline-row), the same members, the same ones required. How
 * many times they do not; the rows found count as seen. */
int members_check_schemas(struct members *m, const cJSON *schemas);
