#include "base/map.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/memory.h"

/*
 * Entries lie in order of insertion; slots hold entry numbers + 1, found by open addressing. A
 * removed entry keeps its slot and place (value NULL) until the next growth squeezes them out: so
 * removal moves nothing, and a walk may remove what it stands on.
 */
struct entry {
    char *key;
    size_t key_size;
    uint64_t hash;
    void *value; /* NULL: removed */
};

struct tarn_map {
    struct entry *entries;
    size_t entry_count; /* with removed ones */
    size_t entry_capacity;
    size_t live_count;
    uint32_t *slots;
    size_t slot_count; /* a power of two, or 0 */
};

/* Keys come from outside: a seed nobody can guess keeps them from being chosen to collide. */
static uint64_t hash_of(struct tarn_slice key)
{
    static _Atomic uint64_t seed;
    uint64_t s = atomic_load_explicit(&seed, memory_order_relaxed);
    if (s == 0) {
        uint64_t mine = tarn_random_u64() | 1;
        s = atomic_compare_exchange_strong(&seed, &s, mine) ? mine : s;
    }
    return tarn_xxh64(key, s);
}

struct tarn_map *tarn_map_new(void)
{
    return tarn_calloc(1, sizeof(struct tarn_map));
}

void tarn_map_free(struct tarn_map *map)
{
    if (map == NULL)
        return;
    for (size_t i = 0; i < map->entry_count; i++)
        free(map->entries[i].key);
    free(map->entries);
    free(map->slots);
    free(map);
}

void tarn_map_drop(struct tarn_map **map)
{
    tarn_map_free(*map);
    *map = NULL;
}

size_t tarn_map_count(const struct tarn_map *map)
{
    return map->live_count;
}

static struct entry *find_entry(const struct tarn_map *map, struct tarn_slice key, uint64_t hash)
{
    if (map->slot_count == 0)
        return NULL;
    size_t mask = map->slot_count - 1;
    for (size_t i = hash & mask; map->slots[i] != 0; i = (i + 1) & mask) {
        struct entry *e = &map->entries[map->slots[i] - 1];
        if (e->value != NULL && e->hash == hash &&
            tarn_slice_equal(key, tarn_slice_of(e->key, e->key_size)))
            return e;
    }
    return NULL;
}

static void put_slot(struct tarn_map *map, size_t index)
{
    size_t mask = map->slot_count - 1;
    size_t i = map->entries[index].hash & mask;
    while (map->slots[i] != 0)
        i = (i + 1) & mask;
    map->slots[i] = (uint32_t)index + 1;
}

/* Squeezes out removed entries and makes the slots at least twice as many as the entries. */
static void rebuild(struct tarn_map *map)
{
    size_t kept = 0;
    for (size_t i = 0; i < map->entry_count; i++) {
        if (map->entries[i].value == NULL)
            free(map->entries[i].key);
        else
            map->entries[kept++] = map->entries[i];
    }
    map->entry_count = kept;
    tarn_assert(kept < UINT32_MAX / 4);

    size_t slot_count = 16;
    while (slot_count < kept * 3)
        slot_count *= 2;
    free(map->slots);
    map->slots = tarn_calloc(slot_count, sizeof *map->slots);
    map->slot_count = slot_count;
    for (size_t i = 0; i < kept; i++)
        put_slot(map, i);
}

void *tarn_map_find(const struct tarn_map *map, struct tarn_slice key)
{
    struct entry *e = find_entry(map, key, hash_of(key));
    return e == NULL ? NULL : e->value;
}

void *tarn_map_set(struct tarn_map *map, struct tarn_slice key, void *value)
{
    tarn_assert(value != NULL);
    uint64_t hash = hash_of(key);
    struct entry *e = find_entry(map, key, hash);
    if (e != NULL) {
        void *before = e->value;
        e->value = value;
        return before;
    }
    if ((map->entry_count + 1) * 2 > map->slot_count)
        rebuild(map);
    TARN_GROW(map->entries, map->entry_count, map->entry_capacity);
    map->entries[map->entry_count] = (struct entry){
        .key = tarn_slice_dup(key), .key_size = key.size, .hash = hash, .value = value};
    put_slot(map, map->entry_count);
    map->entry_count++;
    map->live_count++;
    return NULL;
}

void *tarn_map_remove(struct tarn_map *map, struct tarn_slice key)
{
    struct entry *e = find_entry(map, key, hash_of(key));
    if (e == NULL)
        return NULL;
    void *before = e->value;
    e->value = NULL;
    map->live_count--;
    return before;
}

bool tarn_map_next(const struct tarn_map *map, size_t *cursor, struct tarn_slice *key, void **value)
{
    while (*cursor < map->entry_count) {
        const struct entry *e = &map->entries[(*cursor)++];
        if (e->value == NULL)
            continue;
        if (key != NULL)
            *key = tarn_slice_of(e->key, e->key_size);
        if (value != NULL)
            *value = e->value;
        return true;
    }
    return false;
}
