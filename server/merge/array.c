#include "merge/internal.h"

#define BUFFERS_MAX 3

/* private_data of an array that owns its parts */
struct own {
    const void *buffers[BUFFERS_MAX];
    struct ArrowArray **children; /* behind this struct, then the children themselves */
    int buffer_count, child_count;
};

static void release_own(struct ArrowArray *array)
{
    struct own *own = array->private_data;

    for (int i = 0; i < own->buffer_count; i++)
        free((void *)(uintptr_t)own->buffers[i]);
    for (int i = 0; i < own->child_count; i++) {
        if (own->children[i]->release != NULL)
            own->children[i]->release(own->children[i]);
    }
    free(own);
    array->release = NULL;
}

void tarn_merge__array_init(struct ArrowArray *out, int64_t length, int buffer_count,
                            int child_count)
{
    size_t pointers = sizeof(struct own);
    size_t bodies = pointers + (size_t)child_count * sizeof(struct ArrowArray *);
    struct own *own = tarn_calloc(1, bodies + (size_t)child_count * sizeof(struct ArrowArray));

    tarn_assert(buffer_count <= BUFFERS_MAX);
    own->buffer_count = buffer_count;
    own->child_count = child_count;
    own->children = (struct ArrowArray **)(void *)((uint8_t *)own + pointers);
    for (int i = 0; i < child_count; i++)
        own->children[i] = (struct ArrowArray *)(void *)((uint8_t *)own + bodies) + i;
    *out = (struct ArrowArray){
        .length = length,
        .n_buffers = buffer_count,
        .n_children = child_count,
        .buffers = own->buffers,
        .children = child_count == 0 ? NULL : own->children,
        .release = release_own,
        .private_data = own,
    };
}

void *tarn_merge__array_buffer(struct ArrowArray *array, int index, size_t size, bool zeroed)
{
    struct own *own = array->private_data;
    void *memory = zeroed ? tarn_calloc(size + 1, 1) : tarn_alloc(size + 1);

    tarn_assert(array->release == release_own && own->buffers[index] == NULL);
    own->buffers[index] = memory;
    return memory;
}

void tarn_merge__array_drop(struct ArrowArray *array)
{
    if (array->release != NULL)
        array->release(array);
}

static void release_shared(struct ArrowArray *array)
{
    tarn_batch_unref(array->private_data);
    array->release = NULL;
}

void tarn_merge__array_share(const struct ArrowArray *from, struct tarn_batch *holder,
                             int64_t begin, int64_t count, struct ArrowArray *out)
{
    *out = *from;
    out->offset = from->offset + begin;
    out->length = count;
    if (from->null_count != 0 && count != from->length)
        out->null_count = -1; /* known again when somebody counts */
    out->release = release_shared;
    out->private_data = tarn_batch_ref(holder);
}

struct tarn_batch *tarn_merge__batch_of(struct ArrowArray *columns, int column_count,
                                        int64_t row_count)
{
    struct ArrowArray top;

    tarn_merge__array_init(&top, row_count, 1, column_count);
    for (int i = 0; i < column_count; i++) {
        tarn_assert(columns[i].length == row_count);
        *top.children[i] = columns[i];
        columns[i].release = NULL;
    }
    return tarn_batch_take(&top);
}

struct tarn_batch *tarn_merge__batch_view(struct tarn_batch *batch, const int *columns,
                                          int column_count, int64_t begin, int64_t count)
{
    struct ArrowArray top;

    tarn_merge__array_init(&top, count, 1, column_count);
    for (int i = 0; i < column_count; i++)
        tarn_merge__array_share(tarn_batch_column(batch, columns == NULL ? i : columns[i]), batch,
                                begin, count, top.children[i]);
    return tarn_batch_take(&top);
}

int tarn_merge__type_width(const struct tarn_type *type)
{
    switch (type->id) {
    case TARN_TYPE_TINYINT:
        return 1;
    case TARN_TYPE_SMALLINT:
        return 2;
    case TARN_TYPE_INT:
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        return 4;
    case TARN_TYPE_BIGINT:
    case TARN_TYPE_DOUBLE:
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return 8;
    case TARN_TYPE_DECIMAL:
        return 16;
    default:
        return 0;
    }
}

/* Depth is bounded by TARN_TYPE_DEPTH_MAX, which the parser of types holds. */
struct tarn_status *tarn_merge__check_type(const struct tarn_type *type, struct tarn_slice name)
{
    switch (type->id) {
    case TARN_TYPE_VARIANT:
    case TARN_TYPE_BLOB:
    case TARN_TYPE_GEOMETRY:
    case TARN_TYPE_GEOGRAPHY:
    case TARN_TYPE_VECTOR:
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "column %.*s has a type that this version does not read or write",
                               TARN_SLICE_ARG(name));
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_MULTISET:
        return tarn_merge__check_type(type->element, name);
    case TARN_TYPE_MAP:
        TARN_TRY(tarn_merge__check_type(type->key, name));
        return tarn_merge__check_type(type->element, name);
    case TARN_TYPE_ROW:
        for (size_t i = 0; i < type->field_count; i++)
            TARN_TRY(tarn_merge__check_type(type->fields[i].type, name));
        return TARN_OK;
    default:
        return TARN_OK;
    }
}

bool tarn_merge__has_nulls(const struct ArrowArray *array)
{
    if (array->null_count >= 0)
        return array->null_count > 0;
    for (int64_t i = 0; i < array->length; i++) {
        if (tarn_column_is_null(array, i))
            return true;
    }
    return false;
}
