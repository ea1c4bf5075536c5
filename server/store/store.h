/*
 * store - objects by key: the one way to reach a warehouse. local, memory; faulty wraps any (faulty.h).
 *
 * Shape    a key is a path relative to the store's root, "db.db/t/snapshot/snapshot-1": UTF-8, no
 *          leading or double slash, no "." or ".." segment (PATH_INVALID). Objects appear whole or
 *          not at all: what a writer has not finished is not visible to anyone. Folders are what
 *          keys make of them: no object, and no object can stand where one is (PATH_INVALID). Not
 *          yet published bytes, and what a crash left of them, lie under ".<name>.<uuid>.tmp".
 * Units    mtime_ms: since 1970; 0 where the store doesn't know. size: bytes.
 *          Segments of a key have at most 255 bytes, a key some 3800 (PATH_INVALID).
 * Threads  any that may wait; a reader or writer belongs to one at a time (read_at: any).
 * Errors   OBJECT_NOT_FOUND, STORE_DENIED, DISK_FULL, STORE_UNAVAILABLE, IO_ERROR, and
 *          OUTCOME_UNKNOWN from put_if_absent alone: it may or may not have happened; read it back.
 *          A failed fsync is an error for good; a later success says nothing about it. Where it was a
 *          folder's, the store takes nothing more (IO_ERROR), since what is there can't be known; nor does
 *          it give what was created meanwhile: reading back must not take it for durable.
 */
#ifndef TARN_STORE_H
#define TARN_STORE_H

#include "base/base.h"
#include "store/faulty.h"

struct tarn_store;
struct tarn_store_reader;
struct tarn_store_writer;

struct tarn_object {
    struct tarn_slice key; /* relative to the store's root */
    int64_t size;
    int64_t mtime_ms;
    bool is_folder; /* of a list with delimiter: a common prefix, key without the slash */
};

struct tarn_new_object {
    const char *key;
    struct tarn_slice body;
    /* Not to be created yet: a put_if_absent of just this comes soon, and a driver may write it beforehand, where
     * nobody sees it. Only the last of many. */
    bool foreseen;
};

/* One driver. Documented here, held by test/unit/store/conformance: every driver passes it. */
struct tarn_store_ops {
    const char *scheme; /* "file", "memory", "faulty" */
    /* Appends the whole object to *out; at most size_max bytes (TOO_LARGE). */
    struct tarn_status *(*get)(void *self, struct tarn_op *op, const char *key, size_t size_max,
                               struct tarn_buf *out);
    struct tarn_status *(*stat)(void *self, struct tarn_op *op, const char *key, bool *found,
                                struct tarn_object *out);
    /* A call is a round trip: callers overlap what they can. */
    bool remote;
    /* Keys are names, not paths: an object can stand where a folder is, move_folder goes object by object, and
     * of an open reader's object only the small or what was read is kept when it is removed or replaced. */
    bool flat;
    /* Replaces or creates; durable when it returns. For objects of ours only. */
    struct tarn_status *(*put)(void *self, struct tarn_op *op, const char *key,
                               struct tarn_slice body);
    /* As put, but a crash may bring back what was there before, or leave nothing or an empty object. For numbers
     * that are hints. NULL: put. */
    struct tarn_status *(*put_hint)(void *self, struct tarn_op *op, const char *key,
                                    struct tarn_slice body);
    /* Creates objects under names that nobody else uses, all at once: for the time of one. Durable when
     * it returns; after an error any of them may be there. NULL: create, append and finish, one by one. */
    struct tarn_status *(*put_many)(void *self, struct tarn_op *op,
                                    const struct tarn_new_object *objects, size_t count);
    /* The put_if_absent of what was foreseen won't come. NULL: put_many isn't shown one. */
    void (*unforesee)(void *self, const char *key);
    /* Creates `key` unless it exists; *created false means somebody else's is there. Never
     * overwrites. Whichever it is, it is durable when it returns: so putting again settles what is
     * unknown, where reading back only shows it. */
    struct tarn_status *(*put_if_absent)(void *self, struct tarn_op *op, const char *key,
                                         struct tarn_slice body, bool *created);
    /* Deleting what isn't there is success, and a folder is no object. Durable when it returns: a
     * roll-back must not come back to life. */
    struct tarn_status *(*remove)(void *self, struct tarn_op *op, const char *key);
    /* Several at once; after an error any of them may be gone. NULL: one by one. */
    struct tarn_status *(*remove_many)(void *self, struct tarn_op *op, const char *const *keys,
                                       size_t count);
    /* Objects right under folder `prefix` ("" is the root) and its folders, in order of key; names
     * in the op's arena, each with a NUL behind it. recursive: all objects below, no folders. A
     * folder that doesn't exist is empty. Hidden names are shown; links to folders are not entered. */
    struct tarn_status *(*list)(void *self, struct tarn_op *op, const char *prefix, bool recursive,
                                struct tarn_object **out, size_t *count);
    /* Moves a folder (a table) in one step or fails; used by rename of tables. OBJECT_NOT_FOUND: no
     * such folder; OBJECT_EXISTS: `to` is there, as whatever. */
    struct tarn_status *(*move_folder)(void *self, struct tarn_op *op, const char *from,
                                       const char *to);
    /* Flat stores: carries moves through that a crash or a failure cut off. happened_only: those that left
     * something behind, whose new place is the one that counts. NULL: there are none. */
    struct tarn_status *(*finish_moves)(void *self, struct tarn_op *op, bool happened_only);
    /* Whether the store keeps what is promised here, found out by trying; CONFIG_INVALID says what it lacks. NULL:
     * it does. */
    struct tarn_status *(*probe)(void *self, struct tarn_op *op);
    /* Removes empty folders at and below key; stores without folders do nothing. */
    struct tarn_status *(*prune)(void *self, struct tarn_op *op, const char *key);

    struct tarn_status *(*open)(void *self, struct tarn_op *op, const char *key, void **reader,
                                int64_t *size);
    struct tarn_status *(*read_at)(void *reader, struct tarn_op *op, int64_t offset, size_t size,
                                   uint8_t *out, size_t *got); /* got < size only at the end */
    void (*reader_close)(void *reader);

    struct tarn_status *(*create)(void *self, struct tarn_op *op, const char *key, void **writer);
    struct tarn_status *(*append)(void *writer, struct tarn_op *op, struct tarn_slice bytes);
    /* Makes the object visible and durable; OBJECT_EXISTS rather than replacing one. The writer is
     * closed, whatever the outcome. */
    struct tarn_status *(*finish)(void *writer, struct tarn_op *op);
    void (*abort)(void *writer); /* nothing was ever visible; closes */

    void (*close)(void *self); /* self may be half open */
};

/* Where drivers read their sections, [s3] and [hdfs], from: kept, it must outlive all stores. Once, before
 * there are threads; without it the defaults hold. */
void tarn_store_configure(const struct tarn_conf *conf);
/* The same as "TARN_S3_REGION=..." for the environment of workers, which open stores by themselves; ends with
 * NULL. */
const char *const *tarn_store_environment(struct tarn_arena *arena);
/* Opens by URI: "file:///abs/path" (created if absent; also Hadoop's "file:/abs/path"), "memory:",
 * "s3://bucket/prefix" (also "s3a:") or "hdfs://host:port/path". With TARN_STORE_FAULTS in the environment: a faulty one
 * around it. */
TARN_MUST struct tarn_status *tarn_store_open(const char *uri, struct tarn_store **out);
/* What open would say of the URI alone, without touching anything. */
TARN_MUST struct tarn_status *tarn_store_check_uri(const char *uri);
struct tarn_store *tarn_store_new(const struct tarn_store_ops *ops, void *self); /* for drivers */
struct tarn_store *tarn_store_ref(struct tarn_store *store);
void tarn_store_unref(struct tarn_store *store);
void tarn_store_drop(struct tarn_store **store);
const char *tarn_store_uri(const struct tarn_store *store); /* as opened, no trailing slash */
/* What `uri` says lies in this store; false: it lies elsewhere. *key is a part of `uri`. */
bool tarn_store_key_of(const struct tarn_store *store, struct tarn_slice uri,
                       struct tarn_slice *key);

/* The driver's calls, with keys checked. `get` bounds: see TARN_STORE_GET_MAX. */
#define TARN_STORE_GET_MAX ((size_t)256 << 20)
TARN_MUST struct tarn_status *tarn_store_get(struct tarn_store *s, struct tarn_op *op,
                                             const char *key, struct tarn_buf *out);
/* As get, where it is ordinary that the object isn't there. */
TARN_MUST struct tarn_status *tarn_store_find(struct tarn_store *s, struct tarn_op *op,
                                              const char *key, bool *found, struct tarn_buf *out);
TARN_MUST struct tarn_status *tarn_store_stat(struct tarn_store *s, struct tarn_op *op,
                                              const char *key, bool *found,
                                              struct tarn_object *out /* may be NULL */);
TARN_MUST struct tarn_status *tarn_store_put(struct tarn_store *s, struct tarn_op *op,
                                             const char *key, struct tarn_slice body);
TARN_MUST struct tarn_status *tarn_store_put_hint(struct tarn_store *s, struct tarn_op *op,
                                                  const char *key, struct tarn_slice body);
TARN_MUST struct tarn_status *tarn_store_put_many(struct tarn_store *s, struct tarn_op *op,
                                                  const struct tarn_new_object *objects,
                                                  size_t count);
/* What was foreseen won't be put: what a driver wrote ahead for it goes. */
void tarn_store_unforesee(struct tarn_store *s, const char *key);
bool tarn_store_is_remote(const struct tarn_store *s);
/* See `flat`: a folder is moved in many steps there. */
bool tarn_store_is_flat(const struct tarn_store *s);
/* Asked once, before anything is entrusted to it. */
TARN_MUST struct tarn_status *tarn_store_probe(struct tarn_store *s, struct tarn_op *op);
/* By the warehouse's owner: all at its start; those that happened before a folder of such a name is made. */
TARN_MUST struct tarn_status *tarn_store_finish_moves(struct tarn_store *s, struct tarn_op *op,
                                                      bool happened_only);
TARN_MUST struct tarn_status *tarn_store_put_if_absent(struct tarn_store *s, struct tarn_op *op,
                                                       const char *key, struct tarn_slice body,
                                                       bool *created);
TARN_MUST struct tarn_status *tarn_store_remove(struct tarn_store *s, struct tarn_op *op,
                                                const char *key);
TARN_MUST struct tarn_status *tarn_store_remove_many(struct tarn_store *s, struct tarn_op *op,
                                                     const char *const *keys, size_t count);
TARN_MUST struct tarn_status *tarn_store_list(struct tarn_store *s, struct tarn_op *op,
                                              const char *prefix, bool recursive,
                                              struct tarn_object **out, size_t *count);
TARN_MUST struct tarn_status *tarn_store_move_folder(struct tarn_store *s, struct tarn_op *op,
                                                     const char *from, const char *to);
TARN_MUST struct tarn_status *tarn_store_prune(struct tarn_store *s, struct tarn_op *op,
                                               const char *key);

TARN_MUST struct tarn_status *tarn_store_reader_open(struct tarn_store *s, struct tarn_op *op,
                                                     const char *key,
                                                     struct tarn_store_reader **out);
int64_t tarn_store_reader_size(const struct tarn_store_reader *reader);
TARN_MUST struct tarn_status *tarn_store_reader_read_at(struct tarn_store_reader *reader,
                                                        struct tarn_op *op, int64_t offset,
                                                        size_t size, uint8_t *out, size_t *got);
void tarn_store_reader_close(struct tarn_store_reader *reader);

TARN_MUST struct tarn_status *tarn_store_writer_open(struct tarn_store *s, struct tarn_op *op,
                                                     const char *key,
                                                     struct tarn_store_writer **out);
TARN_MUST struct tarn_status *tarn_store_writer_append(struct tarn_store_writer *writer,
                                                       struct tarn_op *op, struct tarn_slice bytes);
TARN_MUST struct tarn_status *tarn_store_writer_finish(struct tarn_store_writer *consumed,
                                                       struct tarn_op *op);
void tarn_store_writer_abort(struct tarn_store_writer *consumed); /* NULL is fine */

/* Is this what a call says while the store can't be reached? Then what is known of it may do for those who only look. */
bool tarn_store_is_away(const struct tarn_status *s);

#endif
