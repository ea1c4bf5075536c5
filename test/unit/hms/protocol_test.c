/*
 * Thrift's bytes: what is written is what Apache Thrift's own libraries write, what is read is any bytes or an error, and no size that
 * they say is believed before the bytes are there.
 */
#include "hms/internal.h"
#include "test/lib/test.h"

#define S(text) tarn_slice_str(text)

struct source {
    struct tarn_slice left;
    size_t step;
};

static struct tarn_status *fetch(void *self, uint8_t *into, size_t room, size_t *got)
{
    struct source *source = self;
    size_t some = TARN_MIN(room, source->step);
    *got = TARN_MIN(some, source->left.size);
    memcpy(into, source->left.data, *got);
    source->left = tarn_slice_of(source->left.data + *got, source->left.size - *got);
    return TARN_OK;
}

static struct tarn_hms__reader *reader(struct tarn_test *t, struct tarn_slice bytes, size_t step)
{
    struct tarn_hms__reader *r = tarn_arena_calloc(t->arena, 1, sizeof *r);
    struct source *source = tarn_arena_calloc(t->arena, 1, sizeof *source);
    *source = (struct source){bytes, step};
    tarn_hms__reader_init(r, t->arena);
    r->fetch = fetch;
    r->self = source;
    return r;
}

static struct tarn_hms__table sample(struct tarn_test *t)
{
    struct tarn_hms__column *columns = tarn_arena_calloc(t->arena, 2, sizeof *columns);
    struct tarn_pair *parameters = tarn_arena_calloc(t->arena, 1, sizeof *parameters);
    columns[0] = (struct tarn_hms__column){S("id"), S("int"), S(NULL)};
    columns[1] = (struct tarn_hms__column){S("v"), S("string"), S("c")};
    parameters[0] = (struct tarn_pair){S("k"), S("v")};
    return (struct tarn_hms__table){
        .database = S("db"),
        .name = S("t"),
        .owner = S("me"),
        .kind = S("EXTERNAL_TABLE"),
        .location = S("file:/x"),
        .input_format = S("in"),
        .output_format = S("out"),
        .serde = S("serde"),
        .columns = columns,
        .column_count = 1,
        .keys = columns + 1,
        .key_count = 1,
        .parameters = parameters,
        .parameter_count = 1,
    };
}

/* The bytes that Apache Thrift 0.9.3's Java TBinaryProtocol has for the same call. */
TARN_TEST(protocol, writes_a_call)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf hex = {0};
    tarn_hms__put_call(&out, "drop_table", 7);
    tarn_hms__put_text(&out, 1, S("db"));
    tarn_hms__put_text(&out, 2, S("t"));
    tarn_hms__put_text(&out, 9, S(NULL)); /* left out */
    tarn_hms__put_bool(&out, 3, false);
    tarn_hms__put_stop(&out);
    tarn_hex_encode(tarn_buf_slice(&out), &hex);
    expect_str(tarn_buf_cstr(&hex), "80010001"
                                    "0000000a64726f705f7461626c65"
                                    "00000007"
                                    "0b0001000000026462"
                                    "0b00020000000174"
                                    "02000300"
                                    "00");
}

TARN_TEST(protocol, reads_what_it_writes_in_any_pieces)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_hms__table want = sample(t), have;
    tarn_hms__put_table(&out, &want, 5);
    for (size_t step = 1; step < 40; step += 13) {
        struct tarn_hms__reader *r = reader(t, tarn_buf_slice(&out), step);
        tarn_hms__get_table(r, &have);
        expect_ok(tarn_move(r->status));
        expect_null(tarn_hms__table_differs(t->arena, &want, &have));
        expect_slice(have.owner, "me");
        expect_slice(have.keys[0].comment, "c");
        expect_null(have.columns[0].comment.data);
    }
}

TARN_TEST(protocol, every_cut_is_an_error)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_hms__table want = sample(t), have;
    tarn_hms__put_table(&out, &want, 5);
    for (size_t size = 0; size < out.size; size++) {
        struct tarn_hms__reader *r = reader(t, tarn_slice_of(out.data, size), 16);
        tarn_hms__get_table(r, &have);
        expect_status(tarn_move(r->status), TARN_METASTORE_UNAVAILABLE, "ends in the middle");
    }
}

static void expect_spoiled(struct tarn_test *t, const char *hex, const char *part)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_hms__table table;
    expect_ok(tarn_hex_decode(S(hex), &bytes));
    struct tarn_hms__reader *r = reader(t, tarn_buf_slice(&bytes), 16);
    tarn_hms__get_table(r, &table);
    expect_status(tarn_move(r->status), TARN_METASTORE_UNAVAILABLE, part);
}

TARN_TEST(protocol, believes_no_size)
{
    expect_spoiled(t, "0b00017fffffff", "text of 2147483647");
    expect_spoiled(t, "0b0001ffffffff", "text of -1");
    expect_spoiled(t, "0d00090b0b7fffffff", "count of 2147483647");
    expect_spoiled(t, "0f00080c03fffff0", "ends in the middle"); /* what could come, but doesn't */
    expect_spoiled(t, "0f00080b0000000100", "a list of type 11");
    expect_spoiled(t, "0d0009080b00000001", "a map of types 8 and 11");
    expect_spoiled(t, "0500017f", "a field of type 5");
    expect_spoiled(t, "0f0063630000000100", "a field of type 99");
}

TARN_TEST(protocol, is_not_led_into_the_depth)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_hms__table table;
    for (int i = 0; i < 100000; i++)
        tarn_hms__put_field(&bytes, i % 2 == 0 ? HMS_STRUCT : HMS_LIST, 99);
    struct tarn_hms__reader *r = reader(t, tarn_buf_slice(&bytes), 4096);
    tarn_hms__get_table(r, &table);
    tarn_status_free(tarn_move(r->status));
    tarn_buf_clear(&bytes);
    for (int i = 0; i < 100000; i++)
        tarn_hms__put_field(&bytes, HMS_STRUCT, 99);
    r = reader(t, tarn_buf_slice(&bytes), 4096);
    tarn_hms__get_table(r, &table);
    expect_status(tarn_move(r->status), TARN_METASTORE_UNAVAILABLE, "nested deeper");
}

/* Empty structs take a byte each and some 50 once read. */
TARN_TEST(protocol, takes_no_more_memory_than_it_may)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_hms__table table;
    tarn_hms__put_list(&bytes, 8, HMS_STRUCT, 8000000);
    tarn_buf_add_zeros(&bytes, 8000000);
    struct tarn_hms__reader *r = reader(t, tarn_buf_slice(&bytes), 16384);
    tarn_hms__get_table(r, &table);
    expect_status(tarn_move(r->status), TARN_METASTORE_UNAVAILABLE, "of memory");
}

TARN_TEST(protocol, takes_only_the_answer_to_its_call)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_hms__put_call(&bytes, "get_table", 3);
    struct tarn_hms__reader *r = reader(t, tarn_buf_slice(&bytes), 16);
    tarn_hms__get_reply(r, "get_table", 3);
    expect_status(tarn_move(r->status), TARN_METASTORE_UNAVAILABLE, "begins with 80010001");
    bytes.data[3] = 2;
    r = reader(t, tarn_buf_slice(&bytes), 16);
    tarn_hms__get_reply(r, "get_table", 3);
    expect_ok(tarn_move(r->status));
    r = reader(t, tarn_buf_slice(&bytes), 16);
    tarn_hms__get_reply(r, "get_table", 4);
    expect_status(tarn_move(r->status), TARN_METASTORE_UNAVAILABLE, "another call");
    bytes.data[3] = 3;
    tarn_hms__put_text(&bytes, 1, S("Invalid method name"));
    tarn_hms__put_stop(&bytes);
    r = reader(t, tarn_buf_slice(&bytes), 16);
    tarn_hms__get_reply(r, "get_table", 3);
    expect_status(tarn_move(r->status), TARN_METASTORE_REFUSED, "Invalid method name");
}
