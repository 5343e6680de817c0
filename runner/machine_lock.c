#include "runner/machine_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/num.h"
#include "runner/paths.h"

#define DEFAULT_LOCK "/run/lock/cleanrun.lock"
#define FALLBACK_LOCK "/tmp/cleanrun.lock"
#define TEXT_MAX 160
#define BOOT_ID "proc/sys/kernel/random/boot_id"

const char *machine_lock_path(const char *named)
{
    struct stat st;

    if (named && *named)
        return named;
    return stat("/run/lock", &st) == 0 && S_ISDIR(st.st_mode) ? DEFAULT_LOCK : FALLBACK_LOCK;
}

/* "PID\n" of the holder, then "SESSION TICKS BOOT\n" while a program of its runs. */
static void read_text(int fd, char text[TEXT_MAX])
{
    ssize_t n = pread(fd, text, TEXT_MAX - 1, 0);

    text[n > 0 ? n : 0] = '\0';
}

/* The second line, "" when there is none. */
static const char *program_line(const char *text)
{
    const char *end = strchr(text, '\n');

    return end ? end + 1 : "";
}

static int write_text(int fd, const char *program, struct err *e)
{
    char text[TEXT_MAX + 32];
    int n = snprintf(text, sizeof(text), "%d\n%.*s", (int) getpid(), TEXT_MAX, program); /* fits */

    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t) n, 0) != n)
        return err_errno(e, "lock.write", "cannot write the machine's lock");
    return 0;
}

int machine_lock_take(const char *path, int *out_fd, struct err *e)
{
    /* The lock file is never removed: a name that comes and goes is no lock. */
    AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool can_write = true;
    char text[TEXT_MAX];

    if (fd < 0 && errno == ENOENT) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0)
            (void) fchmod(fd, 0666); /* every user of the machine measures under the same lock */
    } else if (fd < 0 && errno == EACCES) {
        can_write = false; /* another user's: it can be locked all the same */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0)
        return err_errno(e, "lock.open", "cannot open the machine's lock '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        read_text(fd, text);
        return err_set(e, ERR_BUSY, "lock.busy",
                       "another measurement is active on this machine (process %.*s)",
                       (int) strcspn(text, "\n"), text);
    }
    read_text(fd, text);
    if (can_write && write_text(fd, program_line(text), e) < 0)
        return -1;
    *out_fd = fd_steal(&fd);
    return 0;
}

static char *read_boot(const struct sysroot *root)
{
    return root ? sysroot_line(root, BOOT_ID) : paths_read_pseudo(AT_FDCWD, "/" BOOT_ID, TEXT_MAX);
}

void machine_lock_note(int fd, pid_t program)
{
    AUTO_FREE char *boot = NULL;
    AUTO_FREE char *stat_text = NULL;
    char name[64], line[TEXT_MAX] = "";
    struct proc_stat st;
    struct err ignored = ERR_INIT; /* without the note the interference record has to do */

    if (fd < 0)
        return;
    (void) snprintf(name, sizeof(name), "/proc/%d/stat", (int) program); /* fits */
    if (program > 0) {
        boot = read_boot(NULL);
        stat_text = paths_read_pseudo(AT_FDCWD, name, 4096);
        if (!boot || !stat_text || !proc_stat_parse(stat_text, &st))
            return;
        boot[strcspn(boot, "\n")] = '\0';
        (void) snprintf(line, sizeof(line), "%d %" PRIu64 " %.64s\n", (int) program, st.start_ticks,
                        boot); /* a boot id has 36 digits */
    }
    if (write_text(fd, line, &ignored) < 0)
        return;
}

bool machine_lock_last(int fd, const struct sysroot *root, struct machine_program *out)
{
    AUTO_FREE char *boot = read_boot(root);
    char text[TEXT_MAX];
    uint64_t session = 0, ticks = 0;

    read_text(fd, text);
    const char *line = program_line(text);
    size_t a = strcspn(line, " ");
    const char *second = line[a] ? line + a + 1 : "";
    size_t b = strcspn(second, " ");
    const char *third = second[b] ? second + b + 1 : "";

    if (!boot || strcspn(third, "\n") != strlen(boot) || strncmp(third, boot, strlen(boot)) != 0 ||
        !num_parse_u64(line, a, INT32_MAX, &session) || session == 0 ||
        !num_parse_u64(second, b, UINT64_MAX, &ticks))
        return false;
    *out = (struct machine_program){.session = (pid_t) session, .start_ticks = ticks};
    return true;
}

bool machine_lock_abandoned(const char *path, const struct sysroot *root,
                            struct machine_program *out)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    AUTO_FREE char *holder = NULL;
    char text[TEXT_MAX], name[TEXT_MAX + 16];

    if (fd < 0)
        return false;
    read_text(fd, text);
    (void) snprintf(name, sizeof(name), "proc/%.*s/stat", (int) strspn(text, "0123456789"),
                    text); /* fits */
    holder = sysroot_read(root, name);
    return !holder && machine_lock_last(fd, root, out);
}
