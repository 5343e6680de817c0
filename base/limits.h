/*
 * limits: the size and count caps of what comes from outside or grows, with their reasons. A cap is
 * checked before memory is taken. Raise one only here. What only one module can know (a buffer of
 * its own, a row of a page) stands at the top of that module.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LIMIT_KIB(n) ((size_t) (n) << 10)
#define LIMIT_MIB(n) ((size_t) (n) << 20)

/* JSON. The deepest real fixture has 12 levels; cJSON recurses. A node costs cJSON 64 bytes, so 1
 * MiB may become 40 MiB. */
#define LIMIT_JSON_DEPTH 16
/* No json_limits may allow more, and no writer writes more: cJSON frees by recursion. */
#define LIMIT_JSON_DEPTH_HARD 512
#define LIMIT_JSON_TOKENS ((size_t) 400000)
#define LIMIT_JSON_DOCUMENT LIMIT_MIB(1) /* ours: manifest, definition, acceptance, audit */
/* A report with embedded samples; the real one with 1,461 samples has 100 KB. */
#define LIMIT_REPORT LIMIT_MIB(4)
#define LIMIT_ENVELOPE LIMIT_KIB(256) /* a DSSE envelope; ours have about 2 KB */
/* The canonical form of any parsed document: escapes make it at most 6 times longer. */
#define LIMIT_CANONICAL LIMIT_MIB(32)
#define LIMIT_SIGNATURES 16 /* per envelope */

/* Definition. */
#define LIMIT_YAML LIMIT_KIB(256)
#define LIMIT_YAML_DEPTH 12
#define LIMIT_GATES 64

/* Evidence. */
#define LIMIT_MEMBERS 4096 /* a manifest of so many entries stays under LIMIT_JSON_DOCUMENT */
#define LIMIT_MEMBER LIMIT_MIB(1024)
#define LIMIT_ARCHIVE LIMIT_MIB(2048)
#define LIMIT_RELNAME 100 /* ustar's name field: no prefix field, no extension */
#define LIMIT_RELNAME_SEGMENTS 8
/* A package of several runs; their own limits bind before it. */
#define LIMIT_PACKAGE_FILES ((size_t) 65536)
#define LIMIT_PACKAGE_INDEX LIMIT_MIB(16) /* its index: about 200 bytes a file */
#define LIMIT_KEYS 256                    /* keys in one keyring */
#define LIMIT_PEM LIMIT_KIB(16)

#define LIMIT_EARLIEST_US INT64_C(1577836800000000) /* 2020: no runner existed before it */
#define LIMIT_CLOCK_SKEW_S 300 /* how far a runner's clock may run ahead of the receiver's */
#define LIMIT_RUN_ID_LAG_S 2   /* run id and started_at are one moment, told in whole seconds */
/* One duration against another of the same run: taken a little before or after. */
#define LIMIT_WALL_SLACK_S 1

/* Durations of a definition: every sum and product of them in nanoseconds fits in 64 bits. */
#define LIMIT_DURATION_MS (INT64_C(366) * 24 * 3600 * 1000)
#define LIMIT_INTERVAL_MS 10 /* shortest between two samples: below it, sampling is the load */

/* Result trees and samples. */
#define LIMIT_TREE_FILES 4096
#define LIMIT_SAMPLES ((size_t) 200000) /* 86,401 s at 2 Hz is 172,802 */
#define LIMIT_SAMPLES_FILE LIMIT_MIB(32)
/* What a `*` of the definition may become is what acceptance.json and audit.json can hold: 512
 * bytes for each in a LIMIT_JSON_DOCUMENT. More is no evidence that is broken: acceptance is FAIL,
 * a comparison is refused (NC-TOO-MANY). */
#define LIMIT_CHECKS 2048 /* acceptance checks of one report; the seed has 199 */
/* Comparisons of one run, and members of one pattern in a report; the seed has 61 reports of about
 * 20. */
#define LIMIT_COMPARISONS 2048
#define LIMIT_METRICS 512
#define LIMIT_PHASE_MARKERS 1024

/* Arenas. */
#define LIMIT_ARENA_REQUEST LIMIT_MIB(1)

/* Runner. */
#define LIMIT_LOG LIMIT_MIB(64) /* run.log, build.log: cut with a note beyond this */
#define LIMIT_BUILD_MESSAGES LIMIT_MIB(64)

/* HTTP. */
#define LIMIT_URL ((size_t) 2048)
#define LIMIT_CONNECTIONS 512 /* 200 concurrent uploads and room for readers */
#define LIMIT_CONNECTION_MEMORY LIMIT_KIB(128)
#define LIMIT_QUEUE 512 /* ingest jobs waiting */
/* Gates, each in one class, of one project: a commit's check names all of them. */
#define LIMIT_PROJECT_GATES 256
/* Kept runs and refused uploads of one commit: its check names all of them. */
#define LIMIT_COMMIT_UPLOADS 2048
#define LIMIT_PAGE LIMIT_MIB(4) /* one rendered page */
