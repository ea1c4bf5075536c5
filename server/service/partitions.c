#include "service/internal.h"

/* Partitions as catalogs list them: by name, with the sums that the index keeps. */

struct naming {
    struct tarn_op *op;
    const struct tarn_schema *schema;
    const struct tarn_options *options;
};

/* "dt=a%3Ab/hour=3/" -> its parts, unescaped, and "dt=a:b/hour=3". */
static void name_partition(const struct naming *n, struct tarn_slice path,
                           struct tarn_partition_facts *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf part = {0};
    struct tarn_pair *spec =
        tarn_arena_calloc(n->op->arena, n->schema->partition_key_count + 1, sizeof *spec);
    while (path.size > 0 && out->spec_count < n->schema->partition_key_count) {
        const uint8_t *slash = memchr(path.data, '/', path.size);
        size_t size = slash == NULL ? path.size : (size_t)(slash - path.data);
        struct tarn_slice key = n->schema->partition_keys[out->spec_count];
        const uint8_t *equals = memchr(path.data, '=', size); /* those of names are escaped */
        size_t at = equals == NULL ? size : (size_t)(equals - path.data) + 1;
        tarn_buf_clear(&part);
        tarn_path_unescape(tarn_slice_of(path.data + at, size - at), &part);
        spec[out->spec_count++] =
            (struct tarn_pair){tarn_arena_copy(n->op->arena, key),
                               tarn_arena_copy(n->op->arena, tarn_buf_slice(&part))};
        tarn_buf_printf(&name, "%s%.*s=", name.size == 0 ? "" : "/", TARN_SLICE_ARG(key));
        tarn_buf_add_slice(&name, tarn_buf_slice(&part));
        size_t step = TARN_MIN(size + 1, path.size);
        path = tarn_slice_of(path.data + step, path.size - step);
    }
    out->spec = spec;
    out->name = tarn_arena_copy(n->op->arena, tarn_buf_slice(&name));
}

static int by_name(const void *a, const void *b)
{
    return tarn_slice_compare(((const struct tarn_partition_facts *)a)->name,
                              ((const struct tarn_partition_facts *)b)->name);
}

/* All of them, by name; none of a table that isn't partitioned but for the one without name. */
static struct tarn_status *all_partitions(struct tarn_op *op, struct tarn_service *service,
                                          struct tarn_table_ref ref,
                                          struct tarn_partition_facts **out, size_t *count)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    struct tarn_partition_totals *list;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(tarn_table_partition_totals(op, table, &view, &list, count));
    struct naming naming = {op, &view->schema, &view->options};
    *out = tarn_arena_calloc(op->arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        struct tarn_partition_facts *facts = &(*out)[i];
        tarn_buf_clear(&path);
        TARN_TRY(tarn_partition_path(&view->schema, &view->options, list[i].partition, &path));
        name_partition(&naming, tarn_buf_slice(&path), facts);
        facts->totals = list[i].totals;
        facts->last_file_ms = tarn_service__epoch_of_local(facts->totals.last_file_local_ms);
    }
    if (*count > 1)
        qsort(*out, *count, sizeof **out, by_name);
    return TARN_OK;
}

struct tarn_status *tarn_service_list_partitions(struct tarn_op *op, struct tarn_service *service,
                                                 struct tarn_table_ref ref, struct tarn_page page,
                                                 struct tarn_partition_facts **out, size_t *count,
                                                 const char **next_token)
{
    struct tarn_partition_facts *all;
    struct tarn_pattern pattern;
    size_t all_count, max = tarn_service__page_size(page), n = 0;
    TARN_TRY(tarn_service__pattern(op, page.pattern, &pattern));
    TARN_TRY(all_partitions(op, service, ref, &all, &all_count));
    *out = tarn_arena_calloc(op->arena, TARN_MIN(all_count, max) + 1, sizeof **out);
    *next_token = "";
    for (size_t i = 0; i < all_count; i++) {
        if (!tarn_service__matches(&pattern, all[i].name) ||
            (page.token.size > 0 && tarn_slice_compare(all[i].name, page.token) <= 0))
            continue;
        if (n == max) {
            *next_token = tarn_arena_str(op->arena, (*out)[n - 1].name);
            break;
        }
        (*out)[n++] = all[i];
    }
    *count = n;
    return TARN_OK;
}

/* The name that a spec would have among `like`'s kind; false: it doesn't say all columns. */
static bool name_of(const struct tarn_partition_match *spec,
                    const struct tarn_partition_facts *like, struct tarn_buf *out)
{
    tarn_buf_clear(out);
    for (size_t k = 0; k < like->spec_count; k++) {
        size_t i = 0;
        while (i < spec->value_count &&
               !tarn_slice_equal(spec->values[i].column, like->spec[k].key))
            i++;
        if (i == spec->value_count)
            return false;
        tarn_buf_printf(out, "%s%.*s=", k == 0 ? "" : "/", TARN_SLICE_ARG(like->spec[k].key));
        tarn_buf_add_slice(out, spec->values[i].value);
    }
    return true;
}

struct tarn_status *tarn_service_find_partitions(struct tarn_op *op, struct tarn_service *service,
                                                 struct tarn_table_ref ref,
                                                 const struct tarn_partition_match *specs,
                                                 size_t spec_count,
                                                 struct tarn_partition_facts **out, size_t *count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *by_names = tarn_map_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    struct tarn_partition_facts *all;
    size_t all_count;
    if (spec_count > TARN_PARTITIONS_ASKED_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%zu partitions, at most %d at once",
                               spec_count, TARN_PARTITIONS_ASKED_MAX);
    TARN_TRY(all_partitions(op, service, ref, &all, &all_count));
    for (size_t i = 0; i < all_count; i++)
        tarn_map_set(by_names, all[i].name, &all[i]);
    *out = tarn_arena_calloc(op->arena, spec_count + 1, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < spec_count && all_count > 0; i++) {
        const struct tarn_partition_facts *found =
            name_of(&specs[i], &all[0], &name) ? tarn_map_remove(by_names, tarn_buf_slice(&name))
                                               : NULL; /* once each */
        if (found != NULL)
            (*out)[(*count)++] = *found;
    }
    return TARN_OK;
}
