/*
 * runset_pack: writes a set of runs as a package, step by step: a staging directory beside the
 * destination, copies, the copies read and judged again, index, checksum, signature, everything
 * read-only, rename. Nothing is left when any step fails. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/sign.h"
#include "runner/runset.h"

struct runset_stage {
    int parent_fd;
    int fd;
    char *name;    /* the package's name */
    char *partial; /* its name until it is complete */
    char *path;    /* of the staging directory */
    bool open;
    bool finished;
};

/* out must not exist (ERR_CONFLICT); its parent must. */
int runset_stage_open(const char *out, struct runset_stage *s, struct err *e) MUST_CHECK;
/* Copies what a judged set consists of. executable: the file that runset_set_executable was told
 * of, or NULL. */
int runset_stage_copy(struct runset_stage *s, const struct runset *set, const char *executable,
                      struct err *e) MUST_CHECK;
/* Reads the copies again (ERR_TRUST when one is not what was judged), writes the index and lets the
 * package appear. key NULL: not signed. */
int runset_stage_finish(struct runset_stage *s, const struct runset *set,
                        const struct runset_frame *frame, const struct private_key *key,
                        struct digest *out_index, struct err *e) MUST_CHECK;
/* Removes the staging directory unless the package has appeared; accepts zeroed. */
void runset_stage_close(struct runset_stage *s);
#define AUTO_RUNSET_STAGE __attribute__((cleanup(runset_stage_close)))
