/* Tables as tasks describe them: the store by its URI, schemas and options decoded, entries unpacked. */
#include "internal.h"

#include <pthread.h>

#include "tarn/v1/worker.pb-c.h"

#define STORES_MAX 16 /* warehouses a worker meets in its life; one, as a rule */
#define SCHEMAS_MAX 10000

struct tarn_flight_tables {
    pthread_mutex_t lock;
    struct tarn_map
        *stores; /* by URI; never dropped before the end, so that they can be borrowed */
};

struct tarn_flight_tables *tarn_flight_tables_new(void)
{
    struct tarn_flight_tables *tables = tarn_calloc(1, sizeof *tables);
    pthread_mutex_init(&tables->lock, NULL);
    tables->stores = tarn_map_new();
    return tables;
}

void tarn_flight_tables_free(struct tarn_flight_tables *tables)
{
    size_t cursor = 0;
    struct tarn_slice uri;
    void *store;

    if (tables == NULL)
        return;
    while (tarn_map_next(tables->stores, &cursor, &uri, &store))
        tarn_store_unref(store);
    tarn_map_free(tables->stores);
    pthread_mutex_destroy(&tables->lock);
    free(tables);
}

void tarn_flight_tables_add(struct tarn_flight_tables *tables, const char *uri,
                            struct tarn_store *store)
{
    pthread_mutex_lock(&tables->lock);
    tarn_store_unref(tarn_map_set(tables->stores, tarn_slice_str(uri), tarn_store_ref(store)));
    pthread_mutex_unlock(&tables->lock);
}

static struct tarn_status *find_or_open(struct tarn_flight_tables *tables, const char *uri,
                                        struct tarn_store **out)
{
    *out = tarn_map_find(tables->stores, tarn_slice_str(uri));
    if (*out != NULL)
        return TARN_OK;
    if (tarn_map_count(tables->stores) == STORES_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "%s would be the store number %d of this worker",
                               uri, STORES_MAX + 1);
    TARN_TRY(tarn_store_open(uri, out));
    tarn_map_set(tables->stores, tarn_slice_str(uri), *out);
    return TARN_OK;
}

static struct tarn_status *open_store(struct tarn_flight_tables *tables, const char *uri,
                                      struct tarn_store **out)
{
    pthread_mutex_lock(&tables->lock);
    struct tarn_status *s = find_or_open(tables, uri, out);
    pthread_mutex_unlock(&tables->lock);
    return s;
}

static struct tarn_status *decode_schemas(const Tarn__V1__TableDescription *description,
                                          struct tarn_arena *arena, struct tarn_merge_table *out)
{
    size_t n = description->n_schemas;
    if (n > SCHEMAS_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "%zu schemas; at most %d", n, SCHEMAS_MAX);
    struct tarn_schema *schemas = tarn_arena_calloc(arena, n + 1, sizeof *schemas);
    const struct tarn_schema **all = tarn_arena_calloc(arena, n + 1, sizeof *all);

    out->schema = NULL;
    for (size_t i = 0; i < n; i++) {
        TARN_TRY(
            tarn_schema_decode(tarn_flight_slice(description->schemas[i]), arena, &schemas[i]));
        all[i] = &schemas[i];
        if (schemas[i].id == description->schema_id)
            out->schema = &schemas[i];
    }
    if (out->schema == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "schema %" PRId64 " is not among the %zu that were sent",
                               description->schema_id, n);
    out->old_schemas = all;
    out->old_schema_count = n;
    return TARN_OK;
}

static struct tarn_status *open_table(struct tarn_flight_tables *tables,
                                      const Tarn__V1__TableDescription *description,
                                      struct tarn_arena *arena, struct tarn_merge_table *out)
{
    struct tarn_options *options = tarn_arena_calloc(arena, 1, sizeof *options);

    TARN_TRY(tarn_flight__text(tarn_flight_slice(description->path), "the table's path", arena,
                               &out->path));
    if (out->path[0] == '\0') /* all else about it is checked with every key that is made of it */
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the table's path is empty");
    TARN_TRY(decode_schemas(description, arena, out));
    TARN_TRY(tarn_options_parse(out->schema, arena, options));
    out->options = options;
    return open_store(tables, description->store_uri, &out->store);
}

struct tarn_status *tarn_flight_table_open(struct tarn_flight_tables *tables,
                                           const Tarn__V1__TableDescription *description,
                                           struct tarn_arena *arena, struct tarn_merge_table *out)
{
    if (description == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the task has no table");
    struct tarn_status *s = open_table(tables, description, arena, out);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %.*s", (int)TARN_MIN(description->name.len, (size_t)200),
                                (const char *)description->name.data);
    return TARN_OK;
}

/* --- entries --- */

static struct tarn_status *check_entry(const struct tarn_manifest_entry *entry,
                                       struct tarn_slice partition, int32_t bucket)
{
    struct tarn_slice name = entry->file.name;

    if ((bucket != TARN_FLIGHT_ANY_BUCKET && entry->bucket != bucket) ||
        !tarn_slice_equal(entry->partition, partition))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "file %.*s belongs to another bucket",
                               TARN_SLICE_ARG(name));
    if (name.size == 0 || memchr(name.data, '/', name.size) != NULL ||
        memchr(name.data, '\0', name.size) != NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%.*s\" is no file name",
                               TARN_SLICE_ARG(name));
    return TARN_OK;
}

struct tarn_status *tarn_flight_entries_unpack(const ProtobufCBinaryData *packed, size_t count,
                                               struct tarn_slice partition, int32_t bucket,
                                               struct tarn_arena *arena,
                                               struct tarn_manifest_entry **out)
{
    struct tarn_manifest_entry *entries = tarn_arena_calloc(arena, count + 1, sizeof *entries);

    for (size_t i = 0; i < count; i++) {
        TARN_TRY(tarn_manifest_entry_unpack(tarn_flight_slice(packed[i]), arena, &entries[i]));
        TARN_TRY(check_entry(&entries[i], partition, bucket));
    }
    *out = entries;
    return TARN_OK;
}

struct tarn_status *tarn_flight_indexes_unpack(ProtobufCBinaryData manifest,
                                               struct tarn_arena *arena,
                                               struct tarn_index_file **out, size_t *count)
{
    *out = NULL;
    *count = 0;
    if (manifest.len == 0)
        return TARN_OK;
    struct tarn_slice bytes = tarn_arena_copy(arena, tarn_flight_slice(manifest));
    return tarn_index_manifest_decode(bytes, arena, out, count);
}

struct tarn_status *tarn_flight_indexes_pack(const struct tarn_index_file *files, size_t count,
                                             struct tarn_arena *arena, ProtobufCBinaryData *added,
                                             ProtobufCBinaryData **removed, size_t *removed_count)
{
    static const uint8_t sync[16];
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    size_t n = 0;
    *removed = tarn_arena_calloc(arena, count + 1, sizeof **removed);
    while (n < count && files[n].kind == TARN_ENTRY_DELETE) {
        (*removed)[n] = tarn_flight_data(files[n].name);
        n++;
    }
    *removed_count = n;
    *added = (ProtobufCBinaryData){0};
    if (n == count)
        return TARN_OK;
    TARN_TRY(
        tarn_index_manifest_encode(files + n, count - n, tarn_slice_str("none"), 0, sync, &bytes));
    *added = tarn_flight_data(tarn_arena_copy(arena, tarn_buf_slice(&bytes)));
    return TARN_OK;
}

ProtobufCBinaryData *tarn_flight_entries_pack(const struct tarn_manifest_entry *entries,
                                              size_t count, struct tarn_arena *arena)
{
    ProtobufCBinaryData *out = tarn_arena_calloc(arena, count + 1, sizeof *out);
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};

    for (size_t i = 0; i < count; i++) {
        tarn_buf_clear(&bytes);
        tarn_manifest_entry_pack(&entries[i], true, &bytes);
        out[i] = tarn_flight_data(tarn_arena_copy(arena, tarn_buf_slice(&bytes)));
    }
    return out;
}

struct tarn_status *tarn_flight_reserve_sequences(struct tarn_channel *daemon, struct tarn_op *op,
                                                  const char *table_uuid,
                                                  struct tarn_slice partition, int32_t bucket,
                                                  int64_t count, int64_t *first)
{
    Tarn__V1__ReserveSequencesRequest request = TARN__V1__RESERVE_SEQUENCES_REQUEST__INIT;
    const void *message;

    request.table_uuid = (char *)(uintptr_t)table_uuid;
    request.partition = tarn_flight_data(partition);
    request.bucket = bucket;
    request.count = count;
    TARN_TRY(tarn_flight_ask(daemon, op, "/tarn.v1.WorkerService/ReserveSequences", &request.base,
                             &tarn__v1__reserve_sequences_response__descriptor, &message));
    *first = ((const Tarn__V1__ReserveSequencesResponse *)message)->first;
    int64_t end;
    if (*first < 0 || __builtin_add_overflow(*first, count, &end))
        return tarn_status_new(TARN_INTERNAL, "the daemon handed out sequence number %" PRId64,
                               *first);
    return TARN_OK;
}
