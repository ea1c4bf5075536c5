/*
 * What an index manifest holds after a commit. Three ways to know a file that is replaced, by its type:
 * the bucket it is of, its name and the data files it is about, or its name and the rows it covers.
 */
#include "format/manifest.h"

#define SOURCE_MARK_SIZE 4
static const uint8_t source_mark[SOURCE_MARK_SIZE] = "DEIX"; /* of an index made from a snapshot */

struct combiner {
    struct tarn_index_file *files; /* all that were or are live */
    bool *gone;                    /* of each */
    size_t count;
    struct tarn_map *by_key; /* what identifies a file -> its element in `files` */
    struct tarn_map *by_row; /* data files that have a vector -> the element of the index file */
};

enum rule { BY_BUCKET, BY_DATA_FILE, BY_ROWS };

static enum rule rule_of(const struct tarn_index_file *f, bool bucketed)
{
    bool vectors = tarn_slice_is(f->type, TARN_INDEX_DELETION_VECTORS);
    if (!vectors && !tarn_slice_is(f->type, TARN_INDEX_HASH))
        return BY_ROWS;
    return vectors && !bucketed ? BY_DATA_FILE : BY_BUCKET;
}

static void add_part(struct tarn_buf *out, struct tarn_slice part)
{
    uint64_t size = part.size;
    tarn_buf_add(out, &size, sizeof size);
    tarn_buf_add_slice(out, part);
}

/* Bytes that are equal exactly where one file takes the place of the other. */
static void key_of(const struct tarn_index_file *f, bool bucketed, struct tarn_buf *out)
{
    tarn_buf_clear(out);
    add_part(out, f->type);
    if (rule_of(f, bucketed) != BY_BUCKET) {
        add_part(out, f->name);
        return;
    }
    add_part(out, f->partition);
    tarn_buf_add(out, &f->bucket, sizeof f->bucket);
}

static bool same_place(const struct tarn_index_file *a, const struct tarn_index_file *b)
{
    return a->bucket == b->bucket && tarn_slice_equal(a->partition, b->partition);
}

static struct tarn_status *conflict(const struct tarn_index_file *f, const char *verb,
                                    const char *why, struct tarn_slice of)
{
    return tarn_status_new(TARN_COMMIT_CONFLICT, "can't %s index file %.*s of type %.*s: %s%.*s",
                           verb, TARN_SLICE_ARG(f->name), TARN_SLICE_ARG(f->type), why,
                           TARN_SLICE_ARG(of));
}

/* ---- one file comes or goes */

static void put(struct combiner *c, struct tarn_slice key, const struct tarn_index_file *f)
{
    size_t at = c->count++;
    c->files[at] = *f;
    c->files[at].kind = TARN_ENTRY_ADD;
    struct tarn_index_file *old = tarn_map_set(c->by_key, key, &c->files[at]);
    if (old != NULL)
        c->gone[old - c->files] = true;
}

static struct tarn_status *remove_file(struct combiner *c, const struct tarn_index_file *f,
                                       bool bucketed, struct tarn_buf *key)
{
    key_of(f, bucketed, key);
    enum rule rule = rule_of(f, bucketed);
    struct tarn_index_file *old = tarn_map_find(c->by_key, tarn_buf_slice(key));
    if (old == NULL && rule == BY_BUCKET) /* as Java: another one may have gone before it */
        return TARN_OK;
    if (old == NULL || (rule == BY_DATA_FILE && !same_place(old, f)))
        return conflict(f, "delete", "it is not live", tarn_slice_str(""));
    for (size_t i = 0; rule == BY_DATA_FILE && i < old->vector_count; i++)
        tarn_map_remove(c->by_row, old->vectors[i].data_file);
    tarn_map_remove(c->by_key, tarn_buf_slice(key));
    c->gone[old - c->files] = true;
    return TARN_OK;
}

static struct tarn_status *check_vectors(struct combiner *c, const struct tarn_index_file *f)
{
    for (size_t i = 0; i < f->vector_count; i++) {
        struct tarn_slice file = f->vectors[i].data_file;
        if (tarn_map_find(c->by_row, file) != NULL)
            return conflict(f, "add", "there is a deletion vector already for data file ", file);
    }
    return TARN_OK;
}

static void note_vectors(struct combiner *c, struct tarn_index_file *f)
{
    for (size_t i = 0; i < f->vector_count; i++)
        tarn_map_set(c->by_row, f->vectors[i].data_file, f);
}

static bool comes_from_snapshot(struct tarn_slice source)
{
    return tarn_slice_starts_with(source, tarn_slice_of(source_mark, SOURCE_MARK_SIZE));
}

static bool same_columns(const struct tarn_global_index *a, const struct tarn_global_index *b)
{
    return a->has_extra_fields == b->has_extra_fields &&
           a->extra_field_count == b->extra_field_count &&
           (a->extra_field_count == 0 ||
            memcmp(a->extra_fields, b->extra_fields, a->extra_field_count * sizeof(int32_t)) == 0);
}

/* May a and b not be live together? Indexes with a source of their own, other than a snapshot of the
 * table, count their rows from it and never meet. */
static bool overlap(const struct tarn_index_file *a, const struct tarn_index_file *b)
{
    const struct tarn_global_index *g = &a->global, *h = &b->global;
    if (!a->has_global || !b->has_global || g->field_id != h->field_id ||
        !tarn_slice_equal(a->type, b->type))
        return false;
    if (g->source_meta.data != NULL && h->source_meta.data != NULL &&
        !comes_from_snapshot(g->source_meta) && !comes_from_snapshot(h->source_meta))
        return false;
    return !same_columns(g, h) || (g->row_start <= h->row_end && h->row_start <= g->row_end);
}

/* Only files that stay are asked: those of one commit may overlap, as Java lets them. */
static struct tarn_status *check_rows(const struct combiner *c, size_t kept,
                                      const struct tarn_index_file *f)
{
    for (size_t i = 0; i < kept && f->has_global; i++) {
        const struct tarn_global_index *g = &f->global, *h = &c->files[i].global;
        if (!c->gone[i] && overlap(&c->files[i], f))
            return tarn_status_new(
                TARN_COMMIT_CONFLICT,
                "can't add index file %.*s of type %.*s for field %" PRId32 " and rows %" PRId64
                " to %" PRId64 ": %.*s, which stays, has rows %" PRId64 " to %" PRId64,
                TARN_SLICE_ARG(f->name), TARN_SLICE_ARG(f->type), g->field_id, g->row_start,
                g->row_end, TARN_SLICE_ARG(c->files[i].name), h->row_start, h->row_end);
    }
    return TARN_OK;
}

static struct tarn_status *add_file(struct combiner *c, const struct tarn_index_file *f,
                                    bool bucketed, size_t kept, struct tarn_buf *key)
{
    key_of(f, bucketed, key);
    enum rule rule = rule_of(f, bucketed);
    struct tarn_index_file *old = tarn_map_find(c->by_key, tarn_buf_slice(key));
    if (old != NULL && rule != BY_BUCKET)
        return conflict(f, "add", "one of that name is live", tarn_slice_str(""));
    if (old != NULL && old - c->files >= (ptrdiff_t)kept)
        return conflict(f, "add", "the commit has a second one for the bucket: ", old->name);
    if (rule == BY_DATA_FILE)
        TARN_TRY(check_vectors(c, f));
    if (rule == BY_ROWS)
        TARN_TRY(check_rows(c, kept, f));
    put(c, tarn_buf_slice(key), f);
    if (rule == BY_DATA_FILE)
        note_vectors(c, &c->files[c->count - 1]);
    return TARN_OK;
}

/* ---- all of them */

static void load(struct combiner *c, const struct tarn_index_file *previous, size_t count,
                 bool bucketed, struct tarn_buf *key)
{
    for (size_t i = 0; i < count; i++) {
        key_of(&previous[i], bucketed, key);
        put(c, tarn_buf_slice(key), &previous[i]);
        if (rule_of(&previous[i], bucketed) == BY_DATA_FILE)
            note_vectors(c, &c->files[c->count - 1]);
    }
}

struct tarn_status *tarn_index_combine(const struct tarn_index_file *previous,
                                       size_t previous_count, const struct tarn_index_file *changes,
                                       size_t change_count, bool bucketed, struct tarn_arena *arena,
                                       struct tarn_index_file **out, size_t *out_count)
{
    size_t room = previous_count + change_count, n = 0;
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_map_drop) struct tarn_map *by_key = tarn_map_new();
    TARN_OWN(tarn_map_drop) struct tarn_map *by_row = tarn_map_new();
    struct combiner c = {.files = tarn_arena_calloc(arena, room, sizeof *c.files),
                         .gone = tarn_arena_calloc(arena, room, sizeof *c.gone),
                         .by_key = by_key,
                         .by_row = by_row};
    load(&c, previous, previous_count, bucketed, &key);
    /* DELETEs first: what takes a file's place may come before it in a commit. */
    for (size_t i = 0; i < change_count; i++)
        if (changes[i].kind == TARN_ENTRY_DELETE)
            TARN_TRY(remove_file(&c, &changes[i], bucketed, &key));
    for (size_t i = 0; i < change_count; i++)
        if (changes[i].kind == TARN_ENTRY_ADD)
            TARN_TRY(add_file(&c, &changes[i], bucketed, previous_count, &key));
    for (size_t i = 0; i < c.count; i++)
        if (!c.gone[i])
            c.files[n++] = c.files[i];
    *out = c.files;
    *out_count = n;
    return TARN_OK;
}
