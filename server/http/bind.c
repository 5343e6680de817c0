#include "server/http/bind.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"

/* "ADDR:PORT" → host (without brackets) and port text. */
static bool split_address(const char *address, char *host, size_t host_size, const char **out_port)
{
    const char *colon = strrchr(address, ':');
    const char *start = address;
    size_t len = 0;
    uint64_t port = 0;

    if (!colon || !num_parse_u64(colon + 1, strlen(colon + 1), 65535, &port))
        return false;
    len = (size_t) (colon - address);
    if (len >= 2 && start[0] == '[' && start[len - 1] == ']') {
        start++;
        len -= 2;
    }
    if (len >= host_size)
        return false;
    memcpy(host, start, len);
    host[len] = '\0';
    *out_port = colon + 1;
    return true;
}

static int bind_one(const struct addrinfo *info)
{
    int one = 1;
    int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    info->ai_protocol);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0) {
        int saved = errno;

        (void) close(fd); /* never used */
        errno = saved;
        return -1;
    }
    return fd;
}

static unsigned port_of(int fd)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof address;

    if (getsockname(fd, (struct sockaddr *) &address, &len) < 0)
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *) &address)->sin_port);
    if (address.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *) &address)->sin6_port);
    return 0;
}

int bind_listen(const char *address, int *out_fd, unsigned *out_port, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    const char *port = NULL;
    char host[256];
    int fd = -1;
    int rc = 0;

    if (!split_address(address, host, sizeof host, &port))
        return err_set(e, ERR_USAGE, "listener.address", "'%s' is not ADDR:PORT", address);
    rc = getaddrinfo(host[0] == '\0' ? NULL : host, port, &hints, &list);
    if (rc != 0)
        return err_set(e, ERR_USAGE, "listener.address", "cannot resolve '%s': %s", address,
                       gai_strerror(rc));
    fd = bind_one(list);
    freeaddrinfo(list);
    if (fd < 0)
        return err_errno(e, "listener.bind", "cannot listen on '%s'", address);
    *out_port = port_of(fd);
    *out_fd = fd;
    return 0;
}
