/* Declared and stable only: nothing here changes between two boots of the same machine in the same state. */
#include "experiment/facts.h"

#include "base/cleanup.h"

const struct fact facts_table[] = {
    { "architecture", "Architecture", "Instruction set: other code runs at all." },
    { "cpu_model", "CPU model", "Cores, caches and clock: the largest single influence on every number." },
    { "cpu_flags_sha256", "CPU features", "Digest of the sorted feature flags: libraries choose code paths by them, and a hypervisor may hide some." },
    { "cpu_count_logical", "Logical CPUs", "How many threads run at once." },
    { "cpu_count_physical", "Physical cores", "Whether logical CPUs share execution units." },
    { "cpu_allowed", "CPUs this run may use", "Affinity and cgroup cpuset: the share of the machine that was really there." },
    { "microcode", "Microcode", "Updates change the cost of branches, fences and system calls." },
    { "smt", "Simultaneous multithreading", "Two threads on a core share its caches and units." },
    { "boost", "Clock boost", "Boosted clocks depend on heat and neighbours." },
    { "scaling_driver", "Frequency driver", "Who decides about the clock." },
    { "governor", "Frequency governor", "How fast the clock follows the load." },
    { "memory_total_mib", "Memory (MiB, to 64 MiB)", "What fits; rounded, because the kernel's own reservations vary." },
    { "numa_nodes", "NUMA nodes", "Remote memory costs more." },
    { "swap", "Swap", "Whether memory may leave RAM." },
    { "thp", "Transparent huge pages", "Page faults, TLB misses and RSS." },
    { "page_size", "Page size", "Granularity of RSS and faults." },
    { "memory_limit", "Memory limit of the cgroup", "Reclaim begins at the limit, not at the end of RAM." },
    { "aslr", "Address randomisation", "Layout noise between runs, and its absence." },
    { "kernel_release", "Kernel", "Scheduler, allocator, network stack." },
    { "kernel_cmdline_sha256", "Kernel command line", "Digest without root, boot image and UUIDs: mitigations, isolation, huge pages and timers are set there." },
    { "mitigations_sha256", "CPU mitigations", "Digest of every vulnerability's state: mitigations cost between nothing and a third." },
    { "clocksource", "Clock source", "What reading the time costs." },
    { "virtualization", "Virtualisation", "A hypervisor, container or neither." },
    { "os_release", "Operating system", "Distribution and version: defaults of everything not named here." },
    { "libc", "C library", "malloc, memcpy, threads." },
    { "toolchain", "Toolchain", "Compiler and version, as the definition's toolchain command prints it." },
    { "allocator", "Allocator", "As declared by the definition." },
};

const size_t facts_count = ARRAY_LEN(facts_table);
