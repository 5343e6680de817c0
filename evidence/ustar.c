#include "evidence/ustar.h"

#include <assert.h>
#include <string.h>

#include "base/relname.h"

/* Offsets and widths of POSIX.1 ustar. Values are those that also GNU tar writes with
 * --format=ustar --numeric-owner --owner=0 --group=0 --mtime=@0 --mode=0644. */
#define NAME_AT 0
#define MODE_AT 100
#define UID_AT 108
#define GID_AT 116
#define SIZE_AT 124
#define MTIME_AT 136
#define CHECKSUM_AT 148
#define TYPE_AT 156
#define LINK_AT 157
#define MAGIC_AT 257
#define UNAME_AT 265
#define GNAME_AT 297
#define MAJOR_AT 329
#define MINOR_AT 337
#define PREFIX_AT 345
#define TAIL_AT 500

static const struct ustar_field {
    const char *name;
    size_t at;
    size_t len;
} fields[] = {
    {"magic and version", MAGIC_AT, 8},
    {"type", TYPE_AT, 1},
    {"prefix", PREFIX_AT, 155},
    {"link name", LINK_AT, 100},
    {"mode", MODE_AT, 8},
    {"uid", UID_AT, 8},
    {"gid", GID_AT, 8},
    {"mtime", MTIME_AT, 12},
    {"owner name", UNAME_AT, 32},
    {"group name", GNAME_AT, 32},
    {"device major", MAJOR_AT, 8},
    {"device minor", MINOR_AT, 8},
    {"padding", TAIL_AT, 12},
    {"name", NAME_AT, 100},
    {"size", SIZE_AT, 12},
    {"checksum", CHECKSUM_AT, 8},
};

/* Right-aligned octal digits, then a NUL. */
static void put_octal(char *at, size_t width, uint64_t v)
{
    for (size_t i = width - 1; i-- > 0; v >>= 3)
        at[i] = (char) ('0' + (v & 7));
    at[width - 1] = '\0';
}

static unsigned checksum(const char block[USTAR_BLOCK])
{
    unsigned sum = 0;

    for (size_t i = 0; i < USTAR_BLOCK; i++)
        sum += i >= CHECKSUM_AT && i < CHECKSUM_AT + 8 ? (unsigned) ' ' : (unsigned char) block[i];
    return sum;
}

void ustar_header(char out[USTAR_BLOCK], const char *name, uint64_t size)
{
    size_t len = strlen(name);

    assert(len > 0 && len <= LIMIT_RELNAME && size <= LIMIT_ARCHIVE);
    memset(out, 0, USTAR_BLOCK);
    memcpy(out + NAME_AT, name, len);
    put_octal(out + MODE_AT, 8, 0644);
    put_octal(out + UID_AT, 8, 0);
    put_octal(out + GID_AT, 8, 0);
    put_octal(out + SIZE_AT, 12, size);
    put_octal(out + MTIME_AT, 12, 0);
    out[TYPE_AT] = '0';
    memcpy(out + MAGIC_AT,
           "ustar\0"
           "00",
           8);
    put_octal(out + MAJOR_AT, 8, 0);
    put_octal(out + MINOR_AT, 8, 0);
    put_octal(out + CHECKSUM_AT, 7, checksum(out));
    out[CHECKSUM_AT + 7] = ' ';
}

bool ustar_is_zero(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] != 0)
            return false;
    }
    return true;
}

size_t ustar_padding(uint64_t size)
{
    return (size_t) ((USTAR_BLOCK - size % USTAR_BLOCK) % USTAR_BLOCK);
}

static const char *type_words(char type)
{
    static const char *const words[] = {"a hard link",      "a symbolic link", "a character device",
                                        "a block device",   "a directory",     "a fifo",
                                        "a contiguous file"};

    if (type >= '1' && type <= '7')
        return words[type - '1'];
    return "an extension or an old format";
}

static int read_size(const char *at, uint64_t *out, struct err *e)
{
    uint64_t v = 0;

    for (size_t i = 0; i < 11; i++) {
        if (at[i] < '0' || at[i] > '7')
            return err_set(e, ERR_INPUT, "archive.size",
                           "the size field is not eleven octal digits");
        v = v << 3 | (uint64_t) (at[i] - '0');
    }
    if (at[11] != '\0')
        return err_set(e, ERR_INPUT, "archive.size", "the size field does not end with a NUL");
    if (v > LIMIT_MEMBER)
        return err_set(e, ERR_LIMIT, "archive.size",
                       "a member states %llu bytes; the limit is %llu", (unsigned long long) v,
                       (unsigned long long) LIMIT_MEMBER);
    *out = v;
    return 0;
}

int ustar_parse(const char block[USTAR_BLOCK], char out_name[LIMIT_RELNAME + 1], uint64_t *out_size,
                struct err *e)
{
    char name[LIMIT_RELNAME + 1] = {0};
    char want[USTAR_BLOCK];
    uint64_t size = 0;

    memcpy(name, block + NAME_AT, LIMIT_RELNAME);
    if (!relname_ok(name))
        return err_set(e, ERR_INPUT, "archive.name", "a member's name is not allowed");
    if (read_size(block + SIZE_AT, &size, e) < 0)
        return err_wrap(e, "member '%s'", name);
    ustar_header(want, name, size);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const struct ustar_field *f = &fields[i];

        if (memcmp(block + f->at, want + f->at, f->len) == 0)
            continue;
        if (f->at == TYPE_AT)
            return err_set(e, ERR_INPUT, "archive.type", "member '%s' is no regular file but %s",
                           name, type_words(block[TYPE_AT]));
        return err_set(e, ERR_INPUT, "archive.header",
                       "member '%s': the header's %s is not canonical", name, f->name);
    }
    memcpy(out_name, name, sizeof name);
    *out_size = size;
    return 0;
}
