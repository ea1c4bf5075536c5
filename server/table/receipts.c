#include "table/internal.h"

/*
 * Receipts: which identity landed in which snapshot. They follow history: what a roll-back took away is void, and
 * said to be so; what lies below the horizon is not known any more (server/table/README.md, "Receipts").
 *
 * In the family RECEIPTS, each key behind the table's uuid; an identity is user | identifier | content:
 *
 *   'r' | identity | kind -> snapshot id, time      landed; content 0 but for batches
 *   'o' | snapshot id | identity | kind -> time     the same in order of history, to void and to forget by
 *   'v' | identity | kind -> snapshot id, time      landed there and was rolled back; one in 'r' is newer
 *   'd' | identity | kind -> snapshot id, time      landed there, and may have been rolled back since
 *   'l' | user -> identifier, snapshot id           the last one that landed, of those that aren't batches
 *   'g' -> snapshot id                              below it lies a gap: history that nobody here has seen
 *   'm' | user -> identifier                        the last one whose receipt was forgotten
 *   'b' | user -> content                           the last batch
 *   'f' | identity -> number, time, reason, message refused
 *   'q' | slot -> number, key of its refusal        the refusals as a ring, to forget the oldest by; 'n' -> next number
 *   'z' -> snapshot id                              the horizon: from here on every identity is known
 *   'a' -> snapshot id, hash of its JSON            while the index is built anew: the last one that history before and after have
 */

#define VOID_BATCH_RECEIPTS 10000
#define FORGET_BATCH_RECEIPTS 1000

static void add_identity(struct tarn_buf *key, const struct tarn_identity *who)
{
    tarn_key_add_bytes(key, who->user);
    tarn_key_add_i64(key, who->identifier);
    tarn_key_add_u64(key, who->content);
}

static void user_key(const struct tarn_table *table, char tag, struct tarn_slice user,
                     struct tarn_buf *key)
{
    tarn_table__tagged_key(table->uuid, tag, key);
    tarn_key_add_bytes(key, user);
}

static struct tarn_status *damaged(const struct tarn_table *table)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a receipt is damaged",
                           tarn_table_name(table));
}

static void put(struct tarn_state_batch *batch, struct tarn_table *table,
                const struct tarn_buf *key, const struct tarn_buf *value)
{
    tarn_state_batch_put(batch, table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(key),
                         tarn_buf_slice(value));
}

/* --- what makes a batch the one it is --- */

static uint64_t name_hash(char role, struct tarn_slice name)
{
    return tarn_xxh64(name, (uint64_t)(uint8_t)role);
}

/* A sum: the order in which files are named doesn't matter. */
static uint64_t entries_content(const struct tarn_manifest_entry *entries, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += name_hash(entries[i].kind == TARN_ENTRY_ADD ? 'a' : 'd', entries[i].file.name);
    return sum;
}

static uint64_t changelog_content(const struct tarn_manifest_entry *entries, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += name_hash('c', entries[i].file.name);
    return sum;
}

static uint64_t part_content(const struct tarn_commit_part *part)
{
    uint64_t sum = entries_content(part->entries, part->count) +
                   changelog_content(part->changelog, part->changelog_count);
    for (size_t i = 0; i < part->index_count; i++)
        sum +=
            name_hash(part->index[i].kind == TARN_ENTRY_ADD ? 'i' : 'j', part->index[i].file.name);
    return sum;
}

uint64_t tarn_commit_content(const struct tarn_commit *commit)
{
    uint64_t sum = part_content(&commit->append) + part_content(&commit->compact);
    if (commit->statistics.data != NULL)
        sum += name_hash('s', commit->statistics);
    return sum != 0 ? sum : 1;
}

uint64_t tarn_table__delta_content(const struct tarn_delta *delta)
{
    uint64_t sum = entries_content(delta->entries, delta->count) +
                   changelog_content(delta->changelog, delta->changelog_count);
    return sum != 0 ? sum : 1;
}

/* --- landing --- */

static void add_receipt(struct tarn_state_batch *batch, struct tarn_table *table,
                        const struct tarn_snapshot *snapshot, const struct tarn_identity *who)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf order = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf last = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf landed = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf time = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf number = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf doubt = {0};
    bool is_batch = who->identifier == TARN_COMMIT_IDENTIFIER_BATCH;
    tarn_table__tagged_key(table->uuid, 'r', &key);
    add_identity(&key, who);
    tarn_buf_add_byte(&key, (uint8_t)snapshot->kind);
    tarn_table__tagged_key(table->uuid, 'd', &doubt);
    add_identity(&doubt, who);
    tarn_buf_add_byte(&doubt, (uint8_t)snapshot->kind);
    tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&doubt));
    tarn_table__tagged_key(table->uuid, 'o', &order);
    tarn_key_add_i64(&order, snapshot->id);
    add_identity(&order, who);
    tarn_buf_add_byte(&order, (uint8_t)snapshot->kind);
    tarn_key_add_i64(&landed, snapshot->id);
    tarn_key_add_i64(&landed, snapshot->time_ms);
    tarn_key_add_i64(&time, snapshot->time_ms);
    user_key(table, is_batch ? 'b' : 'l', who->user, &last);
    if (is_batch)
        tarn_key_add_u64(&number, who->content);
    else {
        tarn_key_add_i64(&number, who->identifier);
        tarn_key_add_i64(&number, snapshot->id);
    }
    put(batch, table, &key, &landed);
    put(batch, table, &order, &time);
    put(batch, table, &last, &number);
}

/* The property's value, or absent. */
static struct tarn_slice receipts_of(const struct tarn_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->property_count; i++)
        if (tarn_slice_is(snapshot->properties[i].key, TARN_RECEIPTS_PROPERTY))
            return snapshot->properties[i].value;
    return tarn_slice_str(NULL);
}

static bool parse_hex(struct tarn_slice text, uint64_t *out)
{
    if (text.size != 16)
        return false;
    *out = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
            return false;
        *out = *out << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* One element of the property: [user, identifier] or [user, batch identifier, content]. */
static bool parse_receipt(const struct tarn_json *json, struct tarn_identity *out)
{
    const struct tarn_json *user = tarn_json_at(json, 0), *identifier = tarn_json_at(json, 1);
    size_t count = tarn_json_count(json);
    if (tarn_json_kind(json) != TARN_JSON_ARRAY || (count != 2 && count != 3) ||
        tarn_json_kind(user) != TARN_JSON_STRING || tarn_json_kind(identifier) != TARN_JSON_INTEGER)
        return false;
    *out = (struct tarn_identity){tarn_json_text(user), tarn_json_int(identifier), 0};
    bool is_batch = out->identifier == TARN_COMMIT_IDENTIFIER_BATCH;
    if (is_batch != (count == 3) || out->user.size == 0)
        return false;
    return !is_batch || parse_hex(tarn_json_text(tarn_json_at(json, 2)), &out->content);
}

/* What isn't a receipt is left out: a table stays readable whatever somebody wrote into a property. */
static void add_hidden(struct tarn_state_batch *batch, struct tarn_table *table,
                       const struct tarn_snapshot *snapshot, struct tarn_slice text)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *list = NULL;
    struct tarn_status *s = tarn_json_parse(text, &list);
    if (s != TARN_OK) {
        tarn_log_status(NULL, TARN_WARN, "table.receipts_unreadable",
                        tarn_status_wrap(s, "table %s, snapshot %" PRId64, tarn_table_name(table),
                                         snapshot->id));
        return;
    }
    size_t count = tarn_json_kind(list) == TARN_JSON_ARRAY ? tarn_json_count(list) : 0;
    for (size_t i = 0; i < count; i++) {
        struct tarn_identity who;
        if (parse_receipt(tarn_json_at(list, i), &who))
            add_receipt(batch, table, snapshot, &who);
    }
}

void tarn_table__receipts_add(struct tarn_state_batch *batch, struct tarn_table *table,
                              const struct tarn_snapshot *snapshot, const struct tarn_delta *delta)
{
    struct tarn_slice hidden = receipts_of(snapshot);
    if (hidden.data != NULL)
        add_hidden(batch, table, snapshot, hidden);
    struct tarn_identity who = {snapshot->commit_user, snapshot->commit_identifier, 0};
    if (who.identifier == TARN_COMMIT_IDENTIFIER_BATCH) {
        if (hidden.data != NULL || delta == NULL)
            return; /* its own identity is among the hidden ones */
        who.content = tarn_table__delta_content(delta);
    } else if (tarn_slice_is(who.user, TARN_COMMIT_OWN_USER)) {
        return; /* a group's: nobody asks for it */
    }
    add_receipt(batch, table, snapshot, &who);
}

struct tarn_status *tarn_table__receipts_note(struct tarn_table *table,
                                              const struct tarn_snapshot *snapshot,
                                              const struct tarn_delta *delta)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_table__receipts_add(batch, table, snapshot, delta);
    return tarn_state_write(table->env->state, batch, false);
}

/* --- the past rewritten --- */

/* Takes an identity and a kind off the rest of a key. user: owns the bytes that out->user points to. */
static bool take_identity(struct tarn_slice *rest, struct tarn_buf *user, struct tarn_identity *out)
{
    tarn_buf_clear(user);
    if (!tarn_key_take_bytes(rest, user) || !tarn_key_take_i64(rest, &out->identifier) ||
        !tarn_key_take_u64(rest, &out->content))
        return false;
    out->user = tarn_buf_slice(user);
    return true;
}

static struct tarn_slice behind(struct tarn_slice key, size_t size)
{
    return tarn_slice_of(key.data + size, key.size - size);
}

static struct tarn_status *find_number(struct tarn_table *table, const struct tarn_buf *key,
                                       bool *found, int64_t *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(key), found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    return *found && !tarn_key_take_i64(&rest, out) ? damaged(table) : TARN_OK;
}

/* A user's last identifier is what is left of theirs: in the receipts, or among those forgotten. */
static struct tarn_status *restore_last(struct tarn_table *table, struct tarn_slice user)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf last_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf forgotten_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf last = {0};
    user_key(table, 'r', user, &prefix);
    user_key(table, 'l', user, &last_key);
    user_key(table, 'm', user, &forgotten_key);
    bool any;
    int64_t best = INT64_MIN, identifier;
    TARN_TRY(find_number(table, &forgotten_key, &any, &best));
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_slice rest = behind(key, prefix.size);
        if (!tarn_key_take_i64(&rest, &identifier))
            return damaged(table);
        if (identifier == TARN_COMMIT_IDENTIFIER_BATCH)
            break; /* the largest: batches come last */
        best = TARN_MAX(best, identifier);
        any = true;
    }
    TARN_TRY(tarn_state_iterator_error(it));
    tarn_key_add_i64(&last, best);
    tarn_key_add_i64(&last,
                     0); /* where is not known: behind a gap it says nothing of what lies in it */
    if (any)
        put(batch, table, &last_key, &last);
    else
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                                tarn_buf_slice(&last_key));
    return tarn_state_write(table->env->state, batch, false);
}

#define NOTHING '\0'

/* left: the tag of what is kept of it, or NOTHING. */
static void void_one(struct tarn_state_batch *batch, struct tarn_table *table, int64_t snapshot_id,
                     struct tarn_slice identity_and_kind, struct tarn_slice time, char left)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf landed = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf gone = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, 'r', &landed);
    tarn_buf_add_slice(&landed, identity_and_kind);
    tarn_table__tagged_key(table->uuid, left, &gone);
    tarn_buf_add_slice(&gone, identity_and_kind);
    tarn_key_add_i64(&value, snapshot_id);
    tarn_buf_add_slice(&value, time);
    tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                            tarn_buf_slice(&landed));
    if (left != NOTHING)
        put(batch, table, &gone, &value);
}

struct voiding {
    int64_t from;
    int64_t doubt_to; /* below: nobody knows whether they are void */
    bool rolled_back; /* the others are known to be */
};

/* Voids at most VOID_BATCH_RECEIPTS of them; their users are put into `users`. */
static struct tarn_status *void_some(struct tarn_table *table, const struct voiding *v,
                                     struct tarn_map *users, bool *more)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf begin = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf user = {0};
    tarn_table__tagged_key(table->uuid, 'o', &prefix);
    tarn_table__tagged_key(table->uuid, 'o', &begin);
    tarn_key_add_i64(&begin, v->from);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    tarn_state_iterator_seek(it, tarn_buf_slice(&begin));
    struct tarn_slice key, value;
    size_t n = 0;
    for (; n < VOID_BATCH_RECEIPTS && tarn_state_iterator_next(it, &key, &value); n++) {
        struct tarn_slice rest = behind(key, prefix.size), identity;
        struct tarn_identity who;
        int64_t snapshot_id;
        if (!tarn_key_take_i64(&rest, &snapshot_id))
            return damaged(table);
        identity = rest;
        if (!take_identity(&rest, &user, &who))
            return damaged(table);
        char left = v->rolled_back ? 'v' : NOTHING;
        void_one(batch, table, snapshot_id, identity, value,
                 snapshot_id < v->doubt_to ? 'd' : left);
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, key);
        if (who.identifier == TARN_COMMIT_IDENTIFIER_BATCH)
            continue;
        /* Not known until it is restored: one that is too high would have a replay thrown away. */
        TARN_OWN(tarn_buf_drop) struct tarn_buf last_key = {0};
        user_key(table, 'l', who.user, &last_key);
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                                tarn_buf_slice(&last_key));
        tarn_map_set(users, who.user, table);
    }
    TARN_TRY(tarn_state_iterator_error(it));
    *more = n == VOID_BATCH_RECEIPTS;
    return tarn_state_write(table->env->state, batch, false);
}

static struct tarn_status *void_all(struct tarn_table *table, const struct voiding *v)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *users = tarn_map_new();
    for (bool more = true; more;)
        TARN_TRY(void_some(table, v, users, &more));
    size_t cursor = 0;
    struct tarn_slice user;
    void *unused;
    while (tarn_map_next(users, &cursor, &user, &unused))
        TARN_TRY(restore_last(table, user));
    return TARN_OK;
}

struct tarn_status *tarn_table__receipts_void(struct tarn_table *table, int64_t from,
                                              bool rolled_back)
{
    return void_all(table, &(struct voiding){.from = from, .rolled_back = rolled_back});
}

void tarn_table__anchor_put(struct tarn_state_batch *batch, struct tarn_table *table, int64_t id,
                            uint64_t json_hash)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, 'a', &key);
    tarn_key_add_i64(&value, id);
    tarn_key_add_u64(&value, json_hash);
    put(batch, table, &key, &value);
}

struct tarn_status *tarn_table__anchor(struct tarn_table *table, int64_t *id, uint64_t *json_hash)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    bool found;
    *id = 0;
    tarn_table__tagged_key(table->uuid, 'a', &key);
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (found && (!tarn_key_take_i64(&rest, id) || !tarn_key_take_u64(&rest, json_hash)))
        return damaged(table);
    return TARN_OK;
}

void tarn_table__anchor_remove(struct tarn_state_batch *batch, struct tarn_table *table)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__tagged_key(table->uuid, 'a', &key);
    tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key));
}

/* --- asking --- */

struct tarn_status *tarn_table__receipt_find(struct tarn_table *table, struct tarn_slice user,
                                             int64_t identifier, uint64_t content,
                                             enum tarn_commit_kind kind, int64_t *snapshot_id)
{
    struct tarn_identity who = {user, identifier,
                                identifier == TARN_COMMIT_IDENTIFIER_BATCH ? content : 0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__tagged_key(table->uuid, 'r', &key);
    add_identity(&key, &who);
    tarn_buf_add_byte(&key, (uint8_t)kind);
    bool found;
    *snapshot_id = 0;
    return find_number(table, &key, &found, snapshot_id);
}

struct tarn_status *tarn_table__last_identifier(struct tarn_table *table, struct tarn_slice user,
                                                int64_t *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    user_key(table, 'l', user, &key);
    bool found;
    *out = TARN_SNAPSHOT_NONE;
    return find_number(table, &key, &found, out);
}

struct tarn_status *tarn_table__voided_find(struct tarn_table *table,
                                            const struct tarn_identity *who,
                                            enum tarn_commit_kind kind, int64_t *snapshot_id,
                                            int64_t *time_ms)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, 'v', &key);
    add_identity(&key, who);
    tarn_buf_add_byte(&key, (uint8_t)kind);
    bool found;
    *snapshot_id = 0;
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (found && (!tarn_key_take_i64(&rest, snapshot_id) || !tarn_key_take_i64(&rest, time_ms)))
        return damaged(table);
    return TARN_OK;
}

struct tarn_status *tarn_table__is_in_doubt(struct tarn_table *table,
                                            const struct tarn_identity *who,
                                            enum tarn_commit_kind kind, int64_t *snapshot_id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__tagged_key(table->uuid, 'd', &key);
    add_identity(&key, who);
    tarn_buf_add_byte(&key, (uint8_t)kind);
    bool found;
    *snapshot_id = 0;
    return find_number(table, &key, &found, snapshot_id);
}

struct tarn_status *tarn_table__last_batch(struct tarn_table *table, struct tarn_slice user,
                                           uint64_t *content)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    user_key(table, 'b', user, &key);
    bool found;
    *content = 0;
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    return found && !tarn_key_take_u64(&rest, content) ? damaged(table) : TARN_OK;
}

/* --- the horizon --- */

struct tarn_status *tarn_table__horizon(struct tarn_table *table, int64_t *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__tagged_key(table->uuid, 'z', &key);
    bool found;
    *out = INT64_MAX; /* nothing is known */
    return find_number(table, &key, &found, out);
}

static void put_tagged(struct tarn_state_batch *batch, struct tarn_table *table, char tag,
                       int64_t number)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, tag, &key);
    tarn_key_add_i64(&value, number);
    put(batch, table, &key, &value);
}

/* Of the snapshots that were retained when we last looked, some may have been rolled back before all of them expired. */
static int64_t first_in_doubt(const struct tarn_table *table)
{
    return table->view == NULL ? 0 : table->view->view.earliest_id;
}

static struct tarn_status *raise_horizon(struct tarn_table *table, int64_t id)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    put_tagged(batch, table, 'z', TARN_MAX(id, (int64_t)1));
    put_tagged(batch, table, 'g', TARN_MAX(id, (int64_t)1));
    return tarn_state_write(table->env->state, batch, false);
}

struct tarn_status *tarn_table__receipts_doubt(struct tarn_table *table, struct tarn_range range)
{
    int64_t horizon, from = TARN_MIN(first_in_doubt(table), range.earliest);
    TARN_TRY(tarn_table__horizon(table, &horizon));
    if (from < range.earliest) /* first: what follows may be cut off */
        TARN_TRY(raise_horizon(table, horizon == INT64_MAX ? range.earliest
                                                           : TARN_MAX(horizon, range.earliest)));
    return void_all(table, &(struct voiding){.from = from, .doubt_to = range.earliest});
}

struct tarn_status *tarn_table__horizon_rise(struct tarn_table *table, struct tarn_range range)
{
    int64_t horizon, indexed, anchor;
    uint64_t hash;
    TARN_TRY(tarn_table__horizon(table, &horizon));
    TARN_TRY(tarn_table__indexed_id(table, &indexed, &hash));
    TARN_TRY(tarn_table__anchor(table, &anchor, &hash));
    indexed = TARN_MAX(indexed, anchor); /* where it is being built anew */
    bool unknown = horizon == INT64_MAX;
    /* The snapshot that was indexed last has expired: others have committed past it, and nobody knows who, nor on what. */
    bool gap = range.earliest > TARN_MAX(indexed, (int64_t)1) && range.earliest > horizon;
    if (!unknown && !gap)
        return TARN_OK;
    return unknown ? raise_horizon(table, range.earliest)
                   : tarn_table__receipts_doubt(table, range);
}

struct tarn_status *tarn_table__may_lie_below(struct tarn_table *table,
                                              const struct tarn_identity *who, bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf gap_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    int64_t gap = 0, last, landed;
    bool found;
    *out = true;
    if (who->identifier == TARN_COMMIT_IDENTIFIER_BATCH)
        return TARN_OK;
    tarn_table__tagged_key(table->uuid, 'g', &gap_key);
    TARN_TRY(find_number(table, &gap_key, &found, &gap));
    user_key(table, 'l', who->user, &key);
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (!found)
        return TARN_OK;
    if (!tarn_key_take_i64(&rest, &last) || !tarn_key_take_i64(&rest, &landed))
        return damaged(table);
    *out = who->identifier <= last || landed < gap;
    return TARN_OK;
}

/* --- forgetting --- */

/* The last identifier of a user outlives its receipt. */
static struct tarn_status *keep_last(struct tarn_table *table, struct tarn_state_batch *batch,
                                     struct tarn_map *lasts, const struct tarn_identity *who,
                                     struct tarn_arena *arena)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    user_key(table, 'm', who->user, &key);
    int64_t *last = tarn_map_find(lasts, who->user);
    if (last == NULL) {
        bool found;
        last = tarn_arena_alloc(arena, sizeof *last);
        *last = INT64_MIN;
        TARN_TRY(find_number(table, &key, &found, last));
        tarn_map_set(lasts, who->user, last);
    }
    *last = TARN_MAX(*last, who->identifier);
    tarn_key_add_i64(&value, *last);
    put(batch, table, &key, &value);
    return TARN_OK;
}

struct tarn_status *tarn_table__receipts_forget(struct tarn_table *table, int64_t earliest)
{
    int64_t before_ms = tarn_clock_wall_ms() - table->env->receipts_retain_ms, horizon = 0;
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_map_drop) struct tarn_map *lasts = tarn_map_new();
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf user = {0};
    tarn_table__tagged_key(table->uuid, 'o', &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    for (size_t n = 0; tarn_state_iterator_next(it, &key, &value); n++) {
        struct tarn_slice rest = behind(key, prefix.size), time = value;
        TARN_OWN(tarn_buf_drop) struct tarn_buf landed = {0};
        struct tarn_identity who;
        int64_t snapshot_id, time_ms;
        if (!tarn_key_take_i64(&rest, &snapshot_id) || !tarn_key_take_i64(&time, &time_ms))
            return damaged(table);
        /* Those of one snapshot go together: the horizon lies between snapshots. */
        if (snapshot_id >= earliest || time_ms >= before_ms ||
            (n >= FORGET_BATCH_RECEIPTS && snapshot_id >= horizon))
            break;
        tarn_table__tagged_key(table->uuid, 'r', &landed);
        tarn_buf_add_slice(&landed, rest);
        if (!take_identity(&rest, &user, &who))
            return damaged(table);
        if (who.identifier != TARN_COMMIT_IDENTIFIER_BATCH)
            TARN_TRY(keep_last(table, batch, lasts, &who, arena));
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, key);
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                                tarn_buf_slice(&landed));
        horizon = snapshot_id + 1;
    }
    TARN_TRY(tarn_state_iterator_error(it));
    if (horizon == 0)
        return TARN_OK;
    int64_t known;
    TARN_TRY(tarn_table__horizon(table, &known));
    put_tagged(batch, table, 'z', TARN_MAX(known == INT64_MAX ? earliest : known, horizon));
    return tarn_state_write(table->env->state, batch, false);
}
