#include "runner/others.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "runner/paths.h"

#define SEEN_MAX 32768
#define SEEN_FIRST 256

/* Processes that ended between two looks, in the list of the busiest. */
#define ENDED_NAME "(processes that ended)"

struct others_seen {
    pid_t pid;
    bool other; /* neither ours nor the measured program's */
    uint64_t start, ticks, waited;
};

static int by_pid(const void *a, const void *b)
{
    const struct others_seen *x = a;
    const struct others_seen *y = b;

    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void note_busy(struct others *o, const char *comm, uint64_t ticks)
{
    size_t least = 0;

    for (size_t k = 0; k < OTHERS_BUSIEST; k++) {
        if (!strcmp(o->busiest[k].comm, comm)) {
            o->busiest[k].ticks += ticks;
            return;
        }
        if (o->busiest[k].ticks < o->busiest[least].ticks)
            least = k;
    }
    if (ticks > o->busiest[least].ticks) {
        o->busiest[least].ticks = ticks;
        (void) snprintf(o->busiest[least].comm, sizeof(o->busiest[least].comm), "%s",
                        comm); /* same size */
    }
}

/* Ticks that a process used since it was last seen (or since it began, when it is new and this is
 * no first look). */
static uint64_t ticks_since(const struct others *o, const struct others_seen *now)
{
    const struct others_seen *before =
        o->now.n > 0 ? bsearch(now, o->now.items, o->now.n, sizeof(*now), by_pid) : NULL;

    if (before && before->start == now->start)
        return now->ticks > before->ticks ? now->ticks - before->ticks : 0;
    return o->looks > 0 ? now->ticks : 0;
}

/* All that the others of a list and those they waited for have used. */
static uint64_t used_by_others(const struct others_list *list)
{
    uint64_t sum = 0;

    for (size_t k = 0; k < list->n; k++)
        if (list->items[k].other)
            sum += list->items[k].ticks + list->items[k].waited;
    return sum;
}

/* A place for one more, or NULL: no memory, or too many to name. */
static struct others_seen *seen_add(struct others_list *list)
{
    if (!list->items || list->n == list->room) {
        size_t room = list->room > 0 ? list->room * 2 : SEEN_FIRST;
        struct others_seen *items =
            room <= SEEN_MAX ? realloc(list->items, room * sizeof(*list->items)) : NULL;

        if (!items)
            return NULL;
        list->items = items;
        list->room = room;
    }
    return &list->items[list->n++];
}

/* Two ways to count, each at most the truth. `seen`: what those that are there used since the last
 * look. Sums: a process that ended left what it used with the one that waited for it, so that the
 * sum over all grows by those as well that came and went in between (but falls where nobody
 * waits). */
static void add_look(struct others *o, const struct others_list *fresh, uint64_t seen)
{
    uint64_t before = used_by_others(&o->now);
    uint64_t now = used_by_others(fresh);
    uint64_t grown = o->looks > 0 && now > before ? now - before : 0;

    o->ticks += grown > seen ? grown : seen;
    if (grown > seen)
        note_busy(o, ENDED_NAME, grown - seen);
}

void others_look(struct others *o)
{
    DIR *dir = paths_open_dir(o->root->fd, "proc");
    struct others_list fresh = o->before;
    uint64_t sum = 0;
    pid_t self = getpid();

    fresh.n = 0;
    for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
        uint64_t pid = 0;
        uint64_t used = 0;
        char name[300];
        struct proc_stat st;
        struct others_seen *one;

        if (!num_parse_u64(d->d_name, strlen(d->d_name), INT32_MAX, &pid))
            continue;
        (void) snprintf(name, sizeof(name), "%s/stat", d->d_name); /* fits */
        if (!proc_stat_read(dirfd(dir), name, &st))
            continue;
        one = seen_add(&fresh);
        if (!one)
            break;
        *one = (struct others_seen){
            .pid = (pid_t) pid,
            .other = (pid_t) pid != self && st.ppid != self &&
                     !(o->mine && o->mine(o->context, (pid_t) pid)),
            .start = st.start_ticks,
            .ticks = st.user_ticks + st.system_ticks,
            .waited = st.waited_ticks,
        };
        used = one->other ? ticks_since(o, one) : 0;
        sum += used;
        if (used > 0)
            note_busy(o, st.comm, used);
    }
    if (dir)
        (void) closedir(dir); /* was only read */
    if (fresh.items)
        qsort(fresh.items, fresh.n, sizeof(*fresh.items), by_pid);
    add_look(o, &fresh, sum);
    o->before = o->now;
    o->now = fresh;
    o->looks++;
}

void others_fini(struct others *o)
{
    free(o->now.items);
    free(o->before.items);
}
