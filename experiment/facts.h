/*
 * facts: the stable machine and build facts that are part of every run's identity (cleanrun help
 * identity): one table read by the runner that records them, the audit that compares them and the
 * property test that flips each of them. A reading (current frequency, bogomips, host name) is no
 * fact. In the manifest: machine.facts.<name>, always a string; null or absent means unknown, and
 * unknown is a refusal. What this machine does not have at all (a frequency driver in a virtual
 * machine, swap) is known: the string "none".
 */
#pragma once

#include <stddef.h>

struct fact {
    const char *name;  /* key in machine.facts */
    const char *label; /* for people */
    const char *why;   /* what it changes, for the refusal page */
};

extern const struct fact facts_table[];
extern const size_t facts_count;
