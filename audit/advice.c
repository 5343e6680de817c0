#include "audit/advice.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

#define COMMIT_LETTERS 8 /* of a commit in a command */

static bool begins(const char *command, size_t len, const char *with)
{
    size_t n = strlen(with);

    return len >= n && strncmp(command, with, n) == 0;
}

static bool holds(const char *command, size_t len, const char *option)
{
    return memmem(command, len, option, strlen(option)) != NULL;
}

/* What `run` and `push` need to find the server. */
static void put_server(struct buf *out, const char *command, size_t len,
                       const struct advice_names *names)
{
    bool run = begins(command, len, "cleanrun run");

    if (!names->server || !names->server[0] || (!run && !begins(command, len, "cleanrun push")))
        return;
    if (!holds(command, len, "--server"))
        buf_printf(out, " --server %s", names->server);
    if (run && names->is_private && !holds(command, len, "--token-file"))
        buf_puts(out, " --token-file FILE");
}

void advice_command(struct buf *out, const char *command, size_t len,
                    const struct advice_names *names)
{
    const struct {
        const char *word;
        const char *name;
        size_t max;
    } words[] = {
        {"BASELINE_COMMIT", names->baseline_commit, COMMIT_LETTERS},
        {"COMMIT", names->commit, COMMIT_LETTERS},
        {"PROJECT", names->project, SIZE_MAX},
        {"OWNER/NAME", names->project, SIZE_MAX},
        {"GATE", names->gate, SIZE_MAX},
        {"CLASS", names->machine_class, SIZE_MAX},
        {"RUN", names->run, SIZE_MAX},
    };

    for (size_t i = 0; i < len;) {
        size_t n = 0;
        size_t w = 0;

        while (i + n < len && command[i + n] != ' ')
            n++;
        while (w < ARRAY_LEN(words) &&
               (!words[w].name || !words[w].name[0] || strlen(words[w].word) != n ||
                strncmp(words[w].word, command + i, n) != 0))
            w++;
        if (w < ARRAY_LEN(words))
            buf_put(out, words[w].name, strnlen(words[w].name, words[w].max));
        else
            buf_put(out, command + i, n);
        i += n;
        while (i < len && command[i] == ' ')
            buf_putc(out, command[i++]);
    }
    put_server(out, command, len, names);
}

void advice_prose(struct buf *out, const char *prose, const struct advice_names *names)
{
    const char *from;
    const char *to;

    while ((from = strchr(prose, '`')) && (to = strchr(from + 1, '`'))) {
        buf_put(out, prose, (size_t) (from - prose) + 1);
        advice_command(out, from + 1, (size_t) (to - from) - 1, names);
        buf_putc(out, '`');
        prose = to + 1;
    }
    buf_puts(out, prose);
}
