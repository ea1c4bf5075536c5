#include "service/internal.h"

#include "format/commit_message.h"

/* Commit messages as Paimon's writers serialize them, turned into the two parts of a commit (docs/format.md,
 * "Commit messages"). */

struct part_builder {
    struct tarn_manifest_entry *entries, *changelog;
    size_t count, capacity, changelog_count, changelog_capacity;
    struct tarn_index_file *index;
    size_t index_count, index_capacity;
};

static void part_builder_fini(struct part_builder *b)
{
    free(b->entries);
    free(b->changelog);
    free(b->index);
}

static void add_files(const struct tarn_commit_message *m, int32_t total_buckets,
                      enum tarn_entry_kind kind, const struct tarn_commit_files *files,
                      struct tarn_manifest_entry **list, size_t *count, size_t *capacity)
{
    for (size_t i = 0; i < files->count; i++) {
        TARN_GROW(*list, *count, *capacity);
        (*list)[(*count)++] = (struct tarn_manifest_entry){
            .kind = kind,
            .partition = m->partition,
            .bucket = m->bucket,
            .total_buckets = m->has_total_buckets ? m->total_buckets : total_buckets,
            .file = files->files[i],
        };
    }
}

static void add_indexes(struct part_builder *b, enum tarn_entry_kind kind,
                        const struct tarn_commit_indexes *indexes)
{
    for (size_t i = 0; i < indexes->count; i++) {
        TARN_GROW(b->index, b->index_count, b->index_capacity);
        b->index[b->index_count] = indexes->files[i];
        b->index[b->index_count++].kind = kind;
    }
}

static void *keep_list(struct tarn_op *op, const void *list, size_t count, size_t size)
{
    void *copy = tarn_arena_calloc(op->arena, count + 1, size);
    if (count > 0)
        memcpy(copy, list, count * size);
    return copy;
}

static void finish_part(struct tarn_op *op, const struct part_builder *b,
                        struct tarn_commit_part *out)
{
    *out = (struct tarn_commit_part){
        .entries = keep_list(op, b->entries, b->count, sizeof *b->entries),
        .count = b->count,
        .changelog = keep_list(op, b->changelog, b->changelog_count, sizeof *b->changelog),
        .changelog_count = b->changelog_count,
        .index = keep_list(op, b->index, b->index_count, sizeof *b->index),
        .index_count = b->index_count,
    };
}

static void add_message(const struct tarn_commit_message *m, int32_t buckets,
                        struct part_builder *append, struct part_builder *compact)
{
    add_files(m, buckets, TARN_ENTRY_ADD, &m->new_files, &append->entries, &append->count,
              &append->capacity);
    add_files(m, buckets, TARN_ENTRY_DELETE, &m->deleted_files, &append->entries, &append->count,
              &append->capacity);
    add_files(m, buckets, TARN_ENTRY_ADD, &m->changelog_files, &append->changelog,
              &append->changelog_count, &append->changelog_capacity);
    add_indexes(append, TARN_ENTRY_DELETE, &m->deleted_indexes);
    add_indexes(append, TARN_ENTRY_ADD, &m->new_indexes);
    add_files(m, buckets, TARN_ENTRY_DELETE, &m->compact_before, &compact->entries, &compact->count,
              &compact->capacity);
    add_files(m, buckets, TARN_ENTRY_ADD, &m->compact_after, &compact->entries, &compact->count,
              &compact->capacity);
    add_files(m, buckets, TARN_ENTRY_ADD, &m->compact_changelog, &compact->changelog,
              &compact->changelog_count, &compact->changelog_capacity);
    add_indexes(compact, TARN_ENTRY_DELETE, &m->compact_deleted_indexes);
    add_indexes(compact, TARN_ENTRY_ADD, &m->compact_new_indexes);
}

struct tarn_status *tarn_service__take_messages(struct tarn_op *op,
                                                const struct tarn_table_view *view,
                                                struct tarn_commit_request *request)
{
    struct tarn_commit *commit = &request->commit;
    if (tarn_commit_entry_count(commit) > 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a commit brings files or serialized messages, not both");
    TARN_OWN(part_builder_fini) struct part_builder append = {0};
    TARN_OWN(part_builder_fini) struct part_builder compact = {0};
    for (size_t i = 0; i < request->message_count; i++) {
        struct tarn_commit_message m;
        struct tarn_status *s = tarn_commit_message_decode(request->messages[i],
                                                           request->message_version, op->arena, &m);
        if (s != TARN_OK)
            return tarn_status_wrap(s, "message %zu", i);
        if (m.has_check_snapshot)
            return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                                   "message %zu changes rows by their ids, as of snapshot %" PRId64
                                   ": that is not checked by this version",
                                   i, m.check_snapshot);
        add_message(&m, view->options.bucket, &append, &compact);
        if (append.count + compact.count > TARN_COMMIT_ENTRIES_MAX)
            break; /* the caller says so */
    }
    finish_part(op, &append, &commit->append);
    finish_part(op, &compact, &commit->compact);
    return TARN_OK;
}
