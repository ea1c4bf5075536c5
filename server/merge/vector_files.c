/*
 * vector_files - index files of deletion vectors, made anew where those of some data files change.
 *
 * A vector is never changed in place: the index file that holds it goes, and a new one has what stays of it, copied as it lies, and what is
 * new. In tables with buckets all vectors of one lie in one file; in others in files of about the target size.
 */
#include "merge/internal.h"

#define INDEX_TYPE TARN_INDEX_DELETION_VECTORS

struct rewriting {
    struct tarn_op *op;
    const struct tarn_merge_table *table;
    const struct tarn_vector_changes *changes;
    struct tarn_arena *arena;
    struct tarn_index_file *out; /* DELETEs, then ADDs */
    size_t count;
    struct tarn_buf file; /* being filled */
    struct tarn_vector_range *ranges;
    size_t range_count, range_capacity;
};

static bool is_listed(const struct tarn_slice *names, size_t count, struct tarn_slice name)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(names[i], name))
            return true;
    return false;
}

static bool is_marked(const struct tarn_vector_changes *c, struct tarn_slice name)
{
    for (size_t i = 0; i < c->mark_count; i++)
        if (tarn_slice_equal(c->marks[i].data_file, name))
            return true;
    return false;
}

/* Does another vector take this one's place, or none? */
static bool is_replaced(const struct tarn_vector_changes *c, struct tarn_slice data_file)
{
    return is_listed(c->gone, c->gone_count, data_file) || is_marked(c, data_file);
}

static bool in_buckets(const struct tarn_merge_table *table)
{
    return !tarn_schema_is_append(table->schema) || table->options->bucket != -1;
}

static bool is_touched(const struct rewriting *r, const struct tarn_index_file *f)
{
    if (in_buckets(r->table) && r->changes->mark_count > 0)
        return true;
    for (size_t i = 0; i < f->vector_count; i++)
        if (is_replaced(r->changes, f->vectors[i].data_file))
            return true;
    return false;
}

/* The file that is being filled goes to the store. */
static struct tarn_status *put_file(struct rewriting *r)
{
    if (r->range_count == 0)
        return TARN_OK;
    char uuid[TARN_UUID_SIZE];
    const char *key;
    struct tarn_index_file *f = &r->out[r->count];
    tarn_uuid_random(uuid);
    *f = (struct tarn_index_file){.kind = TARN_ENTRY_ADD,
                                  .partition = r->changes->partition,
                                  .bucket = r->changes->bucket,
                                  .type = tarn_slice_str(INDEX_TYPE),
                                  .size = (int64_t)r->file.size,
                                  .row_count = (int64_t)r->range_count,
                                  .has_vectors = true,
                                  .vector_count = r->range_count};
    f->name = tarn_slice_str(tarn_arena_printf(r->arena, "index-%s-0", uuid));
    struct tarn_vector_range *ranges = tarn_arena_calloc(r->arena, r->range_count, sizeof *ranges);
    memcpy(ranges, r->ranges, r->range_count * sizeof *ranges);
    f->vectors = ranges;
    TARN_TRY(tarn_merge__index_file_key(r->table, f, r->arena, &key));
    r->count++; /* whatever becomes of the put, it is removed if this fails */
    TARN_TRY(tarn_store_put(r->table->store, r->op, key, tarn_buf_slice(&r->file)));
    tarn_buf_clear(&r->file);
    r->range_count = 0;
    return TARN_OK;
}

/* A vector lies from `begin` on in the file that is being filled. */
static struct tarn_status *note_vector(struct rewriting *r, struct tarn_slice data_file,
                                       size_t begin, int64_t length, int64_t cardinality)
{
    if (r->file.size > INT32_MAX)
        return tarn_status_new(TARN_TOO_LARGE,
                               "the deletion vectors of bucket %d take more than %d bytes",
                               r->changes->bucket, INT32_MAX);
    TARN_GROW(r->ranges, r->range_count, r->range_capacity);
    r->ranges[r->range_count++] =
        (struct tarn_vector_range){data_file, (int32_t)begin, (int32_t)length, cardinality};
    if (in_buckets(r->table) || (int64_t)r->file.size < r->table->options->vectors_target_size)
        return TARN_OK;
    return put_file(r);
}

static size_t begin_vector(struct rewriting *r)
{
    if (r->range_count == 0) {
        tarn_buf_clear(&r->file);
        tarn_buf_add_byte(&r->file, TARN_DELETION_INDEX_VERSION);
    }
    return r->file.size;
}

static struct tarn_status *copy_vector(struct rewriting *r, struct tarn_slice old,
                                       const struct tarn_vector_range *range)
{
    struct tarn_slice record;
    if (range->offset < 0 || (size_t)range->offset > old.size)
        return tarn_status_new(TARN_DELETION_VECTOR_MALFORMED,
                               "a deletion vector at %d of an index file with %zu bytes",
                               range->offset, old.size);
    TARN_TRY(tarn_deletions_find(
        tarn_slice_of(old.data + range->offset, old.size - (size_t)range->offset), range->length,
        &record));
    size_t begin = begin_vector(r);
    tarn_buf_add_slice(&r->file, record);
    return note_vector(r, range->data_file, begin, range->length, range->cardinality);
}

/* What stays of an index file that goes. */
static struct tarn_status *copy_rest(struct rewriting *r, const struct tarn_index_file *f)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf old = {0};
    const char *key;
    for (size_t i = 0; i < f->vector_count; i++) {
        if (is_replaced(r->changes, f->vectors[i].data_file))
            continue;
        if (old.size == 0) {
            TARN_TRY(tarn_merge__index_file_key(r->table, f, r->arena, &key));
            TARN_TRY(tarn_store_get(r->table->store, r->op, key, &old));
        }
        struct tarn_status *s = copy_vector(r, tarn_buf_slice(&old), &f->vectors[i]);
        if (s != TARN_OK)
            return tarn_status_wrap(s, "index file %.*s, data file %.*s", TARN_SLICE_ARG(f->name),
                                    TARN_SLICE_ARG(f->vectors[i].data_file));
    }
    return TARN_OK;
}

static struct tarn_status *rewrite(struct rewriting *r)
{
    const struct tarn_vector_changes *c = r->changes;
    size_t touched = 0;
    for (size_t i = 0; i < c->index_count; i++) {
        if (!is_touched(r, &c->indexes[i]))
            continue;
        r->out[r->count] = c->indexes[i];
        r->out[r->count++].kind = TARN_ENTRY_DELETE;
        touched++;
    }
    for (size_t i = 0; i < touched; i++)
        TARN_TRY(copy_rest(r, &r->out[i]));
    for (size_t i = 0; i < c->mark_count; i++) {
        size_t begin = begin_vector(r);
        int64_t length = tarn_deletions_encode(&c->marks[i].deletions,
                                               r->table->options->vectors_wide, &r->file);
        TARN_TRY(note_vector(r, c->marks[i].data_file, begin, length, c->marks[i].deletions.count));
    }
    return put_file(r);
}

struct tarn_status *tarn_merge__vectors_rewrite(struct tarn_op *op,
                                                const struct tarn_merge_table *table,
                                                const struct tarn_vector_changes *changes,
                                                struct tarn_arena *arena,
                                                struct tarn_index_file **out, size_t *count)
{
    size_t vectors = changes->mark_count;
    for (size_t i = 0; i < changes->index_count; i++)
        vectors += changes->indexes[i].vector_count;
    struct rewriting r = {.op = op, .table = table, .changes = changes, .arena = arena};
    r.out = tarn_arena_calloc(arena, changes->index_count + vectors + 1, sizeof *r.out);
    struct tarn_status *s = rewrite(&r);
    tarn_buf_drop(&r.file);
    free(r.ranges);
    if (s != TARN_OK) {
        struct tarn_op cleaning; /* this operation may be cancelled */
        tarn_op_init(&cleaning);
        tarn_merge_remove_index_files(&cleaning, table, r.out, r.count);
        tarn_op_fini(&cleaning);
        return s;
    }
    *out = r.out;
    *count = r.count;
    return TARN_OK;
}

void tarn_merge_remove_index_files(struct tarn_op *op, const struct tarn_merge_table *table,
                                   const struct tarn_index_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *key;
        if (files[i].kind != TARN_ENTRY_ADD)
            continue;
        struct tarn_status *s = tarn_merge__index_file_key(table, &files[i], op->arena, &key);
        if (s == TARN_OK)
            s = tarn_store_remove(table->store, op, key);
        tarn_status_free(s); /* what can't be removed now is an orphan, and removed as one */
    }
}
