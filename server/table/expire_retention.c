#include "table/expire.h"

#include <limits.h>

/* What a table's options say of how long its snapshots stay (docs/format.md, "Expiry"). */

#define HOUR_MS INT64_C(3600000)

static struct tarn_status *refused(struct tarn_status *s, const char *option)
{
    return s == TARN_OK ? s : tarn_status_wrap(s, "option %s", option);
}

static struct tarn_status *take_count(const struct tarn_schema *schema, const char *option,
                                      int64_t fallback, int64_t *out)
{
    struct tarn_slice text = tarn_schema_option(schema, option);
    *out = fallback;
    TARN_TRY(text.data == NULL ? TARN_OK : refused(tarn_parse_i64(text, out), option));
    return *out >= 1 ? TARN_OK
                     : tarn_status_new(TARN_SCHEMA_INVALID,
                                       "option %s is %" PRId64 ", and should be at least 1", option,
                                       *out);
}

static struct tarn_status *take_time(const struct tarn_schema *schema, const char *option,
                                     int64_t fallback, int64_t *out)
{
    struct tarn_slice text = tarn_schema_option(schema, option);
    *out = fallback;
    return text.data == NULL ? TARN_OK : refused(tarn_parse_duration(text, out), option);
}

struct tarn_status *tarn_retention_parse(const struct tarn_schema *schema,
                                         struct tarn_retention *out)
{
    int64_t least, most, time_ms;
    TARN_TRY(take_count(schema, "snapshot.num-retained.min", 10, &out->least));
    TARN_TRY(take_count(schema, "snapshot.num-retained.max", INT_MAX, &out->most));
    TARN_TRY(take_time(schema, "snapshot.time-retained", HOUR_MS, &out->time_ms));
    TARN_TRY(take_count(schema, "changelog.num-retained.min", out->least, &least));
    TARN_TRY(take_count(schema, "changelog.num-retained.max", out->most, &most));
    TARN_TRY(take_time(schema, "changelog.time-retained", out->time_ms, &time_ms));
    out->longer_changelog = least > out->least       ? "changelog.num-retained.min"
                            : most > out->most       ? "changelog.num-retained.max"
                            : time_ms > out->time_ms ? "changelog.time-retained"
                                                     : NULL;
    return out->least <= out->most ? TARN_OK
                                   : tarn_status_new(TARN_SCHEMA_INVALID,
                                                     "option snapshot.num-retained.max is %" PRId64
                                                     ", below snapshot.num-retained.min, %" PRId64,
                                                     out->most, out->least);
}
