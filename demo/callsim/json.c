/* The writer of JSON documents. */
#include "json.h"

#include <string.h>

void json_next(struct json *j, const char *key)
{
    if (j->depth > 0)
        (void) fprintf(j->f, "%s\n%*s", j->first ? "" : ",", j->depth * 2, "");
    if (key)
        (void) fprintf(j->f, "\"%s\": ", key);
    j->first = false;
}

void json_open(struct json *j, const char *key, char c)
{
    json_next(j, key);
    (void) fputc(c, j->f);
    j->depth++;
    j->first = true;
}

void json_close(struct json *j, char c)
{
    j->depth--;
    if (!j->first)
        (void) fprintf(j->f, "\n%*s", j->depth * 2, "");
    (void) fputc(c, j->f);
    j->first = false;
}

void json_text(struct json *j, const char *key, const char *v)
{
    json_next(j, key);
    if (!v) {
        (void) fputs("null", j->f);
        return;
    }
    (void) fputc('"', j->f);
    for (; *v; v++) {
        if (*v == '"' || *v == '\\')
            (void) fputc('\\', j->f);
        (void) fputc((unsigned char) *v < ' ' ? ' ' : *v, j->f);
    }
    (void) fputc('"', j->f);
}

void json_integer(struct json *j, const char *key, uint64_t v)
{
    json_next(j, key);
    (void) fprintf(j->f, "%llu", (unsigned long long) v);
}

void json_real(struct json *j, const char *key, double v)
{
    char number[40];

    json_next(j, key);
    (void) snprintf(number, sizeof(number), "%.17g", v);
    (void) fprintf(j->f, "%s%s", number, strpbrk(number, ".e") ? "" : ".0"); /* told from a count */
}

/* A number, or null where there is none. */
void json_real_if(struct json *j, const char *key, bool known, double v)
{
    if (known)
        json_real(j, key, v);
    else
        json_text(j, key, NULL);
}

void json_truth(struct json *j, const char *key, bool v)
{
    json_next(j, key);
    (void) fputs(v ? "true" : "false", j->f);
}
