/*
 * check_rule: several attempts of one gate and class at one commit, and which of them answers for
 * it. Knows neither the database nor the document. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "audit/verdict.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"

/* Texts are borrowed. */
struct check_attempt {
    struct check_attempt *next;
    const char *run; /* or NULL */
    enum verdict verdict;
    int64_t at_us;
    bool complete;  /* a stored run, not a refused upload */
    bool clean;     /* its source was the commit */
    bool regressed; /* was a REGRESSION, whatever became of its evidence since */
    const char *description;
    const char *baseline;
    struct digest executable;
    bool has_executable;
};

/* In order of arrival; starts zeroed. */
struct check_attempts {
    struct check_attempt *first;
    struct check_attempt *last;
};

/* Adds a copy, made in the arena. Within a table that is the order of its rows, in which they are
 * added: a server's clock may step back. Time only tells where a refused upload stands among the
 * runs, which decides nothing. */
int check_attempts_add(struct check_attempts *l, struct arena *arena,
                       const struct check_attempt *from, struct err *e) MUST_CHECK;
/* The latest complete one, which decides; NULL: there is none. */
const struct check_attempt *check_latest(const struct check_attempts *l);
/* Measuring the same program until it is green is no answer: an earlier REGRESSION of the same
 * program against the same baseline stands against the latest OK, unless the policy has a confirm
 * rule and check_agreeing meets it. NULL: there is none. */
const struct check_attempt *check_earlier_regression(const struct check_attempts *l,
                                                     const struct check_attempt *ok);
/* How many answers to the same question were OK, one after the other, up to the latest. */
int64_t check_agreeing(const struct check_attempts *l, const struct check_attempt *ok);
bool check_same_executable(const struct check_attempt *a, const struct check_attempt *b);
