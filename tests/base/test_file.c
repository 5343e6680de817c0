#include "tests/lib/support.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

struct place {
    char *path;
    int fd;
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    p->path = test_dir_new();
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = p;
    return p->fd < 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    (void) close(p->fd);
    test_dir_free(p->path);
    free(p);
    return 0;
}

/* Names in the directory, without temporaries left over. */
static size_t count_entries(const struct place *p)
{
    char **names = NULL;
    size_t n = test_list(p->path, "", &names);

    test_names_free(names);
    return n;
}

static mode_t mode_of(const struct place *p, const char *name)
{
    struct stat st;

    assert_int_equal(fstatat(p->fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static void assert_content(const struct place *p, const char *name, const char *expected)
{
    char *bytes = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;

    if (file_read_at(p->fd, name, 1000, &bytes, &len, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(len, strlen(expected));
    assert_string_equal(bytes, expected);
    free(bytes);
}

static void written_file_is_read_back(void **state)
{
    const struct place *p = *state;
    struct err e = ERR_INIT;

    assert_int_equal(file_write_at(p->fd, "a.txt", "one", 3, 0640, &e), 0);
    assert_content(p, "a.txt", "one");
    assert_int_equal(mode_of(p, "a.txt"), 0640);
    assert_int_equal(file_write_at(p->fd, "a.txt", "", 0, 0600, &e), 0);
    assert_content(p, "a.txt", "");
    assert_int_equal(mode_of(p, "a.txt"), 0600);
    assert_int_equal(count_entries(p), 1);
}

static void failed_write_leaves_nothing(void **state)
{
    const struct place *p = *state;
    static const char *const bad[] = {"none/a", "../a", "a/../../b", "/tmp/a", "",
                                      ".",      "..",   "sub/",      "link/a"};
    struct err e = ERR_INIT;

    assert_int_equal(mkdirat(p->fd, "sub", 0755), 0);
    assert_int_equal(symlinkat("sub", p->fd, "link"), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        e.kind = ERR_NONE;
        if (file_write_at(p->fd, bad[i], "x", 1, 0600, &e) == 0)
            fail_msg("written: %s", bad[i]);
        assert_int_not_equal(e.kind, ERR_NONE);
    }
    /* the target is a directory: the rename fails after everything was written */
    assert_int_equal(file_write_at(p->fd, "sub", "x", 1, 0600, &e), -1);
    assert_int_equal(count_entries(p), 2);
}

static void write_replaces_a_link_not_its_target(void **state)
{
    const struct place *p = *state;

    test_write_text(p->path, "target", "kept");
    assert_int_equal(symlinkat("target", p->fd, "name"), 0);
    assert_int_equal(file_write_at(p->fd, "name", "new", 3, 0600, NULL), 0);
    assert_content(p, "target", "kept");
    assert_content(p, "name", "new");
}

static void create_never_replaces(void **state)
{
    const struct place *p = *state;
    struct err e = ERR_INIT;

    assert_int_equal(file_create_at(p->fd, "a", "first", 5, 0400, &e), 0);
    assert_int_equal(file_create_at(p->fd, "a", "second", 6, 0400, &e), -1);
    assert_int_equal(e.kind, ERR_CONFLICT);
    assert_content(p, "a", "first");
    assert_int_equal(symlinkat("nowhere", p->fd, "dangling"), 0);
    assert_int_equal(file_create_at(p->fd, "dangling", "x", 1, 0400, &e), -1);
    assert_int_equal(e.kind, ERR_CONFLICT);
    assert_int_equal(count_entries(p), 2);
}

static void reading_is_bounded_exactly(void **state)
{
    const struct place *p = *state;
    struct err e = ERR_INIT;
    char *bytes = NULL;
    size_t len = 0;

    test_write_text(p->path, "ten", "0123456789");
    assert_int_equal(file_read_at(p->fd, "ten", 10, &bytes, &len, &e), 0);
    assert_int_equal(len, 10);
    free(bytes);
    bytes = NULL;
    assert_int_equal(file_read_at(p->fd, "ten", 9, &bytes, &len, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_null(bytes);
    assert_int_equal(file_read_at(p->fd, "absent", 9, &bytes, &len, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
}

static void only_regular_files_below_are_opened(void **state)
{
    const struct place *p = *state;
    static const char *const bad[] = {"link", "dirlink/f",   "fifo",        "sub",
                                      "../x", "sub/../../x", "/etc/passwd", "/proc/self/status"};

    test_write_text(p->path, "sub/f", "x");
    assert_int_equal(symlinkat("sub/f", p->fd, "link"), 0);
    assert_int_equal(symlinkat("sub", p->fd, "dirlink"), 0);
    assert_int_equal(mkfifoat(p->fd, "fifo", 0600), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int fd = -1;
        uint64_t size = 0;
        struct err e = ERR_INIT;

        if (file_open_at(p->fd, bad[i], &fd, &size, &e) == 0)
            fail_msg("opened: %s", bad[i]);
        assert_int_equal(fd, -1);
        assert_int_not_equal(e.kind, ERR_NONE);
    }
    assert_content(p, "sub/f", "x");
    assert_content(p, "sub/../sub/f", "x"); /* stays below: fine */
}

static void user_paths_follow_links_and_streams_are_bounded(void **state)
{
    const struct place *p = *state;
    char *link = test_join(p->path, "link");
    char *bytes = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;

    test_write_text(p->path, "f", "text");
    assert_int_equal(symlinkat("f", p->fd, "link"), 0);
    assert_int_equal(file_read(link, 4, &bytes, &len, &e), 0);
    assert_string_equal(bytes, "text");
    free(bytes);
    assert_int_equal(file_read(link, 3, &bytes, &len, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    /* Nothing that could make a reader wait, or never end, is read. */
    char *fifo = test_join(p->path, "pipe");
    const char *const others[] = {p->path, "/dev/zero", "/dev/null", fifo};

    assert_int_equal(mkfifo(fifo, 0600), 0);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_int_equal(file_read(others[i], 100000, &bytes, &len, &e), -1);
        assert_int_equal(e.kind, ERR_USAGE);
        assert_non_null(strstr(e.text, "not a regular file"));
    }
    free(fifo);
    free(link);
}

static void pseudo_files_are_read_whole(void **state)
{
    char *bytes = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;
    int proc = -1;

    (void) state;
    assert_int_equal(file_open_dir("/proc/self", &proc, &e), 0);
    assert_int_equal(file_read_pseudo_at(proc, "status", 65536, &bytes, &len, &e), 0);
    assert_true(len > 100);
    assert_memory_equal(bytes, "Name:", 5);
    free(bytes);
    assert_int_equal(file_read_pseudo_at(proc, "maps", 10, &bytes, &len, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    (void) close(proc);
}

static void write_by_path_goes_to_devices_and_into_folders(void **state)
{
    const struct place *p = *state;
    char *path = test_join(p->path, "f");
    char *missing = test_join(p->path, "none/f");
    struct err e = ERR_INIT;

    assert_int_equal(file_write(path, "x", 1, 0644, &e), 0);
    assert_content(p, "f", "x");
    assert_int_equal(file_write("/dev/null", "x", 1, 0644, &e), 0);
    assert_int_equal(access("/dev/null", W_OK), 0);
    assert_int_equal(file_write("/dev/full", "x", 1, 0644, &e), -1);
    assert_int_equal(e.kind, ERR_NOSPACE);
    assert_int_equal(file_write(missing, "x", 1, 0644, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    assert_int_equal(file_write(p->path, "x", 1, 0644, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    free(missing);
    free(path);
}

static void mkdirs_makes_what_is_missing(void **state)
{
    const struct place *p = *state;
    static const char *const bad[] = {"/a", "a//b", "../x", "a/../b", "file/x", "link/x"};
    struct err e = ERR_INIT;

    assert_int_equal(file_mkdirs_at(p->fd, "a/b/c", 0750, &e), 0);
    assert_int_equal(file_mkdirs_at(p->fd, "a/b/c", 0750, &e), 0);
    assert_int_equal(file_mkdirs_at(p->fd, "a/b/d/", 0750, &e), 0);
    assert_int_equal(mode_of(p, "a/b/c"), 0750);
    test_write_text(p->path, "file", "");
    assert_int_equal(symlinkat("a", p->fd, "link"), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (file_mkdirs_at(p->fd, bad[i], 0755, &e) == 0)
            fail_msg("made: %s", bad[i]);
    }
}

static void copy_has_the_same_bytes(void **state)
{
    const struct place *p = *state;
    size_t len = 300001;
    char *bytes = malloc(len);
    char *copy = NULL;
    size_t copy_len = 0;
    uint64_t seed = 5;
    struct err e = ERR_INIT;

    for (size_t i = 0; i < len; i++)
        bytes[i] = (char) test_random(&seed);
    test_write(p->path, "src", bytes, len);
    assert_int_equal(file_copy_at(p->fd, "src", p->fd, "dst", 0444, &e), 0);
    assert_int_equal(file_read_at(p->fd, "dst", len, &copy, &copy_len, &e), 0);
    assert_int_equal(copy_len, len);
    assert_memory_equal(copy, bytes, len);
    assert_int_equal(mode_of(p, "dst"), 0444);
    assert_int_equal(file_copy_at(p->fd, "none", p->fd, "dst2", 0444, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    assert_int_equal(count_entries(p), 2);
    free(copy);
    free(bytes);
}

static void list_is_complete_and_in_byte_order(void **state)
{
    const struct place *p = *state;
    static const char *const expected[] = {".hidden", "B", "a-b", "a/c/d", "a/e", "b"};
    AUTO_FILE_LIST struct file_list l = {0};
    struct err e = ERR_INIT;

    for (size_t i = ARRAY_LEN(expected); i > 0; i--)
        test_write_text(p->path, expected[i - 1], "");
    assert_int_equal(mkdirat(p->fd, "empty", 0755), 0);
    assert_int_equal(file_list_at(p->fd, ARRAY_LEN(expected), &l, &e), 0);
    assert_int_equal(l.n, ARRAY_LEN(expected));
    for (size_t i = 0; i < l.n; i++)
        assert_string_equal(l.names[i], expected[i]);
    file_list_fini(&l);
    assert_int_equal(file_list_at(p->fd, ARRAY_LEN(expected) - 1, &l, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(l.n, 0);
}

static void list_refuses_links_devices_and_depth(void **state)
{
    const struct place *p = *state;
    struct file_list l = {0};
    struct err e = ERR_INIT;

    assert_int_equal(symlinkat("x", p->fd, "link"), 0);
    assert_int_equal(file_list_at(p->fd, 100, &l, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.code, "file.kind");
    assert_int_equal(unlinkat(p->fd, "link", 0), 0);
    assert_int_equal(mkfifoat(p->fd, "fifo", 0600), 0);
    assert_int_equal(file_list_at(p->fd, 100, &l, &e), -1);
    assert_string_equal(e.code, "file.kind");
    assert_int_equal(symlinkat("/", p->fd, "link"), 0);
    assert_int_equal(file_list_all_at(p->fd, 100, &l, &e), 0); /* named, never followed */
    assert_int_equal(l.n, 2);
    assert_string_equal(l.names[0], "fifo");
    assert_string_equal(l.names[1], "link");
    file_list_fini(&l);
    assert_int_equal(unlinkat(p->fd, "link", 0), 0);
    assert_int_equal(unlinkat(p->fd, "fifo", 0), 0);
    test_write_text(p->path, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/f", "");
    assert_int_equal(file_list_at(p->fd, 100, &l, &e), 0);
    file_list_fini(&l);
    test_write_text(p->path, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/f", "");
    assert_int_equal(file_list_at(p->fd, 100, &l, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

static void remove_takes_the_tree_but_follows_no_link(void **state)
{
    const struct place *p = *state;
    struct err e = ERR_INIT;

    test_write_text(p->path, "kept/f", "x");
    test_write_text(p->path, "t/a/b/c", "x");
    test_write_text(p->path, "t/a/d", "x");
    test_write_text(p->path, "t/e/f/g", "x");
    assert_int_equal(symlinkat("../kept", p->fd, "t/link"), 0);
    assert_int_equal(symlinkat("kept", p->fd, "link"), 0);
    assert_int_equal(file_remove_tree_at(p->fd, "t", &e), 0);
    assert_int_equal(file_remove_tree_at(p->fd, "t", &e), 0); /* missing is fine */
    assert_int_equal(file_remove_tree_at(p->fd, "none/t", &e), 0);
    assert_int_equal(file_remove_tree_at(p->fd, "link", &e), 0);
    assert_content(p, "kept/f", "x");
    assert_int_equal(count_entries(p), 1);
    assert_int_equal(file_remove_tree_at(p->fd, "kept/f", &e), 0);
    assert_int_equal(file_remove_tree_at(p->fd, "..", &e), -1);
    assert_int_equal(file_remove_tree_at(p->fd, ".", &e), -1);
}

/* A chain of directories, each with a file, deeper than descriptors and paths reach. */
static void make_chain(int at, int depth)
{
    int fd = dup(at);

    for (int i = 0; i < depth; i++) {
        int next;

        assert_int_equal(mkdirat(fd, "d", 0755), 0);
        assert_int_equal(mkdirat(fd, ".deep-0", 0755), 0);
        assert_int_equal(mkdirat(fd, ".deep-0/x", 0755), 0);
        next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        if (i % 7 == 3)
            assert_int_equal(fchmod(fd, 0), 0);
        (void) close(fd);
        fd = next;
    }
    (void) close(fd);
}

static void trees_of_any_depth_are_removed(void **state)
{
    const struct place *p = *state;
    struct err e = ERR_INIT;
    size_t files = 99;

    assert_int_equal(mkdirat(p->fd, "t", 0755), 0);
    int t = openat(p->fd, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    make_chain(t, 3000);
    if (file_remove_tree_at(p->fd, "t", &e) < 0)
        fail_msg("%s", e.text);
    (void) close(t);
    assert_int_equal(count_entries(p), 0);

    test_write_text(p->path, "t/a/b/f", "x");
    test_write_text(p->path, "t/a/b/c/f", "x");
    test_write_text(p->path, "t/a/b/c/d/f", "x");
    assert_int_equal(symlinkat("..", p->fd, "t/a/b/c/link"), 0);
    t = openat(p->fd, "t/a/b/c/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_chain(t, 200);
    (void) close(t);
    assert_int_equal(file_prune_at(p->fd, "t", 3, &files, &e), 0);
    assert_int_equal(files, 3);
    assert_content(p, "t/a/b/f", "x");
    assert_int_equal(faccessat(p->fd, "t/a/b/c", F_OK, 0), -1);
    assert_int_equal(file_prune_at(p->fd, "t", 3, &files, &e), 0);
    assert_int_equal(files, 0);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(written_file_is_read_back),
        IN_PLACE(failed_write_leaves_nothing),
        IN_PLACE(write_replaces_a_link_not_its_target),
        IN_PLACE(create_never_replaces),
        IN_PLACE(reading_is_bounded_exactly),
        IN_PLACE(only_regular_files_below_are_opened),
        IN_PLACE(user_paths_follow_links_and_streams_are_bounded),
        IN_PLACE(pseudo_files_are_read_whole),
        IN_PLACE(write_by_path_goes_to_devices_and_into_folders),
        IN_PLACE(mkdirs_makes_what_is_missing),
        IN_PLACE(copy_has_the_same_bytes),
        IN_PLACE(list_is_complete_and_in_byte_order),
        IN_PLACE(list_refuses_links_devices_and_depth),
        IN_PLACE(remove_takes_the_tree_but_follows_no_link),
        IN_PLACE(trees_of_any_depth_are_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
