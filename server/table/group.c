#include "table/commit_internal.h"

/*
 * Groups: which parts of which requests become one snapshot, and whose identity it carries.
 *
 *   queue: a1 a2 c1 o1 a3      a: append, c: compaction, o: overwrite
 *   groups: {a1 a2} {c1} {o1} {a3}
 *
 * A group is of one kind. The first in the queue leads it; those behind it come along where nothing keeps them apart, in
 * order of arrival. One that stays holds back what its user sent later, and an overwrite that stays holds back everything,
 * so nobody is overtaken for ever and no user is reordered.
 */

/* --- the queue --- */

void tarn_table__queue_front(struct tarn_table *table, struct tarn_member *member)
{
    pthread_mutex_lock(&table->lock);
    member->next = table->queue_first;
    table->queue_first = member;
    if (member->next == NULL)
        table->queue_last = &member->next;
    table->queue_count++;
    pthread_mutex_unlock(&table->lock);
}

void tarn_table__requeue(struct tarn_group *group)
{
    for (size_t i = group->count; i > 0; i--)
        tarn_table__queue_front(group->table, group->members[i - 1]);
    group->count = 0;
}

/* Under the lock: takes *link's member out of the queue. */
static struct tarn_member *unlink_member(struct tarn_table *table, struct tarn_member **link)
{
    struct tarn_member *member = *link;
    *link = member->next;
    if (member->next == NULL)
        table->queue_last = link;
    member->next = NULL;
    table->queue_count--;
    return member;
}

/* --- what keeps two apart --- */

/* What the members so far touch: tagged keys -> something. */
struct touched {
    const struct tarn_table *table;
    const struct tarn_table_view *view;
    struct tarn_map *map;
    struct tarn_buf key;
    enum tarn_commit_kind kind;
    struct tarn_slice streaming_user; /* absent: none yet */
    int64_t streaming_identifier;
    size_t entry_count;
    bool all_streams; /* any number of streaming users may share */
    bool ordered;     /* sequence.snapshot-ordering: one bucket, one member */
};
/* Tags of keys. */
#define TAG_FILE 'f' /* a data, changelog or index file by place and name */
#define TAG_INDEX                                                                                  \
    'x' /* a bucket whose index files change; of hash indexes the partition, bucket -1 */
#define TAG_BUCKET 'b'   /* a bucket that is touched */
#define TAG_LEVELED 'l'  /* a bucket where files lie in levels or go: its key ranges are checked */
#define TAG_COUNT 'n'    /* a partition -> its number of buckets */
#define TAG_PROPERTY 'p' /* a key -> the pair */
#define TAG_IDENTITY 'i'
#define TAG_STREAM 's' /* a user -> the member with their last identifier */
#define TAG_HELD 'h'   /* a user of whom one stays in the queue */

static struct tarn_slice key_of(struct touched *t, char tag, struct tarn_slice rest)
{
    tarn_buf_clear(&t->key);
    tarn_buf_add_byte(&t->key, (uint8_t)tag);
    tarn_buf_add_slice(&t->key, rest);
    return tarn_buf_slice(&t->key);
}

static struct tarn_slice place_key(struct touched *t, char tag, struct tarn_slice partition,
                                   int32_t bucket, struct tarn_slice name)
{
    tarn_buf_clear(&t->key);
    tarn_buf_add_byte(&t->key, (uint8_t)tag);
    tarn_buf_add(&t->key, &bucket, sizeof bucket);
    uint64_t size = partition.size;
    tarn_buf_add(&t->key, &size, sizeof size);
    tarn_buf_add_slice(&t->key, partition);
    tarn_buf_add_slice(&t->key, name);
    return tarn_buf_slice(&t->key);
}

/* Which bucket a key is in is a matter of all hash indexes of its partition. */
static int32_t index_bucket(const struct tarn_index_file *f)
{
    return tarn_slice_is(f->type, TARN_INDEX_HASH) ? -1 : f->bucket;
}

static struct tarn_slice identity_key(struct touched *t, const struct tarn_request *r)
{
    tarn_buf_clear(&t->key);
    tarn_buf_add_byte(&t->key, TAG_IDENTITY);
    tarn_buf_add(&t->key, &r->commit->identifier, sizeof r->commit->identifier);
    tarn_buf_add(&t->key, &r->content, sizeof r->content);
    tarn_buf_add_slice(&t->key, r->commit->user);
    return tarn_buf_slice(&t->key);
}

static bool is_batch(const struct tarn_member *m)
{
    return m->request->commit->identifier == TARN_COMMIT_IDENTIFIER_BATCH;
}

static size_t entry_count(const struct tarn_member *m)
{
    return m->part->count + m->part->changelog_count + m->part->index_count;
}

static bool has(struct touched *t, struct tarn_slice key)
{
    return tarn_map_find(t->map, key) != NULL;
}

static bool is_leveled(const struct tarn_manifest_entry *e)
{
    return e->kind == TARN_ENTRY_DELETE || e->file.level > 0;
}

static const struct tarn_slice no_name = {NULL, 0};

static bool entry_fits(struct touched *t, const struct tarn_manifest_entry *e)
{
    if (has(t, place_key(t, TAG_FILE, e->partition, e->bucket, e->file.name)))
        return false;
    bool bucket_taken = has(t, place_key(t, TAG_BUCKET, e->partition, e->bucket, no_name));
    if (bucket_taken && (t->ordered || t->kind == TARN_COMMIT_COMPACT || is_leveled(e)))
        return false;
    if (has(t, place_key(t, TAG_LEVELED, e->partition, e->bucket, no_name)))
        return false;
    intptr_t buckets = (intptr_t)tarn_map_find(t->map, key_of(t, TAG_COUNT, e->partition));
    return buckets == 0 || e->total_buckets <= 0 || buckets == e->total_buckets;
}

static bool files_fit(struct touched *t, const struct tarn_commit_part *part)
{
    for (size_t i = 0; i < part->count; i++)
        if (!entry_fits(t, &part->entries[i]))
            return false;
    for (size_t i = 0; i < part->changelog_count; i++) {
        const struct tarn_manifest_entry *e = &part->changelog[i];
        if (has(t, place_key(t, TAG_FILE, e->partition, e->bucket, e->file.name)))
            return false;
    }
    for (size_t i = 0; i < part->index_count; i++) {
        const struct tarn_index_file *f = &part->index[i];
        if (has(t, place_key(t, TAG_INDEX, f->partition, index_bucket(f), no_name)))
            return false;
    }
    return true;
}

static bool properties_fit(struct touched *t, const struct tarn_commit *commit)
{
    for (size_t i = 0; i < commit->property_count; i++) {
        const struct tarn_pair *known =
            tarn_map_find(t->map, key_of(t, TAG_PROPERTY, commit->properties[i].key));
        if (known != NULL && !tarn_slice_equal(known->value, commit->properties[i].value))
            return false;
    }
    return true;
}

static bool identity_fits(struct touched *t, const struct tarn_member *m)
{
    const struct tarn_commit *commit = m->request->commit;
    if (has(t, key_of(t, TAG_HELD, commit->user)) || has(t, identity_key(t, m->request)))
        return false;
    if (is_batch(m) || t->streaming_user.data == NULL)
        return true;
    if (!t->all_streams && !tarn_slice_equal(t->streaming_user, commit->user))
        return false;
    const struct tarn_member *last = tarn_map_find(t->map, key_of(t, TAG_STREAM, commit->user));
    return last == NULL || commit->identifier > last->request->commit->identifier;
}

static bool stands_alone_by_kind(const struct tarn_member *m)
{
    return m->kind == TARN_COMMIT_OVERWRITE || m->kind == TARN_COMMIT_ANALYZE ||
           m->request->commit->finished != NULL;
}

static bool stands_alone(const struct touched *t, const struct tarn_member *m)
{
    if (m->request->commit->assigned && t->view->options.keys_cross_partitions)
        return true;
    return m->alone || stands_alone_by_kind(m) || t->view->options.group_commit == TARN_GROUP_NONE;
}

static bool fits(struct touched *t, const struct tarn_member *m)
{
    if (m->kind != t->kind || stands_alone(t, m) ||
        t->entry_count + entry_count(m) > TARN_GROUP_ENTRIES_MAX)
        return false;
    return identity_fits(t, m) && properties_fit(t, m->request->commit) && files_fit(t, m->part);
}

static void touch_files(struct touched *t, const struct tarn_commit_part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        const struct tarn_manifest_entry *e = &part->entries[i];
        tarn_map_set(t->map, place_key(t, TAG_FILE, e->partition, e->bucket, e->file.name), t);
        tarn_map_set(t->map, place_key(t, TAG_BUCKET, e->partition, e->bucket, no_name), t);
        if (is_leveled(e))
            tarn_map_set(t->map, place_key(t, TAG_LEVELED, e->partition, e->bucket, no_name), t);
        if (e->total_buckets > 0)
            tarn_map_set(t->map, key_of(t, TAG_COUNT, e->partition),
                         (void *)(intptr_t)e->total_buckets);
    }
    for (size_t i = 0; i < part->changelog_count; i++) {
        const struct tarn_manifest_entry *e = &part->changelog[i];
        tarn_map_set(t->map, place_key(t, TAG_FILE, e->partition, e->bucket, e->file.name), t);
    }
    for (size_t i = 0; i < part->index_count; i++) {
        const struct tarn_index_file *f = &part->index[i];
        tarn_map_set(t->map, place_key(t, TAG_INDEX, f->partition, index_bucket(f), no_name), t);
    }
}

static void touch(struct touched *t, struct tarn_member *m)
{
    const struct tarn_commit *commit = m->request->commit;
    touch_files(t, m->part);
    for (size_t i = 0; i < commit->property_count; i++)
        tarn_map_set(t->map, key_of(t, TAG_PROPERTY, commit->properties[i].key),
                     (void *)(uintptr_t)&commit->properties[i]);
    tarn_map_set(t->map, identity_key(t, m->request), m);
    if (!is_batch(m)) {
        t->streaming_user = commit->user;
        tarn_map_set(t->map, key_of(t, TAG_STREAM, commit->user), m);
    }
    t->entry_count += entry_count(m);
}

static void touched_fini(struct touched *t)
{
    tarn_map_free(t->map);
    tarn_buf_drop(&t->key);
}

/* --- taking --- */

/* A caller that gave up before its turn is told so: nothing of it was committed. */
static bool gave_up(struct tarn_table *table, struct tarn_member **link, struct tarn_member **out)
{
    struct tarn_member *m = *link;
    if (m->taken)
        return false;
    struct tarn_status *s = tarn_op_check(m->request->op);
    if (s == TARN_OK)
        return false;
    tarn_status_free(s); /* told when the lock is given up */
    *out = unlink_member(table, link);
    return true;
}

static void add_member(struct tarn_group *group, struct tarn_member *m)
{
    m->taken = true;
    group->parts[group->count] = *m->part;
    group->members[group->count++] = m;
}

/* Engines take the identifier of a user's last snapshot for the last one that landed, so a compact part comes before
 * whatever its user sent behind it. */
static void hold_users(struct touched *t, const struct tarn_group *ahead)
{
    for (size_t i = 0; ahead != NULL && i < ahead->count; i++) {
        const struct tarn_member *m = ahead->members[i];
        const struct tarn_request *r = m->request;
        if (m == &r->append && r->has_compact && !is_batch(m))
            tarn_map_set(t->map, key_of(t, TAG_HELD, r->commit->user), t);
    }
}

static bool is_held(struct touched *t, const struct tarn_member *m)
{
    return has(t, key_of(t, TAG_HELD, m->request->commit->user));
}

/* Under the lock: the first whose turn it is; NULL: it is nobody's, or they haven't come yet. */
static struct tarn_member *take_in_turn(struct tarn_table *table)
{
    if (tarn_table__turn_left_ms(table) == 0)
        return NULL;
    for (struct tarn_member **link = &table->queue_first; *link != NULL; link = &(*link)->next)
        if ((*link)->request->commit->finished != NULL)
            return unlink_member(table, link);
    return NULL;
}

/* Under the lock: the first that isn't held; NULL: none. An overwrite that is held holds back all behind it. */
static struct tarn_member *take_first(struct tarn_table *table, struct touched *t)
{
    struct tarn_member *in_turn = take_in_turn(table);
    if (in_turn != NULL)
        return in_turn;
    struct tarn_member **link = &table->queue_first;
    while (*link != NULL && is_held(t, *link)) {
        if (stands_alone_by_kind(*link))
            return NULL;
        link = &(*link)->next;
    }
    return *link == NULL ? NULL : unlink_member(table, link);
}

/* Under the lock: those behind the first. */
static void take_followers(struct tarn_table *table, struct touched *t, struct tarn_group *group)
{
    struct tarn_member **link = &table->queue_first;
    while (*link != NULL && group->count < TARN_GROUP_MEMBERS_MAX) {
        struct tarn_member *m = *link;
        if (fits(t, m)) {
            touch(t, m);
            add_member(group, unlink_member(table, link));
            continue;
        }
        if (stands_alone_by_kind(m))
            return;
        tarn_map_set(t->map, key_of(t, TAG_HELD, m->request->commit->user), t);
        link = &m->next;
    }
}

static void init_touched(struct touched *t, struct tarn_table *table)
{
    const struct tarn_table_view *view = &table->view->view;
    bool dynamic = view->schema.primary_key_count > 0 && view->options.bucket == -1;
    *t = (struct touched){
        .table = table,
        .view = view,
        .map = tarn_map_new(),
        .all_streams = view->options.group_commit == TARN_GROUP_ALL && !dynamic,
        .ordered =
            tarn_slice_is(tarn_schema_option(&view->schema, "sequence.snapshot-ordering"), "true")};
}

struct tarn_group *tarn_table__group_new(struct tarn_table *table, enum tarn_commit_kind kind)
{
    struct tarn_group *group = tarn_calloc(1, sizeof *group);
    tarn_op_init(&group->op);
    group->table = table;
    group->kind = kind;
    group->ground_seen_ms = TARN_NEVER_MS;
    group->begun_ns = tarn_clock_mono_ns();
    return group;
}

void tarn_table__group_free(struct tarn_group *group)
{
    if (group == NULL)
        return;
    tarn_head_free(group->next);
    tarn_map_free(group->highest);
    tarn_op_fini(&group->op);
    free(group);
}

/* Under the lock: those whose callers gave up, out of the queue. */
static struct tarn_member *take_gone(struct tarn_table *table)
{
    struct tarn_member *gone = NULL, *m;
    for (struct tarn_member **link = &table->queue_first; *link != NULL;) {
        if (!gave_up(table, link, &m)) {
            link = &(*link)->next;
            continue;
        }
        m->next = gone;
        gone = m;
    }
    return gone;
}

static void answer_gone(struct tarn_table *table, struct tarn_member *gone)
{
    while (gone != NULL) {
        struct tarn_member *m = gone;
        gone = m->next;
        tarn_table__answer(table, m, tarn_op_check(m->request->op), 0, false);
    }
}

struct tarn_group *tarn_table__take_group(struct tarn_table *table, const struct tarn_group *ahead,
                                          size_t *left)
{
    struct tarn_group *group = NULL;
    TARN_OWN(touched_fini) struct touched t;
    init_touched(&t, table);
    hold_users(&t, ahead);
    pthread_mutex_lock(&table->lock);
    struct tarn_member *gone = take_gone(table);
    struct tarn_member *first = take_first(table, &t);
    if (first != NULL) {
        t.kind = first->kind;
        group = tarn_table__group_new(table, first->kind);
        add_member(group, first);
        if (!stands_alone(&t, first)) {
            touch(&t, first);
            take_followers(table, &t, group);
        }
    }
    *left = table->queue_count;
    pthread_mutex_unlock(&table->lock);
    answer_gone(table, gone);
    return group;
}

/* --- answers --- */

static void finish_request(struct tarn_request *r, struct tarn_status *consumed)
{
    if (consumed != TARN_OK)
        tarn_metric_add(TARN_M_COMMIT_FAILURES, tarn_reason_name(tarn_status_reason(consumed)), 1);
    tarn_status_free(r->missing);
    r->done(r->done_arg, consumed); /* from here on it is gone */
}

void tarn_table__answer(struct tarn_table *table, struct tarn_member *member,
                        struct tarn_status *consumed, int64_t snapshot_id, bool repeated)
{
    struct tarn_request *r = member->request;
    if (member == &r->append && consumed == TARN_OK) {
        r->result->append_snapshot_id = snapshot_id;
        r->append_repeated = repeated;
        if (r->has_compact) { /* right behind, under the same identity */
            r->compact.taken = true;
            tarn_table__queue_front(table, &r->compact);
            return;
        }
        r->result->repeated = repeated;
    }
    if (member == &r->compact && consumed == TARN_OK) {
        r->result->compact_snapshot_id = snapshot_id;
        r->result->repeated = repeated && (!r->has_append || r->append_repeated);
    }
    if (member == &r->compact && consumed != TARN_OK && r->result->append_snapshot_id != 0)
        consumed = tarn_status_wrap(
            consumed, "the rows landed in snapshot %" PRId64 ", their compaction didn't",
            r->result->append_snapshot_id);
    finish_request(r, consumed);
}

void tarn_table__answer_all(struct tarn_group *group, struct tarn_status *consumed)
{
    for (size_t i = 0; i < group->count; i++)
        tarn_table__answer(group->table, group->members[i], tarn_status_copy(consumed), 0, false);
    group->count = 0;
    tarn_status_free(consumed);
}

/* --- whose snapshot it is --- */

static void add_receipt(struct tarn_json *list, const struct tarn_request *r)
{
    struct tarn_json *one = tarn_json_array();
    tarn_json_add(one, tarn_json_string(r->commit->user));
    tarn_json_add(one, tarn_json_integer(r->commit->identifier));
    if (r->commit->identifier == TARN_COMMIT_IDENTIFIER_BATCH) {
        char hex[17];
        snprintf(hex, sizeof hex, "%016" PRIx64, r->content);
        tarn_json_add(one, tarn_json_string(tarn_slice_str(hex)));
    }
    tarn_json_add(list, one);
}

/* The identities that stock clients can't see in the snapshot, as one property. */
static struct tarn_slice receipts_text(struct tarn_group *group, const struct tarn_request *carried)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *list = tarn_json_array();
    for (size_t i = 0; i < group->count; i++)
        if (group->members[i]->request != carried)
            add_receipt(list, group->members[i]->request);
    if (tarn_json_count(list) == 0)
        return tarn_slice_str(NULL);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_json_print(list, 0, &text);
    return tarn_arena_copy(group->op.arena, tarn_buf_slice(&text));
}

/* All members' pairs (they agree), and the receipts. */
static void fill_properties(struct tarn_group *group, struct tarn_snapshot *snapshot,
                            struct tarn_slice receipts)
{
    size_t most = 1;
    for (size_t i = 0; i < group->count; i++)
        most += group->members[i]->request->commit->property_count;
    struct tarn_pair *pairs = tarn_arena_calloc(group->op.arena, most, sizeof *pairs);
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    size_t n = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct tarn_commit *commit = group->members[i]->request->commit;
        for (size_t p = 0; p < commit->property_count; p++)
            if (tarn_map_set(seen, commit->properties[p].key, pairs) == NULL)
                pairs[n++] = commit->properties[p];
    }
    if (receipts.data != NULL)
        pairs[n++] = (struct tarn_pair){tarn_slice_str(TARN_RECEIPTS_PROPERTY), receipts};
    snapshot->properties = pairs;
    snapshot->property_count = n;
}

void tarn_table__sign(struct tarn_group *group, struct tarn_snapshot *snapshot)
{
    const struct tarn_request *carried = NULL; /* whose identity the snapshot shows */
    for (size_t i = 0; i < group->count; i++)
        if (!is_batch(group->members[i]))
            carried = group->members[i]->request; /* the last one */
    if (carried == NULL && group->count == 1)
        carried = group->members[0]->request;
    snapshot->commit_user =
        carried != NULL ? carried->commit->user : tarn_slice_str(TARN_COMMIT_OWN_USER);
    snapshot->commit_identifier = carried != NULL ? carried->commit->identifier : snapshot->id;
    /* A batch is told from others by what it names: where the delta doesn't name just that, or a changelog does, which may go
     * before its snapshot, it is written down. */
    bool told = carried == NULL || carried->content == 0 ||
                (group->count == 1 && group->delta.changelog_count == 0 &&
                 tarn_table__delta_content(&group->delta) == carried->content);
    fill_properties(group, snapshot, receipts_text(group, told ? carried : NULL));
}
