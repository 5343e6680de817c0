/* The processors' facts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/num.h"
#include "runner/host_facts.h"

#define CPU_DIR "sys/devices/system/cpu"
#define CPUS_MAX 4096

char *host_number_text(uint64_t v)
{
    char *text = NULL;

    return asprintf(&text, "%lu", v) < 0 ? NULL : text;
}

/* The next part of a list such as "0-3,8-11"; *text moves on. */
static bool list_next(const char **text, uint64_t *first, uint64_t *last)
{
    size_t len = strcspn(*text, ",");
    size_t first_len = strspn(*text, "0123456789");

    if (!num_parse_u64(*text, first_len, CPUS_MAX, first))
        return false;
    *last = *first;
    if ((*text)[first_len] == '-' &&
        !num_parse_u64(*text + first_len + 1, len - first_len - 1, CPUS_MAX, last))
        return false;
    *text += len + ((*text)[len] == ',' ? 1 : 0);
    return *last >= *first;
}

bool host_list_size(const char *text, uint64_t *out)
{
    uint64_t first = 0, last = 0;

    *out = 0;
    while (*text) {
        if (!list_next(&text, &first, &last))
            return false;
        *out += last - first + 1;
    }
    return *out > 0;
}

char *host_cpus_logical(const struct sysroot *r)
{
    AUTO_FREE char *list = sysroot_line(r, CPU_DIR "/online");
    uint64_t n = 0;

    return list && host_list_size(list, &n) ? host_number_text(n) : NULL;
}

/* cpu<N>/<name>; NULL: unknown. */
static char *cpu_value(const struct sysroot *r, uint64_t cpu, const char *name, bool may_lack)
{
    char path[160];

    (void) snprintf(path, sizeof(path), CPU_DIR "/cpu%lu/%s", cpu, name); /* fits */
    return may_lack ? sysroot_line_or_none(r, path) : sysroot_line(r, path);
}

static char *package_and_core(const struct sysroot *r, uint64_t cpu)
{
    AUTO_FREE char *core = cpu_value(r, cpu, "topology/core_id", false);
    AUTO_FREE char *package = cpu_value(r, cpu, "topology/physical_package_id", false);
    char *both = NULL;

    return !core || !package || asprintf(&both, "%s/%s", package, core) < 0 ? NULL : both;
}

static char *driver_of(const struct sysroot *r, uint64_t cpu)
{
    return cpu_value(r, cpu, "cpufreq/scaling_driver", true);
}

static char *governor_of(const struct sysroot *r, uint64_t cpu)
{
    return cpu_value(r, cpu, "cpufreq/scaling_governor", true);
}

/* Keeps a value, once; whether it is known. */
static bool keep_value(char **values, size_t *n, char *value)
{
    for (size_t i = 0; value && i < *n; i++) {
        if (strcmp(values[i], value) == 0) {
            free(value);
            return true;
        }
    }
    if (value)
        values[(*n)++] = value;
    return value != NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Distinct values over all processors that are online, sorted and joined by '|'; NULL when the
 * value of one is unknown. Processors between them may be offline. */
static char *cpu_values(const struct sysroot *r, char *(*read)(const struct sysroot *, uint64_t),
                        size_t *out_n)
{
    AUTO_FREE char *online = sysroot_line(r, CPU_DIR "/online");
    const char *rest = online;
    uint64_t total = 0, first = 0, last = 0;
    bool known = online && host_list_size(online, &total);
    AUTO_FREE char **values = calloc(total + 1, sizeof(*values));
    size_t n = 0;
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_KIB(64));
    while (known && values && *rest && list_next(&rest, &first, &last))
        for (uint64_t cpu = first; known && n < total && cpu <= last; cpu++)
            known = keep_value(values, &n, read(r, cpu));
    if (n > 0)
        qsort(values, n, sizeof(*values), by_text);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&b, "%s%s", i ? "|" : "", values[i]);
        free(values[i]);
    }
    *out_n = n;
    return known && n > 0 && !b.failed ? buf_take(&b, NULL) : NULL;
}

char *host_cpus_physical(const struct sysroot *r)
{
    size_t n = 0;
    AUTO_FREE char *cores = cpu_values(r, package_and_core, &n);

    return cores ? host_number_text(n) : NULL;
}

char *host_governor(const struct sysroot *r)
{
    size_t n = 0;

    return cpu_values(r, governor_of, &n);
}

char *host_scaling_driver(const struct sysroot *r)
{
    size_t n = 0;

    return cpu_values(r, driver_of, &n);
}

char *host_boost(const struct sysroot *r)
{
    AUTO_FREE char *plain = sysroot_line_or_none(r, CPU_DIR "/cpufreq/boost");
    AUTO_FREE char *no_turbo = sysroot_line_or_none(r, CPU_DIR "/intel_pstate/no_turbo");

    if (!plain || !no_turbo)
        return NULL;
    if (strcmp(plain, "none") != 0)
        return strdup(strcmp(plain, "0") == 0 ? "off" : "on");
    if (strcmp(no_turbo, "none") != 0)
        return strdup(strcmp(no_turbo, "0") == 0 ? "on" : "off");
    return strdup("none");
}

char *host_smt(const struct sysroot *r)
{
    AUTO_FREE char *control = sysroot_line_or_none(r, CPU_DIR "/smt/control");
    AUTO_FREE char *active = sysroot_line_or_none(r, CPU_DIR "/smt/active");

    if (!control || !active)
        return NULL;
    if (strcmp(active, "1") == 0)
        return strdup("on");
    if (!strcmp(control, "notsupported") || !strcmp(control, "notimplemented"))
        return strdup("none");
    return strdup(strcmp(active, "none") != 0 || strcmp(control, "none") != 0 ? "off" : "none");
}
