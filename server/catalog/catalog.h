/*
 * catalog - databases and tables of a warehouse: the only creator and dropper, and its owner.
 *
 * Truth    folders of the store: <database>.db/<table>/ with schema/schema-N (Paimon's file-system
 *          catalog). A table's uuid and name lie in <table>/.tarn-table, and whose its compaction is; a table that others
 *          put there gets it when it is first seen, at start, when it is listed or named. What others moved keeps its uuid; what they
 *          took away is forgotten when it is missed in a list, or named. `state` keeps the names for speed.
 * Owner    .tarn/owner holds the epoch, the holder's identity (data directory, host, pid) and a heartbeat; a second daemon on
 *          the warehouse names the holder and stops (WAREHOUSE_HELD), the same data directory takes it back at once.
 * Names    database and table: UTF-8, 1..255 bytes in a path segment, none of / \ $ NUL, control characters, not
 *          "." or "..", not beginning with "." or "_"; a database's not ending with ".db". NAME_INVALID.
 * Threads  any. Lists lie in the op's arena.
 */
#ifndef TARN_CATALOG_H
#define TARN_CATALOG_H

#include "format/evolve.h"
#include "table/table.h"

struct tarn_catalog;
struct tarn_undone;

struct tarn_database_info {
    struct tarn_slice name;
    const struct tarn_pair *options;
    size_t option_count;
    struct tarn_slice comment; /* absent: none */
    int64_t table_count;
    /* Not asked of who makes one. A folder that others made: an id that follows from its name, and no times. */
    char uuid[TARN_UUID_SIZE];
    int64_t created_ms, updated_ms; /* 0: not known */
    const char *uri;                /* of its folder */
};
struct tarn_table_info {
    struct tarn_slice database, name;
    char uuid[TARN_UUID_SIZE];
};

/* Takes the warehouse (epoch + 1) and learns what is in it. env->store and state are borrowed. */
TARN_MUST struct tarn_status *tarn_catalog_open(struct tarn_op *op,
                                                const struct tarn_table_env *env,
                                                const char *warehouse_name, const char *data_dir,
                                                struct tarn_catalog **out);
/* Gives the warehouse back. */
void tarn_catalog_close(struct tarn_catalog *catalog);
const struct tarn_table_env *tarn_catalog_env(const struct tarn_catalog *catalog);
int64_t tarn_catalog_epoch(const struct tarn_catalog *catalog);
/* WAREHOUSE_HELD once another daemon has taken it; asked before anything is deleted. */
TARN_MUST struct tarn_status *tarn_catalog_check_owner(struct tarn_op *op,
                                                       struct tarn_catalog *catalog);

TARN_MUST struct tarn_status *tarn_database_create(struct tarn_op *op, struct tarn_catalog *catalog,
                                                   const struct tarn_database_info *info,
                                                   bool ignore_if_exists);
TARN_MUST struct tarn_status *tarn_database_get(struct tarn_op *op, struct tarn_catalog *catalog,
                                                struct tarn_slice name,
                                                struct tarn_database_info *out);
TARN_MUST struct tarn_status *tarn_database_list(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_database_info **out,
                                                 size_t *count); /* by name */
TARN_MUST struct tarn_status *tarn_database_alter(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  struct tarn_slice name,
                                                  const struct tarn_pair *set, size_t set_count,
                                                  const struct tarn_slice *remove,
                                                  size_t remove_count);
TARN_MUST struct tarn_status *tarn_database_drop(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_slice name, bool cascade,
                                                 int64_t *tables_dropped);

/* draft: names, types, keys, options, comment (tarn_schema_create's rules). */
TARN_MUST struct tarn_status *tarn_catalog_create_table(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_slice database,
    struct tarn_slice name, const struct tarn_schema *draft, struct tarn_table **out);
/* One that others made, in the folder of its name: path says where it is thought to be, as an URI or without its scheme. PATH_INVALID:
 * that is another place, or there is no table; TABLE_EXISTS: it is known by now, as are all that were listed or named once. */
TARN_MUST struct tarn_status *tarn_catalog_register_table(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_slice database,
    struct tarn_slice name, struct tarn_slice path, struct tarn_table **out);
/* By name, and uuid where not empty; a table that others put into the warehouse is adopted here. */
TARN_MUST struct tarn_status *tarn_catalog_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_slice database, struct tarn_slice name,
                                                 struct tarn_slice uuid, struct tarn_table **out);
/* Is that the uuid of a table here? From memory, never waits. */
bool tarn_catalog_has_table(struct tarn_catalog *catalog, struct tarn_slice uuid);
TARN_MUST struct tarn_status *tarn_catalog_table_by_uuid(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_slice uuid,
                                                         struct tarn_table **out);
/* --- branches: "t$branch_x" is a name of tarn_catalog_table and _or_last, too, and a table of its own; "t$branch_main" is t --- */

/* Divides "t$branch_x" into "t" and "x"; without a branch, or with main, *branch is empty. */
void tarn_catalog_split_branch(struct tarn_slice object, struct tarn_slice *name,
                               struct tarn_slice *branch);
/* INVALID_ARGUMENT for a branch: "db.t$branch_x is a branch: ELSE_WHAT". */
TARN_MUST struct tarn_status *tarn_catalog_check_main(const struct tarn_table *table,
                                                      const char *else_what);
/* tag absent: without a snapshot. Errors: table/refs.h. */
TARN_MUST struct tarn_status *tarn_catalog_create_branch(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_table *table,
                                                         struct tarn_slice branch,
                                                         struct tarn_slice tag);
TARN_MUST struct tarn_status *tarn_catalog_drop_branch(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_table *table,
                                                       struct tarn_slice branch);
TARN_MUST struct tarn_status *tarn_catalog_rename_branch(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_table *table,
                                                         struct tarn_slice branch,
                                                         struct tarn_slice to);
TARN_MUST struct tarn_status *tarn_catalog_fast_forward(struct tarn_op *op,
                                                        struct tarn_catalog *catalog,
                                                        struct tarn_table *table,
                                                        struct tarn_slice branch,
                                                        struct tarn_undone *undone);
/* For those that keep a table: TABLE_NOT_FOUND where others removed it, or put another in its place. */
TARN_MUST struct tarn_status *tarn_catalog_check_table(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_table *table);
TARN_MUST struct tarn_status *tarn_catalog_tables(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  struct tarn_slice database,
                                                  struct tarn_table_info **out,
                                                  size_t *count); /* by name */
/* For those who only look: where the store is away, what was there last; op->stale_ms says how old that is. */
TARN_MUST struct tarn_status *tarn_database_list_or_last(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_database_info **out,
                                                         size_t *count);
TARN_MUST struct tarn_status *tarn_catalog_tables_or_last(struct tarn_op *op,
                                                          struct tarn_catalog *catalog,
                                                          struct tarn_slice database,
                                                          struct tarn_table_info **out,
                                                          size_t *count);
TARN_MUST struct tarn_status *tarn_catalog_table_or_last(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_slice database,
    struct tarn_slice name, struct tarn_slice uuid, struct tarn_table **out);
/* Renaming and dropping: of the table that the caller found as database.name; TABLE_NOT_FOUND where another call has dropped or renamed
 * it since. Names absent: it was found by its uuid, and is meant whatever its name is. */
TARN_MUST struct tarn_status *tarn_catalog_rename_table(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_table *table,
    struct tarn_slice database, struct tarn_slice name, struct tarn_slice to_database,
    struct tarn_slice to_name);
TARN_MUST struct tarn_status *tarn_catalog_drop_table(struct tarn_op *op,
                                                      struct tarn_catalog *catalog,
                                                      struct tarn_table *table,
                                                      struct tarn_slice database,
                                                      struct tarn_slice name);

/* --- what others made (adopt.c) --- */

/* Whose compaction it is: the daemon's, or the writers'. Written down in the table's .tarn-table, where it isn't so already. */
TARN_MUST struct tarn_status *tarn_catalog_set_compaction(struct tarn_op *op,
                                                          struct tarn_catalog *catalog,
                                                          struct tarn_table *table,
                                                          bool is_compacted);
struct tarn_folder { /* right in a database's folder */
    struct tarn_slice name;
    const char *path;    /* below the warehouse's root */
    bool is_table;       /* it has a schema, and a name that a table can have here */
    bool has_identity;   /* it has been adopted */
    bool is_compacted;   /* here */
    const char *uuid;    /* "": none */
    const char *damaged; /* why its identity can't be read, or NULL */
    const char *why_not; /* it is no table, or NULL */
};
/* By name; looks, and adopts nothing. DATABASE_NOT_FOUND. */
TARN_MUST struct tarn_status *tarn_catalog_folders(struct tarn_op *op, struct tarn_catalog *catalog,
                                                   struct tarn_slice database,
                                                   struct tarn_folder **out, size_t *count);
/* One of them, which must be there: TABLE_NOT_FOUND. */
TARN_MUST struct tarn_status *tarn_catalog_folder(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  struct tarn_slice database,
                                                  struct tarn_slice name, struct tarn_folder *out);
/* Whose folder is that? An URI or path of a database's (*name empty) or table's folder, or one below the warehouse's root; of the root
 * itself both are empty. In the op's arena. PATH_INVALID says what is wrong with it, and which folders would be right. */
TARN_MUST struct tarn_status *tarn_catalog_locate(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  struct tarn_slice path,
                                                  struct tarn_slice *database,
                                                  struct tarn_slice *name);

/* All or none; a new schema-N (format/evolve.h has the rules). */
TARN_MUST struct tarn_status *tarn_catalog_alter_table(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_table *table,
                                                       const struct tarn_schema_change *changes,
                                                       size_t count);
/* Its rows go, in a snapshot that can be gone back to, and its schema is followed by one made of `draft` (tarn_schema_replace); uuid, history,
 * tags and branches stay. Cut off it may be empty, with its old schema. BUSY: it is, and nothing else happened. */
TARN_MUST struct tarn_status *tarn_catalog_replace_table(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_table *table,
                                                         const struct tarn_schema *draft);

#endif
