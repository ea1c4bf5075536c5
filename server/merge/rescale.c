/*
 * rescale - all files of a partition become those of another bucket count; files that wait for buckets become those of real ones.
 *
 *   levels that readers know of  -> merged      -> writer -> the last level
 *   levels that they don't       -> as given    -> writer -> level 0
 *
 * Where a compaction is what brings rows to readers (first-row, changelog-producer = lookup or full-compaction), what it hasn't seen yet
 * must stay so: else rows would never be in a changelog, or be twice in it.
 */
#include "merge/internal.h"

struct rescale {
    const struct tarn_merge_table *table;
    const struct tarn_rescale_spec *spec;
    struct tarn_merge_layout layout;
    struct tarn_arena *arena;
    struct tarn_manifest_entry *known, *unknown; /* to readers */
    size_t known_count, unknown_count;
    struct tarn_manifest_entry *merged, *passed; /* written */
    struct tarn_manifest_entry *changelog;
    size_t merged_count, passed_count, changelog_count;
};

/* Readers know of the levels from here on. */
static int32_t first_known_level(const struct tarn_options *options)
{
    if (options->changelog_producer == TARN_CHANGELOG_FULL_COMPACTION)
        return options->level_count - 1;
    return options->changelog_producer == TARN_CHANGELOG_LOOKUP ||
           options->merge_engine == TARN_MERGE_FIRST_ROW;
}

/* By bucket, the older first. */
static int by_age(const void *a, const void *b)
{
    const struct tarn_manifest_entry *l = a, *r = b;
    if (l->bucket != r->bucket)
        return l->bucket < r->bucket ? -1 : 1;
    return tarn_merge__file_age_compare(l, r);
}

/* Numbers of other writers' postponed files say nothing. */
static int by_time(const void *a, const void *b)
{
    const struct tarn_manifest_entry *l = a, *r = b;
    if (l->file.creation_time_ms != r->file.creation_time_ms)
        return l->file.creation_time_ms < r->file.creation_time_ms ? -1 : 1;
    return by_age(a, b);
}

static int by_sequence(const void *a, const void *b)
{
    const struct tarn_manifest_entry *l = a, *r = b;
    if (l->bucket != r->bucket)
        return l->bucket < r->bucket ? -1 : 1;
    if (l->file.min_sequence != r->file.min_sequence)
        return l->file.min_sequence < r->file.min_sequence ? -1 : 1;
    return tarn_slice_compare(l->file.name, r->file.name);
}

static void sort_out(struct rescale *r)
{
    const struct tarn_rescale_spec *spec = r->spec;
    int32_t known_level = r->layout.keyed ? first_known_level(r->table->options) : 0;

    r->known = tarn_arena_calloc(r->arena, spec->file_count + 1, sizeof *r->known);
    r->unknown = tarn_arena_calloc(r->arena, spec->file_count + 1, sizeof *r->unknown);
    for (size_t i = 0; i < spec->file_count; i++) {
        const struct tarn_manifest_entry *e = &spec->files[i];
        if (e->file.level >= known_level && !spec->postponed)
            r->known[r->known_count++] = *e;
        else
            r->unknown[r->unknown_count++] = *e;
    }
    qsort(r->known, r->known_count, sizeof *r->known, r->layout.keyed ? by_age : by_sequence);
    qsort(r->unknown, r->unknown_count, sizeof *r->unknown, spec->postponed ? by_time : by_age);
}

static void writer_drop(struct tarn_table_writer **writer)
{
    tarn_table_writer_free(*writer);
}

/* --- what readers know of --- */

static struct tarn_batch *as_inserts(struct tarn_batch *batch)
{
    int n = batch->column_count;
    struct ArrowArray top;

    tarn_merge__array_init(&top, batch->row_count, 1, n + 1);
    for (int i = 0; i < n; i++)
        tarn_merge__array_share(tarn_batch_column(batch, i), batch, 0, batch->row_count,
                                top.children[i]);
    tarn_merge__array_init(top.children[n], batch->row_count, 2, 0);
    tarn_merge__array_buffer(top.children[n], 1, (size_t)batch->row_count, true);
    return tarn_batch_take(&top);
}

static struct tarn_status *open_scan(struct rescale *r, struct tarn_op *op,
                                     struct tarn_source **out)
{
    struct tarn_merge_split *splits =
        tarn_arena_calloc(r->arena, r->known_count + 1, sizeof *splits);
    int *columns =
        tarn_arena_alloc(r->arena, ((size_t)r->layout.column_count + 1) * sizeof *columns);
    size_t n = 0;

    for (int i = 0; i < r->layout.column_count; i++)
        columns[i] = i;
    for (size_t i = 0; i < r->known_count; i++) {
        const struct tarn_manifest_entry *e = &r->known[i];
        if (n == 0 || splits[n - 1].bucket != e->bucket)
            splits[n++] = (struct tarn_merge_split){.partition = e->partition,
                                                    .bucket = e->bucket,
                                                    .raw = !r->layout.keyed,
                                                    .files = e};
        splits[n - 1].file_count++;
    }
    struct tarn_scan_spec spec = {.columns = columns,
                                  .column_count = (size_t)r->layout.column_count,
                                  .limit = -1,
                                  .scratch_dir = r->spec->write->scratch_dir};
    return tarn_scan_open(op, r->table, splits, n, &spec, out);
}

static struct tarn_status *merge_known(struct rescale *r, struct tarn_op *op)
{
    TARN_OWN(writer_drop) struct tarn_table_writer *writer = NULL;
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;

    TARN_TRY(tarn_table_writer_open(op, r->table, r->spec->write, &writer));
    TARN_TRY(open_scan(r, op, &source));
    for (;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        TARN_OWN(tarn_batch_drop) struct tarn_batch *rows = NULL;
        TARN_TRY(tarn_op_check(op));
        TARN_TRY(source->next(source, op, &batch));
        if (batch == NULL)
            break;
        rows = as_inserts(batch);
        TARN_TRY(tarn_table_writer_add(writer, op, rows));
    }
    return tarn_table_writer_finish(writer, op, r->arena, &r->merged, &r->merged_count);
}

/* --- the last level --- */

static int by_bucket(const void *a, const void *b)
{
    const struct tarn_manifest_entry *l = a, *r = b;
    return l->bucket != r->bucket ? (l->bucket < r->bucket ? -1 : 1) : 0;
}

static struct tarn_status *overlaps(const struct rescale *r, const struct tarn_manifest_entry *of,
                                    size_t count, bool *out)
{
    struct tarn_merge_section *sections;
    size_t section_count;

    TARN_TRY(tarn_merge__sections(r->layout.key_types, r->layout.key_count, of, count, r->arena,
                                  &sections, &section_count));
    *out = false;
    for (size_t i = 0; i < section_count; i++)
        *out = *out || sections[i].run_count > 1;
    return TARN_OK;
}

/* Where there was more than a merge in one go can take, a bucket has files that overlap: they stay in level 0. */
static struct tarn_status *lift(struct rescale *r)
{
    int32_t last_level = r->table->options->level_count - 1;

    qsort(r->merged, r->merged_count, sizeof *r->merged, by_bucket);
    for (size_t begin = 0, end; begin < r->merged_count; begin = end) {
        bool overlap;
        for (end = begin + 1;
             end < r->merged_count && r->merged[end].bucket == r->merged[begin].bucket;)
            end++;
        TARN_TRY(overlaps(r, r->merged + begin, end - begin, &overlap));
        if (overlap && first_known_level(r->table->options) > 0)
            return tarn_status_new(
                TARN_UNSUPPORTED_FEATURE,
                "the partition is too large to be rescaled in one go where readers wait for "
                "compaction (merge-engine, changelog-producer): give workers more write buffer");
        for (size_t i = begin; i < end && !overlap; i++)
            r->merged[i].file.level = last_level;
    }
    return TARN_OK;
}

/* --- what they don't know of --- */

static struct tarn_status *pass_unknown(struct rescale *r, struct tarn_op *op)
{
    TARN_OWN(writer_drop) struct tarn_table_writer *writer = NULL;

    if (r->unknown_count == 0)
        return TARN_OK;
    TARN_TRY(tarn_table_writer_open(op, r->table, r->spec->write, &writer));
    TARN_TRY(tarn_table_writer_add_files(writer, op, r->table, r->unknown, r->unknown_count));
    TARN_TRY(tarn_table_writer_finish(writer, op, r->arena, &r->passed, &r->passed_count));
    tarn_table_writer_changelog(writer, r->arena, &r->changelog, &r->changelog_count);
    return TARN_OK;
}

/* --- the whole --- */

static void take_written(struct tarn_compact_result *out, const struct tarn_manifest_entry *written,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out->entries[out->entry_count++] = written[i];
        out->rows_out += written[i].file.row_count;
        out->bytes_out += written[i].file.size;
    }
}

static void make_result(const struct rescale *r, struct tarn_compact_result *out)
{
    const struct tarn_rescale_spec *spec = r->spec;

    *out = (struct tarn_compact_result){0};
    out->entries = tarn_arena_calloc(
        r->arena, spec->file_count + r->merged_count + r->passed_count + 1, sizeof *out->entries);
    for (size_t i = 0; i < spec->file_count; i++) {
        out->entries[out->entry_count] = spec->files[i];
        out->entries[out->entry_count++].kind = TARN_ENTRY_DELETE;
        out->rows_in += spec->files[i].file.row_count;
        out->bytes_in += spec->files[i].file.size;
    }
    take_written(out, r->merged, r->merged_count);
    take_written(out, r->passed, r->passed_count);
    out->changelog = r->changelog;
    out->changelog_count = r->changelog_count;
}

static void remove_merged(const struct rescale *r)
{
    struct tarn_op cleaning; /* the caller's may be cancelled */

    tarn_op_init(&cleaning);
    tarn_merge_remove_files(&cleaning, r->table, r->merged, r->merged_count);
    tarn_op_fini(&cleaning);
}

struct tarn_status *tarn_rescale_run(struct tarn_op *op, const struct tarn_merge_table *table,
                                     const struct tarn_rescale_spec *spec, struct tarn_arena *arena,
                                     struct tarn_compact_result *out)
{
    struct rescale r = {.table = table, .spec = spec, .arena = arena};

    TARN_TRY(tarn_merge__layout_make(table, arena, &r.layout));
    sort_out(&r);
    TARN_TRY(merge_known(&r, op));
    struct tarn_status *s = r.layout.keyed ? lift(&r) : TARN_OK;
    if (s == TARN_OK)
        s = pass_unknown(&r, op);
    if (s != TARN_OK) {
        remove_merged(&r);
        return s;
    }
    make_result(&r, out);
    return TARN_OK;
}
