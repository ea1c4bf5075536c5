#include "service/internal.h"

/* Plans, bit by bit, and pins of their snapshots. */

struct tarn_plan_stream {
    struct tarn_table *table;
    struct tarn_plan_cursor *cursor;
    struct tarn_buf path, partition; /* of the bucket that was asked for last */
    int32_t bucket;
    bool has_path, has_pin;
    struct tarn_pin pin;
    int64_t begun_ns;
};

struct tarn_status *tarn_service_plan_begin(struct tarn_op *op, struct tarn_service *service,
                                            struct tarn_table_ref ref,
                                            const struct tarn_plan_request *request, int64_t pin_ms,
                                            struct tarn_plan_stream **out)
{
    TARN_OWN(tarn_plan_stream_drop) struct tarn_plan_stream *s = tarn_calloc(1, sizeof *s);
    s->begun_ns = tarn_clock_mono_ns();
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &s->table));
    TARN_TRY(tarn_table_plan_begin(op, s->table, request, &s->cursor));
    const struct tarn_plan *head = tarn_plan_cursor_head(s->cursor);
    s->has_pin = pin_ms != 0 && head->has_snapshot;
    if (s->has_pin)
        TARN_TRY(tarn_table_pin(op, s->table, head->snapshot.id, pin_ms, &s->pin));
    *out = tarn_move(s);
    return TARN_OK;
}

struct tarn_status *tarn_plan_stream_next(struct tarn_plan_stream *s, struct tarn_plan_batch *out)
{
    return tarn_plan_cursor_next(s->cursor, out);
}

const struct tarn_plan *tarn_plan_stream_head(const struct tarn_plan_stream *s)
{
    return tarn_plan_cursor_head(s->cursor);
}

const struct tarn_pin *tarn_plan_stream_pin(const struct tarn_plan_stream *s)
{
    return s->has_pin ? &s->pin : NULL;
}

int64_t tarn_plan_stream_micros(const struct tarn_plan_stream *s)
{
    return (tarn_clock_mono_ns() - s->begun_ns) / 1000;
}

struct tarn_status *tarn_plan_stream_path(struct tarn_plan_stream *s, struct tarn_slice partition,
                                          int32_t bucket, struct tarn_slice *out)
{
    const struct tarn_plan *head = tarn_plan_cursor_head(s->cursor);
    bool same = s->has_path && s->bucket == bucket &&
                tarn_slice_equal(partition, tarn_buf_slice(&s->partition));
    if (!same) {
        tarn_buf_clear(&s->path);
        tarn_buf_clear(&s->partition);
        s->has_path = false;
        TARN_TRY(tarn_bucket_path(head->schema, head->options, partition, bucket, &s->path));
        tarn_buf_add_slice(&s->partition, partition);
        s->bucket = bucket;
        s->has_path = true;
    }
    *out = tarn_buf_slice(&s->path);
    return TARN_OK;
}

void tarn_plan_stream_free(struct tarn_plan_stream *s)
{
    if (s == NULL)
        return;
    tarn_plan_cursor_free(s->cursor);
    tarn_table_unref(s->table);
    tarn_buf_drop(&s->path);
    tarn_buf_drop(&s->partition);
    free(s);
}

void tarn_plan_stream_drop(struct tarn_plan_stream **stream)
{
    tarn_plan_stream_free(*stream);
    *stream = NULL;
}

struct tarn_status *tarn_service_renew_pin(struct tarn_op *op, struct tarn_service *service,
                                           struct tarn_table_ref ref, struct tarn_slice id,
                                           int64_t keep_ms, struct tarn_pin *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    return tarn_table_renew_pin(op, table, id, keep_ms, out);
}
