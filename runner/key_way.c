#include "runner/key_way.h"

#include <string.h>

#include "base/cleanup.h"

#define NEW_KEY                                                                                    \
    "make a new key (cleanrun key gen --out DIR), have it registered under a new name "            \
    "(cleanrun-server runner add NEW_NAME --class CLASS --key DIR/pub.pem --project "              \
    "OWNER/NAME) and seal the run directory again: cleanrun seal RUN_DIR --key DIR/key.pem "       \
    "--out NEW.tar"

/* What the server says of a key, and what helps: the first that its text holds. */
static const struct {
    const char *said, *way_out;
} key_ways[] = {
    {"has expired", NEW_KEY},
    {"was revoked", NEW_KEY},
    {"not valid yet", "push it again when the key is valid: the sealed archive stays as it is"},
    {"for this project",
     "the server's administrator allows it with: cleanrun-server runner add NAME --class CLASS "
     "--key PUB.pem --project PROJECT"},
    {"machine class",
     "a key's class does not change: name the class of the registration in cleanrun.yaml, or sign "
     "with a key of that class"},
};

const char *key_way(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(key_ways); i++)
        if (strstr(text, key_ways[i].said))
            return key_ways[i].way_out;
    return NULL;
}
