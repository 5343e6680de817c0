/* evidence_parts: what struct evidence consists of. Only verify.c, which alone makes one,
 * verify_stages.c, which fills it, and evidence.c may include this. */
#pragma once

#include <cjson/cJSON.h>

#include "evidence/manifest.h"
#include "evidence/verify.h"
#include "evidence/verify_stream.h"

struct evidence {
    int fd;
    struct archive_index *index;
    struct manifest manifest;
    char *keyid;
    char *key_name;
};

/* Reads a member and checks it against the digest in the index: ERR_TRUST when it is damaged. */
int evidence_read_member(const struct evidence *ev, const struct archive_member *m, size_t max,
                         char **out, size_t *out_len, struct err *e) MUST_CHECK;
