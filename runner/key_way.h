/* key_way: what helps when a server or verifier refuses a key that it knows, by the words of
 * IN-KEY. */
#pragma once

/* Static text, or NULL: the reason is another one (a key that is not known must be registered). */
const char *key_way(const char *text);
