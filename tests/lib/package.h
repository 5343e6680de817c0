/*
 * package: signed evidence for tests of the server: a minimal valid run directory whose acceptance
 * and audit are really computed, with an option for each lie, sealed by the product's own code.
 * Helpers fail the running test themselves.
 */
#pragma once

#include "tests/lib/support.h"

#include "base/digest.h"
#include "evidence/sign.h"

#define PACKAGE_PROJECT "demo/kvcache"
#define PACKAGE_GATE "kvcache-50k"
#define PACKAGE_CLASS "demo"
#define PACKAGE_COMMIT "0123456789abcdef0123456789abcdef01234567"
#define PACKAGE_REPORT "kvcache/50000.json"

enum package_lie {
    PACKAGE_HONEST,
    PACKAGE_ACCEPTANCE_PASS,  /* acceptance.json and manifest say PASS whatever was computed; hashes
                                 redone */
    PACKAGE_ACCEPTANCE_VALUE, /* one `actual` of acceptance.json is another number */
    PACKAGE_ACCEPTANCE_NONE,  /* acceptance.json is left out and the status is FAIL */
    PACKAGE_AUDIT_OK,         /* audit.json and manifest say OK */
    PACKAGE_COVERAGE_VALUE,   /* every window of the manifest's coverage has one sample more */
    PACKAGE_AUDIT_VALUE,      /* one `current` of audit.json is another number */
};

/* Zeroed fields mean the defaults beside them. */
struct package_options {
    const char *project;       /* PACKAGE_PROJECT */
    const char *gate;          /* PACKAGE_GATE */
    const char *machine_class; /* PACKAGE_CLASS */
    const char *run;           /* a fresh id */
    const char *mode;          /* "clean" */
    const char *commit;        /* PACKAGE_COMMIT */
    const char *command;       /* "{executable}": another one is another experiment */
    const char *fact;          /* value of every machine fact; "same" */
    const char *baseline_run;  /* a run directory to compare with locally; NULL: none */
    const char *definition;    /* text of a cleanrun.yaml that holds the gate; one is made */
    const char *report;        /* the report's text; one is made */
    const char *report_name;   /* the definition's */
    const char *samples;       /* text of samples/process.csv; three rows */
    const char *markers;       /* JSON array of phase markers; none */
    const char *control;       /* run id of a diagnostic run's clean one; none */
    double probes;             /* 1.31, gated: higher is worse, tolerance 1 % */
    double rate;               /* 50000; at least 49000 is accepted */
    double tolerance_pct;      /* 1 */
    double min_rate;           /* 49000 */
    const char *step_report;   /* text of results/warm/1.json, not checked when sealed; none */
    const char *forge;  /* JSON Pointer into the manifest to exchange before it is signed, … */
    const char *forged; /* … and the JSON text that is put there */
    size_t padding;     /* bytes of run.log */
    int capacity;       /* 20000, an identity field */
    int confirm;        /* 0: not in the definition */
    int executable;     /* 1: which executable it was */
    int exit_code;
    int signal;         /* the program died of it, so it has no exit code */
    int faults;         /* what the runner found amiss, besides acceptance: the status is FAIL */
    bool faults_untold; /* host.json does not say how many */
    enum package_lie lie;
    bool dirty;
    bool source_changed;
    bool build_only;
    bool report_missing;
    bool derive; /* the report gets the section /resources that a runner derives from the samples */
};

struct package {
    char *dir; /* temporary root */
    char *run_dir;
    char *tar; /* path; beside it .dsse.json, .sigstore.json, .sig */
    char run[32];
    char *archive;
    size_t archive_len;
    char *envelope;
    size_t envelope_len;
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];
};

struct private_key *package_key_new(void);
/* SPKI PEM of its public half; caller frees. */
char *package_key_pem(const struct private_key *key);
void package_make(const struct package_options *options, const struct private_key *key,
                  struct package *out);
void package_free(struct package *p); /* accepts zeroed */
/* A run id that no other call gives. */
void package_run_id(char out[32]);
