#include "ask.h"
#include "print.h"

#include "tarn/v1/catalog.pb-c.h"

/* Views and functions. Their bodies are shown as they were made. */

const struct tarn_cli_option tarn_cli_object_create_options[] = {
    {"file", 0, "FILE", "a JSON object", false},
    {"if-not-exists", 0, NULL, "fine where it is already there", false},
    {0},
};
const struct tarn_cli_option tarn_cli_object_drop_options[] = {
    {"if-exists", 0, NULL, "fine where it is not there", false},
    {0},
};
const struct tarn_cli_option tarn_cli_view_alter_options[] = {
    {"set", 0, "KEY=VALUE", "set an option", true},
    {"reset", 0, "KEY", "remove an option", true},
    {"comment", 0, "TEXT", "the comment of the view", false},
    {"add-dialect", 0, "NAME=QUERY", "the query as another engine words it", true},
    {"update-dialect", 0, "NAME=QUERY", "another query for a dialect", true},
    {"drop-dialect", 0, "NAME", "remove a dialect", true},
    {0},
};
const struct tarn_cli_option tarn_cli_function_alter_options[] = {
    {"set", 0, "KEY=VALUE", "set an option", true},
    {"reset", 0, "KEY", "remove an option", true},
    {"comment", 0, "TEXT", "the comment of the function", false},
    {"add-definition", 0, "NAME=JSON", "what it is for one more engine", true},
    {"update-definition", 0, "NAME=JSON", "another definition for an engine", true},
    {"drop-definition", 0, "NAME", "remove a definition", true},
    {0},
};

#define CHANGES 6
static const struct kind {
    Tarn__V1__ObjectKind kind;
    const char *word;
    const char *changes[CHANGES + 1]; /* options of alter, in the order of the message's members */
} view = {TARN__V1__OBJECT_KIND__VIEW,
          "view",
          {"set", "reset", "comment", "add-dialect", "update-dialect", "drop-dialect", NULL}},
  function = {
      TARN__V1__OBJECT_KIND__FUNCTION,
      "function",
      {"set", "reset", "comment", "add-definition", "update-definition", "drop-definition", NULL}};

static struct tarn_status *make_ref(struct tarn_cli *cli, const struct kind *kind,
                                    Tarn__V1__ObjectRef **out)
{
    Tarn__V1__TableRef *names = NULL;
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &names));
    *out = tarn_arena_alloc(cli->op.arena, sizeof **out);
    tarn__v1__object_ref__init(*out);
    (*out)->kind = kind->kind;
    (*out)->database = names->database;
    (*out)->name = names->table;
    return TARN_OK;
}

static struct tarn_status *show(struct tarn_cli *cli, const struct kind *kind,
                                const Tarn__V1__CatalogObject *object)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *body = NULL;
    TARN_TRY(tarn_json_parse(tarn_cli_slice(object->body_json), &body));
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *r = tarn_cli_record_new(cli);
    tarn_cli_record_slice(r, "database", "database", tarn_cli_slice(object->object->database));
    tarn_cli_record_slice(r, "name", kind->word, tarn_cli_slice(object->object->name));
    tarn_cli_record_text(r, "uuid", "uuid", object->uuid);
    tarn_cli_record_int(r, "created", "created", TARN_CLI_TIME, object->created_ms);
    tarn_cli_record_int(r, "updated", "updated", TARN_CLI_TIME, object->updated_ms);
    tarn_cli_record_any(r, "body", "body", tarn_move(body), tarn_cli_slice(object->body_json));
    return tarn_cli_record_end(r);
}

/* What a mutation made: for people a line, for programs the object. */
static struct tarn_status *show_made(struct tarn_cli *cli, const struct kind *kind,
                                     const Tarn__V1__CatalogObject *object, const char *did)
{
    if (cli->format != TARN_CLI_TABLE)
        return show(cli, kind, object);
    tarn_cli_say(cli, "%s %s %.*s.%.*s", did, kind->word,
                 TARN_SLICE_ARG(tarn_cli_slice(object->object->database)),
                 TARN_SLICE_ARG(tarn_cli_slice(object->object->name)));
    return TARN_OK;
}

/* What is wrong within a file is told with its name. */
static struct tarn_status *name_file(struct tarn_status *s, const char *file)
{
    enum tarn_reason reason = tarn_status_reason(s);
    return s != TARN_OK && (reason == TARN_JSON_MALFORMED || reason == TARN_INVALID_ARGUMENT)
               ? tarn_status_wrap(s, "%s", file)
               : s;
}

static struct tarn_status *create(struct tarn_cli *cli, const struct kind *kind)
{
    Tarn__V1__CreateObjectRequest request = TARN__V1__CREATE_OBJECT_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__CatalogObject *answer = NULL;
    const char *file = tarn_cli_args_text(&cli->args, "file");

    if (file == NULL)
        return tarn_cli_usage(cli, "%s create needs --file", kind->word);
    TARN_TRY(make_ref(cli, kind, &request.object));
    TARN_TRY(tarn_cli_read_file(cli, file, &request.body_json));
    request.ignore_if_exists = tarn_cli_args_has(&cli->args, "if-not-exists");
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(name_file(tarn_cli_ask(cli, "CatalogService/CreateObject", &request.base,
                                    &tarn__v1__catalog_object__descriptor, &answer),
                       file));
    return show_made(cli, kind, answer, "created");
}

static const struct tarn_cli_column columns[] = {{"database", "DATABASE", TARN_CLI_TEXT},
                                                 {"name", "NAME", TARN_CLI_TEXT}};

static struct tarn_status *list(struct tarn_cli *cli, const struct kind *kind)
{
    Tarn__V1__ListObjectsRequest request = TARN__V1__LIST_OBJECTS_REQUEST__INIT;
    Tarn__V1__Page page = TARN__V1__PAGE__INIT;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    request.kind = kind->kind;
    if (cli->args.word_count > 0)
        request.database = tarn_cli_bytes_str(cli->args.words[0]);
    request.page = &page;
    do {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListObjectsResponse *answer = NULL;
        TARN_TRY(tarn_cli_ask(cli, "CatalogService/ListObjects", &request.base,
                              &tarn__v1__list_objects_response__descriptor, &answer));
        if (list == NULL)
            list = tarn_cli_list_new(cli, columns, TARN_COUNT_OF(columns));
        for (size_t i = 0; i < answer->n_objects; i++) {
            tarn_cli_list_slice(list, tarn_cli_slice(answer->objects[i]->object->database));
            tarn_cli_list_slice(list, tarn_cli_slice(answer->objects[i]->object->name));
        }
        page.token = tarn_arena_str(cli->op.arena, tarn_slice_str(answer->next_page_token));
    } while (page.token[0] != '\0');
    return tarn_cli_list_end(list);
}

static struct tarn_status *get(struct tarn_cli *cli, const struct kind *kind)
{
    Tarn__V1__GetObjectRequest request = TARN__V1__GET_OBJECT_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__CatalogObject *answer = NULL;

    TARN_TRY(make_ref(cli, kind, &request.object));
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/GetObject", &request.base,
                          &tarn__v1__catalog_object__descriptor, &answer));
    return show(cli, kind, answer);
}

/* --- alter --- */

static struct tarn_status *take_pair(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                     Tarn__V1__Option **out)
{
    struct tarn_slice key, value;
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_pair(given->value, given->option->name, &key, &value)));
    *out = tarn_arena_alloc(cli->op.arena, sizeof **out);
    tarn__v1__option__init(*out);
    (*out)->key = tarn_cli_bytes(key);
    (*out)->value = tarn_cli_bytes(value);
    return TARN_OK;
}

static struct tarn_status *take_change(struct tarn_cli *cli, const struct kind *kind,
                                       const struct tarn_cli_given *given,
                                       Tarn__V1__ObjectChange *out)
{
    int which = 0;
    while (strcmp(given->option->name, kind->changes[which]) != 0)
        which++;
    out->change_case =
        (Tarn__V1__ObjectChange__ChangeCase)(which + TARN__V1__OBJECT_CHANGE__CHANGE_SET_OPTION);
    switch (out->change_case) {
    case TARN__V1__OBJECT_CHANGE__CHANGE_SET_OPTION:
        return take_pair(cli, given, &out->set_option);
    case TARN__V1__OBJECT_CHANGE__CHANGE_ADD_PART:
        return take_pair(cli, given, &out->add_part);
    case TARN__V1__OBJECT_CHANGE__CHANGE_UPDATE_PART:
        return take_pair(cli, given, &out->update_part);
    case TARN__V1__OBJECT_CHANGE__CHANGE_REMOVE_OPTION:
        out->remove_option = tarn_cli_bytes_str(given->value);
        return TARN_OK;
    case TARN__V1__OBJECT_CHANGE__CHANGE_SET_COMMENT:
        out->set_comment = tarn_cli_bytes_str(given->value);
        return TARN_OK;
    default:
        out->drop_part = tarn_cli_bytes_str(given->value);
        return TARN_OK;
    }
}

static struct tarn_status *alter(struct tarn_cli *cli, const struct kind *kind)
{
    Tarn__V1__AlterObjectRequest request = TARN__V1__ALTER_OBJECT_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__CatalogObject *answer = NULL;
    const struct tarn_cli_given *given;
    size_t cursor = 0;

    TARN_TRY(make_ref(cli, kind, &request.object));
    request.changes =
        tarn_arena_calloc(cli->op.arena, cli->args.given_count + 1, sizeof *request.changes);
    while ((given = tarn_cli_args_next_of(&cli->args, kind->changes, &cursor)) != NULL) {
        Tarn__V1__ObjectChange *change = tarn_arena_alloc(cli->op.arena, sizeof *change);
        tarn__v1__object_change__init(change);
        TARN_TRY(take_change(cli, kind, given, change));
        request.changes[request.n_changes++] = change;
    }
    if (request.n_changes == 0)
        return tarn_cli_usage(cli, "%s alter: nothing to change", kind->word);
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/AlterObject", &request.base,
                          &tarn__v1__catalog_object__descriptor, &answer));
    return show_made(cli, kind, answer, "altered");
}

/* --- rename, drop --- */

static struct tarn_status *move(struct tarn_cli *cli, const struct kind *kind)
{
    Tarn__V1__RenameObjectRequest request = TARN__V1__RENAME_OBJECT_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__CatalogObject *answer = NULL;
    const char *to = cli->args.words[1];
    Tarn__V1__TableRef *target = NULL;

    TARN_TRY(make_ref(cli, kind, &request.object));
    request.to_name = tarn_cli_bytes_str(to);
    if (strchr(to, '.') != NULL) {
        TARN_TRY(tarn_cli_table_ref(cli, to, &target));
        request.to_database = target->database;
        request.to_name = target->table;
    }
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/RenameObject", &request.base,
                          &tarn__v1__catalog_object__descriptor, &answer));
    return show_made(cli, kind, answer, "renamed: it is now");
}

static struct tarn_status *drop(struct tarn_cli *cli, const struct kind *kind)
{
    Tarn__V1__DropObjectRequest request = TARN__V1__DROP_OBJECT_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__DropObjectResponse *answer = NULL;

    TARN_TRY(make_ref(cli, kind, &request.object));
    request.ignore_if_missing = tarn_cli_args_has(&cli->args, "if-exists");
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/DropObject", &request.base,
                          &tarn__v1__drop_object_response__descriptor, &answer));
    return tarn_cli_dropped(cli, kind->word, cli->args.words[0]);
}

/* --- the commands --- */

struct tarn_status *tarn_cli_view_create(struct tarn_cli *cli)
{
    return create(cli, &view);
}

struct tarn_status *tarn_cli_view_list(struct tarn_cli *cli)
{
    return list(cli, &view);
}

struct tarn_status *tarn_cli_view_show(struct tarn_cli *cli)
{
    return get(cli, &view);
}

struct tarn_status *tarn_cli_view_alter(struct tarn_cli *cli)
{
    return alter(cli, &view);
}

struct tarn_status *tarn_cli_view_rename(struct tarn_cli *cli)
{
    return move(cli, &view);
}

struct tarn_status *tarn_cli_view_drop(struct tarn_cli *cli)
{
    return drop(cli, &view);
}

struct tarn_status *tarn_cli_function_create(struct tarn_cli *cli)
{
    return create(cli, &function);
}

struct tarn_status *tarn_cli_function_list(struct tarn_cli *cli)
{
    return list(cli, &function);
}

struct tarn_status *tarn_cli_function_show(struct tarn_cli *cli)
{
    return get(cli, &function);
}

struct tarn_status *tarn_cli_function_alter(struct tarn_cli *cli)
{
    return alter(cli, &function);
}

struct tarn_status *tarn_cli_function_rename(struct tarn_cli *cli)
{
    return move(cli, &function);
}

struct tarn_status *tarn_cli_function_drop(struct tarn_cli *cli)
{
    return drop(cli, &function);
}
