#include "service/internal.h"
#include "service/objects.h"

/* Lists of tables, views and functions: by name, page by page. */

/* --- patterns --- */

static struct tarn_status *bad_pattern(struct tarn_slice pattern)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT,
                           "pattern %.*s: Can only support prefix sql like pattern query now.",
                           TARN_SLICE_ARG(pattern));
}

struct tarn_status *tarn_service__pattern(struct tarn_op *op, struct tarn_slice pattern,
                                          struct tarn_pattern *out)
{
    uint8_t *text = tarn_arena_alloc(op->arena, pattern.size + 1);
    size_t size = 0, i = 0;
    for (; i < pattern.size && pattern.data[i] != '%'; i++) {
        if (pattern.data[i] == '\\' && i + 1 < pattern.size)
            i++;
        text[size++] = pattern.data[i];
    }
    bool is_whole = i == pattern.size && i > 0;
    for (; i < pattern.size; i++)
        if (pattern.data[i] != '%')
            return bad_pattern(pattern);
    *out = (struct tarn_pattern){tarn_slice_of(text, size), is_whole};
    return TARN_OK;
}

bool tarn_service__matches(const struct tarn_pattern *pattern, struct tarn_slice name)
{
    return pattern->is_whole ? tarn_slice_equal(name, pattern->text)
                             : tarn_slice_starts_with(name, pattern->text);
}

/* --- which --- */

/* A list in the making. */
struct finding {
    struct tarn_op *op;
    struct tarn_service *service;
    const struct tarn_table_query *query;
    const enum tarn_object_kind *kind; /* NULL: tables */
    struct tarn_pattern databases, names;
    struct named { /* on the heap */
        struct tarn_table_info info;
        struct tarn_slice token;
    } *list;
    size_t count, capacity;
};

static void finding_fini(struct finding *f)
{
    free(f->list);
}

static struct tarn_slice token_of(struct tarn_op *op, const struct tarn_table_query *query,
                                  const struct tarn_table_info *info)
{
    if (query->database.size > 0)
        return info->name;
    return tarn_slice_str(tarn_arena_printf(op->arena, "%.*s.%.*s", TARN_SLICE_ARG(info->database),
                                            TARN_SLICE_ARG(info->name)));
}

static struct tarn_status *find_in(struct finding *f, struct tarn_slice database)
{
    struct tarn_table_info *tables;
    size_t count;
    if (f->kind == NULL)
        TARN_TRY(
            tarn_catalog_tables_or_last(f->op, f->service->catalog, database, &tables, &count));
    else
        TARN_TRY(
            tarn_catalog_objects(f->op, f->service->catalog, *f->kind, database, &tables, &count));
    for (size_t i = 0; i < count; i++) {
        if (!tarn_service__matches(&f->names, tables[i].name))
            continue;
        struct tarn_slice token = token_of(f->op, f->query, &tables[i]);
        if (f->query->page.token.size > 0 && tarn_slice_compare(token, f->query->page.token) <= 0)
            continue;
        TARN_GROW(f->list, f->count, f->capacity);
        f->list[f->count++] = (struct named){tables[i], token};
    }
    return TARN_OK;
}

static struct tarn_status *find_in_all(struct finding *f)
{
    struct tarn_database_info *databases;
    size_t count;
    TARN_TRY(tarn_database_list_or_last(f->op, f->service->catalog, &databases, &count));
    for (size_t i = 0; i < count; i++) {
        if (!tarn_service__matches(&f->databases, databases[i].name))
            continue;
        struct tarn_status *s = find_in(f, databases[i].name);
        if (tarn_status_reason(s) != TARN_DATABASE_NOT_FOUND) /* dropped meanwhile */
            TARN_TRY(s);
        else
            tarn_status_free(s);
    }
    return TARN_OK;
}

static int by_token(const void *a, const void *b)
{
    return tarn_slice_compare(((const struct named *)a)->token, ((const struct named *)b)->token);
}

/* Option type, in the op's arena; absent: it says none. */
static struct tarn_status *type_of(struct finding *f, const struct tarn_table_info *info,
                                   struct tarn_slice *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_catalog_entry *entry;
    struct tarn_table_ref ref = {.database = info->database, .table = info->name};
    TARN_TRY(tarn_service__find(f->op, f->service, ref, TARN_ACTION_READ, &table, &entry));
    if (entry == NULL)
        TARN_TRY(tarn_table_look_or_last(f->op, table, &view));
    *out = tarn_schema_option(entry == NULL ? &view->schema : &entry->schema, "type");
    if (out->data != NULL)
        *out = tarn_arena_copy(f->op->arena, *out);
    return TARN_OK;
}

/* One that can't be read is of no type. */
static bool is_of_type(struct finding *f, const struct tarn_table_info *info)
{
    struct tarn_slice type;
    if (f->query->type.size == 0)
        return true;
    struct tarn_status *s = type_of(f, info, &type);
    if (s != TARN_OK) {
        tarn_status_free(s);
        return false;
    }
    return tarn_slice_equal(type.data == NULL ? tarn_slice_str("table") : type, f->query->type);
}

static struct tarn_status *find(struct tarn_op *op, struct tarn_service *service,
                                const struct tarn_table_query *query,
                                const enum tarn_object_kind *kind, struct tarn_table_info **out,
                                size_t *count, const char **next_token)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_READ, query->database));
    TARN_OWN(finding_fini)
    struct finding f = {.op = op, .service = service, .query = query, .kind = kind};
    TARN_TRY(tarn_service__pattern(op, query->page.pattern, &f.names));
    TARN_TRY(tarn_service__pattern(op, query->database_pattern, &f.databases));
    TARN_TRY(query->database.size > 0 ? find_in(&f, query->database) : find_in_all(&f));
    if (f.count > 1)
        qsort(f.list, f.count, sizeof *f.list, by_token);
    size_t max = tarn_service__page_size(query->page), n = 0;
    struct tarn_table_info *list = tarn_arena_calloc(op->arena, max + 1, sizeof *list);
    *next_token = "";
    struct tarn_slice last = {0};
    for (size_t i = 0; i < f.count; i++) {
        if (!is_of_type(&f, &f.list[i].info))
            continue;
        if (n == max) {
            *next_token = tarn_arena_str(op->arena, last);
            break;
        }
        last = f.list[i].token;
        list[n++] = f.list[i].info;
    }
    *out = list;
    *count = n;
    return TARN_OK;
}

struct tarn_status *tarn_service_find_tables(struct tarn_op *op, struct tarn_service *service,
                                             const struct tarn_table_query *query,
                                             struct tarn_table_info **out, size_t *count,
                                             const char **next_token)
{
    return find(op, service, query, NULL, out, count, next_token);
}

struct tarn_status *tarn_service_find_objects(struct tarn_op *op, struct tarn_service *service,
                                              enum tarn_object_kind kind,
                                              const struct tarn_table_query *query,
                                              struct tarn_table_info **out, size_t *count,
                                              const char **next_token)
{
    return find(op, service, query, &kind, out, count, next_token);
}

/* --- what they are --- */

/* *is false: it was dropped meanwhile, or can't be read, which hides no other. */
static struct tarn_status *read_object(struct tarn_op *op, struct tarn_service *service,
                                       struct tarn_object_ref ref, struct tarn_catalog_object *out,
                                       bool *is)
{
    struct tarn_status *s = tarn_catalog_object(op, service->catalog, ref, out);
    enum tarn_reason reason = tarn_status_reason(s);
    *is = s == TARN_OK;
    if (reason == TARN_OBJECT_DAMAGED) {
        tarn_log_status(op, TARN_WARN, "catalog.object_unreadable", s);
        return TARN_OK;
    }
    if (reason != TARN_VIEW_NOT_FOUND && reason != TARN_FUNCTION_NOT_FOUND &&
        reason != TARN_DATABASE_NOT_FOUND)
        return s;
    tarn_status_free(s);
    return TARN_OK;
}

struct tarn_status *tarn_service_list_objects(struct tarn_op *op, struct tarn_service *service,
                                              enum tarn_object_kind kind,
                                              const struct tarn_table_query *query,
                                              struct tarn_catalog_object **out, size_t *count,
                                              const char **next_token)
{
    struct tarn_table_info *named;
    size_t named_count, bytes = 0;
    TARN_TRY(tarn_service_find_objects(op, service, kind, query, &named, &named_count, next_token));
    struct tarn_catalog_object *list = tarn_arena_calloc(op->arena, named_count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; i < named_count; i++) {
        if (bytes >= TARN_OBJECT_PAGE_BYTES) {
            *next_token = tarn_arena_str(op->arena, token_of(op, query, &named[i - 1]));
            break;
        }
        struct tarn_object_ref ref = {kind, named[i].database, named[i].name};
        bool is;
        TARN_TRY(read_object(op, service, ref, &list[*count], &is));
        if (is)
            bytes += list[(*count)++].body.size;
    }
    *out = list;
    return TARN_OK;
}

/* One line of a list: a table that can't be read is listed with the reason, and hides no other. */
static void list_one(struct tarn_op *op, struct tarn_service *service,
                     const struct tarn_table_info *info, bool with_schema,
                     struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_catalog_entry *entry;
    struct tarn_table_ref ref = {.database = info->database, .table = info->name};
    struct tarn_status *s = tarn_service__find(op, service, ref, TARN_ACTION_READ, &table, &entry);
    if (s == TARN_OK && entry != NULL)
        tarn_service__entry_facts(op, service, entry, out);
    else if (s == TARN_OK)
        s = tarn_service__facts(op, service, table, with_schema, out);
    if (s != TARN_OK) {
        *out = (struct tarn_table_facts){
            .database = info->database,
            .name = info->name,
            .uuid = tarn_arena_str(op->arena, tarn_slice_str(info->uuid)),
            .main_uuid = tarn_arena_str(op->arena, tarn_slice_str(info->uuid)),
            .uri = "",
            .refuse_write = tarn_arena_copy(op->arena, tarn_slice_str(tarn_status_message(s))),
        };
        tarn_status_free(s);
    }
}

struct tarn_status *tarn_service_list_tables(struct tarn_op *op, struct tarn_service *service,
                                             const struct tarn_table_query *query, bool with_schema,
                                             struct tarn_table_facts **out, size_t *count,
                                             const char **next_token)
{
    struct tarn_table_info *tables;
    TARN_TRY(tarn_service_find_tables(op, service, query, &tables, count, next_token));
    struct tarn_table_facts *list = tarn_arena_calloc(op->arena, *count + 1, sizeof *list);
    for (size_t i = 0; i < *count; i++)
        list_one(op, service, &tables[i], with_schema, &list[i]);
    *out = list;
    return TARN_OK;
}
