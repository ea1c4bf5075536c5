/*
 * Promise: what people write is read whole or refused with what was expected, never by half or with
 * a wrapped number; times are the calendar's (values from date(1)), base64 and hex RFC 4648's.
 */
#include "test.h"

static const char *time_text(struct tarn_test *t, int64_t ms)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    tarn_format_time(ms, &buf);
    return tarn_arena_str(t->arena, tarn_buf_slice(&buf));
}

static const char *size_text(struct tarn_test *t, int64_t bytes)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    tarn_format_size(bytes, &buf);
    return tarn_arena_str(t->arena, tarn_buf_slice(&buf));
}

static int64_t i64(const char *text)
{
    int64_t value = 0;
    expect_ok(tarn_parse_i64(tarn_slice_str(text), &value));
    return value;
}

static int64_t size_of(const char *text)
{
    int64_t value = 0;
    expect_ok(tarn_parse_size(tarn_slice_str(text), &value));
    return value;
}

static int64_t duration_of(const char *text)
{
    int64_t value = 0;
    expect_ok(tarn_parse_duration(tarn_slice_str(text), &value));
    return value;
}

static int64_t time_of(const char *text)
{
    int64_t value = 0;
    expect_ok(tarn_parse_time(tarn_slice_str(text), &value));
    return value;
}

TARN_TEST(integer, is_64_bit_to_the_edges)
{
    expect_int(i64("0"), 0);
    expect_int(i64("-17"), -17);
    expect_int(i64("+5"), 5);
    expect_int(i64("9223372036854775807"), INT64_MAX);
    expect_int(i64("-9223372036854775808"), INT64_MIN);
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x1",
                                      "--1",
                                      "1e3",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        int64_t value = 42;
        expect_status(tarn_parse_i64(tarn_slice_str(bad[i]), &value), TARN_VALUE_INVALID,
                      "integer");
        expect_int(value, 42); /* untouched on failure */
    }
}

TARN_TEST(boolean, is_true_or_false)
{
    bool yes = false;
    expect_ok(tarn_parse_bool(tarn_slice_str("TRUE"), &yes));
    expect_true(yes);
    expect_ok(tarn_parse_bool(tarn_slice_str("false"), &yes));
    expect_false(yes);
    expect_status(tarn_parse_bool(tarn_slice_str("yes"), &yes), TARN_VALUE_INVALID,
                  "true or false");
    expect_status(tarn_parse_bool(tarn_slice_str(""), &yes), TARN_VALUE_INVALID, "true or false");
}

TARN_TEST(size, counts_in_powers_of_1024)
{
    expect_int(size_of("0"), 0);
    expect_int(size_of("1024"), 1024);
    expect_int(size_of("1b"), 1);
    expect_int(size_of("64 mb"), 64 << 20);
    expect_int(size_of("64MB"), 64 << 20);
    expect_int(size_of("2 kibibytes"), 2048);
    expect_int(size_of(" 1 gb "), 1 << 30);
    expect_int(size_of("3t"), 3LL << 40);
    static const char *const bad[] = {"",      "mb",    "-1",         "1.5 mb",
                                      "1 mbx", "1 m b", "8388608 tb", "1,000"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        int64_t value;
        expect_status(tarn_parse_size(tarn_slice_str(bad[i]), &value), TARN_VALUE_INVALID, "size");
    }
}

TARN_TEST(duration, is_in_milliseconds)
{
    expect_int(duration_of("15"), 15);
    expect_int(duration_of("500 ms"), 500);
    expect_int(duration_of("30 s"), 30000);
    expect_int(duration_of("10min"), 600000);
    expect_int(duration_of("1 m"), 60000);
    expect_int(duration_of("2 hours"), 7200000);
    expect_int(duration_of("30 d"), 2592000000);
    expect_int(duration_of("1500 us"), 1);
    expect_int(duration_of("1500 \u00b5s"), 1);
    expect_int(duration_of("2000000 ns"), 2);
    static const char *const bad[] = {
        "", "s", "-1 s", "1.5 s", "1 fortnight", "1 h 30 min", "106751991168 d"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        int64_t value;
        expect_status(tarn_parse_duration(tarn_slice_str(bad[i]), &value), TARN_VALUE_INVALID,
                      "duration");
    }
}

TARN_TEST(time, is_read_with_and_without_zone)
{
    expect_int(time_of("1970-01-01"), 0);
    expect_int(time_of("2026-01-31"), 1769817600000);
    expect_int(time_of("2026-01-31 12:00"), 1769860800000);
    expect_int(time_of("2026-01-31T12:00:00.123Z"), 1769860800123);
    expect_int(time_of("2026-01-31 12:00:00.5"), 1769860800500);
    expect_int(time_of("2026-01-31 12:00:00.123456789"), 1769860800123);
    expect_int(time_of("2026-01-31T13:00:00+01:00"), 1769860800000);
    expect_int(time_of("2026-01-31T13:00:00+0100"), 1769860800000);
    expect_int(time_of("2026-01-31T09:30-02:30"), 1769860800000);
    expect_int(time_of("2000-02-29"), 951782400000);
    expect_int(time_of("1769860800123"), 1769860800123);
    expect_int(time_of("-1"), -1);
    static const char *const bad[] = {"",
                                      "2026",
                                      "x",
                                      "2026-1-31",
                                      "2026-13-01",
                                      "2026-00-01",
                                      "2026-02-29",
                                      "2026-04-31",
                                      "1900-02-29",
                                      "2026-01-31T",
                                      "2026-01-31 24:00",
                                      "2026-01-31 12:60",
                                      "2026-01-31 12:00:00.",
                                      "2026-01-31 12:00:60",
                                      "2026-01-31 12:00 CET",
                                      "2026-01-31 12:00+1",
                                      "2026-01-31 12:00Zx",
                                      "2026-01-31 12:00:00.1234567890"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        int64_t value = 7;
        if (i == 1) /* a bare number is milliseconds */
            continue;
        expect_status(tarn_parse_time(tarn_slice_str(bad[i]), &value), TARN_VALUE_INVALID,
                      "not a time");
    }
}

TARN_TEST(time, is_written_as_it_is_read)
{
    expect_str(time_text(t, 0), "1970-01-01T00:00:00.000Z");
    expect_str(time_text(t, -1), "1969-12-31T23:59:59.999Z");
    expect_str(time_text(t, 951782400000), "2000-02-29T00:00:00.000Z");
    expect_str(time_text(t, 1769860800123), "2026-01-31T12:00:00.123Z");
    expect_str(time_text(t, -66666666666667), "-0143-06-02T01:28:53.333Z"); /* ISO 8601's sign */
    expect_str(time_text(t, 253402300799999), "9999-12-31T23:59:59.999Z");
    for (int i = 0; i < tarn_test_rounds(2000); i++) {
        int64_t ms = tarn_test_random_between(t, -62135596800000, 253402300799999);
        expect_int(time_of(time_text(t, ms)), ms);
    }
    time_text(t, INT64_MIN); /* far from any calendar, but no fault */
    time_text(t, INT64_MAX);
}

TARN_TEST(size, is_written_for_people)
{
    expect_str(size_text(t, 0), "0 B");
    expect_str(size_text(t, 1023), "1023 B");
    expect_str(size_text(t, 1536), "1.5 KiB");
    expect_str(size_text(t, 1 << 30), "1.0 GiB");
    expect_str(size_text(t, (1 << 20) - 1), "1.0 MiB"); /* not 1024.0 KiB */
    expect_str(size_text(t, INT64_MAX), "8.0 EiB");
}

TARN_TEST(base64, is_rfc_4648s)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    struct tarn_buf buf = {0};
    for (size_t i = 0; i < TARN_COUNT_OF(pairs); i++) {
        tarn_buf_clear(&buf);
        tarn_base64_encode(tarn_slice_str(pairs[i][0]), &buf);
        expect_slice(tarn_buf_slice(&buf), pairs[i][1]);
        tarn_buf_clear(&buf);
        expect_ok(tarn_base64_decode(tarn_slice_str(pairs[i][1]), &buf));
        expect_slice(tarn_buf_slice(&buf), pairs[i][0]);
    }
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "Zg-_"};
    tarn_buf_clear(&buf);
    tarn_buf_add_str(&buf, "kept");
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        expect_status(tarn_base64_decode(tarn_slice_str(bad[i]), &buf), TARN_VALUE_INVALID,
                      "base64");
        expect_slice(tarn_buf_slice(&buf), "kept");
    }
    tarn_buf_drop(&buf);
}

TARN_TEST(hex, is_pairs_of_digits)
{
    struct tarn_buf buf = {0};
    tarn_hex_encode(tarn_slice_of("\x00\xff\x1a", 3), &buf);
    expect_slice(tarn_buf_slice(&buf), "00ff1a");
    tarn_buf_clear(&buf);
    expect_ok(tarn_hex_decode(tarn_slice_str("00FF1a"), &buf));
    expect_bytes(tarn_buf_slice(&buf), tarn_slice_of("\x00\xff\x1a", 3));
    expect_status(tarn_hex_decode(tarn_slice_str("0"), &buf), TARN_VALUE_INVALID, "hexadecimal");
    expect_status(tarn_hex_decode(tarn_slice_str("0g"), &buf), TARN_VALUE_INVALID, "hexadecimal");
    expect_uint(buf.size, 3);
    tarn_buf_drop(&buf);
}

TARN_TEST(utf8, refuses_overlong_forms_surrogates_and_what_ends_early)
{
    static const char *const good[] = {"",
                                       "a",
                                       "\xc3\xa9",
                                       "\xe2\x82\xac",
                                       "\xf0\x9f\x98\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xc3",
                                      "\xe2\x82",
                                      "\xc3(",
                                      "\xf0\x9f\x98"};
    for (size_t i = 0; i < TARN_COUNT_OF(good); i++)
        expect_true(tarn_utf8_valid(tarn_slice_str(good[i])));
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_false(tarn_utf8_valid(tarn_slice_str(bad[i])));
    expect_true(tarn_utf8_valid(tarn_slice_of("\0", 1)));
}

TARN_TEST(uuid, is_of_version_4)
{
    char a[TARN_UUID_SIZE], b[TARN_UUID_SIZE];
    tarn_uuid_random(a);
    tarn_uuid_random(b);
    expect_true(strcmp(a, b) != 0);
    expect_uint(strlen(a), 36);
    expect_int(a[14], '4');
    expect_true(strchr("89ab", a[19]) != NULL);
    expect_true(tarn_uuid_valid(tarn_slice_str(a)));
    expect_true(tarn_uuid_valid(tarn_slice_str("123E4567-e89b-12d3-a456-426614174000")));
    expect_false(tarn_uuid_valid(tarn_slice_str("123e4567-e89b-12d3-a456-42661417400")));
    expect_false(tarn_uuid_valid(tarn_slice_str("123e4567xe89b-12d3-a456-426614174000")));
    expect_false(tarn_uuid_valid(tarn_slice_str("123e4567-e89b-12d3-a456-42661417400g")));
}

TARN_TEST(url, is_decoded_once_and_whole)
{
    struct tarn_slice out;
    expect_true(tarn_url_decode(tarn_slice_str("a%2Fb%2fc+d%2B%25e"), t->arena, &out));
    expect_slice(out, "a/b/c d+%e");
    expect_true(tarn_url_decode(tarn_slice_str(""), t->arena, &out));
    expect_int(out.size, 0);
    static const char *const broken[] = {"%", "a%4", "%g0", "%0g", "%%41"};
    for (size_t i = 0; i < TARN_COUNT_OF(broken); i++)
        expect_false(tarn_url_decode(tarn_slice_str(broken[i]), t->arena, &out));
}

TARN_TEST(nearest, finds_slips_and_nothing_far)
{
    static const char *const names[] = {"server.grpc_listen", "commit.retries", "log.level"};
    expect_str(tarn_nearest("log.levle", names, 3), "log.level");
    expect_str(tarn_nearest("commit.retires", names, 3), "commit.retries");
    expect_str(tarn_nearest("server.grpclisten", names, 3), "server.grpc_listen");
    expect_null(tarn_nearest("something.else", names, 3));
    expect_null(tarn_nearest("", names, 3));
    expect_null(tarn_nearest("x", names, 0));
    char huge[5000];
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = 0;
    expect_null(tarn_nearest(huge, names, 3));
}
