#include "server/store/doc.h"
#include "server/store/documents.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "experiment/pointer.h"

void doc_time(struct json_doc *d, cJSON *parent, const char *key, int64_t us)
{
    char text[CLOCK_RFC3339_SIZE];

    if (us == 0) {
        json_add_null(d, parent, key);
        return;
    }
    clock_rfc3339(us, false, text);
    json_add_string(d, parent, key, text);
}

void doc_hex(struct json_doc *d, cJSON *parent, const char *key, const struct digest *v)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(v, hex);
    json_add_string(d, parent, key, hex);
}

void doc_format(struct json_doc *d, cJSON *parent, const char *key, const char *format, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, format);
    if (vsnprintf(text, sizeof text, format, ap) < 0)
        text[0] = '\0';
    va_end(ap);
    text[text_whole_length(text, sizeof text)] = '\0';
    json_add_string(d, parent, key, text);
}

void doc_cut(struct buf *out, const char *s, size_t max)
{
    static const char more[] = "…";
    size_t len = strlen(s);
    size_t at = 0;

    if (len <= max) {
        buf_put(out, s, len);
        return;
    }
    while (at < len) {
        size_t step = text_utf8_length(s + at, len - at);

        if (step == 0 || at + step + sizeof more - 1 > max)
            break;
        at += step;
    }
    buf_put(out, s, at);
    buf_puts(out, more);
}

int doc_runner_name(struct db *db, const char *run, char out[DOC_RUNNER_SIZE], struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_RUN_GET);

    query_text(&q, run);
    if (query_one(&q, "such run", e) < 0)
        return -1;
    (void) snprintf(out, DOC_RUNNER_SIZE, "%s", query_get_text(&q, RUN_RUNNER)); /* fits */
    return 0;
}

void doc_run_url(struct json_doc *d, cJSON *parent, const char *key, const char *run,
                 const char *baseline)
{
    if (baseline)
        doc_format(d, parent, key, "/r/%s/vs/%s", run, baseline);
    else
        doc_format(d, parent, key, "/r/%s", run);
}

void doc_links(struct json_doc *d, const char *page)
{
    cJSON *links = json_add_object(d, NULL, "links");

    doc_format(d, links, "json", "%s.json", page);
    doc_format(d, links, "text", "%s.txt", page);
}

int doc_take(struct json_doc *d, cJSON **out, struct err *e)
{
    cJSON *made = json_doc_take(d, e);

    if (!made)
        return -1;
    *out = made;
    return 0;
}

int doc_stored(struct db *db, const char *run, enum store_document kind, cJSON **out, struct err *e)
{
    const struct json_limits limits = {.max_bytes = LIMIT_CANONICAL,
                                       .max_tokens = LIMIT_JSON_TOKENS * 4};
    AUTO_FREE char *bytes = NULL;
    struct err why = ERR_INIT;
    size_t len = 0;

    if (store_document_read(db, run, kind, &bytes, &len, &why) < 0) {
        if (why.kind != ERR_NOTFOUND)
            return err_set(e, why.kind, why.code, "%s", why.text);
        *out = NULL;
        return 0;
    }
    return json_parse(bytes, len, &limits, out, e);
}

/* Replaces a member; false when memory is short. value is consumed. */
static bool put(cJSON *object, const char *key, cJSON *value)
{
    bool there = json_get(object, key) != NULL;

    if (value && (there ? cJSON_ReplaceItemInObjectCaseSensitive(object, key, value)
                        : cJSON_AddItemToObject(object, key, value)))
        return true;
    json_free(value);
    return false;
}

/* One reason for a verdict that no longer stands. */
static cJSON *fallen_reasons(const struct store_run *run, const char *description)
{
    AUTO_JSON_DOC struct json_doc d = {.root = cJSON_CreateArray()};
    struct err ignored = ERR_INIT;
    cJSON *o = json_add_object(&d, NULL, NULL);
    const char *text = strstr(description, ": ");

    json_add_string(&d, o, "code",
                    run->damaged      ? "IN-HASH"
                    : run->revoked_us ? "IN-KEY"
                                      : "NC-BASELINE-NONE");
    json_add_string(&d, o, "path", run->damaged ? "evidence.tar" : NULL);
    json_add_null(&d, o, "field");
    json_add_string(&d, o, "text", text ? text + 2 : description);
    return json_doc_take(&d, &ignored);
}

/* Whether the verdict is another than the one that was given. */
static bool fell(const struct store_run *run)
{
    return run->verdict && (run->damaged || run->revoked_us || run->judge_revoked_us);
}

int doc_verdict_now(struct db *db, const struct store_run *run, cJSON **out, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_RUN_GET);
    AUTO_JSON cJSON *verdict = NULL;
    const char *description;

    if (doc_stored(db, run->run, STORE_VERDICT, &verdict, e) < 0)
        return -1;
    /* a FAIL stays one, whatever its baseline is worth */
    if (verdict && fell(run) && strcmp(json_text(verdict, "verdict", ""), run->verdict) != 0) {
        query_text(&q, run->run);
        if (query_one(&q, "such run", e) < 0)
            return -1;
        description = run->damaged ? DAMAGED_DESCRIPTION : query_get_text(&q, RUN_DESCRIPTION);
        if (!description || !put(verdict, "verdict", cJSON_CreateString(run->verdict)) ||
            !put(verdict, "description", cJSON_CreateString(description)) ||
            !put(verdict, "reasons", fallen_reasons(run, description)))
            return err_memory(e, "doc.memory");
    }
    *out = STEAL(verdict);
    return 0;
}

/* The verdict of a run whose verdict fell. */
static int fallen_text(struct db *db, const struct store_run *run, char **out, size_t *out_len,
                       struct err *e)
{
    AUTO_JSON cJSON *verdict = NULL;
    AUTO_BUF struct buf b = {.data = NULL};

    if (doc_verdict_now(db, run, &verdict, e) < 0)
        return -1;
    buf_init(&b, LIMIT_CANONICAL);
    json_write(&b, verdict, JSON_PRETTY);
    if (buf_check(&b, e) < 0)
        return -1;
    *out = buf_take(&b, out_len);
    return *out ? 0 : err_memory(e, "doc.memory");
}

int doc_verdict(struct store *s, const char *run, char **out, size_t *out_len, struct err *e)
{
    AUTO_STORE_RUN struct store_run row = {.id = 0};
    AUTO_STORE_READ struct store_read r = {.db = NULL};

    if (store_run_look(s, run, e) < 0 || store_read_open(s, &r, e) < 0 ||
        store_run_read(r.db, run, &row, e) < 0)
        return -1;
    if (!row.verdict)
        return err_set(e, ERR_NOTFOUND, "verdict.none",
                       "a diagnostic or build-only run has no verdict");
    if (fell(&row))
        return fallen_text(r.db, &row, out, out_len, e);
    return store_document_read(r.db, run, STORE_VERDICT, out, out_len, e);
}

/* Definition. */

static void add_names(struct json_doc *d, cJSON *parent, const char *key, const cJSON *object)
{
    cJSON *list = json_add_array(d, parent, key);
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, object)
        json_add_string(d, list, NULL, item->string);
}

static int64_t count_checks(const cJSON *accept)
{
    const cJSON *part = NULL;
    int64_t n = 0;

    cJSON_ArrayForEach(part, accept)
        n += cJSON_IsArray(part) ? cJSON_GetArraySize(part) : 1;
    return n;
}

const char *doc_metric_label(const struct definition *def, size_t index, const char *otherwise)
{
    const cJSON *metric =
        cJSON_GetArrayItem(pointer_get(def->policy, "/audit/metrics"), (int) index);
    const cJSON *label;
    char pointer[64];

    (void) snprintf(pointer, sizeof pointer, "/policy/audit/metrics/%zu/label", index); /* fits */
    label = definition_note(def, pointer);
    if (!label)
        label = json_get(metric, "label");
    return cJSON_IsString(label) ? label->valuestring : otherwise;
}

static void add_metric(struct json_doc *d, cJSON *list, const struct definition *def,
                       const cJSON *metric, size_t index)
{
    static const char *const keys[] = {"unit", "worse", "tolerance_pct"};
    const cJSON *path = json_get(metric, "path");
    const cJSON *gated = json_get(metric, "gated");
    cJSON *m = json_add_object(d, list, NULL);
    const char *pointer = cJSON_IsString(path) ? path->valuestring : "";
    AUTO_FREE char *label = pointer_label(doc_metric_label(def, index, NULL), pointer, pointer);

    json_add_string(d, m, "metric", pointer);
    if (!label)
        d->failed = true;
    json_add_string(d, m, "label", label);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        json_add_copy(d, m, keys[i], json_get(metric, keys[i]));
    if (json_get(metric, "floor"))
        json_add_copy(d, m, "floor", json_get(metric, "floor"));
    else
        json_add_null(d, m, "floor");
    json_add_bool(d, m, "gated", !cJSON_IsFalse(gated)); /* the default is true */
}

/* The modes that a run can have: clean always, the others as the definition lists them. */
static void add_modes(struct json_doc *d, cJSON *parent, const cJSON *modes)
{
    cJSON *list = json_add_array(d, parent, "modes");
    const cJSON *mode = NULL;

    json_add_string(d, list, NULL, "clean");
    cJSON_ArrayForEach(mode, modes) {
        if (mode->string && strcmp(mode->string, "clean") != 0)
            json_add_string(d, list, NULL, mode->string);
    }
}

/* The gate's title or description: for people, in neither digest. */
static void add_note(struct json_doc *d, cJSON *parent, const char *key,
                     const struct definition *def)
{
    char pointer[32];
    const cJSON *note;

    (void) snprintf(pointer, sizeof pointer, "/%s", key); /* both are short */
    note = definition_note(def, pointer);
    json_add_string(d, parent, key, cJSON_IsString(note) ? note->valuestring : NULL);
}

int doc_definition(struct json_doc *d, cJSON *parent, const char *key, const struct definition *def,
                   struct err *e)
{
    cJSON *out = json_add_object(d, parent, key);
    const cJSON *metrics = pointer_get(def->policy, "/audit/metrics");
    const cJSON *metric = NULL;
    cJSON *list;
    size_t index = 0;

    add_note(d, out, "title", def);
    add_note(d, out, "description", def);
    doc_hex(d, out, "experiment_sha256", &def->experiment_digest);
    doc_hex(d, out, "policy_sha256", &def->policy_digest);
    json_add_int(d, out, "acceptance_count", count_checks(json_get(def->policy, "accept")));
    add_names(d, out, "windows", json_get(def->experiment, "windows"));
    add_modes(d, out, json_get(def->experiment, "modes"));
    list = json_add_array(d, out, "metrics");
    cJSON_ArrayForEach(metric, metrics)
        add_metric(d, list, def, metric, index++);
    return d->failed ? err_memory(e, "doc.memory") : 0;
}

/* Token by token; a "*" of the pattern takes any one. */
static bool matches(const char *pattern, const char *pointer)
{
    while (*pattern && *pointer) {
        size_t a;
        size_t b;

        if (*pattern++ != '/' || *pointer++ != '/')
            return false;
        a = strcspn(pattern, "/");
        b = strcspn(pointer, "/");
        if (!(a == 1 && pattern[0] == '*') && (a != b || strncmp(pattern, pointer, a) != 0))
            return false;
        pattern += a;
        pointer += b;
    }
    return !*pattern && !*pointer;
}

const cJSON *doc_metric_of(const struct definition *def, const char *pointer, size_t *out_index)
{
    const cJSON *metric = NULL;
    size_t index = 0;

    cJSON_ArrayForEach(metric, pointer_get(def->policy, "/audit/metrics")) {
        const cJSON *path = json_get(metric, "path");

        if (cJSON_IsString(path) && matches(path->valuestring, pointer)) {
            *out_index = index;
            return metric;
        }
        index++;
    }
    return NULL;
}

int doc_attempts(struct json_doc *d, cJSON *list, struct query *q, bool with_run, struct err *e)
{
    bool row = false;
    int rc;

    while ((rc = query_step(q, &row, e)) == 0 && row) {
        cJSON *a = json_add_object(d, list, NULL);

        doc_time(d, a, "at", query_get_int(q, ATTEMPT_AT));
        if (with_run) {
            json_add_string(d, a, "run", query_get_text(q, ATTEMPT_RUN));
            json_add_string(d, a, "class", query_get_text(q, ATTEMPT_CLASS));
        }
        json_add_string(d, a, "code", query_get_text(q, ATTEMPT_CODE));
        json_add_string(d, a, "detail", query_get_text(q, ATTEMPT_DETAIL));
        json_add_string(d, a, "keyid", query_get_text(q, ATTEMPT_KEYID));
    }
    return rc;
}

/* Attempts. */

void attempt_list_fini(struct attempt_list *l)
{
    free(l->items);
    *l = (struct attempt_list){.items = NULL};
}

static int add_attempt(struct attempt_list *l, size_t *cap, const char *run, const char *word,
                       struct err *e)
{
    enum verdict v = VERDICT_INVALID;

    if (l->n == *cap) {
        size_t more = *cap ? *cap * 2 : 8;
        void *grown = reallocarray(l->items, more, sizeof *l->items);

        if (!grown)
            return err_memory(e, "attempts.memory");
        l->items = grown;
        *cap = more;
    }
    memset(&l->items[l->n], 0, sizeof l->items[0]);
    if (run)
        memcpy(l->items[l->n].run, run, strnlen(run, sizeof l->items[0].run - 1));
    if (word && !verdict_parse(word, &v))
        return err_set(e, ERR_INTERNAL, "attempts.verdict", "unknown verdict '%s'", word);
    l->items[l->n].stored = word != NULL;
    l->items[l->n++].verdict = verdict_word(v);
    return 0;
}

static void bind_attempt(struct query *q, int64_t project_id, const char *gate,
                         const char *machine_class, const char *commit)
{
    query_int(q, project_id);
    query_text(q, gate);
    query_text(q, machine_class);
    query_text(q, commit);
}

int attempt_list_read(struct db *db, int64_t project_id, const char *gate,
                      const char *machine_class, const char *commit, struct attempt_list *out,
                      struct err *e)
{
    AUTO_QUERY struct query runs = query_begin(db, SQL_RUNS_OF_ATTEMPT);
    AUTO_QUERY struct query refused = query_begin(db, SQL_ATTEMPTS_BEFORE);
    AUTO_ATTEMPT_LIST struct attempt_list l = {.items = NULL};
    size_t cap = 0;
    bool run = false;
    bool other = false;

    bind_attempt(&runs, project_id, gate, machine_class, commit);
    bind_attempt(&refused, project_id, gate, machine_class, commit);
    if (query_step(&runs, &run, e) < 0 || query_step(&refused, &other, e) < 0)
        return -1;
    while (run || other) {
        if (run && (!other || query_get_int(&runs, 2) <= query_get_int(&refused, ATTEMPT_AT))) {
            if (add_attempt(&l, &cap, query_get_text(&runs, 0), query_get_text(&runs, 1), e) < 0 ||
                query_step(&runs, &run, e) < 0)
                return -1;
        } else {
            if (add_attempt(&l, &cap, query_get_text(&refused, ATTEMPT_RUN), NULL, e) < 0 ||
                query_step(&refused, &other, e) < 0)
                return -1;
        }
    }
    *out = l;
    memset(&l, 0, sizeof l); /* moved out */
    return 0;
}

void attempt_list_write(const struct attempt_list *l, const char *run, struct json_doc *d,
                        cJSON *parent)
{
    cJSON *a = json_add_object(d, parent, "attempt");
    cJSON *previous;
    size_t n = l->n;

    for (size_t i = 0; run && i < l->n; i++) {
        if (l->items[i].stored && strcmp(l->items[i].run, run) == 0)
            n = i;
    }
    json_add_int(d, a, "n", (int64_t) n + 1);
    json_add_int(d, a, "of", (int64_t) (n == l->n ? l->n + 1 : l->n));
    previous = json_add_array(d, a, "previous");
    for (size_t i = 0; i < n; i++) {
        cJSON *p = json_add_object(d, previous, NULL);

        json_add_string(d, p, "run", l->items[i].run[0] ? l->items[i].run : NULL);
        json_add_string(d, p, "verdict", l->items[i].verdict);
    }
}
