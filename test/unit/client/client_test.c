/*
 * Promise: the client library sends generated messages and gets them back with the server's status as
 * it was; bytes that are sent without a message are on the wire what the message would be; a stream
 * that is given up is cancelled.
 */
#include <time.h>

#include "test.h"

#include "tarn/client.h"
#include "tarn/v1/catalog.pb-c.h"
#include "tarn/v1/data.pb-c.h"

struct served {
    struct tarn_exec *exec;
    struct tarn_wire_server *server;
    struct tarn_client *client;
    struct tarn_buf got; /* the last message of Ingest */
    char token[64];
    atomic_int last_reason; /* with which Scan ended */
};

static struct tarn_status *get_database(void *self TARN_UNUSED, struct tarn_op *op TARN_UNUSED,
                                        struct tarn_call *call)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    TARN_TRY(tarn_call_read(call, &message));
    struct tarn_slice bytes = tarn_message_bytes(message);
    Tarn__V1__GetDatabaseRequest *request =
        tarn__v1__get_database_request__unpack(NULL, bytes.size, bytes.data);
    bool there = tarn_slice_is(tarn_slice_of(request->name.data, request->name.len), "shop");
    tarn__v1__get_database_request__free_unpacked(request, NULL);
    if (!there)
        return tarn_status_new(TARN_DATABASE_NOT_FOUND, "no such database");
    return tarn_call_write(call, tarn_message_copy(tarn_slice_str("\x0a\x04shop\x20\x03")));
}

static struct tarn_status *ingest(void *self, struct tarn_op *op TARN_UNUSED,
                                  struct tarn_call *call)
{
    struct served *served = self;
    for (;;) {
        TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
        TARN_TRY(tarn_call_read(call, &message));
        if (message == NULL)
            break;
        tarn_buf_clear(&served->got);
        tarn_buf_add_slice(&served->got, tarn_message_bytes(message));
    }
    return tarn_call_write(call, tarn_message_copy(tarn_slice_str("\x08\x07")));
}

static struct tarn_status *scan(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct served *served = self;
    struct tarn_status *status = NULL;
    for (int i = 0; i < 1000000 && status == NULL; i++) {
        status = tarn_op_check(op);
        if (status == NULL)
            status = tarn_call_write(call, tarn_message_copy(tarn_slice_str("\x0a\x01x")));
    }
    atomic_store(&served->last_reason, (int)tarn_status_reason(status));
    return status;
}

static struct tarn_status *garbage(void *self TARN_UNUSED, struct tarn_op *op TARN_UNUSED,
                                   struct tarn_call *call)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    TARN_TRY(tarn_call_read(call, &message));
    return tarn_call_write(call, tarn_message_copy(tarn_slice_str("\xff\xff\xff")));
}

static struct tarn_status *admit(void *self, struct tarn_op *op TARN_UNUSED,
                                 const char *path TARN_UNUSED, struct tarn_slice token)
{
    struct served *served = self;
    snprintf(served->token, sizeof served->token, "%.*s", TARN_SLICE_ARG(token));
    return TARN_OK;
}

static void serve(struct served *served, const char *token)
{
    *served = (struct served){.exec = tarn_exec_new(2, 16)};
    tarn_log_set_level(TARN_ERROR);
    struct tarn_wire_method methods[] = {
        {.path = "/tarn.v1.CatalogService/GetDatabase", .fn = get_database, .self = served},
        {.path = "/tarn.v1.CatalogService/GetTable", .fn = garbage, .self = served},
        {.path = "/tarn.v1.DataService/Ingest", .fn = ingest, .self = served},
        {.path = "/tarn.v1.DataService/Scan", .fn = scan, .self = served},
    };
    static const char *const services[] = {"tarn.v1.DataService", NULL};
    struct tarn_wire_server_options options = {.listen = "127.0.0.1:0",
                                               .exec = served->exec,
                                               .services = services,
                                               .admit = admit,
                                               .admit_self = served};
    expect_ok(tarn_wire_server_start(&options, methods, TARN_COUNT_OF(methods), &served->server));
    struct tarn_client_options client = {.server = tarn_wire_server_address(served->server),
                                         .token = token};
    expect_ok(tarn_client_open(&client, &served->client));
}

static void served_drop(struct served *served)
{
    tarn_client_drop(&served->client);
    tarn_wire_server_free(served->server);
    tarn_exec_free(served->exec);
    tarn_buf_drop(&served->got);
}

TARN_TEST(client_call, brings_messages_and_statuses_back)
{
    TARN_OWN(served_drop) struct served served;
    serve(&served, "secret");
    Tarn__V1__GetDatabaseRequest request = TARN__V1__GET_DATABASE_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    request.name = (ProtobufCBinaryData){.len = 4, .data = (uint8_t *)(uintptr_t) "shop"};
    expect_ok(tarn_client_call(served.client, t->op, "CatalogService/GetDatabase", &request.base,
                               &tarn__v1__database__descriptor, &answer));
    Tarn__V1__Database *database = (Tarn__V1__Database *)answer;
    expect_slice(tarn_slice_of(database->name.data, database->name.len), "shop");
    expect_int(database->table_count, 3);
    tarn__v1__database__free_unpacked(database, NULL);
    expect_str(served.token, "secret");
    request.name.len = 3;
    expect_status(tarn_client_call(served.client, t->op, "CatalogService/GetDatabase",
                                   &request.base, &tarn__v1__database__descriptor, &answer),
                  TARN_DATABASE_NOT_FOUND, "no such database");
    expect_status(tarn_client_call(served.client, t->op, "CatalogService/GetTable", &request.base,
                                   &tarn__v1__table__descriptor, &answer),
                  TARN_INTERNAL, "is no tarn.v1.Table");
}

TARN_TEST(client_stream, sends_bytes_as_the_message_would_be)
{
    static const size_t sizes[] = {0, 1, 127, 128, 16384, 256 << 10};
    TARN_OWN(served_drop) struct served served;
    serve(&served, NULL);
    for (size_t i = 0; i < TARN_COUNT_OF(sizes); i++) {
        TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
        struct tarn_slice body = tarn_test_random_bytes(t, sizes[i]);
        ProtobufCMessage *answer = NULL, *end = NULL;
        expect_ok(tarn_client_stream_open(served.client, t->op, "DataService/Ingest", &stream));
        expect_ok(tarn_client_stream_send_bytes(stream, TARN__V1__INGEST_REQUEST__PART_DATA, body));
        expect_ok(tarn_client_stream_done(stream));
        expect_ok(
            tarn_client_stream_receive(stream, &tarn__v1__ingest_response__descriptor, &answer));
        expect_int(((Tarn__V1__IngestResponse *)answer)->snapshot_id, 7);
        protobuf_c_message_free_unpacked(answer, NULL);
        expect_ok(tarn_client_stream_receive(stream, &tarn__v1__ingest_response__descriptor, &end));
        expect_null(end);

        Tarn__V1__IngestRequest *got =
            tarn__v1__ingest_request__unpack(NULL, served.got.size, served.got.data);
        expect_not_null(got);
        expect_int(got->part_case, TARN__V1__INGEST_REQUEST__PART_DATA);
        expect_bytes(tarn_slice_of(got->data.data, got->data.len), body);
        TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
        tarn_buf_add_zeros(&packed, tarn__v1__ingest_request__get_packed_size(got));
        tarn__v1__ingest_request__pack(got, packed.data);
        expect_bytes(tarn_buf_slice(&served.got), tarn_buf_slice(&packed));
        tarn__v1__ingest_request__free_unpacked(got, NULL);
    }
}

TARN_TEST(client_stream, that_is_given_up_is_cancelled)
{
    TARN_OWN(served_drop) struct served served;
    serve(&served, NULL);
    struct tarn_client_stream *stream = NULL;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    expect_ok(tarn_client_stream_open(served.client, t->op, "DataService/Scan", &stream));
    expect_ok(tarn_client_stream_send(stream, &request.base));
    expect_ok(tarn_client_stream_done(stream));
    expect_ok(tarn_client_stream_receive(stream, &tarn__v1__scan_response__descriptor, &answer));
    protobuf_c_message_free_unpacked(answer, NULL);
    tarn_client_stream_free(stream);
    for (int i = 0; i < 5000 && atomic_load(&served.last_reason) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    expect_int(atomic_load(&served.last_reason), TARN_CANCELLED);
}

TARN_TEST(client_open, says_what_is_wrong)
{
    TARN_OWN(tarn_client_drop) struct tarn_client *client = NULL;
    expect_status(tarn_client_open(&(struct tarn_client_options){.server = "nowhere"}, &client),
                  TARN_CONFIG_INVALID, "expected HOST:PORT");
    expect_status(
        tarn_client_open(&(struct tarn_client_options){.server = "h:1", .token = "a\nb"}, &client),
        TARN_CONFIG_INVALID, "token");
    expect_ok(tarn_client_open(&(struct tarn_client_options){.server = "127.0.0.1:1"}, &client));
    Tarn__V1__GetDatabaseRequest request = TARN__V1__GET_DATABASE_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    expect_status(tarn_client_call(client, t->op, "CatalogService/GetDatabase", &request.base,
                                   &tarn__v1__database__descriptor, &answer),
                  TARN_UNAVAILABLE, "127.0.0.1:1");
}
