#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"

#define LINE_MAX_BYTES                                                                             \
    ((size_t) 4096) /* one write(2) of at most PIPE_BUF bytes is never mixed with another */
#define OUTSIDE_MAX 200

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static bool is_wanted(enum log_level level)
{
    const char *name = getenv("CLEANRUN_LOG");
    enum log_level least = LOG_INFO;

    for (size_t i = 0; name && i < ARRAY_LEN(level_names); i++) {
        if (strcmp(name, level_names[i]) == 0)
            least = (enum log_level) i;
    }
    return level >= least;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
    AUTO_BUF struct buf line = {0};
    char now[CLOCK_RFC3339_SIZE];
    va_list ap;

    if (!is_wanted(level))
        return;
    buf_init(&line, LINE_MAX_BYTES);
    clock_rfc3339(clock_realtime_us(), true, now);
    buf_printf(&line, "%s level=%s event=%s ", now, level_names[level], event);
    va_start(ap, format);
    buf_vprintf(&line, format, ap);
    va_end(ap);
    if (line.failed) { /* too long, or no memory: the event must not vanish */
        line.failed = false;
        buf_puts(&line, "cut=1");
    }
    while (line.len > 0 && (line.data[line.len - 1] == ' ' || line.data[line.len - 1] == '\n'))
        line.len--;
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] == '\n')
            line.data[i] = ' '; /* one event, one line */
    }
    line.max++;
    buf_putc(&line, '\n');
    if (line.len > 0 && write(STDERR_FILENO, line.data, line.len) < 0)
        return; /* nowhere left to report it */
}

/* The text for one byte that cannot stand plainly: an escape in out; returns its length. */
static size_t escape(unsigned char c, char out[4])
{
    static const char digits[] = "0123456789abcdef";

    out[0] = '\\';
    if (c == '"' || c == '\\') {
        out[1] = (char) c;
        return 2;
    }
    out[1] = 'x';
    out[2] = digits[c >> 4];
    out[3] = digits[c & 15];
    return 4;
}

const char *log_q(const char *s, char *out, unsigned n)
{
    size_t len = s ? strnlen(s, OUTSIDE_MAX) : 0;
    size_t used = 0;
    size_t i = 0;
    bool cut = s && s[len] != '\0';

    if (n == 0)
        return "";
    if (n < 8) {
        out[0] = '\0';
        return out;
    }
    out[used++] = '"';
    while (i < len) {
        char piece[4];
        unsigned char c = (unsigned char) s[i];
        size_t taken =
            c < 0x20 || c == 0x7f || c == '"' || c == '\\' ? 0 : text_utf8_length(s + i, len - i);
        size_t size = taken > 0 ? taken : escape(c, piece);

        if (used + size + 5 > n) { /* "..." and quote and NUL */
            cut = true;
            break;
        }
        memcpy(out + used, taken > 0 ? s + i : piece, size);
        used += size;
        i += taken > 0 ? taken : 1;
    }
    if (cut) {
        memcpy(out + used, "...", 3);
        used += 3;
    }
    out[used++] = '"';
    out[used] = '\0';
    return out;
}
