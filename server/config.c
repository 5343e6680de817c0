#include "server/config.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/text.h"

enum setting {
    DATA,
    LISTEN,
    BASE_URL,
    TEMPLATES,
    PORT_FILE,
    THREADS,
    IDLE,
    HEADER,
    DRAIN,
    SETTINGS
};

static const struct {
    const char *flag;
    const char *env;
} settings[SETTINGS] = {
    [DATA] = {"--data", "CLEANRUN_SERVER_DATA"},
    [LISTEN] = {"--listen", "CLEANRUN_SERVER_LISTEN"},
    [BASE_URL] = {"--base-url", "CLEANRUN_SERVER_BASE_URL"},
    [TEMPLATES] = {"--templates", "CLEANRUN_SERVER_TEMPLATES"},
    [PORT_FILE] = {"--port-file", NULL},
    [THREADS] = {"--threads", "CLEANRUN_SERVER_THREADS"},
    [IDLE] = {"--idle-timeout", "CLEANRUN_SERVER_IDLE_TIMEOUT"},
    [HEADER] = {"--header-timeout", "CLEANRUN_SERVER_HEADER_TIMEOUT"},
    [DRAIN] = {"--drain-timeout", "CLEANRUN_SERVER_DRAIN_TIMEOUT"},
};

const char *config_env(char *const environment[], const char *name)
{
    size_t len = strlen(name);
    size_t i = 0;

    for (i = 0; environment && environment[i]; i++) {
        if (strncmp(environment[i], name, len) == 0 && environment[i][len] == '=' &&
            environment[i][len + 1] != '\0')
            return environment[i] + len + 1;
    }
    return NULL;
}

static int unknown_flag(const char *word, struct err *e)
{
    const char *names[SETTINGS];
    const char *near = NULL;
    char name[32] = "";
    char hint[TEXT_HINT_SIZE];
    size_t len = strcspn(word, "=");
    size_t i = 0;

    for (i = 0; i < SETTINGS; i++)
        names[i] = settings[i].flag;
    if (len < sizeof name) {
        memcpy(name, word, len);
        near = text_nearest(name, names, SETTINGS);
    }
    return err_set(e, ERR_USAGE, "config.flag", "unknown option '%s'%s", word,
                   text_hint(near, hint));
}

static int set_value(const char *values[SETTINGS], size_t s, const char *value, struct err *e)
{
    if (values[s])
        return err_set(e, ERR_USAGE, "config.twice", "%s is given twice", settings[s].flag);
    values[s] = value;
    return 0;
}

/* Reads one flag at argv[*i] into values. */
static int take_flag(int argc, char *const argv[], int *i, const char *values[SETTINGS],
                     struct err *e)
{
    const char *word = argv[*i];
    size_t len = strcspn(word, "=");
    size_t s = 0;

    for (s = 0; s < SETTINGS; s++) {
        if (strlen(settings[s].flag) != len || strncmp(word, settings[s].flag, len) != 0)
            continue;
        if (word[len] == '=')
            return set_value(values, s, word + len + 1, e);
        if (*i + 1 >= argc)
            return err_set(e, ERR_USAGE, "config.value", "option '%s' needs a value", word);
        *i += 1;
        return set_value(values, s, argv[*i], e);
    }
    return unknown_flag(word, e);
}

static int take_number(const char *text, const char *what, unsigned low, unsigned high,
                       unsigned *out, struct err *e)
{
    uint64_t v = 0;

    if (!text)
        return 0;
    if (!num_parse_u64(text, strlen(text), high, &v) || v < low)
        return err_set(e, ERR_USAGE, "config.number",
                       "%s must be a whole number from %u to %u, not '%s'", what, low, high, text);
    *out = (unsigned) v;
    return 0;
}

static int check_base_url(const char *url, struct err *e)
{
    size_t len = url ? strlen(url) : 0;

    if (!url)
        return 0;
    if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
        url[len - 1] == '/' || len > 200 || strpbrk(url, " \"'<>\\?#"))
        return err_set(e, ERR_USAGE, "config.base-url",
                       "--base-url must be http(s)://HOST[:PORT][/PREFIX] without a slash at the "
                       "end, not '%s'",
                       url);
    return 0;
}

static unsigned default_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    if (n < 2)
        return 4;
    return n > 32 ? 64 : (unsigned) n * 2;
}

int config_parse(int argc, char *const argv[], char *const environment[], struct config *out,
                 struct err *e)
{
    const char *values[SETTINGS] = {NULL};
    struct config c = {.data = NULL};
    int i = 0;
    size_t s = 0;

    for (i = 0; i < argc; i++) {
        if (take_flag(argc, argv, &i, values, e) < 0)
            return -1;
    }
    for (s = 0; s < SETTINGS; s++) {
        if (!values[s] && settings[s].env)
            values[s] = config_env(environment, settings[s].env);
    }
    if (!values[DATA])
        values[DATA] = config_env(environment, "CLEANRUN_DATA");
    c.data = values[DATA] ? values[DATA] : CONFIG_DATA_DEFAULT;
    c.listen = values[LISTEN] ? values[LISTEN] : CONFIG_LISTEN_DEFAULT;
    c.base_url = values[BASE_URL];
    c.templates = values[TEMPLATES];
    c.port_file = values[PORT_FILE];
    c.threads = default_threads();
    c.idle_s = 15;
    c.header_s = 20;
    c.drain_s = 30;
    if (check_base_url(c.base_url, e) < 0 ||
        take_number(values[THREADS], "--threads", 2, 64, &c.threads, e) < 0 ||
        take_number(values[IDLE], "--idle-timeout", 1, 600, &c.idle_s, e) < 0 ||
        take_number(values[HEADER], "--header-timeout", 1, 600, &c.header_s, e) < 0 ||
        take_number(values[DRAIN], "--drain-timeout", 1, 600, &c.drain_s, e) < 0)
        return -1;
    *out = c;
    return 0;
}
