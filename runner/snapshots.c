#include "runner/snapshots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"

#define SNAPSHOTS_MAX 512
#define SNAPSHOTS_OF_MARKERS 64 /* kept free for them: the clock goes on and on */

enum field {
    FIELD_RSS,
    FIELD_PSS,
    FIELD_ANONYMOUS,
    FIELD_PRIVATE_DIRTY,
    FIELD_SWAP,
    FIELD_PEAK,
    FIELD_THREADS,
    FIELD_MAX,
};

/* `own` is the kernel's name in smaps_rollup, or in status where from_status. */
static const struct {
    const char *name, *own;
    bool from_status, summed;
} fields[FIELD_MAX] = {
    [FIELD_RSS] = {"rss_kib", "Rss", false, true},
    [FIELD_PSS] = {"pss_kib", "Pss", false, true},
    [FIELD_ANONYMOUS] = {"anonymous_kib", "Anonymous", false, true},
    [FIELD_PRIVATE_DIRTY] = {"private_dirty_kib", "Private_Dirty", false, true},
    [FIELD_SWAP] = {"swap_kib", "Swap", false, true},
    [FIELD_PEAK] = {"peak_rss_kib", "VmHWM", true,
                    false}, /* peaks of different moments have no sum */
    [FIELD_THREADS] = {"threads", "Threads", true, true},
};

struct snapshots {
    const cJSON *phases;
    int dump_signal;
    dev_t device; /* of the measured executable */
    ino_t inode;
    struct json_doc document;
    cJSON *list;
    size_t n, lost;
};

/* A sum that lacks an addend is unknown. */
struct sums {
    uint64_t value[FIELD_MAX];
    bool unknown[FIELD_MAX];
};

int snapshots_new(const struct snapshots_plan *p, struct snapshots **out, struct err *e)
{
    struct stat st;
    struct snapshots *s = calloc(1, sizeof(*s));

    if (!s)
        return err_memory(e, "snapshots.memory");
    if (fstat(p->executable_fd, &st) < 0) {
        free(s);
        return err_errno(e, "snapshots.executable", "cannot look at the executable");
    }
    s->phases = p->phases;
    s->dump_signal = p->dump_signal;
    s->device = st.st_dev;
    s->inode = st.st_ino;
    json_doc_init_object(&s->document);
    json_add_string(&s->document, NULL, "schema", "cleanrun-snapshots/1");
    json_add_string(&s->document, NULL, "mode", p->mode);
    if (p->phases)
        json_add_copy(&s->document, NULL, "phases", p->phases);
    else
        (void) json_add_array(&s->document, NULL, "phases");
    if (p->every_ms > 0)
        json_add_int(&s->document, NULL, "every_ms", (int64_t) p->every_ms);
    else
        json_add_null(&s->document, NULL, "every_ms");
    s->list = json_add_array(&s->document, NULL, "snapshots");
    *out = s;
    return 0;
}

void snapshots_free(struct snapshots *s)
{
    if (!s)
        return;
    json_doc_fini(&s->document);
    free(s);
}

bool snapshots_want(const struct snapshots *s, const char *phase)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, s->phases) {
        if (!strcmp(item->valuestring, phase))
            return true;
    }
    return false;
}

/* Sums of the whole tree, and of the processes that run the measured executable. */
struct totals {
    struct sums all, measured;
};

static bool runs_executable(const struct snapshots *s, const struct sysroot *root, pid_t pid)
{
    char path[64];
    struct stat st;

    (void) snprintf(path, sizeof(path), "proc/%d/exe", (int) pid); /* fits */
    return fstatat(root->fd, path, &st, 0) == 0 && st.st_dev == s->device && st.st_ino == s->inode;
}

static void add_process(struct snapshots *s, cJSON *list, const struct sysroot *root, pid_t pid,
                        struct totals *totals)
{
    bool measured = runs_executable(s, root, pid);
    char path[64];
    AUTO_FREE char *rollup = NULL;
    AUTO_FREE char *status = NULL;
    AUTO_FREE char *name = NULL;
    cJSON *o;

    (void) snprintf(path, sizeof(path), "proc/%d/status", (int) pid); /* fits */
    status = sysroot_read(root, path);
    if (!status)
        return;
    (void) snprintf(path, sizeof(path), "proc/%d/smaps_rollup", (int) pid); /* fits */
    rollup = sysroot_read(root, path);
    name = procfs_field(status, "Name");
    o = json_add_object(&s->document, list, NULL);
    json_add_int(&s->document, o, "pid", pid);
    json_add_string(&s->document, o, "name", name);
    json_add_bool(&s->document, o, "measured", measured);
    for (size_t i = 0; i < FIELD_MAX; i++) {
        const char *text = fields[i].from_status ? status : rollup;
        uint64_t value = 0;

        if (text && procfs_field_number(text, fields[i].own, &value)) {
            json_add_int(&s->document, o, fields[i].name, (int64_t) value);
            totals->all.value[i] += value;
            totals->measured.value[i] += measured ? value : 0;
        } else {
            json_add_null(&s->document, o, fields[i].name);
            totals->all.unknown[i] = true;
            totals->measured.unknown[i] = totals->measured.unknown[i] || measured;
        }
    }
}

static void add_total(struct snapshots *s, cJSON *o, const char *name, const struct sums *sums)
{
    cJSON *total = json_add_object(&s->document, o, name);

    for (size_t i = 0; i < FIELD_MAX; i++) {
        if (!fields[i].summed)
            continue;
        if (sums->unknown[i])
            json_add_null(&s->document, total, fields[i].name);
        else
            json_add_int(&s->document, total, fields[i].name, (int64_t) sums->value[i]);
    }
}

/* Tells the measured program's processes to dump; how many were told. A descriptor names the
 * process itself, whatever becomes of its number. */
static size_t tell_to_dump(const struct snapshots *s, const struct sysroot *root, const pid_t *pids,
                           size_t n)
{
    size_t told = 0;

    for (size_t i = 0; i < n; i++) {
        AUTO_FD int fd = (int) syscall(SYS_pidfd_open, pids[i], 0);

        if (fd >= 0 && runs_executable(s, root, pids[i]) &&
            syscall(SYS_pidfd_send_signal, fd, s->dump_signal, NULL, 0) == 0)
            told++;
    }
    return told;
}

void snapshots_take(struct snapshots *s, const struct sysroot *root, const pid_t *pids, size_t n,
                    const char *phase, uint64_t elapsed_ms)
{
    struct totals totals = {.all = {.value = {0}}};
    uint64_t began = clock_monotonic_ns();
    cJSON *o, *list;

    if (s->n >= (phase ? SNAPSHOTS_MAX : SNAPSHOTS_MAX - SNAPSHOTS_OF_MARKERS)) {
        s->lost++;
        return;
    }
    s->n++;
    o = json_add_object(&s->document, s->list, NULL);
    json_add_string(&s->document, o, "phase", phase);
    json_add_int(&s->document, o, "elapsed_ms", (int64_t) elapsed_ms);
    list = json_add_array(&s->document, o, "processes");
    for (size_t i = 0; i < n; i++)
        add_process(s, list, root, pids[i], &totals);
    add_total(s, o, "total", &totals.all);
    add_total(s, o, "measured", &totals.measured);
    json_add_int(&s->document, o, "took_us", (int64_t) ((clock_monotonic_ns() - began) / 1000));
    json_add_int(&s->document, o, "signalled",
                 !phase && s->dump_signal ? (int64_t) tell_to_dump(s, root, pids, n) : 0);
}

/* A snapshot that found no process says nothing. */
static bool taken(const struct snapshots *s, const char *phase)
{
    const cJSON *o = NULL;

    cJSON_ArrayForEach(o, s->list) {
        const cJSON *name = json_get(o, "phase");

        if (cJSON_IsString(name) && !strcmp(name->valuestring, phase) &&
            cJSON_GetArraySize(json_get(o, "processes")) > 0)
            return true;
    }
    return false;
}

const char *snapshots_missing(const struct snapshots *s)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, s->phases) {
        if (!taken(s, item->valuestring))
            return item->valuestring;
    }
    return NULL;
}

int snapshots_document(struct snapshots *s, cJSON **out, struct err *e)
{
    json_add_int(&s->document, NULL, "lost", (int64_t) s->lost);
    *out = json_doc_take(&s->document, e);
    s->list = NULL;
    return *out ? 0 : -1;
}
