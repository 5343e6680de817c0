#include "base/random.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>

int random_bytes(void *out, size_t len, struct err *e)
{
    uint8_t *p = out;

    while (len > 0) {
        ssize_t got = getrandom(p, len, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_errno(e, "random.source", "no random bytes from the system");
        p += got;
        len -= (size_t) got;
    }
    return 0;
}
