/*
 * Shared between the files of room store only.
 */
#ifndef TARN_STORE_INTERNAL_H
#define TARN_STORE_INTERNAL_H

#include <stdatomic.h>

#include "store/store.h"

struct tarn_store {
    const struct tarn_store_ops *ops;
    void *self; /* owned: the driver's, ended by ops->close */
    char *uri;  /* owned */
    atomic_int ref_count;
};

/* What tarn_store_uri says: slashes at the end are left out. tarn_store_open does it for every driver. */
void tarn_store__set_uri(struct tarn_store *store, const char *uri);

/* A driver is a line of `drivers` in store.c; its open gets the configuration, valid during the call alone.
 * The local driver: `path` is absolute and is created with its parents. */
TARN_MUST struct tarn_status *tarn_store__local_open(const char *path, struct tarn_store **out);
/* From here on the store resolves keys as on a kernel without openat2: no symlinks at all. */
void tarn_store__local_without_openat2(struct tarn_store *store);

TARN_MUST struct tarn_status *tarn_store__hdfs_check(const struct tarn_conf *conf, const char *uri);
TARN_MUST struct tarn_status *tarn_store__hdfs_open(const struct tarn_conf *conf, const char *uri,
                                                    struct tarn_store **out);

struct tarn_store *tarn_store__memory_new(void);

TARN_MUST struct tarn_status *tarn_store__s3_check(const struct tarn_conf *conf, const char *uri);
TARN_MUST struct tarn_status *tarn_store__s3_open(const struct tarn_conf *conf, const char *uri,
                                                  struct tarn_store **out);

/* Rules from the text of TARN_STORE_FAULTS; the form is explained in faulty.h. */
#define TARN_STORE_FAULTS_MAX 64
TARN_MUST struct tarn_status *tarn_store__faulty_parse(struct tarn_store *faulty, const char *text);

/* Waits so long, or until the caller gives up. */
void tarn_store__wait_ms(const struct tarn_op *op, int64_t ms);

/* PATH_INVALID unless `key` is one. may_be_root: "" is the root folder. */
TARN_MUST struct tarn_status *tarn_store__key_check(const char *key, bool may_be_root);

/* Sorts by key, bytewise. */
void tarn_store__sort(struct tarn_object *objects, size_t count);

/* --- walk.c: lists and prunes, for drivers whose folders are listed one by one --- */
struct tarn_walk {
    void *driver;
    struct tarn_op *op;
    bool recursive;
    /* Adds what lies right in the folder; nothing where it isn't there. */
    struct tarn_status *(*list_folder)(struct tarn_walk *walk, const char *folder);
    struct tarn_object *objects; /* owned; keys in the op's arena. With the folders */
    size_t count, capacity;
};
void tarn_store__walk_fini(struct tarn_walk *walk);
/* In the op's arena, ending with a NUL. */
const char *tarn_store__walk_key(struct tarn_walk *walk, const char *folder,
                                 struct tarn_slice name);
TARN_MUST struct tarn_status *tarn_store__walk_add(struct tarn_walk *walk, const char *folder,
                                                   const struct tarn_object *object);
TARN_MUST struct tarn_status *tarn_store__walk_list(struct tarn_walk *walk, const char *folder,
                                                    struct tarn_object **out, size_t *count);
/* From below upwards; a folder that still holds something stays. */
TARN_MUST struct tarn_status *tarn_store__walk_prune(
    struct tarn_walk *walk, const char *folder,
    struct tarn_status *(*remove_if_empty)(struct tarn_walk *walk, const char *folder));

#endif
