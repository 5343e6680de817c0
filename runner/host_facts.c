/* Readers of the single facts; host.c puts them together. */
#include "runner/host_facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/num.h"

#define CPU_DIR "sys/devices/system/cpu"

static char *cpuinfo(const struct sysroot *r, const char *key)
{
    AUTO_FREE char *text = sysroot_read(r, "proc/cpuinfo");

    return text ? procfs_field(text, key) : NULL;
}

static char *cpu_model(const struct sysroot *r)
{
    char *name = cpuinfo(r, "model name");

    return name ? name : cpuinfo(r, "CPU part");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Words of a text, sorted, joined by one space; NULL when there is none. The text is cut up. */
static char *sorted_words(char *text)
{
    AUTO_FREE const char **words = calloc(strlen(text) / 2 + 1, sizeof(*words));
    size_t n = 0;
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_KIB(64));
    for (char *p = text; words && *p;) {
        size_t len = strcspn(p, " \t");
        bool last = p[len] == '\0';

        p[len] = '\0';
        if (len > 0)
            words[n++] = p;
        p += len + (last ? 0 : 1);
    }
    if (n == 0)
        return NULL;
    qsort(words, n, sizeof(*words), by_text);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", words[i]);
    return b.failed ? NULL : buf_take(&b, NULL);
}

/* The flags themselves, sorted: a refusal can then show which one differs. */
static char *cpu_flags(const struct sysroot *r)
{
    AUTO_FREE char *flags = cpuinfo(r, "flags");

    if (!flags)
        flags = cpuinfo(r, "Features");
    return flags ? sorted_words(flags) : NULL;
}

static char *microcode(const struct sysroot *r)
{
    AUTO_FREE char *text = sysroot_read(r, "proc/cpuinfo");
    char *version = text ? procfs_field(text, "microcode") : NULL;

    return version || !text ? version : strdup("none");
}

static char *kernel(const struct sysroot *r)
{
    return sysroot_line(r, "proc/sys/kernel/osrelease");
}

static char *kernel_build(const struct sysroot *r)
{
    return sysroot_line(r, "proc/sys/kernel/version");
}

/* Words that name this installation and change nothing that is measured. */
static bool names_installation(const char *word, size_t len)
{
    static const char *const prefixes[] = {
        "root=", "BOOT_IMAGE=", "initrd=", "resume=", "rd.luks", "ip=", "console=", "hostname="};

    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (len >= strlen(prefixes[i]) && !strncmp(word, prefixes[i], strlen(prefixes[i])))
            return true;
    return memmem(word, len, "UUID=", 5) != NULL || memmem(word, len, "uuid", 4) != NULL;
}

/* As a digest, since such a line may hold addresses and secrets. What stands after "--" is for
 * init. */
static char *kernel_cmdline(const struct sysroot *r)
{
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];
    char *out = NULL;
    AUTO_FREE char *line = sysroot_line(r, "proc/cmdline");
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_KIB(64));
    for (const char *p = line; p && *p;) {
        size_t len = strcspn(p, " ");

        if (len == 2 && !strncmp(p, "--", 2))
            break;
        if (len > 0 && !names_installation(p, len)) {
            buf_puts(&b, b.len ? " " : "");
            buf_put(&b, p, len);
        }
        p += len + strspn(p + len, " ");
    }
    if (!line || b.failed)
        return NULL;
    digest = digest_of(b.data ? b.data : "", b.len);
    digest_hex(&digest, hex);
    return asprintf(&out, "sha256 %s", hex) < 0 ? NULL : out;
}

static char *architecture(const struct sysroot *r)
{
    struct utsname u;

    (void) r;
    return uname(&u) == 0 ? strdup(u.machine) : NULL;
}

/* "name: state" of every known weakness, in order of name. */
static char *mitigations(const struct sysroot *r)
{
    AUTO_FD int fd = openat(r->fd, CPU_DIR "/vulnerabilities", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_FILE_LIST struct file_list list = {.n = 0};
    struct err ignored = ERR_INIT;
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_KIB(16));
    if (fd < 0)
        return errno == ENOENT ? strdup("none") : NULL;
    if (file_list_at(fd, 256, &list, &ignored) < 0)
        return NULL;
    for (size_t i = 0; i < list.n; i++) {
        struct sysroot dir = {.fd = fd};
        AUTO_FREE char *state = sysroot_line(&dir, list.names[i]);

        if (!state) /* one that is unknown is no state that another machine could share */
            return NULL;
        buf_printf(&b, "%s%s: %s", i ? "; " : "", list.names[i], state);
    }
    return b.failed || b.len == 0 ? NULL : buf_take(&b, NULL);
}

/* The chosen word of "always [madvise] never". */
static char *bracketed(const struct sysroot *r, const char *name)
{
    AUTO_FREE char *line = sysroot_line_or_none(r, name);
    const char *open = line ? strchr(line, '[') : NULL;

    if (!line)
        return NULL;
    return open ? strndup(open + 1, strcspn(open + 1, "]")) : strdup(line);
}

static char *thp(const struct sysroot *r)
{
    return bracketed(r, "sys/kernel/mm/transparent_hugepage/enabled");
}

static char *aslr(const struct sysroot *r)
{
    return sysroot_line(r, "proc/sys/kernel/randomize_va_space");
}

static char *clocksource(const struct sysroot *r)
{
    return sysroot_line_or_none(r,
                                "sys/devices/system/clocksource/clocksource0/current_clocksource");
}

static char *libc(const struct sysroot *r)
{
    char *text = NULL;

    (void) r;
    return asprintf(&text, "glibc %s", gnu_get_libc_version()) < 0 ? NULL : text;
}

static char *os(const struct sysroot *r)
{
    AUTO_FREE char *text = sysroot_read(r, "etc/os-release");
    const char *at = text;

    while (at && *at && strncmp(at, "PRETTY_NAME=", 12) != 0) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (!at || !*at)
        return NULL;
    at += 12;
    size_t len = strcspn(at, "\n");

    if (len >= 2 && at[0] == '"' && at[len - 1] == '"') {
        at++;
        len -= 2;
    }
    return strndup(at, len);
}

/* Rounded up to 64 MiB, since kernels reserve a little more or less of the same memory. */
static char *memory(const struct sysroot *r)
{
    AUTO_FREE char *text = sysroot_read(r, "proc/meminfo");
    uint64_t kib = 0;
    char *out = NULL;

    if (!text || !procfs_field_number(text, "MemTotal", &kib))
        return NULL;
    return asprintf(&out, "%lu MiB", (kib + 65535) / 65536 * 64) < 0 ? NULL : out;
}

static char *swap(const struct sysroot *r)
{
    AUTO_FREE char *text = sysroot_read(r, "proc/meminfo");
    uint64_t kib = 0;

    if (!text || !procfs_field_number(text, "SwapTotal", &kib))
        return NULL;
    return strdup(kib > 0 ? "on" : "off");
}

static char *swappiness(const struct sysroot *r)
{
    return sysroot_line(r, "proc/sys/vm/swappiness");
}

static char *cache_l3(const struct sysroot *r)
{
    return sysroot_line_or_none(r, CPU_DIR "/cpu0/cache/index3/size");
}

static char *numa_nodes(const struct sysroot *r)
{
    AUTO_FREE char *list = sysroot_line_or_none(r, "sys/devices/system/node/online");
    uint64_t n = 0;

    if (list && strcmp(list, "none") == 0)
        return host_number_text(1);
    return list && host_list_size(list, &n) ? host_number_text(n) : NULL;
}

static bool exists(const struct sysroot *r, const char *name)
{
    return faccessat(r->fd, name, F_OK, 0) == 0;
}

static char *hypervisor(const struct sysroot *r)
{
    AUTO_FREE char *text = sysroot_read(r, "proc/cpuinfo");
    AUTO_FREE char *flags = text ? procfs_field(text, "flags") : NULL;
    AUTO_FREE char *vendor = sysroot_line(r, "sys/class/dmi/id/sys_vendor");
    bool container = exists(r, ".dockerenv") || exists(r, "run/.containerenv");
    const char *machine = "none";
    char *out = NULL;

    if (!text)
        return NULL;
    if (flags && strstr(flags, "hypervisor"))
        machine = vendor ? vendor : "virtual machine";
    return asprintf(&out, "%s%s", machine, container ? ", container" : "") < 0 ? NULL : out;
}

static char *page_size(const struct sysroot *r)
{
    (void) r;
    return host_number_text((uint64_t) sysconf(_SC_PAGESIZE));
}

static char *cpu_allowed(const struct sysroot *r)
{
    AUTO_FREE char *text = sysroot_read(r, "proc/self/status");

    return text ? procfs_field(text, "Cpus_allowed_list") : NULL;
}

static const struct host_reader readers[] = {
    {"architecture", architecture},
    {"aslr", aslr},
    {"boost", host_boost},
    {"clocksource", clocksource},
    {"cpu_allowed", cpu_allowed},
    {"cpu_count_logical", host_cpus_logical},
    {"cpu_count_physical", host_cpus_physical},
    {"cpu_flags", cpu_flags},
    {"cpu_l3", cache_l3},
    {"cpu_model", cpu_model},
    {"governor", host_governor},
    {"hypervisor", hypervisor},
    {"kernel", kernel},
    {"kernel_build", kernel_build},
    {"kernel_cmdline", kernel_cmdline},
    {"libc", libc},
    {"memory", memory},
    {"memory_limit", host_memory_limit},
    {"microcode", microcode},
    {"mitigations", mitigations},
    {"numa_nodes", numa_nodes},
    {"os", os},
    {"page_size", page_size},
    {"scaling_driver", host_scaling_driver},
    {"smt", host_smt},
    {"swap", swap},
    {"swappiness", swappiness},
    {"thp", thp},
};

const struct host_reader *host_reader_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        if (!strcmp(readers[i].name, name))
            return &readers[i];
    return NULL;
}
