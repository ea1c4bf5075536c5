/*
 * hdfs - the driver of "hdfs://host:port/path", over WebHDFS. Shared between its files only.
 *
 *   hdfs.c           the driver's calls            hdfs_ask.c       requests, again where that helps
 *   hdfs_write.c     drafts, writers, many         hdfs_answer.c    JSON of answers and errors
 *   hdfs_read.c      readers, lists                hdfs_settings.c  section [hdfs], the URI
 *
 * Protocol  Creation is CREATE under a hidden name that is new each time, ".<name>.<uuid>.tmp", then RENAME with
 *           renameoptions=NONE: HDFS' rename2, which fails where anything has the new name. (The older rename,
 *           without options, answers false there, and moves *into* a folder.) The NameNode takes one
 *           rename at a time, so one racer wins; the probe shows that this one does so.
 * Doubt     A hidden name is given once, and only its own rename takes it away. So when an answer was lost, the
 *           hidden file tells: gone, it has been renamed; there, it has not, and may be tried again.
 * Durable   when the write pipeline has acknowledged (dfs.namenode.replication.min replicas), the file is closed
 *           and the NameNode has synced its log. DataNodes sync their disks only with dfs.datanode.synconclose.
 * Two steps CREATE, APPEND and OPEN are sent on to a DataNode that the NameNode names; with http to http, with
 *           https to https alone. Nobody else sends us anywhere.
 * Errors    AccessControlException and 401 are STORE_DENIED; "not there" is a FileNotFoundException and nothing else.
 *           A standby is not asked again before the others.
 * Readers   read by inode where the store tells it: never the bytes of a file that took the name later. What
 *           was deleted can't be read on.
 */
#ifndef TARN_STORE_HDFS_H
#define TARN_STORE_HDFS_H

#include <pthread.h>

#include "exec/fetch.h"
#include "store/internal.h"

/* --- settings --- */

#define TARN_HDFS_ENDPOINTS_MAX 8

struct tarn_hdfs_settings { /* texts are owned */
    char *root;             /* of the URI: "/a/b", or "" for the root of the file system */
    char *endpoints[TARN_HDFS_ENDPOINTS_MAX]; /* "http://host:port" */
    size_t endpoint_count;
    char *user;
    char *token_file; /* "": none */
    char *ca_file;    /* "": the system's */
    int64_t connect_timeout_ms, idle_timeout_ms;
    size_t chunk_size;
    int retries, connections;
};
TARN_MUST struct tarn_status *tarn_hdfs__settings_read(const struct tarn_conf *conf,
                                                       const char *uri,
                                                       struct tarn_hdfs_settings *out);
void tarn_hdfs__settings_fini(struct tarn_hdfs_settings *settings);

/* --- answers --- */

struct tarn_hdfs_status {   /* of a file or folder */
    struct tarn_slice name; /* within its folder; "" for the one that was asked for */
    int64_t size;
    int64_t mtime_ms;
    int64_t file_id; /* 0: the store doesn't tell */
    bool is_folder;
};

struct tarn_hdfs_page { /* of a list */
    struct tarn_hdfs_status *entries;
    size_t count;
    int64_t remaining;
};

/* All borrow from the arena. STORE_UNAVAILABLE: that isn't WebHDFS. */
TARN_MUST struct tarn_status *tarn_hdfs__decode_status(struct tarn_slice json,
                                                       struct tarn_arena *arena,
                                                       struct tarn_hdfs_status *out);
TARN_MUST struct tarn_status *tarn_hdfs__decode_page(struct tarn_slice json,
                                                     struct tarn_arena *arena,
                                                     struct tarn_hdfs_page *out);
TARN_MUST struct tarn_status *tarn_hdfs__decode_boolean(struct tarn_slice json, bool *out);
TARN_MUST struct tarn_status *tarn_hdfs__decode_location(struct tarn_slice json,
                                                         struct tarn_arena *arena, char **out);
/* May `location` be gone to from `endpoint`? */
bool tarn_hdfs__may_follow(const char *endpoint, const char *location);

struct tarn_hdfs_failure {
    enum tarn_reason reason;
    const char *exception; /* "AccessControlException"; "" where the answer has none */
    const char *message;   /* its first line */
    bool standby;          /* another NameNode is to be asked */
    bool again;            /* nothing happened, and it may pass */
};
void tarn_hdfs__decode_failure(int http_status, struct tarn_slice body, struct tarn_arena *arena,
                               struct tarn_hdfs_failure *out);

/* --- requests --- */

struct tarn_hdfs {
    struct tarn_hdfs_settings settings;
    struct tarn_fetch *fetch;
    atomic_size_t active;  /* the endpoint that answered last */
    pthread_mutex_t mutex; /* guards the token */
    char *token;           /* of the file, or NULL */
    int64_t token_mtime_ns;
};

struct tarn_hdfs_request {
    const char *method, *op; /* "PUT", "CREATE" */
    const char *path;        /* absolute in HDFS, not encoded */
    const char *query;       /* "&overwrite=false", encoded; NULL: none */
    bool two_steps;          /* its body goes to, or its answer comes from, a DataNode */
    bool once;               /* isn't sent again where it may have arrived */
    struct tarn_slice body;
    size_t answer_max;
};

struct tarn_hdfs_outcome {
    bool unsure; /* the request may have been carried out; with an error of STORE_UNAVAILABLE */
    char exception[64];
};

/* Appends the answer's body to *out. `outcome` may be NULL. */
TARN_MUST struct tarn_status *tarn_hdfs__ask(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                             const struct tarn_hdfs_request *request,
                                             struct tarn_buf *out,
                                             struct tarn_hdfs_outcome *outcome);
/* Waits a little before another try; longer each time. The op's end ends it. */
void tarn_hdfs__back_off(struct tarn_op *op, int try_count);
/* "/root/key"; "/" for the root itself. In the op's arena. */
char *tarn_hdfs__path(const struct tarn_hdfs *hdfs, struct tarn_op *op, const char *key);

TARN_MUST struct tarn_status *tarn_hdfs__find(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                              const char *path, bool *found,
                                              struct tarn_hdfs_status *out);
TARN_MUST struct tarn_status *tarn_hdfs__delete(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                                const char *path);
TARN_MUST struct tarn_status *tarn_hdfs__make_folder(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                                     const char *path);

/* --- writing --- */

enum tarn_hdfs_rename { TARN_HDFS_KEEP, TARN_HDFS_REPLACE };

/* Gives `from`, a file that nobody else knows, the name `to`. *done false: `to` is there already, and `from` is
 * still what it was. OUTCOME_UNKNOWN: nobody can say. */
TARN_MUST struct tarn_status *tarn_hdfs__rename(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                                const char *from, const char *to,
                                                enum tarn_hdfs_rename how, bool *done);
/* A new hidden file beside `path`; its name in the op's arena. */
TARN_MUST struct tarn_status *tarn_hdfs__create_draft(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                                      const char *path, struct tarn_slice body,
                                                      char **draft);
/* A draft, or a folder that is empty. Best effort, also after the op's end. NULL is fine. */
void tarn_hdfs__discard(struct tarn_hdfs *hdfs, const char *draft);
/* OUTCOME_UNKNOWN as STORE_UNAVAILABLE: for all but put_if_absent. Consumes. */
TARN_MUST struct tarn_status *tarn_hdfs__known(struct tarn_status *status);
TARN_MUST struct tarn_status *tarn_hdfs__put(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                             const char *key, struct tarn_slice body,
                                             enum tarn_hdfs_rename how, bool *done);

struct tarn_status *tarn_hdfs__put_many(void *self, struct tarn_op *op,
                                        const struct tarn_new_object *objects, size_t count);
struct tarn_status *tarn_hdfs__remove_many(void *self, struct tarn_op *op, const char *const *keys,
                                           size_t count);
struct tarn_status *tarn_hdfs__create(void *self, struct tarn_op *op, const char *key,
                                      void **writer);
struct tarn_status *tarn_hdfs__append(void *writer, struct tarn_op *op, struct tarn_slice bytes);
struct tarn_status *tarn_hdfs__finish(void *writer, struct tarn_op *op);
void tarn_hdfs__abort(void *writer);

/* --- reading --- */

struct tarn_status *tarn_hdfs__get(void *self, struct tarn_op *op, const char *key, size_t size_max,
                                   struct tarn_buf *out);
struct tarn_status *tarn_hdfs__open_reader(void *self, struct tarn_op *op, const char *key,
                                           void **reader, int64_t *size);
struct tarn_status *tarn_hdfs__read_at(void *reader, struct tarn_op *op, int64_t offset,
                                       size_t size, uint8_t *out, size_t *got);
void tarn_hdfs__close_reader(void *reader);
struct tarn_status *tarn_hdfs__list(void *self, struct tarn_op *op, const char *prefix,
                                    bool recursive, struct tarn_object **out, size_t *count);
struct tarn_status *tarn_hdfs__prune(void *self, struct tarn_op *op, const char *key);

#endif
