/*
 * embed OUTPUT SYMBOL FOLDER [FILE…]: writes a C source that defines `const struct embed_table
 * SYMBOL` with the bytes of every FILE, named relative to FOLDER. Build-time only, so it reports on
 * stderr and exits 1 on the first trouble.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct input {
    char *path; /* absolute */
    const char *name;
};

static int fail(const char *what, const char *path)
{
    (void) fprintf(stderr, "embed: %s '%s': %s\n", what, path, strerrordesc_np(errno));
    return -1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct input *) a)->name, ((const struct input *) b)->name);
}

static int input_init(struct input *in, const char *folder, const char *path)
{
    size_t prefix = strlen(folder);

    in->path = realpath(path, NULL);
    if (!in->path)
        return fail("cannot find", path);
    if (strncmp(in->path, folder, prefix) != 0 || in->path[prefix] != '/') {
        (void) fprintf(stderr, "embed: '%s' is not below '%s'\n", in->path, folder);
        return -1;
    }
    in->name = in->path + prefix + 1;
    if (strpbrk(in->name, "\"\\\n")) {
        (void) fprintf(stderr, "embed: '%s' has a character that a C string cannot hold plainly\n",
                       in->name);
        return -1;
    }
    return 0;
}

/* Writes one byte array; *out_size is the file's length. */
static int write_bytes(FILE *out, size_t index, const char *path, size_t *out_size)
{
    size_t size = 0;
    int c = 0;
    FILE *in = fopen(path, "rb");

    if (!in)
        return fail("cannot open", path);
    (void) fprintf(out, "static const unsigned char file_%zu[] = {", index);
    while ((c = fgetc(in)) != EOF) {
        (void) fprintf(out, "%s%d,", size % 24 == 0 ? "\n    " : "", c);
        size++;
    }
    (void) fprintf(out, "\n    0};\n");
    if (ferror(in)) {
        (void) fclose(in);
        return fail("cannot read", path);
    }
    (void) fclose(in);
    *out_size = size;
    return 0;
}

static int write_table(FILE *out, const char *symbol, const struct input *inputs, size_t n,
                       size_t *sizes)
{
    size_t i = 0;

    (void) fprintf(out, "#include \"tools/embed.h\"\n\n");
    for (i = 0; i < n; i++) {
        if (write_bytes(out, i, inputs[i].path, &sizes[i]) < 0)
            return -1;
    }
    if (n > 0) {
        (void) fprintf(out, "static const struct embed_file files[] = {\n");
        for (i = 0; i < n; i++)
            (void) fprintf(out, "    {\"%s\", file_%zu, %zu},\n", inputs[i].name, i, sizes[i]);
        (void) fprintf(out, "};\n\n");
    }
    (void) fprintf(out, "const struct embed_table %s = {%s, %zu};\n", symbol,
                   n > 0 ? "files" : "NULL", n);
    return 0;
}

static int embed(const char *output, const char *symbol, const char *folder, char *const *paths,
                 size_t n)
{
    char *root = realpath(folder, NULL);
    struct input *inputs = calloc(n + 1, sizeof(*inputs));
    size_t *sizes = calloc(n + 1, sizeof(*sizes));
    FILE *out = fopen(output, "wb");
    int result = root && inputs && sizes && out ? 0 : fail("cannot start with", output);
    size_t i = 0;

    for (i = 0; result == 0 && i < n; i++)
        result = input_init(&inputs[i], root, paths[i]);
    if (result == 0) {
        qsort(inputs, n, sizeof(*inputs), by_name);
        result = write_table(out, symbol, inputs, n, sizes);
    }
    if (result == 0 && (ferror(out) || fflush(out) != 0))
        result = fail("cannot write", output);
    if (out)
        (void) fclose(out);
    for (i = 0; inputs && i < n; i++)
        free(inputs[i].path);
    free(sizes);
    free(inputs);
    free(root);
    return result;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void) fprintf(stderr, "usage: embed OUTPUT SYMBOL FOLDER [FILE...]\n");
        return 1;
    }
    return embed(argv[1], argv[2], argv[3], argv + 4, (size_t) argc - 4) < 0 ? 1 : 0;
}
