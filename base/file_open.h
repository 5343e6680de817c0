/* file_open: what the file_*.c share: opening below a directory without following links. Private to
 * base. */
#pragma once

#include <sys/types.h>

#include "base/cleanup.h"

/* openat2 below dirfd: no link anywhere in `name`, no way out by "..", close-on-exec. A descriptor
 * or -1 with errno (ELOOP: a link; EXDEV: leads outside). */
int file_open_beneath(int dirfd, const char *name, int flags, mode_t mode) MUST_CHECK;
/* Descriptor of the directory that holds `name`; *out_base points into name. -1 with errno. */
int file_open_parent(int dirfd, const char *name, const char **out_base) MUST_CHECK;
