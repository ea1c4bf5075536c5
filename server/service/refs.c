#include "service/refs.h"

#include "service/internal.h"

struct tarn_status *tarn_service_create_tag(struct tarn_op *op, struct tarn_service *service,
                                            struct tarn_table_ref ref, struct tarn_slice name,
                                            struct tarn_version version, int64_t retained_ms,
                                            struct tarn_tag *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    if (version.tag.size > 0 || version.watermark != TARN_SNAPSHOT_NONE)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a tag is made of a snapshot, a time or the latest version");
    return tarn_table_create_tag(op, table, name, version, retained_ms, out);
}

/* The first name behind the token. */
static size_t first_behind(const struct tarn_slice *names, size_t count, struct tarn_slice token)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tarn_slice_compare(names[middle], token) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct tarn_status *tarn_service_list_tags(struct tarn_op *op, struct tarn_service *service,
                                           struct tarn_table_ref ref, struct tarn_slice prefix,
                                           struct tarn_page page, struct tarn_tag **out,
                                           size_t *count, const char **next_token)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_slice *names;
    size_t name_count, max = tarn_service__page_size(page);
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(tarn_table_tag_names(op, table, prefix, &names, &name_count));
    size_t i = page.token.size == 0 ? 0 : first_behind(names, name_count, page.token);
    *out = tarn_arena_calloc(op->arena, TARN_MIN(name_count - i, max) + 1, sizeof **out);
    *count = 0;
    *next_token = "";
    for (; i < name_count && *count < max; i++) {
        struct tarn_status *s = tarn_table_find_tag(op, table, names[i], &(*out)[*count]);
        if (tarn_status_reason(s) == TARN_TAG_NOT_FOUND) { /* dropped meanwhile */
            tarn_status_free(s);
            continue;
        }
        TARN_TRY(s);
        ++*count;
    }
    if (i < name_count)
        *next_token = tarn_arena_str(op->arena, names[i - 1]);
    return TARN_OK;
}

struct tarn_status *tarn_service_find_tag(struct tarn_op *op, struct tarn_service *service,
                                          struct tarn_table_ref ref, struct tarn_slice name,
                                          struct tarn_tag *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    return tarn_table_find_tag(op, table, name, out);
}

struct tarn_status *tarn_service_drop_tag(struct tarn_op *op, struct tarn_service *service,
                                          struct tarn_table_ref ref, struct tarn_slice name)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    return tarn_table_drop_tag(op, table, name);
}

static struct tarn_status *check_roll_back(const struct tarn_roll_back *request)
{
    bool by_id = request->to.snapshot_id != TARN_SNAPSHOT_NONE, by_tag = request->to.tag.size > 0,
         by_time = request->to.time_ms != TARN_SNAPSHOT_NONE;
    if (by_id + by_tag + by_time == 1 && request->to.watermark == TARN_SNAPSHOT_NONE)
        return TARN_OK;
    return tarn_status_new(TARN_INVALID_ARGUMENT,
                           "a roll-back goes to a snapshot, a tag or a time: one of them");
}

struct tarn_status *tarn_service_roll_back(struct tarn_op *op, struct tarn_service *service,
                                           struct tarn_table_ref ref,
                                           const struct tarn_roll_back *request,
                                           struct tarn_roll_back_result *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_ALTER, &table));
    TARN_TRY(check_roll_back(request));
    return tarn_table_roll_back(op, table, request, out);
}

/* The buckets in which a snapshot differs from the one below it, a split each; none where they aren't there. */
static struct tarn_status *find_changed_buckets(struct tarn_op *op, struct tarn_table *table,
                                                int64_t snapshot_id, struct tarn_plan *out)
{
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(snapshot_id),
                                        .changes = TARN_CHANGES_DIFF,
                                        .changes_from = snapshot_id - 1};
    struct tarn_status *s = tarn_table_plan(op, table, &request, out);
    enum tarn_reason reason = tarn_status_reason(s);
    if (reason != TARN_SNAPSHOT_NOT_FOUND && reason != TARN_SNAPSHOT_EXPIRED)
        return s;
    tarn_status_free(s); /* what that means, the roll-back says */
    *out = (struct tarn_plan){0};
    return TARN_OK;
}

struct tarn_status *tarn_service_roll_back_schema(struct tarn_op *op, struct tarn_service *service,
                                                  struct tarn_table_ref ref, int64_t to,
                                                  int64_t *from)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_ALTER, &table));
    return tarn_table_roll_back_schema(op, table, to, from);
}

struct tarn_status *tarn_service_undo_compaction(struct tarn_op *op, struct tarn_service *service,
                                                 struct tarn_table_ref ref, int64_t from,
                                                 struct tarn_roll_back_result *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    /* No more than who writes may do: it changes no row. */
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    struct tarn_roll_back request = {.to = TARN_VERSION_ID(from - 1),
                                     .only_from = from,
                                     .only_compaction_by = tarn_slice_str(TARN_COMPACTION_USER)};
    struct tarn_plan changed; /* asked before it is gone */
    TARN_TRY(find_changed_buckets(op, table, from, &changed));
    TARN_TRY(tarn_table_roll_back(op, table, &request, out));
    for (size_t i = 0; i < changed.split_count; i++)
        tarn_maintain_undone(service->maintain, table, changed.splits[i].partition,
                             changed.splits[i].bucket);
    return TARN_OK;
}

/* --- branches --- */

struct tarn_status *tarn_service_list_branches(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_table_ref ref, struct tarn_slice **out,
                                               size_t *count)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(tarn_catalog_check_main(table, "it has none of its own"));
    return tarn_table_branches(op, table, out, count);
}

struct tarn_status *tarn_service_create_branch(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_table_ref ref, struct tarn_slice branch,
                                               struct tarn_slice tag)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    return tarn_catalog_create_branch(op, service->catalog, table, branch, tag);
}

struct tarn_status *tarn_service_drop_branch(struct tarn_op *op, struct tarn_service *service,
                                             struct tarn_table_ref ref, struct tarn_slice branch)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    return tarn_catalog_drop_branch(op, service->catalog, table, branch);
}

struct tarn_status *tarn_service_rename_branch(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_table_ref ref, struct tarn_slice branch,
                                               struct tarn_slice to)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    return tarn_catalog_rename_branch(op, service->catalog, table, branch, to);
}

struct tarn_status *tarn_service_fast_forward(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table_ref ref, struct tarn_slice branch,
                                              int64_t *snapshot_id, struct tarn_undone *undone)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_ALTER, &table));
    TARN_TRY(tarn_catalog_fast_forward(op, service->catalog, table, branch, undone));
    TARN_TRY(tarn_table_look(op, table, &view));
    *snapshot_id = view->snapshot.id;
    return TARN_OK;
}
