/* log: one event, one line of key=value on stderr. Outside text is quoted and cut at 200 bytes. No
 * tokens, ever. */
#pragma once

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* `format` is "key=%s key2=%d …": values that may hold spaces go through log_q. Thread-safe: one
 * write(2) per line. Lines under the level in environment CLEANRUN_LOG (debug|info|warn|error;
 * default info) are dropped. */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Quotes and cuts outside text into out (size n); returns out. */
const char *log_q(const char *s, char *out, unsigned n);
