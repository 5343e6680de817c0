#include "runner/mistaken.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "evidence/manifest.h"
#include "runner/rundir.h"

static bool holds(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool mistaken_error(int dir_fd)
{
    return holds(dir_fd, RUNDIR_ERROR) && !holds(dir_fd, MANIFEST_NAME);
}

int mistaken_directory(const char *path, struct err *e)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    if (mistaken_error(fd))
        return err_set(
            e, ERR_INPUT, "run.error",
            "'%s' is the directory of a run that ended in an ERROR: nothing in it can be "
            "sealed; cleanrun show says what happened",
            path);
    if (holds(fd, MANIFEST_NAME))
        return err_set(e, ERR_INPUT, "run.unsealed",
                       "'%s' is a run directory, not a sealed archive; cleanrun seal RUN_DIR --key "
                       "KEY.pem --out FILE makes one of it",
                       path);
    return -1;
}

int mistaken_file(const char *path, struct err *e)
{
    size_t len = strlen(path);
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;
    return err_set(e, ERR_INPUT, "run.file", "'%s' is a file, not a directory%s", path,
                   len > 4 && strcmp(path + len - 4, ".tar") == 0
                       ? "; cleanrun verify checks a sealed archive, and tar -xf unpacks it"
                       : "");
}

int mistaken_run(const char *path, struct err *e)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    AUTO_FREE char *bytes = NULL;
    struct err ignored = ERR_INIT;
    size_t len = 0;

    if (fd < 0 ||
        file_read_at(fd, MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &bytes, &len, &ignored) < 0 ||
        manifest_parse(bytes, len, &m, &ignored) < 0 || !m.report)
        return -1;
    return err_set(e, ERR_INPUT, "run.report",
                   "'%s' is a run directory; its report is results/%s in it", path, m.report);
}
