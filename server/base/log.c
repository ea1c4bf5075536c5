#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

/* What a line says beyond this is cut and ends in "...": a value from outside can't flood the log. */
#define LOG_PAIRS_SIZE_MAX 8192

#define QUOTE_RING_COUNT 8
#define QUOTE_RING_SIZE 512

static _Atomic int level_min = TARN_INFO;
static atomic_bool as_json;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void tarn_log_set_level(enum tarn_log_level level)
{
    atomic_store(&level_min, level);
}

void tarn_log_set_json(bool json)
{
    atomic_store(&as_json, json);
}

struct tarn_status *tarn_log_level_parse(const char *text, enum tarn_log_level *out)
{
    for (size_t i = 0; i < TARN_COUNT_OF(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *out = (enum tarn_log_level)i;
            return TARN_OK;
        }
    }
    return tarn_status_new(TARN_VALUE_INVALID,
                           "\"%s\" is no log level; expected debug, info, "
                           "warn or error",
                           text);
}

/* Bytes at p that make up one well-formed UTF-8 character; 0 where there is none. */
static size_t utf8_char_size(const uint8_t *p, size_t size)
{
    for (size_t n = 1; n <= 4 && n <= size; n++)
        if (tarn_utf8_valid(tarn_slice_of(p, n)))
            return n;
    return 0;
}

/* Adds text with JSON's escapes, which the text form uses too; what isn't UTF-8 becomes U+FFFD. */
static void add_escaped(struct tarn_buf *out, const uint8_t *p, size_t size, bool escape_quotes)
{
    for (size_t i = 0; i < size;) {
        uint8_t c = p[i];
        if (c == '\n')
            tarn_buf_add_str(out, "\\n");
        else if (c == '\t')
            tarn_buf_add_str(out, "\\t");
        else if (c == '\r')
            tarn_buf_add_str(out, "\\r");
        else if (c < 0x20 || c == 0x7f)
            tarn_buf_printf(out, "\\u%04x", c);
        else if (escape_quotes && (c == '"' || c == '\\'))
            tarn_buf_printf(out, "\\%c", c);
        else if (c < 0x80)
            tarn_buf_add_byte(out, c);
        else {
            size_t n = utf8_char_size(p + i, size - i);
            if (n == 0)
                tarn_buf_add_str(out, "\\ufffd");
            else
                tarn_buf_add(out, p + i, n);
            i += n == 0 ? 1 : n;
            continue;
        }
        i++;
    }
}

const char *tarn_log_quote(const struct tarn_op *op, const char *text)
{
    static _Thread_local char ring[QUOTE_RING_COUNT][QUOTE_RING_SIZE];
    static _Thread_local unsigned next;

    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    size_t size = text == NULL ? 0 : strnlen(text, LOG_PAIRS_SIZE_MAX);
    tarn_buf_add_byte(&buf, '"');
    add_escaped(&buf, (const uint8_t *)text, size, true);
    if (op == NULL && buf.size + 2 > QUOTE_RING_SIZE) {
        /* Cut the raw text, so that no escape is cut through: none is longer than 6 bytes. */
        buf.size = 1;
        add_escaped(&buf, (const uint8_t *)text, TARN_MIN(size, (size_t)(QUOTE_RING_SIZE - 8) / 6),
                    true);
        tarn_buf_add_str(&buf, "...");
    }
    tarn_buf_add_byte(&buf, '"');

    if (op != NULL)
        return tarn_arena_str(op->arena, tarn_buf_slice(&buf));
    char *out = ring[next++ % QUOTE_RING_COUNT];
    memcpy(out, buf.data, buf.size);
    out[buf.size] = 0;
    return out;
}

/* The size of the quoted value at p, quotes included; 0 where the closing one is missing. */
static size_t quoted_size(const uint8_t *p, size_t size)
{
    for (size_t i = 1; i < size; i++) {
        if (p[i] == '\\')
            i++;
        else if (p[i] == '"')
            return i + 1;
    }
    return 0;
}

static void add_json_field(struct tarn_buf *out, const uint8_t *key, size_t key_size,
                           const uint8_t *value, size_t value_size, bool is_quoted)
{
    tarn_buf_add_str(out, ",\"");
    add_escaped(out, key, key_size, true);
    tarn_buf_add_str(out, "\":");
    if (is_quoted) { /* tarn_log_quote's escapes are JSON's */
        tarn_buf_add(out, value, value_size);
        return;
    }
    tarn_buf_add_byte(out, '"');
    add_escaped(out, value, value_size, true);
    tarn_buf_add_byte(out, '"');
}

/* "a=1 b=\"x y\"" as fields; what isn't a pair becomes the field "text". */
static void add_json_pairs(struct tarn_buf *out, const uint8_t *p, size_t size)
{
    while (size > 0) {
        if (*p == ' ') {
            p++, size--;
            continue;
        }
        size_t key_size = 0;
        while (key_size < size && p[key_size] != '=' && p[key_size] != ' ' && p[key_size] != '"')
            key_size++;
        if (key_size == 0 || key_size == size || p[key_size] != '=') {
            add_json_field(out, (const uint8_t *)"text", 4, p, size, false);
            return;
        }
        const uint8_t *value = p + key_size + 1;
        size_t left = size - key_size - 1, value_size = 0;
        bool is_quoted = left > 0 && *value == '"' && (value_size = quoted_size(value, left)) > 0;
        while (!is_quoted && value_size < left && value[value_size] != ' ')
            value_size++;
        add_json_field(out, p, key_size, value, value_size, is_quoted);
        p = value + value_size;
        size = left - value_size;
    }
}

static void add_pairs(struct tarn_buf *line, struct tarn_buf *pairs)
{
    if (atomic_load(&as_json)) {
        add_json_pairs(line, pairs->data, pairs->size);
        tarn_buf_add_str(line, "}\n");
        return;
    }
    if (pairs->size > 0)
        tarn_buf_add_byte(line, ' ');
    add_escaped(line, pairs->data, pairs->size, false);
    tarn_buf_add_byte(line, '\n');
}

void tarn_log(const struct tarn_op *op, enum tarn_log_level level, const char *event,
              const char *format, ...)
{
    if ((int)level < atomic_load_explicit(&level_min, memory_order_relaxed))
        return;

    TARN_OWN(tarn_buf_drop) struct tarn_buf pairs = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf line = {0};
    va_list args;
    va_start(args, format);
    tarn_buf_vprintf(&pairs, format, args);
    va_end(args);
    if (pairs.size > LOG_PAIRS_SIZE_MAX) {
        pairs.size = LOG_PAIRS_SIZE_MAX;
        tarn_buf_add_str(&pairs, "...");
    }

    bool json = atomic_load(&as_json);
    const char *id = op == NULL ? "" : op->request_id;
    tarn_buf_add_str(&line, json ? "{\"time\":\"" : "");
    tarn_format_time(tarn_clock_wall_ms(), &line);
    tarn_buf_printf(&line, json ? "\",\"level\":\"%s\",\"event\":\"%s\"" : " %s %s",
                    level_names[level], event);
    if (id[0] != 0) {
        tarn_buf_add_str(&line, json ? ",\"req\":\"" : " req=");
        add_escaped(&line, (const uint8_t *)id, strlen(id), true);
        tarn_buf_add_str(&line, json ? "\"" : "");
    }
    add_pairs(&line, &pairs);

    /* One write: lines of threads and of worker processes on the same pipe don't mix. */
    ssize_t ignored = write(STDERR_FILENO, line.data, line.size);
    (void)ignored;
}

void tarn_log_status(const struct tarn_op *op, enum tarn_log_level level, const char *event,
                     struct tarn_status *consumed)
{
    if (consumed == NULL)
        return;
    tarn_log(op, level, event, "reason=%s error=%s", tarn_reason_name(tarn_status_reason(consumed)),
             tarn_log_quote(op, tarn_status_message(consumed)));
    tarn_status_free(consumed);
}
