#include "runner/tree_hash.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "runner/source_frame.h"

#define BLOCK LIMIT_KIB(64)

static void frame_size(struct digest_state *d, uint64_t size)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t) (size >> (8 * i));
    digest_update(d, bytes, sizeof bytes);
}

int tree_hash_compare(const char *a, const char *b)
{
    for (; *a && *a == *b; a++)
        b++;
    /* The end of a component comes before every byte that a longer one may have there. */
    unsigned x = *a == '/' ? 1 : *a ? (unsigned) (unsigned char) *a + 1 : 0;
    unsigned y = *b == '/' ? 1 : *b ? (unsigned) (unsigned char) *b + 1 : 0;

    return x < y ? -1 : x > y;
}

static int compare_names(const void *a, const void *b)
{
    return tree_hash_compare(*(char *const *) a, *(char *const *) b);
}

static int add_content(struct digest_state *d, int dirfd, const char *name, struct err *e)
{
    AUTO_FREE char *block = malloc(BLOCK);
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    uint64_t done = 0;

    if (!block)
        return err_memory(e, "tree_hash.memory");
    if (file_open_at(dirfd, name, &fd, &size, e) < 0)
        return -1;
    frame_size(d, size);
    for (;;) {
        ssize_t n = read(fd, block, BLOCK);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "tree_hash.read", "cannot read '%s'", name);
        if (n == 0)
            break;
        digest_update(d, block, (size_t) n);
        done += (uint64_t) n;
    }
    return done == size
               ? 0
               : err_set(e, ERR_TRUST, "tree_hash.changed", "'%s' changed while it was read", name);
}

int tree_hash(const char *domain, int dirfd, struct digest *out, struct err *e)
{
    AUTO_FILE_LIST struct file_list list = {.names = NULL};
    struct digest_state *d = NULL;
    int rc = 0;

    if (file_list_at(dirfd, LIMIT_TREE_FILES + 1, &list, e) < 0) {
        if (e && (e->kind == ERR_INPUT || e->kind == ERR_LIMIT))
            e->kind = ERR_TRUST;
        return -1;
    }
    if (list.n > 0)
        qsort(list.names, list.n, sizeof *list.names, compare_names);
    d = digest_new();
    if (!d)
        return err_memory(e, "tree_hash.memory");
    digest_update(d, domain, strlen(domain) + 1);
    for (size_t i = 0; i < list.n && rc == 0; i++) {
        source_frame_text(d, list.names[i]);
        rc = add_content(d, dirfd, list.names[i], e);
    }
    if (rc == 0)
        digest_finish(d, out);
    digest_free(d);
    return rc;
}
