#include "history.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What a run leaves behind, as files: readers that know nothing of this program are asked what they find there. */

static void make_folders_above(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            broken("make the folder %s: %s", path, strerror(errno));
        *slash = '/';
    }
}

static void write_file(char *path, struct tarn_slice bytes)
{
    make_folders_above(path);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes.data, 1, bytes.size, file) != bytes.size || fclose(file) != 0)
        broken("write %s: %s", path, strerror(errno));
}

static void leave_object(const char *folder, struct tarn_slice key)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    const char *name = tarn_arena_printf(world->op->arena, "%.*s", TARN_SLICE_ARG(key));
    struct tarn_status *s = tarn_store_get(world->memory, world->op, name, &bytes);
    if (s != TARN_OK)
        broken("%s", tarn_status_message(s));
    write_file(tarn_arena_printf(world->op->arena, "%s/h.db/t%" PRIu64 "%s", folder,
                                 world->plan.seed, name + strlen(HISTORY_TABLE)),
               tarn_buf_slice(&bytes));
}

/* A line a snapshot: its id, and the names of its files. */
static void leave_truth(const char *folder)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    const struct snap *latest = truth_latest();
    for (int64_t id = truth_earliest_id(); latest != NULL && id <= latest->id; id++) {
        tarn_buf_printf(&text, "%" PRId64, id);
        for (size_t i = 0; i < world->at[id]->live.count; i++)
            tarn_buf_printf(&text, " %s", world->at[id]->live.list[i]->name);
        tarn_buf_add_str(&text, "\n");
    }
    write_file(tarn_arena_printf(world->op->arena, "%s/t%" PRIu64, folder, world->plan.seed),
               tarn_buf_slice(&text));
}

void leave_table(const char *folder)
{
    struct tarn_object *objects;
    size_t count;
    struct tarn_status *s =
        tarn_store_list(world->memory, world->op, HISTORY_TABLE, true, &objects, &count);
    if (s != TARN_OK)
        broken("%s", tarn_status_message(s));
    for (size_t i = 0; i < count; i++)
        leave_object(folder, objects[i].key);
    leave_truth(folder);
}
