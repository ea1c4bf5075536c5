/*
 * tag - a name for a snapshot: the JSON object tag/tag-NAME.
 *
 * Shape    the snapshot's own JSON, whose members stay as they are; of a tag that is to go by itself also when it was made
 *          and how long it is kept. What it names stays readable when the snapshot has expired.
 * Units    create_time_ms: since 1970 UTC; in the file a local date and time, as Java writes it. retained_ms: milliseconds.
 *          TARN_SNAPSHOT_NONE where the file doesn't say.
 * Memory   as tarn_snapshot_decode.
 * Errors   SNAPSHOT_MALFORMED names the member.
 * Source   docs/format.md, "Tags"; bytes: test/golden/snapshot/java-tag-retained.json.
 */
#ifndef TARN_FORMAT_TAG_H
#define TARN_FORMAT_TAG_H

#include "format/snapshot.h"

#define TARN_TAG_NAME_SIZE_MAX 200
#define TARN_TAG_RETAINED_MAX_MS INT64_C(100000000000000) /* some 3,000 years */

struct tarn_tag {
    struct tarn_slice name;
    struct tarn_snapshot snapshot;
    int64_t create_time_ms, retained_ms;
};

/* NAME_INVALID for what is no name of a file. Digits only are a name: who asks for a version says which he means. */
TARN_MUST struct tarn_status *tarn_tag_check_name(struct tarn_slice name);
/* out->name is left as it is. */
TARN_MUST struct tarn_status *tarn_tag_decode(struct tarn_slice json, struct tarn_arena *arena,
                                              struct tarn_tag *out);
/* snapshot: the JSON of its file, which has been decoded. Appends. */
void tarn_tag_encode(struct tarn_slice snapshot, int64_t create_time_ms, int64_t retained_ms,
                     struct tarn_buf *out);
/* The snapshot's file again: a tag's JSON without the members of its own. Appends. */
TARN_MUST struct tarn_status *tarn_tag_encode_snapshot(struct tarn_slice tag, struct tarn_buf *out);

#endif
