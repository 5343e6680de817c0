/* Declared and stable only: nothing here changes between two boots of the same machine in the same
 * state. */
#include "experiment/facts.h"

#include "base/cleanup.h"

const struct fact facts_table[] = {
    {"architecture", "Architecture", "the instruction set"},
    {"cpu_model", "CPU model",
     "cores, caches and clock: the largest single influence on every number"},
    {"cpu_flags", "CPU features",
     "libraries choose code paths by them, and a hypervisor may hide some"},
    {"cpu_count_logical", "Logical CPUs", "how many threads run at once"},
    {"cpu_count_physical", "Physical cores", "whether logical CPUs share execution units"},
    {"cpu_allowed", "CPUs this run may use",
     "affinity and cpuset: the share of the machine that was there"},
    {"cpu_l3", "Last-level cache",
     "what fits before memory is asked; cloud types differ under one model name"},
    {"microcode", "Microcode", "updates change the cost of branches, fences and system calls"},
    {"smt", "Simultaneous multithreading", "two threads of one core share its caches and units"},
    {"boost", "Clock boost", "boosted clocks depend on heat and on neighbours"},
    {"scaling_driver", "Frequency driver", "who decides about the clock"},
    {"governor", "Frequency governor", "how fast the clock follows the load"},
    {"memory", "Memory", "what fits; rounded, because the kernel's own reservations vary"},
    {"memory_limit", "Memory limit of the cgroup", "reclaim begins there, not at the end of RAM"},
    {"page_size", "Page size", "granularity of faults and resident size"},
    {"swap", "Swap", "whether memory may leave RAM"},
    {"swappiness", "Swappiness", "how eagerly memory leaves RAM and caches are dropped"},
    {"numa_nodes", "NUMA nodes", "remote memory costs more"},
    {"thp", "Transparent huge pages", "page faults, TLB misses and resident size"},
    {"aslr", "Address randomisation", "layout noise between runs, and its absence"},
    {"kernel", "Kernel", "scheduler, memory management and network stack"},
    {"kernel_build", "Kernel build",
     "the same release built otherwise: preemption, back-ported mitigations"},
    {"kernel_cmdline", "Kernel command line",
     "digest without root, console and UUIDs: isolation, huge pages and timers are set there"},
    {"mitigations", "CPU mitigations", "they cost between nothing and a third"},
    {"clocksource", "Clock source", "what reading the time costs"},
    {"hypervisor", "Hypervisor",
     "who else shares the machine, and what privileged operations cost"},
    {"os", "Operating system", "distribution and version: defaults of everything not named here"},
    {"libc", "C library", "malloc, memcpy and threads"},
    {"toolchain", "Toolchain",
     "compiler and version, as the definition's toolchain command prints it"},
    {"allocator", "Allocator", "as the definition declares it"},
    {"features", "Build features", "as the definition declares them"},
};

const size_t facts_count = ARRAY_LEN(facts_table);
