#include "rest/internal.h"

/* Partitions, with the sums of their live files. */

static struct tarn_json *from_facts(const struct tarn_partition_facts *facts)
{
    struct tarn_json *json = tarn_json_object();
    tarn_json_set(json, "spec", tarn_rest__from_pairs(facts->name.spec, facts->name.spec_count));
    tarn_json_set_int(json, "recordCount", facts->totals.record_count);
    tarn_json_set_int(json, "fileSizeInBytes", facts->totals.size);
    tarn_json_set_int(json, "fileCount", facts->totals.file_count);
    tarn_json_set_int(json, "lastFileCreationTime", facts->last_file_ms);
    tarn_json_set_int(json, "totalBuckets", facts->totals.total_buckets);
    tarn_json_set_bool(json, "done", facts->done_ms != 0);
    if (facts->created_ms != 0)
        tarn_json_set_int(json, "createdAt", facts->created_ms);
    return json;
}

static void answer(struct tarn_rest__call *call, const struct tarn_partition_facts *list,
                   size_t count, const char *next)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        if (list[i].name.spec_count > 0) /* else the table has no partitions */
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

static struct tarn_status *take_specs(struct tarn_rest__call *call, const char *member,
                                      const struct tarn_partition_match **out_specs, size_t *count)
{
    const struct tarn_json *specs;
    struct tarn_partition_match *list, **out = &list;
    TARN_TRY(tarn_rest__array(call->body, member, &specs));
    *count = specs == NULL ? 0 : tarn_json_count(specs);
    *out = tarn_arena_calloc(call->op->arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        const struct tarn_json *spec = tarn_json_at(specs, i), *value;
        if (tarn_json_kind(spec) != TARN_JSON_OBJECT)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%s\" holds what is no object", member);
        struct tarn_partition_value *values =
            tarn_arena_calloc(call->op->arena, tarn_json_count(spec) + 1, sizeof *values);
        void *cursor = NULL;
        struct tarn_slice key;
        while (tarn_json_next(spec, &cursor, &key, &value))
            values[(*out)[i].value_count++] =
                (struct tarn_partition_value){.column = key, .value = tarn_json_text(value)};
        (*out)[i].values = values;
    }
    *out_specs = list;
    return TARN_OK;
}

static struct tarn_status *list_by_names(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    const struct tarn_partition_match *specs;
    struct tarn_partition_facts *list;
    size_t spec_count, count;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(take_specs(call, "specs", &specs, &spec_count));
    TARN_TRY(tarn_service_find_partitions(call->op, call->service, ref, specs, spec_count, &list,
                                          &count));
    answer(call, list, count, "");
    return TARN_OK;
}

/* --- changing them --- */

static struct tarn_status *take_request(struct tarn_rest__call *call, const char *key,
                                        const char *lenient, struct tarn_partition_request *out)
{
    *out = (struct tarn_partition_request){.lenient = true};
    TARN_TRY(tarn_rest__ref(call, &out->ref));
    TARN_TRY(take_specs(call, key, &out->specs, &out->spec_count));
    return lenient == NULL ? TARN_OK : tarn_rest__bool(call->body, lenient, false, &out->lenient);
}

static struct tarn_json *from_names(const struct tarn_partition_name *names, size_t count)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        tarn_json_add(array, tarn_rest__from_pairs(names[i].spec, names[i].spec_count));
    return array;
}

static void answer_change(struct tarn_rest__call *call, const struct tarn_partition_answer *answer,
                          const char *changed, const char *others)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    tarn_json_set(json, changed, from_names(answer->changed, answer->changed_count));
    tarn_json_set(json, others, from_names(answer->others, answer->other_count));
    tarn_rest__answer(call, json);
}

/* Statistics that come along aren't taken: those served are of the files that there are. */
static struct tarn_status *create_partitions(struct tarn_rest__call *call)
{
    struct tarn_partition_request request;
    struct tarn_partition_answer done;
    TARN_TRY(take_request(call, "partitionSpecs", "ignoreIfExists", &request));
    TARN_TRY(tarn_service_create_partitions(call->op, call->service, &request, &done));
    answer_change(call, &done, "created", "existed");
    return TARN_OK;
}

static struct tarn_status *drop_partitions(struct tarn_rest__call *call)
{
    struct tarn_partition_request request;
    struct tarn_partition_answer done;
    TARN_TRY(take_request(call, "partitionSpecs", "ignoreIfNotExists", &request));
    TARN_TRY(tarn_service_drop_partitions(call->op, call->service, &request, &done));
    answer_change(call, &done, "dropped", "missing");
    return TARN_OK;
}

/* 404 would be a table that isn't there, to clients: what isn't there isn't marked. */
static struct tarn_status *mark_partitions(struct tarn_rest__call *call)
{
    struct tarn_partition_request request;
    struct tarn_partition_answer done;
    TARN_TRY(take_request(call, "specs", NULL, &request));
    return tarn_service_mark_partitions(call->op, call->service, &request, true, &done);
}

#define TABLE "/databases/{database}/tables/{table}"
const struct tarn_rest__endpoint tarn_rest__partition_endpoints[] = {
    {"GET", TABLE "/partitions", list_partitions},
    {"POST", TABLE "/partitions", create_partitions},
    {"POST", TABLE "/partitions/mark", mark_partitions},
    {"POST", TABLE "/partitions/drop", drop_partitions},
    {"POST", TABLE "/partitions/list-by-names", list_by_names},
    {"POST", TABLE "/partitions/list-by-filter", list_by_filter},
    TARN_REST_END,
};
