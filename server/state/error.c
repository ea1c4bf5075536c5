#include "state/internal.h"

/* The C API gives errors as text only; it begins with the kind. Which of the system's errors is
 * behind "IO error:" stands somewhere in the text, in strerror's words. */
static enum tarn_reason reason_of(const char *text)
{
    static const struct {
        const char *part;
        bool prefix;
        enum tarn_reason reason;
    } kinds[] = {
        {"Corruption:", true, TARN_STATE_DAMAGED},
        {"No space left on device", false, TARN_DISK_FULL},
        {"Disk quota exceeded", false, TARN_DISK_FULL},
        {"IO error: While lock file:", true, TARN_DATA_DIR_HELD},
        {"IO error: lock hold by current process", true, TARN_DATA_DIR_HELD},
        {"Permission denied", false, TARN_STORE_DENIED},
        {"Read-only file system", false, TARN_STORE_DENIED},
        {"IO error: No such file or directory", true, TARN_STATE_DAMAGED},
        {"Resource busy:", true, TARN_BUSY},
        {"IO error:", true, TARN_IO_ERROR},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(kinds); i++) {
        const char *found = strstr(text, kinds[i].part);
        if (found != NULL && (found == text || !kinds[i].prefix))
            return kinds[i].reason;
    }
    return TARN_INTERNAL;
}

struct tarn_status *tarn_state__error(const struct tarn_state *state, char *consumed,
                                      const char *what)
{
    if (consumed == NULL)
        return TARN_OK;
    struct tarn_status *status = tarn_status_new(reason_of(consumed), "%s the state in %s: %s",
                                                 what, state->folder, consumed);
    rocksdb_free(consumed);
    return status;
}
