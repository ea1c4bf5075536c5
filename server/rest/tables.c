#include "rest/internal.h"

/* /tables and /databases/{database}/tables */

static struct tarn_json *place_of(const struct tarn_table_facts *facts)
{
    struct tarn_json *json = tarn_json_object();
    tarn_json_set_str(json, "id", facts->main_uuid);
    tarn_json_set(json, "database", tarn_json_string(facts->database));
    tarn_json_set(json, "name", tarn_json_string(facts->name));
    tarn_json_set_str(json, "path", facts->uri);
    tarn_json_set_bool(json, "isExternal", facts->is_external);
    tarn_json_set_int(json, "schemaId", facts->schema.id);
    return json;
}

static void set_audit(struct tarn_json *json, const struct tarn_table_facts *facts)
{
    tarn_rest__set_audit(json, tarn_slice_str("tarn"), facts->created_ms, facts->updated_ms);
}

static struct tarn_json *from_facts(const struct tarn_table_facts *facts)
{
    struct tarn_json *json = place_of(facts);
    tarn_json_set(json, "schema", tarn_rest__from_schema(&facts->schema));
    set_audit(json, facts);
    return json;
}

static void print_schema(const struct tarn_schema *schema, struct tarn_buf *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_rest__from_schema(schema);
    tarn_json_print(json, 0, out);
}

/* The same bytes as from_facts gives, without printing the schema, which is nearly all of them, at each call. */
static void answer_table(struct tarn_rest__call *call, const struct tarn_table_facts *facts)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *place = place_of(facts), *audit = tarn_json_object();
    struct tarn_buf *out = &call->response->body;
    tarn_json_print(place, 0, out);
    out->size--; /* its } */
    tarn_buf_add_str(out, ",\"schema\":");
    if (facts->view != NULL)
        tarn_buf_add_slice(out, tarn_table_view_print(facts->view, print_schema));
    else
        print_schema(&facts->schema, out);
    set_audit(audit, facts);
    size_t at = out->size;
    tarn_json_print(audit, 0, out);
    out->data[at] = ','; /* was its { */
}

/* --- looking --- */

static struct tarn_status *get_table(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_table_facts facts;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_service_get_table(call->op, call->service, ref, &facts));
    answer_table(call, &facts);
    return TARN_OK;
}

static struct tarn_status *get_table_by_id(struct tarn_rest__call *call)
{
    struct tarn_slice id = tarn_http_argument(call->request, "id");
    struct tarn_table_ref ref = {.uuid = id};
    struct tarn_table_facts facts;
    struct tarn_status *s =
        tarn_uuid_valid(id)
            ? tarn_service_get_table(call->op, call->service, ref, &facts)
            : tarn_status_new(TARN_TABLE_NOT_FOUND, "%.*s is no table's id", TARN_SLICE_ARG(id));
    TARN_TRY(tarn_rest__about(s, "TABLE", id));
    answer_table(call, &facts);
    return TARN_OK;
}

static struct tarn_status *make_query(const struct tarn_rest__call *call,
                                      struct tarn_table_query *out)
{
    *out = (struct tarn_table_query){
        .database = tarn_http_argument(call->request, "database"),
        .type = tarn_http_query(call->request, "tableType"),
    };
    return tarn_rest__page(call, "tableNamePattern", "TABLE", &out->page);
}

static struct tarn_status *list_tables(struct tarn_rest__call *call)
{
    struct tarn_table_query query;
    struct tarn_table_info *list;
    size_t count;
    const char *next;
    TARN_TRY(make_query(call, &query));
    TARN_TRY(tarn_service_find_tables(call->op, call->service, &query, &list, &count, &next));
    struct tarn_json *names = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        tarn_json_add(names, tarn_json_string(list[i].name));
    tarn_rest__answer_list(call, "tables", names, next);
    return TARN_OK;
}

static struct tarn_status *list_details(struct tarn_rest__call *call)
{
    struct tarn_table_query query;
    struct tarn_table_facts *list;
    size_t count;
    const char *next;
    TARN_TRY(make_query(call, &query));
    TARN_TRY(tarn_service_list_tables(call->op, call->service, &query, true, &list, &count, &next));
    struct tarn_json *details = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        if (list[i].view != NULL || list[i].is_entry) /* it can be read */
            tarn_json_add(details, from_facts(&list[i]));
    tarn_rest__answer_list(call, "tableDetails", details, next);
    return TARN_OK;
}

static struct tarn_status *list_all_tables(struct tarn_rest__call *call)
{
    struct tarn_table_query query = {.database_pattern =
                                         tarn_http_query(call->request, "databaseNamePattern")};
    struct tarn_table_info *list;
    size_t count;
    const char *next;
    TARN_TRY(tarn_rest__page(call, "tableNamePattern", "TABLE", &query.page));
    TARN_TRY(tarn_service_find_tables(call->op, call->service, &query, &list, &count, &next));
    tarn_rest__answer_list(call, "tables", tarn_rest__from_infos(list, count), next);
    return TARN_OK;
}

/* --- changing --- */

static struct tarn_status *create_table(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_table_facts facts;
    struct tarn_table_request request = {0};
    const struct tarn_json *schema;
    TARN_TRY(tarn_rest__identifier(call->body, "identifier", &ref));
    TARN_TRY(tarn_rest__object(call->body, "schema", &schema));
    if (schema == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"schema\" is missing");
    request.database = tarn_http_argument(call->request, "database");
    request.name = ref.table;
    struct tarn_status *s = tarn_rest__to_schema(call->op, schema, &request);
    if (s == TARN_OK)
        s = tarn_service_create_table(call->op, call->service, &request, &facts);
    switch (tarn_status_reason(s)) {
    case TARN_DATABASE_NOT_FOUND:
        return s;
    case TARN_VIEW_EXISTS:
        return tarn_rest__about(s, "VIEW", ref.table);
    default:
        return tarn_rest__about(s, "TABLE", ref.table);
    }
}

static struct tarn_status *register_table(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_slice path;
    struct tarn_table_facts facts;
    TARN_TRY(tarn_rest__identifier(call->body, "identifier", &ref));
    TARN_TRY(tarn_rest__need_text(call->body, "path", &path));
    struct tarn_status *s = tarn_service_register_table(
        call->op, call->service, tarn_http_argument(call->request, "database"), ref.table, path,
        &facts);
    return tarn_status_reason(s) == TARN_TABLE_EXISTS ? tarn_rest__about(s, "TABLE", ref.table) : s;
}

static struct tarn_status *replace_table(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_table_facts facts;
    struct tarn_table_request request = {0};
    const struct tarn_json *schema;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__object(call->body, "schema", &schema));
    if (schema == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"schema\" is missing");
    TARN_TRY(tarn_rest__to_schema(call->op, schema, &request));
    return tarn_service_replace_table(call->op, call->service, ref, &request, &facts);
}

static struct tarn_status *alter_table(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_table_facts facts;
    struct tarn_schema_change *changes;
    size_t count;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__to_changes(call->op, call->body, &changes, &count));
    return tarn_service_alter_table(call->op, call->service, ref, changes, count, &facts);
}

static struct tarn_status *rename_table(struct tarn_rest__call *call)
{
    struct tarn_table_ref from, to;
    struct tarn_table_facts facts;
    TARN_TRY(tarn_rest__identifier(call->body, "source", &from));
    TARN_TRY(tarn_rest__identifier(call->body, "destination", &to));
    struct tarn_status *s =
        tarn_service_rename_table(call->op, call->service, from, to.database, to.table, &facts);
    switch (tarn_status_reason(s)) {
    case TARN_DATABASE_NOT_FOUND:
        return tarn_rest__about(s, "DATABASE", to.database);
    case TARN_TABLE_NOT_FOUND:
        return tarn_rest__about(s, "TABLE", from.table);
    case TARN_VIEW_EXISTS:
        return tarn_rest__about(s, "VIEW", to.table);
    default:
        return tarn_rest__about(s, "TABLE", to.table);
    }
}

static struct tarn_status *drop_table(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    TARN_TRY(tarn_rest__ref(call, &ref));
    return tarn_service_drop_table(call->op, call->service, ref, false);
}

/* Rules for rows and masks of columns: there are none yet, so who may read may read all of it. */
static struct tarn_status *authorize_query(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_table_facts facts;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_service_get_table(call->op, call->service, ref, &facts));
    tarn_buf_add_str(&call->response->body, "{}");
    return TARN_OK;
}

#define TOKEN_DAY_MS INT64_C(86400000)

/*
 * Credentials for a table's files: none are given away, and clients are told so (data-token.enabled). Who asks all the same gets a token that
 * adds nothing, and goes on with the credentials of its own. Clients make a file system for each token that they meet, and ask
 * again an hour before one ends: so it is the same for a day, and holds for one more.
 */
static struct tarn_status *get_token(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_table_facts facts;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_service_get_table(call->op, call->service, ref, &facts));
    tarn_buf_printf(&call->response->body, "{\"token\":{},\"expiresAtMillis\":%" PRId64 "}",
                    (tarn_clock_wall_ms() / TOKEN_DAY_MS + 2) * TOKEN_DAY_MS);
    return TARN_OK;
}

#define DATABASE "/databases/{database}"
#define TABLE DATABASE "/tables/{table}"
const struct tarn_rest__endpoint tarn_rest__table_endpoints[] = {
    {"GET", DATABASE "/tables", list_tables},
    {"GET", DATABASE "/table-details", list_details},
    {"GET", "/tables", list_all_tables},
    {"GET", "/tables/id/{id}", get_table_by_id},
    {"POST", DATABASE "/tables", create_table},
    {"GET", TABLE, get_table},
    {"POST", TABLE, alter_table},
    {"DELETE", TABLE, drop_table},
    {"POST", TABLE "/replace", replace_table},
    {"POST", DATABASE "/register", register_table},
    {"POST", "/tables/rename", rename_table},
    {"POST", TABLE "/auth", authorize_query},
    {"GET", TABLE "/token", get_token},
    TARN_REST_END,
};
