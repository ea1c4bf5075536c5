#include "shape.h"

#include <stdio.h>

static const uint8_t sync_mark[16] = {7};

void shape_init(struct fixture *f, struct tarn_test *t, const struct shape *shape)
{
    static const char *const partitions[] = {"", "\"dt\"", "\"dt\",\"hr\""};
    static const char *const keys[] = {"\"id\"", "\"dt\",\"id\"", "\"dt\",\"hr\",\"id\""};
    const char *json = tarn_arena_printf(
        t->arena,
        "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT%s\"},"
        "{\"id\":1,\"name\":\"v\",\"type\":\"STRING\"},{\"id\":2,\"name\":\"dt\",\"type\":\"STRING%s\"},"
        "{\"id\":3,\"name\":\"hr\",\"type\":\"INT%s\"}],\"highestFieldId\":3,\"partitionKeys\":[%s],"
        "\"primaryKeys\":[%s],\"options\":{%s},\"timeMillis\":1}",
        shape->primary_key ? " NOT NULL" : "",
        shape->primary_key && shape->partition_count > 0 ? " NOT NULL" : "",
        shape->primary_key && shape->partition_count > 1 ? " NOT NULL" : "",
        partitions[shape->partition_count], shape->primary_key ? keys[shape->partition_count] : "",
        shape->options);
    fixture_init_schema(f, t, json);
}

struct tarn_slice shape_partition(struct fixture *f, const struct shape *shape, const char *dt,
                                  int hr)
{
    static const struct tarn_type text = {.id = TARN_TYPE_VARCHAR, .length = INT32_MAX};
    static const struct tarn_type number = {.id = TARN_TYPE_INT};
    const struct tarn_type *types[] = {&text, &number};
    struct tarn_value values[2] = {{.is_null = dt == NULL}, {.is_null = hr < 0, .integer = hr}};
    if (dt != NULL)
        values[0].bytes = tarn_slice_str(dt);
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    tarn_row_serialize(types, values, (size_t)shape->partition_count, &row);
    return tarn_arena_copy(f->t->arena, tarn_buf_slice(&row));
}

struct tarn_manifest_entry shape_entry(struct fixture *f, enum tarn_entry_kind kind,
                                       const char *name, struct tarn_slice partition,
                                       int32_t bucket, int32_t total_buckets, int level,
                                       int64_t low, int64_t high)
{
    struct tarn_manifest_entry e = fixture_entry(f, kind, name, bucket, level, low, high, 0);
    e.partition = partition;
    e.total_buckets = total_buckets;
    pthread_mutex_lock(&f->table->lock); /* others may be at work */
    bool is_append = tarn_schema_is_append(&f->table->view->view.schema);
    pthread_mutex_unlock(&f->table->lock);
    if (is_append) {
        e.file.min_key = e.file.max_key = tarn_row_empty();
        e.file.key_stats = tarn_stats_empty();
    }
    return e;
}

static void put(struct fixture *f, const char *name, struct tarn_slice bytes)
{
    expect_ok(tarn_store_put(f->inner, f->t->op, tarn_arena_printf(f->t->arena, "db.db/t/%s", name),
                             bytes));
}

static struct tarn_slice put_list(struct fixture *f, const char *name,
                                  const struct tarn_manifest_file *files, size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    expect_ok(
        tarn_manifest_list_encode(files, count, tarn_slice_str("zstd"), 1, sync_mark, &bytes));
    put(f, tarn_arena_printf(f->t->arena, "manifest/%s", name), tarn_buf_slice(&bytes));
    return tarn_slice_str(name);
}

static struct tarn_slice put_indexes(struct fixture *f, int64_t id,
                                     const struct tarn_index_file *index, size_t count)
{
    struct tarn_objects objects = {0};
    struct tarn_slice previous = tarn_slice_str(NULL), name;
    (void)id;
    if (f->table->head->id != 0)
        previous = f->table->head->snapshot.index_manifest;
    expect_ok(
        tarn_table__combine_indexes(f->t->op, f->table, previous, index, count, &objects, &name));
    for (size_t i = 0; i < objects.count; i++)
        expect_ok(tarn_store_put(f->inner, f->t->op, objects.list[i].key, objects.list[i].body));
    return name;
}

void shape_land(struct fixture *f, const char *user, enum tarn_commit_kind kind,
                const struct tarn_manifest_entry *entries, size_t count,
                const struct tarn_index_file *index, size_t index_count)
{
    struct tarn_arena *arena = f->t->arena;
    const struct tarn_schema *schema = &f->table->view->view.schema;
    struct tarn_head *head = f->table->head;
    int64_t id = head->id + 1;
    expect_ok(tarn_table__head_manifests(f->t->op, f->table, head));
    TARN_OWN(tarn_buf_drop) struct tarn_buf manifest = {0};
    struct tarn_manifest_file file;
    expect_ok(
        tarn_manifest_encode(entries, count, tarn_slice_str("zstd"), 1, sync_mark, &manifest));
    expect_ok(tarn_manifest_summarize(entries, count, tarn_partition_types(schema, arena),
                                      schema->partition_key_count, 0, arena, &file));
    file.name = tarn_slice_str(tarn_arena_printf(arena, "manifest-land-%" PRId64, id));
    file.size = (int64_t)manifest.size;
    put(f, tarn_arena_printf(arena, "manifest/manifest-land-%" PRId64, id),
        tarn_buf_slice(&manifest));
    struct tarn_snapshot s = {.version = 3,
                              .id = id,
                              .commit_user = tarn_slice_str(user),
                              .commit_identifier = id,
                              .kind = kind,
                              .time_ms = 1000 * id,
                              .watermark = TARN_SNAPSHOT_NONE,
                              .next_row_id = TARN_SNAPSHOT_NONE,
                              .changelog_record_count = TARN_SNAPSHOT_NONE,
                              .changelog_list_size = TARN_SNAPSHOT_NONE};
    s.base_list = put_list(f, tarn_arena_printf(arena, "list-land-%" PRId64 "-0", id),
                           head->manifests, head->manifest_count);
    s.delta_list = put_list(f, tarn_arena_printf(arena, "list-land-%" PRId64 "-1", id), &file, 1);
    s.base_list_size = s.delta_list_size = TARN_SNAPSHOT_NONE;
    s.index_manifest = put_indexes(f, id, index, index_count);
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    tarn_snapshot_encode(&s, &json);
    put(f, tarn_arena_printf(arena, "snapshot/snapshot-%" PRId64, id), tarn_buf_slice(&json));
    const struct tarn_table_view *view;
    expect_ok(tarn_table_look(f->t->op, f->table, &view));
    tarn_table_view_unref(view);
    expect_int(f->table->head->id, id);
}

struct tarn_index_file shape_index(enum tarn_entry_kind kind, const char *type, const char *name,
                                   struct tarn_slice partition, int32_t bucket)
{
    return (struct tarn_index_file){.kind = kind,
                                    .partition = partition,
                                    .bucket = bucket,
                                    .type = tarn_slice_str(type),
                                    .name = tarn_slice_str(name),
                                    .size = 8,
                                    .row_count = 2};
}

struct tarn_index_file shape_vectors(struct fixture *f, enum tarn_entry_kind kind, const char *name,
                                     struct tarn_slice partition, int32_t bucket, const char *files)
{
    struct tarn_index_file c =
        shape_index(kind, TARN_INDEX_DELETION_VECTORS, name, partition, bucket);
    struct tarn_vector_range *vectors = tarn_arena_calloc(f->t->arena, 16, sizeof *vectors);
    while (*files != 0) {
        size_t n = strcspn(files, " ");
        vectors[c.vector_count] =
            (struct tarn_vector_range){.data_file = tarn_slice_of(files, n),
                                       .offset = 1 + 30 * (int32_t)c.vector_count,
                                       .length = 22,
                                       .cardinality = 1};
        c.vector_count++;
        files += n + (files[n] == ' ');
    }
    c.has_vectors = true;
    c.vectors = vectors;
    return c;
}

const char *shape_names(struct fixture *f, const struct tarn_manifest_entry *entries, size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&text, "%s%c%.*s", i == 0 ? "" : " ",
                        entries[i].kind == TARN_ENTRY_ADD ? '+' : '-',
                        TARN_SLICE_ARG(entries[i].file.name));
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

const char *shape_index_names(struct fixture *f, const struct tarn_index_file *changes,
                              size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&text, "%s%c%.*s", i == 0 ? "" : " ",
                        changes[i].kind == TARN_ENTRY_ADD ? '+' : '-',
                        TARN_SLICE_ARG(changes[i].name));
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

struct tarn_status *shape_check(struct fixture *f, enum tarn_commit_kind kind,
                                struct tarn_manifest_entry *entries, size_t count,
                                const struct tarn_index_file *index, size_t index_count,
                                int64_t base)
{
    struct tarn_candidate c = {.kind = kind,
                               .user = tarn_slice_str("u"),
                               .entries = entries,
                               .count = count,
                               .index = index,
                               .index_count = index_count,
                               .base_snapshot_id = base};
    return tarn_table__check_conflicts(f->t->op, f->table, f->table->head, &c);
}
