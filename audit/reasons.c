/* The table behind reason_find: audit/reasons.def as data. */
#include <string.h>

#include "audit/verdict.h"
#include "base/cleanup.h"

#define REASON(code_, title_, text_, resolve_)                                                     \
    {.code = (code_), .title = (title_), .text = (text_), .resolve = (resolve_)},
const struct reason_info reasons_table[] = {
#include "audit/reasons.def"
};
#undef REASON

const size_t reasons_count = ARRAY_LEN(reasons_table);

const struct reason_info *reason_find(const char *code)
{
    for (size_t i = 0; i < reasons_count; i++)
        if (strcmp(reasons_table[i].code, code) == 0)
            return &reasons_table[i];
    return NULL;
}
