/*
 * flight - the worker's door: DataService, by which rows come in and go out. The daemon has checked who
 * asks and what for, has planned, and passes the streams through unread; what it says comes as a task.
 *
 *   Ingest   IngestRequest: `task` first, then for each file `file` and its bytes as `data`. Answered once,
 *            with counts, the first bad rows and the new files as packed entries; the daemon commits them.
 *            Whatever goes wrong before that answer, the files are removed here.
 *   Scan     ScanRequest with `task`. Answered with `data` messages of about TARN_WIRE_CHUNK_SIZE, then one with
 *            the `summary`.
 *   Infer    `file` and its `data`: the columns of a Parquet or Arrow file.
 *
 * Memory   a load keeps at most write_buffer_size of rows (less where several run), the rest is spilled; files
 *          that must be sought in are spooled into scratch_dir, unlinked from the start, and never the last
 *          TARN_SPOOL_RESERVE bytes of that disk.
 * Threads  methods run on threads of exec and wait.
 * Errors   INVALID_ARGUMENT for what the protocol doesn't allow; those of rooms columnar, merge and store.
 */
#ifndef TARN_FLIGHT_H
#define TARN_FLIGHT_H

#include "merge/merge.h"
#include "wire/wire.h"

#include "tarn/v1/data.pb-c.h"

#define TARN_SPOOL_RESERVE ((int64_t)64 << 20)
#define TARN_FLIGHT_FILES_MAX 100000       /* of one load */
#define TARN_FLIGHT_MESSAGE_MAX (64 << 20) /* plans and lists of files are larger than chunks */

/* --- tables as a task describes them; also for room work --- */

/* Stores, each opened once. Threads: any. */
struct tarn_flight_tables;
struct tarn_flight_tables *tarn_flight_tables_new(void);
void tarn_flight_tables_free(struct tarn_flight_tables *tables);
/* `store` (a ref is taken) is what `uri` opens from now on: for tests. */
void tarn_flight_tables_add(struct tarn_flight_tables *tables, const char *uri,
                            struct tarn_store *store);

/* Everything is checked and copied into the arena; the store is borrowed from `tables`. */
TARN_MUST struct tarn_status *tarn_flight_table_open(struct tarn_flight_tables *tables,
                                                     const Tarn__V1__TableDescription *description,
                                                     struct tarn_arena *arena,
                                                     struct tarn_merge_table *out);
#define TARN_FLIGHT_ANY_BUCKET INT32_MIN
/* Packed entries, all of that partition and bucket (or of any), into the arena. */
TARN_MUST struct tarn_status *tarn_flight_entries_unpack(const ProtobufCBinaryData *packed,
                                                         size_t count, struct tarn_slice partition,
                                                         int32_t bucket, struct tarn_arena *arena,
                                                         struct tarn_manifest_entry **out);
/* A block of sequence numbers, asked of the daemon. */
TARN_MUST struct tarn_status *tarn_flight_reserve_sequences(
    struct tarn_channel *daemon, struct tarn_op *op, const char *table_uuid,
    struct tarn_slice partition, int32_t bucket, int64_t count, int64_t *first);
/* Index files with deletion vectors, as the daemon and workers tell each other of them: an index manifest, and names of those that go. DELETEs
 * come before ADDs in a list. */
TARN_MUST struct tarn_status *tarn_flight_indexes_unpack(ProtobufCBinaryData manifest,
                                                         struct tarn_arena *arena,
                                                         struct tarn_index_file **out,
                                                         size_t *count);
TARN_MUST struct tarn_status *tarn_flight_indexes_pack(const struct tarn_index_file *files,
                                                       size_t count, struct tarn_arena *arena,
                                                       ProtobufCBinaryData *added,
                                                       ProtobufCBinaryData **removed,
                                                       size_t *removed_count);
/* Entries with statistics, as the fields of a message; in the arena. */
ProtobufCBinaryData *tarn_flight_entries_pack(const struct tarn_manifest_entry *entries,
                                              size_t count, struct tarn_arena *arena);

/* --- messages --- */

/* Decodes into the arena, which grows by a bounded multiple of the message's size. */
TARN_MUST struct tarn_status *tarn_flight_unpack(const ProtobufCMessageDescriptor *type,
                                                 struct tarn_slice bytes, struct tarn_arena *arena,
                                                 const void **out);
struct tarn_message *tarn_flight_pack(const ProtobufCMessage *message);
/* One message to the daemon and its answer, which lies in op's arena. */
TARN_MUST struct tarn_status *tarn_flight_ask(struct tarn_channel *daemon, struct tarn_op *op,
                                              const char *path, const ProtobufCMessage *request,
                                              const ProtobufCMessageDescriptor *type,
                                              const void **out);
static inline struct tarn_slice tarn_flight_slice(ProtobufCBinaryData data)
{
    return tarn_slice_of(data.data, data.len);
}
static inline ProtobufCBinaryData tarn_flight_data(struct tarn_slice bytes)
{
    return (ProtobufCBinaryData){bytes.size, (uint8_t *)(uintptr_t)bytes.data};
}

/* --- the door --- */

struct tarn_flight_options {     /* borrowed */
    struct tarn_channel *daemon; /* hands out sequence numbers */
    struct tarn_flight_tables *tables;
    const char *scratch_dir;
    int64_t write_buffer_size;
};
struct tarn_flight;
struct tarn_flight *tarn_flight_new(const struct tarn_flight_options *options);
void tarn_flight_free(struct tarn_flight *flight); /* after the server that runs its methods */

#define TARN_FLIGHT_METHOD_COUNT 4
void tarn_flight_methods(struct tarn_flight *flight,
                         struct tarn_wire_method out[TARN_FLIGHT_METHOD_COUNT]);

#endif
