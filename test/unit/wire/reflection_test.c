/*
 * Promise: whoever asks by reflection, v1 or v1alpha, finds every file, type, service and method of
 * the descriptor set, with all the file imports; what isn't there is a polite error.
 */
#include "echo.h"
#include "wire/internal.h"

static void index_sample(struct tarn_buf *set, struct tarn_wire__reflection **out)
{
    tarn_test_golden("wire/sample.fds", set);
    expect_ok(tarn_wire__reflection_new(tarn_buf_slice(set), out));
}

/* The field of the answer that tells its kind; its bytes in *body. */
static uint32_t ask(struct tarn_test *t, const struct tarn_wire__reflection *r, uint32_t field,
                    const char *text, struct tarn_slice *body)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf request = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf reply = {0};
    const char *services[] = {"sample.v1.Shop"};
    uint32_t kind = 0;

    tarn_wire__pb_put_str(&request, field, text);
    expect_ok(tarn_wire__reflection_answer(r, services, 1, tarn_buf_slice(&request), &reply));
    struct tarn_wire__pb reader =
        tarn_wire__pb_of(tarn_arena_copy(t->arena, tarn_buf_slice(&reply)));
    struct tarn_wire__field f;
    while (tarn_wire__pb_next(&reader, &f)) {
        if (f.number == 2)
            expect_bytes(f.bytes, tarn_buf_slice(&request));
        if (f.number >= 4) {
            kind = f.number;
            *body = f.bytes;
        }
    }
    expect_false(reader.bad);
    return kind;
}

static void expect_file(struct tarn_test *t, const struct tarn_wire__reflection *r, uint32_t field,
                        const char *text, const char *file, int count)
{
    struct tarn_slice body = {NULL, 0};
    struct tarn_wire__field f;
    int seen = 0;

    expect_uint(ask(t, r, field, text, &body), 4);
    struct tarn_wire__pb reader = tarn_wire__pb_of(body);
    while (tarn_wire__pb_next(&reader, &f))
        if (seen++ == 0)
            expect_slice(tarn_wire__pb_find(f.bytes, 1), file);
    expect_int(seen, count);
}

TARN_TEST(wire_reflection, finds_every_kind_of_name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf set = {0};
    TARN_OWN(tarn_wire__reflection_drop) struct tarn_wire__reflection *r = NULL;
    const char *names[] = {"sample.v1.Outer",  "sample.v1.Outer.Inner", "sample.v1.Outer.Kind",
                           "sample.v1.Colour", "sample.v1.Shop",        "sample.v1.Shop.Buy"};
    index_sample(&set, &r);
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++)
        expect_file(t, r, 4, names[i], "sample.proto", 2);
    expect_file(t, r, 3, "sample.proto", "sample.proto", 2);
    expect_file(t, r, 4, "google.protobuf.Timestamp", "google/protobuf/timestamp.proto", 1);
    expect_file(t, r, 4, "grpc.health.v1.Health.Check", "grpc/health/v1/health.proto", 1);
    expect_file(t, r, 4, "grpc.reflection.v1alpha.ServerReflection",
                "grpc/reflection/v1alpha/reflection.proto", 1);
}

TARN_TEST(wire_reflection, misses_politely)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf set = {0};
    TARN_OWN(tarn_wire__reflection_drop) struct tarn_wire__reflection *r = NULL;
    struct tarn_slice body = {NULL, 0};
    index_sample(&set, &r);
    expect_uint(ask(t, r, 4, "sample.v1.Nope", &body), 7);
    expect_slice(tarn_wire__pb_find(body, 2), "no such symbol: sample.v1.Nope");
    expect_uint(ask(t, r, 3, "nope.proto", &body), 7);
    expect_uint(ask(t, r, 5, "", &body), 7);
    expect_uint(ask(t, r, 6, "sample.v1.Outer", &body), 5);
    expect_slice(tarn_wire__pb_find(body, 1), "sample.v1.Outer");
    expect_uint(ask(t, r, 6, "nope", &body), 7);
    expect_uint(ask(t, r, 9, "", &body), 7);
    expect_uint(ask(t, r, 7, "", &body), 6);
    expect_slice(tarn_wire__pb_find(tarn_wire__pb_find(body, 1), 1),
                 "grpc.reflection.v1alpha.ServerReflection"); /* the last of four */
}

TARN_TEST(wire_reflection, knows_what_answers_once)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf set = {0};
    TARN_OWN(tarn_wire__reflection_drop) struct tarn_wire__reflection *r = NULL;
    index_sample(&set, &r);
    expect_true(tarn_wire__reflection_one_response(r, "/sample.v1.Shop/Buy"));
    expect_true(tarn_wire__reflection_one_response(r, "/sample.v1.Shop/Send"));
    expect_false(tarn_wire__reflection_one_response(r, "/sample.v1.Shop/List"));
    expect_false(tarn_wire__reflection_one_response(r, "/sample.v1.Shop/Talk"));
    expect_false(tarn_wire__reflection_one_response(r, "/sample.v1.Shop/Nope"));
}

TARN_TEST(wire_reflection, damaged_sets_are_refused)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf set = {0};
    struct tarn_wire__reflection *r = NULL;
    tarn_test_golden("wire/sample.fds", &set);
    expect_status(tarn_wire__reflection_new(tarn_slice_of(set.data, set.size - 1), &r),
                  TARN_INTERNAL, "FileDescriptorSet");
    for (size_t i = 0; i < set.size; i++) { /* no byte brings it down */
        set.data[i] ^= 0xff;
        struct tarn_status *status = tarn_wire__reflection_new(tarn_buf_slice(&set), &r);
        if (status == NULL)
            tarn_wire__reflection_drop(&r);
        tarn_status_free(status);
        set.data[i] ^= 0xff;
    }
}

TARN_TEST(wire_reflection, is_served_in_both_versions)
{
    struct echo echo;
    const char *paths[] = {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                           "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
    echo_start(&echo, NULL);
    for (int i = 0; i < 2; i++) {
        struct tarn_client_call *call = NULL;
        struct tarn_message *message = NULL;
        expect_ok(tarn_channel_call(echo.channel, t->op, paths[i], &call));
        for (int n = 0; n < 3; n++) {
            expect_ok(tarn_client_call_write(call, text_message("\x3a\x01*"))); /* list */
            expect_ok(tarn_client_call_read(call, &message));
            struct tarn_slice list = tarn_wire__pb_find(tarn_message_bytes(message), 6);
            struct tarn_wire__pb reader = tarn_wire__pb_of(list);
            struct tarn_wire__field f;
            expect_true(tarn_wire__pb_next(&reader, &f));
            expect_slice(tarn_wire__pb_find(f.bytes, 1), "t.Echo");
            tarn_message_drop(&message);
        }
        expect_ok(tarn_client_call_writes_done(call));
        expect_ok(tarn_client_call_read(call, &message));
        expect_null(message);
        expect_ok(tarn_client_call_finish(call));
        tarn_client_call_free(call);
    }
    echo_stop(&echo);
}
