/*
 * Promise: the bytes of files and splits that a plan writes by hand are, to the protobuf library, the messages that it
 * would have written of the same files, whatever is set in them.
 */
#include "rpc/table.h"
#include "test/lib/test.h"

static struct tarn_slice random_slice(struct tarn_test *t, size_t most)
{
    return tarn_test_random_bytes(t, tarn_test_random_below(t, most + 1));
}

static int64_t random_number(struct tarn_test *t)
{
    int64_t n = (int64_t)(tarn_test_random_below(t, UINT32_MAX) << 32 |
                          tarn_test_random_below(t, UINT32_MAX));
    switch (tarn_test_random_below(t, 4)) {
    case 0:
        return 0;
    case 1:
        return n;
    case 2:
        return n & 0xff;
    default:
        return -1;
    }
}

static struct tarn_stats random_stats(struct tarn_test *t)
{
    size_t count = tarn_test_random_below(t, 5);
    int64_t *nulls = tarn_arena_calloc(t->arena, count + 1, sizeof *nulls);
    for (size_t i = 0; i < count; i++)
        nulls[i] = random_number(t);
    return (struct tarn_stats){random_slice(t, 40), random_slice(t, 40), nulls, count};
}

static const struct tarn_slice *random_list(struct tarn_test *t, size_t *count)
{
    *count = tarn_test_random_below(t, 4);
    struct tarn_slice *list = tarn_arena_calloc(t->arena, *count + 1, sizeof *list);
    for (size_t i = 0; i < *count; i++)
        list[i] = random_slice(t, 200);
    return list;
}

static struct tarn_data_file random_file(struct tarn_test *t)
{
    struct tarn_data_file f = {.name = random_slice(t, 200),
                               .size = random_number(t),
                               .row_count = random_number(t),
                               .min_key = random_slice(t, 30),
                               .max_key = random_slice(t, 30),
                               .key_stats = random_stats(t),
                               .value_stats = random_stats(t),
                               .min_sequence = random_number(t),
                               .max_sequence = random_number(t),
                               .schema_id = random_number(t) & 0xffff,
                               .level = (int32_t)tarn_test_random_below(t, 7),
                               .source =
                                   (enum tarn_file_source)((int)tarn_test_random_below(t, 3) - 1),
                               .has_value_stats_columns = tarn_test_random_below(t, 2) == 0};
    f.extra_files = random_list(t, &f.extra_file_count);
    if (f.has_value_stats_columns)
        f.value_stats_columns = random_list(t, &f.value_stats_column_count);
    f.creation_time_ms = tarn_test_random_below(t, 2) == 0 ? TARN_FILE_NONE : random_number(t);
    f.delete_row_count = tarn_test_random_below(t, 2) == 0 ? TARN_FILE_NONE : random_number(t);
    f.first_row_id = tarn_test_random_below(t, 2) == 0 ? TARN_FILE_NONE : random_number(t);
    if (tarn_test_random_below(t, 2) == 0)
        f.embedded_index = random_slice(t, 300);
    if (tarn_test_random_below(t, 2) == 0)
        f.external_path = random_slice(t, 100);
    if (tarn_test_random_below(t, 2) == 0)
        f.vector = (struct tarn_vector_ref){random_slice(t, 60), random_number(t), random_number(t),
                                            tarn_test_random_below(t, 2) == 0 ? TARN_FILE_NONE
                                                                              : random_number(t)};
    return f;
}

static struct tarn_slice packed(struct tarn_test *t, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = tarn_arena_alloc(t->arena, size + 1);
    protobuf_c_message_pack(message, bytes);
    return tarn_slice_of(bytes, size);
}

/* Our bytes as the library reads them, and writes them again: in order of fields. */
static struct tarn_slice read_back(struct tarn_test *t, const ProtobufCMessageDescriptor *type,
                                   struct tarn_slice bytes)
{
    ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, bytes.size, bytes.data);
    expect_true(message != NULL);
    struct tarn_slice again = packed(t, message);
    protobuf_c_message_free_unpacked(message, NULL);
    return again;
}

static struct tarn_plan_bytes bytes_of(struct tarn_test *t, const struct tarn_data_file *file,
                                       bool with_stats)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf entry = {0};
    struct tarn_plan_bytes out = {0};
    tarn_manifest_entry_pack(&(struct tarn_manifest_entry){.file = *file}, with_stats, &entry);
    expect_ok(tarn_manifest_entry_fields(tarn_arena_copy(t->arena, tarn_buf_slice(&entry)),
                                         &out.file, &out.stats));
    return out;
}

static struct tarn_slice joined(struct tarn_test *t, struct tarn_plan_bytes bytes)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf all = {0};
    tarn_buf_add_slice(&all, bytes.file);
    tarn_buf_add_slice(&all, bytes.stats);
    tarn_buf_add_slice(&all, bytes.vector);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&all));
}

TARN_TEST(file_bytes, a_file_is_what_the_library_writes)
{
    for (int i = 0; i < 3000; i++) {
        struct tarn_data_file f = random_file(t);
        expect_bytes(
            read_back(t, &tarn__v1__data_file__descriptor, joined(t, bytes_of(t, &f, true))),
            packed(t, &tarn_rpc__put_file(t->op, &f)->base));
    }
}

TARN_TEST(file_bytes, without_statistics_a_file_has_none)
{
    struct tarn_data_file f = random_file(t);
    Tarn__V1__DataFile *message = tarn_rpc__put_file(t->op, &f);
    message->key_stats = message->value_stats = NULL;
    message->has_value_stats_columns = false;
    message->n_value_stats_columns = 0;
    struct tarn_plan_bytes bytes = bytes_of(t, &f, false);
    expect_int(bytes.stats.size, 0);
    expect_bytes(read_back(t, &tarn__v1__data_file__descriptor, bytes.file),
                 packed(t, &message->base));
}

static Tarn__V1__DataFile **put_files(struct tarn_test *t, const struct tarn_plan_file *files,
                                      size_t count)
{
    Tarn__V1__DataFile **out = tarn_arena_calloc(t->arena, count + 1, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = tarn_rpc__put_file(t->op, &files[i].entry.file);
    return out;
}

TARN_TEST(file_bytes, a_split_is_what_the_library_writes)
{
    for (int i = 0; i < 300; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf ours = {0};
        struct tarn_plan_file files[6] = {0};
        for (int n = 0; n < 6; n++)
            files[n].entry.file = random_file(t);
        struct tarn_split split = {.partition = random_slice(t, 30),
                                   .bucket = (int32_t)tarn_test_random_below(t, 300) - 2,
                                   .total_buckets = (int32_t)tarn_test_random_below(t, 300) - 1,
                                   .raw = tarn_test_random_below(t, 2) == 0,
                                   .is_changelog = tarn_test_random_below(t, 2) == 0,
                                   .files = files,
                                   .file_count = tarn_test_random_below(t, 4),
                                   .before_files = files + 4,
                                   .before_count = tarn_test_random_below(t, 3)};
        const char *path = i % 3 == 0 ? "" : "dt=2026-01-31/bucket-7";
        int64_t snapshot_id = i % 2;
        struct tarn_plan_bytes bytes[6];
        TARN_OWN(tarn_buf_drop) struct tarn_buf head = {0};
        for (size_t n = 0; n < split.file_count + split.before_count; n++)
            bytes[n] = bytes_of(t,
                                n < split.file_count
                                    ? &split.files[n].entry.file
                                    : &split.before_files[n - split.file_count].entry.file,
                                true);
        tarn_rpc__split_head(&split, tarn_slice_str(path), snapshot_id, &head);
        tarn_rpc__add_split(&ours, 1, tarn_buf_slice(&head), &split, bytes);
        Tarn__V1__Split message = TARN__V1__SPLIT__INIT;
        message.partition = tarn_rpc__bytes(split.partition);
        message.bucket = split.bucket;
        message.total_buckets = split.total_buckets;
        message.raw = split.raw;
        message.is_changelog = split.is_changelog;
        message.path = tarn_rpc__str(path);
        message.snapshot_id = snapshot_id;
        message.n_files = split.file_count;
        message.files = put_files(t, split.files, split.file_count);
        message.n_before_files = split.before_count;
        message.before_files = put_files(t, split.before_files, split.before_count);
        Tarn__V1__Split *splits[] = {&message};
        Tarn__V1__PlanResponse response = TARN__V1__PLAN_RESPONSE__INIT;
        response.n_splits = 1;
        response.splits = splits;
        expect_bytes(read_back(t, &tarn__v1__plan_response__descriptor, tarn_buf_slice(&ours)),
                     packed(t, &response.base));
    }
}
