#include "survivors.h"

#include "fault_others.h"
#include "table/index.h"
#include "table/refs.h"

#define ROOT "db.db/t"

struct look {
    struct fixture *f;
    struct tarn_op op;
    const struct tarn_table_view *view;
    struct tarn_map *named;
    const struct tarn_map *there; /* before; NULL: not looked at */
};

static void name_key(struct look *l, const char *folder, struct tarn_slice name)
{
    const char *key = tarn_arena_printf(l->op.arena, ROOT "/%s/%.*s", folder, TARN_SLICE_ARG(name));
    tarn_map_set(l->named, tarn_slice_str(key), l);
}

static const char *folder_of(struct look *l, const struct tarn_manifest_entry *e)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf folder = {0};
    expect_ok(
        tarn_bucket_path(&l->view->schema, &l->view->options, e->partition, e->bucket, &folder));
    return tarn_arena_str(l->op.arena, tarn_buf_slice(&folder));
}

static void name_file(struct look *l, const struct tarn_manifest_entry *e)
{
    name_key(l, folder_of(l, e), e->file.name);
    for (size_t i = 0; i < e->file.extra_file_count; i++)
        name_key(l, folder_of(l, e), e->file.extra_files[i]);
}

/* Live: by partition, bucket, level and name. */
static void name_live(struct look *l, const struct tarn_manifest_file *files, size_t count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *live = tarn_map_new();
    for (size_t i = 0; i < count; i++) {
        struct tarn_manifest_entry *entries;
        size_t n;
        expect_ok(
            tarn_table__read_manifest(&l->op, l->f->table, &files[i], l->op.arena, &entries, &n));
        for (size_t e = 0; e < n; e++) {
            const char *key =
                tarn_arena_printf(l->op.arena, "%s/%d/%.*s", folder_of(l, &entries[e]),
                                  entries[e].file.level, TARN_SLICE_ARG(entries[e].file.name));
            if (entries[e].kind == TARN_ENTRY_ADD)
                tarn_map_set(live, tarn_slice_str(key), &entries[e]);
            else
                tarn_map_remove(live, tarn_slice_str(key));
        }
    }
    size_t cursor = 0;
    struct tarn_slice key;
    void *entry;
    while (tarn_map_next(live, &cursor, &key, &entry))
        name_file(l, entry);
}

static void name_list(struct look *l, const struct tarn_snapshot *s, enum tarn_list which,
                      struct tarn_slice name, struct tarn_manifest_file *files, size_t *count)
{
    struct tarn_manifest_file *more;
    size_t n;
    struct tarn_status *read =
        tarn_table__read_list(&l->op, l->f->table, s, which, l->op.arena, &more, &n);
    if (read != TARN_OK)
        expect_unreachable("a version of snapshot %" PRId64 ": %s", s->id,
                           tarn_status_message(read));
    name_key(l, "manifest", name);
    for (size_t i = 0; i < n; i++) {
        name_key(l, "manifest", more[i].name);
        files[(*count)++] = more[i];
    }
}

static void name_changelog(struct look *l, const struct tarn_snapshot *s)
{
    struct tarn_manifest_file *files = tarn_arena_calloc(l->op.arena, 1000, sizeof *files);
    size_t count = 0;
    if (s->changelog_list.data == NULL)
        return;
    const char *list =
        tarn_arena_printf(l->op.arena, "manifest/%.*s", TARN_SLICE_ARG(s->changelog_list));
    if (!folder_has(l->f, list)) { /* a tag doesn't keep it, and the snapshot came from one */
        expect_true(l->there == NULL ||
                    tarn_map_find(l->there, tarn_slice_str(tarn_arena_printf(
                                                l->op.arena, ROOT "/%s", list))) == NULL);
        return;
    }
    name_list(l, s, TARN_LIST_CHANGELOG, s->changelog_list, files, &count);
    name_live(l, files, count);
}

static void name_version(struct look *l, const struct tarn_snapshot *s, bool is_tag)
{
    struct tarn_manifest_file *files = tarn_arena_calloc(l->op.arena, 10000, sizeof *files);
    size_t count = 0;
    name_list(l, s, TARN_LIST_BASE, s->base_list, files, &count);
    name_list(l, s, TARN_LIST_DELTA, s->delta_list, files, &count);
    name_live(l, files, count);
    if (!is_tag)
        name_changelog(l, s);
    if (s->statistics.data != NULL)
        name_key(l, "statistics", s->statistics);
    if (s->index_manifest.data == NULL)
        return;
    struct tarn_index_file *index;
    name_key(l, "manifest", s->index_manifest);
    expect_ok(tarn_index_manifest_decode(
        folder_get(l->f, tarn_arena_printf(l->op.arena, "manifest/%.*s",
                                           TARN_SLICE_ARG(s->index_manifest))),
        l->op.arena, &index, &count));
    for (size_t i = 0; i < count; i++)
        name_key(l, "index", index[i].name);
}

static void name_folder(struct look *l, const char *folder)
{
    static const char *const kinds[] = {"snapshot/snapshot-", "tag/tag-"};
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(l->f->inner, &l->op, folder, true, &objects, &count));
    for (size_t i = 0; i < count; i++)
        for (int tag = 0; tag < 2; tag++) {
            const char *prefix = tarn_arena_printf(l->op.arena, "%s/%s", folder, kinds[tag]);
            if (!tarn_slice_starts_with(objects[i].key, tarn_slice_str(prefix)))
                continue;
            TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
            struct tarn_tag decoded;
            expect_ok(
                tarn_store_get(l->f->inner, &l->op, (const char *)objects[i].key.data, &text));
            expect_ok(tarn_tag_decode(tarn_arena_copy(l->op.arena, tarn_buf_slice(&text)),
                                      l->op.arena, &decoded));
            name_version(l, &decoded.snapshot, tag == 1);
            if (tag == 0)
                tarn_map_set(l->named, objects[i].key, l);
        }
}

static struct tarn_map *named_of(struct fixture *f, const struct tarn_map *there)
{
    struct look l = {.f = f, .named = tarn_map_new(), .there = there};
    struct tarn_slice *branches;
    size_t count;
    tarn_op_init(&l.op);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(&l.op, f->table, &view));
    l.view = view;
    name_folder(&l, ROOT);
    expect_ok(tarn_table_branches(&l.op, f->table, &branches, &count));
    for (size_t i = 0; i < count; i++)
        name_folder(&l, tarn_arena_printf(l.op.arena, ROOT "/branch/branch-%.*s",
                                          TARN_SLICE_ARG(branches[i])));
    tarn_op_fini(&l.op);
    return l.named;
}

struct tarn_map *survivors_named(struct fixture *f)
{
    return named_of(f, NULL);
}

struct tarn_map *survivors_there(struct fixture *f)
{
    static const char *const others[] = {"/schema/", "/tag/",     "/consumer/",
                                         "/LATEST",  "/EARLIEST", "/branch/branch-"};
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_map *there = tarn_map_new();
    struct tarn_object *objects;
    size_t count;
    tarn_op_init(&op);
    expect_ok(tarn_store_list(f->inner, &op, ROOT, true, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        bool other = false;
        for (size_t k = 0; k < TARN_COUNT_OF(others); k++)
            other = other || strstr((const char *)objects[i].key.data, others[k]) != NULL;
        if (!other)
            tarn_map_set(there, objects[i].key, there);
    }
    return there;
}

void survivors_check(struct fixture *f, const struct tarn_map *there_before,
                     const struct tarn_map *named_before)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *named = named_of(f, there_before);
    TARN_OWN(tarn_map_drop) struct tarn_map *there = survivors_there(f);
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(named, &cursor, &key, &value))
        if (tarn_map_find(there, key) == NULL && strstr((const char *)key.data, "/branch-") == NULL)
            expect_unreachable("%.*s is named, and gone", TARN_SLICE_ARG(key));
    cursor = 0;
    while (tarn_map_next(there, &cursor, &key, &value)) {
        bool was = named_before == NULL || tarn_map_find(there_before, key) == NULL ||
                   tarn_map_find(named_before, key) != NULL;
        if (tarn_map_find(named, key) == NULL && was)
            expect_unreachable("%.*s is there, and nothing names it", TARN_SLICE_ARG(key));
    }
}

void survivors_put_key(struct fixture *f, const char *folder, struct tarn_slice name)
{
    folder_put(f, tarn_arena_printf(f->t->arena, "%s/%.*s", folder, TARN_SLICE_ARG(name)),
               tarn_slice_str("rows"));
}

void survivors_put(struct fixture *f, const struct tarn_manifest_entry *entries, size_t count)
{
    struct look l = {.f = f};
    tarn_op_init(&l.op);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(&l.op, f->table, &view));
    l.view = view;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != TARN_ENTRY_ADD)
            continue;
        survivors_put_key(f, folder_of(&l, &entries[i]), entries[i].file.name);
        for (size_t k = 0; k < entries[i].file.extra_file_count; k++)
            survivors_put_key(f, folder_of(&l, &entries[i]), entries[i].file.extra_files[k]);
    }
    tarn_op_fini(&l.op);
}
