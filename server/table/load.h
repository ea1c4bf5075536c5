/*
 * load - entries that are put into the index together, past the state's log (load_chunk.c).
 *
 * Shape    a chunk holds, one behind the other, what LIVE, STATS and NAMES will have of each entry. Its memory is kept for
 *          what is added after it was written.
 * Threads  a chunk belongs to one.
 */
#ifndef TARN_TABLE_LOAD_H
#define TARN_TABLE_LOAD_H

#include "table/index.h"

struct tarn_load_record;

struct tarn_load_chunk { /* zeroed: an empty one */
    struct tarn_buf bytes;
    struct tarn_load_record *records;
    size_t count, capacity;
};

void tarn_load_chunk_fini(struct tarn_load_chunk *chunk);
void tarn_load_chunk_add(struct tarn_load_chunk *chunk, const char *uuid,
                         const struct tarn_manifest_entry *entry);
/* All of it, each key once; afterwards the chunk is empty. */
TARN_MUST struct tarn_status *tarn_load_chunk_write(struct tarn_load_chunk *chunk,
                                                    struct tarn_state *state);

#endif
