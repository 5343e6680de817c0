/* docs/openapi/openapi.json and the server's table of routes are the same list; the page addresses
 * stand in docs/api.md. (That each address answers as described: tests/http/test_upload.c.) */
#include "base/json_in.h"
#include "server/api/api.h"
#include "tests/docs/members.h"
#include "tests/lib/support.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* "/a/{owner}/x" and "/a/{o}/x" become "/a/{}/x": names of parameters are free, and so is what the
 * description says more exactly: sha256:{digest} and {name}.json. */
static char *shape(const char *path)
{
    char *out = calloc(strlen(path) + 1, 1);
    size_t n = 0;

    assert_non_null(out);
    for (const char *p = path; *p; p++) {
        if (strncmp(p, "sha256:{", 8) == 0)
            p += 7;
        out[n++] = *p;
        if (*p != '{')
            continue;
        p += strcspn(p, "}");
        out[n++] = '}';
        if (strcmp(p, "}.json") == 0)
            break;
    }
    return out;
}

static const char *method_of(const struct route *r)
{
    if (r->method == HTTP_GET)
        return "get";
    return r->method == HTTP_PUT ? "put" : "post";
}

/* The description's path of this shape with this method. */
static bool described(const cJSON *paths, const char *pattern, const char *method)
{
    const cJSON *path = NULL;
    char *wanted = shape(pattern);
    bool found = false;

    cJSON_ArrayForEach(path, paths) {
        char *mine = shape(path->string);

        found = found || (strcmp(mine, wanted) == 0 && json_get(path, method));
        free(mine);
    }
    free(wanted);
    return found;
}

static bool served(const char *path, const char *method)
{
    size_t n = 0;
    const struct route *routes = api_routes(&n);
    char *wanted = shape(path);
    bool found = false;

    for (size_t i = 0; i < n; i++) {
        char *mine = shape(routes[i].pattern);

        found = found || (strcmp(mine, wanted) == 0 && strcmp(method_of(&routes[i]), method) == 0);
        free(mine);
    }
    free(wanted);
    return found;
}

static void description_and_routes_are_one_list(void **state)
{
    size_t n = 0;
    const struct route *routes = api_routes(&n);
    char *text = test_read("docs/openapi/openapi.json", NULL);
    cJSON *j = NULL;
    const cJSON *path = NULL;
    struct err e = ERR_INIT;
    int bad = 0;

    (void) state;
    assert_int_equal(json_parse(text, strlen(text), NULL, &j, &e), 0);
    for (size_t i = 0; i < n; i++) {
        /* "/index" is the home page's name for its twins */
        if (strcmp(routes[i].pattern, "/index") == 0 ||
            described(json_get(j, "paths"), routes[i].pattern, method_of(&routes[i])))
            continue;
        print_error("not in openapi.json: %s %s\n", method_of(&routes[i]), routes[i].pattern);
        bad++;
    }
    cJSON_ArrayForEach(path, json_get(j, "paths")) {
        const cJSON *operation = NULL;

        cJSON_ArrayForEach(operation, path) {
            if (strcmp(operation->string, "parameters") == 0 ||
                served(path->string, operation->string))
                continue;
            print_error("not served: %s %s\n", operation->string, path->string);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
    json_free(j);
    free(text);
}

/* `/p/{o}/{r}` of the table stands in docs/api.md between backticks. */
static void page_addresses_are_documented(void **state)
{
    size_t n = 0;
    const struct route *routes = api_routes(&n);
    char *text = test_read("docs/api.md", NULL);
    char *plain = calloc(strlen(text) + 1, 1);
    size_t len = 0;
    int bad = 0;

    (void) state;
    assert_non_null(plain);
    for (const char *p = text; *p; p++) /* parameters by any name */
    {
        plain[len++] = *p;
        if (*p == '{') {
            p += strcspn(p, "}");
            plain[len++] = '}';
        }
    }
    for (size_t i = 0; i < n; i++) {
        char *wanted = shape(routes[i].pattern);
        char *quoted = NULL;

        assert_true(asprintf(&quoted, "`%s`", wanted) > 0);
        if (routes[i].kind == ROUTE_PAGE && routes[i].pattern[1] != '\0' &&
            strcmp(routes[i].pattern, "/index") != 0 && !strstr(plain, quoted)) {
            print_error("not in docs/api.md: %s\n", routes[i].pattern);
            bad++;
        }
        free(quoted);
        free(wanted);
    }
    assert_int_equal(bad, 0);
    free(plain);
    free(text);
}

/* The schemas and the tables of docs/json.md, which tests/docs/test_json.c holds against documents.
 */
static void schemas_and_tables_are_the_same(void **state)
{
    struct members *m = members_load("docs/json.md");
    char *text = test_read("docs/openapi/openapi.json", NULL);
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    (void) state;
    assert_int_equal(json_parse(text, strlen(text), NULL, &j, &e), 0);
    assert_int_equal(members_check_schemas(m, json_get(json_get(j, "components"), "schemas")), 0);
    json_free(j);
    free(text);
    members_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(description_and_routes_are_one_list),
        cmocka_unit_test(page_addresses_are_documented),
        cmocka_unit_test(schemas_and_tables_are_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
