#include "rpc/table.h"

/* Commits, and what became of them. */

/* --- what a commit brings --- */

static struct tarn_status *take_kind(int32_t kind, size_t at, enum tarn_entry_kind *out)
{
    if (kind != TARN_ENTRY_ADD && kind != TARN_ENTRY_DELETE)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "entry %zu has a kind other than 0 and 1",
                               at);
    *out = (enum tarn_entry_kind)kind;
    return TARN_OK;
}

static struct tarn_slice take_partition(ProtobufCBinaryData bytes)
{
    return bytes.len == 0 ? tarn_row_empty() : tarn_rpc__slice(bytes);
}

struct tarn_status *tarn_rpc__take_entries(struct tarn_op *op, Tarn__V1__FileEntry *const *in,
                                           size_t count, const struct tarn_manifest_entry **out)
{
    struct tarn_manifest_entry *list = TARN_RPC_ARRAY(op, count, *list);
    for (size_t i = 0; i < count; i++) {
        if (in[i]->file == NULL)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "entry %zu has no file", i);
        TARN_TRY(take_kind(in[i]->kind, i, &list[i].kind));
        list[i].partition = take_partition(in[i]->partition);
        list[i].bucket = in[i]->bucket;
        list[i].total_buckets = in[i]->total_buckets;
        list[i].file = tarn_rpc__take_file(op, in[i]->file);
    }
    *out = list;
    return TARN_OK;
}

static const struct tarn_vector_range *take_vectors(struct tarn_op *op,
                                                    Tarn__V1__VectorRange *const *in, size_t count)
{
    struct tarn_vector_range *list = TARN_RPC_ARRAY(op, count, *list);
    for (size_t i = 0; i < count; i++) {
        bool counted = in[i]->_cardinality_case == TARN__V1__VECTOR_RANGE___CARDINALITY_CARDINALITY;
        list[i] = (struct tarn_vector_range){tarn_rpc__slice(in[i]->data_file), in[i]->offset,
                                             in[i]->length,
                                             counted ? in[i]->cardinality : TARN_FILE_NONE};
    }
    return list;
}

static struct tarn_status *take_indexes(struct tarn_op *op, Tarn__V1__IndexEntry *const *in,
                                        size_t count, const struct tarn_index_file **out)
{
    struct tarn_index_file *list = TARN_RPC_ARRAY(op, count, *list);
    for (size_t i = 0; i < count; i++) {
        struct tarn_index_file *f = &list[i];
        TARN_TRY(take_kind(in[i]->kind, i, &f->kind));
        f->partition = take_partition(in[i]->partition);
        f->bucket = in[i]->bucket;
        f->type = tarn_slice_str(in[i]->type);
        f->name = tarn_rpc__slice(in[i]->name);
        f->size = in[i]->size;
        f->row_count = in[i]->row_count;
        f->has_vectors = in[i]->has_vectors || in[i]->n_vectors > 0;
        f->vectors = take_vectors(op, in[i]->vectors, in[i]->n_vectors);
        f->vector_count = in[i]->n_vectors;
        if (in[i]->_external_path_case == TARN__V1__INDEX_ENTRY___EXTERNAL_PATH_EXTERNAL_PATH)
            f->external_path = tarn_rpc__slice(in[i]->external_path);
    }
    *out = list;
    return TARN_OK;
}

static struct tarn_status *take_parts(struct tarn_op *op, const Tarn__V1__CommitRequest *q,
                                      struct tarn_commit *c)
{
    c->append = (struct tarn_commit_part){.count = q->n_append,
                                          .changelog_count = q->n_append_changelog,
                                          .index_count = q->n_append_index};
    c->compact = (struct tarn_commit_part){.count = q->n_compact,
                                           .changelog_count = q->n_compact_changelog,
                                           .index_count = q->n_compact_index};
    TARN_TRY(tarn_rpc__take_entries(op, q->append, q->n_append, &c->append.entries));
    TARN_TRY(tarn_rpc__take_entries(op, q->append_changelog, q->n_append_changelog,
                                    &c->append.changelog));
    TARN_TRY(take_indexes(op, q->append_index, q->n_append_index, &c->append.index));
    TARN_TRY(tarn_rpc__take_entries(op, q->compact, q->n_compact, &c->compact.entries));
    TARN_TRY(tarn_rpc__take_entries(op, q->compact_changelog, q->n_compact_changelog,
                                    &c->compact.changelog));
    return take_indexes(op, q->compact_index, q->n_compact_index, &c->compact.index);
}

static struct tarn_status *take_overwrite(struct tarn_op *op, const Tarn__V1__Overwrite *in,
                                          struct tarn_commit_request *out)
{
    if (in == NULL)
        return TARN_OK;
    static const enum tarn_overwrite what[] = {TARN_OVERWRITE_NONE, TARN_OVERWRITE_TABLE,
                                               TARN_OVERWRITE_PARTITIONS, TARN_OVERWRITE_DYNAMIC};
    if ((unsigned)in->what >= TARN_COUNT_OF(what))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "overwrite.what %d is not known",
                               (int)in->what);
    out->commit.overwrite = what[in->what];
    struct tarn_partition_match *matches = TARN_RPC_ARRAY(op, in->n_partitions, *matches);
    for (size_t i = 0; i < in->n_partitions; i++)
        matches[i] = (struct tarn_partition_match){
            tarn_rpc__partition(op, in->partitions[i]->values, in->partitions[i]->n_values),
            in->partitions[i]->n_values};
    out->matches = matches;
    out->match_count = in->n_partitions;
    return TARN_OK;
}

struct tarn_status *tarn_rpc__take_commit(struct tarn_op *op, const Tarn__V1__CommitRequest *q,
                                          struct tarn_commit_request *out)
{
    *out = (struct tarn_commit_request){
        .ref = tarn_rpc__ref(q->table),
        .commit = {.user = tarn_slice_str(q->commit_user),
                   .identifier = q->commit_identifier,
                   .watermark = TARN_SNAPSHOT_NONE,
                   .properties = tarn_rpc__pairs(op, q->properties, q->n_properties),
                   .property_count = q->n_properties,
                   .operation = tarn_slice_str(q->operation[0] == '\0' ? NULL : q->operation),
                   .statistics = tarn_rpc__slice(q->statistics),
                   .base_snapshot_id = TARN_SNAPSHOT_NONE,
                   .base_snapshot_proof = tarn_slice_str(q->base_snapshot_proof),
                   .force_empty = q->force_empty},
    };
    if (q->_watermark_case == TARN__V1__COMMIT_REQUEST___WATERMARK_WATERMARK)
        out->commit.watermark = q->watermark;
    if (q->_base_snapshot_case == TARN__V1__COMMIT_REQUEST___BASE_SNAPSHOT_BASE_SNAPSHOT)
        out->commit.base_snapshot_id = q->base_snapshot;
    if (q->messages != NULL) {
        out->messages = tarn_rpc__slices(op, q->messages->messages, q->messages->n_messages);
        out->message_count = q->messages->n_messages;
        out->message_version = q->messages->version;
    }
    TARN_TRY(take_parts(op, q, &out->commit));
    return take_overwrite(op, q->overwrite, out);
}

void tarn_rpc__put_commit(const struct tarn_commit_result *result, Tarn__V1__CommitResponse *out)
{
    out->snapshot_id = result->append_snapshot_id;
    out->compact_snapshot_id = result->compact_snapshot_id;
    out->repeated_commit = result->repeated;
    out->sequence_overlaps = result->sequence_overlap_count;
}

bool tarn_rpc__put_backlog(const struct tarn_backlog *backlog, Tarn__V1__Backlog *out)
{
    tarn__v1__backlog__init(out);
    out->advice = backlog->advice == TARN_BACKLOG_WAIT     ? TARN__V1__BACKLOG__ADVICE__WAIT
                  : backlog->advice == TARN_BACKLOG_BEHIND ? TARN__V1__BACKLOG__ADVICE__BEHIND
                                                           : TARN__V1__BACKLOG__ADVICE__NONE;
    out->partition = tarn_rpc__bytes(backlog->partition);
    out->bucket = backlog->bucket;
    out->sorted_runs = backlog->runs;
    out->compaction_trigger = backlog->run_trigger;
    out->stop_trigger = backlog->run_stop_trigger;
    out->retry_after_ms = backlog->retry_after_ms;
    return backlog->advice != TARN_BACKLOG_NONE;
}

/* --- methods --- */

struct commit_run { /* in the op's arena */
    struct tarn_rpc__run *run;
    struct tarn_commit_request request;
    struct tarn_commit_result result;
    struct tarn_backlog backlog;
    Tarn__V1__Backlog backlog_message;
};

static void answer_commit(void *arg, struct tarn_status *status)
{
    struct commit_run *c = arg;
    Tarn__V1__CommitResponse response = TARN__V1__COMMIT_RESPONSE__INIT;
    if (status != TARN_OK) {
        tarn_rpc__refuse(c->run, status);
        return;
    }
    tarn_rpc__put_commit(&c->result, &response);
    if (tarn_rpc__put_backlog(&c->backlog, &c->backlog_message))
        response.backlog = &c->backlog_message;
    tarn_rpc__finish(c->run, &response.base);
}

void tarn_rpc__commit(struct tarn_op *op, struct tarn_service *service, const void *request,
                      struct tarn_rpc__run *run)
{
    struct commit_run *c = tarn_arena_calloc(op->arena, 1, sizeof *c);
    c->run = run;
    struct tarn_status *s = tarn_rpc__take_commit(op, request, &c->request);
    if (s != TARN_OK)
        tarn_rpc__refuse(run, s);
    else
        tarn_service_commit(op, service, &c->request, &c->result, &c->backlog, answer_commit, c);
}

struct tarn_status *tarn_rpc__get_commit(struct tarn_op *op, struct tarn_service *service,
                                         const void *request, void *response)
{
    static const Tarn__V1__GetCommitResponse__State states[] = {
        [TARN_COMMIT_LANDED] = TARN__V1__GET_COMMIT_RESPONSE__STATE__LANDED,
        [TARN_COMMIT_REFUSED] = TARN__V1__GET_COMMIT_RESPONSE__STATE__REFUSED,
        [TARN_COMMIT_OPEN] = TARN__V1__GET_COMMIT_RESPONSE__STATE__OPEN,
        [TARN_COMMIT_ROLLED_BACK] = TARN__V1__GET_COMMIT_RESPONSE__STATE__ROLLED_BACK,
        [TARN_COMMIT_NOT_KNOWN] = TARN__V1__GET_COMMIT_RESPONSE__STATE__NOT_KNOWN,
        [TARN_COMMIT_NOT_COMMITTED] = TARN__V1__GET_COMMIT_RESPONSE__STATE__NOT_COMMITTED,
    };
    const Tarn__V1__GetCommitRequest *q = request;
    Tarn__V1__GetCommitResponse *r = response;
    bool since = q->_since_case == TARN__V1__GET_COMMIT_REQUEST___SINCE_SINCE_SNAPSHOT;
    struct tarn_commit_fate fate;
    TARN_TRY(tarn_service_get_commit(op, service, tarn_rpc__ref(q->table),
                                     tarn_slice_str(q->commit_user), q->commit_identifier,
                                     since ? q->since_snapshot : TARN_SNAPSHOT_NONE, &fate));
    r->state = states[fate.state];
    r->snapshot_id = fate.append_snapshot_id;
    r->compact_snapshot_id = fate.compact_snapshot_id;
    r->horizon_snapshot = fate.horizon_snapshot_id;
    if (fate.state == TARN_COMMIT_REFUSED) {
        r->reason = tarn_rpc__str(tarn_reason_name(fate.reason));
        r->message = tarn_rpc__str(fate.message);
    }
    return TARN_OK;
}

struct tarn_status *tarn_rpc__commit_tables(struct tarn_op *op, struct tarn_service *service,
                                            const void *request, void *response)
{
    const Tarn__V1__CommitTablesRequest *q = request;
    Tarn__V1__CommitTablesResponse *r = response;
    struct tarn_commit_request *requests = TARN_RPC_ARRAY(op, q->n_commits, *requests);
    struct tarn_commit_result *results = TARN_RPC_ARRAY(op, q->n_commits, *results);
    for (size_t i = 0; i < q->n_commits; i++) {
        struct tarn_status *s = tarn_rpc__take_commit(op, q->commits[i], &requests[i]);
        if (s != TARN_OK)
            return tarn_status_wrap(s, "commit %zu", i);
    }
    struct tarn_backlog *backlogs = TARN_RPC_ARRAY(op, q->n_commits, *backlogs);
    TARN_TRY(tarn_service_commit_tables(op, service, requests, q->n_commits, results, backlogs));
    r->n_commits = q->n_commits;
    r->commits = TARN_RPC_ARRAY(op, q->n_commits, *r->commits);
    for (size_t i = 0; i < q->n_commits; i++) {
        r->commits[i] = TARN_RPC_NEW(op, Tarn__V1__CommitResponse, commit_response);
        tarn_rpc__put_commit(&results[i], r->commits[i]);
        Tarn__V1__Backlog *backlog = TARN_RPC_NEW(op, Tarn__V1__Backlog, backlog);
        if (tarn_rpc__put_backlog(&backlogs[i], backlog))
            r->commits[i]->backlog = backlog;
    }
    return TARN_OK;
}

struct tarn_status *tarn_rpc__filter_committed(struct tarn_op *op, struct tarn_service *service,
                                               const void *request, void *response)
{
    const Tarn__V1__FilterCommittedRequest *q = request;
    Tarn__V1__FilterCommittedResponse *r = response;
    size_t count = q->n_commit_identifiers;
    bool *keep = TARN_RPC_ARRAY(op, count, *keep);
    int64_t last;
    TARN_TRY(tarn_service_filter_committed(op, service, tarn_rpc__ref(q->table),
                                           tarn_slice_str(q->commit_user), q->commit_identifiers,
                                           count, keep, &last));
    r->commit_identifiers = TARN_RPC_ARRAY(op, count, *r->commit_identifiers);
    for (size_t i = 0; i < count; i++)
        if (keep[i])
            r->commit_identifiers[r->n_commit_identifiers++] = q->commit_identifiers[i];
    if (last != TARN_SNAPSHOT_NONE) {
        r->_last_case = TARN__V1__FILTER_COMMITTED_RESPONSE___LAST_LAST_COMMITTED;
        r->last_committed = last;
    }
    return TARN_OK;
}
