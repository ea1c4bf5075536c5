#include "table/refs.h"

#include "table/internal.h"

/* Branches as folders (docs/format.md, "Branches"): made, found, renamed and removed. What is in one, is a table's (table.c). */

struct tarn_status *tarn_branch_check_name(struct tarn_slice name)
{
    const char *why = NULL;
    bool digits = name.size > 0, blank = true;
    if (name.size > TARN_BRANCH_NAME_SIZE_MAX)
        why = "is longer than 100 bytes";
    else if (!tarn_utf8_valid(name))
        why = "is not UTF-8";
    else if (name.size == 4 && strncasecmp((const char *)name.data, "main", 4) == 0)
        why = "is that of the table itself";
    for (size_t i = 0; why == NULL && i < name.size; i++) {
        uint8_t c = name.data[i];
        if (c < 0x20 || c == 0x7f || c == '/' || c == '\\' || c == '$')
            why = "has a slash, a backslash, a $ or a control character";
        digits = digits && c >= '0' && c <= '9';
        blank = blank && c == ' ';
    }
    if (why == NULL && digits)
        why = "has digits only";
    if (why == NULL && blank)
        why = "is blank";
    return why == NULL ? TARN_OK : tarn_status_new(TARN_NAME_INVALID, "the branch's name %s", why);
}

/* `format`'s key in the branch's folder. */
static const char *key_in(struct tarn_op *op, struct tarn_table *table, struct tarn_slice name,
                          const char *rest)
{
    return tarn_table__key(op, table, TARN_BRANCH_FOLDER "%.*s%s", TARN_SLICE_ARG(name), rest);
}

struct tarn_status *tarn_table_branches(struct tarn_op *op, struct tarn_table *table,
                                        struct tarn_slice **out, size_t *count)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_object *objects;
    size_t object_count;
    const char *folder = tarn_table__key(op, table, "branch");
    size_t n = strlen(folder) + strlen("/branch-");
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_store_list(table->env->store, op, folder, false, &objects, &object_count));
    *out = tarn_arena_calloc(op->arena, object_count + 1, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < object_count; i++) {
        struct tarn_slice key = objects[i].key;
        if (!objects[i].is_folder || key.size <= n ||
            memcmp(key.data + strlen(folder), "/branch-", strlen("/branch-")) != 0)
            continue;
        bool has;
        struct tarn_slice name = tarn_slice_of(key.data + n, key.size - n);
        TARN_TRY(tarn_table_has_branch(op, table, name, &has));
        if (has)
            (*out)[(*count)++] = name;
    }
    return TARN_OK;
}

struct tarn_status *tarn_table_has_branch(struct tarn_op *op, struct tarn_table *table,
                                          struct tarn_slice name, bool *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_object *objects;
    size_t count;
    struct tarn_status *s = tarn_branch_check_name(name);
    *out = false;
    if (s != TARN_OK) { /* there can't be one */
        tarn_status_free(s);
        return TARN_OK;
    }
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_store_list(table->env->store, op, key_in(op, table, name, "/schema"), false,
                             &objects, &count));
    for (size_t i = 0; i < count; i++)
        *out = *out || !objects[i].is_folder;
    return TARN_OK;
}

static struct tarn_status *not_found(struct tarn_table *table, struct tarn_slice name)
{
    return tarn_status_new(TARN_BRANCH_NOT_FOUND, "table %s has no branch %.*s",
                           tarn_table_name(table), TARN_SLICE_ARG(name));
}

static struct tarn_status *exists(struct tarn_table *table, struct tarn_slice name)
{
    return tarn_status_new(TARN_BRANCH_EXISTS, "table %s has a branch %.*s already",
                           tarn_table_name(table), TARN_SLICE_ARG(name));
}

/* --- create --- */

static struct tarn_status *put_new(struct tarn_op *op, struct tarn_table *table,
                                   struct tarn_slice name, const char *rest, struct tarn_slice body)
{
    bool created;
    TARN_TRY(tarn_store_put_if_absent(table->env->store, op, key_in(op, table, name, rest), body,
                                      &created));
    return created ? TARN_OK : exists(table, name);
}

static struct tarn_status *copy_schema(struct tarn_op *op, struct tarn_table *table,
                                       struct tarn_slice name, int64_t id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    bool found;
    const char *rest = tarn_arena_printf(op->arena, "/schema/schema-%" PRId64, id);
    TARN_TRY(tarn_store_find(table->env->store, op,
                             tarn_table__key(op, table, "schema/schema-%" PRId64, id), &found,
                             &json));
    return found ? put_new(op, table, name, rest, tarn_buf_slice(&json)) : TARN_OK;
}

/* The snapshot and its tag first: there is no branch before it has a schema. */
static struct tarn_status *copy_tag(struct tarn_op *op, struct tarn_table *table,
                                    struct tarn_slice name, struct tarn_slice tag_name,
                                    int64_t *schema_id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf snapshot = {0};
    struct tarn_slice json;
    struct tarn_tag tag;
    TARN_TRY(tarn_table__read_tag(op, table, tag_name, &json, &tag));
    TARN_TRY(tarn_tag_encode_snapshot(json, &snapshot));
    *schema_id = tag.snapshot.schema_id;
    TARN_TRY(put_new(op, table, name,
                     tarn_arena_printf(op->arena, "/snapshot/snapshot-%" PRId64, tag.snapshot.id),
                     tarn_buf_slice(&snapshot)));
    return put_new(op, table, name,
                   tarn_arena_printf(op->arena, "/tag/tag-%.*s", TARN_SLICE_ARG(tag_name)), json);
}

struct tarn_status *tarn_table_create_branch(struct tarn_op *op, struct tarn_table *table,
                                             struct tarn_slice name, struct tarn_slice tag)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    bool has;
    TARN_TRY(tarn_branch_check_name(name));
    TARN_TRY(tarn_table_look_now(op, table, &view));
    TARN_TRY(tarn_table_has_branch(op, table, name, &has));
    if (has)
        return exists(table, name);
    int64_t schema_id = view->schema.id;
    if (tag.size > 0)
        TARN_TRY(copy_tag(op, table, name, tag, &schema_id));
    for (int64_t id = 0; id <= schema_id; id++)
        TARN_TRY(copy_schema(op, table, name, id));
    return TARN_OK;
}

/* --- drop and rename --- */

struct tarn_status *tarn_table_remove_branch(struct tarn_op *op, struct tarn_table *table,
                                             struct tarn_slice name)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_object *objects;
    size_t count;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_branch_check_name(name));
    const char *folder = key_in(op, table, name, "");
    TARN_TRY(tarn_store_list(table->env->store, op, folder, true, &objects, &count));
    if (count == 0)
        return not_found(table, name);
    const char *schema = tarn_arena_printf(op->arena, "%s/schema/", folder);
    for (int rest = 0; rest < 2; rest++) { /* with its schemas it ceases to be one */
        const char **keys = tarn_arena_alloc(op->arena, (count + 1) * sizeof *keys);
        size_t n = 0;
        for (size_t i = 0; i < count; i++)
            if (tarn_slice_starts_with(objects[i].key, tarn_slice_str(schema)) == (rest == 0))
                keys[n++] = tarn_arena_str(op->arena, objects[i].key);
        TARN_TRY(tarn_store_remove_many(table->env->store, op, keys, n));
    }
    return tarn_store_prune(table->env->store, op, folder);
}

struct tarn_status *tarn_table_rename_branch(struct tarn_op *op, struct tarn_table *table,
                                             struct tarn_slice name, struct tarn_slice to)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    bool has, taken;
    TARN_TRY(tarn_branch_check_name(to));
    TARN_TRY(tarn_table_has_branch(op, table, name, &has));
    TARN_TRY(tarn_table_has_branch(op, table, to, &taken));
    if (!has)
        return not_found(table, name);
    if (taken)
        return exists(table, to);
    return tarn_store_move_folder(table->env->store, op, key_in(op, table, name, ""),
                                  key_in(op, table, to, ""));
}
