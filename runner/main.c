/* cleanrun: runner and client. Everything is in the library, so that tests reach it. */
#include <stdio.h>
#include <unistd.h>

#include "runner/program.h"

int main(int argc, char **argv)
{
    struct cli c = {
        .out = stdout,
        .err = stderr,
        .command = "",
        .terminal = isatty(STDERR_FILENO) == 1,
        .directory = ".",
        .environment = environ,
    };

    return program_main(&c, argc, argv);
}
