/*
 * local - what the files of the local driver share: finding the place of a key, drafts of files, syncing
 * many at once, walking folders.
 *
 * A key never leads out of the root, whatever links lie on the way: openat2 with RESOLVE_BENEATH
 * sees to it, and where the kernel hasn't it, links are refused altogether.
 */
#ifndef TARN_STORE_LOCAL_H
#define TARN_STORE_LOCAL_H

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"

struct sync_crew;
struct doubt;
struct ready;
struct spares;

struct local {
    int root;               /* the root folder, open for reading */
    bool openat2;           /* the kernel has it */
    atomic_bool sync_lost;  /* a folder couldn't be synced: nothing is promised any more */
    struct sync_crew *crew; /* owned */
    struct spares *spares;  /* owned */
    pthread_mutex_t mutex;  /* guards all below */
    struct doubt *doubts;   /* owned */
    struct ready *ready;    /* owned: the newest first */
};

/* IO_ERROR where `key` was claimed and the sync of that was lost: it is there, but whoever reads it back must
 * not take that for durable. */
TARN_MUST struct tarn_status *tarn_store__local_trusted(struct local *local, const char *key);
void tarn_store__local_forget_doubts(struct local *local);

/* IO_ERROR once a sync of a folder has failed. */
TARN_MUST struct tarn_status *tarn_store__local_writable(const struct local *local,
                                                         const char *key);

/* The status of a failed system call: `what` is the verb, "write". */
TARN_MUST struct tarn_status *tarn_store__local_error(int error, const char *what, const char *key);
bool tarn_store__local_is_absent(int error); /* ENOENT, or a segment is no folder */

/* Opens what `key` names ("" is the root), never beyond the root. -1 and errno. */
int tarn_store__local_open_at(const struct local *local, const char *key, int flags);

/* Opens the folder that `key` lies in, *name its last segment (borrowed from key). create: makes
 * missing ones, and each is durable before anything is put into it. */
TARN_MUST struct tarn_status *tarn_store__local_open_parent(struct local *local, const char *key,
                                                            bool create, int *fd,
                                                            const char **name);

/* Opens the absolute `path` as a root, making it and its parents. */
TARN_MUST struct tarn_status *tarn_store__local_open_root(const char *path, int *fd);

/* --- drafts --- */

#define TARN_STORE_TEMPORARY_SIZE 256
#define TARN_STORE_FILE_MODE 0666 /* less the umask */

/* A file that has no name of its own yet. */
struct draft {
    struct local *local; /* borrowed */
    int folder;
    int file;
    const char *name; /* of the object; borrowed from key */
    char *key;        /* owned */
    char temporary[TARN_STORE_TEMPORARY_SIZE];
    bool failed; /* a write or sync went wrong: never to be published */
    bool synced; /* all that was written */
    bool named;  /* by draft_name */
    bool spare;  /* from the spare files, and without any name until draft_name */
};

/* One that failed to begin is ended by fini like any other. */
TARN_MUST struct tarn_status *tarn_store__draft_begin(struct draft *draft, struct local *local,
                                                      const char *key);
/* The same, from a spare file where there is one. For draft_name, unless hidden: for draft_claim. */
TARN_MUST struct tarn_status *tarn_store__draft_begin_small(struct draft *draft,
                                                            struct local *local, const char *key,
                                                            bool hidden);
TARN_MUST struct tarn_status *tarn_store__draft_write(struct draft *draft, struct tarn_slice bytes);
TARN_MUST struct tarn_status *tarn_store__draft_sync(struct draft *draft);
/* What the sync said, where somebody else did it: 0 or errno. */
TARN_MUST struct tarn_status *tarn_store__draft_synced(struct draft *draft, int error);
/* put_if_absent: syncs, names, syncs the folder. */
TARN_MUST struct tarn_status *tarn_store__draft_claim(struct draft *draft, bool *created);
/* Names without replacing; nothing is synced. unname takes it back. */
TARN_MUST struct tarn_status *tarn_store__draft_name(struct draft *draft);
void tarn_store__draft_unname(struct draft *draft);
/* Syncs, names without replacing, syncs the folder. */
TARN_MUST struct tarn_status *tarn_store__draft_publish(struct draft *draft);
void tarn_store__draft_fini(struct draft *draft);

/* --- spare files --- */

/* For folders below the root; what can't have spare files is found out. */
struct spares *tarn_store__spares_new(int root);
void tarn_store__spares_free(struct spares *spares);
/* An empty file without a name that was made in the folder, for the caller to own; -1: there is none (yet). */
int tarn_store__spare_take(struct spares *spares, int folder);
/* Names it, without replacing: 0 or errno. */
int tarn_store__spare_link(int file, int folder, const char *name);

/* --- foreseen: drafts that are ready for their put_if_absent --- */

/* Keeps a synced draft of `body` (copied), and leaves *draft empty. */
void tarn_store__ready_keep(struct local *local, struct draft *draft, struct tarn_slice body);
/* The draft that was kept for this put, if there is one and the key still leads to its folder; *found false: none. */
TARN_MUST struct tarn_status *tarn_store__ready_claim(struct local *local, const char *key,
                                                      struct tarn_slice body, bool *found,
                                                      bool *created);
/* As struct tarn_store_ops' unforesee. */
void tarn_store__local_unforesee(void *self, const char *key);
void tarn_store__ready_forget(struct local *local);

TARN_MUST struct tarn_status *tarn_store__sync_folder(struct local *local, int folder,
                                                      const char *key);
TARN_MUST struct tarn_status *tarn_store__folder_synced(struct local *local, int error,
                                                        const char *key);
/* Makes durable that `name` is there; OUTCOME_UNKNOWN where that fails. PATH_INVALID: it is a folder. */
TARN_MUST struct tarn_status *tarn_store__sync_present(struct local *local, int folder,
                                                       const char *name, const char *key);
TARN_MUST TARN_NONNULL struct tarn_status *tarn_store__taken_by_folder(const char *key);
bool tarn_store__is_folder_at(int folder, const char *name);
bool tarn_store__is_same_folder(int a, int b);

/* --- many at once --- */

#define TARN_STORE_SYNC_THREADS_MAX 32 /* beyond it syncs wait for each other */
struct sync_crew *tarn_store__sync_crew_new(void);
void tarn_store__sync_crew_free(struct sync_crew *crew); /* NULL is fine */
/* fsync of each; errors[i] is 0 or errno. Returns when all are done. */
void tarn_store__sync_all(struct sync_crew *crew, const int *fds, int *errors, size_t count);
TARN_MUST struct tarn_status *tarn_store__local_put_many(void *self, struct tarn_op *op,
                                                         const struct tarn_new_object *objects,
                                                         size_t count);

TARN_MUST struct tarn_status *tarn_store__local_remove_many(void *self, struct tarn_op *op,
                                                            const char *const *keys, size_t count);

/* Walking folders: the driver's list and prune. */
TARN_MUST struct tarn_status *tarn_store__local_list(void *self, struct tarn_op *op,
                                                     const char *prefix, bool recursive,
                                                     struct tarn_object **out, size_t *count);
TARN_MUST struct tarn_status *tarn_store__local_prune(void *self, struct tarn_op *op,
                                                      const char *key);

static inline int64_t tarn_store__mtime_ms(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static inline void tarn_store__close_drop(int *fd) /* for TARN_OWN */
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

#endif
