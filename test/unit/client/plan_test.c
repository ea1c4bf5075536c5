/*
 * Promise: what the client decodes of a plan by hand is what the protobuf library reads in the same bytes, and bytes that are
 * no plan are refused.
 */
#include "tarn/plan.h"

#include "test/lib/test.h"

static ProtobufCBinaryData random_data(struct tarn_test *t, size_t most)
{
    struct tarn_slice s = tarn_test_random_bytes(t, tarn_test_random_below(t, most + 1));
    return (ProtobufCBinaryData){s.size, (uint8_t *)(uintptr_t)s.data};
}

static int64_t random_number(struct tarn_test *t)
{
    int64_t n = (int64_t)tarn_test_random(t);
    return tarn_test_random_one_in(t, 3) ? 0 : tarn_test_random_one_in(t, 2) ? n : n & 0x3fff;
}

static Tarn__V1__Stats *random_stats(struct tarn_test *t)
{
    Tarn__V1__Stats *stats = tarn_arena_alloc(t->arena, sizeof *stats);
    tarn__v1__stats__init(stats);
    stats->min = random_data(t, 30);
    stats->max = random_data(t, 30);
    stats->n_null_counts = tarn_test_random_below(t, 5);
    stats->null_counts = tarn_arena_calloc(t->arena, 5, sizeof *stats->null_counts);
    for (size_t i = 0; i < stats->n_null_counts; i++)
        stats->null_counts[i] = random_number(t);
    return stats;
}

static Tarn__V1__DataFile *random_file(struct tarn_test *t)
{
    Tarn__V1__DataFile *f = tarn_arena_alloc(t->arena, sizeof *f);
    tarn__v1__data_file__init(f);
    f->name = random_data(t, 150);
    f->size = random_number(t);
    f->row_count = random_number(t);
    f->min_key = random_data(t, 30);
    f->max_key = random_data(t, 30);
    if (tarn_test_random_one_in(t, 2)) {
        f->key_stats = random_stats(t);
        f->value_stats = random_stats(t);
    }
    f->min_sequence = random_number(t);
    f->max_sequence = random_number(t);
    f->schema_id = random_number(t);
    f->level = (int32_t)tarn_test_random_below(t, 6);
    f->source = (int32_t)tarn_test_random_below(t, 3) - 1;
    f->n_extra_files = tarn_test_random_below(t, 3);
    f->extra_files = tarn_arena_calloc(t->arena, 3, sizeof *f->extra_files);
    for (size_t i = 0; i < f->n_extra_files; i++)
        f->extra_files[i] = random_data(t, 20);
    if (tarn_test_random_one_in(t, 2)) {
        f->_creation_time_case = TARN__V1__DATA_FILE___CREATION_TIME_CREATION_TIME_MS;
        f->creation_time_ms = random_number(t);
    }
    if (tarn_test_random_one_in(t, 2)) {
        f->_external_path_case = TARN__V1__DATA_FILE___EXTERNAL_PATH_EXTERNAL_PATH;
        f->external_path = random_data(t, 60);
    }
    return f;
}

static struct tarn_slice data_slice(ProtobufCBinaryData d)
{
    return tarn_slice_of(d.data, d.len);
}

static void expect_same_stats(const struct tarn_client_stats *got, const Tarn__V1__Stats *want)
{
    expect_int(got->count, want == NULL ? 0 : want->n_null_counts);
    if (want == NULL)
        return;
    expect_bytes(got->min, data_slice(want->min));
    expect_bytes(got->max, data_slice(want->max));
    for (size_t i = 0; i < got->count; i++)
        expect_int(got->null_counts[i], want->null_counts[i]);
}

static void expect_same(const struct tarn_client_file *got, const Tarn__V1__DataFile *want)
{
    expect_bytes(got->name, data_slice(want->name));
    expect_bytes(got->min_key, data_slice(want->min_key));
    expect_bytes(got->max_key, data_slice(want->max_key));
    expect_int(got->size, want->size);
    expect_int(got->row_count, want->row_count);
    expect_int(got->min_sequence, want->min_sequence);
    expect_int(got->max_sequence, want->max_sequence);
    expect_int(got->schema_id, want->schema_id);
    expect_int(got->level, want->level);
    expect_int(got->source, want->source);
    expect_same_stats(&got->key_stats, want->key_stats);
    expect_same_stats(&got->value_stats, want->value_stats);
    expect_int(got->extra_file_count, want->n_extra_files);
    for (size_t i = 0; i < got->extra_file_count; i++)
        expect_bytes(got->extra_files[i], data_slice(want->extra_files[i]));
    bool has_time = want->_creation_time_case != TARN__V1__DATA_FILE___CREATION_TIME__NOT_SET;
    expect_int(got->creation_time_ms, has_time ? want->creation_time_ms : TARN_CLIENT_NONE);
    expect_int(got->delete_row_count, TARN_CLIENT_NONE);
    bool has_path = want->_external_path_case != TARN__V1__DATA_FILE___EXTERNAL_PATH__NOT_SET;
    expect_int(got->external_path.data != NULL, has_path);
}

static struct tarn_slice random_plan(struct tarn_test *t, Tarn__V1__PlanResponse *r)
{
    tarn__v1__plan_response__init(r);
    r->n_splits = tarn_test_random_below(t, 4);
    r->splits = tarn_arena_calloc(t->arena, 4, sizeof *r->splits);
    for (size_t i = 0; i < r->n_splits; i++) {
        Tarn__V1__Split *s = r->splits[i] = tarn_arena_alloc(t->arena, sizeof *s);
        tarn__v1__split__init(s);
        s->partition = random_data(t, 20);
        s->bucket = (int32_t)tarn_test_random_below(t, 100) - 2;
        s->raw = tarn_test_random_one_in(t, 2);
        s->path = (char *)(uintptr_t) "p=1/bucket-3";
        s->n_files = tarn_test_random_below(t, 4);
        s->n_before_files = tarn_test_random_below(t, 2);
        s->files = tarn_arena_calloc(t->arena, 4, sizeof *s->files);
        s->before_files = tarn_arena_calloc(t->arena, 4, sizeof *s->before_files);
        for (size_t f = 0; f < s->n_files; f++)
            s->files[f] = random_file(t);
        for (size_t f = 0; f < s->n_before_files; f++)
            s->before_files[f] = random_file(t);
    }
    size_t size = protobuf_c_message_get_packed_size(&r->base);
    uint8_t *bytes = tarn_arena_alloc(t->arena, size + 1);
    protobuf_c_message_pack(&r->base, bytes);
    return tarn_slice_of(bytes, size);
}

TARN_TEST(client_plan, is_what_the_library_reads)
{
    for (int round = 0; round < 500; round++) {
        Tarn__V1__PlanResponse want;
        struct tarn_slice bytes = random_plan(t, &want), summary;
        struct tarn_client_split *got;
        size_t count;
        expect_ok(tarn_client_plan_decode(bytes, t->arena, &got, &count, &summary));
        expect_int(count, want.n_splits);
        expect_true(summary.data == NULL);
        for (size_t i = 0; i < count; i++) {
            expect_bytes(got[i].partition, data_slice(want.splits[i]->partition));
            expect_int(got[i].bucket, want.splits[i]->bucket);
            expect_int(got[i].raw, want.splits[i]->raw);
            expect_slice(got[i].path, want.splits[i]->path);
            expect_int(got[i].file_count, want.splits[i]->n_files);
            expect_int(got[i].before_count, want.splits[i]->n_before_files);
            for (size_t f = 0; f < got[i].file_count; f++)
                expect_same(&got[i].files[f], want.splits[i]->files[f]);
            for (size_t f = 0; f < got[i].before_count; f++)
                expect_same(&got[i].before_files[f], want.splits[i]->before_files[f]);
        }
    }
}

TARN_TEST(client_plan, of_broken_bytes_is_refused_or_read_within_them)
{
    for (int round = 0; round < 3000; round++) {
        Tarn__V1__PlanResponse want;
        struct tarn_slice whole = random_plan(t, &want), summary;
        struct tarn_client_split *got;
        size_t count, size = whole.size == 0 ? 0 : tarn_test_random_below(t, whole.size);
        TARN_OWN(tarn_free_drop) uint8_t *bytes = tarn_alloc(size + 1);
        if (size > 0)
            memcpy(bytes, whole.data, size);
        if (size > 0 && tarn_test_random_one_in(t, 2))
            bytes[tarn_test_random_below(t, size)] ^= (uint8_t)(1 + tarn_test_random_below(t, 255));
        tarn_status_free(
            tarn_client_plan_decode(tarn_slice_of(bytes, size), t->arena, &got, &count, &summary));
    }
}
