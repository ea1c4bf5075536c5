/*
 * entries - tables of which the catalog keeps more than their folder tells.
 *
 * Truth    .tarn/tables/<database>/<name>: {"uuid", "created", "updated", "folder" or "location", and maybe "schema", and then maybe "renamed_to"}.
 * Kinds    a table of Paimon's whose folder isn't <database>.db/<table>: it is tables/<uuid>, or `location`, an URI elsewhere (external).
 *          All else of it is in that folder, and it is a struct tarn_table as the others are.
 *          A table of another kind (option type: format-table, object-table), of which there is nothing but the entry: it has `schema`, and
 *          engines read and write its files. Whoever asks for a struct tarn_table of it hears ENTRY_ONLY.
 * Alive    an entry of a table of Paimon's in the warehouse counts while its folder has the table's identity, uuid and name: what a
 *          crash leaves of a rename or drop is no table, and the next who wants the name removes it. One of another kind that is being
 *          renamed counts until there is one of the new name with its uuid.
 * Where    new tables lie in <database>.db/<table> if both names are plain and the option says so, else in tables/<uuid>. Plain are
 *          names without characters that some client takes for a part of an URL or a pattern: see tarn_catalog__is_plain.
 * Locations must be below one of `external_paths`, and not meet the warehouse: LOCATION_REFUSED. Asked anew at each opening.
 * Threads  any. What is answered lies in the op's arena.
 */
#ifndef TARN_CATALOG_ENTRIES_H
#define TARN_CATALOG_ENTRIES_H

#include "catalog/catalog.h"

#define TARN_LOCATION_SIZE_MAX 2000

struct tarn_catalog_entry {
    struct tarn_slice database, name;
    char uuid[TARN_UUID_SIZE];
    int64_t created_ms, updated_ms;
    struct tarn_slice folder;   /* of the warehouse; absent: it lies at `location` */
    struct tarn_slice location; /* URI, without a slash at its end */
    bool is_compacted;          /* here; else by its writers. Of live ones */
    bool has_schema;            /* it is of another kind than Paimon's tables */
    struct tarn_schema schema;
    struct tarn_slice to_database,
        to_name; /* with a schema: it is being renamed; absent: it isn't */
};

/* What an administrator says. `external_paths`: URIs, separated by commas. Texts are borrowed until open returns. */
struct tarn_catalog_options {
    bool folders_by_uuid;
    const char *external_paths;
};
TARN_MUST struct tarn_status *tarn_catalog_check_options(
    const struct tarn_catalog_options *options);
TARN_MUST struct tarn_status *tarn_catalog_open_with(
    struct tarn_op *op, const struct tarn_table_env *env, const char *warehouse_name,
    const char *data_dir, const struct tarn_catalog_options *options, struct tarn_catalog **out);

/* A table of Paimon's at that location. One that is there already is taken as it is, if columns and keys of `draft` are its own
 * (SCHEMA_INVALID); its files are never removed. */
TARN_MUST struct tarn_status *tarn_catalog_create_external(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_slice database,
    struct tarn_slice name, const struct tarn_schema *draft, struct tarn_slice location,
    struct tarn_table **out);
/* Of another kind. location empty: a folder of the warehouse, which goes with it. */
TARN_MUST struct tarn_status *tarn_catalog_create_entry(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_slice database,
    struct tarn_slice name, const struct tarn_schema *draft, struct tarn_slice location,
    struct tarn_catalog_entry *out);

/* Those below: of tables of other kinds, TABLE_NOT_FOUND for all else. uuid empty: whatever it is. */
TARN_MUST struct tarn_status *tarn_catalog_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_slice database, struct tarn_slice name,
                                                 struct tarn_slice uuid,
                                                 struct tarn_catalog_entry *out);
TARN_MUST struct tarn_status *tarn_catalog_alter_entry(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_slice database,
    struct tarn_slice name, const struct tarn_schema_change *changes, size_t count,
    struct tarn_catalog_entry *out);
TARN_MUST struct tarn_status *tarn_catalog_rename_entry(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_slice database,
    struct tarn_slice name, struct tarn_slice to_database, struct tarn_slice to_name,
    struct tarn_catalog_entry *out);
TARN_MUST struct tarn_status *tarn_catalog_drop_entry(struct tarn_op *op,
                                                      struct tarn_catalog *catalog,
                                                      struct tarn_slice database,
                                                      struct tarn_slice name);
/* The names of a table of another kind; false: none has that uuid. */
bool tarn_catalog_find_entry_names(struct tarn_op *op, struct tarn_catalog *catalog,
                                   struct tarn_slice uuid, struct tarn_slice *database,
                                   struct tarn_slice *name);
/* Where its files are. */
const char *tarn_catalog_entry_uri(struct tarn_op *op, const struct tarn_catalog *catalog,
                                   const struct tarn_catalog_entry *entry);
/* Does it lie outside of the warehouse? */
bool tarn_catalog_is_external(const struct tarn_catalog *catalog, const struct tarn_table *table);

#endif
