#include "runner/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/text.h"
#include "runner/paths.h"

#define PSEUDO_MAX LIMIT_MIB(1)
#define BLANKS " \t\r\n"
#define LIST_BYTES 4096
#define LONGEST_NUMBER 20
#define STAT_TEXT_MAX 2048
#define LOOKS_MAX 16

int sysroot_open(const char *path, struct sysroot *out, struct err *e)
{
    return file_open_dir(path, &out->fd, e);
}

void sysroot_close(struct sysroot *r)
{
    if (r->fd >= 0)
        (void) close(r->fd); /* a directory that was only read */
    r->fd = -1;
}

/* What stands here may be anything (a command line, the name of a product), and records are JSON: a
 * byte that is no UTF-8 is told as "\\xe9", so that other bytes stay other text. */
static char *as_utf8(const char *text)
{
    AUTO_BUF struct buf b = {.data = NULL};
    size_t len = strlen(text);

    buf_init(&b, 4 * len + 1); /* a byte becomes four at most */
    for (size_t i = 0; i < len;) {
        size_t n = text_utf8_length(text + i, len - i);

        if (n > 0)
            buf_put(&b, text + i, n);
        else
            buf_printf(&b, "\\x%02x", (unsigned) (unsigned char) text[i]);
        i += n > 0 ? n : 1;
    }
    return buf_take(&b, NULL);
}

char *sysroot_read(const struct sysroot *r, const char *name)
{
    AUTO_FREE char *text = paths_read_pseudo(r->fd, name, PSEUDO_MAX);

    return text && !text_is_utf8(text, strlen(text)) ? as_utf8(text) : STEAL(text);
}

static char *trimmed(const char *s, size_t len)
{
    while (len > 0 && strchr(BLANKS, *s)) {
        s++;
        len--;
    }
    while (len > 0 && strchr(BLANKS, s[len - 1]))
        len--;
    return len > 0 ? strndup(s, len) : NULL;
}

char *sysroot_line(const struct sysroot *r, const char *name)
{
    AUTO_FREE char *text = sysroot_read(r, name);

    return text ? trimmed(text, strcspn(text, "\n")) : NULL;
}

/* There, but not to be read: what it says is unknown. Some controls are there and have nothing to
 * say (EAGAIN, EINVAL), which is known. */
static bool is_hidden(const struct sysroot *r, const char *name)
{
    AUTO_FD int fd = openat(r->fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char byte = 0;

    if (fd < 0)
        return errno != ENOENT && errno != ENOTDIR;
    return read(fd, &byte, 1) < 0 && (errno == EACCES || errno == EPERM || errno == EIO);
}

char *sysroot_line_or_none(const struct sysroot *r, const char *name)
{
    char *line = sysroot_line(r, name);

    return line || is_hidden(r, name) ? line : strdup("none");
}

bool sysroot_number(const struct sysroot *r, const char *name, uint64_t *out)
{
    AUTO_FREE char *line = sysroot_line(r, name);

    return line && num_parse_u64(line, strlen(line), UINT64_MAX, out);
}

char *procfs_field(const char *text, const char *key)
{
    size_t key_len = strlen(key);

    for (const char *line = text; line && *line;) {
        size_t len = strcspn(line, "\n");

        if (len > key_len && !strncmp(line, key, key_len) && strchr(": \t", line[key_len])) {
            const char *value = line + key_len;
            size_t left = len - key_len;

            while (left > 0 && strchr(": \t", *value)) {
                value++;
                left--;
            }
            return trimmed(value, left);
        }
        line += len + (line[len] == '\n' ? 1 : 0);
    }
    return NULL;
}

bool procfs_field_number(const char *text, const char *key, uint64_t *out)
{
    AUTO_FREE char *value = procfs_field(text, key);

    return value && num_parse_u64(value, strspn(value, "0123456789"), UINT64_MAX, out);
}

/* Numbers in order, white-space separated; returns how many were read (≤ max). A token that is no
 * number is read as 0. */
static size_t read_numbers(const char *text, uint64_t *out, size_t max)
{
    size_t n = 0;

    while (n < max) {
        text += strspn(text, BLANKS);
        size_t len = strcspn(text, BLANKS);

        if (len == 0)
            break;
        if (!num_parse_u64(text, len, UINT64_MAX, &out[n]))
            out[n] = 0;
        n++;
        text += len;
    }
    return n;
}

bool procfs_read_open(int fd, char *text, size_t size)
{
    ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);

    if (n < 0)
        return false;
    text[n] = '\0';
    return true;
}

bool procfs_is_gone(int error_number)
{
    return error_number == ENOENT || error_number == ESRCH;
}

/* Numbers of text[0..len); returns where a last one begins that may go on. */
static size_t take_numbers(const char *text, size_t len, void (*each)(void *, uint64_t),
                           void *context)
{
    size_t at = 0;

    for (;;) {
        size_t end;
        uint64_t v = 0;

        while (at < len && strchr(BLANKS, text[at]))
            at++;
        for (end = at; end < len && !strchr(BLANKS, text[end]);)
            end++;
        if (end == len)
            return at;
        if (num_parse_u64(text + at, end - at, UINT64_MAX, &v))
            each(context, v);
        at = end;
    }
}

bool procfs_each_number(int fd, void (*each)(void *context, uint64_t number), void *context)
{
    char text[LIST_BYTES];
    size_t kept = 0; /* bytes of a number whose end was not read yet */
    off_t offset = 0;

    for (;;) {
        ssize_t n = pread(fd, text + kept, sizeof(text) - 1 - kept, offset);

        if (n < 0)
            return procfs_is_gone(errno);
        offset += n;
        /* The kernel fills a page as far as whole entries go: much less is the end. */
        bool last = n == 0 || (offset == n && (size_t) n < sizeof(text) / 2);
        size_t len = kept + (size_t) n;

        if (last)
            text[len++] = ' ';
        size_t from = take_numbers(text, len, each, context);

        if (last)
            return true;
        kept = len - from;
        if (kept > LONGEST_NUMBER) {
            errno = EINVAL;
            return false;
        }
        memmove(text, text + from, kept);
    }
}

/* One look at all threads; UNKNOWN with errno, a "gone" one when a thread ended meanwhile. */
static enum proc_live look_at_threads(DIR *dir, struct proc_stat *out)
{
    enum proc_live found = PROC_LIVE_NONE;
    int why = 0;

    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        char name[300], text[STAT_TEXT_MAX];
        struct proc_stat st;

        if (d->d_name[0] == '.')
            continue;
        (void) snprintf(name, sizeof(name), "%s/stat", d->d_name); /* fits */
        AUTO_FD int fd = openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC);

        if (!procfs_read_open(fd, text, sizeof(text))) {
            found = PROC_LIVE_UNKNOWN;
            why = why && !procfs_is_gone(why) ? why : errno;
            continue;
        }
        if (!proc_stat_parse(text, &st) || st.state == 'Z' || st.state == 'X' || st.rss_pages == 0)
            continue;
        *out = st;
        return PROC_LIVE_FOUND;
    }
    errno = why;
    return found;
}

enum proc_live proc_live_thread(const struct sysroot *root, pid_t pid, struct proc_stat *out)
{
    char name[64];

    (void) snprintf(name, sizeof(name), "proc/%d/task", (int) pid); /* fits */
    /* Threads may end between the list and the look, also the one that started another: then the
     * next look is at a new list. */
    for (int i = 0; i < LOOKS_MAX; i++) {
        DIR *dir = paths_open_dir(root->fd, name);

        if (!dir)
            return procfs_is_gone(errno) ? PROC_LIVE_NONE : PROC_LIVE_UNKNOWN;
        enum proc_live found = look_at_threads(dir, out);
        int why = errno;

        (void) closedir(dir); /* was only read */
        if (found != PROC_LIVE_UNKNOWN || !procfs_is_gone(why))
            return found;
    }
    return PROC_LIVE_UNKNOWN;
}

/* Fields after the state, so index 0 is field 4 of proc(5). */
enum stat_field {
    STAT_PPID = 0,
    STAT_SESSION = 2,
    STAT_MINOR = 6,
    STAT_MAJOR = 8,
    STAT_USER = 10,
    STAT_SYSTEM = 11,
    STAT_WAITED_USER = 12,
    STAT_WAITED_SYSTEM = 13,
    STAT_THREADS = 16,
    STAT_START = 18,
    STAT_RSS = 20,
    STAT_FIELDS = 21,
};

/* A program may call itself anything, and the kernel cuts its name anywhere: '?' for each byte that
 * is no UTF-8. */
static void copy_name(char out[PROC_COMM_SIZE], const char *name, size_t len)
{
    size_t to = 0;

    for (size_t i = 0; i < len;) {
        size_t n = text_utf8_length(name + i, len - i);
        size_t step = n > 0 ? n : 1;

        if (to + step >= PROC_COMM_SIZE)
            break;
        memcpy(out + to, n > 0 ? name + i : "?", step);
        to += step;
        i += step;
    }
    out[to] = '\0';
}

bool proc_stat_parse(const char *text, struct proc_stat *out)
{
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    uint64_t f[STAT_FIELDS];
    uint64_t pid = 0;

    if (!open || !close || close < open || close[1] != ' ' || !close[2] || close[3] != ' ' ||
        read_numbers(close + 4, f, STAT_FIELDS) != STAT_FIELDS)
        return false;
    if (!num_parse_u64(text, strcspn(text, " "), INT32_MAX, &pid))
        pid = 0;
    *out = (struct proc_stat){
        .pid = (pid_t) pid,
        .state = close[2],
        .ppid = (pid_t) f[STAT_PPID],
        .session = (pid_t) f[STAT_SESSION],
        .minor_faults = f[STAT_MINOR],
        .major_faults = f[STAT_MAJOR],
        .user_ticks = f[STAT_USER],
        .system_ticks = f[STAT_SYSTEM],
        .waited_ticks = f[STAT_WAITED_USER] + f[STAT_WAITED_SYSTEM],
        .threads = f[STAT_THREADS],
        .start_ticks = f[STAT_START],
        .rss_pages = f[STAT_RSS],
    };
    copy_name(out->comm, open + 1, (size_t) (close - open - 1));
    return true;
}

bool proc_stat_read(int dirfd, const char *name, struct proc_stat *out)
{
    AUTO_FD int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    char text[STAT_TEXT_MAX];

    return procfs_read_open(fd, text, sizeof(text)) && proc_stat_parse(text, out);
}

bool cpu_times_parse(const char *text, struct cpu_times *out)
{
    uint64_t f[8];

    /* cpu user nice system idle iowait irq softirq steal …; guest time is already in user. */
    if (strncmp(text, "cpu ", 4) != 0 || read_numbers(text + 4, f, ARRAY_LEN(f)) != ARRAY_LEN(f))
        return false;
    *out = (struct cpu_times){
        .busy = f[0] + f[1] + f[2] + f[5] + f[6],
        .idle = f[3] + f[4],
        .steal = f[7],
        .interrupts = f[5] + f[6],
    };
    return true;
}

static void pressure_line(const char *line, size_t len, uint64_t *total, double *avg10)
{
    const char *a = memmem(line, len, "avg10=", 6);
    const char *t = memmem(line, len, "total=", 6);

    if (a && !num_parse_double(a + 6, strcspn(a + 6, " \n"), avg10))
        *avg10 = 0;
    if (t && !num_parse_u64(t + 6, strcspn(t + 6, " \n"), UINT64_MAX, total))
        *total = 0;
}

void pressure_parse(const char *text, struct pressure *out)
{
    *out = (struct pressure){.known = false};
    for (const char *line = text; line && *line;) {
        size_t len = strcspn(line, "\n");

        if (!strncmp(line, "some ", 5)) {
            out->known = true;
            pressure_line(line, len, &out->some_us, &out->some_avg10);
        } else if (!strncmp(line, "full ", 5)) {
            pressure_line(line, len, &out->full_us, &out->full_avg10);
        }
        line += len + (line[len] == '\n' ? 1 : 0);
    }
}
