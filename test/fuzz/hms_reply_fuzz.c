/* Promise: whatever a metastore answers, to whichever call, is an answer or an error: nothing is read or kept past the limits. */
#include "hms/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
    struct tarn_slice left;
};

static struct tarn_status *fetch(void *self, uint8_t *into, size_t room, size_t *got)
{
    struct source *source = self;
    *got = TARN_MIN(room, source->left.size);
    memcpy(into, source->left.data, *got);
    source->left = tarn_slice_of(source->left.data + *got, source->left.size - *got);
    return TARN_OK;
}

/* The first byte says what is read; the rest is it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    if (size == 0)
        return 0;
    struct source source = {tarn_slice_of(data + 1, size - 1)};
    struct tarn_hms__reader *r = tarn_alloc(sizeof *r);
    struct tarn_hms__table table;
    struct tarn_hms__database database;
    struct tarn_slice *texts;
    size_t count;
    tarn_hms__reader_init(r, arena);
    r->fetch = fetch;
    r->self = &source;
    switch (data[0] % 5) {
    case 0:
        tarn_hms__get_table(r, &table);
        if (r->status == TARN_OK)
            tarn_assert(tarn_hms__table_differs(arena, &table, &table) == NULL ||
                        table.parameter_count > 1); /* a key may be there twice */
        break;
    case 1:
        tarn_hms__get_database(r, &database);
        break;
    case 2:
        tarn_hms__get_texts(r, &texts, &count);
        tarn_assert(count <= size);
        break;
    case 3:
        tarn_hms__get_reply(r, "get_table", 1);
        break;
    default:
        tarn_hms__skip(r, HMS_STRUCT);
    }
    tarn_assert(r->status == TARN_OK ||
                tarn_status_reason(r->status) == TARN_METASTORE_UNAVAILABLE ||
                tarn_status_reason(r->status) == TARN_METASTORE_REFUSED);
    tarn_hms__reader_fini(r);
    free(r);
    return 0;
}
