#include "table/commit_internal.h"
#include "table/pages.h"

/* The table as an object: opening, ending, moving, and its schemas. */

static struct tarn_table *new_table(const struct tarn_table_env *env, const char *path,
                                    const char *uuid, const char *name)
{
    struct tarn_table *table = tarn_calloc(1, sizeof *table);
    atomic_init(&table->ref_count, 1);
    table->env = env;
    snprintf(table->uuid, sizeof table->uuid, "%s", uuid);
    snprintf(table->main_uuid, sizeof table->main_uuid, "%s", uuid);
    table->names = tarn_arena_new();
    table->path = tarn_arena_str(table->names, tarn_slice_str(path));
    table->name = tarn_arena_str(table->names, tarn_slice_str(name));
    table->database_size = strcspn(name, ".");
    pthread_mutex_init(&table->lock, NULL);
    pthread_mutex_init(&table->sequence_lock, NULL);
    pthread_mutex_init(&table->pin_lock, NULL);
    pthread_mutex_init(&table->index_lock, NULL);
    table->pages = tarn_table__pages_new();
    pthread_rwlock_init(&table->place, NULL);
    pthread_rwlockattr_t writers_first; /* there may always be one more that reads */
    pthread_rwlockattr_init(&writers_first);
    pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&table->assigning, &writers_first);
    pthread_rwlockattr_destroy(&writers_first);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&table->news, &attributes);
    pthread_condattr_destroy(&attributes);
    table->queue_last = &table->queue_first;
    atomic_init(&table->is_compacted, true);
    table->put_begun_ms = INT64_MIN / 2;
    table->mailbox = tarn_mailbox_new(env->exec, name);
    return table;
}

static struct tarn_status *open_table(struct tarn_op *op, struct tarn_table *table)
{
    TARN_TRY(tarn_table__late_restore(table));
    TARN_TRY(
        tarn_table__refresh(op, table)); /* nobody else has it yet: as good as in its mailbox */
    table->opened_id = table->head->id;
    return TARN_OK;
}

struct tarn_status *tarn_table_open(struct tarn_op *op, const struct tarn_table_env *env,
                                    const char *path, const char *uuid, const char *name,
                                    struct tarn_table **out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = new_table(env, path, uuid, name);
    TARN_TRY(open_table(op, table));
    *out = tarn_move(table);
    return TARN_OK;
}

/* The same for the same branch, over restarts: of version 8, "whatever its maker likes". */
static void branch_uuid(const char *main_uuid, struct tarn_slice branch, char out[TARN_UUID_SIZE])
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    uint8_t sum[TARN_SHA256_SIZE];
    size_t n = 0;
    tarn_buf_printf(&text, "%s %.*s", main_uuid, TARN_SLICE_ARG(branch));
    tarn_sha256(tarn_buf_slice(&text), sum);
    sum[6] = (uint8_t)(0x80 | (sum[6] & 0x0f));
    sum[8] = (uint8_t)(0x80 | (sum[8] & 0x3f));
    for (size_t i = 0; i < 16; i++)
        n += (size_t)snprintf(out + n, TARN_UUID_SIZE - n,
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", sum[i]);
}

struct tarn_status *tarn_table_open_branch(struct tarn_op *op, const struct tarn_table_env *env,
                                           const char *path, const char *main_uuid,
                                           struct tarn_slice branch, const char *name,
                                           struct tarn_table **out)
{
    char uuid[TARN_UUID_SIZE];
    branch_uuid(main_uuid, branch, uuid);
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = new_table(env, path, uuid, name);
    snprintf(table->main_uuid, sizeof table->main_uuid, "%s", main_uuid);
    snprintf(table->branch, sizeof table->branch, "%.*s", TARN_SLICE_ARG(branch));
    TARN_TRY(open_table(op, table));
    *out = tarn_move(table);
    return TARN_OK;
}

struct tarn_status *tarn_table_forget_branch(const struct tarn_table_env *env,
                                             const char *main_uuid, struct tarn_slice branch)
{
    char uuid[TARN_UUID_SIZE];
    branch_uuid(main_uuid, branch, uuid);
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = new_table(env, "", uuid, "");
    return tarn_table__index_clear(table, true);
}

struct tarn_table *tarn_table__bare(const struct tarn_table_env *env, const char *path,
                                    struct tarn_slice branch, const char *name)
{
    char uuid[TARN_UUID_SIZE];
    tarn_uuid_random(uuid);
    struct tarn_table *table = new_table(env, path, uuid, name);
    snprintf(table->branch, sizeof table->branch, "%.*s", TARN_SLICE_ARG(branch));
    return table;
}

const char *tarn_table_branch(const struct tarn_table *table)
{
    return table->branch;
}

const char *tarn_table_main_uuid(const struct tarn_table *table)
{
    return table->main_uuid;
}

void tarn_table_is_new(struct tarn_table *table)
{
    table->slot_filled = true;
}

struct tarn_table *tarn_table_ref(struct tarn_table *table)
{
    atomic_fetch_add(&table->ref_count, 1);
    return table;
}

void tarn_table_unref(struct tarn_table *table)
{
    if (table == NULL || atomic_fetch_sub(&table->ref_count, 1) != 1)
        return;
    tarn_mailbox_free(table->mailbox);
    tarn_table__hint_wait(table);
    tarn_table__merge_free(table);
    tarn_table__attempt_free(table);
    tarn_table__late_free(table);
    tarn_table__sequences_end(table);
    tarn_table__index_files_end(table);
    tarn_head_free(table->head);
    tarn_table_view_unref(table->view == NULL ? NULL : &table->view->view);
    tarn_table__pages_free(table->pages);
    tarn_buf_drop(&table->forget_doubtful);
    tarn_buf_drop(&table->forget_void);
    pthread_mutex_destroy(&table->index_lock);
    pthread_rwlock_destroy(&table->place);
    pthread_rwlock_destroy(&table->assigning);
    pthread_mutex_destroy(&table->sequence_lock);
    pthread_mutex_destroy(&table->pin_lock);
    pthread_cond_destroy(&table->news);
    pthread_mutex_destroy(&table->lock);
    tarn_arena_free(table->names);
    free(table);
}

void tarn_table_drop_ref(struct tarn_table **table)
{
    tarn_table_unref(*table);
    *table = NULL;
}

const char *tarn_table_path(const struct tarn_table *table)
{
    return table->path;
}

const char *tarn_table_uuid(const struct tarn_table *table)
{
    return table->uuid;
}

const char *tarn_table_name(const struct tarn_table *table)
{
    return table->name;
}

void tarn_table_set_compacted(struct tarn_table *table, bool is_compacted)
{
    atomic_store(&table->is_compacted, is_compacted);
}

bool tarn_table_is_compacted(const struct tarn_table *table)
{
    return atomic_load(&table->is_compacted);
}

void tarn_table_names(struct tarn_op *op, const struct tarn_table *table,
                      struct tarn_slice *database, struct tarn_slice *name)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&table->lock;
    pthread_mutex_lock(lock);
    struct tarn_slice whole = tarn_arena_copy(op->arena, tarn_slice_str(table->name));
    size_t n = table->database_size;
    pthread_mutex_unlock(lock);
    *database = tarn_slice_of(whole.data, n);
    *name = tarn_slice_of(whole.data + n + 1, whole.size - n - 1);
}

void tarn_table_set_names(struct tarn_table *table, struct tarn_slice database,
                          struct tarn_slice name)
{
    pthread_mutex_lock(&table->lock);
    table->name = tarn_arena_printf(table->names, "%.*s.%.*s", TARN_SLICE_ARG(database),
                                    TARN_SLICE_ARG(name));
    table->database_size = database.size;
    pthread_mutex_unlock(&table->lock);
}

struct tarn_store *tarn_table_store(const struct tarn_table *table)
{
    return table->env->store;
}

const struct tarn_table_env *tarn_table_env(const struct tarn_table *table)
{
    return table->env;
}

/* --- the end of a table, and its moves --- */

struct end_job {
    struct tarn_op *op;
    struct tarn_table *table;
    const char *path; /* a move */
    bool forget;      /* the end */
    struct tarn_status *status;
};

static void run_retire(void *arg)
{
    struct end_job *job = arg;
    tarn_table__hint_wait(job->table);
    tarn_table__expire_wait(job->table);
    tarn_table__merge_end(job->table); /* nothing is written into a folder that is removed */
    pthread_mutex_lock(&job->table->lock);
    job->table->gone = TARN_TABLE_NOT_FOUND;
    pthread_mutex_unlock(&job->table->lock);
    if (job->forget)
        job->status = tarn_table__index_clear(job->table, true);
}

struct tarn_status *tarn_table_retire(struct tarn_op *op, struct tarn_table *table, bool forget)
{
    struct end_job job = {.op = op, .table = table, .forget = forget};
    tarn_mailbox_call(table->mailbox, run_retire, &job);
    return job.status;
}

static void run_move(void *arg)
{
    struct end_job *job = arg;
    struct tarn_table *table = job->table;
    tarn_table__hint_wait(table);
    job->status = tarn_store_move_folder(table->env->store, job->op, table->path, job->path);
    if (job->status != TARN_OK)
        return;
    pthread_mutex_lock(&table->lock);
    table->path = tarn_arena_str(table->names, tarn_slice_str(job->path));
    pthread_mutex_unlock(&table->lock);
}

struct tarn_status *tarn_table_move(struct tarn_op *op, struct tarn_table *table, const char *path)
{
    struct end_job job = {.op = op, .table = table, .path = path};
    tarn_table__expire_cancel(table); /* it may be long in the folder */
    /* Before the mailbox: those that are in the folder now may still need it to look. */
    tarn_exec_write_lock(&table->place);
    tarn_mailbox_call(table->mailbox, run_move, &job);
    pthread_rwlock_unlock(&table->place);
    return job.status;
}

pthread_rwlock_t *tarn_table_assigning(struct tarn_table *table)
{
    return &table->assigning;
}

pthread_rwlock_t *tarn_table__enter(struct tarn_table *table)
{
    tarn_exec_read_lock(&table->place);
    return &table->place;
}

void tarn_table__leave(pthread_rwlock_t **place)
{
    pthread_rwlock_unlock(*place);
}

/* --- schemas --- */

/* A schema never changes: while the store is away, that of the view will do. */
static struct tarn_status *known_schema(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                        bool *found, struct tarn_schema *out)
{
    TARN_OWN(tarn_table_view_drop)
    const struct tarn_table_view *view = tarn_table__view_ref(table);
    struct tarn_status *s = tarn_table__read_schema(op, table, id, op->arena, found, out);
    if (!tarn_store_is_away(s) || view->schema.id != id)
        return s;
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    tarn_status_free(s);
    tarn_schema_encode(&view->schema, &json);
    *found = true;
    return tarn_schema_decode(tarn_arena_copy(op->arena, tarn_buf_slice(&json)), op->arena, out);
}

struct tarn_status *tarn_table_schema(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                      const struct tarn_schema **out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_TRY(tarn_table__check_here(table));
    struct tarn_schema *schema = tarn_arena_calloc(op->arena, 1, sizeof *schema);
    bool found;
    TARN_TRY(known_schema(op, table, id, &found, schema));
    if (!found)
        return tarn_status_new(TARN_SCHEMA_MALFORMED, "table %s has no schema %" PRId64,
                               table->name, id);
    *out = schema;
    return TARN_OK;
}

struct tarn_status *tarn_table_created(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_table_view *view, int64_t *time_ms)
{
    *time_ms = atomic_load(&table->created_ms);
    if (*time_ms != 0)
        return TARN_OK;
    struct tarn_schema first = view->schema;
    bool found = true;
    if (first.id != 0) {
        TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
        TARN_TRY(tarn_table__read_schema(op, table, 0, op->arena, &found, &first));
    }
    *time_ms = found ? first.time_ms : view->schema.time_ms;
    atomic_store(&table->created_ms, *time_ms);
    return TARN_OK;
}

struct tarn_status *tarn_table_schemas(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_schema ***out, size_t *count)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, table, &view));
    const struct tarn_schema **list =
        tarn_arena_calloc(op->arena, (size_t)view->schema.id + 1, sizeof *list);
    size_t n = 0;
    for (int64_t id = 0; id <= view->schema.id; id++) {
        struct tarn_schema *schema = tarn_arena_calloc(op->arena, 1, sizeof *schema);
        bool found;
        TARN_TRY(tarn_table__read_schema(op, table, id, op->arena, &found, schema));
        if (found)
            list[n++] = schema;
    }
    *out = list;
    *count = n;
    return TARN_OK;
}

#define SCHEMA_PUT_TRIES 3

struct schema_job {
    struct tarn_op *op;
    struct tarn_table *table;
    const struct tarn_schema *next;
    bool had_snapshot;
    bool *empty; /* NULL: it may have files */
    struct tarn_status *status;
};

/* *ours: the file is there, and says what ours does, by whichever try. OUTCOME_UNKNOWN while nobody can say. */
static struct tarn_status *put_schema_file(struct schema_job *job, const char *key, bool *ours)
{
    struct tarn_store *store = job->table->env->store;
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf there = {0};
    struct tarn_status *s = TARN_OK;
    tarn_schema_encode(job->next, &json);
    for (int tries = 0; tries < SCHEMA_PUT_TRIES; tries++) {
        tarn_status_free(s);
        s = tarn_store_put_if_absent(store, job->op, key, tarn_buf_slice(&json), ours);
        if (s == TARN_OK && (*ours || tries == 0))
            return TARN_OK;
        if (s == TARN_OK) { /* a try that wasn't answered may have made it */
            TARN_TRY(tarn_store_get(store, job->op, key, &there));
            *ours = tarn_slice_equal(tarn_buf_slice(&there), tarn_buf_slice(&json));
            return TARN_OK;
        }
        if (tries == 0 && tarn_status_reason(s) != TARN_OUTCOME_UNKNOWN)
            return s; /* nothing happened */
    }
    struct tarn_status *unknown =
        tarn_status_new(TARN_OUTCOME_UNKNOWN,
                        "whether schema %" PRId64
                        " of table %s was made is not known, look before you change it again: %s",
                        job->next->id, job->table->name, tarn_status_message(s));
    tarn_status_free(s);
    return unknown;
}

static struct tarn_status *has_files(struct tarn_table *table, bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    struct tarn_slice key, value;
    tarn_table__bucket_prefix(table->uuid, tarn_slice_str(NULL), NULL, &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_LIVE, tarn_buf_slice(&prefix));
    *out = tarn_state_iterator_next(it, &key, &value);
    return tarn_state_iterator_error(it);
}

static struct tarn_status *put_schema(struct schema_job *job)
{
    struct tarn_table *table = job->table;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_table__refresh(job->op, table));
    int64_t current = table->view->view.schema.id;
    if (job->next->id != current + 1)
        return tarn_status_new(TARN_SCHEMA_CONFLICT, "table %s has schema %" PRId64 " by now",
                               table->name, current);
    if (table->view->view.has_snapshot && !job->had_snapshot)
        return tarn_status_new(TARN_SCHEMA_CONFLICT, "table %s has its first snapshot by now",
                               table->name);
    if (job->empty != NULL) {
        bool has = false;
        TARN_TRY(tarn_table__settle(job->op, table));
        TARN_TRY(has_files(table, &has));
        *job->empty = !has;
        if (has)
            return TARN_OK;
    }
    const char *key = tarn_table__key(job->op, table, "schema/schema-%" PRId64, job->next->id);
    bool ours;
    TARN_TRY(put_schema_file(job, key, &ours));
    if (!ours)
        return tarn_status_new(TARN_SCHEMA_CONFLICT,
                               "another writer made schema %" PRId64 " of table %s first",
                               job->next->id, table->name);
    table->own_schema_id = job->next->id;
    return tarn_table__look_schema(job->op, table);
}

static void run_put_schema(void *arg)
{
    struct schema_job *job = arg;
    job->status = put_schema(job);
}

struct tarn_status *tarn_table_put_schema(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_schema *next, bool had_snapshot)
{
    struct schema_job job = {.op = op, .table = table, .next = next, .had_snapshot = had_snapshot};
    tarn_mailbox_call(table->mailbox, run_put_schema, &job);
    return job.status;
}

struct tarn_status *tarn_table_put_schema_if_empty(struct tarn_op *op, struct tarn_table *table,
                                                   const struct tarn_schema *next, bool *empty)
{
    struct schema_job job = {
        .op = op, .table = table, .next = next, .had_snapshot = true, .empty = empty};
    tarn_mailbox_call(table->mailbox, run_put_schema, &job);
    return job.status;
}
