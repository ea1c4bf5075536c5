#include "catalog/internal.h"

/* Names of databases and tables, and the folders they stand for. A name is checked once, here, in the form in
 * which it is used. */

#define NAME_SIZE_MAX                                                                              \
    200 /* leaves room for ".db" and temporary names in a file name of 255 bytes */

struct tarn_status *tarn_catalog__check_name(const char *what, struct tarn_slice name)
{
    const char *why = NULL;
    if (name.size == 0)
        why = "is empty";
    else if (name.size > NAME_SIZE_MAX)
        why = "is longer than 200 bytes";
    else if (!tarn_utf8_valid(name))
        why = "is not UTF-8";
    else if (name.data[0] == '.' || name.data[0] == '_')
        why = "begins with . or _, which hides a folder";
    for (size_t i = 0; why == NULL && i < name.size; i++) {
        uint8_t c = name.data[i];
        if (c < 0x20 || c == 0x7f)
            why = "has a control character";
        else if (c == '/' || c == '\\')
            why = "has a slash";
        else if (c == '$')
            why = "has a $, which names branches and system tables";
    }
    if (why == NULL && strcmp(what, "database") == 0 && name.size > 3 &&
        memcmp(name.data + name.size - 3, TARN_DATABASE_SUFFIX, 3) == 0)
        why = "ends with .db";
    if (why == NULL)
        return TARN_OK;
    TARN_OWN(tarn_free_drop) char *text =
        tarn_slice_dup(name.size > 64 ? tarn_slice_of(name.data, 64) : name);
    return tarn_status_new(TARN_NAME_INVALID, "the %s name %s %s", what, tarn_log_quote(NULL, text),
                           why);
}

const char *tarn_catalog__database_key(struct tarn_op *op, struct tarn_slice database)
{
    return tarn_arena_printf(op->arena, "%.*s" TARN_DATABASE_SUFFIX, TARN_SLICE_ARG(database));
}

const char *tarn_catalog__table_key(struct tarn_op *op, struct tarn_slice database,
                                    struct tarn_slice table)
{
    return tarn_arena_printf(op->arena, "%.*s" TARN_DATABASE_SUFFIX "/%.*s",
                             TARN_SLICE_ARG(database), TARN_SLICE_ARG(table));
}
