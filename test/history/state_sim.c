#include "state_sim.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct pair {
    struct tarn_buf key, value;
};

struct space { /* a family: pairs in order of key */
    struct pair *list;
    size_t count, capacity;
};

enum change_kind { PUT, REMOVE, REMOVE_RANGE };
struct change {
    enum change_kind kind;
    enum tarn_family family;
    struct tarn_buf key, other; /* value, or the end of the range */
};

struct batch {
    struct change *list;
    size_t count, capacity;
    bool past_log; /* a loader's: durable, whatever was lost before it */
};

struct disk { /* what a folder holds: the batches written, and what they add up to */
    char *folder;
    struct batch *log;
    size_t log_count, log_capacity, synced_count;
    struct space spaces[TARN_FAMILY_COUNT];
    bool open;
};

struct iterator {
    struct pair *list;
    size_t count, at;
};

struct view {
    struct space spaces[TARN_FAMILY_COUNT];
};

struct loader {
    struct disk *disk;
    enum tarn_family family;
    struct batch batch;
};

static bool in_use;
static struct disk **disks;
static size_t disk_count, disk_capacity;

void state_sim_use(bool use)
{
    in_use = use;
}

/* --- pairs in order --- */

static size_t place_of(const struct space *space, struct tarn_slice key, bool *found)
{
    size_t low = 0, high = space->count;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = tarn_slice_compare(tarn_buf_slice(&space->list[middle].key), key);
        if (c == 0) {
            *found = true;
            return middle;
        }
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void pair_fini(struct pair *pair)
{
    tarn_buf_drop(&pair->key);
    tarn_buf_drop(&pair->value);
}

static void space_put(struct space *space, struct tarn_slice key, struct tarn_slice value)
{
    bool found;
    size_t at = place_of(space, key, &found);
    if (!found) {
        TARN_GROW(space->list, space->count, space->capacity);
        memmove(&space->list[at + 1], &space->list[at], (space->count - at) * sizeof *space->list);
        space->list[at] = (struct pair){0};
        tarn_buf_add_slice(&space->list[at].key, key);
        space->count++;
    }
    tarn_buf_clear(&space->list[at].value);
    tarn_buf_add_slice(&space->list[at].value, value);
}

static void space_remove(struct space *space, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        pair_fini(&space->list[i]);
    if (to > from)
        memmove(&space->list[from], &space->list[to], (space->count - to) * sizeof *space->list);
    space->count -= to - from;
}

static void apply(struct disk *disk, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct change *c = &batch->list[i];
        struct space *space = &disk->spaces[c->family];
        struct tarn_slice key = tarn_buf_slice(&c->key), other = tarn_buf_slice(&c->other);
        bool found;
        size_t at = place_of(space, key, &found);
        if (c->kind == PUT)
            space_put(space, key, other);
        else if (c->kind == REMOVE)
            space_remove(space, at, at + found);
        else
            space_remove(space, at, TARN_MAX(at, place_of(space, other, &found)));
    }
}

/* --- batches --- */

static void batch_add(struct batch *batch, enum change_kind kind, enum tarn_family family,
                      struct tarn_slice key, struct tarn_slice other)
{
    TARN_GROW(batch->list, batch->count, batch->capacity);
    struct change *c = &batch->list[batch->count++];
    *c = (struct change){.kind = kind, .family = family};
    tarn_buf_add_slice(&c->key, key);
    tarn_buf_add_slice(&c->other, other);
}

static void space_fini(struct space *space)
{
    space_remove(space, 0, space->count);
    free(space->list);
}

static void batch_fini(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        tarn_buf_drop(&batch->list[i].key);
        tarn_buf_drop(&batch->list[i].other);
    }
    free(batch->list);
}

static void write_to(struct disk *disk, const struct batch *batch, bool synced)
{
    apply(disk, batch);
    TARN_GROW(disk->log, disk->log_count, disk->log_capacity);
    struct batch *copy = &disk->log[disk->log_count++];
    *copy = (struct batch){.past_log = batch->past_log};
    for (size_t i = 0; i < batch->count; i++)
        batch_add(copy, batch->list[i].kind, batch->list[i].family,
                  tarn_buf_slice(&batch->list[i].key), tarn_buf_slice(&batch->list[i].other));
    if (synced)
        disk->synced_count = disk->log_count;
}

/* --- disks --- */

static struct disk *disk_find(const char *folder, bool make)
{
    for (size_t i = 0; i < disk_count; i++)
        if (strcmp(disks[i]->folder, folder) == 0)
            return disks[i];
    if (!make)
        return NULL;
    struct disk *disk = tarn_calloc(1, sizeof *disk);
    disk->folder = tarn_strdup(folder);
    TARN_GROW(disks, disk_count, disk_capacity);
    disks[disk_count++] = disk;
    return disk;
}

/* --- a real one's folder: its files, as they are at this moment --- */

static void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = in == NULL ? NULL : fopen(to, "wb");
    char bytes[65536];
    for (size_t n; out != NULL && (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
        fwrite(bytes, 1, n, out);
    if (out != NULL)
        fclose(out);
    if (in != NULL)
        fclose(in);
}

/* Names and sizes of what is in a folder, added up. */
static uint64_t folder_sum(const char *folder)
{
    DIR *dir = opendir(folder);
    uint64_t sum = 0;
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        struct stat at;
        if (fstatat(dirfd(dir), e->d_name, &at, 0) == 0 && S_ISREG(at.st_mode))
            sum += tarn_xxh64(tarn_slice_str(e->d_name), (uint64_t)at.st_size);
    }
    if (dir != NULL)
        closedir(dir);
    return sum;
}

static void copy_folder(const char *from, const char *to)
{
    DIR *dir = opendir(from);
    mkdir(to, 0700);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        TARN_OWN(tarn_free_drop) char *source = tarn_format("%s/%s", from, e->d_name);
        TARN_OWN(tarn_free_drop) char *target = tarn_format("%s/%s", to, e->d_name);
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            copy_folder(source, target);
        else if (e->d_type == DT_REG)
            copy_file(source, target);
    }
    if (dir != NULL)
        closedir(dir);
}

void state_sim_copy(const char *folder, const char *to, size_t lost)
{
    /* Again where RocksDB's own threads moved files meanwhile: a kill leaves one moment's. */
    for (int tries = 0; !in_use && tries < 1000; tries++) {
        uint64_t before = folder_sum(folder);
        TARN_OWN(tarn_free_drop) char *clean = tarn_format("rm -rf '%s'", to);
        if (system(clean) != 0)
            break;
        copy_folder(folder, to);
        if (folder_sum(folder) == before)
            break;
    }
    if (!in_use)
        return;
    struct disk *from = disk_find(folder, false);
    struct disk *copy = disk_find(to, true);
    if (from == NULL)
        return;
    size_t kept = from->log_count - TARN_MIN(lost, from->log_count - from->synced_count);
    for (size_t i = 0; i < from->log_count; i++)
        if (i < kept || from->log[i].past_log)
            write_to(copy, &from->log[i], true);
}

size_t state_sim_unsynced(const char *folder)
{
    struct disk *disk = disk_find(folder, false);
    return disk == NULL ? 0 : disk->log_count - disk->synced_count;
}

void state_sim_remove_all(void)
{
    for (size_t i = 0; i < disk_count; i++) {
        for (size_t f = 0; f < TARN_FAMILY_COUNT; f++)
            space_fini(&disks[i]->spaces[f]);
        for (size_t b = 0; b < disks[i]->log_count; b++)
            batch_fini(&disks[i]->log[b]);
        free(disks[i]->log);
        free(disks[i]->folder);
        free(disks[i]);
    }
    free(disks);
    disks = NULL;
    disk_count = disk_capacity = 0;
}

/* --- in the place of room state --- */

#define STATE(type, name, ...)                                                                     \
    type __real_tarn_state_##name(__VA_ARGS__);                                                    \
    type __wrap_tarn_state_##name(__VA_ARGS__);                                                    \
    type __wrap_tarn_state_##name(__VA_ARGS__)

STATE(struct tarn_status *, open, const char *folder, bool *fresh, struct tarn_state **out)
{
    if (!in_use)
        return __real_tarn_state_open(folder, fresh, out);
    struct disk *disk = disk_find(folder, true);
    tarn_assert(!disk->open);
    disk->open = true;
    *fresh = disk->log_count == 0;
    *out = (struct tarn_state *)disk;
    return TARN_OK;
}

STATE(void, close, struct tarn_state *state)
{
    if (!in_use)
        __real_tarn_state_close(state);
    else if (state != NULL)
        ((struct disk *)state)->open = false;
}

STATE(struct tarn_status *, problem, struct tarn_state *state)
{
    return in_use ? TARN_OK : __real_tarn_state_problem(state);
}

STATE(void, tidy, struct tarn_state *state)
{
    if (!in_use)
        __real_tarn_state_tidy(state);
}

STATE(void, memory, struct tarn_state *state, struct tarn_state_memory *out)
{
    *out = (struct tarn_state_memory){0};
    if (!in_use)
        __real_tarn_state_memory(state, out);
}

STATE(struct tarn_status *, get, struct tarn_state *state, enum tarn_family family,
      struct tarn_slice key, bool *found, struct tarn_buf *out)
{
    if (!in_use)
        return __real_tarn_state_get(state, family, key, found, out);
    struct space *space = &((struct disk *)state)->spaces[family];
    size_t at = place_of(space, key, found);
    if (*found)
        tarn_buf_add_slice(out, tarn_buf_slice(&space->list[at].value));
    return TARN_OK;
}

struct tarn_state_batch *__real_tarn_state_batch_new(void);
struct tarn_state_batch *__wrap_tarn_state_batch_new(void);
struct tarn_state_batch *__wrap_tarn_state_batch_new(void)
{
    return in_use ? tarn_calloc(1, sizeof(struct batch)) : __real_tarn_state_batch_new();
}

STATE(void, batch_free, struct tarn_state_batch *batch)
{
    if (!in_use) {
        __real_tarn_state_batch_free(batch);
    } else if (batch != NULL) {
        batch_fini((struct batch *)batch);
        free(batch);
    }
}

STATE(void, batch_drop, struct tarn_state_batch **batch)
{
    __wrap_tarn_state_batch_free(*batch);
    *batch = NULL;
}

STATE(void, batch_put, struct tarn_state_batch *batch, struct tarn_state *state,
      enum tarn_family family, struct tarn_slice key, struct tarn_slice value)
{
    if (in_use)
        batch_add((struct batch *)batch, PUT, family, key, value);
    else
        __real_tarn_state_batch_put(batch, state, family, key, value);
}

STATE(void, batch_remove, struct tarn_state_batch *batch, struct tarn_state *state,
      enum tarn_family family, struct tarn_slice key)
{
    if (in_use)
        batch_add((struct batch *)batch, REMOVE, family, key, tarn_slice_str(NULL));
    else
        __real_tarn_state_batch_remove(batch, state, family, key);
}

STATE(void, batch_remove_range, struct tarn_state_batch *batch, struct tarn_state *state,
      enum tarn_family family, struct tarn_slice from, struct tarn_slice to)
{
    if (in_use)
        batch_add((struct batch *)batch, REMOVE_RANGE, family, from, to);
    else
        __real_tarn_state_batch_remove_range(batch, state, family, from, to);
}

STATE(struct tarn_status *, write, struct tarn_state *state, struct tarn_state_batch *batch,
      bool synced)
{
    if (!in_use)
        return __real_tarn_state_write(state, batch, synced);
    write_to((struct disk *)state, (struct batch *)batch, synced);
    return TARN_OK;
}

static struct tarn_state_iterator *iterate(const struct space *space, struct tarn_slice from,
                                           struct tarn_slice prefix, struct tarn_slice to)
{
    struct iterator *it = tarn_calloc(1, sizeof *it);
    size_t capacity = 0;
    bool found;
    for (size_t i = place_of(space, from, &found); i < space->count; i++) {
        struct tarn_slice key = tarn_buf_slice(&space->list[i].key);
        if (key.size < prefix.size ||
            (prefix.size > 0 && memcmp(key.data, prefix.data, prefix.size) != 0) ||
            (to.size > 0 && tarn_slice_compare(key, to) >= 0))
            break;
        TARN_GROW(it->list, it->count, capacity);
        struct pair *pair = &it->list[it->count++];
        *pair = (struct pair){0};
        tarn_buf_add_slice(&pair->key, key);
        tarn_buf_add_slice(&pair->value, tarn_buf_slice(&space->list[i].value));
    }
    return (struct tarn_state_iterator *)it;
}

STATE(struct tarn_state_iterator *, iterator_new, struct tarn_state *state, enum tarn_family family,
      struct tarn_slice prefix)
{
    if (!in_use)
        return __real_tarn_state_iterator_new(state, family, prefix);
    return iterate(&((struct disk *)state)->spaces[family], prefix, prefix, tarn_slice_str(NULL));
}

STATE(struct tarn_state_iterator *, iterator_open, struct tarn_state *state,
      enum tarn_family family, const struct tarn_state_range *range)
{
    if (!in_use)
        return __real_tarn_state_iterator_open(state, family, range);
    const struct view *view = (const struct view *)range->view;
    return iterate(view != NULL ? &view->spaces[family] : &((struct disk *)state)->spaces[family],
                   range->from, tarn_slice_str(NULL), range->to);
}

STATE(struct tarn_state_view *, view_new, struct tarn_state *state)
{
    if (!in_use)
        return __real_tarn_state_view_new(state);
    struct view *view = tarn_calloc(1, sizeof *view);
    for (size_t f = 0; f < TARN_FAMILY_COUNT; f++) {
        const struct space *space = &((struct disk *)state)->spaces[f];
        for (size_t i = 0; i < space->count; i++)
            space_put(&view->spaces[f], tarn_buf_slice(&space->list[i].key),
                      tarn_buf_slice(&space->list[i].value));
    }
    return (struct tarn_state_view *)view;
}

STATE(void, view_free, struct tarn_state_view *handle)
{
    struct view *view = (struct view *)handle;
    if (!in_use) {
        __real_tarn_state_view_free(handle);
    } else if (view != NULL) {
        for (size_t f = 0; f < TARN_FAMILY_COUNT; f++)
            space_fini(&view->spaces[f]);
        free(view);
    }
}

STATE(void, view_drop, struct tarn_state_view **view)
{
    __wrap_tarn_state_view_free(*view);
    *view = NULL;
}

STATE(struct tarn_status *, loader_new, struct tarn_state *state, enum tarn_family family,
      struct tarn_state_loader **out)
{
    if (!in_use)
        return __real_tarn_state_loader_new(state, family, out);
    struct loader *loader = tarn_calloc(1, sizeof *loader);
    *loader = (struct loader){(struct disk *)state, family, {.past_log = true}};
    *out = (struct tarn_state_loader *)loader;
    return TARN_OK;
}

STATE(struct tarn_status *, loader_put, struct tarn_state_loader *loader, struct tarn_slice key,
      struct tarn_slice value)
{
    if (!in_use)
        return __real_tarn_state_loader_put(loader, key, value);
    batch_add(&((struct loader *)loader)->batch, PUT, ((struct loader *)loader)->family, key,
              value);
    return TARN_OK;
}

STATE(struct tarn_status *, loader_finish, struct tarn_state_loader *handle)
{
    if (!in_use)
        return __real_tarn_state_loader_finish(handle);
    struct loader *loader = (struct loader *)handle;
    if (loader->batch.count > 0)
        write_to(loader->disk, &loader->batch, false);
    return TARN_OK;
}

STATE(void, loader_free, struct tarn_state_loader *loader)
{
    if (!in_use) {
        __real_tarn_state_loader_free(loader);
    } else if (loader != NULL) {
        batch_fini(&((struct loader *)loader)->batch);
        free(loader);
    }
}

STATE(void, loader_drop, struct tarn_state_loader **loader)
{
    __wrap_tarn_state_loader_free(*loader);
    *loader = NULL;
}

STATE(void, iterator_seek, struct tarn_state_iterator *handle, struct tarn_slice key)
{
    if (!in_use) {
        __real_tarn_state_iterator_seek(handle, key);
        return;
    }
    struct iterator *it = (struct iterator *)handle;
    struct space space = {.list = it->list, .count = it->count};
    bool found;
    it->at = place_of(&space, key, &found);
}

STATE(bool, iterator_next, struct tarn_state_iterator *handle, struct tarn_slice *key,
      struct tarn_slice *value)
{
    if (!in_use)
        return __real_tarn_state_iterator_next(handle, key, value);
    struct iterator *it = (struct iterator *)handle;
    if (it->at >= it->count)
        return false;
    *key = tarn_buf_slice(&it->list[it->at].key);
    *value = tarn_buf_slice(&it->list[it->at].value);
    it->at++;
    return true;
}

STATE(bool, iterator_find, struct tarn_state_iterator *handle, struct tarn_slice key,
      struct tarn_slice *value)
{
    struct tarn_slice found;
    if (!in_use)
        return __real_tarn_state_iterator_find(handle, key, value);
    tarn_state_iterator_seek(handle, key);
    if (!tarn_state_iterator_next(handle, &found, value))
        return false;
    struct iterator *it = (struct iterator *)handle;
    bool same = tarn_slice_equal(found, key);
    it->at -= !same; /* what is there comes next */
    return same;
}

STATE(struct tarn_status *, iterator_error, struct tarn_state_iterator *handle)
{
    return in_use ? TARN_OK : __real_tarn_state_iterator_error(handle);
}

STATE(void, iterator_free, struct tarn_state_iterator *handle)
{
    struct iterator *it = (struct iterator *)handle;
    if (!in_use) {
        __real_tarn_state_iterator_free(handle);
    } else if (it != NULL) {
        for (size_t i = 0; i < it->count; i++)
            pair_fini(&it->list[i]);
        free(it->list);
        free(it);
    }
}

STATE(void, iterator_drop, struct tarn_state_iterator **handle)
{
    __wrap_tarn_state_iterator_free(*handle);
    *handle = NULL;
}

STATE(void, load_begin, struct tarn_state *handle)
{
    if (!in_use)
        __real_tarn_state_load_begin(handle);
}

STATE(void, load_end, struct tarn_state *handle)
{
    if (!in_use)
        __real_tarn_state_load_end(handle);
}
