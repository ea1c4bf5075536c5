#include "format/tag.h"

#include <time.h>

#define CREATE_TIME "tagCreateTime"
#define TIME_RETAINED "tagTimeRetained"

struct tarn_status *tarn_tag_check_name(struct tarn_slice name)
{
    if (name.size == 0)
        return tarn_status_new(TARN_NAME_INVALID, "the tag has no name");
    if (name.size > TARN_TAG_NAME_SIZE_MAX)
        return tarn_status_new(TARN_NAME_INVALID, "the tag's name has %zu bytes, at most %d",
                               name.size, TARN_TAG_NAME_SIZE_MAX);
    bool good = tarn_utf8_valid(name), blank = true;
    for (size_t i = 0; i < name.size; i++) {
        good = good && name.data[i] >= 0x20 && name.data[i] != 0x7f && name.data[i] != '/' &&
               name.data[i] != '\\';
        blank = blank && name.data[i] == ' ';
    }
    return good && !blank ? TARN_OK
                          : tarn_status_new(TARN_NAME_INVALID,
                                            "a tag's name is text without slashes, backslashes and "
                                            "control characters, and not only blanks");
}

static struct tarn_status *malformed(const char *member, const char *expected)
{
    return tarn_status_new(TARN_SNAPSHOT_MALFORMED, "\"%s\" %s", member, expected);
}

/* --- when it was made: [year, month, day, hour, minute, second, nanosecond], the last two where they aren't 0 --- */

static struct tarn_status *take_create_time(const struct tarn_json *json, int64_t *out)
{
    static const int64_t low[] = {1970, 1, 1, 0, 0, 0, 0},
                         high[] = {9999, 12, 31, 23, 59, 59, 999999999};
    int64_t parts[TARN_COUNT_OF(low)] = {0};
    size_t count = tarn_json_count(json);
    if (tarn_json_kind(json) != TARN_JSON_ARRAY || count < 5 || count > TARN_COUNT_OF(parts))
        return malformed(CREATE_TIME, "is no date and time of 5 to 7 numbers");
    for (size_t i = 0; i < count; i++) {
        parts[i] = tarn_json_int(tarn_json_at(json, i));
        if (tarn_json_kind(tarn_json_at(json, i)) != TARN_JSON_INTEGER || parts[i] < low[i] ||
            parts[i] > high[i])
            return malformed(CREATE_TIME, "is no date and time");
    }
    struct tm tm = {.tm_year = (int)parts[0] - 1900,
                    .tm_mon = (int)parts[1] - 1,
                    .tm_mday = (int)parts[2],
                    .tm_hour = (int)parts[3],
                    .tm_min = (int)parts[4],
                    .tm_sec = (int)parts[5],
                    .tm_isdst = -1};
    *out = (int64_t)mktime(&tm) * 1000 + parts[6] / 1000000;
    return TARN_OK;
}

static void add_create_time(int64_t time_ms, struct tarn_buf *out)
{
    time_t seconds = (time_t)(time_ms / 1000);
    long nanos = (long)(time_ms % 1000) * 1000000;
    struct tm tm;
    localtime_r(&seconds, &tm);
    tarn_buf_printf(out, "[%d, %d, %d, %d, %d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                    tm.tm_hour, tm.tm_min);
    if (tm.tm_sec != 0 || nanos != 0)
        tarn_buf_printf(out, ", %d", tm.tm_sec);
    if (nanos != 0)
        tarn_buf_printf(out, ", %ld", nanos);
    tarn_buf_add_str(out, "]");
}

/* --- the file --- */

static struct tarn_status *take_retained(const struct tarn_json *json, int64_t *out)
{
    enum tarn_json_kind kind = tarn_json_kind(json);
    double seconds = tarn_json_number(json);
    if ((kind != TARN_JSON_INTEGER && kind != TARN_JSON_REAL) || !(seconds >= 0) ||
        seconds * 1000 > (double)TARN_TAG_RETAINED_MAX_MS)
        return malformed(TIME_RETAINED, "is no number of seconds");
    *out = (int64_t)(seconds * 1000 + 0.5);
    return TARN_OK;
}

static bool says_something(const struct tarn_json *json)
{
    return json != NULL && tarn_json_kind(json) != TARN_JSON_NULL;
}

struct tarn_status *tarn_tag_decode(struct tarn_slice json, struct tarn_arena *arena,
                                    struct tarn_tag *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *root = NULL;
    TARN_TRY(tarn_snapshot_decode(json, arena, &out->snapshot));
    TARN_TRY(tarn_json_parse(json, &root));
    const struct tarn_json *made = tarn_json_find(root, CREATE_TIME);
    const struct tarn_json *kept = tarn_json_find(root, TIME_RETAINED);
    out->create_time_ms = out->retained_ms = TARN_SNAPSHOT_NONE;
    if (says_something(made))
        TARN_TRY(take_create_time(made, &out->create_time_ms));
    return says_something(kept) ? take_retained(kept, &out->retained_ms) : TARN_OK;
}

void tarn_tag_encode(struct tarn_slice snapshot, int64_t create_time_ms, int64_t retained_ms,
                     struct tarn_buf *out)
{
    size_t end = snapshot.size;
    while (end > 0 && snapshot.data[end - 1] != '}')
        end--;
    while (end > 1 && (snapshot.data[end - 2] == ' ' || snapshot.data[end - 2] == '\n'))
        end--;
    tarn_assert(end > 0); /* it is an object with members, else it couldn't be decoded */
    tarn_buf_add_slice(out, tarn_slice_of(snapshot.data, end - 1));
    if (create_time_ms != TARN_SNAPSHOT_NONE) {
        tarn_buf_add_str(out, ",\n  \"" CREATE_TIME "\": ");
        add_create_time(create_time_ms, out);
    }
    if (retained_ms != TARN_SNAPSHOT_NONE)
        tarn_buf_printf(out, ",\n  \"" TIME_RETAINED "\": %" PRId64 ".%03" PRId64 "000000",
                        retained_ms / 1000, retained_ms % 1000);
    tarn_buf_add_str(out, "\n}");
}

struct tarn_status *tarn_tag_encode_snapshot(struct tarn_slice tag, struct tarn_buf *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *root = NULL;
    TARN_TRY(tarn_json_parse(tag, &root));
    tarn_json_remove(root, CREATE_TIME);
    tarn_json_remove(root, TIME_RETAINED);
    tarn_json_print(root, 2, out);
    return TARN_OK;
}
