#include "rest/internal.h"

/* Partitions, with the sums of their live files. */

static struct tarn_json *from_facts(const struct tarn_partition_facts *facts)
{
    struct tarn_json *json = tarn_json_object();
    tarn_json_set(json, "spec", tarn_rest__from_pairs(facts->spec, facts->spec_count));
    tarn_json_set_int(json, "recordCount", facts->totals.record_count);
    tarn_json_set_int(json, "fileSizeInBytes", facts->totals.size);
    tarn_json_set_int(json, "fileCount", facts->totals.file_count);
    tarn_json_set_int(json, "lastFileCreationTime", facts->last_file_ms);
    tarn_json_set_int(json, "totalBuckets", facts->totals.total_buckets);
    tarn_json_set_bool(json, "done", false);
    return json;
}

static void answer(struct tarn_rest__call *call, const struct tarn_partition_facts *list,
                   size_t count, const char *next)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        if (list[i].spec_count > 0) /* else the table has no partitions */
            tarn_json_add(array, from_facts(&list[i]));
    tarn_rest__answer_list(call, "partitions", array, next);
}

static struct tarn_status *list(struct tarn_rest__call *call, struct tarn_page page)
{
    struct tarn_table_ref ref;
    struct tarn_partition_facts *list;
    size_t count;
    const char *next;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(
        tarn_service_list_partitions(call->op, call->service, ref, page, &list, &count, &next));
    answer(call, list, count, next);
    return TARN_OK;
}

static struct tarn_status *list_partitions(struct tarn_rest__call *call)
{
    struct tarn_page page;
    TARN_TRY(tarn_rest__page(call, "partitionNamePattern", "PARTITION", &page));
    return list(call, page);
}

/* More than the filter lets through may be answered: the client filters again. */
static struct tarn_status *list_by_filter(struct tarn_rest__call *call)
{
    struct tarn_page page = {0};
    TARN_TRY(tarn_rest__text(call->body, "partitionNamePattern", &page.pattern));
    TARN_TRY(tarn_rest__text(call->body, "pageToken", &page.token));
    TARN_TRY(tarn_rest__integer(call->body, "maxResults", &page.size));
    return list(call, page);
}

static struct tarn_status *take_specs(struct tarn_rest__call *call,
                                      struct tarn_partition_match **out, size_t *count)
{
    const struct tarn_json *specs;
    TARN_TRY(tarn_rest__array(call->body, "specs", &specs));
    *count = specs == NULL ? 0 : tarn_json_count(specs);
    *out = tarn_arena_calloc(call->op->arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        const struct tarn_json *spec = tarn_json_at(specs, i), *value;
        if (tarn_json_kind(spec) != TARN_JSON_OBJECT)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "\"specs\" holds what is no object");
        struct tarn_partition_value *values =
            tarn_arena_calloc(call->op->arena, tarn_json_count(spec) + 1, sizeof *values);
        void *cursor = NULL;
        struct tarn_slice key;
        while (tarn_json_next(spec, &cursor, &key, &value))
            values[(*out)[i].value_count++] =
                (struct tarn_partition_value){.column = key, .value = tarn_json_text(value)};
        (*out)[i].values = values;
    }
    return TARN_OK;
}

static struct tarn_status *list_by_names(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_partition_match *specs;
    struct tarn_partition_facts *list;
    size_t spec_count, count;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(take_specs(call, &specs, &spec_count));
    TARN_TRY(tarn_service_find_partitions(call->op, call->service, ref, specs, spec_count, &list,
                                          &count));
    answer(call, list, count, "");
    return TARN_OK;
}

#define TABLE "/databases/{database}/tables/{table}"
const struct tarn_rest__endpoint tarn_rest__partition_endpoints[] = {
    {"GET", TABLE "/partitions", list_partitions},
    {"POST", TABLE "/partitions/list-by-names", list_by_names},
    {"POST", TABLE "/partitions/list-by-filter", list_by_filter},
    TARN_REST_END,
};
