/* A tarn_status as gRPC carries it, and back: google.rpc.Status with ErrorInfo and RetryInfo. */
#include "internal.h"

#define ERROR_INFO "type.googleapis.com/google.rpc.ErrorInfo"
#define RETRY_INFO "type.googleapis.com/google.rpc.RetryInfo"
#define DOMAIN "tarn"
#define DETAILS_COUNT_MAX 16 /* Any messages looked at */
#define REASON_SIZE_MAX 63   /* Google's own bound for ErrorInfo.reason */
#define FACT_SIZE_MAX 1000   /* of a key or value of its metadata */

/* The longest prefix of at most `max` bytes that does not cut a character. */
static size_t cut_utf8(struct tarn_slice text, size_t max)
{
    size_t size = text.size;
    if (size <= max)
        return size;
    for (size = max; size > 0 && (text.data[size] & 0xc0) == 0x80; size--)
        ;
    return size;
}

void tarn_wire__status_text(const struct tarn_status *status, struct tarn_buf *out)
{
    struct tarn_slice text = tarn_slice_str(tarn_status_message(status));
    bool valid = tarn_utf8_valid(text);

    text.size = valid ? cut_utf8(text, TARN_WIRE_STATUS_TEXT_MAX)
                      : TARN_MIN(text.size, (size_t)TARN_WIRE_STATUS_TEXT_MAX);
    for (size_t i = 0; i < text.size; i++)
        tarn_buf_add_byte(out, valid || text.data[i] < 0x80 ? text.data[i] : '?');
}

/* --- encode --- */

static void put_any(struct tarn_buf *out, const char *type, struct tarn_slice value)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf any = {0};
    tarn_wire__pb_put_str(&any, 1, type);
    tarn_wire__pb_put_bytes(&any, 2, value);
    tarn_wire__pb_put_bytes(out, 3, tarn_buf_slice(&any));
}

static void put_pair(struct tarn_buf *info, const char *key, const char *value)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf entry = {0};
    if (value == NULL || value[0] == '\0')
        return;
    tarn_wire__pb_put_str(&entry, 1, key);
    tarn_wire__pb_put_str(&entry, 2, value);
    tarn_wire__pb_put_bytes(info, 3, tarn_buf_slice(&entry));
}

static void put_error_info(struct tarn_buf *out, const struct tarn_status *status,
                           const char *request_id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf info = {0};
    tarn_wire__pb_put_str(&info, 1, tarn_reason_name(tarn_status_reason(status)));
    tarn_wire__pb_put_str(&info, 2, DOMAIN);
    put_pair(&info, "advice", tarn_status_advice(status));
    put_pair(&info, "request_id", request_id);
    const char *key, *value;
    for (size_t i = 0; tarn_status_fact(status, i, &key, &value); i++)
        put_pair(&info, key, value);
    put_any(out, ERROR_INFO, tarn_buf_slice(&info));
}

/* How long to wait where the same request may well succeed later; 0: trying again is no help. */
static int retry_after_ms(enum tarn_reason reason)
{
    switch (reason) {
    case TARN_SNAPSHOT_TAKEN:
    case TARN_SCHEMA_CONFLICT:
        return 50;
    case TARN_BUSY:
    case TARN_OUTCOME_UNKNOWN:
    case TARN_WORKER_LOST:
        return 500;
    case TARN_SHUTTING_DOWN:
    case TARN_UNAVAILABLE:
    case TARN_STORE_UNAVAILABLE:
    case TARN_NO_WORKER:
        return 2000;
    default:
        return 0;
    }
}

static void put_retry_info(struct tarn_buf *out, int after_ms)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf duration = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf info = {0};
    if (after_ms >= 1000)
        tarn_wire__pb_put_number(&duration, 1, (uint64_t)after_ms / 1000);
    if (after_ms % 1000 != 0)
        tarn_wire__pb_put_number(&duration, 2, (uint64_t)(after_ms % 1000) * 1000000);
    tarn_wire__pb_put_bytes(&info, 1, tarn_buf_slice(&duration));
    put_any(out, RETRY_INFO, tarn_buf_slice(&info));
}

void tarn_wire__status_encode(const struct tarn_status *status, const char *request_id,
                              struct tarn_buf *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    int after_ms = retry_after_ms(tarn_status_reason(status));

    tarn_wire__status_text(status, &text);
    tarn_wire__pb_put_number(out, 1, (uint64_t)tarn_status_code(status));
    tarn_wire__pb_put_bytes(out, 2, tarn_buf_slice(&text));
    put_error_info(out, status, request_id);
    if (after_ms > 0)
        put_retry_info(out, after_ms);
}

/* --- restore --- */

struct details {
    struct tarn_slice message;
    struct tarn_slice reason; /* of an ErrorInfo of our domain; absent if none */
    struct tarn_slice info;   /* that ErrorInfo */
};

static bool fact_text(struct tarn_slice text, char out[FACT_SIZE_MAX + 1])
{
    if (text.size == 0 || text.size > FACT_SIZE_MAX || memchr(text.data, 0, text.size) != NULL)
        return false;
    memcpy(out, text.data, text.size);
    out[text.size] = '\0';
    return true;
}

static void read_error_info(struct tarn_slice any, struct details *out)
{
    struct tarn_slice type = tarn_wire__pb_find(any, 1);
    struct tarn_slice value = tarn_wire__pb_find(any, 2);

    if (!tarn_slice_is(type, ERROR_INFO) || !tarn_slice_is(tarn_wire__pb_find(value, 2), DOMAIN))
        return;
    struct tarn_slice reason = tarn_wire__pb_find(value, 1);
    if (reason.size > 0 && reason.size <= REASON_SIZE_MAX)
        out->reason = reason;
    out->info = value;
}

/* What the server tells programs beside its own two: "earliest_snapshot" and the like. */
static void read_facts(struct tarn_slice info, struct tarn_status *status)
{
    struct tarn_wire__pb reader = tarn_wire__pb_of(info);
    struct tarn_wire__field field;

    while (tarn_wire__pb_next(&reader, &field)) {
        char key[FACT_SIZE_MAX + 1], value[FACT_SIZE_MAX + 1];
        if (field.type != PB_BYTES || field.number != 3)
            continue;
        if (fact_text(tarn_wire__pb_find(field.bytes, 1), key) &&
            fact_text(tarn_wire__pb_find(field.bytes, 2), value) && strcmp(key, "advice") != 0 &&
            strcmp(key, "request_id") != 0)
            tarn_status_set(status, key, value);
    }
}

static void read_details(struct tarn_slice bytes, struct details *out)
{
    struct tarn_wire__pb reader = tarn_wire__pb_of(bytes);
    struct tarn_wire__field field;
    int any_count = 0;

    *out = (struct details){0};
    if (bytes.size > TARN_WIRE_DETAILS_MAX)
        return;
    while (tarn_wire__pb_next(&reader, &field)) {
        if (field.type != PB_BYTES)
            continue;
        if (field.number == 2)
            out->message = field.bytes;
        else if (field.number == 3 && any_count++ < DETAILS_COUNT_MAX)
            read_error_info(field.bytes, out);
    }
    if (reader.bad)
        *out = (struct details){0}; /* not what it says it is: believe the plain code */
}

/* For a peer that names no reason we know. */
static enum tarn_reason reason_of_code(int code)
{
    switch (code) {
    case TARN_CODE_CANCELLED:
        return TARN_CANCELLED;
    case TARN_CODE_INVALID_ARGUMENT:
        return TARN_INVALID_ARGUMENT;
    case TARN_CODE_DEADLINE_EXCEEDED:
        return TARN_DEADLINE_EXCEEDED;
    case TARN_CODE_NOT_FOUND:
        return TARN_OBJECT_NOT_FOUND;
    case TARN_CODE_ALREADY_EXISTS:
        return TARN_OBJECT_EXISTS;
    case TARN_CODE_PERMISSION_DENIED:
        return TARN_PERMISSION_DENIED;
    case TARN_CODE_RESOURCE_EXHAUSTED:
        return TARN_BUSY;
    case TARN_CODE_FAILED_PRECONDITION:
        return TARN_UNSUPPORTED_FEATURE;
    case TARN_CODE_ABORTED:
        return TARN_COMMIT_CONFLICT;
    case TARN_CODE_OUT_OF_RANGE:
        return TARN_SNAPSHOT_EXPIRED;
    case TARN_CODE_UNIMPLEMENTED:
        return TARN_UNIMPLEMENTED;
    case TARN_CODE_UNAVAILABLE:
        return TARN_UNAVAILABLE;
    case TARN_CODE_UNAUTHENTICATED:
        return TARN_UNAUTHENTICATED;
    default:
        return TARN_INTERNAL;
    }
}

static bool contains(struct tarn_slice text, const char *part)
{
    return text.size > 0 && memmem(text.data, text.size, part, strlen(part)) != NULL;
}

struct tarn_status *tarn_wire__status_restore(int code, struct tarn_slice message,
                                              struct tarn_slice details_bytes)
{
    struct details details;
    char word[REASON_SIZE_MAX + 1] = "";

    if (code == TARN_CODE_OK)
        return TARN_OK;
    read_details(details_bytes, &details);
    if (details.message.size > 0)
        message = details.message;
    message.size = cut_utf8(message, 4 * TARN_WIRE_STATUS_TEXT_MAX);
    if (details.reason.size > 0 && memchr(details.reason.data, 0, details.reason.size) == NULL) {
        memcpy(word, details.reason.data, details.reason.size);
        enum tarn_reason reason = tarn_reason_find(word);
        if (reason != TARN_NO_REASON) {
            struct tarn_status *status = tarn_status_new(reason, "%.*s", TARN_SLICE_ARG(message));
            read_facts(details.info, status);
            return status;
        }
        /* A newer server: keep its word for people, and its code for programs. */
        return tarn_status_new(reason_of_code(code), "%s: %.*s", word, TARN_SLICE_ARG(message));
    }
    if (code == TARN_CODE_RESOURCE_EXHAUSTED && contains(message, "message larger than max"))
        return tarn_status_new(TARN_TOO_LARGE, "%.*s", TARN_SLICE_ARG(message));
    return tarn_status_new(reason_of_code(code), "%.*s", TARN_SLICE_ARG(message));
}
