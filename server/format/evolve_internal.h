/*
 * evolve_internal - what the files of evolve share: a schema that is being changed, and the options that go with its columns.
 *
 * Memory   types and fields under `root` are copies of the draft's own, changed in place; an array of fields has room for the next
 *          power of two.
 */
#ifndef TARN_FORMAT_EVOLVE_INTERNAL_H
#define TARN_FORMAT_EVOLVE_INTERNAL_H

#include "format/evolve.h"

struct tarn_format__draft {
    const struct tarn_schema
        *old; /* options are judged by what they were before the first change */
    bool has_snapshot;
    struct tarn_arena *arena;
    struct tarn_type root; /* the table as a ROW */
    int64_t highest_id;
    struct tarn_slice comment;
    struct tarn_slice *primary_keys;
    size_t primary_key_count;
    struct tarn_pair *options; /* room for one more a change */
    size_t option_count;
};

/* The next of the names in "a, b", without blanks around; false at the end. Empty ones are passed over. */
bool tarn_format__next_name(struct tarn_slice *rest, struct tarn_slice *name);
bool tarn_format__names_have(struct tarn_slice names, struct tarn_slice name);

/* SetOption and RemoveOption (value absent), by the rules of what is frozen. */
TARN_MUST struct tarn_status *tarn_format__change_option(struct tarn_format__draft *d,
                                                         struct tarn_slice key,
                                                         struct tarn_slice value);
/* Options that name the column of the table name it anew. */
void tarn_format__rename_in_options(struct tarn_format__draft *d, struct tarn_slice from,
                                    struct tarn_slice to);
/* Takes the column out of options that go with its type; others that name it make the schema invalid. */
void tarn_format__drop_from_options(struct tarn_format__draft *d, const struct tarn_field *field);
/* Adds a column to a list of columns. */
void tarn_format__add_to_list(struct tarn_format__draft *d, const char *key,
                              struct tarn_slice name);
/* A column that is kept in an index of the primary key. */
bool tarn_format__is_indexed(const struct tarn_format__draft *d, struct tarn_slice name);

/* Begins a comment as one that says what its column is? */
bool tarn_format__is_directive(struct tarn_slice comment);
/* Carries out what the comment of a new column says: its type, its comment and an option change. */
TARN_MUST struct tarn_status *tarn_format__apply_directive(struct tarn_format__draft *d,
                                                           bool in_table, struct tarn_field *field);
/* A default that can't be one of the type: SCHEMA_INVALID. */
TARN_MUST struct tarn_status *tarn_format__check_default(const struct tarn_type *type,
                                                         struct tarn_slice text,
                                                         struct tarn_arena *arena);

#endif
