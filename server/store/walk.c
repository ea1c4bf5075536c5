/* Lists and prunes the stores whose folders are listed one by one. */
#include "store/internal.h"

#define OBJECTS_MAX ((size_t)8 << 20) /* of one list; beyond it TOO_LARGE: some 1 GiB of names */
#define CHECK_EVERY 4096              /* entries, between two looks at the deadline */

void tarn_store__walk_fini(struct tarn_walk *walk)
{
    free(walk->objects);
}

const char *tarn_store__walk_key(struct tarn_walk *walk, const char *folder, struct tarn_slice name)
{
    return folder[0] == '\0'
               ? tarn_arena_str(walk->op->arena, name)
               : tarn_arena_printf(walk->op->arena, "%s/%.*s", folder, TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_store__walk_add(struct tarn_walk *walk, const char *folder,
                                         const struct tarn_object *object)
{
    if (walk->count >= OBJECTS_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "folder '%s' holds more than %zu objects", folder,
                               OBJECTS_MAX);
    TARN_GROW(walk->objects, walk->count, walk->capacity);
    struct tarn_object *added = &walk->objects[walk->count++];
    *added = *object;
    if (added->is_folder)
        added->size = added->mtime_ms = 0;
    return walk->count % CHECK_EVERY == 0 ? tarn_op_check(walk->op) : TARN_OK;
}

/* Folders found on the way stand in the list themselves, behind the place that is looked at. */
static struct tarn_status *walk_from(struct tarn_walk *walk, const char *folder)
{
    TARN_TRY(walk->list_folder(walk, folder));
    for (size_t i = 0; walk->recursive && i < walk->count; i++) {
        if (walk->objects[i].is_folder) /* keys of the walk end with a NUL */
            TARN_TRY(walk->list_folder(walk, (const char *)walk->objects[i].key.data));
    }
    return TARN_OK;
}

struct tarn_status *tarn_store__walk_list(struct tarn_walk *walk, const char *folder,
                                          struct tarn_object **out, size_t *count)
{
    size_t n = 0;
    TARN_TRY(walk_from(walk, folder));
    struct tarn_object *objects =
        tarn_arena_calloc(walk->op->arena, walk->count + 1, sizeof *objects);
    for (size_t i = 0; i < walk->count; i++) {
        if (!walk->recursive || !walk->objects[i].is_folder)
            objects[n++] = walk->objects[i];
    }
    tarn_store__sort(objects, n);
    *out = objects;
    *count = n;
    return TARN_OK;
}

struct tarn_status *tarn_store__walk_prune(
    struct tarn_walk *walk, const char *folder,
    struct tarn_status *(*remove_if_empty)(struct tarn_walk *walk, const char *folder))
{
    walk->recursive = true;
    TARN_TRY(walk_from(walk, folder));
    tarn_store__sort(walk->objects, walk->count);
    for (size_t i = walk->count; i > 0; i--) { /* what lies below a folder sorts after it */
        if (walk->objects[i - 1].is_folder)
            TARN_TRY(remove_if_empty(walk, (const char *)walk->objects[i - 1].key.data));
    }
    return folder[0] == '\0' ? TARN_OK : remove_if_empty(walk, folder);
}
