/*
 * internal - what the files of room `hms` share, from the bytes upwards: protocol.c, link.c, records.c, calls.c, shape.c,
 * partitions.c, push.c, known.c, pass.c, mirror.c.
 *
 * Calls and structs are those of hive_metastore.thrift, as Hive 2.3 to 4 have them; only what is used is here, other fields are
 * passed over.
 */
#ifndef TARN_HMS_INTERNAL_H
#define TARN_HMS_INTERNAL_H

#include "hms/hms.h"

/* --- protocol.c: Thrift's binary protocol, without frames --- */
enum tarn_hms__type {
    HMS_STOP = 0,
    HMS_BOOL = 2,
    HMS_BYTE = 3,
    HMS_DOUBLE = 4,
    HMS_I16 = 6,
    HMS_I32 = 8,
    HMS_I64 = 10,
    HMS_STRING = 11,
    HMS_STRUCT = 12,
    HMS_MAP = 13,
    HMS_SET = 14,
    HMS_LIST = 15
};
#define HMS_REPLY_SIZE_MAX ((size_t)64 << 20)    /* bytes of one reply; more is refused */
#define HMS_REPLY_MEMORY_MAX ((size_t)256 << 20) /* that what it holds may take once decoded */
#define HMS_DEPTH_MAX 32                         /* of what is passed over */

/* Writing appends. An absent text is left out. */
void tarn_hms__put_call(struct tarn_buf *out, const char *name, int32_t sequence);
void tarn_hms__put_field(struct tarn_buf *out, enum tarn_hms__type type, int16_t id);
void tarn_hms__put_i16(struct tarn_buf *out, int16_t id, int16_t value);
void tarn_hms__put_i32(struct tarn_buf *out, int16_t id, int32_t value);
void tarn_hms__put_bool(struct tarn_buf *out, int16_t id, bool value);
void tarn_hms__put_text(struct tarn_buf *out, int16_t id, struct tarn_slice text);
void tarn_hms__put_texts(struct tarn_buf *out, int16_t id, const struct tarn_slice *texts,
                         size_t count);
void tarn_hms__put_pairs(struct tarn_buf *out, int16_t id, const struct tarn_pair *pairs,
                         size_t count);
void tarn_hms__put_list(struct tarn_buf *out, int16_t id, enum tarn_hms__type type, size_t count);
void tarn_hms__put_stop(struct tarn_buf *out);

/* Reads what others sent. The first error stays: from then on all answers are zero and empty, so that callers look once, at
 * the end, but must not loop on what can't end: tarn_hms__next_field and _more_items say false. */
struct tarn_hms__reader {
    /* Up to `room` bytes; *got 0: there are no more. */
    struct tarn_status *(*fetch)(void *self, uint8_t *into, size_t room, size_t *got);
    void *self;
    struct tarn_arena *arena; /* where texts and lists lie */
    size_t bytes_left, memory_left;
    uint8_t buffer[16384];
    size_t at, end;
    struct tarn_status *status; /* owned */
};
void tarn_hms__reader_init(struct tarn_hms__reader *r, struct tarn_arena *arena);
void tarn_hms__reader_fini(struct tarn_hms__reader *r);
/* METASTORE_UNAVAILABLE, unless there is an error already. */
void tarn_hms__spoil(struct tarn_hms__reader *r, const char *format, ...) TARN_PRINTF(2, 3);
int32_t tarn_hms__get_i32(struct tarn_hms__reader *r);
bool tarn_hms__get_bool(struct tarn_hms__reader *r);
struct tarn_slice tarn_hms__get_text(struct tarn_hms__reader *r); /* in the arena */
/* False: the struct has no more. */
bool tarn_hms__next_field(struct tarn_hms__reader *r, enum tarn_hms__type *type, int16_t *id);
void tarn_hms__skip(struct tarn_hms__reader *r, enum tarn_hms__type type);
/* The head of a list of such items: how many it says it has; they come one by one, and are worth memory when they came. */
size_t tarn_hms__get_list(struct tarn_hms__reader *r, enum tarn_hms__type item);
/* Room for item number `count` of a list that grows: a place of `size` bytes, zeroed, or NULL: no more (an error, or all were). */
void *tarn_hms__next_item(struct tarn_hms__reader *r, void **list, size_t said, size_t *count,
                          size_t *capacity, size_t size);
void tarn_hms__get_texts(struct tarn_hms__reader *r, struct tarn_slice **out, size_t *count);
void tarn_hms__get_pairs(struct tarn_hms__reader *r, struct tarn_pair **out, size_t *count);
/* The reply's head, to the call `name`. METASTORE_REFUSED where it says that the call failed as a whole. */
void tarn_hms__get_reply(struct tarn_hms__reader *r, const char *name, int32_t sequence);

/* --- link.c: a connection --- */
struct tarn_hms__link;
struct tarn_hms__address {
    char *host, *port;
};
TARN_MUST struct tarn_status *tarn_hms__parse_uri(const char *uri, struct tarn_hms__address **out,
                                                  size_t *count);
void tarn_hms__free_addresses(struct tarn_hms__address *addresses, size_t count);
/* METASTORE_UNAVAILABLE. Waits end when the op ends. */
TARN_MUST struct tarn_status *tarn_hms__connect(const struct tarn_op *op,
                                                const struct tarn_hms__address *address,
                                                int64_t timeout_ms, struct tarn_hms__link **out);
void tarn_hms__close(struct tarn_hms__link *link); /* NULL is fine */
/* Both as far as the deadline (monotonic) goes. */
TARN_MUST struct tarn_status *tarn_hms__send(const struct tarn_op *op, struct tarn_hms__link *link,
                                             int64_t deadline_ms, struct tarn_slice bytes);
TARN_MUST struct tarn_status *tarn_hms__receive(const struct tarn_op *op,
                                                struct tarn_hms__link *link, int64_t deadline_ms,
                                                uint8_t *into, size_t room, size_t *got);

/* --- records.c: what the metastore keeps --- */
struct tarn_hms__column {
    struct tarn_slice name, type, comment; /* comment absent: none */
};
struct tarn_hms__table {
    struct tarn_slice database, name, owner, kind; /* kind: "EXTERNAL_TABLE", … */
    struct tarn_slice location, input_format, output_format, serde;
    struct tarn_hms__column *columns, *keys; /* keys: of partitions; not among the columns */
    size_t column_count, key_count;
    struct tarn_pair *parameters;
    size_t parameter_count;
};
struct tarn_hms__database {
    struct tarn_slice name, comment, location, owner;
    struct tarn_pair *parameters;
    size_t parameter_count;
};
struct tarn_hms__partition {
    const struct tarn_slice *values; /* one a key of the table */
    struct tarn_slice location;
};
/* Each appends a struct with its stop. now_s: since 1970, for the times that it was made and touched. */
void tarn_hms__put_table(struct tarn_buf *out, const struct tarn_hms__table *table, int32_t now_s);
void tarn_hms__put_database(struct tarn_buf *out, const struct tarn_hms__database *database);
void tarn_hms__put_partition(struct tarn_buf *out, const struct tarn_hms__table *table,
                             const struct tarn_hms__partition *partition, int32_t now_s);
void tarn_hms__get_table(struct tarn_hms__reader *r, struct tarn_hms__table *out);
void tarn_hms__get_database(struct tarn_hms__reader *r, struct tarn_hms__database *out);
struct tarn_slice tarn_hms__parameter(const struct tarn_pair *parameters, size_t count,
                                      const char *key); /* absent: there is none */

/* --- calls.c: what the metastore is asked --- */
struct tarn_hms__client {
    struct tarn_hms__address *addresses;
    size_t address_count;
    const char *user;
    int64_t connect_timeout_ms, timeout_ms;
    struct tarn_hms__link
        *link; /* NULL: not connected; closed by whatever leaves its bytes in doubt */
    int32_t sequence;
    struct tarn_buf request;
};
/* Answers lie in the op's arena. METASTORE_UNAVAILABLE: nobody there, or it makes no sense; METASTORE_REFUSED: it said no. */
TARN_MUST struct tarn_status *tarn_hms__open(struct tarn_op *op, struct tarn_hms__client *client);
void tarn_hms__client_fini(struct tarn_hms__client *client);
TARN_MUST struct tarn_status *tarn_hms__list_databases(struct tarn_op *op,
                                                       struct tarn_hms__client *client,
                                                       struct tarn_slice **out, size_t *count);
TARN_MUST struct tarn_status *tarn_hms__find_database(struct tarn_op *op,
                                                      struct tarn_hms__client *client,
                                                      struct tarn_slice name, bool *found,
                                                      struct tarn_hms__database *out);
TARN_MUST struct tarn_status *tarn_hms__create_database(struct tarn_op *op,
                                                        struct tarn_hms__client *client,
                                                        const struct tarn_hms__database *database);
TARN_MUST struct tarn_status *tarn_hms__alter_database(struct tarn_op *op,
                                                       struct tarn_hms__client *client,
                                                       const struct tarn_hms__database *database);
/* Not its data, and only an empty one. Gone already is fine, as it is below. */
TARN_MUST struct tarn_status *tarn_hms__drop_database(struct tarn_op *op,
                                                      struct tarn_hms__client *client,
                                                      struct tarn_slice name);
TARN_MUST struct tarn_status *tarn_hms__list_tables(struct tarn_op *op,
                                                    struct tarn_hms__client *client,
                                                    struct tarn_slice database,
                                                    struct tarn_slice **out, size_t *count);
#define HMS_TABLES_AT_ONCE 50
/* Those of the names that are there. */
TARN_MUST struct tarn_status *tarn_hms__find_tables(struct tarn_op *op,
                                                    struct tarn_hms__client *client,
                                                    struct tarn_slice database,
                                                    const struct tarn_slice *names, size_t count,
                                                    struct tarn_hms__table **out,
                                                    size_t *found_count);
TARN_MUST struct tarn_status *tarn_hms__create_table(struct tarn_op *op,
                                                     struct tarn_hms__client *client,
                                                     const struct tarn_hms__table *table);
TARN_MUST struct tarn_status *tarn_hms__alter_table(struct tarn_op *op,
                                                    struct tarn_hms__client *client,
                                                    const struct tarn_hms__table *table);
TARN_MUST struct tarn_status *tarn_hms__drop_table(struct tarn_op *op,
                                                   struct tarn_hms__client *client,
                                                   struct tarn_slice database,
                                                   struct tarn_slice name);
TARN_MUST struct tarn_status *tarn_hms__list_partitions(struct tarn_op *op,
                                                        struct tarn_hms__client *client,
                                                        const struct tarn_hms__table *table,
                                                        struct tarn_slice **names, size_t *count);
#define HMS_PARTITIONS_AT_ONCE 100
TARN_MUST struct tarn_status *tarn_hms__add_partitions(struct tarn_op *op,
                                                       struct tarn_hms__client *client,
                                                       const struct tarn_hms__table *table,
                                                       const struct tarn_hms__partition *partitions,
                                                       size_t count);
TARN_MUST struct tarn_status *tarn_hms__drop_partition(struct tarn_op *op,
                                                       struct tarn_hms__client *client,
                                                       const struct tarn_hms__table *table,
                                                       const struct tarn_slice *values);

/* --- shape.c: what a table of ours is there --- */
#define HMS_MARK_WAREHOUSE "tarn.warehouse"
#define HMS_MARK_TABLE "tarn.table"
#define HMS_MARK_FINGERPRINT "tarn.fingerprint"

struct tarn_hms__source { /* borrowed */
    struct tarn_slice database, name;
    const char *uuid, *user;
    struct tarn_slice warehouse; /* the store's URI */
    const char *path;            /* of the table in it */
    const struct tarn_schema *schema;
    const struct tarn_options *options;
};
/* Hive's names are case-insensitive and have letters, digits and _ only. */
bool tarn_hms__name_fits(struct tarn_slice name);
/* UNSUPPORTED_FEATURE: why Hive can't have it. */
TARN_MUST struct tarn_status *tarn_hms__shape_table(struct tarn_arena *arena,
                                                    const struct tarn_hms__source *source,
                                                    struct tarn_hms__table *out);
void tarn_hms__shape_database(struct tarn_arena *arena, const struct tarn_database_info *info,
                              struct tarn_slice warehouse, struct tarn_hms__database *out);
/* A URI as Hadoop spells it: file:/x, no slash at the end. */
struct tarn_slice tarn_hms__location(struct tarn_arena *arena, struct tarn_slice uri);
/* What is otherwise there than it should be, a word or two; NULL: nothing. What others added is fine. */
const char *tarn_hms__table_differs(struct tarn_arena *arena, const struct tarn_hms__table *want,
                                    const struct tarn_hms__table *have);
const char *tarn_hms__database_differs(struct tarn_arena *arena,
                                       const struct tarn_hms__database *want,
                                       const struct tarn_hms__database *have);
/* Another table: altering it won't do. */
bool tarn_hms__must_recreate(const struct tarn_hms__table *want,
                             const struct tarn_hms__table *have);
/* Before an alter: parameters that Hive itself keeps (statistics, times) stay. */
void tarn_hms__keep_parameters(struct tarn_arena *arena, struct tarn_hms__table *want,
                               const struct tarn_hms__table *have);
bool tarn_hms__is_ours(const struct tarn_pair *parameters, size_t count,
                       struct tarn_slice warehouse);

/* --- push.c: one database, one table --- */
struct tarn_hms__known { /* what was pushed, or why it wasn't */
    char uuid[TARN_UUID_SIZE];
    char fingerprint[17];
    int64_t schema_id, snapshot_id; /* snapshot: of the partitions */
    uint64_t partitions;            /* a digest of their set; 0: not known */
    bool pushed;
    char *problem; /* owned; NULL: none */
};
struct tarn_hms__push {
    struct tarn_op *op;
    struct tarn_hms__client *client;
    struct tarn_slice warehouse;
    const char *user;
    bool check; /* a whole pass: what is otherwise than it was left is a repair */
};
/* have: as it was found there, or NULL. known: of before, is changed. Fails only where the metastore is away. */
TARN_MUST struct tarn_status *tarn_hms__push_table(struct tarn_hms__push *push,
                                                   struct tarn_table *table,
                                                   const struct tarn_hms__source *source,
                                                   const struct tarn_hms__table *have,
                                                   struct tarn_hms__known *known);
TARN_MUST struct tarn_status *tarn_hms__push_database(struct tarn_hms__push *push,
                                                      const struct tarn_database_info *info,
                                                      struct tarn_hms__known *known);
/* Drops it where it is ours. */
TARN_MUST struct tarn_status *tarn_hms__remove_table(struct tarn_hms__push *push,
                                                     const struct tarn_hms__table *have,
                                                     const char *why);
/* With the tables of ours in it; itself where it is ours and nothing else is in it. */
TARN_MUST struct tarn_status *tarn_hms__remove_database(struct tarn_hms__push *push,
                                                        struct tarn_slice name);
/* Partitions of a table that has keys there (partitions.c). */
TARN_MUST struct tarn_status *tarn_hms__push_partitions(struct tarn_hms__push *push,
                                                        struct tarn_table *table,
                                                        const struct tarn_hms__table *want,
                                                        struct tarn_hms__known *known);
/* Logs it and keeps it as `known`'s problem; a METASTORE_UNAVAILABLE, or the op's end, is given back. Consumes the status. */
TARN_MUST struct tarn_status *tarn_hms__note_problem(struct tarn_hms__push *push, const char *name,
                                                     struct tarn_hms__known *known,
                                                     struct tarn_status *consumed);

/* --- known.c: what was pushed, of all databases and tables; of the pass that runs --- */
struct tarn_hms__memory {
    struct tarn_map *tables, *databases; /* "db\0table", "db" -> struct tarn_hms__known */
    bool swept; /* a check of this process has looked at all databases there */
};
void tarn_hms__memory_init(struct tarn_hms__memory *memory);
void tarn_hms__memory_fini(struct tarn_hms__memory *memory);
/* Of one of the two maps: made where it isn't there. */
struct tarn_hms__known *tarn_hms__known_of(struct tarn_map *map, struct tarn_slice key);
void tarn_hms__forget(struct tarn_map *map, struct tarn_slice key);
/* In the arena. */
struct tarn_slice tarn_hms__table_key(struct tarn_arena *arena, struct tarn_slice database,
                                      struct tarn_slice name);
/* Is that a table's key, of this database? *name is a part of the key. */
bool tarn_hms__is_in_database(struct tarn_slice key, struct tarn_slice database,
                              struct tarn_slice *name);

/* --- pass.c: all of it --- */
struct tarn_hms__pass { /* borrowed */
    struct tarn_op *op;
    struct tarn_catalog *catalog;
    struct tarn_hms__client *client;
    struct tarn_hms__memory *memory;
    const char *user;
    struct tarn_slice warehouse; /* the store's URI */
    bool check,
        names_changed; /* names_changed: since the last pass something else than commits came */
};
/* Fails where the metastore or the store is away, or the op ends: all that was pushed until then is there, and remembered. */
TARN_MUST struct tarn_status *tarn_hms__run_pass(struct tarn_hms__pass *p);

#endif
