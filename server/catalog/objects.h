/*
 * objects - views and functions: what a catalog keeps under a name for engines, and looks no further into than it must.
 *
 * Truth    .tarn/views/<database>/<name> and .tarn/functions/<database>/<name>: {"uuid", "created", "updated", "body"}. Nothing
 *          else remembers them. They go with their database.
 * Body     a JSON object. A view's: "query" and "fields", and maybe "dialects" (texts by name), "comment", "options". A
 *          function's: maybe "inputParams", "returnParams", "deterministic", "definitions" (objects by name), "comment",
 *          "options". What has another kind than these words say is INVALID_ARGUMENT; all else is kept as it came.
 * Names    as those of tables. A view and a table of one database have different names; functions have theirs for themselves.
 * Threads  any. What is answered lies in the op's arena.
 * Errors   VIEW_NOT_FOUND, VIEW_EXISTS, FUNCTION_NOT_FOUND, FUNCTION_EXISTS, DATABASE_NOT_FOUND, NAME_INVALID;
 *          OBJECT_DAMAGED names the object that is none of the above, which can still be dropped.
 */
#ifndef TARN_CATALOG_OBJECTS_H
#define TARN_CATALOG_OBJECTS_H

#include "catalog/catalog.h"

#define TARN_OBJECT_SIZE_MAX (1 << 20) /* of a body; more is TOO_LARGE */

enum tarn_object_kind { TARN_OBJECT_VIEW, TARN_OBJECT_FUNCTION, TARN_OBJECT_KIND_COUNT };

struct tarn_object_ref {
    enum tarn_object_kind kind;
    struct tarn_slice database, name;
};
struct tarn_catalog_object {
    struct tarn_object_ref ref;
    char uuid[TARN_UUID_SIZE]; /* stays when it is renamed */
    int64_t created_ms, updated_ms;
    struct tarn_slice body; /* JSON */
};

/* A part is a dialect of a view, or a definition of a function. */
enum tarn_object_change_kind {
    TARN_OBJECT_SET_OPTION,
    TARN_OBJECT_REMOVE_OPTION,
    TARN_OBJECT_COMMENT, /* value absent: none */
    TARN_OBJECT_ADD_PART,
    TARN_OBJECT_UPDATE_PART,
    TARN_OBJECT_DROP_PART
};
struct tarn_object_change {
    enum tarn_object_change_kind kind;
    struct tarn_slice key;   /* of the option or part */
    struct tarn_slice value; /* of the option; a dialect's query; a definition as JSON */
};

/* TABLE_EXISTS where a view's name is a table's. */
TARN_MUST struct tarn_status *tarn_catalog_create_object(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_object_ref ref,
                                                         struct tarn_slice body,
                                                         struct tarn_catalog_object *out);
TARN_MUST struct tarn_status *tarn_catalog_object(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  struct tarn_object_ref ref,
                                                  struct tarn_catalog_object *out);
/* By name; without uuids. */
TARN_MUST struct tarn_status *tarn_catalog_objects(struct tarn_op *op, struct tarn_catalog *catalog,
                                                   enum tarn_object_kind kind,
                                                   struct tarn_slice database,
                                                   struct tarn_table_info **out, size_t *count);
/* All or none, in their order. DIALECT_NOT_FOUND, DIALECT_EXISTS, DEFINITION_NOT_FOUND, DEFINITION_EXISTS carry the part's name as
 * fact "part". */
TARN_MUST struct tarn_status *tarn_catalog_alter_object(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_object_ref ref,
    const struct tarn_object_change *changes, size_t count, struct tarn_catalog_object *out);
/* Two steps: after a crash between them it has both names, and the same rename once more goes on. */
TARN_MUST struct tarn_status *tarn_catalog_rename_object(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_object_ref ref,
                                                         struct tarn_slice to_database,
                                                         struct tarn_slice to_name);
TARN_MUST struct tarn_status *tarn_catalog_drop_object(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_object_ref ref);

#endif
