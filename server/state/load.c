#include "exec/exec.h"
#include "state/internal.h"

#include <stdio.h>
#include <unistd.h>

/*
 * Loading many keys: they are written as files of RocksDB's own, which it then takes in whole. That spares the log,
 * the write buffers and most of the compaction that as many batches would cost.
 */

#define LOAD_FILE_SIZE ((uint64_t)64 << 20) /* a file is closed when it is larger */

/* So many files that overlap begin a compaction: RocksDB's own number, and while much is loaded fewer than would hold
 * up writes (20). Their size, which begins one too, counts only where nothing is loaded. */
#define OVERLAPPING_FILES 4
#define OVERLAPPING_FILES_LOADING 16
#define OVERLAPPING_SIZE_LOADING ((uint64_t)4 << 30)

static void set_patience(struct tarn_state *state, int files, uint64_t size)
{
    static const char *const names[] = {"level0_file_num_compaction_trigger",
                                        "max_bytes_for_level_base"};
    char texts[2][24];
    const char *const values[] = {texts[0], texts[1]};
    snprintf(texts[0], sizeof texts[0], "%d", files);
    snprintf(texts[1], sizeof texts[1], "%" PRIu64, size);
    tarn_state__enter(state);
    for (int i = 0; state->db != NULL && i < TARN_FAMILY_COUNT; i++) {
        char *error = NULL;
        rocksdb_set_options_cf(state->db, state->families[i], TARN_COUNT_OF(names), names, values,
                               &error);
        rocksdb_free(error); /* then it only takes longer */
    }
    tarn_state__leave(state);
}

void tarn_state_load_begin(struct tarn_state *state)
{
    if (atomic_fetch_add(&state->loading, 1) == 0)
        set_patience(state, OVERLAPPING_FILES_LOADING, OVERLAPPING_SIZE_LOADING);
}

void tarn_state_load_end(struct tarn_state *state)
{
    if (atomic_fetch_sub(&state->loading, 1) == 1)
        set_patience(state, OVERLAPPING_FILES, TARN_STATE_LEVEL_SIZE);
}

struct tarn_state_loader {
    struct tarn_state *state; /* borrowed */
    enum tarn_family family;
    rocksdb_envoptions_t *env;
    rocksdb_sstfilewriter_t *writer; /* NULL: no file is open */
    char **paths;                    /* of files that exist, the open one last */
    size_t count, capacity;
    size_t written; /* of the open file, before compression */
};

struct tarn_status *tarn_state_loader_new(struct tarn_state *state, enum tarn_family family,
                                          struct tarn_state_loader **out)
{
    struct tarn_state_loader *loader = tarn_calloc(1, sizeof *loader);
    loader->state = state;
    loader->family = family;
    loader->env = rocksdb_envoptions_create();
    *out = loader;
    return TARN_OK;
}

static struct tarn_status *begin_file(struct tarn_state_loader *l)
{
    char *error = NULL;
    TARN_GROW(l->paths, l->count, l->capacity);
    l->paths[l->count++] = tarn_format("%s/" TARN_STATE_LOAD_PREFIX "%u", l->state->folder,
                                       atomic_fetch_add(&l->state->load_count, 1));
    l->writer = rocksdb_sstfilewriter_create(l->env, l->state->options);
    l->written = 0;
    rocksdb_sstfilewriter_open(l->writer, l->paths[l->count - 1], &error);
    return tarn_state__error(l->state, error, "load into");
}

static struct tarn_status *end_file(struct tarn_state_loader *l)
{
    char *error = NULL;
    if (l->writer == NULL)
        return TARN_OK;
    rocksdb_sstfilewriter_finish(l->writer, &error); /* syncs */
    rocksdb_sstfilewriter_destroy(l->writer);
    l->writer = NULL;
    return tarn_state__error(l->state, error, "load into");
}

struct tarn_status *tarn_state_loader_put(struct tarn_state_loader *l, struct tarn_slice key,
                                          struct tarn_slice value)
{
    char *error = NULL;
    tarn_assert_may_wait();
    if (l->writer == NULL)
        TARN_TRY(begin_file(l));
    rocksdb_sstfilewriter_put(l->writer, (const char *)key.data, key.size,
                              value.size == 0 ? "" : (const char *)value.data, value.size, &error);
    TARN_TRY(tarn_state__error(l->state, error, "load into"));
    l->written += key.size + value.size;
    return l->written > LOAD_FILE_SIZE ? end_file(l) : TARN_OK;
}

struct tarn_status *tarn_state_loader_finish(struct tarn_state_loader *l)
{
    char *error = NULL;
    tarn_assert_may_wait();
    TARN_TRY(end_file(l));
    if (l->count == 0)
        return TARN_OK;
    TARN_TRY(tarn_state__enter_to_write(l->state));
    rocksdb_ingestexternalfileoptions_t *options = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(options, 1);
    rocksdb_ingest_external_file_cf(l->state->db, l->state->families[l->family],
                                    (const char *const *)l->paths, l->count, options, &error);
    rocksdb_ingestexternalfileoptions_destroy(options);
    struct tarn_status *s = tarn_state__written(l->state, error, "load into");
    if (s == TARN_OK)
        s = tarn_state__mark(l->state); /* no log has it */
    tarn_state__leave(l->state);
    return s;
}

void tarn_state_loader_free(struct tarn_state_loader *l)
{
    if (l == NULL)
        return;
    if (l->writer != NULL)
        rocksdb_sstfilewriter_destroy(l->writer);
    for (size_t i = 0; i < l->count; i++) {
        unlink(l->paths[i]); /* taken in: a second name of the file, or none */
        free(l->paths[i]);
    }
    free(l->paths);
    rocksdb_envoptions_destroy(l->env);
    free(l);
}

void tarn_state_loader_drop(struct tarn_state_loader **loader)
{
    tarn_state_loader_free(*loader);
    *loader = NULL;
}
