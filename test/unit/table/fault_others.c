#include "fault_others.h"

#include "table/internal.h"

#include <stdlib.h>

#define FOLDER "db.db/t"

static const uint8_t sync_mark[16] = {7};

/* --- a store that waits for its moment --- */

struct hook {
    struct tarn_store_ops ops; /* hook_ops, as far away as the store below */
    struct tarn_store *below;
    struct moment *moment;
};

static bool is_it(const struct hook *h, const char *call, const char *key, bool afterwards)
{
    struct moment *m = h->moment;
    if (m->happened > 0 || m->afterwards != afterwards || strcmp(m->call, call) != 0 ||
        strstr(key, m->key_part) == NULL)
        return false;
    return m->skip-- <= 0;
}

static void look(void *self, const char *call, const char *key, bool afterwards)
{
    struct hook *h = self;
    if (!is_it(h, call, key, afterwards))
        return;
    h->moment->happened++; /* before: it may call the store itself */
    h->moment->act(h->moment->arg);
}

#define BELOW (((struct hook *)self)->below)

static struct tarn_status *hook_get(void *self, struct tarn_op *op, const char *key,
                                    size_t size_max, struct tarn_buf *out)
{
    (void)size_max;
    look(self, "get", key, false);
    struct tarn_status *s = tarn_store_get(BELOW, op, key, out);
    look(self, "get", key, true);
    return s;
}

static struct tarn_status *hook_stat(void *self, struct tarn_op *op, const char *key, bool *found,
                                     struct tarn_object *out)
{
    look(self, "stat", key, false);
    struct tarn_status *s = tarn_store_stat(BELOW, op, key, found, out);
    look(self, "stat", key, true);
    return s;
}

static struct tarn_status *hook_put(void *self, struct tarn_op *op, const char *key,
                                    struct tarn_slice body)
{
    look(self, "put", key, false);
    return tarn_store_put(BELOW, op, key, body);
}

static struct tarn_status *hook_put_many(void *self, struct tarn_op *op,
                                         const struct tarn_new_object *objects, size_t count)
{
    look(self, "put_many", objects[0].key, false);
    struct tarn_status *s = tarn_store_put_many(BELOW, op, objects, count);
    look(self, "put_many", objects[0].key, true);
    return s;
}

static struct tarn_status *hook_put_if_absent(void *self, struct tarn_op *op, const char *key,
                                              struct tarn_slice body, bool *created)
{
    look(self, "put_if_absent", key, false);
    struct tarn_status *s = tarn_store_put_if_absent(BELOW, op, key, body, created);
    look(self, "put_if_absent", key, true);
    return s;
}

static struct tarn_status *hook_remove(void *self, struct tarn_op *op, const char *key)
{
    look(self, "remove", key, false);
    return tarn_store_remove(BELOW, op, key);
}

static struct tarn_status *hook_list(void *self, struct tarn_op *op, const char *prefix,
                                     bool recursive, struct tarn_object **out, size_t *count)
{
    look(self, "list", prefix, false);
    struct tarn_status *s = tarn_store_list(BELOW, op, prefix, recursive, out, count);
    look(self, "list", prefix, true);
    return s;
}

static void hook_close(void *self)
{
    struct hook *h = self;
    tarn_store_unref(h->below);
    free(h);
}

static const struct tarn_store_ops hook_ops = {
    .scheme = "hook",
    .get = hook_get,
    .stat = hook_stat,
    .put = hook_put,
    .put_many = hook_put_many,
    .put_if_absent = hook_put_if_absent,
    .remove = hook_remove,
    .list = hook_list,
    .close = hook_close,
};

static void take_store(void *arg)
{
    struct fixture *f = arg;
    f->env.store = f->store;
}

void moment_init(struct fixture *f, struct moment *m)
{
    struct hook *h = tarn_calloc(1, sizeof *h);
    h->below = f->store; /* its reference goes over */
    h->moment = m;
    h->ops = hook_ops;
    h->ops.remote = tarn_store_is_remote(f->store);
    f->store = tarn_store_new(&h->ops, h);
    tarn_mailbox_call(f->table->mailbox, take_store, f); /* where it is read */
}

/* --- time --- */

void pause_init(void)
{
    tarn_clock_fake(INT64_C(1700000000000));
}

void pause_for(int64_t ms)
{
    tarn_clock_fake(tarn_clock_wall_ms() + ms);
}

/* --- the folder --- */

static const char *key_of(struct fixture *f, const char *name)
{
    return tarn_arena_printf(f->t->arena, FOLDER "/%s", name);
}

static const char *snapshot_name(struct fixture *f, int64_t id)
{
    return tarn_arena_printf(f->t->arena, "snapshot/snapshot-%" PRId64, id);
}

static const char *manifest_name(struct fixture *f, struct tarn_slice name)
{
    return tarn_arena_printf(f->t->arena, "manifest/%.*s", TARN_SLICE_ARG(name));
}

bool folder_has(struct fixture *f, const char *name)
{
    bool found;
    expect_ok(tarn_store_stat(f->inner, f->t->op, key_of(f, name), &found, NULL));
    return found;
}

struct tarn_slice folder_get(struct fixture *f, const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    expect_ok(tarn_store_get(f->inner, f->t->op, key_of(f, name), &bytes));
    return tarn_arena_copy(f->t->arena, tarn_buf_slice(&bytes));
}

void folder_put(struct fixture *f, const char *name, struct tarn_slice body)
{
    expect_ok(tarn_store_put(f->inner, f->t->op, key_of(f, name), body));
}

void folder_remove(struct fixture *f, const char *name)
{
    expect_ok(tarn_store_remove(f->inner, f->t->op, key_of(f, name)));
}

static int64_t find_end(struct fixture *f, bool newest)
{
    struct tarn_object *objects;
    size_t count;
    int64_t best = 0;
    expect_ok(tarn_store_list(f->inner, f->t->op, FOLDER "/snapshot", false, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        const char *name = strstr((const char *)objects[i].key.data, "/snapshot-");
        int64_t id = name == NULL ? 0 : strtoll(name + strlen("/snapshot-"), NULL, 10);
        if (id > 0 && (best == 0 || (newest ? id > best : id < best)))
            best = id;
    }
    return best;
}

int64_t others_newest(struct fixture *f)
{
    return find_end(f, true);
}

/* As Paimon's readers find it: by the hint, where no snapshot follows the one that it names. */
int64_t others_hinted(struct fixture *f)
{
    int64_t id;
    if (!folder_has(f, "snapshot/LATEST"))
        return others_newest(f);
    struct tarn_status *s = tarn_parse_i64(folder_get(f, "snapshot/LATEST"), &id);
    bool believed = s == TARN_OK && id > 0 && !folder_has(f, snapshot_name(f, id + 1));
    tarn_status_free(s);
    return believed ? id : others_newest(f);
}

int64_t others_oldest(struct fixture *f)
{
    return find_end(f, false);
}

static void read_snapshot(struct fixture *f, struct tarn_slice json, struct tarn_snapshot *out)
{
    expect_ok(tarn_snapshot_decode(json, f->t->arena, out));
}

static void read_list(struct fixture *f, struct tarn_slice name, struct tarn_manifest_file **files,
                      size_t *count)
{
    struct tarn_manifest_file *more;
    size_t n;
    expect_ok(
        tarn_manifest_list_decode(folder_get(f, manifest_name(f, name)), f->t->arena, &more, &n));
    struct tarn_manifest_file *all = tarn_arena_calloc(f->t->arena, *count + n + 1, sizeof *all);
    if (*count > 0)
        memcpy(all, *files, *count * sizeof *all);
    if (n > 0)
        memcpy(all + *count, more, n * sizeof *all);
    *files = all;
    *count += n;
}

static struct tarn_slice put_manifest(struct fixture *f, const char *name,
                                      const struct tarn_buf *bytes)
{
    folder_put(f, tarn_arena_printf(f->t->arena, "manifest/%s", name), tarn_buf_slice(bytes));
    return tarn_slice_str(name);
}

static struct tarn_slice put_list(struct fixture *f, const char *name,
                                  const struct tarn_manifest_file *files, size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    expect_ok(
        tarn_manifest_list_encode(files, count, tarn_slice_str("zstd"), 1, sync_mark, &bytes));
    return put_manifest(f, name, &bytes);
}

static int64_t row_count(const struct tarn_manifest_entry *entries, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += entries[i].kind == TARN_ENTRY_ADD ? entries[i].file.row_count
                                                 : -entries[i].file.row_count;
    return sum;
}

void others_put(struct fixture *f, int64_t id, struct tarn_slice base, const char *user,
                const struct tarn_manifest_entry *entries, size_t count)
{
    static atomic_int number;
    struct tarn_arena *arena = f->t->arena;
    struct tarn_manifest_file *files = NULL, file;
    struct tarn_snapshot last = {0};
    size_t file_count = 0;
    if (base.size > 0) {
        read_snapshot(f, base, &last);
        read_list(f, last.base_list, &files, &file_count);
        read_list(f, last.delta_list, &files, &file_count);
    }
    int n = number++;
    TARN_OWN(tarn_buf_drop) struct tarn_buf manifest = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    expect_ok(
        tarn_manifest_encode(entries, count, tarn_slice_str("zstd"), 1, sync_mark, &manifest));
    expect_ok(tarn_manifest_summarize(entries, count, NULL, 0, 0, arena, &file));
    file.name = put_manifest(f, tarn_arena_printf(arena, "manifest-others-%d", n), &manifest);
    file.size = (int64_t)manifest.size;
    struct tarn_snapshot s = {
        .version = 3,
        .id = id,
        .commit_user = tarn_slice_str(user),
        .commit_identifier = n,
        .kind = TARN_COMMIT_APPEND,
        .time_ms = tarn_clock_wall_ms(),
        .total_record_count = last.total_record_count + row_count(entries, count),
        .delta_record_count = row_count(entries, count),
        .base_list_size = TARN_SNAPSHOT_NONE,
        .delta_list_size = TARN_SNAPSHOT_NONE,
        .watermark = TARN_SNAPSHOT_NONE,
        .next_row_id = /* where rows are tracked */
        last.next_row_id > 0 ? last.next_row_id + row_count(entries, count) : TARN_SNAPSHOT_NONE,
        .changelog_record_count = TARN_SNAPSHOT_NONE,
        .changelog_list_size = TARN_SNAPSHOT_NONE};
    s.base_list = put_list(f, tarn_arena_printf(arena, "list-others-%d-0", n), files, file_count);
    s.delta_list = put_list(f, tarn_arena_printf(arena, "list-others-%d-1", n), &file, 1);
    tarn_snapshot_encode(&s, &json);
    bool created;
    expect_ok(tarn_store_put_if_absent(f->inner, f->t->op, key_of(f, snapshot_name(f, id)),
                                       tarn_buf_slice(&json), &created));
    expect_true(created);
    folder_put(f, "snapshot/LATEST",
               tarn_slice_str(tarn_arena_printf(arena, "%" PRId64, others_newest(f))));
}

int64_t others_commit(struct fixture *f, const char *user,
                      const struct tarn_manifest_entry *entries, size_t count)
{
    int64_t newest = others_newest(f);
    struct tarn_slice base = tarn_slice_of(NULL, 0);
    if (newest > 0)
        base = folder_get(f, snapshot_name(f, newest));
    others_put(f, newest + 1, base, user, entries, count);
    return newest + 1;
}

/* Objects of manifest/ that a snapshot in the folder still needs; the rest go. */
static void note(struct tarn_map *needed, struct tarn_slice name)
{
    if (name.size > 0)
        tarn_map_set(needed, name, needed);
}

static void clean_manifests(struct fixture *f)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *needed = tarn_map_new();
    struct tarn_object *objects;
    size_t count;
    int64_t newest = others_newest(f);
    for (int64_t id = others_oldest(f); id > 0 && id <= newest; id++) {
        struct tarn_snapshot s;
        struct tarn_manifest_file *files = NULL;
        size_t n = 0;
        if (!folder_has(f, snapshot_name(f, id)))
            continue;
        read_snapshot(f, folder_get(f, snapshot_name(f, id)), &s);
        read_list(f, s.base_list, &files, &n);
        read_list(f, s.delta_list, &files, &n);
        note(needed, s.base_list);
        note(needed, s.delta_list);
        note(needed, s.index_manifest);
        for (size_t i = 0; i < n; i++)
            note(needed, files[i].name);
    }
    expect_ok(tarn_store_list(f->inner, f->t->op, FOLDER "/manifest", true, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        const char *name = strrchr((const char *)objects[i].key.data, '/') + 1;
        if (tarn_map_find(needed, tarn_slice_str(name)) == NULL)
            folder_remove(f, tarn_arena_printf(f->t->arena, "manifest/%s", name));
    }
}

void others_roll_back(struct fixture *f, int64_t to)
{
    int64_t newest = others_newest(f);
    folder_put(f, "snapshot/LATEST",
               tarn_slice_str(tarn_arena_printf(f->t->arena, "%" PRId64, to)));
    for (int64_t id = newest; id > to; id--)
        folder_remove(f, snapshot_name(f, id));
    clean_manifests(f);
}

void others_expire(struct fixture *f, int64_t keep)
{
    for (int64_t id = others_oldest(f); id > 0 && id < keep; id++)
        folder_remove(f, snapshot_name(f, id));
    folder_put(f, "snapshot/EARLIEST",
               tarn_slice_str(tarn_arena_printf(f->t->arena, "%" PRId64, keep)));
    clean_manifests(f);
}

void others_put_schema(struct fixture *f, int64_t id, const char *column)
{
    folder_put(
        f, tarn_arena_printf(f->t->arena, "schema/schema-%" PRId64, id),
        tarn_slice_str(tarn_arena_printf(
            f->t->arena,
            "{\"version\":3,\"id\":%" PRId64 ",\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":"
            "\"BIGINT NOT NULL\"},{\"id\":1,\"name\":\"v\",\"type\":\"STRING\"},{\"id\":2,"
            "\"name\":\"%s\",\"type\":\"INT\"}],\"highestFieldId\":2,\"partitionKeys\":[],"
            "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"2\"},\"timeMillis\":1}",
            id, column)));
}

/* --- as a reader without an index sees it --- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *folder_files(struct fixture *f, int64_t id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_arena *arena = f->t->arena;
    struct tarn_snapshot s;
    struct tarn_manifest_file *files = NULL;
    size_t file_count = 0, live_count = 0;
    const char *live[4096];
    read_snapshot(f, folder_get(f, snapshot_name(f, id)), &s);
    read_list(f, s.base_list, &files, &file_count);
    read_list(f, s.delta_list, &files, &file_count);
    for (size_t i = 0; i < file_count; i++) {
        struct tarn_manifest_entry *entries;
        size_t n;
        expect_ok(tarn_manifest_decode(folder_get(f, manifest_name(f, files[i].name)), arena,
                                       &entries, &n));
        for (size_t e = 0; e < n; e++) {
            const char *name = tarn_arena_str(arena, entries[e].file.name);
            size_t at = 0;
            while (at < live_count && strcmp(live[at], name) != 0)
                at++;
            if (entries[e].kind == TARN_ENTRY_ADD && at == live_count)
                live[live_count++] = name;
            else if (entries[e].kind == TARN_ENTRY_DELETE && at < live_count)
                live[at] = live[--live_count];
        }
    }
    qsort(live, live_count, sizeof *live, by_text);
    for (size_t i = 0; i < live_count; i++)
        tarn_buf_printf(&text, "%s%s", i == 0 ? "" : " ", live[i]);
    return tarn_arena_str(arena, tarn_buf_slice(&text));
}

void folder_check(struct fixture *f)
{
    int64_t newest = others_newest(f);
    struct tarn_snapshot last = {0};
    expect_int(others_hinted(f), newest);
    for (int64_t id = others_oldest(f); id > 0 && id <= newest; id++) {
        struct tarn_snapshot s;
        if (!folder_has(f, snapshot_name(f, id)))
            expect_unreachable("snapshot %" PRId64 " is missing between others", id);
        read_snapshot(f, folder_get(f, snapshot_name(f, id)), &s);
        expect_int(s.id, id);
        if (last.id != 0)
            expect_int(s.total_record_count, last.total_record_count + s.delta_record_count);
        (void)folder_files(f, id);
        last = s;
    }
}

int64_t others_append(struct fixture *f, const char *name)
{
    struct tarn_manifest_entry e = fixture_file(f, name);
    return others_commit(f, "others", &e, 1);
}
