/*
 * s3 - the driver of "s3://bucket/prefix": any store that speaks S3's protocol. Shared between its files only.
 *
 *   s3.c             the driver's calls          s3_ask.c          requests, again where that helps
 *   s3_read.c        readers                     s3_sign.c         Signature Version 4
 *   s3_write.c       writers, several at once    s3_credentials.c  where the keys come from
 *   s3_move.c        a folder to another place   s3_xml.c          answers' XML, element by element
 *   s3_probe.c       does it keep its promises?  s3_answer.c       the answers that are used
 *   s3_settings.c    section [s3], the URI
 *
 * Promises  S3 answers after a change is durable, and lists and reads see it at once (since 2020 also
 *           Amazon's). Creation is the conditional PUT, If-None-Match: *. Each creation carries an id of its own
 *           as metadata: where an attempt's answer was lost, the object tells whether that attempt made it.
 * Errors    403 is STORE_DENIED, never "not there"; "not there" is a 404 that says NoSuchKey. What may pass is
 *           tried again (s3_ask.c); then STORE_UNAVAILABLE with the store's last word.
 * Keys      "prefix/key", at most TARN_S3_KEY_MAX bytes (PATH_INVALID). They are flat: a name may be an object
 *           and a folder. Objects whose names are no keys of ours (a console's "folder/") are not shown.
 */
#ifndef TARN_STORE_S3_H
#define TARN_STORE_S3_H

#include <pthread.h>

#include "exec/fetch.h"
#include "store/internal.h"

#define TARN_S3_KEY_MAX ((size_t)1024)
#define TARN_S3_TOKENS_MAX 500.0 /* of the retry budget */

/* --- settings --- */

enum tarn_s3_source {               /* of credentials */
                      TARN_S3_AUTO, /* the first of the next four that is configured */
                      TARN_S3_STATIC,
                      TARN_S3_ENVIRONMENT,
                      TARN_S3_WEB_IDENTITY,
                      TARN_S3_FILE,
                      TARN_S3_INSTANCE,
                      TARN_S3_ANONYMOUS,
};

struct tarn_s3_settings {  /* texts are owned, never NULL */
    char *bucket, *prefix; /* no slashes at the ends; "" is the bucket's root */
    char *endpoint;        /* "https://host:port" */
    char *host;            /* of the endpoint: "host:port", without a scheme's own port */
    char *region;
    bool path_style;
    bool single_writer; /* nobody else commits here: no conditional PUT is needed */
    char *access_key, *secret_key_file, *session_token_file;
    char *credentials_file, *profile;
    char *role_arn, *web_identity_token_file, *sts_endpoint;
    char *instance_endpoint;
    char *ca_file;
    enum tarn_s3_source source;
    int64_t connect_timeout_ms, idle_timeout_ms, part_size;
    int retries, connections;
};
/* Checks everything that can be said without asking anybody. */
TARN_MUST struct tarn_status *tarn_s3__settings_read(const struct tarn_conf *conf, const char *uri,
                                                     struct tarn_s3_settings *out);
void tarn_s3__settings_fini(struct tarn_s3_settings *settings);

/* --- credentials --- */

struct tarn_s3_keys { /* immutable, counted; the secret is wiped at the end */
    atomic_int ref_count;
    char *access_key, *secret_key, *session_token; /* session_token: "" where there is none */
    int64_t expires_ms;                            /* INT64_MAX: never */
};
struct tarn_s3_keys *tarn_s3__keys_new(struct tarn_slice access_key, struct tarn_slice secret_key,
                                       struct tarn_slice session_token, int64_t expires_ms);
void tarn_s3__keys_drop(struct tarn_s3_keys **keys);

struct tarn_s3_credentials;
struct tarn_s3_credentials *tarn_s3__credentials_new(const struct tarn_s3_settings *settings,
                                                     struct tarn_fetch *fetch);
void tarn_s3__credentials_free(struct tarn_s3_credentials *credentials);
/* A reference to the present keys; NULL: anonymous. `refused`: keys that a store called expired or unknown;
 * if they are still the present ones, they are fetched anew. */
TARN_MUST struct tarn_status *tarn_s3__credentials_get(struct tarn_s3_credentials *credentials,
                                                       struct tarn_op *op,
                                                       const struct tarn_s3_keys *refused,
                                                       struct tarn_s3_keys **out);
/* Of a credentials file's text, the named profile. VALUE_INVALID names the line. */
TARN_MUST struct tarn_status *tarn_s3__profile_find(struct tarn_slice text, const char *profile,
                                                    struct tarn_s3_keys **out);

/* --- signing --- */

struct tarn_s3_signing {
    const char *method, *path;     /* encoded */
    const struct tarn_pair *query; /* raw; any order */
    size_t query_count;
    const struct tarn_pair *headers; /* all that are signed, names in lower case; any order */
    size_t header_count;
    const char *payload_hash; /* hex, or "UNSIGNED-PAYLOAD" */
    const char *region, *service;
    const char *access_key, *secret_key;
    int64_t time_ms;
};
#define TARN_S3_TIME_SIZE 17 /* "20130524T000000Z" */
#define TARN_S3_HASH_SIZE 65
void tarn_s3__time(int64_t time_ms, char out[TARN_S3_TIME_SIZE]);
void tarn_s3__hash(struct tarn_slice body, char out[TARN_S3_HASH_SIZE]);
/* "a=b&c=": encoded and in order, as signed and as sent. */
void tarn_s3__query(const struct tarn_pair *query, size_t count, struct tarn_buf *out);
/* The value of header Authorization. */
void tarn_s3__sign(const struct tarn_s3_signing *signing, struct tarn_buf *out);

/* --- XML --- */

#define TARN_S3_XML_DEPTH_MAX 16

enum tarn_xml_event { TARN_XML_START, TARN_XML_TEXT, TARN_XML_END, TARN_XML_DONE };

/* Reads elements and text; attributes, comments and processing instructions are skipped, document types and
 * entities of their own refused. Names are given without a namespace's prefix. */
struct tarn_xml {
    struct tarn_slice text;
    size_t at;
    int depth;
    struct tarn_slice open[TARN_S3_XML_DEPTH_MAX]; /* names as written */
    bool self_closed, begun;
    struct tarn_slice name; /* START, END */
    struct tarn_slice
        value; /* TEXT: decoded, in the arena; not empty, not only blanks between elements */
    struct tarn_arena *arena;
};
void tarn_xml_init(struct tarn_xml *xml, struct tarn_slice text, struct tarn_arena *arena);
/* VALUE_INVALID names the byte. */
TARN_MUST struct tarn_status *tarn_xml_next(struct tarn_xml *xml, enum tarn_xml_event *event);

/* --- answers; texts lie in the arena. VALUE_INVALID says what is wrong. --- */

struct tarn_s3_error {
    struct tarn_slice code, message, region;
};
/* An error of S3 or of STS; *found false: it is none. */
TARN_MUST struct tarn_status *tarn_s3__decode_error(struct tarn_slice xml, struct tarn_arena *arena,
                                                    bool *found, struct tarn_s3_error *out);

struct tarn_s3_page {
    struct tarn_object *objects; /* whole keys, folders with their slash */
    size_t count, capacity;
    bool more;
    struct tarn_slice token; /* where to go on */
};
/* Appends to out->objects. */
TARN_MUST struct tarn_status *tarn_s3__decode_page(struct tarn_slice xml, struct tarn_arena *arena,
                                                   struct tarn_s3_page *out);
/* The text of the element `name` right below the root, whose name begins with `root`. */
TARN_MUST struct tarn_status *tarn_s3__decode_one(struct tarn_slice xml, struct tarn_arena *arena,
                                                  const char *root, const char *name,
                                                  struct tarn_slice *out);
TARN_MUST struct tarn_status *tarn_s3__decode_role(struct tarn_slice xml, struct tarn_arena *arena,
                                                   struct tarn_s3_keys **out);
/* "Fri, 24 May 2013 00:00:00 GMT" */
bool tarn_s3__http_date(struct tarn_slice text, int64_t *wall_ms);
/* "bytes 3-6/10"; "bytes *" with a size has neither first nor last (-1). */
bool tarn_s3__content_range(struct tarn_slice text, int64_t *first, int64_t *last, int64_t *size);

/* --- the store and its requests --- */

struct tarn_s3 {
    struct tarn_s3_settings settings;
    struct tarn_fetch *fetch;
    struct tarn_s3_credentials *credentials;
    atomic_bool plain_removals; /* the store refuses If-Match where it removes */
    atomic_llong skew_ms;       /* the store's clock minus ours */
    pthread_mutex_t lock;       /* guards tokens */
    double tokens;              /* what is left of the retry budget */
};

/* One request, and what came of it. */
struct tarn_s3_request {
    const char *method;
    const char *key;           /* relative to the root; NULL: the bucket */
    struct tarn_pair query[6]; /* raw */
    size_t query_count;
    struct tarn_pair headers[4]; /* names in lower case */
    size_t header_count;
    struct tarn_slice body;
    size_t answer_max; /* 0: TARN_FETCH_ANSWER_MAX */
    /* Of a 2xx answer's body; a failure counts as one that may pass. NULL: any body is right. */
    struct tarn_status *(*decode)(void *arg, struct tarn_op *op, struct tarn_slice body);
    void *decode_arg;

    /* out */
    int status;             /* 2xx, 404 (NoSuchKey, NoSuchUpload), 412 or 416 */
    struct tarn_slice code; /* the store's word for it, of 4xx */
    struct tarn_fetch_answer http;
    struct tarn_buf answer;      /* the body; owned by the caller, also after an error */
    bool ambiguous;              /* an earlier attempt may have been carried out unseen */
    struct tarn_status *failure; /* owned: of tarn_s3__ask_all */
};
void tarn_s3__add_query(struct tarn_s3_request *request, const char *name, struct tarn_slice value);
void tarn_s3__add_header(struct tarn_s3_request *request, const char *name, const char *value);
void tarn_s3__request_drop(struct tarn_s3_request *request);
/* Any other answer is an error. */
TARN_MUST struct tarn_status *tarn_s3__ask(struct tarn_s3 *s3, struct tarn_op *op,
                                           struct tarn_s3_request *request);
/* All at once, each with its own outcome in `failure`. */
void tarn_s3__ask_all(struct tarn_s3 *s3, struct tarn_op *op, struct tarn_s3_request *requests,
                      size_t count);
/* The first failure, or OK; frees the others. */
TARN_MUST struct tarn_status *tarn_s3__ask_every(struct tarn_s3 *s3, struct tarn_op *op,
                                                 struct tarn_s3_request *requests, size_t count);
/* PATH_INVALID where the whole key is too long for S3. */
TARN_MUST struct tarn_status *tarn_s3__key_check(const struct tarn_s3 *s3, const char *key);
TARN_NONNULL char *tarn_s3__full_key(const struct tarn_s3 *s3, struct tarn_op *op, const char *key);

/* --- the driver's calls that lie in files of their own --- */

/* Creates `key`; *created false: somebody else's is there. `id`: what the object is known by. */
TARN_MUST struct tarn_status *tarn_s3__create(struct tarn_s3 *s3, struct tarn_op *op,
                                              const char *key, struct tarn_slice body,
                                              bool *created);
#define TARN_S3_ID_HEADER "x-amz-meta-tarn-id"
/* It is there, and an attempt of ours to create it went unanswered: was it that one? OUTCOME_UNKNOWN where that
 * can't be found out. */
TARN_MUST struct tarn_status *tarn_s3__whose(struct tarn_s3 *s3, struct tarn_op *op,
                                             const char *key, const char *id, bool *ours);
/* What is at `key`; *found false: nothing. etag and id lie in the op's arena; may be NULL. */
struct tarn_s3_meta {
    int64_t size, mtime_ms;
    struct tarn_slice etag, id;
};
TARN_MUST struct tarn_status *tarn_s3__look(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                            bool *found, struct tarn_s3_meta *out);
/* All objects below a prefix or right under it, as tarn_store_ops.list says. */
TARN_MUST struct tarn_status *tarn_s3__list(struct tarn_s3 *s3, struct tarn_op *op,
                                            const char *prefix, bool recursive,
                                            struct tarn_object **out, size_t *count);
/* Reads [offset, offset + size) of the object known by etag, in parallel pieces. */
TARN_MUST struct tarn_status *tarn_s3__read_range(struct tarn_s3 *s3, struct tarn_op *op,
                                                  const char *key, struct tarn_slice etag,
                                                  int64_t offset, size_t size, uint8_t *out);

struct tarn_status *tarn_s3__remove_many(void *self, struct tarn_op *op, const char *const *keys,
                                         size_t count);

struct tarn_status *tarn_s3__open_reader(void *self, struct tarn_op *op, const char *key,
                                         void **reader, int64_t *size);
struct tarn_status *tarn_s3__read_at(void *reader, struct tarn_op *op, int64_t offset, size_t size,
                                     uint8_t *out, size_t *got);
void tarn_s3__reader_close(void *reader);

struct tarn_status *tarn_s3__open_writer(void *self, struct tarn_op *op, const char *key,
                                         void **writer);
struct tarn_status *tarn_s3__append(void *writer, struct tarn_op *op, struct tarn_slice bytes);
struct tarn_status *tarn_s3__finish(void *writer, struct tarn_op *op);
void tarn_s3__abort(void *writer);
struct tarn_status *tarn_s3__put_many(void *self, struct tarn_op *op,
                                      const struct tarn_new_object *objects, size_t count);

struct tarn_status *tarn_s3__move_folder(void *self, struct tarn_op *op, const char *from,
                                         const char *to);
struct tarn_status *tarn_s3__finish_moves(void *self, struct tarn_op *op, bool happened_only);
struct tarn_status *tarn_s3__probe(void *self, struct tarn_op *op);

#endif
