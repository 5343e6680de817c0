#include "runner/check_names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "experiment/pointer.h"
#include "experiment/resources.h"
#include "experiment/samples.h"

#define PLACE_MAX 256
#define TEXT_MAX 640
#define NAMES_MAX 64 /* that may be meant by one that is not known */

struct names {
    const struct definition *d;
    struct json_doc *doc;
    cJSON *list;
    const cJSON *markers; /* phases.markers; NULL: any may come */
    const cJSON *section; /* what the runner puts into the report; NULL: nothing */
    const char *into;
};

void check_warn(const struct definition *d, struct json_doc *doc, cJSON *list, const char *pointer,
                const char *text)
{
    cJSON *row = json_add_object(doc, list, NULL);
    char place[DEFINITION_PLACE_SIZE];

    json_add_string(doc, row, "place", definition_place(d, pointer, place));
    json_add_string(doc, row, "text", text);
}

static void warn_name(struct names *n, const char *pointer, const char *before, const char *name,
                      const char *near, const char *after)
{
    char text[TEXT_MAX];

    (void) snprintf(text, sizeof text, "%s '%s', %s%s%s%s", before, name, after,
                    near ? "; did you mean '" : "", near ? near : "",
                    near ? "'?" : ""); /* cut, still tells */
    text[text_whole_length(text, sizeof text)] = '\0';
    check_warn(n->d, n->doc, n->list, pointer, text);
}

/* A pointer into the definition; a cut one tells a place around it. */
__attribute__((format(printf, 2, 3))) static void put_place(char out[PLACE_MAX], const char *format,
                                                            ...)
{
    va_list ap;

    va_start(ap, format);
    (void) vsnprintf(out, PLACE_MAX, format, ap); /* may be cut */
    va_end(ap);
}

/* Place of a marker in phases.markers, -1 when it may not come. */
static int marker_place(const struct names *n, const char *name)
{
    const cJSON *marker = NULL;
    int at = 0;

    cJSON_ArrayForEach(marker, n->markers) {
        if (strcmp(marker->valuestring, name) == 0)
            return at;
        at++;
    }
    return -1;
}

static bool marker_known(struct names *n, const char *pointer, const cJSON *name, const char *after)
{
    const char *known[NAMES_MAX];
    const cJSON *marker = NULL;
    size_t count = 0;

    if (!cJSON_IsString(name) || !n->markers)
        return true;
    if (marker_place(n, name->valuestring) >= 0)
        return true;
    cJSON_ArrayForEach(marker, n->markers) {
        if (count < NAMES_MAX)
            known[count++] = marker->valuestring;
    }
    warn_name(n, pointer, "phases.markers has no", name->valuestring,
              text_nearest(name->valuestring, known, count), after);
    return false;
}

static void check_list(struct names *n, const char *parent, const cJSON *names, const char *after)
{
    const cJSON *name = NULL;
    char pointer[PLACE_MAX];
    int i = 0;

    cJSON_ArrayForEach(name, names) {
        put_place(pointer, "%s/%d", parent, i++);
        (void) marker_known(n, pointer, name, after);
    }
}

static void check_windows(struct names *n)
{
    static const char never[] = "so the window is never complete";
    const cJSON *window = NULL;
    char start[PLACE_MAX], end[PLACE_MAX];

    cJSON_ArrayForEach(window, json_get(n->d->experiment, "windows")) {
        const cJSON *from = json_get(window, "start_phase");
        const cJSON *to = json_get(window, "end_phase");
        bool known;

        put_place(start, "/experiment/windows/%s/start_phase", window->string);
        put_place(end, "/experiment/windows/%s/end_phase", window->string);
        known = marker_known(n, start, from, never);
        known = marker_known(n, end, to, never) && known;
        if (known && n->markers && cJSON_IsString(from) && cJSON_IsString(to) &&
            marker_place(n, from->valuestring) >= marker_place(n, to->valuestring))
            check_warn(n->d, n->doc, n->list, start,
                       "the window does not begin before it ends (the order of phases.markers), so "
                       "it is never complete");
    }
}

static void check_markers(struct names *n)
{
    const cJSON *experiment = n->d->experiment;
    const cJSON *entry = NULL;
    char pointer[PLACE_MAX];
    int i = 0;

    check_list(n, "/experiment/phases/required",
               json_get(json_get(experiment, "phases"), "required"),
               "and a marker that is not there makes the run a FAIL");
    check_windows(n);
    cJSON_ArrayForEach(entry, json_get(experiment, "conditioning")) {
        put_place(pointer, "/experiment/conditioning/%d/name", i++);
        if (!json_get(entry, "command") && !json_get(entry, "proof"))
            (void) marker_known(n, pointer, json_get(entry, "name"),
                                "and a step of the program's own must show as a marker");
    }
    cJSON_ArrayForEach(entry, json_get(experiment, "modes")) {
        put_place(pointer, "/experiment/modes/%s/snapshots", entry->string);
        check_list(n, pointer, json_get(entry, "snapshots"), "so there is no such snapshot");
    }
    (void) marker_known(n, "/policy/soak/active_end",
                        json_get(json_get(n->d->policy, "soak"), "active_end"),
                        "so the soak's window has no end");
}

/* The runner's section. */

/* As the runner makes it, of two samples and no marker: all its members, whatever their values. */
static int make_section(const struct definition *d, cJSON **out, struct err *e)
{
    static const char csv[] = "t_ms,rss_kib,cpu_pct\n0,1,\n1000,1,1\n";
    AUTO_SAMPLES struct samples samples = {.n = 0};
    AUTO_JSON cJSON *markers = cJSON_CreateArray();

    if (!markers)
        return err_set(e, ERR_NOMEM, "check.memory", "out of memory");
    if (samples_parse_csv(csv, strlen(csv), &samples, e) < 0)
        return -1;
    return resources_derive(d, &samples, markers, out, e);
}

/* Walks a pointer below the section; false, with the token and what stands there instead, where it
 * leads nowhere. A star leads to the first member. */
static bool leads_somewhere(const cJSON *section, const char *rest,
                            char token[POINTER_MAX_BYTES + 1], const cJSON **out_at)
{
    const cJSON *at = section;

    while (*rest == '/') {
        const cJSON *next;

        rest++;
        pointer_token(&rest, token);
        *out_at = at;
        if (strcmp(token, "*") == 0)
            next = at->child;
        else if (cJSON_IsArray(at))
            return true; /* samples: as many as there were */
        else
            next = json_get(at, token);
        if (!next)
            return false;
        at = next;
    }
    return true;
}

static void check_pointer(struct names *n, const char *place, const cJSON *pointer)
{
    char token[POINTER_MAX_BYTES + 1];
    const char *known[NAMES_MAX];
    const cJSON *at = NULL, *member = NULL;
    size_t len = n->into ? strlen(n->into) : 0, count = 0;

    if (!n->section || !cJSON_IsString(pointer) || !pointer_ok(pointer->valuestring) ||
        strncmp(pointer->valuestring, n->into, len) != 0 || pointer->valuestring[len] != '/' ||
        leads_somewhere(n->section, pointer->valuestring + len, token, &at))
        return;
    cJSON_ArrayForEach(member, at) {
        if (count < NAMES_MAX && member->string)
            known[count++] = member->string;
    }
    warn_name(n, place, "the runner's section (sampling.into) never has", token,
              text_nearest(token, known, count), "and nothing else may stand there");
}

static void check_entries(struct names *n, const char *parent, const cJSON *entries,
                          const char *key)
{
    const cJSON *entry = NULL;
    char place[PLACE_MAX];
    int i = 0;

    cJSON_ArrayForEach(entry, entries) {
        put_place(place, "%s/%d/%s", parent, i++, key);
        check_pointer(n, place, json_get(entry, key));
    }
}

static void check_pointers(struct names *n)
{
    static const char *const parts[] = {"exact", "floors", "limits", "zero_tree"};
    const cJSON *accept = json_get(n->d->policy, "accept");
    const cJSON *audit = json_get(n->d->policy, "audit");
    char parent[PLACE_MAX];

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        put_place(parent, "/policy/accept/%s", parts[i]);
        check_entries(n, parent, json_get(accept, parts[i]), "path");
    }
    check_entries(n, "/policy/audit/metrics", json_get(audit, "metrics"), "path");
    check_entries(n, "/policy/audit/windows", json_get(audit, "windows"), "path");
    check_entries(n, "/policy/audit/windows", json_get(audit, "windows"), "value");
    check_entries(n, "/policy/identity", json_get(n->d->policy, "identity"), "path");
}

int check_names(const struct definition *d, struct json_doc *doc, cJSON *list, struct err *e)
{
    const cJSON *phases = json_get(d->experiment, "phases");
    AUTO_JSON cJSON *section = NULL;
    struct names n = {.d = d, .doc = doc, .list = list};

    if (strcmp(json_text(phases, "from", "descriptor"), "descriptor") == 0)
        n.markers = json_get(phases, "markers");
    n.into = json_text(json_get(d->experiment, "sampling"), "into", NULL);
    if (n.into && make_section(d, &section, e) < 0)
        return -1;
    n.section = section;
    check_markers(&n);
    check_pointers(&n);
    return 0;
}
