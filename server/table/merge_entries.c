#include "table/merge_manifests.h"

/*
 * Merging manifests, entry by entry: an ADD and the DELETE behind it come to nothing, all else stays in order. Two
 * passes: the first learns what is deleted, the second copies block by block. In memory are one manifest as it
 * lies in the store (or several small ones), one block of it, one new manifest as it will lie there, and the set of
 * what is deleted.
 */

#define DIGEST_SIZE 16 /* of SHA-256 of an identity: two files never share one */
#define HELD_SIZE_MAX (16 << 20)
#define FETCHES_MAX 8
#define PARTITIONS_MAX 1000 /* of DELETEs; more aren't held against statistics */

/* --- what is deleted --- */

struct fate {
    uint8_t digest[DIGEST_SIZE];
    uint32_t deletes; /* that the second pass hasn't come to */
    uint32_t adds;    /* that vanished, and whose DELETE is still to come */
    bool taken;
};

struct fates { /* open addressing; the digest is its own hash */
    struct fate *slots;
    size_t count, capacity; /* a power of two */
};

static void fates_fini(struct fates *f)
{
    free(f->slots);
    *f = (struct fates){0};
}

static void digest_of(const struct tarn_manifest_entry *entry, struct tarn_buf *scratch,
                      uint8_t out[DIGEST_SIZE])
{
    uint8_t whole[TARN_SHA256_SIZE];
    tarn_buf_clear(scratch);
    tarn_manifest_identity(entry, scratch);
    tarn_sha256(tarn_buf_slice(scratch), whole);
    memcpy(out, whole, DIGEST_SIZE);
}

/* Where the digest is or would be. */
static struct fate *probe(const struct fates *f, const uint8_t digest[DIGEST_SIZE])
{
    size_t at;
    memcpy(&at, digest, sizeof at);
    for (at &= f->capacity - 1;; at = (at + 1) & (f->capacity - 1))
        if (!f->slots[at].taken || memcmp(f->slots[at].digest, digest, DIGEST_SIZE) == 0)
            return &f->slots[at];
}

static void grow(struct fates *f)
{
    struct fates next = {.count = f->count, .capacity = f->capacity == 0 ? 256 : f->capacity * 2};
    next.slots = tarn_calloc(next.capacity, sizeof *next.slots);
    for (size_t i = 0; i < f->capacity; i++)
        if (f->slots[i].taken)
            *probe(&next, f->slots[i].digest) = f->slots[i];
    free(f->slots);
    *f = next;
}

static struct fate *find_fate(const struct fates *f, const struct tarn_manifest_entry *entry,
                              struct tarn_buf *scratch)
{
    uint8_t digest[DIGEST_SIZE];
    if (f->count == 0)
        return NULL;
    digest_of(entry, scratch, digest);
    struct fate *fate = probe(f, digest);
    return fate->taken ? fate : NULL;
}

static void note_delete(struct fates *f, const struct tarn_manifest_entry *entry,
                        struct tarn_buf *scratch)
{
    uint8_t digest[DIGEST_SIZE];
    if (f->count * 2 >= f->capacity)
        grow(f);
    digest_of(entry, scratch, digest);
    struct fate *fate = probe(f, digest);
    f->count += !fate->taken;
    memcpy(fate->digest, digest, DIGEST_SIZE);
    fate->taken = true;
    fate->deletes++;
}

/* --- reading --- */

struct merger {
    struct tarn_op *op;
    struct tarn_table *table;
    struct tarn_merge_work *work;
    const struct tarn_type **partition_types;
    size_t partition_column_count;
    struct fates fates;
    struct tarn_map *partitions; /* of DELETEs */
    bool full;
    bool matched; /* of find_match */
    struct tarn_buf scratch;
    struct tarn_buf
        *held; /* bytes of the manifests in before, while they are held; in the work's arena */
    /* the manifest that is being written */
    struct tarn_buf bytes;
    struct tarn_manifest_writer *writer; /* NULL: none is open */
    struct tarn_manifest_file summary;
    size_t room; /* so many more may be begun: the result never has more than there were */
};

static void drop_held(struct merger *m, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        tarn_buf_drop(&m->held[i]);
}

static void merger_fini(struct merger *m)
{
    tarn_manifest_writer_free(m->writer);
    drop_held(m, 0, m->work->before_count);
    fates_fini(&m->fates);
    tarn_map_free(m->partitions);
    tarn_buf_drop(&m->scratch);
    tarn_buf_drop(&m->bytes);
}

/* --- getting them: several at a time where each is a round trip, and once where the second pass may have them --- */

struct fetch {
    struct merger *m;
    struct tarn_op op;
    struct tarn_buf *out;
    const char *key;
    struct tarn_status *status;
    struct tarn_gate *done;
};

static void run_fetch(void *arg)
{
    struct fetch *f = arg;
    f->status = tarn_store_get(f->m->table->env->store, &f->op, f->key, f->out);
    tarn_gate_open(f->done);
}

static const char *key_of(struct merger *m, const struct tarn_manifest_file *file)
{
    return tarn_table__key(m->op, m->table, "manifest/%.*s", TARN_SLICE_ARG(file->name));
}

static void begin_fetch(struct merger *m, size_t i, struct fetch *f)
{
    *f = (struct fetch){
        .m = m, .out = &m->held[i], .key = key_of(m, &m->work->before[i]), .done = tarn_gate_new()};
    tarn_op_init_child(&f->op, m->op);
    tarn_exec_post(m->table->env->exec, run_fetch, f);
}

static void end_fetch(struct fetch *f, struct tarn_status **first)
{
    tarn_gate_wait(f->done, NULL); /* its op is cancelled with the merge's */
    tarn_gate_free(f->done);
    tarn_op_fini(&f->op);
    if (*first == TARN_OK)
        *first = f->status;
    else
        tarn_status_free(f->status);
}

/* Those of [begin, end) that are asked for, FETCHES_MAX at a time. */
static struct tarn_status *fetch_all(struct merger *m, size_t begin, size_t end)
{
    struct fetch fetches[FETCHES_MAX];
    struct tarn_status *first = TARN_OK;
    size_t begun = begin, ended = begin;
    while (ended < end) {
        for (; begun < end && begun - ended < FETCHES_MAX && first == TARN_OK; begun++)
            begin_fetch(m, begun, &fetches[begun % FETCHES_MAX]);
        if (ended == begun)
            break;
        end_fetch(&fetches[ended++ % FETCHES_MAX], &first);
    }
    return first;
}

/* Takes all manifests of [begin, end) into memory at once, where they are far away and small. */
static struct tarn_status *hold(struct merger *m, size_t begin, size_t end)
{
    int64_t size = 0;
    if (!tarn_store_is_remote(m->table->env->store))
        return TARN_OK;
    for (size_t i = begin; i < end; i++)
        size += TARN_MIN(m->work->before[i].size, (int64_t)HELD_SIZE_MAX);
    if (size > HELD_SIZE_MAX)
        return TARN_OK;
    struct tarn_status *s = fetch_all(m, begin, end);
    return s == TARN_OK ? s : tarn_status_wrap(s, "table %s", tarn_table_name(m->table));
}

typedef struct tarn_status *(*entries_fn)(struct merger *m, struct tarn_manifest_entry *entries,
                                          size_t count);

struct reading { /* of one manifest */
    struct merger *m;
    const struct tarn_manifest_file *file;
    entries_fn fn;
};

static struct tarn_status *take_entries(void *arg, struct tarn_manifest_entry *entries,
                                        size_t count)
{
    const struct reading *r = arg;
    for (size_t i = 0; i < count; i++) {
        if (!entries[i].file.unknown)
            continue;
        r->m->work->fixed_name = tarn_arena_copy(r->m->work->arena, r->file->name);
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "table %s, manifest %.*s has fields of a later version",
                               r->m->table->name, TARN_SLICE_ARG(r->file->name));
    }
    return r->fn(r->m, entries, count);
}

static struct tarn_status *read_file(struct merger *m, const struct tarn_manifest_file *file,
                                     entries_fn fn)
{
    struct reading r = {m, file, fn};
    struct tarn_slice held = tarn_buf_slice(&m->held[file - m->work->before]);
    return held.size > 0 ? tarn_table__walk_bytes(m->op, m->table, file, held, take_entries, &r)
                         : tarn_table__walk_manifest(m->op, m->table, file, take_entries, &r);
}

static struct tarn_status *note_deletes(struct merger *m, struct tarn_manifest_entry *entries,
                                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != TARN_ENTRY_DELETE)
            continue;
        note_delete(&m->fates, &entries[i], &m->scratch);
        if (m->partitions != NULL && tarn_map_count(m->partitions) <= PARTITIONS_MAX)
            tarn_map_set(m->partitions, entries[i].partition, m);
    }
    return TARN_OK;
}

/* --- writing --- */

static struct tarn_status *begin_manifest(struct merger *m)
{
    const struct tarn_options *options = &m->work->view->options;
    uint8_t sync[16];
    tarn_random_bytes(sync, sizeof sync);
    tarn_buf_clear(&m->bytes);
    m->summary = (struct tarn_manifest_file){.schema_id = m->work->view->schema.id};
    m->summary.partition_stats = tarn_stats_empty();
    return tarn_manifest_writer_new(options->manifest_compression, options->zstd_level, sync,
                                    &m->bytes, &m->writer);
}

static void add_after(struct merger *m, const struct tarn_manifest_file *file, bool is_new)
{
    struct tarn_merge_work *work = m->work;
    tarn_assert(work->after_count < work->before_count);
    work->after[work->after_count] = *file;
    work->is_new[work->after_count++] = is_new;
}

static struct tarn_status *end_manifest(struct merger *m)
{
    if (m->writer == NULL)
        return TARN_OK;
    TARN_TRY(tarn_manifest_writer_end(m->writer));
    tarn_manifest_writer_free(m->writer);
    m->writer = NULL;
    char uuid[TARN_UUID_SIZE]; /* nobody else can have this name */
    tarn_uuid_random(uuid);
    struct tarn_manifest_file file = m->summary;
    file.name = tarn_slice_str(tarn_arena_printf(m->work->arena, "manifest-%s-0", uuid));
    file.size = (int64_t)m->bytes.size;
    struct tarn_new_object object = {
        .key = tarn_table__key(m->op, m->table, "manifest/%.*s", TARN_SLICE_ARG(file.name)),
        .body = tarn_buf_slice(&m->bytes)};
    add_after(m, &file, true); /* before it is there: a put that fails may have come through */
    TARN_TRY(tarn_table__check_here(m->table));
    return tarn_store_put_many(m->table->env->store, m->op, &object, 1);
}

static struct tarn_status *write_entries(struct merger *m,
                                         const struct tarn_manifest_entry *entries, size_t count)
{
    if (count == 0)
        return TARN_OK;
    if (m->writer == NULL) {
        m->room--;
        TARN_TRY(begin_manifest(m));
    }
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_manifest_file part;
    TARN_TRY(tarn_manifest_writer_add(m->writer, entries, count));
    TARN_TRY(tarn_manifest_summarize(entries, count, m->partition_types, m->partition_column_count,
                                     m->work->view->schema.id, arena, &part));
    TARN_TRY(tarn_manifest_summary_join(m->partition_types, m->partition_column_count, &part,
                                        m->work->arena, &m->summary));
    bool full = (int64_t)m->bytes.size >= m->work->view->options.manifest_target_size;
    return full && m->room > 0 ? end_manifest(m) : TARN_OK;
}

static bool add_vanishes(struct fate *fate)
{
    if (fate == NULL || fate->deletes <= fate->adds)
        return false;
    fate->adds++;
    return true;
}

/* full: all ADDs are at hand, so that a DELETE without one is about nothing. */
static bool delete_vanishes(struct fate *fate, bool full)
{
    bool has_add = fate != NULL && fate->adds > 0;
    if (fate != NULL && fate->deletes > 0)
        fate->deletes--;
    if (has_add)
        fate->adds--;
    return has_add || full;
}

/* Keeps in `entries` what stays. */
static size_t drop_pairs(struct merger *m, struct tarn_manifest_entry *entries, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct fate *fate = find_fate(&m->fates, &entries[i], &m->scratch);
        if (entries[i].kind == TARN_ENTRY_ADD ? add_vanishes(fate) : delete_vanishes(fate, m->full))
            continue;
        entries[kept++] = entries[i];
    }
    m->work->entry_count += (int64_t)count;
    m->work->dropped_count += (int64_t)(count - kept);
    return kept;
}

static struct tarn_status *copy_block(struct merger *m, struct tarn_manifest_entry *entries,
                                      size_t count)
{
    return write_entries(m, entries, drop_pairs(m, entries, count));
}

/* --- a full merge --- */

static struct tarn_status *find_match(struct merger *m, struct tarn_manifest_entry *entries,
                                      size_t count)
{
    for (size_t i = 0; i < count && !m->matched; i++) {
        const struct fate *fate = find_fate(&m->fates, &entries[i], &m->scratch);
        m->matched = fate != NULL && fate->deletes > fate->adds;
    }
    return TARN_OK;
}

static bool within(const struct tarn_type *type, const struct tarn_value *value,
                   const struct tarn_value *min, const struct tarn_value *max, int64_t null_count)
{
    if (value->is_null)
        return null_count != 0;
    return (min->is_null || tarn_value_compare(type, value, min) >= 0) &&
           (max->is_null || tarn_value_compare(type, value, max) <= 0);
}

/* Can the manifest hold files of this partition? */
static bool may_hold(const struct merger *m, const struct tarn_manifest_file *file,
                     struct tarn_slice partition, struct tarn_value *scratch)
{
    const struct tarn_type *const *types = m->partition_types;
    size_t n = m->partition_column_count;
    struct tarn_value *min = scratch, *max = scratch + n, *row = scratch + 2 * n;
    const struct tarn_stats *stats = &file->partition_stats;
    struct tarn_status *s = tarn_row_deserialize(stats->min, types, n, min);
    if (s == TARN_OK)
        s = tarn_row_deserialize(stats->max, types, n, max);
    if (s == TARN_OK)
        s = tarn_row_deserialize(partition, types, n, row);
    bool may = true;
    for (size_t i = 0; i < n && s == TARN_OK && may; i++)
        may = within(types[i], &row[i], &min[i], &max[i],
                     i < stats->count ? stats->null_counts[i] : TARN_STATS_UNKNOWN);
    tarn_status_free(s); /* what can't be read excludes nothing */
    return may;
}

static bool may_hold_deleted(const struct merger *m, const struct tarn_manifest_file *file)
{
    if (m->fates.count == 0)
        return false;
    if (m->partition_column_count == 0 || tarn_map_count(m->partitions) > PARTITIONS_MAX)
        return true;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_value *scratch =
        tarn_arena_calloc(arena, m->partition_column_count * 3, sizeof *scratch);
    size_t cursor = 0;
    struct tarn_slice partition;
    void *value;
    while (tarn_map_next(m->partitions, &cursor, &partition, &value))
        if (may_hold(m, file, partition, scratch))
            return true;
    return false;
}

static struct tarn_status *rewrite_or_keep(struct merger *m, const struct tarn_manifest_file *file,
                                           bool changes, bool may_change)
{
    m->matched = changes;
    if (!changes && may_change)
        TARN_TRY(read_file(m, file, find_match));
    if (!m->matched) {
        add_after(m, file, false);
        return TARN_OK;
    }
    m->room += !changes;
    return read_file(m, file, copy_block);
}

/* *done false: there is nothing to gain by one. */
static struct tarn_status *merge_full(struct merger *m, bool *done)
{
    struct tarn_merge_work *work = m->work;
    int64_t target = work->view->options.manifest_target_size;
    bool *may_change = tarn_arena_calloc(work->arena, work->before_count, sizeof *may_change);
    size_t count = 0;
    for (size_t i = 0; i < work->before_count; i++)
        if (work->before[i].deleted_count > 0)
            TARN_TRY(read_file(m, &work->before[i], note_deletes));
    for (size_t i = 0; i < work->before_count; i++) {
        bool changes = tarn_table__must_change(&work->before[i], target);
        may_change[i] = changes || may_hold_deleted(m, &work->before[i]);
        m->room += changes;
        count += may_change[i];
    }
    *done = count > 1;
    m->full = true;
    for (size_t i = 0; i < work->before_count && *done; i++)
        TARN_TRY(rewrite_or_keep(m, &work->before[i],
                                 tarn_table__must_change(&work->before[i], target), may_change[i]));
    work->changed = *done;
    return *done ? end_manifest(m) : TARN_OK;
}

/* --- a minor one --- */

static struct tarn_status *merge_run(struct merger *m, const struct tarn_manifest_file *files,
                                     size_t count)
{
    size_t begin = (size_t)(files - m->work->before);
    fates_fini(&m->fates);
    m->room = count;
    TARN_TRY(hold(m, begin, begin + count));
    for (size_t i = 0; i < count; i++)
        if (files[i].deleted_count > 0)
            TARN_TRY(read_file(m, &files[i], note_deletes));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(read_file(m, &files[i], copy_block));
    drop_held(m, begin, begin + count);
    m->work->changed = true;
    return end_manifest(m);
}

static struct tarn_status *merge_minor(struct merger *m, const struct tarn_map *fixed)
{
    struct tarn_merge_work *work = m->work;
    struct tarn_merge_run *runs =
        tarn_arena_calloc(work->arena, work->before_count + 1, sizeof *runs);
    size_t run_count =
        tarn_table__minor_runs(&work->view->options, fixed, work->before, work->before_count, runs);
    size_t at = 0;
    m->full = false;
    for (size_t r = 0; r < run_count; r++) {
        for (; at < runs[r].begin; at++)
            add_after(m, &work->before[at], false);
        TARN_TRY(merge_run(m, work->before + at, runs[r].end - at));
        at = runs[r].end;
    }
    for (; at < work->before_count; at++)
        add_after(m, &work->before[at], false);
    return TARN_OK;
}

struct tarn_status *tarn_table__merge_work(struct tarn_op *op, struct tarn_table *table,
                                           const struct tarn_map *fixed,
                                           struct tarn_merge_work *work)
{
    const struct tarn_schema *schema = &work->view->schema;
    TARN_OWN(merger_fini)
    struct merger m = {.op = op, .table = table, .work = work, .partitions = tarn_map_new()};
    m.held = tarn_arena_calloc(work->arena, work->before_count + 1, sizeof *m.held);
    m.partition_types = tarn_partition_types(schema, work->arena);
    m.partition_column_count = schema->partition_key_count;
    work->after = tarn_arena_calloc(work->arena, work->before_count + 1, sizeof *work->after);
    work->is_new = tarn_arena_calloc(work->arena, work->before_count + 1, sizeof *work->is_new);
    bool done = false;
    if (work->full)
        TARN_TRY(merge_full(&m, &done));
    return done ? TARN_OK : merge_minor(&m, fixed);
}

/* --- copies --- */

void tarn_table__keep_manifest(struct tarn_arena *arena, const struct tarn_manifest_file *in,
                               struct tarn_manifest_file *out)
{
    const struct tarn_stats *stats = &in->partition_stats;
    int64_t *counts = tarn_arena_calloc(arena, stats->count + 1, sizeof *counts);
    if (stats->count > 0)
        memcpy(counts, stats->null_counts, stats->count * sizeof *counts);
    *out = *in;
    out->name = tarn_arena_copy(arena, in->name);
    out->partition_stats.min = tarn_arena_copy(arena, stats->min);
    out->partition_stats.max = tarn_arena_copy(arena, stats->max);
    out->partition_stats.null_counts = counts;
}
