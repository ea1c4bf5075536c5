/*
 * Promise: any bytes are a part of a load, a task or a reason; nothing of what they claim is believed before
 * it is checked, and memory stays near their size.
 */
#include "flight/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_task(const Tarn__V1__TableDescription *description, struct tarn_arena *arena)
{
    struct tarn_flight_tables *tables = tarn_flight_tables_new();
    struct tarn_merge_table table;
    struct tarn_store *store = NULL;

    tarn_status_free(tarn_store_open("memory:", &store));
    if (description != NULL) /* no folder of this machine is opened */
        tarn_flight_tables_add(tables, description->store_uri, store);
    tarn_status_free(tarn_flight_table_open(tables, description, arena, &table));
    tarn_store_unref(store);
    tarn_flight_tables_free(tables);
}

static void open_scan(const Tarn__V1__ScanTask *task, struct tarn_arena *arena)
{
    struct tarn_manifest_entry *entries;

    open_task(task->table, arena);
    for (size_t i = 0; i < task->n_splits; i++) {
        const Tarn__V1__SplitTask *split = task->splits[i];
        tarn_status_free(tarn_flight_entries_unpack(split->files, split->n_files,
                                                    tarn_flight_slice(split->partition),
                                                    split->bucket, arena, &entries));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_arena *arena = tarn_arena_new();
    struct tarn_flight__part part;
    const void *message;
    struct tarn_status *s = tarn_flight__part_decode(tarn_slice_of(data, size), arena, &part);

    if (s == TARN_OK && part.kind == TARN_PART_TASK)
        open_task(part.task->table, arena);
    tarn_status_free(s);
    s = tarn_flight_unpack(&tarn__v1__scan_request__descriptor, tarn_slice_of(data, size), arena,
                           &message);
    if (s == TARN_OK && ((const Tarn__V1__ScanRequest *)message)->task != NULL)
        open_scan(((const Tarn__V1__ScanRequest *)message)->task, arena);
    tarn_status_free(s);
    tarn_arena_free(arena);
    return 0;
}
