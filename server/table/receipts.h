/*
 * receipts - what the files about receipts share: keys and values of the family (receipts.c has the layout).
 */
#ifndef TARN_TABLE_RECEIPTS_H
#define TARN_TABLE_RECEIPTS_H

#include "table/internal.h"

/* --- keys; all append --- */
void tarn_receipt__add_identity(struct tarn_buf *key, const struct tarn_identity *who);
/* Takes an identity off the rest of a key; the kind is left. user: owns the bytes that out->user points to. */
bool tarn_receipt__take_identity(struct tarn_slice *rest, struct tarn_buf *user,
                                 struct tarn_identity *out);
void tarn_receipt__user_key(const struct tarn_table *table, char tag, struct tarn_slice user,
                            struct tarn_buf *key);
struct tarn_slice tarn_receipt__behind(struct tarn_slice key, size_t size);

/* --- values --- */
void tarn_receipt__put(struct tarn_state_batch *batch, struct tarn_table *table,
                       const struct tarn_buf *key, const struct tarn_buf *value);
void tarn_receipt__put_number(struct tarn_state_batch *batch, struct tarn_table *table, char tag,
                              int64_t number);
/* The number that a value begins with. */
TARN_MUST struct tarn_status *tarn_receipt__find_number(struct tarn_table *table,
                                                        const struct tarn_buf *key, bool *found,
                                                        int64_t *out);
TARN_MUST struct tarn_status *tarn_receipt__damaged(const struct tarn_table *table);

/* Below `id` nothing is known, and who committed there neither. */
TARN_MUST struct tarn_status *tarn_receipt__raise_horizon(struct tarn_table *table, int64_t id);

#endif
