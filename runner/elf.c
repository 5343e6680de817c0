#include "runner/elf.h"

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTIONS_MAX 4096
#define NAMES_MAX ((size_t) 1 << 20)

/* Whole or nothing; a short file is not an error but no ELF either. */
static bool read_at(int fd, void *out, size_t len, uint64_t at)
{
    return at <= INT64_MAX && pread(fd, out, len, (off_t) at) == (ssize_t) len;
}

static bool is_debug_name(const char *names, size_t len, uint32_t at)
{
    static const char *const wanted[] = {".debug_info", ".zdebug_info"};

    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        size_t n = strlen(wanted[i]) + 1;

        if (at < len && len - at >= n && !memcmp(names + at, wanted[i], n))
            return true;
    }
    return false;
}

static bool search(int fd, const Elf64_Ehdr *head, Elf64_Shdr *sections)
{
    size_t n = head->e_shnum;
    AUTO_FREE char *names = NULL;
    const Elf64_Shdr *strings;

    if (!read_at(fd, sections, n * sizeof(*sections), head->e_shoff))
        return false;
    strings = &sections[head->e_shstrndx];
    if (strings->sh_size == 0 || strings->sh_size > NAMES_MAX)
        return false;
    names = malloc(strings->sh_size);
    if (!names || !read_at(fd, names, strings->sh_size, strings->sh_offset))
        return false;
    for (size_t i = 0; i < n; i++)
        if (is_debug_name(names, strings->sh_size, sections[i].sh_name))
            return true;
    return false;
}

int elf_has_debug_info(int fd, bool *out, struct err *e)
{
    Elf64_Ehdr head;
    AUTO_FREE Elf64_Shdr *sections = NULL;

    *out = false;
    if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(*sections) ||
        head.e_shnum == 0 || head.e_shnum > SECTIONS_MAX || head.e_shstrndx >= head.e_shnum)
        return 0;
    sections = calloc(head.e_shnum, sizeof(*sections));
    if (!sections)
        return err_memory(e, "elf.memory");
    *out = search(fd, &head, sections);
    return 0;
}
