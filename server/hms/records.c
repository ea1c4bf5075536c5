#include "hms/internal.h"

/* Structs of hive_metastore.thrift, as far as they are used. */

#define RETENTION INT32_MAX /* as Paimon's catalog has it */
#define ENUM_USER 1         /* PrincipalType.USER */

/* --- writing --- */

/* FieldSchema: 1 name, 2 type, 3 comment */
static void put_columns(struct tarn_buf *out, int16_t id, const struct tarn_hms__column *columns,
                        size_t count)
{
    tarn_hms__put_list(out, id, HMS_STRUCT, count);
    for (size_t i = 0; i < count; i++) {
        tarn_hms__put_text(out, 1, columns[i].name);
        tarn_hms__put_text(out, 2, columns[i].type);
        tarn_hms__put_text(out, 3, columns[i].comment);
        tarn_hms__put_stop(out);
    }
}

/* StorageDescriptor: 1 cols, 2 location, 3 inputFormat, 4 outputFormat, 5 compressed, 6 numBuckets, 7 serdeInfo
 * (2 serializationLib, 3 parameters), 8 bucketCols, 9 sortCols, 10 parameters */
static void put_storage(struct tarn_buf *out, int16_t id, const struct tarn_hms__table *table,
                        struct tarn_slice location)
{
    tarn_hms__put_field(out, HMS_STRUCT, id);
    put_columns(out, 1, table->columns, table->column_count);
    tarn_hms__put_text(out, 2, location);
    tarn_hms__put_text(out, 3, table->input_format);
    tarn_hms__put_text(out, 4, table->output_format);
    tarn_hms__put_bool(out, 5, false);
    tarn_hms__put_i32(out, 6, 0);
    tarn_hms__put_field(out, HMS_STRUCT, 7);
    tarn_hms__put_text(out, 2, table->serde);
    tarn_hms__put_pairs(out, 3, NULL, 0);
    tarn_hms__put_stop(out);
    tarn_hms__put_texts(out, 8, NULL, 0);
    tarn_hms__put_list(out, 9, HMS_STRUCT, 0);
    tarn_hms__put_pairs(out, 10, NULL, 0);
    tarn_hms__put_stop(out);
}

/* Table: 1 tableName, 2 dbName, 3 owner, 4 createTime, 5 lastAccessTime, 6 retention, 7 sd, 8 partitionKeys, 9 parameters,
 * 12 tableType */
void tarn_hms__put_table(struct tarn_buf *out, const struct tarn_hms__table *table, int32_t now_s)
{
    tarn_hms__put_text(out, 1, table->name);
    tarn_hms__put_text(out, 2, table->database);
    tarn_hms__put_text(out, 3, table->owner);
    tarn_hms__put_i32(out, 4, now_s);
    tarn_hms__put_i32(out, 5, now_s);
    tarn_hms__put_i32(out, 6, RETENTION);
    put_storage(out, 7, table, table->location);
    put_columns(out, 8, table->keys, table->key_count);
    tarn_hms__put_pairs(out, 9, table->parameters, table->parameter_count);
    tarn_hms__put_text(out, 12, table->kind);
    tarn_hms__put_stop(out);
}

/* Database: 1 name, 2 description, 3 locationUri, 4 parameters, 6 ownerName, 7 ownerType */
void tarn_hms__put_database(struct tarn_buf *out, const struct tarn_hms__database *database)
{
    tarn_hms__put_text(out, 1, database->name);
    tarn_hms__put_text(out, 2, database->comment);
    tarn_hms__put_text(out, 3, database->location);
    tarn_hms__put_pairs(out, 4, database->parameters, database->parameter_count);
    tarn_hms__put_text(out, 6, database->owner);
    if (database->owner.data != NULL)
        tarn_hms__put_i32(out, 7, ENUM_USER);
    tarn_hms__put_stop(out);
}

/* Partition: 1 values, 2 dbName, 3 tableName, 4 createTime, 5 lastAccessTime, 6 sd, 7 parameters */
void tarn_hms__put_partition(struct tarn_buf *out, const struct tarn_hms__table *table,
                             const struct tarn_hms__partition *partition, int32_t now_s)
{
    tarn_hms__put_texts(out, 1, partition->values, table->key_count);
    tarn_hms__put_text(out, 2, table->database);
    tarn_hms__put_text(out, 3, table->name);
    tarn_hms__put_i32(out, 4, now_s);
    tarn_hms__put_i32(out, 5, now_s);
    put_storage(out, 6, table, partition->location);
    tarn_hms__put_pairs(out, 7, NULL, 0);
    tarn_hms__put_stop(out);
}

/* --- reading: what isn't of the type it should be is passed over, and then differs from what is wanted --- */

static bool is(enum tarn_hms__type type, int16_t id, enum tarn_hms__type want_type, int16_t want_id)
{
    return type == want_type && id == want_id;
}

/* Where the field is that text; false: it is another one, and still there. */
static bool text_of(struct tarn_hms__reader *r, enum tarn_hms__type type, int16_t id, int16_t want,
                    struct tarn_slice *out)
{
    if (!is(type, id, HMS_STRING, want))
        return false;
    *out = tarn_hms__get_text(r);
    return true;
}

static void get_column(struct tarn_hms__reader *r, struct tarn_hms__column *out)
{
    enum tarn_hms__type type;
    int16_t id;
    while (tarn_hms__next_field(r, &type, &id))
        if (!text_of(r, type, id, 1, &out->name) && !text_of(r, type, id, 2, &out->type) &&
            !text_of(r, type, id, 3, &out->comment))
            tarn_hms__skip(r, type);
}

static void get_columns(struct tarn_hms__reader *r, struct tarn_hms__column **out, size_t *count)
{
    size_t said = tarn_hms__get_list(r, HMS_STRUCT), capacity = 0;
    void *list = NULL;
    struct tarn_hms__column *item;
    *count = 0;
    while ((item = tarn_hms__next_item(r, &list, said, count, &capacity, sizeof *item)) != NULL)
        get_column(r, item);
    *out = list;
}

static void get_serde(struct tarn_hms__reader *r, struct tarn_hms__table *out)
{
    enum tarn_hms__type type;
    int16_t id;
    while (tarn_hms__next_field(r, &type, &id))
        if (!text_of(r, type, id, 2, &out->serde))
            tarn_hms__skip(r, type);
}

static void get_storage(struct tarn_hms__reader *r, struct tarn_hms__table *out)
{
    enum tarn_hms__type type;
    int16_t id;
    while (tarn_hms__next_field(r, &type, &id))
        if (is(type, id, HMS_LIST, 1))
            get_columns(r, &out->columns, &out->column_count);
        else if (is(type, id, HMS_STRUCT, 7))
            get_serde(r, out);
        else if (!text_of(r, type, id, 2, &out->location) &&
                 !text_of(r, type, id, 3, &out->input_format) &&
                 !text_of(r, type, id, 4, &out->output_format))
            tarn_hms__skip(r, type);
}

void tarn_hms__get_table(struct tarn_hms__reader *r, struct tarn_hms__table *out)
{
    enum tarn_hms__type type;
    int16_t id;
    *out = (struct tarn_hms__table){0};
    while (tarn_hms__next_field(r, &type, &id))
        if (is(type, id, HMS_STRUCT, 7))
            get_storage(r, out);
        else if (is(type, id, HMS_LIST, 8))
            get_columns(r, &out->keys, &out->key_count);
        else if (is(type, id, HMS_MAP, 9))
            tarn_hms__get_pairs(r, &out->parameters, &out->parameter_count);
        else if (!text_of(r, type, id, 1, &out->name) && !text_of(r, type, id, 2, &out->database) &&
                 !text_of(r, type, id, 3, &out->owner) && !text_of(r, type, id, 12, &out->kind))
            tarn_hms__skip(r, type);
}

void tarn_hms__get_database(struct tarn_hms__reader *r, struct tarn_hms__database *out)
{
    enum tarn_hms__type type;
    int16_t id;
    *out = (struct tarn_hms__database){0};
    while (tarn_hms__next_field(r, &type, &id))
        if (is(type, id, HMS_MAP, 4))
            tarn_hms__get_pairs(r, &out->parameters, &out->parameter_count);
        else if (!text_of(r, type, id, 1, &out->name) && !text_of(r, type, id, 2, &out->comment) &&
                 !text_of(r, type, id, 3, &out->location) && !text_of(r, type, id, 6, &out->owner))
            tarn_hms__skip(r, type);
}

struct tarn_slice tarn_hms__parameter(const struct tarn_pair *parameters, size_t count,
                                      const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_is(parameters[i].key, key))
            return parameters[i].value;
    return tarn_slice_str(NULL);
}
