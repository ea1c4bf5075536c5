#include "table/commit_internal.h"
#include "table/index.h"

/*
 * The look for what others wrote, and the views that readers hold of what it found: the folder is asked where the last
 * answer is older than [commit] foreign_check.
 */

/* --- views --- */

/* A schema and its options, which many views share. */
struct schema_box {
    atomic_int ref_count;
    struct tarn_arena *arena;
    struct tarn_schema schema;
    struct tarn_options options;
    _Atomic(struct tarn_buf *) printed; /* owned; NULL: nobody has asked for it yet */
};

static void printed_free(struct tarn_buf *printed)
{
    if (printed != NULL)
        tarn_buf_drop(printed);
    free(printed);
}

static void schema_box_unref(struct schema_box *box)
{
    if (box == NULL || atomic_fetch_sub(&box->ref_count, 1) != 1)
        return;
    printed_free(atomic_load(&box->printed));
    tarn_arena_free(box->arena);
    free(box);
}

static void schema_box_drop(struct schema_box **box)
{
    schema_box_unref(*box);
    *box = NULL;
}

struct tarn_slice tarn_table_view_print(const struct tarn_table_view *view,
                                        void (*print)(const struct tarn_schema *schema,
                                                      struct tarn_buf *out))
{
    struct schema_box *box = ((struct view_box *)(uintptr_t)view)->schema;
    struct tarn_buf *printed = atomic_load(&box->printed);
    if (printed == NULL) {
        struct tarn_buf *mine = tarn_calloc(1, sizeof *mine);
        print(&box->schema, mine);
        if (atomic_compare_exchange_strong(&box->printed, &printed, mine))
            printed = mine;
        else
            printed_free(mine); /* another was first */
    }
    return tarn_buf_slice(printed);
}

void tarn_table_view_unref(const struct tarn_table_view *view)
{
    struct view_box *box = (struct view_box *)(uintptr_t)view;
    if (box == NULL || atomic_fetch_sub(&box->ref_count, 1) != 1)
        return;
    schema_box_unref(box->schema);
    tarn_arena_free(box->arena);
    free(box);
}

void tarn_table_view_drop(const struct tarn_table_view **view)
{
    tarn_table_view_unref(*view);
    *view = NULL;
}

static void view_box_drop(struct view_box **box)
{
    tarn_table_view_unref(*box == NULL ? NULL : &(*box)->view);
    *box = NULL;
}

/* Which schema is the newest? From that id on, or one of these. */
#define SCHEMA_ANEW (-1)  /* the past was rewritten: any may be another by now, or none be left */
#define SCHEMA_KNOWN (-2) /* that of the present view */
#define SCHEMA_NEXT (-3)  /* that one, or is there a newer one? */

/* A reference to the newest schema. */
static struct tarn_status *find_schema(struct tarn_op *op, struct tarn_table *table, int64_t from,
                                       struct schema_box **out)
{
    bool anew = table->view == NULL || from >= SCHEMA_ANEW;
    struct schema_box *known = anew ? NULL : table->view->schema;
    int64_t id = known != NULL ? known->schema.id : TARN_MAX(from, (int64_t)SCHEMA_ANEW);
    if (from != SCHEMA_KNOWN || known == NULL) {
        TARN_TRY(tarn_table__latest_schema_id(op, table, id, &id));
        table->schema_looked_ms = tarn_clock_mono_ms();
    }
    if (known != NULL && id == known->schema.id) {
        atomic_fetch_add(&known->ref_count, 1);
        *out = known;
        return TARN_OK;
    }
    TARN_OWN(schema_box_drop) struct schema_box *box = tarn_calloc(1, sizeof *box);
    atomic_init(&box->ref_count, 1);
    box->arena = tarn_arena_new();
    bool found;
    TARN_TRY(tarn_table__read_schema(op, table, id, box->arena, &found, &box->schema));
    if (!found) /* the folder was removed or rewritten below us: look at it anew */
        return tarn_status_new(TARN_TABLE_NOT_FOUND, "table %s: schema %" PRId64 " is gone from %s",
                               table->name, id, table->path);
    struct tarn_status *s = tarn_options_parse(&box->schema, box->arena, &box->options);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %s, schema-%" PRId64, table->name, id);
    *out = tarn_move(box);
    return TARN_OK;
}

#define NOT_LOOKED INT64_MIN

/* looked_at_ms: the head is what the folder said then; NOT_LOOKED: nobody asked it. */
static struct tarn_status *publish(struct tarn_op *op, struct tarn_table *table, int64_t earliest,
                                   int64_t looked_at_ms, int64_t schema_from)
{
    TARN_OWN(view_box_drop) struct view_box *box = tarn_calloc(1, sizeof *box);
    atomic_init(&box->ref_count, 1);
    box->arena = tarn_arena_new();
    TARN_TRY(find_schema(op, table, schema_from, &box->schema));
    box->view.schema = box->schema->schema;
    box->view.options = box->schema->options;
    box->view.earliest_id = earliest;
    if (table->head->id != 0) {
        box->view.has_snapshot = true;
        struct tarn_slice json = tarn_arena_copy(box->arena, table->head->json);
        TARN_TRY(tarn_snapshot_decode(json, box->arena, &box->view.snapshot));
        box->view.snapshot.json = json;
    }
    if (table->view != NULL &&
        box->view.schema.id > TARN_MAX(table->view->view.schema.id, table->own_schema_id))
        tarn_log(op, TARN_WARN, "table.schema_adopted", "table=%s schema=%" PRId64,
                 tarn_log_quote(op, table->name), box->view.schema.id);
    pthread_mutex_lock(&table->lock);
    struct view_box *old = table->view;
    table->view = tarn_move(box);
    if (looked_at_ms != NOT_LOOKED)
        table->looked_ms = table->seen_ms = looked_at_ms;
    pthread_mutex_unlock(&table->lock);
    tarn_table_view_unref(old == NULL ? NULL : &old->view);
    return TARN_OK;
}

static int64_t earliest_id(const struct tarn_table *table)
{
    int64_t earliest = table->view->view.earliest_id;
    return earliest != 0 ? earliest : table->head->id;
}

struct tarn_status *tarn_table__publish_view(struct tarn_op *op, struct tarn_table *table)
{
    return publish(op, table, earliest_id(table), NOT_LOOKED, SCHEMA_KNOWN);
}

struct tarn_status *tarn_table__set_earliest(struct tarn_op *op, struct tarn_table *table,
                                             int64_t id)
{
    return publish(op, table, id, NOT_LOOKED, SCHEMA_KNOWN);
}

struct tarn_status *tarn_table__look_schema(struct tarn_op *op, struct tarn_table *table)
{
    bool next;
    int64_t id = table->view->view.schema.id;
    TARN_TRY(tarn_store_stat(table->env->store, op,
                             tarn_table__key(op, table, "schema/schema-%" PRId64, id + 1), &next,
                             NULL));
    table->schema_looked_ms = tarn_clock_mono_ms();
    return next ? publish(op, table, earliest_id(table), NOT_LOOKED, SCHEMA_NEXT) : TARN_OK;
}

struct tarn_status *tarn_table__look_schema_from(struct tarn_op *op, struct tarn_table *table,
                                                 int64_t id)
{
    return publish(op, table, earliest_id(table), NOT_LOOKED, id);
}

const struct tarn_table_view *tarn_table__view_ref(struct tarn_table *table)
{
    pthread_mutex_lock(&table->lock);
    const struct tarn_table_view *view = &table->view->view;
    atomic_fetch_add(&table->view->ref_count, 1);
    pthread_mutex_unlock(&table->lock);
    return view;
}

const struct tarn_table_view *tarn_table_last_view(struct tarn_table *table)
{
    return tarn_table__view_ref(table);
}

/* --- the look --- */

/* Is the head still the newest snapshot, the earliest still there, the schema still the last? */
static struct tarn_status *unchanged(struct tarn_op *op, struct tarn_table *table, bool *out)
{
    *out = false;
    if (table->head == NULL || table->view == NULL)
        return TARN_OK;
    TARN_TRY(tarn_table__late_take_back(op, table));
    struct tarn_store *store = table->env->store;
    bool next_snapshot, next_schema;
    TARN_TRY(tarn_store_stat(
        store, op, tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, table->head->id + 1),
        &next_snapshot, NULL));
    TARN_TRY(tarn_store_stat(
        store, op,
        tarn_table__key(op, table, "schema/schema-%" PRId64, table->view->view.schema.id + 1),
        &next_schema, NULL));
    if (next_snapshot || next_schema)
        return TARN_OK;
    if (table->head->id == 0) {
        struct tarn_range range;
        TARN_TRY(tarn_table__find_range(op, table, &range));
        *out = range.latest == 0;
        return TARN_OK;
    }
    bool earliest, here;
    TARN_TRY(tarn_store_stat(
        store, op,
        tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, table->view->view.earliest_id),
        &earliest, NULL));
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    TARN_TRY(
        tarn_table__read_snapshot(op, table, table->head->id, op->arena, &here, &json, &snapshot));
    *out = earliest && here && tarn_slice_equal(json, table->head->json);
    return TARN_OK;
}

/* Is what was the head no longer there as it was? */
static struct tarn_status *is_rewritten(struct tarn_op *op, struct tarn_table *table, bool *out)
{
    bool stands = table->view == NULL || (table->head != NULL && table->head->id == 0);
    if (table->head != NULL && table->head->id != 0)
        TARN_TRY(tarn_table__check_ground(op, table, table->head->id, table->head->json, &stands));
    *out = !stands;
    return TARN_OK;
}

static bool is_missing(const struct tarn_status *s)
{
    enum tarn_reason reason = tarn_status_reason(s);
    return reason == TARN_SNAPSHOT_EXPIRED || reason == TARN_SNAPSHOT_ROLLED_BACK ||
           reason == TARN_SNAPSHOT_NOT_FOUND || reason == TARN_OBJECT_NOT_FOUND;
}

/* Do the snapshot's lists still exist? An expiry that stopped half way, or a put that came after others had used and
 * expired its id, leaves one without. */
struct tarn_status *tarn_table__has_lists(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                          bool *out)
{
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    TARN_TRY(tarn_table__read_snapshot(op, table, id, op->arena, out, &json, &snapshot));
    const struct tarn_slice lists[] = {snapshot.base_list, snapshot.delta_list};
    for (size_t i = 0; i < TARN_COUNT_OF(lists) && *out; i++)
        TARN_TRY(tarn_store_stat(
            table->env->store, op,
            tarn_table__key(op, table, "manifest/%.*s", TARN_SLICE_ARG(lists[i])), out, NULL));
    return TARN_OK;
}

/* What the folder holds of history: the earliest is the first that can be read. What was looked at before isn't again. */
static struct tarn_status *find_history(struct tarn_op *op, struct tarn_table *table,
                                        struct tarn_range *range)
{
    TARN_TRY(tarn_table__late_take_back(op, table));
    TARN_TRY(tarn_table__find_range(op, table, range));
    int64_t known = table->view == NULL ? INT64_MAX : table->view->view.earliest_id;
    bool readable = false;
    while (range->earliest < TARN_MIN(range->latest, known) && !readable) {
        TARN_TRY(tarn_table__has_lists(op, table, range->earliest, &readable));
        range->earliest += !readable;
    }
    return TARN_OK;
}

/* The index follows the folder to *range, which begins where the index does, and the head is the snapshot whose bytes were indexed last: another may have its id
 * by the time the head is read. */
static struct tarn_status *reach(struct tarn_op *op, struct tarn_table *table,
                                 struct tarn_range *range, struct tarn_head **out)
{
    int64_t indexed, first;
    uint64_t hash = 0;
    bool found;
    TARN_TRY(tarn_table__horizon_rise(table, *range));
    TARN_TRY(tarn_table__index_catch_up(op, table, *range));
    TARN_TRY(tarn_table__indexed_first(table, &first));
    TARN_OWN(tarn_head_drop) struct tarn_head *head = NULL;
    TARN_TRY(tarn_table__load_head(op, table, range->latest, &found, &head));
    if (found)
        TARN_TRY(tarn_table__indexed_id(table, &indexed, &hash));
    if (!found || (head->id != 0 && (indexed != head->id || hash != tarn_xxh64(head->json, 0))))
        return tarn_status_new(TARN_SNAPSHOT_ROLLED_BACK,
                               "table %s: snapshot %" PRId64 " was rolled back while it was read",
                               table->name, range->latest);
    range->earliest = TARN_MAX(range->earliest, first); /* below it the history is another one */
    *out = tarn_move(head);
    return TARN_OK;
}

/* The newest snapshot's bytes, hashed; 0: there is none. */
static struct tarn_status *hash_newest(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                       uint64_t *out)
{
    TARN_OWN(tarn_head_drop) struct tarn_head *head = NULL;
    bool found;
    TARN_TRY(tarn_table__load_head(op, table, id, &found, &head));
    *out = found && id != 0 ? tarn_xxh64(head->json, 0) : 0;
    return TARN_OK;
}

#define FOLLOW_TRIES_MAX 50

/* What others expire or roll back while it is read is no fault of the folder's: then once more. */
static struct tarn_status *follow(struct tarn_op *op, struct tarn_table *table,
                                  struct tarn_range *range, struct tarn_head **head)
{
    TARN_TRY(find_history(op, table, range));
    uint64_t hash;
    TARN_TRY(hash_newest(op, table, range->latest, &hash));
    for (int tries = 1;; tries++) {
        struct tarn_range now;
        uint64_t hash_now;
        struct tarn_status *s = reach(op, table, range, head);
        if (!is_missing(s))
            return s;
        bool moves = tarn_status_reason(s) == TARN_SNAPSHOT_ROLLED_BACK; /* not what is there now */
        if (tries == FOLLOW_TRIES_MAX) {
            tarn_status_free(s);
            return tarn_status_new(
                TARN_STORE_UNAVAILABLE,
                "table %s: others rewrote its history %d times while it was read", table->name,
                tries);
        }
        struct tarn_status *unknown = find_history(op, table, &now);
        if (unknown == TARN_OK)
            unknown = hash_newest(op, table, now.latest, &hash_now);
        if (moves && unknown != TARN_OK) {
            tarn_status_free(s);
            return unknown;
        }
        if (unknown != TARN_OK || (!moves && now.earliest == range->earliest &&
                                   now.latest == range->latest && hash_now == hash)) {
            tarn_status_free(unknown);
            return s;
        }
        tarn_status_free(s);
        *range = now;
        hash = hash_now;
        TARN_TRY(tarn_op_check(op));
    }
}

/* The newest snapshot that this process knows of; where it just begins, the one that the index has. 0: none. */
static struct tarn_status *known_id(struct tarn_table *table, int64_t *out)
{
    uint64_t hash;
    if (table->view == NULL)
        return tarn_table__indexed_id(table, out, &hash);
    const struct tarn_table_view *view = &table->view->view;
    *out = view->has_snapshot ? view->snapshot.id : 0;
    if (table->head != NULL)
        *out = TARN_MAX(*out, table->head->id); /* the view comes behind it */
    return TARN_OK;
}

/* While we were away it may have been the life before this one whose last put the index missed. */
static void tell_adopted(struct tarn_op *op, const struct tarn_table *table, int64_t known,
                         bool was_away)
{
    const struct tarn_snapshot *newest = &table->view->view.snapshot;
    if (!was_away)
        tarn_metric_add(TARN_M_SNAPSHOTS_ADOPTED, NULL, newest->id - known);
    tarn_log(op, was_away ? TARN_INFO : TARN_WARN, "table.adopted",
             "table=%s snapshot=%" PRId64 " behind=%" PRId64 " user=%s",
             tarn_log_quote(op, table->name), newest->id, known,
             tarn_log_quote(op, tarn_arena_str(op->arena, newest->commit_user)));
}

static struct tarn_status *learn_all(struct tarn_op *op, struct tarn_table *table, bool *news,
                                     int64_t *latest)
{
    struct tarn_range range;
    bool rewritten, was_away = table->view == NULL;
    int64_t known;
    int64_t begun_ms = tarn_clock_mono_ms(); /* it may take long, and others go on meanwhile */
    TARN_TRY(known_id(table, &known));
    TARN_TRY(is_rewritten(op, table, &rewritten));
    TARN_OWN(tarn_head_drop) struct tarn_head *head = NULL;
    TARN_TRY(follow(op, table, &range, &head));
    if (rewritten || table->expired_below > range.latest)
        table->expired_below = 0;
    int64_t gone_below = range.earliest; /* an expiry of ours may still be taken back */
    range.earliest = TARN_MAX(range.earliest, table->expired_below);
    if (gone_below > 1)
        TARN_TRY(tarn_table__index_forget_below(op, table, gone_below));
    struct tarn_head *old = table->head;
    *news = old == NULL || old->id != head->id || !tarn_slice_equal(old->json, head->json);
    *latest = range.latest;
    table->head = tarn_move(head);
    tarn_head_free(old);
    table->slot_filled |= table->view != NULL && table->head->id > table->opened_id;
    TARN_TRY(publish(op, table, range.earliest, begun_ms, rewritten ? SCHEMA_ANEW : SCHEMA_NEXT));
    tarn_table__set_whole(table, true); /* the view is what it has */
    if (!rewritten && table->head->id > known && (known != 0 || !was_away))
        tell_adopted(op, table, known, was_away);
    return gone_below > 1 ? tarn_table__receipts_forget(table, gone_below) : TARN_OK;
}

static struct tarn_status *learn(struct tarn_op *op, struct tarn_table *table)
{
    bool news = false;
    int64_t latest = 0;
    struct tarn_status *s = learn_all(op, table, &news, &latest);
    if (s !=
        TARN_OK) { /* index and view may stand anywhere by now: the next use looks at everything anew */
        tarn_head_free(tarn_move(table->head));
        tarn_table__look_again(table);
        return s;
    }
    if (news && latest != 0 && table->env->committed != NULL)
        table->env->committed(table->env->committed_arg, table, latest);
    return TARN_OK;
}

struct tarn_status *tarn_table__refresh(struct tarn_op *op, struct tarn_table *table)
{
    bool same;
    int64_t begun_ms = tarn_clock_mono_ms();
    TARN_TRY(unchanged(op, table, &same));
    if (!same)
        return learn(op, table);
    pthread_mutex_lock(&table->lock);
    table->looked_ms = table->seen_ms = begun_ms;
    pthread_mutex_unlock(&table->lock);
    return TARN_OK;
}

struct look_job {
    struct tarn_op *op;
    struct tarn_table *table;
    int64_t since_ms; /* a look that began then or later will do */
    struct tarn_status *status;
};

static bool looked_since(struct tarn_table *table, int64_t since_ms)
{
    pthread_mutex_lock(&table->lock);
    bool looked = table->index_whole && table->looked_ms >= since_ms;
    pthread_mutex_unlock(&table->lock);
    return looked;
}

static int64_t lately_ms(const struct tarn_table *table)
{
    return tarn_clock_mono_ms() - table->env->foreign_check_ms + 1;
}

bool tarn_table__looked_lately(struct tarn_table *table)
{
    return looked_since(table, lately_ms(table));
}

void tarn_table__look_again(struct tarn_table *table)
{
    pthread_mutex_lock(&table->lock);
    table->looked_ms = INT64_MIN / 2;
    pthread_mutex_unlock(&table->lock);
}

bool tarn_table__is_whole(struct tarn_table *table)
{
    pthread_mutex_lock(&table->lock);
    bool whole = table->index_whole;
    pthread_mutex_unlock(&table->lock);
    return whole;
}

void tarn_table__set_whole(struct tarn_table *table, bool whole)
{
    pthread_mutex_lock(&table->lock);
    table->index_whole = whole;
    pthread_mutex_unlock(&table->lock);
}

static void run_look(void *arg)
{
    struct look_job *job = arg;
    if (!looked_since(job->table,
                      job->since_ms)) /* another may have looked while this one waited */
        job->status = tarn_table__refresh(job->op, job->table);
}

int64_t tarn_table_age_ms(struct tarn_table *table)
{
    pthread_mutex_lock(&table->lock);
    int64_t age = tarn_clock_mono_ms() - table->seen_ms;
    pthread_mutex_unlock(&table->lock);
    return TARN_MAX(age, (int64_t)1);
}

static struct tarn_status *look(struct tarn_op *op, struct tarn_table *table, int64_t since_ms)
{
    struct look_job job = {op, table, since_ms, TARN_OK};
    TARN_TRY(tarn_table__check_here(table));
    if (!looked_since(table, since_ms))
        tarn_mailbox_call(table->mailbox, run_look, &job);
    return job.status;
}

static struct tarn_status *look_since(struct tarn_op *op, struct tarn_table *table,
                                      int64_t since_ms, const struct tarn_table_view **out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_status *s = look(op, table, since_ms);
    if (tarn_store_is_away(s))
        return tarn_status_wrap(
            s, "what is known of table %s is %.1f s old, older than [commit] foreign_check allows",
            table->name, (double)tarn_table_age_ms(table) / 1e3);
    TARN_TRY(s);
    *out = tarn_table__view_ref(table);
    return TARN_OK;
}

struct tarn_status *tarn_table_look(struct tarn_op *op, struct tarn_table *table,
                                    const struct tarn_table_view **out)
{
    return look_since(op, table, lately_ms(table), out);
}

struct tarn_status *tarn_table_look_now(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_table_view **out)
{
    return look_since(op, table, tarn_clock_mono_ms() + 1, out);
}

struct tarn_status *tarn_table_look_or_last(struct tarn_op *op, struct tarn_table *table,
                                            const struct tarn_table_view **out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_status *s = op->stale_ms > 0 ? TARN_OK : look(op, table, lately_ms(table));
    bool away = op->stale_ms > 0 || tarn_store_is_away(s);
    if (!away && s != TARN_OK)
        return s;
    tarn_status_free(s);
    if (away)
        op->stale_ms = TARN_MAX(op->stale_ms, tarn_table_age_ms(table));
    *out = tarn_table__view_ref(table);
    return TARN_OK;
}
