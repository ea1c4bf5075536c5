#include "tarn/plan.h"

#include "receive.h"

#include "base/fields.h"

/*
 * Plans are decoded by hand: fields as proto/tarn/v1/table.proto numbers them, unknown ones skipped, lists counted before
 * room is made for them.
 */

struct tarn_client_plan {
    struct tarn_client_stream *stream;
    struct tarn_message *message; /* what the last splits point to */
    struct tarn_arena *arena;
    Tarn__V1__PlanSummary *summary;
};

/* --- files --- */

static bool decode_stats(struct tarn_slice bytes, struct tarn_arena *arena,
                         struct tarn_client_stats *out)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    struct tarn_taken_field f;
    while (at < end) {
        if (!tarn_take_field(&at, end, &f))
            return false;
        if (f.number == 1 && f.form == TARN_FORM_BYTES)
            out->min = f.bytes;
        else if (f.number == 2 && f.form == TARN_FORM_BYTES)
            out->max = f.bytes;
        else if (f.number == 3 &&
                 f.form == TARN_FORM_BYTES) { /* packed; a number is a byte at least */
            const uint8_t *number = f.bytes.data, *last = number + f.bytes.size;
            int64_t *counts = tarn_arena_alloc(arena, (f.bytes.size + 1) * sizeof *counts);
            uint64_t value;
            out->count = 0;
            for (; number < last; out->count++) {
                if (!tarn_take_varint(&number, last, &value))
                    return false;
                counts[out->count] = (int64_t)value;
            }
            out->null_counts = counts;
        }
    }
    return true;
}

static bool decode_lists(struct tarn_slice bytes, struct tarn_arena *arena,
                         struct tarn_client_file *out)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    size_t extra, columns;
    struct tarn_taken_field f;
    if (!tarn_count_fields(bytes, 12, 18, &extra, &columns))
        return false;
    struct tarn_slice *extra_files = tarn_arena_alloc(arena, (extra + 1) * sizeof *extra_files);
    struct tarn_slice *names = tarn_arena_alloc(arena, (columns + 1) * sizeof *names);
    while (tarn_take_field(&at, end, &f)) {
        if (f.number == 12 && f.form == TARN_FORM_BYTES)
            extra_files[out->extra_file_count++] = f.bytes;
        if (f.number == 18 && f.form == TARN_FORM_BYTES)
            names[out->value_stats_column_count++] = f.bytes;
    }
    out->extra_files = extra_files;
    out->value_stats_columns = names;
    return true;
}

static void take_number(const struct tarn_taken_field *f, struct tarn_client_file *out)
{
    int64_t n = (int64_t)f->value;
    switch (f->number) {
    case 2:
        out->size = n;
        break;
    case 3:
        out->row_count = n;
        break;
    case 8:
        out->min_sequence = n;
        break;
    case 9:
        out->max_sequence = n;
        break;
    case 10:
        out->schema_id = n;
        break;
    case 11:
        out->level = (int32_t)n;
        break;
    case 13:
        out->creation_time_ms = n;
        break;
    case 14:
        out->delete_row_count = n;
        break;
    case 16:
        out->source = (int32_t)n;
        break;
    case 17:
        out->has_value_stats_columns = n != 0;
        break;
    case 20:
        out->first_row_id = n;
        break;
    default:
        break;
    }
}

static bool take_bytes(const struct tarn_taken_field *f, struct tarn_arena *arena,
                       struct tarn_client_file *out, bool *has_lists)
{
    switch (f->number) {
    case 1:
        out->name = f->bytes;
        return true;
    case 4:
        out->min_key = f->bytes;
        return true;
    case 5:
        out->max_key = f->bytes;
        return true;
    case 6:
        return decode_stats(f->bytes, arena, &out->key_stats);
    case 7:
        return decode_stats(f->bytes, arena, &out->value_stats);
    case 12:
    case 18:
        *has_lists = true;
        return true;
    case 15:
        out->embedded_index = f->bytes;
        return true;
    case 19:
        out->external_path = f->bytes;
        return true;
    default:
        return true;
    }
}

static bool decode_file(struct tarn_slice bytes, struct tarn_arena *arena,
                        struct tarn_client_file *out)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    bool has_lists = false;
    struct tarn_taken_field f;
    memset(out, 0, sizeof *out);
    out->creation_time_ms = out->delete_row_count = out->first_row_id = TARN_CLIENT_NONE;
    while (at < end) {
        if (!tarn_take_field(&at, end, &f))
            return false;
        if (f.form == TARN_FORM_VARINT)
            take_number(&f, out);
        else if (f.form == TARN_FORM_BYTES && !take_bytes(&f, arena, out, &has_lists))
            return false;
    }
    return !has_lists || decode_lists(bytes, arena, out);
}

/* --- splits --- */

static void take_split_number(const struct tarn_taken_field *f, struct tarn_client_split *out)
{
    int64_t n = (int64_t)f->value;
    switch (f->number) {
    case 2:
        out->bucket = (int32_t)n;
        break;
    case 3:
        out->raw = n != 0;
        break;
    case 6:
        out->total_buckets = (int32_t)n;
        break;
    case 8:
        out->is_changelog = n != 0;
        break;
    case 9:
        out->snapshot_id = n;
        break;
    default:
        break;
    }
}

static bool decode_split(struct tarn_slice bytes, struct tarn_arena *arena,
                         struct tarn_client_split *out)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    size_t files, before;
    struct tarn_taken_field f;
    memset(out, 0, sizeof *out);
    if (!tarn_count_fields(bytes, 4, 7, &files, &before))
        return false;
    out->files = tarn_arena_alloc(arena, (files + 1) * sizeof *out->files);
    out->before_files = tarn_arena_alloc(arena, (before + 1) * sizeof *out->before_files);
    while (tarn_take_field(&at, end, &f)) {
        bool good = true;
        if (f.form == TARN_FORM_VARINT)
            take_split_number(&f, out);
        else if (f.form == TARN_FORM_BYTES && f.number == 1)
            out->partition = f.bytes;
        else if (f.form == TARN_FORM_BYTES && f.number == 4)
            good = decode_file(f.bytes, arena, &out->files[out->file_count++]);
        else if (f.form == TARN_FORM_BYTES && f.number == 5)
            out->path = f.bytes;
        else if (f.form == TARN_FORM_BYTES && f.number == 7)
            good = decode_file(f.bytes, arena, &out->before_files[out->before_count++]);
        if (!good)
            return false;
    }
    return true;
}

static struct tarn_status *no_plan(void)
{
    return tarn_status_new(TARN_INTERNAL,
                           "the server's answer is no plan; are client and server of one version?");
}

struct tarn_status *tarn_client_plan_decode(struct tarn_slice bytes, struct tarn_arena *arena,
                                            struct tarn_client_split **out, size_t *count,
                                            struct tarn_slice *summary)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    size_t splits, summaries;
    struct tarn_taken_field f;
    *summary = (struct tarn_slice){0};
    *count = 0;
    if (!tarn_count_fields(bytes, 1, 2, &splits, &summaries))
        return no_plan();
    *out = tarn_arena_alloc(arena, (splits + 1) * sizeof **out);
    while (tarn_take_field(&at, end, &f)) {
        if (f.form == TARN_FORM_BYTES && f.number == 1 &&
            !decode_split(f.bytes, arena, &(*out)[(*count)++]))
            return no_plan();
        if (f.form == TARN_FORM_BYTES && f.number == 2)
            *summary = f.bytes;
    }
    return TARN_OK;
}

/* --- the stream --- */

struct tarn_status *tarn_client_plan_begin(struct tarn_client *client, struct tarn_op *op,
                                           const Tarn__V1__PlanRequest *request,
                                           struct tarn_client_plan **out)
{
    TARN_OWN(tarn_client_plan_drop) struct tarn_client_plan *plan = tarn_calloc(1, sizeof *plan);
    TARN_TRY(tarn_client_stream_open(client, op, "TableService/Plan", &plan->stream));
    TARN_TRY(tarn_client_stream_send(plan->stream, &request->base));
    TARN_TRY(tarn_client_stream_done(plan->stream));
    *out = tarn_move(plan);
    return TARN_OK;
}

static struct tarn_status *take_summary(struct tarn_client_plan *plan, struct tarn_slice bytes)
{
    if (bytes.data == NULL || plan->summary != NULL)
        return TARN_OK;
    plan->summary = tarn__v1__plan_summary__unpack(NULL, bytes.size, bytes.data);
    return plan->summary == NULL ? no_plan() : TARN_OK;
}

struct tarn_status *tarn_client_plan_next(struct tarn_client_plan *plan,
                                          const struct tarn_client_split **out, size_t *count)
{
    *out = NULL;
    *count = 0;
    do {
        struct tarn_client_split *splits;
        struct tarn_slice summary;
        tarn_message_drop(&plan->message);
        tarn_arena_drop(&plan->arena);
        TARN_TRY(tarn_client__receive(plan->stream, &plan->message));
        if (plan->message == NULL)
            return plan->summary != NULL ? TARN_OK : no_plan();
        plan->arena = tarn_arena_new();
        TARN_TRY(tarn_client_plan_decode(tarn_message_bytes(plan->message), plan->arena, &splits,
                                         count, &summary));
        TARN_TRY(take_summary(plan, summary));
        *out = splits;
    } while (*count == 0);
    return TARN_OK;
}

const Tarn__V1__PlanSummary *tarn_client_plan_summary(const struct tarn_client_plan *plan)
{
    return plan->summary;
}

void tarn_client_plan_free(struct tarn_client_plan *plan)
{
    if (plan == NULL)
        return;
    tarn_client_stream_free(plan->stream);
    tarn_message_free(plan->message);
    tarn_arena_free(plan->arena);
    if (plan->summary != NULL)
        tarn__v1__plan_summary__free_unpacked(plan->summary, NULL);
    free(plan);
}

void tarn_client_plan_drop(struct tarn_client_plan **plan)
{
    tarn_client_plan_free(*plan);
    *plan = NULL;
}
