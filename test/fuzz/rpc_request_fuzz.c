/* Requests of any type from any bytes: unpacked within their budget and checked, or refused. */
#include <protobuf-c/protobuf-c.h>

#include "rpc/internal.h"
#include "tarn/v1/catalog.pb-c.h"
#include "tarn/v1/data.pb-c.h"
#include "tarn/v1/maintenance.pb-c.h"
#include "tarn/v1/table.pb-c.h"
#include "tarn/v1/worker.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
    &tarn__v1__commit_request__descriptor,      &tarn__v1__create_table_request__descriptor,
    &tarn__v1__alter_table_request__descriptor, &tarn__v1__ingest_request__descriptor,
    &tarn__v1__ingest_response__descriptor,     &tarn__v1__scan_request__descriptor,
    &tarn__v1__compact_request__descriptor,     &tarn__v1__report_request__descriptor,
    &tarn__v1__renew_request__descriptor,       &tarn__v1__plan_request__descriptor,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct tarn_op op;
    tarn_op_init(&op);
    void *message;
    struct tarn_status *s = tarn_rpc__unpack(&op, types[data[0] % TARN_COUNT_OF(types)],
                                             tarn_slice_of(data + 1, size - 1), &message);
    if (s == TARN_OK) {
        struct tarn_message *packed;
        s = tarn_rpc__pack(message, TARN_WIRE_MESSAGE_MAX, &packed);
        if (s == TARN_OK)
            tarn_message_free(packed);
    }
    tarn_status_free(s);
    tarn_op_fini(&op);
    return 0;
}
