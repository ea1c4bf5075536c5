/*
 * internal - what the files of room `rest` share: endpoints, bodies in and out, errors.
 */
#ifndef TARN_REST_INTERNAL_H
#define TARN_REST_INTERNAL_H

#include "rest/rest.h"
#include "service/objects.h"
#include "service/subscribe.h"

/* One request on its way. */
struct tarn_rest__call {
    struct tarn_op *op;
    struct tarn_service *service;
    const struct tarn_http_request *request;
    struct tarn_http_response *response;
    struct tarn_json *body; /* an object; empty where nothing was sent */
};
typedef struct tarn_status *(*tarn_rest_fn)(struct tarn_rest__call *call);
struct tarn_rest__endpoint {
    const char *method;
    const char *path; /* behind /v1/{prefix} */
    tarn_rest_fn fn;
};
/* Ends with one whose method is NULL. */
extern const struct tarn_rest__endpoint tarn_rest__database_endpoints[],
    tarn_rest__table_endpoints[], tarn_rest__snapshot_endpoints[], tarn_rest__tag_endpoints[],
    tarn_rest__branch_endpoints[], tarn_rest__partition_endpoints[], tarn_rest__view_endpoints[],
    tarn_rest__function_endpoints[], tarn_rest__consumer_endpoints[],
    tarn_rest__permission_endpoints[];
#define TARN_REST_END                                                                              \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }

/* --- errors.c --- */
/* Says what the error is about, unless that is said already. type: of the protocol, "TABLE". Consumes; OK stays OK. */
struct tarn_status *tarn_rest__about(struct tarn_status *consumed, const char *type,
                                     struct tarn_slice name);

/* The caller's fault, whatever it is elsewhere: 400. Consumes. */
struct tarn_status *tarn_rest__refuse(struct tarn_status *consumed);

/* --- body.c: what was sent ---
 * A member that isn't there and one that is null are the same. What is there and of another kind: INVALID_ARGUMENT. Text is lent
 * by the call's body. */
TARN_MUST struct tarn_status *tarn_rest__parse(struct tarn_slice text, struct tarn_json **out);
/* Absent where it isn't there. */
TARN_MUST struct tarn_status *tarn_rest__text(const struct tarn_json *object, const char *key,
                                              struct tarn_slice *out);
/* It must be there. */
TARN_MUST struct tarn_status *tarn_rest__need_text(const struct tarn_json *object, const char *key,
                                                   struct tarn_slice *out);
/* TARN_SNAPSHOT_NONE where it isn't there. */
TARN_MUST struct tarn_status *tarn_rest__integer(const struct tarn_json *object, const char *key,
                                                 int64_t *out);
TARN_MUST struct tarn_status *tarn_rest__bool(const struct tarn_json *object, const char *key,
                                              bool otherwise, bool *out);
/* NULL where it isn't there. */
TARN_MUST struct tarn_status *tarn_rest__object(const struct tarn_json *object, const char *key,
                                                const struct tarn_json **out);
TARN_MUST struct tarn_status *tarn_rest__array(const struct tarn_json *object, const char *key,
                                               const struct tarn_json **out);
TARN_MUST struct tarn_status *tarn_rest__texts(struct tarn_op *op, const struct tarn_json *object,
                                               const char *key, const struct tarn_slice **out,
                                               size_t *count);
/* Numbers and booleans are taken by their text, as Java does. */
TARN_MUST struct tarn_status *tarn_rest__pairs(struct tarn_op *op, const struct tarn_json *object,
                                               const char *key, const struct tarn_pair **out,
                                               size_t *count);
/* maxResults, pageToken and the pattern of that name (NULL: none) from the query. listed: the type an error is about. */
TARN_MUST struct tarn_status *tarn_rest__page(const struct tarn_rest__call *call,
                                              const char *pattern, const char *listed,
                                              struct tarn_page *out);
/* {database} and {table} of the path. A branch is a table; a system table isn't there. */
TARN_MUST struct tarn_status *tarn_rest__ref(const struct tarn_rest__call *call,
                                             struct tarn_table_ref *out);
/* {"database": …, "object": …} */
TARN_MUST struct tarn_status *tarn_rest__identifier(const struct tarn_json *object, const char *key,
                                                    struct tarn_table_ref *out);

/* --- body.c: what is answered --- */
void tarn_rest__answer(struct tarn_rest__call *call, const struct tarn_json *json);
/* [{"database": …, "object": …}] */
struct tarn_json *tarn_rest__from_infos(const struct tarn_table_info *list, size_t count);
/* {"<key>": <array, consumed>, "nextPageToken": next_token or, where that is "", null} */
void tarn_rest__answer_list(struct tarn_rest__call *call, const char *key, struct tarn_json *array,
                            const char *next_token);
struct tarn_json *tarn_rest__from_pairs(const struct tarn_pair *pairs, size_t count);
struct tarn_json *tarn_rest__from_texts(const struct tarn_slice *texts, size_t count);
/* owner, createdAt, createdBy, updatedAt, updatedBy */
void tarn_rest__set_audit(struct tarn_json *object, struct tarn_slice owner, int64_t created_ms,
                          int64_t updated_ms);

/* --- schema.c --- */
struct tarn_json *tarn_rest__from_schema(const struct tarn_schema *schema);
TARN_MUST struct tarn_status *tarn_rest__to_schema(struct tarn_op *op, const struct tarn_json *json,
                                                   struct tarn_table_request *out);

/* --- objects.c: what views and functions have in common --- */
struct tarn_rest__kind {
    enum tarn_object_kind kind;
    const char *type, *argument;           /* "VIEW", "view" */
    const char *names, *details, *pattern; /* "views", "viewDetails", "viewNamePattern" */
    struct tarn_json *(*print)(const struct tarn_catalog_object *object,
                               struct tarn_json *body /* consumed */);
};
TARN_MUST struct tarn_status *tarn_rest__list_objects(struct tarn_rest__call *call,
                                                      const struct tarn_rest__kind *kind);
TARN_MUST struct tarn_status *tarn_rest__list_object_details(struct tarn_rest__call *call,
                                                             const struct tarn_rest__kind *kind);
TARN_MUST struct tarn_status *tarn_rest__list_all_objects(struct tarn_rest__call *call,
                                                          const struct tarn_rest__kind *kind);
TARN_MUST struct tarn_status *tarn_rest__create_object(struct tarn_rest__call *call,
                                                       const struct tarn_rest__kind *kind,
                                                       struct tarn_slice name,
                                                       const struct tarn_json *body);
TARN_MUST struct tarn_status *tarn_rest__get_object(struct tarn_rest__call *call,
                                                    const struct tarn_rest__kind *kind);
TARN_MUST struct tarn_status *tarn_rest__alter_object(struct tarn_rest__call *call,
                                                      const struct tarn_rest__kind *kind);
TARN_MUST struct tarn_status *tarn_rest__drop_object(struct tarn_rest__call *call,
                                                     const struct tarn_rest__kind *kind);
/* A map that isn't there is an empty one: clients look into it. */
void tarn_rest__need_map(struct tarn_json *object, const char *key);

/* --- changes.c --- */
/* The body of an alter. Lies in the op's arena and the JSON. */
TARN_MUST struct tarn_status *tarn_rest__to_changes(struct tarn_op *op,
                                                    const struct tarn_json *body,
                                                    struct tarn_schema_change **out, size_t *count);

#endif
