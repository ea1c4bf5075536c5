/*
 * memory - which of Arrow's allocators serves this room.
 *
 * Arrow takes mimalloc where nobody says otherwise. That gives freed pages back within 10 ms and gets them again
 * a moment later, zeroed by the kernel: measured on a compaction of 10 M rows, jemalloc (which lets go after a
 * second) saves a tenth of the CPU time and a third of the memory.
 */
#include "columnar/internal.h"

namespace tarn
{

static arrow::MemoryPool *choose_pool()
{
    arrow::MemoryPool *pool = nullptr;

    if (getenv("ARROW_DEFAULT_MEMORY_POOL") == NULL && arrow::jemalloc_memory_pool(&pool).ok())
        return pool;
    return arrow::
        default_memory_pool(); /* somebody said otherwise, or Arrow was built without it */
}

arrow::MemoryPool *memory_pool()
{
    static arrow::MemoryPool *pool = choose_pool();
    return pool;
}

} // namespace tarn
