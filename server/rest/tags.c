#include "rest/internal.h"
#include "service/refs.h"

/* Tags, and the ways back: to a snapshot, to a schema. */

/* Clients send the beginning itself, or a pattern like those of other lists. */
static struct tarn_slice take_prefix(const struct tarn_rest__call *call)
{
    struct tarn_slice prefix = tarn_http_query(call->request, "tagNamePrefix");
    while (prefix.size > 0 && prefix.data[prefix.size - 1] == '%')
        prefix.size--;
    return prefix;
}

static struct tarn_status *list_tags(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_page page;
    struct tarn_tag *list;
    size_t count;
    const char *next;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__page(call, NULL, "TAG", &page));
    TARN_TRY(tarn_service_list_tags(call->op, call->service, ref, take_prefix(call), page, &list,
                                    &count, &next));
    struct tarn_json *names = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        tarn_json_add(names, tarn_json_string(list[i].name));
    tarn_rest__answer_list(call, "tags", names, next);
    return TARN_OK;
}

static struct tarn_status *take_duration(const struct tarn_json *body, int64_t *out)
{
    struct tarn_slice text;
    *out = TARN_SNAPSHOT_NONE;
    TARN_TRY(tarn_rest__text(body, "timeRetained", &text));
    if (text.data == NULL)
        return TARN_OK;
    struct tarn_status *s = tarn_parse_duration(text, out);
    return s == TARN_OK ? s : tarn_status_wrap(s, "timeRetained");
}

static struct tarn_status *create_tag(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_slice name;
    struct tarn_tag tag;
    struct tarn_version version = TARN_VERSION_LATEST;
    int64_t retained_ms;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__need_text(call->body, "tagName", &name));
    TARN_TRY(tarn_rest__integer(call->body, "snapshotId", &version.snapshot_id));
    TARN_TRY(take_duration(call->body, &retained_ms));
    struct tarn_status *s =
        tarn_service_create_tag(call->op, call->service, ref, name, version, retained_ms, &tag);
    if (tarn_status_reason(s) ==
        TARN_NAME_INVALID) /* the tag's, not that of something that isn't there */
        s = tarn_rest__refuse(s);
    return tarn_status_reason(s) == TARN_TAG_EXISTS ? tarn_rest__about(s, "TAG", name) : s;
}

/* ISO 8601, as Java prints one: PT26H3M4.005S */
static void print_duration(int64_t ms, struct tarn_buf *out)
{
    int64_t hours = ms / 3600000, minutes = ms / 60000 % 60, rest = ms % 60000;
    tarn_buf_add_str(out, "PT");
    if (hours > 0)
        tarn_buf_printf(out, "%" PRId64 "H", hours);
    if (minutes > 0)
        tarn_buf_printf(out, "%" PRId64 "M", minutes);
    if (rest % 1000 != 0)
        tarn_buf_printf(out, "%" PRId64 ".%03" PRId64 "S", rest / 1000, rest % 1000);
    else if (rest > 0 || ms == 0)
        tarn_buf_printf(out, "%" PRId64 "S", rest / 1000);
}

static struct tarn_status *get_tag(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_tag tag;
    struct tarn_buf *out = &call->response->body;
    TARN_OWN(tarn_json_drop)
    struct tarn_json *name = tarn_json_string(tarn_http_argument(call->request, "tag"));
    TARN_TRY(tarn_rest__ref(call, &ref));
    struct tarn_slice asked = tarn_http_argument(call->request, "tag");
    TARN_TRY(tarn_rest__about(tarn_service_find_tag(call->op, call->service, ref, asked, &tag),
                              "TAG", asked));
    tarn_buf_add_str(out, "{\"tagName\":");
    tarn_json_print(name, 0, out);
    tarn_buf_add_str(out, ",\"snapshot\":");
    tarn_buf_add_slice(out, tag.snapshot.json);
    if (tag.create_time_ms != TARN_SNAPSHOT_NONE)
        tarn_buf_printf(out, ",\"tagCreateTime\":%" PRId64, tag.create_time_ms);
    if (tag.retained_ms != TARN_SNAPSHOT_NONE) {
        tarn_buf_add_str(out, ",\"tagTimeRetained\":\"");
        print_duration(tag.retained_ms, out);
        tarn_buf_add_str(out, "\"");
    }
    tarn_buf_add_str(out, "}");
    return TARN_OK;
}

static struct tarn_status *drop_tag(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_slice name = tarn_http_argument(call->request, "tag");
    TARN_TRY(tarn_rest__ref(call, &ref));
    struct tarn_status *s = tarn_service_drop_tag(call->op, call->service, ref, name);
    return tarn_status_reason(s) == TARN_TAG_NOT_FOUND ? tarn_rest__about(s, "TAG", name) : s;
}

/* --- roll-back --- */

/* {"type": "snapshot", "snapshotId": 5} or {"type": "tag", "tagName": "v1"} */
static struct tarn_status *take_instant(struct tarn_rest__call *call, struct tarn_version *out,
                                        struct tarn_slice *name)
{
    const struct tarn_json *instant;
    TARN_TRY(tarn_rest__object(call->body, "instant", &instant));
    if (instant == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"instant\" is missing");
    *out = TARN_VERSION_LATEST;
    TARN_TRY(tarn_rest__text(instant, "tagName", &out->tag));
    TARN_TRY(tarn_rest__integer(instant, "snapshotId", &out->snapshot_id));
    *name = out->tag.data != NULL
                ? out->tag
                : tarn_slice_str(tarn_arena_printf(call->op->arena, "%" PRId64, out->snapshot_id));
    return TARN_OK;
}

static struct tarn_status *roll_back(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_roll_back request = {0};
    struct tarn_roll_back_result result;
    struct tarn_slice name;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(take_instant(call, &request.to, &name));
    TARN_TRY(tarn_rest__integer(call->body, "fromSnapshot", &request.only_from));
    /* This is what writers send by themselves when they lost to a compaction. */
    bool undoes = request.only_from != TARN_SNAPSHOT_NONE &&
                  request.to.snapshot_id == request.only_from - 1 && request.only_from > 1;
    struct tarn_status *s =
        undoes
            ? tarn_service_undo_compaction(call->op, call->service, ref, request.only_from, &result)
            : tarn_service_roll_back(call->op, call->service, ref, &request, &result);
    switch (tarn_status_reason(s)) {
    case TARN_TAG_NOT_FOUND:
        return tarn_rest__about(s, "TAG", name);
    case TARN_SNAPSHOT_NOT_FOUND:
    case TARN_SNAPSHOT_EXPIRED:
        return tarn_rest__about(s, "SNAPSHOT", name);
    default:
        return s;
    }
}

static struct tarn_status *roll_back_schema(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    int64_t to, from;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__integer(call->body, "schemaId", &to));
    if (to == TARN_SNAPSHOT_NONE)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"schemaId\" is missing");
    return tarn_service_roll_back_schema(call->op, call->service, ref, to, &from);
}

#define TABLE "/databases/{database}/tables/{table}"
const struct tarn_rest__endpoint tarn_rest__tag_endpoints[] = {
    {"GET", TABLE "/tags", list_tags},
    {"POST", TABLE "/tags", create_tag},
    {"GET", TABLE "/tags/{tag}", get_tag},
    {"DELETE", TABLE "/tags/{tag}", drop_tag},
    {"POST", TABLE "/rollback", roll_back},
    {"POST", TABLE "/rollback-schema", roll_back_schema},
    TARN_REST_END,
};
