/* JSON: an object or array is opened and closed, members are written in between; key NULL in
 * arrays. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *f;
    int depth;
    bool first;
};
#define JSON_ON(file) ((struct json){.f = (file), .first = true})

void json_next(struct json *j, const char *key); /* whatever the caller then writes itself */
void json_open(struct json *j, const char *key, char c);
void json_close(struct json *j, char c);
void json_text(struct json *j, const char *key, const char *v); /* NULL: null */
void json_integer(struct json *j, const char *key, uint64_t v);
void json_real(struct json *j, const char *key, double v);
void json_real_if(struct json *j, const char *key, bool known, double v); /* or null */
void json_truth(struct json *j, const char *key, bool v);

#endif
