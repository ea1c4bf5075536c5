/*
 * Promise: a request is unpacked within a budget that goes with its size, its texts are UTF-8, and a
 * message beyond the limit is refused before it is sent.
 */
#include <protobuf-c/protobuf-c.h>

#include "rpc/internal.h"
#include "tarn/v1/catalog.pb-c.h"
#include "tarn/v1/table.pb-c.h"
#include "test/lib/test.h"

static struct tarn_status *unpack(struct tarn_test *t, const ProtobufCMessageDescriptor *type,
                                  const char *bytes, size_t size, void **out)
{
    return tarn_rpc__unpack(t->op, type, tarn_slice_of(bytes, size), out);
}

TARN_TEST(message, comes_out_as_it_went_in)
{
    Tarn__V1__GetTableRequest *q =
        TARN_RPC_NEW(t->op, Tarn__V1__GetTableRequest, get_table_request);
    q->table = TARN_RPC_NEW(t->op, Tarn__V1__TableRef, table_ref);
    q->table->database = tarn_rpc__bytes(tarn_slice_of("d\0b", 3));
    q->table->uuid = tarn_rpc__str("u");
    struct tarn_message *packed = NULL;
    expect_ok(tarn_rpc__pack(&q->base, 100, &packed));
    void *out = NULL;
    expect_ok(tarn_rpc__unpack(t->op, q->base.descriptor, tarn_message_bytes(packed), &out));
    struct tarn_table_ref ref = tarn_rpc__ref(((Tarn__V1__GetTableRequest *)out)->table);
    expect_int(ref.database.size, 3);
    expect_slice(ref.uuid, "u");
    expect_int(tarn_rpc__ref(NULL).table.size, 0);
    tarn_message_free(packed);
    expect_status(tarn_rpc__pack(&q->base, 5, &packed), TARN_TOO_LARGE, "at most 5");
}

TARN_TEST(message, of_empty_parts_does_not_grow_without_bounds)
{
    size_t size = 2 << 20;
    char *bomb = tarn_alloc(size);
    for (size_t i = 0; i < size; i += 2)
        memcpy(bomb + i, "\x22\x00", 2); /* CommitRequest.append: an empty entry */
    void *out;
    struct tarn_status *s = unpack(t, &tarn__v1__commit_request__descriptor, bomb, size, &out);
    free(bomb);
    expect_status(s, TARN_TOO_LARGE, "too many parts");
    expect_true(tarn_arena_size(t->arena) < 64u << 20);
}

TARN_TEST(message, must_be_utf8_where_it_is_text)
{
    void *out;
    const ProtobufCMessageDescriptor *type = &tarn__v1__alter_table_request__descriptor;
    expect_ok(unpack(t, type, "\x1a\x02\xc3\xa9", 4, &out)); /* request_id */
    expect_status(unpack(t, type, "\x1a\x02\xff\xfe", 4, &out), TARN_INVALID_ARGUMENT,
                  "request_id");
    /* deep inside: changes[0].alter_column.type */
    expect_status(unpack(t, type, "\x12\x06\x3a\x04\x12\x02\xff\xfe", 8, &out),
                  TARN_INVALID_ARGUMENT, "type");
    /* another member of the same oneof holds bytes that are no pointer to a message */
    expect_ok(unpack(t, type, "\x12\x05\x12\x03\xff\xfe\xfd", 7, &out));
    expect_status(unpack(t, type, "\xff\xff", 2, &out), TARN_INVALID_ARGUMENT, "AlterTableRequest");
}

TARN_TEST(message, versions_are_checked)
{
    struct tarn_version out;
    Tarn__V1__Version v = TARN__V1__VERSION__INIT;
    expect_ok(tarn_rpc__version(NULL, &out));
    expect_true(out.snapshot_id == TARN_SNAPSHOT_NONE && out.time_ms == TARN_SNAPSHOT_NONE);
    expect_ok(tarn_rpc__version(&v, &out));
    expect_true(out.snapshot_id == TARN_SNAPSHOT_NONE && out.time_ms == TARN_SNAPSHOT_NONE);
    v.at_case = TARN__V1__VERSION__AT_SNAPSHOT_ID;
    v.snapshot_id = 7;
    expect_ok(tarn_rpc__version(&v, &out));
    expect_true(out.snapshot_id == 7 && out.time_ms == TARN_SNAPSHOT_NONE);
    v.snapshot_id = INT64_MIN;
    expect_status(tarn_rpc__version(&v, &out), TARN_INVALID_ARGUMENT, "snapshot");
    v.at_case = TARN__V1__VERSION__AT_TIME_MS;
    expect_status(tarn_rpc__version(&v, &out), TARN_INVALID_ARGUMENT, "time_ms");
}
