/*
 * pack: files of a directory → the evidence archive: POSIX ustar, regular files only, mode 0644,
 * ids 0, no owner names, mtime 0, two zero blocks at the end and nothing else. The same files give
 * the same bytes. Reads below a directory descriptor without following links.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"

struct pack_file {
    const char *name;
    uint64_t size;
    const struct digest *digest; /* what the file must hash to */
};

/* Bytes that pack_write will write. */
uint64_t pack_size(const struct pack_file *files, size_t n);
/*
 * files[0] must be manifest.json and the rest in strict byte order (ERR_INTERNAL otherwise).
 * Content is hashed as it is copied: a file that is missing, no regular file, or of another size or
 * digest than stated is ERR_TRUST. On failure out_fd holds an incomplete archive that the caller
 * removes.
 */
int pack_write(int dirfd, const struct pack_file *files, size_t n, int out_fd,
               struct digest *out_digest, struct err *e) MUST_CHECK;
