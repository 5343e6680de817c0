#include "server/healthcheck.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define WAIT_S 5

static int connect_to(const char *listen, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const struct timeval wait = {.tv_sec = WAIT_S};
    struct addrinfo *list = NULL;
    const char *colon = strrchr(listen, ':');
    char host[256];
    AUTO_FD int fd = -1;
    int rc = 0;

    if (!colon || (size_t) (colon - listen) >= sizeof host)
        return err_set(e, ERR_USAGE, "healthcheck.address", "'%s' is not ADDR:PORT", listen);
    memcpy(host, listen, (size_t) (colon - listen));
    host[colon - listen] = '\0';
    if (host[0] == '[') { /* "[::1]" */
        size_t len = strlen(host);

        memmove(host, host + 1, len);
        if (len >= 2 && host[len - 2] == ']')
            host[len - 2] = '\0';
    }
    if (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    else if (strcmp(host, "::") == 0)
        memcpy(host, "::1", sizeof "::1");
    rc = getaddrinfo(host, colon + 1, &hints, &list);
    if (rc != 0)
        return err_set(e, ERR_USAGE, "healthcheck.address", "cannot resolve '%s': %s", listen,
                       gai_strerror(rc));
    fd = socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, list->ai_protocol);
    rc = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) < 0 ||
                 setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0 ||
                 connect(fd, list->ai_addr, list->ai_addrlen) < 0
             ? err_errno(e, "healthcheck.connect", "cannot reach '%s'", listen)
             : 0;
    freeaddrinfo(list);
    return rc < 0 ? -1 : fd_steal(&fd);
}

int healthcheck(const char *listen, struct err *e)
{
    static const char request[] =
        "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static const char wanted[] = "HTTP/1.1 200 ";
    char answer[sizeof wanted] = "";
    size_t got = 0;
    AUTO_FD int fd = connect_to(listen, e);

    if (fd < 0)
        return -1;
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t) strlen(request))
        return err_errno(e, "healthcheck.send", "cannot ask '%s'", listen);
    while (got < sizeof answer - 1) {
        ssize_t n = recv(fd, answer + got, sizeof answer - 1 - got, 0);

        if (n < 0)
            return err_errno(e, "healthcheck.receive", "no answer from '%s'", listen);
        if (n == 0)
            break;
        got += (size_t) n;
    }
    if (strncmp(answer, wanted, strlen(wanted)) != 0)
        return err_set(e, ERR_BUSY, "healthcheck.status", "'%s' is not ready", listen);
    return 0;
}
