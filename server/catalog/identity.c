#include "catalog/internal.h"

/*
 * A table's identity: the object <table>/.tarn-table, {"uuid": "…", "name": "db.t", "compaction": "tarn"}. The one thing of ours in a folder
 * that others made, and so the place where it is written down whose its compaction is: it stays with the table when the state is lost, and
 * when others move the folder. Without the member (as earlier versions wrote it) it is the daemon's.
 */

#define COMPACTION "compaction"

static const char *identity_key(struct tarn_op *op, const char *path)
{
    return tarn_arena_printf(op->arena, "%s/" TARN_TABLE_FILE, path);
}

/* Consumes `why`. */
static struct tarn_status *damaged(const char *path, struct tarn_status *why)
{
    struct tarn_status *s = tarn_status_new(TARN_IDENTITY_DAMAGED, "%s/" TARN_TABLE_FILE ": %s",
                                            path, tarn_status_message(why));
    tarn_status_free(why);
    return s;
}

static struct tarn_status *decode(struct tarn_op *op, struct tarn_slice text,
                                  struct tarn_identity_file *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_TRY(tarn_json_parse(text, &json));
    struct tarn_slice value = tarn_json_text(tarn_json_find(json, "uuid"));
    if (!tarn_uuid_valid(value))
        return tarn_status_new(TARN_JSON_MALFORMED, "no valid uuid");
    memcpy(out->uuid, value.data, TARN_UUID_SIZE - 1);
    out->uuid[TARN_UUID_SIZE - 1] = '\0';
    out->name = tarn_arena_copy(op->arena, tarn_json_text(tarn_json_find(json, "name")));
    out->is_compacted = !tarn_slice_is(tarn_json_text(tarn_json_find(json, COMPACTION)), "writers");
    return TARN_OK;
}

struct tarn_status *tarn_catalog__read_identity(struct tarn_op *op, struct tarn_catalog *catalog,
                                                const char *path, bool *found,
                                                struct tarn_identity_file *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_status *s =
        tarn_store_find(catalog->env->store, op, identity_key(op, path), found, &text);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "%s/" TARN_TABLE_FILE, path);
    s = *found ? decode(op, tarn_buf_slice(&text), out) : TARN_OK;
    return s == TARN_OK ? TARN_OK : damaged(path, s);
}

struct tarn_status *tarn_catalog__put_identity(struct tarn_op *op, struct tarn_catalog *catalog,
                                               const char *path, const char *uuid, const char *name,
                                               bool is_compacted)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_json_set_str(json, "uuid", uuid);
    tarn_json_set_str(json, "name", name);
    tarn_json_set_str(json, COMPACTION, is_compacted ? "tarn" : "writers");
    tarn_json_print(json, 2, &text);
    return tarn_store_put(catalog->env->store, op, identity_key(op, path), tarn_buf_slice(&text));
}

/* A table of this uuid is known, and isn't where it was: others moved its folder here. What is open of it ends, what the state has of it
 * stays. *here: it is where it was, and this is a copy. */
static struct tarn_status *let_go_moved(struct tarn_op *op, struct tarn_catalog *catalog,
                                        const char *uuid, bool *here)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_slice database, name;
    *here = false;
    struct tarn_status *s = tarn_catalog_table_by_uuid(op, catalog, tarn_slice_str(uuid), &table);
    if (s != TARN_OK) { /* nobody knows it */
        tarn_status_free(s);
        return TARN_OK;
    }
    TARN_TRY(tarn_catalog__still_here(op, catalog, table, here));
    if (*here)
        return TARN_OK;
    tarn_table_names(op, table, &database, &name);
    TARN_TRY(tarn_catalog__close_branches(op, catalog, table, false));
    tarn_catalog__forget(catalog, database, name);
    return tarn_table_retire(op, table, false);
}

struct tarn_status *tarn_catalog__settle_identity(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  const char *path, const char *name,
                                                  struct tarn_identity_file *out)
{
    bool found, copied = false;
    TARN_TRY(tarn_catalog__read_identity(op, catalog, path, &found, out));
    if (found)
        TARN_TRY(let_go_moved(op, catalog, out->uuid, &copied));
    if (found && !copied && tarn_slice_is(out->name, name))
        return TARN_OK;
    bool is_new = !found || copied;
    if (is_new) {
        tarn_uuid_random(out->uuid);
        out->is_compacted = false; /* its writers did it so far; who wants it otherwise says so */
    }
    TARN_TRY(tarn_catalog__put_identity(op, catalog, path, out->uuid, name, out->is_compacted));
    tarn_log(op, TARN_INFO, is_new ? "catalog.table_adopted" : "catalog.table_moved",
             "table=%s uuid=%s", tarn_log_quote(op, name), out->uuid);
    return TARN_OK;
}
