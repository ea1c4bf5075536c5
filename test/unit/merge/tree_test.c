/*
 * A merge of sorted runs equals a model of thirty lines, for random runs with duplicate keys, deletes,
 * sequence fields of both orders with nulls, ties, and batches of any size; bad runs are refused.
 */
#include "test.h"
#include "memory_input.h"
#include "batch.h"

#include "merge/internal.h"

static const struct tarn_type bigint = {.id = TARN_TYPE_BIGINT};
static const struct tarn_type text = {.id = TARN_TYPE_VARCHAR, .length = INT32_MAX};
static const struct tarn_type maybe_int = {.id = TARN_TYPE_INT, .nullable = true};
static const struct tarn_type tinyint = {.id = TARN_TYPE_TINYINT};

/* columns of an input: key, sequence field, value, _SEQUENCE_NUMBER, _VALUE_KIND */
#define COLUMNS 5
struct record {
    int64_t key, value, sequence;
    bool field_null;
    int64_t field;
    int8_t kind;
    uint32_t place;
};

static struct tarn_value key_value(struct tarn_test *t, const struct tarn_type *type, int64_t key)
{
    if (type->id == TARN_TYPE_BIGINT)
        return tarn_test_int(key);
    return tarn_test_text(tarn_arena_printf(t->arena, "a-long-prefix-%05d", (int)key));
}

static struct tarn_merge_input *input_of(struct tarn_test *t, const struct tarn_type *key_type,
                                         const struct record *records, size_t count,
                                         size_t batch_size, uint32_t place)
{
    const struct tarn_type *types[COLUMNS] = {key_type, &maybe_int, &bigint, &bigint, &tinyint};
    struct memory_input *m = memory_input_new(count, place);

    for (size_t at = 0; at < count; at += batch_size) {
        size_t n = TARN_MIN(batch_size, count - at);
        struct tarn_value *v = tarn_calloc(n * COLUMNS, sizeof *v);
        for (size_t i = 0; i < n; i++) {
            const struct record *r = &records[at + i];
            v[i * COLUMNS] = key_value(t, key_type, r->key);
            v[i * COLUMNS + 1] = r->field_null ? tarn_test_null() : tarn_test_int(r->field);
            v[i * COLUMNS + 2] = tarn_test_int(r->value);
            v[i * COLUMNS + 3] = tarn_test_int(r->sequence);
            v[i * COLUMNS + 4] = tarn_test_int(r->kind);
        }
        m->batches[m->count++] = tarn_test_batch(types, COLUMNS, v, (int64_t)n);
        free(v);
    }
    return &m->input;
}

struct setting {
    const struct tarn_type *key_type;
    bool use_field, descending, ignore_delete, drop_retract;
};

/* The model: the last of all records of a key, by the order the header gives. */
static bool model_less(const struct setting *s, const struct record *a, const struct record *b)
{
    if (s->use_field && (a->field_null || b->field_null) && a->field_null != b->field_null)
        return a->field_null;
    if (s->use_field && !a->field_null && !b->field_null && a->field != b->field)
        return s->descending ? a->field > b->field : a->field < b->field;
    if (a->sequence != b->sequence)
        return a->sequence < b->sequence;
    if ((a->kind & 1) != (b->kind & 1))
        return (a->kind & 1) != 0;
    return a->place < b->place;
}

static size_t model_merge(const struct setting *s, const struct record *all, size_t count,
                          int64_t key_count, struct record *out)
{
    size_t n = 0;
    for (int64_t key = 0; key < key_count; key++) {
        const struct record *best = NULL;
        for (size_t i = 0; i < count; i++) {
            if (all[i].key != key || (s->ignore_delete && (all[i].kind & 1) != 0))
                continue;
            if (best == NULL || !model_less(s, &all[i], best))
                best = &all[i];
        }
        if (best != NULL && !(s->drop_retract && (best->kind & 1) != 0))
            out[n++] = *best;
    }
    return n;
}

static int by_key(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static struct tarn_status *merge(struct tarn_test *t, const struct setting *s,
                                 struct tarn_merge_input **inputs, size_t input_count,
                                 struct record *out, size_t *count)
{
    struct tarn_merge_key_column key = {0, s->key_type, false},
                                 field = {1, &maybe_int, s->descending};
    struct tarn_merge_key_spec key_spec, order;
    const int columns[] = {3, 2, 4};
    const struct tarn_type *types[] = {&bigint, &bigint, &tinyint};
    struct tarn_merge_tree_spec spec = {.key = &key_spec,
                                        .order = &order,
                                        .sequence_column = 3,
                                        .kind_column = 4,
                                        .ignore_delete = s->ignore_delete,
                                        .drop_retract = s->drop_retract,
                                        .columns = columns,
                                        .types = types,
                                        .column_count = 3};
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;
    struct tarn_batch *batch;

    tarn_merge__key_spec_init(&key_spec, &key, 1);
    tarn_merge__key_spec_init(&order, &field, s->use_field ? 1 : 0);
    TARN_TRY(tarn_merge__tree_open(t->op, &spec, inputs, input_count, &source));
    *count = 0;
    for (;;) {
        TARN_TRY(source->next(source, t->op, &batch));
        if (batch == NULL)
            return TARN_OK;
        expect_true(batch->row_count > 0);
        for (int64_t i = 0; i < batch->row_count; i++, (*count)++) {
            out[*count].sequence =
                tarn_test_value(t->arena, &bigint, tarn_batch_column(batch, 0), i).integer;
            out[*count].value =
                tarn_test_value(t->arena, &bigint, tarn_batch_column(batch, 1), i).integer;
            out[*count].kind =
                (int8_t)tarn_test_value(t->arena, &tinyint, tarn_batch_column(batch, 2), i).integer;
        }
        tarn_batch_unref(batch);
    }
}

#define RECORDS_MAX 4000

static void check_round(struct tarn_test *t)
{
    struct record *all = tarn_arena_calloc(t->arena, RECORDS_MAX, sizeof *all);
    struct record *want = tarn_arena_calloc(t->arena, RECORDS_MAX, sizeof *want);
    struct record *got = tarn_arena_calloc(t->arena, RECORDS_MAX, sizeof *got);
    struct tarn_merge_input *inputs[12];
    struct setting s = {.key_type = tarn_test_random_one_in(t, 2) ? &bigint : &text,
                        .use_field = tarn_test_random_one_in(t, 2),
                        .descending = tarn_test_random_one_in(t, 2),
                        .ignore_delete = tarn_test_random_one_in(t, 4),
                        .drop_retract = tarn_test_random_one_in(t, 2)};
    size_t run_count = tarn_test_random_below(t, 12), n = 0, got_count;
    int64_t key_count =
        1 + (int64_t)tarn_test_random_below(t, tarn_test_random_one_in(t, 2) ? 20 : 400);

    for (size_t r = 0; r < run_count; r++) {
        size_t rows = tarn_test_random_below(t, tarn_test_random_one_in(t, 3) ? 300 : 20),
               begin = n;
        bool unique = !tarn_test_random_one_in(t, 4);
        int64_t key = 0;
        for (size_t i = 0; i < rows; i++, n++) {
            key = unique ? key + 1 + (int64_t)tarn_test_random_below(t, 3)
                         : (int64_t)tarn_test_random_below(t, (uint64_t)key_count);
            if (key >= key_count)
                break;
            all[n] = (struct record){
                .key = key,
                .value = (int64_t)n,
                .sequence = (int64_t)tarn_test_random_below(t, 6),
                .field_null = tarn_test_random_one_in(t, 3),
                .field = (int64_t)tarn_test_random_below(t, 3),
                .kind = (int8_t)(tarn_test_random_one_in(t, 3) ? tarn_test_random_below(t, 4) : 0),
                .place = (uint32_t)r};
        }
        qsort(all + begin, n - begin, sizeof *all, by_key);
        inputs[r] = input_of(t, s.key_type, all + begin, n - begin,
                             1 + tarn_test_random_below(t, 50), (uint32_t)r);
    }
    expect_ok(merge(t, &s, inputs, run_count, got, &got_count));
    size_t want_count = model_merge(&s, all, n, key_count, want);
    expect_int(got_count, want_count);
    for (size_t i = 0; i < want_count; i++) {
        expect_int(got[i].value, want[i].value);
        expect_int(got[i].sequence, want[i].sequence);
        expect_int(got[i].kind, want[i].kind);
    }
}

TARN_TEST(tree, equals_the_model)
{
    for (int round = 0; round < tarn_test_rounds(300); round++)
        check_round(t);
}

/* known-traps K20: descending, the smallest sequence field wins whatever the arrival order. */
TARN_TEST(tree, descending_sequence_field)
{
    struct setting s = {.key_type = &bigint, .use_field = true, .descending = true};
    struct record a[] = {{.key = 7, .value = 1, .field = 1, .sequence = 0}};
    struct record b[] = {{.key = 7, .value = 2, .field = 3, .sequence = 1}};
    struct record c[] = {{.key = 7, .value = 3, .field = 2, .sequence = 2}};
    struct tarn_merge_input *inputs[] = {input_of(t, &bigint, a, 1, 1, 0),
                                         input_of(t, &bigint, b, 1, 1, 1),
                                         input_of(t, &bigint, c, 1, 1, 2)};
    struct record out[3];
    size_t count;

    expect_ok(merge(t, &s, inputs, 3, out, &count));
    expect_int(count, 1);
    expect_int(out[0].value, 1);
}

/* known-traps K22, K23: equal in all else, the place decides, in whatever order the runs are given. */
TARN_TEST(tree, ties_go_to_the_newer_place)
{
    struct setting s = {.key_type = &bigint};
    struct record r[] = {{.key = 1, .value = 1}, {.key = 1, .value = 2}, {.key = 1, .value = 3}};
    const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};

    for (size_t o = 0; o < TARN_COUNT_OF(orders); o++) {
        struct tarn_merge_input *inputs[3];
        struct record out[3];
        size_t count;
        for (int i = 0; i < 3; i++)
            inputs[i] = input_of(t, &bigint, &r[orders[o][i]], 1, 1, (uint32_t)orders[o][i]);
        expect_ok(merge(t, &s, inputs, 3, out, &count));
        expect_int(count, 1);
        expect_int(out[0].value, 3);
    }
}

/* known-traps K30: deletes in old files no longer count once ignore-delete is set. */
TARN_TEST(tree, ignore_delete_brings_the_row_back)
{
    struct setting s = {.key_type = &bigint, .drop_retract = true};
    struct record a[] = {{.key = 1, .value = 1}},
                  b[] = {{.key = 1, .value = 1, .sequence = 1, .kind = 3}};
    struct record out[2];
    size_t count;

    for (int ignore = 0; ignore < 2; ignore++) {
        struct tarn_merge_input *inputs[] = {input_of(t, &bigint, a, 1, 1, 0),
                                             input_of(t, &bigint, b, 1, 1, 1)};
        s.ignore_delete = ignore != 0;
        expect_ok(merge(t, &s, inputs, 2, out, &count));
        expect_int(count, ignore);
    }
}

TARN_TEST(tree, refuses_runs_out_of_order)
{
    struct setting s = {.key_type = &bigint};
    struct record r[] = {{.key = 1}, {.key = 3}, {.key = 2}};

    for (size_t batch_size = 1; batch_size <= 3; batch_size++) {
        struct tarn_merge_input *input = input_of(t, &bigint, r, 3, batch_size, 0);
        struct record out[3];
        size_t count;
        expect_status(merge(t, &s, &input, 1, out, &count), TARN_DATA_FILE_MALFORMED, "key order");
    }
}

TARN_TEST(tree, refuses_an_unknown_kind)
{
    struct setting s = {.key_type = &bigint};
    struct record r[] = {{.key = 1, .kind = 4}};
    struct tarn_merge_input *input = input_of(t, &bigint, r, 1, 1, 0);
    struct record out[1];
    size_t count;

    expect_status(merge(t, &s, &input, 1, out, &count), TARN_DATA_FILE_MALFORMED, "_VALUE_KIND");
}
