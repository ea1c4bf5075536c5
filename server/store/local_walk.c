/*
 * Lists and prunes folders of the local driver. One folder is open at a time, whatever the
 * depth, and links to folders are shown but not entered, so that no walk goes in circles.
 */
#include "store/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define OBJECTS_MAX ((size_t)8 << 20) /* of one list; beyond it TOO_LARGE: some 1 GiB of names */
#define CHECK_EVERY 4096              /* entries, between two looks at the deadline */

struct walk {
    const struct local *local;
    struct tarn_op *op;
    bool recursive;
    struct tarn_object
        *objects; /* owned; keys in the op's arena. With the folders, also when not shown */
    size_t count;
    size_t capacity;
};

static void walk_fini(struct walk *walk)
{
    free(walk->objects);
}

static bool is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* A link is what it leads to, as long as that is inside the store. */
static bool look_through(const struct local *local, const char *key, struct stat *st)
{
    TARN_OWN(tarn_store__close_drop) int fd = tarn_store__local_open_at(local, key, O_PATH);
    return fd >= 0 && fstat(fd, st) == 0;
}

/* Adds one entry; what is no object (pipes, names that can't be keys, gone by now) is left out. */
static struct tarn_status *visit(struct walk *walk, int folder, const char *prefix,
                                 const char *name)
{
    struct stat st;
    if (!tarn_utf8_valid(tarn_slice_str(name)))
        return TARN_OK;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return tarn_store__local_is_absent(errno)
                   ? TARN_OK
                   : tarn_store__local_error(errno, "look into", prefix);
    char *key = prefix[0] == '\0' ? tarn_arena_str(walk->op->arena, tarn_slice_str(name))
                                  : tarn_arena_printf(walk->op->arena, "%s/%s", prefix, name);
    bool is_link = S_ISLNK(st.st_mode);
    if (is_link && !look_through(walk->local, key, &st))
        return TARN_OK;
    bool is_folder = S_ISDIR(st.st_mode);
    if (!(is_folder || S_ISREG(st.st_mode)) || (is_folder && is_link && walk->recursive))
        return TARN_OK;
    if (walk->count >= OBJECTS_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "folder '%s' holds more than %zu objects", prefix,
                               OBJECTS_MAX);
    TARN_GROW(walk->objects, walk->count, walk->capacity);
    walk->objects[walk->count++] = (struct tarn_object){
        .key = tarn_slice_str(key),
        .size = is_folder ? 0 : st.st_size,
        .mtime_ms = is_folder ? 0 : tarn_store__mtime_ms(&st),
        .is_folder = is_folder,
    };
    return walk->count % CHECK_EVERY == 0 ? tarn_op_check(walk->op) : TARN_OK;
}

static struct tarn_status *visit_all(struct walk *walk, DIR *folder, const char *prefix)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL)
            return errno == 0 ? TARN_OK : tarn_store__local_error(errno, "list", prefix);
        if (!is_dot(entry->d_name))
            TARN_TRY(visit(walk, dirfd(folder), prefix, entry->d_name));
    }
}

static struct tarn_status *walk_folder(struct walk *walk, const char *prefix)
{
    int fd = tarn_store__local_open_at(walk->local, prefix, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return tarn_store__local_is_absent(errno) ? TARN_OK
                                                  : tarn_store__local_error(errno, "list", prefix);
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        int error = errno;
        close(fd);
        return tarn_store__local_error(error, "list", prefix);
    }
    struct tarn_status *status = visit_all(walk, folder, prefix);
    closedir(folder);
    return status;
}

/* Folders found on the way stand in the list themselves, behind the place that is looked at. */
static struct tarn_status *walk_from(struct walk *walk, const char *prefix)
{
    TARN_TRY(walk_folder(walk, prefix));
    for (size_t i = 0; walk->recursive && i < walk->count; i++) {
        if (walk->objects[i].is_folder) /* keys of the walk end with a NUL */
            TARN_TRY(walk_folder(walk, (const char *)walk->objects[i].key.data));
    }
    return TARN_OK;
}

struct tarn_status *tarn_store__local_list(void *self, struct tarn_op *op, const char *prefix,
                                           bool recursive, struct tarn_object **out, size_t *count)
{
    size_t n = 0;
    TARN_OWN(walk_fini) struct walk walk = {.local = self, .op = op, .recursive = recursive};
    TARN_TRY(walk_from(&walk, prefix));
    struct tarn_object *objects = tarn_arena_calloc(op->arena, walk.count + 1, sizeof *objects);
    for (size_t i = 0; i < walk.count; i++) {
        if (!recursive || !walk.objects[i].is_folder)
            objects[n++] = walk.objects[i];
    }
    tarn_store__sort(objects, n);
    *out = objects;
    *count = n;
    return TARN_OK;
}

static struct tarn_status *remove_folder_if_empty(struct local *local, const char *key)
{
    const char *name;
    TARN_OWN(tarn_store__close_drop) int above = -1;
    struct tarn_status *status = tarn_store__local_open_parent(local, key, false, &above, &name);
    if (tarn_status_reason(status) == TARN_OBJECT_NOT_FOUND) {
        tarn_status_drop(&status);
        return TARN_OK;
    }
    TARN_TRY(status);
    if (unlinkat(above, name, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY || errno == EEXIST ||
        errno == EBUSY || tarn_store__local_is_absent(errno))
        return TARN_OK;
    return tarn_store__local_error(errno, "remove the folder", key);
}

/* Not synced: an empty folder that comes back harms nobody. */
struct tarn_status *tarn_store__local_prune(void *self, struct tarn_op *op, const char *key)
{
    TARN_OWN(walk_fini) struct walk walk = {.local = self, .op = op, .recursive = true};
    TARN_TRY(walk_from(&walk, key));
    tarn_store__sort(walk.objects, walk.count);
    for (size_t i = walk.count; i > 0; i--) { /* what lies below a folder sorts after it */
        if (walk.objects[i - 1].is_folder)
            TARN_TRY(remove_folder_if_empty(self, (const char *)walk.objects[i - 1].key.data));
    }
    return key[0] == '\0' ? TARN_OK : remove_folder_if_empty(self, key);
}
