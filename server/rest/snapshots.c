#include "rest/internal.h"

/* A table's snapshots, each as its file has it: clients use members that this version doesn't know. */

static struct tarn_status *none_yet(struct tarn_table_ref ref, struct tarn_slice version)
{
    return tarn_rest__about(
        tarn_status_new(TARN_SNAPSHOT_NOT_FOUND, "table %.*s.%.*s has no snapshot yet",
                        TARN_SLICE_ARG(ref.database), TARN_SLICE_ARG(ref.table)),
        "SNAPSHOT", version);
}

static struct tarn_status *get_latest(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_totals totals;
    int64_t last_file_ms;
    struct tarn_slice json;
    struct tarn_buf *out = &call->response->body;
    bool found;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_service_latest_snapshot(call->op, call->service, ref, &found, &json, &totals,
                                          &last_file_ms));
    if (!found)
        return none_yet(ref, ref.table);
    tarn_buf_add_str(out, "{\"snapshot\":{\"snapshot\":");
    tarn_buf_add_slice(out, json);
    tarn_buf_printf(out,
                    ",\"recordCount\":%" PRId64 ",\"fileSizeInBytes\":%" PRId64
                    ",\"fileCount\":%" PRId64 ",\"lastFileCreationTime\":%" PRId64 "}}",
                    totals.record_count, totals.size, totals.file_count, last_file_ms);
    return TARN_OK;
}

static struct tarn_status *get_version(struct tarn_rest__call *call)
{
    struct tarn_slice version = tarn_http_argument(call->request, "version"), json;
    struct tarn_table_ref ref;
    struct tarn_buf *out = &call->response->body;
    bool found;
    TARN_TRY(tarn_rest__ref(call, &ref));
    struct tarn_status *s =
        tarn_service_find_snapshot(call->op, call->service, ref, version, &found, &json);
    if (tarn_status_reason(s) == TARN_TAG_NOT_FOUND) /* one of the ways to name a snapshot */
        return tarn_rest__about(s, "SNAPSHOT", version);
    TARN_TRY(s);
    if (!found)
        return none_yet(ref, version);
    tarn_buf_add_str(out, "{\"snapshot\":");
    tarn_buf_add_slice(out, json);
    tarn_buf_add_str(out, "}");
    return TARN_OK;
}

static struct tarn_status *list_snapshots(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_page page;
    struct tarn_snapshot *list;
    struct tarn_buf *out = &call->response->body;
    size_t count;
    const char *next;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__page(call, NULL, "SNAPSHOT", &page));
    TARN_TRY(tarn_service_list_snapshots(call->op, call->service, ref, page, &list, &count, &next));
    tarn_buf_add_str(out, "{\"snapshots\":[");
    for (size_t i = 0; i < count; i++) {
        tarn_buf_add_str(out, i == 0 ? "" : ",");
        tarn_buf_add_slice(out, list[i].json);
    }
    tarn_buf_printf(
        out, next[0] == '\0' ? "],\"nextPageToken\":null}" : "],\"nextPageToken\":\"%s\"}", next);
    return TARN_OK;
}

/* --- commit --- */

/* The id of a table that was made anew under this name is another one: it isn't there. null, as old writers send: not said. */
static struct tarn_status *take_table_id(const struct tarn_rest__call *call,
                                         struct tarn_table_ref *ref)
{
    TARN_TRY(tarn_rest__text(call->body, "tableId", &ref->uuid));
    return ref->uuid.data == NULL || tarn_uuid_valid(ref->uuid)
               ? TARN_OK
               : tarn_status_new(TARN_TABLE_REPLACED, "no table has the id %.*s",
                                 TARN_SLICE_ARG(ref->uuid));
}

static struct tarn_status *commit(struct tarn_rest__call *call)
{
    struct tarn_snapshot_request request;
    const struct tarn_json *snapshot;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    bool landed;
    TARN_TRY(tarn_rest__ref(call, &request.ref));
    TARN_TRY(take_table_id(call, &request.ref));
    TARN_TRY(tarn_rest__text(call->body, "baseSnapshotUuid", &request.base_uuid));
    TARN_TRY(tarn_rest__object(call->body, "snapshot", &snapshot));
    if (snapshot == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"snapshot\" is missing");
    tarn_json_print(snapshot, 2, &text); /* all members, in their order */
    request.json = tarn_buf_slice(&text);
    TARN_TRY(tarn_service_commit_snapshot(call->op, call->service, &request, &landed));
    tarn_buf_printf(&call->response->body, "{\"success\":%s}", landed ? "true" : "false");
    return TARN_OK;
}

#define TABLE "/databases/{database}/tables/{table}"
const struct tarn_rest__endpoint tarn_rest__snapshot_endpoints[] = {
    {"GET", TABLE "/snapshot", get_latest},
    {"GET", TABLE "/snapshots", list_snapshots},
    {"GET", TABLE "/snapshots/{version}", get_version},
    {"POST", TABLE "/commit", commit},
    TARN_REST_END,
};
