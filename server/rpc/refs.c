#include "rpc/table.h"

#include "service/refs.h"

/* TableService: tags, branches and roll-back. */

static Tarn__V1__Tag *put_tag(struct tarn_op *op, const struct tarn_tag *tag, Tarn__V1__Tag *out)
{
    out->name = tarn_rpc__text(op, tag->name);
    out->snapshot = tarn_rpc__put_snapshot(op, &tag->snapshot);
    if (tag->create_time_ms != TARN_SNAPSHOT_NONE) {
        out->_create_time_case = TARN__V1__TAG___CREATE_TIME_CREATE_TIME_MS;
        out->create_time_ms = tag->create_time_ms;
    }
    if (tag->retained_ms != TARN_SNAPSHOT_NONE) {
        out->_retained_case = TARN__V1__TAG___RETAINED_RETAINED_MS;
        out->retained_ms = tag->retained_ms;
    }
    return out;
}

struct tarn_status *tarn_rpc__create_tag(struct tarn_op *op, struct tarn_service *service,
                                         const void *request, void *response)
{
    const Tarn__V1__CreateTagRequest *q = request;
    struct tarn_version version;
    struct tarn_tag tag;
    TARN_TRY(tarn_rpc__version(q->version, &version));
    TARN_TRY(tarn_service_create_tag(
        op, service, tarn_rpc__ref(q->table), tarn_slice_str(q->name), version,
        q->retained_ms == 0 ? TARN_SNAPSHOT_NONE : q->retained_ms, &tag));
    put_tag(op, &tag, response);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__list_tags(struct tarn_op *op, struct tarn_service *service,
                                        const void *request, void *response)
{
    const Tarn__V1__ListTagsRequest *q = request;
    Tarn__V1__ListTagsResponse *r = response;
    struct tarn_tag *list;
    const char *next;
    size_t count;
    TARN_TRY(tarn_service_list_tags(op, service, tarn_rpc__ref(q->table), tarn_slice_str(q->prefix),
                                    tarn_rpc__page(q->page), &list, &count, &next));
    r->tags = TARN_RPC_ARRAY(op, count, *r->tags);
    r->n_tags = count;
    for (size_t i = 0; i < count; i++)
        r->tags[i] = put_tag(op, &list[i], TARN_RPC_NEW(op, Tarn__V1__Tag, tag));
    r->next_page_token = tarn_rpc__str(next);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__drop_tag(struct tarn_op *op, struct tarn_service *service,
                                       const void *request, void *response TARN_UNUSED)
{
    const Tarn__V1__DropTagRequest *q = request;
    return tarn_service_drop_tag(op, service, tarn_rpc__ref(q->table), tarn_slice_str(q->name));
}

struct tarn_status *tarn_rpc__roll_back(struct tarn_op *op, struct tarn_service *service,
                                        const void *request, void *response)
{
    const Tarn__V1__RollBackRequest *q = request;
    Tarn__V1__RollBackResponse *r = response;
    struct tarn_roll_back what = {
        .only_from = q->only_from == 0 ? TARN_SNAPSHOT_NONE : q->only_from,
        .dry_run = q->dry_run != 0,
    };
    struct tarn_roll_back_result result;
    TARN_TRY(tarn_rpc__version(q->to, &what.to));
    TARN_TRY(tarn_service_roll_back(op, service, tarn_rpc__ref(q->table), &what, &result));
    r->from = result.from;
    r->to = result.to;
    r->restored = result.restored;
    r->tags = TARN_RPC_ARRAY(op, result.tag_count, *r->tags);
    r->n_tags = result.tag_count;
    for (size_t i = 0; i < result.tag_count; i++)
        r->tags[i] = tarn_rpc__text(op, result.tags[i]);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__roll_back_schema(struct tarn_op *op, struct tarn_service *service,
                                               const void *request, void *response)
{
    const Tarn__V1__RollBackSchemaRequest *q = request;
    Tarn__V1__RollBackSchemaResponse *r = response;
    r->to = q->schema_id;
    return tarn_service_roll_back_schema(op, service, tarn_rpc__ref(q->table), q->schema_id,
                                         &r->from);
}

/* --- branches --- */

struct tarn_status *tarn_rpc__create_branch(struct tarn_op *op, struct tarn_service *service,
                                            const void *request, void *response TARN_UNUSED)
{
    const Tarn__V1__CreateBranchRequest *q = request;
    return tarn_service_create_branch(op, service, tarn_rpc__ref(q->table),
                                      tarn_slice_str(q->branch), tarn_slice_str(q->tag));
}

struct tarn_status *tarn_rpc__list_branches(struct tarn_op *op, struct tarn_service *service,
                                            const void *request, void *response)
{
    const Tarn__V1__ListBranchesRequest *q = request;
    Tarn__V1__ListBranchesResponse *r = response;
    struct tarn_slice *list;
    size_t count;
    TARN_TRY(tarn_service_list_branches(op, service, tarn_rpc__ref(q->table), &list, &count));
    r->branches = TARN_RPC_ARRAY(op, count, *r->branches);
    r->n_branches = count;
    for (size_t i = 0; i < count; i++)
        r->branches[i] = tarn_rpc__text(op, list[i]);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__rename_branch(struct tarn_op *op, struct tarn_service *service,
                                            const void *request, void *response TARN_UNUSED)
{
    const Tarn__V1__RenameBranchRequest *q = request;
    return tarn_service_rename_branch(op, service, tarn_rpc__ref(q->table),
                                      tarn_slice_str(q->branch), tarn_slice_str(q->to));
}

struct tarn_status *tarn_rpc__drop_branch(struct tarn_op *op, struct tarn_service *service,
                                          const void *request, void *response TARN_UNUSED)
{
    const Tarn__V1__DropBranchRequest *q = request;
    return tarn_service_drop_branch(op, service, tarn_rpc__ref(q->table),
                                    tarn_slice_str(q->branch));
}

struct tarn_status *tarn_rpc__fast_forward(struct tarn_op *op, struct tarn_service *service,
                                           const void *request, void *response)
{
    const Tarn__V1__FastForwardRequest *q = request;
    Tarn__V1__FastForwardResponse *r = response;
    struct tarn_undone undone = {0};
    TARN_TRY(tarn_service_fast_forward(op, service, tarn_rpc__ref(q->table),
                                       tarn_slice_str(q->branch), &r->snapshot_id, &undone));
    r->undone_from = undone.from;
    r->undone_to = undone.to;
    return TARN_OK;
}
