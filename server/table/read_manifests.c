#include "table/internal.h"

/*
 * Reading what a snapshot names: its manifest lists, and the manifests that those name. An Avro container has no end: one that
 * was cut between two blocks reads as a shorter one, and behind its header as an empty one. So each is held against what the file
 * that names it says of it: its size, and how many entries it has.
 */

#define WALK_ENTRIES 10000 /* some 10 MB */

static struct tarn_status *read_file(struct tarn_op *op, struct tarn_table *table,
                                     struct tarn_slice name, struct tarn_buf *out)
{
    const char *key = tarn_table__key(op, table, "manifest/%.*s", TARN_SLICE_ARG(name));
    struct tarn_status *s = tarn_store_get(table->env->store, op, key, out);
    return s == TARN_OK ? s : tarn_status_wrap(s, "table %s", table->name);
}

/* --- lists --- */

struct said { /* what a snapshot says of a list */
    struct tarn_slice name;
    int64_t size;    /* or TARN_SNAPSHOT_NONE: old writers, and pypaimon-rust */
    int64_t records; /* rows of the files in it, those that it removes off; or NONE */
};

static struct said said_of(const struct tarn_snapshot *s, enum tarn_list which)
{
    int64_t base_records = TARN_SNAPSHOT_NONE;
    if (which == TARN_LIST_DELTA)
        return (struct said){s->delta_list, s->delta_list_size, s->delta_record_count};
    if (which == TARN_LIST_CHANGELOG)
        return (struct said){s->changelog_list, s->changelog_list_size, s->changelog_record_count};
    if (s->total_record_count == TARN_SNAPSHOT_NONE ||
        s->delta_record_count == TARN_SNAPSHOT_NONE ||
        __builtin_sub_overflow(s->total_record_count, s->delta_record_count, &base_records))
        base_records = TARN_SNAPSHOT_NONE;
    return (struct said){s->base_list, s->base_list_size, base_records};
}

static struct tarn_status *check_size(const struct said *said, size_t size)
{
    return said->size == TARN_SNAPSHOT_NONE || (uint64_t)said->size == size
               ? TARN_OK
               : tarn_status_new(TARN_MANIFEST_MALFORMED,
                                 "it has %zu bytes, and its snapshot says %" PRId64, size,
                                 said->size);
}

/* Where the size isn't known: a list of nothing has no rows. */
static struct tarn_status *check_empty(const struct said *said, size_t count)
{
    return count > 0 || said->size != TARN_SNAPSHOT_NONE || said->records == 0 ||
                   said->records == TARN_SNAPSHOT_NONE
               ? TARN_OK
               : tarn_status_new(TARN_MANIFEST_MALFORMED,
                                 "it is empty, and its snapshot says that its files have %" PRId64
                                 " rows",
                                 said->records);
}

struct tarn_status *tarn_table__read_list(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_snapshot *snapshot,
                                          enum tarn_list which, struct tarn_arena *arena,
                                          struct tarn_manifest_file **out, size_t *count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct said said = said_of(snapshot, which);
    TARN_TRY(read_file(op, table, said.name, &bytes));
    struct tarn_status *s = check_size(&said, bytes.size);
    if (s == TARN_OK)
        s = tarn_manifest_list_decode(tarn_arena_copy(arena, tarn_buf_slice(&bytes)), arena, out,
                                      count);
    if (s == TARN_OK)
        s = check_empty(&said, *count);
    return s == TARN_OK ? s
                        : tarn_status_wrap(s, "table %s, manifest list %.*s", table->name,
                                           TARN_SLICE_ARG(said.name));
}

/* --- manifests --- */

struct walk { /* of one manifest, block by block */
    const struct tarn_table *table;
    const struct tarn_manifest_file *file;
    struct tarn_manifest_reader *reader;
    struct tarn_manifest_entry *list; /* owned */
    size_t capacity;
    int64_t added_count, deleted_count; /* so far */
};

static void walk_fini(struct walk *w)
{
    free(w->list);
}

static struct tarn_status *in_manifest(const struct walk *w, struct tarn_status *s)
{
    return s == TARN_OK ? s
                        : tarn_status_wrap(s, "table %s, manifest %.*s", w->table->name,
                                           TARN_SLICE_ARG(w->file->name));
}

static struct tarn_status *check_manifest_size(const struct tarn_manifest_file *file, size_t size)
{
    return (uint64_t)file->size == size
               ? TARN_OK
               : tarn_status_new(TARN_MANIFEST_MALFORMED,
                                 "it has %zu bytes, and the list that names it says %" PRId64, size,
                                 file->size);
}

static void count_kinds(struct walk *w, const struct tarn_manifest_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *(entries[i].kind == TARN_ENTRY_ADD ? &w->added_count : &w->deleted_count) += 1;
}

static struct tarn_status *check_counts(const struct walk *w)
{
    const struct tarn_manifest_file *f = w->file;
    return w->added_count == f->added_count && w->deleted_count == f->deleted_count
               ? TARN_OK
               : tarn_status_new(TARN_MANIFEST_MALFORMED,
                                 "it adds %" PRId64 " files and deletes %" PRId64
                                 ", and the list that names it says %" PRId64 " and %" PRId64,
                                 w->added_count, w->deleted_count, f->added_count,
                                 f->deleted_count);
}

/* Blocks until they have some thousand entries: who takes them gets on faster with many. *count 0: there are no more. */
static struct tarn_status *take_blocks(struct walk *w, struct tarn_arena *arena, size_t *count)
{
    struct tarn_manifest_entry *entries;
    size_t n;
    *count = 0;
    do {
        TARN_TRY(tarn_manifest_next(w->reader, arena, &entries, &n));
        if (*count + n > w->capacity) {
            w->capacity = (*count + n) * 2;
            w->list = tarn_realloc(w->list, w->capacity * sizeof *w->list);
        }
        if (n > 0)
            memcpy(w->list + *count, entries, n * sizeof *w->list);
        *count += n;
    } while (n > 0 && *count < WALK_ENTRIES);
    count_kinds(w, w->list, *count);
    return *count > 0 ? TARN_OK : check_counts(w);
}

struct tarn_status *tarn_table__walk_bytes(struct tarn_op *op, struct tarn_table *table,
                                           const struct tarn_manifest_file *file,
                                           struct tarn_slice bytes, tarn_each_entries_fn *each,
                                           void *arg)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(walk_fini) struct walk w = {.table = table, .file = file};
    size_t count;
    TARN_TRY(in_manifest(&w, check_manifest_size(file, bytes.size)));
    TARN_TRY(in_manifest(&w, tarn_manifest_open(bytes, arena, &w.reader)));
    do {
        TARN_OWN(tarn_arena_drop) struct tarn_arena *blocks = tarn_arena_new();
        TARN_TRY(tarn_op_check(op));
        TARN_TRY(in_manifest(&w, take_blocks(&w, blocks, &count)));
        if (count > 0)
            TARN_TRY(each(arg, w.list, count));
    } while (count > 0);
    return TARN_OK;
}

struct tarn_status *tarn_table__walk_manifest(struct tarn_op *op, struct tarn_table *table,
                                              const struct tarn_manifest_file *file,
                                              tarn_each_entries_fn *each, void *arg)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    TARN_TRY(read_file(op, table, file->name, &bytes));
    return tarn_table__walk_bytes(op, table, file, tarn_buf_slice(&bytes), each, arg);
}

struct tarn_status *tarn_table__read_manifest(struct tarn_op *op, struct tarn_table *table,
                                              const struct tarn_manifest_file *file,
                                              struct tarn_arena *arena,
                                              struct tarn_manifest_entry **out, size_t *count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct walk w = {.table = table, .file = file};
    TARN_TRY(read_file(op, table, file->name, &bytes));
    TARN_TRY(in_manifest(&w, check_manifest_size(file, bytes.size)));
    TARN_TRY(in_manifest(&w, tarn_manifest_decode(tarn_buf_slice(&bytes), arena, out, count)));
    count_kinds(&w, *out, *count);
    return in_manifest(&w, check_counts(&w));
}
