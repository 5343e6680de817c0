/* help: texts for people: the overview, a command's page, topics. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "runner/cli.h"

void help_overview(FILE *out);
void help_command(FILE *out, const struct command *cmd);
/* One line: what help has topics for. */
void help_list(FILE *out);
/* False when there is no such topic; the nearest is in *out_near (or NULL). */
bool help_topic(FILE *out, const char *topic, const char **out_near);
