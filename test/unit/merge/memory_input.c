#include "memory_input.h"

#include <stdlib.h>

static struct tarn_status *memory_next(struct tarn_merge_input *self,
                                       struct tarn_op *op TARN_UNUSED, struct tarn_batch **out,
                                       uint32_t *place)
{
    struct memory_input *m = (struct memory_input *)self;
    *out = m->next < m->count ? m->batches[m->next++] : NULL;
    *place = m->place;
    return TARN_OK;
}

static void memory_close(struct tarn_merge_input *self)
{
    struct memory_input *m = (struct memory_input *)self;
    while (m->next < m->count)
        tarn_batch_unref(m->batches[m->next++]);
    free(m->batches);
    free(m);
}

struct memory_input *memory_input_new(size_t capacity, uint32_t place)
{
    struct memory_input *m = tarn_calloc(1, sizeof *m);
    m->input = (struct tarn_merge_input){memory_next, memory_close};
    m->place = place;
    m->batches = tarn_calloc(capacity + 1, sizeof(struct tarn_batch *));
    return m;
}
