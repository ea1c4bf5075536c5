/* memory_input - a sorted run of batches in memory, as an input of a merge. */
#ifndef TARN_TEST_MERGE_MEMORY_INPUT_H
#define TARN_TEST_MERGE_MEMORY_INPUT_H

#include "merge/internal.h"

struct memory_input {
    struct tarn_merge_input input;
    struct tarn_batch **batches; /* owned, as those that are left */
    size_t count, next;
    uint32_t place;
};
/* Without batches, and room for so many. */
struct memory_input *memory_input_new(size_t capacity, uint32_t place);

#endif
