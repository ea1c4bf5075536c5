/*
 * Promise: a status arrives at the client with the same reason, code and message; its details are
 * the google.rpc.Status that other libraries read and write; foreign or damaged details do no harm.
 */
#include "echo.h"
#include "wire/internal.h"

static struct tarn_status *restore(const char *golden, int code, const char *message)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden(golden, &bytes);
    return tarn_wire__status_restore(code, tarn_slice_str(message), tarn_buf_slice(&bytes));
}

TARN_TEST(wire_status, encodes_what_googles_library_does)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf golden = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf made = {0};
    struct tarn_status *status = tarn_status_new(TARN_SNAPSHOT_TAKEN, "snapshot 7 of db.t exists");
    tarn_test_golden("wire/status_taken.bin", &golden);
    tarn_wire__status_encode(status, "r-1", &made);
    tarn_status_free(status);
    expect_bytes(tarn_buf_slice(&made), tarn_buf_slice(&golden));
}

TARN_TEST(wire_status, restores_reason_and_message)
{
    expect_status(restore("wire/status_taken.bin", 10, "short"), TARN_SNAPSHOT_TAKEN,
                  "snapshot 7 of db.t exists");
    expect_status(restore("wire/status_exists.bin", 6, "short"), TARN_TABLE_EXISTS,
                  "table db.t exists");
    struct tarn_status *status = restore("wire/status_foreign.bin", 9, "short");
    expect_int(tarn_status_code(status), TARN_CODE_FAILED_PRECONDITION);
    expect_str(tarn_status_message(status), "from elsewhere");
    tarn_status_free(status);
    expect_null(restore("wire/status_taken.bin", 0, ""));
}

TARN_TEST(wire_status, plain_codes_keep_their_code)
{
    struct tarn_slice none = {NULL, 0};
    for (int code = 1; code <= 16; code++) {
        struct tarn_status *status = tarn_wire__status_restore(code, tarn_slice_str("why"), none);
        int wanted =
            code == TARN_CODE_UNKNOWN || code == TARN_CODE_DATA_LOSS ? TARN_CODE_INTERNAL : code;
        expect_int(tarn_status_code(status), wanted);
        expect_str(tarn_status_message(status), "why");
        tarn_status_free(status);
    }
    expect_int(tarn_status_code(NULL), 0);
}

TARN_TEST(wire_status, newer_reason_keeps_word_and_code)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf details = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf info = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf any = {0};
    tarn_wire__pb_put_str(&info, 1, "MOON_TOO_FAR");
    tarn_wire__pb_put_str(&info, 2, "tarn");
    tarn_wire__pb_put_str(&any, 1, "type.googleapis.com/google.rpc.ErrorInfo");
    tarn_wire__pb_put_bytes(&any, 2, tarn_buf_slice(&info));
    tarn_wire__pb_put_bytes(&details, 3, tarn_buf_slice(&any));
    struct tarn_status *status = tarn_wire__status_restore(TARN_CODE_ABORTED, tarn_slice_str("far"),
                                                           tarn_buf_slice(&details));
    expect_int(tarn_status_code(status), TARN_CODE_ABORTED);
    expect_str(tarn_status_message(status), "MOON_TOO_FAR: far");
    tarn_status_free(status);
}

TARN_TEST(wire_status, damaged_details_are_left_aside)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden("wire/status_taken.bin", &bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        struct tarn_status *status =
            tarn_wire__status_restore(10, tarn_slice_str("plain"), tarn_slice_of(bytes.data, size));
        expect_int(tarn_status_code(status), TARN_CODE_ABORTED);
        tarn_status_free(status);
    }
}

TARN_TEST(wire_status, every_reason_makes_the_round_trip)
{
    struct echo echo;
    const char *answer;
    echo_start(&echo, NULL);
    tarn_log_set_level(TARN_ERROR); /* INTERNAL ones are warned about */
    for (int reason = 1; reason < TARN_REASON_COUNT; reason++) {
        const char *text =
            tarn_arena_printf(t->arena, "%s Grüße %d", tarn_reason_name(reason), reason);
        expect_status(echo_ask(t, &echo, "/t.Echo/Fail", text, &answer), reason,
                      strchr(text, ' ') + 1);
    }
    echo_stop(&echo);
}

TARN_TEST(wire_status, long_messages_are_cut_between_characters)
{
    struct echo echo;
    const char *answer;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_buf_add_str(&text, "TABLE_EXISTS x");
    for (int i = 0; i < 20000; i++)
        tarn_buf_add_str(&text, "\xc3\xbc");
    echo_start(&echo, NULL);
    struct tarn_status *status = echo_ask(t, &echo, "/t.Echo/Fail", tarn_buf_cstr(&text), &answer);
    expect_int(tarn_status_reason(status), TARN_TABLE_EXISTS);
    expect_uint(strlen(tarn_status_message(status)), 1023);
    expect_true(tarn_utf8_valid(tarn_slice_str(tarn_status_message(status))));
    tarn_status_free(status);
    echo_stop(&echo);
}
