/*
 * Writes the metadata of a table anew: rewrite_metadata TABLE_FOLDER CODEC. Every schema, snapshot, manifest,
 * list and index manifest is decoded and encoded by room format and put back under its name; format_metadata.sh then
 * lets real engines read the table.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"

#define FILE_SIZE_MAX (16 << 20)

struct table {
    struct tarn_arena *arena;
    const char *folder;
    struct tarn_slice codec;
    uint8_t sync[16];
};

static void check(struct tarn_status *s, const char *path)
{
    if (s == NULL)
        return;
    fprintf(stderr, "%s: %s\n", path, tarn_status_message(s));
    exit(1);
}

static struct tarn_slice read_file(struct table *t, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    uint8_t *bytes = tarn_arena_alloc(t->arena, FILE_SIZE_MAX);
    size_t size = fread(bytes, 1, FILE_SIZE_MAX, file);
    fclose(file);
    return tarn_slice_of(bytes, size);
}

static void write_file(const char *path, struct tarn_buf *bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes->data, 1, bytes->size, file) != bytes->size ||
        fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    tarn_buf_drop(bytes);
}

static int64_t size_of(struct table *t, struct tarn_slice manifest)
{
    return (int64_t)read_file(t, tarn_arena_printf(t->arena, "%s/manifest/%.*s", t->folder,
                                                   TARN_SLICE_ARG(manifest)))
        .size;
}

static void rewrite_manifest(struct table *t, const char *path)
{
    struct tarn_buf out = {0};
    struct tarn_manifest_entry *entries;
    size_t count;
    check(tarn_manifest_decode(read_file(t, path), t->arena, &entries, &count), path);
    for (size_t i = 0; i < count; i++) { /* through the packed form, too */
        TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
        tarn_manifest_entry_pack(&entries[i], true, &packed);
        check(tarn_manifest_entry_unpack(tarn_buf_slice(&packed), t->arena, &entries[i]), path);
    }
    check(tarn_manifest_encode(entries, count, t->codec, 1, t->sync, &out), path);
    write_file(path, &out);
}

static void rewrite_list(struct table *t, const char *path)
{
    struct tarn_buf out = {0};
    struct tarn_manifest_file *files;
    size_t count;
    check(tarn_manifest_list_decode(read_file(t, path), t->arena, &files, &count), path);
    for (size_t i = 0; i < count; i++)
        files[i].size = size_of(t, files[i].name);
    check(tarn_manifest_list_encode(files, count, t->codec, 1, t->sync, &out), path);
    write_file(path, &out);
}

static void rewrite_index(struct table *t, const char *path)
{
    struct tarn_buf out = {0};
    struct tarn_index_file *files;
    size_t count;
    check(tarn_index_manifest_decode(read_file(t, path), t->arena, &files, &count), path);
    /* As a commit without changes would: by the rules for tables with buckets. */
    check(tarn_index_combine(files, count, NULL, 0, true, t->arena, &files, &count), path);
    check(tarn_index_manifest_encode(files, count, t->codec, 1, t->sync, &out), path);
    write_file(path, &out);
}

static void rewrite_snapshot(struct table *t, const char *path)
{
    struct tarn_buf out = {0};
    struct tarn_snapshot s;
    check(tarn_snapshot_decode(read_file(t, path), t->arena, &s), path);
    s.base_list_size = size_of(t, s.base_list);
    s.delta_list_size = size_of(t, s.delta_list);
    tarn_snapshot_encode(&s, &out);
    write_file(path, &out);
}

static void rewrite_schema(struct table *t, const char *path)
{
    struct tarn_buf out = {0};
    struct tarn_schema s;
    check(tarn_schema_decode(read_file(t, path), t->arena, &s), path);
    tarn_schema_encode(&s, &out);
    write_file(path, &out);
}

static void each(struct table *t, const char *sub, const char *prefix, const char *but,
                 void (*rewrite)(struct table *t, const char *path))
{
    char *folder = tarn_arena_printf(t->arena, "%s/%s", t->folder, sub);
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            (but == NULL || strncmp(entry->d_name, but, strlen(but)) != 0))
            rewrite(t, tarn_arena_printf(t->arena, "%s/%s", folder, entry->d_name));
    if (dir == NULL)
        perror(folder);
    else
        closedir(dir);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct table t = {
        .arena = tarn_arena_new(), .folder = argv[1], .codec = tarn_slice_str(argv[2])};
    tarn_random_bytes(t.sync, sizeof t.sync);
    each(&t, "manifest", "manifest-", "manifest-list-", rewrite_manifest);
    each(&t, "manifest", "manifest-list-", NULL, rewrite_list);
    each(&t, "manifest", "index-manifest-", NULL, rewrite_index);
    each(&t, "snapshot", "snapshot-", NULL, rewrite_snapshot);
    each(&t, "schema", "schema-", NULL, rewrite_schema);
    tarn_arena_free(t.arena);
    return 0;
}
