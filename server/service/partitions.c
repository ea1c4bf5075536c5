#include "service/partitions.h"

/* Partitions as catalogs list them: by name, with the sums that the index keeps and what is noted of them. */

void tarn_service__name_partition(struct tarn_op *op, const struct tarn_schema *schema,
                                  struct tarn_slice path, struct tarn_partition_name *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf part = {0};
    struct tarn_pair *spec =
        tarn_arena_calloc(op->arena, schema->partition_key_count + 1, sizeof *spec);
    while (path.size > 0 && out->spec_count < schema->partition_key_count) {
        const uint8_t *slash = memchr(path.data, '/', path.size);
        size_t size = slash == NULL ? path.size : (size_t)(slash - path.data);
        struct tarn_slice key = schema->partition_keys[out->spec_count];
        const uint8_t *equals = memchr(path.data, '=', size); /* those of names are escaped */
        size_t at = equals == NULL ? size : (size_t)(equals - path.data) + 1;
        tarn_buf_clear(&part);
        tarn_path_unescape(tarn_slice_of(path.data + at, size - at), &part);
        spec[out->spec_count++] = (struct tarn_pair){
            tarn_arena_copy(op->arena, key), tarn_arena_copy(op->arena, tarn_buf_slice(&part))};
        tarn_buf_printf(&name, "%s%.*s=", name.size == 0 ? "" : "/", TARN_SLICE_ARG(key));
        tarn_buf_add_slice(&name, tarn_buf_slice(&part));
        size_t step = TARN_MIN(size + 1, path.size);
        path = tarn_slice_of(path.data + step, path.size - step);
    }
    out->spec = spec;
    out->text = tarn_arena_copy(op->arena, tarn_buf_slice(&name));
}

/* Days since 1970 or milliseconds of the day, as partition.legacy-name has a DATE or TIME in the names of folders, and so in what catalogs list. */
static bool is_legacy_number(const struct tarn_table_view *view, const struct tarn_type *type,
                             struct tarn_slice text)
{
    int64_t days;
    struct tarn_status *s = tarn_parse_i64(text, &days);
    bool is = s == TARN_OK && view->options.partition_legacy_name &&
              (type->id == TARN_TYPE_DATE || type->id == TARN_TYPE_TIME);
    tarn_status_free(s);
    return is;
}

static struct tarn_status *parse_value(struct tarn_op *op, const struct tarn_table_view *view,
                                       const struct tarn_type *type,
                                       const struct tarn_partition_value *from,
                                       struct tarn_value *out)
{
    const struct tarn_type days = {.id = TARN_TYPE_INT};
    *out = (struct tarn_value){
        .is_null =
            from->is_null || tarn_slice_equal(from->value, view->options.partition_default_name)};
    if (out->is_null)
        return TARN_OK;
    return tarn_value_parse(is_legacy_number(view, type, from->value) ? &days : type, from->value,
                            op->arena, out);
}

struct tarn_status *tarn_service__partition_row(struct tarn_op *op,
                                                const struct tarn_table_view *view,
                                                const struct tarn_partition_value *values,
                                                struct tarn_slice *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    size_t count = view->schema.partition_key_count;
    const struct tarn_type **types = tarn_partition_types(&view->schema, op->arena);
    struct tarn_value *parsed = tarn_arena_calloc(op->arena, count + 1, sizeof *parsed);
    for (size_t i = 0; i < count; i++) {
        struct tarn_status *s = parse_value(op, view, types[i], &values[i], &parsed[i]);
        if (s != TARN_OK)
            return tarn_status_wrap(s, "partition column %.*s",
                                    TARN_SLICE_ARG(view->schema.partition_keys[i]));
    }
    tarn_row_serialize(types, parsed, count, &row);
    *out = tarn_arena_copy(op->arena, tarn_buf_slice(&row));
    return TARN_OK;
}

struct tarn_status *tarn_service__partition_values(struct tarn_op *op,
                                                   const struct tarn_schema *schema,
                                                   struct tarn_slice row,
                                                   const struct tarn_partition_value **out,
                                                   size_t *count)
{
    const struct tarn_type **types = tarn_partition_types(schema, op->arena);
    *count = schema->partition_key_count;
    struct tarn_value *values = tarn_arena_calloc(op->arena, *count + 1, sizeof *values);
    struct tarn_partition_value *list = tarn_arena_calloc(op->arena, *count + 1, sizeof *list);
    TARN_TRY(tarn_row_deserialize(row, types, *count, values));
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < *count; i++) {
        tarn_buf_clear(&text);
        tarn_value_print(types[i], &values[i], &text);
        list[i] = (struct tarn_partition_value){
            tarn_arena_copy(op->arena, schema->partition_keys[i]),
            tarn_arena_copy(op->arena, tarn_buf_slice(&text)), values[i].is_null};
    }
    *out = list;
    return TARN_OK;
}

static int by_name(const void *a, const void *b)
{
    return tarn_slice_compare(((const struct tarn_partition_facts *)a)->name.text,
                              ((const struct tarn_partition_facts *)b)->name.text);
}

static struct tarn_status *take_totals(struct tarn_op *op, const struct tarn_table_view *view,
                                       const struct tarn_partition_totals *from,
                                       struct tarn_partition_facts *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    TARN_TRY(tarn_partition_path(&view->schema, &view->options, from->partition, &path));
    out->path = tarn_arena_copy(op->arena, tarn_buf_slice(&path));
    out->row = from->partition;
    tarn_service__name_partition(op, &view->schema, out->path, &out->name);
    out->totals = from->totals;
    out->last_file_ms = tarn_service__epoch_of_local(from->totals.last_file_local_ms);
    return TARN_OK;
}

/* One that somebody made and that has no files. */
static struct tarn_status *take_path(struct tarn_op *op, const struct tarn_table_view *view,
                                     struct tarn_slice path, struct tarn_partition_facts *out)
{
    *out = (struct tarn_partition_facts){.path = path};
    tarn_service__name_partition(op, &view->schema, path, &out->name);
    struct tarn_partition_value *values =
        tarn_arena_calloc(op->arena, out->name.spec_count + 1, sizeof *values);
    for (size_t i = 0; i < out->name.spec_count; i++)
        values[i] =
            (struct tarn_partition_value){out->name.spec[i].key, out->name.spec[i].value, false};
    if (out->name.spec_count != view->schema.partition_key_count)
        return tarn_status_new(TARN_OBJECT_DAMAGED,
                               "partition %.*s is noted of a table with others",
                               TARN_SLICE_ARG(path));
    return tarn_service__partition_row(op, view, values, &out->row);
}

/* What was said of an older partition of this name went with its files. */
static void take_note(const struct tarn_partition_note *note, struct tarn_partition_facts *out)
{
    out->created_ms = note->created_ms;
    if (note->done_at >= out->totals.since_id)
        out->done_ms = note->done_ms;
}

struct tarn_status *tarn_service__partitions(struct tarn_op *op, struct tarn_service *service,
                                             struct tarn_table *table, struct tarn_partitions *out)
{
    struct tarn_partition_totals *totals;
    struct tarn_partition_note *notes;
    size_t count, note_count;
    TARN_TRY(tarn_table_partition_totals(op, table, &out->view, &totals, &count));
    TARN_TRY(tarn_catalog_partition_notes(op, service->catalog, table, &notes, &note_count));
    struct tarn_partition_facts *list =
        tarn_arena_calloc(op->arena, count + note_count + 1, sizeof *list);
    out->by_path = tarn_map_new();
    for (size_t i = 0; i < count; i++) {
        TARN_TRY(take_totals(op, out->view, &totals[i], &list[i]));
        tarn_map_set(out->by_path, list[i].path, &list[i]);
    }
    for (size_t i = 0; i < note_count; i++) {
        struct tarn_partition_facts *facts = tarn_map_find(out->by_path, notes[i].path);
        if (facts == NULL && notes[i].created_ms == 0)
            continue;
        if (facts == NULL) {
            facts = &list[count++];
            TARN_TRY(take_path(op, out->view, notes[i].path, facts));
            tarn_map_set(out->by_path, facts->path, facts);
        }
        take_note(&notes[i], facts);
    }
    out->list = list;
    out->count = count;
    return TARN_OK;
}

void tarn_partitions_fini(struct tarn_partitions *partitions)
{
    tarn_map_drop(&partitions->by_path);
    tarn_table_view_drop(&partitions->view);
}

/* All of them, by name; none of a table that isn't partitioned but for the one without name. */
static struct tarn_status *all_partitions(struct tarn_op *op, struct tarn_service *service,
                                          struct tarn_table_ref ref,
                                          struct tarn_partition_facts **out, size_t *count)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_partitions_fini) struct tarn_partitions all = {0};
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(tarn_service__partitions(op, service, table, &all));
    *out = all.list;
    *count = all.count;
    if (*count > 1)
        qsort(*out, *count, sizeof **out, by_name);
    return TARN_OK;
}

struct tarn_status *tarn_service_list_partitions(struct tarn_op *op, struct tarn_service *service,
                                                 struct tarn_table_ref ref, struct tarn_page page,
                                                 struct tarn_partition_facts **out, size_t *count,
                                                 const char **next_token)
{
    struct tarn_partition_facts *all;
    struct tarn_pattern pattern;
    size_t all_count, max = tarn_service__page_size(page), n = 0;
    TARN_TRY(tarn_service__pattern(op, page.pattern, &pattern));
    TARN_TRY(all_partitions(op, service, ref, &all, &all_count));
    *out = tarn_arena_calloc(op->arena, TARN_MIN(all_count, max) + 1, sizeof **out);
    *next_token = "";
    for (size_t i = 0; i < all_count; i++) {
        if (!tarn_service__matches(&pattern, all[i].name.text) ||
            (page.token.size > 0 && tarn_slice_compare(all[i].name.text, page.token) <= 0))
            continue;
        if (n == max) {
            *next_token = tarn_arena_str(op->arena, (*out)[n - 1].name.text);
            break;
        }
        (*out)[n++] = all[i];
    }
    *count = n;
    return TARN_OK;
}

/* The name that a spec would have among `like`'s kind; false: it doesn't say all columns. */
static bool name_of(const struct tarn_partition_match *spec,
                    const struct tarn_partition_facts *like, struct tarn_buf *out)
{
    tarn_buf_clear(out);
    for (size_t k = 0; k < like->name.spec_count; k++) {
        size_t i = 0;
        while (i < spec->value_count &&
               !tarn_slice_equal(spec->values[i].column, like->name.spec[k].key))
            i++;
        if (i == spec->value_count)
            return false;
        tarn_buf_printf(out, "%s%.*s=", k == 0 ? "" : "/", TARN_SLICE_ARG(like->name.spec[k].key));
        tarn_buf_add_slice(out, spec->values[i].value);
    }
    return true;
}

struct tarn_status *tarn_service_find_partitions(struct tarn_op *op, struct tarn_service *service,
                                                 struct tarn_table_ref ref,
                                                 const struct tarn_partition_match *specs,
                                                 size_t spec_count,
                                                 struct tarn_partition_facts **out, size_t *count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *by_names = tarn_map_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    struct tarn_partition_facts *all;
    size_t all_count;
    if (spec_count > TARN_PARTITIONS_ASKED_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%zu partitions, at most %d at once",
                               spec_count, TARN_PARTITIONS_ASKED_MAX);
    TARN_TRY(all_partitions(op, service, ref, &all, &all_count));
    for (size_t i = 0; i < all_count; i++)
        tarn_map_set(by_names, all[i].name.text, &all[i]);
    *out = tarn_arena_calloc(op->arena, spec_count + 1, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < spec_count && all_count > 0; i++) {
        const struct tarn_partition_facts *found =
            name_of(&specs[i], &all[0], &name) ? tarn_map_remove(by_names, tarn_buf_slice(&name))
                                               : NULL; /* once each */
        if (found != NULL)
            (*out)[(*count)++] = *found;
    }
    return TARN_OK;
}
