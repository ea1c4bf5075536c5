/* Promise: any text is read or refused; what is read is written and read to the same value again. */
#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_well(struct tarn_status *consumed)
{
    bool is_well = consumed == NULL;
    tarn_assert(is_well || tarn_status_reason(consumed) == TARN_VALUE_INVALID);
    tarn_status_free(consumed);
    return is_well;
}

static void try_numbers(struct tarn_slice text)
{
    int64_t value, again;
    bool yes;
    read_well(tarn_parse_bool(text, &yes));
    if (read_well(tarn_parse_i64(text, &value))) {
        TARN_OWN(tarn_free_drop) char *written = tarn_format("%" PRId64, value);
        tarn_assert(read_well(tarn_parse_i64(tarn_slice_str(written), &again)) && again == value);
    }
    if (read_well(tarn_parse_size(text, &value)))
        tarn_assert(value >= 0);
    if (read_well(tarn_parse_duration(text, &value)))
        tarn_assert(value >= 0);
    if (read_well(tarn_parse_time(text, &value))) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf written = {0};
        tarn_format_time(value, &written);
        /* Milliseconds may name a year that has no four digits. */
        if (written.size == 24)
            tarn_assert(read_well(tarn_parse_time(tarn_buf_slice(&written), &again)) &&
                        again == value);
    }
}

static void try_bytes(struct tarn_slice text)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf written = {0};
    if (read_well(tarn_base64_decode(text, &bytes))) {
        tarn_base64_encode(tarn_buf_slice(&bytes), &written);
        tarn_assert(tarn_slice_equal(tarn_buf_slice(&written), text));
    }
    tarn_buf_clear(&bytes);
    if (read_well(tarn_hex_decode(text, &bytes)))
        tarn_assert(bytes.size * 2 == text.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"commit.retries", "log.level", "server.grpc_listen"};
    struct tarn_slice text = tarn_slice_of(data, size);
    TARN_OWN(tarn_free_drop) char *copy = tarn_slice_dup(text);
    enum tarn_log_level level;

    try_numbers(text);
    try_bytes(text);
    tarn_uuid_valid(text);
    tarn_nearest(copy, names, TARN_COUNT_OF(names));
    read_well(tarn_log_level_parse(copy, &level));
    tarn_assert(tarn_utf8_valid(tarn_slice_str(tarn_log_quote(NULL, copy))));
    return 0;
}
