#include "runner/host.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"
#include "experiment/facts.h"
#include "runner/host_facts.h"

/* Declared features in the definition's order; none declared is the known fact "none". */
static char *features_text(const cJSON *features)
{
    const cJSON *item = NULL;
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_KIB(16));
    cJSON_ArrayForEach(item, features) {
        if (cJSON_IsString(item))
            buf_printf(&b, "%s%s", b.len ? "," : "", item->valuestring);
    }
    if (b.failed)
        return NULL;
    return b.len ? buf_take(&b, NULL) : strdup("none");
}

static char *fact_text(const struct sysroot *root, const struct host_build *build, const char *name)
{
    const struct host_reader *reader = host_reader_find(name);

    if (reader)
        return reader->read(root);
    if (build && !strcmp(name, "toolchain"))
        return build->toolchain ? strdup(build->toolchain) : NULL;
    if (build && !strcmp(name, "allocator"))
        return build->allocator ? strdup(build->allocator) : NULL;
    if (build && !strcmp(name, "features"))
        return features_text(build->features);
    return NULL;
}

int host_facts(const struct sysroot *root, const struct host_build *build, cJSON **out,
               struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};

    json_doc_init_object(&d);
    for (size_t i = 0; i < facts_count; i++) {
        AUTO_FREE char *text = fact_text(root, build, facts_table[i].name);

        json_add_string(&d, NULL, facts_table[i].name, text);
    }
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}

static void add_reading(struct json_doc *d, const struct sysroot *root, const char *key,
                        const char *file)
{
    AUTO_FREE char *line = sysroot_line(root, file);
    double number = 0;

    if (line && num_parse_double(line, strlen(line), &number))
        json_add_double(d, NULL, key, number);
    else
        json_add_string(d, NULL, key, line);
}

int host_readings(const struct sysroot *root, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_FREE char *meminfo = sysroot_read(root, "proc/meminfo");
    AUTO_FREE char *uptime = sysroot_line(root, "proc/uptime");
    AUTO_FREE char *load = sysroot_line(root, "proc/loadavg");
    uint64_t available = 0;
    double number = 0;

    json_doc_init_object(&d);
    add_reading(&d, root, "cpu_khz", "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
    add_reading(&d, root, "temperature_millidegrees", "sys/class/thermal/thermal_zone0/temp");
    add_reading(&d, root, "memory_limit", "sys/fs/cgroup/memory.max");
    add_reading(&d, root, "open_files", "proc/sys/fs/file-nr");
    add_reading(&d, root, "perf_event_paranoid", "proc/sys/kernel/perf_event_paranoid");
    if (meminfo && procfs_field_number(meminfo, "MemAvailable", &available))
        json_add_int(&d, NULL, "memory_available_kib", (int64_t) available);
    else
        json_add_null(&d, NULL, "memory_available_kib");
    if (uptime && num_parse_double(uptime, strcspn(uptime, " "), &number))
        json_add_double(&d, NULL, "uptime_secs", number);
    if (load && num_parse_double(load, strcspn(load, " "), &number))
        json_add_double(&d, NULL, "load", number);
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}
