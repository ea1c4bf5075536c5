/*
 * internal - what the files of room `catalog` share.
 *
 * Names are one map each under one mutex; what creates, drops, renames or adopts holds `change` meanwhile, so that
 * two of them never meet in a folder. Who holds it waits for jobs of the pool, so it is taken with tarn_exec_lock. Order of
 * locks: change, lock, then those of a table.
 */
#ifndef TARN_CATALOG_INTERNAL_H
#define TARN_CATALOG_INTERNAL_H

#include <pthread.h>

#include "catalog/entries.h"
#include "catalog/objects.h"

#define TARN_DATABASE_SUFFIX ".db"
#define TARN_DATABASE_FILE ".tarn-database" /* options and comment of a database */
#define TARN_TABLE_FILE ".tarn-table"       /* uuid and name of a table */
#define TARN_OWNER_KEY ".tarn/owner"

/* Below it external tables may lie. */
struct tarn_catalog__outside {
    char *uri;                 /* clean */
    struct tarn_table_env env; /* its store is NULL until the first one is opened; under `change` */
};

struct tarn_catalog {
    const struct tarn_table_env *env;
    char *warehouse_name;
    char *data_dir;
    char holder[TARN_UUID_SIZE]; /* of this run */
    int64_t epoch;
    struct tarn_timer *heartbeat;

    pthread_mutex_t change;   /* one creator, dropper, mover or adopter at a time */
    pthread_mutex_t lock;     /* guards the maps */
    struct tarn_map *by_name; /* "db\0table" -> struct tarn_table, one ref each */
    struct tarn_map *by_uuid; /* uuid -> the same table, no ref */
    struct tarn_map *entries; /* "db\0table" -> heap uuid, of tables of other kinds */
    /* What the store said last of which databases there are. */
    struct tarn_arena *database_arena;
    struct tarn_slice *databases;
    size_t database_count;
    int64_t asked_ms; /* monotonic */

    bool folders_by_uuid;
    struct tarn_catalog__outside *outside;
    size_t outside_count;
};

void tarn_catalog__changed(struct tarn_catalog *catalog); /* tells env->catalog_changed */
TARN_MUST struct tarn_status *tarn_catalog__check_name(const char *what, struct tarn_slice name);
/* Of a folder that is this table's, or its main branch's: is it what it was? */
TARN_MUST struct tarn_status *tarn_catalog__still_here(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_table *table, bool *out);
/* The branch of a table that is there. BRANCH_NOT_FOUND. */
TARN_MUST struct tarn_status *tarn_catalog__branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                                   struct tarn_table *main,
                                                   struct tarn_slice branch,
                                                   struct tarn_table **out);
/* What the catalog has open of a table's branches is no more: before it is moved or dropped (branch.c). Holds `change`. forget: with what
 * the state has of them. */
TARN_MUST struct tarn_status *tarn_catalog__close_branches(struct tarn_op *op,
                                                           struct tarn_catalog *catalog,
                                                           struct tarn_table *table, bool forget);
const char *tarn_catalog__database_key(struct tarn_op *op, struct tarn_slice database);
const char *tarn_catalog__table_key(struct tarn_op *op, struct tarn_slice database,
                                    struct tarn_slice table);
TARN_MUST struct tarn_status *tarn_catalog__database_exists(struct tarn_op *op,
                                                            struct tarn_catalog *catalog,
                                                            struct tarn_slice name, bool *found);

struct tarn_status *tarn_catalog__no_database(struct tarn_slice name); /* DATABASE_NOT_FOUND */

/* --- whose it is (identity.c) --- */
struct tarn_identity_file {
    char uuid[TARN_UUID_SIZE];
    struct tarn_slice name; /* "db.t" */
    bool is_compacted;      /* here; else by its writers */
};
/* *found false: the folder has no identity of ours. IDENTITY_DAMAGED. */
TARN_MUST struct tarn_status *tarn_catalog__read_identity(struct tarn_op *op,
                                                          struct tarn_catalog *catalog,
                                                          const char *path, bool *found,
                                                          struct tarn_identity_file *out);
TARN_MUST struct tarn_status *tarn_catalog__put_identity(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         const char *path, const char *uuid,
                                                         const char *name, bool is_compacted);
/* The identity that the folder had, also where others moved it; or a new one, of a table that others made or a copied folder: compacted
 * by its writers. Holds `change`. */
TARN_MUST struct tarn_status *tarn_catalog__settle_identity(struct tarn_op *op,
                                                            struct tarn_catalog *catalog,
                                                            const char *path, const char *name,
                                                            struct tarn_identity_file *out);

/* Has the folder a schema? */
TARN_MUST struct tarn_status *tarn_catalog__is_table(struct tarn_op *op, struct tarn_store *store,
                                                     const char *path, bool *out);
/* Both names can be, and there is the database. Holds `change`: a database is dropped under it. */
TARN_MUST struct tarn_status *tarn_catalog__check_new(struct tarn_op *op,
                                                      struct tarn_catalog *catalog,
                                                      struct tarn_slice database,
                                                      struct tarn_slice name);
/* TABLE_EXISTS, VIEW_EXISTS. Holds `change`; removes what isn't alive of that name. */
TARN_MUST struct tarn_status *tarn_catalog__check_free(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_slice database,
                                                       struct tarn_slice name);
const char *tarn_catalog__full_name(struct tarn_op *op, struct tarn_slice database,
                                    struct tarn_slice name);
bool tarn_catalog__uuid_is_taken(struct tarn_catalog *catalog, const char *uuid);
/* --- location.c --- */
bool tarn_catalog__is_plain(struct tarn_slice name);
/* LOCATION_REFUSED: it is no URI that could be a table's. */
TARN_MUST struct tarn_status *tarn_catalog__clean_location(struct tarn_op *op,
                                                           struct tarn_slice location,
                                                           const char **out);
TARN_MUST struct tarn_status *tarn_catalog__take_external_paths(struct tarn_op *op,
                                                                struct tarn_catalog *catalog,
                                                                const char *list);
/* *out: the location, clean. */
TARN_MUST struct tarn_status *tarn_catalog__check_location(struct tarn_op *op,
                                                           struct tarn_catalog *catalog,
                                                           struct tarn_slice location,
                                                           const char **out,
                                                           struct tarn_catalog__outside **below);
TARN_MUST struct tarn_status *tarn_catalog__open_outside(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_catalog__outside *outside);

/* --- entry.c, external.c, other_kinds.c; see entries.h --- */
const char *tarn_catalog__uuid_folder(struct tarn_op *op, const char *uuid);
void tarn_catalog__begin_entry(struct tarn_slice database, struct tarn_slice name,
                               struct tarn_catalog_entry *out);
TARN_MUST struct tarn_status *tarn_catalog__read_entry(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_slice database,
                                                       struct tarn_slice name, bool *found,
                                                       struct tarn_catalog_entry *out);
/* *found only where it is alive. */
TARN_MUST struct tarn_status *tarn_catalog__live_entry(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_slice database,
                                                       struct tarn_slice name, bool *found,
                                                       struct tarn_catalog_entry *out);
/* Alive or not, in order. */
TARN_MUST struct tarn_status *tarn_catalog__entry_names(struct tarn_op *op,
                                                        struct tarn_catalog *catalog,
                                                        struct tarn_slice database,
                                                        struct tarn_slice **out, size_t *count);
TARN_MUST struct tarn_status *tarn_catalog__put_entry(struct tarn_op *op,
                                                      struct tarn_catalog *catalog,
                                                      const struct tarn_catalog_entry *entry);
TARN_MUST struct tarn_status *tarn_catalog__replace_entry(struct tarn_op *op,
                                                          struct tarn_catalog *catalog,
                                                          const struct tarn_catalog_entry *entry);
TARN_MUST struct tarn_status *tarn_catalog__remove_entry(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_slice database,
                                                         struct tarn_slice name);
TARN_MUST struct tarn_status *tarn_catalog__remove_entries(struct tarn_op *op,
                                                           struct tarn_catalog *catalog,
                                                           struct tarn_slice database);
/* TABLE_EXISTS where one is alive; another one is removed. */
TARN_MUST struct tarn_status *tarn_catalog__check_no_entry(struct tarn_op *op,
                                                           struct tarn_catalog *catalog,
                                                           struct tarn_slice database,
                                                           struct tarn_slice name);
/* Two entries for a moment; the same move once more goes on with one that was cut off. *out: the new one. */
TARN_MUST struct tarn_status *tarn_catalog__move_entry(
    struct tarn_op *op, struct tarn_catalog *catalog, struct tarn_slice database,
    struct tarn_slice name, struct tarn_slice to_database, struct tarn_slice to_name,
    struct tarn_catalog_entry *out);
/* The table of a live one; ENTRY_ONLY. *out NULL: it is open under another name. */
TARN_MUST struct tarn_status *tarn_catalog__open_entry(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       const struct tarn_catalog_entry *entry,
                                                       struct tarn_table **out);
/* Of a table of another kind that was seen. */
void tarn_catalog__know_entry(struct tarn_catalog *catalog, const struct tarn_catalog_entry *entry);
bool tarn_catalog__known_entry(struct tarn_catalog *catalog, struct tarn_slice database,
                               struct tarn_slice name, char uuid[TARN_UUID_SIZE]);
TARN_MUST struct tarn_status *tarn_catalog__remove_below(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         const char *folder);

/* Views and functions (objects.c). Where a table is to be: VIEW_EXISTS. Holds `change`, as those below. */
TARN_MUST struct tarn_status *tarn_catalog__check_no_view(struct tarn_op *op,
                                                          struct tarn_catalog *catalog,
                                                          struct tarn_slice database,
                                                          struct tarn_slice name);
/* DATABASE_NOT_EMPTY */
TARN_MUST struct tarn_status *tarn_catalog__check_no_objects(struct tarn_op *op,
                                                             struct tarn_catalog *catalog,
                                                             struct tarn_slice database);
TARN_MUST struct tarn_status *tarn_catalog__drop_objects(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_slice database);
const char *tarn_catalog__object_word(enum tarn_object_kind kind); /* "view" */
/* object_body.c: INVALID_ARGUMENT; see objects.h. `body` of a change that fails is not to be used. */
TARN_MUST struct tarn_status *tarn_catalog__check_body(enum tarn_object_kind kind,
                                                       const struct tarn_json *body);
TARN_MUST struct tarn_status *tarn_catalog__change_body(struct tarn_op *op,
                                                        enum tarn_object_kind kind,
                                                        struct tarn_json *body,
                                                        const struct tarn_object_change *changes,
                                                        size_t count);

/* Notes of partitions (partition_notes.c). Holds `change`. branch absent: all that there are of the table and its branches. */
TARN_MUST struct tarn_status *tarn_catalog__forget_notes(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_table *table,
                                                         struct tarn_slice branch);
TARN_MUST struct tarn_status *tarn_catalog__move_notes(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_table *table,
                                                       struct tarn_slice branch,
                                                       struct tarn_slice to);

/* The owner object (owner.c). */
TARN_MUST struct tarn_status *tarn_catalog__take_warehouse(struct tarn_op *op,
                                                           struct tarn_catalog *catalog);
void tarn_catalog__give_warehouse_back(struct tarn_op *op, struct tarn_catalog *catalog);

/* The names of databases, of the folders in the store. */
TARN_MUST struct tarn_status *tarn_catalog__list_databases(struct tarn_op *op,
                                                           struct tarn_catalog *catalog,
                                                           const struct tarn_slice **out,
                                                           size_t *count);

/* Tables of a database that are known by now, those of other kinds too if wanted (lists.c); by name. */
void tarn_catalog__known_tables(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_slice database, bool of_all_kinds,
                                struct tarn_table_info **out, size_t *count);

/* Tables known by now (catalog.c). */
struct tarn_table *tarn_catalog__known(struct tarn_catalog *catalog, struct tarn_slice database,
                                       struct tarn_slice table); /* a ref, or NULL */
void tarn_catalog__remember(struct tarn_catalog *catalog, struct tarn_slice database,
                            struct tarn_slice name,
                            struct tarn_table *table); /* takes a ref of its own */
void tarn_catalog__forget(struct tarn_catalog *catalog, struct tarn_slice database,
                          struct tarn_slice name);
/* It is known under its new names from now on, and under these alone. */
void tarn_catalog__take_new_name(struct tarn_op *op, struct tarn_catalog *catalog,
                                 struct tarn_table *table, struct tarn_slice to_database,
                                 struct tarn_slice to_name);
/* Names "t$branch_x" of open branches of a table. */
void tarn_catalog__known_branches(struct tarn_op *op, struct tarn_catalog *catalog,
                                  struct tarn_slice database, struct tarn_slice name,
                                  struct tarn_slice **out, size_t *count);
void tarn_catalog__keep_databases(struct tarn_catalog *catalog, const struct tarn_slice *names,
                                  size_t count); /* for when the store is away (lists.c) */
/* What a crash left of drops. */
TARN_MUST struct tarn_status *tarn_catalog__finish_drops(struct tarn_op *op,
                                                         struct tarn_catalog *catalog);
/* As below, where there is no entry of that name. */
TARN_MUST struct tarn_status *tarn_catalog__adopt_folder(struct tarn_op *op,
                                                         struct tarn_catalog *catalog,
                                                         struct tarn_slice database,
                                                         struct tarn_slice name,
                                                         struct tarn_table **out);
/* Opens the table that is there; *out NULL where none is. ENTRY_ONLY. Holds `change`. */
TARN_MUST struct tarn_status *tarn_catalog__adopt(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  struct tarn_slice database,
                                                  struct tarn_slice name, struct tarn_table **out);
/* The table of this name as the folder has it now: what is known and gone is forgotten, what others put there adopted. *out NULL: there is
 * none. Holds `change`. */
TARN_MUST struct tarn_status *tarn_catalog__find_again(struct tarn_op *op,
                                                       struct tarn_catalog *catalog,
                                                       struct tarn_slice database,
                                                       struct tarn_slice name,
                                                       struct tarn_table **out);
/* Tables of the database that are known and not in the list (by name): those that others took away are forgotten (lists.c). */
TARN_MUST struct tarn_status *tarn_catalog__forget_vanished(struct tarn_op *op,
                                                            struct tarn_catalog *catalog,
                                                            struct tarn_slice database,
                                                            const struct tarn_table_info *list,
                                                            size_t count);
/* The same of all tables whose database isn't in the list. */
TARN_MUST struct tarn_status *tarn_catalog__forget_databases(struct tarn_op *op,
                                                             struct tarn_catalog *catalog,
                                                             const struct tarn_slice *names,
                                                             size_t count);
/* Names "t$branch_x" of open branches of a table. */
void tarn_catalog__known_branches(struct tarn_op *op, struct tarn_catalog *catalog,
                                  struct tarn_slice database, struct tarn_slice name,
                                  struct tarn_slice **out, size_t *count);
void tarn_catalog__keep_databases(struct tarn_catalog *catalog, const struct tarn_slice *names,
                                  size_t count); /* for when the store is away (lists.c) */
/* Opens the table whose folder is there; *out NULL where it isn't. Holds `change`. */
TARN_MUST struct tarn_status *tarn_catalog__adopt(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  struct tarn_slice database,
                                                  struct tarn_slice name, struct tarn_table **out);

#endif
