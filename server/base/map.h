/*
 * map - a hash table from bytes to a pointer, in order of insertion when iterated.
 *
 * Memory   keys are copied; values are the caller's.
 * Threads  one at a time.
 */
#ifndef TARN_BASE_MAP_H
#define TARN_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct tarn_map;
struct tarn_map *tarn_map_new(void);
void tarn_map_free(struct tarn_map *map);
void tarn_map_drop(struct tarn_map **map);
size_t tarn_map_count(const struct tarn_map *map);
void *tarn_map_find(const struct tarn_map *map, struct tarn_slice key); /* NULL: not there */
/* Returns the value that was there, NULL if none. `value` must not be NULL. */
void *tarn_map_set(struct tarn_map *map, struct tarn_slice key, void *value);
void *tarn_map_remove(struct tarn_map *map, struct tarn_slice key);
/* Walks all: start with *cursor = 0, false at the end. Removing the current one is allowed. */
bool tarn_map_next(const struct tarn_map *map, size_t *cursor, struct tarn_slice *key,
                   void **value);

#endif
