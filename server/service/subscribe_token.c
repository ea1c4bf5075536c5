#include "service/subscribe_internal.h"

/*
 * Resume tokens. Clients keep them as they are; the check sum tells a cut or foreign one from ours.
 *
 *   1 version, 1 flags, 36 uuid, 8 snapshot id, 8 identity, 4 part, 8 filter, 1 size of branch, branch, 4 check sum
 *
 * Numbers are little-endian.
 */

#define VERSION 1
#define FLAG_BEHIND 1
#define FLAG_WHOLE 2
#define UUID_AT 2
#define FIXED_SIZE (2 + (TARN_UUID_SIZE - 1) + 8 + 8 + 4 + 8 + 1)
#define SUM_SIZE 4

static void put(struct tarn_buf *out, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        tarn_buf_add_byte(out, (uint8_t)(value >> (8 * i)));
}

static uint64_t get(const uint8_t **at, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value |= (uint64_t) * (*at)++ << (8 * i);
    return value;
}

static uint32_t sum(struct tarn_slice bytes)
{
    return (uint32_t)tarn_xxh64(bytes, VERSION);
}

void tarn_service__token_encode(const struct tarn_position *p, struct tarn_buf *out)
{
    size_t begin = out->size, branch_size = strlen(p->branch);
    put(out, VERSION, 1);
    int flags = (p->behind ? FLAG_BEHIND : 0) | (p->whole ? FLAG_WHOLE : 0);
    put(out, (uint64_t)flags, 1);
    tarn_buf_add(out, p->uuid, TARN_UUID_SIZE - 1);
    put(out, (uint64_t)p->snapshot_id, 8);
    put(out, p->identity, 8);
    put(out, p->next_part, 4);
    put(out, p->filter, 8);
    put(out, branch_size, 1);
    tarn_buf_add(out, p->branch, branch_size);
    put(out, sum(tarn_slice_of(out->data + begin, out->size - begin)), SUM_SIZE);
}

struct tarn_status *tarn_service__token_decode(struct tarn_slice token, struct tarn_position *out)
{
    struct tarn_status *bad = NULL;
    const uint8_t *at = token.data;
    *out = (struct tarn_position){0};
    if (token.size < FIXED_SIZE + SUM_SIZE || token.size > TARN_SUBSCRIBE_TOKEN_SIZE_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "resume_token is none: it has %zu bytes",
                               token.size);
    const uint8_t *end = token.data + token.size - SUM_SIZE, *sum_at = end;
    if (sum(tarn_slice_of(token.data, token.size - SUM_SIZE)) != get(&sum_at, SUM_SIZE))
        bad = tarn_status_new(TARN_INVALID_ARGUMENT, "resume_token is none, or was damaged");
    else if (token.data[0] != VERSION)
        bad = tarn_status_new(TARN_INVALID_ARGUMENT, "resume_token is of version %d, this is %d",
                              token.data[0], VERSION);
    TARN_TRY(bad);
    out->behind = (at[1] & FLAG_BEHIND) != 0;
    out->whole = (at[1] & FLAG_WHOLE) != 0;
    memcpy(out->uuid, at + UUID_AT, TARN_UUID_SIZE - 1);
    at += UUID_AT + TARN_UUID_SIZE - 1;
    out->snapshot_id = (int64_t)get(&at, 8);
    out->identity = get(&at, 8);
    out->next_part = (uint32_t)get(&at, 4);
    out->filter = get(&at, 8);
    size_t branch_size = get(&at, 1);
    if (!tarn_uuid_valid(tarn_slice_str(out->uuid)) || out->snapshot_id < 0 ||
        out->snapshot_id == INT64_MAX || branch_size >= sizeof out->branch ||
        branch_size != (size_t)(end - at) || memchr(at, 0, branch_size) != NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "resume_token is none of this server's");
    memcpy(out->branch, at, branch_size);
    return TARN_OK;
}
