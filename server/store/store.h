/*
 * store: everything the server remembers: the SQLite database, the content-addressed objects and
 * the server's signing key, below one data directory: DATA/cleanrun.db (-wal, -shm)
 * DATA/objects/ab/cdef…   DATA/spool/   DATA/server-key.pem DATA/serve.lock  held by a running
 * server    DATA/write.lock  held for each write and checkpoint Knows nothing of HTTP. A store may
 * be used by any thread: reads borrow a connection from the pool for one call, writes take the one
 * writing connection. Strings handed out are heap copies.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/sign.h"

struct blobs;
struct db;
struct store;

enum store_mode {
    STORE_SERVE, /* the running server: alone on the directory, cleans the spool, makes the key,
                    checkpoints */
    STORE_ADMIN, /* a command, also while a server runs: writes under write.lock, never checkpoints
                  */
};

/* Makes the directory when absent, applies migrations, opens connections. readers: size of the pool
 * (0: 1). A second STORE_SERVE on one directory is ERR_BUSY; an altered or newer migration is
 * ERR_CONFLICT. */
int store_open(const char *data, enum store_mode mode, unsigned readers, struct store **out,
               struct err *e) MUST_CHECK;
void store_close(struct store *s); /* accepts NULL; checkpoints when serving */

/* "https://perf.example" or "": the verifier's identity in signed verdicts. Before the first
 * ingest. */
int store_set_base_url(struct store *s, const char *base_url, struct err *e) MUST_CHECK;
const char *store_base_url(const struct store *s);

/* Grows by one with every committed write of any process: what was rendered at another value may be
 * stale. */
int store_generation(struct store *s, uint64_t *out, struct err *e) MUST_CHECK;
/* Reads one row and looks at the object directory; for /readyz. */
int store_ready(struct store *s, struct err *e) MUST_CHECK;
/* Checkpoints with truncation when serving and the writer is idle; called by the ingest thread when
 * it waits. */
void store_idle(struct store *s);

struct blobs *store_blobs(struct store *s);
/* The server's key; NULL only in STORE_ADMIN when no server ever started here. */
const struct private_key *store_key(const struct store *s);

/* Projects. */
struct store_project {
    int64_t id;
    bool is_private;
    bool tickets_required;
    int64_t deadline_s; /* a commit's missing gates are PENDING this long after its first run */
};
/* ERR_NOTFOUND when there is none. */
int store_project_get(struct store *s, const char *name, struct store_project *out,
                      struct err *e) MUST_CHECK;

/* Tokens: looked up by the SHA-256 of the token text. */
struct store_token {
    bool found;      /* known and not revoked */
    unsigned scopes; /* bits as granted; what they mean is said in server/http/auth.h */
    bool all_projects;
    int64_t project_id; /* when not all_projects */
    char name[65];      /* of the token, for logs */
};
int store_token_find(struct store *s, const struct digest *hash, struct store_token *out,
                     struct err *e) MUST_CHECK;

/* Who asks: what documents over several projects may show. */
struct store_viewer {
    bool all;           /* sees every project */
    int64_t project_id; /* sees this private project besides the public ones; 0: none */
};

/* Blobs of one project; a digest stored for another project is not there. */
int store_blob_has(struct store *s, int64_t project_id, const struct digest *digest, bool *out,
                   struct err *e) MUST_CHECK;

/* Runs. */
struct store_run {
    int64_t id;
    int64_t project_id;
    char *project, *gate, *run, *machine_class, *mode, *status, *commit;
    char *verdict;  /* word as it is now, or NULL: diagnostic and build-only runs have none */
    char *baseline; /* judged against, or NULL */
    char *keyid;
    bool is_private; /* the project's */
    bool dirty;
    struct digest archive;
    uint64_t archive_size;
    int64_t started_us, finished_us, received_us;
    bool damaged;       /* its stored evidence was found damaged: the verdict is INVALID */
    int64_t revoked_us; /* its runner's key was revoked since then, before the run was received: the
                           verdict is INVALID; else 0 */
    int64_t judge_revoked_us; /* the same of its baseline's run: an OK or REGRESSION is
                                 NON_COMPARABLE; else 0 */
};
/* By run id; ERR_NOTFOUND. */
int store_run_get(struct store *s, const char *run, struct store_run *out,
                  struct err *e) MUST_CHECK;
void store_run_fini(struct store_run *r); /* accepts zeroed */
#define AUTO_STORE_RUN __attribute__((cleanup(store_run_fini)))

enum store_document {
    STORE_MANIFEST,         /* bytes of the package */
    STORE_DEFINITION,       /* bytes of the package */
    STORE_ACCEPTANCE,       /* as computed here under the reviewed policy */
    STORE_AUDIT,            /* as computed here against the reviewed baseline */
    STORE_VERDICT,          /* cleanrun-verdict/1; absent for diagnostic and build-only runs */
    STORE_ANSWER,           /* the body that answered the upload, given again on repetition */
    STORE_VERIFY,           /* cleanrun-verify/1: the stages */
    STORE_ENVELOPE,         /* the runner's DSSE as received */
    STORE_VERDICT_ENVELOPE, /* the server's DSSE over the verdict */
    STORE_DOCUMENTS,
};
/* Stored bytes, kept verbatim; NUL after them; caller frees. ERR_NOTFOUND. */
int store_run_document(struct store *s, const char *run, enum store_document kind, char **out,
                       size_t *out_len, struct err *e) MUST_CHECK;

/* A member of the evidence by path: position in the archive. ERR_NOTFOUND. */
struct store_member {
    uint64_t offset, size;
    struct digest digest;
    char role[32];
};
int store_run_member(struct store *s, const char *run, const char *path, struct store_member *out,
                     struct err *e) MUST_CHECK;
/* The run's archive, opened for pread, after its bytes were checked (blobs_open): ERR_TRUST
 * "blob.damaged". */
int store_run_open(struct store *s, const char *run, int *out_fd, struct store_run *out_run,
                   struct err *e) MUST_CHECK;
/* SPKI PEM of the key that signed the run (also when revoked since). Caller frees. */
int store_run_key_pem(struct store *s, const char *run, char **out_pem, struct err *e) MUST_CHECK;

/* Baselines: run may be NULL for imported history. */
struct store_baseline {
    char *id, *project, *gate, *machine_class, *run, *commit, *reviewer, *reason;
    int64_t project_id, at_us;
    bool is_private, legacy, current;
};
int store_baseline_get(struct store *s, const char *id, struct store_baseline *out,
                       struct err *e) MUST_CHECK;
void store_baseline_fini(struct store_baseline *b);
#define AUTO_STORE_BASELINE __attribute__((cleanup(store_baseline_fini)))

/* Looks at one object after *cursor, which moves on and begins again after the last: damage that
 * nobody asked for is found, too. For idle moments. */
void store_scrub(struct store *s, struct digest *cursor);

/* Figures for /metrics. */
struct store_figures {
    uint64_t projects, runs, baselines, attempts, blobs, blob_bytes;
    uint64_t verdicts[8]; /* by enum verdict */
};
int store_figures(struct store *s, struct store_figures *out, struct err *e) MUST_CHECK;

static inline void cleanup_store(struct store **s)
{
    store_close(*s);
}
#define AUTO_STORE __attribute__((cleanup(cleanup_store)))
