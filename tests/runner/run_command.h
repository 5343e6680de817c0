/* run_command: a command of the runner called in this process, with its output caught. Include
 * after support.h. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "audit/verdict.h"
#include "runner/commands.h"
#include "tests/lib/support.h"

struct command_result {
    int code;
    char *out;
    char *err;
};

/* argv[0] is the command's name, for reading; the parser starts after it. */
static inline void run_command(const struct command *command, const char *const argv[],
                               struct command_result *r)
{
    size_t out_len = 0;
    size_t err_len = 0;
    char *copy[32] = {NULL};
    int argc = 0;
    struct cli_args args = {.n_args = 0};
    struct err e = ERR_INIT;
    struct cli c = {.command = command->name, .directory = "."};

    *r = (struct command_result){.code = -1};
    c.out = open_memstream(&r->out, &out_len);
    c.err = open_memstream(&r->err, &err_len);
    assert_true(c.out && c.err);
    for (; argv[argc + 1]; argc++) {
        assert_true(argc < 31);
        copy[argc] = strdup(argv[argc + 1]);
        assert_non_null(copy[argc]);
    }
    if (cli_parse(&c, command, argc, copy, &args, &e) < 0)
        r->code = cli_fail(&c, &e);
    else
        r->code = command->run(&c, &args);
    assert_int_equal(fclose(c.out), 0);
    assert_int_equal(fclose(c.err), 0);
    for (int i = 0; i < argc; i++)
        free(copy[i]);
}

static inline void command_result_fini(struct command_result *r)
{
    free(r->out);
    free(r->err);
    *r = (struct command_result){0};
}
