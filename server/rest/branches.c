#include "rest/internal.h"
#include "service/refs.h"

/* Branches of a table. What is done in one comes under the name "table$branch_x". */

/* The path's {branch}, where the call is about it. Consumes; another thing that isn't there keeps its type. */
static struct tarn_status *about_branch(struct tarn_status *consumed, struct tarn_slice branch)
{
    switch (tarn_status_reason(consumed)) {
    case TARN_BRANCH_NOT_FOUND:
    case TARN_BRANCH_EXISTS:
        return tarn_rest__about(consumed, "BRANCH", branch);
    case TARN_NAME_INVALID:
        return tarn_rest__refuse(consumed);
    default:
        return consumed;
    }
}

static struct tarn_status *list_branches(struct tarn_rest__call *call)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    struct tarn_table_ref ref;
    struct tarn_slice *list;
    size_t count;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_service_list_branches(call->op, call->service, ref, &list, &count));
    tarn_json_set(json, "branches", tarn_rest__from_texts(list, count));
    tarn_rest__answer(call, json);
    return TARN_OK;
}

static struct tarn_status *create_branch(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_slice branch, tag;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__need_text(call->body, "branch", &branch));
    TARN_TRY(tarn_rest__text(call->body, "fromTag", &tag));
    struct tarn_status *s = tarn_service_create_branch(call->op, call->service, ref, branch, tag);
    if (tarn_status_reason(s) == TARN_TAG_NOT_FOUND)
        return tarn_rest__about(s, "TAG", tag);
    return about_branch(s, branch);
}

static struct tarn_status *drop_branch(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_slice branch = tarn_http_argument(call->request, "branch");
    TARN_TRY(tarn_rest__ref(call, &ref));
    return about_branch(tarn_service_drop_branch(call->op, call->service, ref, branch), branch);
}

static struct tarn_status *forward_branch(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_slice branch = tarn_http_argument(call->request, "branch");
    int64_t snapshot_id;
    struct tarn_undone undone;
    TARN_TRY(tarn_rest__ref(call, &ref));
    return about_branch(
        tarn_service_fast_forward(call->op, call->service, ref, branch, &snapshot_id, &undone),
        branch);
}

static struct tarn_status *rename_branch(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_slice branch = tarn_http_argument(call->request, "branch"), to;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__need_text(call->body, "toBranch", &to));
    struct tarn_status *s = tarn_service_rename_branch(call->op, call->service, ref, branch, to);
    return about_branch(s, tarn_status_reason(s) == TARN_BRANCH_EXISTS ? to : branch);
}

#define TABLE "/databases/{database}/tables/{table}"
const struct tarn_rest__endpoint tarn_rest__branch_endpoints[] = {
    {"GET", TABLE "/branches", list_branches},
    {"POST", TABLE "/branches", create_branch},
    {"DELETE", TABLE "/branches/{branch}", drop_branch},
    {"POST", TABLE "/branches/{branch}/forward", forward_branch},
    {"POST", TABLE "/branches/{branch}/rename", rename_branch},
    TARN_REST_END,
};
