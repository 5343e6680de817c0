#include "server/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "server/config.h"

#define FIRST_FD 3

void notify_send(char *const environment[], const char *state)
{
    const char *path = config_env(environment, "NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    AUTO_FD int fd = -1;

    if (!path || (path[0] != '/' && path[0] != '@') || len >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *) &address,
                         (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len)) < 0)
        log_event(LOG_WARN, "notify.failed", "text=\"%s\"", strerrordesc_np(errno));
}

uint64_t notify_watchdog_ns(char *const environment[])
{
    const char *usec = config_env(environment, "WATCHDOG_USEC");
    const char *pid = config_env(environment, "WATCHDOG_PID");
    uint64_t value = 0;
    uint64_t owner = 0;

    if (!usec || !num_parse_u64(usec, strlen(usec), UINT64_C(86400000000), &value))
        return 0;
    if (pid &&
        (!num_parse_u64(pid, strlen(pid), UINT32_MAX, &owner) || owner != (uint64_t) getpid()))
        return 0;
    return value * 1000 / 2;
}

int notify_listen_fd(char *const environment[], int *out_fd, struct err *e)
{
    const char *pid = config_env(environment, "LISTEN_PID");
    const char *fds = config_env(environment, "LISTEN_FDS");
    uint64_t owner = 0;
    uint64_t n = 0;
    int accepting = 0;
    int type = 0;
    socklen_t len = sizeof accepting;

    *out_fd = -1;
    if (!pid || !fds || !num_parse_u64(pid, strlen(pid), UINT32_MAX, &owner) ||
        owner != (uint64_t) getpid())
        return 0;
    if (!num_parse_u64(fds, strlen(fds), 64, &n) || n != 1)
        return err_set(e, ERR_USAGE, "notify.fds", "LISTEN_FDS must be 1, not '%s'", fds);
    if (getsockopt(FIRST_FD, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &len) < 0 || accepting == 0)
        return err_set(e, ERR_USAGE, "notify.socket",
                       "the handed descriptor is no listening socket");
    len = sizeof type;
    if (getsockopt(FIRST_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_STREAM)
        return err_set(e, ERR_USAGE, "notify.socket", "the handed descriptor is no stream socket");
    if (fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(FIRST_FD, F_SETFL, O_NONBLOCK) < 0)
        return err_errno(e, "notify.socket", "cannot prepare the handed socket");
    *out_fd = FIRST_FD;
    return 0;
}
