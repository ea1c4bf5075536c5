/*
 * status - the outcome of whatever can fail for a reason outside the program.
 *
 * Shape    NULL (TARN_OK) is success; anything else has a reason (a stable word, reasons.def), the
 *          gRPC code and HTTP status it implies, a message, and optionally details.
 * Memory   a status is owned by whoever receives it; wrap consumes what it wraps.
 * Threads  a status belongs to one thread at a time.
 * Errors   a function returns its error or logs it, never both.
 */
#ifndef TARN_BASE_STATUS_H
#define TARN_BASE_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

/* gRPC's numbers. */
enum tarn_code {
    TARN_CODE_OK = 0,
    TARN_CODE_CANCELLED = 1,
    TARN_CODE_UNKNOWN = 2,
    TARN_CODE_INVALID_ARGUMENT = 3,
    TARN_CODE_DEADLINE_EXCEEDED = 4,
    TARN_CODE_NOT_FOUND = 5,
    TARN_CODE_ALREADY_EXISTS = 6,
    TARN_CODE_PERMISSION_DENIED = 7,
    TARN_CODE_RESOURCE_EXHAUSTED = 8,
    TARN_CODE_FAILED_PRECONDITION = 9,
    TARN_CODE_ABORTED = 10,
    TARN_CODE_OUT_OF_RANGE = 11,
    TARN_CODE_UNIMPLEMENTED = 12,
    TARN_CODE_INTERNAL = 13,
    TARN_CODE_UNAVAILABLE = 14,
    TARN_CODE_DATA_LOSS = 15,
    TARN_CODE_UNAUTHENTICATED = 16,
};

enum tarn_reason {
    TARN_NO_REASON = 0,
#define R(reason, code, http, advice) TARN_##reason,
#include "base/reasons.def"
#undef R
    TARN_REASON_COUNT
};

struct tarn_status;
#define TARN_OK ((struct tarn_status *)NULL)

TARN_MUST TARN_NONNULL struct tarn_status *tarn_status_new(enum tarn_reason reason,
                                                           const char *format, ...)
    TARN_PRINTF(2, 3);
/* One line of context under the same reason, put before the message: "context: message". */
TARN_MUST struct tarn_status *tarn_status_wrap(struct tarn_status *consumed, const char *format,
                                               ...) TARN_PRINTF(2, 3);
/* The same message under another reason: whose fault it is may depend on where it is met. No facts are kept; OK stays OK. */
TARN_MUST struct tarn_status *tarn_status_as(struct tarn_status *consumed, enum tarn_reason reason);
/* A status of errno: picks NOT_FOUND, PERMISSION, DISK_FULL or IO_ERROR and adds strerror. */
TARN_MUST TARN_NONNULL struct tarn_status *tarn_status_errno(int error, const char *format, ...)
    TARN_PRINTF(2, 3);
TARN_MUST struct tarn_status *tarn_status_copy(const struct tarn_status *status);
void tarn_status_free(struct tarn_status *status);
void tarn_status_drop(struct tarn_status **status);

/* NULL status: TARN_NO_REASON, TARN_CODE_OK, 200, "". */
enum tarn_reason tarn_status_reason(const struct tarn_status *status);
enum tarn_code tarn_status_code(const struct tarn_status *status);
int tarn_status_http(const struct tarn_status *status);
const char *tarn_status_message(const struct tarn_status *status); /* borrowed */
const char *tarn_status_advice(const struct tarn_status *status);  /* what the user can do */

/* A fact for programs that goes with the status to clients (ErrorInfo's metadata): "earliest_snapshot" = "12". Both
 * are copied; a key once set is replaced. At most TARN_STATUS_FACTS_MAX. */
#define TARN_STATUS_FACTS_MAX 8
void tarn_status_set(struct tarn_status *status, const char *key, const char *value);
const char *tarn_status_get(const struct tarn_status *status,
                            const char *key); /* borrowed; NULL: not set */
bool tarn_status_fact(const struct tarn_status *status, size_t i, const char **key,
                      const char **value);

const char *tarn_reason_name(enum tarn_reason reason); /* "SNAPSHOT_TAKEN" */
enum tarn_reason tarn_reason_find(const char *name);   /* TARN_NO_REASON where unknown */
enum tarn_code tarn_reason_code(enum tarn_reason reason);
const char *tarn_reason_advice(enum tarn_reason reason);
const char *tarn_code_name(enum tarn_code code);

#endif
