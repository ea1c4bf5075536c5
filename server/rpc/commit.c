#include "rpc/table.h"

/* Commits. */

static struct tarn_status *take_entries(struct tarn_op *op, Tarn__V1__FileEntry *const *in,
                                        size_t count, const struct tarn_manifest_entry **out)
{
    struct tarn_manifest_entry *list = TARN_RPC_ARRAY(op, count, *list);
    for (size_t i = 0; i < count; i++) {
        if (in[i]->file == NULL || in[i]->kind < 0 || in[i]->kind > 1)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "entry %zu has %s", i,
                                   in[i]->file == NULL ? "no file" : "a kind other than 0 and 1");
        list[i] = (struct tarn_manifest_entry){
            .kind = in[i]->kind == 0 ? TARN_ENTRY_ADD : TARN_ENTRY_DELETE,
            .partition = tarn_rpc__slice(in[i]->partition),
            .bucket = in[i]->bucket,
            .total_buckets = in[i]->total_buckets,
            .file = tarn_rpc__take_file(op, in[i]->file),
        };
        if (list[i].partition.size == 0)
            list[i].partition = tarn_row_empty();
    }
    *out = list;
    return TARN_OK;
}

struct tarn_status *tarn_rpc__commit(struct tarn_op *op, struct tarn_service *service,
                                     const void *request, void *response)
{
    const Tarn__V1__CommitRequest *q = request;
    Tarn__V1__CommitResponse *r = response;
    struct tarn_commit c = {
        .user = tarn_slice_str(q->commit_user),
        .identifier = q->commit_identifier,
        .watermark = TARN_SNAPSHOT_NONE,
        .properties = tarn_rpc__pairs(op, q->properties, q->n_properties),
        .property_count = q->n_properties,
        .append.count = q->n_append,
        .compact.count = q->n_compact,
    };
    if (q->_watermark_case == TARN__V1__COMMIT_REQUEST___WATERMARK_WATERMARK)
        c.watermark = q->watermark;
    TARN_TRY(take_entries(op, q->append, q->n_append, &c.append.entries));
    TARN_TRY(take_entries(op, q->compact, q->n_compact, &c.compact.entries));
    struct tarn_commit_result result;
    TARN_TRY(tarn_service_commit(op, service, tarn_rpc__ref(q->table), &c, &result));
    r->snapshot_id = result.append_snapshot_id;
    r->compact_snapshot_id = result.compact_snapshot_id;
    r->repeated_commit = result.repeated;
    return TARN_OK;
}
