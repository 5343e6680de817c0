#include "runner/markers.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/relname.h"

void markers_init(struct markers *m, uint64_t start_ns)
{
    memset(m, 0, sizeof(*m));
    m->start_ns = start_ns;
}

static void end_line(struct markers *m, uint64_t now)
{
    struct marker *x = &m->items[m->n];

    m->line[m->line_len] = '\0';
    m->line_len = 0;
    if (m->too_long || !relname_segment_ok(m->line)) {
        m->too_long = false;
        m->malformed++;
        return;
    }
    if (m->n == LIMIT_PHASE_MARKERS) {
        m->lost++;
        return;
    }
    memcpy(x->name, m->line, sizeof(x->name));
    x->elapsed_ms = (now - m->start_ns) / 1000000U;
    m->n++;
    if (m->seen)
        m->seen(m->context, x->name);
}

int markers_data(void *context, const char *bytes, size_t len, struct err *e)
{
    struct markers *m = context;
    uint64_t now = clock_monotonic_ns();

    (void) e;
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n')
            end_line(m, now);
        else if (bytes[i] == '\0' || m->line_len + 1 >= sizeof(m->line))
            m->too_long = true;
        else
            m->line[m->line_len++] = bytes[i];
    }
    return 0;
}

int markers_to_json(const struct markers *m, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = cJSON_CreateArray()};

    if (!d.root)
        return err_memory(e, "markers.memory");
    for (size_t i = 0; i < m->n; i++) {
        cJSON *row = json_add_object(&d, NULL, NULL);

        json_add_string(&d, row, "phase", m->items[i].name);
        json_add_string(&d, row, "kind", "actual");
        json_add_int(&d, row, "elapsed_ms", (int64_t) m->items[i].elapsed_ms);
    }
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}

static size_t count_of(const struct markers *m, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        n += strcmp(m->items[i].name, name) == 0 ? 1 : 0;
    return n;
}

/* Position in the definition's list, -1 when it is not there. */
static int place_of(const cJSON *list, const char *name)
{
    const cJSON *item = NULL;
    int i = 0;

    cJSON_ArrayForEach(item, list) {
        if (!strcmp(item->valuestring, name))
            return i;
        i++;
    }
    return -1;
}

/* Markers that only a snapshot waits for stand beside the definition's order. */
static bool breaks_order(const struct markers *m, const struct plan *p, char *why, size_t size)
{
    int last = -1;

    for (size_t i = 0; i < m->n; i++) {
        int place = place_of(p->markers, m->items[i].name);

        if (place < 0 && place_of(p->snapshots, m->items[i].name) >= 0)
            continue;
        if (place < 0) {
            (void) snprintf(why, size, "phase marker '%s' is not in the definition",
                            m->items[i].name);
            return true;
        }
        if (place <= last) {
            (void) snprintf(why, size, "phase marker '%s' is repeated or out of order",
                            m->items[i].name);
            return true;
        }
        last = place;
    }
    return false;
}

bool markers_break(const struct markers *m, const struct plan *p, char *why, size_t size)
{
    const cJSON *item = NULL;

    if (m->malformed > 0 || m->lost > 0 || m->line_len > 0 || m->too_long) {
        (void) snprintf(why, size, "%zu phase markers are malformed, %zu too many", m->malformed,
                        m->lost);
        return true;
    }
    if (p->markers && breaks_order(m, p, why, size))
        return true;
    cJSON_ArrayForEach(item, p->required) {
        if (!p->markers_in_report && count_of(m, item->valuestring) == 0) {
            (void) snprintf(why, size, "phase marker '%s' was not seen", item->valuestring);
            return true;
        }
    }
    cJSON_ArrayForEach(item, p->conditioning) {
        const char *name = json_get(item, "name")->valuestring;

        if (!json_get(item, "command") && !json_get(item, "proof") && count_of(m, name) == 0) {
            (void) snprintf(why, size, "conditioning step '%s' did not show as a phase marker",
                            name);
            return true;
        }
    }
    return false;
}
