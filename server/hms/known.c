#include "hms/internal.h"

/* What was pushed, of all databases and tables. */

struct tarn_hms__known *tarn_hms__known_of(struct tarn_map *map, struct tarn_slice key)
{
    struct tarn_hms__known *known = tarn_map_find(map, key);
    if (known == NULL) {
        known = tarn_calloc(1, sizeof *known);
        tarn_map_set(map, key, known);
    }
    return known;
}

void tarn_hms__forget(struct tarn_map *map, struct tarn_slice key)
{
    struct tarn_hms__known *known = tarn_map_remove(map, key);
    if (known != NULL)
        free(known->problem);
    free(known);
}

static void free_known(struct tarn_map *map)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *known;
    while (tarn_map_next(map, &cursor, &key, &known)) {
        free(((struct tarn_hms__known *)known)->problem);
        free(known);
    }
    tarn_map_free(map);
}

struct tarn_slice tarn_hms__table_key(struct tarn_arena *arena, struct tarn_slice database,
                                      struct tarn_slice name)
{
    uint8_t *key = tarn_arena_alloc(arena, database.size + 1 + name.size);
    memcpy(key, database.data, database.size);
    key[database.size] = 0;
    memcpy(key + database.size + 1, name.data, name.size);
    return tarn_slice_of(key, database.size + 1 + name.size);
}

bool tarn_hms__is_in_database(struct tarn_slice key, struct tarn_slice database,
                              struct tarn_slice *name)
{
    if (key.size <= database.size || key.data[database.size] != 0 ||
        !tarn_slice_starts_with(key, database))
        return false;
    *name = tarn_slice_of(key.data + database.size + 1, key.size - database.size - 1);
    return true;
}

void tarn_hms__memory_init(struct tarn_hms__memory *memory)
{
    *memory = (struct tarn_hms__memory){.tables = tarn_map_new(), .databases = tarn_map_new()};
}

void tarn_hms__memory_fini(struct tarn_hms__memory *memory)
{
    free_known(memory->tables);
    free_known(memory->databases);
    *memory = (struct tarn_hms__memory){0};
}
