#include "runner/mapped.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"
#include "runner/paths.h"

#define FILES_MAX 512
#define MAPS_MAX LIMIT_MIB(8)

struct mapped_file {
    char *name;
    dev_t dev;
    ino_t ino;
    int fd; /* -1: could not be opened as what is mapped */
    struct digest digest;
};

struct mapped {
    char *source_root;
    struct mapped_file files[FILES_MAX];
    size_t n;
    const char *changed; /* name of the first change seen so far, borrowed from files or static */
};

int mapped_new(const char *source_root, struct mapped **out, struct err *e)
{
    struct mapped *m = calloc(1, sizeof(*m));

    if (!m || !(m->source_root = strdup(source_root))) {
        free(m);
        return err_memory(e, "mapped.memory");
    }
    *out = m;
    return 0;
}

void mapped_free(struct mapped *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++) {
        if (m->files[i].fd >= 0)
            (void) close(m->files[i].fd); /* was only read */
        free(m->files[i].name);
    }
    free(m->source_root);
    free(m);
}

/* No personal path gets into a document. */
static char *public_name(const struct mapped *m, const char *path)
{
    static const char *const system_dirs[] = {"/usr/", "/lib/",  "/lib64/", "/lib32/",
                                              "/bin/", "/sbin/", "/opt/",   "/nix/"};
    size_t len = strlen(m->source_root);
    const char *last = strrchr(path, '/');

    if (!strncmp(path, m->source_root, len) && path[len] == '/')
        return strdup(path + len + 1);
    for (size_t i = 0; i < ARRAY_LEN(system_dirs); i++)
        if (!strncmp(path, system_dirs[i], strlen(system_dirs[i])))
            return strdup(path);
    return strdup(last ? last + 1 : path);
}

/* Opens the path and makes sure that it is what is mapped. */
static int open_mapped(const char *path, dev_t dev, ino_t ino)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_dev != dev || st.st_ino != ino)) {
        (void) close(fd); /* was not even read */
        fd = -1;
    }
    return fd;
}

static int take_up(struct mapped *m, const char *path, dev_t dev, ino_t ino, struct err *e)
{
    struct mapped_file f = {.dev = dev, .ino = ino};

    for (size_t i = 0; i < m->n; i++)
        if (m->files[i].dev == dev && m->files[i].ino == ino)
            return 0;
    if (m->n == FILES_MAX)
        return err_set(e, ERR_LIMIT, "mapped.files", "the program maps more than %d files",
                       FILES_MAX);
    f.name = public_name(m, path);
    if (!f.name)
        return err_memory(e, "mapped.memory");
    f.fd = open_mapped(path, dev, ino);
    if (f.fd >= 0 && digest_of_fd(f.fd, &f.digest, NULL, e) < 0) {
        (void) close(f.fd); /* was only read */
        free(f.name);
        return -1;
    }
    m->files[m->n] = f;
    if (f.fd < 0 && !m->changed)
        m->changed = m->files[m->n].name;
    m->n++;
    return 0;
}

/* "55d0-55e1 r-xp 00001000 fe:00 1234   /path": the parts of one line; false when it is no file
 * mapped to execute. */
static bool parse_line(char *line, const char **path, dev_t *dev, ino_t *ino)
{
    char *perms = strchr(line, ' ');
    char *offset = perms ? strchr(perms + 1, ' ') : NULL;
    char *device = offset ? strchr(offset + 1, ' ') : NULL;
    char *inode = device ? strchr(device + 1, ' ') : NULL;
    unsigned long numbers[2] = {0, 0};
    uint64_t inode_number = 0;
    char *slash;
    size_t part = 0;

    if (!inode || perms[3] != 'x')
        return false;
    for (const char *p = device + 1; p < inode; p++) {
        if (*p == ':' && part == 0) {
            part = 1;
            continue;
        }
        int digit = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        numbers[part] = numbers[part] * 16 + (unsigned long) digit;
    }
    if (!num_parse_u64(inode + 1, strspn(inode + 1, "0123456789"), UINT64_MAX, &inode_number) ||
        inode_number == 0)
        return false;
    slash = strchr(inode + 1, '/');
    if (!slash)
        return false;
    *path = slash;
    *dev = makedev((unsigned) numbers[0], (unsigned) numbers[1]);
    *ino = (ino_t) inode_number;
    return true;
}

int mapped_scan(struct mapped *m, pid_t pid, struct err *e)
{
    char name[64];
    (void) snprintf(name, sizeof(name), "/proc/%d/maps", (int) pid); /* fits */
    AUTO_FREE char *text = paths_read_pseudo(AT_FDCWD, name, MAPS_MAX);

    if (!text)
        return 0; /* gone */
    for (char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        bool last = line[n] == '\0';
        const char *path = NULL;
        dev_t dev = 0;
        ino_t ino = 0;

        line[n] = '\0';
        if (parse_line(line, &path, &dev, &ino) && take_up(m, path, dev, ino, e) < 0)
            return -1;
        line += n + (last ? 0 : 1);
    }
    return 0;
}

int mapped_check_exe(struct mapped *m, pid_t pid, const struct artifact *a, struct err *e)
{
    char name[64];
    struct digest digest;

    (void) snprintf(name, sizeof(name), "/proc/%d/exe", (int) pid); /* fits */
    AUTO_FD int fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0; /* gone already: the descriptor it was started from is checked at the end */
    if (digest_of_fd(fd, &digest, NULL, e) < 0)
        return -1;
    if (!digest_equal(&digest, &a->digest) && !m->changed)
        m->changed = "the executable";
    return 0;
}

int mapped_check(struct mapped *m, const char **out_changed, struct err *e)
{
    for (size_t i = 0; i < m->n && !m->changed; i++) {
        struct digest now;
        const struct mapped_file *f = &m->files[i];

        if (lseek(f->fd, 0, SEEK_SET) < 0)
            return err_errno(e, "mapped.read", "cannot read '%s' again", f->name);
        if (digest_of_fd(f->fd, &now, NULL, e) < 0)
            return -1;
        if (!digest_equal(&now, &f->digest))
            m->changed = f->name;
    }
    *out_changed = m->changed;
    return 0;
}

size_t mapped_count(const struct mapped *m)
{
    return m->n;
}

static int by_name(const void *a, const void *b)
{
    const struct mapped_file *const *x = a;
    const struct mapped_file *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

int mapped_to_json(const struct mapped *m, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = cJSON_CreateArray()};
    const struct mapped_file *sorted[FILES_MAX];

    if (!d.root)
        return err_memory(e, "mapped.memory");
    for (size_t i = 0; i < m->n; i++)
        sorted[i] = &m->files[i];
    qsort(sorted, m->n, sizeof(*sorted), by_name);
    for (size_t i = 0; i < m->n; i++) {
        cJSON *row;
        char hex[DIGEST_HEX_SIZE];

        if (sorted[i]->fd < 0)
            continue;
        digest_hex(&sorted[i]->digest, hex);
        row = json_add_object(&d, NULL, NULL);
        json_add_string(&d, row, "name", sorted[i]->name);
        json_add_string(&d, row, "sha256", hex);
    }
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}
