/*
 * Promise: reasons are a stable vocabulary, each unique, with a code, an HTTP status and advice; a
 * status carries its reason through wrapping and copying.
 */
#include "test.h"

#include <errno.h>

TARN_TEST(status, success_is_null_and_answers_all_questions)
{
    expect_int(tarn_status_reason(TARN_OK), TARN_NO_REASON);
    expect_int(tarn_status_code(TARN_OK), TARN_CODE_OK);
    expect_int(tarn_status_http(TARN_OK), 200);
    expect_str(tarn_status_message(TARN_OK), "");
    expect_null(tarn_status_copy(TARN_OK));
    expect_null(tarn_status_wrap(TARN_OK, "context"));
    expect_null(tarn_status_as(TARN_OK, TARN_INTERNAL));
    tarn_status_free(TARN_OK);
}

TARN_TEST(status, wrap_puts_context_in_front_and_keeps_the_reason)
{
    struct tarn_status *s = tarn_status_new(TARN_SNAPSHOT_TAKEN, "snapshot %d exists", 7);
    s = tarn_status_wrap(s, "commit %s", "db.t");
    expect_int(tarn_status_code(s), TARN_CODE_ABORTED);
    expect_int(tarn_status_http(s), 409);
    expect_str(tarn_status_message(s), "commit db.t: snapshot 7 exists");
    struct tarn_status *copy = tarn_status_copy(s);
    tarn_status_drop(&s);
    expect_null(s);
    expect_status(copy, TARN_SNAPSHOT_TAKEN, "commit db.t: snapshot 7 exists");
}

TARN_TEST(status, as_keeps_the_message_under_another_reason_without_its_facts)
{
    struct tarn_status *s = tarn_status_new(TARN_SCHEMA_MALFORMED, "no %s", "fields");
    tarn_status_set(s, "key", "value");
    s = tarn_status_as(s, TARN_SCHEMA_INVALID);
    expect_null(tarn_status_get(s, "key"));
    expect_status(s, TARN_SCHEMA_INVALID, "no fields");
}

TARN_TEST(status, errno_picks_the_reason_people_can_act_on)
{
    expect_status(tarn_status_errno(ENOENT, "open x"), TARN_OBJECT_NOT_FOUND,
                  "open x: No such file or directory");
    expect_status(tarn_status_errno(EEXIST, "x"), TARN_OBJECT_EXISTS, "");
    expect_status(tarn_status_errno(EACCES, "x"), TARN_STORE_DENIED, "");
    expect_status(tarn_status_errno(ENOSPC, "x"), TARN_DISK_FULL, "");
    expect_status(tarn_status_errno(EADDRINUSE, "x"), TARN_ADDRESS_IN_USE, "");
    expect_status(tarn_status_errno(EIO, "x"), TARN_IO_ERROR, "");
}

TARN_TEST(reason, has_a_unique_name_that_finds_it)
{
    for (int i = 1; i < TARN_REASON_COUNT; i++) {
        const char *name = tarn_reason_name((enum tarn_reason)i);
        expect_true(name[0] != 0);
        expect_int(tarn_reason_find(name), i); /* the first of that name: so it is the only one */
    }
    expect_int(tarn_reason_find("NO_SUCH_REASON"), TARN_NO_REASON);
    expect_int(tarn_reason_find(""), TARN_NO_REASON);
    expect_int(tarn_reason_find(NULL), TARN_NO_REASON);
}

TARN_TEST(reason, names_a_failure_and_what_to_do)
{
    for (int i = 1; i < TARN_REASON_COUNT; i++) {
        struct tarn_status *s = tarn_status_new((enum tarn_reason)i, "x");
        expect_true(tarn_status_code(s) != TARN_CODE_OK);
        expect_true(tarn_status_http(s) >= 400 && tarn_status_http(s) < 600);
        expect_true(tarn_status_advice(s)[0] != 0);
        expect_true(tarn_reason_code((enum tarn_reason)i) == tarn_status_code(s));
        expect_str(tarn_reason_advice((enum tarn_reason)i), tarn_status_advice(s));
        tarn_status_free(s);
    }
}

TARN_TEST(code, has_grpcs_name)
{
    expect_str(tarn_code_name(TARN_CODE_OK), "OK");
    expect_str(tarn_code_name(TARN_CODE_UNIMPLEMENTED), "UNIMPLEMENTED");
    expect_str(tarn_code_name(TARN_CODE_UNAUTHENTICATED), "UNAUTHENTICATED");
    expect_str(tarn_code_name((enum tarn_code)99), "UNKNOWN"); /* a peer may send any number */
}
