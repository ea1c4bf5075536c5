#include "http/internal.h"

/*
 * Where a body ends: after so many bytes, or, chunked, after what the client says as it goes.
 *
 *   SIZE --;--> EXTENSION --CR--> SIZE_LF --LF--+--> DATA --all--> DATA_CR --> DATA_LF --> SIZE
 *     `----------CR------------------^          +--> (size 0) LINE --CR--> END_LF --> DONE
 *                                                              `-text-> TRAILER --CR--> TRAILER_LF --> LINE
 */
enum {
    SIZE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    LINE,
    TRAILER,
    TRAILER_LF,
    END_LF,
    PLAIN,
    DONE
};

#define SIZE_DIGITS_MAX 8
#define EXTENSION_SIZE_MAX 256
#define TRAILERS_SIZE_MAX 4096

/* A length that stands in the head was held against the limit there. */
void tarn_http__body_init(struct tarn_http__body *body, const struct tarn_http__head *head,
                          size_t size_max)
{
    *body =
        (struct tarn_http__body){.state = head->is_chunked ? SIZE : PLAIN, .size_max = size_max};
    if (head->is_chunked)
        body->line = SIZE_DIGITS_MAX;
    else
        body->left = head->length;
}

static struct tarn_status *malformed(const char *what)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT, "malformed chunk: %s", what);
}

static struct tarn_status *too_large(const struct tarn_http__body *body)
{
    return tarn_status_new(TARN_TOO_LARGE, "the body exceeds %zu bytes", body->size_max);
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte must be `want`; then `next`. */
static struct tarn_status *step(struct tarn_http__body *body, uint8_t c, uint8_t want, int next)
{
    if (c != want)
        return malformed(want == '\n' ? "want LF" : "want CR");
    body->state = next;
    return TARN_OK;
}

static struct tarn_status *take_size(struct tarn_http__body *body, uint8_t c)
{
    int digit = hex_digit(c);
    if (digit < 0) {
        if (body->line == SIZE_DIGITS_MAX)
            return malformed("want its size");
        if (c == ';') {
            body->line = EXTENSION_SIZE_MAX;
            body->state = EXTENSION;
            return TARN_OK;
        }
        return step(body, c, '\r', SIZE_LF);
    }
    if (body->line == 0)
        return malformed("its size has too many digits");
    body->line--;
    body->left = body->left << 4 | (uint64_t)digit;
    return TARN_OK;
}

/* Text that says nothing to us, up to its CR. */
static struct tarn_status *take_text(struct tarn_http__body *body, uint8_t c, int next)
{
    if (c == '\r') {
        body->state = next;
        return TARN_OK;
    }
    if ((c < 0x20 && c != '\t') || c == 0x7f)
        return malformed("a control character");
    if (body->line == 0)
        return malformed("its extension or the trailers are too long");
    body->line--;
    return TARN_OK;
}

static struct tarn_status *begin_data(struct tarn_http__body *body, uint8_t c)
{
    TARN_TRY(step(body, c, '\n', DATA));
    if (body->left == 0) {
        body->line = TRAILERS_SIZE_MAX;
        body->state = LINE;
    }
    return TARN_OK;
}

static struct tarn_status *take_byte(struct tarn_http__body *body, uint8_t c)
{
    switch (body->state) {
    case SIZE:
        return take_size(body, c);
    case EXTENSION:
        return take_text(body, c, SIZE_LF);
    case SIZE_LF:
        return begin_data(body, c);
    case DATA_CR:
        return step(body, c, '\r', DATA_LF);
    case DATA_LF:
        body->line = SIZE_DIGITS_MAX;
        return step(body, c, '\n', SIZE);
    case LINE:
        if (c == ' ' || c == '\t')
            return malformed("a folded trailer");
        body->state = TRAILER;
        return take_text(body, c, END_LF);
    case TRAILER:
        return take_text(body, c, TRAILER_LF);
    case TRAILER_LF:
        return step(body, c, '\n', LINE);
    default:
        return step(body, c, '\n', DONE);
    }
}

struct tarn_status *tarn_http__body_take(struct tarn_http__body *body, struct tarn_slice in,
                                         struct tarn_buf *out, size_t *taken, bool *done)
{
    size_t at = 0;
    *taken = 0;
    *done = false;
    while (at < in.size && body->state != DONE) {
        if (body->state != DATA && body->state != PLAIN) {
            TARN_TRY(take_byte(body, in.data[at++]));
            if (body->state == DATA && body->left > body->size_max - out->size)
                return too_large(body);
            continue;
        }
        size_t piece = (size_t)TARN_MIN((uint64_t)(in.size - at), body->left);
        tarn_buf_add(out, in.data + at, piece);
        at += piece;
        body->left -= piece;
        if (body->left == 0)
            body->state = body->state == DATA ? DATA_CR : DONE;
    }
    *taken = at;
    *done = body->state == DONE;
    return TARN_OK;
}
