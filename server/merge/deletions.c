/* deletions - deletion vectors of data files: read, and applied to batches. */
#include "merge/internal.h"

/* A path in the table's folder, or a URI in the same store. */
struct tarn_status *tarn_merge__index_key(const struct tarn_merge_table *table,
                                          struct tarn_slice path, struct tarn_arena *arena,
                                          const char **out)
{
    static const char scheme[] = ":/";
    struct tarn_slice key;
    if (memmem(path.data, path.size, scheme, sizeof scheme - 1) == NULL) {
        *out = tarn_arena_printf(arena, "%s/%.*s", table->path, TARN_SLICE_ARG(path));
        return TARN_OK;
    }
    if (!tarn_store_key_of(table->store, path, &key))
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "index file %.*s lies outside the warehouse", TARN_SLICE_ARG(path));
    *out = tarn_arena_str(arena, key);
    return TARN_OK;
}

struct tarn_status *tarn_merge__index_file_key(const struct tarn_merge_table *table,
                                               const struct tarn_index_file *file,
                                               struct tarn_arena *arena, const char **out)
{
    struct tarn_slice path;
    TARN_TRY(tarn_index_file_path(table->schema, table->options, file, arena, &path));
    return tarn_merge__index_key(table, path, arena, out);
}

static void reader_drop(struct tarn_store_reader **reader)
{
    if (*reader != NULL)
        tarn_store_reader_close(*reader);
}

static struct tarn_status *read_bytes(struct tarn_op *op, struct tarn_store_reader *reader,
                                      const struct tarn_vector_ref *ref, struct tarn_buf *out)
{
    int64_t size = tarn_store_reader_size(reader);
    if (ref->offset < 0 || ref->offset > size || ref->length < 0 ||
        ref->length > (int64_t)TARN_STORE_GET_MAX)
        return tarn_status_new(TARN_DELETION_VECTOR_MALFORMED,
                               "a deletion vector of %" PRId64 " bytes at %" PRId64
                               " of an index file with %" PRId64,
                               ref->length, ref->offset, size);
    size_t want = (size_t)TARN_MIN(size - ref->offset, ref->length + TARN_DELETION_FRAME_SIZE);
    tarn_buf_reserve(out, want);
    return tarn_store_reader_read_at(reader, op, ref->offset, want, out->data, &out->size);
}

struct tarn_status *tarn_merge__vector_read(struct tarn_op *op,
                                            const struct tarn_merge_table *table,
                                            const struct tarn_vector_ref *ref, struct tarn_buf *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(reader_drop) struct tarn_store_reader *reader = NULL;
    const char *key;
    TARN_TRY(tarn_merge__index_key(table, ref->path, arena, &key));
    TARN_TRY(tarn_store_reader_open(table->store, op, key, &reader));
    struct tarn_status *s = read_bytes(op, reader, ref, out);
    return s == TARN_OK ? s : tarn_status_wrap(s, "%s", key);
}

static struct tarn_status *decode(const struct tarn_data_file *file, struct tarn_slice bytes,
                                  struct tarn_deletions *out)
{
    TARN_OWN(tarn_deletions_fini) struct tarn_deletions d = {0};
    const struct tarn_vector_ref *ref = &file->vector;
    TARN_TRY(tarn_deletions_decode(bytes, ref->length, file->row_count, &d));
    if (ref->cardinality != TARN_FILE_NONE && ref->cardinality != d.count)
        return tarn_status_new(TARN_DELETION_VECTOR_MALFORMED,
                               "a deletion vector marks %" PRId64
                               " rows, the index manifest says %" PRId64,
                               d.count, ref->cardinality);
    *out = d;
    d = (struct tarn_deletions){0};
    return TARN_OK;
}

struct tarn_status *tarn_merge__deletions_read(struct tarn_op *op,
                                               const struct tarn_merge_table *table,
                                               const struct tarn_data_file *file,
                                               struct tarn_deletions *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    if (file->vector.path.data == NULL)
        return TARN_OK;
    TARN_TRY(tarn_merge__vector_read(op, table, &file->vector, &bytes));
    struct tarn_status *s = decode(file, tarn_buf_slice(&bytes), out);
    return s == TARN_OK
               ? s
               : tarn_status_wrap(s, "index file %.*s, data file %.*s",
                                  TARN_SLICE_ARG(file->vector.path), TARN_SLICE_ARG(file->name));
}

struct tarn_status *tarn_merge__deletions_apply(const struct tarn_deletions *deletions,
                                                int64_t first, const struct tarn_type *const *types,
                                                int column_count, struct tarn_batch **batch)
{
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks picks = {0};
    /* A data file with more rows than its manifest says has none of them deleted. */
    int64_t end = first + (*batch)->row_count, last = TARN_MIN(end, deletions->row_count);
    int64_t row = first, deleted = TARN_MIN(tarn_deletions_next(deletions, first), last);
    if (first >= last || deleted == last)
        return TARN_OK;
    while (row < end) {
        if (deleted > row)
            tarn_merge__picks_add(&picks, 0, (uint32_t)(row - first), (uint32_t)(deleted - row));
        if (deleted >= last) {
            if (end > last)
                tarn_merge__picks_add(&picks, 0, (uint32_t)(last - first), (uint32_t)(end - last));
            break;
        }
        row = deleted + 1;
        deleted = TARN_MIN(tarn_deletions_next(deletions, row), last);
    }
    TARN_OWN(tarn_batch_drop) struct tarn_batch *from = tarn_move(*batch);
    if (picks.row_count == 0)
        return TARN_OK;
    return tarn_merge__gather_batch(&from, 1, NULL, types, column_count, &picks, batch);
}
