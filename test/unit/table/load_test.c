/*
 * Promise: entries that are loaded past the state's log are there as a commit would have put them, each once, in whatever
 * order and with whatever names they came.
 */
#include "fixture.h"
#include "table/load.h"

#define FILES 6000 /* enough for files of RocksDB's own */
#define LONG 2000  /* bytes of a name, alike to the last few */

static struct tarn_manifest_entry entry_of(struct fixture *f, int i)
{
    struct tarn_arena *arena = f->t->arena;
    const char *name = tarn_arena_printf(arena, "data-%x-%d", (unsigned)i * 2654435761u, i);
    if (i % 1000 == 0)
        name = tarn_arena_printf(arena, "data-%0*d", LONG, i);
    struct tarn_manifest_entry e =
        fixture_entry(f, TARN_ENTRY_ADD, name, i % 3, i % 4, i, i + 1, i);
    e.file.creation_time_ms = 1000 - i % 17;
    if (i % 5 == 0) /* of a partition whose key is longer */
        e.partition = tarn_slice_str(tarn_arena_printf(arena, "p%d", i % 10));
    return e;
}

static struct tarn_slice keys_of(struct tarn_table *table)
{
    return tarn_slice_of(table->uuid, TARN_INDEX_UUID_SIZE);
}

static size_t count_of(struct fixture *f, enum tarn_family family)
{
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it = tarn_state_iterator_new(f->state, family, keys_of(f->table));
    struct tarn_slice key, value;
    size_t count = 0;
    while (tarn_state_iterator_next(it, &key, &value))
        count++;
    expect_ok(tarn_state_iterator_error(it));
    return count;
}

static void expect_held(struct fixture *f, enum tarn_family family, struct tarn_buf *key,
                        const struct tarn_buf *value)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf found = {0};
    bool is_there;
    expect_ok(tarn_state_get(f->state, family, tarn_buf_slice(key), &is_there, &found));
    expect_true(is_there);
    expect_true(tarn_slice_equal(tarn_buf_slice(&found), tarn_buf_slice(value)));
}

static void expect_there(struct fixture *f, const struct tarn_manifest_entry *entry)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf live = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__live_key(f->table->uuid, entry, &live);
    tarn_table__name_key(f->table->uuid, entry, &name);
    tarn_table__live_value(entry, 0, &value);
    expect_held(f, TARN_FAMILY_LIVE, &live, &value);
    tarn_buf_clear(&value);
    tarn_manifest_stats_pack(&entry->file, &value);
    expect_held(f, TARN_FAMILY_STATS, &live, &value);
    tarn_buf_clear(&value);
    tarn_key_add_i64(&value, entry->file.creation_time_ms);
    expect_held(f, TARN_FAMILY_NAMES, &name, &value);
}

static void load(struct fixture *f, struct tarn_load_chunk *chunk, int count)
{
    for (int i = 0; i < count; i++) {
        int at = (int)((int64_t)i * 4001 % count); /* in no order */
        struct tarn_manifest_entry entry = entry_of(f, at);
        tarn_load_chunk_add(chunk, f->table->uuid, &entry);
        if (at % 100 == 7) /* named twice */
            tarn_load_chunk_add(chunk, f->table->uuid, &entry);
    }
    expect_ok(tarn_load_chunk_write(chunk, f->state));
    expect_int((int64_t)chunk->count, 0);
}

static void expect_loaded(struct fixture *f, int count)
{
    expect_int((int64_t)count_of(f, TARN_FAMILY_LIVE), count);
    expect_int((int64_t)count_of(f, TARN_FAMILY_STATS), count);
    expect_int((int64_t)count_of(f, TARN_FAMILY_NAMES), count);
    for (int i = 0; i < count; i++) {
        struct tarn_manifest_entry entry = entry_of(f, i);
        expect_there(f, &entry);
    }
}

TARN_TEST(load, many_are_put_in_order)
{
    TARN_OWN(fixture_fini) struct fixture f;
    TARN_OWN(tarn_load_chunk_fini) struct tarn_load_chunk chunk = {0};
    fixture_init(&f, t);
    load(&f, &chunk, FILES);
    expect_loaded(&f, FILES);
    expect_ok(tarn_load_chunk_write(&chunk, f.state)); /* of nothing */
}

TARN_TEST(load, few_go_through_the_log)
{
    TARN_OWN(fixture_fini) struct fixture f;
    TARN_OWN(tarn_load_chunk_fini) struct tarn_load_chunk chunk = {0};
    fixture_init(&f, t);
    load(&f, &chunk, 1001);
    expect_loaded(&f, 1001);
}
