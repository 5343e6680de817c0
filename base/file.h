/*
 * file: *at() helpers. Paths are opened below a directory descriptor, never followed through links,
 * and only regular files are read. A write is a temporary in the same directory, fsync, rename,
 * fsync of the directory: whole or absent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

/* Opens a directory by user-given path (links allowed on the way: the user named it). */
int file_open_dir(const char *path, int *out_fd, struct err *e) MUST_CHECK;
/* no links */
int file_open_dir_at(int dirfd, const char *name, int *out_fd, struct err *e) MUST_CHECK;
/* Read-only, regular file, O_NOFOLLOW on every component of `name` (openat2
 * RESOLVE_BENEATH|NO_SYMLINKS). */
int file_open_at(int dirfd, const char *name, int *out_fd, uint64_t *out_size,
                 struct err *e) MUST_CHECK;
/* Whole file ≤ max bytes into *out (NUL after the data, caller frees). */
int file_read_at(int dirfd, const char *name, size_t max, char **out, size_t *out_len,
                 struct err *e) MUST_CHECK;
/* Read-only, by user-given path (relative to the working directory; links allowed). A pipe, device
 * or directory is ERR_USAGE, at once: nothing is waited for. */
int file_open(const char *path, int *out_fd, uint64_t *out_size, struct err *e) MUST_CHECK;
/* The whole of such a file; "-" reads standard input. */
int file_read(const char *path, size_t max, char **out, size_t *out_len, struct err *e) MUST_CHECK;
/* A /proc or /sys file whose size is unknown; ≤ max bytes. */
int file_read_pseudo_at(int dirfd, const char *name, size_t max, char **out, size_t *out_len,
                        struct err *e) MUST_CHECK;
/* Creates or replaces; durable when it returns 0. Until it is complete it has another name, which
 * begins with the prefix, and which a process that dies leaves behind. */
#define FILE_TEMPORARY_PREFIX ".tmp-"
int file_write_at(int dirfd, const char *name, const void *p, size_t len, mode_t mode,
                  struct err *e) MUST_CHECK;
/* The same by user-given path. An existing pipe or device (/dev/stdout) is written to, not
 * replaced. */
int file_write(const char *path, const void *p, size_t len, mode_t mode, struct err *e) MUST_CHECK;
/* Fails with ERR_CONFLICT when the name exists. */
int file_create_at(int dirfd, const char *name, const void *p, size_t len, mode_t mode,
                   struct err *e) MUST_CHECK;
int file_write_all(int fd, const void *p, size_t len, struct err *e) MUST_CHECK;
/* existing is fine */
int file_mkdirs_at(int dirfd, const char *path, mode_t mode, struct err *e) MUST_CHECK;
int file_sync_dir(int dirfd, struct err *e) MUST_CHECK;
/* Copies a regular file's bytes; creates or replaces dst, durable when it returns 0. */
int file_copy_at(int src_dirfd, const char *src, int dst_dirfd, const char *dst, mode_t mode,
                 struct err *e) MUST_CHECK;
/* Removes a tree (or one file or link) below dirfd; a missing name is success. Any depth;
 * directories without permissions for their owner are opened. */
int file_remove_tree_at(int dirfd, const char *name, struct err *e) MUST_CHECK;
/* Removes every directory that lies max_depth (1 to 64) levels below the directory `name`, with all
 * that is in it; *out_files counts what went and was no directory. */
int file_prune_at(int dirfd, const char *name, size_t max_depth, size_t *out_files,
                  struct err *e) MUST_CHECK;

/* Regular files below dirfd, relative names in byte order; a link, device or socket is an error
 * (ERR_INPUT, "file.kind"). names[i] are heap strings; free with file_list_fini. Hidden names are
 * included. Depth ≤ 16, count ≤ max. */
struct file_list {
    char **names;
    size_t n;
};
int file_list_at(int dirfd, size_t max, struct file_list *out, struct err *e) MUST_CHECK;
/* The same with links, devices and sockets by their own names: for who looks after a directory and
 * must not stop at one. */
int file_list_all_at(int dirfd, size_t max, struct file_list *out, struct err *e) MUST_CHECK;
void file_list_fini(struct file_list *l);
#define AUTO_FILE_LIST __attribute__((cleanup(file_list_fini)))
