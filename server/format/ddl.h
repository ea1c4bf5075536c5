/*
 * ddl - what type.c and schema.c share: a scanner of SQL type and column lists, and fields as JSON.
 *
 * Shape    the scanner borrows its text. Words are compared without case; quoted names are taken as
 *          they are. `reason` is what a mistake is called: SCHEMA_INVALID from users,
 *          SCHEMA_MALFORMED from files.
 */
#ifndef TARN_FORMAT_DDL_H
#define TARN_FORMAT_DDL_H

#include "format/schema.h"

struct tarn_format__scanner {
    struct tarn_slice text;
    size_t at;
    enum tarn_reason reason;
    struct tarn_arena *arena;
};

bool tarn_format__scan_end(struct tarn_format__scanner *s);          /* only blanks are left */
bool tarn_format__scan_char(struct tarn_format__scanner *s, char c); /* takes it if it is next */
bool tarn_format__scan_keyword(struct tarn_format__scanner *s, const char *word); /* likewise */
/* A bare word or a `quoted name`; in the arena. */
TARN_MUST struct tarn_status *tarn_format__scan_name(struct tarn_format__scanner *s,
                                                     struct tarn_slice *out);
/* 'text' with '' for a quote; in the arena. *found false: something else is next. */
TARN_MUST struct tarn_status *tarn_format__scan_string(struct tarn_format__scanner *s, bool *found,
                                                       struct tarn_slice *out);
TARN_MUST struct tarn_status *tarn_format__scan_type(struct tarn_format__scanner *s, int depth,
                                                     const struct tarn_type **out);
/* "x INT NOT NULL COMMENT 'c' DEFAULT 'd'": one column or one field of a ROW. */
TARN_MUST struct tarn_status *tarn_format__scan_field(struct tarn_format__scanner *s, int depth,
                                                      struct tarn_field *out);
TARN_MUST struct tarn_status *tarn_format__scan_error(const struct tarn_format__scanner *s,
                                                      const char *expected);

/* Adds the members of a JSON object's text to `object`; those that are there already stay. */
void tarn_format__add_members(struct tarn_json *object, struct tarn_slice json);
/* The text of an object without the members in `known`, in the arena; absent if none is left. */
struct tarn_slice tarn_format__unknown_members(const struct tarn_json *object,
                                               const char *const *known, size_t known_count,
                                               struct tarn_arena *arena);
/* Columns of a new table whose comments say what they are become that, and are put into options; evolve_directive.c. */
TARN_MUST struct tarn_status *tarn_format__apply_directives(struct tarn_schema *s,
                                                            struct tarn_arena *arena);
/* What is left of making a schema of columns with ids: options primary-key and partition become keys, columns of the primary key
 * NOT NULL, and the whole must keep the rules of docs/format.md "Constraints". */
TARN_MUST struct tarn_status *tarn_format__settle_schema(struct tarn_schema *s,
                                                         struct tarn_arena *arena);
/* Options that contradict the columns or each other; options.c. */
TARN_MUST struct tarn_status *tarn_format__check_options(const struct tarn_schema *schema,
                                                         struct tarn_arena *arena);
/* Does a column of this type lie in files of BLOBs: BLOB, ARRAY<BLOB>, MAP<X, BLOB>? options_rules.c. */
bool tarn_format__is_blob(const struct tarn_type *type);
/* Options that name columns which aren't there; evolve_options.c. */
TARN_MUST struct tarn_status *tarn_format__check_named_columns(const struct tarn_schema *schema);
/* May this be the name of a file in a folder of the table: no separators, no way up? */
bool tarn_format__is_file_name(struct tarn_slice name);
/* Ids for columns and what is nested in them: a column before what is in its type, a field of a ROW after; *next is the next free
 * one. */
const struct tarn_field *tarn_format__assign_ids(const struct tarn_field *fields, size_t count,
                                                 int32_t *next, struct tarn_arena *arena);

#endif
