#include "table/internal.h"
#include "table/load.h"

/*
 * The files of a whole state, from its manifests into the index: packed, sorted and loaded past the log. Memory is
 * bounded: each of a few threads takes manifests block by block, and loads what it has when that is LOAD_SIZE bytes
 * (load_chunk.c).
 */

#define LOAD_SIZE ((size_t)64 << 20)
#define LOAD_ENTRIES_LARGE 200000 /* more: several loads of each thread, which overlap */
#define LOAD_THREADS 2

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
    struct tarn_load_chunk chunk;
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
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != TARN_ENTRY_ADD ||
            (any_deleted && tarn_map_find(load->deleted, identity_of(p, &entries[i])) != NULL))
            continue;
        tarn_load_chunk_add(&p->chunk, load->table->uuid, &entries[i]);
        if (p->chunk.bytes.size >= LOAD_SIZE)
            TARN_TRY(tarn_load_chunk_write(&p->chunk, load->table->env->state));
    }
    return TARN_OK;
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
    return tarn_load_chunk_write(&p->chunk, p->load->table->env->state);
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
    *p = (struct part){.load = load, .done = tarn_gate_new()};
    tarn_op_init_child(&p->op, load->op);
}

static void part_fini(struct part *p)
{
    tarn_load_chunk_fini(&p->chunk);
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
