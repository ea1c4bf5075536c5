/*
 * evolve - the next schema of a table from this one and a list of changes: every rule about who may change what.
 *
 * Shape    changes apply in order, all or none. Every call that succeeds makes a schema, also where nothing changed: Paimon's does.
 *          Pure: who calls reads the schema, puts schema-N if absent, and calls again with the newer one where somebody was faster.
 * Paths    a column is a path of one name; more names lead into it: a field of a ROW by its name, the elements of an ARRAY by
 *          "element", the values of a MAP by "value". What is in the keys of a MAP, a MULTISET or a VECTOR never changes.
 * Errors   COLUMN_NOT_FOUND and COLUMN_EXISTS carry the column's path, joined by dots, as fact "column"; SCHEMA_INVALID says which
 *          rule is broken by what, and what to do where there is something; INVALID_ARGUMENT is a change that is none.
 * Memory   what *out points at lies in `arena`, the old schema or the changes.
 * Source   docs/format.md, "Schema evolution"; org.apache.paimon.schema.SchemaManager.
 */
#ifndef TARN_FORMAT_EVOLVE_H
#define TARN_FORMAT_EVOLVE_H

#include "format/schema.h"

enum tarn_schema_change_kind {
    TARN_CHANGE_NONE, /* what a zeroed struct is: refused */
    TARN_CHANGE_SET_OPTION,
    TARN_CHANGE_REMOVE_OPTION,
    TARN_CHANGE_COMMENT,
    TARN_CHANGE_ADD_COLUMN,
    TARN_CHANGE_RENAME_COLUMN,
    TARN_CHANGE_DROP_COLUMN,
    TARN_CHANGE_COLUMN_TYPE,
    TARN_CHANGE_COLUMN_NULLABILITY,
    TARN_CHANGE_COLUMN_COMMENT,
    TARN_CHANGE_COLUMN_DEFAULT,
    TARN_CHANGE_COLUMN_POSITION,
    TARN_CHANGE_DROP_PRIMARY_KEY
};

enum tarn_move {
    TARN_MOVE_NONE,
    TARN_MOVE_FIRST,
    TARN_MOVE_LAST,
    TARN_MOVE_BEFORE,
    TARN_MOVE_AFTER
};

struct tarn_schema_change {
    enum tarn_schema_change_kind kind;
    const struct tarn_slice *path; /* of the column; ADD_COLUMN: what it will be */
    size_t path_count;
    struct tarn_slice key; /* SET_OPTION, REMOVE_OPTION */
    struct tarn_slice
        value; /* SET_OPTION; RENAME_COLUMN: the new last name; COMMENT, ADD_COLUMN, COLUMN_COMMENT: the
                                     comment, COLUMN_DEFAULT: the default as text, absent: none */
    const struct tarn_type *type; /* ADD_COLUMN (ids within are given anew), COLUMN_TYPE */
    bool keep_nullable;           /* COLUMN_TYPE: as nullable as it was, whatever type says */
    bool nullable;                /* COLUMN_NULLABILITY */
    enum tarn_move move;          /* ADD_COLUMN, COLUMN_POSITION */
    struct tarn_slice reference;  /* BEFORE, AFTER: a column, or a field of the same ROW */
};

/* has_snapshot: the table has, or had, rows: options and keys that decide what is in files stay then. *out is written on success only. */
TARN_MUST struct tarn_status *tarn_schema_evolve(const struct tarn_schema *schema,
                                                 const struct tarn_schema_change *changes,
                                                 size_t count, bool has_snapshot, int64_t time_ms,
                                                 struct tarn_arena *arena, struct tarn_schema *out);

#endif
