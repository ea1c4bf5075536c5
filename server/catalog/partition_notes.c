#include "catalog/partition_notes.h"

#include "catalog/internal.h"

#define FOLDER ".tarn/partitions"

static const char *key_of(struct tarn_op *op, const struct tarn_table *table,
                          struct tarn_slice branch)
{
    const char *uuid = tarn_table_main_uuid(table);
    return branch.size == 0 ? tarn_arena_printf(op->arena, FOLDER "/%s/main", uuid)
                            : tarn_arena_printf(op->arena, FOLDER "/%s/branch-%.*s", uuid,
                                                TARN_SLICE_ARG(branch));
}

static const char *own_key(struct tarn_op *op, const struct tarn_table *table)
{
    return key_of(op, table, tarn_slice_str(tarn_table_branch(table)));
}

static int by_path(const void *a, const void *b)
{
    return tarn_slice_compare(((const struct tarn_partition_note *)a)->path,
                              ((const struct tarn_partition_note *)b)->path);
}

/* --- the object --- */

static int64_t integer(const struct tarn_json *object, const char *key)
{
    const struct tarn_json *value = tarn_json_find(object, key);
    return value != NULL && tarn_json_kind(value) == TARN_JSON_INTEGER ? tarn_json_int(value) : 0;
}

static struct tarn_status *decode(struct tarn_slice text, struct tarn_arena *arena,
                                  struct tarn_partition_note **out, size_t *count)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_TRY(tarn_json_parse(text, &json));
    const struct tarn_json *list = tarn_json_find(json, "partitions");
    if (list == NULL || tarn_json_kind(list) != TARN_JSON_ARRAY)
        return tarn_status_new(TARN_JSON_MALFORMED, "no list of partitions");
    *count = tarn_json_count(list);
    *out = tarn_arena_calloc(arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        const struct tarn_json *one = tarn_json_at(list, i);
        struct tarn_slice path = tarn_json_text(tarn_json_find(one, "path"));
        if (path.size == 0)
            return tarn_status_new(TARN_JSON_MALFORMED, "partition %zu has no path", i);
        (*out)[i] = (struct tarn_partition_note){.path = tarn_arena_copy(arena, path),
                                                 .created_ms = integer(one, "created"),
                                                 .done_ms = integer(one, "done"),
                                                 .done_at = integer(one, "done_at")};
    }
    qsort(*out, *count, sizeof **out, by_path);
    return TARN_OK;
}

static void encode(const struct tarn_partition_note *notes, size_t count, struct tarn_buf *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    struct tarn_json *list = tarn_json_array();
    for (size_t i = 0; i < count; i++) {
        struct tarn_json *one = tarn_json_object();
        tarn_json_set(one, "path", tarn_json_string(notes[i].path));
        if (notes[i].created_ms != 0)
            tarn_json_set_int(one, "created", notes[i].created_ms);
        if (notes[i].done_ms != 0) {
            tarn_json_set_int(one, "done", notes[i].done_ms);
            tarn_json_set_int(one, "done_at", notes[i].done_at);
        }
        tarn_json_add(list, one);
    }
    tarn_json_set(json, "partitions", list);
    tarn_json_print(json, 0, out);
}

static struct tarn_status *read(struct tarn_op *op, struct tarn_catalog *catalog, const char *key,
                                struct tarn_partition_note **out, size_t *count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    bool found;
    *out = tarn_arena_calloc(op->arena, 1, sizeof **out);
    *count = 0;
    TARN_TRY(tarn_store_find(catalog->env->store, op, key, &found, &text));
    if (!found)
        return TARN_OK;
    struct tarn_status *s = decode(tarn_buf_slice(&text), op->arena, out, count);
    return tarn_status_wrap(tarn_status_as(s, TARN_OBJECT_DAMAGED), "%s", key);
}

static struct tarn_status *write(struct tarn_op *op, struct tarn_catalog *catalog, const char *key,
                                 const struct tarn_partition_note *notes, size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    if (count == 0)
        return tarn_store_remove(catalog->env->store, op, key);
    if (count > TARN_PARTITION_NOTES_MAX)
        return tarn_status_new(TARN_TOO_LARGE,
                               "%zu partitions would be marked or without files, at most %d can",
                               count, TARN_PARTITION_NOTES_MAX);
    encode(notes, count, &text);
    return tarn_store_put(catalog->env->store, op, key, tarn_buf_slice(&text));
}

/* --- asking and changing --- */

struct tarn_status *tarn_catalog_partition_notes(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_table *table,
                                                 struct tarn_partition_note **out, size_t *count)
{
    return read(op, catalog, own_key(op, table), out, count);
}

static struct tarn_status *change_notes(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_table *table, tarn_partition_notes_fn change,
                                        void *arg)
{
    struct tarn_partition_note *notes, *next;
    size_t count;
    const char *key = own_key(op, table);
    bool here;
    TARN_TRY(tarn_catalog__still_here(op, catalog, table, &here));
    if (!here)
        return tarn_status_new(TARN_TABLE_NOT_FOUND, "table %s is no longer there",
                               tarn_table_name(table));
    TARN_TRY(read(op, catalog, key, &notes, &count));
    next = notes;
    TARN_TRY(change(arg, op, &next, &count));
    return next == notes ? TARN_OK : write(op, catalog, key, next, count);
}

struct tarn_status *tarn_catalog_change_partition_notes(struct tarn_op *op,
                                                        struct tarn_catalog *catalog,
                                                        struct tarn_table *table,
                                                        tarn_partition_notes_fn change, void *arg)
{
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = change_notes(op, catalog, table, change, arg);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

struct tarn_status *tarn_catalog_forget_partition_notes(struct tarn_op *op,
                                                        struct tarn_catalog *catalog,
                                                        struct tarn_table *table)
{
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = tarn_store_remove(catalog->env->store, op, own_key(op, table));
    pthread_mutex_unlock(&catalog->change);
    return s;
}

struct tarn_status *tarn_catalog__forget_notes(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_table *table, struct tarn_slice branch)
{
    return branch.size > 0
               ? tarn_store_remove(catalog->env->store, op, key_of(op, table, branch))
               : tarn_catalog__remove_below(
                     op, catalog,
                     tarn_arena_printf(op->arena, FOLDER "/%s", tarn_table_main_uuid(table)));
}

struct tarn_status *tarn_catalog__move_notes(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_table *table, struct tarn_slice branch,
                                             struct tarn_slice to)
{
    struct tarn_partition_note *notes;
    size_t count;
    TARN_TRY(read(op, catalog, key_of(op, table, branch), &notes, &count));
    TARN_TRY(write(op, catalog, key_of(op, table, to), notes, count));
    return tarn_catalog__forget_notes(op, catalog, table, branch);
}
