#include "maintain/budget.h"

static int64_t burst_of(const struct tarn_budget *b)
{
    return b->rate > INT64_MAX / TARN_BUDGET_BURST_SECONDS ? INT64_MAX
                                                           : b->rate * TARN_BUDGET_BURST_SECONDS;
}

void tarn_budget_init(struct tarn_budget *b, int64_t rate, int64_t now_ms)
{
    *b = (struct tarn_budget){.rate = rate, .at_ms = now_ms};
    b->tokens = burst_of(b);
}

int64_t tarn_budget_tokens(struct tarn_budget *b, int64_t now_ms)
{
    if (b->rate == 0 || now_ms <= b->at_ms)
        return b->tokens;
    double grown = (double)b->rate * (double)(now_ms - b->at_ms) / 1000;
    if (grown < 1)
        return b->tokens; /* at_ms stays: nothing of the time is lost */
    double tokens = (double)b->tokens + grown, most = (double)burst_of(b);
    b->tokens = tokens >= most ? burst_of(b) : (int64_t)tokens;
    b->at_ms = now_ms;
    return b->tokens;
}

bool tarn_budget_has(struct tarn_budget *b, int64_t amount, int64_t now_ms)
{
    return b->rate == 0 || tarn_budget_tokens(b, now_ms) >= TARN_MIN(amount, burst_of(b));
}

void tarn_budget_take(struct tarn_budget *b, int64_t amount, int64_t now_ms)
{
    if (b->rate == 0)
        return;
    int64_t tokens = tarn_budget_tokens(b, now_ms);
    b->tokens = amount > 0 && tokens < INT64_MIN + amount ? INT64_MIN
                                                          : TARN_MIN(tokens - amount, burst_of(b));
}

/* --- windows --- */

/* Two digits. */
static bool take_two(struct tarn_slice *text, int *out)
{
    const uint8_t *d = text->data;
    if (text->size < 2 || d[0] < '0' || d[0] > '9' || d[1] < '0' || d[1] > '9')
        return false;
    *out = (d[0] - '0') * 10 + (d[1] - '0');
    *text = tarn_slice_of(d + 2, text->size - 2);
    return true;
}

static bool take_char(struct tarn_slice *text, char c)
{
    if (text->size == 0 || text->data[0] != (uint8_t)c)
        return false;
    *text = tarn_slice_of(text->data + 1, text->size - 1);
    return true;
}

static bool take_time(struct tarn_slice *text, int *minutes)
{
    int hour, minute;
    if (!take_two(text, &hour) || !take_char(text, ':') || !take_two(text, &minute) ||
        minute > 59 || hour * 60 + minute > 24 * 60)
        return false;
    *minutes = hour * 60 + minute;
    return true;
}

struct tarn_status *tarn_window_parse(struct tarn_slice text, struct tarn_window *out)
{
    struct tarn_slice rest = text;
    *out = (struct tarn_window){0};
    if (text.size == 0)
        return TARN_OK;
    bool fine = take_time(&rest, &out->from) && take_char(&rest, '-') &&
                take_time(&rest, &out->to) && rest.size == 0 && out->from != out->to;
    return fine ? TARN_OK
                : tarn_status_new(TARN_INVALID_ARGUMENT,
                                  "\"%.*s\" is no time of day; write e.g. 22:00-06:00",
                                  TARN_SLICE_ARG(text));
}

bool tarn_window_is_open(const struct tarn_window *w, int64_t local_ms)
{
    int minute = (int)(((local_ms / 60000) % 1440 + 1440) % 1440);
    if (w->from == w->to)
        return true;
    return w->from < w->to ? minute >= w->from && minute < w->to
                           : minute >= w->from || minute < w->to;
}
