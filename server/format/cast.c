#include "format/cast.h"

#define ONE(id) (UINT32_C(1) << TARN_TYPE_##id)
#define TEXT (ONE(CHAR) | ONE(VARCHAR))
#define BYTES (ONE(BINARY) | ONE(VARBINARY))
#define INTEGER (ONE(TINYINT) | ONE(SMALLINT) | ONE(INT) | ONE(BIGINT))
#define NUMERIC (INTEGER | ONE(FLOAT) | ONE(DOUBLE) | ONE(DECIMAL))
#define STAMP (ONE(TIMESTAMP) | ONE(TIMESTAMP_LTZ))
#define DATETIME (ONE(DATE) | ONE(TIME) | STAMP)
#define TO_TEXT (TEXT | NUMERIC | BYTES | ONE(BOOLEAN) | ONE(ARRAY) | ONE(MAP) | ONE(ROW))
#define TO_NUMBER (NUMERIC | TEXT | ONE(BOOLEAN))
#define TO_STAMP (ONE(DATE) | ONE(TIME) | TEXT | ONE(INT) | ONE(BIGINT))

/* By target: the sources of implicit casts, and those of explicit ones beside them. */
static const struct {
    uint32_t implicit_from, explicit_from;
} casts[] = {
    [TARN_TYPE_CHAR] = {ONE(CHAR), TO_TEXT},
    [TARN_TYPE_VARCHAR] = {TEXT, TO_TEXT},
    [TARN_TYPE_BOOLEAN] = {0, TEXT | INTEGER},
    [TARN_TYPE_BINARY] = {ONE(BINARY), TEXT | ONE(VARBINARY)},
    [TARN_TYPE_VARBINARY] = {BYTES, TEXT},
    [TARN_TYPE_DECIMAL] = {NUMERIC, TEXT | ONE(BOOLEAN)},
    [TARN_TYPE_TINYINT] = {ONE(TINYINT), TO_NUMBER},
    [TARN_TYPE_SMALLINT] = {ONE(TINYINT) | ONE(SMALLINT), TO_NUMBER},
    [TARN_TYPE_INT] = {INTEGER & ~ONE(BIGINT), TO_NUMBER | STAMP},
    [TARN_TYPE_BIGINT] = {INTEGER, TO_NUMBER | STAMP},
    [TARN_TYPE_FLOAT] = {NUMERIC & ~ONE(DOUBLE), TO_NUMBER},
    [TARN_TYPE_DOUBLE] = {NUMERIC, TO_NUMBER},
    [TARN_TYPE_DATE] = {ONE(TIMESTAMP), ONE(TIMESTAMP_LTZ) | TEXT},
    [TARN_TYPE_TIME] = {ONE(TIMESTAMP), ONE(TIMESTAMP_LTZ) | TEXT},
    [TARN_TYPE_TIMESTAMP] = {STAMP, TO_STAMP},
    [TARN_TYPE_TIMESTAMP_LTZ] = {STAMP, TO_STAMP},
};

bool tarn_cast_allowed(const struct tarn_type *from, const struct tarn_type *to, bool explicit_too)
{
    uint32_t source = UINT32_C(1) << from->id;
    if (!explicit_too && from->nullable && !to->nullable)
        return false;
    /* Dates and times are written out by a rule of nullable STRING alone. */
    bool is_string =
        to->id == TARN_TYPE_VARCHAR && to->length == TARN_TYPE_LENGTH_MAX && to->nullable;
    if (explicit_too && is_string && (source & DATETIME) != 0)
        return true;
    if (to->id >= TARN_COUNT_OF(casts))
        return false;
    /* The same type but for being nullable: implicit, where there is a cast at all. */
    if ((casts[to->id].implicit_from & source) != 0)
        return true;
    return explicit_too && (casts[to->id].explicit_from & source) != 0;
}
