#include "service/subscribe_internal.h"

/* Where a subscription begins, what a snapshot tells its subscribers, and the consumers that remember positions. */

struct tarn_status *tarn_service__looked(struct tarn_status *consumed)
{
    enum tarn_reason reason = tarn_status_reason(consumed);
    if (reason != TARN_SNAPSHOT_EXPIRED && reason != TARN_SNAPSHOT_NOT_FOUND &&
        reason != TARN_SNAPSHOT_ROLLED_BACK)
        return consumed;
    struct tarn_status *passes =
        tarn_status_new(TARN_STORE_UNAVAILABLE, "%s", tarn_status_message(consumed));
    tarn_status_free(consumed);
    return passes;
}

struct tarn_status *tarn_service__look(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_table_view **out)
{
    return tarn_service__looked(tarn_table_look(op, table, out));
}

/* --- ends that name where to begin anew --- */

static void add_earliest(struct tarn_op *op, struct tarn_table *table, struct tarn_status *status)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf token = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf hex = {0};
    struct tarn_position position = {0};
    struct tarn_snapshot snapshot;
    int64_t latest;
    bool found = false;
    char number[24];

    struct tarn_status *s = tarn_table_find_ids(op, table, &position.snapshot_id, &latest);
    if (s == TARN_OK)
        s = tarn_table_find_snapshot(op, table, position.snapshot_id, &found, &snapshot,
                                     &position.identity);
    if (s != TARN_OK || (!found && latest != 0)) { /* the status says enough by itself */
        tarn_status_free(s);
        return;
    }
    position.behind = latest == 0;
    snprintf(position.uuid, sizeof position.uuid, "%s", tarn_table_uuid(table));
    tarn_service__token_encode(&position, &token);
    tarn_hex_encode(tarn_buf_slice(&token), &hex);
    snprintf(number, sizeof number, "%" PRId64, position.snapshot_id);
    tarn_status_set(status, "earliest_snapshot", number);
    tarn_status_set(status, "earliest_token", tarn_buf_cstr(&hex));
}

struct tarn_status *tarn_service__reset(struct tarn_op *op, struct tarn_table *table,
                                        enum tarn_reason reason, const char *format, ...)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    va_list args;
    va_start(args, format);
    tarn_buf_vprintf(&text, format, args);
    va_end(args);
    struct tarn_status *bare = tarn_status_new(reason, "%s", tarn_buf_cstr(&text));
    add_earliest(op, table, bare);
    const char *earliest = tarn_status_get(bare, "earliest_snapshot");
    if (earliest == NULL)
        return bare;
    struct tarn_status *s =
        tarn_status_new(reason, "%s; the earliest snapshot is %s", tarn_buf_cstr(&text), earliest);
    tarn_status_set(s, "earliest_snapshot", earliest);
    tarn_status_set(s, "earliest_token", tarn_status_get(bare, "earliest_token"));
    tarn_status_free(bare);
    return s;
}

static struct tarn_status *expired(struct tarn_op *op, struct tarn_table *table, int64_t id)
{
    return tarn_service__reset(op, table, TARN_SNAPSHOT_EXPIRED,
                               "snapshot %" PRId64 " of table %s has expired", id,
                               tarn_table_name(table));
}

static struct tarn_status *rolled_back(struct tarn_op *op, struct tarn_table *table, int64_t id)
{
    return tarn_service__reset(op, table, TARN_SNAPSHOT_ROLLED_BACK,
                               "snapshot %" PRId64 " of table %s was rolled back", id,
                               tarn_table_name(table));
}

/* The snapshot of that position has expired, and this is what follows: was it put upon that one, or on another which
 * had taken its place? Where nobody knows, the stream begins anew. *again: it isn't there either. */
static struct tarn_status *check_next(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_position *p, bool *again)
{
    struct tarn_snapshot next;
    uint64_t identity;
    bool found, follows;
    *again = false;
    if (p->identity == 0)
        return TARN_OK;
    TARN_TRY(tarn_table_find_snapshot(op, table, p->snapshot_id + 1, &found, &next, &identity));
    *again = !found;
    if (!found)
        return TARN_OK;
    TARN_TRY(tarn_table_follows(op, table, p->snapshot_id, p->identity, identity, &follows));
    return follows ? TARN_OK : expired(op, table, p->snapshot_id);
}

/* Its snapshot isn't there. What the folder holds says why; others may change it in between. *again: they did. */
static struct tarn_status *check_missing(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_position *p, bool *again)
{
    int64_t earliest, latest, next = p->snapshot_id + p->behind;
    TARN_TRY(tarn_table_find_ids(op, table, &earliest, &latest));
    *again = false;
    if (earliest > next)
        return expired(op, table, next);
    if (p->snapshot_id == 0)
        return TARN_OK;
    if (p->behind && earliest == next) /* it is gone, but nothing is missing */
        return check_next(op, table, p, again);
    /* Snapshots expire from the earliest on: what is missing above it was undone. */
    *again = earliest == p->snapshot_id;
    return *again ? TARN_OK : rolled_back(op, table, p->snapshot_id);
}

/* Of the folder as it is now, not as it was when the table was looked at: between two looks others roll back and expire,
 * and go on. */
struct tarn_status *tarn_service__check_position(struct tarn_op *op, struct tarn_table *table,
                                                 const struct tarn_position *p)
{
    bool again = true;
    while (again) {
        struct tarn_snapshot snapshot;
        uint64_t identity;
        bool found;
        TARN_TRY(tarn_op_check(op));
        TARN_TRY(tarn_table_find_snapshot(op, table, p->snapshot_id, &found, &snapshot, &identity));
        if (found && p->identity != 0 && identity != p->identity)
            return rolled_back(op, table, p->snapshot_id);
        if (found)
            return TARN_OK;
        TARN_TRY(check_missing(op, table, p, &again));
    }
    return TARN_OK;
}

struct tarn_status *tarn_service__check_left(struct tarn_op *op, struct tarn_table *table,
                                             int64_t id)
{
    int64_t earliest, latest;
    TARN_TRY(tarn_table_find_ids(op, table, &earliest, &latest));
    return earliest > id ? expired(op, table, id) : TARN_OK;
}

/* --- where to begin --- */

struct start {
    struct tarn_table *table;
    const struct tarn_table_view *view; /* owned */
    int64_t earliest, latest;           /* 0: no snapshot */
    struct tarn_position at;
};

static void start_drop(struct start *start)
{
    tarn_table_view_drop(&start->view);
}

static struct tarn_status *start_behind(struct tarn_op *op, struct start *start, int64_t id)
{
    struct tarn_snapshot snapshot;
    bool found;
    start->at.snapshot_id = id;
    start->at.behind = true;
    TARN_TRY(
        tarn_table_find_snapshot(op, start->table, id, &found, &snapshot, &start->at.identity));
    return found ? TARN_OK : tarn_service__check_position(op, start->table, &start->at);
}

static struct tarn_status *start_at(struct tarn_op *op, struct start *start, int64_t id)
{
    struct tarn_snapshot snapshot;
    bool found;
    if (id == start->latest + 1)
        return start_behind(op, start, start->latest);
    if (id > start->latest)
        return tarn_status_new(TARN_SNAPSHOT_NOT_FOUND,
                               "table %s has no snapshot %" PRId64 "; the latest is %" PRId64,
                               tarn_table_name(start->table), id, start->latest);
    if (id < start->earliest)
        return expired(op, start->table, id);
    start->at.snapshot_id = id;
    TARN_TRY(
        tarn_table_find_snapshot(op, start->table, id, &found, &snapshot, &start->at.identity));
    return found ? TARN_OK : tarn_service__check_position(op, start->table, &start->at);
}

static struct tarn_status *start_at_time(struct tarn_op *op, struct start *start, int64_t time_ms)
{
    struct tarn_snapshot snapshot;
    uint64_t identity;
    int64_t id;
    bool found;
    TARN_TRY(tarn_table_snapshot_since(op, start->table, start->view, time_ms, &id));
    if (id == start->earliest && id > 1) { /* were there others since then, which expired? */
        TARN_TRY(tarn_table_find_snapshot(op, start->table, id, &found, &snapshot, &identity));
        if (!found || snapshot.time_ms > time_ms)
            return tarn_service__reset(op, start->table, TARN_SNAPSHOT_EXPIRED,
                                       "snapshots of table %s since that time may have expired",
                                       tarn_table_name(start->table));
    }
    return start_at(op, start, id);
}

static struct tarn_status *start_at_token(struct tarn_op *op, struct tarn_service *service,
                                          struct start *start, const struct tarn_topic_spec *spec,
                                          struct tarn_slice token)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *other = NULL;
    TARN_TRY(tarn_service__token_decode(token, &start->at));
    if (strcmp(start->at.uuid, tarn_table_uuid(start->table)) != 0) {
        struct tarn_status *s = tarn_catalog_table_by_uuid(op, service->catalog,
                                                           tarn_slice_str(start->at.uuid), &other);
        bool is_other = s == TARN_OK;
        tarn_status_free(s);
        if (is_other) /* it doesn't say which: that may be nothing for this caller */
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "resume_token is of another table than %s",
                                   tarn_table_name(start->table));
        return tarn_status_new(
            TARN_TABLE_REPLACED, "resume_token is of table %s, which is gone; %s is %s now",
            start->at.uuid, tarn_table_name(start->table), tarn_table_uuid(start->table));
    }
    if (start->at.branch[0] != '\0')
        return tarn_status_new(TARN_INVALID_ARGUMENT, "resume_token is of branch %s",
                               start->at.branch);
    if (start->at.next_part > 0 && start->at.filter != tarn_service__topic_filter(spec))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "resume_token lies within a snapshot: go on with the same what, "
                               "where and how");
    return tarn_service__check_position(op, start->table, &start->at);
}

static struct tarn_status *start_at_consumer(struct tarn_op *op, struct start *start,
                                             struct tarn_slice id)
{
    struct tarn_consumer consumer;
    bool found;
    TARN_TRY(tarn_table_find_consumer(op, start->table, id, &found, &consumer));
    if (!found)
        return start_behind(op, start, start->latest);
    if (consumer.next_snapshot > start->latest + 1)
        return rolled_back(op, start->table, consumer.next_snapshot - 1);
    return start_at(op, start, consumer.next_snapshot);
}

static struct tarn_status *find_start(struct tarn_op *op, struct tarn_service *service,
                                      struct start *start,
                                      const struct tarn_subscribe_request *request,
                                      const struct tarn_topic_spec *spec)
{
    switch (request->from) {
    case TARN_FROM_LATEST:
        return start_behind(op, start, start->latest);
    case TARN_FROM_EARLIEST:
        return start->latest == 0 ? start_behind(op, start, 0)
                                  : start_at(op, start, start->earliest);
    case TARN_FROM_SNAPSHOT:
        return start_at(op, start, request->snapshot_id);
    case TARN_FROM_TIME:
        return start_at_time(op, start, request->time_ms);
    case TARN_FROM_TOKEN:
        return start_at_token(op, service, start, spec, request->token);
    case TARN_FROM_CONSUMER:
        return start_at_consumer(op, start, request->consumer);
    }
    return tarn_status_new(TARN_INVALID_ARGUMENT, "there is no start %d", (int)request->from);
}

/* The starting snapshot as a whole: the one that would come first, else the latest. Not where a token goes on. */
static struct tarn_status *take_whole(struct tarn_op *op, struct start *start,
                                      const struct tarn_subscribe_request *request)
{
    if (!request->full_first || request->from == TARN_FROM_TOKEN || start->latest == 0)
        return TARN_OK;
    start->at.behind = false;
    start->at.whole = true;
    return start->at.identity != 0 ? TARN_OK
                                   : tarn_service__check_position(op, start->table, &start->at);
}

static struct tarn_status *find_first(struct tarn_op *op, struct tarn_service *service,
                                      struct start *start,
                                      const struct tarn_subscribe_request *request,
                                      const struct tarn_topic_spec *spec)
{
    TARN_TRY(find_start(op, service, start, request, spec));
    return take_whole(op, start, request);
}

/* The last look may be old: nobody is refused by it. */
static struct tarn_status *find_start_now(struct tarn_op *op, struct tarn_service *service,
                                          struct start *start,
                                          const struct tarn_subscribe_request *request,
                                          const struct tarn_topic_spec *spec)
{
    struct tarn_status *s = find_first(op, service, start, request, spec);
    enum tarn_reason reason = tarn_status_reason(s);
    if (reason != TARN_SNAPSHOT_EXPIRED && reason != TARN_SNAPSHOT_NOT_FOUND &&
        reason != TARN_SNAPSHOT_ROLLED_BACK)
        return s;
    tarn_status_free(s);
    start->at = (struct tarn_position){0};
    TARN_TRY(tarn_table_find_ids(op, start->table, &start->earliest, &start->latest));
    return find_first(op, service, start, request, spec);
}

/* --- what a snapshot changed --- */

static bool option_is(const struct tarn_schema *schema, const char *key, const char *value)
{
    return tarn_slice_is(tarn_schema_option(schema, key), value);
}

/* A whole that changes follow must not hold what a later changelog brings: rows that no compaction has met yet. */
static void leave_to_changelog(const struct tarn_schema *schema, struct tarn_plan *plan)
{
    bool lookup = option_is(schema, "changelog-producer", "lookup");
    int32_t lowest = 1;
    if (!lookup && !option_is(schema, "changelog-producer", "full-compaction"))
        return;
    if (!lookup)
        lowest = plan->options->level_count - 1;
    size_t kept = 0;
    for (size_t i = 0; i < plan->split_count; i++) {
        struct tarn_split split = plan->splits[i];
        size_t files = 0;
        for (size_t f = 0; f < split.file_count; f++)
            if (split.files[f].entry.file.level >= lowest)
                split.files[files++] = split.files[f];
        split.file_count = files;
        if (files > 0)
            plan->splits[kept++] = split;
    }
    plan->split_count = kept;
}

/* Overwrites are passed over, unless the table says that streams see them. Where a compaction's changelog tells of them
 * (Java refuses the option there), they would be told twice. */
static struct tarn_status *sees_overwrite(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_schema *schema, int64_t snapshot_id,
                                          bool *out)
{
    const char *key = schema->primary_key_count > 0 ? "streaming-read-overwrite"
                                                    : "streaming-read-append-overwrite";
    struct tarn_snapshot snapshot;
    uint64_t identity;
    bool found;
    *out = false;
    if (!option_is(schema, key, "true") || option_is(schema, "changelog-producer", "lookup") ||
        option_is(schema, "changelog-producer", "full-compaction"))
        return TARN_OK;
    TARN_TRY(tarn_table_find_snapshot(op, table, snapshot_id, &found, &snapshot, &identity));
    *out = found && snapshot.kind == TARN_COMMIT_OVERWRITE;
    return TARN_OK;
}

struct tarn_status *tarn_service__plan_event(struct tarn_op *op, struct tarn_table *table,
                                             const struct tarn_topic_spec *spec,
                                             int64_t snapshot_id, bool whole, struct tarn_plan *out,
                                             const char ***paths, bool *differs)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_slice where = tarn_slice_str(spec->where);
    struct tarn_plan_request request = {
        .version = TARN_VERSION_ID(snapshot_id),
        .where = where,
        .changes = whole ? TARN_CHANGES_NONE : (enum tarn_changes)spec->how,
        .changes_from = snapshot_id - 1,
        .whole_buckets = !whole,
        .with_level_0 = whole, /* its changes follow */
        .of_itself = true,
    };
    TARN_TRY(tarn_service__look(op, table, &view));
    *differs = spec->how == TARN_CHANGES_DIFF && !whole;
    if (!*differs && !whole)
        TARN_TRY(sees_overwrite(op, table, &view->schema, snapshot_id, &request.with_overwrites));
    if (request.with_overwrites && view->schema.primary_key_count > 0)
        *differs = true; /* of appended rows only what comes is told, as Java does */
    if (*differs)
        TARN_TRY(
            tarn_service__plan_difference(op, table, snapshot_id - 1, snapshot_id, where, out));
    else
        TARN_TRY(tarn_table_plan(op, table, &request, out));
    if (whole)
        leave_to_changelog(&view->schema, out);
    *paths = tarn_arena_calloc(op->arena, out->split_count + 1, sizeof **paths);
    for (size_t i = 0; i < out->split_count; i++)
        TARN_TRY(tarn_service__bucket_path(op, out->schema, out->options, out->splits[i].partition,
                                           out->splits[i].bucket, &(*paths)[i]));
    return TARN_OK;
}

/* --- the operation --- */

static struct tarn_status *check_request(const struct tarn_subscribe_request *request)
{
    if (request->where.size > TARN_SUBSCRIBE_WHERE_SIZE_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "where has %zu bytes; at most %d",
                               request->where.size, TARN_SUBSCRIBE_WHERE_SIZE_MAX);
    if (!request->changes && (request->where.size > 0 || request->full_first))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "where and full_first are of CHANGES");
    if (request->how < TARN_CHANGES_AUTO || request->how > TARN_CHANGES_DIFF)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "there is no way %d to say what changed",
                               request->how);
    if (request->keep_consumer.size > 0)
        TARN_TRY(tarn_consumer_check_id(request->keep_consumer));
    return TARN_OK;
}

static struct tarn_status *check_where(struct tarn_op *op, const struct tarn_table_view *view,
                                       const char *where)
{
    struct tarn_predicate predicate;
    if (where[0] == '\0')
        return TARN_OK;
    return tarn_predicate_parse(tarn_slice_str(where), &view->schema, op->arena, &predicate);
}

static struct tarn_status *check_write(struct tarn_op *op, struct tarn_service *service,
                                       const struct tarn_table *table)
{
    struct tarn_slice database, name;
    tarn_table_names(op, table, &database, &name);
    return tarn_service__check_table(op, service, TARN_ACTION_WRITE, database, name);
}

struct tarn_status *tarn_service_subscribe(struct tarn_op *op, struct tarn_service *service,
                                           const struct tarn_subscribe_request *request,
                                           const struct tarn_subscribe_door *door, void *stream,
                                           struct tarn_subscriber **out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(start_drop) struct start start = {0};
    bool keeps = request->keep_consumer.size > 0;
    struct tarn_topic_spec spec = {
        .changes = request->changes,
        .how = request->how,
        .where = tarn_arena_str(op->arena, request->where),
        .door = door,
    };
    TARN_TRY(check_request(request));
    TARN_TRY(tarn_service__table(op, service, request->table, TARN_ACTION_READ, &table));
    if (service->subscriptions == NULL)
        return tarn_status_new(TARN_UNIMPLEMENTED, "this server has no subscriptions");
    if (keeps) /* it decides what expiry keeps */
        TARN_TRY(check_write(op, service, table));
    start.table = table;
    TARN_TRY(tarn_service__look(op, table, &start.view));
    start.latest = start.view->has_snapshot ? start.view->snapshot.id : 0;
    start.earliest = start.view->has_snapshot ? start.view->earliest_id : 0;
    TARN_TRY(check_where(op, start.view, spec.where));
    TARN_TRY(find_start_now(op, service, &start, request, &spec));
    if (keeps)
        TARN_TRY(
            tarn_table_set_consumer(op, table, request->keep_consumer,
                                    TARN_MAX(start.at.snapshot_id + start.at.behind, (int64_t)1)));
    return tarn_service__subscriber_add(op, service->subscriptions, table, &spec, &start.at, stream,
                                        out);
}

/* --- consumers --- */

struct tarn_status *tarn_service_list_consumers(struct tarn_op *op, struct tarn_service *service,
                                                struct tarn_table_ref ref,
                                                struct tarn_consumer **out, size_t *count)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    return tarn_table_consumers(op, table, out, count);
}

struct tarn_status *tarn_service_set_consumer(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table_ref ref, struct tarn_slice id,
                                              int64_t next_snapshot, struct tarn_consumer *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    bool found;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    TARN_TRY(tarn_consumer_check_id(id));
    TARN_TRY(tarn_service__look(op, table, &view));
    int64_t end = view->has_snapshot ? view->snapshot.id + 1 : 1;
    if (next_snapshot == 0)
        next_snapshot = end;
    if (next_snapshot > end || next_snapshot < 1)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "next_snapshot is %" PRId64 "; table %s goes up to %" PRId64,
                               next_snapshot, tarn_table_name(table), end - 1);
    if (view->has_snapshot && next_snapshot < view->earliest_id)
        return expired(op, table, next_snapshot);
    TARN_TRY(tarn_table_set_consumer(op, table, id, next_snapshot));
    TARN_TRY(tarn_table_find_consumer(op, table, id, &found, out));
    if (!found) /* somebody dropped it right away */
        *out = (struct tarn_consumer){.id = id, .next_snapshot = next_snapshot};
    return TARN_OK;
}

struct tarn_status *tarn_service_drop_consumer(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_table_ref ref, struct tarn_slice id)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_consumer consumer;
    bool found;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    struct tarn_status *s = tarn_table_find_consumer(op, table, id, &found, &consumer);
    if (s == TARN_OK && !found)
        return tarn_status_new(TARN_CONSUMER_NOT_FOUND, "table %s has no consumer %.*s",
                               tarn_table_name(table), TARN_SLICE_ARG(id));
    if (tarn_status_reason(s) == TARN_JSON_MALFORMED) /* a damaged one is dropped like any other */
        tarn_status_drop(&s);
    TARN_TRY(s);
    return tarn_table_drop_consumer(op, table, id);
}
