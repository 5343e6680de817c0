/*
 * libcurl bound when it is called instead of at start: with its forty libraries it takes three
 * milliseconds to load, more than most commands need, and only push and status use it. These
 * functions stand in for those of libcurl.so.4, under curl's own names. A missing library is a
 * transfer that cannot start, which http.c tells. No state of our own: the loader keeps what was
 * opened.
 */
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define CURL_LIBRARY "libcurl.so.4"

/* Every argument of curl's options is a pointer, a long or a curl_off_t: one register of the same
 * size. */
_Static_assert(sizeof(void *) == sizeof(curl_off_t) && sizeof(void *) == sizeof(long), "LP64");

/* Puts the address of curl's function into *out (a function pointer); false when there is none. */
static bool bind_name(const char *name, void *out)
{
    void *library = dlopen(CURL_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *symbol = library ? dlsym(library, name) : NULL;

    /* POSIX promises that a function's address fits a data pointer here. */
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

CURL *curl_easy_init(void)
{
    CURL *(*f)(void) = NULL;

    return bind_name("curl_easy_init", &f) ? f() : NULL;
}

void curl_easy_cleanup(CURL *c)
{
    void (*f)(CURL *) = NULL;

    if (c && bind_name("curl_easy_cleanup", &f))
        f(c);
}

#undef curl_easy_setopt
CURLcode curl_easy_setopt(CURL *c, CURLoption option, ...)
{
    CURLcode (*f)(CURL *, CURLoption, ...) = NULL;
    void *value = NULL;
    va_list ap;

    va_start(ap, option);
    value = va_arg(ap, void *);
    va_end(ap);
    return bind_name("curl_easy_setopt", &f) ? f(c, option, value) : CURLE_FAILED_INIT;
}

#undef curl_easy_getinfo
CURLcode curl_easy_getinfo(CURL *c, CURLINFO info, ...)
{
    CURLcode (*f)(CURL *, CURLINFO, ...) = NULL;
    void *value = NULL;
    va_list ap;

    va_start(ap, info);
    value = va_arg(ap, void *);
    va_end(ap);
    return bind_name("curl_easy_getinfo", &f) ? f(c, info, value) : CURLE_FAILED_INIT;
}

CURLcode curl_easy_perform(CURL *c)
{
    CURLcode (*f)(CURL *) = NULL;

    return bind_name("curl_easy_perform", &f) ? f(c) : CURLE_FAILED_INIT;
}

const char *curl_easy_strerror(CURLcode code)
{
    const char *(*f)(CURLcode) = NULL;

    return bind_name("curl_easy_strerror", &f) ? f(code) : CURL_LIBRARY " cannot be loaded";
}

void curl_free(void *p)
{
    void (*f)(void *) = NULL;

    if (p && bind_name("curl_free", &f))
        f(p);
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *data)
{
    struct curl_slist *(*f)(struct curl_slist *, const char *) = NULL;

    return bind_name("curl_slist_append", &f) ? f(list, data) : NULL;
}

void curl_slist_free_all(struct curl_slist *list)
{
    void (*f)(struct curl_slist *) = NULL;

    if (list && bind_name("curl_slist_free_all", &f))
        f(list);
}

CURLU *curl_url(void)
{
    CURLU *(*f)(void) = NULL;

    return bind_name("curl_url", &f) ? f() : NULL;
}

void curl_url_cleanup(CURLU *handle)
{
    void (*f)(CURLU *) = NULL;

    if (handle && bind_name("curl_url_cleanup", &f))
        f(handle);
}

/* Debian 12's curl 7.88 takes it without const, Debian 13's with. */
#if LIBCURL_VERSION_NUM >= 0x080000
#define CURLU_READ const CURLU
#else
#define CURLU_READ CURLU
#endif

CURLUcode curl_url_get(CURLU_READ *handle, CURLUPart what, char **part, unsigned int flags)
{
    CURLUcode (*f)(CURLU_READ *, CURLUPart, char **, unsigned int) = NULL;

    return bind_name("curl_url_get", &f) ? f(handle, what, part, flags) : CURLUE_BAD_HANDLE;
}

CURLUcode curl_url_set(CURLU *handle, CURLUPart what, const char *part, unsigned int flags)
{
    CURLUcode (*f)(CURLU *, CURLUPart, const char *, unsigned int) = NULL;

    return bind_name("curl_url_set", &f) ? f(handle, what, part, flags) : CURLUE_BAD_HANDLE;
}
