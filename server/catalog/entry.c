#include "catalog/internal.h"

#include <stdio.h>

/* The objects .tarn/tables/<database>/<name>: reading and writing them, and which tables they make known. */

#define FOLDER ".tarn/tables"

static const char *key_of(struct tarn_op *op, struct tarn_slice database, struct tarn_slice name)
{
    return tarn_arena_printf(op->arena, FOLDER "/%.*s/%.*s", TARN_SLICE_ARG(database),
                             TARN_SLICE_ARG(name));
}

const char *tarn_catalog__uuid_folder(struct tarn_op *op, const char *uuid)
{
    return tarn_arena_printf(op->arena, "tables/%s", uuid);
}

/* --- text --- */

static struct tarn_status *print(const struct tarn_catalog_entry *entry, struct tarn_buf *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    TARN_OWN(tarn_json_drop) struct tarn_json *schema = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    bool inside = entry->folder.data != NULL;
    tarn_json_set_str(json, "uuid", entry->uuid);
    tarn_json_set_int(json, "created", entry->created_ms);
    tarn_json_set_int(json, "updated", entry->updated_ms);
    tarn_json_set(json, inside ? "folder" : "location",
                  tarn_json_string(inside ? entry->folder : entry->location));
    if (entry->has_schema) {
        tarn_schema_encode(&entry->schema, &text);
        TARN_TRY(tarn_json_parse(tarn_buf_slice(&text), &schema));
        tarn_json_set(json, "schema", tarn_move(schema));
    }
    if (entry->to_name.data != NULL) {
        struct tarn_json *to = tarn_json_object();
        tarn_json_set(to, "database", tarn_json_string(entry->to_database));
        tarn_json_set(to, "table", tarn_json_string(entry->to_name));
        tarn_json_set(json, "renamed_to", to);
    }
    tarn_json_print(json, 2, out);
    if (out->size > TARN_OBJECT_SIZE_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "the table's entry has %zu bytes; %d is the limit",
                               out->size, TARN_OBJECT_SIZE_MAX);
    return TARN_OK;
}

static struct tarn_slice text_of(struct tarn_op *op, const struct tarn_json *json, const char *key)
{
    struct tarn_slice text = tarn_json_text(tarn_json_find(json, key));
    return text.data == NULL ? text : tarn_arena_copy(op->arena, text);
}

static struct tarn_status *parse(struct tarn_op *op, struct tarn_slice text,
                                 struct tarn_catalog_entry *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf schema = {0};
    TARN_TRY(tarn_json_parse(text, &json));
    struct tarn_slice uuid = tarn_json_text(tarn_json_find(json, "uuid"));
    const struct tarn_json *inner = tarn_json_find(json, "schema");
    out->folder = text_of(op, json, "folder");
    out->location = text_of(op, json, "location");
    if (!tarn_uuid_valid(uuid) || (out->folder.size > 0) == (out->location.size > 0))
        return tarn_status_new(TARN_JSON_MALFORMED, "no valid uuid, or not one place");
    snprintf(out->uuid, sizeof out->uuid, "%.*s", TARN_SLICE_ARG(uuid));
    out->created_ms = tarn_json_int(tarn_json_find(json, "created"));
    out->updated_ms = tarn_json_int(tarn_json_find(json, "updated"));
    out->has_schema = inner != NULL;
    if (inner == NULL)
        return TARN_OK;
    const struct tarn_json *to = tarn_json_find(json, "renamed_to");
    if (to != NULL) {
        out->to_database = text_of(op, to, "database");
        out->to_name = text_of(op, to, "table");
        TARN_TRY(tarn_catalog__check_name("database", out->to_database));
        TARN_TRY(tarn_catalog__check_name("table", out->to_name));
    }
    tarn_json_print(inner, 0, &schema);
    return tarn_schema_decode(tarn_arena_copy(op->arena, tarn_buf_slice(&schema)), op->arena,
                              &out->schema);
}

struct tarn_status *tarn_catalog__read_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_slice database, struct tarn_slice name,
                                             bool *found, struct tarn_catalog_entry *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    const char *key = key_of(op, database, name);
    *out = (struct tarn_catalog_entry){.database = tarn_arena_copy(op->arena, database),
                                       .name = tarn_arena_copy(op->arena, name)};
    TARN_TRY(tarn_store_find(catalog->env->store, op, key, found, &text));
    struct tarn_status *s = *found ? parse(op, tarn_buf_slice(&text), out) : TARN_OK;
    return tarn_status_wrap(tarn_status_as(s, TARN_OBJECT_DAMAGED), "%s", key);
}

/* --- which of another kind are known --- */

static void known_key(struct tarn_slice database, struct tarn_slice name, struct tarn_buf *key)
{
    tarn_buf_add_slice(key, database);
    tarn_buf_add_byte(key, 0); /* no name holds it */
    tarn_buf_add_slice(key, name);
}

void tarn_catalog__know_entry(struct tarn_catalog *catalog, const struct tarn_catalog_entry *entry)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    known_key(entry->database, entry->name, &key);
    pthread_mutex_lock(&catalog->lock);
    free(tarn_map_set(catalog->entries, tarn_buf_slice(&key), tarn_strdup(entry->uuid)));
    pthread_mutex_unlock(&catalog->lock);
}

static void unknow(struct tarn_catalog *catalog, struct tarn_slice database, struct tarn_slice name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    known_key(database, name, &key);
    pthread_mutex_lock(&catalog->lock);
    free(tarn_map_remove(catalog->entries, tarn_buf_slice(&key)));
    pthread_mutex_unlock(&catalog->lock);
}

bool tarn_catalog__known_entry(struct tarn_catalog *catalog, struct tarn_slice database,
                               struct tarn_slice name, char uuid[TARN_UUID_SIZE])
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    known_key(database, name, &key);
    pthread_mutex_lock(&catalog->lock);
    const char *known = tarn_map_find(catalog->entries, tarn_buf_slice(&key));
    if (known != NULL)
        memcpy(uuid, known, TARN_UUID_SIZE);
    pthread_mutex_unlock(&catalog->lock);
    return known != NULL;
}

bool tarn_catalog_find_entry_names(struct tarn_op *op, struct tarn_catalog *catalog,
                                   struct tarn_slice uuid, struct tarn_slice *database,
                                   struct tarn_slice *name)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *known;
    bool found = false;
    pthread_mutex_lock(&catalog->lock);
    while (!found && tarn_map_next(catalog->entries, &cursor, &key, &known)) {
        found = tarn_slice_is(uuid, known);
        if (found) {
            key = tarn_arena_copy(op->arena, key);
            size_t n = (size_t)((const uint8_t *)memchr(key.data, 0, key.size) - key.data);
            *database = tarn_slice_of(key.data, n);
            *name = tarn_slice_of(key.data + n + 1, key.size - n - 1);
        }
    }
    pthread_mutex_unlock(&catalog->lock);
    return found;
}

/* --- which are there --- */

/* The new name has it: what is left under the old one must not come back once that is dropped. */
static struct tarn_status *check_renamed(struct tarn_op *op, struct tarn_catalog *catalog,
                                         const struct tarn_catalog_entry *entry, bool *found)
{
    struct tarn_catalog_entry to;
    bool there;
    TARN_TRY(
        tarn_catalog__read_entry(op, catalog, entry->to_database, entry->to_name, &there, &to));
    *found = !there || strcmp(to.uuid, entry->uuid) != 0;
    return *found ? TARN_OK : tarn_catalog__remove_entry(op, catalog, entry->database, entry->name);
}

struct tarn_status *tarn_catalog__live_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_slice database, struct tarn_slice name,
                                             bool *found, struct tarn_catalog_entry *out)
{
    struct tarn_identity_file identity;
    TARN_TRY(tarn_catalog__read_entry(op, catalog, database, name, found, out));
    out->is_compacted = true;
    if (*found && out->to_name.data != NULL)
        TARN_TRY(check_renamed(op, catalog, out, found));
    out->to_database = out->to_name = tarn_slice_str(NULL);
    if (!*found || out->has_schema || out->folder.data == NULL)
        return TARN_OK;
    TARN_TRY(tarn_catalog__read_identity(op, catalog, tarn_arena_str(op->arena, out->folder), found,
                                         &identity));
    if (*found)
        out->is_compacted = identity.is_compacted;
    *found = *found && strcmp(identity.uuid, out->uuid) == 0 &&
             tarn_slice_is(identity.name, tarn_catalog__full_name(op, database, name));
    return TARN_OK;
}

struct tarn_status *tarn_catalog__entry_names(struct tarn_op *op, struct tarn_catalog *catalog,
                                              struct tarn_slice database, struct tarn_slice **out,
                                              size_t *count)
{
    struct tarn_object *objects;
    size_t object_count;
    const char *folder = tarn_arena_printf(op->arena, FOLDER "/%.*s", TARN_SLICE_ARG(database));
    TARN_TRY(tarn_store_list(catalog->env->store, op, folder, false, &objects, &object_count));
    *out = tarn_arena_calloc(op->arena, object_count + 1, sizeof **out);
    size_t prefix = strlen(folder) + 1;
    *count = 0;
    for (size_t i = 0; i < object_count; i++) {
        struct tarn_slice name =
            tarn_slice_of(objects[i].key.data + prefix, objects[i].key.size - prefix);
        struct tarn_status *s = tarn_catalog__check_name("table", name);
        if (s == TARN_OK && !objects[i].is_folder)
            (*out)[(*count)++] = name;
        tarn_status_free(s);
    }
    return TARN_OK;
}

struct tarn_status *tarn_catalog__put_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                            const struct tarn_catalog_entry *entry)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    bool created;
    TARN_TRY(print(entry, &text));
    TARN_TRY(tarn_store_put_if_absent(catalog->env->store, op,
                                      key_of(op, entry->database, entry->name),
                                      tarn_buf_slice(&text), &created));
    if (!created)
        return tarn_status_new(TARN_TABLE_EXISTS, "another writer made table %s first",
                               tarn_catalog__full_name(op, entry->database, entry->name));
    if (entry->has_schema)
        tarn_catalog__know_entry(catalog, entry);
    return TARN_OK;
}

struct tarn_status *tarn_catalog__replace_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                                const struct tarn_catalog_entry *entry)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_TRY(print(entry, &text));
    return tarn_store_put(catalog->env->store, op, key_of(op, entry->database, entry->name),
                          tarn_buf_slice(&text));
}

struct tarn_status *tarn_catalog__remove_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_slice database, struct tarn_slice name)
{
    unknow(catalog, database, name);
    return tarn_store_remove(catalog->env->store, op, key_of(op, database, name));
}

struct tarn_status *tarn_catalog__remove_entries(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_slice database)
{
    return tarn_catalog__remove_below(
        op, catalog, tarn_arena_printf(op->arena, FOLDER "/%.*s", TARN_SLICE_ARG(database)));
}

struct tarn_status *tarn_catalog__check_no_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_slice database, struct tarn_slice name)
{
    struct tarn_catalog_entry entry;
    bool there, live;
    TARN_TRY(tarn_catalog__read_entry(op, catalog, database, name, &there, &entry));
    if (!there)
        return TARN_OK;
    TARN_TRY(tarn_catalog__live_entry(op, catalog, database, name, &live, &entry));
    return live ? tarn_status_new(TARN_TABLE_EXISTS, "table %s exists",
                                  tarn_catalog__full_name(op, database, name))
                : tarn_catalog__remove_entry(op, catalog, database, name);
}

void tarn_catalog__begin_entry(struct tarn_slice database, struct tarn_slice name,
                               struct tarn_catalog_entry *out)
{
    *out = (struct tarn_catalog_entry){.database = database, .name = name};
    tarn_uuid_random(out->uuid);
    out->created_ms = out->updated_ms = tarn_clock_wall_ms();
}
