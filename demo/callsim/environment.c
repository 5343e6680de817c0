/* What this machine and this build are. */
#include "callsim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "revision.h"

/* Counts processors and distinct cores in /proc/cpuinfo; the first model name. */
static void read_cpu(char *model, size_t size, unsigned *logical, unsigned *physical)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512], package[32] = "", seen[4096] = "";

    (void) snprintf(model, size, "unknown");
    *logical = *physical = 0;
    while (f && fgets(line, sizeof(line), f)) {
        char *value = strchr(line, ':');

        line[strcspn(line, "\n")] = '\0';
        value = value ? value + 1 + (value[1] == ' ') : line;
        if (!strncmp(line, "processor", 9) && (*logical)++ == 0)
            *package = '\0';
        else if (!strncmp(line, "model name", 10))
            (void) snprintf(model, size, "%.200s", value);
        else if (!strncmp(line, "physical id", 11))
            (void) snprintf(package, sizeof(package), "%.20s", value);
        else if (!strncmp(line, "core id", 7)) {
            char core[64];

            (void) snprintf(core, sizeof(core), ";%s/%.20s;", package, value);
            if (!strstr(seen, core) && strlen(seen) + sizeof(core) < sizeof(seen)) {
                (void) snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s", core);
                (*physical)++;
            }
        }
    }
    if (f)
        (void) fclose(f);
    if (*physical == 0)
        *physical = *logical;
}

static double total_ram_gb(void)
{
    return (double) sysconf(_SC_PHYS_PAGES) * (double) sysconf(_SC_PAGESIZE) / (double) (1 << 30);
}

unsigned physical_cores(void)
{
    char model[256];
    unsigned logical, physical;

    read_cpu(model, sizeof(model), &logical, &physical);
    return physical;
}

/* REVISION is the commit, with "-dirty" after it when there are changes. */
void write_environment(struct json *j)
{
    static const char revision[] = REVISION;
    char model[256], commit[48] = "", rev[12] = "";
    unsigned logical, physical;
    struct utsname host;
    char os[256];

    read_cpu(model, sizeof(model), &logical, &physical);
    if (uname(&host) < 0)
        die("uname");
    (void) snprintf(os, sizeof(os), "%.60s %.60s", host.sysname, host.machine);
    (void) snprintf(commit, sizeof(commit), "%.*s", (int) strcspn(revision, "-"), revision);
    (void) snprintf(rev, sizeof(rev), "%.8s", revision);
    json_open(j, "environment", '{');
    json_text(j, "build_profile", BUILD_PROFILE);
    json_open(j, "build_features", '[');
    json_text(j, NULL, "perf-tests");
    json_close(j, ']');
    json_text(j, "requested_build_features", "perf-tests");
    json_text(j, "compiler", __VERSION__);
    json_text(j, "global_allocator", "libc");
    json_text(j, "cpu_model", model);
    json_integer(j, "cpu_count_logical", logical);
    json_integer(j, "cpu_count_physical", physical);
    json_real(j, "total_ram_gb", total_ram_gb());
    json_text(j, "os", os);
    json_text(j, "network_topology", "loopback");
    json_text(j, "nic", "loopback");
    json_text(j, "git_rev", rev);
    json_text(j, "git_commit", commit);
    json_truth(j, "git_dirty", strstr(revision, "-dirty") != NULL);
    json_text(j, "source_fingerprint_sha256", getenv("CLEANRUN_SOURCE_SHA256")); /* null by hand */
    json_close(j, '}');
}
