#include "runner/keys.h"

#include "base/file.h"
#include "base/limits.h"

int keys_load(const struct cli_args *a, const char *option, struct keyring *ring, struct err *e)
{
    const struct keyring_entry anyone = {.name = NULL};
    const char *path;

    for (size_t i = 0; (path = cli_get_nth(a, option, i)); i++) {
        AUTO_FREE char *pem = NULL;
        struct public_key *key = NULL;
        size_t len = 0;

        if (file_read(path, LIMIT_PEM, &pem, &len, e) < 0)
            return -1;
        if (public_key_parse(pem, len, &key, e) < 0) {
            e->kind = ERR_USAGE;
            return err_wrap(e, "'%.200s'", path);
        }
        if (keyring_add(ring, key, &anyone, e) == 0)
            continue;
        if (e->kind != ERR_CONFLICT)
            return -1;
        *e = (struct err) ERR_INIT; /* the same key given twice says nothing new */
    }
    return 0;
}
