#include "service/internal.h"

struct tarn_status *tarn_service_create_database(struct tarn_op *op, struct tarn_service *service,
                                                 const struct tarn_database_info *info,
                                                 bool ignore_if_exists,
                                                 struct tarn_database_info *out)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_CREATE, info->name));
    for (size_t i = 0; i < info->option_count; i++) {
        TARN_TRY(tarn_service__check_name("option key", info->options[i].key));
        TARN_TRY(tarn_service__check_name("option value", info->options[i].value));
    }
    TARN_TRY(tarn_service__check_name("comment", info->comment));
    TARN_TRY(tarn_database_create(op, service->catalog, info, ignore_if_exists));
    return tarn_database_get(op, service->catalog, info->name, out);
}

struct tarn_status *tarn_service_get_database(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_slice name,
                                              struct tarn_database_info *out)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_READ, name));
    return tarn_database_get(op, service->catalog, name, out);
}

/* Where the store is away: the name, and how many tables were there. */
static struct tarn_status *list_one(struct tarn_op *op, struct tarn_service *service,
                                    struct tarn_slice name, struct tarn_database_info *out)
{
    struct tarn_table_info *tables;
    size_t count;
    struct tarn_status *s =
        op->stale_ms > 0 ? TARN_OK : tarn_database_get(op, service->catalog, name, out);
    if (op->stale_ms == 0 && !tarn_store_is_away(s))
        return s;
    tarn_status_free(s);
    TARN_TRY(tarn_catalog_tables_or_last(op, service->catalog, name, &tables, &count));
    *out = (struct tarn_database_info){.name = name, .table_count = (int64_t)count};
    return TARN_OK;
}

struct tarn_status *tarn_service_list_databases(struct tarn_op *op, struct tarn_service *service,
                                                struct tarn_page page, bool names_only,
                                                struct tarn_database_info **out, size_t *count,
                                                const char **next_token)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_READ, tarn_slice_str(NULL)));
    struct tarn_pattern pattern;
    TARN_TRY(tarn_service__pattern(op, page.pattern, &pattern));
    struct tarn_database_info *all;
    size_t all_count, max = tarn_service__page_size(page), n = 0;
    TARN_TRY(tarn_database_list_or_last(op, service->catalog, &all, &all_count));
    struct tarn_database_info *list = tarn_arena_calloc(op->arena, max + 1, sizeof *list);
    *next_token = "";
    for (size_t i = 0; i < all_count; i++) {
        if (tarn_slice_compare(all[i].name, page.token) <= 0 && page.token.size > 0)
            continue;
        if (!tarn_service__matches(&pattern, all[i].name))
            continue;
        if (n == max) {
            *next_token = tarn_arena_str(op->arena, list[n - 1].name);
            break;
        }
        list[n] = all[i];
        struct tarn_status *s = names_only ? TARN_OK : list_one(op, service, all[i].name, &list[n]);
        if (tarn_status_reason(s) == TARN_DATABASE_NOT_FOUND) { /* dropped meanwhile */
            tarn_status_free(s);
            continue;
        }
        TARN_TRY(s);
        n++;
    }
    *out = list;
    *count = n;
    return TARN_OK;
}

struct tarn_status *tarn_service_alter_database(struct tarn_op *op, struct tarn_service *service,
                                                struct tarn_slice name, const struct tarn_pair *set,
                                                size_t set_count, const struct tarn_slice *remove,
                                                size_t remove_count, struct tarn_database_info *out)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_ALTER, name));
    for (size_t i = 0; i < set_count; i++) {
        if (set[i].key.size == 0)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "an option to set has no key");
        TARN_TRY(tarn_service__check_name("option key", set[i].key));
        TARN_TRY(tarn_service__check_name("option value", set[i].value));
    }
    TARN_TRY(tarn_database_alter(op, service->catalog, name, set, set_count, remove, remove_count));
    return tarn_database_get(op, service->catalog, name, out);
}

struct tarn_status *tarn_service_drop_database(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_slice name, bool cascade,
                                               bool ignore_if_missing, int64_t *tables_dropped)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_DROP, name));
    *tables_dropped = 0;
    struct tarn_status *s = tarn_database_drop(op, service->catalog, name, cascade, tables_dropped);
    if (ignore_if_missing && tarn_status_reason(s) == TARN_DATABASE_NOT_FOUND) {
        tarn_status_free(s);
        return TARN_OK;
    }
    return s;
}
