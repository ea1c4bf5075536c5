/*
 * Promise: no bytes of a client break the reading of a request, and where it ends doesn't depend on how they arrive: the
 * same bytes at once and one by one give the same head, body and rest, or the same refusal.
 */
#include "http/internal.h"

struct reading {
    enum tarn_reason reason;
    int http;
    size_t used;
    uint64_t sum; /* of what was read */
};

static void mix(struct reading *r, struct tarn_slice s)
{
    for (size_t i = 0; i < s.size; i++)
        r->sum = (r->sum ^ s.data[i]) * 1099511628211u;
    r->sum = (r->sum ^ s.size) * 1099511628211u;
}

static struct tarn_status *read_body(struct tarn_slice in, const struct tarn_http__head *head,
                                     size_t step, struct reading *r)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_http__body body;
    bool done = !head->has_body;
    if (!head->is_chunked && head->length > 4096)
        return tarn_status_new(TARN_TOO_LARGE, "held against the limit by the connection");
    tarn_http__body_init(&body, head, 4096);
    while (!done && in.size > 0) {
        size_t piece = TARN_MIN(step, in.size), taken;
        TARN_TRY(tarn_http__body_take(&body, tarn_slice_of(in.data, piece), &out, &taken, &done));
        tarn_assert(taken == piece || done);
        tarn_assert(out.size <= 4096);
        in.data += taken, in.size -= taken;
        r->used += taken;
    }
    mix(r, tarn_buf_slice(&out));
    return TARN_OK;
}

static struct tarn_status *read_request(struct tarn_slice in, size_t step, struct tarn_arena *arena,
                                        struct reading *r)
{
    size_t scanned = 0, size = 0;
    for (size_t have = TARN_MIN(step, in.size); size == 0; have = TARN_MIN(have + step, in.size)) {
        TARN_TRY(tarn_http__head_find(tarn_slice_of(in.data, have), &scanned, &size, &r->http));
        tarn_assert(scanned <= have && size <= have);
        if (size == 0 && have == in.size)
            return TARN_OK; /* not whole */
    }
    struct tarn_http__head head;
    struct tarn_http_request request = {0};
    uint8_t *text = tarn_arena_alloc(arena, size);
    memcpy(text, in.data, size);
    r->used = size;
    TARN_TRY(tarn_http__head_parse(text, size, arena, &head, &r->http));
    tarn_assert(head.header_count <= TARN_HTTP_HEADERS_MAX);
    TARN_TRY(tarn_http__target_parse(head.target, arena, &request, &r->http));
    for (size_t i = 0; i < request.segment_count; i++)
        tarn_assert(tarn_utf8_valid(request.segments[i]));
    for (size_t i = 0; i < head.header_count; i++)
        mix(r, head.headers[i].value);
    return read_body(tarn_slice_of(in.data + size, in.size - size), &head, step, r);
}

static struct reading read_in_steps(struct tarn_slice in, size_t step)
{
    struct reading r = {0};
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_status_drop) struct tarn_status *s = read_request(in, step, arena, &r);
    r.reason = tarn_status_reason(s);
    if (s != TARN_OK)
        r.used = r.sum = 0; /* closed: it doesn't matter how far it came */
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 64 << 10)
        return 0;
    struct tarn_slice in = tarn_slice_of(data, size);
    struct reading whole = read_in_steps(in, SIZE_MAX), single = read_in_steps(in, 1);
    tarn_assert(memcmp(&whole, &single, sizeof whole) == 0);
    return 0;
}
