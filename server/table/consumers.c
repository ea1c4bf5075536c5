#include "table/watch.h"

#include "table/internal.h"

/* The files of consumers: Paimon's, read and written by every engine. */

#define FOLDER "consumer"
#define PREFIX "consumer-"

struct tarn_status *tarn_consumer_check_id(struct tarn_slice id)
{
    if (id.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the consumer has no id");
    if (id.size > TARN_CONSUMER_ID_SIZE_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the consumer's id has %zu bytes, at most %d",
                               id.size, TARN_CONSUMER_ID_SIZE_MAX);
    bool good = tarn_utf8_valid(id);
    for (size_t i = 0; i < id.size; i++)
        good = good && id.data[i] > 0x20 && id.data[i] != 0x7f && id.data[i] != '/';
    if (!good)
        return tarn_status_new(
            TARN_INVALID_ARGUMENT,
            "a consumer's id is text without blanks, slashes and control characters");
    return TARN_OK;
}

struct tarn_status *tarn_consumer_decode(struct tarn_slice text, int64_t *next_snapshot)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    if (text.size > TARN_CONSUMER_FILE_SIZE_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a consumer file of %zu bytes", text.size);
    TARN_TRY(tarn_json_parse(text, &json));
    const struct tarn_json *next =
        tarn_json_kind(json) == TARN_JSON_OBJECT ? tarn_json_find(json, "nextSnapshot") : NULL;
    if (next == NULL || tarn_json_kind(next) != TARN_JSON_INTEGER || tarn_json_int(next) < 1)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "nextSnapshot is no snapshot");
    *next_snapshot = tarn_json_int(next);
    return TARN_OK;
}

void tarn_consumer_encode(int64_t next_snapshot, struct tarn_buf *out)
{
    tarn_buf_printf(out, "{\n  \"nextSnapshot\" : %" PRId64 "\n}", next_snapshot); /* Jackson's */
}

static const char *key_of(struct tarn_op *op, struct tarn_table *table, struct tarn_slice id)
{
    return tarn_table__key(op, table, FOLDER "/" PREFIX "%.*s", TARN_SLICE_ARG(id));
}

static struct tarn_status *read_consumer(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_slice id, bool *found,
                                         struct tarn_consumer *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    const char *key = key_of(op, table, id);
    TARN_TRY(tarn_store_find(table->env->store, op, key, found, &text));
    if (!*found)
        return TARN_OK;
    *out = (struct tarn_consumer){.id = tarn_arena_copy(op->arena, id)};
    return tarn_status_wrap(tarn_consumer_decode(tarn_buf_slice(&text), &out->next_snapshot), "%s",
                            key);
}

static struct tarn_status *all_consumers(struct tarn_op *op, struct tarn_table *table, bool strict,
                                         struct tarn_consumer **out, size_t *count)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_named *named;
    size_t named_count;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_table__list_named(op, table, FOLDER, PREFIX, &named, &named_count));
    *out = tarn_arena_calloc(op->arena, named_count + 1, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < named_count; i++) {
        struct tarn_consumer *consumer = &(*out)[*count];
        bool found;
        struct tarn_status *s = read_consumer(op, table, named[i].name, &found, consumer);
        if (!strict &&
            (tarn_status_reason(s) == TARN_INVALID_ARGUMENT ||
             tarn_status_reason(s) == TARN_JSON_MALFORMED)) { /* one bad file hides no other */
            tarn_log_status(op, TARN_WARN, "consumer.unreadable", s);
            continue;
        }
        TARN_TRY(s);
        consumer->time_ms = named[i].time_ms;
        *count += found;
    }
    return TARN_OK;
}

struct tarn_status *tarn_table_consumers(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_consumer **out, size_t *count)
{
    return all_consumers(op, table, false, out, count);
}

struct tarn_status *tarn_table__consumers_strict(struct tarn_op *op, struct tarn_table *table,
                                                 struct tarn_consumer **out, size_t *count)
{
    return all_consumers(op, table, true, out, count);
}

struct tarn_status *tarn_table_find_consumer(struct tarn_op *op, struct tarn_table *table,
                                             struct tarn_slice id, bool *found,
                                             struct tarn_consumer *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_consumer_check_id(id));
    return read_consumer(op, table, id, found, out);
}

struct tarn_status *tarn_table_set_consumer(struct tarn_op *op, struct tarn_table *table,
                                            struct tarn_slice id, int64_t next_snapshot)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_consumer_check_id(id));
    if (next_snapshot < 1)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a consumer can't stand at snapshot %" PRId64,
                               next_snapshot);
    tarn_consumer_encode(next_snapshot, &text);
    return tarn_store_put(table->env->store, op, key_of(op, table, id), tarn_buf_slice(&text));
}

struct tarn_status *tarn_table_drop_consumer(struct tarn_op *op, struct tarn_table *table,
                                             struct tarn_slice id)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_consumer_check_id(id));
    return tarn_store_remove(table->env->store, op, key_of(op, table, id));
}
