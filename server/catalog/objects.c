#include "catalog/internal.h"

#include <stdio.h>

/* Views and functions: an object each in the store, made if absent; what changes or removes one holds `change`. */

static const struct kind {
    const char *word, *folder;
    enum tarn_reason not_found, exists;
} kinds[TARN_OBJECT_KIND_COUNT] = {
    [TARN_OBJECT_VIEW] = {"view", ".tarn/views", TARN_VIEW_NOT_FOUND, TARN_VIEW_EXISTS},
    [TARN_OBJECT_FUNCTION] = {"function", ".tarn/functions", TARN_FUNCTION_NOT_FOUND,
                              TARN_FUNCTION_EXISTS},
};

const char *tarn_catalog__object_word(enum tarn_object_kind kind)
{
    return kinds[kind].word;
}

static const char *folder_of(struct tarn_op *op, enum tarn_object_kind kind,
                             struct tarn_slice database)
{
    return tarn_arena_printf(op->arena, "%s/%.*s", kinds[kind].folder, TARN_SLICE_ARG(database));
}

static const char *key_of(struct tarn_op *op, struct tarn_object_ref ref)
{
    return tarn_arena_printf(op->arena, "%s/%.*s", folder_of(op, ref.kind, ref.database),
                             TARN_SLICE_ARG(ref.name));
}

static struct tarn_status *exists(struct tarn_object_ref ref)
{
    return tarn_status_new(kinds[ref.kind].exists, "%s %.*s.%.*s exists", kinds[ref.kind].word,
                           TARN_SLICE_ARG(ref.database), TARN_SLICE_ARG(ref.name));
}

static struct tarn_status *check_names(struct tarn_object_ref ref)
{
    TARN_TRY(tarn_catalog__check_name("database", ref.database));
    return tarn_catalog__check_name(kinds[ref.kind].word, ref.name);
}

static struct tarn_status *check_database(struct tarn_op *op, struct tarn_catalog *catalog,
                                          struct tarn_slice database)
{
    bool found;
    TARN_TRY(tarn_catalog__database_exists(op, catalog, database, &found));
    return found ? TARN_OK : tarn_catalog__no_database(database);
}

/* --- the object in the store --- */

static void print(const struct tarn_catalog_object *object, const struct tarn_json *body,
                  struct tarn_buf *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    tarn_json_set_str(json, "uuid", object->uuid);
    tarn_json_set_int(json, "created", object->created_ms);
    tarn_json_set_int(json, "updated", object->updated_ms);
    tarn_json_set(json, "body", tarn_json_copy(body));
    tarn_json_print(json, 2, out);
}

static void take_body(struct tarn_op *op, const struct tarn_json *body,
                      struct tarn_catalog_object *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_json_print(body, 0, &text);
    out->body = tarn_arena_copy(op->arena, tarn_buf_slice(&text));
}

static struct tarn_status *find(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_object_ref ref, struct tarn_buf *text)
{
    bool found;
    TARN_TRY(tarn_store_find(catalog->env->store, op, key_of(op, ref), &found, text));
    return found ? TARN_OK
                 : tarn_status_new(kinds[ref.kind].not_found, "there is no %s %.*s.%.*s",
                                   kinds[ref.kind].word, TARN_SLICE_ARG(ref.database),
                                   TARN_SLICE_ARG(ref.name));
}

static struct tarn_status *parse(struct tarn_slice text, struct tarn_catalog_object *out,
                                 struct tarn_json **body)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_TRY(tarn_json_parse(text, &json));
    struct tarn_slice uuid = tarn_json_text(tarn_json_find(json, "uuid"));
    const struct tarn_json *inner = tarn_json_find(json, "body");
    if (!tarn_uuid_valid(uuid) || inner == NULL)
        return tarn_status_new(TARN_JSON_MALFORMED, "no valid uuid, or no body");
    TARN_TRY(tarn_catalog__check_body(out->ref.kind, inner));
    snprintf(out->uuid, sizeof out->uuid, "%.*s", TARN_SLICE_ARG(uuid));
    out->created_ms = tarn_json_int(tarn_json_find(json, "created"));
    out->updated_ms = tarn_json_int(tarn_json_find(json, "updated"));
    *body = tarn_json_copy(inner);
    return TARN_OK;
}

/* *body is owned. */
static struct tarn_status *read(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_object_ref ref, struct tarn_catalog_object *out,
                                struct tarn_json **body)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_TRY(find(op, catalog, ref, &text));
    *out = (struct tarn_catalog_object){.ref = ref};
    out->ref.database = tarn_arena_copy(op->arena, ref.database);
    out->ref.name = tarn_arena_copy(op->arena, ref.name);
    struct tarn_status *s = parse(tarn_buf_slice(&text), out, body);
    return tarn_status_wrap(tarn_status_as(s, TARN_OBJECT_DAMAGED), "%s", key_of(op, ref));
}

struct tarn_status *tarn_catalog_object(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_object_ref ref, struct tarn_catalog_object *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *body = NULL;
    TARN_TRY(check_names(ref));
    TARN_TRY(check_database(op, catalog, ref.database));
    TARN_TRY(read(op, catalog, ref, out, &body));
    take_body(op, body, out);
    return TARN_OK;
}

struct tarn_status *tarn_catalog_objects(struct tarn_op *op, struct tarn_catalog *catalog,
                                         enum tarn_object_kind kind, struct tarn_slice database,
                                         struct tarn_table_info **out, size_t *count)
{
    struct tarn_object *objects;
    size_t object_count;
    TARN_TRY(tarn_catalog__check_name("database", database));
    TARN_TRY(check_database(op, catalog, database));
    const char *folder = folder_of(op, kind, database);
    TARN_TRY(tarn_store_list(catalog->env->store, op, folder, false, &objects, &object_count));
    struct tarn_table_info *list = tarn_arena_calloc(op->arena, object_count + 1, sizeof *list);
    size_t prefix = strlen(folder) + 1;
    database = tarn_arena_copy(op->arena, database);
    *count = 0;
    for (size_t i = 0; i < object_count; i++) {
        struct tarn_slice name =
            tarn_slice_of(objects[i].key.data + prefix, objects[i].key.size - prefix);
        struct tarn_status *s = tarn_catalog__check_name(kinds[kind].word, name);
        if (s == TARN_OK && !objects[i].is_folder)
            list[(*count)++] = (struct tarn_table_info){.database = database, .name = name};
        tarn_status_free(s); /* what can't be named here is not shown */
    }
    *out = list;
    return TARN_OK;
}

/* --- changing; each of these holds `change` --- */

static struct tarn_status *check_no_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                          struct tarn_object_ref ref)
{
    bool there;
    if (ref.kind != TARN_OBJECT_VIEW)
        return TARN_OK;
    TARN_TRY(tarn_catalog__is_table(op, catalog->env->store,
                                    tarn_catalog__table_key(op, ref.database, ref.name), &there));
    if (there)
        return tarn_status_new(TARN_TABLE_EXISTS, "table %s exists",
                               tarn_catalog__full_name(op, ref.database, ref.name));
    return tarn_catalog__check_no_entry(op, catalog, ref.database, ref.name);
}

struct tarn_status *tarn_catalog__check_no_view(struct tarn_op *op, struct tarn_catalog *catalog,
                                                struct tarn_slice database, struct tarn_slice name)
{
    struct tarn_object_ref ref = {TARN_OBJECT_VIEW, database, name};
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    bool found;
    TARN_TRY(tarn_store_find(catalog->env->store, op, key_of(op, ref), &found, &text));
    return found ? exists(ref) : TARN_OK;
}

static struct tarn_status *create(struct tarn_op *op, struct tarn_catalog *catalog,
                                  struct tarn_object_ref ref, struct tarn_slice text)
{
    bool created;
    TARN_TRY(check_database(op, catalog, ref.database));
    TARN_TRY(check_no_table(op, catalog, ref));
    TARN_TRY(tarn_store_put_if_absent(catalog->env->store, op, key_of(op, ref), text, &created));
    return created ? TARN_OK : exists(ref);
}

static struct tarn_status *parse_body(enum tarn_object_kind kind, struct tarn_slice text,
                                      struct tarn_json **out)
{
    if (text.size > TARN_OBJECT_SIZE_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "the %s has %zu bytes; %d is the limit",
                               kinds[kind].word, text.size, TARN_OBJECT_SIZE_MAX);
    TARN_TRY(tarn_json_parse(text, out));
    return tarn_catalog__check_body(kind, *out);
}

struct tarn_status *tarn_catalog_create_object(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_object_ref ref, struct tarn_slice body,
                                               struct tarn_catalog_object *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_TRY(check_names(ref));
    TARN_TRY(parse_body(ref.kind, body, &json));
    *out = (struct tarn_catalog_object){.ref = ref};
    tarn_uuid_random(out->uuid);
    out->created_ms = out->updated_ms = tarn_clock_wall_ms();
    take_body(op, json, out);
    print(out, json, &text);
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = create(op, catalog, ref, tarn_buf_slice(&text));
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *alter(struct tarn_op *op, struct tarn_catalog *catalog,
                                 struct tarn_object_ref ref,
                                 const struct tarn_object_change *changes, size_t count,
                                 struct tarn_catalog_object *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *body = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_TRY(read(op, catalog, ref, out, &body));
    TARN_TRY(tarn_status_wrap(tarn_catalog__change_body(op, ref.kind, body, changes, count),
                              "%s %.*s.%.*s", kinds[ref.kind].word, TARN_SLICE_ARG(ref.database),
                              TARN_SLICE_ARG(ref.name)));
    take_body(op, body, out);
    if (out->body.size > TARN_OBJECT_SIZE_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "the %s would have %zu bytes; %d is the limit",
                               kinds[ref.kind].word, out->body.size, TARN_OBJECT_SIZE_MAX);
    out->updated_ms = tarn_clock_wall_ms();
    print(out, body, &text);
    return tarn_store_put(catalog->env->store, op, key_of(op, ref), tarn_buf_slice(&text));
}

struct tarn_status *tarn_catalog_alter_object(struct tarn_op *op, struct tarn_catalog *catalog,
                                              struct tarn_object_ref ref,
                                              const struct tarn_object_change *changes,
                                              size_t count, struct tarn_catalog_object *out)
{
    TARN_TRY(check_names(ref));
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = check_database(op, catalog, ref.database);
    if (s == TARN_OK)
        s = alter(op, catalog, ref, changes, count, out);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

/* Is what has the new name the same one, left there by a rename that was cut off? */
static struct tarn_status *check_same(struct tarn_op *op, struct tarn_catalog *catalog,
                                      struct tarn_object_ref from, struct tarn_object_ref to,
                                      struct tarn_slice text)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf there = {0};
    bool found;
    if (tarn_slice_equal(from.database, to.database) && tarn_slice_equal(from.name, to.name))
        return exists(to);
    TARN_TRY(tarn_store_find(catalog->env->store, op, key_of(op, to), &found, &there));
    return found && tarn_slice_equal(tarn_buf_slice(&there), text) ? TARN_OK : exists(to);
}

static struct tarn_status *move(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_object_ref from, struct tarn_object_ref to)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_TRY(check_database(op, catalog, from.database));
    TARN_TRY(find(op, catalog, from, &text));
    struct tarn_status *s = create(op, catalog, to, tarn_buf_slice(&text));
    if (tarn_status_reason(s) == kinds[to.kind].exists) {
        tarn_status_free(s);
        s = check_same(op, catalog, from, to, tarn_buf_slice(&text));
    }
    TARN_TRY(s);
    return tarn_store_remove(catalog->env->store, op, key_of(op, from));
}

struct tarn_status *tarn_catalog_rename_object(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_object_ref ref,
                                               struct tarn_slice to_database,
                                               struct tarn_slice to_name)
{
    struct tarn_object_ref to = {ref.kind, to_database, to_name};
    TARN_TRY(check_names(ref));
    TARN_TRY(check_names(to));
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = move(op, catalog, ref, to);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *drop(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_object_ref ref)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_TRY(check_database(op, catalog, ref.database));
    TARN_TRY(find(op, catalog, ref, &text));
    return tarn_store_remove(catalog->env->store, op, key_of(op, ref));
}

struct tarn_status *tarn_catalog_drop_object(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_object_ref ref)
{
    TARN_TRY(check_names(ref));
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = drop(op, catalog, ref);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

/* --- all of a database --- */

struct tarn_status *tarn_catalog__check_no_objects(struct tarn_op *op, struct tarn_catalog *catalog,
                                                   struct tarn_slice database)
{
    for (int kind = 0; kind < TARN_OBJECT_KIND_COUNT; kind++) {
        struct tarn_table_info *list;
        size_t count;
        TARN_TRY(tarn_catalog_objects(op, catalog, kind, database, &list, &count));
        if (count > 0)
            return tarn_status_new(TARN_DATABASE_NOT_EMPTY, "database %.*s has %zu %ss",
                                   TARN_SLICE_ARG(database), count, kinds[kind].word);
    }
    return TARN_OK;
}

struct tarn_status *tarn_catalog__drop_objects(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_slice database)
{
    for (int kind = 0; kind < TARN_OBJECT_KIND_COUNT; kind++)
        TARN_TRY(tarn_catalog__remove_below(op, catalog, folder_of(op, kind, database)));
    return tarn_catalog__remove_entries(op, catalog, database);
}
