#include "server/admin_args.h"

#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define ALLOWED_MAX 16

static bool names(const char *allowed, const char *flag, size_t len)
{
    size_t n = strcspn(allowed, "=");

    return n == len && strncmp(allowed, flag, len) == 0;
}

static int unknown(const char *flag, size_t len, const char *const *allowed, size_t n,
                   struct err *e)
{
    char words[ALLOWED_MAX][32];
    const char *candidates[ALLOWED_MAX];
    char name[32];
    const char *near;

    if (len >= sizeof name)
        return err_set(e, ERR_USAGE, "args.unknown", "unknown option '--%.*s'",
                       (int) (len < 60 ? len : 60), flag);
    memcpy(name, flag, len);
    name[len] = '\0';
    for (size_t i = 0; i < n && i < ALLOWED_MAX; i++) {
        size_t k = strcspn(allowed[i], "=");

        k = k < sizeof words[i] ? k : sizeof words[i] - 1;
        memcpy(words[i], allowed[i], k);
        words[i][k] = '\0';
        candidates[i] = words[i];
    }
    near = text_nearest(name, candidates, n < ALLOWED_MAX ? n : ALLOWED_MAX);
    if (near)
        return err_set(e, ERR_USAGE, "args.unknown", "unknown option '--%s'; did you mean '--%s'?",
                       name, near);
    return err_set(e, ERR_USAGE, "args.unknown", "unknown option '--%s'", name);
}

static int add_flag(struct admin_args *a, const char *name, const char *value, struct err *e)
{
    size_t len = strcspn(name, "=");

    for (size_t i = 0; i < a->n_flags; i++) {
        if (names(a->flags[i].name, name, len))
            return err_set(e, ERR_USAGE, "args.twice", "--%.*s is given twice", (int) len, name);
    }
    if (a->n_flags == ADMIN_FLAGS)
        return err_set(e, ERR_USAGE, "args.many", "too many options");
    a->flags[a->n_flags].name = name;
    a->flags[a->n_flags++].value = value;
    return 0;
}

/* *io_i: index of the flag; moved on when the value is the next word. */
static int parse_flag(int argc, char *const argv[], int *io_i, const char *const *allowed, size_t n,
                      struct admin_args *a, struct err *e)
{
    const char *flag = argv[*io_i] + 2;
    size_t len = strcspn(flag, "=");

    for (size_t i = 0; i < n; i++) {
        bool takes = strchr(allowed[i], '=') != NULL;

        if (!names(allowed[i], flag, len))
            continue;
        if (!takes && flag[len] == '=')
            return err_set(e, ERR_USAGE, "args.value", "'--%.*s' takes no value", (int) len, flag);
        if (!takes)
            return add_flag(a, allowed[i], NULL, e);
        if (flag[len] == '=')
            return add_flag(a, allowed[i], flag + len + 1, e);
        if (*io_i + 1 >= argc || strncmp(argv[*io_i + 1], "--", 2) == 0)
            return err_set(e, ERR_USAGE, "args.value", "'--%s' needs a value", flag);
        (*io_i)++;
        return add_flag(a, allowed[i], argv[*io_i], e);
    }
    return unknown(flag, len, allowed, n, e);
}

int admin_args_parse(int argc, char *const argv[], const char *const *allowed, size_t n_allowed,
                     struct admin_args *out, struct err *e)
{
    struct admin_args a = {.n_words = 0, .out = out->out, .environment = out->environment};

    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0 && argv[i][2]) {
            if (parse_flag(argc, argv, &i, allowed, n_allowed, &a, e) < 0)
                return -1;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            return err_set(e, ERR_USAGE, "args.unknown", "unknown option '%s'", argv[i]);
        } else if (a.n_words == ADMIN_WORDS) {
            return err_set(e, ERR_USAGE, "args.many", "too many words: '%s'", argv[i]);
        } else {
            a.words[a.n_words++] = argv[i];
        }
    }
    *out = a;
    return 0;
}

const char *admin_args_get(const struct admin_args *a, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < a->n_flags; i++) {
        if (names(a->flags[i].name, name, strlen(name)))
            value = a->flags[i].value;
    }
    return value;
}

bool admin_args_has(const struct admin_args *a, const char *name)
{
    for (size_t i = 0; i < a->n_flags; i++) {
        if (names(a->flags[i].name, name, strlen(name)))
            return true;
    }
    return false;
}

int admin_args_need(const struct admin_args *a, const char *name, const char **out, struct err *e)
{
    const char *value = admin_args_get(a, name);

    if (!value || !value[0])
        return err_set(e, ERR_USAGE, "args.missing", "--%s is needed", name);
    *out = value;
    return 0;
}

int admin_args_time(const struct admin_args *a, const char *name, int64_t *out_us, struct err *e)
{
    const char *value = admin_args_get(a, name);
    int64_t us = 0;

    if (value && !clock_parse_rfc3339(value, &us))
        return err_set(e, ERR_USAGE, "args.time",
                       "--%s must be a time such as 2026-11-29T14:15:02Z, not '%s'", name, value);
    if (value && us <= 0)
        return err_set(e, ERR_USAGE, "args.time", "--%s must be a time after 1970, not '%s'", name,
                       value);
    *out_us = us;
    return 0;
}
