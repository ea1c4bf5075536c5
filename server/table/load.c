#include "table/index.h"

#include "table/internal.h"

/*
 * The files of a whole state, from its manifests into the index: packed, sorted and loaded past the log. Memory is
 * bounded: each of a few threads takes manifests block by block, and loads what it has when that is LOAD_SIZE bytes.
 */

#define LOAD_SIZE ((size_t)48 << 20)
#define LOAD_ENTRIES_MIN 5000 /* fewer go through the log: a file of RocksDB's own costs a sync */
#define LOAD_ENTRIES_LARGE 200000 /* more: several loads of each thread, which overlap */
#define LOAD_THREADS 2

/* --- entries that are loaded together --- */

struct record {
    uint64_t
        head; /* the first bytes in which keys differ, as a number: most comparisons end there */
    struct tarn_slice key, value, other; /* other: what a second family has under the same key */
};

struct chunk {
    struct record *live, *names; /* live: with statistics as `other` */
    size_t count, live_capacity, name_capacity;
    struct tarn_arena *arena;
    struct tarn_buf buf;
};

static void chunk_fini(struct chunk *c)
{
    free(c->live);
    free(c->names);
    tarn_arena_free(c->arena);
    tarn_buf_drop(&c->buf);
}

/* What was added to buf is a piece in the arena from now on. */
static struct tarn_slice settle(struct chunk *c)
{
    struct tarn_slice copy = tarn_arena_copy(c->arena, tarn_buf_slice(&c->buf));
    tarn_buf_clear(&c->buf);
    return copy;
}

static void chunk_add(struct chunk *c, const char *uuid, const struct tarn_manifest_entry *entry)
{
    size_t names = c->count;
    TARN_GROW(c->live, c->count, c->live_capacity);
    TARN_GROW(c->names, names, c->name_capacity);
    struct record *live = &c->live[c->count], *name = &c->names[c->count];
    tarn_table__live_key(uuid, entry, &c->buf);
    live->key = settle(c);
    tarn_table__live_value(entry, 0, &c->buf);
    live->value = settle(c);
    tarn_manifest_stats_pack(&entry->file, &c->buf);
    live->other = settle(c);
    tarn_table__name_key(uuid, entry, &c->buf);
    name->key = settle(c);
    tarn_key_add_i64(&c->buf, entry->file.creation_time_ms);
    name->value = settle(c);
    c->count++;
}

static int by_key(const void *a, const void *b)
{
    const struct record *left = a, *right = b;
    if (left->head != right->head)
        return left->head < right->head ? -1 : 1;
    return tarn_slice_compare(left->key, right->key);
}

static size_t common_size(const struct record *records, size_t count)
{
    size_t common = count == 0 ? 0 : records[0].key.size;
    for (size_t i = 1; i < count; i++) {
        size_t size = TARN_MIN(common, records[i].key.size), n = 0;
        while (n < size && records[i].key.data[n] == records[0].key.data[n])
            n++;
        common = n;
    }
    return common;
}

static void sort_records(struct record *records, size_t count)
{
    size_t common = common_size(records, count);
    for (size_t i = 0; i < count; i++) {
        struct tarn_slice key = records[i].key;
        records[i].head = 0;
        for (size_t n = 0; n < 8; n++) /* a key that ends counts as zeros: then the bytes decide */
            records[i].head =
                records[i].head << 8 | (common + n < key.size ? key.data[common + n] : (uint8_t)0);
    }
    qsort(records, count, sizeof *records, by_key);
}

static void batch_records(struct tarn_state_batch *batch, struct tarn_state *state,
                          enum tarn_family family, const struct record *records, size_t count,
                          bool other)
{
    for (size_t i = 0; i < count; i++)
        tarn_state_batch_put(batch, state, family, records[i].key,
                             other ? records[i].other : records[i].value);
}

/* In order already. */
static struct tarn_status *load_records(struct tarn_state *state, enum tarn_family family,
                                        const struct record *records, size_t count, bool other)
{
    TARN_OWN(tarn_state_loader_drop) struct tarn_state_loader *loader = NULL;
    TARN_TRY(tarn_state_loader_new(state, family, &loader));
    for (size_t i = 0; i < count;
         i++) /* twice the same: a file that is named twice is there once */
        if (i == 0 || !tarn_slice_equal(records[i].key, records[i - 1].key))
            TARN_TRY(tarn_state_loader_put(loader, records[i].key,
                                           other ? records[i].other : records[i].value));
    return tarn_state_loader_finish(loader);
}

static struct tarn_status *chunk_write(struct chunk *c, struct tarn_state *state)
{
    if (c->count < LOAD_ENTRIES_MIN) {
        TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
        batch_records(batch, state, TARN_FAMILY_LIVE, c->live, c->count, false);
        batch_records(batch, state, TARN_FAMILY_STATS, c->live, c->count, true);
        batch_records(batch, state, TARN_FAMILY_NAMES, c->names, c->count, false);
        return tarn_state_write(state, batch, false);
    }
    sort_records(c->live, c->count);
    sort_records(c->names, c->count);
    TARN_TRY(load_records(state, TARN_FAMILY_STATS, c->live, c->count, true));
    TARN_TRY(load_records(state, TARN_FAMILY_NAMES, c->names, c->count, false));
    return load_records(state, TARN_FAMILY_LIVE, c->live, c->count, false);
}

static struct tarn_status *chunk_flush(struct chunk *c, struct tarn_state *state)
{
    struct tarn_status *s = chunk_write(c, state);
    tarn_arena_drop(&c->arena);
    c->arena = tarn_arena_new();
    c->count = 0;
    return s;
}

/* --- manifests --- */

struct load {
    const struct tarn_op *op;
    struct tarn_table *table;
    const struct tarn_manifest_file *files;
    size_t count;
    struct tarn_map *deleted; /* identities; full before entries are loaded */
    pthread_mutex_t lock;
    size_t next;             /* of files; of lock, as below */
    struct tarn_status *end; /* the first error: nobody goes on */
};

struct part { /* one thread's */
    struct load *load;
    struct tarn_op op;
    struct chunk chunk;
    struct tarn_buf identity;
    struct tarn_gate *done;
};

static struct tarn_slice identity_of(struct part *p, const struct tarn_manifest_entry *entry)
{
    tarn_buf_clear(&p->identity);
    tarn_manifest_identity(entry, &p->identity);
    return tarn_buf_slice(&p->identity);
}

/* An ADD of the same identity is no live file (docs/format.md, "Merging entries"). */
static struct tarn_status *note_deleted(void *arg, struct tarn_manifest_entry *entries,
                                        size_t count)
{
    struct part *p = arg;
    for (size_t i = 0; i < count; i++)
        if (entries[i].kind == TARN_ENTRY_DELETE)
            tarn_map_set(p->load->deleted, identity_of(p, &entries[i]), p->load);
    return TARN_OK;
}

static struct tarn_status *take_added(void *arg, struct tarn_manifest_entry *entries, size_t count)
{
    struct part *p = arg;
    struct load *load = p->load;
    bool any_deleted = tarn_map_count(load->deleted) > 0;
    for (size_t i = 0; i < count; i++)
        if (entries[i].kind == TARN_ENTRY_ADD &&
            !(any_deleted && tarn_map_find(load->deleted, identity_of(p, &entries[i])) != NULL))
            chunk_add(&p->chunk, load->table->uuid, &entries[i]);
    return tarn_arena_size(p->chunk.arena) < LOAD_SIZE
               ? TARN_OK
               : chunk_flush(&p->chunk, load->table->env->state);
}

static bool take_manifest(struct load *load, size_t *out)
{
    pthread_mutex_lock(&load->lock);
    bool more = load->end == TARN_OK && load->next < load->count;
    *out = more ? load->next++ : 0;
    pthread_mutex_unlock(&load->lock);
    return more;
}

static struct tarn_status *load_part(struct part *p)
{
    size_t i;
    while (take_manifest(p->load, &i))
        TARN_TRY(
            tarn_table__walk_manifest(&p->op, p->load->table, &p->load->files[i], take_added, p));
    return chunk_flush(&p->chunk, p->load->table->env->state);
}

static void run_part(void *arg)
{
    struct part *p = arg;
    struct load *load = p->load;
    struct tarn_status *s = load_part(p);
    pthread_mutex_lock(&load->lock);
    if (load->end == TARN_OK)
        load->end = tarn_move(s);
    pthread_mutex_unlock(&load->lock);
    tarn_status_free(s);
    tarn_gate_open(p->done);
}

static void part_init(struct part *p, struct load *load)
{
    *p = (struct part){.load = load, .done = tarn_gate_new(), .chunk = {.arena = tarn_arena_new()}};
    tarn_op_init_child(&p->op, load->op);
}

static void part_fini(struct part *p)
{
    chunk_fini(&p->chunk);
    tarn_buf_drop(&p->identity);
    tarn_gate_free(p->done);
    tarn_op_fini(&p->op);
}

static struct tarn_status *find_deleted(struct load *load)
{
    TARN_OWN(part_fini) struct part p;
    part_init(&p, load);
    for (size_t i = 0; i < load->count; i++)
        if (load->files[i].deleted_count > 0)
            TARN_TRY(
                tarn_table__walk_manifest(&p.op, load->table, &load->files[i], note_deleted, &p));
    return TARN_OK;
}

static int64_t entries_of(const struct tarn_manifest_file *files, size_t count)
{
    int64_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(n, files[i].added_count, &n))
            return INT64_MAX;
    return n;
}

struct tarn_status *tarn_table__index_load(struct tarn_op *op, struct tarn_table *table,
                                           const struct tarn_manifest_file *files, size_t count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *deleted = tarn_map_new();
    struct load load = {.op = op,
                        .table = table,
                        .files = files,
                        .count = count,
                        .deleted = deleted,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    struct part parts[LOAD_THREADS];
    TARN_TRY(find_deleted(&load));
    bool is_large = entries_of(files, count) > LOAD_ENTRIES_LARGE;
    if (is_large)
        tarn_state_load_begin(table->env->state);
    for (int i = 0; i < LOAD_THREADS; i++)
        part_init(&parts[i], &load);
    for (int i = 1; i < LOAD_THREADS; i++)
        tarn_exec_post(table->env->exec, run_part, &parts[i]);
    run_part(&parts[0]);
    for (int i = 0; i < LOAD_THREADS; i++) {
        tarn_gate_wait(parts[i].done, NULL);
        part_fini(&parts[i]);
    }
    if (is_large)
        tarn_state_load_end(table->env->state);
    return load.end;
}
