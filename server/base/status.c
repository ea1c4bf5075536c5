#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct fact {
    char *key, *value;
};

struct tarn_status {
    enum tarn_reason reason;
    char *message;
    struct fact *facts; /* TARN_STATUS_FACTS_MAX of them, or NULL */
    size_t fact_count;
};

struct reason_row {
    const char *name;
    enum tarn_code code;
    int http;
    const char *advice;
};

static const struct reason_row reasons[TARN_REASON_COUNT] = {
    [TARN_NO_REASON] = {"", TARN_CODE_OK, 200, ""},
#define R(reason, code, http, advice) [TARN_##reason] = {#reason, TARN_CODE_##code, http, advice},
#include "base/reasons.def"
#undef R
};

static const struct reason_row *row_of(enum tarn_reason reason)
{
    tarn_assert((unsigned)reason < TARN_REASON_COUNT);
    return &reasons[reason];
}

static char *format_message(const char *format, va_list args)
{
    struct tarn_buf buf = {0};
    tarn_buf_vprintf(&buf, format, args);
    tarn_buf_add_byte(&buf, 0);
    return (char *)buf.data;
}

static struct tarn_status *status_of(enum tarn_reason reason, char *consumed_message)
{
    tarn_assert(reason != TARN_NO_REASON);
    struct tarn_status *status = tarn_calloc(1, sizeof *status);
    status->reason = reason;
    status->message = consumed_message;
    return status;
}

struct tarn_status *tarn_status_new(enum tarn_reason reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *message = format_message(format, args);
    va_end(args);
    return status_of(reason, message);
}

struct tarn_status *tarn_status_wrap(struct tarn_status *consumed, const char *format, ...)
{
    if (consumed == NULL)
        return NULL;

    va_list args;
    va_start(args, format);
    char *context = format_message(format, args);
    va_end(args);

    char *message = tarn_format("%s: %s", context, consumed->message);
    free(context);
    free(consumed->message);
    consumed->message = message;
    return consumed;
}

struct tarn_status *tarn_status_as(struct tarn_status *consumed, enum tarn_reason reason)
{
    if (consumed == NULL)
        return NULL;
    struct tarn_status *status = tarn_status_new(reason, "%s", consumed->message);
    tarn_status_free(consumed);
    return status;
}

static enum tarn_reason reason_of_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return TARN_OBJECT_NOT_FOUND;
    case EEXIST:
        return TARN_OBJECT_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return TARN_STORE_DENIED;
    case ENOSPC:
    case EDQUOT:
        return TARN_DISK_FULL;
    case ENAMETOOLONG:
    case ELOOP:
        return TARN_PATH_INVALID;
    case EADDRINUSE:
        return TARN_ADDRESS_IN_USE;
    case ENOMEM:
        return TARN_MEMORY_EXHAUSTED;
    default:
        return TARN_IO_ERROR;
    }
}

struct tarn_status *tarn_status_errno(int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *what = format_message(format, args);
    va_end(args);

    char text[128];
    char *message = tarn_format("%s: %s", what, strerror_r(error, text, sizeof text));
    free(what);
    return status_of(reason_of_errno(error), message);
}

struct tarn_status *tarn_status_copy(const struct tarn_status *status)
{
    if (status == NULL)
        return NULL;
    struct tarn_status *copy = status_of(status->reason, tarn_strdup(status->message));
    for (size_t i = 0; i < status->fact_count; i++)
        tarn_status_set(copy, status->facts[i].key, status->facts[i].value);
    return copy;
}

void tarn_status_free(struct tarn_status *status)
{
    if (status == NULL)
        return;
    for (size_t i = 0; i < status->fact_count; i++) {
        free(status->facts[i].key);
        free(status->facts[i].value);
    }
    free(status->facts);
    free(status->message);
    free(status);
}

/* --- facts --- */

void tarn_status_set(struct tarn_status *status, const char *key, const char *value)
{
    size_t i = 0;
    while (i < status->fact_count && strcmp(status->facts[i].key, key) != 0)
        i++;
    if (i == TARN_STATUS_FACTS_MAX)
        return;
    if (status->facts == NULL)
        status->facts = tarn_calloc(TARN_STATUS_FACTS_MAX, sizeof *status->facts);
    if (i == status->fact_count) {
        status->facts[i].key = tarn_strdup(key);
        status->fact_count++;
    }
    free(status->facts[i].value);
    status->facts[i].value = tarn_strdup(value);
}

const char *tarn_status_get(const struct tarn_status *status, const char *key)
{
    for (size_t i = 0; status != NULL && i < status->fact_count; i++)
        if (strcmp(status->facts[i].key, key) == 0)
            return status->facts[i].value;
    return NULL;
}

bool tarn_status_fact(const struct tarn_status *status, size_t i, const char **key,
                      const char **value)
{
    if (status == NULL || i >= status->fact_count)
        return false;
    *key = status->facts[i].key;
    *value = status->facts[i].value;
    return true;
}

void tarn_status_drop(struct tarn_status **status)
{
    tarn_status_free(*status);
    *status = NULL;
}

enum tarn_reason tarn_status_reason(const struct tarn_status *status)
{
    return status == NULL ? TARN_NO_REASON : status->reason;
}

enum tarn_code tarn_status_code(const struct tarn_status *status)
{
    return row_of(tarn_status_reason(status))->code;
}

int tarn_status_http(const struct tarn_status *status)
{
    return row_of(tarn_status_reason(status))->http;
}

const char *tarn_status_message(const struct tarn_status *status)
{
    return status == NULL ? "" : status->message;
}

const char *tarn_status_advice(const struct tarn_status *status)
{
    return row_of(tarn_status_reason(status))->advice;
}

const char *tarn_reason_name(enum tarn_reason reason)
{
    return row_of(reason)->name;
}

enum tarn_reason tarn_reason_find(const char *name)
{
    for (int i = 1; name != NULL && i < TARN_REASON_COUNT; i++)
        if (strcmp(reasons[i].name, name) == 0)
            return (enum tarn_reason)i;
    return TARN_NO_REASON;
}

enum tarn_code tarn_reason_code(enum tarn_reason reason)
{
    return row_of(reason)->code;
}

const char *tarn_reason_advice(enum tarn_reason reason)
{
    return row_of(reason)->advice;
}

const char *tarn_code_name(enum tarn_code code)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    /* A peer may send any number. */
    return (unsigned)code < TARN_COUNT_OF(names) ? names[code] : "UNKNOWN";
}
