#include "tools/embed.h"

#include <string.h>

const struct embed_file *embed_find(const struct embed_table *table, const char *name)
{
    size_t low = 0;
    size_t high = table->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(table->files[mid].name, name);

        if (order == 0)
            return &table->files[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
