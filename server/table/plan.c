#include "table/plan.h"

/*
 * Planning: which files hold rows of a snapshot, or of what changed between two, that a query may want. The index is
 * walked bucket by bucket, not the manifests. Files are dropped only where it is proven that no row passes; what the
 * plan keeps is filtered exactly by the reader.
 */

#define BATCH_ARENA_SIZE ((size_t)1 << 20)

struct batch { /* lists on the heap; their memory serves all batches of a plan */
    struct tarn_split *splits;
    size_t split_count, split_capacity;
    size_t *first_files;          /* of each split, in `files` */
    struct tarn_plan_file *files; /* as_bytes: NULL, and `bytes` instead */
    struct tarn_plan_bytes *bytes;
    size_t file_count, file_capacity;
    struct tarn_late_file *late; /* whose statistics are still to be fetched */
    size_t late_count, late_capacity;
    struct tarn_buf stats;    /* of those */
    struct tarn_arena *arena; /* of lists in files; NULL: none yet */
};

struct tarn_plan_cursor {
    struct tarn_planner p;
    struct tarn_bucket_work *work;  /* what is being given out; NULL: none */
    struct tarn_bucket_work *spent; /* what the last batch borrows from, besides `work` */
    struct tarn_bucket_work *spare; /* its memory serves the next bucket */
    struct batch batch;             /* the last one */
    int64_t begun_ns;
};

/* --- the beginning --- */

/* The schema a plan reads with: the current one, or for time travel that of the snapshot. */
static struct tarn_status *choose_schema(struct tarn_planner *p, const struct tarn_table_view *view)
{
    const struct tarn_version *v = &p->request.version;
    bool travels = v->snapshot_id != TARN_SNAPSHOT_NONE || v->time_ms != TARN_SNAPSHOT_NONE ||
                   v->watermark != TARN_SNAPSHOT_NONE || v->tag.size > 0;
    travels &= p->request.changes == TARN_CHANGES_NONE && p->plan.has_snapshot;
    int64_t id = travels ? p->plan.snapshot.schema_id : view->schema.id;
    TARN_TRY(tarn_table_schema(p->op, p->table, id, &p->plan.schema));
    struct tarn_options *options = tarn_arena_calloc(p->op->arena, 1, sizeof *options);
    struct tarn_status *s = tarn_options_parse(p->plan.schema, p->op->arena, options);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %s, schema-%" PRId64, tarn_table_name(p->table), id);
    p->plan.options = options;
    p->schema_capacity = view->schema.id + 1;
    p->schemas = tarn_arena_calloc(p->op->arena, (size_t)p->schema_capacity, sizeof *p->schemas);
    return TARN_OK;
}

/* A tag's snapshot may have expired: then the index doesn't know its files any more. */
static struct tarn_status *is_indexed(struct tarn_planner *p, const struct tarn_table_view *view,
                                      bool *out)
{
    *out = p->plan.snapshot.id >= view->earliest_id && view->has_snapshot &&
           p->plan.snapshot.id <= view->snapshot.id;
    if (!*out || p->request.version.tag.size == 0)
        return TARN_OK;
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot now;
    TARN_TRY(tarn_table__indexed_snapshot(p->table, p->plan.snapshot.id, out, &json));
    if (!*out)
        return TARN_OK;
    TARN_TRY(tarn_snapshot_decode(tarn_buf_slice(&json), arena, &now));
    *out = tarn_slice_equal(now.base_list, p->plan.snapshot.base_list) &&
           tarn_slice_equal(now.delta_list, p->plan.snapshot.delta_list);
    return TARN_OK;
}

/* Readers of a state of a table with deletion vectors see nothing before it was compacted: versions of a row that a file of level 0
 * takes the place of are marked by then, so that nothing is merged (docs/format.md, "Deletion vectors"). So it is with merge-engine = first-row. */
static bool skips_level_0(const struct tarn_planner *p)
{
    const struct tarn_options *o = p->plan.options;
    bool hidden = (o->deletion_vectors && !o->vectors_merge_on_read) || o->skip_level_0;
    return !p->is_append && hidden && p->request.changes == TARN_CHANGES_NONE &&
           !p->request.no_splits && !p->request.with_level_0;
}

static struct tarn_status *prepare(struct tarn_plan_cursor *c)
{
    struct tarn_planner *p = &c->p;
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(p->table);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    do { /* an index that is built anew, and a view from before, don't go together */
        TARN_TRY(tarn_op_check(p->op));
        tarn_table_view_drop(&view);
        p->epoch = tarn_table__pages_epoch(p->table);
        TARN_TRY(tarn_table_snapshot(p->op, p->table, p->request.version, &p->plan.has_snapshot,
                                     &p->plan.snapshot));
        TARN_TRY(tarn_table_look(p->op, p->table, &view));
    } while (!tarn_table__is_whole(p->table) || p->epoch != tarn_table__pages_epoch(p->table));
    TARN_TRY(choose_schema(p, view));
    TARN_TRY(tarn_plan__prepare(p));
    p->skips_level_0 = skips_level_0(p);
    if (p->request.changes != TARN_CHANGES_NONE) {
        p->is_listed = true;
        TARN_TRY(tarn_plan__list_changes(p, view->earliest_id));
        return p->request.changes_from < p->plan.snapshot.id
                   ? tarn_table__pages_check(p->table, p->epoch, p->request.changes_from + 1)
                   : TARN_OK;
    }
    bool indexed = true;
    if (!p->plan.has_snapshot)
        p->ended = true;
    else
        TARN_TRY(is_indexed(p, view, &indexed));
    p->is_listed = !indexed;
    if (p->plan.has_snapshot)
        TARN_TRY(tarn_plan__load_vectors(p));
    return indexed ? TARN_OK : tarn_plan__list_manifests(p);
}

struct tarn_status *tarn_table_plan_begin(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_plan_request *request,
                                          struct tarn_plan_cursor **out)
{
    TARN_OWN(tarn_plan_cursor_drop) struct tarn_plan_cursor *c = tarn_calloc(1, sizeof *c);
    c->begun_ns = tarn_clock_mono_ns();
    c->p.op = op;
    c->p.table = tarn_table_ref(table);
    c->p.request = *request;
    c->p.listed_arena = tarn_arena_new();
    TARN_TRY(prepare(c));
    *out = tarn_move(c);
    return TARN_OK;
}

const struct tarn_plan *tarn_plan_cursor_head(const struct tarn_plan_cursor *cursor)
{
    return &cursor->p.plan;
}

static void free_spent(struct tarn_plan_cursor *c)
{
    while (c->spent != NULL) {
        struct tarn_bucket_work *work = c->spent;
        c->spent = work->next;
        if (c->spare == NULL)
            c->spare = work;
        else
            tarn_plan__work_free(work);
    }
    if (c->batch.arena != NULL && tarn_arena_size(c->batch.arena) > BATCH_ARENA_SIZE)
        tarn_arena_drop(&c->batch.arena);
    c->batch.file_count = c->batch.split_count = c->batch.late_count = 0;
}

void tarn_plan_cursor_free(struct tarn_plan_cursor *c)
{
    if (c == NULL)
        return;
    free_spent(c);
    tarn_plan__work_free(c->spare);
    tarn_plan__work_free(c->work);
    free(c->batch.splits);
    free(c->batch.first_files);
    free(c->batch.files);
    free(c->batch.bytes);
    free(c->batch.late);
    tarn_buf_drop(&c->batch.stats);
    tarn_arena_free(c->batch.arena);
    tarn_plan__covering_free(c->p.covering);
    tarn_plan__vectors_free(c->p.vectors);
    free(c->p.listed);
    tarn_arena_free(c->p.listed_arena);
    tarn_arena_free(c->p.scratch);
    tarn_buf_drop(&c->p.last_partition);
    tarn_buf_drop(&c->p.after);
    tarn_table_unref(c->p.table);
    free(c);
}

void tarn_plan_cursor_drop(struct tarn_plan_cursor **cursor)
{
    tarn_plan_cursor_free(*cursor);
    *cursor = NULL;
}

/* --- batches --- */

static void grow_files(struct batch *b, bool as_bytes)
{
    if (b->file_count < b->file_capacity)
        return;
    b->file_capacity = b->file_capacity == 0 ? TARN_PLAN_BATCH_FILES : b->file_capacity * 2;
    if (as_bytes)
        b->bytes = tarn_realloc(b->bytes, b->file_capacity * sizeof *b->bytes);
    else
        b->files = tarn_realloc(b->files, b->file_capacity * sizeof *b->files);
}

/* A file as the caller gets it; its bytes are those of the work on its bucket. *deleted: rows of it that may be marked as deleted. */
static struct tarn_status *put_file(struct tarn_plan_cursor *c, struct batch *b,
                                    const struct tarn_bucket_work *work, const struct tarn_ref *ref,
                                    int64_t *deleted)
{
    const struct tarn_plan_request *request = &c->p.request;
    struct tarn_slice packed = tarn_slice_of(ref->packed, ref->packed_size);
    const struct tarn_vector_at *vector = NULL;
    if (c->p.vectors != NULL)
        vector = tarn_plan__find_vector(&c->p, work->partition, work->bucket,
                                        tarn_slice_of(ref->packed + ref->name_at, ref->name_size));
    *deleted = vector == NULL                              ? 0
               : vector->ref.cardinality == TARN_FILE_NONE ? ref->row_count
                                                           : vector->ref.cardinality;
    grow_files(b, request->as_bytes);
    if (request->with_stats && !ref->has_stats) {
        TARN_GROW(b->late, b->late_count, b->late_capacity);
        b->late[b->late_count++] =
            (struct tarn_late_file){work, ref, 0, (uint32_t)b->file_count, ref->order};
    }
    if (request->as_bytes) {
        struct tarn_plan_bytes *bytes = &b->bytes[b->file_count];
        TARN_TRY(tarn_manifest_entry_fields(packed, &bytes->file, &bytes->stats));
        bytes->vector = vector == NULL ? (struct tarn_slice){0} : vector->fields;
    } else {
        struct tarn_plan_file *file = &b->files[b->file_count];
        TARN_TRY(tarn_manifest_entry_view(packed, b->arena, &file->entry));
        file->entry.kind = TARN_ENTRY_ADD;
        file->entry.partition = work->partition;
        file->added_by = ref->added_by;
        if (vector != NULL)
            file->entry.file.vector = vector->ref;
        if (ref->has_stats && !request->with_stats) {
            struct tarn_data_file *f = &file->entry.file;
            f->key_stats = f->value_stats = tarn_stats_empty();
            f->has_value_stats_columns = true;
            f->value_stats_columns = NULL;
            f->value_stats_column_count = 0;
        }
    }
    b->file_count++;
    c->p.plan.files_left++;
    c->p.plan.rows += ref->row_count;
    return TARN_OK;
}

static struct tarn_status *put_late_stats(struct tarn_plan_cursor *c, struct batch *b)
{
    TARN_TRY(tarn_plan__late_stats(&c->p, b->late, b->late_count, &b->stats));
    for (size_t i = 0, end; i < b->late_count; i++) {
        const struct tarn_late_file *late = &b->late[i];
        end = i + 1 < b->late_count ? late[1].at : b->stats.size;
        struct tarn_slice packed = tarn_slice_of(b->stats.data + late->at, end - late->at);
        if (c->p.request.as_bytes)
            TARN_TRY(tarn_manifest_stats_fields(packed, &b->bytes[late->place].stats));
        else
            TARN_TRY(tarn_manifest_stats_view(packed, b->arena, &b->files[late->place].entry.file));
    }
    return TARN_OK;
}

/* Rows that a reader surely gets of a file: none is merged away, none deleted. */
static bool rows_are_sure(const struct tarn_planner *p, bool raw, const struct tarn_ref *ref)
{
    return raw && !ref->has_deletes && !p->has_where && p->request.changes == TARN_CHANGES_NONE;
}

static bool limit_reached(const struct tarn_planner *p)
{
    return p->request.has_limit && p->sure_rows >= p->request.limit;
}

static struct tarn_status *put_split(struct tarn_plan_cursor *c, struct batch *b,
                                     struct tarn_bucket_work *work)
{
    struct tarn_planner *p = &c->p;
    size_t begin = work->next_ref, end = work->split_ends[work->next_split];
    bool raw = work->split_raw[work->next_split++];
    work->next_ref = end;
    if (b->split_count == b->split_capacity) {
        b->split_capacity = b->split_capacity == 0 ? 64 : b->split_capacity * 2;
        b->splits = tarn_realloc(b->splits, b->split_capacity * sizeof *b->splits);
        b->first_files = tarn_realloc(b->first_files, b->split_capacity * sizeof *b->first_files);
    }
    struct tarn_split *split = &b->splits[b->split_count];
    *split = (struct tarn_split){.partition = work->partition,
                                 .bucket = work->bucket,
                                 .total_buckets = work->refs[begin].total_buckets,
                                 .raw = raw,
                                 .is_changelog = p->is_changelog};
    b->first_files[b->split_count++] = b->file_count;
    p->plan.splits_left++;
    for (size_t i = begin; i < end; i++) {
        const struct tarn_ref *ref = &work->refs[i];
        int64_t deleted;
        if (limit_reached(p)) {
            p->plan.pruned_by_limit += (int64_t)(end - i);
            break;
        }
        TARN_TRY(put_file(c, b, work, ref, &deleted));
        *(ref->is_before ? &split->before_count : &split->file_count) += 1;
        if (rows_are_sure(p, raw, ref))
            p->sure_rows += ref->row_count - TARN_MIN(deleted, ref->row_count);
    }
    return TARN_OK;
}

/* Files of `tarn files` come one by one, however many a bucket has. */
static struct tarn_status *put_files(struct tarn_plan_cursor *c, struct batch *b,
                                     struct tarn_bucket_work *work)
{
    int64_t deleted;
    while (work->next_ref < work->count && b->file_count < TARN_PLAN_BATCH_FILES)
        TARN_TRY(put_file(c, b, work, &work->refs[work->next_ref++], &deleted));
    if (work->next_ref == work->count)
        work->next_split = work->split_count;
    return TARN_OK;
}

static struct tarn_status *fill(struct tarn_plan_cursor *c, struct batch *b)
{
    struct tarn_bucket_work *work = c->work;
    while (work->next_split < work->split_count && b->file_count < TARN_PLAN_BATCH_FILES) {
        if (c->p.request.no_splits) {
            TARN_TRY(put_files(c, b, work));
        } else if (limit_reached(&c->p)) {
            c->p.plan.pruned_by_limit += (int64_t)(work->count - work->next_ref);
            work->next_split = work->split_count;
        } else {
            TARN_TRY(put_split(c, b, work));
        }
    }
    return TARN_OK;
}

/* The limit is reached: what is left is only counted. */
static struct tarn_status *count_rest(struct tarn_planner *p)
{
    TARN_OWN(tarn_page_bucket_fini) struct tarn_page_bucket bucket = {0};
    bool found = !p->is_listed;
    p->ended = true;
    p->plan.pruned_by_limit += (int64_t)(p->listed_count - p->listed_next);
    while (found) {
        TARN_TRY(tarn_op_check(p->op));
        TARN_TRY(
            tarn_table__pages_next(p->op, p->table, tarn_buf_slice(&p->after), &found, &bucket));
        if (!found)
            break;
        p->plan.files_seen += bucket.file_count;
        p->plan.pruned_by_limit += bucket.file_count;
        tarn_buf_clear(&p->after);
        tarn_buf_add_slice(&p->after, tarn_buf_slice(&bucket.key));
    }
    return TARN_OK;
}

/* The next bucket becomes the work; none: the plan has ended. */
static struct tarn_status *next_work(struct tarn_plan_cursor *c)
{
    struct tarn_planner *p = &c->p;
    if (limit_reached(p))
        return count_rest(p);
    TARN_OWN(tarn_plan__work_drop) struct tarn_bucket_work *work = tarn_plan__work_new(c->spare);
    bool found = false;
    c->spare = NULL;
    TARN_TRY(tarn_plan__next_bucket(p, &found, work));
    p->ended = !found;
    if (!found)
        return TARN_OK;
    TARN_TRY(tarn_plan__split_bucket(p, work));
    c->work = tarn_move(work);
    return TARN_OK;
}

/* What others did to the folder is noticed while a long plan is read, too. */
static struct tarn_status *look_again(struct tarn_planner *p)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    return tarn_table_look(p->op, p->table, &view);
}

/* Buckets that weren't met are gone from the history of this plan only if that is still the table's. */
static struct tarn_status *finish(struct tarn_plan_cursor *c)
{
    const struct tarn_planner *p = &c->p;
    if (!p->is_listed)
        TARN_TRY(tarn_table__pages_check(p->table, p->epoch, p->plan.snapshot.id));
    tarn_metric_add(TARN_M_PLANS, NULL, 1);
    tarn_metric_observe(TARN_M_PLAN_SECONDS, NULL,
                        (double)(tarn_clock_mono_ns() - c->begun_ns) / 1e9);
    return TARN_OK;
}

/* Pointers into a batch's lists are set once these no longer move. */
static void settle(struct batch *b, struct tarn_plan_batch *out)
{
    for (size_t i = 0; i < b->split_count && b->files != NULL; i++) {
        b->splits[i].files = b->files + b->first_files[i];
        b->splits[i].before_files = b->splits[i].files + b->splits[i].file_count;
    }
    *out = (struct tarn_plan_batch){b->splits, b->split_count, b->files, b->bytes, b->file_count};
}

struct tarn_status *tarn_plan_cursor_next(struct tarn_plan_cursor *c, struct tarn_plan_batch *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(c->p.table);
    struct batch *b = &c->batch;
    free_spent(c);
    if (b->arena == NULL)
        b->arena = tarn_arena_new();
    TARN_TRY(tarn_table__check_here(c->p.table));
    TARN_TRY(tarn_op_check(c->p.op));
    bool was_ended = c->p.ended;
    if (!was_ended && !c->p.is_listed)
        TARN_TRY(look_again(&c->p));
    while (b->file_count < TARN_PLAN_BATCH_FILES) {
        if (c->work == NULL && !c->p.ended)
            TARN_TRY(next_work(c));
        if (c->work == NULL)
            break;
        TARN_TRY(fill(c, b));
        if (c->work->next_split == c->work->split_count) {
            c->work->next = c->spent;
            c->spent = tarn_move(c->work);
        }
    }
    TARN_TRY(put_late_stats(c, b));
    if (c->p.ended && !was_ended)
        TARN_TRY(finish(c));
    settle(b, out);
    return TARN_OK;
}

/* --- all at once --- */

static struct tarn_slice keep(struct tarn_arena *arena, struct tarn_slice s)
{
    return s.data == NULL ? s : tarn_arena_copy(arena, s);
}

static struct tarn_stats keep_stats(struct tarn_arena *arena, const struct tarn_stats *stats)
{
    struct tarn_stats kept = {keep(arena, stats->min), keep(arena, stats->max), NULL, stats->count};
    kept.null_counts =
        (const int64_t *)(const void *)tarn_arena_copy(
            arena, tarn_slice_of(stats->null_counts, stats->count * sizeof *stats->null_counts))
            .data;
    return kept;
}

static const struct tarn_slice *keep_list(struct tarn_arena *arena, const struct tarn_slice *list,
                                          size_t count)
{
    struct tarn_slice *kept = tarn_arena_alloc(arena, (count + 1) * sizeof *kept);
    for (size_t i = 0; i < count; i++)
        kept[i] = keep(arena, list[i]);
    return kept;
}

/* A file that outlives its batch. */
static void keep_file(struct tarn_arena *arena, const struct tarn_plan_file *from,
                      struct tarn_slice partition, struct tarn_plan_file *to)
{
    *to = *from;
    struct tarn_data_file *f = &to->entry.file;
    to->entry.partition = partition;
    f->name = keep(arena, f->name);
    f->min_key = keep(arena, f->min_key);
    f->max_key = keep(arena, f->max_key);
    f->embedded_index = keep(arena, f->embedded_index);
    f->external_path = keep(arena, f->external_path);
    f->vector.path = keep(arena, f->vector.path);
    f->key_stats = keep_stats(arena, &f->key_stats);
    f->value_stats = keep_stats(arena, &f->value_stats);
    f->extra_files = keep_list(arena, f->extra_files, f->extra_file_count);
    f->value_stats_columns = keep_list(arena, f->value_stats_columns, f->value_stats_column_count);
    f->write_columns = keep_list(arena, f->write_columns, f->write_column_count);
    f->write_column_sequences =
        (const int64_t *)(const void *)tarn_arena_copy(
            arena, tarn_slice_of(f->write_column_sequences, f->write_column_sequence_count *
                                                                sizeof *f->write_column_sequences))
            .data;
}

struct whole { /* lists that grow, on the heap, until all is there */
    struct tarn_plan_file *files;
    size_t file_count, file_capacity;
    struct tarn_split *splits;
    size_t split_count, split_capacity;
    struct tarn_slice partition;
};

static void whole_fini(struct whole *w)
{
    free(w->files);
    free(w->splits);
}

static void take_batch(struct tarn_arena *arena, const struct tarn_plan_batch *batch,
                       struct whole *w)
{
    for (size_t i = 0; i < batch->file_count; i++) {
        struct tarn_slice partition = batch->files[i].entry.partition;
        if (w->partition.data == NULL || !tarn_slice_equal(partition, w->partition))
            w->partition = tarn_arena_copy(arena, partition);
        TARN_GROW(w->files, w->file_count, w->file_capacity);
        keep_file(arena, &batch->files[i], w->partition, &w->files[w->file_count++]);
    }
    for (size_t i = 0; i < batch->split_count; i++) {
        TARN_GROW(w->splits, w->split_count, w->split_capacity);
        w->splits[w->split_count++] = batch->splits[i];
    }
}

struct tarn_status *tarn_table_plan(struct tarn_op *op, struct tarn_table *table,
                                    const struct tarn_plan_request *request, struct tarn_plan *out)
{
    TARN_OWN(tarn_plan_cursor_drop) struct tarn_plan_cursor *cursor = NULL;
    TARN_OWN(whole_fini) struct whole w = {0};
    struct tarn_plan_batch batch;
    TARN_TRY(tarn_table_plan_begin(op, table, request, &cursor));
    do {
        TARN_TRY(tarn_plan_cursor_next(cursor, &batch));
        take_batch(op->arena, &batch, &w);
    } while (batch.file_count > 0);
    *out = cursor->p.plan;
    out->files = tarn_arena_alloc(op->arena, (w.file_count + 1) * sizeof *out->files);
    out->splits = tarn_arena_alloc(op->arena, (w.split_count + 1) * sizeof *out->splits);
    out->file_count = w.file_count;
    out->split_count = w.split_count;
    if (w.file_count > 0)
        memcpy(out->files, w.files, w.file_count * sizeof *w.files);
    if (w.split_count > 0)
        memcpy(out->splits, w.splits, w.split_count * sizeof *w.splits);
    struct tarn_plan_file *next = out->files;
    for (size_t i = 0; i < out->split_count; i++) {
        struct tarn_split *split = &out->splits[i];
        split->partition = next->entry.partition;
        split->files = next;
        split->before_files = next + split->file_count;
        next += split->file_count + split->before_count;
    }
    return TARN_OK;
}
