/*
 * intent - the bytes of a commit to several tables, as they lie in the store under .tarn/intents/ until all of it
 * has landed.
 *
 * Memory   what is decoded points into the bytes and the arena.
 * Errors   STATE_DAMAGED.
 */
#ifndef TARN_SERVICE_INTENT_H
#define TARN_SERVICE_INTENT_H

#include "service/service.h"

struct tarn_intent_part {
    struct tarn_slice uuid, name; /* of the table; the name is for messages */
    struct tarn_commit commit;    /* an append of files and changelog files */
};

void tarn_intent_encode(const struct tarn_intent_part *parts, size_t count, struct tarn_buf *out);
TARN_MUST struct tarn_status *tarn_intent_decode(struct tarn_slice bytes, struct tarn_arena *arena,
                                                 struct tarn_intent_part **out, size_t *count);

#endif
