/* The memory limit that holds for this process, from cgroup v2 or v1. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "runner/host_facts.h"

/* The group of `controller` in /proc/self/cgroup: v2's is the line "0::". Heap, without the leading
 * '/', or NULL. */
static char *own_group(const char *text, const char *controller)
{
    for (const char *line = text; line && *line;) {
        size_t len = strcspn(line, "\n");
        const char *path = memchr(line, '/', len);
        size_t head = path ? (size_t) (path - line) : 0;
        bool v2 = head == 3 && !strncmp(line, "0::", 3);

        if (path && (controller ? memmem(line, head, controller, strlen(controller)) != NULL : v2))
            return strndup(path + 1, len - head - 1);
        line += len + (line[len] == '\n' ? 1 : 0);
    }
    return NULL;
}

/* Lowers *io_least to the smallest limit of the group and its parents; false when one of them is
 * there and cannot be read. */
static bool smallest_limit(const struct sysroot *r, const char *mount, char *group,
                           const char *file, uint64_t *io_least)
{
    uint64_t v = 0;

    for (bool more = group != NULL; more;) {
        AUTO_FREE char *path = NULL;
        AUTO_FREE char *line = NULL;
        char *slash = strrchr(group, '/');

        if (asprintf(&path, "%s%s%s/%s", mount, *group ? "/" : "", group, file) < 0) {
            path = NULL;
            return false;
        }
        line = sysroot_line_or_none(r, path);
        if (!line)
            return false;
        if (num_parse_u64(line, strlen(line), UINT64_MAX, &v) && v < *io_least)
            *io_least = v;
        more = *group != '\0';
        *(slash ? slash : group) = '\0';
    }
    return true;
}

static char *limit_text(uint64_t v)
{
    char *text = NULL;

    return asprintf(&text, "%lu", v) < 0 ? NULL : text;
}

char *host_memory_limit(const struct sysroot *r)
{
    AUTO_FREE char *there = sysroot_line_or_none(r, "proc/self/cgroup");
    AUTO_FREE char *text = sysroot_read(r, "proc/self/cgroup");
    AUTO_FREE char *v2 = own_group(text, NULL);
    AUTO_FREE char *v1 = own_group(text, "memory");
    uint64_t least = UINT64_MAX;

    if (!there || !smallest_limit(r, "sys/fs/cgroup", v2, "memory.max", &least) ||
        !smallest_limit(r, "sys/fs/cgroup/memory", v1, "memory.limit_in_bytes", &least))
        return NULL;
    /* v1 writes "no limit" as the largest page-aligned number. */
    return least > (uint64_t) INT64_MAX - (1U << 20) ? strdup("none") : limit_text(least);
}
