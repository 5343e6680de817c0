/* Parsing of /proc texts, and facts, readings and interference below a made-up root. */
#include "tests/lib/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "experiment/facts.h"
#include "runner/box.h"
#include "runner/child.h"
#include "runner/host.h"
#include "runner/interference.h"
#include "runner/procfs.h"

#define STAT_TAIL                                                                                  \
    " 1 77 77 0 -1 4194304 500 0 3 0 12 34 0 0 20 0 5 0 9999 1000000 250 18446744073709551615\n"

static void stat_is_parsed_from_the_last_parenthesis(void **state)
{
    struct proc_stat st;

    (void) state;
    /* A program may name itself to forge its fields. */
    assert_true(proc_stat_parse("42 (x) R 1 2 (y)) S" STAT_TAIL, &st));
    assert_int_equal(st.state, 'S');
    assert_int_equal(st.ppid, 1);
    assert_int_equal(st.session, 77);
    assert_int_equal(st.minor_faults, 500);
    assert_int_equal(st.major_faults, 3);
    assert_int_equal(st.user_ticks, 12);
    assert_int_equal(st.system_ticks, 34);
    assert_int_equal(st.threads, 5);
    assert_int_equal(st.start_ticks, 9999);
    assert_int_equal(st.rss_pages, 250);
    assert_string_equal(st.comm, "x) R 1 2 (y)");
    assert_true(proc_stat_parse("42 (a name with a newline\n) S" STAT_TAIL, &st));
    assert_true(proc_stat_parse("42 (caf\xe9 \xc3\xa4\xe2\x82) S" STAT_TAIL, &st));
    assert_string_equal(st.comm, "caf? \xc3\xa4??"); /* records are JSON */
    assert_false(proc_stat_parse("42 (cut", &st));
    assert_false(proc_stat_parse("42 (cut) S 1 2", &st));
    assert_false(proc_stat_parse("", &st));
    assert_false(proc_stat_parse("42 )x( S" STAT_TAIL, &st));
}

static void cpu_times_and_pressure_are_parsed(void **state)
{
    struct cpu_times t;
    struct pressure p;

    (void) state;
    assert_true(cpu_times_parse("cpu  10 1 2 100 5 3 4 7 9 0\ncpu0 …", &t));
    assert_int_equal(t.busy, 20);
    assert_int_equal(t.idle, 105);
    assert_int_equal(t.steal, 7);
    assert_false(cpu_times_parse("cpu 1 2\n", &t));
    assert_false(cpu_times_parse("intr 1 2 3 4 5 6 7 8\n", &t));
    pressure_parse("some avg10=1.50 avg60=0.10 avg300=0.00 total=123456\nfull avg10=0.25 "
                   "avg60=0.00 avg300=0.00 total=99\n",
                   &p);
    assert_true(p.known);
    assert_int_equal(p.some_us, 123456);
    assert_int_equal(p.full_us, 99);
    assert_close(p.some_avg10, 1.5, 1e-12);
    pressure_parse(NULL, &p);
    assert_false(p.known);
}

/* A machine as a directory. */
static char *new_machine(void)
{
    char *dir = test_dir_new();

    test_write_text(dir, "proc/cpuinfo",
                    "processor\t: 0\nmodel name\t: Test Processor 9000\nmicrocode\t: "
                    "0x17\nflags\t\t: fpu sse2 avx2\n\n"
                    "processor\t: 1\nmodel name\t: Test Processor 9000\nmicrocode\t: "
                    "0x17\nflags\t\t: fpu sse2 avx2\n");
    test_write_text(
        dir, "proc/meminfo",
        "MemTotal: 16000000 kB\nMemAvailable: 9000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
    test_write_text(dir, "proc/loadavg", "0.25 0.1 0.1 1/100 999\n");
    test_write_text(dir, "proc/stat", "cpu  1000 0 1000 100000 0 0 0 10 0 0\n");
    test_write_text(dir, "proc/vmstat", "pswpin 5\npswpout 6\n");
    test_write_text(dir, "proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=abc isolcpus=1 quiet\n");
    test_write_text(dir, "proc/self/cgroup", "0::/test/group\n");
    test_write_text(dir, "proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1\n");
    test_write_text(dir, "proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
    test_write_text(dir, "proc/sys/kernel/version", "#1 SMP Debian\n");
    test_write_text(dir, "proc/sys/kernel/randomize_va_space", "2\n");
    test_write_text(dir, "proc/sys/vm/swappiness", "60\n");
    test_write_text(dir, "proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=100\n");
    test_write_text(dir, "etc/os-release", "NAME=x\nPRETTY_NAME=\"Test OS 1\"\n");
    test_write_text(dir, "sys/devices/system/cpu/online", "0-1\n");
    for (int i = 0; i < 2; i++) {
        char name[128];

        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/core_id", i);
        test_write_text(dir, name, i ? "1\n" : "0\n");
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
        test_write_text(dir, name, "0\n");
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", i);
        test_write_text(dir, name, "performance\n");
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/cpufreq/scaling_driver", i);
        test_write_text(dir, name, "acpi-cpufreq\n");
        snprintf(name, sizeof name,
                 "sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", i);
        test_write_text(dir, name, "3\n");
    }
    test_write_text(dir, "sys/devices/system/cpu/cpu0/cache/index3/size", "32768K\n");
    test_write_text(dir, "sys/devices/system/cpu/cpufreq/boost", "0\n");
    test_write_text(dir, "sys/devices/system/cpu/smt/active", "0\n");
    test_write_text(dir, "sys/devices/system/cpu/smt/control", "off\n");
    test_write_text(dir, "sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n");
    test_write_text(dir, "sys/devices/system/clocksource/clocksource0/current_clocksource",
                    "tsc\n");
    test_write_text(dir, "sys/devices/system/node/online", "0\n");
    test_write_text(dir, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    test_write_text(dir, "sys/fs/cgroup/test/group/memory.max", "max\n");
    test_write_text(dir, "sys/fs/cgroup/test/memory.max", "1073741824\n");
    return dir;
}

static cJSON *facts_of(const char *dir)
{
    struct host_build build = {.toolchain = "cc 12", .allocator = "malloc"};
    struct sysroot root;
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(sysroot_open(dir, &root, &e), 0);
    assert_int_equal(host_facts(&root, &build, &j, &e), 0);
    sysroot_close(&root);
    return j;
}

static void assert_fact(const cJSON *facts, const char *name, const char *value)
{
    const cJSON *j = json_get(facts, name);

    if (!cJSON_IsString(j) || strcmp(j->valuestring, value) != 0)
        print_error("%s is %s\n", name, cJSON_IsString(j) ? j->valuestring : "null");
    assert_true(cJSON_IsString(j));
    assert_string_equal(j->valuestring, value);
}

static void every_fact_is_read(void **state)
{
    char *dir = new_machine();
    cJSON *facts = facts_of(dir);

    (void) state;
    assert_int_equal(cJSON_GetArraySize(facts), facts_count);
    for (size_t i = 0; i < facts_count; i++) {
        if (!cJSON_IsString(json_get(facts, facts_table[i].name)))
            print_error("fact %s is unknown\n", facts_table[i].name);
        assert_true(cJSON_IsString(json_get(facts, facts_table[i].name)));
    }
    assert_fact(facts, "cpu_model", "Test Processor 9000");
    assert_fact(facts, "cpu_flags", "avx2 fpu sse2");
    assert_fact(facts, "cpu_count_logical", "2");
    assert_fact(facts, "cpu_count_physical", "2");
    assert_fact(facts, "governor", "performance");
    assert_fact(facts, "boost", "off");
    assert_fact(facts, "smt", "off");
    assert_fact(facts, "thp", "madvise");
    assert_fact(facts, "memory_limit", "1073741824"); /* the parent group's limit holds too */
    assert_fact(facts, "mitigations", "meltdown: Not affected");
    assert_fact(facts, "os", "Test OS 1");
    assert_fact(facts, "hypervisor", "none");
    cJSON_Delete(facts);
    test_dir_free(dir);
}

/* Decisions T7: a changed governor, memory limit, … shows in the record. */
static void a_changed_machine_has_other_facts(void **state)
{
    static const struct {
        const char *file, *text, *fact;
    } changes[] = {
        {"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n", "governor"},
        {"sys/devices/system/cpu/cpufreq/boost", "1\n", "boost"},
        {"sys/devices/system/cpu/smt/active", "1\n", "smt"},
        {"sys/fs/cgroup/test/group/memory.max", "536870912\n", "memory_limit"},
        {"sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n", "thp"},
        {"sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n", "mitigations"},
        {"proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=abc quiet\n", "kernel_cmdline"},
        {"proc/self/status", "Cpus_allowed_list:\t0\n", "cpu_allowed"},
        {"proc/sys/kernel/osrelease", "6.1.0-41-amd64\n", "kernel"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char *dir = new_machine();
        cJSON *before = facts_of(dir);

        test_write_text(dir, changes[i].file, changes[i].text);
        cJSON *after = facts_of(dir);

        for (size_t k = 0; k < facts_count; k++) {
            const char *name = facts_table[k].name;
            bool same = json_equal(json_get(before, name), json_get(after, name));

            if (same == (strcmp(name, changes[i].fact) == 0))
                print_error("%s after a change of %s\n", name, changes[i].file);
            assert_int_equal(same, strcmp(name, changes[i].fact) != 0);
        }
        cJSON_Delete(after);
        cJSON_Delete(before);
        test_dir_free(dir);
    }
}

/* What is there and cannot be read is unknown, and so never equal to anything. */
static void a_control_that_cannot_be_read_is_unknown(void **state)
{
    static const struct {
        const char *file, *fact;
    } rows[] = {
        {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "governor"},
        {"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "governor"},
        {"sys/devices/system/cpu/cpu1/cpufreq/scaling_driver", "scaling_driver"},
        {"sys/devices/system/cpu/cpu1/topology/core_id", "cpu_count_physical"},
        {"sys/devices/system/cpu/cpu0/cache/index3/size", "cpu_l3"},
        {"sys/devices/system/cpu/cpufreq/boost", "boost"},
        {"sys/devices/system/cpu/smt/active", "smt"},
        {"sys/devices/system/cpu/smt/control", "smt"},
        {"sys/devices/system/cpu/vulnerabilities/meltdown", "mitigations"},
        {"sys/devices/system/clocksource/clocksource0/current_clocksource", "clocksource"},
        {"sys/devices/system/node/online", "numa_nodes"},
        {"sys/kernel/mm/transparent_hugepage/enabled", "thp"},
        {"sys/fs/cgroup/test/group/memory.max", "memory_limit"},
        {"sys/fs/cgroup/test/memory.max", "memory_limit"},
        {"proc/self/cgroup", "memory_limit"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *dir = new_machine();
        char *path = test_join(dir, rows[i].file);
        cJSON *facts = NULL;

        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink(strrchr(path, '/') + 1, path), 0); /* a loop: root can't read it */
        facts = facts_of(dir);
        if (!cJSON_IsNull(json_get(facts, rows[i].fact)))
            fail_msg("%s is known without %s", rows[i].fact, rows[i].file);
        cJSON_Delete(facts);
        free(path);
        test_dir_free(dir);
    }
}

/* Processors that are offline have no files; those behind them count all the same. */
static void processors_behind_an_offline_one_count(void **state)
{
    char *dir = new_machine();
    char *governor = test_join(dir, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor");
    char *core = test_join(dir, "sys/devices/system/cpu/cpu1/topology/core_id");
    cJSON *facts = NULL;

    (void) state;
    assert_int_equal(unlink(governor), 0);
    assert_int_equal(unlink(core), 0);
    test_write_text(dir, "sys/devices/system/cpu/online", "0,2-3\n");
    for (int i = 2; i < 4; i++) {
        char name[128];

        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", i);
        test_write_text(dir, name, i == 3 ? "powersave\n" : "performance\n");
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/core_id", i);
        test_write_text(dir, name, i == 3 ? "3\n" : "2\n");
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
        test_write_text(dir, name, "0\n");
    }
    facts = facts_of(dir);
    assert_fact(facts, "governor", "performance|powersave");
    assert_fact(facts, "cpu_count_logical", "3");
    assert_fact(facts, "cpu_count_physical", "3");
    assert_fact(facts, "scaling_driver", "acpi-cpufreq|none");
    cJSON_Delete(facts);
    free(core);
    free(governor);
    test_dir_free(dir);
}

static void what_names_an_installation_is_no_fact(void **state)
{
    char *dir = new_machine();
    cJSON *before = facts_of(dir);

    (void) state;
    test_write_text(dir, "proc/cmdline", "BOOT_IMAGE=/other root=UUID=def isolcpus=1 quiet\n");
    cJSON *after = facts_of(dir);

    assert_true(json_equal(before, after));
    cJSON_Delete(after);
    cJSON_Delete(before);
    test_dir_free(dir);
}

static void an_empty_machine_has_unknown_facts_not_invented_ones(void **state)
{
    char *dir = test_dir_new();
    cJSON *facts = facts_of(dir);

    (void) state;
    assert_true(cJSON_IsNull(json_get(facts, "cpu_model")));
    assert_true(cJSON_IsNull(json_get(facts, "kernel")));
    assert_true(cJSON_IsNull(json_get(facts, "memory")));
    assert_true(cJSON_IsNull(json_get(facts, "os")));
    assert_true(cJSON_IsNull(json_get(facts, "hypervisor")));
    cJSON_Delete(facts);
    test_dir_free(dir);
}

static void facts_in_another_encoding_are_told_and_differ(void **state)
{
    char *dir = new_machine();

    (void) state;
    test_write_text(dir, "etc/os-release", "PRETTY_NAME=\"Caf\xe9 OS\"\n");
    test_write_text(dir, "proc/cmdline", "isolcpus=1 name=\xc3\xa4\xff\n");
    cJSON *before = facts_of(dir);

    test_write_text(dir, "proc/cmdline", "isolcpus=1 name=\xc3\xa4\xfe\n");
    cJSON *after = facts_of(dir);

    assert_string_equal(json_text(before, "os", ""), "Caf\\xe9 OS");
    assert_false(json_equal(before, after));
    cJSON_Delete(after);
    cJSON_Delete(before);
    test_dir_free(dir);
}

static cJSON *json(const char *text)
{
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(json_parse(text, strlen(text), NULL, &j, &e), 0);
    return j;
}

static void host_limits_name_what_breaks_them(void **state)
{
    cJSON *facts = json("{\"governor\": \"powersave\", \"smt\": null}");
    cJSON *readings = json("{\"cpu_khz\": 3000000, \"load\": null}");
    cJSON *good = json("[{\"fact\": \"governor\", \"equals\": \"powersave\"}, {\"reading\": "
                       "\"cpu_khz\", \"min\": 1}]");
    static const char *const bad[] = {
        "[{\"fact\": \"governor\", \"equals\": \"performance\"}]",
        "[{\"fact\": \"smt\", \"equals\": \"off\"}]",
        "[{\"fact\": \"no_such\", \"equals\": \"x\"}]",
        "[{\"reading\": \"cpu_khz\", \"max\": 2000000}]",
        "[{\"reading\": \"load\", \"max\": 9}]",
    };
    char why[200];

    (void) state;
    assert_false(host_breaks(good, facts, readings, why, sizeof why));
    assert_false(host_breaks(NULL, facts, readings, why, sizeof why));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cJSON *limits = json(bad[i]);

        assert_true(host_breaks(limits, facts, readings, why, sizeof why));
        cJSON_Delete(limits);
    }
    cJSON_Delete(good);
    cJSON_Delete(readings);
    cJSON_Delete(facts);
}

static void doctor_names_the_unfit(void **state)
{
    char *dir = new_machine();
    struct sysroot root;
    struct err e = ERR_INIT;
    cJSON *rows = NULL;
    const cJSON *row = NULL;
    const char *governor = "", *load = "";

    (void) state;
    test_write_text(dir, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    test_write_text(dir, "proc/loadavg", "9.00 1 1 1/1 1\n");
    assert_int_equal(sysroot_open(dir, &root, &e), 0);
    assert_int_equal(host_fitness(&root, NULL, &rows, &e), 0);
    cJSON_ArrayForEach(row, rows) {
        if (!strcmp(json_get(row, "name")->valuestring, "governor"))
            governor = json_get(row, "state")->valuestring;
        if (!strcmp(json_get(row, "name")->valuestring, "load"))
            load = json_get(row, "state")->valuestring;
    }
    assert_string_equal(governor, "bad");
    assert_string_equal(load, "bad");
    cJSON_Delete(rows);
    sysroot_close(&root);
    test_dir_free(dir);
}

/* One look at a machine, and another one after `second` wrote what is there by then. */
static cJSON *two_looks(void (*first)(const char *dir), void (*second)(const char *dir))
{
    char *dir = new_machine();
    struct sysroot root;
    struct interference *i = NULL;
    struct err e = ERR_INIT;
    cJSON *record = NULL;
    const struct timespec pause = {0, 200000000};

    assert_int_equal(sysroot_open(dir, &root, &e), 0);
    first(dir);
    assert_int_equal(interference_new(&root, NULL, NULL, &i, &e), 0);
    second(dir);
    assert_int_equal(nanosleep(&pause, NULL), 0);
    assert_int_equal(interference_record(i, 0, NULL, &record, &e), 0);
    interference_free(i);
    sysroot_close(&root);
    test_dir_free(dir);
    return record;
}

/* user, system, and what it waited for of each */
#define STAT_OF(pid, comm, user, waited)                                                           \
    pid " (" comm ") S 1 77 77 0 -1 0 500 0 3 0 " user " 0 " waited " 0 20 0 5 0 9999 1000000 "    \
        "250 1\n"

static void a_shell_and_its_child(const char *dir)
{
    test_write_text(dir, "proc/77/stat", STAT_OF("77", "shell", "5", "1000"));
    test_write_text(dir, "proc/78/stat", STAT_OF("78", "child", "300", "0"));
}

/* The child ended after 10 ticks more, and others came and went for 40 ticks. */
static void the_shell_alone(const char *dir)
{
    test_write_text(dir, "proc/77/stat", STAT_OF("77", "shell", "5", "1350"));
    test_write_text(dir, "proc/78/stat", "");
}

static void processes_that_come_and_go_between_two_looks_are_counted(void **state)
{
    cJSON *record = two_looks(a_shell_and_its_child, the_shell_alone);
    double secs = json_get(record, "secs")->valuedouble;
    double hz = (double) sysconf(_SC_CLK_TCK);

    (void) state;
    assert_close(json_get(record, "other_cpu_pct")->valuedouble, 50 / hz / secs * 100,
                 0.05); /* secs has two decimals */
    assert_string_equal(
        json_get(cJSON_GetArrayItem(json_get(record, "busiest_others"), 0), "name")->valuestring,
        "(processes that ended)");
    cJSON_Delete(record);
}

static void nothing(const char *dir)
{
    (void) dir;
}

/* Both processors were busy for the whole time, whoever it was. */
static void a_busy_machine(const char *dir)
{
    test_write_text(dir, "proc/stat", "cpu  1040 0 1000 100000 0 0 0 10 0 0\n");
}

static void time_that_no_process_shows_is_others(void **state)
{
    cJSON *record = two_looks(nothing, a_busy_machine);
    double secs = json_get(record, "secs")->valuedouble;
    double hz = (double) sysconf(_SC_CLK_TCK);

    (void) state;
    /* 40 ticks, less what counting by ticks may err. */
    assert_true(json_get(record, "other_cpu_pct")->valuedouble > 40 / hz / secs * 100 - 30);
    cJSON_Delete(record);
}

/* Interrupts are nobody's, and small differences say nothing. */
static void a_machine_with_interrupts(const char *dir)
{
    test_write_text(dir, "proc/stat", "cpu  1001 0 1000 100000 0 40 40 10 0 0\n");
}

static void interrupts_are_not_others(void **state)
{
    cJSON *record = two_looks(nothing, a_machine_with_interrupts);

    (void) state;
    assert_close(json_get(record, "other_cpu_pct")->valuedouble, 0, 1e-9);
    cJSON_Delete(record);
}

static void interference_records_what_changed(void **state)
{
    char *dir = new_machine();
    struct sysroot root;
    struct interference *i = NULL;
    struct err e = ERR_INIT;
    cJSON *record = NULL;

    (void) state;
    assert_int_equal(sysroot_open(dir, &root, &e), 0);
    test_write_text(dir, "proc/77/stat", "77 (busy) R" STAT_TAIL);
    assert_int_equal(interference_new(&root, NULL, NULL, &i, &e), 0);
    test_write_text(
        dir, "proc/77/stat",
        "77 (busy) R 1 77 77 0 -1 0 500 0 3 0 112 134 0 0 20 0 5 0 9999 1000000 250 1\n");
    test_write_text(
        dir, "proc/78/stat",
        "78 (fresh) R 1 77 77 0 -1 0 500 0 3 0 40 0 0 0 20 0 5 0 10999 1000000 250 1\n");
    test_write_text(dir, "proc/loadavg", "3.50 0.1 0.1 1/100 999\n");
    test_write_text(dir, "proc/stat", "cpu  1100 0 1100 100200 0 0 0 110 0 0\n");
    test_write_text(dir, "proc/vmstat", "pswpin 15\npswpout 106\n");
    test_write_text(dir, "proc/pressure/cpu",
                    "some avg10=12.00 avg60=0.00 avg300=0.00 total=900000\n");
    test_write_text(dir, "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "8\n");
    test_write_text(dir, "sys/fs/cgroup/memory.max", "4096\n");
    assert_int_equal(interference_record(i, 0, NULL, &record, &e), 0);
    interference_free(i);
    assert_close(json_get(record, "load_first")->valuedouble, 0.25, 1e-9);
    assert_close(json_get(record, "load_max")->valuedouble, 3.5, 1e-9);
    assert_close(json_get(record, "swapped_in_pages")->valuedouble, 10, 1e-9);
    assert_close(json_get(record, "swapped_out_pages")->valuedouble, 100, 1e-9);
    assert_close(json_get(record, "thermal_throttles")->valuedouble, 5, 1e-9);
    /* 100 of 200 + 200 + 100 ticks. */
    assert_close(json_get(record, "steal_pct")->valuedouble, 20, 1e-9);
    assert_true(json_get(record, "other_cpu_pct")->valuedouble > 0);
    assert_true(json_get(json_get(record, "pressure_pct"), "cpu")->valuedouble > 0);
    assert_true(cJSON_IsNull(
        json_get(json_get(record, "pressure_pct"), "io"))); /* not there: unknown, not 0 */
    assert_string_equal(json_get(record, "memory_limit")->valuestring, "4096");
    assert_int_equal(cJSON_GetArraySize(json_get(record, "busiest_others")), 2);
    cJSON_Delete(record);
    sysroot_close(&root);
    test_dir_free(dir);
}

static void quiet_limits_are_judged(void **state)
{
    cJSON *record = json("{\"other_cpu_pct\": 30, \"load_first\": 0.5, \"steal_pct\": null, "
                         "\"pressure_pct\": {\"cpu\": 4, \"memory\": 0}}");
    static const struct {
        const char *quiet;
        bool alone, together;
    } rows[] = {
        {"{}", false, false},
        {"{\"max_other_cpu_pct\": 40}", false, false},
        {"{\"max_other_cpu_pct\": 20}", true, true},
        {"{\"max_load\": 0.4}", true, false},   /* the program itself makes load */
        {"{\"max_steal_pct\": 5}", true, true}, /* unknown under a limit */
        {"{\"max_pressure_pct\": 3}", true, false},
    };
    char why[200];

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cJSON *quiet = json(rows[i].quiet);

        assert_int_equal(interference_breaks(quiet, record, true, why, sizeof why), rows[i].alone);
        assert_int_equal(interference_breaks(quiet, record, false, why, sizeof why),
                         rows[i].together);
        cJSON_Delete(quiet);
    }
    cJSON_Delete(record);
}

/* A cgroup v2 that is only a directory: everything but the kernel. */
static void box_works_on_a_made_up_mount(void **state)
{
    char *dir = test_dir_new();
    struct box box;
    struct box_reading r;
    struct stat st;
    char *made = test_join(dir, "user/cleanrun-run-1");

    (void) state;
    test_write_text(dir, "cgroup.controllers", "cpu memory\n");
    test_write_text(dir, "user/cgroup.procs", "");
    /* A real mount makes these files with the group; here they are not there: no box, with the
     * reason. */
    box_open(&box, dir, "0::/user\n", "run-1");
    assert_false(box_present(&box));
    assert_non_null(strstr(box.why_not, "cannot use the group"));
    assert_int_equal(stat(made, &st), -1); /* nothing is left */
    box_close(&box);

    box_open(&box, dir, "12:memory:/user\n", "run-1");
    assert_false(box_present(&box));
    assert_non_null(strstr(box.why_not, "in no cgroup v2"));
    box_open(&box, dir, "0::/user/../..\n", "run-1");
    assert_false(box_present(&box));

    /* v1 and v2 side by side: the v2 tree is below. */
    test_write_text(dir, "hybrid/memory/tasks", "");
    char *hybrid = test_join(dir, "hybrid");

    box_open(&box, hybrid, "0::/user\n", "run-1");
    assert_non_null(strstr(box.why_not, "no cgroup v2 is mounted"));
    test_write_text(dir, "hybrid/unified/cgroup.controllers", "");
    test_write_text(dir, "hybrid/unified/user/cgroup.procs", "");
    box_open(&box, hybrid, "0::/user\n", "run-1");
    assert_false(box_present(&box));
    assert_non_null(strstr(box.why_not, "cannot use the group"));
    free(hybrid);

    /* As if the kernel had made them. */
    box = (struct box){.dir_fd = -1, .parent_fd = -1, .procs_fd = -1};
    test_write_text(dir, "user/cleanrun-run-1/cpu.stat",
                    "usage_usec 5000\nuser_usec 3000\nsystem_usec 2000\nnr_periods 9\nnr_throttled "
                    "4\nthrottled_usec 77\n");
    test_write_text(dir, "user/cleanrun-run-1/memory.current", "4096\n");
    test_write_text(dir, "user/cleanrun-run-1/memory.peak", "8192\n");
    test_write_text(dir, "user/cleanrun-run-1/memory.events", "low 0\noom 1\noom_kill 2\n");
    test_write_text(dir, "user/cleanrun-run-1/cgroup.kill", "");
    struct err e = ERR_INIT;
    struct sysroot group;

    assert_int_equal(sysroot_open(made, &group, &e), 0);
    box.dir_fd = group.fd;
    box_read(&box, &r);
    assert_true(r.has_cpu && r.has_memory && r.has_events && r.has_throttle);
    assert_int_equal(r.usage_us, 5000);
    assert_int_equal(r.memory_peak_bytes, 8192);
    assert_int_equal(r.oom_kills, 2);
    assert_int_equal(r.throttled_us, 77);
    box_kill(&box);
    char *kill_file = test_join(made, "cgroup.kill");
    char *written = test_read_path(kill_file, NULL);

    assert_string_equal(written, "1");
    sysroot_close(&group);
    free(written);
    free(kill_file);
    free(made);
    test_dir_free(dir);
}

static void box_holds_a_real_child_where_cgroup_v2_is_writable(void **state)
{
    struct sysroot life;
    struct err e = ERR_INIT;
    struct box box;

    (void) state;
    assert_int_equal(sysroot_open("/", &life, &e), 0);
    char *self = sysroot_read(&life, "proc/self/cgroup");

    box_open(&box, "/sys/fs/cgroup", self ? self : "", "cleanrun-test-box");
    free(self);
    sysroot_close(&life);
    if (!box_present(&box)) {
        print_message("SKIPPED cgroup v2: %s\n", box.why_not);
        skip();
    }
    const char *const argv[] = {"sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
                                NULL};
    const char *const envp[] = {NULL};
    struct child_spec spec = CHILD_SPEC_INIT;
    struct child child;
    struct child_status status;
    struct box_reading r;

    spec.argv = argv;
    spec.envp = envp;
    spec.path = "/bin";
    spec.cgroup_procs_fd = box.procs_fd;
    assert_int_equal(child_start(&spec, &child, &e), 0);
    assert_int_equal(child_wait(&child, &status, &e), 0);
    box_read(&box, &r);
    assert_true(r.has_cpu && r.usage_us > 0);
    child_fini(&child);
    box_close(&box);
}

struct listed {
    uint64_t count, next;
};

static void expect_next(void *context, uint64_t number)
{
    struct listed *l = context;

    assert_int_equal(number, l->next);
    l->next += 7;
    l->count++;
}

/* No number is taken for two where a read ends, whatever their lengths. */
static void a_long_list_is_read_whole(void **state)
{
    static const uint64_t firsts[] = {1, 95, 996, 9990, 99983, 999999};
    char *dir = test_dir_new();
    struct buf text;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(firsts); i++) {
        struct listed l = {.next = firsts[i]};
        AUTO_FREE char *path = NULL;

        buf_init(&text, 1 << 20);
        for (uint64_t k = 0; k < 3000; k++)
            buf_printf(&text, "%lu ", firsts[i] + k * 7);
        test_write_text(dir, "children", text.data);
        buf_fini(&text);
        assert_true(asprintf(&path, "%s/children", dir) > 0);
        AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

        assert_true(procfs_each_number(fd, expect_next, &l));
        assert_int_equal(l.count, 3000);
    }
    test_dir_free(dir);
    assert_false(procfs_each_number(-1, expect_next, NULL));
}

static void threads_are_read_when_the_first_ended(void **state)
{
    char *dir = test_dir_new();
    struct sysroot root;
    struct proc_stat st;
    struct err e = ERR_INIT;

    (void) state;
    test_write_text(dir, "proc/5/task/5/stat",
                    "5 (a) Z 1 5 5 0 -1 0 9 0 0 0 1 2 0 0 20 0 2 0 100 0 0 0\n");
    test_write_text(dir, "proc/7/task/7/stat",
                    "7 (a) Z 1 5 5 0 -1 0 9 0 0 0 1 2 0 0 20 0 2 0 100 0 0 0\n");
    test_write_text(dir, "proc/5/task/6/stat",
                    "6 (a) S 1 5 5 0 -1 0 9 0 0 0 1 2 0 0 20 0 2 0 100 1 77 0\n");
    assert_int_equal(sysroot_open(dir, &root, &e), 0);
    assert_int_equal(proc_live_thread(&root, 5, &st), PROC_LIVE_FOUND);
    assert_int_equal(st.rss_pages, 77);
    assert_int_equal(proc_live_thread(&root, 7, &st), PROC_LIVE_NONE);
    assert_int_equal(proc_live_thread(&root, 8, &st), PROC_LIVE_NONE);
    sysroot_close(&root);
    test_dir_free(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_list_is_read_whole),
        cmocka_unit_test(threads_are_read_when_the_first_ended),
        cmocka_unit_test(stat_is_parsed_from_the_last_parenthesis),
        cmocka_unit_test(cpu_times_and_pressure_are_parsed),
        cmocka_unit_test(every_fact_is_read),
        cmocka_unit_test(a_changed_machine_has_other_facts),
        cmocka_unit_test(a_control_that_cannot_be_read_is_unknown),
        cmocka_unit_test(processors_behind_an_offline_one_count),
        cmocka_unit_test(what_names_an_installation_is_no_fact),
        cmocka_unit_test(an_empty_machine_has_unknown_facts_not_invented_ones),
        cmocka_unit_test(facts_in_another_encoding_are_told_and_differ),
        cmocka_unit_test(host_limits_name_what_breaks_them),
        cmocka_unit_test(doctor_names_the_unfit),
        cmocka_unit_test(processes_that_come_and_go_between_two_looks_are_counted),
        cmocka_unit_test(time_that_no_process_shows_is_others),
        cmocka_unit_test(interrupts_are_not_others),
        cmocka_unit_test(interference_records_what_changed),
        cmocka_unit_test(quiet_limits_are_judged),
        cmocka_unit_test(box_works_on_a_made_up_mount),
        cmocka_unit_test(box_holds_a_real_child_where_cgroup_v2_is_writable),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/procfs", tests, NULL, NULL);
}
