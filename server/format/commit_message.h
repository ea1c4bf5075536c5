/*
 * commit_message - what a writer hands to a commit, as Paimon's Java library serialises it.
 *
 * Shape    one message is about one partition and bucket: files added, deleted and written as changelog
 *          by the writer, the same of a compaction, and the index files of both. The version of the
 *          serializer travels beside the bytes, which don't say it: 10 (Paimon 1.3), 11 (1.4), 12 (2.0),
 *          13 (2.1), 14 (pypaimon 2.1).
 * Memory   what a decoded message points at lies in the arena given to decode.
 * Bounds   every count and length is held against the bytes that are left before anything is made of it.
 * Errors   COMMIT_MESSAGE_INVALID names the list, the element and the field, or the version it can't read
 *          and those it can.
 * Source   docs/format.md, "Commit messages"; org.apache.paimon.table.sink.CommitMessageSerializer;
 *          bytes: test/golden/commit_message/.
 */
#ifndef TARN_FORMAT_COMMIT_MESSAGE_H
#define TARN_FORMAT_COMMIT_MESSAGE_H

#include "format/manifest.h"

#define TARN_COMMIT_MESSAGE_VERSION_MIN 10
#define TARN_COMMIT_MESSAGE_VERSION_MAX 14

struct tarn_commit_files {
    struct tarn_data_file *files;
    size_t count;
};
struct tarn_commit_indexes { /* partition, bucket and kind of each are set */
    struct tarn_index_file *files;
    size_t count;
};

struct tarn_commit_message {
    struct tarn_slice partition; /* serialized row */
    int32_t bucket;
    bool has_total_buckets;
    int32_t total_buckets;
    struct tarn_commit_files new_files, deleted_files, changelog_files;
    struct tarn_commit_indexes new_indexes, deleted_indexes;
    struct tarn_commit_files compact_before, compact_after, compact_changelog;
    struct tarn_commit_indexes compact_new_indexes, compact_deleted_indexes;
    bool has_check_snapshot; /* rows that it names by id must not have changed after this one */
    int64_t check_snapshot;
};

/* Borrows `bytes` for the call. Bytes behind the message are an error. */
TARN_MUST struct tarn_status *tarn_commit_message_decode(struct tarn_slice bytes, int32_t version,
                                                         struct tarn_arena *arena,
                                                         struct tarn_commit_message *out);
/* Appends what Java's serializer of that version writes; fields younger than it are left out. Files that
 * are `unknown`, and versions not known, are COMMIT_MESSAGE_INVALID. */
TARN_MUST struct tarn_status *tarn_commit_message_encode(const struct tarn_commit_message *message,
                                                         int32_t version, struct tarn_buf *out);

#endif
