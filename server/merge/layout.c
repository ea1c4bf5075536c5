#include "merge/internal.h"

const struct tarn_type tarn_merge__sequence_type = {.id = TARN_TYPE_BIGINT};
const struct tarn_type tarn_merge__kind_type = {.id = TARN_TYPE_TINYINT};

static int *places_of(const int *columns, size_t count, int column_count, struct tarn_arena *arena)
{
    int *places = tarn_arena_calloc(arena, (size_t)column_count + 1, sizeof *places);

    for (int i = 0; i < column_count; i++)
        places[i] = -1;
    for (size_t i = 0; i < count; i++)
        places[columns[i]] = (int)i;
    return places;
}

static const struct tarn_type **types_of(const struct tarn_schema *schema, const int *columns,
                                         size_t count, struct tarn_arena *arena)
{
    const struct tarn_type **types = tarn_arena_calloc(arena, count + 1, sizeof *types);

    for (size_t i = 0; i < count; i++)
        types[i] = schema->fields[columns[i]].type;
    return types;
}

struct tarn_status *tarn_merge__layout_make(const struct tarn_merge_table *table,
                                            struct tarn_arena *arena, struct tarn_merge_layout *out)
{
    const struct tarn_schema *schema = table->schema;
    struct tarn_merge_layout layout = {
        .table = table,
        .keyed = !tarn_schema_is_append(schema),
        .column_count = (int)schema->field_count,
    };
    int *columns;

    layout.types = tarn_arena_calloc(arena, schema->field_count + 2, sizeof *layout.types);
    for (size_t i = 0; i < schema->field_count; i++) {
        TARN_TRY(tarn_merge__check_type(schema->fields[i].type, schema->fields[i].name));
        layout.types[i] = schema->fields[i].type;
    }
    layout.types[schema->field_count] = &tarn_merge__sequence_type;
    layout.types[schema->field_count + 1] = &tarn_merge__kind_type;

    layout.partition_count = tarn_schema_partition_columns(schema, arena, &columns);
    layout.partition_columns = columns;
    layout.partition_types = types_of(schema, columns, layout.partition_count, arena);
    layout.partition_place = places_of(columns, layout.partition_count, layout.column_count, arena);
    if (layout.keyed) {
        layout.key_count = tarn_schema_trimmed_key_columns(schema, arena, &columns);
        layout.key_columns = columns;
        layout.key_types = types_of(schema, columns, layout.key_count, arena);
        if (layout.key_count == 0)
            return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                                   "all primary key columns are partition columns");
    }
    *out = layout;
    return TARN_OK;
}

static void spec_of(const struct tarn_merge_layout *layout, const int *of_schema, size_t count,
                    bool descending, const int *columns, struct tarn_arena *arena,
                    struct tarn_merge_key_spec *out)
{
    struct tarn_merge_key_column *list = tarn_arena_calloc(arena, count + 1, sizeof *list);

    for (size_t i = 0; i < count; i++) {
        int column = of_schema[i];
        list[i] = (struct tarn_merge_key_column){columns == NULL ? column : columns[column],
                                                 layout->types[column], descending};
        tarn_assert(list[i].column >= 0);
    }
    tarn_merge__key_spec_init(out, list, count);
}

void tarn_merge__layout_keys(const struct tarn_merge_layout *layout, const int *columns,
                             struct tarn_arena *arena, struct tarn_merge_key_spec *key,
                             struct tarn_merge_key_spec *order)
{
    const struct tarn_options *options = layout->table->options;

    spec_of(layout, layout->key_columns, layout->key_count, false, columns, arena, key);
    spec_of(layout, options->sequence_columns, options->sequence_column_count,
            options->sequence_descending, columns, arena, order);
}

struct tarn_status *tarn_merge__file_key(const struct tarn_merge_layout *layout,
                                         struct tarn_slice partition, int32_t bucket,
                                         const struct tarn_data_file *file,
                                         struct tarn_arena *arena, const char **out)
{
    const struct tarn_merge_table *table = layout->table;
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};

    if (file->external_path.data != NULL) { /* ours only where it lies in the same store */
        struct tarn_slice key;
        if (!tarn_store_key_of(table->store, file->external_path, &key))
            return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                                   "file %.*s lies outside the warehouse: %.*s",
                                   TARN_SLICE_ARG(file->name), TARN_SLICE_ARG(file->external_path));
        *out = tarn_arena_str(arena, key);
        return TARN_OK;
    }
    tarn_buf_add_str(&path, table->path);
    tarn_buf_add_byte(&path, '/');
    TARN_TRY(tarn_bucket_path(table->schema, table->options, partition, bucket, &path));
    tarn_buf_add_byte(&path, '/');
    tarn_buf_add_slice(&path, file->name);
    *out = tarn_arena_str(arena, tarn_buf_slice(&path));
    return TARN_OK;
}
