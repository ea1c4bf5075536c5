/*
 * snapshot - one committed version of a table: the JSON object snapshot/snapshot-N.
 *
 * Shape    id counts from 1 without gaps; base_list and delta_list together name every live file.
 *          Unknown members are skipped (snapshots are always made anew); a member Paimon may leave out
 *          is an absent slice, or TARN_SNAPSHOT_NONE where it is a number.
 * Units    time_ms: since 1970 UTC. Record counts: summed over data files, unmerged; not rows a reader sees.
 * Memory   what a decoded snapshot points at lies in the arena given to decode.
 * Errors   SNAPSHOT_MALFORMED names the member.
 * Source   docs/format.md, "Snapshots"; bytes: test/golden/snapshot/.
 */
#ifndef TARN_FORMAT_SNAPSHOT_H
#define TARN_FORMAT_SNAPSHOT_H

#include "format/schema.h"

#define TARN_SNAPSHOT_NONE INT64_MIN /* of optional numbers */
#define TARN_COMMIT_IDENTIFIER_BATCH INT64_MAX

enum tarn_commit_kind {
    TARN_COMMIT_APPEND,
    TARN_COMMIT_COMPACT,
    TARN_COMMIT_OVERWRITE,
    TARN_COMMIT_ANALYZE
};
const char *tarn_commit_kind_name(enum tarn_commit_kind kind); /* "APPEND" */

struct tarn_snapshot {
    int32_t version;
    struct tarn_slice uuid;
    int64_t id;
    int64_t schema_id;
    struct tarn_slice base_list;
    int64_t base_list_size;
    struct tarn_slice delta_list;
    int64_t delta_list_size;
    struct tarn_slice changelog_list;
    int64_t changelog_list_size;
    struct tarn_slice index_manifest;
    struct tarn_slice commit_user;
    struct tarn_slice writer_version;
    int64_t commit_identifier;
    enum tarn_commit_kind kind;
    int64_t time_ms;
    int64_t total_record_count, delta_record_count, changelog_record_count;
    int64_t watermark;
    struct tarn_slice statistics;
    const struct tarn_pair *properties;
    size_t property_count;
    int64_t next_row_id;
    struct tarn_slice operation;
    struct tarn_slice json; /* its file's own text, where whoever read that set it; else absent */
};

TARN_MUST struct tarn_status *tarn_snapshot_decode(struct tarn_slice json, struct tarn_arena *arena,
                                                   struct tarn_snapshot *out);
/* What tells it from others of its id, which is used again after a roll-back: its uuid, or where it has none (Paimon before 2) the
 * name of its delta list. Borrows. */
struct tarn_slice tarn_snapshot_proof(const struct tarn_snapshot *snapshot);
/* Is `proof` one of the two? */
bool tarn_snapshot_is(const struct tarn_snapshot *snapshot, struct tarn_slice proof);
void tarn_snapshot_encode(const struct tarn_snapshot *snapshot, struct tarn_buf *out); /* appends */

#endif
