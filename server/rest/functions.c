#include "rest/internal.h"

/* /functions and /databases/{database}/functions */

/* {"uuid", "name", and the body's members} */
static struct tarn_json *print_function(const struct tarn_catalog_object *function,
                                        struct tarn_json *body)
{
    tarn_rest__need_map(body, "definitions");
    tarn_json_set_str(body, "uuid", function->uuid);
    return body;
}

static const struct tarn_rest__kind functions = {
    .kind = TARN_OBJECT_FUNCTION,
    .type = "FUNCTION",
    .argument = "function",
    .names = "functions",
    .details = "functionDetails",
    .pattern = "functionNamePattern",
    .print = print_function,
};

static struct tarn_status *list_functions(struct tarn_rest__call *call)
{
    return tarn_rest__list_objects(call, &functions);
}

static struct tarn_status *list_details(struct tarn_rest__call *call)
{
    return tarn_rest__list_object_details(call, &functions);
}

static struct tarn_status *list_all_functions(struct tarn_rest__call *call)
{
    return tarn_rest__list_all_objects(call, &functions);
}

static struct tarn_status *create_function(struct tarn_rest__call *call)
{
    struct tarn_slice name;
    TARN_TRY(tarn_rest__need_text(call->body, "name", &name));
    name = tarn_arena_copy(call->op->arena, name);
    tarn_json_remove(call->body, "name");
    return tarn_rest__create_object(call, &functions, name, call->body);
}

static struct tarn_status *get_function(struct tarn_rest__call *call)
{
    return tarn_rest__get_object(call, &functions);
}

static struct tarn_status *alter_function(struct tarn_rest__call *call)
{
    return tarn_rest__alter_object(call, &functions);
}

static struct tarn_status *drop_function(struct tarn_rest__call *call)
{
    return tarn_rest__drop_object(call, &functions);
}

#define DATABASE "/databases/{database}"
#define FUNCTION DATABASE "/functions/{function}"
const struct tarn_rest__endpoint tarn_rest__function_endpoints[] = {
    {"GET", DATABASE "/functions", list_functions},
    {"GET", DATABASE "/function-details", list_details},
    {"GET", "/functions", list_all_functions},
    {"POST", DATABASE "/functions", create_function},
    {"GET", FUNCTION, get_function},
    {"POST", FUNCTION, alter_function},
    {"DELETE", FUNCTION, drop_function},
    TARN_REST_END,
};
