/*
 * state - ordered keys on local disk: what is faster to look up here than in the store.
 *
 * Shape    a family is a separate key space; keys are bytes in unsigned order. The families are one
 *          table, families.def. A batch over any families takes effect whole or not at all.
 * Threads  any; a batch or iterator belongs to one thread.
 * Errors   DATA_DIR_HELD (names who has it open), STATE_DAMAGED, STATE_NEWER (a newer program's),
 *          DISK_FULL, STORE_DENIED, IO_ERROR.
 *          Memory is bounded by options chosen in open.c, not by the callers: 17 MiB when just
 *          opened, up to 80 MiB once cache and write buffers are full.
 */
#ifndef TARN_STATE_H
#define TARN_STATE_H

#include "base/base.h"

struct tarn_state;
struct tarn_state_batch;
struct tarn_state_iterator;

enum tarn_family {
#define F(id, name, meaning) TARN_FAMILY_##id,
#include "state/families.def"
#undef F
    TARN_FAMILY_COUNT
};

/* Opens or creates `folder`, whose parent must be there. *fresh: it was just created, so
 * everything has to be rebuilt. */
TARN_MUST struct tarn_status *tarn_state_open(const char *folder, bool *fresh,
                                              struct tarn_state **out);
void tarn_state_close(
    struct tarn_state *state); /* iterators and views are freed before; NULL is fine */
/* A write that fails is the last one: others are refused with its reason. Of a full disk the state comes back by itself,
 * with the first write that finds room and no iterator or view open; else with the next open. Reads go on meanwhile.
 * What such a state has to say, owned; NULL: nothing, it takes writes. */
TARN_MUST struct tarn_status *tarn_state_problem(struct tarn_state *state);

struct tarn_state_memory { /* bytes; both are bounded (open.c) */
    uint64_t buffers_size; /* what was written and is only in the log yet */
    uint64_t cache_size;   /* blocks that were read */
};
/* Zeros while it is closed. */
void tarn_state_memory(struct tarn_state *state, struct tarn_state_memory *out);

/* Called now and then: what compactions have left behind since the last write is removed. Cheap where there is nothing. */
void tarn_state_tidy(struct tarn_state *state);

/* Appends the value to *out. */
TARN_MUST struct tarn_status *tarn_state_get(struct tarn_state *state, enum tarn_family family,
                                             struct tarn_slice key, bool *found,
                                             struct tarn_buf *out);

struct tarn_state_batch *tarn_state_batch_new(void);
void tarn_state_batch_free(struct tarn_state_batch *batch);
void tarn_state_batch_drop(struct tarn_state_batch **batch);
void tarn_state_batch_put(struct tarn_state_batch *batch, struct tarn_state *state,
                          enum tarn_family family, struct tarn_slice key, struct tarn_slice value);
void tarn_state_batch_remove(struct tarn_state_batch *batch, struct tarn_state *state,
                             enum tarn_family family, struct tarn_slice key);
/* All keys with from <= key < to. */
void tarn_state_batch_remove_range(struct tarn_state_batch *batch, struct tarn_state *state,
                                   enum tarn_family family, struct tarn_slice from,
                                   struct tarn_slice to);
/* synced: durable when it returns, with all that was written before. Not synced: survives the end
 * of the process, not a loss of power. The batch keeps its contents and is still the caller's. */
TARN_MUST struct tarn_status *tarn_state_write(struct tarn_state *state,
                                               struct tarn_state_batch *batch, bool synced);

/* All keys that begin with `prefix`, in order. Sees the state of this moment.
 *   while (tarn_state_iterator_next(it, &key, &value)) …;  TARN_TRY(tarn_state_iterator_error(it)); */
struct tarn_state_iterator *tarn_state_iterator_new(struct tarn_state *state,
                                                    enum tarn_family family,
                                                    struct tarn_slice prefix);
/* Moves to the first key >= `key` (the next call of next yields it). */
void tarn_state_iterator_seek(struct tarn_state_iterator *it, struct tarn_slice key);
/* Moves to `key`, by a few steps where it lies shortly ahead, else by a seek; false: it isn't there. For many keys in
 * order. */
bool tarn_state_iterator_find(struct tarn_state_iterator *it, struct tarn_slice key,
                              struct tarn_slice *value);
bool tarn_state_iterator_next(struct tarn_state_iterator *it, struct tarn_slice *key,
                              struct tarn_slice *value); /* borrowed until the next step */
TARN_MUST struct tarn_status *tarn_state_iterator_error(struct tarn_state_iterator *it);
void tarn_state_iterator_free(struct tarn_state_iterator *it);
void tarn_state_iterator_drop(struct tarn_state_iterator **it);

/* One moment of all families, for iterators that must agree. Held briefly: what is removed or replaced meanwhile
 * stays on disk. */
struct tarn_state_view;
struct tarn_state_view *tarn_state_view_new(struct tarn_state *state);
void tarn_state_view_free(struct tarn_state_view *view); /* after its iterators; NULL is fine */
void tarn_state_view_drop(struct tarn_state_view **view);
struct tarn_state_range {
    struct tarn_slice from, to;         /* from <= key < to; an empty `to`: no end */
    const struct tarn_state_view *view; /* NULL: this moment */
    bool is_long;                       /* reads far: ahead of itself, and past the cache */
};
struct tarn_state_iterator *tarn_state_iterator_open(struct tarn_state *state,
                                                     enum tarn_family family,
                                                     const struct tarn_state_range *range);

/* Many keys at once, past the log: they are there, and durable, when finish returns. Keys ascend, and none is
 * given twice. A loader that isn't finished leaves nothing. */
/* Around many loads: what overlaps is put together once they are all there, not again and again. Nests. */
void tarn_state_load_begin(struct tarn_state *state);
void tarn_state_load_end(struct tarn_state *state);
struct tarn_state_loader;
TARN_MUST struct tarn_status *tarn_state_loader_new(struct tarn_state *state,
                                                    enum tarn_family family,
                                                    struct tarn_state_loader **out);
TARN_MUST struct tarn_status *tarn_state_loader_put(struct tarn_state_loader *loader,
                                                    struct tarn_slice key, struct tarn_slice value);
TARN_MUST struct tarn_status *tarn_state_loader_finish(struct tarn_state_loader *loader);
void tarn_state_loader_free(struct tarn_state_loader *loader);
void tarn_state_loader_drop(struct tarn_state_loader **loader);

/* Keys that this thread has asked for or stepped to: what a call costs, for tests that hold it to that. */
uint64_t tarn_state_read_count(void);

/* Order-preserving pieces of keys. */
void tarn_key_add_u64(struct tarn_buf *key, uint64_t value);            /* 8 bytes, big endian */
void tarn_key_add_i64(struct tarn_buf *key, int64_t value);             /* sign bit flipped */
void tarn_key_add_bytes(struct tarn_buf *key, struct tarn_slice bytes); /* 00 -> 00 ff, end 00 00 */
/* Take a piece off the front of *key; false: malformed, and nothing is changed. bytes: appends. */
bool tarn_key_take_u64(struct tarn_slice *key, uint64_t *out);
bool tarn_key_take_i64(struct tarn_slice *key, int64_t *out);
bool tarn_key_take_bytes(struct tarn_slice *key, struct tarn_buf *out);

#endif
