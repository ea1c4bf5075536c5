#include "service/internal.h"

/* A table's snapshots, schemas, manifests and options. */

struct tarn_status *tarn_service_list_snapshots(struct tarn_op *op, struct tarn_service *service,
                                                struct tarn_table_ref ref, struct tarn_page page,
                                                struct tarn_snapshot **out, size_t *count,
                                                const char **next_token)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    int64_t from = 0;
    if (page.token.size > 0) {
        struct tarn_status *s = tarn_parse_i64(page.token, &from);
        if (s != TARN_OK || from < 0 || from == INT64_MAX) {
            tarn_status_free(s);
            return tarn_status_new(TARN_INVALID_ARGUMENT, "page.token is none of this list");
        }
        from++;
    }
    size_t max = tarn_service__page_size(page);
    TARN_TRY(tarn_table_snapshots(op, table, from, max + 1, out, count));
    *next_token = "";
    if (*count > max) {
        *count = max;
        *next_token = tarn_arena_printf(op->arena, "%" PRId64, (*out)[max - 1].id);
    }
    return TARN_OK;
}

struct tarn_status *tarn_service_latest_snapshot(struct tarn_op *op, struct tarn_service *service,
                                                 struct tarn_table_ref ref, bool *found,
                                                 struct tarn_slice *json,
                                                 struct tarn_totals *totals, int64_t *last_file_ms)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(tarn_table_totals(op, table, &view, totals));
    *found = view->has_snapshot;
    if (!*found)
        return TARN_OK;
    *json = tarn_arena_copy(op->arena, view->snapshot.json);
    *last_file_ms = tarn_service__epoch_of_local(totals->last_file_local_ms);
    return TARN_OK;
}

static struct tarn_status *parse_version(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_slice text, struct tarn_version *out)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    *out = TARN_VERSION_LATEST;
    if (tarn_slice_is(text, "EARLIEST")) {
        TARN_TRY(tarn_table_look(op, table, &view));
        if (view->has_snapshot)
            out->snapshot_id = view->earliest_id;
        return TARN_OK;
    }
    if (tarn_slice_is(text, "LATEST"))
        return TARN_OK;
    struct tarn_status *s = tarn_parse_i64(text, &out->snapshot_id);
    if (s != TARN_OK)
        *out = (struct tarn_version){
            .snapshot_id = TARN_SNAPSHOT_NONE, TARN_VERSION_NONE, .tag = text};
    tarn_status_free(s);
    return TARN_OK;
}

struct tarn_status *tarn_service_find_snapshot(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_table_ref ref, struct tarn_slice version,
                                               bool *found, struct tarn_slice *json)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_version parsed;
    struct tarn_snapshot snapshot;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(parse_version(op, table, version, &parsed));
    TARN_TRY(tarn_table_snapshot(op, table, parsed, found, &snapshot));
    if (!*found)
        return TARN_OK;
    *json = snapshot.json;
    return TARN_OK;
}

struct tarn_status *tarn_service_list_schemas(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table_ref ref,
                                              const struct tarn_schema ***out, size_t *count)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    return tarn_table_schemas(op, table, out, count);
}

/* --- manifests --- */

static void manifest_facts(struct tarn_op *op, const struct tarn_schema *schema, const char *list,
                           const struct tarn_manifest_file *files, size_t count,
                           struct tarn_manifest_facts *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (struct tarn_manifest_facts){
            .name = tarn_arena_str(op->arena, files[i].name),
            .list = list,
            .size = files[i].size,
            .added_count = files[i].added_count,
            .deleted_count = files[i].deleted_count,
            .schema_id = files[i].schema_id,
            .min_partition = tarn_service__partition_text(op, schema, files[i].partition_stats.min),
            .max_partition = tarn_service__partition_text(op, schema, files[i].partition_stats.max),
        };
}

struct tarn_status *tarn_service_list_manifests(struct tarn_op *op, struct tarn_service *service,
                                                struct tarn_table_ref ref,
                                                struct tarn_version version, int64_t *snapshot_id,
                                                struct tarn_manifest_facts **out, size_t *count)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    bool found;
    struct tarn_snapshot snapshot;
    *snapshot_id = 0;
    *count = 0;
    TARN_TRY(tarn_table_snapshot(op, table, version, &found, &snapshot));
    if (!found)
        return TARN_OK;
    const struct tarn_schema *schema;
    TARN_TRY(tarn_table_schema(op, table, snapshot.schema_id, &schema));
    struct tarn_manifest_file *base, *delta;
    size_t base_count, delta_count;
    TARN_TRY(tarn_table_manifests(op, table, &snapshot, &base, &base_count, &delta, &delta_count));
    *out = tarn_arena_calloc(op->arena, base_count + delta_count + 1, sizeof **out);
    manifest_facts(op, schema, "base", base, base_count, *out);
    manifest_facts(op, schema, "delta", delta, delta_count, *out + base_count);
    *count = base_count + delta_count;
    *snapshot_id = snapshot.id;
    return TARN_OK;
}

/* --- options --- */

static const struct known_option {
    const char *key, *default_value, *effect;
} known_options[] = {
#define USED "obeyed by Tarn"
#define PASSIVE "kept for other engines"
#define REFUSE "not implemented: another value makes the table listed only"
#define REFUSE_WRITE "not implemented: another value stops writes by Tarn"
#define REFUSE_COMMIT "not implemented: another value stops all commits, other writers' too"
#define LATER "not implemented: left to the table's writers"
#define REFUSE_ALL "not implemented: another value stops reads, writes and commits through Tarn"
#define O(key, kind, default_text, effect) {key, default_text, effect},
#include "format/options.def"
#undef O
};

static bool is_pattern(const char *key)
{
    size_t n = strlen(key);
    return n > 0 && key[n - 1] == '*';
}

static bool fits(const struct known_option *known, struct tarn_slice key)
{
    if (!is_pattern(known->key))
        return tarn_slice_is(key, known->key);
    return tarn_slice_starts_with(key, tarn_slice_of(known->key, strlen(known->key) - 1));
}

static const struct known_option *find_known(struct tarn_slice key)
{
    for (size_t i = 0; i < TARN_COUNT_OF(known_options); i++)
        if (fits(&known_options[i], key))
            return &known_options[i];
    return NULL;
}

static struct tarn_option_facts stored_option(struct tarn_op *op, const struct tarn_pair *pair)
{
    const struct known_option *known = find_known(pair->key);
    return (struct tarn_option_facts){
        .key = tarn_arena_str(op->arena, pair->key),
        .value = tarn_arena_str(op->arena, pair->value),
        .default_value = known == NULL || is_pattern(known->key) ? "" : known->default_value,
        .effect = known == NULL ? "not known to Tarn" : known->effect,
        .stored = true,
    };
}

struct tarn_status *tarn_service_list_options(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table_ref ref,
                                              struct tarn_option_facts **out, size_t *count)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(tarn_table_look(op, table, &view));
    size_t stored = view->schema.option_count, n = 0;
    struct tarn_option_facts *list =
        tarn_arena_calloc(op->arena, stored + TARN_COUNT_OF(known_options), sizeof *list);
    for (size_t i = 0; i < stored; i++)
        list[n++] = stored_option(op, &view->schema.options[i]);
    for (size_t i = 0; i < TARN_COUNT_OF(known_options); i++) {
        const struct known_option *known = &known_options[i];
        if (is_pattern(known->key) || tarn_schema_option(&view->schema, known->key).data != NULL)
            continue;
        list[n++] = (struct tarn_option_facts){known->key, known->default_value,
                                               known->default_value, known->effect, false};
    }
    *out = list;
    *count = n;
    return TARN_OK;
}
