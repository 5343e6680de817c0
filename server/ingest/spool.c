#include "server/ingest/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"
#include "evidence/verify_stream.h"
#include "server/ingest/pipeline.h"
#include "server/store/store_private.h"

#define NAME_BYTES 16
#define FLUSH_BYTES                                                                                \
    ((uint64_t) 8 << 20) /* written back while more is received, so that the last fsync is short   \
                          */

/* From this size on two threads hash and write, for so many archives at once; for others the thread
 * that receives does it. */
#define PIPELINE_FROM ((uint64_t) 16 << 20)
#define PIPELINES_MAX 4u

struct spool {
    struct store *store;
    int64_t project_id;
    struct digest expected;
    uint64_t length;
    uint64_t received;
    uint64_t flushed;
    struct verify_stream *stream;
    struct pipeline *pipeline; /* of a large archive; file and stream are its then */
    int fd;
    char name[2 * NAME_BYTES + 1]; /* in spool/; "" once it was moved */
};

static int create(struct spool *sp, struct err *e)
{
    uint8_t random[NAME_BYTES];
    int dir = blobs_spool_dir(store_blobs(sp->store));

    if (random_bytes(random, sizeof random, e) < 0)
        return -1;
    text_hex(random, sizeof random, sp->name);
    sp->fd = openat(dir, sp->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (sp->fd < 0) {
        int saved = errno;

        sp->name[0] = '\0';
        errno = saved;
        return err_errno(e, "spool.create", "cannot make a spool file");
    }
    /* A full disk is told before the body is received; file systems without reservations tell it
     * later. */
    if (sp->length > 0 && fallocate(sp->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t) sp->length) < 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS)
        return err_errno(e, "spool.reserve", "no space for the archive");
    return 0;
}

/* Without a thread the spool works the same, so not getting one is no error. */
static void start_pipeline(struct spool *sp)
{
    if (sp->length < PIPELINE_FROM)
        return;
    if (atomic_fetch_add(store_pipelines(sp->store), 1) >= PIPELINES_MAX ||
        pipeline_start(sp->fd, sp->stream, &sp->pipeline, NULL) < 0)
        (void) atomic_fetch_sub(store_pipelines(sp->store), 1);
}

static void stop_pipeline(struct spool *sp)
{
    if (!sp->pipeline)
        return;
    pipeline_free(sp->pipeline);
    sp->pipeline = NULL;
    (void) atomic_fetch_sub(store_pipelines(sp->store), 1);
}

int spool_open(struct store *s, int64_t project_id, const struct digest *expected, uint64_t length,
               struct spool **out, struct err *e)
{
    struct spool *sp;

    if (length > LIMIT_ARCHIVE)
        return err_set(e, ERR_LIMIT, "spool.size", "an archive may have at most %zu bytes",
                       LIMIT_ARCHIVE);
    sp = calloc(1, sizeof *sp);
    if (!sp)
        return err_memory(e, "spool.memory");
    sp->store = s;
    sp->project_id = project_id;
    sp->expected = *expected;
    sp->length = length;
    sp->fd = -1;
    sp->stream = verify_stream_new();
    if (!sp->stream) {
        spool_free(sp);
        return err_memory(e, "spool.memory");
    }
    if (create(sp, e) < 0) {
        spool_free(sp);
        return -1;
    }
    start_pipeline(sp);
    *out = sp;
    return 0;
}

int spool_write(struct spool *sp, const void *bytes, size_t len, struct err *e)
{
    if (len > sp->length - sp->received)
        return err_set(e, ERR_LIMIT, "spool.long", "more bytes came than were announced");
    sp->received += len;
    if (sp->pipeline)
        return pipeline_put(sp->pipeline, bytes, len, e);
    if (file_write_all(sp->fd, bytes, len, e) < 0)
        return -1;
    verify_stream_feed(sp->stream, bytes, len);
    if (sp->received - sp->flushed >= FLUSH_BYTES) {
        (void) sync_file_range(sp->fd, (off_t) sp->flushed, (off_t) (sp->received - sp->flushed),
                               SYNC_FILE_RANGE_WRITE); /* a hint; fsync decides */
        sp->flushed = sp->received;
    }
    return 0;
}

int spool_commit(struct spool *sp, bool *out_new, struct err *e)
{
    AUTO_ARCHIVE_INDEX struct archive_index *index = NULL;
    bool is_new = false;

    if (sp->received != sp->length)
        return err_set(e, ERR_INPUT, "spool.short", "the archive ended early");
    if (sp->pipeline && pipeline_finish(sp->pipeline, e) < 0)
        return -1;
    stop_pipeline(sp);
    if (verify_stream_finish(sp->stream, &index, e) < 0)
        return -1;
    if (!digest_equal(&index->digest, &sp->expected)) {
        char hex[DIGEST_HEX_SIZE];

        digest_hex(&index->digest, hex);
        return err_set(e, ERR_TRUST, "spool.digest", "the bytes received have SHA-256 %s", hex);
    }
    if (blobs_adopt(store_blobs(sp->store), sp->fd, sp->name, &sp->expected, STEAL(index), e) < 0)
        return -1;
    sp->name[0] = '\0';
    /* The object is durable before the row that names it. */
    if (store_blob_put(sp->store, sp->project_id, &sp->expected, sp->length, &is_new, e) < 0)
        return -1;
    *out_new = is_new;
    return 0;
}

void spool_free(struct spool *sp)
{
    if (!sp)
        return;
    stop_pipeline(sp); /* before the stream and the file that it uses */
    verify_stream_free(sp->stream);
    if (sp->name[0])
        (void) unlinkat(blobs_spool_dir(store_blobs(sp->store)), sp->name,
                        0); /* the next start removes it otherwise */
    cleanup_fd(&sp->fd);
    free(sp);
}
