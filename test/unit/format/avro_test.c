/*
 * Avro containers: every codec and every type is read by the writer's schema; what is damaged, too deep,
 * too large or counts more than it holds is refused without work or memory out of proportion.
 */
#include "test.h"

#include "format/avro.h"

static const uint8_t sync_mark[16] = "0123456789abcdef";

#define RECORD(fields) "{\"type\":\"record\",\"name\":\"r\",\"fields\":[" fields "]}"

/* A container with one block of these bytes, as they are; codec null unless `codec` says more. */
static struct tarn_slice container(struct tarn_test *t, const char *schema, const char *codec,
                                   int64_t count, struct tarn_slice block)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    tarn_buf_add_str(&out, "Obj\x01");
    tarn_avro_add_long(&out, -2); /* a count below zero is followed by a size */
    tarn_avro_add_long(&out, 77);
    tarn_avro_add_bytes(&out, tarn_slice_str("avro.codec"));
    tarn_avro_add_bytes(&out, tarn_slice_str(codec));
    tarn_avro_add_bytes(&out, tarn_slice_str("avro.schema"));
    tarn_avro_add_bytes(&out, tarn_slice_str(schema));
    tarn_avro_add_long(&out, 0);
    tarn_buf_add(&out, sync_mark, 16);
    tarn_avro_add_long(&out, count);
    tarn_avro_add_bytes(&out, block);
    tarn_buf_add(&out, sync_mark, 16);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&out));
}

/* Opens, and skips through all records. */
static struct tarn_status *walk(struct tarn_test *t, struct tarn_slice file, int *count)
{
    struct tarn_avro_reader r;
    bool more = true;
    *count = 0;
    TARN_TRY(tarn_avro_open(file, t->arena, &r));
    for (;;) {
        TARN_TRY(tarn_avro_next(&r, &more));
        if (!more)
            return TARN_OK;
        TARN_TRY(tarn_avro_skip(&r, r.schema));
        ++*count;
    }
}

static void expect_refused(struct tarn_test *t, struct tarn_slice file, const char *part)
{
    int count;
    expect_status(walk(t, file, &count), TARN_AVRO_MALFORMED, part);
}

TARN_TEST(avro, longs)
{
    /* Avro's specification, "Binary encoding": 0, -1, 1, -2, 2, -64, 64; and the ends */
    static const struct {
        int64_t value;
        const char *bytes;
        size_t size;
    } cases[] = {
        {0, "\x00", 1},
        {-1, "\x01", 1},
        {1, "\x02", 1},
        {-2, "\x03", 1},
        {2, "\x04", 1},
        {-64, "\x7f", 1},
        {64, "\x80\x01", 2},
        {INT64_MAX, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
        {INT64_MIN, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        int64_t back = 1;
        tarn_avro_add_long(&out, cases[i].value);
        expect_bytes(tarn_buf_slice(&out), tarn_slice_of(cases[i].bytes, cases[i].size));
        const uint8_t *cursor = out.data;
        expect_true(tarn_avro_take_long(&cursor, out.data + out.size, &back));
        expect_int(back, cases[i].value);
        cursor = out.data;
        expect_false(tarn_avro_take_long(&cursor, out.data + out.size - 1, &back));
    }
    const uint8_t *cursor = (const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
    int64_t back;
    expect_false(tarn_avro_take_long(&cursor, cursor + 10, &back));
}

TARN_TEST(avro, every_codec)
{
    static const char *const codecs[] = {"zstd", "deflate", "snappy", "none"};
    for (size_t c = 0; c < TARN_COUNT_OF(codecs); c++) {
        TARN_OWN(tarn_avro_writer_drop) struct tarn_avro_writer w = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        int count = 0;
        expect_ok(tarn_avro_begin(&w, RECORD("{\"name\":\"a\",\"type\":\"long\"}"),
                                  tarn_slice_str(codecs[c]), 1, sync_mark, &out));
        for (int i = 0; i < 100000; i++) {
            tarn_avro_add_long(&w.block, i % 1000);
            expect_ok(tarn_avro_end_record(&w));
        }
        expect_ok(tarn_avro_end(&w));
        expect_ok(walk(t, tarn_buf_slice(&out), &count));
        expect_int(count, 100000);
        /* cut short anywhere it is refused, but for the ends of blocks */
        out.size -= 17;
        expect_refused(t, tarn_buf_slice(&out), "");
    }
    struct tarn_avro_writer w;
    struct tarn_buf out = {0};
    expect_status(tarn_avro_begin(&w, "", tarn_slice_str("lzo"), 1, sync_mark, &out),
                  TARN_INVALID_ARGUMENT, "lzo");
}

TARN_TEST(avro, every_type_is_skipped)
{
    static const char schema[] = RECORD(
        "{\"name\":\"n\",\"type\":\"null\"},{\"name\":\"b\",\"type\":\"boolean\"},"
        "{\"name\":\"i\",\"type\":\"int\"},{\"name\":\"f\",\"type\":\"float\"},"
        "{\"name\":\"d\",\"type\":\"double\"},{\"name\":\"s\",\"type\":[\"string\",\"null\"]},"
        "{\"name\":\"x\",\"type\":{\"type\":\"fixed\",\"name\":\"ns.f3\",\"size\":3}},"
        "{\"name\":\"y\",\"type\":\"ns.f3\"},"
        "{\"name\":\"e\",\"type\":{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\"]}},"
        "{\"name\":\"a\",\"type\":{\"type\":\"array\",\"items\":\"int\"}},"
        "{\"name\":\"m\",\"type\":{\"type\":\"map\",\"values\":\"r\"}}");
    static const char block[] = "\x01\x02"
                                "ffff"
                                "dddddddd"
                                "\x00\x04"
                                "st"
                                "xyz"
                                "xyz"
                                "\x00"
                                "\x03\x04\x02\x04\x00" /* array: -2 items, 2 bytes; 1, 2; end */
                                "\x00";                /* no entries */
    int count;
    expect_ok(
        walk(t, container(t, schema, "null", 1, tarn_slice_of(block, sizeof block - 1)), &count));
    expect_int(count, 1);
}

TARN_TEST(avro, values_by_name)
{
    static const char schema[] = RECORD(
        "{\"name\":\"later\",\"type\":\"string\"},"
        "{\"name\":\"list\",\"type\":[{\"type\":\"array\",\"items\":[\"long\",\"null\"]},\"null\"]},"
        "{\"name\":\"id\",\"type\":\"int\"}");
    static const char block[] = "\x02x"
                                "\x00\x04\x00\x0a\x02\x02\x00\x0c\x00"
                                "\x0e";
    static const char *const names[] = {"id", "list"};
    struct tarn_slice file =
        container(t, schema, "null", 1, tarn_slice_of(block, sizeof block - 1));
    struct tarn_avro_reader r;
    const int16_t *map;
    const int64_t *items;
    size_t count = 0;
    bool more = false, present = false;
    int64_t id = 0;
    expect_ok(tarn_avro_open(file, t->arena, &r));
    expect_ok(tarn_avro_bind(&r, r.schema, names, 2, &map));
    expect_int(map[0], -1);
    expect_int(map[1], 1);
    expect_int(map[2], 0);
    expect_ok(tarn_avro_next(&r, &more));
    expect_ok(tarn_avro_skip(&r, r.schema->children[0]));
    expect_ok(tarn_avro_read_longs(&r, r.schema->children[1], -9, &present, &items, &count));
    expect_true(present);
    expect_int(count, 3);
    expect_int(items[0], 5);
    expect_int(items[1], -9);
    expect_int(items[2], 6);
    expect_ok(tarn_avro_read_long(&r, r.schema->children[2], false, 0, &id));
    expect_int(id, 7);
    expect_ok(tarn_avro_next(&r, &more));
    expect_false(more);
}

/* Some schemas are remembered: each file is read by its own all the same, however many there are. */
TARN_TEST(avro, each_file_is_read_by_its_own_schema)
{
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++) {
            char name[16], pad[32];
            struct tarn_avro_reader r;
            snprintf(name, sizeof name, "f%d", i);
            snprintf(pad, sizeof pad, "%*s", i % 20, "");
            const char *schema = tarn_arena_printf(
                t->arena,
                "{\"type\":\"record\",%s\"name\":\"r\",\"fields\":[{\"name\":\"%s\",\"type\":\"%s\"}]}",
                pad, name, i % 2 == 0 ? "long" : "bytes");
            expect_ok(
                tarn_avro_open(container(t, schema, "null", 0, tarn_slice_str("")), t->arena, &r));
            expect_not_null(tarn_avro_find(r.schema, name));
            expect_int(r.schema->child_count, 1);
            expect_int(r.schema->children[0]->kind, i % 2 == 0 ? TARN_AVRO_LONG : TARN_AVRO_BYTES);
        }
    }
}

TARN_TEST(avro, damage_is_named)
{
    static const char one[] = RECORD("{\"name\":\"a\",\"type\":\"bytes\"}");
    expect_refused(t, tarn_slice_str(""), "Obj");
    expect_refused(t, tarn_slice_str("Obj\x01"), "header");
    expect_refused(t, tarn_slice_str("Obj\x01\x7f"), "header");
    expect_refused(t, container(t, one, "lz4", 1, tarn_slice_str("\x02x")), "lz4");
    expect_refused(t, container(t, one, "null", 2, tarn_slice_str("\x02x")), "length");
    expect_refused(t, container(t, one, "null", 9, tarn_slice_str("\x02x")), "9 records");
    expect_refused(t, container(t, one, "null", -1, tarn_slice_str("\x02x")), "cut short");
    expect_refused(t, container(t, one, "null", 1, tarn_slice_str("\x02xy")), "left");
    expect_refused(t, container(t, one, "null", 1, tarn_slice_str("\x04x")), "length");
    expect_refused(t, container(t, one, "null", 1, tarn_slice_str("\x01")), "length");
    expect_refused(t, container(t, one, "zstandard", 1, tarn_slice_str("nonsense")), "");
    expect_refused(t, container(t, one, "deflate", 1, tarn_slice_str("nonsense")), "");
    expect_refused(t, container(t, one, "snappy", 1, tarn_slice_str("abc")), "snappy");
    struct tarn_slice file = container(t, one, "null", 1, tarn_slice_str("\x02x"));
    ((uint8_t *)file.data)[file.size - 1] ^= 1;
    expect_refused(t, file, "mark");
}

TARN_TEST(avro, bad_schemas_are_refused)
{
    static const char *const bad[][2] = {
        {"", "avro.schema"},
        {"\"long\"", "no record"},
        {RECORD("{\"name\":\"a\"}"), "missing"},
        {RECORD("{\"name\":\"a\",\"type\":\"other\"}"), "other"},
        {RECORD("{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"a\",\"type\":\"int\"}"), "twice"},
        {RECORD("{\"name\":\"a\",\"type\":[[\"int\"]]}"), "union"},
        {RECORD("{\"name\":\"a\",\"type\":[]}"), "union"},
        {RECORD("{\"name\":\"a\",\"type\":{\"type\":\"fixed\",\"name\":\"f\",\"size\":-1}}"),
         "size"},
        {RECORD("{\"name\":\"a\",\"type\":" RECORD("{\"name\":\"b\",\"type\":\"int\"}") "}"),
         "twice"},
        {"{\"type\":\"record\",\"name\":\"r\"}", "fields"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_refused(t, container(t, bad[i][0], "null", 1, tarn_slice_str("\x02x")), bad[i][1]);
}

TARN_TEST(avro, counts_are_held_against_what_is_there)
{
    static const char list[] =
        RECORD("{\"name\":\"a\",\"type\":{\"type\":\"array\",\"items\":\"null\"}}");
    TARN_OWN(tarn_buf_drop) struct tarn_buf block = {0};
    tarn_avro_add_long(&block, INT64_C(1) << 60);
    expect_refused(t, container(t, list, "null", 1, tarn_buf_slice(&block)), "items");
    tarn_buf_clear(&block);
    tarn_avro_add_long(&block, INT64_MIN);
    expect_refused(t, container(t, list, "null", 1, tarn_buf_slice(&block)), "range");
    tarn_buf_clear(&block);
    tarn_avro_add_long(&block, -1);
    tarn_avro_add_long(&block, 1000);
    expect_refused(t, container(t, list, "null", 1, tarn_buf_slice(&block)), "size");
}

TARN_TEST(avro, no_work_out_of_nothing)
{
    /* r0 {}, r1 {r0 r0}, r2 {r1 r1} ...: 2^28 visits without a byte */
    TARN_OWN(tarn_buf_drop) struct tarn_buf schema = {0};
    tarn_buf_add_str(&schema,
                     "{\"type\":\"record\",\"name\":\"top\",\"fields\":[{\"name\":\"x\",\"type\":"
                     "\"int\"},{\"name\":\"z0\",\"type\":{\"type\":\"record\",\"name\":\"r0\","
                     "\"fields\":[]}}");
    for (int i = 1; i <= 28; i++)
        tarn_buf_printf(&schema,
                        ",{\"name\":\"z%d\",\"type\":{\"type\":\"record\",\"name\":\"r%d\","
                        "\"fields\":[{\"name\":\"a\",\"type\":\"r%d\"},"
                        "{\"name\":\"b\",\"type\":\"r%d\"}]}}",
                        i, i, i - 1, i - 1);
    tarn_buf_add_str(&schema, "]}");
    expect_refused(t, container(t, tarn_buf_cstr(&schema), "null", 1, tarn_slice_str("\x02")),
                   "more values than bytes");
    /* a record that is its own field */
    expect_refused(
        t,
        container(t, RECORD("{\"name\":\"a\",\"type\":\"r\"}"), "null", 1, tarn_slice_str("\x02")),
        "deep");
}

TARN_TEST(avro, a_bomb_is_stopped)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf zeros = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf bomb = {0};
    tarn_buf_add_zeros(&zeros, 64 << 20);
    expect_ok(tarn_zip_compress(TARN_ZIP_ZSTD, 1, tarn_buf_slice(&zeros), &bomb));
    expect_true(bomb.size < 64 << 10);
    expect_refused(t,
                   container(t, RECORD("{\"name\":\"a\",\"type\":\"int\"}"), "zstandard", 1,
                             tarn_buf_slice(&bomb)),
                   "");
    expect_true(tarn_arena_size(t->arena) < (32u << 20));
}
