#include "rpc/table.h"

/* TableService: partitions. */

static Tarn__V1__PartitionValue **put_values(struct tarn_op *op,
                                             const struct tarn_group_facts *facts)
{
    Tarn__V1__PartitionValue **out = TARN_RPC_ARRAY(op, facts->value_count, *out);
    for (size_t i = 0; i < facts->value_count; i++) {
        out[i] = TARN_RPC_NEW(op, Tarn__V1__PartitionValue, partition_value);
        out[i]->column = tarn_rpc__bytes(facts->values[i].column);
        out[i]->value = tarn_rpc__bytes(facts->values[i].value);
        out[i]->is_null = facts->values[i].is_null;
    }
    return out;
}

static Tarn__V1__PartitionInfo *put_info(struct tarn_op *op, const struct tarn_group_facts *facts)
{
    Tarn__V1__PartitionInfo *p = TARN_RPC_NEW(op, Tarn__V1__PartitionInfo, partition_info);
    p->partition = tarn_rpc__str(facts->partition);
    p->values = put_values(op, facts);
    p->n_values = facts->value_count;
    p->record_count = facts->record_count;
    p->file_count = facts->file_count;
    p->size = facts->size;
    p->bucket_count = facts->total_buckets;
    p->last_file_time_ms = facts->last_file_ms;
    if (facts->created_ms != 0) {
        p->_created_case = TARN__V1__PARTITION_INFO___CREATED_CREATED_MS;
        p->created_ms = facts->created_ms;
    }
    if (facts->done_ms != 0) {
        p->_done_case = TARN__V1__PARTITION_INFO___DONE_DONE_MS;
        p->done_ms = facts->done_ms;
    }
    return p;
}

struct tarn_status *tarn_rpc__list_partitions(struct tarn_op *op, struct tarn_service *service,
                                              const void *request, void *response)
{
    const Tarn__V1__ListPartitionsRequest *q = request;
    Tarn__V1__ListPartitionsResponse *r = response;
    struct tarn_version version;
    struct tarn_group_facts *list;
    size_t count;
    TARN_TRY(tarn_rpc__version(q->version, &version));
    TARN_TRY(tarn_service_list_partition_groups(op, service, tarn_rpc__ref(q->table), version,
                                                &list, &count));
    r->partitions = TARN_RPC_ARRAY(op, count, *r->partitions);
    r->n_partitions = count;
    for (size_t i = 0; i < count; i++)
        r->partitions[i] = put_info(op, &list[i]);
    return TARN_OK;
}

/* --- changing them --- */

static struct tarn_partition_request take(struct tarn_op *op, const Tarn__V1__TableRef *table,
                                          Tarn__V1__PartitionSpec *const *specs, size_t count,
                                          bool lenient)
{
    struct tarn_partition_match *list = TARN_RPC_ARRAY(op, count, *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (struct tarn_partition_match){
            .values = tarn_rpc__partition(op, specs[i]->values, specs[i]->n_values),
            .value_count = specs[i]->n_values};
    return (struct tarn_partition_request){
        .ref = tarn_rpc__ref(table), .specs = list, .spec_count = count, .lenient = lenient};
}

static Tarn__V1__PartitionName **put_names(struct tarn_op *op,
                                           const struct tarn_partition_name *names, size_t count)
{
    Tarn__V1__PartitionName **out = TARN_RPC_ARRAY(op, count, *out);
    for (size_t i = 0; i < count; i++) {
        out[i] = TARN_RPC_NEW(op, Tarn__V1__PartitionName, partition_name);
        out[i]->values = tarn_rpc__options(op, names[i].spec, names[i].spec_count);
        out[i]->n_values = names[i].spec_count;
    }
    return out;
}

static void put_answer(struct tarn_op *op, const struct tarn_partition_answer *answer,
                       Tarn__V1__ChangePartitionsResponse *r)
{
    r->changed = put_names(op, answer->changed, answer->changed_count);
    r->n_changed = answer->changed_count;
    r->others = put_names(op, answer->others, answer->other_count);
    r->n_others = answer->other_count;
    r->snapshot_id = answer->snapshot_id;
}

struct tarn_status *tarn_rpc__create_partitions(struct tarn_op *op, struct tarn_service *service,
                                                const void *request, void *response)
{
    const Tarn__V1__CreatePartitionsRequest *q = request;
    struct tarn_partition_request p =
        take(op, q->table, q->partitions, q->n_partitions, q->ignore_if_exists);
    struct tarn_partition_answer answer;
    TARN_TRY(tarn_service_create_partitions(op, service, &p, &answer));
    put_answer(op, &answer, response);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__mark_partitions(struct tarn_op *op, struct tarn_service *service,
                                              const void *request, void *response)
{
    const Tarn__V1__MarkPartitionsRequest *q = request;
    struct tarn_partition_request p =
        take(op, q->table, q->partitions, q->n_partitions, q->ignore_if_missing);
    struct tarn_partition_answer answer;
    TARN_TRY(tarn_service_mark_partitions(op, service, &p, !q->undo, &answer));
    put_answer(op, &answer, response);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__drop_partitions(struct tarn_op *op, struct tarn_service *service,
                                              const void *request, void *response)
{
    const Tarn__V1__DropPartitionsRequest *q = request;
    struct tarn_partition_request p =
        take(op, q->table, q->partitions, q->n_partitions, q->ignore_if_missing);
    struct tarn_partition_answer answer;
    TARN_TRY(tarn_service_drop_partitions(op, service, &p, &answer));
    put_answer(op, &answer, response);
    return TARN_OK;
}
