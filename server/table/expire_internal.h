/*
 * expire_internal - one round of an expiry: what may go (expire_leaving.c), less what something that stays names (expire_roots.c).
 * Which snapshots, and the deed, are in expire.c.
 */
#ifndef TARN_TABLE_EXPIRE_INTERNAL_H
#define TARN_TABLE_EXPIRE_INTERNAL_H

#include "table/expire.h"
#include "table/index.h"

#define TARN_EXPIRE_ROUND 1000         /* snapshots, where the table says nothing else */
#define TARN_EXPIRE_ROUND_FILES 100000 /* a round with more data files takes no further snapshot */

enum tarn_leaving_kind { /* in the order in which they go */
                         TARN_LEAVING_DATA,
                         TARN_LEAVING_CHANGELOG,
                         TARN_LEAVING_INDEX,
                         TARN_LEAVING_STATISTICS,
                         TARN_LEAVING_MANIFEST,
                         TARN_LEAVING_LIST, /* and index manifests: what names files goes behind them */
                         TARN_LEAVING_KINDS
};
struct tarn_leaving { /* a file that goes unless something that stays names it */
    enum tarn_leaving_kind kind;
    bool kept;
    const char *key; /* in the store; NULL: it lies elsewhere */
    const char **extra_keys;
    size_t extra_count;
    int64_t size, made_ms;        /* made_ms: local wall clock, or TARN_FILE_NONE */
    struct tarn_slice bucket_key; /* of data and changelog files: as in the index */
    struct tarn_slice name;
    int net; /* ADDs less DELETEs in the version that is looked at */
};

struct tarn_leave {     /* one round */
    struct tarn_op *op; /* of the round, with its arena */
    struct tarn_table *table;
    const struct tarn_table_view *view;
    int64_t begin, end; /* snapshots begin <= id < end go */
    int64_t head_id;    /* what the index had reached */
    struct tarn_slice end_json, head_json;
    struct tarn_map *files; /* bucket_key and name -> struct tarn_leaving */
    struct tarn_map *meta;  /* key in the store -> struct tarn_leaving */
    struct tarn_map *seen;  /* manifests of roots -> struct hits (expire_roots.c) */
    size_t data_count;
    bool has_index;               /* index manifests or statistics are among them */
    struct tarn_slice *tag_names; /* that were looked at */
    size_t tag_count;
    struct tarn_slice *branch_names;
    size_t branch_count;
};

/* --- expire_leaving.c --- */
/* All that begin <= id < end may take along; `end` becomes smaller where that is too much for a round. */
TARN_MUST struct tarn_status *tarn_leave__collect(struct tarn_leave *leave);
/* bucket_key and name: the key of `files`. Appends. */
void tarn_leave__file_key(const struct tarn_manifest_entry *entry, struct tarn_buf *key);
/* What is retained is in the index, what isn't any more in the folder. Lies in the op's arena. */
TARN_MUST struct tarn_status *tarn_leave__snapshot(struct tarn_leave *leave, struct tarn_op *op,
                                                   int64_t id, bool *found,
                                                   struct tarn_snapshot *out);
TARN_MUST struct tarn_status *tarn_leave__index_manifest(
    struct tarn_op *op, struct tarn_table *table, struct tarn_slice name, struct tarn_arena *arena,
    struct tarn_index_file **out, size_t *count);
/* NULL: it lies elsewhere. */
TARN_MUST struct tarn_status *tarn_leave__index_key(struct tarn_leave *leave,
                                                    const struct tarn_index_file *file,
                                                    const char **out);

bool tarn_leave__is_damaged(const struct tarn_status *s);

/* --- expire_leftover.c --- */
/* *begin: the first of those below the earliest that an expiry which was cut off left; earliest: none. Others stay. any: something goes above
 * them, too. */
TARN_MUST struct tarn_status *tarn_expire__find_leftover(struct tarn_op *op,
                                                         struct tarn_table *table, int64_t earliest,
                                                         bool any, int64_t *begin);

/* --- expire_roots.c --- */
/* What stays is marked as kept. */
TARN_MUST struct tarn_status *tarn_leave__keep(struct tarn_leave *leave);
/* What snapshots after `from`, as the index has them, name. */
TARN_MUST struct tarn_status *tarn_leave__keep_indexed(struct tarn_leave *leave, int64_t from);
/* Are tags and branches still those that were looked at? */
TARN_MUST struct tarn_status *tarn_leave__check_refs(struct tarn_leave *leave, bool *same);

#endif
