#include "hms/internal.h"

/*
 * The calls of service ThriftHiveMetastore that are used. A reply is a struct: field 0 is the result, the others are exceptions,
 * each a struct whose field 1 is its message.
 *
 * A call that failed on the way, or whose reply made no sense, closes the connection: nothing that still comes on it can be
 * taken for the answer to another.
 */

struct call {
    const char *name;
    int16_t no_such,
        exists; /* ids of NoSuchObjectException and AlreadyExistsException; 0: it has none */
    /* The result, in field 0; NULL: it has none, or it doesn't matter. */
    void (*get)(struct tarn_hms__reader *r, enum tarn_hms__type type, void *out);
};

struct answer {
    int16_t exception; /* id of the field; 0: none */
    struct tarn_slice message;
    bool has_result;
};

struct receiver {
    const struct tarn_op *op;
    struct tarn_hms__link *link;
    int64_t deadline_ms;
};

static struct tarn_status *fetch(void *self, uint8_t *into, size_t room, size_t *got)
{
    struct receiver *receiver = self;
    return tarn_hms__receive(receiver->op, receiver->link, receiver->deadline_ms, into, room, got);
}

static void get_exception(struct tarn_hms__reader *r, int16_t id, struct answer *out)
{
    enum tarn_hms__type type;
    int16_t field;
    out->exception = id;
    while (tarn_hms__next_field(r, &type, &field))
        if (field == 1 && type == HMS_STRING)
            out->message = tarn_hms__get_text(r);
        else
            tarn_hms__skip(r, type);
}

static void get_answer(struct tarn_hms__reader *r, const struct call *call, void *result,
                       struct answer *out)
{
    enum tarn_hms__type type;
    int16_t id;
    *out = (struct answer){.message = tarn_slice_str("")};
    while (tarn_hms__next_field(r, &type, &id)) {
        if (id == 0 && call->get != NULL) {
            call->get(r, type, result);
            out->has_result = true;
        } else if (id > 0 && type == HMS_STRUCT) {
            get_exception(r, id, out);
        } else {
            tarn_hms__skip(r, type);
        }
    }
    if (out->exception == 0 && !out->has_result && call->get != NULL)
        tarn_hms__spoil(r, "%s has no result", call->name);
}

static struct tarn_status *exchange(struct tarn_op *op, struct tarn_hms__client *client,
                                    const struct call *call, void *result, struct answer *out)
{
    struct receiver receiver = {op, client->link, tarn_clock_mono_ms() + client->timeout_ms};
    TARN_TRY(
        tarn_hms__send(op, client->link, receiver.deadline_ms, tarn_buf_slice(&client->request)));
    struct tarn_hms__reader *r = tarn_alloc(sizeof *r);
    tarn_hms__reader_init(r, op->arena);
    r->fetch = fetch;
    r->self = &receiver;
    tarn_hms__get_reply(r, call->name, client->sequence);
    if (r->status == TARN_OK)
        get_answer(r, call, result, out);
    struct tarn_status *s = tarn_move(r->status);
    tarn_hms__reader_fini(r);
    free(r);
    return s;
}

static void begin(struct tarn_hms__client *client, const struct call *call)
{
    tarn_buf_clear(&client->request);
    tarn_hms__put_call(&client->request, call->name, ++client->sequence);
}

/* Sends what was begun and filled. *missing: NoSuchObjectException, where the caller asks for it (else it is an error). */
static struct tarn_status *finish(struct tarn_op *op, struct tarn_hms__client *client,
                                  const struct call *call, void *result, bool *missing)
{
    struct answer answer = {0};
    if (missing != NULL)
        *missing = false;
    tarn_hms__put_stop(&client->request);
    if (client->link == NULL)
        return tarn_status_new(TARN_METASTORE_UNAVAILABLE, "not connected");
    struct tarn_status *s = exchange(op, client, call, result, &answer);
    if (s != TARN_OK) {
        if (tarn_status_reason(s) != TARN_METASTORE_REFUSED) {
            tarn_hms__close(client->link);
            client->link = NULL;
        }
        return tarn_status_wrap(s, "metastore, %s", call->name);
    }
    if (answer.exception == 0)
        return TARN_OK;
    if (missing != NULL && answer.exception == call->no_such) {
        *missing = true;
        return TARN_OK;
    }
    return tarn_status_new(TARN_METASTORE_REFUSED, "metastore, %s: %s%.*s", call->name,
                           answer.exception == call->exists ? "it exists already: " : "",
                           (int)TARN_MIN(answer.message.size, (size_t)500),
                           (const char *)answer.message.data);
}

/* --- results --- */

struct texts {
    struct tarn_slice *list;
    size_t count;
};
struct tables {
    struct tarn_hms__table *list;
    size_t count;
};

static void get_texts(struct tarn_hms__reader *r, enum tarn_hms__type type, void *out)
{
    struct texts *texts = out;
    if (type == HMS_LIST)
        tarn_hms__get_texts(r, &texts->list, &texts->count);
    else
        tarn_hms__spoil(r, "a result of type %d", (int)type);
}

static void get_database(struct tarn_hms__reader *r, enum tarn_hms__type type, void *out)
{
    if (type == HMS_STRUCT)
        tarn_hms__get_database(r, out);
    else
        tarn_hms__spoil(r, "a result of type %d", (int)type);
}

static void get_table_list(struct tarn_hms__reader *r, struct tables *out)
{
    size_t said = tarn_hms__get_list(r, HMS_STRUCT), capacity = 0;
    void *list = NULL;
    struct tarn_hms__table *item;
    out->count = 0;
    if (said > HMS_TABLES_AT_ONCE)
        tarn_hms__spoil(r, "%zu tables where at most %d were asked for", said, HMS_TABLES_AT_ONCE);
    while ((item = tarn_hms__next_item(r, &list, said, &out->count, &capacity, sizeof *item)) !=
           NULL)
        tarn_hms__get_table(r, item);
    out->list = list;
}

/* GetTablesResult: 1 tables */
static void get_tables(struct tarn_hms__reader *r, enum tarn_hms__type type, void *out)
{
    int16_t id;
    if (type != HMS_STRUCT) {
        tarn_hms__spoil(r, "a result of type %d", (int)type);
        return;
    }
    while (tarn_hms__next_field(r, &type, &id))
        if (id == 1 && type == HMS_LIST)
            get_table_list(r, out);
        else
            tarn_hms__skip(r, type);
}

/* --- the connection --- */

/* set_ugi(1 user, 2 groups): whom the metastore takes us for. One that doesn't know it, or doesn't want it, goes by the connection. */
static struct tarn_status *say_user(struct tarn_op *op, struct tarn_hms__client *client)
{
    static const struct call call = {.name = "set_ugi", .get = get_texts};
    struct texts texts = {0};
    struct tarn_slice group = tarn_slice_str(client->user);
    begin(client, &call);
    tarn_hms__put_text(&client->request, 1, group);
    tarn_hms__put_texts(&client->request, 2, &group, 1);
    struct tarn_status *s = finish(op, client, &call, &texts, NULL);
    if (tarn_status_reason(s) != TARN_METASTORE_REFUSED)
        return s;
    tarn_status_free(s);
    return TARN_OK;
}

struct tarn_status *tarn_hms__open(struct tarn_op *op, struct tarn_hms__client *client)
{
    struct tarn_status *s = TARN_OK;
    if (client->link != NULL)
        return TARN_OK;
    for (size_t i = 0; i < client->address_count && client->link == NULL; i++) {
        tarn_status_free(s);
        s = tarn_hms__connect(op, &client->addresses[i], client->connect_timeout_ms, &client->link);
        if (s == TARN_OK)
            s = say_user(op, client);
    }
    return s;
}

void tarn_hms__client_fini(struct tarn_hms__client *client)
{
    tarn_hms__close(client->link);
    tarn_hms__free_addresses(client->addresses, client->address_count);
    tarn_buf_drop(&client->request);
}

/* --- databases --- */

struct tarn_status *tarn_hms__list_databases(struct tarn_op *op, struct tarn_hms__client *client,
                                             struct tarn_slice **out, size_t *count)
{
    static const struct call call = {.name = "get_all_databases", .get = get_texts};
    struct texts texts = {0};
    begin(client, &call);
    TARN_TRY(finish(op, client, &call, &texts, NULL));
    *out = texts.list;
    *count = texts.count;
    return TARN_OK;
}

/* 1 name */
struct tarn_status *tarn_hms__find_database(struct tarn_op *op, struct tarn_hms__client *client,
                                            struct tarn_slice name, bool *found,
                                            struct tarn_hms__database *out)
{
    static const struct call call = {.name = "get_database", .no_such = 1, .get = get_database};
    bool missing;
    begin(client, &call);
    tarn_hms__put_text(&client->request, 1, name);
    TARN_TRY(finish(op, client, &call, out, &missing));
    *found = !missing;
    return TARN_OK;
}

/* 1 database */
struct tarn_status *tarn_hms__create_database(struct tarn_op *op, struct tarn_hms__client *client,
                                              const struct tarn_hms__database *database)
{
    static const struct call call = {.name = "create_database", .exists = 1};
    begin(client, &call);
    tarn_hms__put_field(&client->request, HMS_STRUCT, 1);
    tarn_hms__put_database(&client->request, database);
    return finish(op, client, &call, NULL, NULL);
}

/* 1 name, 2 database */
struct tarn_status *tarn_hms__alter_database(struct tarn_op *op, struct tarn_hms__client *client,
                                             const struct tarn_hms__database *database)
{
    static const struct call call = {.name = "alter_database", .no_such = 2};
    begin(client, &call);
    tarn_hms__put_text(&client->request, 1, database->name);
    tarn_hms__put_field(&client->request, HMS_STRUCT, 2);
    tarn_hms__put_database(&client->request, database);
    return finish(op, client, &call, NULL, NULL);
}

/* 1 name, 2 deleteData, 3 cascade */
struct tarn_status *tarn_hms__drop_database(struct tarn_op *op, struct tarn_hms__client *client,
                                            struct tarn_slice name)
{
    static const struct call call = {.name = "drop_database", .no_such = 1};
    bool missing;
    begin(client, &call);
    tarn_hms__put_text(&client->request, 1, name);
    tarn_hms__put_bool(&client->request, 2, false);
    tarn_hms__put_bool(&client->request, 3, false);
    return finish(op, client, &call, NULL, &missing);
}

/* --- tables --- */

/* 1 database */
struct tarn_status *tarn_hms__list_tables(struct tarn_op *op, struct tarn_hms__client *client,
                                          struct tarn_slice database, struct tarn_slice **out,
                                          size_t *count)
{
    static const struct call call = {.name = "get_all_tables", .get = get_texts};
    struct texts texts = {0};
    begin(client, &call);
    tarn_hms__put_text(&client->request, 1, database);
    TARN_TRY(finish(op, client, &call, &texts, NULL));
    *out = texts.list;
    *count = texts.count;
    return TARN_OK;
}

/* 1 GetTablesRequest: 1 dbName, 2 tblNames, 3 capabilities (1 values: INSERT_ONLY_TABLES is 2; without it one such table
 * among them, another's, would fail the call) */
struct tarn_status *tarn_hms__find_tables(struct tarn_op *op, struct tarn_hms__client *client,
                                          struct tarn_slice database,
                                          const struct tarn_slice *names, size_t count,
                                          struct tarn_hms__table **out, size_t *found_count)
{
    static const struct call call = {.name = "get_table_objects_by_name_req", .get = get_tables};
    static const uint8_t insert_only[] = {0, 0, 0, 2};
    struct tables tables = {0};
    begin(client, &call);
    tarn_hms__put_field(&client->request, HMS_STRUCT, 1);
    tarn_hms__put_text(&client->request, 1, database);
    tarn_hms__put_texts(&client->request, 2, names, count);
    tarn_hms__put_field(&client->request, HMS_STRUCT, 3);
    tarn_hms__put_list(&client->request, 1, HMS_I32, 1);
    tarn_buf_add(&client->request, insert_only, sizeof insert_only);
    tarn_hms__put_stop(&client->request);
    tarn_hms__put_stop(&client->request);
    TARN_TRY(finish(op, client, &call, &tables, NULL));
    *out = tables.list;
    *found_count = tables.count;
    return TARN_OK;
}

/* EnvironmentContext: 1 properties. The metastore would list the table's folder and take what it finds for statistics. */
static void put_context(struct tarn_buf *out, int16_t id, bool cascade)
{
    const struct tarn_pair properties[] = {
        {tarn_slice_str("DO_NOT_UPDATE_STATS"), tarn_slice_str("true")},
        {tarn_slice_str("CASCADE"), tarn_slice_str("true")}, /* columns of partitions, too */
    };
    tarn_hms__put_field(out, HMS_STRUCT, id);
    tarn_hms__put_pairs(out, 1, properties, cascade ? 2 : 1);
    tarn_hms__put_stop(out);
}

static int32_t now_s(void)
{
    return (int32_t)(tarn_clock_wall_ms() / 1000);
}

/* 1 table, 2 context */
struct tarn_status *tarn_hms__create_table(struct tarn_op *op, struct tarn_hms__client *client,
                                           const struct tarn_hms__table *table)
{
    static const struct call call = {.name = "create_table_with_environment_context", .exists = 1};
    begin(client, &call);
    tarn_hms__put_field(&client->request, HMS_STRUCT, 1);
    tarn_hms__put_table(&client->request, table, now_s());
    put_context(&client->request, 2, false);
    return finish(op, client, &call, NULL, NULL);
}

/* 1 database, 2 name, 3 table, 4 context */
struct tarn_status *tarn_hms__alter_table(struct tarn_op *op, struct tarn_hms__client *client,
                                          const struct tarn_hms__table *table)
{
    static const struct call call = {.name = "alter_table_with_environment_context"};
    begin(client, &call);
    tarn_hms__put_text(&client->request, 1, table->database);
    tarn_hms__put_text(&client->request, 2, table->name);
    tarn_hms__put_field(&client->request, HMS_STRUCT, 3);
    tarn_hms__put_table(&client->request, table, now_s());
    put_context(&client->request, 4, table->key_count > 0);
    return finish(op, client, &call, NULL, NULL);
}

/* 1 database, 2 name, 3 deleteData */
struct tarn_status *tarn_hms__drop_table(struct tarn_op *op, struct tarn_hms__client *client,
                                         struct tarn_slice database, struct tarn_slice name)
{
    static const struct call call = {.name = "drop_table", .no_such = 1};
    bool missing;
    begin(client, &call);
    tarn_hms__put_text(&client->request, 1, database);
    tarn_hms__put_text(&client->request, 2, name);
    tarn_hms__put_bool(&client->request, 3, false);
    return finish(op, client, &call, NULL, &missing);
}

/* --- partitions --- */

/* 1 database, 2 table, 3 at most (-1: all) */
struct tarn_status *tarn_hms__list_partitions(struct tarn_op *op, struct tarn_hms__client *client,
                                              const struct tarn_hms__table *table,
                                              struct tarn_slice **names, size_t *count)
{
    static const struct call call = {.name = "get_partition_names", .no_such = 1, .get = get_texts};
    struct texts texts = {0};
    begin(client, &call);
    tarn_hms__put_text(&client->request, 1, table->database);
    tarn_hms__put_text(&client->request, 2, table->name);
    tarn_hms__put_i16(&client->request, 3, -1);
    TARN_TRY(finish(op, client, &call, &texts, NULL));
    *names = texts.list;
    *count = texts.count;
    return TARN_OK;
}

/* 1 AddPartitionsRequest: 1 dbName, 2 tblName, 3 parts, 4 ifNotExists, 5 needResult */
struct tarn_status *tarn_hms__add_partitions(struct tarn_op *op, struct tarn_hms__client *client,
                                             const struct tarn_hms__table *table,
                                             const struct tarn_hms__partition *partitions,
                                             size_t count)
{
    static const struct call call = {.name = "add_partitions_req", .exists = 2};
    begin(client, &call);
    tarn_hms__put_field(&client->request, HMS_STRUCT, 1);
    tarn_hms__put_text(&client->request, 1, table->database);
    tarn_hms__put_text(&client->request, 2, table->name);
    tarn_hms__put_list(&client->request, 3, HMS_STRUCT, count);
    for (size_t i = 0; i < count; i++)
        tarn_hms__put_partition(&client->request, table, &partitions[i], now_s());
    tarn_hms__put_bool(&client->request, 4, true);
    tarn_hms__put_bool(&client->request, 5, false);
    tarn_hms__put_stop(&client->request);
    return finish(op, client, &call, NULL, NULL);
}

/* 1 database, 2 table, 3 values, 4 deleteData */
struct tarn_status *tarn_hms__drop_partition(struct tarn_op *op, struct tarn_hms__client *client,
                                             const struct tarn_hms__table *table,
                                             const struct tarn_slice *values)
{
    static const struct call call = {.name = "drop_partition", .no_such = 1};
    bool missing;
    begin(client, &call);
    tarn_hms__put_text(&client->request, 1, table->database);
    tarn_hms__put_text(&client->request, 2, table->name);
    tarn_hms__put_texts(&client->request, 3, values, table->key_count);
    tarn_hms__put_bool(&client->request, 4, false);
    return finish(op, client, &call, NULL, &missing);
}
