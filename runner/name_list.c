#include "runner/name_list.h"

#include <stdio.h>
#include <string.h>

void name_list_add(struct name_list *l, const char *prefix, const char *name)
{
    size_t used = strlen(l->text);
    char *at = l->text + used;

    l->n++;
    if (l->n > NAME_LIST_NAMED + 1)
        return;
    if (l->n == NAME_LIST_NAMED + 1)
        (void) snprintf(at, sizeof(l->text) - used, ", …"); /* cut where it ends */
    else
        (void) snprintf(at, sizeof(l->text) - used, "%s%.60s%.100s", used ? ", " : "", prefix,
                        name);
    for (; *at; at++)
        if ((unsigned char) *at < ' ' || *at == 127)
            *at = '?';
}
